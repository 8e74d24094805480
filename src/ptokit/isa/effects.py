"""What an operation does to the order of work, as data.

A signal leaves a pipe behind its earlier work and gives a token; a wait holds the later work of a
pipe until the token has come, and takes it. Tokens say what is signalled; who stands behind one
- which semaphores of which cores - is the machine's business. The meaning of a record that only
orders is its list of effects, `effects=lambda o: [...]`; scheduler, lowering, passes, checker and
emitters ask the record (`insn.orders`) instead of knowing names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

from ptokit.base.dataclass import dataclass
from ptokit.base.enums import TileType
from ptokit.base.namedtuple import NamedTuple

if TYPE_CHECKING:
    from ptokit.isa.facts import Ops


class Pipe(IntEnum):
    """The execution pipes of a core, with their numbers in the instruction set."""

    S = 0  # scalar unit
    V = 1  # vector unit
    MTE1 = 2  # L1 to the cube's operand buffers
    MTE2 = 3  # GM to on-chip memory
    MTE3 = 4  # on-chip memory to GM
    M = 5  # cube unit
    ALL = 6
    FIX = 7  # accumulator to GM or on-chip memory

    __hash__ = int.__hash__  # every flag is looked up by two of them

    @property
    def key(self) -> Pipe:
        """What a call knows of a pipe given as an operand: itself."""
        return self


# ---- tokens --------------------------------------------------------------------------------------


class Flag(NamedTuple):
    """A flag inside a core: one pipe raises it for another."""

    src: Pipe
    dst: Pipe
    id: int


class Buffer(NamedTuple):
    """A numbered buffer: a wait acquires it from the pipes before, a signal releases it."""

    id: int


class Reach(Enum):
    """Whom a cross-core signal reaches."""

    KIND = 0  # a meeting of all cores of the kind
    PAIR = 1  # a meeting of the two vector cores of the cluster
    CLUSTER = 2  # cube to both vector cores, or both vector cores to cube
    CORE = 3  # one core of the cluster


class CoreFlag(NamedTuple):
    """A counter of a core that other cores raise."""

    id: int
    reach: Reach


class Meeting(NamedTuple):
    """A barrier of all cores of these kinds: a signal arrives, a wait leaves with the last.

    `counter` names the operand in global memory at which `used` cores count themselves (0: all).
    """

    kinds: tuple[str, ...]
    counter: str = ""
    used: int = 0


class Slot(NamedTuple):
    """Slots of a FIFO: entries that are ready for the consumer, or space free for the producer."""

    c2v: bool  # from the cube core to the vector cores
    is_free: bool


class Word(NamedTuple):
    """A word in global memory by which devices tell each other how far they are.

    A signal writes the number into the word that the operand names, or adds it (a NotifyOp); a wait
    looks until every word of the operand compares with the number (a WaitCmp), and takes nothing.
    """

    operand: str
    number: int
    how: IntEnum


Token = Flag | Buffer | CoreFlag | Meeting | Slot | Word


# ---- effects -------------------------------------------------------------------------------------


class Signal(NamedTuple):
    """Give a token when the earlier work of the pipe is complete."""

    pipe: Pipe
    token: Token


class Wait(NamedTuple):
    """Hold the later work of the pipe until the token has come, and take it."""

    pipe: Pipe
    token: Token


class Test(NamedTuple):
    """Whether the token has come: the value of the operation, which goes on in any case."""

    pipe: Pipe
    token: Word


class Barrier(NamedTuple):
    """Complete the earlier work of a pipe (ALL: of the core) before its later work."""

    pipe: Pipe


class Move(NamedTuple):
    """Data that an operation moves between its signals: operands or slots read and written."""

    pipe: Pipe
    reads: str
    writes: str


class Bind(NamedTuple):
    """An operand is given its place: the current slot of a FIFO, or a local copy of it."""

    operand: str


class Clean(NamedTuple):
    """Write back and forget the line of the scalar data cache behind an operand ("": all)."""

    operand: str


class Fence(NamedTuple):
    """Wait until earlier scalar stores and write-backs have reached memory."""


class Cached(NamedTuple):
    """An element of global memory is read or written through the scalar data cache."""

    operand: str
    writes: bool


SIGNAL_BASE = "FFTS_BASE"  # the register with the address of the signals between cores


class Load(NamedTuple):
    """A configuration register of the core takes the value of an operand.

    Without one, whoever launches the program has set it, unless the program has.
    """

    register: str
    operand: str


Effect = Signal | Wait | Test | Barrier | Move | Bind | Clean | Fence | Cached | Load
Effects = Callable[["Ops"], list[Effect]]


def pipe_of(effects: Sequence[Effect]) -> Pipe:
    """The pipe on which an operation is seen: that of its data, else of what it orders last."""
    moved = [e.pipe for e in effects if isinstance(e, Move)]
    ordered = [e.pipe for e in effects if isinstance(e, Signal | Wait | Test | Barrier)]
    return moved[0] if moved else ordered[-1] if ordered else Pipe.S


class InAuto(Enum):
    """What becomes of an operation in auto mode, where the compiler orders the pipes."""

    RUNS = "runs"
    VANISHES = "vanishes"  # the language defines that nothing happens
    UNWANTED = "unwanted"  # a raw intrinsic: nothing happens, and the author is told


# ---- what an instruction does inside -------------------------------------------------------------


@dataclass(frozen=True)
class Scratch:
    """Bytes that the hardware uses beside the operands; whoever holds data there loses it.

    Where tiles are placed automatically no program can see them.
    """

    loc: TileType  # of the memory
    address: int
    most: int  # bytes
    nbytes: Callable[[Ops], int]


@dataclass(frozen=True)
class Steps:
    """How a composite instruction orders its own steps, on some targets and in some cases.

    `start` is what is complete before its first access, `between` and `end` what separates and
    follows its steps; flags are raised and taken at once and must not meet the program's own.
    """

    on: frozenset[str]
    when: Callable[[Ops], bool] | None = None
    start: tuple[Barrier | Flag, ...] = ()
    between: tuple[Barrier | Flag, ...] = ()
    end: tuple[Barrier | Flag, ...] = ()
    result_complete: bool = False  # later work of its pipe sees every byte without a barrier
    scratch_complete: bool = True
    scratch: Scratch | None = None

    @property
    def drains(self) -> frozenset[Pipe]:
        """Pipes that the scalar unit waits for, before it issues what comes next."""
        orders = (*self.start, *self.between, *self.end)
        return frozenset(o.src for o in orders if isinstance(o, Flag) and o.dst is Pipe.S)


def steps(
    on: str = "a2a3",
    when: Callable[[Ops], bool] | None = None,
    *,
    start: str = "",
    between: str = "",
    end: str = "",
    complete: bool = False,
    keeps_scratch: bool = False,
    scratch: Scratch | None = None,
) -> Steps:
    """Steps in short: "V" is a barrier of that pipe, "V->S" a flag with the id 0.

    `complete` says that later work of the pipe sees the results, `keeps_scratch` that scratch tiles
    may still be in use after the instruction.
    """

    def read(text: str) -> tuple[Barrier | Flag, ...]:
        pairs = ([Pipe[name] for name in word.split("->")] for word in text.split())
        return tuple(Barrier(p[0]) if len(p) == 1 else Flag(p[0], p[1], 0) for p in pairs)

    return Steps(
        frozenset(on.split()),
        when,
        *map(read, (start, between, end)),
        result_complete=complete,
        scratch_complete=not keeps_scratch,
        scratch=scratch,
    )


# How the vector instructions of a2a3 that take several steps order them.
IN_STEPS = steps(between="V")
SCRATCH_IN_USE = steps(between="V", keeps_scratch=True)
UNTIL_DONE = steps(between="V", end="V", complete=True)
ON_SCALAR_UNIT = steps(start="V->S", end="S->V", complete=True)
