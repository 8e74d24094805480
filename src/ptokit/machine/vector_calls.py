"""Micro-operations ready to run: a record over operands of known types becomes a function.

Everything that its types and words say is worked out once. The function takes the unit and the
values of the operands, and returns the value of the result, or a tuple of them: this is the one
place where masks are applied, undefined bytes are followed and post-updates are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ptokit.base.convert import element
from ptokit.base.dtypes import DType, u32
from ptokit.base.layout import Array
from ptokit.isa.arrays import function_of
from ptokit.isa.expr import BOOL, Arg
from ptokit.isa.micro.footprints import MASK_UNITS, Footprint, Image
from ptokit.isa.micro.spec import LANE, Flow, Masking, Micro, Slot
from ptokit.machine.registers import BYTES, LocalPointer, Mask, Register
from ptokit.machine.vector_unit import VectorUnit

Call = Callable[..., Any]
Kinds = Mapping[str, DType]  # of operands and results that have an element type
Words = Mapping[str, str]

_REGISTERS, _MASKS = frozenset("VWXL"), frozenset("MNB")


def prepared(
    record: Micro, kinds: Kinds, sizes: Mapping[str, int], words: Words, results: int
) -> Call:
    """The operation on operands of these element types, of which so many results are wanted.

    `sizes` are the bytes of a lane of each mask.
    """
    return _prepared(
        record,
        tuple(sorted(kinds.items(), key=_name)),
        tuple(sorted(sizes.items())),
        tuple(sorted(words.items())),
        results,
    )


def _name(item: tuple[str, Any]) -> str:
    return item[0]


@lru_cache(maxsize=4096)
def _prepared(record: Micro, kinds: Any, sizes: Any, words: Any, results: int) -> Call:
    made = Preparation(record, dict(kinds), dict(sizes), dict(words), results)
    footprint = record.footprint
    if footprint is not None:
        return made.store(footprint) if footprint.writes else made.load(footprint)
    return made.compute()


class Preparation:
    """A record over operands of known types."""

    def __init__(
        self, record: Micro, kinds: Kinds, sizes: Mapping[str, int], words: Words, results: int
    ) -> None:
        self.record = record
        self.results = record.results[:results]
        self.kinds = kinds
        self.words = {w.name: words.get(w.name, w.default) for w in record.words}
        self.operands = record.operands
        self.sizes = sizes
        self.at = {slot.name: place for place, slot in enumerate(record.operands)}
        self.T = next((kinds[s.name] for s in self._slots("VS") if s.name in kinds), None)
        self.size = self.T.itemsize if self.T is not None else next(iter(sizes.values()), 1)

    @property
    def number(self) -> DType:
        """The type of numbers that an operation takes or counts."""
        return self.T or u32

    def _slots(self, letters: str) -> list[Slot]:
        every = (*self.record.operands, *self.record.results)
        return [slot for slot in every if slot.kind in letters]

    # ---- computing -----------------------------------------------------------------------------

    def compute(self) -> Call:
        """What works on registers and masks alone."""
        record, words = self.record, self.words
        body = self._lanewise() if record.is_lanewise else record.body
        names = record.parameters
        registers = [
            (self.at[s.name], self.kinds[s.name].np)
            for s in self.operands
            if s.kind in _REGISTERS and s.name in self.kinds and s.name in names
        ]
        found = [self._fetch(name) for name in names]
        fetch = [each for each in found if each is not None]
        constants = {} if record.is_lanewise else {n: words[n] for n in names if n in words}
        constants |= {n: self.kinds.get(_OF[n]) or self.T for n in names if n in _OF}
        wants_unit, wants_hidden = "unit" in names, "hidden" in names
        mask_at = self.at.get("mask", -1)
        is_zeroing = record.masking is Masking.ZERO
        finish = [self._finish(slot) for slot in self.results]
        carriers = [i for i, s in enumerate(self.operands) if s.kind in (*_REGISTERS, *_MASKS)]
        size, spread = self.size, self._spread(fetch, registers, body, constants)
        count = len(finish)

        def call(unit: VectorUnit, *args: Any) -> Any:
            handed = [get(args) for get in fetch]
            if wants_unit:
                made = body(*handed, unit=unit, **constants)
            elif wants_hidden:
                made = body(*handed, hidden=unit.registers, **constants)
            else:
                made = body(*handed, **constants)
            active = args[mask_at].lanes(size) if is_zeroing else None
            order, after, poison = unit.order, 0, None
            turn = 0 if order is None else order.turn
            is_lost = False
            for place in carriers:
                value = args[place]
                if value.__class__ in _CARRIERS:
                    if order is not None:
                        after |= value.after if value.turn == turn else order.since(value)
                    is_lost = is_lost or value.poison is not None
            if is_lost and not wants_unit:
                poison = spread(unit, args)
            if count == 1:
                one = made[0] if made.__class__ is tuple else made
                return finish[0](one, active, None if poison is None else poison[0], after, turn)
            if not count:
                return None
            if poison is None:
                poison = [None] * count
            return tuple(
                [
                    end(value, active, lost, after, turn)
                    for end, value, lost in zip(finish, made, poison, strict=False)
                ]
            )

        return call

    def _lanewise(self) -> Call:
        """The code of a function of single elements."""
        return function_of(self.record.name, *self.expressions())

    def expressions(self) -> tuple[Any, ...]:
        """What a function of single elements computes: the names of its elements, the results."""
        record, asked = self.record, list[Any]()
        names: list[str] = []
        for name in record.parameters:
            slot = record.slot(name)
            if name in self.words:
                asked.append(self.words[name])
                continue
            is_mask = slot is not None and slot.kind in _MASKS
            kind = BOOL if is_mask else self.kinds.get(name) or self.number
            asked.append(Arg(kind, name))
            names.append(name)
        found = record.body(*asked)
        return names, *(found if isinstance(found, tuple) else (found,))

    def _fetch(self, name: str) -> Callable[[tuple[Any, ...]], Any] | None:
        """How a parameter of the body is found among the operands; `given` are all of them."""
        if name == "given":
            places, words = tuple(self.at.items()), self.words
            return lambda args: {n: args[place] for n, place in places} | words
        slot, place = self.record.slot(name), self.at.get(name)
        if name == LANE and self.record.is_lanewise:
            numbers = np.arange(BYTES // self.size, dtype=self.number.np)
            return lambda args: numbers
        if slot is None or place is None:
            return None
        if "unit" in self.record.parameters:  # who works with the unit wants values, not lanes
            return lambda args: args[place]
        if slot.kind in _REGISTERS and name in self.kinds:
            kind = self.kinds[name].np
            return lambda args: args[place].of(kind)
        if slot.kind in _MASKS:
            size = self.lane_of(slot)
            return lambda args: args[place].bits[::size]
        if slot.kind == "S" or (self.record.is_lanewise and slot.kind == "int"):
            kind_ = self.number
            return lambda args: element(args[place], kind_)
        return lambda args: args[place]

    def lane_of(self, slot: Slot) -> int:
        """The bytes of a lane of a mask."""
        if slot.kind == "B":
            return 1
        return self.sizes.get(slot.name, self.size) if slot.kind == "N" else self.size

    def _finish(self, slot: Slot) -> Callable[..., Any]:
        """How lanes that a body returns become a result."""
        kind = self.kinds.get(slot.name)
        if slot.kind in _REGISTERS:
            assert kind is not None
            np_kind, zero = kind.np, np.zeros((), kind.np)

            def register(
                lanes: Array | Register, active: Array | None, poison: Any, after: int, turn: int
            ) -> Register:
                if isinstance(lanes, Register):
                    return lanes
                if lanes.dtype != np_kind:
                    lanes = lanes.astype(np_kind)
                if not lanes.ndim:  # one number for all lanes
                    lanes = np.full(BYTES // np_kind.itemsize, lanes)
                if active is not None:
                    lanes = np.where(active, lanes, zero) if lanes.size == active.size else lanes
                return Register(lanes, poison, after, turn)

            return register
        if slot.kind in _MASKS:
            size = self.lane_of(slot)

            def mask(
                lanes: Array | Mask, active: Array | None, poison: Any, after: int, turn: int
            ) -> Mask:
                found = lanes if isinstance(lanes, Mask) else Mask.of_lanes(lanes, size)
                if active is not None:
                    found.bits[::size] &= active
                found.poison, found.after, found.turn = poison, after, turn
                return found

            return mask
        if slot.kind == "int":
            return lambda value, active, poison, after, turn: int(value)
        return lambda value, active, poison, after, turn: value

    # ---- undefined bytes -----------------------------------------------------------------------

    def _spread(self, fetch: Any, registers: Any, body: Call, constants: Any) -> Callable[..., Any]:
        """Which bytes of the results are undefined, where some of the operands are."""
        record, size, results = self.record, self.size, self.results
        wants_hidden, words = "hidden" in record.parameters, self.words
        mask_at = self.at.get("mask")
        places = [i for i, _ in registers]
        masks = [i for i, s in enumerate(self.operands) if s.kind in _MASKS and i != mask_at]
        names = [n for n in record.parameters if n in self.at and n not in self.words]

        def lost_lanes(args: tuple[Any, ...]) -> Array:
            lost = np.zeros(BYTES // size, np.bool_)
            for place in places:
                poison = args[place].poison
                if poison is not None:
                    lost |= poison.reshape(lost.size, -1).any(axis=1)
            for place in masks:
                if args[place].poison is not None:
                    lost |= args[place].poison[::size]
            if mask_at is not None:
                mask = args[mask_at]
                active = mask.lanes(size)
                if active is not None:
                    lost &= active
                if mask.poison is not None:
                    lost |= mask.poison[::size]
            return lost

        def by_lanes(unit: VectorUnit, args: tuple[Any, ...]) -> list[Any]:
            lost, found = lost_lanes(args), list[Any]()
            if not lost.any():
                return [None] * len(results)
            if record.lost is not None:
                kind, T = self.kinds["dst"], self.T
                lost = record.lost(lost, part=words.get("part") or "", T=T, U=kind)
                return [np.repeat(lost, BYTES // lost.size).view(np.uint8)]
            for slot in results:
                if slot.kind in _MASKS:
                    bits = np.zeros(BYTES, np.bool_)
                    bits[::size] = lost
                    found.append(bits)
                else:
                    spread = np.repeat(lost, size).view(np.uint8)
                    found.append(spread if slot.kind in _REGISTERS else None)
            return found

        def by_bytes(unit: VectorUnit, args: tuple[Any, ...]) -> list[Any]:
            swapped = list(args)
            for place in places:
                poison = args[place].poison
                swapped[place] = Register(np.zeros(BYTES, np.uint8) if poison is None else poison)
            handed = [get(tuple(swapped)) for get in fetch]
            for n, name in enumerate(names):
                slot = record.slot(name)
                if slot is not None and slot.kind in ("S", "X"):
                    handed[n] = fetch[n](args) if slot.kind == "X" else np.zeros_like(handed[n])
            more = {"hidden": dict[str, int]()} if wants_hidden else {}
            made = body(*handed, **more, **constants)
            made = made if isinstance(made, tuple) else (made,)
            active = None
            if mask_at is not None and record.masking is Masking.ZERO:
                active = args[mask_at].lanes(size)
            found: list[Any] = []
            for lanes in made:
                if active is not None and lanes.size == active.size:
                    lanes = np.where(active, lanes, np.zeros((), lanes.dtype))
                poison = np.ascontiguousarray(lanes).view(np.uint8)
                found.append(poison if poison.any() else None)
            return found

        def demand(unit: VectorUnit, args: tuple[Any, ...]) -> list[Any]:
            active = None if mask_at is None else args[mask_at].lanes(size)
            for place in places:
                unit.demand(args[place], size, active, f"what {record.name} goes over")
            for place in (*masks, *([] if mask_at is None else [mask_at])):
                unit.demand(args[place], size, None, f"a mask of {record.name}")
            return [None] * len(results)

        return {Flow.LANES: by_lanes, Flow.BYTES: by_bytes, Flow.ALL: demand}[record.flow]

    # ---- memory --------------------------------------------------------------------------------

    def _address(self, footprint: Footprint) -> tuple[Call, bool]:
        """Where an access begins, and where the pointer is afterwards."""
        base = self.at["base"]
        offset = self.at.get(footprint.offset, -1)
        unit = {"byte": 1, "word": 4, "block": 32, "element": 0}.get(footprint.unit)
        if unit is None:
            unit = MASK_UNITS[self.words[footprint.pattern] or "NORM"]
        moves = any(slot.name == "next" for slot in self.results)

        def address(args: tuple[Any, ...]) -> tuple[LocalPointer, int, int]:
            at: LocalPointer = args[base]
            step = 0
            if offset >= 0:
                step = int(args[offset]) * (unit or at.dtype.itemsize)
                if footprint.unit == "block":
                    step &= 0x1FFFFF  # sixteen bits without a sign
            return at, at.offset + (0 if moves else step), at.offset + step

        return address, moves

    def image(self, footprint: Footprint) -> Image:
        """How memory meets registers."""
        assert footprint.image is not None
        kind = self.kinds.get("base")
        pattern = self.words.get(footprint.pattern) or ""
        return footprint.image(pattern, self.size, kind.itemsize if kind else 1)

    def load(self, footprint: Footprint) -> Call:
        """What brings registers from memory."""
        address, moves = self._address(footprint)
        count = sum(slot.kind in _REGISTERS for slot in self.record.results)
        if footprint.places is not None:
            return self._by_places(footprint, address, moves)
        image = self.image(footprint)
        if not count or "unit" in self.record.parameters:
            return self._by_body(address, moves, image)

        def call(unit: VectorUnit, *args: Any) -> Any:
            at, start, behind = address(args)
            found = unit.load(at, start, image)
            if moves:
                return (*found, at.at(behind))
            return found[0] if count == 1 else tuple(found)

        return call

    def store(self, footprint: Footprint) -> Call:
        """What brings registers to memory."""
        address, moves = self._address(footprint)
        if footprint.places is not None:
            return self._by_places(footprint, address, moves)
        image = self.image(footprint)
        if "unit" in self.record.parameters:
            return self._by_body(address, moves, image)
        sources = [i for i, s in enumerate(self.operands) if s.kind in _REGISTERS]
        mask_at = self.at.get("mask")

        def call(unit: VectorUnit, *args: Any) -> Any:
            at, start, behind = address(args)
            mask = None if mask_at is None else args[mask_at]
            unit.store(at, start, image, mask, *[args[i] for i in sources])
            return at.at(behind) if moves else None

        return call

    def _by_body(self, address: Call, moves: bool, image: Image) -> Call:
        """What a body does with the bytes itself: it is given the unit and the place."""
        record, names = self.record, self.record.parameters
        constants: dict[str, Any] = {n: self.words[n] for n in names if n in self.words}
        handed = [(n, self.at[n]) for n in names if n in self.at]
        if "size" in names:
            constants["size"] = self.size

        def call(unit: VectorUnit, *args: Any) -> Any:
            at, start, behind = address(args)
            given = {name: args[place] for name, place in handed}
            found = record.body(unit=unit, at=at, start=start, image=image, **given, **constants)
            if not moves:
                return found
            here = at.at(behind)
            return here if found is None else (found, here)

        return call

    def _by_places(self, footprint: Footprint, address: Call, moves: bool) -> Call:
        """What lies where values say."""
        record, mask_at, base = self.record, self.at["mask"], self.kinds["base"]
        index_at = self.at.get("index")
        stride_at = self.at.get("block_stride")
        source_at = self.at.get("src")
        index_kind = self.kinds.get("index")
        index_np = None if index_kind is None else index_kind.uint
        # Lanes are as wide as the indices where there are any.
        size = self.size if index_kind is None else index_kind.itemsize
        places, active = footprint.places, footprint.active
        assert places is not None
        assert active is not None

        def call(unit: VectorUnit, *args: Any) -> Any:
            at, start, behind = address(args)
            if start % footprint.alignment:
                raise unit.misaligned(at.buffer, start, footprint.alignment)
            mask: Mask = args[mask_at]
            unit.demand(mask, size, None, f"the mask of {record.name}")
            after = unit.after(mask)
            more: dict[str, Any] = {"size": size, "memory_size": base.itemsize}
            touched = active(mask.bits, size)
            if index_at is not None and index_np is not None:
                index: Register = args[index_at]
                unit.demand(index, size, mask.bits[::size], f"the indices of {record.name}")
                after |= unit.after(index)
                more["index"] = index.of(index_np)
            if stride_at is not None:
                more["block_stride"] = int(args[stride_at])
            here = at.at(start)
            table = places(**more)
            assert table is not None
            if source_at is not None:
                unit.scatter(here, table, touched, args[source_at], after)
                return at.at(behind) if moves else None
            found = unit.gather(here, table, touched, after)
            return (found, at.at(behind)) if moves else found

        return call


_OF = {"T": "", "U": "dst"}
_CARRIERS = frozenset({Register, Mask})
