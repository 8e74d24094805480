"""Branches over run-time values: what their two sides leave different.

A region is interpreted from the state before it. What it leaves changed - variables, elements of
lists and dicts, attributes, addresses of tiles - is handed on as values of the IR. What cannot be
handed on is refused where it is changed; a variable only where it is used later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError
from ptokit.base.location import Location
from ptokit.frontend.lowering.carry import (
    Differ,
    Types,
    arrived,
    handed_on,
    is_same,
    merged_types,
)
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.heap import (
    WHOLES,
    Cells,
    Entry,
    Journal,
    Symbol,
    put_cell,
    put_cells,
    reached,
)
from ptokit.frontend.lowering.numbers import Number, inverted, select_value, truth
from ptokit.frontend.lowering.symbols import Gone
from ptokit.ir.core import Block, Value
from ptokit.ir.evaluate import is_total
from ptokit.ir.types import I1, ScalarType

if TYPE_CHECKING:
    from ptokit.frontend.lowering.expressions import Scope

# Hidden variables: whether a statement that leaves its block has been reached, and with what.
BREAK, CONTINUE, RETURN, VALUE = "$break", "$continue", "$return", "$value"
EXITS = (BREAK, CONTINUE, RETURN)
MISSING = object()
Run = Callable[[], None]


@dataclass
class Slot:
    """Something that a loop changes: a variable (`held` is None), or a cell of an object."""

    cell: Any
    init: Any
    types: Types
    held: Any = None
    entry: Entry | None = None

    @property
    def title(self) -> str:
        return self.cell.lstrip("$").partition(".")[0] if self.held is None else f"cell{self.cell}"


class Branches:
    """The part of the interpreter that deals with branches."""

    emitter: Emitter
    scope: Scope
    frames: list[Scope]

    # ---- leaving a block early ---------------------------------------------------------------

    def pending(self) -> Any:
        """Whether a break, continue or return has been reached: known, or a run-time value."""
        result: Any = False
        for name in EXITS:
            flag = self.scope.names.get(name, False)
            if flag is True:
                return True
            if isinstance(flag, Number):
                result = flag if result is False else result | flag
        return result

    def unless(self, pending: Number, run: Run) -> None:
        """Go on only where no exit has been reached."""
        reached_now = [n for n in EXITS if isinstance(self.scope.names.get(n), Number)]
        always: list[str] = []

        def go_on() -> None:
            self.scope.names |= dict.fromkeys(reached_now, False)
            run()
            always.extend(n for n in EXITS if self.scope.names.get(n) is True)

        self.branch(inverted(self.emitter, pending), go_on, lambda: None)
        if always == reached_now:  # either way
            self.scope.names |= dict.fromkeys(always, True)

    # ---- if ------------------------------------------------------------------------------------

    def branch(self, condition: Number, yes: Run, no: Run) -> None:
        """Write both sides; what they leave different becomes results."""
        here, names = self.emitter.location, self.scope.names
        old = reached(self._roots())
        blocks, ends, journals = [Block(), Block()], list[dict[str, Any]](), list[Journal]()
        for block, run in zip(blocks, (yes, no), strict=True):
            self.scope.names = dict(names)
            try:
                with self.emitter.heap.region() as journal, self.emitter.region(block):
                    run()
                    ends.append(self.scope.names)
            finally:
                self.scope.names = names
            journals.append(journal)
        self.emitter.location = here
        merged: list[tuple[Slot, Any]] = []  # with what it is on the other side
        for name in {**ends[0], **ends[1]}:
            a, b = (end.get(name, MISSING) for end in ends)
            if name == VALUE:  # nobody looks at it where there was no return yet
                a = nothing_like(b)[0] if a is MISSING else a
                b = nothing_like(a)[0] if b is MISSING else b
            if is_same(a, b):
                names[name] = a
                continue
            try:
                merged.append((Slot(name, a, merged_types(a, b)), b))
            except Differ as why:
                present = a is not MISSING and b is not MISSING
                gone = next((each for each in (a, b) if isinstance(each, Gone)), None)
                reason = gone.why if gone else f"it is {why}" if present else ""
                self._forget(name, here, "branch", reason)
        merged += self._merged_cells(journals, old)
        for block, side in zip(blocks, (0, 1), strict=True):
            with self.emitter.region(block):
                each = (self._handed(b if side else s.init, s.types) for s, b in merged)
                self.emitter.emit("scf.yield", [("args", v) for values in each for v in values])
        results = [("results", t) for s, _ in merged for t in s.types if t is not None]
        if results and all(_is_free(block) for block in blocks):
            values = self._selected(condition, blocks)
        else:
            if len(blocks[1].ops) == 1 and not results:
                blocks.pop()  # an else branch that does nothing
            operands = [("condition", condition.value)]
            values = self.emitter.emit("scf.if", operands, results, {}, blocks).results
        rest = iter(values)
        for slot, _ in merged:
            self._set(slot, arrived(self.emitter, slot.init, slot.types, rest, slot.title))

    def _merged_cells(
        self, journals: list[Journal], old: dict[int, Any]
    ) -> Iterator[tuple[Slot, Any]]:
        """The cells of objects that the sides of a branch leave different."""
        for key in {**journals[0].entries, **journals[1].entries}:
            if key not in old:
                continue
            entries = [j.entries[key] for j in journals if key in j.entries]
            held, before = old[key], entries[0].before
            a, b = (j.entries[key].after if key in j.entries else before for j in journals)
            self._same_structure(entries, a, b, "if")
            self.emitter.heap.touch(held, entries[-1].touches[-1].what, self.emitter.location)
            put_cells(held, a)
            for cell in a if not isinstance(held, WHOLES) else ():
                if is_same(a[cell], b[cell]):
                    continue
                try:
                    types = merged_types(a[cell], b[cell])
                except Differ as why:
                    raise self._refused(entries, "if", f"it would hold {why}") from None
                yield Slot(cell, a[cell], types, held, entries[-1]), b[cell]

    def _selected(self, condition: Number, blocks: list[Block]) -> list[Value]:
        """Sides that only compute need no branch: both are written, and one is chosen."""
        sides: list[list[Value]] = []
        for block in blocks:
            *ops, end = block.ops
            self.emitter.block.ops += ops
            sides.append(end.operands)
        pairs = zip(*sides, strict=True)
        return [select_value(self.emitter, condition, a, b) for a, b in pairs]

    def chosen(self, condition: Number, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
        """`yes() if condition else no()`: only one of them is evaluated when the kernel runs."""
        name = f"$chosen{self.emitter.depth}"

        def side(evaluate: Callable[[], Any]) -> Run:
            def run() -> None:
                self.scope.names[name] = evaluate()

            return run

        here = self.emitter.location
        self.branch(condition, side(yes), side(no))
        found = self.scope.names.pop(name)
        if isinstance(found, Gone):
            self.emitter.location = here
            raise self.emitter.fail(
                "choice", f"a run-time condition cannot choose here: {found.why}"
            )
        return found

    def trap_unless(self, holds: Number) -> None:
        """A run-time assertion."""
        broken = inverted(self.emitter, truth(self.emitter, holds))
        block = Block()
        with self.emitter.region(block):
            self.emitter.emit("pto.trap")
            self.emitter.emit("scf.yield")
        self.emitter.emit("scf.if", [("condition", broken.value)], [], {}, [block])

    # ---- what cannot be carried ----------------------------------------------------------------

    def _roots(self) -> list[Any]:
        """Everything that the functions being interpreted can name."""
        return [value for frame in self.frames for value in frame.names.values()]

    def _same_structure(self, entries: list[Entry], a: Cells, b: Cells, what: str) -> None:
        """Refuse a change of what an object is made of, where that depends on run-time values."""
        held = entries[0].held
        if isinstance(held, WHOLES):
            if not np.array_equal(a[""], b[""]) if isinstance(held, np.ndarray) else a != b:
                raise self._refused(entries, what, "what it holds cannot be run-time values")
        elif list(a) != list(b):
            has = {list: "length", dict: "keys"}.get(type(held), "attributes")
            why = f"its {has} would be known only at run time"
            raise self._refused(entries, what, why, is_structure=True)

    def _refused(
        self, entries: list[Entry], what: str, why: str, is_structure: bool = False
    ) -> PtoError:
        touches = [touch for entry in entries for touch in entry.touches]
        if is_structure:  # not the assignment of an element, if anything else was done
            touches = [t for t in touches if "assignment" not in t.what] or touches
        touch, held = touches[-1], entries[0].held
        self.emitter.location = touch.location
        kind = type(held).__name__ if not isinstance(held, Symbol) else "tile"
        return self.emitter.fail(
            "changed",
            f"{touch.what} changes this {kind} under a run-time `{what}`: {why}",
            f"make the {kind} before the `{what}` with all that it holds, and change only numbers "
            "and tiles in it",
        )

    def _forget(self, name: str, here: Location, what: str, why: str = "") -> None:
        self.scope.names[name] = Gone(name, here, what, why)

    def _set(self, slot: Slot, value: Any) -> None:
        if slot.held is None:
            self.scope.names[slot.cell] = value
        else:
            assert slot.entry is not None
            last = slot.entry.touches[-1]
            self.emitter.heap.touch(slot.held, last.what, last.location)
            put_cell(slot.held, slot.cell, value)

    def _handed(self, value: Any, types: Types) -> list[Value]:
        return list(handed_on(self.emitter, value, types))


def _is_free(block: Block) -> bool:
    """Whether it does no harm to compute a block in vain."""
    return all(isinstance(v.type, ScalarType) for v in block.ops[-1].operands) and all(
        is_total(op) for op in block.ops[:-1]
    )


def nothing_like(value: Any) -> tuple[Any]:
    """A value that stands where no value is looked at yet; of anything but numbers none."""
    if value is None:
        return (None,)
    if isinstance(value, Number):
        return (0.0,) if value.is_float else (False,) if value.type == I1 else (0,)
    return (type(value)(),) if isinstance(value, bool | int | float) else (MISSING,)
