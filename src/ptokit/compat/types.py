"""The types and attributes that the bindings offer, over ours.

A type is wrapped, because programs ask it for `element_type` or `shape`; an attribute is ours as it
stands, and the classes of the bindings only make it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from ptokit.base.tiles import DYNAMIC
from ptokit.ir import attributes as ours
from ptokit.ir import types as kinds
from ptokit.ir.attributes import ENUMERATIONS, Enumeration
from ptokit.ir.lexer import Source
from ptokit.ir.parser import Parser
from ptokit.ir.typetext import is_scalar, parse_type


class Context:
    """The bindings keep types in a context; ours need none. It is taken wherever one is given."""

    current: ClassVar[Context]
    allow_unregistered_dialects = False

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        pass


Context.current = Context()


# ---- types ---------------------------------------------------------------------------------------


class Type:
    """A type; `ours` is the one of the program."""

    def __init__(self, of: Type | kinds.Type) -> None:
        if isinstance(of, Type) and not isinstance(wrapped(of.ours), type(self)):
            raise ValueError(f"{of} is no {type(self).__name__}")  # libraries ask so what it is
        self.ours: kinds.Type = of.ours if isinstance(of, Type) else of

    @classmethod
    def parse(cls, text: str, context: Context | None = None) -> Type:
        return wrapped(parse_type(text))

    @classmethod
    def isinstance(cls, other: Type) -> bool:
        return isinstance(other, cls)

    @property
    def context(self) -> Context:
        return Context.current

    @property
    def element_type(self) -> Type:
        found = self.ours
        if isinstance(found, kinds.TileBufType):
            return wrapped(kinds.ScalarType(found.spec.dtype.mlir))
        element = getattr(found, "element", None)
        if not isinstance(element, kinds.ScalarType):
            raise AttributeError(f"{self} has no elements")
        return wrapped(element)

    @property
    def shape(self) -> list[int]:
        found = self.ours
        if isinstance(found, kinds.TileBufType):
            return [found.spec.rows, found.spec.cols]
        shape = getattr(found, "shape", None)
        if shape is None:
            raise AttributeError(f"{self} has no shape")
        return list(shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def valid_shape(self) -> list[int]:
        found = self.ours
        if not isinstance(found, kinds.TileBufType):
            raise AttributeError(f"{self} is no tile")
        return [found.spec.valid_row, found.spec.valid_col]

    @property
    def width(self) -> int:
        if not isinstance(self.ours, kinds.ScalarType):
            raise AttributeError(f"{self} has no width")
        return self.ours.bits

    def __str__(self) -> str:
        return str(self.ours)

    def __repr__(self) -> str:
        return f"Type({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.ours == other.ours

    def __hash__(self) -> int:
        return hash(self.ours)


class IntegerType(Type):
    """`i32`, `si8`, `ui16`."""

    @classmethod
    def get_signless(cls, width: int, context: Context | None = None) -> Type:
        return wrapped(parse_type(f"i{width}"))

    @classmethod
    def get_signed(cls, width: int, context: Context | None = None) -> Type:
        return wrapped(parse_type(f"si{width}"))

    @classmethod
    def get_unsigned(cls, width: int, context: Context | None = None) -> Type:
        return wrapped(parse_type(f"ui{width}"))


class FloatType(Type):
    """Any float."""


class _Named(Type):
    """A type without parameters."""

    spelling: ClassVar[str]

    @classmethod
    def get(cls, context: Context | None = None) -> Type:
        return wrapped(parse_type(cls.spelling))


class IndexType(_Named):
    """`index`."""

    spelling = "index"


def named(name: str, spelling: str, *bases: type[Type]) -> type[Type]:
    """The class of a type without parameters."""
    return cast("type[Type]", type(name, (_Named, *bases), {"spelling": spelling}))


# The classes of floats, which MLIR names; all others of ours are of the dialect `pto`.
FLOATS: dict[str, type[Type]] = {
    name: named(name, spelling, FloatType)
    for name, spelling in {
        "F16Type": "f16",
        "F32Type": "f32",
        "F64Type": "f64",
        "BF16Type": "bf16",
        "Float8E4M3FNType": "f8E4M3FN",
        "Float8E5M2Type": "f8E5M2",
        "Float8E8M0FNUType": "f8E8M0FNU",
    }.items()
}


class PtrType(Type):
    """`!pto.ptr<f32>`."""

    @classmethod
    def get(cls, element: Type, memory_space: object = None, context: object = None) -> Type:
        space = ""
        if isinstance(memory_space, ours.EnumAttr) and memory_space.value != "gm":
            memories = {kind: memory for memory, kind in kinds.MEMORY_NAMES.items()}
            space = memories[memory_space.value]
        return wrapped(kinds.PtrType(_scalar(element), space))


class _WithShape(type):
    """Classes of types: `isinstance` asks for a shape."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Type) and getattr(instance, "shape", None) is not None


class ShapedType(metaclass=_WithShape):
    """Any type with a shape, and the number that stands in it for a size that is not known."""

    @staticmethod
    def get_dynamic_size() -> int:
        return DYNAMIC

    @staticmethod
    def get_dynamic_stride_or_offset() -> int:
        return DYNAMIC


class _View(Type):
    kind: ClassVar[str]

    @classmethod
    def get(cls, shape: int | Sequence[int], element: Type, context: object = None) -> Type:
        """A view of this shape, or of so many dimensions of any size."""
        extents = [DYNAMIC] * shape if isinstance(shape, int) else shape
        return wrapped(kinds.ViewType(cls.kind, tuple(map(_extent, extents)), _scalar(element)))


class TensorViewType(_View):
    """`!pto.tensor_view<?x?xf32>`."""

    kind = "tensor_view"


class PartitionTensorViewType(_View):
    """`!pto.partition_tensor_view<16x64xf32>`."""

    kind = "partition_tensor_view"


class _Shaped(Type):
    kind: ClassVar[str]

    @classmethod
    def get(
        cls,
        shape: Sequence[int],
        element: Type,
        layout: object = None,
        memory_space: object = None,
        loc: object = None,
    ) -> Type:
        space = memory_space.value if isinstance(memory_space, ours.EnumAttr) else ""
        text = "" if layout is None else str(layout)
        extents = tuple(map(_extent, shape))
        return wrapped(kinds.ShapedType(cls.kind, extents, _scalar(element), text, space))


class MemRefType(_Shaped):
    """`memref<16xf32>`."""

    kind = "memref"


class VectorType(_Shaped):
    """`vector<4xi16>`, of attributes."""

    kind = "vector"


class FunctionType(Type):
    """`(T, T) -> T`."""

    @classmethod
    def get(
        cls, inputs: Sequence[Type], results: Sequence[Type] = (), context: object = None
    ) -> FunctionType:
        found = tuple(t.ours for t in inputs), tuple(t.ours for t in results)
        return FunctionType(kinds.FunctionType(*found))

    @property
    def inputs(self) -> list[Type]:
        assert isinstance(self.ours, kinds.FunctionType)
        return [wrapped(t) for t in self.ours.inputs]

    @property
    def results(self) -> list[Type]:
        assert isinstance(self.ours, kinds.FunctionType)
        return [wrapped(t) for t in self.ours.results]


class TileConfig:
    """Sizes of the layouts that tiles have, in bytes and elements."""

    alignedSize = 32
    fixedRowSize = 16
    fixedColSize = 16
    fixedMxRowSize = 16
    fixedMxColSize = 2
    fractalABSize = 512
    fractalCSize = 1024
    fractalMxSize = 32


class TileBufConfigAttr:
    """How a tile lies in memory: the part of its type that is written `blayout=..., pad=...`."""

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def get(
        cls,
        blayout: object,
        slayout: object,
        fractal: object,
        pad: object,
        *more: object,
        **named: object,
    ) -> TileBufConfigAttr:
        found = {"blayout": blayout, "slayout": slayout, "fractal": fractal, "pad": pad}
        compact = [x for x in (*more, *named.values()) if _is_member(x, "compact_mode")]
        found |= dict(zip(["compact"], compact, strict=False))
        return cls("".join(f", {key}={_word(key, value)}" for key, value in found.items()))

    @classmethod
    def get_default(cls, context: object = None) -> TileBufConfigAttr:
        return cls("")


class TileBufType(Type):
    """`!pto.tile_buf<...>`."""

    @classmethod
    def get(
        cls,
        shape: Sequence[int],
        element: Type,
        memory_space: ours.EnumAttr,
        valid_shape: Sequence[int] | None = None,
        config: object = None,
        context: object = None,
    ) -> Type:
        valid = shape if valid_shape is None else valid_shape
        layout = config.text if isinstance(config, TileBufConfigAttr) else ""
        rows, cols = ("?" if n < 0 else str(n) for n in valid)
        return wrapped(
            parse_type(
                f"!pto.tile_buf<loc={memory_space.value}, dtype={element}, rows={shape[0]}, "
                f"cols={shape[1]}, v_row={rows}, v_col={cols}{layout}>"
            )
        )


class _Registers(Type):
    """Vectors of a number of lanes."""

    spelling: ClassVar[str]

    @classmethod
    def _of(cls, lanes: int, what: object, layout: object) -> Type:
        behind = "" if layout is None else f", {layout}"
        return wrapped(parse_type(f"!pto.{cls.spelling}<{lanes}x{what}{behind}>"))

    @property
    def element_count(self) -> int:
        return _parameter(self, "lanes")


class _Masks(Type):
    @property
    def granularity(self) -> str:
        """The lanes that it is for: `b32`, or `pred` where that is not settled."""
        return f"b{bits}" if (bits := getattr(self.ours, "bits", 0)) else _parameter(self, "width")


class VRegType(_Registers):
    """`!pto.vreg<64xf32>`."""

    spelling = "vreg"

    @classmethod
    def get(cls, element_count: int, element_type: Type, context: object = None) -> Type:
        return cls._of(element_count, element_type, None)


class VMIVRegType(_Registers):
    """`!pto.vmi.vreg<256xf32>`."""

    spelling = "vmi.vreg"

    @classmethod
    def get(
        cls, element_count: int, element_type: Type, layout: object = None, context: object = None
    ) -> Type:
        return cls._of(element_count, element_type, layout)


class VMIMaskType(_Registers, _Masks):
    """`!pto.vmi.mask<256xpred>`."""

    spelling = "vmi.mask"

    @classmethod
    def get(
        cls,
        element_count: int,
        granularity: str = "pred",
        layout: object = None,
        context: object = None,
    ) -> Type:
        return cls._of(element_count, granularity, layout)


class MaskType(_Masks):
    """`!pto.mask<b32>`."""

    @classmethod
    def get(cls, granularity: str = "", context: object = None) -> Type:
        if not granularity:
            raise TypeError(
                'a mask says for which lanes it is: MaskType.get("b32"); without that it is of '
                "bindings before June 2026, whose micro-operations are others"
            )
        return wrapped(parse_type(f"!pto.mask<{granularity}>"))


class StructType(Type):
    """`!pto.struct<i32, f32>`."""

    @classmethod
    def get(cls, field_types: Sequence[Type], context: object = None) -> Type:
        return wrapped(parse_type(f"!pto.struct<{', '.join(map(str, field_types))}>"))


def _parameter(type_: Type, name: str) -> Any:
    return getattr(type_.ours, name)


def _word(key: str, value: object) -> object:
    """What the text has for a property of a tile: the last two are numbers there."""
    if not isinstance(value, ours.EnumAttr):
        return getattr(value, "value", value)
    return value.number if key in ("pad", "compact") else value.value


def _is_member(value: object, enum: str) -> bool:
    return isinstance(value, ours.EnumAttr) and value.enum == enum


def _scalar(element: Type) -> kinds.ScalarType:
    if not isinstance(element.ours, kinds.ScalarType):
        raise TypeError(f"elements are numbers, not {element}")
    return element.ours


def _extent(size: int) -> int:
    """A size, of which the bindings write any negative number where it is not known."""
    return DYNAMIC if size < 0 else size


_CLASSES: list[tuple[type[Type], type]] = [
    (PtrType, kinds.PtrType),
    (TileBufType, kinds.TileBufType),
    (FunctionType, kinds.FunctionType),
    (VRegType, kinds.RegisterType),
    (MaskType, kinds.MaskType),
    (VMIVRegType, kinds.LogicalType),
    (VMIMaskType, kinds.LogicalMaskType),
    (StructType, kinds.StructType),
]


def wrapped(type_: kinds.Type) -> Type:
    """A type of ours as the class that the bindings have for it."""
    if isinstance(type_, kinds.ScalarType):
        of = next((c for c in FLOATS.values() if getattr(c, "spelling", "") == type_.name), None)
        integer = IndexType if type_.name == "index" else IntegerType
        return (of or (FloatType if type_.is_float else integer))(type_)
    if isinstance(type_, kinds.ViewType):
        is_whole = type_.kind == TensorViewType.kind
        return (TensorViewType if is_whole else PartitionTensorViewType)(type_)
    if isinstance(type_, kinds.ShapedType):
        return (MemRefType if type_.kind == MemRefType.kind else VectorType)(type_)
    return next((cls for cls, kind in _CLASSES if isinstance(type_, kind)), Type)(type_)


# ---- attributes ----------------------------------------------------------------------------------


class _Kind(type):
    """Classes that make attributes: `isinstance` asks for what they make."""

    makes: type

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.makes)


class Attribute(metaclass=_Kind):
    """Any attribute."""

    makes = object

    @staticmethod
    def parse(text: str, context: object = None) -> ours.Attribute:
        return Parser(Source(text, "<attribute>")).attribute()


class IntegerAttr(metaclass=_Kind):
    makes = ours.IntAttr

    @staticmethod
    def get(type_: Type, value: int) -> ours.Attribute:
        return ours.IntAttr(int(value), type_.ours)


class FloatAttr(metaclass=_Kind):
    makes = ours.FloatAttr

    @staticmethod
    def get(type_: Type, value: float, loc: object = None) -> ours.Attribute:
        return ours.FloatAttr(float(value), type_.ours)


class BoolAttr(metaclass=_Kind):
    makes = ours.BoolAttr

    @staticmethod
    def get(value: bool, context: object = None) -> ours.Attribute:
        return ours.BoolAttr(bool(value))


class StringAttr(metaclass=_Kind):
    makes = ours.StringAttr

    @staticmethod
    def get(value: str, context: object = None) -> ours.Attribute:
        return ours.StringAttr(value)


class UnitAttr(metaclass=_Kind):
    makes = ours.UnitAttr

    @staticmethod
    def get(context: object = None) -> ours.Attribute:
        return ours.UnitAttr()


class TypeAttr(metaclass=_Kind):
    makes = ours.TypeAttr

    @staticmethod
    def get(type_: Type, context: object = None) -> ours.Attribute:
        return ours.TypeAttr(type_.ours)


class FlatSymbolRefAttr(metaclass=_Kind):
    makes = ours.SymbolAttr

    @staticmethod
    def get(name: str, context: object = None) -> ours.Attribute:
        return ours.SymbolAttr(name)


class ArrayAttr(metaclass=_Kind):
    makes = ours.ArrayAttr

    @staticmethod
    def get(items: Sequence[object], context: object = None) -> ours.Attribute:
        return ours.ArrayAttr(tuple(map(attribute, items)))


class DenseI32ArrayAttr(metaclass=_Kind):
    makes = ours.ArrayAttr

    @staticmethod
    def get(items: Sequence[int], context: object = None) -> ours.Attribute:
        return _numbers(items, kinds.I32)


class DenseI64ArrayAttr(metaclass=_Kind):
    makes = ours.ArrayAttr

    @staticmethod
    def get(items: Sequence[int], context: object = None) -> ours.Attribute:
        return _numbers(items, kinds.I64)


class StridedLayoutAttr:
    """How the elements of a `memref` lie: `strided<[?, 1], offset: ?>`."""

    def __init__(self, offset: int, strides: Sequence[int]) -> None:
        self.offset, self.strides = offset, list(strides)

    @classmethod
    def get(cls, offset: int, strides: Sequence[int], context: object = None) -> StridedLayoutAttr:
        return cls(offset, strides)

    @classmethod
    def get_fully_dynamic(cls, rank: int, context: object = None) -> StridedLayoutAttr:
        unknown = ShapedType.get_dynamic_stride_or_offset()
        return cls(unknown, [unknown] * rank)

    def __str__(self) -> str:
        strides = ", ".join("?" if n < 0 else str(n) for n in self.strides)
        behind = f", offset: {'?' if self.offset < 0 else self.offset}" if self.offset else ""
        return f"strided<[{strides}]{behind}>"


def _numbers(items: Sequence[int], of: kinds.ScalarType) -> ours.ArrayAttr:
    return ours.ArrayAttr(tuple(ours.IntAttr(n, of) for n in items), of)


def attribute(value: Any, declared: str = "") -> ours.Attribute:
    """The attribute that a value of Python stands for; `declared` is what its place asks for."""
    enum = ENUMERATIONS.get(declared)
    if enum is not None and isinstance(value, str | int) and not isinstance(value, bool):
        return member(enum, value)
    if isinstance(value, bool):
        return ours.BoolAttr(value)
    if isinstance(value, int):
        return ours.IntAttr(value, parse_type(declared) if is_scalar(declared) else kinds.I64)
    if isinstance(value, float):
        return ours.FloatAttr(value, kinds.F32)
    if isinstance(value, str):
        return ours.StringAttr(value)
    if isinstance(value, Type):
        return ours.TypeAttr(value.ours)
    if isinstance(value, list | tuple):
        return ours.ArrayAttr(tuple(map(attribute, cast("Sequence[object]", value))))
    if isinstance(value, ours.EnumAttr) and enum is not None:
        return member(enum, value.value)
    if isinstance(value, ours.Attribute):
        return value
    raise TypeError(f"{type(value).__name__} is no attribute")


def member(enum: Enumeration, given: str | int) -> ours.EnumAttr:
    """The member of an enumeration that a name or a number stands for."""
    names = {number: name for name, number in enum.members.items()}
    found = enum.spelling(given) if isinstance(given, str) else names.get(given)
    if found is None:
        raise AttributeError(f"{enum.name} has no {given!r}; it has {', '.join(enum.members)}")
    return ours.EnumAttr(enum.name, found)


class Members:
    """An enumeration, `pto.RoundMode.ROUND`, and the class of its attributes at the same time."""

    def __init__(self, of: Enumeration) -> None:
        self._of = of

    def __getattr__(self, name: str) -> ours.EnumAttr:
        if name.startswith("__"):
            raise AttributeError(name)
        return member(self._of, name)

    def __instancecheck__(self, instance: object) -> bool:
        return _is_member(instance, self._of.name)

    def get(self, *args: object) -> ours.EnumAttr:
        """A member as an attribute, which it is already; the context stands before or behind it."""
        (given,) = (each for each in args if isinstance(each, ours.EnumAttr | str | int))
        return given if isinstance(given, ours.EnumAttr) else member(self._of, given)
