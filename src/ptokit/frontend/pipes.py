"""TPipe and TMPipe as the pages write them, and the choice of the vector core to speak for.

`TPipe[0, Direction.DIR_C2V, 2048, 2]` forms a type, whose static rules are checked right there;
calling it with the memory of the slots opens the pipe.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar

from ptokit.base.diagnostics import fail
from ptokit.base.enums import Direction, FIFOType, VecCubeRatio
from ptokit.frontend.session import current
from ptokit.isa.pipes import FLAG_IDS, FixpipeParams, PipeSpec
from ptokit.machine.cluster import SUBBLOCKS, cluster_of
from ptokit.machine.fifo import PipeObject
from ptokit.machine.mpipe import MPipeObject, mpipe_spec
from ptokit.machine.objects import TileObject

__all__ = ["FixpipeParams", "TMPipe", "TPipe", "cube", "subblock"]


class _PipeMeta(type):
    SPEC: PipeSpec | None = None

    def __getitem__(cls, given: Any) -> type[TPipe]:
        args: list[Any] = list(given) if isinstance(given, tuple) else [given]
        if not 4 <= len(args) <= 7:
            raise fail(
                "TPipe.arguments",
                "TPipe takes FlagID, DirType, SlotSize and SlotNum, and up to three more",
                got=[("arguments", args)],
                fix="TPipe[FlagID, DirType, SlotSize, SlotNum, LocalSlotNum, IsNoSplit, "
                "EN_UNIT_FLAG]",
            )
        flag, direction, size, slots, *more = args
        local, *switches = (*more, *(2, False, False)[len(more) :])
        numbers = (int(size), int(slots), int(local))
        spec = PipeSpec(int(flag), Direction(direction), *numbers, *map(bool, switches))
        _check(spec)
        return pipe_class(spec)

    def __getattr__(cls, name: str) -> Any:
        """The static members: `Pipe.SyncPeriod`, `Pipe.shouldWaitFree(index)` ..."""
        if cls.SPEC is None or name.startswith("__"):
            raise AttributeError(f"{cls.__name__} has no attribute {name}")
        return getattr(cls.SPEC, name)

    def __repr__(cls) -> str:
        return cls.__name__


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


class TPipe(PipeObject, metaclass=_PipeMeta):
    """A FIFO between the cube core and its vector cores; write `TPipe[...]` to form its type."""

    SPEC: ClassVar[PipeSpec | None] = None

    def __init__(
        self, gm_slot_buffer: Any = None, c2v_consumer_buf: int = 0, v2c_consumer_buf: int = 0
    ) -> None:
        if self.SPEC is None:
            raise fail(
                "pipe-type",
                "TPipe is not a type yet",
                fix="form one first: Pipe = TPipe[FlagID, Direction.DIR_C2V, SlotSize, SlotNum]",
            )
        super().__init__(
            self.SPEC, current(), gm_slot_buffer, int(c2v_consumer_buf), int(v2c_consumer_buf)
        )


@cache
def pipe_class(spec: PipeSpec) -> type[TPipe]:
    """The one class with these template arguments."""
    return _PipeMeta(str(spec), (TPipe,), {"SPEC": spec})  # type: ignore[return-value]


class _MPipeMeta(type):
    ARGS: tuple[Any, ...] | None = None

    def __getitem__(cls, given: Any) -> type[TMPipe]:
        args: list[Any] = list(given) if isinstance(given, tuple) else [given]
        # SyncT, the fourth argument, has no effect; it may be left out here.
        if len(args) > 3 and not (isinstance(args[3], type) and issubclass(args[3], TileObject)):
            del args[3]
        if not 5 <= len(args) <= 8:
            raise fail(
                "TMPipe.arguments",
                "TMPipe takes FlagID, FIFOType, Depth, TileProd and TileCons, and up to three more",
                got=[("arguments", args)],
                fix="TMPipe[FlagID, FIFOType, Depth, SyncT, TileProd, TileCons, EN_UNIT_FLAG, "
                "LocalDepth, VCRatio]",
            )
        defaults: list[Any] = [False, 2, VecCubeRatio.V2C1_VECS]
        return mpipe_class(tuple(args + defaults[len(args) - 5 :]))

    def __repr__(cls) -> str:
        return cls.__name__


class TMPipe(MPipeObject, metaclass=_MPipeMeta):
    """The older FIFO, used with `TPUSH(tile, pipe)`, `TPOP(tile, pipe)` and `TFREE(pipe)`.

    `TMPipe[...](memory, address)`: the slots in global memory and the consumer's local buffer; or
    `TMPipe[...](address)` for slots in UB or L1.
    """

    ARGS: ClassVar[tuple[Any, ...] | None] = None

    def __init__(self, fifo_base: Any, local_base: int = 0) -> None:
        if self.ARGS is None:
            raise fail("pipe-type", "TMPipe is not a type yet", fix="form one first: TMPipe[...]")
        flag, fifo, depth, producer, consumer, unit_flag, local_depth, ratio = self.ARGS
        machine = current()
        spec = mpipe_spec(
            int(flag),
            FIFOType(fifo),
            int(depth),
            producer.spec_for(machine.target),
            consumer.spec_for(machine.target),
            bool(unit_flag),
            int(local_depth),
            VecCubeRatio(ratio),
            machine.target.name,
        )
        super().__init__(spec, machine, fifo_base, int(local_base))


@cache
def mpipe_class(args: tuple[Any, ...]) -> type[TMPipe]:
    """The one class with these template arguments."""
    name = f"TMPipe[{args[0]}, {FIFOType(args[1]).name}, {args[2]}]"
    return _MPipeMeta(name, (TMPipe,), {"ARGS": args})  # type: ignore[return-value]


# ---- which core a single instruction stream speaks for ------------------------------------------


@contextmanager
def subblock(number: int) -> Generator[None]:
    """Act as a vector core: `with subblock(1): TPOP(pipe, tile)` (interactive use)."""
    if not 0 <= number < SUBBLOCKS:
        raise fail(
            "subblock", f"vector cores are numbered 0 to {SUBBLOCKS - 1}", got=[("number", number)]
        )
    with _acting(number, "vector"):
        yield


@contextmanager
def cube() -> Generator[None]:
    """Act as the cube core (interactive use)."""
    with _acting("cube", "cube"):
        yield


@contextmanager
def _acting(role: str | int, part: str) -> Generator[None]:
    machine = current()
    before = machine.core
    if before.kind != "mix":
        raise fail(
            "subblock",
            "a kernel cannot change the core it runs on",
            got=[("core", before.name)],
            fix="launch a program for each kind of core",
        )
    core = cluster_of(before).cores[role]
    playing = core.playing
    machine.core, core.playing = core, part
    try:
        yield
    finally:
        core.playing = playing
        machine.core = before
