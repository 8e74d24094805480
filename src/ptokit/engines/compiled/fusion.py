"""Loops that follow each other over the same elements, as one: nothing is read that was just made.

A chain of elementwise instructions goes over its tiles once per instruction, and memory takes most
of the time. Where all operands of two such calls are the same places or lie apart, element for
element, it makes no difference whether the second call begins when the first one has ended or
follows it from vector to vector. Every element is computed as before, so the bytes are the same;
what a later part of the chain overwrites is stored once.

A chain is worth a function of its own where it comes again and again, as in a loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.engines.compiled.lanes import Lanes, stored, widest
from ptokit.engines.compiled.loops import (
    APART,
    DENSE,
    ONE,
    VECTOR,
    Pointwise,
    as_element,
    over_outer_axes,
    spread,
)
from ptokit.engines.compiled.memories import Memories
from ptokit.engines.compiled.natives import Streamed
from ptokit.engines.compiled.text import Function, Value
from ptokit.isa.expr import Expr

_LONGEST = 8  # parts of a chain
_OFTEN = 8  # times that a chain occurs, to be compiled


class View(NamedTuple):
    """An operand of some calls: where it lies, and how it goes along the axes."""

    memory: int
    offset: int
    strides: tuple[int, ...]
    way: str
    size: int  # bytes of an element

    def span(self, extents: tuple[int, ...]) -> tuple[int, int]:
        """The bytes between its first and its last one."""
        low, high = _reach(self.strides, extents)
        return self.offset + low, self.offset + high + self.size


@lru_cache(maxsize=1 << 12)
def _reach(strides: tuple[int, ...], extents: tuple[int, ...]) -> tuple[int, int]:
    """How far elements lie before and behind the first one: loops ask ever the same."""
    reach = [(n - 1) * s for n, s in zip(extents, strides, strict=True)]
    return sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)


class Part(NamedTuple):
    """A call of a chain."""

    kernel: Pointwise
    extents: tuple[int, ...]
    views: tuple[View, ...]  # the result first
    numbers: tuple[int, ...]

    def cut(self, extents: tuple[int, ...]) -> Part | None:
        """The same elements along other axes; None where they are others."""
        if extents == self.extents:
            return self
        if (
            len(self.extents) != 1
            or len(extents) != 2
            or extents[0] * extents[1] != self.extents[0]
        ):
            return None
        views = (v._replace(strides=(extents[1] * v.strides[0], *v.strides)) for v in self.views)
        return self._replace(extents=extents, views=tuple(views))


def part_of(kernel: Pointwise, words: Sequence[int]) -> Part:
    """What a record of the stream says."""
    axes, at = kernel.axes, kernel.axes
    views: list[View] = []
    for _, kind, way in kernel.arrays:
        memory, offset, *outer = words[at : at + 1 + axes]
        at += 1 + axes
        inner = 0 if way is ONE else kind.itemsize
        if way is APART:
            inner = words[at]
            at += 1
        views.append(View(memory, offset, (*outer, inner), way, kind.itemsize))
    return Part(kernel, tuple(words[:axes]), tuple(views), tuple(words[at:]))


def joined(chain: Sequence[Part], part: Part, memories: Memories) -> list[Part] | None:
    """A chain with one more part; None where that would not be the same."""
    if len(chain) == _LONGEST or memories.is_users(chain[-1].views[0].memory):
        return None  # what is stored to global memory is the end of what came before
    extents = max((chain[0].extents, part.extents), key=len)
    parts = [each.cut(extents) for each in (*chain, part)]
    found = [each for each in parts if each is not None]
    if len(found) < len(parts):
        return None
    last = found[-1]
    for before in found[:-1]:
        for number, view in enumerate(last.views):
            for earlier, other in enumerate(before.views):
                is_read = number > 0 and earlier > 0
                if not is_read and view != other and _meet(view, other, extents, memories):
                    return None
    return found


def _meet(view: View, other: View, extents: tuple[int, ...], memories: Memories) -> bool:
    if view.memory != other.memory and memories.are_apart(view.memory, other.memory):
        return False
    (low, high), (begin, end) = view.span(extents), other.span(extents)
    if view.memory != other.memory:  # arrays of the user may be parts of one
        apart = memories.begin(other.memory) - memories.begin(view.memory)
        begin, end = begin + apart, end + apart
    return low < end and begin < high


@dataclass(frozen=True)
class Step:
    """A part of a function: views and numbers by their place in the arguments."""

    expr: Expr
    to: tuple[DType, int]
    sources: tuple[tuple[str, DType, int], ...]
    numbers: tuple[tuple[str, DType, int], ...]


@dataclass(frozen=True)
class Chain:
    """A function of the library: expressions one after the other, vector by vector."""

    steps: tuple[Step, ...]
    views: tuple[tuple[int, str], ...]  # sizes of their elements, and how they go
    axes: int
    lanes: int
    is_even: bool

    @property
    def operands(self) -> Sequence[int]:
        return [self.axes + n * (2 + self.axes) for n in range(len(self.views))]

    def text(self, name: str) -> str:
        code = Function(name)
        extents = [code.word(axis) for axis in range(self.axes)]
        at, places, strides = self.axes, list[Value](), list[list[Value]]()
        for _ in self.views:
            places.append(code.pointer(at))
            strides.append([code.word(at + 2 + axis) for axis in range(self.axes)])
            at += 2 + self.axes
        for number, (size, way) in enumerate(self.views):
            if way is DENSE:  # a constant, so that vectors are loaded as such
                strides[number][-1] = str(size)
        numbers = {
            index: as_element(code, kind, code.word(at + index))
            for step in self.steps
            for _, kind, index in step.numbers
        }

        def line(begins: Sequence[Value]) -> None:
            self._line(code, begins, [s[-1] for s in strides], extents[-1], numbers)

        over_outer_axes(code, places, strides, extents, line)
        return code.text()

    def _line(
        self,
        code: Function,
        begins: Sequence[Value],
        strides: Sequence[Value],
        count: Value,
        numbers: dict[int, Value],
    ) -> None:
        whole = count if self.is_even else code.number("and", count, str(-self.lanes))
        self._walk(code, begins, strides, ("0", whole), self.lanes, numbers)
        if not self.is_even:
            self._walk(code, begins, strides, (whole, count), 1, numbers)

    def _walk(
        self,
        code: Function,
        begins: Sequence[Value],
        strides: Sequence[Value],
        bounds: tuple[Value, Value],
        lanes: int,
        numbers: dict[int, Value],
    ) -> None:
        once: dict[int, tuple[str, Value]] = {}
        for _, kind, view in (source for step in self.steps for source in step.sources):
            if self.views[view][1] is ONE and view not in once:
                one = code.do(f"load {stored(kind)}, ptr {begins[view]}, align 1")
                once[view] = stored(kind), spread(code, kind, lanes, one)
        same = {
            index: spread(code, kind, lanes, numbers[index])
            for step in self.steps
            for _, kind, index in step.numbers
        }

        def body(index: Value) -> Sequence[Value]:
            held = dict(once)  # what lies in each view, as it is stored, with its type
            plain = Lanes(code, lanes, {})

            def place(view: int) -> Value:
                return code.behind(begins[view], code.number("mul", index, strides[view]))

            def taken(kind: DType, view: int) -> Value:
                element = stored(kind)
                if view not in held:
                    loaded = f"load {plain.vector(element)}, ptr {place(view)}, align 1"
                    held[view] = element, code.do(loaded)
                before, value = held[view]
                if before != element:
                    types = plain.vector(before), plain.vector(element)
                    value = code.do(f"bitcast {types[0]} {value} to {types[1]}")
                return plain.taken(kind, value)

            for step in self.steps:
                given = {name: taken(kind, view) for name, kind, view in step.sources}
                given |= {name: plain.taken(kind, same[n]) for name, kind, n in step.numbers}
                found, (kind, view) = Lanes(code, lanes, given), step.to
                held[view] = stored(kind), found.given(kind, found.value(step.expr))
            for view in dict.fromkeys(step.to[1] for step in self.steps):
                element, value = held[view]
                code.act(f"store {plain.vector(element)} {value}, ptr {place(view)}, align 1")
            return ()

        code.loop(*bounds, str(lanes), body)


def fused(chain: Sequence[Part]) -> tuple[Chain, list[int]]:
    """The function of a chain, and the words it is handed."""
    extents = chain[0].extents
    views = dict.fromkeys(view for part in chain for view in part.views)
    places = {view: number for number, view in enumerate(views)}
    steps: list[Step] = []
    numbers: list[int] = []
    for part in chain:
        to, *sources = (
            (label, kind, places[view])
            for (label, kind, _), view in zip(part.kernel.arrays, part.views, strict=True)
        )
        given = [
            (label, kind, len(numbers) + place)
            for place, (label, kind) in enumerate(part.kernel.numbers)
        ]
        numbers += part.numbers
        steps.append(Step(part.kernel.expr, to[1:], tuple(sources), tuple(given)))
    lanes = 1
    if all(view.way is not APART for view in views):
        wide = max(widest(p.kernel.expr, *(kind for _, kind, _ in p.kernel.arrays)) for p in chain)
        lanes = 1 << min(max(1, VECTOR // min(wide, 4)), extents[-1]).bit_length() - 1
    kernel = Chain(
        tuple(steps),
        tuple((view.size, view.way) for view in views),
        len(extents),
        lanes,
        extents[-1] % lanes == 0,
    )
    words = [*extents]
    for view in views:
        words += [view.memory, view.offset, *view.strides]
    return kernel, [*words, *numbers]


class Record(NamedTuple):
    """A call of the stream."""

    kernel: Streamed
    words: Sequence[int]


def shortened(stretches: Sequence[Sequence[Record]], memories: Memories) -> list[list[Record]]:
    """The same calls with chains in place of those that follow each other."""
    found = [_chains(calls, memories) for calls in stretches]
    often = Counter(chain.kernel for calls in found for chain, _ in calls if chain)
    return [
        [
            each
            for chain, calls in parts
            for each in ([chain] if chain and often[chain.kernel] >= _OFTEN else calls)
        ]
        for parts in found
    ]


def _chains(
    calls: Iterable[Record], memories: Memories
) -> list[tuple[Record | None, list[Record]]]:
    """Calls in order: those that make up a chain with the one that does as much."""
    found: list[tuple[Record | None, list[Record]]] = []
    chain: list[Part] = []
    pending: list[Record] = []

    def end() -> None:
        if pending:
            whole = Record(*fused(chain)) if len(chain) > 1 else None
            found.append((whole, pending.copy()))
        chain.clear()
        pending.clear()

    for call in calls:
        if not isinstance(call.kernel, Pointwise):
            end()
            found.append((None, [call]))
            continue
        part = part_of(call.kernel, call.words)
        longer = joined(chain, part, memories) if chain else None
        if longer is None:
            end()
            longer = [part]
        chain[:] = longer
        pending.append(call)
    end()
    return found
