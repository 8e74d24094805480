"""A program as its author sees it: statements in blocks, loops around them, functions around those.

Where a flag has to be set and waited for is a question of blocks and loops of the *source*: what
is inserted there runs as often as the statements beside it, on every path.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from functools import cached_property

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import ProgramError
from ptokit.ir.core import Block as IrBlock
from ptokit.ir.flow import is_loop
from ptokit.ir.lexer import Source, Tokens
from ptokit.ir.parser import parse


@dataclass(eq=False)
class Statement:
    """Some whole lines of a program, from 1, with the blocks inside it."""

    first: int
    last: int
    block: Block
    is_loop: bool = False
    function: str = ""  # the one that it defines
    calls: frozenset[str] = frozenset()  # functions that it calls by name
    node: ast.stmt | None = None  # of Python
    blocks: list[Block] = field(default_factory=list["Block"])

    @property
    def around(self) -> Iterator[Statement]:
        """The statements it stands in, the nearest first, up to its function."""
        outer = self.block.owner
        while outer is not None:
            yield outer
            outer = None if outer.function else outer.block.owner

    def inside(self) -> Iterator[Statement]:
        """Itself and all statements in it, in the order of their lines."""
        yield self
        for block in self.blocks:
            for each in block.statements:
                yield from each.inside()


@dataclass(eq=False)
class Block:
    """Statements that run one after the other."""

    owner: Statement | None
    indent: str = ""
    statements: list[Statement] = field(default_factory=list[Statement])


@dataclass(frozen=True)
class Meeting:
    """Two statements of one block, each with one of two lines inside, and the loop around both."""

    earlier: Statement
    later: Statement
    loop: Statement | None

    @property
    def is_forward(self) -> bool:
        return self.earlier.last < self.later.first


class Outline:
    """The statements of a program."""

    def __init__(self, text: str, top: Block, is_python: bool) -> None:
        self.text = text
        self.lines = text.splitlines()
        self.top = top
        self.is_python = is_python
        # Of one program many things may be found, and of each all of it is looked at.
        self._codes: dict[Statement, str] = {}
        self._related: dict[str, tuple[Statement, ...]] = {}

    def __iter__(self) -> Iterator[Statement]:
        for each in self.top.statements:
            yield from each.inside()

    def find(self, line: int) -> Statement | None:
        """The innermost statement of a line."""
        return self._innermost.get(line)

    @cached_property
    def _innermost(self) -> dict[int, Statement]:
        return {line: each for each in self for line in range(each.first, each.last + 1)}

    def code(self, statement: Statement) -> str:
        """A statement as it is written, on one line, without comments."""
        if statement not in self._codes:
            self._codes[statement] = self._written(statement)
        return self._codes[statement]

    def _written(self, statement: Statement) -> str:
        if statement.node is not None:
            return ast.unparse(statement.node)
        lines = self.lines[statement.first - 1 : statement.last]
        return " ".join(re.sub(r"//.*", "", line).strip() for line in lines).strip()

    @cached_property
    def _callers(self) -> dict[str, list[Statement]]:
        found: dict[str, list[Statement]] = {}
        for each in self:
            for name in each.calls:
                found.setdefault(name, []).append(each)
        return found

    def related(self, statement: Statement) -> tuple[Statement, ...]:
        """All statements that run with one: of its function, its callers, and what they call."""
        name = _function(statement)
        if name not in self._related:
            self._related[name] = tuple(self._run_with(name))
        return self._related[name]

    def _run_with(self, name: str) -> Iterator[Statement]:
        functions = {each.function: each for each in self if each.function}

        def closure(names: Iterable[str], more: Callable[[str], Iterable[str]]) -> list[str]:
            todo, seen = list(names), dict[str, None]()
            while todo:
                name = todo.pop()
                if name in functions and name not in seen:
                    seen[name] = None
                    todo += more(name)
            return list(seen)

        callers = closure([name], lambda name: map(_function, self._calls_of(name)))
        everyone = closure(
            callers, lambda name: [c for s in functions[name].inside() for c in s.calls]
        )
        for name in everyone:
            yield from functions[name].inside()

    def _calls_of(self, name: str) -> list[Statement]:
        return self._callers.get(name, [])

    def _seen_from(self, statement: Statement, depth: int = 4) -> Iterator[Statement]:
        """A statement, and the calls by which it comes to run."""
        yield statement
        if depth:
            for call in self._calls_of(_function(statement)):
                yield from self._seen_from(call, depth - 1)

    def meetings(self, earlier: Statement, later: Statement) -> Iterator[Meeting]:
        """Where two statements are part of one block: in their function, or in one that calls it.

        A function may be called from several places, which of them is meant nobody knows here.
        """
        seen: set[tuple[int, int]] = set()
        for one in self._seen_from(earlier):
            for other in self._seen_from(later):
                met = _meeting(one, other)
                if met is not None and (met.earlier.first, met.later.first) not in seen:
                    seen.add((met.earlier.first, met.later.first))
                    yield met


def _function(statement: Statement) -> str:
    """The name of the function that a statement belongs to."""
    return next((each.function for each in statement.around if each.function), "")


def _meeting(one: Statement, other: Statement) -> Meeting | None:
    mine = {id(each.block): each for each in reversed((one, *one.around)) if not each.function}
    for each in (other, *other.around):
        if each.function:
            return None
        if id(each.block) in mine:
            loop = next((s for s in each.around if s.is_loop), None)
            return Meeting(mine[id(each.block)], each, loop)
    return None


def outline(text: str, file: str) -> Outline | None:
    """The outline of a program; None: it cannot be read."""
    is_python = file.endswith(".py") or file.startswith("<ipython")  # which names cells so
    return of_python(text) if is_python else of_text(text)


# ---- Python --------------------------------------------------------------------------------------


def of_python(text: str) -> Outline | None:
    """The outline of a Python source."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    top = Block(None)
    _fill(top, tree.body, text.splitlines())
    return Outline(text, top, is_python=True)


def _fill(block: Block, nodes: Iterable[ast.stmt], lines: list[str]) -> None:
    for node in nodes:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        made = Statement(first, node.end_lineno or node.lineno, block, node=node)
        made.is_loop = isinstance(node, ast.For | ast.While)
        if isinstance(node, ast.FunctionDef):
            made.function = node.name
        bodies = [body for body in _bodies(node) if body]
        own: list[ast.AST] = [node]
        # A block that shares a line with its head cannot be added to.
        if bodies and all(_begins_line(body[0], lines) for body in bodies):
            for body in bodies:
                head = lines[body[0].lineno - 1]
                inner = Block(made, head[: len(head) - len(head.lstrip())])
                _fill(inner, body, lines)
                made.blocks.append(inner)
            own = [each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.stmt)]
        made.calls = frozenset(
            call.func.id
            for part in own
            for call in ast.walk(part)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        )
        block.statements.append(made)


def _begins_line(node: ast.stmt, lines: list[str]) -> bool:
    return not lines[node.lineno - 1][: node.col_offset].strip()


def _bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a statement; an `elif` is a block of the `if` it belongs to."""
    match node:
        case ast.If():
            yield node.body
            match node.orelse:
                case [ast.If() as other] if other.col_offset == node.col_offset:
                    yield from _bodies(other)
                case rest:
                    yield rest
        case ast.Try() | ast.TryStar():
            yield node.body
            yield from (handler.body for handler in node.handlers)
            yield node.orelse
            yield node.finalbody
        case ast.Match():
            yield from (case.body for case in node.cases)
        case _:
            yield getattr(node, "body", [])
            yield getattr(node, "orelse", [])


# ---- text ----------------------------------------------------------------------------------------


def of_text(text: str) -> Outline | None:
    """The outline of a program in PTO text."""
    try:
        module = parse(text)
    except ProgramError:
        return None
    lines, top = text.splitlines(), Block(None)
    braces = _braces(text)
    for function in module.functions:
        if function.body is not None:
            first = function.location.line
            made = Statement(first, first, top, function=function.name)
            _regions(made, [function.body], lines, braces)
            top.statements.append(made)
    return Outline(text, top, is_python=False)


def _regions(made: Statement, regions: list[IrBlock], lines: list[str], braces: _Braces) -> None:
    """Lay the regions of an operation over the braces behind its first line."""
    begin = made.first
    for region in regions:
        found = next((pair for pair in braces if pair[0] >= begin), None)
        if found is None:
            return
        opening, closing = found
        begin = made.last = closing
        inside = [op for op in region.ops if opening < op.location.line < closing]
        head = lines[inside[0].location.line - 1] if inside else ""
        block = Block(made, head[: len(head) - len(head.lstrip())])
        made.blocks.append(block)
        for index, op in enumerate(inside):
            line = op.location.line
            behind = inside[index + 1].location.line if index + 1 < len(inside) else closing
            if block.statements and block.statements[-1].first == line:
                continue
            each = Statement(line, max(line, behind - 1), block, is_loop(op))
            block.statements.append(each)
            if op.regions:
                _regions(each, op.regions, lines, braces)
            else:
                while each.last > line and _is_idle(lines[each.last - 1]):
                    each.last -= 1


def _is_idle(line: str) -> bool:
    """Whether nothing but a comment stands on a line."""
    return not re.sub(r"(//|# ).*", "", line).strip()


_Braces = list[tuple[int, int]]


def _braces(text: str) -> _Braces:
    """The lines of braces that belong together, where there are lines between them."""
    source = Source(text, "")
    tokens = Tokens(source)
    found: _Braces = []
    open_: list[int] = []
    for kind, word, start in zip(tokens.kinds, tokens.texts, tokens.starts, strict=True):
        if kind == "mark" and word == "{":
            open_.append(source.line(start))
        elif kind == "mark" and word == "}" and open_:
            pair = open_.pop(), source.line(start)
            if pair[0] < pair[1]:
                found.append(pair)
    return sorted(found)
