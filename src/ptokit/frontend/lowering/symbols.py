"""Symbols: numbers, tiles and views that are known only when the kernel runs.

A symbol behaves like the Python value it stands for; using it writes operations. Sums of a symbol
and known numbers remember both, so the size of `g[i * 16 : i * 16 + 16, :]` is known to be 16.

Run-time numbers are of four types. Integers are `index` (64 bits), truth values `i1`. A float that
comes from memory or from the caller is an f32, and stays one, as a NumPy float32 does; one that
Python computes of integers and literals is an f64. So both paths round alike.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.enums import Layout
from ptokit.base.location import Location
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.frontend.advice import NotANumber
from ptokit.frontend.instruction import Instruction
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.heap import Symbol
from ptokit.frontend.trees import Opened
from ptokit.ir.attributes import Attribute, EnumAttr, IntAttr, enumeration_of
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.dialects.arith import CMPF, CMPI, predicates
from ptokit.ir.types import F32, F64, I1, I64, INDEX, ScalarType, Type
from ptokit.isa import INSTRUCTIONS
from ptokit.machine.gm import backwards

_INT_OPS = {
    "+": "addi",
    "-": "subi",
    "*": "muli",
    "&": "andi",
    "|": "ori",
    "^": "xori",
    "<<": "shli",
    ">>": "shrsi",
}
_FLOAT_OPS = {"+": "addf", "-": "subf", "*": "mulf", "/": "divf"}
UNNAMED = (
    "tile",
    "part",
    "slot",
    "chosen",
    "pipe",
    "v",
)  # what takes the name of the variable it is assigned to
_ORDER = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class Number(Symbol):
    """A run-time scalar: an index, an i1 or a float."""

    operand_kind = "scalar"

    def __init__(
        self,
        emitter: Emitter,
        value: Value,
        *,
        nonnegative: bool = False,
        base: Value | None = None,
        delta: int = 0,
    ) -> None:
        self.emitter = emitter
        self.value = value
        self.nonnegative = nonnegative
        self.base = base or value  # value == base + delta
        self.delta = delta

    @property
    def type(self) -> ScalarType:
        assert isinstance(self.value.type, ScalarType)
        return self.value.type

    @property
    def is_float(self) -> bool:
        return self.type.is_float

    def __bool__(self) -> bool:
        raise self.emitter.fail(
            "run-time-value",
            "this value is known only at run time, so Python cannot branch on it here",
            "use it in `if`, `while`, `for ... in range(...)` or as an operand",
        )

    def __index__(self) -> int:
        raise NeedsConstant(
            self.emitter.fail(
                "needs-constant",
                "this place needs a value known at compile time, but it is known only at run time",
                "pass it as a keyword-only (const) parameter, or loop with static_range",
            )
        )

    __int__ = __index__

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int) and self.type == INDEX:
            if other == 0:
                return self
            total = self.delta + other
            if total == 0:
                return Number(self.emitter, self.base, nonnegative=self.nonnegative)
            value = _arith(self.emitter, "+", self, other).value
            return Number(
                self.emitter,
                value,
                nonnegative=self.nonnegative and other >= 0,
                base=self.base,
                delta=total,
            )
        return _arith(self.emitter, "+", self, other)

    def __radd__(self, other: Any) -> Any:
        return self + other if isinstance(other, int) else _arith(self.emitter, "+", other, self)

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, int) and self.type == INDEX:
            return self + -other
        if isinstance(other, Number) and other.base is self.base and self.type == INDEX:
            return self.delta - other.delta
        return _arith(self.emitter, "-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _arith(self.emitter, "-", other, self)

    def __mul__(self, other: Any) -> Any:
        return _arith(self.emitter, "*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _arith(self.emitter, "*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _arith(self.emitter, "/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _arith(self.emitter, "/", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _floor_divide(self.emitter, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _floor_divide(self.emitter, other, self)

    def __mod__(self, other: Any) -> Any:
        return _modulo(self.emitter, self, other)

    def __rmod__(self, other: Any) -> Any:
        return _modulo(self.emitter, other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return _power(self.emitter, self, other, modulus)

    def __rpow__(self, other: Any) -> Any:
        return _power(self.emitter, other, self, None)

    def __and__(self, other: Any) -> Any:
        return _arith(self.emitter, "&", self, other)

    def __or__(self, other: Any) -> Any:
        return _arith(self.emitter, "|", self, other)

    def __xor__(self, other: Any) -> Any:
        return _arith(self.emitter, "^", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lshift__(self, other: Any) -> Any:
        return _arith(self.emitter, "<<", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _arith(self.emitter, "<<", other, self)

    def __rshift__(self, other: Any) -> Any:
        return _arith(self.emitter, ">>", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return _arith(self.emitter, ">>", other, self)

    def __neg__(self) -> Any:
        if self.is_float:
            op = self.emitter.emit("arith.negf", [("operand", self.value)], [("result", self.type)])
            return Number(self.emitter, op.result)
        return 0 - self

    def __pos__(self) -> Any:
        return self

    def __invert__(self) -> Any:
        return -1 - self

    def __abs__(self) -> Any:
        return select(self.emitter, self < 0, -self, self)

    def __lt__(self, other: Any) -> Any:
        return compare(self.emitter, "<", self, other)

    def __le__(self, other: Any) -> Any:
        return compare(self.emitter, "<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return compare(self.emitter, ">", self, other)

    def __ge__(self, other: Any) -> Any:
        return compare(self.emitter, ">=", self, other)

    def __eq__(self, other: object) -> Any:  # type: ignore[override]
        return compare(self.emitter, "==", self, other)

    def __ne__(self, other: object) -> Any:  # type: ignore[override]
        return compare(self.emitter, "!=", self, other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<run-time {self.type}>"


class NeedsConstant(Exception):  # noqa: N818 - a request, answered by unrolling the loop
    """A loop variable was used where only a compile-time value will do."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True)
class Gone:
    """A name without a value that can be told: one assigned only inside a loop or branch, say."""

    name: str
    location: Location
    what: str
    why: str = ""


# ---- arithmetic --------------------------------------------------------------------------------


def as_value(emitter: Emitter, given: Any, type_: Type | None = None) -> Value:
    """The IR value of a number, converted to a type where one is wanted."""
    if isinstance(given, Number):
        return given.value if type_ is None else cast(emitter, given, type_).value
    if isinstance(given, bool):
        return emitter.constant(given, type_ or I1)
    if isinstance(given, int):
        return emitter.constant(given, type_ or INDEX)
    if isinstance(given, float):
        return emitter.constant(given, type_ or F64)
    raise emitter.fail("not-a-number", f"a number is needed here, not {type(given).__name__}")


def cast(emitter: Emitter, number: Number, type_: Type) -> Number:
    """Convert between index, integer and float."""
    have = number.type
    if have == type_:
        return number
    assert isinstance(type_, ScalarType)
    value = number.value
    if type_ == I1:
        return truth(emitter, number)
    if have == I1:
        value, have = _one(emitter, "arith.extui", value, I64), I64
    if have == type_:
        return Number(emitter, value, nonnegative=True)
    if not have.is_float and type_.is_float:
        if have == INDEX:
            value = _one(emitter, "arith.index_cast", value, I64)
        value = _one(emitter, "arith.sitofp", value, type_)
    elif have.is_float and not type_.is_float:
        value = _one(emitter, "arith.fptosi", value, I64 if type_ == INDEX else type_)
        if type_ == INDEX:
            value = _one(emitter, "arith.index_cast", value, INDEX)
    elif have.is_float:
        name = "arith.extf" if type_.bits > have.bits else "arith.truncf"
        value = _one(emitter, name, value, type_)
    elif INDEX in (have, type_):
        value = _one(emitter, "arith.index_cast", value, type_)
    else:
        name = "arith.extsi" if type_.bits > have.bits else "arith.trunci"
        value = _one(emitter, name, value, type_)
    return Number(emitter, value, nonnegative=number.nonnegative)


def _one(emitter: Emitter, name: str, value: Value, type_: Type) -> Value:
    return emitter.emit(name, [("in", value)], [("out", type_)]).result


def _is_float(given: Any) -> bool:
    return given.is_float if isinstance(given, Number) else isinstance(given, float)


def _is_truth(given: Any) -> bool:
    return given.type == I1 if isinstance(given, Number) else isinstance(given, bool)


def _float_type(*given: Any) -> Type:
    """The type in which floats meet: an f32 draws the others to itself."""
    return F32 if any(isinstance(g, Number) and g.type == F32 for g in given) else F64


def _common(emitter: Emitter, left: Any, right: Any, type_: Type) -> tuple[Value, Value]:
    return as_value(emitter, left, type_), as_value(emitter, right, type_)


def truth(emitter: Emitter, given: Any) -> Any:
    """What Python takes a value for where it asks for a truth value."""
    if not isinstance(given, Number):
        return bool(given)
    return given if given.type == I1 else compare(emitter, "!=", given, 0)


def inverted(emitter: Emitter, condition: Number) -> Number:
    """`not condition`, of a truth value."""
    return _arith(emitter, "^", condition, True)


def _nonnegative(given: Any) -> bool:
    return given.nonnegative if isinstance(given, Number) else given >= 0


def _arith(emitter: Emitter, symbol: str, left: Any, right: Any) -> Any:
    if isinstance(left, Opened) or isinstance(right, Opened):
        return NotImplemented  # of values, which know what to do with a number
    floats = symbol == "/" or _is_float(left) or _is_float(right)
    names = _FLOAT_OPS if floats else _INT_OPS
    if symbol not in names:
        raise emitter.fail("operator", f"{symbol!r} is not defined for floats in a kernel")
    is_logic = symbol in "&|^" and _is_truth(left) and _is_truth(right)
    type_ = _float_type(left, right) if floats else I1 if is_logic else INDEX
    a, b = _common(emitter, left, right, type_)
    op = emitter.emit(f"arith.{names[symbol]}", [("lhs", a), ("rhs", b)], [("result", type_)])
    keeps = symbol in "+*>><<&" and _nonnegative(left) and _nonnegative(right)
    return Number(emitter, op.result, nonnegative=keeps and not floats)


def _whole(emitter: Emitter, symbol: str, left: Any, right: Any, name: str) -> Number:
    """An operation of whole numbers."""
    if _is_float(left) or _is_float(right):
        advice = "use '/'" if symbol == "//" else "int(x) makes a whole number"
        raise emitter.fail("operator", f"{symbol!r} is not defined for floats in a kernel", advice)
    if isinstance(right, int) and right == 0:
        raise emitter.fail("operator", f"{symbol!r} by zero")
    a, b = _common(emitter, left, right, INDEX)
    op = emitter.emit(f"arith.{name}", [("lhs", a), ("rhs", b)], [("result", INDEX)])
    return Number(emitter, op.result, nonnegative=_nonnegative(left) and _nonnegative(right))


def _floor_divide(emitter: Emitter, left: Any, right: Any) -> Number:
    plain = _nonnegative(left) and _nonnegative(right)
    return _whole(emitter, "//", left, right, "divsi" if plain else "floordivsi")


def _modulo(emitter: Emitter, left: Any, right: Any) -> Any:
    if isinstance(right, Opened):
        return NotImplemented
    if _is_float(left) or _is_float(right) or (_nonnegative(left) and _nonnegative(right)):
        return _whole(emitter, "%", left, right, "remsi")
    rest = left - _floor_divide(emitter, left, right) * right  # Python rounds down, hardware to 0
    is_positive = not isinstance(right, Number) and right > 0
    return Number(emitter, rest.value, nonnegative=True) if is_positive else rest


def _power(emitter: Emitter, left: Any, right: Any, modulus: Any) -> Any:
    """A power with a known whole exponent, as products; of two, with a run-time one, as a shift."""
    if isinstance(left, int) and left == 2 and _nonnegative(right) and not _is_float(right):
        return 1 << right
    is_known = isinstance(right, int) and right >= 0 and modulus is None
    if not is_known or (_is_float(left) and right > 2):
        raise emitter.fail(
            "operator",
            "'**' of run-time values needs an exponent that is a whole number known at compile "
            "time; of a float, at most 2",
            "write the product, or 1 << n for powers of two",
        )
    result: Any = 1.0 if _is_float(left) else 1
    while right:
        if right & 1:
            result = left if isinstance(result, int | float) else result * left
        left, right = left * left if right > 1 else left, right >> 1
    return result


def compare(emitter: Emitter, symbol: str, left: Any, right: Any) -> Any:
    """A comparison, as an i1."""
    if isinstance(left, Opened) or isinstance(right, Opened):
        return NotImplemented  # of values, which know what to do with a number
    for given in (left, right):
        if not isinstance(given, Number | bool | int | float):
            raise emitter.fail(
                "compare", f"a run-time number is compared with {type(given).__name__}"
            )
    floats = _is_float(left) or _is_float(right)
    is_equality = symbol in ("==", "!=")
    is_logic = is_equality and _is_truth(left) and _is_truth(right)
    type_ = _float_type(left, right) if floats else I1 if is_logic else INDEX
    a, b = _common(emitter, left, right, type_)
    word = {"==": "eq", "!=": "ne"}.get(symbol) or _ORDER[symbol]
    if floats:
        record, word = CMPF, ("une" if symbol == "!=" else f"o{word}")
    else:
        record, word = CMPI, word if is_equality else f"s{word}"
    attrs = {"predicate": IntAttr(predicates(record).index(word), I64)}
    op = emitter.emit(record.name, [("lhs", a), ("rhs", b)], [("result", I1)], dict(attrs))
    return Number(emitter, op.result)


def select(emitter: Emitter, condition: Number, yes: Any, no: Any) -> Number:
    """`yes if condition else no`, of numbers that do no harm when they are computed in vain."""
    floats = _is_float(yes) or _is_float(no)
    is_logic = _is_truth(yes) and _is_truth(no)
    type_ = _float_type(yes, no) if floats else I1 if is_logic else INDEX
    a, b = _common(emitter, yes, no, type_)
    value = select_value(emitter, condition, a, b)
    return Number(emitter, value, nonnegative=_nonnegative(yes) and _nonnegative(no))


def select_value(emitter: Emitter, condition: Number, yes: Value, no: Value) -> Value:
    """One of two values of one type."""
    operands = [("condition", condition.value), ("true_value", yes), ("false_value", no)]
    return emitter.emit("arith.select", operands, [("result", yes.type)]).result


def extreme(emitter: Emitter, which: str, left: Any, right: Any) -> Number:
    """`min` or `max` of two numbers."""
    floats = _is_float(left) or _is_float(right)
    type_ = _float_type(left, right) if floats else INDEX
    a, b = _common(emitter, left, right, type_)
    name = f"arith.{which}{'imumf' if floats else 'si'}"
    op = emitter.emit(name, [("lhs", a), ("rhs", b)], [("result", type_)])
    either = any if which == "max" else all
    return Number(emitter, op.result, nonnegative=either([_nonnegative(left), _nonnegative(right)]))


# ---- data --------------------------------------------------------------------------------------


class BufferSymbol(NotANumber, Symbol):
    """A tile or convolution tile of the kernel. `value` is its handle in the IR; `alloc` the
    operation that made it, None for a tile of the caller."""

    __cells__ = ("value",)

    def __init__(
        self, emitter: Emitter, spec: TileSpec | ConvSpec, value: Value, alloc: Op | None = None
    ) -> None:
        self.emitter = emitter
        self.spec = spec
        self.value = value
        self.alloc = alloc
        self.is_chosen = False  # by a run-time index: which tile it is cannot be told

    @property
    def operand_kind(self) -> str:
        return "tile" if isinstance(self.spec, TileSpec) else "conv"

    def renamed(self, value: Value) -> BufferSymbol:
        """The tile under another handle: carried by a loop, or returned by a branch."""
        raise NotImplementedError


class TileSymbol(BufferSymbol):
    """A tile of the kernel.

    `_valid` is its valid region where that is certain: in the block that made the tile. A getter
    inside a loop or branch, where a later line may have changed it, asks at run time.
    """

    def __init__(
        self,
        emitter: Emitter,
        spec: TileSpec,
        value: Value,
        alloc: Op | None = None,
        valid: tuple[Any, Any] | None = None,
    ) -> None:
        super().__init__(emitter, spec, value, alloc)
        self.tile = spec
        self._block: Block | None = emitter.block if valid is not None else None
        self._valid = valid or (DYNAMIC, DYNAMIC)

    def renamed(self, value: Value) -> TileSymbol:
        """The tile under another handle. From here on nothing is certain: either may change it."""
        self._block = None
        return TileSymbol(self.emitter, self.tile, value, self.alloc)

    def _size(self, axis: int) -> Any:
        static = (self.tile.valid_row, self.tile.valid_col)[axis]
        if static != DYNAMIC:
            return static
        if self._block is self.emitter.block:
            return self._valid[axis]
        results = [("valid_row", INDEX), ("valid_col", INDEX)]
        op = self.emitter.emit("pto.get_validshape", [("source", self.value)], results)
        return Number(self.emitter, op.results[axis], nonnegative=True)

    def GetValidRow(self) -> Any:
        return self._size(0)

    def GetValidCol(self) -> Any:
        return self._size(1)

    def SetValidRow(self, rows: Any) -> None:
        self.SetValidShape(rows, self._size(1))

    def SetValidCol(self, cols: Any) -> None:
        self.SetValidShape(self._size(0), cols)

    def SetValidShape(self, rows: Any, cols: Any) -> None:
        """Writes a change of the valid region."""
        values = [as_value(self.emitter, size, INDEX) for size in (rows, cols)]
        labels = ("source", "valid_row", "valid_col")
        operands = list(zip(labels, (self.value, *values), strict=True))
        self.emitter.emit("pto.set_validshape", operands)
        self._valid = (rows, cols)
        if self._block is not self.emitter.block:
            self._block = None

    def GetValue(self, offset: Any) -> Any:
        return Instruction(INSTRUCTIONS["GETVAL"])(self, offset)

    def SetValue(self, offset: Any, value: Any) -> None:
        Instruction(INSTRUCTIONS["SETVAL"])(self, offset, value)

    def __repr__(self) -> str:
        return f"<tile {self.spec}>"


class PointerSymbol(Symbol):
    """A place inside an array. Shape and strides are those of the array."""

    operand_kind = "pointer"

    def __init__(
        self,
        emitter: Emitter,
        value: Value,
        dtype: DType,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> None:
        self.emitter = emitter
        self.value = value
        self.dtype = dtype
        self.shape = shape
        self.strides = strides  # in elements

    def __add__(self, elements: Any) -> PointerSymbol:
        offset = as_value(self.emitter, elements, INDEX)
        operands = [("ptr", self.value), ("offset", offset)]
        op = self.emitter.emit("pto.addptr", operands, [("result", self.value.type)])
        return PointerSymbol(self.emitter, op.result, self.dtype, self.shape, self.strides)

    __radd__ = __add__

    def __repr__(self) -> str:
        return f"<pointer to {self.dtype.name}>"


class ArraySymbol(NotANumber, PointerSymbol):
    """An array parameter."""

    attributes = ("T", "dtype", "ndim", "shape", "size")

    @property
    def pointer(self) -> PointerSymbol:
        """Its first element."""
        return PointerSymbol(self.emitter, self.value, self.dtype, self.shape, self.strides)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def T(self) -> ArrayPart:
        return self.lower_item(slice(None)).T

    def __len__(self) -> int:
        return self.shape[0]

    def lower_item(self, index: Any) -> ArrayPart:
        """A part of it, for a view. What it holds is known only at run time."""
        parts = index if isinstance(index, tuple) else (index,)
        for step in (part.step for part in parts if isinstance(part, slice)):
            if isinstance(step, int) and step < 0:
                raise backwards("the array", [("step", step)], self.emitter.location)
        if len(parts) == self.ndim and not any(isinstance(part, slice) for part in parts):
            raise self.emitter.fail(
                "array",
                "the elements of an array are known only at run time: a kernel moves them",
                "load_scalar(x, i) reads one, GlobalTensor(x)[...] is a part to load",
            )
        known = zip(parts, self.shape, strict=False)
        return ArrayPart(self, tuple(_from_the_start(part, size) for part, size in known))


def _from_the_start(part: Any, size: int) -> Any:
    """A position or slice whose known numbers do not count from the end, as NumPy has them."""
    if isinstance(part, slice):
        return slice(_from_the_start(part.start, size), _from_the_start(part.stop, size), part.step)
    return part + size if isinstance(part, int) and part < 0 else part


class ArrayPart(NotANumber, PointerSymbol):
    """A slice of an array parameter; a view is made of it, and nothing else."""

    attributes = ("T", "dtype")

    def __init__(self, whole: ArraySymbol, index: Any, is_turned: bool = False) -> None:
        super().__init__(whole.emitter, whole.value, whole.dtype, whole.shape, whole.strides)
        self.whole = whole
        self.index = index
        self.is_turned = is_turned  # rows stand for columns

    @property
    def T(self) -> ArrayPart:
        if len(self.shape) != 2:
            raise self.emitter.fail("array", "what is transposed in a kernel has two dimensions")
        return ArrayPart(self.whole, self.index, not self.is_turned)

    def lower_item(self, index: Any) -> Any:
        raise self.emitter.fail(
            "array", "a part of an array is sliced once", "give all of it in one pair of brackets"
        )


class GlobalSymbol(NotANumber, Symbol):
    """A GlobalTensor: the part of memory it stands for, and the whole it is a part of."""

    operand_kind = "global"

    def __init__(
        self,
        spec: GlobalSpec,
        value: Value,
        whole: Value,
        start: tuple[Any, ...],
        shape: tuple[Any, ...],
        stride: tuple[Any, ...],
    ) -> None:
        self.spec = spec
        self.value = value
        self.whole = whole
        self.start = start
        self.shape = shape
        self.stride = stride
        self.lower_item: Any = None  # how a slice of it is written
        self.rank = 5  # of the array it was made from
        self.is_slot = False  # it has no memory of its own: a FIFO points it at a slot

    def become(self, other: GlobalSymbol) -> None:
        """Stand for another view from here on."""
        self.__dict__.update(other.__dict__)

    def GetShape(self, dim: int) -> Any:
        return self.shape[dim]

    def GetStride(self, dim: int) -> Any:
        return self.stride[dim]

    def __repr__(self) -> str:
        return f"<view {self.spec}>"


class GroupSymbol(Symbol):
    """The members of a collective, and the index of the root among them."""

    operand_kind = "parallel_group"

    def __init__(self, members: tuple[GlobalSymbol, ...], *size_and_root: int) -> None:
        *size, root = size_and_root or (-1,)
        self.members = members[: size[0]] if size else members
        self.root = root


def rank_of(spec: GlobalSpec, shape: tuple[Any, ...]) -> int:
    """Dimensions to write: a plain matrix needs two, the others are 1."""
    return 2 if shape[:3] == (1, 1, 1) and spec.layout in (Layout.ND, Layout.DN) else 5


def layout_attribute(spec: GlobalSpec, stride: tuple[Any, ...]) -> dict[str, Attribute]:
    """The layout of a view; row-major ones say so where the strides alone could mean columns."""
    if spec.layout == Layout.ND and isinstance(stride[3], int) and stride[3] != 1:
        return {}
    layouts = enumeration_of(Layout)
    return {"layout": EnumAttr(layouts.name, layouts.text_of(spec.layout))}
