"""Scopes of vector code in recorded launches: noted as plain data, and written again as text.

A scope is one call (recording.py). Its operations are items like calls, with loops found again
(rolling.py); beside addresses and whole numbers, their numbers name the values that they use: each
value has the number under which a run of the scope makes it. So a value that goes up with the
rounds of a loop is one of its own round or of the round before, which the loop then hands on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ptokit.base.location import Location
from ptokit.base.namedtuple import NamedTuple
from ptokit.frontend.lowering.numbers import Number
from ptokit.frontend.lowering.tracer import Tracer
from ptokit.ir.attributes import Attribute
from ptokit.ir.core import Block, Value
from ptokit.ir.dialects.micro import SCOPE
from ptokit.ir.micro_calls import element_of
from ptokit.ir.types import INDEX, PtrType, Type
from ptokit.machine.registers import LocalPointer
from ptokit.machine.vector_unit import Work
from ptokit.native.rolling import Item, Loop, rolled


class AValue(NamedTuple):
    """Made in the scope. Its number: which of its values it is."""


class AnAddress(NamedTuple):
    """Its number: the byte."""

    type: PtrType


class AWhole(NamedTuple):
    """A whole number of a type."""

    type: Type


class AGiven(NamedTuple):
    """What is written as it is: a real number."""

    value: Any
    type: Type


class AnOperation(NamedTuple):
    """All of an operation but its numbers."""

    name: str
    attrs: tuple[tuple[str, Attribute], ...]
    operands: tuple[tuple[str, Any], ...]  # labels, and kinds
    results: tuple[tuple[str, Type], ...]
    at: Location


class AScope(NamedTuple):
    """Its numbers: those of its items, one after the other."""

    items: tuple[Any, ...]  # operations and loops of them
    counts: tuple[int, ...]  # how many numbers each has

    @property
    def size(self) -> int:
        return sum(self.counts)


def noted(scope: Work) -> tuple[AScope, list[int]]:
    """A scope that was recorded, and its numbers."""
    code = scope.source
    assert code is not None
    given = dict(zip(code.given, scope.values, strict=True))
    made: dict[Value, int] = {}
    items: list[Item] = []
    for op, site in zip(code.block.ops, code.sites, strict=True):
        kinds: list[tuple[str, Any]] = []
        numbers: list[int] = []
        for label, value in zip(op.labels, op.operands, strict=True):
            kind, found = _noted(value, made, given)
            kinds.append((label, kind))
            numbers += found
        results = tuple(zip(op.result_labels, (v.type for v in op.results), strict=True))
        made |= {value: len(made) + n for n, value in enumerate(op.results)}
        shape = AnOperation(op.name, tuple(op.attrs.items()), tuple(kinds), results, site.location)
        items.append(Item(shape, tuple(numbers)))
    with_loops = rolled(items)
    found = with_loops if _Walk().allows(with_loops) else items
    whole = AScope(tuple(i.shape for i in found), tuple(len(i.numbers) for i in found))
    return whole, [n for item in found for n in item.numbers]


def _noted(
    value: Value, made: Mapping[Value, int], values: Mapping[Value, Any]
) -> tuple[Any, list[int]]:
    """The kind of an operand, and its numbers."""
    if value in made:
        return AValue(), [made[value]]
    given, type_ = values[value], value.type
    if isinstance(given, LocalPointer):
        assert isinstance(type_, PtrType)
        return AnAddress(type_), [given.offset]
    if isinstance(given, int):
        return AWhole(type_), [int(given)]
    return AGiven(given, type_), []


def _kinds(shape: Any) -> Iterator[Any]:
    """The kind of each number."""
    if isinstance(shape, Loop | AScope):
        for each in shape.body if isinstance(shape, Loop) else shape.items:
            yield from _kinds(each)
        return
    yield from (kind for _, kind in shape.operands if not isinstance(kind, AGiven))


def _values(shape: Any) -> int:
    """How many values a run of it makes."""
    if isinstance(shape, Loop):
        return shape.rounds * sum(map(_values, shape.body))
    return len(shape.results)


def _parts(shape: Loop, numbers: Sequence[Any]) -> Iterator[tuple[Any, Sequence[Any]]]:
    """The items of a round, and the numbers of each."""
    at = 0
    for each, count in zip(shape.body, shape.counts, strict=True):
        yield each, numbers[at : at + count]
        at += count


def _handed_on(loop: Loop, numbers: Sequence[Any], base: int) -> list[int]:
    """The values before a loop that stand for those of the round before, in its first round."""
    every = zip(_kinds(loop), loop.ways, numbers, strict=True)
    found = (n for kind, way, n in every if isinstance(kind, AValue) and way.step and n < base)
    return list(dict.fromkeys(found))


class _Walk:
    """Goes through items as they are written, to see that each value is there where it is used."""

    def __init__(self) -> None:
        self._next = 0  # the number of the next value

    def allows(self, items: Sequence[Item]) -> bool:
        known = set[int]()
        return all(self._item(each.shape, each.numbers, known) for each in items)

    def _item(self, shape: Any, numbers: Sequence[int], known: set[int]) -> bool:
        if isinstance(shape, Loop):
            return self._loop(shape, numbers, known)
        used = zip(_kinds(shape), numbers, strict=True)
        if any(isinstance(kind, AValue) and n not in known for kind, n in used):
            return False
        known.update(range(self._next, self._next + _values(shape)))
        self._next += _values(shape)
        return True

    def _loop(self, loop: Loop, numbers: Sequence[int], known: set[int]) -> bool:
        base, each_round = self._next, sum(map(_values, loop.body))
        for kind, way, first in zip(_kinds(loop), loop.ways, numbers, strict=True):
            if isinstance(kind, AnAddress) and way.step % element_of(kind.type.element).itemsize:
                return False
            if not isinstance(kind, AValue):
                continue
            if way.turns or way.step not in (0, each_round) or (not way.step and first >= base):
                return False
        inside = set(known)
        if not all(self._item(*part, inside) for part in _parts(loop, numbers)):
            return False
        handed_on = _handed_on(loop, numbers, base)
        if any(n + each_round not in inside for n in handed_on):
            return False
        known.update(n + each_round * loop.rounds for n in handed_on)
        self._next = base + each_round * loop.rounds
        return True


class ScopeWriter:
    """Writes a scope into the block in hand."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer, self._emitter = tracer, tracer.emitter
        self._next = 0
        self._values: dict[int, Any] = {}
        self._pointers: dict[Any, Any] = {}

    def write(self, scope: AScope, numbers: Sequence[Any], at: Location) -> None:
        # Addresses become pointers before the scope; inside, pointers only move on.
        given = [
            self._pointer(kind, n) if isinstance(kind, AnAddress) else n
            for kind, n in zip(_kinds(scope), numbers, strict=True)
        ]
        block, start = Block(), 0
        with self._emitter.region(block), self._tracer.micro.scope():
            for shape, count in zip(scope.items, scope.counts, strict=True):
                self._item(shape, given[start : start + count])
                start += count
        self._emitter.location = at
        self._emitter.emit(SCOPE.name, [], [], {}, [block])

    def _pointer(self, kind: AnAddress, address: Any) -> Any:
        key = kind, address if isinstance(address, int) else id(address.value)
        if key not in self._pointers:
            element, space = element_of(kind.type.element), kind.type.space
            self._pointers[key] = self._tracer.micro.castptr(address, element, space)
        return self._pointers[key]

    def _item(self, shape: Any, numbers: Sequence[Any]) -> None:
        if isinstance(shape, Loop):
            self._loop(shape, numbers)
        else:
            self._operation(shape, numbers)

    def _operation(self, shape: AnOperation, numbers: Sequence[Any]) -> None:
        self._emitter.location = shape.at
        micro, rest = self._tracer.micro, iter(numbers)
        pairs: list[tuple[str, Value]] = []
        for label, kind in shape.operands:
            if isinstance(kind, AGiven):
                value = micro.operand(kind.value, kind.type)
            elif isinstance(kind, AValue):
                value = self._values[next(rest)]
            else:
                value = micro.operand(next(rest), kind.type)
            pairs.append((label, value))
        op = self._emitter.emit(shape.name, pairs, shape.results, dict(shape.attrs))
        for made in op.results:
            self._values[self._next] = made
            self._next += 1

    def _loop(self, loop: Loop, numbers: Sequence[Any]) -> None:
        base, each_round = self._next, sum(map(_values, loop.body))
        handed_on = _handed_on(loop, numbers, base)
        here = self._emitter.location
        bounds = [self._emitter.constant(n) for n in (0, loop.rounds, 1)]
        inits = [self._values[n] for n in handed_on]
        region = Block()
        region.args.append(Value("i", INDEX, region, here))
        region.args += [Value("v", each.type, region, here) for each in inits]
        outside = self._values
        self._values = {**outside, **dict(zip(handed_on, region.args[1:], strict=True))}
        with self._emitter.region(region):
            counter = Number(self._emitter, region.args[0], nonnegative=True)
            for part in _parts(loop, list(_in_round(loop, numbers, counter))):
                self._item(*part)
            ends = [self._values[n + each_round] for n in handed_on]
            self._emitter.emit("scf.yield", [("args", value) for value in ends])
        operands = [*zip(("lower", "upper", "step"), bounds, strict=True)]
        operands += [("inits", value) for value in inits]
        results = [("results", each.type) for each in inits]
        self._emitter.location = here
        op = self._emitter.emit("scf.for", operands, results, {}, [region])
        left = [n + each_round * loop.rounds for n in handed_on]
        self._values = {**outside, **dict(zip(left, op.results, strict=True))}
        self._next = base + each_round * loop.rounds


def _in_round(loop: Loop, numbers: Sequence[Any], counter: Number) -> Iterator[Any]:
    """The numbers of a round; those of values are the ones of the first."""
    for kind, way, first in zip(_kinds(loop), loop.ways, numbers, strict=True):
        if isinstance(kind, AValue) or not way.step:
            yield first
            continue
        step = way.step
        if isinstance(kind, AnAddress):
            step //= element_of(kind.type.element).itemsize
        yield first + (counter % way.turns if way.turns else counter) * step
