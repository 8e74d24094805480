"""Control flow over run-time values: what is carried through loops and out of branches."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ptokit.base.location import Location
from ptokit.frontend.lowering.asynchronous import EventSymbol
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.symbols import (
    BufferSymbol,
    Gone,
    NeedsConstant,
    Number,
    as_value,
    compare,
)
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.types import F32, I1, INDEX, Type

if TYPE_CHECKING:
    from ptokit.frontend.lowering.statements import Scope

MOST_UNROLLED = 1024  # iterations of a loop whose body needs its variable at compile time


class RunTimeRange:
    """`range` with a bound that is known only at run time."""

    def __init__(self, *bounds: Any) -> None:
        self.start, self.stop, self.step = {
            1: lambda: (0, bounds[0], 1),
            2: lambda: (bounds[0], bounds[1], 1),
            3: lambda: bounds,
        }[len(bounds)]()


class Loops:
    """The part of the interpreter that deals with loops and branches."""

    emitter: Emitter
    scope: Scope

    if TYPE_CHECKING:

        def block(self, statements: Sequence[ast.stmt]) -> None: ...
        def value(self, node: ast.expr) -> Any: ...
        def assign(self, target: ast.expr, value: Any) -> None: ...
        def at(self, node: ast.AST) -> None: ...

    # ---- for -------------------------------------------------------------------------------

    def do_For(self, node: ast.For) -> None:
        if node.orelse:
            raise self.emitter.fail("for-else", "a loop in a kernel has no else")
        over = self.value(node.iter)
        if isinstance(over, range):
            if len(over) <= 1:
                self._unroll(node, over)
                return
            self._for_known(node, over)
        elif isinstance(over, RunTimeRange):
            self._for(node, over)
        elif isinstance(over, Number):
            raise self.emitter.fail("for", "loop over range(...) of a number", "for i in range(n):")
        else:
            self._unroll(node, over)

    def _for_known(self, node: ast.For, over: range) -> None:
        before = dict(self.scope.names)
        try:
            self._for(node, RunTimeRange(over.start, over.stop, over.step))
        except NeedsConstant as needs:
            if len(over) > MOST_UNROLLED:
                raise needs.error from None
            self.scope.names = before
            self._unroll(node, over)

    def _unroll(self, node: ast.For, over: Iterable[Any]) -> None:
        for item in over:
            self.assign(node.target, item)
            self.block(node.body)

    def _for(self, node: ast.For, over: RunTimeRange) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.emitter.fail("for", "the variable of a range loop is a single name")
        here = self.emitter.location
        bounds = [as_value(self.emitter, b, INDEX) for b in (over.start, over.stop, over.step)]
        upward = isinstance(over.step, int) and over.step > 0
        if isinstance(over.step, int) and over.step <= 0:
            raise self.emitter.fail("for", "the step of a run-time loop is positive")
        nonnegative = upward and (
            over.start.nonnegative if isinstance(over.start, Number) else over.start >= 0
        )
        variable = Value(node.target.id, INDEX, None, here)
        target = node.target

        def start() -> None:
            symbol = Number(self.emitter, variable, nonnegative=nonnegative)
            self.scope.names[target.id] = symbol

        names = self._carried(node.body)
        block, inits = self._body(node.body, names, [variable], start)
        operands = [
            *zip(("lower", "upper", "step"), bounds, strict=True),
            *(("inits", v) for v in inits),
        ]
        op = self._finish("scf.for", operands, [block], inits, here)
        self._after(names, op.results, node.body, "loop", here)
        self._forget(target.id, here, "loop")

    # ---- while -----------------------------------------------------------------------------

    def do_While(self, node: ast.While) -> None:
        here = self.emitter.location
        names = self._carried(node.body)
        types = self._types(names)
        while True:
            inits = [self._init(self.scope.names[n], t) for n, t in zip(names, types, strict=True)]
            before = Block(
                [Value(n, v.type, None, here) for n, v in zip(names, inits, strict=True)]
            )
            saved = dict(self.scope.names)
            with self.emitter.region(before):
                self._bind(names, before.args, saved)
                condition = self.value(node.test)
                if not isinstance(condition, Number):
                    raise self.emitter.fail(
                        "while",
                        "the condition of a while loop is known at compile time",
                        "loop over something that changes at run time, or use for",
                    )
                operands = [("condition", condition.value), *(("args", v) for v in before.args)]
                self.emitter.emit("scf.condition", operands)
            after, found = self._region(node.body, names, inits, lambda: None, saved)
            wider = _widen(types, found)
            if wider == types:
                break
            types = wider
        op = self._finish("scf.while", [("inits", v) for v in inits], [before, after], inits, here)
        self._after(names, op.results, node.body, "loop", here)

    # ---- if --------------------------------------------------------------------------------

    def branch(
        self,
        node: ast.AST,
        condition: Number,
        yes: Sequence[ast.stmt],
        no: Sequence[ast.stmt],
    ) -> None:
        """Write both sides; names that both know afterwards become results."""
        here = self.emitter.location
        before = self.scope.names
        sides: list[tuple[Block, dict[str, Any]]] = []
        for statements in (yes, no):
            block = Block()
            self.scope.names = dict(before)
            with self.emitter.region(block):
                self.block(statements)
            sides.append((block, self.scope.names))
        self.scope.names = before
        assigned = _assigned([*yes, *no])
        both = [n for n in assigned if all(n in names for _, names in sides)]
        changed = [n for n in both if sides[0][1][n] is not sides[1][1][n]]
        merged = [n for n in changed if all(_can_carry(names[n]) for _, names in sides)]
        types = [_merge_type(*(names[n] for _, names in sides)) for n in merged]
        for block, names in sides:
            with self.emitter.region(block):
                values = [self._init(names[n], t) for n, t in zip(merged, types, strict=True)]
                self.emitter.emit("scf.yield", [("args", v) for v in values])
        results = [("results", t) for t in types]
        operands = [("condition", condition.value)]
        blocks = [block for block, _ in sides]
        if len(blocks[1].ops) == 1 and not merged:
            blocks.pop()  # an else branch that does nothing
        self.emitter.location = here
        op = self.emitter.emit("scf.if", operands, results, {}, blocks)
        for name, result in zip(merged, op.results, strict=True):
            result.name = name
            self.scope.names[name] = self._symbol(result, sides[0][1][name])
        for name in assigned:
            if name in both and name not in changed:
                self.scope.names[name] = sides[0][1][name]
            elif name not in merged:
                self._forget(name, here, "branch")

    def trap_unless(self, holds: Number) -> None:
        """A run-time assertion."""
        broken = compare(self.emitter, "==", holds, False)
        block = Block()
        with self.emitter.region(block):
            self.emitter.emit("pto.trap")
            self.emitter.emit("scf.yield")
        self.emitter.emit("scf.if", [("condition", broken.value)], [], {}, [block])

    # ---- carrying --------------------------------------------------------------------------

    def _carried(self, body: Sequence[ast.stmt]) -> list[str]:
        """Names that exist, are assigned in the body, and can be carried as values."""
        names = self.scope.names
        return [n for n in _assigned(body) if n in names and _can_carry(names[n])]

    def _types(self, names: list[str]) -> list[Type]:
        return [_type_of(self.scope.names[n]) for n in names]

    def _body(
        self,
        body: Sequence[ast.stmt],
        names: list[str],
        lead: list[Value],
        start: Callable[[], None],
    ) -> tuple[Block, list[Value]]:
        """Write a loop body; a number that turns into a float inside is carried as one."""
        types = self._types(names)
        while True:
            inits = [self._init(self.scope.names[n], t) for n, t in zip(names, types, strict=True)]
            saved = dict(self.scope.names)
            block, found = self._region(body, names, inits, start, saved, lead)
            wider = _widen(types, found)
            if wider == types:
                return block, inits
            types = wider

    def _region(
        self,
        body: Sequence[ast.stmt],
        names: list[str],
        inits: list[Value],
        start: Callable[[], None],
        saved: dict[str, Any],
        lead: Sequence[Value] = (),
    ) -> tuple[Block, list[Type]]:
        here = self.emitter.location
        args = [Value(n, v.type, None, here) for n, v in zip(names, inits, strict=True)]
        block = Block([*lead, *args])
        self.scope.names = dict(saved)
        try:
            with self.emitter.region(block):
                start()
                self._bind(names, args, saved)
                self.block(body)
                final = [self.scope.names[n] for n in names]
                found = [_type_of(v) for v in final]
                wider = _widen([v.type for v in inits], found)
                if wider == [v.type for v in inits]:
                    values = [self._init(v, t) for v, t in zip(final, wider, strict=True)]
                    self.emitter.emit("scf.yield", [("args", v) for v in values])
        finally:
            self.scope.names = saved
        return block, found

    def _bind(self, names: list[str], values: Sequence[Value], like: dict[str, Any]) -> None:
        for name, value in zip(names, values, strict=True):
            self.scope.names[name] = self._symbol(value, like[name])

    def _symbol(self, value: Value, like: Any) -> Any:
        if isinstance(like, BufferSymbol | EventSymbol):
            return like.renamed(value)
        return Number(self.emitter, value)

    def _init(self, given: Any, type_: Type) -> Value:
        if isinstance(given, BufferSymbol | EventSymbol):
            return given.value
        return as_value(self.emitter, given, type_)

    def _finish(
        self,
        name: str,
        operands: list[tuple[str, Value]],
        regions: list[Block],
        inits: list[Value],
        here: Location,
    ) -> Op:
        self.emitter.location = here
        results = [("results", v.type) for v in inits]
        return self.emitter.emit(name, operands, results, {}, regions)

    def _after(
        self,
        names: list[str],
        results: list[Value],
        body: Sequence[ast.stmt],
        what: str,
        here: Location,
    ) -> None:
        for name, result in zip(names, results, strict=True):
            result.name = name
            self.scope.names[name] = self._symbol(result, self.scope.names[name])
        for name in _assigned(body):
            if name not in names:
                self._forget(name, here, what)

    def _forget(self, name: str, here: Location, what: str) -> None:
        self.scope.names[name] = Gone(name, here, what)


def _assigned(body: Sequence[ast.stmt]) -> list[str]:
    """Names a piece of code assigns, in order, each once."""
    found: dict[str, None] = {}
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found[node.id] = None
    return list(found)


def _can_carry(value: Any) -> bool:
    return isinstance(value, Number | BufferSymbol | EventSymbol | int | float)


def _type_of(value: Any) -> Type:
    if isinstance(value, Number | BufferSymbol | EventSymbol):
        return value.value.type
    return I1 if isinstance(value, bool) else INDEX if isinstance(value, int) else F32


def _merge_type(left: Any, right: Any) -> Type:
    return _widen([_type_of(left)], [_type_of(right)])[0]


def _widen(types: list[Type], found: list[Type]) -> list[Type]:
    """Types that can hold both: an integer that meets a float becomes one."""
    return [
        b if a == INDEX and b != a and not isinstance(b, type(None)) else a
        for a, b in zip(types, found, strict=True)
    ]
