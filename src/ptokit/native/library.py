"""Compiled kernels in this process: their functions, their seam, and the lines of their code."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from mmap import mmap
from pathlib import Path
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.location import Location
from ptokit.base.namedtuple import NamedTuple
from ptokit.native.headers import is_ours
from ptokit.native.lines import LineTable
from ptokit.native.statics import Statics

CARRY_OUT = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
_ENTER = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int64))
BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_TRACE_WORDS = 6  # the place of the last record, moves, whether a kernel runs, whether one failed
_PART = ctypes.c_void_p * 3  # the name of a closure's type, what runs it, the next part
_MOST_PARAMETERS = 64


class Parameter(NamedTuple):
    """What a kernel takes: an array, a whole number or a real one, and its element type."""

    category: int
    element: int


class _Code(NamedTuple):
    """Stands where a code object of Python stands elsewhere."""

    co_filename: str


@dataclass(frozen=True)
class CppSite:
    """A call in compiled code: its return address, and those of its callers."""

    library: Library
    lasti: tuple[int, ...]

    @property
    def code(self) -> _Code:
        return self.library.code

    @cached_property
    def location(self) -> Location:
        found = location_of(self.library.lines, self.library.base, self.lasti)
        return found or Location(self.library.code.co_filename, 0)


class Trace:
    """What a process that runs kernels lets others see: shared with it, and there after it."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self._memory = mmap(-1, 8 * (_TRACE_WORDS + len(kinds)))
        self._kinds = tuple(kinds)

    def connect(self, kind: str, library: Library) -> None:
        """Let a library write there, and note where that lies."""
        where = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        ctypes.c_void_p.in_dll(library.loaded, "ptokit_trace").value = where
        at = 8 * (_TRACE_WORDS + self._kinds.index(kind))
        struct.pack_into("q", self._memory, at, library.base)

    def last(self, libraries: Mapping[str, Path]) -> Location | None:
        """The line of the last record that was begun."""
        pcs = struct.unpack_from("3q", self._memory)
        for number, kind in enumerate(self._kinds):
            path = libraries[kind]
            (base,) = struct.unpack_from("q", self._memory, 8 * (_TRACE_WORDS + number))
            if base < pcs[0] < base + path.stat().st_size * 2:
                return location_of(LineTable(path), base, pcs)
        return None

    @property
    def moves(self) -> int | None:
        """Changes with every record, while code of a kernel runs; None while it does not."""
        moves, inside = struct.unpack_from("2q", self._memory, 24)
        return moves if inside else None


@dataclass(eq=False)
class Library:
    """A shared library, loaded."""

    path: Path
    source: str
    mode: int = os.RTLD_NOW  # as dlopen takes it
    host: Any = None  # who carries out its records
    _sites: dict[tuple[int, ...], CppSite] = field(default_factory=dict[tuple[int, ...], CppSite])

    def __post_init__(self) -> None:
        self.code = _Code(self.source)
        self.loaded = ctypes.CDLL(str(self.path), mode=self.mode)

    @cached_property
    def parts(self) -> dict[bytes, int]:
        """What launches can run here: the addresses of closures, by the names of their types."""
        found: dict[bytes, int] = {}
        at = ctypes.c_void_p.in_dll(self.loaded, "ptokit_parts").value
        while at:
            name, run, following = _PART.from_address(at)
            found[ctypes.string_at(name)] = run
            at = following
        return found

    def connect(self, carry_out: Any) -> None:
        """Hand over the function that carries records out."""
        seam = ctypes.c_void_p.in_dll(self.loaded, "ptokit_carry_out")
        seam.value = ctypes.cast(carry_out, ctypes.c_void_p).value

    def watch(self, spans: Sequence[int]) -> None:
        """Have accesses to these stretches of memory recorded."""
        self._spans = (ctypes.c_uint64 * (len(spans) or 1))(*spans)  # kept: C++ has its address
        low, high = (spans[0], spans[-1]) if spans else (1, 0)
        words = low, high, ctypes.addressof(self._spans), len(spans) // 2
        (ctypes.c_uint64 * 4).in_dll(self.loaded, "ptokit_watched")[:] = words

    def entry(self, number: int) -> Any:
        """The function that enters a kernel."""
        return _ENTER((f"ptokit_enter_{number}", self.loaded))

    def signature(self, number: int) -> list[Parameter]:
        kinds = (ctypes.c_int64 * (2 * _MOST_PARAMETERS))()
        ask = getattr(self.loaded, f"ptokit_signature_{number}")
        ask.restype = ctypes.c_int64
        count = ask(kinds)
        return [Parameter(kinds[2 * n], kinds[2 * n + 1]) for n in range(count)]

    def site(self, pcs: tuple[int, ...]) -> CppSite:
        found = self._sites.get(pcs)
        if found is None:
            found = self._sites[pcs] = CppSite(self, pcs)
        return found

    def holds(self, address: int) -> bool:
        """Whether an address is of its code."""
        return self.base < address < self.base + self.path.stat().st_size * 2

    @cached_property
    def lines(self) -> LineTable:
        return LineTable(self.path)

    @cached_property
    def statics(self) -> Statics:
        return Statics(self.path, self.base)

    @cached_property
    def base(self) -> int:
        """Where the library begins in memory."""
        with open("/proc/self/maps", encoding="utf-8") as maps:
            for line in maps:
                if line.rstrip("\n").endswith(str(self.path)):
                    return int(line.partition("-")[0], 16)
        return 0


def location_of(lines: LineTable, base: int, pcs: Sequence[int]) -> Location | None:
    """The line of the call before each return address, the first with the others as its callers."""
    rows = [row for pc in pcs if pc and (row := lines.find(pc - 1 - base))]
    found = [Location(row.file, row.line) for row in rows if not is_ours(row.file)]
    return replace(found[0], callers=tuple(found[1:])) if found else None
