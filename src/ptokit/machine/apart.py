"""A rank in a process of its own: its copies of windows, and how they are kept.

Memory is consistent where signals are. Before a rank notifies, waits or tests, all bytes of windows
that it has changed go to the others, found by comparing them with what they were; whatever others
have written comes in, in the one order that the hub gives it. In between every rank works on its
copies, at the same time as the others. It has copies of those windows that its program has asked
for: what is heard of others waits until it does. Words are written, and sums are added to, in the
order of the hub, so that none is lost.

What it does to windows is also told to whoever judges it (machine/judge.py): its accesses with what
its own pipes had completed by then, its signals, and which words it has seen. What others had
completed by then is not known here. A wait that was seen counts as an agent of its own, so that the
clocks of this process carry it along until somebody knows what it proved.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from ptokit.base.diagnostics import NotSupported, fail, where
from ptokit.base.layout import Array, raw_bytes
from ptokit.base.location import Location, Site
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.policy import Policy
from ptokit.isa import signals
from ptokit.isa.effects import Pipe, Word
from ptokit.machine.call_facts import facts_of
from ptokit.machine.clocks import PIPES
from ptokit.machine.core import Core, Engine
from ptokit.machine.events import Event
from ptokit.machine.executor import Executor
from ptokit.machine.findings import Findings
from ptokit.machine.flags import Clock
from ptokit.machine.history import History
from ptokit.machine.hub import Ask, News
from ptokit.machine.objects import GlobalObject
from ptokit.machine.ranks import Condition, Ranks
from ptokit.machine.regions import Ranges, Rows, behind
from ptokit.machine.words import write_word

_NEAR = 64  # equal bytes between two changes that are not worth two messages


class Spot(NamedTuple):
    """A byte of a window, wherever the window lies."""

    window: int
    rank: int
    offset: int


# ---- what ranks tell each other ------------------------------------------------------------------


class Changed(NamedTuple):
    """Bytes that a rank has written."""

    owner: int
    at: Spot
    data: Any  # the bytes, or what the line made of them


class Notified(NamedTuple):
    """A word that a rank has written, or added to."""

    owner: int
    number: int  # among those of the rank
    at: Spot
    token: Word
    agent: int
    time: int


Entry = Changed | Notified


class Line(Protocol):
    """How a rank reaches the hub, and what lies elsewhere."""

    def ask(self, what: Ask, entries: Sequence[Entry]) -> News:
        """Say what was written, and hear what was asked for."""
        ...

    def bytes_of(self, entries: Sequence[Changed]) -> Sequence[Array]:
        """The bytes that others have written."""
        ...

    def contents(self, window: Any) -> Array:
        """What the window of a rank holds before the run."""
        ...


def write_all(entries: Iterable[Entry], windows: Sequence[Sequence[Array]]) -> None:
    """Write into windows what ranks have told each other, in that order."""
    for entry in entries:
        at = entry.at
        memory = raw_bytes(windows[at.window][at.rank])[at.offset :]
        if isinstance(entry, Changed):
            memory[: len(entry.data)] = entry.data
        else:
            signals.notify(memory[:4].view(np.int32), entry.token)


# ---- what they tell the judge --------------------------------------------------------------------


class Scope(NamedTuple):
    """What findings are told by: a launch, or the program around launches."""

    number: int
    target: str
    policy: Policy
    event_ids: int
    schedule: str
    is_launch: bool


class Made(NamedTuple):
    """An instruction that touches windows: what its executions have in common."""

    number: int
    insn: str
    moves_entries: bool
    pipe: Pipe
    site: Location


class Known(NamedTuple):
    """A core, for the names in messages."""

    number: int
    kind: str
    block: int
    subblock: int
    rank: int
    owner: int | None  # of an engine
    title: str
    is_silent: bool


class Used(NamedTuple):
    """What an access touches, behind the first byte of a window."""

    operand: str
    writes: bool
    at: Spot
    place: Rows | Ranges
    atomic: str
    is_over: bool
    pattern: Any


class Touched(NamedTuple):
    """An executed instruction."""

    agent: int
    time: int
    known: dict[int, int]
    made: int
    scope: int
    uses: tuple[Used, ...]


class Told(NamedTuple):
    """A word that was written, with what that proves."""

    at: Spot
    token: Word
    known: dict[int, int] | None
    agent: int
    time: int


class Learnt(NamedTuple):
    """Words that were seen to satisfy a comparison."""

    at: tuple[Spot, ...]
    token: Word
    known: dict[int, int]
    agent: int
    seen: tuple[int, int]  # the agent that stands for it, and its time


class Stored(NamedTuple):
    """Bytes that were written where signals may lie."""

    at: Spot
    data: bytes


class Paused(NamedTuple):
    """A moment at which a random schedule may turn to another rank."""


class Tested(NamedTuple):
    """A test that failed."""


class Ended(NamedTuple):
    """A launch has ended; what is wrong with it is told now."""


Item = (
    Scope | Made | Known | Touched | Told | Learnt | Stored | Paused | Tested | Ended
)  # fmt: skip


# ---- windows -------------------------------------------------------------------------------------


Window = tuple[int, int]  # which one, and of which rank


class Reached(tuple[Array, ...]):
    """The arrays of one window, each of which is filled when it is first asked for.

    One that nobody asks for is a range of addresses without memory behind it.
    """

    before: Callable[[int], None]  # somebody is given the array of a rank

    def __new__(cls, arrays: Iterable[Array], before: Callable[[int], None]) -> Reached:
        made = super().__new__(cls, arrays)
        made.before = before
        return made

    def __getitem__(self, at: Any) -> Any:
        numbers = range(len(self))[at]
        for number in numbers if isinstance(numbers, range) else (numbers,):
            self.before(number)
        return super().__getitem__(at)

    def __iter__(self) -> Iterator[Array]:
        return (self[number] for number in range(len(self)))


class Copies:
    """The windows that a rank reaches, as it has them and as they were last heard of."""

    def __init__(self) -> None:
        self._arrays: list[tuple[Array, ...]] = []
        self._before: dict[Window, Array] = {}
        self._bounds: list[tuple[int, int, int, int]] = []  # first, last, window, rank

    def add(self, arrays: tuple[Array, ...]) -> None:
        number = len(self._arrays)
        self._arrays.append(arrays)
        for rank, each in enumerate(arrays):
            self._bounds.append((*np.lib.array_utils.byte_bounds(each), number, rank))

    def begin(self) -> None:
        """Another run: nothing is reached."""
        self._before.clear()

    def has(self, window: Window) -> bool:
        """Whether it was reached."""
        return window in self._before

    def fill(self, window: Window, given: Array) -> None:
        """A window is reached, and holds this."""
        array = self._arrays[window[0]][window[1]]
        array[...] = given
        self._before[window] = raw_bytes(array).copy()

    def kind(self, at: Spot) -> Any:
        """The type of the elements there."""
        return self._arrays[at.window][at.rank].dtype

    def address(self, at: Spot) -> int:
        array = self._arrays[at.window][at.rank]
        return int(np.lib.array_utils.byte_bounds(array)[0]) + at.offset

    def spot(self, address: int) -> Spot | None:
        """Which byte of which window lies at an address."""
        for low, high, window, rank in self._bounds:
            if low <= address < high:
                return Spot(window, rank, address - low)
        return None

    def bytes_at(self, at: Spot, count: int) -> Array:
        """So many bytes of a window."""
        return raw_bytes(self._arrays[at.window][at.rank])[at.offset : at.offset + count]

    def put(self, at: Spot, data: Array) -> None:
        """Bytes that came from elsewhere."""
        self.bytes_at(at, len(data))[...] = data
        self._before[at.window, at.rank][at.offset : at.offset + len(data)] = data

    def changes(self) -> Generator[tuple[Spot, Array], None, None]:
        """The bytes that were written here since this was asked last."""
        for (number, rank), old in sorted(self._before.items(), key=itemgetter(0)):
            new = raw_bytes(self._arrays[number][rank])
            for start, stop in _stretches(old, new):
                old[start:stop] = new[start:stop]
                yield Spot(number, rank, start), old[start:stop].copy()


def _stretches(old: Array, new: Array) -> list[tuple[int, int]]:
    """Where two arrays of bytes differ."""
    if np.array_equal(old, new):
        return []
    places = np.flatnonzero(old != new)
    ends = [0, *(np.flatnonzero(np.diff(places) > _NEAR) + 1).tolist(), len(places)]
    return [(int(places[a]), int(places[b - 1]) + 1) for a, b in pairwise(ends)]


# ---- a rank --------------------------------------------------------------------------------------


class RanksApart(Ranks):
    """All ranks of a world, as one of them sees them from its own process."""

    is_apart = True

    def __init__(self, size: int, number: int) -> None:
        super().__init__(size)
        self.number = number
        self.copies = Copies()
        self.history: HistoryApart = HistoryApart(self)  # type: ignore[assignment]
        self.items: list[Item] = []
        self.is_hopeless = False  # told that what it waits for will never come
        self.was_hopeless = False
        self._line: Line | None = None
        self._contents: Sequence[Sequence[Any]] = ()
        self._later: dict[Window, list[Entry]] = {}  # heard of windows that were not reached
        self._clocks: dict[int, Clock | None] = {}  # of its own signals that have not come round
        self._told = 0
        self._has_lock = False

    def add_window(self, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        self.copies.add(arrays)
        self.history.add_window(arrays)
        reached = Reached(arrays, partial(self._reach, len(self.windows)))
        self.windows.append(reached)
        return reached

    def locate(self, tensor: GlobalObject) -> tuple[tuple[Array, ...], int, int] | None:
        at = tensor.data()
        spot = self.copies.spot(at.buffer.base + at.offset)
        return None if spot is None else (self.windows[spot.window], spot.rank, spot.offset)

    @contextmanager
    def on(self, line: Line, contents: Sequence[Sequence[Any]]) -> Generator[None, None, None]:
        """While the program of the rank runs; the line knows what windows hold before."""
        self.copies.begin()
        self._later.clear()
        self.items, self._line, self._contents = [], line, contents
        self.is_hopeless = self.was_hopeless = False
        self.history.begin()
        try:
            yield
        finally:
            self.was_hopeless = self.is_hopeless
            self._ask(Ask.END)
            self._line, self._contents = None, ()
            self.history.settle()

    def _reach(self, window: int, rank: int) -> None:
        """Somebody is about to use the window of a rank: let it hold what it should by now."""
        if self._line is not None and not self.copies.has((window, rank)):
            self.copies.fill((window, rank), self._line.contents(self._contents[window][rank]))
            self._take(self._later.pop((window, rank), []))

    def _ask(self, what: Ask) -> None:
        assert self._line is not None
        self._hear(self._line.ask(what, self._entries()))

    def _entries(self) -> list[Entry]:
        found: list[Entry] = []
        for at, data in self.copies.changes():
            found.append(Changed(self.number, at, data))
            if self.copies.kind(at) == np.int32:
                self.items.append(Stored(at, data.tobytes()))
        return found

    def _hear(self, news: News) -> None:
        self.is_hopeless = news.is_hopeless
        near: list[Entry] = []
        for each in news.entries:
            window = each.at.window, each.at.rank
            (near if self.copies.has(window) else self._later.setdefault(window, [])).append(each)
        self._take(near)

    def _take(self, entries: Sequence[Entry]) -> None:
        """Write what others have written; words also if they are its own, in their order."""
        assert self._line is not None
        new = [e for e in entries if isinstance(e, Changed) and e.owner != self.number]
        data = iter(self._line.bytes_of(new))
        for each in entries:
            if isinstance(each, Changed):
                if each.owner != self.number:
                    self.copies.put(each.at, next(data))
                continue
            address = self.copies.address(each.at)
            word = self.copies.bytes_at(each.at, 4).view(np.int32)
            clock: Clock | None = Clock()
            if each.owner == self.number:
                clock = self._clocks.pop(each.number)
            write_word(self.history.words, address, word, each.token, clock, each.agent, each.time)
            self.copies.put(each.at, word.view(np.uint8).copy())

    # ---- signals --------------------------------------------------------------------------------

    def refresh(self) -> None:
        self._ask(Ask.LOOK)

    def notified(
        self, word: GlobalObject, token: Word, clock: Clock | None, agent: int, time: int
    ) -> bool:
        at = word.data()
        spot = self.copies.spot(at.buffer.base + at.offset)
        if spot is None or self._line is None:
            return False
        entries = self._entries()
        self._clocks[self._told] = clock
        entries.append(Notified(self.number, self._told, spot, token, agent, time))
        self._told += 1
        self.items.append(Told(spot, token, None if clock is None else clock.flat(), agent, time))
        self._hear(self._line.ask(Ask.LOOK, entries))
        return True

    def seen(self, addresses: Sequence[int], token: Word, known: Clock, agent: int) -> Clock:
        spots = tuple(filter(None, map(self.copies.spot, addresses)))
        if not spots:
            return Clock()
        seen = self.history.stand_in(agent // PIPES)
        self.items.append(Learnt(spots, token, known.flat(), agent, seen))
        return Clock([seen])

    # ---- turns ----------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        return self._line is not None

    def wait(self, ready: Condition) -> bool:
        while not ready():
            if self.is_hopeless or self._line is None:
                return False
            self._ask(Ask.WAIT)
        return True

    def poll(self) -> bool:
        if self._line is None:
            return True
        if not self.items or not isinstance(self.items[-1], Tested):  # in a row they are one
            self.items.append(Tested())
        self._ask(Ask.POLL)
        return not self.is_hopeless

    def pause(self) -> None:
        self.items.append(Paused())

    def executing(self, executor: Executor) -> InTurn:
        return InTurn(executor, self)

    # ---- sums -----------------------------------------------------------------------------------

    @contextmanager
    def alone(self) -> Generator[None, None, None]:
        """While memory is changed in place, nobody else does that."""
        if self._line is None or self._has_lock:
            yield
            return
        self._ask(Ask.LOCK)
        self._has_lock = True
        try:
            yield
        finally:
            self._has_lock = False
            self._ask(Ask.UNLOCK)

    @property
    def gates(self) -> dict[Any, Any]:
        """The collective unit belongs to no rank."""
        raise fail(
            "cluster",
            "ranks on a cluster have no collective unit: it reaches the memory of all of them",
            fix="World(n) without jobs has them in one process; without CollEngine.CCU the root "
            "moves the data itself",
            kind=NotSupported,
        )


class InTurn:
    """An executor that changes windows in place only while no other rank does."""

    def __init__(self, inner: Executor, ranks: RanksApart) -> None:
        self._inner, self._ranks = inner, ranks

    def call(self, insn: Any, operands: Sequence[Any], attrs: Any, site: Site | Location) -> Any:
        return self._inner.call(insn, operands, attrs, site)

    def execute(self, call: Any, operands: Sequence[Any], site: Site | Location) -> Any:
        if facts_of(call).atomic and any(map(self._is_shared, operands)):
            with self._ranks.alone():
                return self._inner.execute(call, operands, site)
        return self._inner.execute(call, operands, site)

    def _is_shared(self, operand: Any) -> bool:
        return isinstance(operand, GlobalObject) and self._ranks.locate(operand) is not None


# ---- what it did ---------------------------------------------------------------------------------


class HistoryApart(History):
    """The accesses and signals of one rank, noted for whoever judges them with those of others."""

    def __init__(self, ranks: RanksApart) -> None:
        super().__init__()
        self._ranks = ranks
        self._seen: dict[int, int] = {}  # waits of a core, in all runs
        self.begin()

    def begin(self) -> None:
        """Another run: whoever judges it knows nothing yet."""
        self._scopes: dict[int, tuple[int, Findings]] = {}
        self._made: dict[Any, tuple[int, Any]] = {}
        self._cores: set[tuple[Any, ...]] = set()

    def stand_in(self, core: int) -> tuple[int, int]:
        """The agent that stands for what a core has seen of others, and how often it did."""
        self._seen[core] = count = self._seen.get(core, 0) + 1
        return -1 - core, count

    def seen(self, event: Event, known: Clock, findings: Findings) -> None:
        ranks, uses = self._ranks, list[Used]()
        accesses: list[Any] = []
        for use in event.uses:
            region = use.region
            at = ranks.copies.spot(region.start) if region.memory == "GM" else None
            if at is None:
                continue
            place = behind(region.rows or region.ranges, -region.start)
            accesses = accesses or [*event.reached]
            mine = (a for a in accesses if a.operand == use.operand and a.writes == use.writes)
            found = next(mine, None)
            base = Spot(at.window, at.rank, at.offset)
            pattern = None
            if found is not None:
                pattern = found.pattern, found.memory.base + found.offset - region.start
            uses.append(
                Used(use.operand, use.writes, base, place, use.atomic, use.is_over, pattern)
            )
        if uses:
            core = findings.cores[event.agent // PIPES]
            self._know_core(core)
            scope, made = self._know_scope(findings, core), self._know_made(event)
            ranks.items.append(
                Touched(event.agent, event.time, known.flat(), made, scope, tuple(uses))
            )

    def launch_ended(self, rank: int) -> None:
        super().launch_ended(rank)
        self._ranks.items.append(Ended())

    def _know_scope(self, findings: Findings, core: Core) -> int:
        found = self._scopes.get(id(findings))
        if found is None:
            number = len(self._scopes)
            self._scopes[id(findings)] = found = number, findings
            self._ranks.items.append(
                Scope(
                    number,
                    findings.target,
                    findings.policy,
                    findings.event_ids,
                    findings.schedule,
                    core.issuer.number != self.first_core(self._ranks.number),
                )
            )
        return found[0]

    def _know_made(self, event: Event) -> int:
        site, call = where(event.site), event.call
        found = self._made.get((id(call), site))
        if found is None:
            number, insn = len(self._made), event.insn
            self._made[id(call), site] = found = number, call
            self._ranks.items.append(
                Made(number, insn.name, bool(insn.moves_entries), event.pipe, site)
            )
        return found[0]

    def _know_core(self, core: Core) -> None:
        is_engine = isinstance(core, Engine)
        known = Known(
            core.number,
            core.issuer.kind,
            core.block,
            core.subblock,
            self._ranks.number,
            core.owner if is_engine else None,
            core.title if is_engine else "",
            is_engine and core.is_silent,
        )
        if known not in self._cores:
            self._cores.add(known)
            self._ranks.items.append(known)
