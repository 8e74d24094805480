"""TMPipe, the older FIFO: its direction and split follow from the two tile types.

Every push waits for space and every pop gives it back, unless the caller switches that off, so a
pipe that is left alone runs in lock step; the constructor gives the first credit. Where the two
vector cores write or read in a ring in global memory is the caller's business (`setEntryOffset`).
On A5 the caller also moves the index (`setTileId`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ptokit.base.diagnostics import fail
from ptokit.base.enums import Direction, FIFOType, Layout, TileSplitAxis, TileType, VecCubeRatio
from ptokit.base.tensors import GlobalSpec
from ptokit.base.tiles import TileSpec
from ptokit.isa.fifos import FixpipeParams, PipeSpec
from ptokit.isa.spec import Pipe
from ptokit.machine.cluster import SUBBLOCKS
from ptokit.machine.entries import push, push_view
from ptokit.machine.fifo import End, PipeObject
from ptokit.machine.objects import TileObject
from ptokit.machine.providers import Context

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
        """How the two vector cores share an entry: one of their tiles is half of the cube's."""
        assert self.producer is not None
        assert self.consumer is not None
        whole, part = self.producer, self.consumer
        if self.carries_v2c:
            whole, part = part, whole
        if self.ratio != VecCubeRatio.V2C1_VECS:
            return _NO
        if 2 * part.rows == whole.rows:
            return _UP
        return _LEFT if 2 * part.cols == whole.cols else _NO

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
    target: str,
) -> MPipeSpec:
    """The ring behind these template arguments on a target."""
    if producer.loc not in (TileType.Acc, TileType.Vec) or fifo == FIFOType.CTRL_FIFO:
        raise fail(
            "TMPipe.tiles",
            "a TMPipe carries Acc tiles to the vector cores or Vec tiles to the cube core",
            got=[("TileProd", producer), ("TileCons", consumer), ("FIFOType", fifo.name)],
        )
    c2v = producer.loc == TileType.Acc
    if fifo != FIFOType.GM_FIFO and target == "a2a3":
        raise fail(
            "TMPipe.fifo",
            "on A2/A3 a ring lies in global memory",
            got=[("FIFOType", fifo.name)],
            fix="use FIFOType.GM_FIFO",
            target=target,
        )
    way = Direction.DIR_C2V if c2v else Direction.DIR_V2C
    if fifo == FIFOType.GM_FIFO and target == "a5":
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
    def frees_itself(self) -> bool:
        """A2/A3 gives the slot back in TPOP; elsewhere TFREE does."""
        return self.target.name == "a2a3"

    def asks_for_space(self, index: int) -> bool:
        """Every push waits."""
        return True

    def announces_space(self, index: int) -> bool:
        """Every pop gives back."""
        return True

    def producer(self, ctx: Context, tile: TileObject | None = None, sub: int | None = None) -> End:
        role = self._role(True, tile, sub)
        return MEnd(self, ctx, role, self.producer_state(role), c2v=role == "cube")

    def consumer(self, ctx: Context, tile: TileObject | None = None, sub: int | None = None) -> End:
        role = self._role(False, tile, sub)
        return MEnd(self, ctx, role, self.consumer_state(role), c2v=role != "cube")

    @property
    def lanes(self) -> Sequence[int]:
        """The vector cores that take part."""
        if self.target.name == "a2a3" or self.spec.ratio == VecCubeRatio.V2C1_VECS:
            return range(SUBBLOCKS)
        return (int(self.spec.ratio),)

    def _first_credit(self) -> None:
        """The consumer announces one free slot when it opens the pipe."""
        core, c2v = self.machine.core, self.spec.carries_c2v
        free, what = self.spec.flags(c2v)[1], "free space"
        sync = self.machine.sync
        if c2v and core.kind != "cube":
            subs = self.lanes if core.kind == "mix" else [core.subblock]
            given = [self.flag("cube", free, what, s) for s in subs if s in self.lanes]
            sync.signal(Pipe.MTE2 if not self.direct else Pipe.V, given, self.site)
        elif not c2v and core.kind != "vector":
            given = [self.flag(s, free, what) for s in self.lanes]
            sync.signal(Pipe.MTE2 if not self.direct else Pipe.MTE1, given, self.site)

    def close(self, core: Any) -> None:
        """The producer takes the last credit back."""
        for (owner, role), _ in list(self._producers.items()):
            mine = role == "cube" if core.kind == "cube" else role == core.subblock
            if owner == self._owner() and (mine or core.kind == "mix"):
                self._take_back(role, self.spec.split)


class MEnd(End):
    """One side of a TMPipe during one instruction."""

    pipe: MPipeObject

    def _partners(self, split: TileSplitAxis) -> Sequence[int]:
        return self.pipe.lanes

    def _idle_lane(self, split: TileSplitAxis) -> bool:
        return False

    def advance(self) -> None:
        if self.pipe.target.name != "a5":  # there the caller sets the index
            self.state.tileIndex += 1

    def write(self, tile: TileObject, split: TileSplitAxis, config: FixpipeParams | None) -> None:
        spec = self.pipe.spec
        consumer = spec.consumer
        if not self.present or consumer is None:
            return
        if self.pipe.direct:
            super().write(tile, spec.split, config)
        elif self.role != "cube" and tile.vc > consumer.cols:
            self.ctx.machine.place(tile)
            self._perform(push_view(self, tile, _panels(tile, consumer), Pipe.MTE3))
        else:
            self.ctx.machine.place(tile)
            pipe = Pipe.FIX if self.role == "cube" else Pipe.MTE3
            self._perform(push(self, tile, _NO, config, pipe))

    def read(self, tile: TileObject, split: TileSplitAxis) -> None:
        super().read(tile, _NO)


def _panels(tile: TileObject, consumer: TileSpec) -> GlobalSpec:
    """Column panels as wide as the consumer's tile, one behind the other."""
    width = consumer.cols
    shape = (1, tile.vc // width, 1, tile.vr, width)
    stride = (1, consumer.rows * width, 1, width, 1)
    return GlobalSpec.of(tile.spec.dtype, shape, stride, Layout.NZ)
