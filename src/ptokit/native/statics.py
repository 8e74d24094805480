"""Variables that a kernel keeps between calls: on a device every core has its own.

The cores of a launch take turns in one process, and one copy of the code. Whenever another core
goes on, the variables become its own: they are few, and found in the symbol table.
"""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path

from ptokit.base.namedtuple import NamedTuple
from ptokit.base.patterns import regex
from ptokit.native.lines import sections_of

_SYMBOL = struct.Struct("<IBBHQQ")
_AN_OBJECT = 1
_OURS = "ptokit"  # the header's own are of the process
_BROUGHT_ALONG = regex(r"DW\.ref\..*|completed\.\d+")  # by the compiler, for the process


class Variable(NamedTuple):
    """Where one lies in a library."""

    offset: int
    size: int


def variables(path: Path) -> list[Variable]:
    """The variables of a library that its code may change, without those of our header."""
    sections = sections_of(path.read_bytes())
    names = sections[".strtab"].data if ".strtab" in sections else b""
    places = {each.number for name, each in sections.items() if name in (".data", ".bss")}
    found: set[Variable] = set()
    for symbol in _SYMBOL.iter_unpack(sections[".symtab"].data if names else b""):
        name, info, _, place, offset, size = symbol
        text = names[name : names.index(0, name)].decode("utf-8", "replace")
        is_own = _OURS not in text and not _BROUGHT_ALONG.fullmatch(text)
        if info & 0xF == _AN_OBJECT and place in places and size and is_own:
            found.add(Variable(offset, size))
    return sorted(found)


class Statics:
    """The variables of a loaded library, and what they hold for each core."""

    def __init__(self, path: Path, base: int) -> None:
        self._places = [(base + offset, size) for offset, size in variables(path)]
        self._kept: dict[int | None, list[bytes]] = {}
        self._owner: int | None = None  # None: the host

    @property
    def is_there(self) -> bool:
        """Whether there is any."""
        return bool(self._places)

    def become(self, core: int | None) -> None:
        """Let them be those of a core, which begins with what the host has."""
        if core == self._owner or not self._places:
            return
        self._kept[self._owner] = [ctypes.string_at(at, size) for at, size in self._places]
        mine = self._kept.get(core) or self._kept[None]
        for (at, size), value in zip(self._places, mine, strict=True):
            ctypes.memmove(at, value, size)
        self._owner = core

    def forget(self, core: int) -> None:
        """A core has ended: the host goes on with what it had."""
        self.become(None)
        self._kept.pop(core, None)
