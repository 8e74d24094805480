"""Which instruction carries out an operation: one that means it and whose rules take the operands.

Nothing is listed here. What an instruction means is an expression over elements (`isa/expr.py`);
what an operation of the value style means is one, too, and any record whose expression is the same
will do. Its legality rules then say whether it takes the tiles at hand, and which result and
temporaries it wants: of a few likely ones, the first that breaks no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import IntEnum
from functools import cache, cached_property
from itertools import permutations, product
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.tiles import TileSpec
from ptokit.ir.scratch import chosen_scratch
from ptokit.ir.types import on_target
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.expr import Arg, Expr, Given, resolved, walk
from ptokit.isa.facts import Facts, Ops, ScalarFacts, TileFacts, Unknown
from ptokit.isa.masks import Packed
from ptokit.isa.meaning import Each, Form, Reduce, kinds_of
from ptokit.isa.spec import Insn, Operand
from ptokit.isa.targets import Target
from ptokit.isa.verify import verify

Scalar = Callable[..., Expr]
NUMBER = None  # stands for the type of a source that is a number


@dataclass(frozen=True)
class Wanted:
    """An operation: a function of single elements, and the axis along which it reduces, if any."""

    name: str
    means: Scalar
    axis: int | None = None


def as_does(name: str, insn: Insn, axis: int | None = None, **attrs: Any) -> Wanted:
    """What an instruction does, with tiles, numbers, columns or rows in place of its sources."""
    meaning = insn.means
    assert meaning is not None
    given = {a.name: a.default for a in insn.attrs} | attrs

    def means(*elements: Expr) -> Expr:
        rest = [given[each] for each in meaning.parameters[len(elements) :]]
        found = meaning.scalar(*elements, *rest)
        assert isinstance(found, Expr)  # one result
        return found

    return Wanted(name, means, axis)


@dataclass(frozen=True)
class Chosen:
    """An instruction with the places of the sources and the types of what it needs beside them."""

    insn: Insn
    places: tuple[str, ...]  # the operand for each source
    attrs: tuple[Any, ...]
    result: TileSpec
    scratch: Mapping[str, TileSpec]

    def operands(
        self, sources: tuple[Any, ...], made: Callable[[TileSpec], Any]
    ) -> tuple[Any, Any]:
        """The result, and all operands in the order of the record; `made` makes tiles."""
        result = made(self.result)
        given = dict(zip(self.places, sources, strict=True))
        given |= {name: made(spec) for name, spec in self.scratch.items()}
        outs = {o.name: result for o in self.insn.operands if o.role == "out"}
        return result, tuple((given | outs).get(o.name) for o in self.insn.operands)


@cache
def choose(
    wanted: Wanted,
    sources: tuple[TileSpec | None, ...],
    results: tuple[TileSpec, ...],
    target: Target,
) -> Chosen | None:
    """The first instruction that means what is wanted and takes these tiles; None: there is none.

    `results` are types that the result may have, the best first.
    """
    for insn in _with_form(wanted.axis):
        if target.name not in insn.targets:
            continue
        for places, attrs, result in product(
            _orders(insn, sources), _template_arguments(insn), results
        ):
            call = _Call(insn, dict(zip(places, sources, strict=True)), attrs, result, target)
            found = call.accepted(wanted, places) if call.may_mean(wanted, places) else None
            if found is not None:
                return found
    return None


@cache
def fitting(
    insn: Insn,
    sources: tuple[TileSpec | None, ...],
    result: TileSpec,
    target: Target,
    attrs: tuple[tuple[str, Any], ...] = (),
) -> Chosen | None:
    """An instruction with sources in its own order; None: its rules do not take these tiles."""
    if target.name not in insn.targets:
        return None
    given = {a.name: a.default for a in insn.attrs} | dict(attrs)
    read = [o.name for o in insn.operands if o.role == "in"][: len(sources)]
    call = _Call(insn, dict(zip(read, sources, strict=True)), given, result, target)
    return call.accepted(None, tuple(read))


@cache
def _with_form(axis: int | None) -> tuple[Insn, ...]:
    """The instructions that go over elements, or reduce along an axis, the plainest first."""

    def goes(form: Form) -> bool:
        return isinstance(form, Each | Packed) if axis is None else _reduces(form, axis)

    found = [i for i in INSTRUCTIONS.values() if i.means is not None and goes(i.means.form)]
    return tuple(sorted(found, key=lambda i: (len(i.operands), len(i.attrs))))


def _reduces(form: Form, axis: int) -> bool:
    return isinstance(form, Reduce) and form.axis == axis


def _orders(insn: Insn, sources: tuple[TileSpec | None, ...]) -> Iterator[tuple[str, ...]]:
    """The operands for which the sources can stand, in every order."""
    read = [o for o in insn.operands if o.role == "in" and not o.optional]
    if len(read) == len(sources):
        for order in permutations(read):
            if all(_holds(insn, o, s) for o, s in zip(order, sources, strict=True)):
                yield tuple(o.name for o in order)


def _holds(insn: Insn, operand: Operand, source: TileSpec | None) -> bool:
    if source is NUMBER:
        return "scalar" in operand.kinds
    # A comparison takes the first element of a tile in the place of a number, and no other.
    is_each = insn.means is not None and isinstance(insn.means.form, Each)
    return operand.kinds[0] == "tile" or (is_each and "tile" in operand.kinds)


def _template_arguments(insn: Insn) -> list[dict[str, Any]]:
    """The defaults first, then all modes that may be chosen."""
    choices = [
        (a.default, *(m for m in a.choices or a.type if m != a.default))
        if issubclass(a.type, IntEnum)
        else (a.default,)
        for a in insn.attrs
    ]
    names = [a.name for a in insn.attrs]
    return [dict(zip(names, values, strict=True)) for values in product(*choices)]


@dataclass(frozen=True)
class _Call:
    """An instruction with its sources and its result, each in a place of its own."""

    insn: Insn
    sources: Mapping[str, TileSpec | None]
    attrs: dict[str, Any]
    result: TileSpec
    target: Target

    @cached_property
    def named(self) -> dict[str, TileSpec | None]:
        return {
            **self.sources,
            **{o.name: self.result for o in self.insn.operands if o.role == "out"},
        }

    @cached_property
    def ops(self) -> Ops:
        found: dict[str, Facts | None] = {o.name: None for o in self.insn.operands}
        for lease, (name, spec) in enumerate(self.named.items(), 1):
            found[name] = (
                ScalarFacts()
                if spec is None
                else TileFacts(on_target(spec, self.target.left_layout), address=0, lease=lease)
            )
        return Ops(found, self.attrs, self.target, "auto")

    def _elements(self, wanted: Wanted, places: tuple[str, ...]) -> list[Arg] | None:
        """What the wanted function is asked about; None: the instruction looks at other things."""
        meaning = self.insn.means
        assert meaning is not None
        names = meaning.parameters if wanted.axis is not None else places
        symbols = meaning.form.symbols(kinds_of(self.ops), names)
        if len(symbols) != len(names) or not {*meaning.parameters} <= {*names, *self.attrs}:
            return None
        return [symbols[name] for name in names]

    def may_mean(self, wanted: Wanted, places: tuple[str, ...]) -> bool:
        """Whether it stores what is wanted, whatever is settled by places and temporaries."""
        elements = self._elements(wanted, places)
        if elements is None or self.insn.means is None or len(self.insn.means.outs) != 1:
            return False
        (theirs,) = self.insn.means.traced(kinds_of(self.ops), self.attrs)
        mine = {*_ways(wanted.means(*elements))}
        return any(each in mine for each in _ways(theirs))

    def accepted(self, wanted: Wanted | None, places: tuple[str, ...]) -> Chosen | None:
        """The call with as few temporaries as break no rule."""
        insn, named = self.insn, self.named
        for form in sorted(insn.forms, key=len):
            missing = [insn.operand(name) for name in form if name not in named]
            if any(o.role != "tmp" for o in missing) or not set(named) <= set(form):
                continue
            ops, scratch = self.ops, dict[str, TileSpec]()
            if missing:
                spec, ops = chosen_scratch(insn, missing, ops)
                scratch = {o.name: spec for o in missing}
            is_it = wanted is None or self._means(wanted, places, ops)
            if is_it and not verify(insn, ops, advise=False):
                return Chosen(insn, places, tuple(self.attrs.values()), self.result, scratch)
        return None

    def _means(self, wanted: Wanted, places: tuple[str, ...], ops: Ops) -> bool:
        elements = self._elements(wanted, places)
        assert elements is not None
        assert self.insn.means is not None
        with suppress(Unknown):  # what it means is known only when it runs
            mine = resolved(wanted.means(*elements), lambda condition: condition.holds(ops))
            return (mine,) == self.insn.means.expressions(ops)
        return False


def _ways(expr: Expr) -> Iterator[Expr]:
    """An expression with its choices settled, in every way."""
    conditions = dict.fromkeys(n.condition for n in walk(expr) if isinstance(n, Given))
    for answers in product((True, False), repeat=len(conditions)):
        settled = dict(zip(conditions, answers, strict=True))
        yield resolved(expr, settled.__getitem__)
