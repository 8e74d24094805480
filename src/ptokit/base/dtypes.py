"""The element types of the PTO instruction set, one object per type.

Every other part of ptokit talks about element types through these objects: the verifier compares
them by identity, memories ask them for sizes, instruction bodies for the NumPy dtype of their
operands, the text forms for their spelling. Keeping all facts of a type in one record, and one
record per type however it is spelled, is what makes ``is`` a sufficient comparison everywhere.

How values are rounded between types is the business of :mod:`ptokit.base.convert`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, cast

import ml_dtypes
import numpy

from ptokit.base.dataclass import dataclass
from ptokit.base.entry import public_raising
from ptokit.base.enums import PadValue
from ptokit.base.spelling import meant

Kind = Literal["int", "uint", "float"]


@dataclass(frozen=True, eq=False, repr=False)
class DType:
    """One element type. Instances are singletons: compare with ``is``, hash by identity."""

    name: str
    """Canonical short name (``f32``, ``i8``, ``f8e4m3`` ...), also the repr."""
    cpp: str
    """Spelling in PTO C++."""
    mlir: str
    """Spelling in the text forms. e1m2 and hif4 as single elements have none but ours."""
    bits: int
    """Width of one element."""
    itemsize: int
    """``sizeof`` in PTO C++; 1 for the 4-bit types although two elements share a byte."""
    kind: Kind
    storage: str
    """Name of :attr:`np`, in NumPy or in ml_dtypes."""
    min_value: int | float
    """Smallest value; for floats the most negative finite one."""
    max_value: int | float
    """Largest value; for floats the largest finite one."""
    pad_extremes: tuple[int, int] | None = None
    """Bit patterns of ``PadValue.Min`` and ``PadValue.Max``; None for types that pad with 0."""
    aliases: tuple[str, ...] = ()
    """Further spellings that :func:`dtype` understands."""

    def __repr__(self) -> str:
        return self.name

    @public_raising(ValueError)
    def __getitem__(self, shape: int | tuple[int, ...]) -> ArrayType:
        """The arrays of this type and shape: `def add(x: float32[256, 64])` declares one."""
        return ArrayType(self, shape if isinstance(shape, tuple) else (shape,))

    def __reduce__(self) -> tuple[Callable[[str], DType], tuple[str]]:
        # Pickling and copying go through the registry, so identity survives both.
        return dtype, (self.name,)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind != "float"

    @property
    def is_signed(self) -> bool:
        """Whether negative values exist. Of the floats only e8m0 has none."""
        return self.min_value < 0

    @property
    def is_packed(self) -> bool:
        """Whether memory holds two elements per byte, the even one in the low nibble."""
        return self.bits == 4

    @property
    def stores_codes(self) -> bool:
        """Whether arrays of :attr:`np` hold encodings instead of numbers NumPy can compute with."""
        return self.storage == "uint8" and self.name != "u8"

    @cached_property
    def np(self) -> numpy.dtype[Any]:
        """NumPy dtype of the arrays instruction bodies see, one array item per element."""
        return _of_numpy(self.storage)

    @cached_property
    def uint(self) -> numpy.dtype[Any]:
        """The unsigned NumPy integer of the same storage size: the bits of an element."""
        return numpy.dtype(f"u{self.itemsize}")

    def pad_bits(self, pad: int) -> int:
        """Return the bit pattern that pads a tile of this type for a PadValue or custom pad.

        A custom pad contributes as many low bits as the type stores. ``Null`` counts as 0 wherever
        a number is needed.
        """
        if not pad & PadValue.CustomBase and pad not in _NAMED_PADS:
            raise ValueError(f"{pad:#x} is neither a PadValue nor a custom pad value")
        if self.pad_extremes is None:
            return 0
        if pad & PadValue.CustomBase:
            return pad & ((1 << 8 * self.itemsize) - 1)
        if pad == PadValue.Min:
            return self.pad_extremes[0]
        if pad == PadValue.Max:
            return self.pad_extremes[1]
        return 0


@dataclass(frozen=True)
class ArrayType:
    """Arrays of an element type and a shape, as a parameter of a kernel may declare them."""

    element: DType
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if not all(isinstance(size, int) and size > 0 for size in self.shape):
            raise ValueError(f"the sizes of an array are positive whole numbers: {self}")

    def __repr__(self) -> str:
        return f"{self.element}[{', '.join(map(str, self.shape))}]"


_NAMED_PADS = frozenset({PadValue.Null, PadValue.Zero, PadValue.Max, PadValue.Min})


def _integer(name: str, cpp: str, mlir: str, aliases: str) -> DType:
    bits = int(name[1:])
    signed = name[0] == "i"
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    # 64-bit elements always pad with 0, and no instruction pads the 4-bit ones.
    pads = (low & ((1 << bits) - 1), high) if bits in (8, 16, 32) else None
    storage = "uint8" if bits == 4 else f"{'u' * (not signed)}int{bits}"
    itemsize = max(1, bits // 8)
    kind: Kind = "int" if signed else "uint"
    also = tuple(aliases.split())
    return DType(name, cpp, mlir, bits, itemsize, kind, storage, low, high, pads, also)


def _float(
    name: str,
    cpp: str,
    mlir: str,
    bits: int,
    storage: str,
    largest: float,
    aliases: str,
    pads: tuple[int, int] | None = None,
) -> DType:
    lowest = 2.0**-127 if name == "f8e8m0" else -largest
    also = tuple(aliases.split())
    size = max(1, bits // 8)
    return DType(name, cpp, mlir, bits, size, "float", storage, lowest, largest, pads, also)


# Each type once, bound to every name under which Python code may import it: the short name, the
# NumPy-like name and the C++ name.

i4 = int4 = int4b_t = _integer("i4", "int4b_t", "i4", "int4 si4")
i8 = int8 = int8_t = _integer("i8", "int8_t", "i8", "int8 si8")
i16 = int16 = int16_t = _integer("i16", "int16_t", "i16", "int16 si16")
i32 = int32 = int32_t = _integer("i32", "int32_t", "i32", "int32 si32 int")
i64 = int64 = int64_t = _integer("i64", "int64_t", "i64", "int64 si64")
u8 = uint8 = uint8_t = _integer("u8", "uint8_t", "ui8", "uint8")
u16 = uint16 = uint16_t = _integer("u16", "uint16_t", "ui16", "uint16")
u32 = uint32 = uint32_t = _integer("u32", "uint32_t", "ui32", "uint32")
u64 = uint64 = uint64_t = _integer("u64", "uint64_t", "ui64", "uint64")

f16 = float16 = half = _float(
    "f16", "half", "f16", 16, "float16", 65504.0, "float16", (0xFC00, 0x7C00)
)
_BF16_MAX, _F32_MAX = float.fromhex("0x1.fep127"), float.fromhex("0x1.fffffep127")
bf16 = bfloat16 = bfloat16_t = _float(
    "bf16", "bfloat16_t", "bf16", 16, "bfloat16", _BF16_MAX, "bfloat16", (0xFF80, 0x7F80)
)
f32 = float32 = _float(
    "f32", "float", "f32", 32, "float32", _F32_MAX, "float32", (0xFF80_0000, 0x7F80_0000)
)

# "f8E4M3" in MLIR proper is a format with infinities; PTO files use it for the finite one.
# The other formats with these bits are not PTO's either: they name the device's own.
_E4M3_NAMES = "float8_e4m3 float8_e4m3fn f8E4M3 e4m3 f8E4M3FNUZ f8E4M3B11FNUZ"
f8e4m3 = float8_e4m3 = float8_e4m3_t = _float(
    "f8e4m3", "float8_e4m3_t", "f8E4M3FN", 8, "float8_e4m3fn", 448.0, _E4M3_NAMES
)
_E5M2_NAMES = "float8_e5m2 e5m2 f8E5M2FNUZ"
f8e5m2 = float8_e5m2 = float8_e5m2_t = _float(
    "f8e5m2", "float8_e5m2_t", "f8E5M2", 8, "float8_e5m2", 57344.0, _E5M2_NAMES
)
_E8M0_NAMES = "float8_e8m0 float8_e8m0fnu f8E8M0 f8E8M0FNU e8m0"
f8e8m0 = float8_e8m0 = float8_e8m0_t = _float(
    "f8e8m0", "float8_e8m0_t", "!pto.f8E8M0", 8, "float8_e8m0fnu", 2.0**127, _E8M0_NAMES
)
hif8 = hifloat8 = hifloat8_t = _float(
    "hif8", "hifloat8_t", "!pto.hif8", 8, "uint8", 32768.0, "hifloat8"
)
_E2M1_NAMES = "float4_e2m1x2 float4_e2m1fn f4E2M1 e2m1x2"
f4e2m1x2 = float4_e2m1x2 = float4_e2m1x2_t = _float(
    "f4e2m1x2", "float4_e2m1x2_t", "f4E2M1FN", 4, "uint8", 6.0, _E2M1_NAMES
)
f4e1m2x2 = float4_e1m2x2 = float4_e1m2x2_t = _float(
    "f4e1m2x2", "float4_e1m2x2_t", "f4E1M2FN", 4, "uint8", 1.75, "float4_e1m2x2 f4E1M2 e1m2x2"
)
# The element code of HiF4 without its group scales, which is the e1m2 code.
hif4x2 = hifloat4x2 = hifloat4x2_t = _float(
    "hif4x2", "hifloat4x2_t", "hif4", 4, "uint8", 1.75, "hifloat4x2"
)

ALL: tuple[DType, ...] = (
    *(i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, i4),
    *(f8e4m3, f8e5m2, f8e8m0, hif8, f4e2m1x2, f4e1m2x2, hif4x2),
)

_BY_SPELLING: dict[str, DType] = {
    spelling: each for each in ALL for spelling in (each.name, each.cpp, each.mlir, *each.aliases)
}


# Code types are left out: a NumPy uint8 array means u8 unless somebody says otherwise.
_BY_STORAGE: dict[str, DType] = {
    **{each.storage: each for each in ALL if not each.stores_codes},
    "int4": i4,
    "float4_e2m1fn": f4e2m1x2,
}


def _of_numpy(storage: str) -> numpy.dtype[Any]:
    """The type of this name; ml_dtypes adds some to those of NumPy, and loads when one is asked."""
    return numpy.dtype(getattr(numpy, storage, None) or getattr(ml_dtypes, storage))


@public_raising(ValueError)
def dtype(spec: object) -> DType:
    """Return the element type that ``spec`` names.

    Accepts a DType, any spelling (short, C++, NumPy, MLIR), a NumPy dtype or scalar type, an
    ml_dtypes type, and the Python types ``float`` and ``int`` with their C++ meaning: f32 and i32.
    Raises ValueError for anything else.
    """
    if isinstance(spec, DType):
        return spec
    if isinstance(spec, str):
        found = _BY_SPELLING.get(spec)
        if found is None:
            raise ValueError(f"{spec!r} is not a PTO element type{_suggestion(spec)}")
        return found
    if spec is float:
        return f32
    if spec is int:
        return i32
    if isinstance(spec, numpy.dtype) or (
        isinstance(spec, type) and issubclass(spec, numpy.generic)
    ):
        as_numpy: numpy.dtype[Any] = numpy.dtype(cast("Any", spec))
        known = _BY_STORAGE.get(as_numpy.name)
        if known is not None and as_numpy == _of_numpy(as_numpy.name):  # in the order of its bytes
            return known
        reason = _LOOKALIKES.get(as_numpy.name, "")
        if as_numpy == ml_dtypes.float8_e4m3:
            reason = "; it has infinities, PTO's e4m3 is ml_dtypes.float8_e4m3fn"
        raise ValueError(f"NumPy's {as_numpy} is not a PTO element type{reason}")
    raise ValueError(f"{spec!r} does not name a PTO element type; try one of {_names()}")


_LOOKALIKES = {
    **dict.fromkeys(("float64", "f64", "double"), "; PTO has no 64-bit float, use f32"),
    **dict.fromkeys(("bool", "i1"), "; PTO masks are integer tiles"),
}


def _suggestion(spelling: str) -> str:
    if spelling in _LOOKALIKES:
        return _LOOKALIKES[spelling]
    # Of spellings that differ in case the canonical one, listed first, stays.
    known = {each.lower(): each for each in reversed(_BY_SPELLING)}
    return f"; {meant(spelling, known.values(), shown=repr) or f'try one of {_names()}'}"


def _names() -> str:
    return ", ".join(each.name for each in ALL)
