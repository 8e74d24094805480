"""The programs that lack one piece of synchronisation, or have it wrong, made from a source.

Each statement that orders work is removed; its id, its pipes and its count are changed; it changes
places with the work before and behind it; and all ends of a flag are removed together.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ptokit.isa import INSTRUCTIONS
from ptokit.isa.effects import Barrier, Buffer, Cached, CoreFlag, Flag, Load, Meeting, Word
from ptokit.isa.samples import samples
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS
from ptokit.repair.outline import of_python


def _effects(insn: Insn) -> set[type]:
    """The kinds of effects that a call of an instruction has, and of their tokens."""
    assert insn.effects is not None
    target = next(t for t in TARGETS.values() if t.name in insn.targets)
    found = insn.effects(next(samples(insn, target)).facts())
    return {type(each) for each in found} | {type(getattr(each, "token", None)) for each in found}


def _with_token(kind: type) -> set[str]:
    return {name for name, kinds in _ORDERING.items() if kind in kinds}


def _short(insn: Insn) -> str:
    """The name by which programs call it."""
    return insn.name.rpartition(".")[2]


FIFO = {i.name for i in INSTRUCTIONS.values() if any("fifo" in o.kinds for o in i.operands)}
_ORDERING = {
    _short(i): _effects(i) for i in INSTRUCTIONS.values() if i.orders and i.name not in FIFO
}
FLAGS = _with_token(Flag) | {"PtoSetWaitFlag"}  # both ends in one call of the API
CROSS = _with_token(CoreFlag)
BUFFERS = _with_token(Buffer)
REGISTERS = {i.name for i in INSTRUCTIONS.values() if i.sets}
PHASES = ("AccPhase", "STPhase")  # of a unit flag
# What only passes a value on is no synchronisation.
_VALUES = {n for n, kinds in _ORDERING.items() if kinds and kinds <= {Load, Cached, type(None)}}
SYNC = (set(_ORDERING) | FLAGS | FIFO) - _VALUES
METHODS = {"Wait", "Record"}  # of events
_KINDS = {Word: "rank", Flag: "flag", CoreFlag: "cross-core", Meeting: "cross-core",
          Buffer: "buffer", Barrier: "barrier"}  # fmt: skip
KINDS = {*_KINDS.values(), "event", "fifo", "unit flag", "register"}  # a whole run has them all


def kind_of(name: str) -> str:
    """What kind of order a statement is about."""
    if name in FIFO:
        return "fifo"
    if name in REGISTERS:
        return "register"
    if name in FLAGS:
        return "flag"
    found = [kind for token, kind in _KINDS.items() if token in _ORDERING.get(name, ())]
    return found[0] if found else "event" if name not in _ORDERING else "cache"


@dataclass(frozen=True)
class Mutant:
    """One example with one thing taken out; all other lines keep their numbers."""

    line: int
    removed: str
    source: str
    function: str  # in which it stood
    original: str
    events: tuple[str, ...] = ()  # the names of the events it was about
    how: str = "without"  # or what was changed about it

    @property
    def kind(self) -> str:
        """What kind of order it was about."""
        if any(phase in self.removed for phase in PHASES):
            return "unit flag"
        if self.removed.startswith("the flag"):
            return "flag"
        name = re.match(r"\w*", self.removed)
        return "event" if self.events or name is None else kind_of(name[0])

    @cached_property
    def _program(self) -> Program:
        return Program(self.original)

    def reaches(self, kernel: str) -> bool:
        """Whether a kernel runs the changed line."""
        return self.function in self._program.reached(kernel)

    def between(self, kernel: str, first: int, second: int) -> bool:
        """Whether the removed line lies between two others, in the text or around a loop."""
        program = self._program
        places = [program.places(kernel, line) for line in (self.line, first, second)]
        return any(
            low <= here <= high if low < high else here >= low or here <= high
            for here, low, high in itertools.product(*places)
        )

    def is_partner(self, line: int) -> bool:
        """Whether a line is the other end of what was removed: of a flag, an event or a FIFO."""
        text = self.original.splitlines()[line - 1]
        name = re.match(r"\w*", self.removed)
        assert name is not None
        if name[0] in FLAGS:
            return any(f in text for f in FLAGS) and _pipes(text) == _pipes(self.removed)
        if name[0] in FIFO:
            fifo = re.search(r"\((\w+)", self.removed)
            assert fifo is not None
            return fifo[1] in text and any(word in text for word in (*FIFO, "TPipe"))
        if name[0] in CROSS:
            return any(word in text for word in CROSS)
        if name[0] in BUFFERS:
            number = self.removed.rpartition(",")[2]
            return any(word in text for word in BUFFERS) and number in text
        return bool(set(self.events) & set(re.findall(r"\w+", text)))

    def __str__(self) -> str:
        return f"line {self.line} {self.how} {self.removed}"


class Program:
    """Which functions an example calls, and where."""

    def __init__(self, source: str) -> None:
        nodes = ast.walk(ast.parse(source))
        self._functions = {n.name: n for n in nodes if isinstance(n, ast.FunctionDef)}

    def _calls(self, name: str) -> list[tuple[int, str]]:
        nodes = ast.walk(self._functions[name])
        found = [(n.lineno, called(n)) for n in nodes if isinstance(n, ast.Call)]
        return [(line, callee) for line, callee in found if callee in self._functions]

    def reached(self, kernel: str) -> set[str]:
        """The functions that run when a kernel does."""
        todo, seen = [kernel], set[str]()
        while todo:
            name = todo.pop()
            if name in self._functions and name not in seen:
                seen.add(name)
                todo += [callee for _, callee in self._calls(name)]
        return seen

    def places(self, kernel: str, line: int) -> list[float]:
        """Where a line of a helper runs, in terms of the lines of the kernel."""
        at = self._functions[kernel]
        if at.lineno <= line <= (at.end_lineno or line):
            return [line]
        found: list[float] = []
        for call, callee in self._calls(kernel):
            # Inside a call, order follows the lines of the helper.
            found += [call + place * 1e-6 for place in self.places(callee, line)]
        return found


def _pipes(text: str) -> list[str]:
    return re.findall(r"PIPE_\w+", text)


def called(node: ast.AST) -> str:
    """The name a call goes to, brackets and methods aside."""
    node = node.value if isinstance(node, ast.Expr) else node
    while isinstance(node, ast.Call | ast.Subscript | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def mutants(source: str) -> Iterator[Mutant]:
    """Every program that lacks one piece of synchronisation, or has one wrong."""
    yield from lacking(source)
    yield from variations(source)


def lacking(source: str) -> Iterator[Mutant]:
    """Every program that lacks one piece of synchronisation."""
    tree = ast.parse(source)
    lines = source.splitlines()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        events = _events(function)
        for node in ast.walk(function):
            for changed, instead, what in _changes(node, events):
                text = _without(lines, changed, instead)
                names = tuple(events & set(re.findall(r"\w+", what)))
                yield Mutant(changed.lineno, what, text, function.name, source, names)


def _events(function: ast.FunctionDef) -> set[str]:
    """The names that hold events, or lists of them."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and any(
            called(n) == "Event" for n in ast.walk(node.value) if isinstance(n, ast.Call)
        ):
            for target in node.targets:
                found |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    return found


def _changes(node: ast.AST, events: set[str]) -> Iterator[tuple[Any, str, str]]:
    """What can be taken out here: the node, what stands there instead, and its name."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if called(call) in SYNC | REGISTERS or (method in METHODS and called(call) in events):
            rest = next((a for a in call.args if method == "Record"), None)
            yield node, "pass" if rest is None else ast.unparse(rest), ast.unparse(node)
    if not isinstance(node, ast.Call):
        return
    if called(node) == "Event" and node.args:  # the work is done, and nobody is told
        without = f"({ast.unparse(node.args[0])}, {ast.unparse(node.func)}())[1]"
        yield node, without, f"the record of {', '.join(events)}"
    elif called(node)[:1] == "T" and called(node) not in SYNC:
        for event in [a for a in node.args if called(a) in events or _is_event(a, events)]:
            rest = ast.Call(node.func, [a for a in node.args if a is not event], node.keywords)
            yield node, ast.unparse(rest), f"the event {ast.unparse(event)}"


def _is_event(node: ast.AST, events: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in events


def _without(lines: list[str], node: Any, instead: str) -> str:
    """The source with a node replaced; all other lines keep their numbers."""
    first, last = node.lineno - 1, node.end_lineno - 1
    changed = list(lines)
    tail = lines[last][node.end_col_offset :]
    changed[first] = lines[first][: node.col_offset] + instead + tail
    changed[first + 1 : last + 1] = [""] * (last - first)
    return "\n".join(changed) + "\n"


# ---- what is there, but wrong --------------------------------------------------------------------


def variations(source: str) -> Iterator[Mutant]:
    """Every program in which one piece of synchronisation is changed, or stands elsewhere."""
    program = of_python(source)
    assert program is not None
    lines = source.splitlines()
    for each in program:
        node = each.node
        around = [s.function for s in each.around if s.function]
        if node is None or not around or each.blocks:
            continue
        for instead, how in _changed(node):
            what = ast.unparse(node)
            yield Mutant(
                each.first, what, _without(lines, node, instead), around[0], source, how=how
            )
        if not _orders(node):
            continue
        beside = each.block.statements
        place = beside.index(each)
        for other in (*beside[max(place - 1, 0) : place], *beside[place + 1 : place + 2]):
            simple = isinstance(other.node, ast.Expr) and not other.blocks
            is_work = simple and other.node is not None and not _orders(other.node)
            if is_work or (simple and called(node) in REGISTERS):
                assert other.node is not None
                text = _without(lines, node, ast.unparse(other.node))
                text = _without(text.splitlines(), other.node, ast.unparse(node))
                how = "before" if other.first < each.first else "behind"
                what = f"{ast.unparse(node)}, {how} its neighbour"
                yield Mutant(each.first, what, text, around[0], source, how="moved")
    yield from _without_edges(source)


def _orders(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and called(node) in SYNC | REGISTERS


def _changed(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """A statement with something else in it: another id, other pipes, another phase or count."""
    text = ast.unparse(node)
    for phase, other in (("Partial", "Final"), ("Final", "Partial"), ("Final", "Unspecified")):
        for kind in PHASES:
            if f"[{kind}.{phase}]" in text:
                yield text.replace(f"{kind}.{phase}", f"{kind}.{other}"), f"with {other} in"
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return
    call, name = node.value, called(node.value)
    pipes = _pipes(text)
    if name not in SYNC:
        return
    if len(pipes) == 2:
        yield _renamed(text, {pipes[0]: pipes[1], pipes[1]: pipes[0]}), "with pipes exchanged in"
    for pipe in pipes[:2]:
        if pipe in _NEIGHBOUR and _NEIGHBOUR[pipe] not in pipes:
            yield _renamed(text, {pipe: _NEIGHBOUR[pipe]}), f"with {_NEIGHBOUR[pipe]} in"
    if kind_of(name) == "rank" and len(call.args) > 1:  # a count that comes too soon
        number = ast.unparse(call.args[1])
        yield text.replace(f", {number}", f", {number} - 1", 1), "with one less in"
    elif not call.args and len(pipes) == 2:  # both ends in one call
        yield text.replace("()", "(0, 1)"), "with another id in"
    elif kind_of(name) in ("flag", "cross-core", "buffer") and call.args:
        last = call.args[-1]
        last = last.args[-1] if isinstance(last, ast.Call) else last
        number = ast.unparse(last)
        head, _, tail = text.rpartition(number)
        yield f"{head}({number} + 1) % 8{tail}", "with another id in"


_NEIGHBOUR = {"PIPE_MTE2": "PIPE_MTE3", "PIPE_V": "PIPE_MTE3", "PIPE_FIX": "PIPE_M",
              "PIPE_MTE3": "PIPE_V", "PIPE_M": "PIPE_MTE1", "PIPE_MTE1": "PIPE_M",
              "PIPE_ALL": "PIPE_S"}  # fmt: skip


def _renamed(text: str, names: dict[str, str]) -> str:
    return re.sub(r"PIPE_\w+", lambda found: names.get(found[0], found[0]), text)


def _without_edges(source: str) -> Iterator[Mutant]:
    """Every program that lacks a whole flag: all its sets and waits in a function."""
    lines = source.splitlines()
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        ends: dict[str, list[ast.Expr]] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Expr) and called(node.value) in FLAGS:
                arguments = ast.unparse(node).partition("(")[2]
                ends.setdefault(arguments, []).append(node)
        for arguments, nodes in ends.items():
            if len(nodes) > 1 and _pipes(arguments):
                text = lines
                for node in nodes:
                    text = _without(text, node, "pass").splitlines()
                what = f"the flag ({arguments}"
                yield Mutant(nodes[0].lineno, what, "\n".join(text) + "\n", function.name, source,
                             how="without")  # fmt: skip
