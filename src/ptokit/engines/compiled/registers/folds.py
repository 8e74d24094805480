"""Lanes of a register that become one, or a few."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptokit.base.dtypes import DType, f32, i64
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.kinds import stored
from ptokit.engines.compiled.registers.elements import Elements, Source, Target
from ptokit.engines.compiled.registers.rooms import Rooms, Values
from ptokit.engines.compiled.text import Function
from ptokit.engines.compiled.text import Value as Text
from ptokit.ir.core import Op
from ptokit.isa.expr import BOOL, F64, Arg, Const, apply, select
from ptokit.isa.micro.footprints import REGISTER
from ptokit.isa.micro.idioms import ADD, MAX, Fold
from ptokit.isa.micro.typed import Typed


class Folds:
    """Writes sums, and the greatest and least of lanes with their places."""

    def __init__(self, values: Values, code: Function, rooms: Rooms, elements: Elements) -> None:
        self._values = values
        self._code = code
        self._rooms = rooms
        self._elements = elements

    def operation(self, op: Op, given: Typed, fold: Fold) -> None:
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
        sources = {"a": Source(kind, self._elements.register(op, "a"))}
        expr = Arg(kind, "a").to(wide)
        mask = self._elements.register(op, "mask") if op.operand("mask") else None
        active = None if mask is None else self._elements.active(mask, size)
        if active is not None:
            sources["mask"] = Source(BOOL, active, stride=size)
            expr = select(Arg(BOOL, "mask"), expr, Const(wide, neutral))
        every, found = (
            self._rooms.new(lanes * wide.itemsize),
            self._rooms.new(lanes // count * wide.itemsize),
        )
        self._elements.compute([expr], sources, [Target(every, wide)], lanes)
        room = self._rooms.new(width * made.itemsize)
        if lanes // count < width:
            self._rooms.clear(room)

        def group(number: Text) -> Sequence[Text]:
            begin = self._rooms.at(every.place, number, count * wide.itemsize)
            value, place = self._one(fold, wide, begin, count)
            at = self._rooms.at(found.place, number, wide.itemsize)
            self._code.act(f"store {stored(wide)} {value}, ptr {at}")
            if fold.has_place:
                bits = f"i{made.bits}"
                short = place if made.bits == 64 else self._code.do(f"trunc i64 {place} to {bits}")
                at = self._code.behind(room.place, str(made.itemsize))
                self._code.act(f"store {bits} {short}, ptr {at}")
            return ()

        self._rooms.each(lanes // count, 1, group)
        narrow = {"a": Source(wide, found)}
        self._elements.compute(
            [Arg(wide, "a").to(made)], narrow, [Target(room, made)], lanes // count
        )
        self._values.keep(op.results[0], room)
        for _ in more:  # a mask of the lanes that are equal to it
            value = self._code.do(f"load {stored(wide)}, ptr {found.place}")
            equal = {"a": Source(wide, every), "b": Source(wide, None, value)}
            bits = self._rooms.new(REGISTER)
            test = apply("eq", Arg(wide, "a"), Arg(wide, "b"))
            self._elements.compute([test], equal, [Target(bits, None, size)], lanes, active, size)
            self._values.keep(op.results[1], bits)

    def _one(self, fold: Fold, wide: DType, begin: Text, count: int) -> tuple[Text, Text]:
        """What the elements of a group come to, and the place of the one that was found."""
        code, kind, size = self._code, stored(wide), wide.itemsize

        def at(number: Text) -> Text:
            return self._rooms.at(begin, number, size)

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
                self._rooms.each(half, 1, pair)
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


def _neutral(fold: Fold, kind: DType) -> float:
    if fold.how == ADD:
        return 0
    if kind.is_float:
        return -np.inf if fold.how == MAX else np.inf
    return kind.min_value if fold.how == MAX else kind.max_value
