"""Interprets the body of a kernel: Python over known values, operations over symbols.

Loops and branches over run-time values become `scf` operations. A variable that exists before a
loop and is assigned in it is carried; one that is first assigned inside is gone afterwards, and
using it is an error that says so. A loop whose body needs its variable at compile time (to pick a
tile from a list, say) is unrolled when its bounds are known.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

from ptokit.base.diagnostics import Note, PtoError
from ptokit.base.location import Location, user_site
from ptokit.frontend.advice import unknown_attribute, unknown_name
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.loops import Loops
from ptokit.frontend.lowering.symbols import (
    UNNAMED,
    BufferSymbol,
    GlobalSymbol,
    Gone,
    NeedsConstant,
    Number,
    compare,
    select,
)

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
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


class Returned(Exception):  # noqa: N818 - control flow, not an error
    """A `return` was reached."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


@dataclass
class Scope:
    """Names of one function being interpreted."""

    names: dict[str, Any]
    outer: dict[str, Any]
    file: str
    first_line: int
    indent: int
    depth: int = 0  # of regions that were open when it was called


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
        self._stack: list[FunctionType] = []

    # ---- functions -------------------------------------------------------------------------

    def run(self, function: FunctionType, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Interpret a call of a Python function; returns its value."""
        if function in self._stack:
            raise self.emitter.fail(
                "recursion", f"{function.__name__} calls itself, which a kernel cannot do"
            )
        tree, first_line, indent = _parse(function, self.emitter)
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        outer = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
        saved, here = self.scope, self.emitter.location
        file = inspect.getsourcefile(function) or "<kernel>"
        depth = self.emitter.depth
        self.scope = Scope(dict(bound.arguments), outer, file, first_line, indent, depth)
        self._stack.append(function)
        try:
            self.block(tree.body)
        except Returned as returned:
            return returned.value
        finally:
            self.scope, self.emitter.location = saved, here
            self._stack.pop()
        return None

    # ---- statements ------------------------------------------------------------------------

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Run statements in order; an early return splits the rest off into an else branch."""
        for index, statement in enumerate(statements):
            if isinstance(statement, ast.If) and _ends_in_return(statement.body):
                condition = self.condition(statement)
                if isinstance(condition, Number):
                    rest = [*statement.orelse, *statements[index + 1 :]]
                    self.branch(statement, condition, statement.body[:-1], rest)
                    raise Returned(None)
                self.block(statement.body if condition else statement.orelse)
                continue
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        self.at(node)
        method = getattr(self, f"do_{type(node).__name__}", None)
        if method is None:
            raise self.unsupported(node)
        try:
            method(node)
        except PtoError as error:
            raise self._at_this_line(error) from error.__cause__
        except (Returned, NeedsConstant):
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
        advice = {
            "Try": "errors cannot be caught inside a kernel; check before launching",
            "Break": "end the loop by its condition: `while` with a flag, or min() in range()",
            "Continue": "put the rest of the body under `if`",
            "GeneratorExp": "write a list: [... for i in range(n)]",
            "Yield": "a kernel returns nothing",
            "Lambda": "define a helper function with def",
            "Global": "pass the value as a parameter",
            "Nonlocal": "pass the value as a parameter",
        }
        name = type(node).__name__
        return self.emitter.fail(
            "unsupported", f"a kernel cannot contain {name}", advice.get(name, "")
        )

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
        load = ast.copy_location(_as_load(node.target), node.target)
        result = _BINARY[type(node.op)](self.value(load), self.value(node.value))
        self.assign(node.target, result)

    def do_Return(self, node: ast.Return) -> None:
        if self.emitter.depth > self.scope.depth:
            raise self.emitter.fail(
                "return",
                "a kernel returns only at its end or at the end of a branch of its body",
                "move the rest of the kernel into an else branch",
            )
        raise Returned(self.value(node.value) if node.value else None)

    def do_Assert(self, node: ast.Assert) -> None:
        holds = self.value(node.test)
        if isinstance(holds, Number):
            self.trap_unless(holds)
        elif not holds:
            text = self.value(node.msg) if node.msg else ast.unparse(node.test)
            raise self.emitter.fail("assert", f"assertion fails at compile time: {text}")

    def do_FunctionDef(self, node: ast.FunctionDef) -> None:
        raise self.emitter.fail(
            "nested-function",
            "a kernel cannot define functions",
            "define the helper outside; kernels may call it",
        )

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
                "cube_section() and vector_section() can",
            )
        enter(self, lambda: self.block(node.body))

    def do_If(self, node: ast.If) -> None:
        condition = self.condition(node)
        if isinstance(condition, Number):
            self.branch(node, condition, node.body, node.orelse)
        else:
            self.block(node.body if condition else node.orelse)

    def condition(self, node: ast.If) -> Any:
        self.at(node.test)
        return self.value(node.test)

    # ---- assignment ------------------------------------------------------------------------

    def assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.scope.names[target.id] = value
            if isinstance(value, BufferSymbol | GlobalSymbol) and value.value.name in UNNAMED:
                value.value.name = target.id
        elif isinstance(target, ast.Tuple | ast.List):
            values = list(value)
            if len(values) != len(target.elts):
                counts = f"{len(target.elts)} names, {len(values)} values"
                raise self.emitter.fail("unpack", f"cannot unpack: {counts}")
            for each, part in zip(target.elts, values, strict=True):
                self.assign(each, part)
        elif isinstance(target, ast.Subscript):
            self.value(target.value)[self.value(target.slice)] = value
        else:
            raise self.unsupported(target)

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
        scope = self.scope
        for names in (scope.names, scope.outer, vars(builtins)):
            if node.id in names:
                found = names[node.id]
                if isinstance(found, Gone):
                    raise self.emitter.fail(
                        "gone",
                        f"{found.name} is assigned only inside the {found.what}",
                        f"assign {found.name} before the {found.what}",
                        [Note("assigned here", found.location)],
                    )
                return found
        self.at(node)
        known = [*scope.names, *scope.outer]
        raise unknown_name(node.id, known, self.emitter.location)

    def get_Attribute(self, node: ast.Attribute) -> Any:
        subject = self.value(node.value)
        try:
            return getattr(subject, node.attr)
        except AttributeError as error:
            self.at(node)
            raise unknown_attribute(error, self.emitter.location) from None

    def get_Subscript(self, node: ast.Subscript) -> Any:
        subject, index = self.value(node.value), self.value(node.slice)
        self.at(node)
        taken = getattr(subject, "lower_item", None)
        return taken(index) if taken else subject[index]

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
            if all(self.value(test) for test in first.ifs):
                self._comprehend(rest, emit)

    def get_Dict(self, node: ast.Dict) -> dict[Any, Any]:
        pairs = zip(node.keys, node.values, strict=True)
        return {self.value(k): self.value(v) for k, v in pairs if k is not None}

    def get_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        self.at(node)
        return _BINARY[type(node.op)](left, right)

    def get_UnaryOp(self, node: ast.UnaryOp) -> Any:
        operand = self.value(node.operand)
        self.at(node)
        if isinstance(node.op, ast.Not):
            if isinstance(operand, Number):
                return compare(self.emitter, "==", operand, False)
            return not operand
        if isinstance(node.op, ast.USub):
            return -operand
        return +operand if isinstance(node.op, ast.UAdd) else ~operand

    def get_Compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        result: Any = True
        for symbol, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node)
            self.at(node)
            part = _COMPARE[type(symbol)](left, right)
            result = part if result is True else self.both(result, part)
            left = right
        return result

    def get_BoolOp(self, node: ast.BoolOp) -> Any:
        is_and = isinstance(node.op, ast.And)
        result = self.value(node.values[0])
        for each in node.values[1:]:
            if not isinstance(result, Number) and bool(result) != is_and:
                return result
            other = self.value(each)
            if isinstance(result, Number):
                result = self.both(result, other) if is_and else result | other
            else:
                result = other
        return result

    def both(self, left: Any, right: Any) -> Any:
        """Logical and, where either side may be a symbol."""
        if isinstance(left, Number) or isinstance(right, Number):
            return left & right
        return left and right

    def get_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.value(node.test)
        if not isinstance(condition, Number):
            return self.value(node.body if condition else node.orelse)
        yes, no = self.value(node.body), self.value(node.orelse)
        self.at(node)
        return select(self.emitter, condition, yes, no)

    def get_JoinedStr(self, node: ast.JoinedStr) -> str:
        parts = [
            v.value if isinstance(v, ast.Constant) else str(self.value(v)) for v in node.values
        ]
        return "".join(map(str, parts))

    def get_FormattedValue(self, node: ast.FormattedValue) -> str:
        return str(self.value(node.value))

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


def _parse(function: FunctionType, emitter: Emitter) -> tuple[ast.FunctionDef, int, int]:
    """The syntax tree of a function, with the line and column its source starts at."""
    try:
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


def _ends_in_return(body: Sequence[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Return) and body[-1].value is None


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    if isinstance(target, ast.Subscript):
        return ast.Subscript(target.value, target.slice, ast.Load())
    assert isinstance(target, ast.Attribute)
    return ast.Attribute(target.value, target.attr, ast.Load())
