"""FIFOs at run time: where the slots lie, which flag says what, who stands at which end.

A `PipeObject` is what a kernel holds; `End` is one side of it during one instruction: the cube
core or one of the vector cores, producing or consuming. It executes the effects of the instruction
(`isa/fifos.py`): which pipe waits, moves and signals, in which order.

Protocols differ by target. On A2/A3 every ring lies in global memory, a wait stops the scalar unit
and a signal reaches both vector cores. On A5 the ring lies in the consumer's memory unless the
direction says GM, only one pipe waits, and each vector core has its own flag. The permissive
profile tracks every slot by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.diagnostics import fail, where
from ptokit.base.dtypes import dtype
from ptokit.base.enums import TileSplitAxis, TileType
from ptokit.base.location import Location
from ptokit.base.tiles import TileSpec
from ptokit.isa.effects import Bind, Effect, Move, Pipe, Signal, Slot, Wait, pipe_of
from ptokit.isa.facts import ObjectFacts, Ops
from ptokit.isa.fifos import FLAG_IDS, Acting, FixpipeParams, PipeSpec, half
from ptokit.isa.pipes import TFREE, TPUSH
from ptokit.isa.spec import Insn
from ptokit.isa.targets import Target
from ptokit.machine.calls import tile_access
from ptokit.machine.cluster import SECOND, Role, cluster_of
from ptokit.machine.core import Core
from ptokit.machine.fifo_state import ConsumerState, ProducerState
from ptokit.machine.flags import Semaphore
from ptokit.machine.objects import GlobalObject, Pointer, TileObject, pointer
from ptokit.machine.queues import Why

if TYPE_CHECKING:
    from ptokit.machine.entries import Transfer


class PipeObject:
    """A TPipe at run time."""

    operand_kind = "fifo"

    def __init__(
        self,
        spec: PipeSpec,
        machine: Any,
        gm_slot_buffer: Any = None,
        c2v_consumer_buf: int = 0,
        v2c_consumer_buf: int = 0,
        site: Location | None = None,  # where it is opened; the user's current line by default
    ) -> None:
        self.spec = spec
        self.machine = machine
        self.target: Target = machine.target
        self.key = spec
        self.c2v_consumer_buf = c2v_consumer_buf
        self.v2c_consumer_buf = v2c_consumer_buf
        self.site = where(site)
        self._check_type()
        self.gm = self._ring(gm_slot_buffer)
        self._producers: dict[tuple[int, Role], ProducerState] = {}
        self._consumers: dict[tuple[int, Role], ConsumerState] = {}
        self.history: dict[tuple[Insn, Role], list[Any]] = {}  # how often, and where last
        self.held: dict[tuple[Insn, Role], list[Any]] = {}  # slots that were handed out, likewise
        self.acts: dict[tuple[Any, ...], list[Effect]] = {}  # of an instruction, at one of the ends
        self.local: set[Role] = set()  # the ends whose local slots are in use
        self._opener: Core = machine.core
        self._local_bytes = spec.local_bytes(self.target)
        machine.core.pipes.append(self)
        machine.sync.opened(self)

    def __getattr__(self, name: str) -> Any:
        """The static members of the type: FlagID, SlotNum, SyncPeriod, shouldWaitFree ..."""
        if name.startswith("__") or name == "spec":
            raise AttributeError(name)
        return getattr(self.spec, name)

    # ---- what the type says ---------------------------------------------------------------------

    @property
    def end_type(self) -> type[End]:
        """How an end of this pipe acts."""
        return End

    def _check_type(self) -> None:
        spec, name = self.spec, self.target.name
        if self.target.fifos is None:
            raise fail(
                "TPipe.unavailable", f"TPipe does not exist on {name}", target=name, site=self.site
            )
        self.rules = self.target.fifos
        if spec.DirType not in self.rules.directions:
            raise fail(
                "TPipe.direction",
                "this target has no pipe of this direction",
                got=[("DirType", spec.DirType.name)],
                fix="one of " + ", ".join(d.name for d in self.rules.directions),
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
        return self.rules.tracks_slots

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
        if room < need or not at.buffer.holds(((0, need),), at.offset):
            raise fail(
                "E10",
                "GM_SLOT_BUFFER holds all slots: SlotNum * SlotSize bytes, twice that for both "
                "directions",
                got=[("bytes", at.buffer.owner.nbytes - at.offset), ("needed", need)],
                fix="make the buffer larger and contiguous, or the ring smaller",
                target=self.target.name,
                site=self.site,
            )
        return Pointer(at.buffer, dtype("u8"), at.offset)

    # ---- the two ends ---------------------------------------------------------------------------

    @property
    def prod(self) -> ProducerState:
        """The state of the producing side, for the core this is asked on."""
        return self.producer_state(self._role(True))

    @property
    def cons(self) -> ConsumerState:
        """The state of the consuming side, for the core this is asked on."""
        return self.consumer_state(self._role(False))

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

    def is_cube(self, is_producer: bool, loc: TileType | None) -> bool:
        """Whether the cube core acts: as the core says; one that plays every part asks the type."""
        core = self.machine.core
        if core.kind != "mix":
            return core.kind == "cube"
        if not self.spec.is_both:
            return is_producer == self.spec.carries_c2v
        return loc != TileType.Vec if loc is not None else core.role == "cube"

    def _role(self, is_producer: bool, loc: TileType | None = None, sub: int | None = None) -> Role:
        if self.is_cube(is_producer, loc):
            return "cube"
        return self.machine.core.subblock if sub is None else int(sub)

    def act(self, call: Any, given: Mapping[str, Any], site: Any) -> None:
        """Execute an instruction at the end at which the running core stands."""
        self._end_of(call, given, site).run()

    def name(self, call: Any, given: Mapping[str, Any], site: Any) -> None:
        """Only point views at entries, as `act` would: nobody waits, and nothing moves."""
        self._end_of(call, given, site).name()

    def _end_of(self, call: Any, given: Mapping[str, Any], site: Any) -> End:
        tile, is_producer = given.get("tile"), call.insn.end == "producer"
        loc = None if tile is None else tile.spec.loc
        role = self._role(is_producer, loc, given.get("subBlockId"))
        return self.end_type(self, call, given, role, site)

    def partners(self, role: Role, flag: int, what: str, lanes: Iterable[int]) -> list[Semaphore]:
        """The counters a role waits on: the cube core has one per vector core."""
        if role == "cube":
            return [self.flag("cube", flag, what, sub) for sub in lanes]
        return [self.flag(role, flag, what)]

    def reached(self, role: Role, flag: int, what: str, lanes: Iterable[int]) -> list[Semaphore]:
        """The counters a role raises: those of the vector cores, or its own of the cube core."""
        if isinstance(role, int):
            return [self.flag("cube", flag, what, role)]
        return [self.flag(sub, flag, what) for sub in lanes]

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
        return start, start + self._local_bytes

    def use_locally(self, role: Role) -> None:
        """The local slots of an end come into use: who lies apart from them is asked anew."""
        if role not in self.local:
            self.local.add(role)
            self._opener.clear.clear()

    def close(self, core: Core) -> None:
        """The end of the pipe on one core: the producer takes back the free space announced."""
        for (owner, role), state in list(self._producers.items()):
            mine = role == "cube" if core.kind == "cube" else role == core.subblock
            if owner == self._owner() and (mine or core.kind == "mix"):
                self._end(role, state)

    def _end(self, role: Role, state: ProducerState) -> None:
        """A producer takes back what was announced and not waited for."""
        if not self.tracked:
            announced = state.tileIndex // self.spec.SyncPeriod
            for _ in range(announced - state.waited):
                self._take_back(role, state.split)

    def _take_back(self, role: Role, split: TileSplitAxis) -> None:
        c2v = role == "cube"
        lanes = self.spec.lanes(split, self.target)
        waited = self.partners(role, self.spec.flags(c2v)[1], "free space", lanes)
        why = Why(
            f"the end of {self.spec}, where its producer takes back the free space",
            "the consumer must give every slot back: TPOP as often as TPUSH, and TFREE",
        )
        pipe = self.rules.end(c2v, is_producer=True, is_direct=self.direct).wait
        self.machine.sync.wait(pipe, waited, lambda: why, self.site)

    def order(self, *, is_producer: bool, waits: bool, site: Any) -> None:
        """One end waits for the other or signals it, apart from an entry: `prod.allocate()`."""
        role, spec = self._role(is_producer), self.spec
        is_cube, is_free = role == "cube", is_producer == waits
        c2v = is_cube == is_producer
        if not (spec.carries_c2v if c2v else spec.carries_v2c):
            return
        what = "free space" if is_free else "an entry"
        split = self.producer_state(role).split if is_producer else TileSplitAxis.TILE_UP_DOWN
        lanes, flag = spec.lanes(split, self.target), spec.flags(c2v)[is_free]
        end = self.rules.end(is_cube, is_producer=is_producer, is_direct=self.direct)
        if waits:
            if is_producer:
                self.producer_state(role).waited += 1
            said = f"an end of {spec} waits for {what} and"
            why = Why(said, "the other end must signal it", f"an end of {spec} for {what}")
            waited = self.partners(role, flag, what, lanes)
            self.machine.sync.wait(end.wait, waited, lambda: why, site)
        else:
            self.machine.sync.signal(end.signal, self.reached(role, flag, what, lanes), site)

    def check_balance(self, findings: Any, core: Core) -> None:
        """Report slots that were handed out and never handed back."""
        for (act, role), (count, site) in self.held.items():
            back = TPUSH if act.end == "producer" else TFREE
            done = self.history.get((back, role), [0])[0]
            if done < count:
                findings.add(
                    "E10",
                    f"{act.name} hands out {count} slots of {self.spec}, "
                    f"{back.name} gives back {done}",
                    site,
                    fix=f"call {back.name} for every {act.name}",
                )

    def note_act(self, act: Insn, role: Role, site: Any, is_held: bool = False) -> None:
        """Remember where an end of the pipe acted last, or was last handed a slot."""
        notes = self.held if is_held else self.history
        found = notes.get((act, role))
        if found is None:
            notes[act, role] = [1, site]
        else:
            found[0] += 1
            found[1] = site

    def __repr__(self) -> str:
        return str(self.spec)


class End:
    """One side of a pipe during one instruction."""

    def __init__(
        self, pipe: PipeObject, call: Any, given: Mapping[str, Any], role: Role, site: Any
    ) -> None:
        self.pipe = pipe
        self.machine = pipe.machine
        self.insn: Insn = call.insn
        self.given = given
        self.role = role
        self.site = site
        is_producer = self.insn.end == "producer"
        self.c2v = (role == "cube") == is_producer
        self.state: Any = (pipe.producer_state if is_producer else pipe.consumer_state)(role)
        self.sub = role if isinstance(role, int) else 0
        self.split: TileSplitAxis = call.ops.attrs["Split"]
        self.config: FixpipeParams | None = call.ops.attrs.get("Config")
        self.lanes = pipe.spec.lanes(self.split, pipe.target)
        self.effects = self._effects(call)

    @property
    def core(self) -> Core:
        return self.machine.core

    @property
    def consumed(self) -> TileSpec | None:
        """The tile that an entry is for, where the pipe knows."""
        return None

    def _effects(self, call: Any) -> list[Effect]:
        """What the instruction does at this end."""
        key = (self.insn, self.role == "cube", self.given.get("tile") is None)
        found = self.pipe.acts.get(key)
        if found is None:
            assert self.insn.effects is not None
            operands = dict(call.ops) | {
                "pipe": ObjectFacts(Acting(self.pipe.spec, self.role == "cube"))
            }
            facts = Ops(operands, call.ops.attrs, call.ops.target, call.ops.mode)
            found = self.pipe.acts[key] = self.insn.effects(facts)
        return found

    @property
    def present(self) -> bool:
        """Whether this core stands at an end of the pipe at all; elsewhere nothing happens."""
        spec = self.pipe.spec
        return spec.carries_c2v if self.c2v else spec.carries_v2c

    @property
    def is_idle(self) -> bool:
        """Whether a vector core of the permissive profile has no part in the entry."""
        return self.pipe.tracked and self.role != "cube" and self.sub not in self.lanes

    # ---- the effects ----------------------------------------------------------------------------

    def run(self) -> None:
        """Execute the effects of the instruction, one after the other."""
        machine = self.machine
        if machine.follows:
            machine.begin(self.insn, pipe_of(self.effects), self.site)
        self._check_free()
        takes = False
        for effect in self.effects:
            if isinstance(effect, Wait) and isinstance(effect.token, Slot):
                self._wait(effect.pipe, effect.token)
            elif isinstance(effect, Signal) and isinstance(effect.token, Slot):
                self._signal(effect.pipe, effect.token, takes)
            elif isinstance(effect, Bind):
                takes = True
                self._bind(self.given[effect.operand])
            elif isinstance(effect, Move):
                takes = True
                self.move(effect)
        if takes:
            self.advance()
        self._note(takes)
        if machine.operation is not None:
            machine.end()

    def name(self) -> None:
        """Point a view at its entry, and go on to the next."""
        named = [effect.operand for effect in self.effects if isinstance(effect, Bind)]
        for operand in named:
            self._bind(self.given[operand])
        if named:
            self.advance()

    def _wait(self, pipe: Pipe, token: Slot) -> None:
        """Wait for space or for an entry, unless the ring says there is some."""
        state, spec, index = self.state, self.pipe.spec, self.state.tileIndex
        is_handed = self.given.get("gmTensor") is not None
        if token.is_free:
            if not (state.getAllocateStatus() and spec.asks_for_space(index, self.pipe.target)):
                return
            state.waited += 1
            state.split = self.split
            what, hint = "free space", "the consumer must take entries first: TPOP"
            hint += "" if self.pipe.rules.pop_frees else ", then TFREE"
        elif not (is_handed or state.getWaitStatus()) or self.is_idle:
            return
        else:
            what, hint = "an entry", "the producer must push one first: TPUSH"
        if not self.present:
            return
        flag = spec.flags(self.c2v)[token.is_free]
        waited = self.pipe.partners(self.role, flag, what, self.lanes)
        name = self.insn.name
        said = f"{name} on entry {index} of {spec} waits for {what} and"
        why = Why(said, hint, f"{name} of {spec} for {what}")
        self.machine.sync.wait(pipe, waited, lambda: why, self.site, token=token)

    def _signal(self, pipe: Pipe, token: Slot, takes: bool) -> None:
        """Tell the other side, unless that is switched off or comes once in several entries."""
        state, spec = self.state, self.pipe.spec
        if token.is_free:
            index = state.tileIndex - (0 if takes else 1)  # of the entry that was read
            if not (state.getFreeStatus() and spec.announces_space(index, self.pipe.target)):
                return
            what = "free space"
        else:
            if self.given.get("gmTensor") is None and not state.getRecordStatus():
                return
            self.pipe.note_act(self.insn, self.role, self.site)
            state.split, what = self.split, "an entry"
        if not self.present or self.is_idle:
            return
        reached = self.pipe.reached(
            self.role, spec.flags(self.c2v)[token.is_free], what, self.lanes
        )
        self.machine.sync.signal(pipe, reached, self.site, token)

    def move(self, effect: Move) -> None:
        """Move the data of an entry: a tile into the slot, or the slot into a tile."""
        from ptokit.machine.entries import pop, push  # few kernels have FIFOs

        tile = self.given["tile"]
        if not self.present or self.is_idle:
            return
        if effect.writes == "tile":
            self.perform(pop(self, tile, self.split))
        else:
            self.machine.place(tile)
            self.perform(push(self, tile, self.split, self.config, effect.pipe))

    def perform(self, transfer: Transfer) -> None:
        self.machine.perform(*transfer, self.site)

    def advance(self) -> None:
        """Go on to the next entry."""
        if self.pipe.spec.moves_on(self.pipe.target):
            self.state.tileIndex += 1

    # ---- slots ----------------------------------------------------------------------------------

    def slot(self) -> int:
        """Byte offset of the current slot in its ring."""
        spec = self.pipe.spec
        return self.state.tileIndex % spec.SlotNum * spec.SlotSize

    def _bind(self, operand: Any) -> None:
        if isinstance(operand, GlobalObject):
            operand.point_to(self._slot_pointer(operand))
        elif self.present:
            self.pipe.note_act(self.insn, self.role, self.site)
            self.place(operand)
            if self.is_idle:
                access = tile_access(operand)
                access.write(np.zeros(access.shape, access.dtype.np))
                access.mark_defined()

    def _slot_pointer(self, tensor: GlobalObject) -> Pointer:
        """The current slot as a pointer of the tensor's type, moved to this core's half."""
        at = self.pipe.gm
        assert at is not None
        if self.pipe.spec.is_both:
            self.machine.sync.complain(
                "E10",
                "with both directions on one pipe the GlobalTensor flavour uses the same slots "
                "for either",
                self.site,
                fix="use one pipe per direction",
            )
        first = 0
        if self.role != "cube":
            first, _ = half(self.split, self.sub, *tensor.spec.shape[3:])
        start = at.offset + self.slot() + first * tensor.spec.itemsize
        return Pointer(at.buffer, tensor.spec.dtype, start)

    def place(self, tile: TileObject) -> None:
        """Place the tile: over its slot, or over the next place of the local ring."""
        pipe, spec, machine = self.pipe, self.pipe.spec, self.machine
        if machine.mode == "auto" and not pipe.direct and not machine.target.is_device:
            machine.place(tile)  # the simulator of the tool chain keeps every popped tile
            return
        if not pipe.direct and not spec.LocalSlotNum:  # no local ring: the tile is where it is
            machine.place(tile)
            return
        base = pipe.v2c_consumer_buf if self.role == "cube" else pipe.c2v_consumer_buf
        if pipe.direct:
            offset = self.slot() + self.state.entryOffset
        else:
            step = tile.spec.nbytes if pipe.rules.packs_local_slots else spec.SlotSize
            offset = self.state.tileIndex % spec.LocalSlotNum * step
        core = cluster_of(machine.core).cores[self.role]
        tile.bind(core.memory(tile.spec.loc), base + offset)
        tile.in_ring = True
        pipe.use_locally(self.role)

    # ---- bookkeeping for the checker ------------------------------------------------------------

    def _note(self, takes: bool) -> None:
        """Remember slots that were handed out and must be handed back."""
        handed = self.given.get("gmTensor") is not None
        if self.insn.end == "producer":
            if takes and handed:
                self.pipe.note_act(self.insn, self.role, self.site)
                self.pipe.note_act(self.insn, self.role, self.site, is_held=True)
        elif takes:
            if handed or not self.pipe.spec.frees_itself(self.pipe.target):
                self.pipe.note_act(self.insn, self.role, self.site, is_held=True)
        elif self.effects:
            self.pipe.note_act(self.insn, self.role, self.site)

    def _check_free(self) -> None:
        """Giving back what the pop of a tile has given back announces the space twice."""
        only = self.effects[0] if len(self.effects) == 1 else None
        gives = self.insn.end == "consumer" and isinstance(only, Signal)
        is_copy = self.pipe.spec.frees_itself(self.pipe.target)
        if gives and is_copy and self.given.get("gmTensor") is None:
            self.machine.sync.complain(
                "E10",
                "TFREE announces free space that the TPOP of this *_GM pipe has announced already",
                self.site,
                fix="leave TFREE out for tiles popped from a *_GM pipe",
            )
