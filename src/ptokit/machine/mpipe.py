"""TMPipe, the older FIFO: its direction and split follow from the two tile types.

Every push waits for space and every pop gives it back, unless the caller switches that off, so a
pipe that is left alone runs in lock step; the constructor gives the first credit. Where the two
vector cores write or read in a ring in global memory is the caller's business (`setEntryOffset`).
On A5 the caller also moves the index (`setTileId`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import fail
from ptokit.base.enums import Direction, FIFOType, Layout, TileSplitAxis, TileType, VecCubeRatio
from ptokit.base.tensors import GlobalSpec
from ptokit.base.tiles import TileSpec
from ptokit.isa.effects import Move, Pipe
from ptokit.isa.fifos import PipeSpec
from ptokit.isa.targets import Target
from ptokit.machine.cluster import SUBBLOCKS, Role
from ptokit.machine.fifo import End, PipeObject
from ptokit.machine.fifo_state import ProducerState
from ptokit.machine.objects import TileObject

_NO, _UP, _LEFT, *_ = TileSplitAxis


@dataclass(frozen=True)
class MPipeSpec(PipeSpec):
    """The template arguments of a TMPipe, as a ring of slots."""

    fifo: FIFOType = FIFOType.GM_FIFO
    producer: TileSpec | None = None
    consumer: TileSpec | None = None
    ratio: VecCubeRatio = VecCubeRatio.V2C1_VECS

    @property
    def SyncPeriod(self) -> int:
        """Every entry is announced."""
        return 1

    @property
    def split(self) -> TileSplitAxis:
        """How the two vector cores share an entry: along the axis in which the tiles differ.

        A part may have rows that hold nothing (`CompactMode.RowPlusOne`).
        """
        assert self.producer is not None
        assert self.consumer is not None
        whole, part = self.producer, self.consumer
        if self.carries_v2c:
            whole, part = part, whole
        if self.ratio != VecCubeRatio.V2C1_VECS:
            return _NO
        rows, cols = part.rows != whole.rows, part.cols != whole.cols
        return _NO if rows == cols else _UP if rows else _LEFT

    def frees_itself(self, target: Target) -> bool:
        """Where TPOP copies the entry it gives the slot back; elsewhere TFREE does."""
        return not self.is_direct(target)

    def local_bytes(self, target: Target) -> int:
        """Slots in the memory of a consumer lie as close as its own tiles."""
        if not self.is_direct(target) or self.consumer is None:
            return super().local_bytes(target)
        return self.SlotNum * self.consumer.nbytes

    def asks_for_space(self, index: int, target: Target) -> bool:
        """Every push waits."""
        return True

    def announces_space(self, index: int, target: Target) -> bool:
        """Every pop gives back."""
        return True

    def moves_on(self, target: Target) -> bool:
        """Where the caller does not set the index."""
        return target.fifos is None or not target.fifos.leaves_index

    def lanes(self, split: TileSplitAxis, target: Target) -> Sequence[int]:
        """The vector cores that take part."""
        pairs = target.fifos is not None and target.fifos.pairs_cores
        if pairs or self.ratio == VecCubeRatio.V2C1_VECS:
            return range(SUBBLOCKS)
        return (int(self.ratio),)

    def __str__(self) -> str:
        return f"TMPipe[{self.FlagID}, {self.fifo.name}, {self.SlotNum} slots]"


def mpipe_spec(
    flag: int,
    fifo: FIFOType,
    depth: int,
    producer: TileSpec,
    consumer: TileSpec,
    unit_flag: bool,
    local_depth: int,
    ratio: VecCubeRatio,
    target: Target,
) -> MPipeSpec:
    """The ring behind these template arguments on a target."""
    if producer.loc not in (TileType.Acc, TileType.Vec) or fifo == FIFOType.CTRL_FIFO:
        raise fail(
            "TMPipe.tiles",
            "a TMPipe carries Acc tiles to the vector cores or Vec tiles to the cube core",
            got=[("TileProd", producer), ("TileCons", consumer), ("FIFOType", fifo.name)],
        )
    c2v = producer.loc == TileType.Acc
    if fifo != FIFOType.GM_FIFO and target.fifos is not None and target.fifos.pop_frees:
        raise fail(
            "TMPipe.fifo",
            "on A2/A3 a ring lies in global memory",
            got=[("FIFOType", fifo.name)],
            fix="use FIFOType.GM_FIFO",
            target=target.name,
        )
    way = Direction.DIR_C2V if c2v else Direction.DIR_V2C
    if fifo == FIFOType.GM_FIFO and target.fifos is not None and target.fifos.is_direct:
        way = Direction(way + 4)
    wide = max(consumer.cols // producer.cols, 1) if c2v else max(producer.cols // consumer.cols, 1)
    entry = producer if c2v else consumer
    return MPipeSpec(
        flag, way, wide * entry.nbytes, depth, local_depth, False, unit_flag,
        fifo, producer, consumer, ratio,
    )  # fmt: skip


class MPipeObject(PipeObject):
    """A TMPipe at run time."""

    spec: MPipeSpec

    def __init__(self, spec: MPipeSpec, machine: Any, base: Any, local: int) -> None:
        gm = base if spec.fifo == FIFOType.GM_FIFO else None
        ring = local if gm is not None else int(base)
        super().__init__(spec, machine, gm, ring, ring)
        self._first_credit()

    @property
    def end_type(self) -> type[End]:
        return MEnd

    def _first_credit(self) -> None:
        """The consumer announces one free slot when it opens the pipe."""
        core, c2v = self.machine.core, self.spec.carries_c2v
        if core.kind == ("cube" if c2v else "vector"):
            return
        lanes = self.spec.lanes(self.spec.split, self.target)
        roles: list[Role] = ["cube"]
        if c2v:
            roles = [s for s in lanes if core.kind == "mix" or s == core.subblock]
        free = self.spec.flags(c2v)[1]
        given = [s for role in roles for s in self.reached(role, free, "free space", lanes)]
        pipe = self.rules.end(not c2v, is_producer=False, is_direct=self.direct).signal
        self.machine.sync.signal(pipe, given, self.site)

    def _end(self, role: Role, state: ProducerState) -> None:
        """The producer takes the last credit back."""
        self._take_back(role, self.spec.split)


class MEnd(End):
    """One side of a TMPipe during one instruction."""

    @property
    def consumed(self) -> TileSpec | None:
        spec = self.pipe.spec
        assert isinstance(spec, MPipeSpec)
        return spec.consumer

    def slot(self) -> int:
        """Slots in the memory of a consumer lie as close as its own tiles."""
        if not self.pipe.direct or self.consumed is None:
            return super().slot()
        return self.state.tileIndex % self.pipe.spec.SlotNum * self.consumed.nbytes

    def place(self, tile: TileObject) -> None:
        """A slot in its own memory the caller has bound the tile to, as it has chosen the entry."""
        if not self.pipe.direct:
            super().place(tile)
            return
        self.machine.place(tile)
        tile.in_ring = True
        self.pipe.use_locally(self.role)

    def move(self, effect: Move) -> None:
        from ptokit.machine.entries import push_view  # few kernels have FIFOs

        spec, tile = self.pipe.spec, self.given["tile"]
        assert isinstance(spec, MPipeSpec)
        consumer = spec.consumer
        # Where the vector cores meet in a ring in global memory is the caller's business.
        self.split = spec.split if self.pipe.direct and effect.writes != "tile" else _NO
        wide = consumer is not None and tile.vc > consumer.cols
        if consumer is not None and wide and effect.pipe is Pipe.MTE3 and not self.pipe.direct:
            if self.present:
                self.machine.place(tile)
                self.perform(push_view(self, tile, _panels(tile, consumer), effect.pipe))
            return
        super().move(effect)


def _panels(tile: TileObject, consumer: TileSpec) -> GlobalSpec:
    """Column panels as wide as the consumer's tile, one after the other."""
    width = consumer.cols
    shape = (1, tile.vc // width, 1, tile.vr, width)
    stride = (1, consumer.rows * width, 1, width, 1)
    return GlobalSpec.of(tile.spec.dtype, shape, stride, Layout.NZ)
