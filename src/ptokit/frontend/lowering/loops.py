"""Loops over run-time values: what one round hands on to the next.

A round is interpreted from the state before the loop. What it leaves changed is carried, and the
round interpreted again, until nothing more turns out to change.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ptokit.base.dataclass import dataclass
from ptokit.base.location import Location
from ptokit.frontend.lowering.branches import (
    BREAK,
    CONTINUE,
    EXITS,
    MISSING,
    RETURN,
    VALUE,
    Branches,
    Run,
    Slot,
    nothing_like,
)
from ptokit.frontend.lowering.carry import (
    Differ,
    Types,
    arrived,
    is_same,
    merged_types,
    own_types,
)
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.heap import (
    WHOLES,
    Journal,
    cells_of,
    reached,
)
from ptokit.frontend.lowering.numbers import (
    NeedsConstant,
    Number,
    as_value,
    compare,
    extreme,
    inverted,
    truth,
)
from ptokit.frontend.lowering.symbols import Gone
from ptokit.ir.core import Block, Value
from ptokit.ir.types import I1, INDEX

if TYPE_CHECKING:
    pass

MOST_UNROLLED = 1024  # rounds of a loop whose body needs its variable at compile time
MOST_WRITTEN = 4096  # operations that such a loop may become without being asked to


class RunTimeRange:
    """`range` with a bound that is known only at run time."""

    def __init__(self, emitter: Emitter, *bounds: Any) -> None:
        if not 1 <= len(bounds) <= 3:
            raise emitter.fail("range", f"range takes one to three numbers, not {len(bounds)}")
        self.emitter = emitter
        given: list[Any] = list(bounds)
        start, stop, *step = [0, *given] if len(given) == 1 else given
        self.start, self.stop, self.step = start, stop, step[0] if step else 1
        for each in (start, stop, self.step):
            if not isinstance(each, int) and (not isinstance(each, Number) or each.is_float):
                raise emitter.fail("range", "range takes whole numbers", "int(x) makes one")

    def __iter__(self) -> Any:
        raise self.emitter.fail(
            "range",
            "the length of this range is known only at run time",
            "loop over it directly: for i in range(n)",
        )


Slots = dict[tuple[int, Any], Slot]


@dataclass
class Findings:
    """What interpreting a loop has shown so far."""

    saved: dict[str, Any]  # the variables before it
    old: dict[int, Any]  # the objects that lived before it
    slots: Slots = field(default_factory=dict[tuple[int, Any], Slot])
    lost: dict[str, str] = field(default_factory=dict[str, str])  # what cannot be carried, and why

    def state(self) -> tuple[Any, ...]:
        return dict(self.lost), {key: slot.types for key, slot in self.slots.items()}


@dataclass(frozen=True)
class Form:
    """How a loop is written: `scf.for` with bounds and a variable, `scf.while` with a condition."""

    name: str
    test: Callable[[], Any] | None
    bounds: list[Value] = field(default_factory=list[Value])
    lead: list[Value] = field(default_factory=list[Value])
    what: str = "for"


@dataclass(frozen=True)
class Passed:
    """A variable that the condition of a loop assigns."""

    name: str
    like: Any
    types: Types


class _NeverRuns(Exception):  # noqa: N818 - control flow, not an error
    """The condition of a loop is false whatever happens."""


class Loops(Branches):
    """The part of the interpreter that deals with loops."""

    if TYPE_CHECKING:

        def block(self, statements: Sequence[ast.stmt]) -> None: ...
        def value(self, node: ast.expr) -> Any: ...
        def assign(self, target: ast.expr, value: Any) -> None: ...
        def at(self, node: ast.AST) -> None: ...

    # ---- for ---------------------------------------------------------------------------------

    def do_For(self, node: ast.For) -> None:
        if node.orelse:
            raise self.emitter.fail(
                "for-else", "a loop in a kernel has no else", "set a variable before `break`"
            )
        over = self.value(node.iter)
        if isinstance(over, range) and len(over) > 1:
            self._for_known(node, over)
            return
        if isinstance(over, RunTimeRange):
            self._for(node, over)
        elif isinstance(over, Number):
            raise self.emitter.fail("for", "loop over range(...) of a number", "for i in range(n):")
        else:
            self._unroll(node, iter(over))

    def _for_known(self, node: ast.For, over: range) -> None:
        """Write a loop, or its rounds one by one where they must be told apart."""
        before, here = dict(self.scope.names), self.emitter.location
        try:
            self._for(node, RunTimeRange(self.emitter, over.start, over.stop, over.step))
        except NeedsConstant as needs:
            if len(over) > MOST_UNROLLED:
                raise needs.error from None
            self.scope.names = before
            written = self.emitter.written
            self._unroll(node, iter(over))
            written = self.emitter.written - written
            if written > MOST_WRITTEN:
                self.emitter.location = here
                raise self.emitter.fail(
                    "unrolled",
                    f"the rounds of this loop must be told apart at compile time: written out, "
                    f"they are {written} operations",
                    "static_range(...) writes them out all the same; a list of tiles may be "
                    "indexed at run time",
                ) from None

    def _unroll(self, node: ast.For, rounds: Any) -> None:
        """Interpret every round by itself."""
        outer = self._enter_loop()
        self._rounds(node, rounds)
        self._leave_loop(outer)

    def _rounds(self, node: ast.For, rounds: Any) -> None:
        for item in rounds:
            self.assign(node.target, item)
            self.block(node.body)
            self.scope.names[CONTINUE] = False
            leaves = self.pending()
            if isinstance(leaves, Number):
                self.unless(leaves, lambda: self._rounds(node, rounds))
            if leaves is not False:
                return

    def _for(self, node: ast.For, over: RunTimeRange) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.emitter.fail("for", "the variable of a range loop is a single name")
        target, step, here = node.target.id, over.step, self.emitter.location
        if isinstance(step, int) and step == 0:
            raise self.emitter.fail("for", "the step of a range is not zero")
        index: Callable[[Number], Any] = lambda i: i  # noqa: E731
        start, stop = over.start, over.stop
        if isinstance(step, int) and step < 0:  # counted upwards, as the device can
            first, down = start, -step
            index = lambda i: first - i * down  # noqa: E731
            start, stop, step = 0, _rounds_down(self.emitter, start, stop, down), 1
        is_upward = isinstance(step, int) and _is_nonnegative(start)
        outer = self._enter_loop()

        def begin(value: Value) -> None:
            number = Number(self.emitter, value, nonnegative=is_upward)
            self.scope.names[target] = index(number)

        seeds = _assigned(node.body)
        if _exits(node.body):
            self._for_with_exit(node, (start, stop, step), begin, seeds, here)
        else:
            bounds = [as_value(self.emitter, b, INDEX) for b in (start, stop, step)]
            variable = Value(target, INDEX, None, here)

            def body() -> None:
                begin(variable)
                self.block(node.body)
                self.scope.names[CONTINUE] = False

            form = Form("scf.for", None, bounds, [variable])
            self._loop(form, seeds, body, here)
        self._forget(target, here, "loop")
        self._leave_loop(outer)

    def _for_with_exit(
        self,
        node: ast.For,
        bounds: tuple[Any, Any, Any],
        begin: Callable[[Value], None],
        seeds: list[str],
        here: Location,
    ) -> None:
        """A loop that may end before its range does counts for itself."""
        start, stop, step = bounds
        name = node.target.id if isinstance(node.target, ast.Name) else "i"
        counter = f"${name}.{self.emitter.depth}"
        self.scope.names[counter] = start

        def test() -> Any:
            return compare(self.emitter, "<", self.scope.names[counter], stop)

        def body() -> None:
            count = self.scope.names[counter]
            begin(as_value(self.emitter, count, INDEX))
            self.block(node.body)
            self.scope.names[counter] = count + step

        seeds = [counter, *seeds, *_exits(node.body)]
        self._while(test, body, seeds, here, "for")
        del self.scope.names[counter]

    # ---- while -------------------------------------------------------------------------------

    def do_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.emitter.fail(
                "while-else", "a loop in a kernel has no else", "set a variable before `break`"
            )
        here, before = self.emitter.location, dict(self.scope.names)

        def test() -> Any:
            self.at(node.test)
            return self.value(node.test)

        outer = self._enter_loop()
        seeds = [*_assigned([node]), *_exits(node.body)]
        try:
            self._while(test, lambda: self.block(node.body), seeds, here, "while")
        except NeedsConstant as needs:
            self.scope.names = before
            self._enter_loop()
            self._while_known(node, test, needs)
        self._leave_loop(outer)

    def _while_known(self, node: ast.While, test: Callable[[], Any], needs: NeedsConstant) -> None:
        """Interpret every round by itself, as long as the condition is known."""
        for _ in range(MOST_UNROLLED):
            condition = test()
            if isinstance(condition, Number):
                raise needs.error from None
            if not condition:
                return
            self.block(node.body)
            self.scope.names[CONTINUE] = False
            leaves = self.pending()
            if isinstance(leaves, Number):
                raise needs.error from None
            if leaves:
                return
        raise needs.error from None

    def _while(
        self,
        test: Callable[[], Any],
        body: Run,
        seeds: list[str],
        here: Location,
        what: str,
    ) -> None:
        def condition() -> Any:
            leaves = self.pending()
            if leaves is False:
                return test()
            if leaves is True:
                return False
            return self.chosen(inverted(self.emitter, leaves), test, lambda: False)

        def round_() -> None:
            for name in EXITS:  # nothing has been reached where a round begins
                if name in self.scope.names:
                    self.scope.names[name] = False
            body()
            self.scope.names[CONTINUE] = False

        self._loop(Form("scf.while", condition, what=what), seeds, round_, here)

    def _enter_loop(self) -> tuple[Any, Any]:
        names = self.scope.names
        outer = names.get(BREAK, False), names.get(CONTINUE, False)
        names[BREAK] = names[CONTINUE] = False
        return outer

    def _leave_loop(self, outer: tuple[Any, Any]) -> None:
        self.scope.names[BREAK], self.scope.names[CONTINUE] = outer

    # ---- rounds of a loop ----------------------------------------------------------------------

    def _loop(self, form: Form, seeds: list[str], body: Run, here: Location) -> None:
        """Write a loop; its rounds are interpreted until nothing new is found to change."""
        names = self.scope.names
        found = Findings(dict(names), reached(self._roots()))
        for name in seeds:  # what is assigned is most likely carried
            types = own_types(names[name]) if name in names else ()
            if any(types):
                found.slots[0, name] = Slot(name, names[name], types)
        try:
            while not (done := self._attempt(form, found, body, here)):
                pass
        except _NeverRuns:
            return
        finally:
            self.scope.names = names
        inits, passed, blocks, ended = done
        self.emitter.location = here
        types = [v.type for v in inits] + [t for each in passed for t in each.types if t]
        bounds = list(zip(("lower", "upper", "step"), form.bounds, strict=False))
        operands = [*bounds, *(("inits", v) for v in inits)]
        results = [("results", t) for t in types]
        op = self.emitter.emit(form.name, operands, results, {}, blocks)
        rest = iter(op.results)
        for slot in found.slots.values():
            self._set(slot, arrived(self.emitter, slot.init, slot.types, rest, slot.title))
        for each in passed:
            names[each.name] = arrived(self.emitter, each.like, each.types, rest, each.name)
        carried = {slot.cell for slot in found.slots.values() if slot.held is None}
        kept = carried | {each.name for each in passed} | (found.saved.keys() - found.lost.keys())
        for name in {**found.lost, **ended}.keys() - kept:
            self._forget(name, here, "loop", found.lost.get(name, ""))

    def _attempt(
        self, form: Form, found: Findings, body: Run, here: Location
    ) -> tuple[list[Value], list[Passed], list[Block], dict[str, Any]] | None:
        """Interpret one round; None when it showed that more has to be carried."""
        emitter = self.emitter
        watched = [(each, dict(each)) for each in emitter.watched]
        inits = [v for s in found.slots.values() for v in self._handed(s.init, s.types)]
        passed: list[Passed] = []
        blocks: list[Block] = []
        with emitter.heap.region() as journal:
            self.scope.names = {
                name: Gone(name, here, "loop", found.lost[name]) if name in found.lost else value
                for name, value in found.saved.items()
            }
            if form.test is not None:
                blocks.append(_block(found, inits, here))
                passed = self._test(blocks[0], found, form)
            blocks.append(_block(found, inits, here, passed, form.lead))
            with emitter.region(blocks[-1]):
                self._bind(found, blocks[-1].args[len(form.lead) :], passed)
                body()
                emitter.location = here
                if self._is_settled(found, journal, form.what):
                    emitter.emit("scf.yield", self._ends(found))
                    return inits, passed, blocks, self.scope.names
        for each, contents in watched:
            each.clear()
            each.update(contents)
        return None

    def _test(self, before: Block, found: Findings, form: Form) -> list[Passed]:
        """Write the condition; returns variables that it assigns, for the body to know."""
        assert form.test is not None
        with self.emitter.region(before):
            self._bind(found, before.args)
            start = dict(self.scope.names)
            condition = form.test()
            if not isinstance(condition, Number):
                if not condition:
                    raise _NeverRuns
                if form.what == "while" and not any((0, n) in found.slots for n in EXITS):
                    raise self.emitter.fail(
                        "while",
                        "the condition of this loop is always true, and nothing else ends it",
                        "let the condition depend on something that changes, or break",
                    )
            goes_on = as_value(self.emitter, truth(self.emitter, condition), I1)
            passed = [
                Passed(name, now, own_types(now))
                for name, now in self.scope.names.items()
                if (0, name) not in found.slots and not is_same(start.get(name, MISSING), now)
                if any(own_types(now))
            ]
            extra = [v for each in passed for v in self._handed(each.like, each.types)]
            operands = [("condition", goes_on), *self._ends(found), *(("args", v) for v in extra)]
            self.emitter.emit("scf.condition", operands)
            return passed

    def _bind(
        self, found: Findings, values: Sequence[Value], passed: Sequence[Passed] = ()
    ) -> None:
        """Let everything hold what arrives in a region."""
        rest = iter(values)
        for slot in found.slots.values():
            self._set(slot, arrived(self.emitter, slot.init, slot.types, rest))
        for each in passed:
            self.scope.names[each.name] = arrived(self.emitter, each.like, each.types, rest)

    def _ends(self, found: Findings) -> list[tuple[str, Value]]:
        """What the slots hold now, as operands of a terminator."""
        values: list[Value] = []
        for slot in found.slots.values():
            held = self.scope.names if slot.held is None else cells_of(slot.held)
            values += self._handed(held[slot.cell], slot.types)
        return [("args", value) for value in values]

    def _is_settled(self, found: Findings, journal: Journal, what: str) -> bool:
        """Compare the end of a round with its beginning; note what has to be carried."""
        before, names = found.state(), self.scope.names
        if VALUE in names and VALUE not in found.saved and (start := nothing_like(names[VALUE])):
            (found.saved[VALUE],) = start
        for name, start in found.saved.items():
            if name in found.lost or isinstance(start, Gone):
                continue
            try:
                _compare(found, (0, name), Slot(name, start, ()), names.get(name, MISSING))
            except Differ as why:
                found.lost[name] = f"it is {why} from round to round"
                found.slots.pop((0, name), None)
        for entry in journal.entries.values():
            if id(entry.held) not in found.old:
                continue
            self._same_structure([entry], entry.before, cells_of(entry.held), what)
            for cell, end in () if isinstance(entry.held, WHOLES) else cells_of(entry.held).items():
                slot = Slot(cell, entry.before[cell], (), entry.held, entry)
                try:
                    _compare(found, (id(entry.held), cell), slot, end)
                except Differ as why:
                    raise self._refused([entry], what, f"it would hold {why}") from None
        return before == found.state()


def _compare(found: Findings, key: tuple[int, Any], slot: Slot, end: Any) -> None:
    """Note that a slot is carried when a round leaves it changed; raises Differ."""
    known = found.slots.get(key)
    if known is None and is_same(slot.init, end):
        return
    slot.types = merged_types(slot.init, end, known.types if known else None)
    if known is None:
        found.slots[key] = slot
    else:
        known.types = slot.types


def _block(
    found: Findings,
    inits: list[Value],
    here: Location,
    passed: Sequence[Passed] = (),
    lead: Sequence[Value] = (),
) -> Block:
    """A region that takes what is carried."""
    titles = [slot.title for slot in found.slots.values() for type_ in slot.types if type_]
    args = [Value(n, v.type, None, here) for n, v in zip(titles, inits, strict=True)]
    args += [Value(p.name, type_, None, here) for p in passed for type_ in p.types if type_]
    return Block([*lead, *args])


def _rounds_down(emitter: Emitter, start: Any, stop: Any, step: int) -> Any:
    """How many rounds a downward range makes."""
    count = (start - stop + (step - 1)) // step
    if isinstance(count, Number):
        return extreme(emitter, "max", count, 0)
    return max(count, 0)


def _is_nonnegative(number: Any) -> bool:
    return number.nonnegative if isinstance(number, Number) else number >= 0


def _assigned(body: Sequence[ast.stmt]) -> list[str]:
    """Names a piece of code assigns, in order, each once."""
    found: dict[str, None] = {}
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found[node.id] = None
    return list(found)


def _exits(body: Sequence[ast.stmt], is_inner: bool = False) -> list[str]:
    """The ways in which a loop may end before its condition says so."""
    found: dict[str, None] = {}
    for node in body:
        if isinstance(node, ast.Break) and not is_inner:
            found[BREAK] = None
        elif isinstance(node, ast.Return):
            found[RETURN] = None
        elif not isinstance(node, ast.FunctionDef | ast.ClassDef):
            inner = is_inner or isinstance(node, ast.For | ast.While)
            children = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.stmt)]
            children += [s for h in getattr(node, "cases", ()) for s in h.body]
            found |= dict.fromkeys(_exits(children, inner))
    return list(found)
