"""Operations on registers and masks in LLVM, derived from their records (isa/micro).

What a record computes is found in three ways: a function of single elements is its expression
(elements.py, folds.py); what lies in memory, or changes places, is a table (accesses.py,
probing.py); of operands that are the same in every run the body is run once and for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ptokit.base.layout import Array
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.registers.accesses import Accesses
from ptokit.engines.compiled.registers.elements import Elements, Source, Target, symbols
from ptokit.engines.compiled.registers.folds import Folds
from ptokit.engines.compiled.registers.probing import Nowhere, origins, tables_of
from ptokit.engines.compiled.registers.rooms import Room, Rooms, Values
from ptokit.engines.compiled.text import Function
from ptokit.engines.compiled.text import Value as Text
from ptokit.ir.core import Op
from ptokit.ir.micro_calls import typed
from ptokit.ir.types import LogicalMaskType, MaskType
from ptokit.isa.expr import BOOL, Expr
from ptokit.isa.micro.footprints import ABSENT, REGISTER
from ptokit.isa.micro.spec import Masking
from ptokit.isa.micro.typed import Typed
from ptokit.machine.logical_calls import expressions
from ptokit.machine.micro_calls import call_of
from ptokit.machine.registers import Mask, Register
from ptokit.machine.vector_calls import Preparation


class RegisterOperations:
    """Writes the operations of a scope."""

    def __init__(self, values: Values, code: Function, memory: Text) -> None:
        self.rooms = Rooms(code)
        self._values = values
        self._elements = Elements(values, code, self.rooms)
        self._folds = Folds(values, code, self.rooms, self._elements)
        self._accesses = Accesses(values, code, self.rooms, self._elements, memory)

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
            self._accesses.operation(op, given, record.footprint)
        elif "unit" in record.parameters:
            raise Unsupported("work of the unit")
        elif not self._folded(op, given):
            if record.is_lanewise or (record.element is not None and record.is_logical):
                self._lanewise(op, given)
            elif record.element is not None:
                self._parted(op, given, record.element)
            elif record.fold is not None:
                self._folds.operation(op, given, record.fold)
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
            found = None if value is None else self._elements.same(value)
            if found is None and value is not None:
                return False
            args.append(found)
        found = call_of(given)(Nowhere(), *args)
        for value, made in zip(
            op.results, (found,) if len(op.results) == 1 else found, strict=True
        ):
            if isinstance(made, Register | Mask):
                data = made.bits if isinstance(made, Mask) else made.data
                self._values.keep(value, self.rooms.constant(data))
            else:
                self._values.keep(value, str(int(made)))
        return True

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
                names, *exprs = symbols(record.element, kinds, first, said, record.results[0])
            lanes, size = given.vectors[record.results[0].name].lanes, 1
            merges = said.get("pmode") == "merge"
            kept = self._elements.register(op, made_of[0].name) if merges else None
        else:
            made = Preparation(record, given.kinds, given.sizes, given.words, given.results)
            names, *exprs = made.expressions()
            # Of masks that stand for themselves every bit counts.
            every = all(slot.kind == "B" for slot in record.operands)
            size = 1 if every and record.operands else made.size
            kinds, first, kept = made.kinds, made.number, None
            lanes = REGISTER // size
        first = first or BOOL
        sources: dict[str, Source] = {}
        for name in names:
            sources[name] = self._elements.source(op, record, name, kinds, first, lanes, size)
        mask = op.operand("mask") if record.masking is Masking.ZERO else None
        active = (
            None
            if mask is None
            else self._elements.active(self._elements.register(op, "mask"), size)
        )
        targets: list[Target] = []
        whole: list[Expr] = []
        for slot, value, expr in zip(record.results, op.results, exprs, strict=False):
            kind = kinds.get(slot.name)
            if slot.kind == "int":
                self._values.keep(value, self._elements.scalar(expr, sources))
                continue
            whole.append(expr)
            room = self.rooms.new(lanes * (size if kind is None else kind.itemsize))
            targets.append(Target(room, kind, size))
            self._values.keep(value, room)
        self._elements.compute(whole, sources, targets, lanes, active, size, kept)

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
        mask = self._elements.register(op, "mask") if is_masked and op.operand("mask") else None
        for slot in record.operands:
            value = op.operand(slot.name)
            room = None if value is None else self._values.room(value)
            if value is None:
                args.append(None)
            elif mask is not None and slot.name == "mask":
                args.append(Mask(np.ones(mask.nbytes, np.bool_)))
            elif room is not None:
                is_mask = isinstance(value.type, MaskType | LogicalMaskType)
                args.append(self._elements.same(value))
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
            made = call_of(given)(Nowhere(), *args)
            results = made if isinstance(made, tuple) else (made,)
            if not all(isinstance(each, Register | Mask) for each in results):
                return False
            rooms = [
                self.rooms.constant(r.bits if isinstance(r, Mask) else r.data) for r in results
            ]
            for slot, value, room in zip(record.results, op.results, rooms, strict=False):
                self._values.keep(value, self._elements.masked(given, slot, room, mask))
            return True
        tables = tables_of(given, args, [(at, r.nbytes, m) for at, r, m in vectors])
        if tables is None:
            return False
        starts = np.cumsum([0, *(room.nbytes for _, room, _ in vectors)])
        for slot, value, table in zip(record.results, op.results, tables, strict=False):
            made = self.rooms.new(table.size)
            if (table == ABSENT).any():
                self.rooms.clear(made)
            for (_, room, _), first, end in zip(vectors, starts, starts[1:], strict=False):
                to = np.flatnonzero((table >= first) & (table < end))
                self.rooms.move_bytes(made.place, to, room.place, table[to] - first)
            self._values.keep(value, self._elements.masked(given, slot, made, mask))
        return True

    # ---- lanes that change their width ---------------------------------------------------------

    def _parted(self, op: Op, given: Typed, element: Callable[..., Expr]) -> None:
        """A function of elements whose lanes are made of others: which ones, `lost` says."""
        record = given.record
        made = Preparation(record, given.kinds, given.sizes, given.words, given.results)
        T, (slot,), (value,) = made.number, record.results, op.results
        U, size, mask = made.kinds[slot.name], T.itemsize, self._elements.register(op, "mask")
        assert record.lost is not None
        if T.is_packed or U.is_packed:
            raise Unsupported("elements that share bytes")
        lost, part = record.lost, made.words.get("part") or ""

        def run(lanes: Array) -> list[Array]:
            return [lost(lanes.view(np.bool_), part=part, T=T, U=U).view(np.uint8)]

        tables = origins(run, REGISTER // size, 1)
        assert tables is not None
        to, origin = np.flatnonzero(tables[0] != ABSENT), tables[0][tables[0] != ABSENT]
        names, expr = symbols(element, made.kinds, T, made.words, slot)
        sources: dict[str, Source] = {}
        for name in names:
            source = self._elements.source(op, record, name, made.kinds, T, REGISTER // size, size)
            if source.room is not None:
                source = replace(source, room=self.rooms.chosen(source.room, origin, size))
            sources[name] = source
        active = self._elements.active(mask, size)
        if active is not None:
            active = self.rooms.chosen(active, origin, 1, size)
        room = self.rooms.new(REGISTER)
        narrow = room if to.size * U.itemsize == REGISTER else self.rooms.new(to.size * U.itemsize)
        self._elements.compute([expr], sources, [Target(narrow, U)], to.size, active)
        if narrow is not room:
            self.rooms.clear(room)
            places = (to[:, None] * U.itemsize + np.arange(U.itemsize)).reshape(-1)
            self.rooms.move_bytes(room.place, places, narrow.place, np.arange(narrow.nbytes))
        self._values.keep(value, room)
