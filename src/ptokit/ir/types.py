"""Types of values in a program, with their spelling.

A type is a value: frozen, comparable, and `str` gives the canonical text. Reading text is the
business of `typetext`.
"""

from __future__ import annotations

from dataclasses import field
from functools import cache, cached_property

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import BLayout, CompactMode, Layout, SLayout, TileType
from ptokit.base.tensors import ConvSpec
from ptokit.base.tiles import DYNAMIC, TileSpec

LOCATIONS = {
    "vec": TileType.Vec,
    "mat": TileType.Mat,
    "left": TileType.Left,
    "right": TileType.Right,
    "acc": TileType.Acc,
    "bias": TileType.Bias,
    "scaling": TileType.Scaling,
    # The text of other tools has one word for all scale memories; these two are ours.
    "scale_left": TileType.ScaleLeft,
    "scale_right": TileType.ScaleRight,
}
LOCATION_NAMES = {loc: name for name, loc in LOCATIONS.items()}
# Older files name the memory instead of the kind of tile.
MEMORY_NAMES = {
    "ub": "vec",
    "l1": "mat",
    "l0a": "left",
    "l0b": "right",
    "l0c": "acc",
    "bt": "bias",
    "fb": "scaling",
}
BLAYOUTS = {"row_major": BLayout.RowMajor, "col_major": BLayout.ColMajor}
SLAYOUTS = {
    "none_box": SLayout.NoneBox,
    "row_major": SLayout.RowMajor,
    "col_major": SLayout.ColMajor,
}
PADS = {"null": 0, "zero": 1, "max": 2, "min": 3}
COMPACTS = {
    "null": CompactMode.Null,
    "normal": CompactMode.Normal,
    "row_plus_one": CompactMode.RowPlusOne,
}

LAYOUTS = {each.name.lower(): each for each in Layout if each != Layout.MAX}  # of convolution tiles


# 4-bit floats of which files count pairs -> single ones, which are counted here and printed.
SINGLES_OF = {"!pto.f4E2M1x2": "f4E2M1FN", "!pto.f4E1M2x2": "f4E1M2FN"}
REGISTER_PAIRS = {"!pto.hif8x2": "!pto.hif8", "!pto.bf16x2": "bf16"}  # no tile holds these
_PAIR_BITS = dict.fromkeys(SINGLES_OF, 8) | {"!pto.hif8x2": 16, "!pto.bf16x2": 32}


@dataclass(frozen=True)
class ScalarType:
    """`index`, an integer or a float."""

    name: str

    @cached_property
    def dtype(self) -> DType | None:
        """The element type, for scalars a tile can hold."""
        try:
            return dtype(self.name)
        except ValueError:
            return None

    @cached_property
    def bits(self) -> int:
        """Width; `index` counts as 64."""
        if self.name == "index":
            return 64
        found = self.dtype
        if self.name in _PAIR_BITS:
            return _PAIR_BITS[self.name]
        return found.bits if found else int("".join(c for c in self.name if c.isdigit()) or "0")

    @cached_property
    def is_float(self) -> bool:
        return self.name[0] in "fb" or bool(self.dtype and self.dtype.is_float)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class PtrType:
    """`!pto.ptr<f32>`: an address in global memory, or in another space when one is named."""

    element: ScalarType
    space: str = ""

    def __str__(self) -> str:
        return f"!pto.ptr<{self.element}{', ' + self.space if self.space else ''}>"


@dataclass(frozen=True)
class ViewType:
    """A view of global memory: `!pto.tensor_view`, `!pto.partition_tensor_view`, `!pto.memref`."""

    kind: str
    shape: tuple[int, ...]
    element: ScalarType

    def __str__(self) -> str:
        return f"!pto.{self.kind}<{dims_text(self.shape)}{self.element}>"


@dataclass(frozen=True)
class TileBufType:
    """A tile: a buffer handle `!pto.tile_buf`, or at Level 1 the value `!pto.tile`."""

    spec: TileSpec
    is_value: bool = False
    # Written si8, not i8: the same tile to everybody but those who ask how it is written.
    is_signed: bool = field(default=False, compare=False)
    # Its sizes were written in pairs: the program counts them so until it is read (`pairs.py`).
    counts_pairs: bool = field(default=False, compare=False)

    @property
    def elements(self) -> tuple[int, int]:
        """How many elements a row and a column stand for in the text that the tile is from."""
        if not self.counts_pairs:
            return 1, 1
        return (1, 2) if self.spec.is_row_major else (2, 1)

    def __str__(self) -> str:
        return _tile_text(self.spec, self.is_value, "s" * self.is_signed)


@dataclass(frozen=True)
class ConvTileType:
    """A convolution tile: a handle `!pto.conv_tile_buf`, or at Level 1 `!pto.conv_tile`."""

    spec: ConvSpec
    is_value: bool = False

    def __str__(self) -> str:
        spec = self.spec
        return (
            f"!pto.{'conv_tile' if self.is_value else 'conv_tile_buf'}<"
            f"loc={LOCATION_NAMES[spec.loc]}, dtype={spec.dtype.mlir}, size={spec.buffer_size}, "
            f"layout={spec.layout.name.lower()}, shape={dims_text(spec.shape)[:-1]}>"
        )


@dataclass(frozen=True)
class MultiTileType:
    """`!pto.multi_tile_buf`: tiles of one type side by side, of which an index chooses one."""

    spec: TileSpec
    count: int
    elements: tuple[int, int] = field(default=(1, 1), compare=False)  # as those of a tile

    @property
    def stride(self) -> int:
        """Bytes from one tile to the next."""
        step = 512 if self.spec.loc in _WIDE_SLOTS else 32
        return -(-self.spec.nbytes // step) * step

    def __str__(self) -> str:
        return f"!pto.multi_tile_buf<{_tile_text(self.spec, False)}, count={self.count}>"


_WIDE_SLOTS = (TileType.Left, TileType.Right, TileType.Acc)
MOST_SLOTS = 16  # of a multi_tile_buf


@dataclass(frozen=True)
class ShapedType:
    """`memref`, `vector` or `tensor` of MLIR, as far as lowered files use them."""

    kind: str
    shape: tuple[int, ...]
    element: ScalarType
    layout: str = ""
    space: str = ""  # the value of #pto.address_space, empty when absent

    def __str__(self) -> str:
        parts = [f"{dims_text(self.shape)}{self.element}"]
        if self.layout:
            parts.append(self.layout)
        if self.space:
            parts.append(f"#pto.address_space<{self.space}>")
        return f"{self.kind}<{', '.join(parts)}>"


@dataclass(frozen=True)
class LocalArrayType:
    """`!pto.local_array`: numbers on the stack of the scalar unit."""

    shape: tuple[int, ...]
    element: ScalarType

    def __str__(self) -> str:
        return f"!pto.local_array<{dims_text(self.shape)}{self.element}>"


@dataclass(frozen=True)
class StructType:
    """`!pto.struct`: numbers and structs on the stack of the scalar unit."""

    fields: tuple[Type, ...]

    def __str__(self) -> str:
        return f"!pto.struct<{', '.join(map(str, self.fields))}>"


@dataclass(frozen=True)
class RegisterType:
    """`!pto.vreg<64xf32>`: a vector register of 256 bytes, as lanes of a type."""

    lanes: int
    element: ScalarType

    @property
    def lane_bytes(self) -> int:
        return self.element.bits // 8

    def __str__(self) -> str:
        return f"!pto.vreg<{self.lanes}x{self.element}>"


@dataclass(frozen=True)
class MaskType:
    """`!pto.mask<b32>`: a mask of a vector register, for lanes of so many bits."""

    bits: int

    @property
    def lane_bytes(self) -> int:
        return self.bits // 8

    def __str__(self) -> str:
        return f"!pto.mask<b{self.bits}>"


@dataclass(frozen=True)
class LogicalType:
    """`!pto.vmi.vreg<256xf32>`: a vector of any number of lanes, over several registers.

    A layout says how a compiler has spread it over them; what it holds does not depend on that.
    """

    lanes: int
    element: ScalarType
    layout: str = ""

    def __str__(self) -> str:
        return f"!pto.vmi.vreg<{self.lanes}x{self.element}{self.layout and f', {self.layout}'}>"


@dataclass(frozen=True)
class LogicalMaskType:
    """`!pto.vmi.mask<256xpred>`: a mask with a bit for each lane of a logical vector."""

    lanes: int
    width: str = "pred"  # or that of the lanes it is for, where a compiler has settled it: b32
    layout: str = ""

    def __str__(self) -> str:
        return f"!pto.vmi.mask<{self.lanes}x{self.width}{self.layout and f', {self.layout}'}>"


@dataclass(frozen=True)
class OpaqueType:
    """A type without structure of its own: pipes, events, sessions."""

    name: str  # without !pto.
    parameter: str = ""

    def __str__(self) -> str:
        return f"!pto.{self.name}<{self.parameter}>" if self.parameter else f"!pto.{self.name}"


@dataclass(frozen=True)
class FunctionType:
    """`(T, T) -> T`."""

    inputs: tuple[Type, ...]
    results: tuple[Type, ...]

    def __str__(self) -> str:
        results = ", ".join(map(str, self.results))
        if len(self.results) != 1 or isinstance(self.results[0], FunctionType):
            results = f"({results})"
        return f"({', '.join(map(str, self.inputs))}) -> {results}"


@dataclass(frozen=True)
class ElidedType:
    """`!pto.tile<...>`, `dtype`: left out, as the instruction pages do; the value tells."""

    spelling: str

    def __str__(self) -> str:
        return self.spelling


Type = (
    ScalarType
    | PtrType
    | ViewType
    | TileBufType
    | ConvTileType
    | MultiTileType
    | ShapedType
    | LocalArrayType
    | StructType
    | RegisterType
    | MaskType
    | LogicalType
    | LogicalMaskType
    | OpaqueType
    | FunctionType
    | ElidedType
)

BufferType = TileBufType | ConvTileType  # what instructions take of on-chip memory
PlacedType = BufferType | MultiTileType  # what occupies it

INDEX = ScalarType("index")
I1 = ScalarType("i1")
I32 = ScalarType("i32")
I64 = ScalarType("i64")
F32 = ScalarType("f32")
F64 = ScalarType("f64")


def bytes_of(type_: PlacedType) -> int:
    """The bytes that something occupies in its memory."""
    if isinstance(type_, MultiTileType):
        return type_.count * type_.stride
    return type_.spec.nbytes


def dims_text(shape: tuple[int, ...]) -> str:
    """`16x?x` for (16, DYNAMIC)."""
    return "".join("?x" if n == DYNAMIC else f"{n}x" for n in shape)


@cache
def _tile_text(spec: TileSpec, is_value: bool, sign: str = "") -> str:
    element = sign + spec.dtype.mlir
    plain = TileSpec.of(TileType.Vec, spec.dtype, spec.rows, spec.cols)
    if is_value and spec is plain:
        return f"!pto.tile<{spec.rows}x{spec.cols}x{element}>"
    valid_row, valid_col = ("?" if n == DYNAMIC else n for n in (spec.valid_row, spec.valid_col))
    compact = f", compact={int(spec.compact)}" if spec.compact else ""
    blayout, slayout = _name(BLAYOUTS, spec.blayout), _name(SLAYOUTS, spec.slayout)
    if is_value and not compact and (spec.valid_row, spec.valid_col) == (spec.rows, spec.cols):
        pad = next((word for word, value in PADS.items() if value == spec.pad), int(spec.pad))
        return (
            f"!pto.tile<{LOCATION_NAMES[spec.loc]}, {element}, {spec.rows}, {spec.cols}, "
            f"{blayout}, {slayout}, {spec.fractal}, {pad}>"
        )
    return (
        f"!pto.{'tile' if is_value else 'tile_buf'}<loc={LOCATION_NAMES[spec.loc]}, "
        f"dtype={element}, rows={spec.rows}, cols={spec.cols}, v_row={valid_row}, "
        f"v_col={valid_col}, blayout={blayout}, slayout={slayout}, fractal={spec.fractal}, "
        f"pad={int(spec.pad)}{compact}>"
    )


def _name(table: dict[str, BLayout] | dict[str, SLayout], value: int) -> str:
    return next(name for name, member in table.items() if member == value)


def same_type(a: Type, b: Type) -> bool:
    """Whether two spellings mean one type.

    The outer order of a left tile belongs to the target, so it does not count; an elided type is
    whatever the other one is.
    """
    if a == b or isinstance(a, ElidedType) or isinstance(b, ElidedType):
        return True
    if not (isinstance(a, TileBufType) and isinstance(b, TileBufType)):
        return False
    return a.is_value == b.is_value and on_target(a.spec, "ZZ") is on_target(b.spec, "ZZ")


def on_target(spec: TileSpec, left_layout: str) -> TileSpec:
    """The tile as the target sees it: left tiles take the target's outer order."""
    if spec.loc != TileType.Left or spec.slayout != SLayout.RowMajor:
        return spec
    wanted = BLayout.RowMajor if left_layout == "ZZ" else BLayout.ColMajor
    if spec.blayout == wanted:
        return spec
    fields = (spec.valid_row, spec.valid_col, spec.slayout, spec.fractal, spec.pad, spec.compact)
    return TileSpec.of(spec.loc, spec.dtype, spec.rows, spec.cols, wanted, *fields)


def is_column(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether a view is one column of adjacent elements: row- and column-major are the same."""
    return len(shape) > 1 and shape[-1] == 1 and stride[-2] == 1


def is_column_tile(type_: object) -> bool:
    """Whether a type is that of a column-major vector tile, which loads from such a column."""
    if not isinstance(type_, TileBufType) or type_.spec.loc != TileType.Vec:
        return False
    return type_.spec.blayout == BLayout.ColMajor and type_.spec.slayout == SLayout.NoneBox
