"""What lists, dicts and objects of a kernel held before a loop or branch changed them.

A kernel is interpreted once, but a branch over run-time values has two outcomes and a loop any
number of rounds. Whatever may change an object says so first (`touch`); every region that is open
notes what the object held when the region began. So the two sides of a branch can start from the
same state, and what they made of it can be compared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import field
from types import FunctionType, MethodType, ModuleType
from typing import Any, ClassVar

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.location import Location

Cells = dict[Any, Any]  # what an object holds: by index, key or attribute

# Changed as wholes: what they hold cannot be told apart into cells of run-time values.
WHOLES = (set, deque, bytearray, np.ndarray)
_PLAIN = (int, float, complex, str, bytes, type(None), type, ModuleType, FunctionType, tuple)
_OPAQUE = ("builtins", "ptokit", "numpy", "enum", "types")  # modules whose objects have no cells


class Symbol:
    """What stands for a run-time value; __cells__ are attributes that change on the way."""

    __cells__: ClassVar[tuple[str, ...]] = ()


def cells_of(held: Any) -> Cells:
    """A copy of what an object holds."""
    if isinstance(held, list):
        return dict(enumerate(held))
    if isinstance(held, dict):
        return dict(held)
    if isinstance(held, WHOLES):
        return {"": copy(held)}
    if isinstance(held, Symbol):
        return {name: getattr(held, name) for name in held.__cells__}
    return {name: getattr(held, name) for name in _attributes(held)}


def put_cells(held: Any, cells: Cells) -> None:
    """Let an object hold what it held before."""
    if isinstance(held, list):
        held[:] = cells.values()
    elif isinstance(held, dict):
        held.clear()
        held.update(cells)
    elif isinstance(held, np.ndarray):
        held[...] = cells[""]
    elif isinstance(held, set | deque | bytearray):
        held.clear()
        held.update(cells[""]) if isinstance(held, set) else held.extend(cells[""])
    else:
        new = set() if isinstance(held, Symbol) else set(_attributes(held)) - set(cells)
        for name in new:
            object.__delattr__(held, name)
        for name, value in cells.items():
            object.__setattr__(held, name, value)


def put_cell(held: Any, cell: Any, value: Any) -> None:
    """Change one cell of an object."""
    if isinstance(held, list | dict):
        held[cell] = value
    else:
        object.__setattr__(held, cell, value)


def is_mutable(value: Any) -> bool:
    """Whether an object can hold something else later."""
    if isinstance(value, (list, dict, *WHOLES)):
        return True
    if isinstance(value, Symbol):
        return bool(value.__cells__)
    kind = type(value)
    if isinstance(value, _PLAIN) or kind.__module__.partition(".")[0] in _OPAQUE:
        return False
    return hasattr(value, "__dict__") or hasattr(kind, "__slots__")


def _attributes(held: Any) -> list[str]:
    names = list(getattr(held, "__dict__", ()))
    for kind in type(held).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    return [n for n in dict.fromkeys(names) if not n.startswith("__") and hasattr(held, n)]


def reached(roots: Iterable[Any]) -> dict[int, Any]:
    """Everything that values hold, and what that holds in turn, by identity."""
    found: dict[int, Any] = {}
    work = list(roots)
    while work:
        value = work.pop()
        if id(value) in found:
            continue
        found[id(value)] = value
        work += _held(value)
    return found


def _held(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple | set | frozenset | deque):
        yield from value
    elif isinstance(value, dict):
        yield from value
        yield from value.values()
    elif isinstance(value, MethodType):
        yield value.__self__
    elif hasattr(value, "captured"):  # a function of the kernel, with the variables it sees
        yield from value.captured()
    elif is_mutable(value) and not isinstance(value, (*WHOLES, Symbol)):
        yield from cells_of(value).values()


@dataclass(frozen=True)
class Touch:
    """One change: what was written in the kernel, and where."""

    what: str
    location: Location


@dataclass
class Entry:
    """An object that a region may have changed."""

    held: Any
    before: Cells
    touches: list[Touch] = field(default_factory=list[Touch])
    after: Cells = field(default_factory=dict[Any, Any])


class Journal:
    """What a region changed: every object with what it held before and holds in the end."""

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}

    def note(self, held: Any, touch: Touch) -> None:
        entry = self.entries.get(id(held))
        if entry is None:
            entry = self.entries[id(held)] = Entry(held, cells_of(held))
        entry.touches.append(touch)

    def close(self) -> None:
        """Keep what the region left behind, and let everything hold what it held before."""
        for entry in self.entries.values():
            entry.after = cells_of(entry.held)
        self.restore()

    def restore(self) -> None:
        for entry in self.entries.values():
            put_cells(entry.held, entry.before)


class Heap:
    """The journals of the regions that are open, outermost first."""

    def __init__(self) -> None:
        self._open: list[Journal] = []

    def touch(self, held: Any, what: str, location: Location) -> None:
        """Say that an object is about to change."""
        if is_mutable(held):
            for journal in self._open:
                journal.note(held, Touch(what, location))

    def touch_all(self, values: Iterable[Any], what: str, location: Location) -> None:
        """Say that whatever can be reached from values may change: code we cannot look into."""
        if self._open:
            for held in reached(values).values():
                if not isinstance(held, Symbol):
                    self.touch(held, what, location)

    @contextmanager
    def region(self) -> Generator[Journal, None, None]:
        """Watch one region. In the end everything holds again what it held at its beginning."""
        journal = Journal()
        self._open.append(journal)
        try:
            yield journal
        finally:
            self._open.pop()
            journal.close()
