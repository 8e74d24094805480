"""What a FIFO between the cores of a cluster is: its type, its flags, and the acts at its ends.

Everybody who needs to know what a TPUSH waits for, moves and signals asks here: the machine that
executes it, the checker, the passes that order the pipes of a core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType, bf16, f8e4m3, f16, hif8, i8
from ptokit.base.entry import public_record
from ptokit.base.enums import (
    AtomicType,
    ClipReluMode_t,
    Direction,
    LayoutMode_t,
    QuantMode_t,
    ReluPreMode,
    STPhase,
    TileSplitAxis,
    TileType,
)
from ptokit.base.namedtuple import NamedTuple
from ptokit.isa.effects import Bind, Effect, Move, Signal, Slot, Wait
from ptokit.isa.facts import Unknown
from ptokit.isa.targets import End, Target

FLAG_IDS = 16  # cross-core flags of a cluster
THROUGH_GM = (Direction.DIR_C2V_GM, Direction.DIR_V2C_GM, Direction.DIR_BOTH_GM)
_BOTH = (Direction.DIR_BOTH, Direction.DIR_BOTH_GM)
_, _UP, _LEFT, _UP_ODD, _LEFT_ODD = TileSplitAxis


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
        return not _tracks(target) and not self.is_direct(target)

    def asks_for_space(self, index: int, target: Target) -> bool:
        """`shouldWaitFree`, except where every slot is tracked."""
        return index >= self.SlotNum if _tracks(target) else self.shouldWaitFree(index)

    def announces_space(self, index: int, target: Target) -> bool:
        """`shouldNotifyFree`, except where every slot is tracked."""
        return _tracks(target) or self.shouldNotifyFree(index)

    def moves_on(self, target: Target) -> bool:
        """Whether the ends go on to the next entry by themselves."""
        return True

    def lanes(self, split: TileSplitAxis, target: Target) -> Sequence[int]:
        """The vector cores that take part in an entry."""
        rules = target.fifos
        alone = split == TileSplitAxis.TILE_NO_SPLIT and not (rules and rules.pairs_cores)
        return (0,) if alone else (0, 1)

    def is_cube(self, is_producer: bool, loc: TileType | None) -> bool:
        """Whether the cube core acts; where nothing else tells, the core decides as it runs."""
        if loc is not None:
            return loc != TileType.Vec
        if self.is_both:
            raise Unknown
        return self.carries_c2v == is_producer

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


def _tracks(target: Target) -> bool:
    return target.fifos is not None and target.fifos.tracks_slots


def half(split: TileSplitAxis, sub: int, rows: int, cols: int) -> tuple[int, int]:
    """First element and row pitch of the part of a vector core that holds rows x cols."""
    if split == _UP:
        return sub * rows * cols, cols
    if split == _LEFT:
        return sub * cols, 2 * cols
    if split == _UP_ODD:  # core 1 has one row less than core 0
        return sub * (rows + sub) * cols, cols
    if split == _LEFT_ODD:
        return sub * (cols + sub), 2 * cols + 2 * sub - 1
    return 0, cols


class Acting(NamedTuple):
    """A pipe as one of its ends sees it, whose core is known."""

    spec: PipeSpec
    at_cube: bool

    def is_cube(self, is_producer: bool, loc: TileType | None) -> bool:
        return self.at_cube


@public_record
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

    @property
    def register(self) -> str:
        """The register that holds the scale, or points at the scales; "": none."""
        mode = self.QuantPre.name
        if mode in ("NoQuant", "F322F16", "F322BF16"):
            return ""
        return "FPC" if mode.startswith("V") else "QUANT_PRE"

    def result(self, source: DType) -> DType:
        """The element type that arrives at the consumer."""
        name = self.QuantPre.name
        if "FP8" in name or "HIF8" in name:
            return hif8 if "HIF8" in name else f8e4m3
        if "BF16" in name:
            return bf16
        if "F16" in name and "S16" not in name:
            return f16
        return i8 if name.endswith(("REQ8", "B8_PRE")) else source


# ---- the acts at its ends, as effects ----------------------------------------------------------


def _end(o: Any, is_producer: bool) -> tuple[bool, End]:
    """Which way the entry goes, and the pipes of the end that acts."""
    tile = getattr(o, "tile", None)
    is_cube = o.pipe.is_cube(is_producer, None if tile is None else tile.loc)
    is_direct = o.pipe.spec.is_direct(o.target)
    return is_cube == is_producer, o.target.fifos.end(is_cube, is_producer, is_direct)


def allocates(o: Any) -> list[Effect]:
    """Wait for space and show the slot."""
    c2v, end = _end(o, is_producer=True)
    return [Wait(end.wait, Slot(c2v, is_free=True)), Bind("gmTensor")]


def pushes(o: Any) -> list[Effect]:
    """Wait for space, move the tile, tell the consumer; or only tell it of a slot in hand."""
    c2v, end = _end(o, is_producer=True)
    told: list[Effect] = [Signal(end.signal, Slot(c2v, is_free=False))]
    if o.tile is None:
        return told
    return [Wait(end.wait, Slot(c2v, is_free=True)), Move(end.data, "tile", "slot"), *told]


def pops(o: Any) -> list[Effect]:
    """Wait for an entry and show it; where the pop is a copy, give the slot back."""
    c2v, end = _end(o, is_producer=False)
    waits: list[Effect] = [Wait(end.wait, Slot(c2v, is_free=False))]
    if o.tile is None:
        return [*waits, Bind("gmTensor")]
    spec, done = o.pipe.spec, list[Effect]()
    if not spec.is_direct(o.target):
        done.append(Move(end.data, "slot", "tile"))
    if spec.frees_itself(o.target):
        done.append(Signal(end.signal, Slot(c2v, is_free=True)))
    return [*waits, Bind("tile"), *done]


def frees(o: Any) -> list[Effect]:
    """Give a slot back, unless the pop has done so."""
    c2v, end = _end(o, is_producer=False)
    is_done = o.target.fifos.pop_frees and o.pipe.spec.frees_itself(o.target)
    return [] if o.gmTensor is None and is_done else [Signal(end.signal, Slot(c2v, is_free=True))]
