"""What the machine provides to bodies that ask for more than arrays (see isa/services.py).

One `Services` object serves one execution of a call. What a body declares undefined is applied
when it is over: what the instruction wrote itself counts as defined until then.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.diagnostics import ProgramError
from ptokit.base.dtypes import u8
from ptokit.base.enums import TileType
from ptokit.base.layout import Array, flat_map
from ptokit.base.location import Location, Site
from ptokit.base.policy import Origin
from ptokit.base.tensors import GlobalSpec
from ptokit.isa.services import Refused
from ptokit.isa.spec import Pipe, View
from ptokit.isa.verify import weighed
from ptokit.machine.access import Access, AccessPattern, byte_ranges
from ptokit.machine.asynchronous import (
    FROM,
    TO,
    Held,
    Transfer,
    collective_of,
    copy_of,
    halves_of,
)
from ptokit.machine.calls import bind_global, global_pattern, where_used
from ptokit.machine.clocks import agent_of
from ptokit.machine.faults import poison_read, refusal
from ptokit.machine.flags import Clock, Latch
from ptokit.machine.memory import Storage
from ptokit.machine.objects import GlobalObject, Pointer
from ptokit.machine.poison import Missing, taken
from ptokit.machine.queues import Why
from ptokit.machine.ranks import here, pause

if TYPE_CHECKING:
    from ptokit.machine.machine import Machine
    from ptokit.machine.staging import Staging
    from ptokit.machine.vector_unit import VectorUnit

Part = tuple[slice, slice]


class Services:
    """Everything a body can ask for in one execution."""

    __slots__ = (
        *("asked", "call", "chosen", "demanded", "far", "machine", "operands", "site"),
        *("undefined", "unit"),
    )

    def __init__(
        self, machine: Machine, call: Any, operands: Sequence[Any], site: Site | Location
    ) -> None:
        self.machine = machine
        self.call = call
        self.operands = operands
        self.site = site
        self.undefined: list[tuple[Access, Array | None]] = []  # accesses, or elements of them
        # Where poison travels: operands that had undefined elements where the body wants none, and
        # those whose undefined elements it has asked for, to pass their state on itself.
        self.demanded: set[str] = set()
        self.asked: set[str] = set()
        # An operand that has undefined elements, while values decide which of them are read.
        self.chosen = ""
        self.far: list[Access] = []  # what was touched outside the operands
        self.unit: VectorUnit | None = None

    @property
    def missing(self) -> Missing:
        """What was read undefined without the body knowing: any result may be made of it."""
        return dict.fromkeys(self.demanded - self.asked)

    def of(self, name: str) -> Any:
        """What a body asks for under this name."""
        if name == "registers":
            return self.machine.core.registers
        if name == "unit":
            from ptokit.machine.vector_unit import VectorUnit  # for micro-instructions

            self.unit = VectorUnit(self.machine, self.site)
            return self.unit
        return _PROVIDERS[name](self)

    def finish(self) -> None:
        """The body is over: make undefined what it declared so."""
        for access, where in self.undefined:
            access.poison(where)
        if self.unit is not None:
            self.unit.finish()
            self.far += self.unit.accesses

    def operand(self, name: str) -> Any:
        """The run-time object behind an operand."""
        insn = self.call.insn
        return where_used(insn, self.operands, self.machine.core)[insn.names.index(name)]


class _Provider:
    __slots__ = ("_run",)

    def __init__(self, run: Services) -> None:
        self._run = run


class PoisonProvider(_Provider):
    """Which elements of the operands hold defined values (`isa.services.Poison`)."""

    __slots__ = ()

    def poison(self, name: str, rows: slice, cols: slice) -> None:
        """Declare a logical region of a tile operand undefined: the hardware leaves it open."""
        if rows.start < rows.stop and cols.start < cols.stop:
            self._run.undefined.append((self._region(name, rows, cols), None))

    def poison_where(self, name: str, where: Array) -> None:
        """Declare single elements of the region the body was handed undefined."""
        self._run.undefined.append((self._handed(name), where))

    def undefined(self, name: str) -> Array | None:
        """Which elements of the region the body was handed are undefined; None: not one."""
        access = self._handed(name)
        self._run.asked.add(name)
        return None if access.is_defined() else ~access.defined()

    def demand(self, name: str, part: Part) -> None:
        """Refuse to read a part of the region the body was handed unless all of it is defined."""
        access = self._handed(name)
        if not access.is_defined() and not access.defined()[part].all():
            run = self._run
            if not run.machine.carries_poison(run.call, access, run.site):
                raise poison_read(run.call, access, *access.first_poison(part), run.site)
            run.demanded.add(name)

    def demand_where(self, name: str, where: Array) -> None:
        """Refuse to read these elements of the region the body was handed unless all are defined.

        `where` is a boolean array of the shape the body was handed, or the matrix of it.
        """
        access = self._handed(name)
        if access.is_defined():
            return
        self._run.chosen = name
        missing = np.argwhere(where.reshape(access.shape) & ~access.defined())
        if len(missing):
            row, col = missing[0].tolist()
            self.demand(name, (slice(row, row + 1), slice(col, col + 1)))

    def leave(self, name: str, array: Array) -> None:
        """Put back what the region the body was handed held: this run does not write it."""
        access = self._handed(name)
        array[...] = access.read()
        if not access.is_defined():
            self.poison_where(name, ~access.defined())

    def fill(self, name: str, rows: slice, cols: slice, value: Any) -> None:
        """Write a logical region of a tile operand beside the one the body was handed."""
        if rows.start < rows.stop and cols.start < cols.stop:
            access = self._region(name, rows, cols)
            access.write(np.full(access.shape, value, access.dtype.np))
            access.mark_defined()

    def peek(self, name: str) -> tuple[Array, Array]:
        """The whole of a tile operand as it is, and which elements hold a defined value."""
        access = self._region(name, None, None)
        return access.read(), access.defined()

    def _handed(self, name: str) -> Access:
        return self._run.call.handed[name]

    def _region(self, name: str, rows: slice | None, cols: slice | None) -> Access:
        run = self._run
        return run.call.region(name, run.operand(name), rows, cols, run.site)


class BeyondProvider(_Provider):
    """What values lead to that lies outside the operands (`isa.services.Beyond`)."""

    __slots__ = ()

    def lead(self, name: str, places: Array, error: Refused, origin: str, otherwise: str) -> None:
        """Values lead to such elements, which breaks a rule; raise it unless it is a warning."""
        run = self._run
        tile, machine = run.operand(name), run.machine
        there = _bytes(tile, places)
        if not machine.target.is_device or (there >= tile.storage.nbytes).any():
            raise error
        (found,) = refusal(run.call.insn, error, run.site, machine.target.name).diagnostics
        for each in machine.policy.judge(
            [weighed(found, Origin(origin), otherwise, machine.policy)]
        ):
            if each.severity == "error":
                raise ProgramError([each])
            machine.warnings.add(each)

    def read(self, name: str, places: Array) -> Array:
        """The elements so many behind the first one of a tile, whatever they belong to."""
        for access in self._accesses(name, places, reads=True):
            if not access.is_defined():
                taken(self._run.machine, self._run.call, access, self._run.site)
        tile = self._run.operand(name)
        raw = tile.storage.data[_bytes(tile, places)]
        return np.ascontiguousarray(raw).view(tile.spec.dtype.np)[:, 0]

    def write(self, name: str, places: Array, values: Array) -> None:
        """Write elements so many behind the first one of a tile; of equal places the last stays."""
        for access in self._accesses(name, places, writes=True):
            access.mark_defined()
        tile = self._run.operand(name)
        tile.storage.data[_bytes(tile, places)] = np.ascontiguousarray(values)[:, None].view(
            np.uint8
        )

    def _accesses(
        self, name: str, places: Array, *, reads: bool = False, writes: bool = False
    ) -> list[Access]:
        """The elements as stretches of memory."""
        tile = self._run.operand(name)
        kind, found = tile.spec.dtype, list[Access]()
        for start, stop in byte_ranges(np.unique(_bytes(tile, places)[:, 0]), kind.itemsize):
            stretch = flat_map((stop - start) // kind.itemsize)
            pattern = AccessPattern(name, kind, stretch, reads=reads, writes=writes)
            found.append(pattern.at(tile.storage, start))
        self._run.far += found
        return found


def _bytes(tile: Any, places: Array) -> Array:
    """The bytes of elements behind the first one of a tile; addresses have 32 bits."""
    size = tile.spec.dtype.itemsize
    first = (tile.address + places.astype(np.int64) * size) % (1 << 32)
    return first[:, None] + np.arange(size)


class PlacesProvider(_Provider):
    """Where the operands lie (`isa.services.Places`)."""

    __slots__ = ()

    def same_storage(self, a: str, b: str) -> bool:
        """Whether two tiles lie in one memory; in auto mode each has one of its own."""
        return self._run.operand(a).storage is self._run.operand(b).storage

    def described(self, name: str) -> str:
        """An operand with its place, for a message."""
        return str(self._run.operand(name))


class CoreProvider(_Provider):
    """The core the instruction runs on (`isa.services.Core`)."""

    __slots__ = ()

    @property
    def subblock(self) -> int:
        """The number of a vector core in its cluster."""
        return self._run.machine.core.subblock

    def memory(self, loc: TileType) -> Storage:
        """The memory of the core in which tiles of this space lie."""
        return self._run.machine.core.memory(loc)

    def on_vector_core(self, name: str, subblock: int) -> Access | None:
        """The region of a Vec operand in the memory of a vector core; None: it lies there already.

        Tiles that were placed automatically, and those of a core on its own, have no other side.
        """
        tile, core = self._run.operand(name), self._run.machine.core
        if core.cluster is None or tile.storage is not core.memory(tile.spec.loc):
            return None
        memory, access = core.cluster.vector_memory(subblock), self._run.call.handed[name]
        return None if memory is tile.storage else access.moved(memory)


class WorldProvider(_Provider):
    """The devices a program runs on, and the memory they share (`isa.services.World`)."""

    __slots__ = ()

    def view(self, name: str) -> Array:
        """The five-dimensional array of a GlobalTensor operand, inside the bounds of its array."""
        return self._open(name, self._run.operand(name))

    def raw(self, name: str, nbytes: int, skip: int = 0) -> Array:
        """So many bytes of a GlobalTensor operand, `skip` bytes past its pointer."""
        return self._open(name, self._bytes(name, nbytes, skip)).reshape(-1)

    def _bytes(self, name: str, nbytes: int, skip: int) -> GlobalObject:
        at = self._run.operand(name).data()
        spec = GlobalSpec.of(u8, (1, 1, 1, 1, nbytes), (nbytes,) * 4 + (1,))
        moved = Pointer(at.buffer, u8, at.offset + skip)
        return GlobalObject(spec, moved, spec.shape, spec.stride)

    def post(self, session: Any, nbytes: int, skip: int, peer: int) -> Any:
        """Let the engine of a session copy bytes from srcGlobalData to dstGlobalData."""
        machine, site = self._run.machine, self._run.site
        event = session.post(nbytes, peer)
        if event.valid():
            operands = [self._bytes(name, nbytes, skip) for name in (TO, FROM)]
            engine = machine.sync.engine((session, session.order_of(peer)), session.engine.name)
            with self._step(Pipe.ALL):
                call = machine.executor.call(copy_of(self._run.call.insn), operands, (), site)
                over = machine.sync.post(engine, call, operands, site)
            event.transfer = session.last = Transfer(machine, over, site)
        return event

    def copy_through(self, session: Any, nbytes: int) -> None:
        """Copy bytes from srcGlobalData to dstGlobalData by way of the scratch of a session."""
        from ptokit.machine.staging import Staging  # where devices talk

        machine, site, stage = self._run.machine, self._run.site, Staging(self._run, ())
        load, store = halves_of(self._run.call.insn)
        held = Held()
        with self._step(Pipe.MTE2):
            machine.perform(load, (held, self._bytes(FROM, nbytes, 0)), (), site)
        stage.order(Pipe.MTE2, Pipe.MTE3, session.syncId)
        with self._step(Pipe.MTE3):
            machine.perform(store, (self._bytes(TO, nbytes, 0), held), (), site)
        stage.order(Pipe.MTE3, Pipe.MTE2, session.syncId)

    @contextmanager
    def _step(self, pipe: Pipe) -> Generator[None, None, None]:
        """An operation inside the instruction, with an event of its own where they are followed."""
        machine = self._run.machine
        if machine.follows:
            machine.begin(self._run.call.insn, pipe, self._run.site)
        yield
        if machine.follows:
            machine.end()

    def _open(self, name: str, tensor: Any) -> Array:
        insn = self._run.call.insn
        pattern = global_pattern(tensor, View.WHOLE, insn.operand(name))
        return bind_global(pattern, tensor, insn, self._run.site).array()

    def staging(self, *names: str) -> Staging:
        """The tiles through which data goes from one device to another."""
        from ptokit.machine.staging import Staging  # where devices talk

        return Staging(self._run, names)

    def same_view(self, a: Any, b: Any) -> bool:
        """Whether two views of global memory are one and the same."""
        from ptokit.machine.staging import same_place  # where devices talk

        return same_place(a, b)

    def known(self) -> Clock | None:
        """What the scalar unit knows to be complete, where somebody looks for races."""
        machine = self._run.machine
        clocks = machine.sync.clocks
        return None if clocks is None else clocks.release(agent_of(machine.core, Pipe.S))

    def collect(self, job: Any, group: Any, own: Any, behind: Sequence[Clock | None]) -> None:
        """Let the collective unit move data, behind what the members knew to be complete."""
        from ptokit.isa.comm_rules import Chunk  # where devices talk
        from ptokit.machine.staging import Staging  # where devices talk

        machine, site, stage = self._run.machine, self._run.site, Staging(self._run, ())
        part = stage.part(own, Chunk((0,) * 5, job.extents(group)))
        operands = (part, *group)
        with self._step(Pipe.ALL):
            record = collective_of(self._run.call.insn, job, len(group))
            call = machine.executor.call(record, operands, (), site)
            engine = machine.sync.engine(collective_of, "CCU", is_silent=True)
            machine.sync.post(engine, call, operands, site, [c for c in behind if c is not None])

    def stop_for(self, pipe: Pipe) -> None:
        """Hold the scalar unit until a pipe has done its work."""
        sync, site = self._run.machine.sync, self._run.site
        done = Latch(f"{self._run.call.insn.name}, which waits for its pipe", 1)
        sync.signal(pipe, (done,), site)
        sync.wait(Pipe.S, (done,), lambda: Why(done.title), site)

    @property
    def gates(self) -> dict[Any, Any]:
        """The gates of the collective unit: of all devices, or of a core that plays them all."""
        rank, registers = here(), self._run.machine.core.registers
        return registers.setdefault("CCU", {}) if rank is None else rank.ranks.gates

    @property
    def rank(self) -> int | None:
        """The device the program runs on, among others; None when it is alone."""
        rank = here()
        return None if rank is None else rank.number

    @property
    def rank_count(self) -> int | None:
        """How many devices there are; None when the program knows of no others."""
        rank = here()
        return None if rank is None else rank.ranks.size

    def rank_of(self, tensor: Any) -> int | None:
        """The device in whose window a view lies; None when it lies in no window."""
        rank = here()
        found = None if rank is None else rank.ranks.locate(tensor)
        return None if found is None else found[1]

    def drain(self, pipe: Pipe) -> None:
        """Complete the earlier work of a pipe (ALL: of the core) before its later work."""
        self._run.machine.sync.barrier(pipe, self._run.site)

    def pause(self) -> None:
        """Let a random schedule turn to another device."""
        pause()


_PROVIDERS: dict[str, Any] = {
    "poison": PoisonProvider,
    "places": PlacesProvider,
    "beyond": BeyondProvider,
    "core": CoreProvider,
    "world": WorldProvider,
}
