"""Operations on registers and masks in LLVM, derived from their records (isa/micro).

A register is as many bytes as it has, a mask a byte for each of its bits, 1 where it is set. What a
record computes is found in three ways: a function of single elements is its expression; what lies
in memory, or changes places, is a table; of operands that are the same in every run the body is
run once and for all. Masks are applied here, once for all operations, as `machine/vector_calls.py`
does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Protocol

import numpy as np

from ptokit.base.dtypes import DType, dtype, f32, i64
from ptokit.base.layout import Array
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.lanes import Lanes, stored, widest
from ptokit.engines.compiled.loops import VECTOR, spread
from ptokit.engines.compiled.text import Function
from ptokit.engines.compiled.text import Value as Text
from ptokit.ir.core import Op, Value
from ptokit.ir.logical import element_of
from ptokit.ir.micro_calls import typed
from ptokit.ir.types import (
    LogicalMaskType,
    LogicalType,
    MaskType,
    PtrType,
    RegisterType,
    Type,
)
from ptokit.isa.expr import BOOL, F64, Arg, Const, Expr, apply, select
from ptokit.isa.micro.footprints import ABSENT, MASK_UNITS, REGISTER, Footprint, Image
from ptokit.isa.micro.idioms import ADD, MAX, Fold
from ptokit.isa.micro.spec import LANE, Masking, Micro, Slot
from ptokit.isa.micro.typed import Typed
from ptokit.machine.logical_calls import expressions, places_of
from ptokit.machine.memory import Storage
from ptokit.machine.micro_calls import call_of
from ptokit.machine.registers import LocalPointer, Mask, Register
from ptokit.machine.vector_calls import Preparation

_MOST_ROOM = 1 << 20  # bytes: they lie on the stack
_UNITS = (8, 4, 2, 1)  # bytes that are moved at once


@dataclass(frozen=True, eq=False)
class Room:
    """Where a register or mask lies; of one that is always the same, what it holds."""

    place: Text
    nbytes: int
    known: Array | None = None


def bytes_of(type_: Type) -> int:
    """The bytes of the room of a register or mask; 0: it is something else."""
    if isinstance(type_, RegisterType | MaskType):
        return REGISTER
    if isinstance(type_, LogicalType):
        return type_.lanes * element_of(type_.element).itemsize
    return type_.lanes if isinstance(type_, LogicalMaskType) else 0


class Values(Protocol):
    """What is known of the values of a scope."""

    def number(self, value: Value) -> Text: ...
    def element(self, value: Value, kind: DType) -> Text: ...
    def fixed(self, value: Value) -> Any: ...
    def stride(self, value: Value) -> Any: ...
    def room(self, value: Value) -> Room | None: ...
    def keep(self, value: Value, made: Room | Text) -> None: ...


class _Nowhere:
    """The unit of a body that is run to see what it makes."""

    order, turn, registers = None, 0, dict[str, Any]()

    def after(self, *_: Any) -> int:
        return 0


@dataclass(frozen=True)
class _Source:
    """An operand of a function of elements: lanes in a room, or one number for all of them."""

    kind: DType
    room: Room | None = None
    number: Text = ""
    stride: int = 1  # of a mask, bytes from a bit to the next


@dataclass(frozen=True)
class _Target:
    """A result: where it goes, its type, of a mask the bytes from a bit to the next."""

    room: Room
    kind: DType | None
    stride: int = 1


class Vectors:
    """Writes the operations of a scope."""

    def __init__(self, values: Values, code: Function, memory: Text) -> None:
        self._values = values
        self._code = code
        self._memory = memory
        self._taken = 0  # bytes of rooms

    # ---- rooms -------------------------------------------------------------------------------

    def new(self, nbytes: int) -> Room:
        self._taken += nbytes
        if self._taken > _MOST_ROOM:
            raise Unsupported("too many registers")
        return Room(self._code.room(nbytes), nbytes)

    def copied(self, room: Room) -> Room:
        made = self.new(room.nbytes)
        self._copy(made.place, room.place, room.nbytes)
        return made

    def move(self, sources: Sequence[Room], targets: Sequence[Room]) -> None:
        """Let some rooms hold what others do, all at once."""
        changed = [(s, t) for s, t in zip(sources, targets, strict=True) if s is not t]
        if len(changed) > 1:
            ends = {id(t) for _, t in changed}
            changed = [(self.copied(s) if id(s) in ends else s, t) for s, t in changed]
        for source, target in changed:
            self._copy(target.place, source.place, source.nbytes)

    def _copy(self, to: Text, source: Text, nbytes: int) -> None:
        def piece(at: Text, kind: str) -> Sequence[Text]:
            value = self._code.do(f"load {kind}, ptr {self._code.behind(source, at)}, align 1")
            self._code.act(f"store {kind} {value}, ptr {self._code.behind(to, at)}, align 1")
            return ()

        size = _power(nbytes, VECTOR)
        kind = f"<{size} x i8>"
        self._each(nbytes, size, lambda at: piece(at, kind))

    def _each(self, count: int, step: int, body: Callable[[Text], Sequence[Text]]) -> None:
        if count == step:
            body("0")
        else:
            self._code.loop("0", str(count), str(step), body)

    def _constant(self, content: Array) -> Room:
        data = np.ascontiguousarray(content).view(np.uint8).reshape(-1)
        return Room(self._code.table(data.tobytes()), data.size, data)

    # ---- which way ---------------------------------------------------------------------------

    def operation(self, op: Op) -> None:
        """Write an operation; raises `Unsupported`, with its name, where there is no code."""
        given = typed(op)
        try:
            self._operation(op, given)
        except Unsupported as error:
            raise Unsupported(f"{given.record.name}: {error}") from None

    def _operation(self, op: Op, given: Typed) -> None:
        record = given.record
        if not (record.operands or record.results or record.sets or record.uses):
            return  # it only orders
        if record.sets or record.uses:
            raise Unsupported("hidden registers")
        if record.footprint is not None:
            self._access(op, given, record.footprint)
        elif "unit" in record.parameters:
            raise Unsupported("work of the unit")
        elif not self._folded(op, given):
            if record.is_lanewise or (record.element is not None and record.is_logical):
                self._lanewise(op, given)
            elif record.element is not None:
                self._parted(op, given, record.element)
            elif record.fold is not None:
                self._fold(op, given, record.fold)
            elif not self._moved(op, given):
                raise Unsupported("no meaning that can be read")

    # ---- the same in every run ---------------------------------------------------------------

    def _folded(self, op: Op, given: Typed) -> bool:
        """Whether all operands are the same in every run, and so the results, which are noted."""
        record = given.record
        if any(slot.is_list for slot in (*record.operands, *record.results)):
            return False
        args: list[Any] = []
        for slot in record.operands:
            value = op.operand(slot.name)
            found = None if value is None else self._same(value)
            if found is None and value is not None:
                return False
            args.append(found)
        found = call_of(given)(_Nowhere(), *args)
        for value, made in zip(
            op.results, (found,) if len(op.results) == 1 else found, strict=True
        ):
            if isinstance(made, Register | Mask):
                data = made.bits if isinstance(made, Mask) else made.data
                self._values.keep(value, self._constant(data))
            else:
                self._values.keep(value, str(int(made)))
        return True

    def _same(self, value: Value) -> Any:
        room = self._values.room(value)
        if room is None:
            return None if bytes_of(value.type) else self._values.fixed(value)
        if room.known is None:
            return None
        is_mask = isinstance(value.type, MaskType | LogicalMaskType)
        return Mask(room.known.view(np.bool_)) if is_mask else Register(room.known)

    # ---- element by element ------------------------------------------------------------------

    def _lanewise(self, op: Op, given: Typed) -> None:
        record = given.record
        if record.is_logical:
            kinds = {n: v.kind for n, v in given.vectors.items() if v.lanes and v.kind is not None}
            made_of = [s for s in record.operands if s.kind in "VWXLGHE" and s.name in kinds]
            first = kinds[made_of[0].name] if made_of else kinds.get(record.results[0].name)
            said = {w.name: given.words.get(w.name, w.number) for w in record.words}
            if record.element is None:
                names, *exprs = expressions(record, kinds, first, said)
            else:
                assert first is not None
                names, *exprs = _symbols(record.element, kinds, first, said, record.results[0])
            lanes, size = given.vectors[record.results[0].name].lanes, 1
            merges = said.get("pmode") == "merge"
            kept = self._register(op, made_of[0].name) if merges else None
        else:
            made = Preparation(record, given.kinds, given.sizes, given.words, given.results)
            names, *exprs = made.expressions()
            # Of masks that stand for themselves every bit counts.
            every = all(slot.kind == "B" for slot in record.operands)
            size = 1 if every and record.operands else made.size
            kinds, first, kept = made.kinds, made.number, None
            lanes = REGISTER // size
        first = first or BOOL
        sources: dict[str, _Source] = {}
        for name in names:
            sources[name] = self._source(op, record, name, kinds, first, lanes, size)
        mask = op.operand("mask") if record.masking is Masking.ZERO else None
        active = None if mask is None else self._active(self._register(op, "mask"), size)
        targets: list[_Target] = []
        whole: list[Expr] = []
        for slot, value, expr in zip(record.results, op.results, exprs, strict=False):
            kind = kinds.get(slot.name)
            if slot.kind == "int":
                self._values.keep(value, self._scalar(expr, sources))
                continue
            whole.append(expr)
            room = self.new(lanes * (size if kind is None else kind.itemsize))
            targets.append(_Target(room, kind, size))
            self._values.keep(value, room)
        self._compute(whole, sources, targets, lanes, active, size, kept)

    def _source(
        self,
        op: Op,
        record: Micro,
        name: str,
        kinds: Mapping[str, DType],
        first: DType,
        lanes: int,
        size: int,
    ) -> _Source:
        """What a parameter of a function of elements is."""
        slot, value = record.slot(name), op.operand(name)
        if slot is None:
            assert name == LANE
            return _Source(first, self._constant(np.arange(lanes, dtype=first.np)))
        assert value is not None
        if slot.kind in "MNB" or (slot.kind == "E" and name not in kinds):
            return _Source(BOOL, self._register(op, name), stride=size)
        if name in kinds and slot.kind not in ("S", "int"):
            return _Source(kinds[name], self._register(op, name))
        return _Source(first, None, self._values.element(value, first))

    def _scalar(self, expr: Expr, sources: Mapping[str, _Source]) -> Text:
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

    def _register(self, op: Op, name: str) -> Room:
        value = op.operand(name)
        room = None if value is None else self._values.room(value)
        if room is None:
            raise Unsupported("a register from elsewhere")
        return room

    def _active(self, room: Room, size: int) -> Room | None:
        """A mask; None: all of its lanes are set."""
        return None if room.known is not None and room.known[::size].all() else room

    def _compute(
        self,
        exprs: Sequence[Expr],
        sources: Mapping[str, _Source],
        targets: Sequence[_Target],
        lanes: int,
        active: Room | None = None,
        stride: int = 1,  # of the mask
        kept: Room | None = None,
    ) -> None:
        code = self._code
        kinds = [each.kind for each in sources.values()]
        kinds += [each.kind for each in targets if each.kind is not None]
        kinds = [kind for kind in kinds if kind is not BOOL]
        count = _power(lanes, VECTOR // max(widest(expr, *kinds) for expr in exprs))

        def group(at: Text) -> Sequence[Text]:
            plain, loaded = Lanes(code, count, {}), dict[str, Text]()
            for name, source in sources.items():
                if source.room is None:
                    value = spread(code, source.kind, count, source.number)
                elif source.kind is BOOL:
                    value = self._bits(plain, source.room, at, source.stride)
                else:
                    value = self._load(plain, source.room, at, source.kind)
                loaded[name] = plain.taken(source.kind, value)
            found = Lanes(code, count, loaded)
            test = None if active is None else self._bits(plain, active, at, stride)
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
                place = self._at(target.room.place, at, kind.itemsize)
                code.act(f"store {vector} {value}, ptr {place}, align 1")
            return ()

        self._each(lanes, count, group)

    def _at(self, place: Text, lane: Text, size: int) -> Text:
        return self._code.behind(place, self._code.number("mul", lane, str(size)))

    def _load(self, lanes: Lanes, room: Room, at: Text, kind: DType) -> Text:
        place = self._at(room.place, at, kind.itemsize)
        return self._code.do(f"load {lanes.vector(stored(kind))}, ptr {place}, align 1")

    def _bits(self, lanes: Lanes, room: Room, at: Text, size: int) -> Text:
        """The bits of lanes of a mask, as a vector of tests."""
        code, whole = self._code, f"<{lanes.count * size} x i8>"
        value = code.do(f"load {whole}, ptr {self._at(room.place, at, size)}, align 1")
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
        code.act(f"store {whole} {value}, ptr {self._at(room.place, at, size)}, align 1")

    # ---- bytes that change places ------------------------------------------------------------

    def _moved(self, op: Op, given: Typed) -> bool:
        """Whether every byte of the results is one of the operands, or 0; then they are moved."""
        record = given.record
        vectors: list[tuple[int, Room, bool]] = []  # place, room, whether it is a mask
        args: list[Any] = []
        if any(slot.is_list for slot in (*record.operands, *record.results)):
            return False
        # What a body is not handed is applied to what it makes.
        is_masked = record.masking is Masking.ZERO and "mask" not in record.parameters
        mask = self._register(op, "mask") if is_masked and op.operand("mask") else None
        for slot in record.operands:
            value = op.operand(slot.name)
            room = None if value is None else self._values.room(value)
            if value is None:
                args.append(None)
            elif mask is not None and slot.name == "mask":
                args.append(Mask(np.ones(mask.nbytes, np.bool_)))
            elif room is not None:
                is_mask = isinstance(value.type, MaskType | LogicalMaskType)
                args.append(self._same(value))
                if args[-1] is None:
                    vectors.append((len(args) - 1, room, is_mask))
            else:
                number = self._values.stride(value)
                if number is None:
                    return False
                args.append(number)
        if given.words.get("pmode") == "merge":
            return False
        if not vectors:
            made = call_of(given)(_Nowhere(), *args)
            results = made if isinstance(made, tuple) else (made,)
            if not all(isinstance(each, Register | Mask) for each in results):
                return False
            rooms = [self._constant(r.bits if isinstance(r, Mask) else r.data) for r in results]
            for slot, value, room in zip(record.results, op.results, rooms, strict=False):
                self._values.keep(value, self._masked(given, slot, room, mask))
            return True
        tables = _tables(given, args, [(at, r.nbytes, m) for at, r, m in vectors])
        if tables is None:
            return False
        starts = np.cumsum([0, *(room.nbytes for _, room, _ in vectors)])
        for slot, value, table in zip(record.results, op.results, tables, strict=False):
            made = self.new(table.size)
            if (table == ABSENT).any():
                self._clear(made)
            for (_, room, _), first, end in zip(vectors, starts, starts[1:], strict=False):
                to = np.flatnonzero((table >= first) & (table < end))
                self._move(made.place, to, room.place, table[to] - first)
            self._values.keep(value, self._masked(given, slot, made, mask))
        return True

    def _masked(self, given: Typed, slot: Slot, room: Room, mask: Room | None) -> Room:
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
        active = self._active(mask, size)
        if active is None:
            return room
        bits = dtype(f"u{8 * kind.itemsize}")
        source = {"a": _Source(bits, room)}
        lanes, made = room.nbytes // bits.itemsize, self.new(room.nbytes)
        self._compute([Arg(bits, "a")], source, [_Target(made, bits)], lanes, active, size)
        return made

    # ---- lanes that change their width ---------------------------------------------------------

    def _parted(self, op: Op, given: Typed, element: Callable[..., Expr]) -> None:
        """A function of elements whose lanes are made of others: which ones, `lost` says."""
        record = given.record
        made = Preparation(record, given.kinds, given.sizes, given.words, given.results)
        T, (slot,), (value,) = made.number, record.results, op.results
        U, size, mask = made.kinds[slot.name], T.itemsize, self._register(op, "mask")
        assert record.lost is not None
        if T.is_packed or U.is_packed:
            raise Unsupported("elements that share bytes")
        lost, part = record.lost, made.words.get("part") or ""

        def run(lanes: Array) -> list[Array]:
            return [lost(lanes.view(np.bool_), part=part, T=T, U=U).view(np.uint8)]

        tables = _sources(run, REGISTER // size, 1)
        assert tables is not None
        to, origin = np.flatnonzero(tables[0] != ABSENT), tables[0][tables[0] != ABSENT]
        names, expr = _symbols(element, made.kinds, T, made.words, slot)
        sources: dict[str, _Source] = {}
        for name in names:
            source = self._source(op, record, name, made.kinds, T, REGISTER // size, size)
            if source.room is not None:
                source = replace(source, room=self._chosen(source.room, origin, size))
            sources[name] = source
        active = self._active(mask, size)
        if active is not None:
            active = self._chosen(active, origin, 1, size)
        room = self.new(REGISTER)
        narrow = room if to.size * U.itemsize == REGISTER else self.new(to.size * U.itemsize)
        self._compute([expr], sources, [_Target(narrow, U)], to.size, active)
        if narrow is not room:
            self._clear(room)
            places = (to[:, None] * U.itemsize + np.arange(U.itemsize)).reshape(-1)
            self._move(room.place, places, narrow.place, np.arange(narrow.nbytes))
        self._values.keep(value, room)

    def _chosen(self, room: Room, lanes: Array, size: int, stride: int = 0) -> Room:
        """Some lanes of a room, side by side."""
        stride = stride or size
        if size == stride and np.array_equal(lanes, np.arange(room.nbytes // size)):
            return room
        origins = (lanes[:, None] * stride + np.arange(size)).reshape(-1)
        made = self.new(origins.size)
        self._move(made.place, np.arange(origins.size), room.place, origins)
        return made

    # ---- lanes that become one -----------------------------------------------------------------

    def _fold(self, op: Op, given: Typed, fold: Fold) -> None:
        record = given.record
        result, *more = record.results
        if record.is_logical:
            vector = given.vectors["a"]
            kind, lanes, size = vector.kind, vector.lanes, 1
            made, width = given.vectors[result.name].kind, given.vectors[result.name].lanes
            if given.words.get("pmode") == "merge":
                raise Unsupported("lanes that are kept")
        else:
            kind, made = given.kinds["a"], given.kinds[result.name]
            lanes, size, width = REGISTER // kind.itemsize, kind.itemsize, REGISTER // made.itemsize
        assert kind is not None
        assert made is not None
        wide = i64 if kind.is_integer else F64 if record.is_logical else f32
        count = lanes // width if record.is_logical else fold.group(lanes, kind.itemsize)
        neutral = _neutral(fold, kind)
        sources = {"a": _Source(kind, self._register(op, "a"))}
        expr = Arg(kind, "a").to(wide)
        mask = self._register(op, "mask") if op.operand("mask") else None
        active = None if mask is None else self._active(mask, size)
        if active is not None:
            sources["mask"] = _Source(BOOL, active, stride=size)
            expr = select(Arg(BOOL, "mask"), expr, Const(wide, neutral))
        every, found = self.new(lanes * wide.itemsize), self.new(lanes // count * wide.itemsize)
        self._compute([expr], sources, [_Target(every, wide)], lanes)
        room = self.new(width * made.itemsize)
        if lanes // count < width:
            self._clear(room)

        def group(number: Text) -> Sequence[Text]:
            begin = self._at(every.place, number, count * wide.itemsize)
            value, place = self._one(fold, wide, begin, count)
            at = self._at(found.place, number, wide.itemsize)
            self._code.act(f"store {stored(wide)} {value}, ptr {at}")
            if fold.has_place:
                bits = f"i{made.bits}"
                short = place if made.bits == 64 else self._code.do(f"trunc i64 {place} to {bits}")
                at = self._code.behind(room.place, str(made.itemsize))
                self._code.act(f"store {bits} {short}, ptr {at}")
            return ()

        self._each(lanes // count, 1, group)
        narrow = {"a": _Source(wide, found)}
        self._compute([Arg(wide, "a").to(made)], narrow, [_Target(room, made)], lanes // count)
        self._values.keep(op.results[0], room)
        for _ in more:  # a mask of the lanes that are equal to it
            value = self._code.do(f"load {stored(wide)}, ptr {found.place}")
            equal = {"a": _Source(wide, every), "b": _Source(wide, None, value)}
            bits = self.new(REGISTER)
            test = apply("eq", Arg(wide, "a"), Arg(wide, "b"))
            self._compute([test], equal, [_Target(bits, None, size)], lanes, active, size)
            self._values.keep(op.results[1], bits)

    def _one(self, fold: Fold, wide: DType, begin: Text, count: int) -> tuple[Text, Text]:
        """What the elements of a group come to, and the place of the one that was found."""
        code, kind, size = self._code, stored(wide), wide.itemsize

        def at(number: Text) -> Text:
            return self._at(begin, number, size)

        def load(number: Text) -> Text:
            return code.do(f"load {kind}, ptr {at(number)}")

        if fold.how == ADD:
            add = "add" if wide.is_integer else "fadd"

            def pair(number: Text) -> Sequence[Text]:
                left = code.number("shl", number, "1")
                sum_ = code.do(f"{add} {kind} {load(left)}, {load(code.number('or', left, '1'))}")
                code.act(f"store {kind} {sum_}, ptr {at(number)}")
                return ()

            while count > 1:
                half = count // 2
                self._each(half, 1, pair)
                if count % 2:
                    code.act(f"store {kind} {load(str(count - 1))}, ptr {at(str(half))}")
                count -= half
            return load("0"), "0"
        is_more = fold.how == MAX
        test = ("icmp sgt" if is_more else "icmp slt") if wide.is_integer else (
            "fcmp ogt" if is_more else "fcmp olt"
        )  # fmt: skip

        def next_(number: Text, best: Text, place: Text) -> Sequence[Text]:
            value = load(number)
            better = code.do(f"{test} {kind} {value}, {best}")
            if not wide.is_integer:  # the first that is no number
                strange = code.do(f"fcmp uno {kind} {value}, {value}")
                usual = code.do(f"fcmp ord {kind} {best}, {best}")
                better = code.do(f"or i1 {better}, {code.do(f'and i1 {strange}, {usual}')}")
            return [
                code.do(f"select i1 {better}, {kind} {value}, {kind} {best}"),
                code.do(f"select i1 {better}, i64 {number}, i64 {place}"),
            ]

        best, place = code.loop("1", str(count), "1", next_, [(kind, load("0")), ("i64", "0")])
        return best, place

    def _clear(self, room: Room) -> None:
        code, size = self._code, _power(room.nbytes, VECTOR)

        def piece(at: Text) -> Sequence[Text]:
            place = code.behind(room.place, at)
            code.act(f"store <{size} x i8> zeroinitializer, ptr {place}, align 1")
            return ()

        self._each(room.nbytes, size, piece)

    def _move(
        self, to: Text, places: Array, source: Text, origins: Array, controls: Array | None = None,
        mask: Room | None = None,
    ) -> None:  # fmt: skip
        """Move bytes by a table; a mask decides where `controls` have its bit for each."""
        code = self._code
        if not places.size:
            return
        size = _unit(places, origins, controls)
        pieces = slice(None, None, size)
        columns = [places[pieces], origins[pieces]]
        columns += [] if controls is None else [controls[pieces]]
        entries = np.stack(columns, axis=1).astype(np.int32)
        steps = np.diff(entries, axis=0)
        if len(entries) > 1 and (steps == size).all() and controls is None:
            where = [
                code.behind(at, str(int(n)))
                for at, n in zip((to, source), entries[0], strict=False)
            ]
            self._copy(where[0], where[1], entries.shape[0] * size)
            return
        table, kind, width = code.table(entries.tobytes()), f"i{8 * size}", 4 * len(columns)

        def piece(number: Text) -> Sequence[Text]:
            entry = self._at(table, number, width)
            offsets = [
                code.do(
                    f"sext i32 {code.do(f'load i32, ptr {code.behind(entry, str(4 * n))}')} to i64"
                )
                for n in range(len(columns))
            ]

            def go() -> None:
                value = code.do(f"load {kind}, ptr {code.behind(source, offsets[1])}, align 1")
                code.act(f"store {kind} {value}, ptr {code.behind(to, offsets[0])}, align 1")

            if mask is None:
                go()
            else:  # what is not chosen may lie outside of memory
                bit = code.do(f"load i8, ptr {code.behind(mask.place, offsets[2])}")
                code.when(code.do(f"icmp ne i8 {bit}, 0"), go)
            return ()

        self._each(len(entries), 1, piece)

    # ---- memory ------------------------------------------------------------------------------

    def _access(self, op: Op, given: Typed, footprint: Footprint) -> None:
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
            sources = [self._register(op, s.name) for s in record.operands if s.kind in "VWXL"]
            self._store(start, image, sources, self._mask(op, image))
            return
        results = [v for s, v in zip(record.results, op.results, strict=False) if s.kind in "VWXL"]
        for value, table in zip(results, image.tables, strict=True):
            room = self.new(REGISTER)
            self._fill(room, start, table)
            self._values.keep(value, room)

    def _access_bits(
        self, op: Op, given: Typed, footprint: Footprint, image: Image, start: Text
    ) -> None:
        """A mask that is loaded or stored, bit by bit: which goes where, the body tells."""
        bits = 8 * image.nbytes
        mask = op.operand("mask") if footprint.writes else op.results[0]
        if mask is None or not isinstance(mask.type, MaskType):
            raise Unsupported("no mask")
        args = [_dummy(slot, given) for slot in given.record.operands]
        call = call_of(given)

        def run(content: Array) -> list[Array]:
            unit = _Bits(content, image.nbytes)
            if footprint.writes:
                handed = [Mask(content.view(np.bool_)) if a is None else a for a in args]
                call(unit, *handed)
                return [np.unpackbits(unit.memory, bitorder="little")]
            found = call(unit, *args)
            one = found[0] if isinstance(found, tuple) else found
            return [np.ascontiguousarray(one.bits).view(np.uint8)]

        tables = _sources(run, REGISTER if footprint.writes else bits, 1)
        if tables is None:
            raise Unsupported("bits that are computed")
        between, (table,) = self.new(bits), tables
        if footprint.writes:
            self._fill(between, self._register(op, "mask").place, table)
            self._pack(start, between)
            return
        self._unpack(between, start)
        room = self.new(REGISTER)
        self._fill(room, between.place, table)
        self._values.keep(mask, room)

    def _pack(self, to: Text, room: Room) -> None:
        code, size = self._code, _power(room.nbytes, VECTOR)

        def piece(at: Text) -> Sequence[Text]:
            value = code.do(f"load <{size} x i8>, ptr {code.behind(room.place, at)}, align 1")
            tests = code.do(f"trunc <{size} x i8> {value} to <{size} x i1>")
            bits = code.do(f"bitcast <{size} x i1> {tests} to i{size}")
            place = code.behind(to, code.number("lshr", at, "3"))
            code.act(f"store i{size} {bits}, ptr {place}, align 1")
            return ()

        self._each(room.nbytes, size, piece)

    def _unpack(self, room: Room, source: Text) -> None:
        code, size = self._code, _power(room.nbytes, VECTOR)

        def piece(at: Text) -> Sequence[Text]:
            place = code.behind(source, code.number("lshr", at, "3"))
            bits = code.do(f"load i{size}, ptr {place}, align 1")
            tests = code.do(f"bitcast i{size} {bits} to <{size} x i1>")
            value = code.do(f"zext <{size} x i1> {tests} to <{size} x i8>")
            code.act(f"store <{size} x i8> {value}, ptr {code.behind(room.place, at)}, align 1")
            return ()

        self._each(room.nbytes, size, piece)

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
        room = self._register(op, "mask")
        is_whole = room.known is not None and room.known[image.controls].all()
        return None if is_whole else room

    def _fill(self, room: Room, start: Text, table: Array | None) -> None:
        """Let a room hold bytes of memory."""
        if table is None:
            self._copy(room.place, start, room.nbytes)
            return
        if (table == ABSENT).any():
            self._clear(room)
        to = np.flatnonzero(table != ABSENT)
        self._move(room.place, to, start, table[to])

    def _store(self, start: Text, image: Image, sources: Sequence[Room], mask: Room | None) -> None:
        (table,) = image.tables
        table = np.arange(image.nbytes) if table is None else table
        first = 0
        for room in sources:
            to = np.flatnonzero((table >= first) & (table < first + room.nbytes))
            if mask is None:
                self._move(start, to, room.place, table[to] - first)
            elif image.lane and len(sources) == 1:
                self._select(start, room, mask, image.lane)
            else:
                assert image.controls is not None
                self._move(start, to, room.place, table[to] - first, image.controls[to], mask)
            first += room.nbytes

    def _select(self, start: Text, room: Room, mask: Room, size: int) -> None:
        """Store lanes of so many bytes where a mask is set."""
        code, kind = self._code, f"i{8 * size}"
        count = VECTOR // size

        def group(at: Text) -> Sequence[Text]:
            lanes = Lanes(code, count, {})
            vector = lanes.vector(kind)
            value, before = (
                code.do(f"load {vector}, ptr {self._at(place, at, size)}, align 1")
                for place in (room.place, start)
            )
            test = self._bits(lanes, mask, at, size)
            value = code.do(
                f"select {lanes.vector('i1')} {test}, {vector} {value}, {vector} {before}"
            )
            code.act(f"store {vector} {value}, ptr {self._at(start, at, size)}, align 1")
            return ()

        self._each(room.nbytes // size, count, group)

    def _by_places(
        self, op: Op, given: Typed, footprint: Footprint, made: Preparation, start: Text
    ) -> None:
        """What lies where numbers say."""
        record, mask = given.record, self._register(op, "mask")
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
            self._move(start, table[kept], self._register(op, "src").place, kept)
            return
        room = self.new(table.size)
        self._fill(room, start, table)
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
            mask = self._register(op, "mask")
            if mask.known is not None:
                table, mask = np.where(mask.known[owners] != 0, table, ABSENT), None
        kept = np.flatnonzero(table != ABSENT)
        controls = None if mask is None else owners[kept]
        if footprint.writes:
            first = 0
            for room in [self._register(op, n) for n in ("src", "high") if op.operand(n)]:
                here = (kept >= first) & (kept < first + room.nbytes)
                chosen = None if controls is None else controls[here]
                self._move(start, table[kept[here]], room.place, kept[here] - first, chosen, mask)
                first += room.nbytes
            return
        fill = op.operand("passthru")
        if fill is not None:
            room = self.copied(self._register(op, "passthru"))
        else:
            room = self.new(count * size)
            if mask is not None or kept.size < table.size:
                self._clear(room)
        self._move(room.place, kept, start, table[kept], controls, mask)
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
                found = self._same(value)
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


def _symbols(
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


def _neutral(fold: Fold, kind: DType) -> float:
    if fold.how == ADD:
        return 0
    if kind.is_float:
        return -np.inf if fold.how == MAX else np.inf
    return kind.min_value if fold.how == MAX else kind.max_value


def _dummy(slot: Slot, given: Typed) -> Any:
    """What a body is handed that only moves bits: the place does not matter."""
    if slot.kind == "ub":
        return LocalPointer(_STORAGE, given.kinds[slot.name], 0)
    return None if slot.kind == "B" else 0


_STORAGE = Storage("nowhere", 0)


class _Bits(_Nowhere):
    """A unit whose memory is a few bytes."""

    place = None

    def __init__(self, content: Array, nbytes: int) -> None:
        self.memory = np.zeros(nbytes, np.uint8)
        if content.size == 8 * nbytes:
            self.memory[:] = np.packbits(content, bitorder="little")

    def raw(self, *_: Any, **__: Any) -> Array:
        return self.memory

    def lost(self, *_: Any) -> None:
        """All is defined."""

    def mask(self, bits: Array, lost: None) -> Mask:
        return Mask(bits)


def _tables(
    given: Typed, args: Sequence[Any], vectors: Sequence[tuple[int, int, bool]]
) -> list[Array] | None:
    """For each result of a body that moves bytes, whence each comes; None: it does more."""
    total = sum(nbytes for _, nbytes, _ in vectors)
    if not vectors or len({is_mask for _, _, is_mask in vectors}) > 1:
        return None
    is_mask, call = vectors[0][2], call_of(given)

    def run(content: Array) -> list[Array] | None:
        handed, first = list(args), 0
        for at, nbytes, _ in vectors:
            part = content[first : first + nbytes].copy()
            handed[at] = Mask(part.view(np.bool_)) if is_mask else Register(part)
            first += nbytes
        with np.errstate(all="ignore"):
            found = call(_Nowhere(), *handed)
        made = found if isinstance(found, tuple) else (found,)
        if not all(isinstance(each, Mask if is_mask else Register) for each in made):
            return None
        return [
            np.ascontiguousarray(each.bits if is_mask else each.data).view(np.uint8).reshape(-1)
            for each in made
        ]

    return _sources(run, total, 1 if is_mask else 8)


def _sources(
    run: Callable[[Array], list[Array] | None], total: int, bits: int
) -> list[Array] | None:
    """For each result of what moves bytes, or bits, whence each comes; None: it does more.

    It is run over operands that hold the numbers of their places, digit by digit, and then over
    others to see whether it did nothing but move them.
    """
    numbers = np.arange(1, total + 1)  # 0 is what comes from nowhere
    tables: list[Array] = []
    for shift in range(0, int(total).bit_length(), bits):
        digits = (numbers >> shift & ((1 << bits) - 1)).astype(np.uint8)
        left = run(digits)
        if left is None:
            return None
        tables = tables or [np.zeros(each.size, np.int64) for each in left]
        for table, each in zip(tables, left, strict=True):
            table += each.astype(np.int64) << shift
    rng = np.random.default_rng(total)
    tables = [table - 1 for table in tables]  # 0, of nowhere, becomes ABSENT
    if any(table.max() >= total for table in tables):
        return None
    for _ in range(4):
        content = rng.integers(0, 1 << bits, total, dtype=np.uint8)
        left = run(content)
        assert left is not None
        for table, each in zip(tables, left, strict=True):
            if (np.where(table == ABSENT, 0, content[table]) != each).any():
                return None
    return tables


def _power(count: int, most: int) -> int:
    """The greatest power of two that divides a count, up to a limit."""
    return min(count & -count, 1 << max(most, 1).bit_length() - 1)


def _unit(places: Array, origins: Array, controls: Array | None) -> int:
    """How many bytes of a table always go together."""
    for size in _UNITS:
        if places.size % size == 0:
            rows = [each.reshape(-1, size) for each in (places, origins)]
            together = all((np.diff(row, axis=1) == 1).all() for row in rows)
            same = controls is None or (np.diff(controls.reshape(-1, size), axis=1) == 0).all()
            if together and same:
                return size
    return 1
