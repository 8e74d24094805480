"""Loops that follow each other over the same elements, as one: nothing is read that was just made.

A chain of elementwise instructions goes over its tiles once per instruction, and memory takes most
of the time. Where all operands of two such calls are the same places or lie apart, element for
element, it makes no difference whether the second call begins when the first one has ended or
follows it from vector to vector. Every element is computed as before, so the bytes are the same;
what a later part of the chain overwrites is stored once.

The rows that a chain makes may be reduced on the way: what comes of a row is stored at its end, so
nothing of the chain may look at it. Loops over other elements that stand between two parts of a
chain wait until it has ended, where they do not meet what is moved in front of them.

A chain is worth a function of its own where it comes again and again, as in a loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.namedtuple import NamedTuple
from ptokit.engines.compiled.kinds import stored, widest
from ptokit.engines.compiled.lanes import Lanes
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
from ptokit.engines.compiled.reductions import (
    COLUMNS,
    ROWS,
    SOURCE,
    TO,
    Extreme,
    RegisterSum,
)
from ptokit.engines.compiled.text import Function, Value
from ptokit.isa.expr import F64, Expr, walk

_LONGEST = 8  # parts of a chain
_FARTHEST = 3  # chains that a part is moved in front of, at most
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


Reduction = Extreme | RegisterSum


class Part(NamedTuple):
    """A call of a chain."""

    kernel: Pointwise | Reduction
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
    axes, at, extents = kernel.axes, kernel.axes, kernel.extents(words)
    views: list[View] = []
    for _, kind, way in kernel.arrays:
        memory, offset, *outer = words[at : at + 1 + axes]
        at += 1 + axes
        inner = 0 if way is ONE else kind.itemsize
        if way is APART:
            inner = words[at]
            at += 1
        strides = (*outer, inner)[axes - len(extents) :]
        views.append(View(memory, offset, strides, way, kind.itemsize))
    return Part(kernel, extents, tuple(views), tuple(words[at:]))


def _reduced(kernel: Reduction, words: Sequence[int]) -> Part:
    """The same of a reduction: one element for each row, and the row."""
    size = kernel.kind.itemsize
    (memory, offset, step), (source, begin, row) = (words[at : at + 3] for at in (TO, SOURCE))
    to, line = (step, 0), (row, size)
    views = View(memory, offset, to, ONE, size), View(source, begin, line, DENSE, size)
    return Part(kernel, (words[ROWS], words[COLUMNS]), views, ())


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
        if isinstance(before.kernel, Reduction) and _disturb(last, before, memories):
            return None
        for number, view in enumerate(last.views):
            for earlier, other in enumerate(before.views):
                is_read = number > 0 and earlier > 0
                if not is_read and view != other and _meet(view, other, extents, memories):
                    return None
    if any(isinstance(each.kernel, Reduction) for each in found) and not _goes_by_rows(found):
        return None
    return found


def _disturb(part: Part, reduction: Part, memories: Memories) -> bool:
    """Whether a part behind a reduction looks at its result, or writes to either side of it."""
    to, source = reduction.views
    extents = part.extents
    looks = any(_meet(view, to, extents, memories) for view in part.views)
    return looks or _meet(part.views[0], source, extents, memories)


def _goes_by_rows(chain: Sequence[Part]) -> bool:
    """Whether rows are made of whole vectors, and reductions are of rows that a loop has."""
    lanes, _ = _vectors(chain)
    columns, known = chain[0].extents[-1], set[View]()
    for part in chain:
        if isinstance(part.kernel, Reduction):
            is_whole = columns % (lanes * part.kernel.vectors) == 0
            if part.views[1] not in known or part.kernel.lanes != lanes or not is_whole:
                return False
        elif part.views[0].way is not DENSE:
            return False
        known.update(part.views)
    return True


def _are_apart(part: Part, chain: Sequence[Part], memories: Memories) -> bool:
    """Whether it makes no difference which of them comes first."""
    return not any(
        (number == 0 or earlier == 0) and _meets(part, view, each, other, memories)
        for each in chain
        for number, view in enumerate(part.views)
        for earlier, other in enumerate(each.views)
    )


def _meets(part: Part, view: View, each: Part, other: View, memories: Memories) -> bool:
    spans = view.span(part.extents), other.span(each.extents)
    return _spans_meet((view.memory, spans[0]), (other.memory, spans[1]), memories)


def _meet(view: View, other: View, extents: tuple[int, ...], memories: Memories) -> bool:
    spans = view.span(extents), other.span(extents)
    return _spans_meet((view.memory, spans[0]), (other.memory, spans[1]), memories)


Span = tuple[int, tuple[int, int]]  # a memory, and bytes there


def _spans_meet(one: Span, two: Span, memories: Memories) -> bool:
    (memory, (low, high)), (other, (begin, end)) = one, two
    if memory != other:
        if memories.are_apart(memory, other):
            return False
        apart = memories.begin(other) - memories.begin(memory)  # parts of one array of the user
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
class Reduced:
    """A reduction that is a part of a function."""

    kernel: Reduction
    to: int
    source: int


@dataclass(frozen=True)
class Chain:
    """A function of the library: expressions one after the other, vector by vector."""

    steps: tuple[Step | Reduced, ...]
    views: tuple[tuple[int, str], ...]  # sizes of their elements, and how they go
    axes: int
    lanes: int
    is_even: bool

    @property
    def operands(self) -> Sequence[int]:
        return [self.axes + n * (2 + self.axes) for n in range(len(self.views))]

    @property
    def _loops(self) -> list[Step]:
        return [step for step in self.steps if isinstance(step, Step)]

    @property
    def _reductions(self) -> list[Reduced]:
        return [step for step in self.steps if isinstance(step, Reduced)]

    @property
    def _is_long(self) -> bool:
        """Whether there are functions of doubles: written out once for each vector of a sum, they
        are most of what there is to compile, and loading what was stored is nothing beside them."""
        return any(node.kind is F64 for step in self._loops for node in walk(step.expr))

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
            for step in self._loops
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
        for _, kind, view in (source for step in self._loops for source in step.sources):
            if self.views[view][1] is ONE and view not in once:
                one = code.do(f"load {stored(kind)}, ptr {begins[view]}, align 1")
                once[view] = stored(kind), spread(code, kind, lanes, one)
        same = {
            index: spread(code, kind, lanes, numbers[index])
            for step in self._loops
            for _, kind, index in step.numbers
        }
        plain = Lanes(code, lanes, {})
        reductions = self._reductions
        group = max([1, *(each.kernel.vectors for each in reductions)])

        def vector(index: Value) -> list[Value]:
            """Do all steps; what is reduced, as it is stored."""
            held = dict(once)  # what lies in each view, as it is stored, with its type
            kept: list[Value] = []

            def place(view: int) -> Value:
                return code.at(begins[view], index, strides[view])

            def taken(element: str, view: int) -> Value:
                if view not in held:
                    loaded = f"load {plain.vector(element)}, ptr {place(view)}, align 1"
                    held[view] = element, code.do(loaded)
                before, value = held[view]
                if before == element:
                    return value
                types = plain.vector(before), plain.vector(element)
                return code.do(f"bitcast {types[0]} {value} to {types[1]}")

            for step in self.steps:
                if isinstance(step, Reduced):
                    kept.append(taken(stored(step.kernel.kind), step.source))
                    continue
                given = {n: plain.taken(k, taken(stored(k), view)) for n, k, view in step.sources}
                given |= {name: plain.taken(kind, same[n]) for name, kind, n in step.numbers}
                found, (kind, view) = Lanes(code, lanes, given), step.to
                held[view] = stored(kind), found.given(kind, found.value(step.expr))
            for view in dict.fromkeys(step.to[1] for step in self._loops):
                element, value = held[view]
                code.act(f"store {plain.vector(element)} {value}, ptr {place(view)}, align 1")
            return kept

        def again(index: Value, step: Reduced) -> Value:
            """What is reduced, from where it was stored; no step behind has changed it there."""
            view = step.source
            place = code.at(begins[view], index, strides[view])
            return code.do(f"load {plain.vector(stored(step.kernel.kind))}, ptr {place}, align 1")

        def stored_only(index: Value) -> Sequence[Value]:
            vector(index)
            return ()

        def body(index: Value, *sums: Value) -> Sequence[Value]:
            places = [code.number("add", index, str(lanes * n)) for n in range(group)]
            if group > 1 and self._is_long:
                end = code.number("add", index, str(lanes * group))
                code.loop(index, end, str(lanes), stored_only)
                made = [[again(i, step) for i in places] for step in reductions]
            else:
                made = [*zip(*map(vector, places), strict=True)]
            found: list[Value] = []
            for step, sum_, values in zip(reductions, sums, made, strict=True):
                size = step.kernel.vectors
                for first in range(0, group, size):
                    some = values[first : first + size]
                    sum_ = step.kernel.combined(code, sum_, some, lanes)
                found.append(sum_)
            return found

        firsts = [each.kernel.begin(code, lanes) for each in reductions]
        sums = code.loop(*bounds, str(lanes * group), body, firsts)
        for each, sum_ in zip(reductions, sums, strict=True):
            to, line = begins[each.to], begins[each.source]
            each.kernel.leave(code, sum_, lanes, to, line, bounds[1])


def _vectors(chain: Sequence[Part]) -> tuple[int, bool]:
    """The lanes of a chain, and whether they are all of its elements."""
    columns, loops = chain[0].extents[-1], [p for p in chain if isinstance(p.kernel, Pointwise)]
    lanes = 1
    if all(view.way is not APART for part in chain for view in part.views):
        wide = max(_widest(part.kernel) for part in loops)
        lanes = 1 << min(max(1, VECTOR // min(wide, 4)), columns).bit_length() - 1
    return lanes, columns % lanes == 0


def _widest(kernel: Pointwise | Reduction) -> int:
    assert isinstance(kernel, Pointwise)
    return widest(kernel.expr, *(kind for _, kind, _ in kernel.arrays))


def fused(chain: Sequence[Part]) -> tuple[Chain, list[int]]:
    """The function of a chain, and the words it is handed."""
    extents = chain[0].extents
    views = dict.fromkeys(view for part in chain for view in part.views)
    places = {view: number for number, view in enumerate(views)}
    steps: list[Step | Reduced] = []
    numbers: list[int] = []
    for part in chain:
        if not isinstance(part.kernel, Pointwise):
            steps.append(Reduced(part.kernel, *(places[view] for view in part.views)))
            continue
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
    kernel = Chain(
        tuple(steps),
        tuple((view.size, view.way) for view in views),
        len(extents),
        *_vectors(chain),
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


class _Group(NamedTuple):
    """Calls that follow each other, and the chain they are; without one, a call of its own."""

    calls: list[Record]
    chain: list[Part]


def _chains(
    calls: Iterable[Record], memories: Memories
) -> list[tuple[Record | None, list[Record]]]:
    """Calls in order: those that make up a chain with the one that does as much."""
    groups: list[_Group] = []
    for call in calls:
        part = _part(call)
        if part is None or not _added(groups, call, part, memories):
            groups.append(_Group([call], [] if part is None else [part]))
    return [(Record(*fused(chain)) if len(chain) > 1 else None, calls) for calls, chain in groups]


def _part(call: Record) -> Part | None:
    """A call as a part of a chain, which some may be."""
    if isinstance(call.kernel, Pointwise):
        return part_of(call.kernel, call.words)
    return _reduced(call.kernel, call.words) if isinstance(call.kernel, Reduction) else None


def _added(groups: list[_Group], call: Record, part: Part, memories: Memories) -> bool:
    """Whether a call has found a chain that it is a part of, among the last ones."""
    for group in groups[: -_FARTHEST - 1 : -1]:
        chain = group.chain
        if not chain:
            return False
        longer = joined(chain, part, memories) if _may_join(chain, part) else None
        if longer is not None:
            chain[:] = longer
            group.calls.append(call)
            return True
        if not _are_apart(part, chain, memories):
            return False
    return False


def _may_join(chain: Sequence[Part], part: Part) -> bool:
    """Whether a look at the elements lets a part join a chain; reductions do not begin one."""
    is_reduced = isinstance(chain[0].kernel, Reduction)
    return not is_reduced and prod(chain[0].extents) == prod(part.extents)
