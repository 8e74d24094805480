"""Printing programs. The canonical text reads back to the same module; the generic form is for
other MLIR tools."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from ptokit.ir import generic
from ptokit.ir import origins as lines
from ptokit.ir.attributes import SymbolAttr, dict_text
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.dialects import DEFINITIONS, definition_of
from ptokit.ir.dialects.cf import BLOCKS
from ptokit.ir.dialects.func import RETURN
from ptokit.ir.dialects.scf import YIELD
from ptokit.ir.insntext import write_instruction
from ptokit.ir.lexer import Comment
from ptokit.ir.types import Type


def print_module(
    module: Module,
    *,
    generic: bool = False,
    comments: Sequence[Comment] = (),
    origins: bool = False,
) -> str:
    """The text of a module; comments of its source stay with the lines they belong to.

    With `origins` every instruction, and every micro-operation, says the line it was made from.
    """
    return Printer(generic=generic, comments=comments, origins=origins).module(module)


def print_op(op: Op) -> str:
    """The text of one operation, for messages."""
    return Printer().statement(op)


class Printer:
    """Gives every value a name of its own and keeps the indentation."""

    def __init__(
        self, *, generic: bool = False, comments: Sequence[Comment] = (), origins: bool = False
    ) -> None:
        self._generic = generic
        self._origins = origins
        self._comments = deque(comments)
        self._names: dict[Value, str] = {}
        self._taken: set[str] = set()
        self._free: dict[str, int] = {}  # of a wish: all numbers before this one are taken
        self._declared: list[tuple[str, str, int]] = []  # name, wish, and what was free before
        self._depth = 0

    # ---- names -------------------------------------------------------------------------------

    def name(self, value: Value) -> str:
        """The name of a value; one that is not declared yet is declared now."""
        return self._names.get(value) or self.declare(value)

    def declare(self, value: Value) -> str:
        """Choose a name: the value's own where it is free, otherwise with a number behind."""
        wish = value.name or "0"
        if wish[0].isdigit() and not wish.isdigit():
            wish = f"_{wish}"  # a name that starts with a digit is a number
        before = number = self._free.get(wish, 0)
        while (name := _numbered(wish, number)) in self._taken:
            number += 1
        self._taken.add(name)
        self._free[wish] = number + 1
        self._declared.append((name, wish, before))
        self._names[value] = f"%{name}"
        return self._names[value]

    @contextmanager
    def scope(self) -> Generator[None]:
        """Names declared inside are free again outside."""
        known = len(self._declared)
        yield
        while len(self._declared) > known:
            name, wish, before = self._declared.pop()
            self._taken.discard(name)
            self._free[wish] = before

    # ---- comments ----------------------------------------------------------------------------

    def _comments_before(self, line: int) -> str:
        """Comments of earlier lines, each on a line of its own."""
        found: list[str] = []
        while self._comments and line and self._comments[0].line < line:
            found.append(self.newline() + self._comments.popleft().text)
        return "".join(found)

    def _comment_behind(self, line: int) -> str:
        """The comment at the end of a line."""
        if self._comments and self._comments[0].line == line and line:
            return "  " + self._comments.popleft().text
        return ""

    # ---- structure ---------------------------------------------------------------------------

    def newline(self) -> str:
        return "\n" + "  " * self._depth

    def module(self, module: Module) -> str:
        """The whole text, with a line break at the end."""
        self._depth = 1
        if self._generic:
            return generic.write_module(module.attrs, self._units(module)) + "\n"
        attrs = f" attributes {dict_text(module.attrs)}" if module.attrs else ""
        first = module.location.line if module.location.col else 0
        self._depth = 0
        head = self._comments_before(first).lstrip("\n")
        self._depth = 1
        bodies = self._units(module)
        rest = self._comments_before(1 << 60)
        return f"{head}{chr(10) if head else ''}module{attrs} {{{bodies}{rest}\n}}\n"

    def _units(self, module: Module) -> str:
        """The functions, those of an inner module inside it."""
        found: list[str] = []
        for unit, functions in groupby(module.functions, key=lambda f: f.unit):
            if unit is None:
                found += map(self._placed, functions)
                continue
            start = self.newline()
            self._depth += 1
            bodies = "".join(map(self._placed, functions))
            self._depth -= 1
            if self._generic:
                found.append(start + generic.write_module(unit.attrs, bodies, start))
            else:
                attrs = f" attributes {dict_text(unit.attrs)}" if unit.attrs else ""
                found.append(f"{start}module{attrs} {{{bodies}{start}}}")
        return "".join(found)

    def _placed(self, function: Function) -> str:
        if self._generic:
            return self.newline() + generic.write_function(self, function)
        before = self._comments_before(function.location.line)
        return before + self.newline() + self.function(function)

    def function(self, function: Function) -> str:
        """A function, at the current indentation."""
        self._names, self._taken, self._free, self._declared = {}, set(), {}, []
        private = "private " if function.is_private else ""
        if function.body is None:
            params = ", ".join(map(str, function.inputs))
        else:
            params = ", ".join(f"{self.declare(p)}: {p.type}" for p in function.params)
        text = f"func.func {private}{_symbol(function.name)}({params})"
        if function.results:
            text += f" -> {_results(function.results)}"
        if function.attrs:
            text += f" attributes {dict_text(function.attrs)}"
        return text if function.body is None else f"{text} {self.block(function.body)}"

    def block(self, block: Block, labelled: bool = False) -> str:
        """`{ operations }`; a labelled one names its arguments first."""
        lines: list[str] = []
        with self.scope():
            if self._generic and block.args:
                labelled = True
            if labelled and (block.args or self._generic):
                args = ", ".join(f"{self.declare(a)}: {a.type}" for a in block.args)
                lines.append(f"{self.newline()}^bb0({args}):" if args else "")
            self._depth += 1
            if block.ops and BLOCKS.matches(block.ops[0]):
                lines += self._blocks(block.ops[0].regions)
            else:
                lines += self._lines(block.ops)
            lines.append(self._comments_before(block.end))
            self._depth -= 1
        return "{" + "".join(lines) + self.newline() + "}"

    def _lines(self, ops: list[Op]) -> Iterator[str]:
        start = self.newline()
        for op in ops:
            if self._generic or not YIELD.matches(op) or op.operands or op.attrs:
                line = op.location.line
                before = self._comments_before(line)
                behind = "" if op.regions else self._comment_behind(line)
                yield f"{before}{start}{self.statement(op)}{self._origin(op)}{behind}"

    def _origin(self, op: Op) -> str:
        """What an operation was made from, as its text says or as whoever prints it asks for."""
        definition = definition_of(op)
        works = op.insn is not None or (definition is not None and definition.micro is not None)
        at = op.location if self._origins and works else op.location.origin
        return "" if at is None or not at.line else f" {lines.written(at)}"

    def _blocks(self, blocks: list[Block]) -> Iterator[str]:
        """Blocks that jump to each other: what one defines, those behind it may use."""
        for number, block in enumerate(blocks):
            if number:
                args = ", ".join(f"{self.declare(a)}: {a.type}" for a in block.args)
                self._depth -= 1
                yield f"{self.newline()}^bb{number}{f'({args})' if args else ''}:"
                self._depth += 1
            yield from self._lines(block.ops)

    def statement(self, op: Op) -> str:
        """One operation with its results."""
        definition = DEFINITIONS.get(op.name)
        if self._generic or (definition is not None and definition.is_generic):
            text = generic.write_op(self, op)
        elif definition is None:
            text = op.name + write_instruction(self, op)
        else:
            behind = definition.text(self, op)
            name = "return" if RETURN.matches(op) else op.name
            text = name + (behind if not behind or behind[0] in " ([" else " " + behind)
        if not op.results:
            return text
        return f"{', '.join(self.declare(r) for r in op.results)} = {text}"

    def attr_dict(self, op: Op, lead: str = "", without: tuple[str, ...] = ()) -> str:
        """The attributes with a space in front, or nothing."""
        rest = {k: v for k, v in op.attrs.items() if k not in without}
        return f" {lead}{dict_text(rest)}" if rest else ""


def _numbered(wish: str, number: int) -> str:
    if not number:
        return wish
    return str(int(wish) + number) if wish.isdigit() else f"{wish}_{number}"


def _results(types: tuple[Type, ...]) -> str:
    return str(types[0]) if len(types) == 1 else f"({', '.join(map(str, types))})"


def _symbol(name: str) -> str:
    return str(SymbolAttr(name))
