"""Functions of single elements, over all lanes of registers and masks at once.

The masks of operations are applied here, once for all of them, as `machine/vector_calls.py` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType, dtype
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.kinds import stored, widest
from ptokit.engines.compiled.lanes import Lanes
from ptokit.engines.compiled.loops import VECTOR, spread
from ptokit.engines.compiled.registers.rooms import Room, Rooms, Values, bytes_of, power
from ptokit.engines.compiled.text import Function
from ptokit.engines.compiled.text import Value as Text
from ptokit.ir.core import Op, Value
from ptokit.ir.types import LogicalMaskType, MaskType
from ptokit.isa.expr import BOOL, Arg, Expr
from ptokit.isa.micro.spec import LANE, Micro, Slot
from ptokit.isa.micro.typed import Typed
from ptokit.machine.registers import Mask, Register


@dataclass(frozen=True)
class Source:
    """An operand of a function of elements: lanes in a room, or one number for all of them."""

    kind: DType
    room: Room | None = None
    number: Text = ""
    stride: int = 1  # of a mask, bytes from a bit to the next


@dataclass(frozen=True)
class Target:
    """A result: where it goes, its type, of a mask the bytes from a bit to the next."""

    room: Room
    kind: DType | None
    stride: int = 1


class Elements:
    """Takes the operands of operations, and writes what is computed of them lane by lane."""

    def __init__(self, values: Values, code: Function, rooms: Rooms) -> None:
        self._values = values
        self._code = code
        self._rooms = rooms

    # ---- operands ----------------------------------------------------------------------------

    def register(self, op: Op, name: str) -> Room:
        """Where an operand lies."""
        value = op.operand(name)
        room = None if value is None else self._values.room(value)
        if room is None:
            raise Unsupported("a register from elsewhere")
        return room

    def active(self, room: Room, size: int) -> Room | None:
        """A mask; None: all of its lanes are set."""
        return None if room.known is not None and room.known[::size].all() else room

    def same(self, value: Value) -> Any:
        """What a value is in every run; None: that changes."""
        room = self._values.room(value)
        if room is None:
            return None if bytes_of(value.type) else self._values.fixed(value)
        if room.known is None:
            return None
        is_mask = isinstance(value.type, MaskType | LogicalMaskType)
        return Mask(room.known.view(np.bool_)) if is_mask else Register(room.known)

    def source(
        self,
        op: Op,
        record: Micro,
        name: str,
        kinds: Mapping[str, DType],
        first: DType,
        lanes: int,
        size: int,
    ) -> Source:
        """What a parameter of a function of elements is."""
        slot, value = record.slot(name), op.operand(name)
        if slot is None:
            assert name == LANE
            return Source(first, self._rooms.constant(np.arange(lanes, dtype=first.np)))
        assert value is not None
        if slot.kind in "MNB" or (slot.kind == "E" and name not in kinds):
            return Source(BOOL, self.register(op, name), stride=size)
        if name in kinds and slot.kind not in ("S", "int"):
            return Source(kinds[name], self.register(op, name))
        return Source(first, None, self._values.element(value, first))

    # ---- lanes -------------------------------------------------------------------------------

    def scalar(self, expr: Expr, sources: Mapping[str, Source]) -> Text:
        """A number made of numbers, of a type without a sign."""
        code, one = self._code, Lanes(self._code, 1, {})
        given = {
            name: one.taken(source.kind, spread(code, source.kind, 1, source.number))
            for name, source in sources.items()
            if source.room is None
        }
        found = Lanes(code, 1, given).value(expr)
        kind = stored(expr.kind)
        single = code.do(f"extractelement <1 x {kind}> {found}, i64 0")
        return code.do(f"zext {kind} {single} to i64")

    def compute(
        self,
        exprs: Sequence[Expr],
        sources: Mapping[str, Source],
        targets: Sequence[Target],
        lanes: int,
        active: Room | None = None,
        stride: int = 1,  # of the mask
        kept: Room | None = None,
    ) -> None:
        """Write expressions of sources to targets; lanes that are not active are `kept`, or 0."""
        code = self._code
        kinds = [each.kind for each in sources.values()]
        kinds += [each.kind for each in targets if each.kind is not None]
        kinds = [kind for kind in kinds if kind is not BOOL]
        count = power(lanes, VECTOR // max(widest(expr, *kinds) for expr in exprs))

        def group(at: Text) -> Sequence[Text]:
            plain, loaded = Lanes(code, count, {}), dict[str, Text]()
            for name, source in sources.items():
                if source.room is None:
                    value = spread(code, source.kind, count, source.number)
                elif source.kind is BOOL:
                    value = self.bits(plain, source.room, at, source.stride)
                else:
                    value = self._load(plain, source.room, at, source.kind)
                loaded[name] = plain.taken(source.kind, value)
            found = Lanes(code, count, loaded)
            test = None if active is None else self.bits(plain, active, at, stride)
            for expr, target in zip(exprs, targets, strict=True):
                value, kind = found.value(expr), target.kind
                if kind is None:
                    self._set_bits(plain, target.room, at, target.stride, value, test)
                    continue
                if expr.kind is not kind:
                    raise Unsupported("results of another type")
                value, vector = found.given(kind, value), plain.vector(stored(kind))
                if test is not None:
                    other = "zeroinitializer" if kept is None else self._load(plain, kept, at, kind)
                    tests = f"{plain.vector('i1')} {test}"
                    value = code.do(f"select {tests}, {vector} {value}, {vector} {other}")
                place = self._rooms.at(target.room.place, at, kind.itemsize)
                code.act(f"store {vector} {value}, ptr {place}, align 1")
            return ()

        self._rooms.each(lanes, count, group)

    def masked(self, given: Typed, slot: Slot, room: Room, mask: Room | None) -> Room:
        """The lanes of a result that are active, and 0 elsewhere."""
        if mask is None:
            return room
        if given.record.is_logical:
            vector = given.vectors[slot.name]
            kind, size = vector.kind, 1
        else:
            kind = given.kinds[slot.name]
            size = kind.itemsize
        assert kind is not None
        active = self.active(mask, size)
        if active is None:
            return room
        bits = dtype(f"u{8 * kind.itemsize}")
        source = {"a": Source(bits, room)}
        lanes, made = room.nbytes // bits.itemsize, self._rooms.new(room.nbytes)
        self.compute([Arg(bits, "a")], source, [Target(made, bits)], lanes, active, size)
        return made

    def _load(self, lanes: Lanes, room: Room, at: Text, kind: DType) -> Text:
        place = self._rooms.at(room.place, at, kind.itemsize)
        return self._code.do(f"load {lanes.vector(stored(kind))}, ptr {place}, align 1")

    def bits(self, lanes: Lanes, room: Room, at: Text, size: int) -> Text:
        """The bits of lanes of a mask, as a vector of tests."""
        code, whole = self._code, f"<{lanes.count * size} x i8>"
        value = code.do(f"load {whole}, ptr {self._rooms.at(room.place, at, size)}, align 1")
        if size > 1:
            chosen = ", ".join(f"i32 {n * size}" for n in range(lanes.count))
            value = code.do(
                f"shufflevector {whole} {value}, {whole} poison, <{lanes.count} x i32> <{chosen}>"
            )
        return code.do(f"icmp ne {lanes.vector('i8')} {value}, zeroinitializer")

    def _set_bits(
        self, lanes: Lanes, room: Room, at: Text, size: int, value: Text, test: Text | None
    ) -> None:
        """Store tests as the bits of lanes; the other bits of each lane are 0."""
        code, count = self._code, lanes.count
        tests, narrow = lanes.vector("i1"), lanes.vector("i8")
        if test is not None:
            value = code.do(f"and {tests} {value}, {test}")
        value = code.do(f"zext {tests} {value} to {narrow}")
        whole = f"<{count * size} x i8>"
        if size > 1:
            spread_ = ", ".join(
                f"i32 {n // size if n % size == 0 else count}" for n in range(count * size)
            )
            value = code.do(
                f"shufflevector {narrow} {value}, {narrow} zeroinitializer, "
                f"<{count * size} x i32> <{spread_}>"
            )
        code.act(f"store {whole} {value}, ptr {self._rooms.at(room.place, at, size)}, align 1")


def symbols(
    element: Callable[..., Expr],
    kinds: Mapping[str, DType],
    first: DType,
    words: Mapping[str, Any],
    result: Slot,
) -> tuple[list[str], Expr]:
    """What a lane is made of, and the names of the operands there."""
    names: list[str] = []
    asked: dict[str, Any] = {}
    for name in signature(element).parameters:
        if name == "U":
            asked[name] = kinds[result.name]
        elif name in words:
            asked[name] = words[name]
        elif name in kinds or name in ("a", "b", "s"):
            asked[name] = Arg(kinds.get(name) or first, name)
            names.append(name)
    return names, element(**asked)
