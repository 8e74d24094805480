"""TPipe and TMPipe as the pages write them, and the choice of the vector core to speak for.

`TPipe[0, Direction.DIR_C2V, 2048, 2]` forms a type, whose static rules are checked right there;
calling it with the memory of the slots opens the pipe.
"""

from __future__ import annotations

import operator
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, ClassVar

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import fail
from ptokit.base.entry import public
from ptokit.base.enums import Direction, FIFOType, VecCubeRatio
from ptokit.frontend.arguments import (
    arguments,
    choice,
    class_name,
    completed,
    index,
    no_such_argument,
    template,
)
from ptokit.frontend.session import current
from ptokit.isa.fifos import FLAG_IDS, FixpipeParams, PipeSpec
from ptokit.machine.cluster import SUBBLOCKS, cluster_of
from ptokit.machine.fifo import PipeObject
from ptokit.machine.mpipe import MPipeObject, mpipe_spec
from ptokit.machine.objects import TileObject

__all__ = ["FixpipeParams", "TMPipe", "TPipe", "cube", "subblock"]


_PATTERN = "TPipe[FlagID, DirType, SlotSize, SlotNum, LocalSlotNum, IsNoSplit, EN_UNIT_FLAG]"
_MPATTERN = (
    "TMPipe[FlagID, FIFOType, Depth, SyncT, TileProd, TileCons, EN_UNIT_FLAG, LocalDepth, VCRatio]"
)


@public
class _PipeMeta(type):
    SPEC: PipeSpec | None = None
    __repr__ = class_name

    def __getitem__(cls, given: Any) -> type[TPipe]:
        flag, direction, size, slots, local, *switches = completed(
            "TPipe",
            given,
            4,
            (2, False, False),
            "TPipe takes FlagID, DirType, SlotSize and SlotNum, and up to three more",
            _PATTERN,
        )
        with template("TPipe", _PATTERN, given):
            way, numbers = choice(Direction, direction), (index(size), index(slots), index(local))
            spec = PipeSpec(index(flag), way, *numbers, *map(bool, switches))
        _check(spec)
        return pipe_class(spec)

    def __getattr__(cls, name: str) -> Any:
        """The static members: `Pipe.SyncPeriod`, `Pipe.shouldWaitFree(index)` ..."""
        if cls.SPEC is None or name.startswith("__"):
            raise AttributeError(f"{cls.__name__} has no attribute {name}")
        return getattr(cls.SPEC, name)


def _check(spec: PipeSpec) -> None:
    """The static rules of the type."""
    if spec.SlotNum < 1:
        raise fail("TPipe.slots", "SlotNum >= 1", got=[("SlotNum", spec.SlotNum)])
    if spec.SlotSize < 1 or spec.LocalSlotNum < 1:
        raise fail(
            "TPipe.slots",
            "SlotSize and LocalSlotNum are positive",
            got=[("SlotSize", spec.SlotSize), ("LocalSlotNum", spec.LocalSlotNum)],
        )
    if spec.FlagID < 0 or spec.last_flag >= FLAG_IDS:
        need = 3 if spec.is_both else 1
        raise fail(
            "TPipe.flags",
            f"the flags of a pipe lie below {FLAG_IDS}: FlagID + {need} < {FLAG_IDS}",
            got=[("FlagID", spec.FlagID), ("DirType", spec.DirType.name)],
            fix="choose a lower FlagID; 11 to 14 belong to SYNCALL",
        )


@public
class TPipe(PipeObject, metaclass=_PipeMeta):
    """A FIFO between the cube core and its vector cores; write `TPipe[...]` to form its type."""

    SPEC: ClassVar[PipeSpec | None] = None

    def __init__(
        self,
        gm_slot_buffer: Any = None,
        c2v_consumer_buf: int = 0,
        v2c_consumer_buf: int = 0,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise no_such_argument(TPipe, unknown)
        if self.SPEC is None:
            raise fail(
                "pipe-type",
                "TPipe is not a type yet",
                fix="form one first: Pipe = TPipe[FlagID, Direction.DIR_C2V, SlotSize, SlotNum]",
            )
        given = (gm_slot_buffer, c2v_consumer_buf, v2c_consumer_buf)
        with template("TPipe", "Pipe(memory of the slots, address, address)", given, "arguments"):
            addresses = index(c2v_consumer_buf), index(v2c_consumer_buf)
        super().__init__(self.SPEC, current(), gm_slot_buffer, *addresses)


@cache
def pipe_class(spec: PipeSpec) -> type[TPipe]:
    """The one class with these template arguments."""
    return _PipeMeta(str(spec), (TPipe,), {"SPEC": spec})  # type: ignore[return-value]


@public
class _MPipeMeta(type):
    ARGS: tuple[Any, ...] | None = None
    __repr__ = class_name

    def __getitem__(cls, given: Any) -> type[TMPipe]:
        args = arguments(given)
        # SyncT, the fourth argument, has no effect; it may be left out here.
        if len(args) > 3 and not (isinstance(args[3], type) and issubclass(args[3], TileObject)):
            args = args[:3] + args[4:]
        flag, fifo, depth, made, taken, unit, local, ratio = completed(
            "TMPipe",
            args,
            5,
            (False, 2, VecCubeRatio.V2C1_VECS),
            "TMPipe takes FlagID, FIFOType, Depth, TileProd and TileCons, and up to three more",
            _MPATTERN,
        )
        with template("TMPipe", _MPATTERN, given):
            if not all(isinstance(t, type) and issubclass(t, TileObject) for t in (made, taken)):
                raise TypeError("TileProd and TileCons are tile types")
            ring = index(flag), choice(FIFOType, fifo), index(depth)
            more = bool(unit), index(local), choice(VecCubeRatio, ratio)
        return mpipe_class((*ring, made, taken, *more))


@public
class TMPipe(MPipeObject, metaclass=_MPipeMeta):
    """The older FIFO, used with `TPUSH(tile, pipe)`, `TPOP(tile, pipe)` and `TFREE(pipe)`.

    `TMPipe[...](memory, address)`: the slots in global memory and the consumer's local buffer; or
    `TMPipe[...](address)` for slots in UB or L1.
    """

    ARGS: ClassVar[tuple[Any, ...] | None] = None

    def __init__(self, fifo_base: Any, local_base: int = 0) -> None:
        if self.ARGS is None:
            raise fail("pipe-type", "TMPipe is not a type yet", fix="form one first: TMPipe[...]")
        with template("TMPipe", "Pipe(memory, address)", (fifo_base, local_base), "arguments"):
            address = index(local_base)
        flag, fifo, depth, *tiles, unit_flag, local_depth, ratio = self.ARGS
        machine = current()
        producer, consumer = (tile.spec_for(machine.target) for tile in tiles)
        ring = flag, fifo, depth, producer, consumer
        spec = mpipe_spec(*ring, unit_flag, local_depth, ratio, machine.target)
        super().__init__(spec, machine, fifo_base, address)


@cache
def mpipe_class(args: tuple[Any, ...]) -> type[TMPipe]:
    """The one class with these template arguments."""
    name = f"TMPipe[{args[0]}, {args[1].name}, {args[2]}]"
    return _MPipeMeta(name, (TMPipe,), {"ARGS": args})  # type: ignore[return-value]


# ---- which core a single instruction stream speaks for ------------------------------------------


@public
def subblock(number: int) -> AbstractContextManager[None]:
    """Act as a vector core: `with subblock(1): TPOP(pipe, tile)` (interactive use)."""
    if not 0 <= operator.index(number) < SUBBLOCKS:
        raise fail(
            "subblock", f"vector cores are numbered 0 to {SUBBLOCKS - 1}", got=[("number", number)]
        )
    return _Acting(number, "vector")


@public
def cube() -> AbstractContextManager[None]:
    """Act as the cube core (interactive use)."""
    return _Acting("cube", "cube")


@public
@dataclass(eq=False)
class _Acting(AbstractContextManager[None]):
    """One core of the cluster is in force for a block of code."""

    _role: str | int
    _part: str

    def __enter__(self) -> None:
        self._machine = current()
        self._before = self._machine.core
        if self._before.kind != "mix":
            raise fail(
                "subblock",
                "a kernel cannot change the core it runs on",
                got=[("core", self._before.name)],
                fix="launch a program for each kind of core",
            )
        self._core = cluster_of(self._before).cores[self._role]
        self._playing = self._core.playing
        self._machine.core, self._core.playing = self._core, self._part

    def __exit__(self, *_: object) -> None:
        self._core.playing = self._playing
        self._machine.core = self._before
