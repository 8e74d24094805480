"""What the author calls things that have no name in a program: tile types, and known numbers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field

from ptokit.base.dataclass import dataclass
from ptokit.base.location import Location

Line = tuple[str, int]  # of a file


@dataclass(slots=True)
class SourceNames:
    """Names by the lines that use them; whoever writes a program for readers asks here.

    A name that stands for two things is none. `arguments` are those a tile type was written with on
    a line: the names of numbers, in their places, and empty texts for everything else.
    """

    shows_lines: bool = False  # whether the lines say more than the program: they are quoted
    types: dict[str, tuple[Hashable, Line] | None] = field(
        default_factory=dict[str, tuple[Hashable, Line] | None]
    )
    numbers: dict[str, float | None] = field(default_factory=dict[str, float | None])
    arguments: dict[tuple[Line, Hashable], tuple[str, ...]] = field(
        default_factory=dict[tuple[Line, Hashable], tuple[str, ...]]
    )
    _read: dict[Line, dict[str, None]] = field(default_factory=dict[Line, dict[str, None]])

    def note_number(self, where: Line, name: str, value: float) -> None:
        """A line names a number."""
        known = self.numbers.setdefault(name, value)
        if not _is_same(known, value):
            self.numbers[name] = None
        self._read.setdefault(where, {})[name] = None

    def note_type(self, where: Line, name: str, kind: Hashable, defined: Line) -> None:
        """A line names a tile type, which was given its name on another one."""
        if (known := self.types.setdefault(name, (kind, defined))) != (kind, defined):
            self.types[name] = None if known is None or known[0] != kind else known
        self._read.setdefault(where, {})[name] = None

    def number(self, where: Location, value: float) -> str:
        """The name of a number on a line; empty where it has none there, or several."""
        names = self._read.get((where.file, where.line), {})
        found = [name for name in names if self.is_number(name, value)]
        return found[0] if len(found) == 1 else ""

    def is_number(self, name: str, value: float) -> bool:
        """Whether a name stands for this number, wherever it is used."""
        return _is_same(self.numbers.get(name), value)

    def type(self, where: Location, kind: Hashable) -> tuple[str, tuple[str, ...]]:
        """The name of a tile type on a line, or anywhere, and the names it was written with."""
        line = (where.file, where.line)
        known = {name: found for name, found in self.types.items() if found and found[0] == kind}
        here = [name for name in self._read.get(line, {}) if name in known]
        for name in [*here, *known]:
            return name, self.arguments.get((known[name][1], kind), ())
        return "", self.arguments.get((line, kind), ())


def _is_same(known: float | None, value: float) -> bool:
    return known == value and type(known) is type(value)
