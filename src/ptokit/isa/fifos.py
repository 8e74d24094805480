"""What a FIFO between the cores of a cluster is: its type, its flags, and the acts at its ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptokit.base.dtypes import DType, bf16, f16, i8
from ptokit.base.enums import (
    AtomicType,
    ClipReluMode_t,
    Direction,
    LayoutMode_t,
    QuantMode_t,
    ReluPreMode,
    STPhase,
    TileType,
)
from ptokit.isa.effects import Effect, Move, Signal, Slot, Wait
from ptokit.isa.facts import Unknown
from ptokit.isa.targets import End, Target

FLAG_IDS = 16  # cross-core flags of a cluster
THROUGH_GM = (Direction.DIR_C2V_GM, Direction.DIR_V2C_GM, Direction.DIR_BOTH_GM)
_BOTH = (Direction.DIR_BOTH, Direction.DIR_BOTH_GM)


@dataclass(frozen=True)
class PipeSpec:
    """The template arguments of a TPipe, and what follows from them."""

    FlagID: int
    DirType: Direction
    SlotSize: int  # bytes of one logical entry
    SlotNum: int
    LocalSlotNum: int = 2
    IsNoSplit: bool = False
    EN_UNIT_FLAG: bool = False

    @property
    def SyncPeriod(self) -> int:
        """How many entries one notification of free space stands for."""
        return self.SlotNum if self.SlotNum <= 2 else self.SlotNum // 2

    def shouldWaitFree(self, index: int) -> bool:
        """Whether the producer asks for free space before entry `index`."""
        return index >= self.SlotNum and index % self.SyncPeriod == 0

    def shouldNotifyFree(self, index: int) -> bool:
        """Whether the consumer announces free space after entry `index`."""
        return (index + 1) % self.SyncPeriod == 0

    @property
    def is_both(self) -> bool:
        return self.DirType in _BOTH

    @property
    def carries_c2v(self) -> bool:
        return self.is_both or self.DirType in (Direction.DIR_C2V, Direction.DIR_C2V_GM)

    @property
    def carries_v2c(self) -> bool:
        return self.is_both or self.DirType in (Direction.DIR_V2C, Direction.DIR_V2C_GM)

    def is_direct(self, target: Target) -> bool:
        """Whether entries go straight into the memory of the consumer."""
        rules = target.fifos
        return rules is not None and rules.is_direct and self.DirType not in THROUGH_GM

    def frees_itself(self, target: Target) -> bool:
        """Whether the pop of a tile copies the entry and gives its slot back."""
        rules = target.fifos
        return rules is not None and not rules.tracks_slots and not self.is_direct(target)

    def local_bytes(self, target: Target) -> int:
        """How much of the consumer's memory the local slots take."""
        slots = self.SlotNum if self.is_direct(target) else self.LocalSlotNum
        return slots * self.SlotSize

    @property
    def last_flag(self) -> int:
        """The highest cross-core flag the pipe uses."""
        return self.FlagID + (3 if self.is_both else 1)

    def flags(self, c2v: bool) -> tuple[int, int]:
        """The flags of a direction: (an entry is ready, space is free)."""
        first = self.FlagID + (2 if self.is_both and not c2v else 0)
        return first, first + 1

    @property
    def spec(self) -> PipeSpec:
        """Itself: what is known of a pipe before it runs."""
        return self

    def __str__(self) -> str:
        return (
            f"TPipe[{self.FlagID}, {self.DirType.name}, {self.SlotSize} bytes, "
            f"{self.SlotNum} slots]"
        )


@dataclass(frozen=True)
class FixpipeParams:
    """How an accumulator is converted while it is pushed (the TConfig form of TPUSH)."""

    LayoutMode: LayoutMode_t = LayoutMode_t.NZ2ND
    QuantPre: QuantMode_t = QuantMode_t.NoQuant
    ReluMode: ReluPreMode = ReluPreMode.NoRelu
    Phase: STPhase = STPhase.Unspecified
    SubBlockId: int = 0
    AtomicT: AtomicType = AtomicType.AtomicNone
    ClipReluMode: ClipReluMode_t = ClipReluMode_t.NOCLIP_RELU
    IsChannelSplit: bool = False

    def result(self, source: DType) -> DType:
        """The element type that arrives at the consumer."""
        name = self.QuantPre.name
        if "BF16" in name:
            return bf16
        if "F16" in name and "S16" not in name:
            return f16
        return i8 if name.endswith(("REQ8", "B8_PRE")) else source


# ---- what they do to the order of work ---------------------------------------------------------


def _end(o: Any, is_producer: bool) -> tuple[bool, End]:
    """Which way the entry goes, and the pipes of the end that acts."""
    spec, tile = o.pipe.spec, getattr(o, "tile", None)
    if tile is not None:
        is_cube = tile.loc != TileType.Vec
    elif spec.is_both:
        raise Unknown  # the core that acts decides
    else:
        is_cube = spec.carries_c2v == is_producer
    is_direct = spec.is_direct(o.target)
    return is_cube == is_producer, o.target.fifos.end(is_cube, is_producer, is_direct)


def allocates(o: Any) -> list[Effect]:
    """Wait for space."""
    c2v, end = _end(o, is_producer=True)
    return [Wait(end.wait, Slot(c2v, is_free=True))]


def pushes(o: Any) -> list[Effect]:
    """Wait for space, move the tile, tell the consumer; or only tell it of a slot in hand."""
    c2v, end = _end(o, is_producer=True)
    told: list[Effect] = [Signal(end.signal, Slot(c2v, is_free=False))]
    if o.tile is None:
        return told
    return [Wait(end.wait, Slot(c2v, is_free=True)), Move(end.data, "tile", "slot"), *told]


def pops(o: Any) -> list[Effect]:
    """Wait for an entry and move it, and give its slot back where that is a copy."""
    c2v, end = _end(o, is_producer=False)
    waits: list[Effect] = [Wait(end.wait, Slot(c2v, is_free=False))]
    if o.tile is None or o.pipe.spec.is_direct(o.target):
        return waits
    given_back: list[Effect] = []
    if o.pipe.spec.frees_itself(o.target):
        given_back.append(Signal(end.signal, Slot(c2v, is_free=True)))
    return [*waits, Move(end.data, "slot", "tile"), *given_back]


def frees(o: Any) -> list[Effect]:
    """Give a slot back."""
    c2v, end = _end(o, is_producer=False)
    return [Signal(end.signal, Slot(c2v, is_free=True))]
