"""What would make a launch faster, each piece of advice with the time that it saves.

A change is made to what the cores issue, and that is timed again: another buffer is one more token
of the signal that says "free", a load that is hoisted happens once, order that nobody needs is left
out. What is still a guess is said: whether order is needed is asked of whoever can run the program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import where
from ptokit.base.location import Location
from ptokit.base.namedtuple import NamedTuple
from ptokit.timing.streams import (
    PIPE_NAMES,
    BlockStream,
    CoreStream,
    Item,
    Kind,
    Region,
    Streams,
    Touch,
)

if TYPE_CHECKING:
    from ptokit.timing.report import Timing

WORTH = 0.01  # the share of the time that a change must save to be mentioned
_MOST_TRIALS = 8  # programs that are run without some of their order

# Whether a program is as good without the statements on these lines.
Proof = Callable[[Collection[Location]], bool]
Stretch = tuple[str, int, int]  # a memory, and bytes of it


class Advice(NamedTuple):
    """A change, and what it would save."""

    text: str
    line: Location
    us: float
    share: float  # of the time
    after: Timing

    def __str__(self) -> str:
        return f"-{100 * self.share:.1f} %  {self.text}"


def advice(timing: Timing, proof: Proof | None = None) -> tuple[Advice, ...]:
    """All that is worth a change, the best first."""
    found = [*_buffers(timing), *_hoists(timing)]
    if proof is not None:
        found += _needless(timing, proof)
    return tuple(sorted(found, key=lambda each: -each.us))


def _tried(timing: Timing, streams: Streams, text: str, line: Location) -> Advice | None:
    after = timing.again(streams)
    saved = timing.us - after.us
    share = saved / timing.us
    return Advice(text, line, saved, share, after) if share >= WORTH else None


def _short(line: Location) -> str:
    return (line.origin or line).brief


# ---- one more buffer -----------------------------------------------------------------------------


@dataclass
class _Signal:
    """A semaphore between two pipes of one core: what stands before its signals, behind waits."""

    giver: int = -1
    taker: int = -1
    before: set[int] = field(default_factory=set[int])  # items
    behind: set[int] = field(default_factory=set[int])
    gives: set[int] = field(default_factory=set[int])
    takes: set[int] = field(default_factory=set[int])
    is_plain: bool = True


def signals_of(core: CoreStream, items: Sequence[Item]) -> dict[int, _Signal]:
    """The semaphores of a core by number."""
    found: dict[int, _Signal] = {}
    work: dict[int, list[int]] = {}  # of each pipe, in order
    given: dict[int, int] = {}  # how much of it an earlier signal stands for
    awaited: dict[int, set[int]] = {}  # by pipe: semaphores that its next work stands behind
    for number in core.items:
        item = items[number]
        pipe = item.pipe
        if item.kind == Kind.WORK:
            work.setdefault(pipe, []).append(number)
            for semaphore in awaited.get(pipe, ()):
                found[semaphore].behind.add(number)
        for semaphore in item.semaphores if item.kind in (Kind.GIVE, Kind.TAKE) else ():
            signal = found.setdefault(semaphore, _Signal())
            signal.is_plain &= len(item.semaphores) == 1 and semaphore >= 0
            if item.kind == Kind.GIVE:
                signal.is_plain &= signal.giver in (-1, pipe)
                signal.giver = pipe
                signal.gives.add(number)
                done = work.get(pipe, [])
                signal.before.update(done[given.get(semaphore, 0) :])
                given[semaphore] = len(done)
            else:
                signal.is_plain &= signal.taker in (-1, pipe)
                signal.taker = pipe
                signal.takes.add(number)
                awaited.setdefault(pipe, set()).add(semaphore)
    return {n: s for n, s in found.items() if s.is_plain and s.giver > 0 and s.taker > 0}


def _stretches(items: Sequence[Item], numbers: Collection[int], writes: bool) -> set[Stretch]:
    return {
        (touch.memory, touch.start, touch.stop)
        for number in numbers
        for touch in items[number].touches
        if (touch.writes if writes else touch.reads)
    }


def _shared(some: Collection[Stretch], others: Collection[Stretch]) -> set[Stretch]:
    """Those of the first that overlap any of the others."""
    return {
        (memory, start, stop)
        for memory, start, stop in some
        if any(m == memory and a < stop and start < b for m, a, b in others)
    }


def _freed(signal: _Signal, items: Sequence[Item]) -> set[Stretch]:
    """The bytes that a signal says are free again; none where it hands something over."""
    if signal.giver == signal.taker or not signal.before:
        return set()
    before = [_stretches(items, signal.before, writes) for writes in (False, True)]
    if _shared(before[1], _stretches(items, signal.behind, False)):
        return set()
    if any(_is_stored(items[n]) for n in signal.before) and any(
        _is_loaded(items[n]) and not items[n].touches for n in signal.behind
    ):
        return set()
    return _shared(_stretches(items, signal.behind, True), before[0] | before[1])


def _is_stored(item: Item) -> bool:
    return item.cost is not None and item.cost.writes


def _is_loaded(item: Item) -> bool:
    return item.cost is not None and bool(item.cost.bytes) and not item.cost.writes


def _buffers(timing: Timing) -> Iterator[Advice]:
    """Signals that say "free", each with one token more: as many as there are places to fill."""
    items = timing.streams.items
    groups: dict[tuple[int, int, Location], dict[int, set[int]]] = {}  # semaphores by block
    bytes_of: dict[tuple[int, int, Location], set[Stretch]] = {}
    lines: dict[tuple[int, int, Location], tuple[Item, Item]] = {}
    known: dict[tuple[int, ...], list[tuple[tuple[int, int, Location], int]]] = {}
    for index, block in enumerate(timing.streams.blocks):
        shape = tuple(id(core.items) for core in block.cores)
        if shape not in known:
            known[shape] = []
            for core in block.cores:
                for number, signal in signals_of(core, items).items():
                    freed = _freed(signal, items)
                    if not freed or number in block.latches:
                        continue
                    filler = next(n for n in sorted(signal.behind) if _fills(items[n], freed))
                    key = signal.giver, signal.taker, where(items[filler].site)
                    known[shape].append((key, number))
                    bytes_of.setdefault(key, set()).update(freed)
                    lines[key] = items[filler], items[min(signal.before)]
        for key, number in known[shape]:
            groups.setdefault(key, {}).setdefault(index, set()).add(number)
    capacity = timing.streams.capacities
    for key, semaphores in groups.items():
        filler, user = lines[key]
        wanted = _held(bytes_of[key])
        used = _held(t for item in items for t in _all(item))
        if any(used[m] + more > capacity.get(m, 0) for m, more in wanted.items()):
            continue
        places = len({start for _, start, _ in bytes_of[key]})
        what = "double-buffer" if places == 1 else "give another buffer to"
        size = ", ".join(f"{more:,} bytes of {m}" for m, more in wanted.items())
        text = (
            f"{what} what {filler.label} {_short(key[2])} fills ({size}): it waits until "
            f"{user.label} {_short(where(user.site))} on {PIPE_NAMES[user.pipe]} has done with it"
        )
        blocks = list(timing.streams.blocks)
        for index, more in semaphores.items():
            blocks[index] = replace(blocks[index], initial=(*blocks[index].initial, *sorted(more)))
        found = _tried(timing, replace(timing.streams, blocks=blocks), text, key[2])
        if found is not None:
            yield found


def _all(item: Item) -> Iterator[Stretch]:
    return ((touch.memory, touch.start, touch.stop) for touch in item.touches)


def _fills(item: Item, freed: set[Stretch]) -> bool:
    return any((t.memory, t.start, t.stop) in freed for t in item.touches if t.writes)


def _held(stretches: Collection[Stretch] | Iterator[Stretch]) -> dict[str, int]:
    """Bytes that stretches cover, by memory."""
    total: dict[str, int] = {}
    end: dict[str, int] = {}
    for memory, start, stop in sorted(set(stretches)):
        last = max(start, end.get(memory, 0))
        total[memory] = total.get(memory, 0) + max(0, stop - last)
        end[memory] = max(end.get(memory, 0), stop)
    return total


# ---- loads that could be hoisted -----------------------------------------------------------------


def _hoists(timing: Timing) -> Iterator[Advice]:
    """Loads of what already lies there: the same bytes of global memory to the same place."""
    items = timing.streams.items
    again: dict[Location, int] = {}
    known: dict[tuple[int, int], set[int]] = {}
    stored = {
        base
        for block in timing.streams.blocks
        for core in block.cores
        for at, region in _regions(core, items)
        if _is_stored(items[core.items[at]])
        for _, _, base in region
    }
    for block in timing.streams.blocks:
        for core in block.cores:
            found = _repeated(core, items, stored)
            known[block.block, id(core)] = found
            for at in found:
                line = where(items[core.items[at]].site)
                again[line] = again.get(line, 0) + 1
    for line, times in again.items():
        blocks = [
            replace(
                block,
                cores=[
                    _without(core, items, {at for at in known[block.block, id(core)]
                             if where(items[core.items[at]].site) == line})
                    for core in block.cores
                ],
            )
            for block in timing.streams.blocks
        ]  # fmt: skip
        label = next(i.label for i in items if i.kind == Kind.WORK and where(i.site) == line)
        text = (
            f"hoist {label} {_short(line)} out of its loop: {times} times it loads what is already "
            "there"
        )
        found_one = _tried(timing, replace(timing.streams, blocks=blocks), text, line)
        if found_one is not None:
            yield found_one


def _repeated(core: CoreStream, items: Sequence[Item], stored: Collection[int]) -> set[int]:
    """Positions of loads after which memory holds what it held before; not of arrays that the
    launch itself writes."""
    holds: dict[Stretch, object] = {}
    found: set[int] = set()
    regions = dict(_regions(core, items))
    for at, number in enumerate(core.items):
        item = items[number]
        if item.kind != Kind.WORK:
            continue
        written = [t for t in item.touches if t.writes]
        region = regions.get(at)
        if region and _is_loaded(item) and len(written) == 1 and not _any_of(region, stored):
            place = written[0].memory, written[0].start, written[0].stop
            if holds.get(place) == (item.label, region):
                found.add(at)
                continue
            _forget(holds, written)
            holds[place] = item.label, region
        else:
            _forget(holds, written)
    return found


def _any_of(region: Region, bases: Collection[int]) -> bool:
    return any(base in bases for _, _, base in region)


def _forget(holds: dict[Stretch, object], written: Sequence[Touch]) -> None:
    for memory, start, stop in list(holds):
        if any(t.memory == memory and t.start < stop and start < t.stop for t in written):
            del holds[memory, start, stop]


def _regions(core: CoreStream, items: Sequence[Item]) -> Iterator[tuple[int, Region]]:
    """Positions of what goes to global memory, with where it goes."""
    regions = iter(core.regions)
    for at, number in enumerate(core.items):
        cost = items[number].cost
        if cost is not None and cost.bytes:
            yield at, next(regions)


def _without(core: CoreStream, items: Sequence[Item], gone: Collection[int]) -> CoreStream:
    """The stream of a core without what stands at these positions."""
    if not gone:
        return core
    regions = [region for at, region in _regions(core, items) if at not in gone]
    kept = [number for at, number in enumerate(core.items) if at not in gone]
    return replace(core, items=kept, regions=regions)


# ---- order that nobody needs ---------------------------------------------------------------------


def _needless(timing: Timing, proof: Proof) -> Iterator[Advice]:
    """Barriers, and pairs of signal and wait, without which the program is as good."""
    items = timing.streams.items
    groups: dict[tuple[Location, ...], set[int]] = {}
    labels: dict[tuple[Location, ...], str] = {}
    for number, item in enumerate(items):
        if item.kind == Kind.BARRIER:
            lines = (where(item.site),)
            groups.setdefault(lines, set()).add(number)
            labels[lines] = item.label
    seen: set[tuple[int, ...]] = set()
    for block in timing.streams.blocks:
        shape = tuple(id(core.items) for core in block.cores)
        if shape in seen:
            continue
        seen.add(shape)
        for core in block.cores:
            for signal in signals_of(core, items).values():
                used = signal.gives | signal.takes
                lines = tuple(sorted({where(items[n].site) for n in used}, key=str))
                groups.setdefault(lines, set()).update(used)
                labels[lines] = items[min(signal.takes)].label if signal.takes else ""
    tried: list[tuple[Advice, tuple[Location, ...]]] = []
    worked = {where(item.site) for item in items if item.kind == Kind.WORK}
    rows = {(line.file, line.line) for line in worked}
    for lines, numbers in groups.items():
        if any((line.file, line.line) in rows for line in lines):
            continue  # no statement of its own: auto mode has inserted it
        blocks = [block_without(block, items, numbers) for block in timing.streams.blocks]
        places = " and ".join(map(_short, lines))
        text = f"leave out {labels[lines]} ({places}): nothing needs this order"
        found = _tried(timing, replace(timing.streams, blocks=blocks), text, lines[-1])
        if found is not None:
            tried.append((found, lines))
    tried.sort(key=lambda each: -each[0].us)
    for found, lines in tried[:_MOST_TRIALS]:
        if proof(lines):
            yield found


def block_without(block: BlockStream, items: Sequence[Item], gone: Collection[int]) -> BlockStream:
    cores = [
        _without(core, items, {at for at, number in enumerate(core.items) if number in gone})
        for core in block.cores
    ]
    return replace(block, cores=cores)


__all__ = ["Advice", "Proof", "advice", "block_without", "signals_of"]
