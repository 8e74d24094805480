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
import inspect
import operator
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError
from ptokit.base.location import python_span, user_site
from ptokit.frontend.lowering.branches import BREAK, CONTINUE, RETURN, VALUE
from ptokit.frontend.lowering.carry import is_same
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.expressions import BINARY, Expressions, Scope
from ptokit.frontend.lowering.heap import put_cells
from ptokit.frontend.lowering.numbers import NeedsConstant, Number, truth
from ptokit.frontend.lowering.symbols import Gone
from ptokit.ir.sourcenames import Line

_IN_PLACE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    kind: getattr(operator, f"i{function.__name__.strip('_')}") for kind, function in BINARY.items()
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


class KernelLowering(Expressions):
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

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return self.apply(self, function, args, kwargs)

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
        start = node.col_offset + scope.indent  # type: ignore[attr-defined]
        end = getattr(node, "end_col_offset", None)
        same_line = getattr(node, "end_lineno", line) == line
        stop = end + scope.indent if end is not None and same_line else None
        self.emitter.location = python_span(scope.file, line + scope.first_line - 1, start, stop)

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
