"""The vector unit of a core while it runs a scope: memory, hidden registers, the order inside.

From outside a scope is one instruction of PIPE_V; what it touched is known when it is over
(`accesses`). Inside, loads and stores go through here: bounds and poison are checked, each takes
part in the order of the scope (scope_order.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.diagnostics import Note, PtoError, fail, where
from ptokit.base.dtypes import DType, u8
from ptokit.base.enums import TileType
from ptokit.base.layout import Array, flat_map
from ptokit.base.location import Location, Site
from ptokit.base.namedtuple import NamedTuple
from ptokit.isa.micro.footprints import BLOCK, PARAMETER_TABLE, PARAMETER_TABLES, Image
from ptokit.isa.targets import Target
from ptokit.machine.access import Access, AccessPattern, byte_ranges
from ptokit.machine.faults import OutOfBounds, PoisonRead
from ptokit.machine.gm import GmBuffer
from ptokit.machine.memory import Storage
from ptokit.machine.objects import Pointer
from ptokit.machine.registers import BYTES, Align, LocalPointer, Mask, Register
from ptokit.machine.scope_order import BARRIERS, LD, ST, VLD, VST, Conflict, Order, merged

if TYPE_CHECKING:
    from ptokit.machine.machine import Machine

Place = Site | Location
Address = Pointer | LocalPointer
Ranges = Iterable[tuple[int, int]]
Combine = Callable[[Array, Array], Array]


class VectorUnit:
    """What the operations of one run of a scope work on."""

    def __init__(self, machine: Machine, place: Place) -> None:
        self.machine = machine
        self.place = place  # the line in hand
        self.registers = machine.core.hidden  # those that outlive the scope: AR, SQZN
        self.control = machine.core.registers  # those that products and conversions go by
        self.memory = machine.core.memory(TileType.Vec)
        # Under another schedule than that of the program the unit runs ahead of its stores: they
        # land, in their order, when something comes that is ordered behind them.
        self._is_late = machine.defers
        self._held: list[tuple[int, int, Callable[[], None]]] = []  # turn, access, what lands
        is_watched = self._is_late or machine.journal is not None
        self.order = Order(self._conflict) if is_watched else None
        self._touched: dict[tuple[Storage, bool], set[tuple[int, int]]] = {}
        self._streams: dict[int, tuple[Align, Place]] = {}  # those with bytes on their way
        self._last = 0  # what comes before the value that was loaded last

    def trust(self, hidden: dict[str, Any], control: dict[str, Any]) -> None:
        """Follow no order, and go by these registers: all was checked when it ran before."""
        self.order, self._is_late = None, False
        self.registers, self.control = hidden, control

    # ---- what is known of values ---------------------------------------------------------------

    def after(self, *values: Any) -> int:
        """The accesses that come before a result made of these values."""
        order, found = self.order, 0
        if order is not None:
            for value in values:
                found |= order.since(value)
        return found

    @property
    def turn(self) -> int:
        return 0 if self.order is None else self.order.turn

    # ---- memory --------------------------------------------------------------------------------

    def load(self, at: Address, start: int, image: Image, after: int = 0) -> list[Register]:
        """Registers that the bytes of an image from `start` on make."""
        memory, stop = at.buffer, start + image.nbytes
        self._check(memory, start, stop, image.alignment)
        order = self._note(VLD, memory, ((start, stop),), after)
        data, shadow = memory.data[start:stop], memory.shadow[start:stop]
        lacks = b"\0" in shadow.tobytes()
        found: list[Register] = []
        for table in image.tables:
            if table is None:
                lanes = data.copy()
                poison = (shadow == 0).view(np.uint8) if lacks else None
            else:
                lanes = data[table]
                absent = table < 0
                lanes[absent] = 0
                poison = None
                if lacks:
                    poison = (shadow == 0).view(np.uint8)[table]
                    poison[absent] = 0
            found.append(Register(lanes, _some(poison), order, self.turn))
        return found

    def store(self, at: Address, start: int, image: Image, mask: Mask | None, *given: Any) -> None:
        """Write registers through an image; a mask decides where the image asks it."""
        memory, stop = at.buffer, start + image.nbytes
        self._check(memory, start, stop, image.alignment)
        (table,) = image.tables
        data = given[0].data if len(given) == 1 else np.concatenate([g.data for g in given])
        poison = _joined(given)
        if table is not None:
            data = data[table]
            poison = None if poison is None else poison[table]
        controls, ranges, chosen = image.controls, ((start, stop),), None
        after = self.after(*given)
        if controls is not None and mask is not None:
            after |= self.after(mask)
            if mask.poison is not None:
                self._demand(mask.poison[controls], "the mask of a store")
            if image.lane == 0 or mask.lanes(image.lane) is not None:
                chosen = mask.spread(image.lane) if image.lane else mask.bits[controls]
                ranges = tuple(_runs(chosen, start))
        self._note(VST, memory, ranges, after)
        self._write(memory, start, stop, data, poison, chosen)

    def _write(
        self,
        memory: Storage,
        start: int,
        stop: int,
        data: Array,
        poison: Array | None,
        chosen: Array | None,
    ) -> None:
        if poison is not None:
            if chosen is not None:
                poison = np.where(chosen, poison, 0)
            self.require(poison, "the register that is stored")
            poison = _some(poison)
        if self._is_late and self.order is not None and memory is self.memory:
            land = partial(_land, memory, start, stop, data.copy(), poison, chosen)
            self._held.append((self.order.turn, self.order.last, land))
        else:
            _land(memory, start, stop, data, poison, chosen)

    def _catch_up(self, before: int | None = None) -> None:
        """Let stores land: those up to the last one among some accesses, or all of them."""
        held, count = self._held, len(self._held)
        if before is not None:
            turn = self.turn
            while count and held[count - 1][0] == turn and not held[count - 1][1] & before:
                count -= 1
        for _, _, land in held[:count]:
            land()
        del held[:count]

    def gather(self, at: Address, places: Array, active: Array, after: int) -> Register:
        """A register whose bytes lie where a table says; those that are not active are 0."""
        memory = at.buffer
        kept = active & (places >= 0)
        where_ = places[kept] + at.offset
        self._check_places(memory, where_)
        order = self._note(VLD, memory, tuple(_stretches(where_)), after)
        lanes = np.zeros(places.size, np.uint8)
        lanes[kept] = memory.data[where_]
        shadow = memory.shadow[where_]
        poison = None
        if not shadow.all():
            poison = np.zeros(places.size, np.uint8)
            poison[kept] = shadow == 0
        return Register(lanes, poison, order, self.turn)

    def scatter(
        self, at: Address, places: Array, active: Array, source: Register, after: int
    ) -> None:
        """Write bytes of a register where a table says."""
        memory = at.buffer
        kept = active & (places >= 0)
        where_ = places[kept] + at.offset
        self._check_places(memory, where_)
        lost = None if source.poison is None else _some(source.poison[kept])
        if lost is not None:
            self.require(lost, "the register that is stored")
        data = source.data[kept]
        if self.order is not None and np.unique(where_).size < where_.size:
            self._collide(where_, data)
        self._note(VST, memory, tuple(_stretches(where_)), after | self.after(source))
        self._catch_up()
        memory.data[where_] = data
        memory.shadow[where_] = 1
        if lost is not None:
            memory.shadow[where_[lost != 0]] = 0
            memory.epoch += 1

    def raw(self, at: Address, start: int, image: Image, writes: bool, *given: Any) -> Array:
        """Bytes that an operation reads or writes by itself: those of masks and words."""
        memory, stop = at.buffer, start + image.nbytes
        self._check(memory, start, stop, image.alignment)
        self._last = self._note(
            VST if writes else VLD, memory, ((start, stop),), self.after(*given)
        )
        if writes:
            self._catch_up()
            memory.shadow[start:stop] = 1
        return memory.data[start:stop]

    def lost(self, at: Address, start: int, image: Image) -> Array | None:
        """Which of these bytes are undefined; None: not one."""
        shadow = at.buffer.shadow[start : start + image.nbytes]
        return None if shadow.all() else shadow == 0

    def lose(self, at: Address, start: int, lost: Array) -> None:
        """Bytes that were stored just now are undefined; refused unless they may travel."""
        self.require(lost, "the mask that is stored")
        at.buffer.shadow[start : start + lost.size][lost] = 0
        at.buffer.epoch += 1

    def mask(self, bits: Array, lost: Array | None = None) -> Mask:
        """The mask of bits that were loaded just now, and which of them are undefined."""
        return Mask(bits, lost, self._last, self.turn)

    def chosen(self, given: Sequence[Register | Mask], table: Array) -> Register | Mask:
        """The bytes of registers, or bits of masks, one after the other, that a table lists.

        What it does not list is undefined.
        """
        is_mask = isinstance(given[0], Mask)
        data = np.concatenate([g.bits if isinstance(g, Mask) else g.data for g in given])
        blank = np.zeros(len(data) // len(given), np.bool_ if is_mask else np.uint8)
        lost = np.concatenate([blank if g.poison is None else g.poison for g in given])
        absent = table < 0
        poison = np.where(absent, 1, lost[table]).astype(lost.dtype)
        kind = Mask if is_mask else Register
        found = np.where(absent, 0, data[table]).astype(data.dtype)
        return kind(found, _some(poison), self.after(*given), self.turn)

    # ---- streams -------------------------------------------------------------------------------

    def begin_load(self, at: Address) -> Align:
        """The state of an unaligned load, which reads ahead nothing here."""
        return Align(at.buffer, at.offset)

    def begin_store(self) -> Align:
        """The state of a stream into which nothing has been stored."""
        return Align()

    def made_of(self, data: Array, value: Mask) -> Register:
        """Bytes that were made of another value, as a register."""
        self.demand(value, 1, None, "the mask that is stored")
        lanes = np.zeros(BYTES, np.uint8)
        lanes[: data.size] = data
        return Register(lanes, None, self.after(value), self.turn)

    def append(self, state: Align, source: Register, nbytes: int, at: Address, start: int) -> Align:
        """Append bytes to a stream that goes on at `start`; whole blocks go to memory."""
        memory = at.buffer
        if state.memory is not None and (state.memory is not memory or state.end != start):
            raise self._torn(state, start)
        kept = len(state.pending)
        if not 0 <= nbytes <= BYTES:
            raise self._outside(memory, start, start + nbytes)
        if source.poison is not None:
            self._demand(source.poison[:nbytes], "the register that is stored")
        data = np.concatenate([state.pending, source.data[:nbytes]])
        first, end = start - kept, start + nbytes
        cut = max(end // BLOCK * BLOCK, first)
        after = self.after(state, source)
        if cut > first:
            self._check(memory, first, cut, 1)
            self._note(VST, memory, ((first, cut),), after)
            self._write(memory, first, cut, data[: cut - first], None, None)
        self._streams.pop(id(state), None)
        found = Align(memory, end, data[cut - first :], after=after, turn=self.turn)
        if len(found.pending):
            self._streams[id(found)] = found, self.place
        return found

    def flush(self, state: Align, at: Address, end: int) -> None:
        """Store what is left of a stream, which ends there."""
        memory, count = at.buffer, len(state.pending)
        if state.memory is not None and (state.memory is not memory or state.end != end):
            raise self._torn(state, end)
        self._streams.pop(id(state), None)
        if count:
            self._check(memory, end - count, end, 1)
            self._note(VST, memory, ((end - count, end),), self.after(state))
            self._write(memory, end - count, end, state.pending, None, None)

    def _torn(self, state: Align, start: int) -> PtoError:
        return fail(
            "stream-place",
            "a stream goes on where it stopped",
            got=[("it stopped at", hex(state.end)), ("pointer", hex(start))],
            fix="go on with the pointer that the last operation of the stream returned",
            site=self.place,
        )

    def finish(self) -> None:
        """The scope is over: what a stream still holds is lost."""
        self._catch_up()
        journal = self.machine.journal
        for state, place in self._streams.values():
            if journal is not None:
                journal.findings.add(
                    "E18",
                    f"{len(state.pending)} bytes of a stream were never stored",
                    place,
                    fix="end the stream with pto.vstas, or pto.vstar where AR counts its bytes",
                )

    # ---- hidden registers ----------------------------------------------------------------------

    def hidden(self, name: str) -> Any:
        """The value of a hidden register: of one that nothing has set there is none."""
        if name not in self.registers:
            if self.machine.policy.allows("hidden-register", where(self.place)):
                return 0
            raise fail(
                "hidden-register",
                f"{name} is used, and nothing has set it",
                fix=_SETTERS.get(name) or f"let a pto.set_{name} come before it",
                site=self.place,
            )
        return self.registers[name]

    def set_hidden(self, name: str, value: Any) -> None:
        self.registers[name] = value

    # ---- transfers -----------------------------------------------------------------------------

    def read(self, at: Address, start: int, nbytes: int) -> tuple[Array, Array | None]:
        """Bytes that a transfer takes, and which of them are undefined."""
        memory, stop = at.buffer, start + nbytes
        self._check(memory, start, stop, 1)
        self._touch(memory, start, stop, writes=False)
        if isinstance(memory, GmBuffer):
            return memory.data[start:stop], None
        lost = (memory.shadow[start:stop] == 0).view(np.uint8)
        return memory.data[start:stop], lost if lost.any() else None

    def write(
        self,
        at: Address,
        start: int,
        data: Array,
        poison: Array | None,
        combine: Combine | None = None,
    ) -> None:
        """Bytes that a transfer leaves. What is undefined does not go to global memory.

        `combine` makes new bytes of those that are there and those that come.
        """
        memory, stop = at.buffer, start + data.size
        self._check(memory, start, stop, 1)
        self._touch(memory, start, stop, writes=True)
        if combine is not None:
            data = combine(memory.data[start:stop], data)
        memory.data[start:stop] = data
        if isinstance(memory, GmBuffer):
            if poison is not None:
                self.require(poison, "what is stored in global memory")
            return
        memory.shadow[start:stop] = 1
        if poison is not None:
            memory.shadow[start:stop][poison != 0] = 0
            memory.epoch += 1

    def read_elements(self, at: Address, places: Array, kind: DType) -> tuple[Array, Array | None]:
        """Elements so many bytes past a pointer, and which of them are undefined."""
        memory, table = at.buffer, self._table(at, places, kind, writes=False)
        values = np.ascontiguousarray(memory.data[table]).view(kind.np)[..., 0]
        if isinstance(memory, GmBuffer):
            return values, None
        lost = (memory.shadow[table] == 0).any(axis=-1)
        return values, lost if lost.any() else None

    def write_elements(
        self,
        at: Address,
        places: Array,
        values: Array,
        lost: Array | None,
        combine: Combine | None = None,
    ) -> None:
        """Write elements so many bytes past a pointer of their type."""
        memory, table = at.buffer, self._table(at, places, at.dtype, writes=True)
        data = np.ascontiguousarray(values.astype(at.dtype.np, copy=False))
        raw = data[..., None].view(np.uint8)
        if combine is not None:
            raw = combine(np.ascontiguousarray(memory.data[table]), raw)
        memory.data[table] = raw
        if isinstance(memory, GmBuffer):
            if lost is not None:
                self.require(np.repeat(lost, at.dtype.itemsize), "what is stored in global memory")
            return
        memory.shadow[table] = 1
        if lost is not None:
            memory.shadow[table[lost]] = 0
            memory.epoch += 1

    def _table(self, at: Address, places: Array, kind: DType, writes: bool) -> Array:
        """The bytes of elements, as part of the footprint."""
        starts = places + at.offset
        table = starts[..., None] + np.arange(kind.itemsize)
        self._check_places(at.buffer, table)
        if self.order is not None and starts.size:
            ranges = byte_ranges(np.unique(starts), kind.itemsize)
            self._touched.setdefault((at.buffer, writes), set()).update(ranges)
        return table

    def on_vector_core(self, at: Address, number: int) -> Address:
        """The same address in the unified buffer of a vector core of the block."""
        cluster = self.machine.core.cluster
        if cluster is None:
            return at
        if number not in (0, 1):
            raise fail(
                "micro-space",
                "a block has the vector cores 0 and 1",
                got=[("core", number)],
                fix="name one of them",
                site=self.place,
            )
        return LocalPointer(cluster.vector_memory(number), at.dtype, at.offset)

    def scales(self, at: Address, space: TileType) -> Address:
        """Where the scales of an operand of a product lie: at a sixteenth of its address."""
        return LocalPointer(self.machine.core.memory(space), u8, at.offset >> 4)

    def parameters(self, at: Address, table: int | None = None) -> Address:
        """Where parameters of the fix pipe lie: in a table, named by the address or by who reads.

        The lower bits of an address count inside a table.
        """
        number, offset = divmod(at.offset, PARAMETER_TABLE)
        if table is None and number >= PARAMETER_TABLES:
            raise self._outside(at.buffer, at.offset, at.offset + 1)
        memory = self.machine.core.memory(TileType.Scaling, number if table is None else table)
        return LocalPointer(memory, at.dtype, offset)

    @property
    def target(self) -> Target:
        return self.machine.target

    def _touch(self, memory: Storage, start: int, stop: int, writes: bool) -> None:
        if self.order is not None and stop > start:
            self._touched.setdefault((memory, writes), set()).add((start, stop))

    def element(self, at: Address, offset: int, writes: bool) -> Array:
        """The bytes of an element that the scalar unit reads or writes inside the scope."""
        memory, size = at.buffer, at.dtype.itemsize
        start = at.offset + offset * size
        self._check(memory, start, start + size, 1)
        self._note(ST if writes else LD, memory, ((start, start + size),), 0)
        if not isinstance(memory, GmBuffer):
            if writes:
                self._catch_up()
                memory.shadow[start : start + size] = 1
            else:
                self._demand(memory.shadow[start : start + size] == 0, "what is loaded")
        return memory.data[start : start + size]

    def barrier(self, kind: str) -> None:
        """`mem_bar`."""
        if self.order is not None:
            self.order.barrier(kind)

    # ---- order ---------------------------------------------------------------------------------

    def _note(self, kind: str, memory: Storage, ranges: Ranges, after: int) -> int:
        order = self.order
        if order is None:
            return 0
        touched = self._touched.setdefault((memory, kind in (VST, ST)), set())
        touched.update(ranges)
        if memory is not self.memory:
            return after
        found = order.access(kind, ranges, after, self.place)
        if self._held and kind in (VLD, LD):
            self._catch_up(found)
        return found

    @property
    def accesses(self) -> Iterator[Access]:
        """All that was touched, for whoever looks at the scope from outside."""
        for (memory, writes), ranges in self._touched.items():
            for start, stop in merged(ranges):
                pattern = AccessPattern(
                    "memory", u8, flat_map(stop - start), reads=not writes, writes=writes
                )
                yield pattern.at(memory, start)

    def _conflict(self, found: Conflict) -> None:
        if self.machine.journal is not None:
            describe(self.machine.journal.findings, found)

    # ---- errors --------------------------------------------------------------------------------

    def _demand(self, poison: Any, what: str) -> None:
        """Refuse to go on with undefined bytes."""
        if poison.any():
            first = int(np.flatnonzero(poison)[0])
            raise fail(
                "poison-read",
                f"byte {first} of {what} is undefined: nothing has written where it comes from",
                fix="load or compute all that is used, or leave it out with the mask",
                site=self.place,
                target=self.machine.target.name,
                kind=PoisonRead,
            )

    def require(self, poison: Array, what: str) -> None:
        """Refuse undefined bytes unless they may travel on (machine/poison.py)."""
        policy = self.machine.policy
        if not policy.carries_poison and not policy.allows("poison-read", where(self.place)):
            self._demand(poison, what)

    def demand(self, value: Register | Mask, size: int, active: Array | None, what: str) -> None:
        """Refuse undefined lanes that are active."""
        if value.poison is not None:
            lanes = value.poison.reshape(-1, size).any(axis=1)
            self._demand(lanes if active is None else lanes & active, what)

    def _check(self, memory: Storage, start: int, stop: int, alignment: int) -> None:
        if start < 0 or stop > memory.nbytes:
            raise self._outside(memory, start, stop)
        if start % alignment:
            raise self.misaligned(memory, start, alignment)

    def _check_places(self, memory: Storage, places: Array) -> None:
        if places.size and (places.min() < 0 or places.max() >= memory.nbytes):
            raise self._outside(memory, int(places.min()), int(places.max()) + 1)

    def _outside(self, memory: Storage, start: int, stop: int) -> PtoError:
        return fail(
            "memory-bounds",
            f"this access lies inside {memory.name}",
            got=[("address", hex(start)), ("end", hex(stop)), ("capacity", hex(memory.nbytes))],
            fix="check the pointer, its offset and the bytes that the pattern takes",
            site=self.place,
            kind=OutOfBounds,
        )

    def misaligned(self, memory: Storage, start: int, alignment: int) -> PtoError:
        return fail(
            "vector-alignment",
            f"this access begins at a multiple of {alignment} bytes",
            got=[("address", hex(start)), ("memory", memory.name)],
            fix="move the pointer, or use an unaligned stream: vldas and vldus, vstus and vstas",
            site=self.place,
        )

    def _collide(self, places: Array, data: Array) -> None:
        """Complain of lanes that are scattered to one place with different values."""
        order = np.argsort(places, kind="stable")
        sorted_, values = places[order], data[order]
        same = sorted_[1:] == sorted_[:-1]
        journal = self.machine.journal
        if journal is not None and (values[1:][same] != values[:-1][same]).any():
            journal.findings.add(
                "E17",
                "active lanes of a scatter have one index and different values: which stays is "
                "open",
                self.place,
                fix="give them different indices, or leave all but one out with the mask",
            )


class Work:
    """What a pipe is handed: a scope, or one operation beside it, with the values it uses.

    One that takes part in the hand-shake between products and the fix pipe names its accumulator.
    Of a scope, `source` is what is written there: whoever compiles it reads it.
    """

    __slots__ = ("_run", "accumulator", "source", "values")
    key = operand_kind = "micro"

    def __init__(
        self,
        run: Callable[..., Any],  # of the unit and the values
        values: Sequence[Any] = (),
        accumulator: Address | None = None,
        source: Code | None = None,
    ) -> None:
        self._run = run
        self.values = tuple(values)
        self.accumulator = accumulator
        self.source = source

    def __call__(self, unit: VectorUnit) -> Any:
        return self._run(unit, *self.values)

    def on(self, values: Sequence[Any]) -> Work:
        """The same with other values: pointers to other arrays."""
        return Work(self._run, values, self.accumulator, self.source)


class Code(NamedTuple):
    """The operations of a scope as they are written (ir/core.py)."""

    block: Any
    given: tuple[Any, ...]  # the names of the values of the work
    module: Any  # whose functions it calls; None: it calls none
    sites: Sequence[Any] = ()  # where the operations stand, of a scope that was just recorded


_SETTERS = {
    "AR": 'begin the stream with pto.sprclr "AR"',
    "SQZN": "let a pto.vsqz come before it",
    "VMS4": "let a pto.vmrgsort4 come before it, and wait for PIPE_V",
}


def describe(findings: Any, found: Conflict) -> None:
    """A complaint about two accesses of a scope that nothing orders."""
    first, second = found.first, found.second
    is_both_stores = first in (VST, ST) and second in (VST, ST)
    is_mixed = (first in (VLD, VST)) != (second in (VLD, VST))
    if is_both_stores and not is_mixed:
        what = "two stores of a scope to common bytes rely on their order in the program"
        severity = "warning"
    else:
        verb = {VLD: "load", LD: "load", VST: "store", ST: "store"}
        unit = {True: "", False: "scalar "}
        words = [f"{unit[k in (VLD, VST)]}{verb[k]}" for k in (first, second)]
        what = f"nothing orders this {words[1]} after the {words[0]} of common bytes"
        severity = "error"
    findings.add(
        "E17",
        what,
        found.place,
        got=[("bytes", f"{found.start:#x} to {found.stop:#x}")],
        fix=f'put pto.mem_bar "{barrier_between(first, second)}" between them',
        notes=[Note("the access before it", where(found.before))],
        severity=severity,
        once=(what, first, second),
    )


def barrier_between(first: str, second: str) -> str:
    """The narrowest barrier that orders two classes of accesses."""
    pair = f"{first}_{second}"
    return pair if pair in BARRIERS else "VS_ALL" if first in (VLD, VST) else "SV_ALL"


def _land(
    memory: Storage,
    start: int,
    stop: int,
    data: Array,
    poison: Array | None,
    chosen: Array | None,
) -> None:
    """Write bytes, or those that are chosen, with what is undefined of them."""
    piece, shadow = memory.data[start:stop], memory.shadow[start:stop]
    if chosen is None:
        piece[:] = data
        shadow[:] = 1
    else:
        piece[chosen] = data[chosen]
        shadow[chosen] = 1
    if poison is not None:
        shadow[poison != 0] = 0
        memory.epoch += 1


def _some(poison: Array | None) -> Array | None:
    return None if poison is None or not poison.any() else poison


def _joined(given: Iterable[Register]) -> Array | None:
    parts = [g.poison for g in given]
    if all(part is None for part in parts):
        return None
    blank = np.zeros(256, np.uint8)
    return np.concatenate([blank if part is None else part for part in parts])


def _runs(chosen: Array, start: int) -> Iterator[tuple[int, int]]:
    """The stretches of bytes that are chosen."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], chosen.view(np.int8), [0]))))
    for low, high in edges.reshape(-1, 2).tolist():
        yield start + low, start + high


def _stretches(places: Array) -> Iterator[tuple[int, int]]:
    if places.size:
        yield from byte_ranges(np.unique(places), 1)
