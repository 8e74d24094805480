"""What the cores of a launch issue, as lists of numbers that a model goes through again and again.

Every different thing that is issued - an instruction over operands of known sizes at a line, a
signal, a wait - is one `Item`; the stream of a core is a list of their numbers. Semaphores are
numbered per block in the order in which they are met, so that blocks which do the same have the
same streams; what differs, the places in global memory, is kept apart. Nothing here depends on a
parameter: costs are classes and features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import NotSupported, fail
from ptokit.base.location import Location, Site
from ptokit.base.namedtuple import NamedTuple
from ptokit.isa.costs import COMMUNICATION, NO_WORK, moved_bytes
from ptokit.isa.effects import Pipe
from ptokit.isa.spec import Insn
from ptokit.isa.targets import Target
from ptokit.machine.core import Core, Engine
from ptokit.machine.flags import Latch, Semaphore
from ptokit.machine.issue import Word
from ptokit.machine.launch_sync import Door, Meeting
from ptokit.machine.queues import Why
from ptokit.machine.ranks import here
from ptokit.machine.unit_flags import UnitFlag

Place = Site | Location
ALL = int(Pipe.ALL)
VECTOR_LOADS = 8  # of a core that plays both parts: the pipe that loads the vector side's memory
PIPE_NAMES = {int(pipe): pipe.name for pipe in Pipe} | {VECTOR_LOADS: "MTE2 (vector)"}


class Kind(IntEnum):
    """What an item is."""

    WORK = 0
    GIVE = 1
    TAKE = 2
    BARRIER = 3
    DRAIN = 4
    MEET = 5


class Cost(NamedTuple):
    """What an instruction costs, for any parameters: its class and what that depends on."""

    insn: Insn
    kind: str
    features: Mapping[str, float]
    bytes: float = 0.0  # that go through global memory
    writes: bool = False


class Touch(NamedTuple):
    """Bytes of an on-chip memory that an instruction uses, from the first to behind the last."""

    memory: str
    start: int
    stop: int
    reads: bool
    writes: bool
    operand: str


class Item(NamedTuple):
    """One thing that a core issues."""

    kind: Kind
    pipe: int
    site: Place
    label: str
    semaphores: tuple[int, ...] = ()  # below zero: shared by blocks
    cost: Cost | None = None
    pipes: tuple[int, ...] = ()
    total: int = 0  # cores that take part in a meeting
    is_early: bool = False  # a signal that does not wait until stores have landed
    touches: tuple[Touch, ...] = ()


Region = tuple[tuple[int, Any, int], ...]  # of every view: its address, itself, its array


@dataclass
class CoreStream:
    """What one core issues."""

    place: str  # "cube", "vector 0"
    kind: str
    items: list[int] = field(default_factory=list[int])
    regions: list[Region] = field(default_factory=list[Region])  # of what goes to global memory


@dataclass
class BlockStream:
    """What the cores of one block issue."""

    block: int
    cores: list[CoreStream]
    initial: tuple[int, ...] = ()  # semaphores that have a token from the start
    latches: frozenset[int] = frozenset()


@dataclass
class Streams:
    """A launch as it was issued."""

    target: str
    items: list[Item]
    blocks: list[BlockStream]
    capacities: Mapping[str, int] = field(default_factory=dict[str, int])  # of memories, in bytes

    @property
    def events(self) -> int:
        return sum(len(core.items) for block in self.blocks for core in block.cores)


class Recorder:
    """The listener that makes the streams of a launch."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._items: list[Item] = []
        self._known: dict[Any, int] = {}
        self._kept: list[Any] = []  # whose identity is a key
        self._blocks: dict[int, BlockStream] = {}
        self._cores: dict[int, CoreStream] = {}
        self._numbers: dict[int, dict[Any, int]] = {}  # of semaphores, by block
        self._shared: dict[Any, int] = {}  # of those that blocks share
        self._costs: dict[int, tuple[Cost, list[int]]] = {}
        self._meetings: dict[int, int] = {}
        self._rank = here()  # the device, where there are others

    def streams(self) -> Streams:
        """All that was issued, by block."""
        blocks = [self._blocks[number] for number in sorted(self._blocks)]
        spaces = self._target.spaces.values()
        capacities = {space.memory: space.capacity for space in spaces}
        return Streams(self._target.name, self._items, blocks, capacities)

    # ---- the listener ---------------------------------------------------------------------------

    def work(self, core: Core, call: Any, operands: Sequence[Any], site: Place) -> None:
        if call.insn.binds or call.insn.cost is NO_WORK:
            return  # a name for a place: a device is told of it when the program is compiled
        is_far = self._rank is not None and self._is_far(call, operands)
        key = (id(call), _point(site), is_far)
        number = self._known.get(key)
        stream = self._cores.get(core.number) or self._core(core)
        if number is None:
            _refuse_micro(call, site)
            number = self._new_work(core, call, site, key, is_far)
        stream.items.append(number)
        if call.global_patterns and not is_far:
            stream.regions.append(tuple([_region(operands[i]) for i, _ in call.global_patterns]))

    def give(self, core: Core, pipe: Pipe, semaphores: Sequence[Semaphore], site: Place) -> None:
        if len(semaphores) == 1 and isinstance(semaphores[0], Door):
            door = semaphores[0]
            mine = self._number(core, door.mine, is_open=False)
            self._meet(core, pipe, door.meeting, mine, site)
            return
        self._order(core, Kind.GIVE, pipe, semaphores, site, None)

    def take(
        self,
        core: Core,
        pipe: Pipe,
        semaphores: Sequence[Semaphore],
        why: Callable[[], Why],
        site: Place,
    ) -> None:
        self._order(core, Kind.TAKE, pipe, semaphores, site, why)

    def barrier(self, core: Core, pipe: Pipe, site: Place) -> None:
        self._plain(core, Kind.BARRIER, int(pipe), site, f"pipe_barrier(PIPE_{pipe.name})")

    def drain(self, core: Core, pipes: frozenset[Pipe], site: Place) -> None:
        held = tuple(sorted(map(int, pipes)))
        self._plain(core, Kind.DRAIN, 0, site, "a step that waits for its pipe", held)

    def arrive(self, core: Core, meeting: Meeting, site: Place) -> None:
        self._meet(core, Pipe.S, meeting, self._number(core, meeting.latch, is_open=False), site)

    def end_block(self, block: int) -> None:
        self._numbers.pop(block, None)
        # Cores of blocks that are walked one by one have the same numbers.
        ended = {id(core) for core in self._blocks[block].cores} if block in self._blocks else ()
        self._cores = {n: stream for n, stream in self._cores.items() if id(stream) not in ended}

    def repeat(self, block: int, like: int, views: Mapping[str, Sequence[Sequence[Any]]]) -> bool:
        """A block issues what another one did, over other views of each core, by its place.

        False: it cannot be so.
        """
        found, cores = self._blocks[like], list[CoreStream]()
        for core in found.cores:
            mine = views.get(core.place, ())
            if len(core.regions) != len(mine):
                return False
            regions = [tuple([_region(view) for view in each]) for each in mine]
            cores.append(CoreStream(core.place, core.kind, core.items, regions))
        self._blocks[block] = BlockStream(block, cores, found.initial, found.latches)
        return True

    # ---- numbers ------------------------------------------------------------------------------

    def _core(self, core: Core) -> CoreStream:
        block = self._blocks.get(core.block)
        if block is None:
            block = self._blocks[core.block] = BlockStream(core.block, [])
        place = f"engine {core.number}" if isinstance(core, Engine) else core.place
        stream = self._cores[core.number] = CoreStream(place, core.kind)
        block.cores.append(stream)
        return stream

    def _number(self, core: Core, semaphore: Semaphore, *, is_open: bool = True) -> int:
        """The number of a semaphore: of its block, or below zero where blocks share it.

        What it holds when it is first met it has from the start, unless it is that of a meeting:
        whoever comes last finds it given, by coming.
        """
        numbers = self._numbers.get(core.block)
        if numbers is None:
            numbers = self._numbers[core.block] = {}
        found = numbers.get(semaphore)
        if found is not None:
            return found
        block = self._blocks.get(core.block)
        if block is None:
            self._core(core)
            block = self._blocks[core.block]
        if isinstance(semaphore, Word):
            return self._shared.setdefault(semaphore, _WORDS - len(self._shared))
        found = len(numbers)
        numbers[semaphore] = found
        if is_open:
            block.initial += (found,) * len(semaphore.tokens)
        if isinstance(semaphore, Latch):
            block.latches |= {found}
        return found

    def _order(
        self,
        core: Core,
        kind: Kind,
        pipe: Pipe,
        semaphores: Sequence[Semaphore],
        site: Place,
        why: Callable[[], Why] | None,
    ) -> None:
        stream = self._cores.get(core.number) or self._core(core)
        numbers = self._numbers.get(core.block)
        if numbers is not None and len(semaphores) == 1 and semaphores[0] in numbers:
            held: tuple[int, ...] = (numbers[semaphores[0]],)
        else:
            held = tuple([self._number(core, each) for each in semaphores])
        key = (kind, pipe, held, _point(site))
        number = self._known.get(key)
        if number is None:
            label = "a signal" if why is None else why().label
            side = self._side(core, pipe, semaphores)
            is_early = any(isinstance(each, UnitFlag) for each in semaphores)
            number = self._new(key, Item(kind, side, site, label, held, is_early=is_early))
        stream.items.append(number)

    def _side(self, core: Core, pipe: Pipe, semaphores: Sequence[Semaphore]) -> int:
        """The pipe of a core that plays both parts, each of which has its own loads."""
        if core.kind == "mix" and pipe is Pipe.MTE2:
            for semaphore in semaphores:
                ends = {getattr(getattr(semaphore, end, None), "pipe", None) for end in _ENDS}
                if Pipe.V in ends or Pipe.MTE3 in ends:
                    return VECTOR_LOADS
        return int(pipe)

    def _plain(
        self, core: Core, kind: Kind, pipe: int, site: Place, label: str, pipes: Any = ()
    ) -> None:
        stream = self._cores.get(core.number) or self._core(core)
        key = (kind, pipe, pipes, _point(site))
        number = self._known.get(key)
        if number is None:
            number = self._new(key, Item(kind, pipe, site, label, pipes=pipes))
        stream.items.append(number)

    def _meet(self, core: Core, pipe: Pipe, meeting: Meeting, mine: int, site: Place) -> None:
        """A round of a meeting has a number that all blocks share."""
        stream = self._cores.get(core.number) or self._core(core)
        turn = self._meetings.get(id(meeting))
        if turn is None:
            turn = self._meetings[id(meeting)] = len(self._meetings)
            self._kept.append(meeting)
        key = (Kind.MEET, pipe, turn, mine, _point(site))
        number = self._known.get(key)
        if number is None:
            held = (-1 - turn, mine)
            item = Item(Kind.MEET, int(pipe), site, meeting.what, held, total=meeting.total)
            number = self._new(key, item)
        stream.items.append(number)

    def _new(self, key: Any, item: Item) -> int:
        number = self._known[key] = len(self._items)
        self._kept.append(item.site)
        self._items.append(item)
        return number

    def _is_far(self, call: Any, operands: Sequence[Any]) -> bool:
        """Whether it reaches the memory of another device, through the link between them."""
        assert self._rank is not None
        found = [self._rank.ranks.locate(operands[i]) for i, _ in call.global_patterns]
        return any(each is not None and each[1] != self._rank.number for each in found)

    def _new_work(self, core: Core, call: Any, site: Place, key: Any, is_far: bool) -> int:
        self._kept.append(call)
        insn, ops = call.insn, call.ops
        written = {operand.name for operand in insn.operands if operand.writes}
        through = bool(call.global_patterns) and not is_far
        law = COMMUNICATION if is_far else insn.cost
        cost = Cost(
            insn,
            law.of(ops, written),
            law.measure(ops),
            moved_bytes(ops) if through else 0.0,
            any(pattern.writes for _, pattern in call.global_patterns),
        )
        pipe = int(call.pipe)
        if core.kind == "mix" and call.pipe is Pipe.MTE2 and _fills_vector_side(call):
            pipe = VECTOR_LOADS
        touches = tuple(_touches(call))
        # Cores that run at the same time have calls of their own, over memories of their own.
        same = (_point(site), insn, cost.kind, *cost.features.values(), cost.bytes, pipe, touches)
        number = self._known.get(same)
        if number is None:
            item = Item(Kind.WORK, pipe, site, insn.name, cost=cost, touches=touches)
            number = self._new(same, item)
        self._known[key] = number
        return number


_ENDS = ("source", "target")
_WORDS = -(1 << 40)  # numbers of words in global memory, which blocks share


def _refuse_micro(call: Any, site: Place) -> None:
    """What works below instructions has no class of cost."""
    if any("micro" in operand.kinds for operand in call.insn.operands):
        raise fail(
            "timing.class",
            f"{call.insn.name} works below instructions, of which no parameter file has numbers",
            fix="time the kernel with the instruction that does the same",
            site=site,
            kind=NotSupported,
        )


def _point(site: Place) -> Any:
    """What is the same wherever the same point of a program is met."""
    return (id(site.code), site.lasti) if isinstance(site, Site) else id(site)


def _region(view: Any) -> tuple[int, Any, int]:
    """Where a view begins, what it is, and the array that it is a part of."""
    at = view.pointer or view.data()
    return at.buffer.base + at.offset, view.key, at.buffer.base


def _touches(call: Any) -> Iterator[Touch]:
    for access in call.accesses:
        ranges = access.ranges()
        if ranges:
            ends = ranges[0][0], ranges[-1][1]
            yield Touch(access.memory.name, *ends, access.reads, access.writes, access.operand)


def _fills_vector_side(call: Any) -> bool:
    return any(access.memory.name == "UB" and access.writes for access in call.accesses)
