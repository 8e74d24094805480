"""Values: tiles that are computed with as NumPy's arrays are.

Every operation is one instruction, sometimes two, into a tile of its own; which one follows from
what it means and from the types of the tiles (`choice.py`). A value of one column (`rowmax(a)`) or
of one row (`colsum(a)`) meets all columns or rows of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.dtypes import DType, float32
from ptokit.base.entry import public
from ptokit.base.enums import BLayout, CmpMode, RoundMode, TileType
from ptokit.base.layout import Array
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.frontend.advice import numpy_function
from ptokit.frontend.instruction import Instruction, kind_of, plain_number
from ptokit.frontend.session import current
from ptokit.frontend.trees import Opened
from ptokit.isa import INSTRUCTIONS
from ptokit.values.choice import Chosen, Wanted, as_does, choose, fitting
from ptokit.values.tiles import (
    Extent,
    Size,
    element_of,
    made,
    mask_type,
    two_sizes,
    vector_type,
)

# What each operation means: what this instruction does to one element of each source.
_MEANT = {
    "+": "TADD", "-": "TSUB", "*": "TMUL", "/": "TDIV", "%": "TREM", "**": "TPOW",
    "&": "TAND", "|": "TOR", "^": "TXOR", "<<": "TSHL", ">>": "TSHR", "~": "TNOT",
    "maximum": "TMAX", "minimum": "TMIN", "where": "TSEL",
    "negative": "TNEG", "abs": "TABS", "relu": "TRELU", "exp": "TEXP", "log": "TLOG",
    "sqrt": "TSQRT", "rsqrt": "TRSQRT", "recip": "TRECIP",
    "full": "TEXPANDS", "spread a column": "TROWEXPAND", "spread a row": "TCOLEXPAND",
}  # fmt: skip
_REDUCED = {
    (1, "sum"): "TROWSUM", (1, "prod"): "TROWPROD", (1, "max"): "TROWMAX", (1, "min"): "TROWMIN",
    (0, "sum"): "TCOLSUM", (0, "prod"): "TCOLPROD", (0, "max"): "TCOLMAX", (0, "min"): "TCOLMIN",
}  # fmt: skip
_COMPARED = {"<": CmpMode.LT, "<=": CmpMode.LE, ">": CmpMode.GT, ">=": CmpMode.GE,
             "==": CmpMode.EQ, "!=": CmpMode.NE}  # fmt: skip
# Operations whose sources may be exchanged.
_EXCHANGED = ("+", "*", "&", "|", "^", "maximum", "minimum")
# NumPy's names of comparisons, and what each is with its sides exchanged.
_COMPARISONS = {"less": ("<", ">"), "less_equal": ("<=", ">="), "greater": (">", "<"),
                "greater_equal": (">=", "<="), "equal": ("==", "=="),
                "not_equal": ("!=", "!=")}  # fmt: skip
_ON_ARRAYS = "load(x[i:j, :]) computes on the device; what NumPy computes goes before the launch"


@cache
def _wanted(name: str, axis: int | None = None) -> Wanted:
    if axis is not None:
        return as_does(f"{name} of {'rows' if axis else 'columns'}",
                       INSTRUCTIONS[_REDUCED[axis, name]], axis)  # fmt: skip
    if name in _COMPARED:
        return as_does(name, INSTRUCTIONS["TCMP"], cmpMode=_COMPARED[name])
    return as_does(name, INSTRUCTIONS[_MEANT[name]])


def _binary(name: str) -> Callable[[Any, Any], Any]:
    def operator(self: Value, other: Any) -> Any:
        return combine(name, self, other) if _is_source(other) else NotImplemented

    return public(operator)


def _reflected(name: str) -> Callable[[Any, Any], Any]:
    def operator(self: Value, other: Any) -> Any:
        return combine(name, other, self) if _is_source(other) else NotImplemented

    return public(operator)


def _unary(name: str) -> Callable[[Any], Any]:
    return public(lambda self: combine(name, self))


@dataclass(frozen=True, eq=False, repr=False)
class Value(Opened):
    """The contents of a tile. It never changes: an operation makes another one."""

    tile: Any

    __add__, __radd__ = _binary("+"), _reflected("+")
    __sub__, __rsub__ = _binary("-"), _reflected("-")
    __mul__, __rmul__ = _binary("*"), _reflected("*")
    __truediv__, __rtruediv__ = _binary("/"), _reflected("/")
    __mod__, __rmod__ = _binary("%"), _reflected("%")
    __pow__, __rpow__ = _binary("**"), _reflected("**")
    __and__, __rand__ = _binary("&"), _reflected("&")
    __or__, __ror__ = _binary("|"), _reflected("|")
    __xor__, __rxor__ = _binary("^"), _reflected("^")
    __lshift__, __rlshift__ = _binary("<<"), _reflected("<<")
    __rshift__, __rrshift__ = _binary(">>"), _reflected(">>")
    __lt__, __le__ = _binary("<"), _binary("<=")
    __gt__, __ge__ = _binary(">"), _binary(">=")
    __eq__ = _binary("==")  # type: ignore[assignment]
    __ne__ = _binary("!=")  # type: ignore[assignment]
    __neg__, __abs__, __invert__ = _unary("negative"), _unary("abs"), _unary("~")
    __hash__ = object.__hash__

    @public
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        """`np.exp(a)` is `exp(a)`, and a number of NumPy's may stand on the left of an operator."""
        name: str = ufunc.__name__
        operation = _operations().get(numpy_function(name))
        if name in _COMPARISONS:
            operation, mirrored = _COMPARISONS[name]
            if not isinstance(inputs[0], Value):
                operation, inputs = mirrored, inputs[::-1]
        if operation is None or method != "__call__" or named:
            raise _no_function(name)
        return combine(operation, *inputs)

    @public
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise _no_function(function.__name__)

    @public
    def __array__(self, *args: Any, **named: Any) -> Any:
        raise fail("value-operand", "a value is no array of NumPy's", fix=_ON_ARRAYS)

    @public
    def __getitem__(self, index: Any) -> Any:
        raise fail(
            "value-operand",
            "a value has no brackets: the part is chosen where it is loaded",
            got=[("index", index)],
            fix="load(x[i:j, :]) of the array; TEXTRACT and TSUBVIEW take parts of value.tile",
        )

    def __getattr__(self, name: str) -> Any:
        hint = f"; {_instead(name)}" if name[:1] != "_" and _instead(name) else ""
        raise AttributeError(f"a value has no attribute {name!r}{hint}", name=name, obj=self)

    @property
    def spec(self) -> TileSpec:
        """The type of its tile."""
        return self.tile.spec

    @property
    def dtype(self) -> DType:
        return self.spec.dtype

    @property
    def shape(self) -> tuple[Size, Size]:
        """Its rows and columns: the valid region of the tile."""
        return self.tile.GetValidRow(), self.tile.GetValidCol()

    @property
    def is_mask(self) -> bool:
        """Whether it is what a comparison gives."""
        return False

    @public
    def __bool__(self) -> bool:
        raise fail(
            "value-truth",
            "a value has many elements: none of them decides an `if`",
            got=[("shape", self.spec)],
            fix="where(condition, a, b) chooses element by element; in the place of Python's max "
            "and min there are maximum(a, b) and minimum(a, b)",
        )

    @property
    @public
    def T(self) -> Value:
        """Rows as columns."""
        if _is_column([self]):
            return as_row(self)
        return as_column(self) if extent(self).rows == 1 else transposed(self)

    @public
    def to(self, element: Any, rounding: RoundMode = RoundMode.CAST_RINT) -> Value:
        """The same numbers in another element type."""
        kind = element_of(element)
        return self if kind is self.dtype else converted(self, kind, rounding)

    @public
    def numpy(self) -> Array:
        """Its elements, where it is computed right away: in `with device(...)`."""
        return self.tile.numpy()

    def __repr__(self) -> str:
        return f"<value {self.spec}>"

    def _repr_html_(self) -> str:
        return self.tile._repr_html_()


@dataclass(frozen=True, eq=False, repr=False)
class Mask(Value):
    """A truth value per element, as a comparison leaves them."""

    extent: Extent
    is_column: bool = False  # of columns, whose elements lie as those of a row

    @property
    def is_mask(self) -> bool:
        return True

    @property
    def shape(self) -> tuple[Size, Size]:
        return self.extent.valid

    @public
    def numpy(self) -> Array:
        raise fail("value-mask", "a mask is bits", fix="where(mask, 1, 0) makes numbers of them")


# ---- operations --------------------------------------------------------------------------------


def combine(name: str, *sources: Any) -> Any:
    """An operation on values and numbers, of which at least one is a value."""
    if not all(map(_is_source, sources)):
        raise _unfit(name, sources)
    sources = tuple(map(_near, sources))
    values = [each for each in sources if isinstance(each, Value)]
    shape = _common(name, values)
    if len(_kinds(values)) > 1:
        raise _none_does(name, sources)  # no instruction takes two element types
    if _is_column(values):
        return _on_rows(name, sources)
    orders = (sources, sources[::-1]) if name in _EXCHANGED else (sources,)
    for given in orders:
        found = _attempt(name, given, shape)
        if found is not None:
            return found
    whole = tuple(_spread(each, shape, _element(values)) for each in sources)
    if any(a is not b for a, b in zip(whole, sources, strict=True)):
        return combine(name, *whole)
    raise _none_does(name, sources)


def _attempt(name: str, sources: tuple[Any, ...], shape: Extent) -> Value | None:
    """The operation as one instruction; None: there is none for these."""
    values = [each for each in sources if isinstance(each, Value)]
    results = (mask_type(shape),) if name in _COMPARED else (vector_type(shape, _element(values)),)
    chosen = _choice(_wanted(name), sources, results)
    if chosen is None:
        return None
    tile = issue(chosen, sources, shape.valid)
    return Mask(tile, shape) if name in _COMPARED else Value(tile)


def _choice(
    wanted: Wanted, sources: tuple[Any, ...], results: tuple[TileSpec, ...]
) -> Chosen | None:
    types = tuple(each.spec if isinstance(each, Value) else None for each in sources)
    return choose(wanted, types, results, current().target)


def issue(chosen: Chosen, sources: tuple[Any, ...], valid: tuple[Size, Size]) -> Any:
    """Carry an instruction out; gives the tile of its result."""
    tiles = tuple(each.tile if isinstance(each, Value) else plain_number(each) for each in sources)
    result, operands = chosen.operands(tiles, lambda spec: made(spec, valid))
    Instruction(chosen.insn).execute(operands, chosen.attrs)
    return result


def converted(value: Value, kind: DType, rounding: RoundMode) -> Value:
    """The numbers of a value in another element type."""
    source = _in_row(value)
    found = _moved("TCVT", source, extent(source), kind, mode=rounding)
    if found is None:
        raise _none_does(f"{value.dtype} to {kind}", (value,))
    return found if source is value else as_column(found)


def transposed(value: Value) -> Value:
    """A value with its rows as columns."""
    found = _moved("TTRANS", value, extent(value).turned, value.dtype)
    if found is None:
        raise _none_does("transpose", (value,))
    return found


def _moved(name: str, value: Value, shape: Extent, kind: DType, **attrs: Any) -> Value | None:
    """What one instruction makes of a value; None: its rules do not take these tiles."""
    result, target = vector_type(shape, kind), current().target
    chosen = fitting(INSTRUCTIONS[name], (value.spec,), result, target, tuple(attrs.items()))
    return None if chosen is None else Value(issue(chosen, (value,), shape.valid))


@public
def reduce(name: str, value: Any, axis: int) -> Value:
    """All elements of each row (axis 1) or of each column (axis 0) combined."""
    if not isinstance(value, Value) or isinstance(value, Mask):
        raise _unfit(f"{name} along an axis", (value,))
    if axis not in (0, 1, -1):
        raise fail("value-axis", "a value has rows and columns", got=[("axis", axis)],
                   fix="axis=1 reduces every row to one element, axis=0 every column")  # fmt: skip
    value = _near(value)
    wanted, shape = _wanted(name, axis % 2), extent(value)
    kept = shape.column if axis % 2 else shape.row
    chosen = _choice(wanted, (value,), (vector_type(kept, value.dtype),))
    if chosen is None:
        raise _none_does(wanted.name, (value,))
    return Value(issue(chosen, (value,), kept.valid))


@public
def full(shape: tuple[int, int], number: Any, element: Any = float32) -> Value:
    """A value with one number in all places."""
    rows, cols = two_sizes(shape)
    if cols == 1 and rows > 1:
        return as_column(full((1, rows), number, element))
    found = _spread(number, Extent(rows, cols, shape), element_of(element))
    if not isinstance(found, Value):
        raise _none_does("full", (number,))
    return found


@public
def where(condition: Any, yes: Any, no: Any) -> Value:
    """The elements of `yes` where a comparison holds, those of `no` elsewhere."""
    if not isinstance(condition, Mask):
        raise fail("value-mask", "where chooses by a comparison of values",
                   got=[("condition", type(condition).__name__)],
                   fix="where(a > b, a, b)")  # fmt: skip
    if condition.is_column:
        return as_column(where(replace(condition, is_column=False), _in_row(yes), _in_row(no)))
    chosen = next((v for v in (yes, no) if isinstance(v, Value)), None)
    kind = float32 if chosen is None else chosen.dtype
    sources = [_spread(each, condition.extent, kind) for each in (yes, no)]
    return combine("where", condition, *sources)


def _function(name: str, doc: str) -> Callable[[Value], Value]:
    def function(a: Value) -> Value:
        return combine(name, a)

    function.__name__, function.__doc__ = name, doc
    return public(function)


exp = _function("exp", "e to the power of each element.")
log = _function("log", "The natural logarithm of each element.")
sqrt = _function("sqrt", "The square root of each element.")
rsqrt = _function("rsqrt", "One divided by the square root of each element.")
recip = _function("recip", "One divided by each element.")
relu = _function("relu", "Each element, or 0 where it is negative.")
absolute = _function("abs", "Each element without its sign.")


@public
def maximum(a: Any, b: Any) -> Value:
    """The larger one of two elements, or of an element and a number."""
    return combine("maximum", a, b)


@public
def minimum(a: Any, b: Any) -> Value:
    """The smaller one of two elements, or of an element and a number."""
    return combine("minimum", a, b)


def _reduction(name: str, axis: int) -> Callable[[Value], Value]:
    def function(a: Value) -> Value:
        return reduce(name, a, axis)

    lines = ("column", "row")[axis]
    function.__name__ = f"{lines[:3]}{name}"
    words = {"sum": "The sum", "prod": "The product", "max": "The largest", "min": "The smallest"}
    function.__doc__ = (
        f"{words[name]} of the elements of each {lines}, as one {('row', 'column')[axis]}."
    )
    return public(function)


rowsum, rowprod = _reduction("sum", 1), _reduction("prod", 1)
rowmax, rowmin = _reduction("max", 1), _reduction("min", 1)
colsum, colprod = _reduction("sum", 0), _reduction("prod", 0)
colmax, colmin = _reduction("max", 0), _reduction("min", 0)


# ---- shapes ------------------------------------------------------------------------------------


def extent(value: Value) -> Extent:
    """Rows and columns of a value: how many there are, and how many there may be."""
    if isinstance(value, Mask):
        return value.extent
    spec = value.spec
    rows = spec.rows if spec.valid_row == DYNAMIC else spec.valid_row
    cols = spec.cols if spec.valid_col == DYNAMIC else spec.valid_col
    return Extent(rows, cols, value.shape)


def _common(name: str, values: list[Value]) -> Extent:
    """The shape in which values meet: sizes agree, or one of them is 1."""
    found = extent(values[0])
    for other in map(extent, values[1:]):
        met = found.met(other)
        if met is None:
            raise fail(
                "value-shape",
                f"the shapes of the values do not fit together: {name}",
                got=[(f"value {n}", extent(v)) for n, v in enumerate(values)],
                fix="rows and columns agree, or one value has a single row or column",
            )
        found = met
    return found


def _is_column(values: list[Value]) -> bool:
    return all(v.spec.blayout == BLayout.ColMajor and v.spec.cols == 1 for v in values)


def _on_rows(name: str, sources: tuple[Any, ...]) -> Value:
    """An operation on columns, whose bytes lie as those of a row do: no target computes on them."""
    found = combine(name, *map(_in_row, sources))
    if isinstance(found, Mask):
        return replace(found, is_column=True)
    return as_column(found)


def _in_row(given: Any) -> Any:
    return as_row(given) if isinstance(given, Value) and _is_column([given]) else given


def as_row(value: Value) -> Value:
    """A column as a row of the same bytes."""
    rows = value.spec.rows
    shape = Extent(1, extent(value).rows, (1, value.shape[0]))
    return seen_as(value, vector_type(shape, value.dtype).but(cols=rows), shape.valid)


def as_column(value: Value) -> Value:
    """A row as a column of the same bytes."""
    shape = Extent(extent(value).cols, 1, (value.shape[1], 1))
    return seen_as(value, vector_type(shape, value.dtype), shape.valid)


def seen_as(value: Value, spec: TileSpec, valid: tuple[Size, Size]) -> Value:
    """The bytes of a value as a tile of another type."""
    tile = made(spec, valid)
    Instruction(INSTRUCTIONS["TRESHAPE"]).execute((tile, value.tile), ())
    return Value(tile)


def _near(given: Any) -> Any:
    """A value where the vector unit finds it; a product lies beside the cube."""
    if not isinstance(given, Value) or given.spec.loc == TileType.Vec:
        return given
    found = _moved("TMOV", given, extent(given), given.dtype)
    if found is None:
        raise fail(
            "value-memory",
            f"no instruction of {current().target.name} brings a product to the vector unit",
            got=[("value", given.spec)],
            fix="store it in an array and load it from there",
        )
    return found


def _spread(given: Any, shape: Extent, kind: DType) -> Any:
    """A number, a column or a row in all places of a shape; what has it already stays as it is."""
    if not isinstance(given, Value):
        chosen = choose(_wanted("full"), (None,), (vector_type(shape, kind),), current().target)
    elif given.is_mask or extent(given).sizes == shape.sizes:
        return given
    else:
        word = "spread a column" if extent(given).cols == 1 else "spread a row"
        chosen = _choice(_wanted(word), (given,), (vector_type(shape, given.dtype),))
    return given if chosen is None else Value(issue(chosen, (given,), shape.valid))


# ---- what is refused ---------------------------------------------------------------------------


def _is_source(given: Any) -> bool:
    return isinstance(given, Value) or kind_of(given) == "scalar"


def _kinds(sources: Iterable[Any]) -> set[DType]:
    return {v.dtype for v in sources if isinstance(v, Value) and not v.is_mask}


@cache
def _operations() -> dict[str, str]:
    """The operation that an instruction is the meaning of."""
    return {instruction: name for name, instruction in _MEANT.items()}


def _instead(name: str) -> str:
    """What to write for a method or a function of NumPy's that values do not have."""
    if f"row{name}" in globals():
        return f"write row{name}(a) or col{name}(a)"
    if name == "astype":
        return "write a.to(float16)"
    return f"write {name}(a)" if callable(globals().get(name)) else ""


def _no_function(name: str) -> PtoError:
    return fail("value-operand", f"np.{name} does not take values", fix=_instead(name))


def _element(values: list[Value]) -> DType:
    return next((v.dtype for v in values if not v.is_mask), values[0].dtype)


def _unfit(name: str, sources: tuple[Any, ...]) -> PtoError:
    wrong = next(each for each in sources if not _is_source(each))
    return fail(
        "value-operand",
        f"{name} takes values and numbers",
        got=[("given", type(wrong).__name__)],
        fix="load(x[i:j, :]) makes a value of a part of an array, Value(tile) of a tile",
    )


def _none_does(name: str, sources: tuple[Any, ...]) -> PtoError:
    target = current().target.name
    mixed = len(_kinds(sources)) > 1
    return fail(
        "value-instruction",
        f"{target} has no instruction for this: {name}",
        got=[(f"operand {n}", getattr(v, "spec", v)) for n, v in enumerate(sources)],
        fix="bring both to one type: a.to(b.dtype)" if mixed else
        "convert to another element type first: a.to(float32)",
    )  # fmt: skip
