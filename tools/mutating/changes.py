"""The changes that can be made to a module: one operator, constant, condition or statement each."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# What is put in the place of an operator.
COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}
# Words for people: a change inside them says nothing about what a program does.
SPOKEN = (ast.Raise, ast.Assert, ast.JoinedStr)
SPOKEN_CALLS = {"Diagnostic", "Refused", "Violation", "fix", "listed", "warn", "print"}
# The last one is an assertion: lengths that differ are a bug of ours.
SPOKEN_KEYWORDS = {"fix", "text", "note", "message", "doc", "strict"}
SPOKEN_NAMES = {"__repr__", "__str__", "describe", "render", "explain"}


@dataclass(frozen=True)
class Change:
    """One change of one place of one function."""

    file: str  # relative to the package
    function: str
    line: int
    was: str
    now: str
    start: int  # where the old text stands in the source
    end: int
    count: int  # among equal changes of the function

    @property
    def key(self) -> str:
        """Names the change whatever else changes around it."""
        return f"{self.file}:{self.function}: {self.was} -> {self.now}" + (
            f" ({self.count})" if self.count > 1 else ""
        )

    @property
    def rank(self) -> str:
        """A fixed order without rhyme or reason: edits elsewhere do not reshuffle a sample."""
        return hashlib.sha256(self.key.encode()).hexdigest()

    def applied(self, source: str) -> str:
        return source[: self.start] + self.now + source[self.end :]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function}: {self.was} -> {self.now}"


def changes(package: Path, path: Path) -> Iterator[Change]:
    """Every change of a module; of some nothing is left that compiles."""
    source = path.read_text("utf-8")
    seen: dict[tuple[str, str, str], int] = {}
    file = str(path.relative_to(package))
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    for function, node, was, now, start, end in finder.found:
        counted = seen[function, was, now] = seen.get((function, was, now), 0) + 1
        yield Change(file, function, node.lineno, was, now, start, end, counted)


def compiles(package: Path, change: Change) -> bool:
    """Whether the module is still one with a change: asked of the few that are drawn."""
    path = package / change.file
    try:
        compile(change.applied(path.read_text("utf-8")), str(path), "exec")
    except SyntaxError:
        return False
    return True


Found = tuple[str, ast.stmt | ast.expr, str, str, int, int]


class _Finder(ast.NodeVisitor):
    def __init__(self, source: str) -> None:
        self.source = source
        self.found: list[Found] = []
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._scope: list[str] = []
        self._inside = 0  # functions and lambdas around

    def _at(self, line: int, column: int) -> int:
        text = self.source[self._lines[line - 1] : self._lines[line]]
        return self._lines[line - 1] + len(text.encode()[:column].decode())

    def _span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._at(node.lineno, node.col_offset)
        return start, self._at(node.end_lineno, node.end_col_offset)

    def _note(self, node: ast.stmt | ast.expr, now: str, start: int, end: int) -> None:
        was = " ".join(self.source[start:end].split())
        if self._inside:
            self.found.append((".".join(self._scope) or "module", node, was, now, start, end))

    # ---- scopes ----

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            self._scope.append(node.name)
            self.visit(decorator)  # the rules of an instruction stand here
            self._scope.pop()
        if node.name in SPOKEN_NAMES:
            return
        self._scope.append(node.name)
        self._inside += 1
        for statement in node.body:
            self.visit(statement)
        self._inside -= 1
        self._scope.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scope.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._scope.pop()

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._inside += 1
        self.visit(node.body)
        self._inside -= 1

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, SPOKEN) or _is_type_checking(node):
            return
        if isinstance(node, ast.Call) and _name(node.func) in SPOKEN_CALLS:
            return
        if isinstance(node, ast.keyword) and node.arg in SPOKEN_KEYWORDS:
            return
        super().generic_visit(node)

    # ---- changes ----

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            start, end = self._span(left)[1], self._span(right)[0]
            was, now = COMPARISONS[type(op)]
            at = self.source.find(was, start, end)
            if at >= 0:
                self._replace_word(node, at, was, now)
            left = right
        self.generic_visit(node)

    def _replace_word(self, node: ast.expr, at: int, was: str, now: str) -> None:
        """Replace an operator, and show the whole of the smaller expression around it."""
        start, end = self._span(node)
        text = self.source[start:at] + now + self.source[at + len(was) : end]
        self._note(node, text, start, end)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        pair = ARITHMETIC.get(type(node.op))
        if pair is not None and not isinstance(node.left, ast.Constant | ast.JoinedStr):
            start, end = self._span(node.left)[1], self._span(node.right)[0]
            at = self.source.find(pair[0], start, end)
            if at >= 0:
                self._replace_word(node, at, *pair)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        was, now = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        start, end = self._span(node.values[0])[1], self._span(node.values[1])[0]
        at = self.source.find(was, start, end)
        if at >= 0:
            self._replace_word(node, at, was, now)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start, end = self._span(node)
            inner = self._span(node.operand)
            self._note(node, self.source[slice(*inner)], start, end)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._note(node, str(not node.value), *self._span(node))
        elif isinstance(node.value, int):
            self._note(node, str(node.value + 1), *self._span(node))

    def visit_If(self, node: ast.If) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        if not isinstance(test, ast.Compare | ast.UnaryOp):
            start, end = self._span(test)
            self._note(test, f"(not ({self.source[start:end]}))", start, end)

    def visit_Call(self, node: ast.Call) -> None:
        name = _name(node.func)
        if name in OPPOSITES and isinstance(node.func, ast.Name):
            start, end = self._span(node)
            self._note(node, OPPOSITES[name] + self.source[start + len(name) : end], start, end)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._note(node, "pass", *self._span(node))
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._note(node, "pass", *self._span(node))
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._note(node, "pass", *self._span(node))


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING"


def all_changes(package: Path, folder: str, without: tuple[str, ...] = ()) -> Iterator[Change]:
    """The changes of every module of a part of the package, the folders of other parts left out."""
    apart = [package / other for other in without]
    for path in sorted((package / folder).rglob("*.py")):
        if not any(path.is_relative_to(other) for other in apart):
            yield from changes(package, path)
