"""Discrete events: the pipes of all cores work off what was issued.

The scalar unit of a core issues in program order, at its own pace, into queues of bounded depth.
Each pipe takes its queue in order: work when the pipe is free, signals behind the work before them,
waits until their signals have come. All of that is a chain of sums and maxima and is followed as
far as it goes at once; only transfers to and from global memory, which share it, are put in order
of time. Cores that issue the same are one core of a greater weight.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import InternalError, fail
from ptokit.timing.memory import Bus, Cache, Transfer
from ptokit.timing.params import Params
from ptokit.timing.streams import ALL, BlockStream, CoreStream, Item, Kind, Region, Streams

_WORK, _GIVE, _TAKE, _BARRIER, _DRAIN, _MEET = Kind

# A token: when it can be taken; who gave it: core, the signal, the work before it, its node; and
# when that work ends, where whoever takes the token may follow it piece by piece.
Token = tuple[float, int, int, int, int, float]
Node = tuple[int, int, float, float, int]  # item, pipe, start, end, the node it waited for


@dataclass
class Stall:
    """Time that a pipe waited at one place, for one reason."""

    pipe: int
    item: int  # the wait, or the work that came late
    giver: int = -1  # the signal; none where a pipe waits for work itself
    behind: int = -1  # the work that was waited for: in front of the signal where there is one
    cycles: float = 0.0


@dataclass
class Timed:
    """What became of one core."""

    stream: CoreStream
    weight: int
    blocks: tuple[int, ...]
    busy: dict[int, float] = field(default_factory=dict[int, float])
    least: dict[int, float] = field(default_factory=dict[int, float])  # at the best of rates
    stalls: dict[tuple[int, int, int], Stall] = field(
        default_factory=dict[tuple[int, int, int], Stall]
    )
    nodes: list[Node] = field(default_factory=list[Node])
    end: float = 0.0


@dataclass
class Outcome:
    """What the model found: cycles, and every core."""

    cycles: float
    cores: list[Timed]
    bytes_read: float
    bytes_missed: float
    bytes_written: float
    sent: list[tuple[int, int]]  # signals: the node behind which each was set, who took it


class _Pipe:
    __slots__ = (
        "begun", "cause", "done", "flying", "free", "last", "queue", "starts", "taken", "until",
    )  # fmt: skip

    def __init__(self, depth: int, now: float) -> None:
        # When it was issued, what, and which of the places in global memory it goes to.
        self.queue: deque[tuple[float, int, int]] = deque()
        self.starts: deque[float] = deque(maxlen=depth)
        self.free = now
        self.done = now  # of all that was begun: stores land later
        self.begun = now  # the last work
        self.until = now  # the end of work that the next one follows piece by piece
        self.flying = False
        self.last = -1  # the node of the last work
        self.cause = -1  # the node whose signal the pipe waited for since
        self.taken: list[int] = []  # the nodes whose signals it took since


class _Core:
    """A core, or many that do the same."""

    def __init__(self, number: int, timed: Timed, unit: _Unit) -> None:
        self.number = number
        self.timed = timed
        self.unit = unit
        self.items = timed.stream.items
        self.at = 0
        self.time = 0.0
        self.pipes: dict[int, _Pipe] = {}
        self.region = 0
        self.held: Any = None  # what the scalar unit waits for
        self.cause = -1  # the node that its scalar unit waited for last, and until when
        self.until = 0.0
        self.ended = False


@dataclass
class _Unit:
    """Blocks of the same shape at the same place of the queue of blocks."""

    members: list[BlockStream]
    cores: list[_Core] = field(default_factory=list["_Core"])
    tokens: dict[int, deque[Token]] = field(default_factory=dict[int, "deque[Token]"])
    waiters: dict[int, list[tuple[_Core, int]]] = field(
        default_factory=dict[int, "list[tuple[_Core, int]]"]
    )
    latches: frozenset[int] = frozenset()
    next: _Unit | None = None


_CORE_BITS = 24


def core_and_index(node: int) -> tuple[int, int]:
    """The core that a node belongs to, and its place among those of the core."""
    return node & ((1 << _CORE_BITS) - 1), node >> _CORE_BITS


class Model:
    """One run over the streams of a launch."""

    def __init__(self, streams: Streams, params: Params, cores: int, *, trace: bool = True) -> None:
        self._items = streams.items
        self._params = params
        self._trace = trace
        number = params.__getitem__
        self._issue = number("scalar.issue")
        self._order = number("scalar.order")
        self._scalar = number("scalar.work")
        self._latency = number("flags.latency")
        self._barrier = number("flags.barrier")
        self._meeting = number("flags.meeting")
        self._depth = int(number("scalar.queue"))
        self._next_block = number("launch.block")
        self._cache = Cache(number("memory.l2_bytes"))
        self._bus = Bus(number("memory.total_rate"), number("memory.hbm_rate"))
        self._costs = [self._cost(item) for item in streams.items]
        self._heap: list[tuple[float, int, Any, Any]] = []
        self._ready: deque[tuple[_Core, int]] = deque()  # pipes, or 0, that can go on now
        self._sequence = 0
        self._bus_turn = 0
        self._now = 0.0
        self._met: dict[int, list[Any]] = {}
        self._words: dict[int, deque[Token]] = {}
        self._word_waiters: dict[int, list[tuple[_Core, int]]] = {}
        self._cores: list[_Core] = []
        self._read = self._missed = self._wrote = 0.0
        self._sent: list[tuple[int, int]] = []
        self._first = fold(streams.blocks, cores)

    def _cost(self, item: Item) -> tuple[float, float, float, Any]:
        """Cycles before the bytes, the least of them, how long after them it is complete, and the
        law of the bytes if there are any."""
        cost = item.cost
        if cost is None or not item.pipe:
            return 0.0, 0.0, 0.0, None
        law = self._params.law(cost.insn, cost.kind)
        sums = [
            (start, sum(each * cost.features[name] for name, each in terms))
            for start, terms in law.bounds
        ]
        cycles = max((start + more for start, more in sums), default=0.0)
        least = max((more for _, more in sums), default=0.0)
        return cycles, least, law.tail, law if cost.bytes and law.rate else None

    # ---- running --------------------------------------------------------------------------------

    def run(self) -> Outcome:
        begin = self._params["launch.start"]
        if any(len(unit.members[0].cores) > 1 for unit in self._first):
            begin += self._params["launch.cluster"]
        for unit in self._first:
            self._start(unit, begin)
        heap, ready = self._heap, self._ready
        while heap or ready:
            while ready:
                core, pipe = ready.popleft()
                if pipe:
                    self._advance(core, pipe, core.pipes[pipe])
                else:
                    self._go_on(core)
            if heap:
                self._now, _, act, argument = heapq.heappop(heap)
                act(argument)
        self._check_ends()
        end = max((core.timed.end for core in self._cores), default=begin)
        return Outcome(
            end + self._params["launch.end"],
            [core.timed for core in self._cores],
            self._read,
            self._missed,
            self._wrote,
            self._sent,
        )

    def _at(self, time: float, act: Any, argument: Any) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (max(time, self._now), self._sequence, act, argument))

    def _start(self, unit: _Unit, now: float) -> None:
        block = unit.members[0]
        unit.latches = block.latches
        for semaphore in block.initial:
            unit.tokens.setdefault(semaphore, deque()).append((now, -1, -1, -1, -1, 0.0))
        blocks = tuple(each.block for each in unit.members)
        for stream in block.cores:
            timed = Timed(stream, len(blocks), blocks)
            core = _Core(len(self._cores), timed, unit)
            core.time = now
            self._cores.append(core)
            unit.cores.append(core)
        self._ready.extend((core, 0) for core in unit.cores)

    def _pipe(self, core: _Core, pipe: int) -> _Pipe:
        found = core.pipes.get(pipe)
        if found is None:
            found = core.pipes[pipe] = _Pipe(self._depth, core.time)
        return found

    # ---- the scalar unit --------------------------------------------------------------------

    def _go_on(self, core: _Core) -> None:
        """Issue until something holds the scalar unit."""
        items, stream, count = self._items, core.items, len(core.items)
        core.held = None
        while core.at < count:
            number = stream[core.at]
            item = items[number]
            kind, pipe = item[0], item[1]
            if kind == _BARRIER and pipe == ALL:
                if not self._is_idle(core, None):
                    core.held = "idle"
                    return
                self._wait_for_pipes(core, number, core.pipes)
                core.time += self._order
            elif kind == _DRAIN:
                if not self._is_idle(core, item.pipes):
                    core.held = "idle"
                    return
                self._wait_for_pipes(core, number, item.pipes)
            elif pipe == 0:
                if not self._scalar_item(core, number, item):
                    return
            else:
                found = core.pipes.get(pipe) or self._pipe(core, pipe)
                waiting = len(found.queue)
                if waiting >= self._depth:
                    core.held = pipe
                    return
                behind = self._depth - waiting
                if len(found.starts) >= behind and found.starts[-behind] > core.time:
                    core.time = found.starts[-behind]
                core.time += self._issue if kind == _WORK else self._order
                found.queue.append((core.time, number, core.region))
                if item.cost is not None and item.cost.bytes:
                    core.region += 1
                if not waiting and not found.flying:
                    self._advance(core, pipe, found)
            core.at += 1
        self._end(core)

    def _scalar_item(self, core: _Core, number: int, item: Item) -> bool:
        if item.kind == _WORK:
            core.time += self._scalar
        elif item.kind == _GIVE:
            core.time += self._order
            self._give(core, number, item, core.time, -1, core.cause)
        elif item.kind == _MEET:
            core.time += self._order
            self._meet(core, number, item, core.time, core.cause)
        else:
            taken = self._tokens(core, item, 0)
            if taken is None:
                core.held = "token"
                return False
            if taken[0] > core.time:
                self._stalled(core, 0, number, taken[0] - core.time, taken[2:4])
                core.time, core.cause, core.until = taken[0], taken[4], taken[0]
            core.time += self._order
        return True

    def _is_idle(self, core: _Core, pipes: Iterable[int] | None) -> bool:
        found = core.pipes if pipes is None else [p for p in pipes if p in core.pipes]
        return not any(core.pipes[p].queue or core.pipes[p].flying for p in found)

    def _wait_for_pipes(self, core: _Core, number: int, pipes: Iterable[int]) -> None:
        last = max(
            (core.pipes[each] for each in pipes if each in core.pipes),
            key=lambda pipe: pipe.done,
            default=None,
        )
        if last is not None and last.done > core.time:
            behind = self._item_of(last.last)
            self._stalled(core, 0, number, last.done - core.time, (-1, behind))
            core.time, core.cause, core.until = last.done, last.last, last.done

    def _end(self, core: _Core) -> None:
        if core.ended or not self._is_idle(core, None):
            core.held = "end" if not core.ended else None
            return
        core.ended = True
        core.timed.end = max([core.time, *(pipe.done for pipe in core.pipes.values())])
        unit = core.unit
        if unit.next is not None and all(each.ended for each in unit.cores):
            following, unit.next = unit.next, None
            free = max(each.timed.end for each in unit.cores)
            self._at(free + self._next_block, self._begin_unit, following)

    def _begin_unit(self, unit: _Unit) -> None:
        self._start(unit, self._now)

    # ---- pipes ----------------------------------------------------------------------------------

    def _advance(self, core: _Core, number: int, pipe: _Pipe) -> None:
        """Let a pipe work for as long as nothing holds it."""
        items, queue, timed = self._items, pipe.queue, core.timed
        while queue:
            issued, what, region = queue[0]
            item = items[what]
            kind = item[0]
            now = issued if issued > pipe.free else pipe.free
            if kind == _WORK:
                cycles, least, tail, law = self._costs[what]
                queue.popleft()
                pipe.starts.append(now)
                pipe.begun = now
                if issued > pipe.free and pipe.last >= 0:
                    held = self._item_of(core.cause) if core.until > pipe.free else -1
                    self._stalled(core, number, what, issued - pipe.free, (-1, held))
                    pipe.cause = core.cause
                if law is not None:
                    pipe.flying = True
                    self._at(now + cycles, self._transfer, (core, number, what, now, least, region))
                    break
                end = max(now + cycles, pipe.until)
                self._done(core, number, pipe, what, now, end, tail)
                timed.least[number] = timed.least.get(number, 0.0) + least
            elif kind == _GIVE:
                queue.popleft()
                pipe.starts.append(now)
                if item.is_early:
                    self._give(core, what, item, pipe.begun, pipe.last, pipe.cause, pipe.free)
                else:
                    time = pipe.done if pipe.done > now else now
                    self._give(core, what, item, time, pipe.last, pipe.cause)
            elif kind == _TAKE:
                taken = self._tokens(core, item, number)
                if taken is None:
                    break
                queue.popleft()
                pipe.starts.append(now)
                pipe.until = max(pipe.until, taken[5])
                if taken[4] >= 0:
                    pipe.taken.append(taken[4])
                if taken[0] > now:
                    self._stalled(core, number, what, taken[0] - now, taken[2:4])
                    pipe.free = taken[0]
                    pipe.cause = taken[4]
                else:
                    pipe.free = now
            elif kind == _BARRIER:
                queue.popleft()
                pipe.starts.append(now)
                held = max(now, pipe.done) + self._barrier
                self._stalled(core, number, what, held - now, (-1, self._item_of(pipe.last)))
                pipe.free = held
            else:
                queue.popleft()
                pipe.starts.append(now)
                self._meet(core, what, item, max(pipe.done, now), pipe.last)
        held = core.held
        if held == number or (held in ("idle", "end") and not queue and not pipe.flying):
            core.held = None
            self._ready.append((core, 0))

    def _transfer(self, what: Any) -> None:
        """The bytes of a transfer begin to move."""
        core, _, number, _, _, region = what
        law, cost = self._costs[number][3], self._items[number].cost
        assert cost is not None
        place = core.unit.cores.index(core)
        regions = [
            each for block in core.unit.members for each in block.cores[place].regions[region]
        ]
        share, unique = self._cache.misses(regions, cost.bytes, cost.writes)
        weight = core.timed.weight
        cap = 1.0 / ((1.0 - share) / law.rate + share / law.miss_rate)
        if cost.writes:
            self._wrote += cost.bytes * weight
        else:
            self._read += cost.bytes * weight
            self._missed += cost.bytes * unique
        transfer = Transfer(what, cost.bytes, cap, weight, unique, cost.writes)
        if share and law.miss_start:
            self._at(self._now + share * law.miss_start, self._flow, transfer)
        else:
            self._flow(transfer)

    def _flow(self, transfer: Transfer) -> None:
        self._bus.begin(self._now, transfer)
        self._watch_bus()

    def _watch_bus(self) -> None:
        self._bus_turn += 1
        end = self._bus.next_end()
        if end is not None:
            self._at(end, self._landed, self._bus_turn)

    def _landed(self, turn: int) -> None:
        if turn != self._bus_turn:
            return  # something has begun or ended since
        done = self._bus.end(self._now)
        self._watch_bus()
        for transfer in done:
            core, number, what, start, least, _ = transfer.owner
            pipe, law = core.pipes[number], self._costs[what][3]
            pipe.flying = False
            self._done(core, number, pipe, what, start, self._now, law.tail)
            cost = self._items[what].cost
            assert cost is not None
            best = core.timed.least
            best[number] = best.get(number, 0.0) + max(least, cost.bytes / law.rate)
            self._advance(core, number, pipe)

    def _done(
        self,
        core: _Core,
        number: int,
        pipe: _Pipe,
        what: int,
        start: float,
        end: float,
        tail: float,
    ) -> None:
        pipe.free = end
        if end + tail > pipe.done:
            pipe.done = end + tail
        timed = core.timed
        timed.busy[number] = timed.busy.get(number, 0.0) + end - start
        if self._trace:
            before = pipe.cause if pipe.cause >= 0 else pipe.last
            pipe.last = len(timed.nodes) << _CORE_BITS | core.number
            timed.nodes.append((what, number, start, end, before))
            pipe.cause = -1
            if pipe.taken:
                self._sent += [(giver, pipe.last) for giver in pipe.taken]
                pipe.taken.clear()

    # ---- tokens ---------------------------------------------------------------------------------

    def _give(
        self,
        core: _Core,
        number: int,
        item: Item,
        time: float,
        last: int,
        cause: int,
        until: float = 0.0,
    ) -> None:
        node = cause if last < 0 else last
        token = (time + self._latency, core.number, number, self._item_of(node), node, until)
        for semaphore in item.semaphores:
            self._put(core.unit, semaphore, token)

    def _item_of(self, node: int) -> int:
        if node < 0:
            return -1
        core, index = core_and_index(node)
        return self._cores[core].timed.nodes[index][0]

    def _put(self, unit: _Unit, semaphore: int, token: Token) -> None:
        tokens, waiters = (
            (unit.tokens, unit.waiters) if semaphore >= 0 else (self._words, self._word_waiters)
        )
        tokens.setdefault(semaphore, deque()).append(token)
        if semaphore in waiters:
            self._ready.extend(waiters.pop(semaphore))

    def _tokens(self, core: _Core, item: Item, pipe: int) -> Token | None:
        """Take what a wait is for; None, and a place among the waiters, where some is missing."""
        unit = core.unit
        for semaphore in item.semaphores:
            shared = semaphore < 0
            tokens = (self._words if shared else unit.tokens).get(semaphore)
            if not tokens:
                waiters = self._word_waiters if shared else unit.waiters
                waiters.setdefault(semaphore, []).append((core, pipe))
                return None
        latest: Token = (0.0, -1, -1, -1, -1, 0.0)
        for semaphore in item.semaphores:
            if semaphore < 0:
                token = self._words[semaphore][0]
            elif semaphore in unit.latches:
                token = unit.tokens[semaphore][0]
            else:
                token = unit.tokens[semaphore].popleft()
            if token[0] > latest[0]:
                latest = token
        return latest

    def _meet(self, core: _Core, number: int, item: Item, time: float, node: int) -> None:
        turn, mine = item.semaphores
        meeting = self._met.setdefault(turn, [0, 0.0, -1, -1, -1, []])
        meeting[0] += core.timed.weight
        if time > meeting[1]:
            meeting[1:5] = [time, core.number, number, node]
        meeting[5].append((core.unit, mine))
        if meeting[0] >= item.total:
            _, last, giver, signal, cause, met = meeting
            token = (last + self._meeting, giver, signal, self._item_of(cause), cause, 0.0)
            for unit, semaphore in met:
                self._put(unit, semaphore, token)

    def _stalled(
        self, core: _Core, pipe: int, item: int, cycles: float, reason: tuple[int, int]
    ) -> None:
        """A pipe has stood still at an item, for a signal or for the work itself."""
        giver, behind = reason
        key = (pipe, item, giver)
        stalls = core.timed.stalls
        stall = stalls.get(key)
        if stall is None:
            stall = stalls[key] = Stall(pipe, item, giver, behind)
        stall.cycles += cycles

    def _check_ends(self) -> None:
        """The walk has ended, and so must this: it has the same signals and the same waits."""
        stuck = [core for core in self._cores if not core.ended]
        if not stuck:
            return
        core = stuck[0]
        item = self._items[core.items[min(core.at, len(core.items) - 1)]]
        raise fail(
            "timing.hang",
            f"{core.timed.stream.place} of block {core.timed.blocks[0]} does not get beyond "
            f"{item.label} in the model, though it did as it ran",
            site=item.site,
            fix="please report the kernel",
            kind=InternalError,
        )


def fold(blocks: Sequence[BlockStream], cores: int) -> list[_Unit]:
    """Put blocks on cores - the next where the last one has ended - and like ones together."""
    known: dict[Any, int] = {}  # lists that blocks share need not be compared
    shapes: dict[Any, int] = {}
    kinds: list[int] = []
    for block in blocks:
        lists = tuple(id(core.items) for core in block.cores)
        if lists not in known:
            shape = tuple((core.place, tuple(core.items)) for core in block.cores)
            known[lists] = shapes.setdefault(shape, len(shapes))
        kinds.append(known[lists])
    columns = [range(first, len(blocks), cores) for first in range(min(cores, len(blocks)))]
    groups: dict[tuple[int, ...], list[range]] = {}
    for column in columns:
        groups.setdefault(tuple(kinds[each] for each in column), []).append(column)
    firsts: list[_Unit] = []
    for like in groups.values():
        row = [_Unit([blocks[c[depth]] for c in like]) for depth in range(len(like[0]))]
        for unit, following in pairwise(row):
            unit.next = following
        firsts.append(row[0])
    return firsts


__all__ = ["Model", "Node", "Outcome", "Region", "Stall", "Timed", "Transfer", "fold"]
