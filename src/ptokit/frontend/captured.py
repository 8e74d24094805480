"""What a program has changed beside its arguments, where nobody will ever see it.

A rank on a cluster has copies of the lists, objects and variables that its program names. In one
process a change of theirs is seen by the other ranks, and by whoever started them; there it would
be lost. So they are compared, before and after the run.
"""

from __future__ import annotations

import dis
import random
import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from ptokit.base.diagnostics import Diagnostic
from ptokit.base.location import Location
from ptokit.base.namedtuple import NamedTuple
from ptokit.frontend.outside import DEEPEST, contents, functions, is_users, parts, reads

_PLAIN = (tuple, list, dict, set, frozenset, deque, MethodType, partial)
_STORES = ("STORE", "DELETE", "BINARY_OP", "IMPORT")  # how instructions begin that change a value
_CHANGING = (
    "add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "pop",
    "popitem", "popleft", "remove", "reverse", "rotate", "setdefault", "sort", "update",
)  # fmt: skip


class Held(NamedTuple):
    """Something that a program can reach and change."""

    function: FunctionType
    name: str
    look: Callable[[], Any]  # what it is now


class Captured:
    """What a program names beside its arguments, and these, as they are before it runs."""

    def __init__(self, program: Any, args: tuple[Any, ...]) -> None:
        self._held = [(each, _state(each.look())) for each in _held(program, args)]

    def changed(self) -> list[Change]:
        """What is something else by now, each once."""
        now = [(each, each.look(), before) for each, before in self._held]
        found = [
            Change(each.name, type(value).__name__, _line(each))
            for each, value, before in now
            if _state(value) != before
        ]
        return [*dict.fromkeys(found)]


class Change(NamedTuple):
    """Something that was changed."""

    name: str
    kind: str
    at: Location


def lost(changes: Sequence[Sequence[Change]]) -> list[Diagnostic]:
    """What is wrong with the changes that each rank has made."""
    ranks: dict[Change, list[str]] = {}
    for rank, found in enumerate(changes):
        for each in found:
            ranks.setdefault(each, []).append(str(rank))
    return [
        Diagnostic(
            "cluster",
            f"{each.name} is changed on rank{'s' * (len(who) > 1)} {', '.join(who)}: on a cluster "
            "every rank has a copy of it, and nobody else sees what becomes of that",
            each.at,
            (("type", each.kind),),
            "return it, world.run gives back what the program returns on each rank; what ranks "
            "share is a window",
        )
        for each, who in ranks.items()
    ]


def _held(program: Any, args: tuple[Any, ...]) -> Iterator[Held]:
    while isinstance(program, partial):
        program, args = program.func, (*program.args[1:], *args, *program.keywords.values())
    inner = next(functions(program), None)
    called = program if isinstance(program, FunctionType | MethodType) else type(program).__call__
    function = getattr(called, "__func__", called)
    if not isinstance(function, FunctionType):
        return
    names = list(function.__code__.co_varnames)
    if function is not program:  # a method, or an object that is called
        own = program.__self__ if isinstance(program, MethodType) else program
        yield Held(function, names.pop(0), lambda: own)
    names += ["an argument"] * len(args)
    for name, value in zip(names[1:], args, strict=False):
        yield Held(function, name, partial(_same, value))
    for each in dict.fromkeys((function, inner or function)):
        yield from (Held(*read) for read in reads(each))


def _same(value: Any) -> Any:
    return value


def _state(value: Any, depth: int = 0) -> Hashable:
    """What a value is, without its arrays: they are windows, or cannot be written."""
    if isinstance(value, np.ndarray):
        return None
    if isinstance(value, random.Random):
        return value.getstate()
    if "numpy.random" in sys.modules and isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    inner = () if depth == DEEPEST else parts(value)
    if not inner:
        return contents(value)
    if not (isinstance(value, _PLAIN) or is_users(type(value))):
        return id(value)  # objects of libraries remember what they were asked, as paths do
    return (type(value), *(_state(each, depth + 1) for each in inner))


# ---- where ---------------------------------------------------------------------------------------


def _line(held: Held) -> Location:
    """Where a function changes what a name stands for, or else where it uses it first."""
    code = held.function.__code__
    used = [*_used(code, held.name)]
    line = min((line for changes, line in used if changes), default=0)
    line = line or min((line for _, line in used), default=code.co_firstlineno)
    return Location(code.co_filename, line)


def _used(code: CodeType, name: str) -> Iterator[tuple[bool, int]]:
    """The lines that have a name, and whether they do something to it."""
    lines: dict[int, list[Any]] = {}
    for each in dis.get_instructions(code):
        if each.positions is not None and each.positions.lineno is not None:
            lines.setdefault(each.positions.lineno, []).append(each)
        if isinstance(each.argval, CodeType):
            yield from _used(each.argval, name)
    for line, there in lines.items():
        if any(_names(each.argval, name) for each in there):
            yield any(_changes(each) for each in there), line


def _names(argval: Any, name: str) -> bool:
    return name in argval if isinstance(argval, tuple) else argval == name


def _changes(each: dis.Instruction) -> bool:
    if each.opname.startswith("STORE_FAST"):
        return False
    return each.opname.startswith(_STORES) or (
        each.opname.startswith("LOAD_") and each.argval in _CHANGING
    )
