"""The meaning of an instruction: a form over its tiles, and a function of single elements.

    @insn(*BINARY, means=Each(), ...)
    def TADD(src0: Expr, src1: Expr) -> Expr:
        return src0 + src1

The function is called with symbols, once per combination of element types and template arguments,
and gives the expressions of the results (`expr.py`). The form says which elements meet: `Each` goes
over the destination, `Partial` over tiles that do not cover the same region, `Reduce` and
`ArgReduce` along an axis. `Meaning.expressions` is for whoever compiles the instruction,
`Meaning.body` makes the NumPy code that the reference engine runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ptokit.base.convert import element
from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.base.starting import parameters_of
from ptokit.isa.arrays import Code, function_of, repeated, ufunc, unpack_mask
from ptokit.isa.costs import COLUMN_REDUCTION, ELEMENTWISE, REDUCTION, Cost
from ptokit.isa.expr import (
    BOOL,
    Apply,
    Arg,
    Condition,
    Expr,
    Given,
    resolved,
    select,
    walk,
    written,
)
from ptokit.isa.facts import Ops
from ptokit.isa.folds import Order, Steps, extreme, first_extreme, narrowed
from ptokit.isa.regions import Extent, View, pitched

Scalar = Callable[..., Expr | tuple[Expr, ...]]
Kinds = Mapping[str, DType | None]  # of the operands that are given; None: a number
Body = Callable[..., None]


class Form:
    """Which elements meet."""

    cost: Cost = ELEMENTWISE  # the class of operations that take time like this one
    streams: bool = False  # tiles are walked element by element: two in a row need no barrier
    steps: tuple[str, ...] = ()  # parameters of the function that are not operands

    @property
    def services(self) -> frozenset[str]:
        """What the code asks of the machine (services.py)."""
        return frozenset()

    def symbols(self, kinds: Kinds, names: Sequence[str]) -> dict[str, Arg]:
        """What the function is called with."""
        return {name: Arg(kind, name) for name in names if (kind := kinds.get(name))}

    def key(self, ops: Ops) -> Any:
        """What the code depends on beside the expressions."""
        return None

    def region(self, name: str, roles: Mapping[str, str]) -> Callable[[Ops], Any] | None:
        """Which elements of an operand are touched; None: its valid region."""
        return None

    def code(self, meaning: Meaning, ops: Ops, exprs: tuple[Expr, ...]) -> Body:
        """NumPy code that is handed the operands, in order."""
        raise NotImplementedError

    def line(self, meaning: Meaning, texts: Sequence[str]) -> str:
        """The meaning as a line, of the expressions as texts."""
        raise NotImplementedError

    def reached(self, elements: Array, shape: tuple[int, int]) -> Array | None:
        """The elements of a result of this shape that are made of some of a source; None: any."""
        return None


class Meaning:
    """A form and a function of elements, with the code that has been made of them."""

    def __init__(
        self,
        name: str,
        form: Form,
        scalar: Scalar,
        roles: Mapping[str, str],  # of the operands, in order
        attrs: Iterable[str],
    ) -> None:
        self.name = name
        self.form = form
        self.operands = tuple(roles)
        self.outs = tuple(o for o, role in roles.items() if role in ("out", "inout"))
        # A function that does not name operands, such as operator.add, is given the sources.
        self.parameters = parameters_of(scalar)
        if not {*self.parameters} <= {*self.operands, *form.steps, *attrs}:
            sources = [o for o, role in roles.items() if role == "in"]
            self.parameters = form.steps or tuple(sources[: len(self.parameters)])
        self.scalar = scalar
        self._traced: dict[Any, tuple[tuple[Expr, ...], tuple[Condition, ...]]] = {}
        self._bodies: dict[Any, Body] = {}

    def traced(self, kinds: Kinds, attrs: Mapping[str, Any]) -> tuple[Expr, ...]:
        """The expressions of the results; choices are still in them."""
        return self._trace(kinds, attrs)[1]

    def expressions(self, ops: Ops) -> tuple[Expr, ...]:
        """The expressions of the results for these operands; no choice is left."""
        _, exprs, _ = self._trace(kinds_of(ops), ops.attrs)
        return tuple(resolved(expr, lambda condition: condition.holds(ops)) for expr in exprs)

    def body(self, ops: Ops) -> Body:
        """The code for these operands."""
        key, exprs, conditions = self._trace(kinds_of(ops), ops.attrs)
        chosen = frozenset(each for each in conditions if each.holds(ops))
        key = (key, chosen, self.form.key(ops))
        body = self._bodies.get(key)
        if body is None:
            left = tuple(resolved(expr, chosen.__contains__) for expr in exprs)
            body = self._bodies[key] = self.form.code(self, ops, left)
        return body

    def function(self, **kinds: DType) -> Callable[..., Any]:
        """A function of arrays, for elements of these types, where nothing is left to choose."""
        return function_of(self.name, self.parameters, *self.traced(kinds, {}))

    def _trace(
        self, kinds: Kinds, attrs: Mapping[str, Any]
    ) -> tuple[Any, tuple[Expr, ...], tuple[Condition, ...]]:
        symbols = self.form.symbols(kinds, self.parameters)
        asked = {name: attrs[name] for name in self.parameters if name in attrs}
        key = (*symbols.values(), *asked.values())
        if key not in self._traced:
            made = self.scalar(*(symbols.get(n) or asked[n] for n in self.parameters))
            exprs = made if isinstance(made, tuple) else (made,)
            nodes = (node for expr in exprs for node in walk(expr))
            conditions = dict.fromkeys(n.condition for n in nodes if isinstance(n, Given))
            self._traced[key] = exprs, tuple(conditions)
        return key, *self._traced[key]

    def line(self, kinds: Kinds, attrs: Mapping[str, Any]) -> str:
        """The meaning for these types as a line of text; T is the type of the first source."""
        symbols = self.form.symbols(kinds, self.parameters)
        first = next((s.kind for s in symbols.values() if not s.is_number), None)
        names = {} if first is None or first is BOOL else {first: "T"}
        exprs = self.traced(kinds, attrs)
        return self.form.line(self, [written(expr, _place, names) for expr in exprs])


def kinds_of(ops: Ops) -> Kinds:
    """The element types of the operands that are given."""
    given = ((name, facts) for name, facts in ops if facts is not None)
    return {n: None if f.kind == "scalar" else getattr(f, "dtype", None) for n, f in given}


def _place(arg: Arg) -> str:
    return arg.name if arg.is_number or arg.name in ("held", "element") else f"{arg.name}[i, j]"


# ---- element by element ------------------------------------------------------------------------


def _valid_sizes(o: Ops) -> tuple[int, int]:
    return o.dst.vr, o.dst.vc


def at_the_same_places(
    tile: Any, sizes: tuple[int, int], kind: DType | None = None
) -> View | Extent:
    """The first rows and columns of a tile, also those that its type does not have.

    `kind` is the element type in which its storage is read.
    """
    if kind is not None and tile.dtype is not kind:
        return pitched(*sizes, tile.row_stride, kind)
    return View.VALID if sizes == (tile.vr, tile.vc) else sizes


@dataclass(frozen=True)
class Each(Form):
    """dst[i, j] = f(src[i, j], ...), over the valid region of the destination.

    Sources are read there whatever their own valid regions, with the distance of their own rows,
    as elements of the type of the destination. A source that is declared with a smaller region
    repeats: it is read at [i mod rows, j mod columns]. A number is taken into the type of the first
    tile that is read, or of the destination.
    """

    over: Callable[[Ops], tuple[int, int]] | None = None  # rows and columns, where these are others
    converts: bool = False  # sources have element types of their own
    # Where rows are addressed by RowStride whatever the layout: it is 1 for a column-major tile.
    strided: Callable[[Ops], bool] | None = None

    repeats: bool = False  # a source may hold a few columns that repeat along the row
    # Parameter -> source and number: the element of the source in the same row, at j mod number.
    early: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    masks: tuple[str, ...] = ()  # sources that are packed masks: the function gets their bits
    leaves_open: bool = False  # some elements may be undefined
    numbers: Mapping[str, DType] = field(default_factory=dict[str, DType])  # fixed types
    streams: bool = True
    cost: Cost = ELEMENTWISE

    def symbols(self, kinds: Kinds, names: Sequence[str]) -> dict[str, Arg]:
        tiles = [kind for name in names if (kind := kinds.get(name)) and name not in self.masks]
        result = None if self.converts else kinds.get("dst")
        common = result or (tiles[0] if tiles else kinds["dst"])
        assert common is not None
        found: dict[str, Arg] = {}
        for name in names:
            if name in kinds:
                kind = BOOL if name in self.masks else kinds[name] and (result or kinds[name])
                number = self.numbers.get(name, common)
                found[name] = Arg(kind or number, name, kind is None)
            elif name in self.early:
                found[name] = Arg(common, name)
        return found

    @property
    def steps(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self.early)

    def region(self, name: str, roles: Mapping[str, str]) -> Callable[[Ops], Any] | None:
        if name in self.masks or roles[name] == "tmp":
            return None
        over, is_result = self.over or _valid_sizes, roles[name] != "in"

        def touched(o: Ops) -> Any:
            if o[name] is None or o[name].kind != "tile":
                return View.VALID
            kind = None if self.converts or is_result else o.dst.dtype
            sizes = over(o)
            if o[name].layout != "ND" and sizes[1] > 1 and self.strided and self.strided(o):
                return pitched(*sizes, o[name].row_stride, kind)
            return at_the_same_places(o[name], sizes, kind)

        return touched

    @property
    def services(self) -> frozenset[str]:
        return frozenset({"poison"} if self.leaves_open else ())

    def code(self, meaning: Meaning, ops: Ops, exprs: tuple[Expr, ...]) -> Body:
        code = Code(meaning.name, [*meaning.operands, *self.services])
        (expr,), (dst,) = exprs, meaning.outs
        for arg in dict.fromkeys(node for node in walk(expr) if isinstance(node, Arg)):
            if arg.is_number:
                code.number(arg)
            elif arg.name in self.early:
                source, columns = self.early[arg.name]
                line = f"{arg.name} = repeated({source}[:, :{columns}], {dst}.shape[1])"
                code.line(line, repeated=repeated)
            elif arg.name in self.masks:
                line = f"{arg.name} = unpack_mask({arg.name}, {dst}.shape[1])"
                code.line(line, unpack_mask=unpack_mask)
            elif self.repeats:
                line = f"{arg.name} = repeated({arg.name}, {dst}.shape[1])"
                code.line(line, repeated=repeated)
        code.counting(expr)
        where = None
        if isinstance(expr, Apply) and expr.name == "undefined":
            test, expr = expr.operands
            where = "where"
            code.line(f"where = {code.value(test)}")
        code.store(dst, expr)
        if where:
            code.line(f"if where.any(): poison.poison_where({dst!r}, where)")
        return code.function()

    def reached(self, elements: Array, shape: tuple[int, int]) -> Array | None:
        if self.masks:  # bits of one row are made of elements of that row
            if len(elements) != shape[0]:
                return None
            elements = np.logical_or.reduce(elements, axis=1, keepdims=True)
        if 0 in elements.shape:
            return np.zeros(shape, np.bool_)
        rows, cols = (np.arange(n) % m for n, m in zip(shape, elements.shape, strict=True))
        return elements[np.ix_(rows, cols)]

    def line(self, meaning: Meaning, texts: Sequence[str]) -> str:
        (dst,) = meaning.outs
        return f"{dst}[i, j] = {texts[0]}"


# ---- tiles that do not cover the same region ---------------------------------------------------


@dataclass(frozen=True)
class Partial(Form):
    """f where all sources are valid, a copy where one of a result's two is, 0 where none is."""

    sources: Mapping[str, tuple[str, str]]  # of each result
    nothing: Callable[[DType], float] | None = None  # instead of 0, in the assembler's library

    def key(self, ops: Ops) -> Any:
        return tuple(self.rest(ops).items())

    def rest(self, ops: Ops) -> dict[str, float]:
        """What each result is where no source is valid."""
        nothing = self.nothing if ops.target.tile_library else None
        return {name: nothing(ops[name].dtype) if nothing else 0 for name in self.sources}

    def code(self, meaning: Meaning, ops: Ops, exprs: tuple[Expr, ...]) -> Body:
        function = function_of(meaning.name, meaning.parameters, *exprs)
        rest = self.rest(ops)

        def body(*operands: Array) -> None:
            tiles = dict(zip(meaning.operands, operands, strict=True))
            rows, cols = tiles[meaning.outs[0]].shape
            used = [tiles[name][:rows, :cols] for name in meaning.parameters]
            both = slice(0, min(len(s) for s in used)), slice(0, min(s.shape[1] for s in used))
            found = function(*(source[both] for source in used))
            for name, values in zip(
                meaning.outs, found if len(exprs) > 1 else [found], strict=True
            ):
                result = np.full((rows, cols), rest[name], tiles[name].dtype)
                for source in self.sources[name]:
                    part = tiles[source][:rows, :cols]
                    result[: part.shape[0], : part.shape[1]] = part
                result[both] = values
                tiles[name][...] = result

        return body

    def reached(self, elements: Array, shape: tuple[int, int]) -> Array | None:
        rows, cols = shape
        found = np.zeros(shape, np.bool_)
        part = elements[:rows, :cols]
        found[: part.shape[0], : part.shape[1]] = part
        return found

    def line(self, meaning: Meaning, texts: Sequence[str]) -> str:
        each = [f"{out}[i, j] = {text}" for out, text in zip(meaning.outs, texts, strict=True)]
        return "; ".join(each) + " where both sources are valid, elsewhere the one that is"


# ---- along an axis -----------------------------------------------------------------------------

_HELD, _ELEMENT = "held", "element"


def _extreme_of(expr: Expr, takes: bool = False) -> bool | None:
    """Whether a step keeps the largest element, or the smallest; None: neither.

    `takes`: the step is the comparison that takes the new element.
    """
    kind = expr.parts[0].kind if takes and expr.parts else expr.kind
    held, new = Arg(kind, _HELD), Arg(kind, _ELEMENT)
    for largest, better in ((True, held < new), (False, held > new)):
        if expr == (better if takes else select(better, new, held)):
            return largest
    return None


@dataclass(frozen=True)
class _Along(Form):
    """Elements of `src` that meet along an axis; the results are row or column 0."""

    axis: int  # 1: along a row
    steps = (_HELD, _ELEMENT)

    @property
    def cost(self) -> Cost:  # type: ignore[override]
        return REDUCTION if self.axis else COLUMN_REDUCTION

    @property
    def places(self) -> tuple[str, str]:
        """Words for the place of a result and for the elements it is made of."""
        return ("[i, 0]", "src[i, :]") if self.axis else ("[0, j]", "src[:, j]")

    def reached(self, elements: Array, shape: tuple[int, int]) -> Array | None:
        lines = np.logical_or.reduce(elements, axis=self.axis, keepdims=True)
        return lines if lines.shape == shape else None

    def symbols(self, kinds: Kinds, names: Sequence[str]) -> dict[str, Arg]:
        kind = kinds["src"]
        assert kind is not None
        return {name: Arg(kind, name) for name in self.steps}


@dataclass(frozen=True)
class Reduce(_Along):
    """dst = f(held, element) over the elements of `src` along an axis, into row or column 0.

    Which elements meet in which order: the first of `orders` whose condition holds. Without any it
    is a scan from the first element, of which no other order can be told apart.
    """

    identity: int = 0
    orders: tuple[tuple[Condition | None, Order], ...] = ()

    def order(self, ops: Ops) -> Order | None:
        """The order in force."""
        return next((o for c, o in self.orders if c is None or c.holds(ops)), None)

    def accumulates(self, ops: Ops) -> DType:
        """The type in which the step is done."""
        order = self.order(ops)
        if order is None:
            return ops.src.dtype
        return ops.dst.dtype if order.wide is None else order.wide(ops.src.dtype, ops.dst.dtype)

    def key(self, ops: Ops) -> Any:
        return ops.src.dtype, ops.dst.dtype, self.order(ops)

    def code(self, meaning: Meaning, ops: Ops, exprs: tuple[Expr, ...]) -> Body:
        (step,), order = exprs, self.order(ops)
        axis, src_kind, dst_kind = self.axis, ops.src.dtype, ops.dst.dtype
        if order is None:
            largest = _extreme_of(step)
            assert largest is not None, f"{meaning.name}: no order is stated"

            def scan(dst: Array, src: Array, *_: Any) -> None:
                if src.size:
                    dst[...] = narrowed(extreme(src, axis, largest=largest), src_kind, dst_kind)

            return scan
        assert isinstance(step, Apply)
        op = ufunc(step.name)
        wide = self.accumulates(ops)
        steps = Steps(op, element(self.identity, wide), wide, narrowed)
        fold = order.fold

        def body(dst: Array, src: Array, *_: Any) -> None:
            if not src.size:
                return
            values = narrowed(src, src_kind, wide)
            if wide.is_integer:  # every order gives the same bits
                total = op.reduce(values, axis=axis, dtype=values.dtype)
            else:
                total = fold(steps, values)
            (dst[:, 0] if axis else dst[0])[...] = narrowed(total, wide, dst_kind)

        return body

    def line(self, meaning: Meaning, texts: Sequence[str]) -> str:
        place, along = self.places
        orders = [f"{c.text if c else 'elsewhere'}: {o.text}" for c, o in self.orders]
        way = f"; {'; '.join(orders)}" if orders else ", from the first on"
        return f"dst{place} = {along} combined by {texts[0]}{way}"


@dataclass(frozen=True)
class ArgReduce(_Along):
    """The place of an element along an axis, and the element: a scan from the first one on.

    The function says whether the next element is taken instead of the one held: one test, or one
    for the value and one for its index.
    """

    kept: Callable[[Array, Ops], Array] | None = None  # an index as it comes through on the way

    @property
    def services(self) -> frozenset[str]:
        return frozenset({"ops"})

    def key(self, ops: Ops) -> Any:
        return ops.src.dtype

    def code(self, meaning: Meaning, ops: Ops, exprs: tuple[Expr, ...]) -> Body:
        axis, kept = self.axis, self.kept
        largest = _extreme_of(exprs[0], takes=True)
        if largest is not None and exprs[0] == exprs[-1]:

            def find(src: Array) -> tuple[Array, Array]:
                index = np.expand_dims(first_extreme(src, axis, largest=largest), axis)
                return np.take_along_axis(src, index, axis), index
        else:
            takes = function_of(meaning.name, meaning.parameters, exprs[0], exprs[-1])

            def find(src: Array) -> tuple[Array, Array]:
                return _scan(src, axis, takes)

        def body(value: Array | None, index: Array, src: Array, tmp: Array, ops: Ops) -> None:
            if not src.size:
                return
            best, place = find(src)
            if value is not None:
                value[...] = best
            index[...] = place if kept is None else kept(place, ops)

        return body

    def line(self, meaning: Meaning, texts: Sequence[str]) -> str:
        place, along = self.places
        value, index = texts[0], texts[-1]
        more = "" if index == value else f", the index where {index}"
        return (
            f"dstIdx{place}, dstVal{place} = index and value of the element of {along} that is "
            f"left when an element replaces the one held where {value}{more}"
        )


def _scan(
    src: Array, axis: int, takes: Callable[[Array, Array], tuple[Array, Array]]
) -> tuple[Array, Array]:
    """Go along an axis element by element."""
    lines = np.moveaxis(src, axis, 0)
    value, index = lines[0], np.zeros(lines.shape[1:], np.int64)
    for place, candidates in enumerate(lines[1:], 1):
        better, moved = takes(value, candidates)
        index = np.where(moved, place, index)
        value = np.where(better, candidates, value)
    return np.expand_dims(value, axis), np.expand_dims(index, axis)
