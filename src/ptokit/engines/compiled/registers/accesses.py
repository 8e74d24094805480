"""Loads and stores of registers and masks: which byte of memory is which of a register."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from inspect import signature
from typing import Any

import numpy as np

from ptokit.base.layout import Array
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.lanes import Lanes
from ptokit.engines.compiled.loops import VECTOR
from ptokit.engines.compiled.registers.elements import Elements
from ptokit.engines.compiled.registers.probing import FewBytes, origins, placeholder
from ptokit.engines.compiled.registers.rooms import Room, Rooms, Values
from ptokit.engines.compiled.text import Function
from ptokit.engines.compiled.text import Value as Text
from ptokit.ir.core import Op
from ptokit.ir.types import MaskType, PtrType
from ptokit.isa.micro.footprints import ABSENT, MASK_UNITS, REGISTER, Footprint, Image
from ptokit.isa.micro.spec import Micro, Slot
from ptokit.isa.micro.typed import Typed
from ptokit.machine.logical_calls import places_of
from ptokit.machine.micro_calls import call_of
from ptokit.machine.registers import Mask
from ptokit.machine.vector_calls import Preparation


class Accesses:
    """Writes what goes between registers and the memory of a core."""

    def __init__(
        self, values: Values, code: Function, rooms: Rooms, elements: Elements, memory: Text
    ) -> None:
        self._values = values
        self._code = code
        self._rooms = rooms
        self._elements = elements
        self._memory = memory

    def operation(self, op: Op, given: Typed, footprint: Footprint) -> None:
        record = given.record
        if record.is_logical:
            self._logical_access(op, given, footprint)
            return
        made = Preparation(record, given.kinds, given.sizes, given.words, given.results)
        start = self._address(op, given, footprint, made)
        if "unit" in record.parameters:
            self._access_bits(op, given, footprint, made.image(footprint), start)
            return
        if footprint.places is not None:
            self._by_places(op, given, footprint, made, start)
            return
        image = made.image(footprint)
        if footprint.writes:
            sources = [
                self._elements.register(op, s.name) for s in record.operands if s.kind in "VWXL"
            ]
            self._store(start, image, sources, self._mask(op, image))
            return
        results = [v for s, v in zip(record.results, op.results, strict=False) if s.kind in "VWXL"]
        for value, table in zip(results, image.tables, strict=True):
            room = self._rooms.new(REGISTER)
            self._rooms.fill(room, start, table)
            self._values.keep(value, room)

    def _access_bits(
        self, op: Op, given: Typed, footprint: Footprint, image: Image, start: Text
    ) -> None:
        """A mask that is loaded or stored, bit by bit: which goes where, the body tells."""
        bits = 8 * image.nbytes
        mask = op.operand("mask") if footprint.writes else op.results[0]
        if mask is None or not isinstance(mask.type, MaskType):
            raise Unsupported("no mask")
        args = [placeholder(slot, given) for slot in given.record.operands]
        call = call_of(given)

        def run(content: Array) -> list[Array]:
            unit = FewBytes(content, image.nbytes)
            if footprint.writes:
                handed = [Mask(content.view(np.bool_)) if a is None else a for a in args]
                call(unit, *handed)
                return [np.unpackbits(unit.memory, bitorder="little")]
            found = call(unit, *args)
            one = found[0] if isinstance(found, tuple) else found
            return [np.ascontiguousarray(one.bits).view(np.uint8)]

        tables = origins(run, REGISTER if footprint.writes else bits, 1)
        if tables is None:
            raise Unsupported("bits that are computed")
        between, (table,) = self._rooms.new(bits), tables
        if footprint.writes:
            self._rooms.fill(between, self._elements.register(op, "mask").place, table)
            self._rooms.pack(start, between)
            return
        self._rooms.unpack(between, start)
        room = self._rooms.new(REGISTER)
        self._rooms.fill(room, between.place, table)
        self._values.keep(mask, room)

    def _address(self, op: Op, given: Typed, footprint: Footprint, made: Preparation) -> Text:
        """Where an access begins; a pointer that moves is kept."""
        code, base = self._code, op.operand("base")
        assert base is not None
        assert isinstance(base.type, PtrType)
        at, offset = self._values.number(base), op.operand(footprint.offset)
        unit = {"byte": 1, "word": 4, "block": 32, "element": given.kinds["base"].itemsize}.get(
            footprint.unit
        )
        if unit is None:
            unit = MASK_UNITS[made.words[footprint.pattern] or "NORM"]
        step = "0"
        if offset is not None:
            step = code.number("mul", self._values.number(offset), str(unit))
            if footprint.unit == "block":
                step = code.number("and", step, str(0x1FFFFF))  # sixteen bits without a sign
        behind = code.number("add", at, step)
        moves = False
        for slot, value in zip(given.record.results, op.results, strict=False):
            if slot.name == "next":
                self._values.keep(value, behind)
                moves = True
        return code.behind(self._memory, at if moves else behind)

    def _mask(self, op: Op, image: Image) -> Room | None:
        """The mask of a store; None: it writes all that its image has."""
        if image.controls is None or op.operand("mask") is None:
            return None
        room = self._elements.register(op, "mask")
        is_whole = room.known is not None and room.known[image.controls].all()
        return None if is_whole else room

    def _store(self, start: Text, image: Image, sources: Sequence[Room], mask: Room | None) -> None:
        (table,) = image.tables
        table = np.arange(image.nbytes) if table is None else table
        first = 0
        for room in sources:
            to = np.flatnonzero((table >= first) & (table < first + room.nbytes))
            if mask is None:
                self._rooms.move_bytes(start, to, room.place, table[to] - first)
            elif image.lane and len(sources) == 1:
                self._select(start, room, mask, image.lane)
            else:
                assert image.controls is not None
                self._rooms.move_bytes(
                    start, to, room.place, table[to] - first, image.controls[to], mask
                )
            first += room.nbytes

    def _select(self, start: Text, room: Room, mask: Room, size: int) -> None:
        """Store lanes of so many bytes where a mask is set."""
        code, kind = self._code, f"i{8 * size}"
        count = VECTOR // size

        def group(at: Text) -> Sequence[Text]:
            lanes = Lanes(code, count, {})
            vector = lanes.vector(kind)
            value, before = (
                code.do(f"load {vector}, ptr {self._rooms.at(place, at, size)}, align 1")
                for place in (room.place, start)
            )
            test = self._elements.bits(lanes, mask, at, size)
            value = code.do(
                f"select {lanes.vector('i1')} {test}, {vector} {value}, {vector} {before}"
            )
            code.act(f"store {vector} {value}, ptr {self._rooms.at(start, at, size)}, align 1")
            return ()

        self._rooms.each(room.nbytes // size, count, group)

    def _by_places(
        self, op: Op, given: Typed, footprint: Footprint, made: Preparation, start: Text
    ) -> None:
        """What lies where numbers say."""
        record, mask = given.record, self._elements.register(op, "mask")
        if record.slot("index") is not None or mask.known is None:
            raise Unsupported("places that change")
        assert footprint.places is not None
        assert footprint.active is not None
        stride = op.operand("block_stride")
        number = None if stride is None else self._values.stride(stride)
        if number is None:
            raise Unsupported("places that change")
        memory_size = given.kinds["base"].itemsize
        table = footprint.places(size=made.size, memory_size=memory_size, block_stride=number)
        assert table is not None
        touched = footprint.active(mask.known.view(np.bool_), made.size)
        self._scattered(op, record, np.where(touched, table, ABSENT), start)

    def _scattered(self, op: Op, record: Micro, table: Array, start: Text) -> None:
        """Bytes of a register that lie where a table says."""
        source = op.operand("src")
        kept = np.flatnonzero(table != ABSENT)
        if source is not None:
            if np.unique(table[kept]).size < kept.size:
                raise Unsupported("several lanes for one place")
            self._rooms.move_bytes(
                start, table[kept], self._elements.register(op, "src").place, kept
            )
            return
        room = self._rooms.new(table.size)
        self._rooms.fill(room, start, table)
        self._values.keep(op.results[0], room)

    def _logical_access(self, op: Op, given: Typed, footprint: Footprint) -> None:
        record, vectors = given.record, given.vectors
        vector, base = vectors["src" if footprint.writes else "dst"], vectors["base"]
        assert vector.kind is not None
        assert base.kind is not None
        size, memory_size = vector.kind.itemsize, base.kind.itemsize
        count = vector.lanes * (2 if "high" in vectors else 1)
        said = {word.name: given.words.get(word.name, word.number) for word in record.words}
        at = {slot.name: place for place, slot in enumerate(record.operands)}
        index = vectors.get("index")
        kind = None if index is None or index.kind is None else index.kind.uint
        where = places_of(footprint, at, kind, said, lanes=count, size=size,
                          memory_size=memory_size)  # fmt: skip
        assert footprint.places is not None
        asked = signature(footprint.places).parameters
        table = where([self._shaping(op, slot, asked) for slot in record.operands])
        table = np.arange(count * size) if table is None else table
        pointer, offset = op.operand("base"), op.operand("offset")
        assert pointer is not None
        start = self._values.number(pointer)
        if offset is not None:
            moved = self._code.number("mul", self._values.number(offset), str(memory_size))
            start = self._code.number("add", start, moved)
        start = self._code.behind(self._memory, start)
        owners = np.arange(count * size) // size % vector.lanes  # the lane of each byte
        mask = None
        if op.operand("mask") is not None:
            mask = self._elements.register(op, "mask")
            if mask.known is not None:
                table, mask = np.where(mask.known[owners] != 0, table, ABSENT), None
        kept = np.flatnonzero(table != ABSENT)
        controls = None if mask is None else owners[kept]
        if footprint.writes:
            first = 0
            for room in [self._elements.register(op, n) for n in ("src", "high") if op.operand(n)]:
                here = (kept >= first) & (kept < first + room.nbytes)
                chosen = None if controls is None else controls[here]
                self._rooms.move_bytes(
                    start, table[kept[here]], room.place, kept[here] - first, chosen, mask
                )
                first += room.nbytes
            return
        fill = op.operand("passthru")
        if fill is not None:
            room = self._rooms.copied(self._elements.register(op, "passthru"))
        else:
            room = self._rooms.new(count * size)
            if mask is not None or kept.size < table.size:
                self._rooms.clear(room)
        self._rooms.move_bytes(room.place, kept, start, table[kept], controls, mask)
        nbytes = vector.lanes * size
        for number, value in enumerate(op.results):
            place = self._code.behind(room.place, str(number * nbytes))
            self._values.keep(value, Room(place, nbytes))

    def _shaping(self, op: Op, slot: Slot, asked: Collection[str]) -> Any:
        """What the places of an access depend on, by the names that are asked for."""
        numbers: list[Any] = []
        for value in op.group(slot.name):
            if slot.kind in ("ub", "V"):
                return None
            if slot.kind in ("M", "X"):
                found = self._elements.same(value)
                if found is None and slot.name in asked:
                    raise Unsupported("places that change")
                return found
            if slot.name == "offset":
                return 0
            number = self._values.stride(value)
            if number is None:
                raise Unsupported("places that change")
            numbers.append(number)
        return numbers if slot.is_list else numbers[0] if numbers else None
