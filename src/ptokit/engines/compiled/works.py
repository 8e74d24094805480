"""Work of the level below tiles, once more: scopes and transfers of a launch that is repeated.

To the machine a scope, or an operation beside scopes, is one instruction that is handed what is to
be done (`machine/vector_unit.py: Work`). Scopes are compiled from what is written in them
(scopes.py), transfers become the pieces that they copy; both when the launch is repeated for the
first time, as most never are. What has no code runs as its body does, over the same memory. What
is undefined, out of bounds or out of order was found out when the launch was noted.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.engines.compiled.bodies import Noted
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.library import Library
from ptokit.engines.compiled.memories import Memories
from ptokit.engines.compiled.natives import Kernel
from ptokit.engines.compiled.scopes import Known, compiled
from ptokit.engines.compiled.text import Function, Value
from ptokit.machine.core import Core
from ptokit.machine.gm import GmBuffer
from ptokit.machine.machine import Machine
from ptokit.machine.memory import Storage
from ptokit.machine.objects import Pointer, TileObject
from ptokit.machine.vector_unit import VectorUnit, Work

_WIDE = 64  # bytes that are copied at once
_MOST_PIECES = 1 << 16
_ENTRY = 5  # words of a piece: to, from, and how many bytes


@dataclass(frozen=True)
class Pieces:
    """A function of the library: bytes from one place to another, piece by piece."""

    operands = ()  # they are as many as there are pieces

    def text(self, name: str) -> str:
        code = Function(name)
        memory = code.do("getelementptr i64, ptr %args, i64 1")

        def piece(index: Value) -> Sequence[Value]:
            words = [
                code.do(f"load i64, ptr {code.do(f'getelementptr i64, ptr {memory}, i64 {at}')}")
                for at in (code.number("add", index, str(n)) for n in range(_ENTRY))
            ]
            to, source = (
                code.behind(
                    code.do(f"load ptr, ptr {code.do(f'getelementptr i64, ptr %bases, i64 {m}')}"),
                    offset,
                )
                for m, offset in (words[:2], words[2:4])
            )
            whole = code.number("and", words[4], str(-_WIDE))

            def copy(kind: str, at: Value) -> Sequence[Value]:
                value = code.do(f"load {kind}, ptr {code.behind(source, at)}, align 1")
                code.act(f"store {kind} {value}, ptr {code.behind(to, at)}, align 1")
                return ()

            code.loop("0", whole, str(_WIDE), lambda at: copy(f"<{_WIDE} x i8>", at))
            code.loop(whole, words[4], "1", lambda at: copy("i8", at))
            return ()

        count = code.number("mul", code.word(0), str(_ENTRY))
        code.loop("0", count, str(_ENTRY), piece)
        return code.text()


class _Listing:
    """A unit that notes what a transfer reads and writes; raises where it does more."""

    order, turn, place = None, 0, None

    def __init__(self, hidden: dict[str, Any], control: dict[str, Any]) -> None:
        self.registers, self.control = hidden, control
        self.pieces: list[tuple[Storage, int, Storage, int, int]] = []
        self._read: dict[int, tuple[Storage, int, Array]] = {}

    def read(self, at: Any, start: int, nbytes: int) -> tuple[Array, None]:
        if len(self._read) > _MOST_PIECES:
            raise Unsupported("too many pieces")
        data = np.empty(nbytes, np.uint8)
        self._read[id(data)] = at.buffer, start, data
        return data, None

    def write(self, at: Any, start: int, data: Array, poison: Any, combine: Any = None) -> None:
        found = self._read.get(id(data))
        if combine is not None or found is None:
            raise Unsupported("bytes that are made on the way")
        memory, begin, _ = found
        if memory is at.buffer and begin < start + data.size and start < begin + data.size:
            raise Unsupported("a result that overlaps what is read")
        self.pieces.append((at.buffer, start, memory, begin, data.size))

    def hidden(self, name: str) -> Any:
        return self.registers.get(name)

    def __getattr__(self, name: str) -> Any:
        raise Unsupported("no code for what it does")


class Again:
    """One work of a launch, to be done once more."""

    def __init__(self, note: Noted, memories: Memories) -> None:
        (work,) = note.operands
        assert isinstance(work, Work)
        self.name = note.call.insn.name
        self.why = ""  # it runs as its body does
        self._work, self._site, self.core = work, note.site, note.core
        self._hidden, self._control = dict(note.core.hidden), dict(note.core.registers)
        # Of its values those that point into an array of the user, by place: which, and where.
        self._far: dict[int, tuple[int, int]] = {}
        values = list(work.values)
        for index, value in enumerate(values):
            if isinstance(value, TileObject):
                values[index] = copy(value)  # which may be moved later
            elif isinstance(value, Pointer):
                found = memories.array_at(value.buffer, value.offset)
                if found is not None:
                    self._far[index] = found
        self._arrays = memories.arrays
        self._values = values
        self._stream: Array | None = None
        self._bases = np.zeros(0, np.int64)

    def settle(self, library: Library, known: Known) -> None:
        """Look for code, where that has not been done; `known` is what others have found."""
        if self._stream is not None or self.why:
            return
        try:
            code, memory = self._work.source, self.core.memory(TileType.Vec)
            if code is not None:
                kernel, words = compiled(code, self._values, memory, self._arrays, known)
                memories = [memory]
            else:
                kernel, words, memories = self._transferred()
            self._native(library, kernel, words, memories)
        except Unsupported as error:
            self.why = str(error)

    def _native(
        self, library: Library, kernel: Kernel, words: Sequence[int], memories: Sequence[Storage]
    ) -> None:
        places = [0] * self._arrays + [memory.data.ctypes.data for memory in memories]
        self._bases = np.array(places, np.int64)
        self._stream = np.array([library.address(kernel), len(words) + 2, *words], np.int64)
        self._run = library.run

    def _transferred(self) -> tuple[Kernel, list[int], list[Storage]]:
        """The pieces that a transfer copies."""
        listing = _Listing(self._hidden, self._control)
        self._work(listing)  # type: ignore[arg-type]
        near: dict[int, tuple[int, Storage]] = {}
        far: dict[int, tuple[int, int]] = {}  # by memory: which array, and how far it begins there
        for index, (number, offset) in self._far.items():
            at = self._values[index]
            far[id(at.buffer)] = number, offset - at.offset
        words = [len(listing.pieces)]
        for to, start, source, begin, nbytes in listing.pieces:
            for memory, at in ((to, start), (source, begin)):
                array = far.get(id(memory))
                if array is None:
                    number, _ = near.setdefault(id(memory), (self._arrays + len(near), memory))
                    words += [number, at]
                else:
                    number, offset = array
                    words += [number, at + offset]
            words.append(nbytes)
        return Pieces(), words, [memory for _, memory in near.values()]

    def run(self, machine: Machine, arrays: Sequence[Array], places: Sequence[int]) -> None:
        """Do it on these arrays, which begin at these places."""
        if self._stream is None:
            self._as_body(machine, arrays)
            return
        self._bases[: len(places)] = places
        begin = self._stream.ctypes.data
        self._run(begin, begin + self._stream.nbytes, self._bases.ctypes.data)

    def _as_body(self, machine: Machine, arrays: Sequence[Array]) -> None:
        values = list(self._values)
        for index, (number, offset) in self._far.items():
            values[index] = Pointer(GmBuffer(arrays[number]), values[index].dtype, offset)
        before, machine.core = machine.core, self.core
        try:
            unit = VectorUnit(machine, self._site)
            unit.trust(dict(self._hidden), dict(self._control))
            self._work.on(values)(unit)
        finally:
            machine.core = before


@contextmanager
def all_defined(works: Iterable[Again]) -> Generator[None]:
    """While bodies run that ask what is defined: that was found out when they were noted."""
    cores: dict[int, Core] = {}
    for work in works:
        if work.why:
            whole = work.core.cluster
            for core in (work.core, *(() if whole is None else whole.cores.values())):
                cores[id(core)] = core
    memories = {id(m): m for core in cores.values() for m in core.memories.values()}
    for memory in memories.values():
        memory.shadow[:] = 1
    try:
        yield
    finally:
        for memory in memories.values():
            memory.poison()
