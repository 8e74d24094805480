"""Interprets the body of a kernel: Python over known values, operations over symbols.

Loops and branches over run-time values become `scf` operations (loops.py). A variable that exists
before a loop and is assigned in it is carried; one that is first assigned inside is gone
afterwards, and using it is an error that says so. A loop whose body needs its variable at compile
time (to pick a type from a list, say) is unrolled when its bounds are known.

`break`, `continue` and `return` set a hidden variable; the rest of their block, and of the blocks
around it, is interpreted where none of them is set.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, cast

from ptokit.base.diagnostics import Note, PtoError
from ptokit.base.location import Location, user_site
from ptokit.frontend.advice import unknown_attribute, unknown_name
from ptokit.frontend.lowering.branches import BREAK, CONTINUE, RETURN, VALUE
from ptokit.frontend.lowering.carry import is_same
from ptokit.frontend.lowering.choice import chosen_tile
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.fifos import PipeSymbol
from ptokit.frontend.lowering.heap import Symbol, is_mutable, put_cells, reached
from ptokit.frontend.lowering.loops import Loops
from ptokit.frontend.lowering.naming import note, note_global, note_written
from ptokit.frontend.lowering.symbols import (
    UNNAMED,
    BufferSymbol,
    GlobalSymbol,
    Gone,
    NeedsConstant,
    Number,
    compare,
    inverted,
    truth,
)
from ptokit.frontend.lowering.vectors import OnChipSymbol, VectorSymbol
from ptokit.frontend.tensor_types import GlobalTensor
from ptokit.frontend.trees import Opened, is_record, taken_apart
from ptokit.frontend.types import Tile
from ptokit.ir.core import Op
from ptokit.ir.sourcenames import Line
from ptokit.ir.types import I1

# What symbols stand for, and what only runs.
HAVE_CONTENTS = (Tile, GlobalTensor)

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_IN_PLACE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    kind: getattr(operator, f"i{function.__name__.strip('_')}")
    for kind, function in _BINARY.items()
}
# What is not lowered: how it is called, and what to write instead.
_REFUSED = {
    "Try": ("try", "errors cannot be caught inside a kernel; check before launching"),
    "TryStar": ("try", "errors cannot be caught inside a kernel; check before launching"),
    "Raise": ("raise", "assert stops a kernel; errors of arguments belong before the launch"),
    "Match": ("match", "compare with if and elif"),
    "ClassDef": ("a class", "define the class outside; kernels may use it"),
    "AsyncFunctionDef": ("async", "a kernel is a plain function"),
    "AsyncFor": ("async", "a kernel is a plain function"),
    "AsyncWith": ("async", "a kernel is a plain function"),
    "Await": ("await", "a kernel is a plain function"),
    "GeneratorExp": ("a generator", "write a list: [... for i in range(n)]"),
    "SetComp": ("a set comprehension", "write a list: [... for i in range(n)]"),
    "Yield": ("yield", "a kernel returns nothing"),
    "YieldFrom": ("yield", "a kernel returns nothing"),
    "Global": ("global", "pass the value as a parameter"),
    "Nonlocal": ("nonlocal", "return the value, or keep it in a list of one element"),
    "Import": ("import", "import at the head of the file"),
    "ImportFrom": ("import", "import at the head of the file"),
}


@dataclass
class Scope:
    """Names of one function being interpreted."""

    names: dict[str, Any]
    outer: dict[str, Any]
    file: str
    first_line: int
    indent: int
    enclosing: Scope | None = None  # of a function that was defined inside another one


@dataclass(frozen=True, eq=False)
class Closure:
    """A function or lambda that was defined in the kernel."""

    name: str
    signature: inspect.Signature
    node: ast.FunctionDef | ast.Lambda
    scope: Scope

    def captured(self) -> Iterator[Any]:
        """What it can name beside its parameters."""
        scope: Scope | None = self.scope
        while scope is not None:
            yield from scope.names.values()
            scope = scope.enclosing

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("a function defined in a kernel is called by the kernel itself")


_NAMED = (BufferSymbol, GlobalSymbol, Number, OnChipSymbol, PipeSymbol, VectorSymbol)


def _give_name(value: Any, name: str) -> None:
    """What an operation has made takes the name of the first variable it is assigned to."""
    if isinstance(value, list | tuple):
        for number, each in enumerate(cast("Sequence[Any]", value)):
            if isinstance(each, BufferSymbol | VectorSymbol):
                _give_name(each, f"{name}_{number}")
        return
    if isinstance(value, Opened):
        for leaf in taken_apart(value, is_record).leaves:
            _give_name(leaf, name)
    if isinstance(value, _NAMED):
        made = value.value
        if isinstance(made.owner, Op) and made.name in UNNAMED:
            made.name = name


class KernelLowering(Loops):
    """Runs statements; `apply` decides what a call means."""

    def __init__(
        self,
        emitter: Emitter,
        apply: Callable[[KernelLowering, Any, list[Any], dict[str, Any]], Any],
    ) -> None:
        self.emitter = emitter
        self.apply = apply
        self.scope = Scope({}, {}, "", 0, 0)
        self.frames: list[Scope] = []
        self.foreign: list[Any] = []  # objects from outside that the kernel has named
        self._stack: list[Any] = []

    # ---- functions -------------------------------------------------------------------------

    def run(self, function: FunctionType, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Interpret a call of a Python function; returns its value."""
        tree, first_line, indent = _parse(function, self.emitter)
        bound = self._bound(function.__name__, inspect.signature(function), args, kwargs)
        outer = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
        file = inspect.getsourcefile(function) or "<kernel>"
        scope = Scope(bound, outer, file, first_line, indent)
        return self._call(function, function.__name__, tree, scope)

    def run_closure(self, made: Closure, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Interpret a call of a function that was defined in the kernel."""
        bound = self._bound(made.name, made.signature, args, kwargs)
        home = made.scope
        scope = Scope(bound, home.outer, home.file, home.first_line, home.indent, home)
        return self._call(made.node, made.name, made.node, scope)

    def _bound(
        self,
        name: str,
        signature: inspect.Signature,
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> dict[str, Any]:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise self.emitter.fail("arguments", f"{name}: {error}", f"{name}{signature}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _call(self, key: Any, name: str, tree: ast.FunctionDef | ast.Lambda, scope: Scope) -> Any:
        if key in self._stack:
            raise self.emitter.fail(
                "recursion",
                f"{name} calls itself: recursion cannot be lowered",
                "write it as a loop",
            )
        saved, here = self.scope, self.emitter.location
        scope.names[RETURN] = False
        self.scope = scope
        self.frames.append(scope)
        self._stack.append(key)
        try:
            if isinstance(tree, ast.Lambda):
                return self.value(tree.body)
            self.block(tree.body)
            names = self.scope.names
            returns, value = names[RETURN], names.get(VALUE)
            is_sometimes = isinstance(returns, Number) and value is not None
            if isinstance(value, Gone) or is_sometimes:
                self.emitter.location = here
                why = getattr(value, "why", "") or "on other paths it returns nothing"
                raise self.emitter.fail(
                    "return",
                    f"what {name} returns depends on run-time values: {why}",
                    "return a number, or tiles of one type, on every path",
                )
            return value
        finally:
            self.scope, self.emitter.location = saved, here
            self.frames.pop()
            self._stack.pop()

    # ---- statements ------------------------------------------------------------------------

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Run statements in order, up to one that leaves the block."""
        for index, statement in enumerate(statements):
            rest = statements[index + 1 :]
            if isinstance(statement, ast.If) and rest and self._divides(statement, rest):
                return
            if not isinstance(statement, ast.If) or not rest:
                self.statement(statement)
            leaves = self.pending()
            if isinstance(leaves, Number) and rest:
                self.at(rest[0])
                self.unless(leaves, lambda rest=rest: self.block(rest))
            if leaves is not False:
                return

    def _divides(self, node: ast.If, rest: Sequence[ast.stmt]) -> bool:
        """A run-time `if` of which one side leaves: the other goes on with the rest."""
        done = False

        def run() -> None:
            nonlocal done
            condition = self.condition(node)
            yes, no = list(node.body), list(node.orelse)
            if isinstance(condition, Number) and (_leaves(yes) or _leaves(no)):
                done = True
                if _leaves(yes):
                    no += rest
                if _leaves(no) and not _leaves(yes):
                    yes += rest
                self.if_(condition, yes, no)
            elif isinstance(condition, Number):
                self.if_(condition, yes, no)
            else:
                self.block(yes if condition else no)

        self.at(node)
        self.guarded(run)
        return done

    def statement(self, node: ast.stmt) -> None:
        self.at(node)
        method = getattr(self, f"do_{type(node).__name__}", None)
        if method is None:
            raise self.unsupported(node)
        self.guarded(lambda: method(node))

    def guarded(self, run: Callable[[], None]) -> None:
        """Run something of the user's; whatever goes wrong is an error at the line in hand."""
        try:
            run()
        except PtoError as error:
            raise self._at_this_line(error) from error.__cause__
        except NeedsConstant:
            raise
        except Exception as error:
            text = f"{type(error).__name__} while evaluating this at compile time: {error}"
            raise self.emitter.fail("python", text) from error

    def _at_this_line(self, error: PtoError) -> PtoError:
        """An error of the API looks for the user's line and finds the launch: no frame of the
        kernel is running while it is lowered."""
        launch, here = user_site().location, self.emitter.location
        if all(d.location != launch for d in error.diagnostics):
            return error
        return type(error)(
            replace(d, location=here) if d.location == launch else d for d in error.diagnostics
        )

    def unsupported(self, node: ast.AST) -> PtoError:
        name, advice = _REFUSED.get(type(node).__name__, (type(node).__name__, ""))
        return self.emitter.fail("unsupported", f"a kernel cannot contain {name}", advice)

    def at(self, node: ast.AST) -> None:
        """Note the line in hand."""
        line = getattr(node, "lineno", None)
        if line is None:
            return
        scope = self.scope
        col = node.col_offset + scope.indent  # type: ignore[attr-defined]
        end = getattr(node, "end_col_offset", None)
        same_line = getattr(node, "end_lineno", line) == line
        stop = end + scope.indent + 1 if end is not None and same_line else 0
        self.emitter.location = Location(scope.file, line + scope.first_line - 1, col + 1, stop)

    @property
    def line(self) -> Line:
        """The line in hand."""
        return self.emitter.location.file, self.emitter.location.line

    def do_Expr(self, node: ast.Expr) -> None:
        self.value(node.value)

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value))

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        target, operation = node.target, _IN_PLACE[type(node.op)]
        if isinstance(target, ast.Name):
            old = self.value(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            self.assign(target, self._updated(operation, old, self.value(node.value)))
            return
        held = self.value(target.value)
        if isinstance(target, ast.Attribute):
            old = self._attribute(held, target)
            new = self._updated(operation, old, self.value(node.value))
            self._set_attribute(held, target, new)
            return
        index = self.value(target.slice)
        old = self._item(held, index)
        self._set_item(held, index, self._updated(operation, old, self.value(node.value)))

    def _updated(self, operation: Callable[[Any, Any], Any], old: Any, other: Any) -> Any:
        self.touch(old, "an augmented assignment")  # `+=` changes a list itself
        return operation(old, other)

    def do_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.scope.names.pop(target.id)
            elif isinstance(target, ast.Subscript):
                held = self.value(target.value)
                self.touch(held, "del")
                del held[self.value(target.slice)]
            else:
                raise self.unsupported(node)

    def do_Return(self, node: ast.Return) -> None:
        self.scope.names[VALUE] = self.value(node.value) if node.value else None
        self.scope.names[RETURN] = True

    def do_Break(self, node: ast.Break) -> None:
        self.scope.names[BREAK] = True

    def do_Continue(self, node: ast.Continue) -> None:
        self.scope.names[CONTINUE] = True

    def do_Assert(self, node: ast.Assert) -> None:
        holds = self.value(node.test)
        if isinstance(holds, Number):
            self.trap_unless(holds)
        elif not holds:
            text = self.value(node.msg) if node.msg else ast.unparse(node.test)
            raise self.emitter.fail("assert", f"assertion fails at compile time: {text}")

    def do_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            raise self.emitter.fail(
                "nested-function",
                "a function defined in a kernel has no decorators",
                "define the decorated function outside",
            )
        for inner in ast.walk(node):
            if isinstance(inner, ast.Nonlocal | ast.Global | ast.Yield | ast.YieldFrom):
                self.at(inner)
                raise self.unsupported(inner)
        self.scope.names[node.name] = self._closure(node.name, node)

    def get_Lambda(self, node: ast.Lambda) -> Closure:
        return self._closure("the lambda", node)

    def _closure(self, name: str, node: ast.FunctionDef | ast.Lambda) -> Closure:
        """A function that sees the variables around it, as they are when it is called."""
        given, kinds = node.args, inspect.Parameter
        places = [*given.posonlyargs, *given.args]
        defaults: list[Any] = [kinds.empty] * (len(places) - len(given.defaults))
        defaults += [self.value(each) for each in given.defaults]
        found = [
            kinds(arg.arg, kinds.POSITIONAL_OR_KEYWORD, default=default)
            for arg, default in zip(places, defaults, strict=True)
        ]
        if given.vararg:
            found.append(kinds(given.vararg.arg, kinds.VAR_POSITIONAL))
        for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            value = kinds.empty if default is None else self.value(default)
            found.append(kinds(arg.arg, kinds.KEYWORD_ONLY, default=value))
        if given.kwarg:
            found.append(kinds(given.kwarg.arg, kinds.VAR_KEYWORD))
        return Closure(name, inspect.Signature(found), node, self.scope)

    def do_With(self, node: ast.With) -> None:
        item, *more = node.items
        if more:
            raise self.emitter.fail("with", "one context per with statement in a kernel")
        manager = self.value(item.context_expr)
        enter = getattr(manager, "lower", None)
        if enter is None:
            raise self.emitter.fail(
                "with",
                f"{type(manager).__name__} cannot be used in a kernel",
                "cube_section(), vector_section() and vecscope() can",
            )
        enter(self, lambda: self.section(node, manager.hides))

    def section(self, node: ast.With, why: str) -> None:
        """The body of a section or scope: nothing computed in it leaves it."""
        here, before = self.emitter.location, dict(self.scope.names)
        with self.emitter.heap.region() as journal:
            self.block(node.body)
            leaves = self.pending()
        if leaves is not False:
            self.emitter.location = here
            raise self.emitter.fail(
                "section",
                "a section is not left by break, continue or return",
                "put the section into the branch, instead of the branch into the section",
            )
        for entry in journal.entries.values():
            put_cells(entry.held, entry.after)
        for name, value in self.scope.names.items():
            if isinstance(value, Number) and not is_same(before.get(name), value):
                self.scope.names[name] = Gone(name, here, "section", why)

    def do_If(self, node: ast.If) -> None:
        condition = self.condition(node)
        if isinstance(condition, Number):
            self.if_(condition, node.body, node.orelse)
        else:
            self.block(node.body if condition else node.orelse)

    def if_(self, condition: Number, yes: Sequence[ast.stmt], no: Sequence[ast.stmt]) -> None:
        self.branch(truth(self.emitter, condition), lambda: self.block(yes), lambda: self.block(no))

    def condition(self, node: ast.If) -> Any:
        self.at(node.test)
        return self.value(node.test)

    # ---- assignment ------------------------------------------------------------------------

    def assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.scope.names[target.id] = value
            _give_name(value, target.id)
            if self.scope is self.frames[0]:
                note(self.emitter.names, self.line, target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target.elts, list(value))
        elif isinstance(target, ast.Subscript):
            self._set_item(self.value(target.value), self.value(target.slice), value)
        elif isinstance(target, ast.Attribute):
            self._set_attribute(self.value(target.value), target, value)
        else:
            raise self.unsupported(target)

    def _unpack(self, targets: list[ast.expr], values: list[Any]) -> None:
        starred = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        if starred is not None and len(values) >= len(targets) - 1:
            behind = len(targets) - starred - 1
            stop = len(values) - behind
            values = [*values[:starred], values[starred:stop], *values[stop:]]
        if len(values) != len(targets):
            counts = f"{len(targets)} names, {len(values)} values"
            raise self.emitter.fail("unpack", f"cannot unpack: {counts}")
        for each, part in zip(targets, values, strict=True):
            self.assign(each.value if isinstance(each, ast.Starred) else each, part)

    def touch(self, held: Any, what: str) -> None:
        """Something is about to be changed: refused where it outlives the kernel."""
        if is_mutable(held) and not isinstance(held, Symbol) and id(held) in reached(self.foreign):
            raise self.emitter.fail(
                "global-state",
                f"{what} changes a {type(held).__name__} that was made outside the kernel",
                "make it in the kernel, or pass arrays to write to",
            )
        self.emitter.heap.touch(held, what, self.emitter.location)

    def _set_item(self, held: Any, index: Any, value: Any) -> None:
        self.touch(held, "the assignment of an element")
        if isinstance(held, Symbol):
            raise self.emitter.fail(
                "assignment",
                f"{held!r} cannot be changed by assigning to its elements",
                "TSTORE, SetValue and store_scalar write memory",
            )
        held[self._key(held, index)] = value

    def _set_attribute(self, held: Any, target: ast.Attribute, value: Any) -> None:
        self.touch(held, f"the assignment of .{target.attr}")
        if isinstance(held, Symbol) or not is_mutable(held):
            raise self.emitter.fail(
                "assignment", f"{held!r} has no attribute that a kernel can assign"
            )
        setattr(held, target.attr, value)

    def _key(self, held: Any, index: Any) -> Any:
        """The index of a list or the key of a dict, which must be known."""
        if isinstance(held, dict) and isinstance(index, Number):
            raise self.emitter.fail(
                "needs-constant",
                "the keys of a dict are known at compile time, but this one is a run-time value",
                "compare it: `if key == 1: ...`",
            )
        return index

    # ---- expressions -----------------------------------------------------------------------

    def value(self, node: ast.expr) -> Any:
        method = getattr(self, f"get_{type(node).__name__}", None)
        if method is None:
            self.at(node)
            raise self.unsupported(node)
        return method(node)

    def get_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def get_Name(self, node: ast.Name) -> Any:
        scope: Scope | None = self.scope
        while scope is not None:
            if node.id in scope.names:
                found = scope.names[node.id]
                if isinstance(found, Gone):
                    self.at(node)
                    raise self._gone(found)
                if scope is self.frames[0]:  # names of helpers say nothing about the kernel
                    note(self.emitter.names, self.line, node.id, found)
                return found
            scope = scope.enclosing
        for names in (self.scope.outer, vars(builtins)):
            if node.id in names:
                found = names[node.id]
                note_global(self.emitter.names, self.line, node.id, found, names)
                if is_mutable(found) and all(found is not each for each in self.foreign):
                    self.foreign.append(found)
                return found
        self.at(node)
        known = [*self.scope.names, *self.scope.outer]
        raise unknown_name(node.id, known, self.emitter.location)

    def _gone(self, found: Gone) -> PtoError:
        if found.why:
            return self.emitter.fail(
                "gone",
                f"what {found.name} is behind the {found.what} cannot be told: {found.why}",
                f"give {found.name} a number, tiles of one type, or a tuple of them on every path; "
                "a list or dict stays one, and its elements change",
                [Note(f"the {found.what}", found.location)],
            )
        return self.emitter.fail(
            "gone",
            f"{found.name} is assigned only inside the {found.what}",
            f"assign {found.name} before the {found.what}",
            [Note("assigned here", found.location)],
        )

    def get_Attribute(self, node: ast.Attribute) -> Any:
        return self._attribute(self.value(node.value), node)

    def _attribute(self, subject: Any, node: ast.Attribute) -> Any:
        try:
            return getattr(subject, node.attr)
        except AttributeError as error:
            self.at(node)
            names = (callable(getattr(t, node.attr, None)) for t in HAVE_CONTENTS)
            if isinstance(subject, Symbol) and any(names):
                raise self.emitter.fail(
                    "contents",
                    f".{node.attr} looks at contents, which are known only at run time",
                    'TPRINT shows a tile, GetValue takes an element; path="eager" just runs',
                ) from None
            raise unknown_attribute(error, self.emitter.location) from None

    def get_Subscript(self, node: ast.Subscript) -> Any:
        subject, index = self.value(node.value), self.value(node.slice)
        self.at(node)
        found = self._item(subject, index)
        note_written(self.emitter.names, self.line, node, found)
        return found

    def _item(self, subject: Any, index: Any) -> Any:
        taken = getattr(subject, "lower_item", None)
        if taken:
            return taken(index)
        if isinstance(index, Number) and isinstance(subject, list | tuple):
            return chosen_tile(self.emitter, subject, index)
        return subject[self._key(subject, index)]

    def get_Slice(self, node: ast.Slice) -> slice:
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if p is None else self.value(p) for p in parts))

    def get_Tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self._elements(node.elts))

    def get_List(self, node: ast.List) -> list[Any]:
        return self._elements(node.elts)

    def _elements(self, nodes: Sequence[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for each in nodes:
            if isinstance(each, ast.Starred):
                found += list(self.value(each.value))
            else:
                found.append(self.value(each))
        return found

    def get_ListComp(self, node: ast.ListComp) -> list[Any]:
        """A list whose length is known: of tiles, addresses, types."""
        saved = dict(self.scope.names)
        found: list[Any] = []
        self._comprehend(node.generators, lambda: found.append(self.value(node.elt)))
        self.scope.names = saved  # its variables are its own
        return found

    def _comprehend(self, loops: Sequence[ast.comprehension], emit: Callable[[], None]) -> None:
        if not loops:
            emit()
            return
        first, *rest = loops
        for each in self.value(first.iter):
            self.assign(first.target, each)
            if all(self._known(test) for test in first.ifs):
                self._comprehend(rest, emit)

    def get_DictComp(self, node: ast.DictComp) -> dict[Any, Any]:
        saved = dict(self.scope.names)
        found: dict[Any, Any] = {}

        def add() -> None:
            found[self._key(found, self.value(node.key))] = self.value(node.value)

        self._comprehend(node.generators, add)
        self.scope.names = saved
        return found

    def get_Dict(self, node: ast.Dict) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found.update(self.value(value))
            else:
                found[self._key(found, self.value(key))] = self.value(value)
        return found

    def get_Set(self, node: ast.Set) -> set[Any]:
        return set(self._elements(node.elts))

    def get_NamedExpr(self, node: ast.NamedExpr) -> Any:
        found = self.value(node.value)
        self.assign(node.target, found)
        return found

    def _known(self, node: ast.expr) -> bool:
        found = self.value(node)
        if isinstance(found, Number):
            self.at(node)
            raise self.emitter.fail(
                "comprehension", "the `if` of a comprehension is known at compile time"
            )
        return bool(found)

    def get_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        self.at(node)
        return _BINARY[type(node.op)](left, right)

    def get_UnaryOp(self, node: ast.UnaryOp) -> Any:
        operand = self.value(node.operand)
        self.at(node)
        if isinstance(node.op, ast.Not):
            if isinstance(operand, Number):
                return inverted(self.emitter, truth(self.emitter, operand))
            return not operand
        if isinstance(node.op, ast.USub):
            return -operand
        return +operand if isinstance(node.op, ast.UAdd) else ~operand

    def get_Compare(self, node: ast.Compare) -> Any:
        return self._compared(node, self.value(node.left), 0)

    def _compared(self, node: ast.Compare, left: Any, at: int) -> Any:
        """The comparisons from one place on: `a < b < c` looks at c only where a < b."""
        right = self.value(node.comparators[at])
        self.at(node)
        if isinstance(node.ops[at], ast.In | ast.NotIn):
            found = self._contains(right, left, isinstance(node.ops[at], ast.In))
        else:
            found = _COMPARE[type(node.ops[at])](left, right)
        if at + 1 == len(node.ops):
            return found
        if isinstance(found, Number):
            return self.chosen(found, lambda: self._compared(node, right, at + 1), lambda: False)
        return self._compared(node, right, at + 1) if found else found

    def _contains(self, values: Any, one: Any, is_wanted: bool) -> Any:
        """`one in values`, compared element by element where they are run-time numbers."""
        symbols = [one, *values] if isinstance(values, list | tuple) else []
        if not any(isinstance(each, Number) for each in symbols):
            return (one in values) == is_wanted
        found: Any = False
        for each in values:
            found = found | compare(self.emitter, "==", one, each)
        if not isinstance(found, Number):
            return found == is_wanted
        return found if is_wanted else inverted(self.emitter, found)

    def get_BoolOp(self, node: ast.BoolOp) -> Any:
        return self._joined(isinstance(node.op, ast.And), node.values)

    def _joined(self, is_and: bool, nodes: Sequence[ast.expr]) -> Any:
        """`and`, `or`: later operands are evaluated only where the first do not decide."""
        first, *rest = nodes
        found = self.value(first)
        if not rest:
            return found
        if not isinstance(found, Number):
            return self._joined(is_and, rest) if bool(found) == is_and else found
        holds = truth(self.emitter, found)
        short = found if found.type != I1 else not is_and

        def go_on() -> Any:
            return self._joined(is_and, rest)

        def decided() -> Any:
            return short

        return self.chosen(holds, *((go_on, decided) if is_and else (decided, go_on)))

    def get_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.value(node.test)
        if not isinstance(condition, Number):
            return self.value(node.body if condition else node.orelse)
        self.at(node)
        holds = truth(self.emitter, condition)
        return self.chosen(holds, lambda: self.value(node.body), lambda: self.value(node.orelse))

    def get_JoinedStr(self, node: ast.JoinedStr) -> str:
        return "".join(str(self.value(part)) for part in node.values)

    def get_FormattedValue(self, node: ast.FormattedValue) -> str:
        value = self.value(node.value)
        if isinstance(value, Symbol):
            self.at(node)
            raise self.emitter.fail(
                "text", "a text cannot hold a run-time value", "print(text, value) shows one"
            )
        convert: Callable[[Any], Any] = {-1: lambda v: v, 115: str, 114: repr, 97: ascii}[
            node.conversion
        ]
        spec = self.value(node.format_spec) if node.format_spec else ""
        return format(convert(value), spec)

    def get_Call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        args = self._elements(node.args)
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                kwargs |= self.value(keyword.value)
            else:
                kwargs[keyword.arg] = self.value(keyword.value)
        self.at(node)
        return self.apply(self, function, args, kwargs)


def _parse(
    function: FunctionType, emitter: Emitter
) -> tuple[ast.FunctionDef | ast.Lambda, int, int]:
    """The syntax tree of a function, with the line and column its source starts at."""
    try:
        if function.__name__ == "<lambda>":
            return _lambda(function), 1, 0
        lines, first_line = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise emitter.fail(
            "source",
            f"the source of {function.__name__} cannot be found, so it cannot be lowered",
            "define kernels and their helpers in a file, not with exec",
        ) from None
    source = "".join(lines)
    indent = len(source) - len(source.lstrip())
    tree = ast.parse(textwrap.dedent(source)).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise emitter.fail("source", f"{function.__name__} is not a plain function")
    return tree, first_line, indent


def _lambda(function: FunctionType) -> ast.Lambda:
    """The lambda of a file that a function was made from; there may be several on its line."""
    spans = set(function.__code__.co_positions())  # also of all that the body returns
    for node in ast.walk(ast.parse("".join(inspect.findsource(function)[0]))):
        if isinstance(node, ast.Lambda):
            body = node.body
            if (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset) in spans:
                return node
    raise OSError("the file has changed")


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether a piece of code ends by leaving its block."""
    return bool(body) and isinstance(body[-1], ast.Return | ast.Break | ast.Continue)
