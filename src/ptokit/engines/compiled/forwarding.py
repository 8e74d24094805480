"""Products that take their factors from where copies brought them, and the copies left out.

On its way to the cube a tile of a matrix is copied twice, each time into other boxes, and then
packed for the product. All of that is copying: what lies in the tile lies in the matrix, too, as
long as nobody writes there. So the product packs the matrix itself, and loops whose results are
overwritten before anybody reads them are left out. A product whose result is copied, and then
overwritten by the next one, lands where the copy would have brought it. The last ones stay: what a
launch leaves in its memories is the same. A part of a matrix that several products take is packed
once.

Streams are long, and their calls differ in little but where operands lie: what follows from the
rest is found out once for each form of a call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from math import prod

import numpy as np

from ptokit.base.layout import Array
from ptokit.base.namedtuple import NamedTuple
from ptokit.engines.compiled.fusion import Part, Record, part_of
from ptokit.engines.compiled.landing import landed, offsets, plain
from ptokit.engines.compiled.loops import Pointwise
from ptokit.engines.compiled.memories import Memories
from ptokit.engines.compiled.natives import Streamed
from ptokit.engines.compiled.product import (
    ADDS,
    LEFT,
    RIGHT,
    Factor,
    Multiply,
    Packing,
    factor,
    landing,
    packed_at,
    packing,
    taken_from,
)
from ptokit.isa.expr import Arg

_NOWHERE = np.iinfo(np.int64).min
_MOST_PACKED = 1 << 25  # bytes of operands that are kept for products to come
_LINE = 64
_FARTHEST = 8  # calls between a product and the copy of its result
Span = tuple[int, int]  # addresses in the run that was noted


def forwarded(stretches: Sequence[Sequence[Record]], memories: Memories) -> list[list[Record]]:
    """The same calls without copies that only products read."""
    found, first = _Forwarding(memories), -(-memories.scratch // _LINE) * _LINE
    return [
        found.packed_once(found.shortened(calls), first)
        if any(isinstance(call.kernel, Multiply) for call in calls)
        else list(calls)
        for calls in stretches
    ]


class _Form(NamedTuple):
    """What calls have in common that differ in the places of their operands."""

    operands: Sequence[int]  # of the words that name memories, that of the result first
    spans: Sequence[Span] | None  # from there on, of each operand; None: all of its memory
    reads: Sequence[int]  # which of the operands
    fills: bool = False  # every byte of the result's span is written
    origins: Array | None = None  # of a copy: see below
    factors: Sequence[Factor] = ()  # of a product: left and right
    is_loop: bool = False
    is_copy: bool = False


class _Copied(NamedTuple):
    """A tile that still holds what it was copied from."""

    to: Span
    source: Span
    where: tuple[int, int]  # memory and offset of the source
    origins: Array  # of each byte of `to` that begins an element: how far behind `where` it lay
    size: int  # bytes of an element


class _Call(NamedTuple):
    record: Record
    form: _Form
    spans: Sequence[Span]


class _Forwarding:
    """What is found out once."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories
        self._whole: dict[int, Span] = {}
        self._operands: dict[int, Sequence[int]] = {}  # of kernels, by identity
        self._kernels: dict[Streamed, Streamed] = {}  # one for all that are equal
        self._forms: dict[Hashable, _Form] = {}
        self._places: dict[Factor, Array] = {}
        self._composed: dict[Hashable, Array | None] = {}
        self._taken: dict[Hashable, tuple[Multiply, list[tuple[int, int]], int] | None] = {}

    def shortened(self, calls: Sequence[Record]) -> list[Record]:
        """The calls of a stretch; what comes behind it may read all that they leave."""
        lost: dict[int, _Spans] = {}
        kept: list[Record] = []
        known = self._straightened(calls)
        while known:
            record, form, spans = known.pop()
            words = record.words
            memory = words[form.operands[0]]
            if form.is_loop and memory in lost and lost[memory].cover(spans[0]):
                continue
            if form.is_copy:
                source = words[form.operands[1]]
                is_last = source in lost and lost[source].cover(spans[1])
                if is_last and self._lands(known, _Call(record, form, spans)):
                    continue
            if form.fills and not self._memories.is_users(memory):
                lost.setdefault(memory, _Spans()).add(spans[0])
            for number in form.reads:
                memory = words[form.operands[number]]
                if memory in lost:
                    lost[memory].remove(spans[number])
            kept.append(record)
        return kept[::-1]

    def _lands(self, before: list[_Call], copy: _Call) -> bool:
        """Let the product whose result is copied, and read nowhere else, write there itself."""
        (to, source), (kernel, words) = copy.spans, copy.record
        for at in range(len(before) - 1, max(len(before) - _FARTHEST, 0) - 1, -1):
            record, form, spans = before[at]
            if form.factors and _meet(spans[0], source):
                assert isinstance(kernel, Pointwise)
                assert isinstance(record.kernel, Multiply)
                found = landed(record.kernel, record.words, part_of(kernel, words))
                if found is None or any(_meet(to, each) for each in spans[1:]):
                    return False
                before[at] = self._call(Record(record.kernel, found))
                return True
            if any(_meet(each, other) for each in spans for other in (to, source)):
                return False
        return False

    def packed_once(self, calls: Sequence[Record], first: int) -> list[Record]:
        """The calls with operands packed once that come again, behind the first bytes of scratch.

        They are parts of arrays that nobody writes to meanwhile. Blocks, which may run on scratch
        of their own, do not share them.
        """
        known, written = [self._call(call) for call in calls], _Spans()
        for span in {span for each in known for span in self._written(each)}:
            written.add(span)
        wanted = [[self._packing(each, n, written) for n in (0, 1)] for each in known]
        uses = Counter(each for pair in wanted for each in pair)
        places: dict[Packing, int] = {}
        end, made = first, list[Record]()
        for (kernel, words), pair in zip(calls, wanted, strict=True):
            for found in pair:
                if found is None or uses[found] < 2:
                    continue
                is_first = found not in places
                if is_first:
                    if end + found.nbytes > first + _MOST_PACKED:
                        continue
                    places[found], end = end, end + -(-found.nbytes // _LINE) * _LINE
                words = packed_at(words, found.operand, places[found], is_first)
            made.append(Record(kernel, words))
        self._memories.scratch = max(self._memories.scratch, end)
        return made

    def _written(self, call: _Call) -> list[Span]:
        """What a call may write of the arrays of the user."""
        form, words = call.form, call.record.words
        results = 1 if form.is_loop or form.factors else len(form.operands)
        pairs = zip(form.operands[:results], call.spans, strict=False)
        return [span for at, span in pairs if self._memories.is_users(words[at])]

    def _packing(self, call: _Call, number: int, written: _Spans) -> Packing | None:
        """How a product packs a factor that lies in an array of the user, and stays."""
        kernel, words = call.record
        operand = (LEFT, RIGHT)[number]
        if not isinstance(kernel, Multiply) or not self._memories.is_users(words[operand]):
            return None
        if written.meet(call.spans[1 + number]):
            return None
        return packing(kernel, words, operand)

    def _straightened(self, calls: Sequence[Record]) -> list[_Call]:
        """The calls with products that take their factors from as far away as they can."""
        held: dict[int, list[_Copied]] = {}  # by the memory they lie in
        sources: set[int] = set()
        found: list[_Call] = []
        for given in calls:
            call = self._call(given)
            if call.form.factors:
                call = self._product(call, held)
            form, words, spans = call.form, call.record.words, call.spans
            memory = words[form.operands[0]]
            copy = None
            if form.origins is not None:
                copy = self._copied(call, held)
            if memory in held:
                held[memory] = [each for each in held[memory] if not _meet(each.to, spans[0])]
            group = self._group(memory)
            if group in sources:
                for number, copies in held.items():
                    held[number] = [c for c in copies if not _meet(c.source, spans[0])]
            if copy is not None and not _meet(copy.to, copy.source):
                held.setdefault(memory, []).append(copy)
                sources.add(self._group(copy.where[0]))
            found.append(call)
        return found

    def _group(self, memory: int) -> int:
        """Arrays of the user may be parts of one; other memories are apart."""
        return 0 if self._memories.is_users(memory) else memory

    # ---- what calls touch ------------------------------------------------------------------------

    def _call(self, record: Record) -> _Call:
        kernel, words = record
        operands = self._operands.get(id(kernel))
        if operands is None:
            kernel = self._kernels.setdefault(kernel, kernel)
            operands = self._operands[id(kernel)] = kernel.operands
        rest = list(words)
        for at in operands:
            rest[at + 1] = 0
        key = (id(kernel), *rest)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = self._form(kernel, rest, operands)
        if form.spans is None:
            return _Call(record, form, [self._span(words[at]) for at in operands])
        spans: list[Span] = []
        for at, (low, high) in zip(operands, form.spans, strict=True):
            begin = self._span(words[at])[0] + words[at + 1]
            spans.append((begin + low, begin + high))
        return _Call(record, form, spans)

    def _span(self, memory: int) -> Span:
        found = self._whole.get(memory)
        if found is None:
            found = self._whole[memory] = self._memories.span(memory)
        return found

    def _form(self, kernel: Streamed, words: Sequence[int], operands: Sequence[int]) -> _Form:
        """What follows from all words but the offsets, which are 0."""
        if isinstance(kernel, Pointwise):
            part = part_of(kernel, words)
            spans = [view.span(part.extents) for view in part.views]
            fills = _is_dense(part)
            is_copy = isinstance(kernel.expr, Arg) and len(part.views) == 2
            origins = _origins(part) if is_copy and fills else None
            reads = range(1, len(spans))
            return _Form(operands, spans, reads, fills, origins, is_loop=True, is_copy=is_copy)
        if not isinstance(kernel, Multiply):
            return _Form(operands, None, range(len(operands)))
        spans = [self._span(words[at]) for at in operands]
        spans = [(0, high - low) for low, high in spans]  # of the start
        result = landing(kernel, words)
        spans[0] = result.span
        factors = [factor(kernel, words, operand) for operand in (LEFT, RIGHT)]
        for number, of in enumerate(factors, 1):
            spans[number] = 0, int(self._of(of).max()) + of.size
        reads = range(not words[ADDS], len(spans))
        return _Form(operands, spans, reads, result.is_dense, factors=factors)

    def _of(self, of: Factor) -> Array:
        if of not in self._places:
            self._places[of] = of.places()
        return self._places[of]

    # ---- where tiles come from -------------------------------------------------------------------

    def _copied(self, call: _Call, held: dict[int, list[_Copied]]) -> _Copied:
        """What a copy leaves; of what is a copy itself, it is a copy of its source."""
        (to, source), words, origins = call.spans, call.record.words, call.form.origins
        assert origins is not None
        at = call.form.operands[1]
        kernel = call.record.kernel
        assert isinstance(kernel, Pointwise)
        size = kernel.arrays[0][1].itemsize
        for each in held.get(words[at], ()):
            if each.size == size and _inside(source, each.to):
                behind = self._span(words[at])[0] + words[at + 1] - each.to[0]
                further = self._through(origins, each.origins, behind)
                if further is not None:
                    return each._replace(to=to, origins=further)
        return _Copied(to, source, (words[at], words[at + 1]), origins, size)

    def _through(self, last: Array, first: Array, behind: int) -> Array | None:
        key = id(last), id(first), behind
        if key not in self._composed:
            is_element = last != _NOWHERE
            origins = first[last[is_element] + behind]
            found = np.full_like(last, _NOWHERE)
            found[is_element] = origins
            self._composed[key] = None if (origins == _NOWHERE).any() else found
        return self._composed[key]

    def _product(self, call: _Call, held: dict[int, list[_Copied]]) -> _Call:
        for number, operand in enumerate((LEFT, RIGHT)):
            words, span = call.record.words, call.spans[1 + number]
            of = call.form.factors[number]
            for each in held.get(words[operand], ()):
                if each.size != of.size or not _inside(span, each.to):
                    continue
                behind = span[0] - each.to[0]
                key = id(call.record.kernel), id(call.form), operand, id(each.origins), behind
                if key not in self._taken:
                    places = each.origins[self._of(of) + behind]
                    self._taken[key] = self._changes(call, operand, places)
                changes = self._taken[key]
                if changes is not None:
                    kernel, values, begin = changes
                    moved = list(words)
                    for at, value in values:
                        moved[at] = value
                    moved[operand : operand + 2] = each.where[0], each.where[1] + begin
                    call = self._call(Record(kernel, moved))
                    break
        return call

    def _changes(
        self, call: _Call, operand: int, places: Array
    ) -> tuple[Multiply, list[tuple[int, int]], int] | None:
        """The product that takes a factor from these places, the words that it is handed instead,
        and how far behind the begin of their memory they lie."""
        matrix = None if (places == _NOWHERE).any() else plain(places)
        kernel, words = call.record
        assert isinstance(kernel, Multiply)
        changed = None if matrix is None else taken_from(kernel, words, operand, matrix[1:])
        if matrix is None or changed is None:
            return None
        other = self._kernels.setdefault(changed[0], changed[0])
        assert isinstance(other, Multiply)
        pairs = zip(words, changed[1], strict=True)
        values = [(at, new) for at, (old, new) in enumerate(pairs) if new != old]
        return other, values, matrix[0]


def _is_dense(part: Part) -> bool:
    """Whether the result has no gaps."""
    view, inside = part.views[0], part.views[0].size
    for step, extent in sorted(zip(view.strides, part.extents, strict=True)):
        if extent > 1 and step != inside:
            return False
        inside *= extent
    return True


def _origins(part: Part) -> Array:
    """Of a dense copy: how far behind its source the element lies that each byte begins."""
    to, source = part.views
    found = np.full(prod(part.extents) * to.size, _NOWHERE)
    found[offsets(part.extents, to.strides)] = offsets(part.extents, source.strides)
    return found


def _meet(a: Span, b: Span) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def _inside(a: Span, b: Span) -> bool:
    return b[0] <= a[0] and a[1] <= b[1]


class _Spans:
    """Some bytes."""

    def __init__(self) -> None:
        self._spans: list[Span] = []  # of which none meet or touch

    def add(self, span: Span) -> None:
        low, high = span
        apart: list[Span] = []
        for each in self._spans:
            if each[0] <= high and low <= each[1]:
                low, high = min(low, each[0]), max(high, each[1])
            else:
                apart.append(each)
        self._spans = [*apart, (low, high)]

    def remove(self, span: Span) -> None:
        if any(_meet(each, span) for each in self._spans):
            rest = [
                part
                for low, high in self._spans
                for part in ((low, min(high, span[0])), (max(low, span[1]), high))
            ]
            self._spans = [each for each in rest if each[0] < each[1]]

    def meet(self, span: Span) -> bool:
        return any(_meet(span, each) for each in self._spans)

    def cover(self, span: Span) -> bool:
        return any(_inside(span, each) for each in self._spans)
