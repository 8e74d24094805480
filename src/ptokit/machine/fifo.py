"""FIFOs at run time: where the slots lie, which flag says what, who stands at which end.

A `PipeObject` is what a kernel holds; `End` is one side of it during one instruction: the cube
core or one of the vector cores, producing or consuming. The order of waiting, moving and
signalling is the instructions' own (`isa/pipes.py`).

Protocols differ by target. On A2/A3 every ring lies in global memory, a wait stops the scalar unit
and a signal reaches both vector cores. On A5 the ring lies in the consumer's memory unless the
direction says GM, only one pipe waits, and each vector core has its own flag. The permissive
profile tracks every slot by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptokit.base.diagnostics import fail, where
from ptokit.base.dtypes import dtype
from ptokit.base.enums import TileSplitAxis, TileType
from ptokit.isa.fifos import FLAG_IDS, FixpipeParams, PipeSpec
from ptokit.isa.spec import Pipe
from ptokit.machine.calls import tile_access
from ptokit.machine.cluster import SECOND, SUBBLOCKS, Role, cluster_of
from ptokit.machine.core import Core
from ptokit.machine.entries import Transfer, pop, push
from ptokit.machine.fifo_state import ConsumerState, ProducerState
from ptokit.machine.flags import Semaphore
from ptokit.machine.objects import GlobalObject, Pointer, TileObject, pointer
from ptokit.machine.providers import Context

_NO = TileSplitAxis.TILE_NO_SPLIT
_LEFT = (TileSplitAxis.TILE_LEFT_RIGHT, TileSplitAxis.TILE_LEFT_RIGHT_ODD)


class PipeObject:
    """A TPipe at run time."""

    def __init__(
        self,
        spec: PipeSpec,
        machine: Any,
        gm_slot_buffer: Any = None,
        c2v_consumer_buf: int = 0,
        v2c_consumer_buf: int = 0,
    ) -> None:
        self.spec = spec
        self.machine = machine
        self.target = machine.target
        self.key = spec
        self.c2v_consumer_buf = c2v_consumer_buf
        self.v2c_consumer_buf = v2c_consumer_buf
        self.site = where(None)
        self._check_type()
        self.gm = self._ring(gm_slot_buffer)
        self._producers: dict[tuple[int, Role], ProducerState] = {}
        self._consumers: dict[tuple[int, Role], ConsumerState] = {}
        self.history: dict[tuple[str, Role], list[Any]] = {}
        self.local: set[Role] = set()  # the ends whose local slots are in use
        machine.core.pipes.append(self)
        machine.sync.opened(self)

    def __getattr__(self, name: str) -> Any:
        """The static members of the type: FlagID, SlotNum, SyncPeriod, shouldWaitFree ..."""
        if name.startswith("__") or name == "spec":
            raise AttributeError(name)
        return getattr(self.spec, name)

    # ---- what the type says ---------------------------------------------------------------------

    def _check_type(self) -> None:
        spec, name = self.spec, self.target.name
        if self.target.fifos is None:
            raise fail(
                "TPipe.unavailable", f"TPipe does not exist on {name}", target=name, site=self.site
            )
        if spec.DirType not in self.target.fifos.directions:
            raise fail(
                "TPipe.direction",
                "this target has no pipe of this direction",
                got=[("DirType", spec.DirType.name)],
                fix="one of " + ", ".join(d.name for d in self.target.fifos.directions),
                target=name,
                site=self.site,
            )

    @property
    def direct(self) -> bool:
        """Whether entries go straight into the memory of the consumer."""
        return self.spec.is_direct(self.target)

    @property
    def tracked(self) -> bool:
        """Whether every slot is tracked (the permissive profile)."""
        return self.target.name == "cpu"

    @property
    def frees_itself(self) -> bool:
        """Whether the pop of a tile copies the entry and gives its slot back."""
        return self.spec.frees_itself(self.target)

    def asks_for_space(self, index: int) -> bool:
        """`shouldWaitFree`, except that the permissive profile tracks every slot."""
        return index >= self.spec.SlotNum if self.tracked else self.spec.shouldWaitFree(index)

    def announces_space(self, index: int) -> bool:
        """`shouldNotifyFree`, except that the permissive profile tracks every slot."""
        return self.tracked or self.spec.shouldNotifyFree(index)

    def _ring(self, given: Any) -> Pointer | None:
        """The memory of the slots as bytes; None when they lie in the consumer's memory."""
        if self.direct:
            return None
        rings = 2 if self.spec.is_both else 1
        need = rings * self.spec.SlotNum * self.spec.SlotSize
        if given is None:
            if not self.tracked:
                raise fail(
                    "TPipe.slots",
                    f"the slots of this pipe lie in global memory on {self.target.name}",
                    fix=f"pass an array of {need} bytes as GM_SLOT_BUFFER",
                    target=self.target.name,
                    site=self.site,
                )
            given = cluster_of(self.machine.core).ring(self.spec, need)
        at = pointer(given)
        room = at.buffer.nbytes - at.offset
        if room < need:
            raise fail(
                "E10",
                "GM_SLOT_BUFFER holds all slots: SlotNum * SlotSize bytes, twice that for both "
                "directions",
                got=[("bytes", room), ("needed", need)],
                fix="make the buffer larger, or the ring smaller",
                target=self.target.name,
                site=self.site,
            )
        return Pointer(at.buffer, dtype("u8"), at.offset)

    # ---- the two ends ---------------------------------------------------------------------------

    @property
    def prod(self) -> ProducerState:
        """The state of the producing side, for the core this is asked on."""
        return self.producer_state(self._role(True, None, None))

    @property
    def cons(self) -> ConsumerState:
        """The state of the consuming side, for the core this is asked on."""
        return self.consumer_state(self._role(False, None, None))

    def producer_state(self, role: Role) -> ProducerState:
        key = (self._owner(), role)
        found = self._producers.get(key)
        if found is None:
            found = self._producers[key] = ProducerState()
            if role != "cube":
                found.entryOffset = self.second_ring
        return found

    def consumer_state(self, role: Role) -> ConsumerState:
        key = (self._owner(), role)
        found = self._consumers.get(key)
        if found is None:
            found = self._consumers[key] = ConsumerState()
            if role == "cube":
                found.entryOffset = self.second_ring
        return found

    @property
    def second_ring(self) -> int:
        """Where the V2C ring starts when two rings share one piece of global memory."""
        if self.spec.is_both and not self.direct:
            return self.spec.SlotNum * self.spec.SlotSize
        return 0

    def _owner(self) -> int:
        cluster = cluster_of(self.machine.core)
        return id(cluster) + cluster.block

    def _role(self, producing: bool, tile: TileObject | None, sub: int | None) -> Role:
        """Who acts: decided by the core, on a core that plays every part by the direction."""
        core = self.machine.core
        if core.kind != "mix":
            cube = core.kind == "cube"
        elif not self.spec.is_both:
            cube = producing == self.spec.carries_c2v
        elif tile is not None:
            cube = tile.spec.loc != TileType.Vec
        else:
            cube = core.role == "cube"
        return "cube" if cube else (core.subblock if sub is None else int(sub))

    def producer(self, ctx: Context, tile: TileObject | None = None, sub: int | None = None) -> End:
        """The producing side, as the running instruction sees it."""
        role = self._role(True, tile, sub)
        return End(self, ctx, role, self.producer_state(role), c2v=role == "cube")

    def consumer(self, ctx: Context, tile: TileObject | None = None, sub: int | None = None) -> End:
        """The consuming side, as the running instruction sees it."""
        role = self._role(False, tile, sub)
        return End(self, ctx, role, self.consumer_state(role), c2v=role != "cube")

    # ---- flags ----------------------------------------------------------------------------------

    def flag(self, role: Role, flag: int, what: str, sub: int = 0) -> Semaphore:
        """A counter of one core; the cube core has one per vector core."""
        who = "the cube core" if role == "cube" else f"vector core {role}"
        by = f" by vector core {sub}" if role == "cube" else ""
        return cluster_of(self.machine.core).semaphore(
            role,
            flag + SECOND * sub,
            of=self.spec if self.tracked else None,
            title=f"{what} of {self.spec}{by} (flag {flag % FLAG_IDS} of {who})",
        )

    def reserved(self, core: Core, loc: TileType) -> tuple[int, int]:
        """The bytes of a core's memory that local slots of this pipe occupy."""
        role: Role = "cube" if loc == TileType.Mat else core.subblock
        if loc not in (TileType.Vec, TileType.Mat) or role not in self.local:
            return 0, 0
        start = self.v2c_consumer_buf if role == "cube" else self.c2v_consumer_buf
        return start, start + self.spec.local_bytes(self.target)

    def close(self, core: Core) -> None:
        """The end of the pipe on one core: the producer takes back the free space announced."""
        if self.tracked:
            return
        for (owner, role), state in list(self._producers.items()):
            mine = role == "cube" if core.kind == "cube" else role == core.subblock
            if owner != self._owner() or not (mine or core.kind == "mix"):
                continue
            announced = state.tileIndex // self.spec.SyncPeriod
            for _ in range(announced - state.waited):
                self._take_back(role, state.split)

    def _take_back(self, role: Role, split: TileSplitAxis) -> None:
        c2v = role == "cube"
        free, what = self.spec.flags(c2v)[1], "free space"
        alone = split == _NO and self.target.name != "a2a3"
        subs = (0,) if alone else range(SUBBLOCKS)
        if c2v:
            waited = [self.flag("cube", free, what, s) for s in subs]
        else:
            waited = [self.flag(role, free, what)]
        pipe = Pipe.S if self.target.name == "a2a3" else (Pipe.FIX if c2v else Pipe.MTE3)
        text = f"the end of {self.spec}, where its producer takes back the free space"
        hint = "the consumer must give every slot back: TPOP as often as TPUSH, and TFREE"
        self.machine.sync.wait(pipe, waited, text, self.site, hint)

    def check_balance(self, findings: Any, core: Core) -> None:
        """Report slots that were handed out and never handed back."""
        for (what, role), (count, site) in self.history.items():
            other = {"held": "TFREE", "TALLOC": "TPUSH"}.get(what)
            done = self.history.get((other or "", role), [0])[0]
            if other is not None and done < count:
                act = "TPOP" if what == "held" else what
                findings.add(
                    "E10",
                    f"{act} hands out {count} slots of {self.spec}, {other} gives back {done}",
                    site,
                    fix=f"call {other} for every {act}",
                )

    def note_act(self, what: str, role: Role, site: Any) -> None:
        """Remember where an end of the pipe acted last, for reports."""
        found = self.history.get((what, role))
        if found is None:
            self.history[what, role] = [1, site]
        else:
            found[0] += 1
            found[1] = site

    def __repr__(self) -> str:
        return str(self.spec)


class End:
    """One side of a pipe during one instruction."""

    def __init__(self, pipe: PipeObject, ctx: Context, role: Role, state: Any, c2v: bool) -> None:
        self.pipe = pipe
        self.ctx = ctx
        self.role = role
        self.state = state
        self.c2v = c2v
        self.sub = role if isinstance(role, int) else 0
        self.ready, self.free = pipe.spec.flags(c2v)

    @property
    def present(self) -> bool:
        """Whether this core stands at an end of the pipe at all; elsewhere nothing happens."""
        spec = self.pipe.spec
        return spec.carries_c2v if self.c2v else spec.carries_v2c

    def _through_gm(self) -> bool:
        return not self.pipe.direct

    # ---- waiting and signalling -----------------------------------------------------------------

    def wait_free(self, split: TileSplitAxis) -> None:
        """The producer waits until the consumer has given slots back."""
        self.state.waited += 1
        self.state.split = split
        what = "free space"
        hint = "the consumer must take entries first: TPOP"
        hint += "" if self.pipe.target.name == "a2a3" else ", then TFREE"
        if self.role == "cube":
            subs = self._partners(split)
            waited = [self.pipe.flag("cube", self.free, what, s) for s in subs]
            self._wait(Pipe.FIX, waited, what, hint)
        else:
            waited = [self.pipe.flag(self.role, self.free, what)]
            self._wait(Pipe.MTE3, waited, what, hint)

    def wait_ready(self, split: TileSplitAxis) -> None:
        """The consumer waits until the producer has handed an entry over."""
        what, hint = "an entry", "the producer must push one first: TPUSH"
        if self.role == "cube":
            pipe = Pipe.MTE2 if self._through_gm() else Pipe.MTE1
            subs = self._partners(split)
            waited = [self.pipe.flag("cube", self.ready, what, s) for s in subs]
            self._wait(pipe, waited, what, hint)
        elif not self._idle_lane(split):
            pipe = Pipe.MTE2 if self._through_gm() else Pipe.V
            self._wait(pipe, [self.pipe.flag(self.role, self.ready, what)], what, hint)

    def notify_ready(self, split: TileSplitAxis) -> None:
        """The producer tells the consumer, behind its data."""
        self.pipe.note_act("TPUSH", self.role, self.ctx.site)
        self.state.split = split
        self._signal(Pipe.FIX if self.role == "cube" else Pipe.MTE3, self.ready, "an entry", split)

    def notify_free(self, split: TileSplitAxis) -> None:
        """The consumer tells the producer, behind its last read."""
        if self._through_gm():
            pipe = Pipe.MTE2
        else:
            pipe = Pipe.MTE1 if self.role == "cube" else Pipe.V
        self._signal(pipe, self.free, "free space", split)

    def _partners(self, split: TileSplitAxis) -> Sequence[int]:
        """The vector cores the cube core deals with: both on A2/A3, core 0 alone unless split."""
        alone = split == _NO and self.pipe.target.name != "a2a3"
        return (0,) if alone else range(SUBBLOCKS)

    def _idle_lane(self, split: TileSplitAxis) -> bool:
        """Vector core 1 of the permissive profile has no part in an entry that is not split."""
        return self.pipe.tracked and split == _NO and self.sub != 0

    def _wait(self, pipe: Pipe, waited: Sequence[Semaphore], what: str, hint: str) -> None:
        if not self.present:
            return
        if self.pipe.target.name == "a2a3":
            pipe = Pipe.S
        name = self.ctx.insn.name
        text = f"{name} on entry {self.state.tileIndex} of {self.pipe.spec} waits for {what} and"
        self.ctx.machine.sync.wait(pipe, waited, text, self.ctx.site, hint)

    def _signal(self, pipe: Pipe, flag: int, what: str, split: TileSplitAxis) -> None:
        if not self.present or self._idle_lane(split):
            return
        if self.role == "cube":
            reached = [self.pipe.flag(s, flag, what) for s in self._partners(split)]
        else:
            reached = [self.pipe.flag("cube", flag, what, self.sub)]
        self.ctx.machine.sync.signal(pipe, reached, self.ctx.site)

    # ---- slots ----------------------------------------------------------------------------------

    def slot(self) -> int:
        """Byte offset of the current slot in its ring."""
        spec = self.pipe.spec
        return self.state.tileIndex % spec.SlotNum * spec.SlotSize

    def slot_pointer(self, tensor: GlobalObject, split: TileSplitAxis) -> Pointer:
        """The current slot as a pointer of the tensor's type, moved to this core's half."""
        assert self.pipe.gm is not None
        if self.pipe.spec.is_both:
            self.ctx.machine.sync.complain(
                "E10",
                "with both directions on one pipe the GlobalTensor flavour uses the same slots "
                "for either",
                self.ctx.site,
                fix="use one pipe per direction",
            )
        rows, cols = tensor.spec.shape[3:]
        half = 0
        if self.role != "cube" and split != _NO:
            half = self.sub * cols * (1 if split in _LEFT else rows) * tensor.spec.itemsize
        at = self.pipe.gm
        return Pointer(at.buffer, tensor.spec.dtype, at.offset + self.slot() + half)

    def write(self, tile: TileObject, split: TileSplitAxis, config: FixpipeParams | None) -> None:
        """The producer's data goes into the slot."""
        if self.present and not self._idle_lane(split):
            self.ctx.machine.place(tile)
            pipe = Pipe.FIX if self.role == "cube" else Pipe.MTE3
            self._perform(push(self, tile, split, config, pipe))

    def read(self, tile: TileObject, split: TileSplitAxis) -> None:
        """The consumer's tile gets the entry: a copy of it, or the slot itself."""
        if not self.present:
            return
        self.pipe.note_act("TPOP", self.role, self.ctx.site)
        self._bind(tile)
        if self._idle_lane(split):
            access = tile_access(tile)
            access.write(np.zeros(access.shape, access.dtype.np))
            access.mark_defined()
        elif not self.pipe.direct:
            self._perform(pop(self, tile, split))

    def _bind(self, tile: TileObject) -> None:
        """Place the tile: over its slot, or over the next place of the local ring."""
        pipe, spec, machine = self.pipe, self.pipe.spec, self.ctx.machine
        if machine.mode == "auto" and not pipe.direct:
            machine.place(tile)
            return
        base = pipe.v2c_consumer_buf if self.role == "cube" else pipe.c2v_consumer_buf
        if pipe.direct:
            offset = self.slot() + self.state.entryOffset
        else:
            step = spec.SlotSize if pipe.target.name != "a5" else tile.spec.nbytes
            offset = self.state.tileIndex % spec.LocalSlotNum * step
        cluster = cluster_of(machine.core)
        core = cluster.cores[self.role]
        tile.bind(core.memory(tile.spec.loc), base + offset)
        tile.in_ring = True
        pipe.local.add(self.role)

    def _perform(self, transfer: Transfer) -> None:
        self.ctx.machine.perform(*transfer, self.ctx.site)

    def advance(self) -> None:
        """Go on to the next entry."""
        self.state.tileIndex += 1

    # ---- bookkeeping for the checker ------------------------------------------------------------

    def allocated(self) -> None:
        """A slot was handed out that TPUSH must commit."""
        self.pipe.note_act("TALLOC", self.role, self.ctx.site)

    def taken(self) -> None:
        """An entry was handed out that TFREE must give back."""
        self.pipe.note_act("held", self.role, self.ctx.site)

    def frees_again(self) -> bool:
        """Whether TFREE after a copying pop announces the space a second time (A5)."""
        if self.pipe.target.name == "a2a3":
            return False
        self.ctx.machine.sync.complain(
            "E10",
            "TFREE announces free space that the TPOP of this *_GM pipe has announced already",
            self.ctx.site,
            fix="leave TFREE out for tiles popped from a *_GM pipe",
        )
        return True

    def given_back(self) -> None:
        """TFREE was called."""
        self.pipe.note_act("TFREE", self.role, self.ctx.site)
