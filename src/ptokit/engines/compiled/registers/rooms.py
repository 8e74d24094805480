"""Where registers and masks lie while compiled code runs, and how their bytes are moved about.

A register is as many bytes as it has, a mask a byte for each of its bits, 1 where it is set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.loops import VECTOR
from ptokit.engines.compiled.text import Function
from ptokit.engines.compiled.text import Value as Text
from ptokit.ir.core import Value
from ptokit.ir.logical import element_of
from ptokit.ir.types import LogicalMaskType, LogicalType, MaskType, RegisterType, Type
from ptokit.isa.micro.footprints import ABSENT, REGISTER

_MOST_ROOM = 1 << 20  # bytes: they lie on the stack
_UNITS = (8, 4, 2, 1)  # bytes that are moved at once


@dataclass(frozen=True, eq=False)
class Room:
    """Where a register or mask lies; of one that is always the same, what it holds."""

    place: Text
    nbytes: int
    known: Array | None = None


def bytes_of(type_: Type) -> int:
    """The bytes of the room of a register or mask; 0: it is something else."""
    if isinstance(type_, RegisterType | MaskType):
        return REGISTER
    if isinstance(type_, LogicalType):
        return type_.lanes * element_of(type_.element).itemsize
    return type_.lanes if isinstance(type_, LogicalMaskType) else 0


class Values(Protocol):
    """What is known of the values of a scope."""

    def number(self, value: Value) -> Text: ...
    def element(self, value: Value, kind: DType) -> Text: ...
    def fixed(self, value: Value) -> Any: ...
    def stride(self, value: Value) -> Any: ...
    def room(self, value: Value) -> Room | None: ...
    def keep(self, value: Value, made: Room | Text) -> None: ...


class Rooms:
    """Writes what makes, fills, moves and clears rooms."""

    def __init__(self, code: Function) -> None:
        self._code = code
        self._taken = 0  # bytes of rooms

    def new(self, nbytes: int) -> Room:
        """Make room for so many bytes; what they hold is not known."""
        self._taken += nbytes
        if self._taken > _MOST_ROOM:
            raise Unsupported("too many registers")
        return Room(self._code.room(nbytes), nbytes)

    def copied(self, room: Room) -> Room:
        """Make a room that holds what another does."""
        made = self.new(room.nbytes)
        self.copy(made.place, room.place, room.nbytes)
        return made

    def move(self, sources: Sequence[Room], targets: Sequence[Room]) -> None:
        """Let some rooms hold what others do, all at once."""
        changed = [(s, t) for s, t in zip(sources, targets, strict=True) if s is not t]
        if len(changed) > 1:
            ends = {id(t) for _, t in changed}
            changed = [(self.copied(s) if id(s) in ends else s, t) for s, t in changed]
        for source, target in changed:
            self.copy(target.place, source.place, source.nbytes)

    def copy(self, to: Text, source: Text, nbytes: int) -> None:
        """Copy bytes that lie one after the other."""

        def piece(at: Text, kind: str) -> Sequence[Text]:
            value = self._code.do(f"load {kind}, ptr {self._code.behind(source, at)}, align 1")
            self._code.act(f"store {kind} {value}, ptr {self._code.behind(to, at)}, align 1")
            return ()

        size = power(nbytes, VECTOR)
        kind = f"<{size} x i8>"
        self.each(nbytes, size, lambda at: piece(at, kind))

    def each(self, count: int, step: int, body: Callable[[Text], Sequence[Text]]) -> None:
        """Write a body for every `step`-th number below a count."""
        if count == step:
            body("0")
        else:
            self._code.loop("0", str(count), str(step), body)

    def constant(self, content: Array) -> Room:
        """Make a room that holds the same in every run."""
        data = np.ascontiguousarray(content).view(np.uint8).reshape(-1)
        return Room(self._code.table(data.tobytes()), data.size, data)

    def clear(self, room: Room) -> None:
        """Let a room hold zeros."""
        code, size = self._code, power(room.nbytes, VECTOR)

        def piece(at: Text) -> Sequence[Text]:
            place = code.behind(room.place, at)
            code.act(f"store <{size} x i8> zeroinitializer, ptr {place}, align 1")
            return ()

        self.each(room.nbytes, size, piece)

    def move_bytes(
        self, to: Text, places: Array, source: Text, origins: Array, controls: Array | None = None,
        mask: Room | None = None,
    ) -> None:  # fmt: skip
        """Move bytes by a table; a mask decides where `controls` have its bit for each."""
        code = self._code
        if not places.size:
            return
        size = _unit(places, origins, controls)
        pieces = slice(None, None, size)
        columns = [places[pieces], origins[pieces]]
        columns += [] if controls is None else [controls[pieces]]
        entries = np.stack(columns, axis=1).astype(np.int32)
        steps = np.diff(entries, axis=0)
        if len(entries) > 1 and (steps == size).all() and controls is None:
            where = [
                code.behind(at, str(int(n)))
                for at, n in zip((to, source), entries[0], strict=False)
            ]
            self.copy(where[0], where[1], entries.shape[0] * size)
            return
        table, kind, width = code.table(entries.tobytes()), f"i{8 * size}", 4 * len(columns)

        def piece(number: Text) -> Sequence[Text]:
            entry = self.at(table, number, width)
            offsets = [
                code.do(
                    f"sext i32 {code.do(f'load i32, ptr {code.behind(entry, str(4 * n))}')} to i64"
                )
                for n in range(len(columns))
            ]

            def go() -> None:
                value = code.do(f"load {kind}, ptr {code.behind(source, offsets[1])}, align 1")
                code.act(f"store {kind} {value}, ptr {code.behind(to, offsets[0])}, align 1")

            if mask is None:
                go()
            else:  # what is not chosen may lie outside of memory
                bit = code.do(f"load i8, ptr {code.behind(mask.place, offsets[2])}")
                code.when(code.do(f"icmp ne i8 {bit}, 0"), go)
            return ()

        self.each(len(entries), 1, piece)

    def fill(self, room: Room, start: Text, table: Array | None) -> None:
        """Let a room hold bytes of memory."""
        if table is None:
            self.copy(room.place, start, room.nbytes)
            return
        if (table == ABSENT).any():
            self.clear(room)
        to = np.flatnonzero(table != ABSENT)
        self.move_bytes(room.place, to, start, table[to])

    def chosen(self, room: Room, lanes: Array, size: int, stride: int = 0) -> Room:
        """Some lanes of a room, side by side."""
        stride = stride or size
        if size == stride and np.array_equal(lanes, np.arange(room.nbytes // size)):
            return room
        origins = (lanes[:, None] * stride + np.arange(size)).reshape(-1)
        made = self.new(origins.size)
        self.move_bytes(made.place, np.arange(origins.size), room.place, origins)
        return made

    def pack(self, to: Text, room: Room) -> None:
        """Store the bytes of a mask as bits."""
        code, size = self._code, power(room.nbytes, VECTOR)

        def piece(at: Text) -> Sequence[Text]:
            value = code.do(f"load <{size} x i8>, ptr {code.behind(room.place, at)}, align 1")
            tests = code.do(f"trunc <{size} x i8> {value} to <{size} x i1>")
            bits = code.do(f"bitcast <{size} x i1> {tests} to i{size}")
            place = code.behind(to, code.number("lshr", at, "3"))
            code.act(f"store i{size} {bits}, ptr {place}, align 1")
            return ()

        self.each(room.nbytes, size, piece)

    def unpack(self, room: Room, source: Text) -> None:
        """Let the bytes of a mask hold bits of memory."""
        code, size = self._code, power(room.nbytes, VECTOR)

        def piece(at: Text) -> Sequence[Text]:
            place = code.behind(source, code.number("lshr", at, "3"))
            bits = code.do(f"load i{size}, ptr {place}, align 1")
            tests = code.do(f"bitcast i{size} {bits} to <{size} x i1>")
            value = code.do(f"zext <{size} x i1> {tests} to <{size} x i8>")
            code.act(f"store <{size} x i8> {value}, ptr {code.behind(room.place, at)}, align 1")
            return ()

        self.each(room.nbytes, size, piece)

    def at(self, place: Text, lane: Text, size: int) -> Text:
        """Where a lane of so many bytes lies."""
        return self._code.behind(place, self._code.number("mul", lane, str(size)))


def power(count: int, most: int) -> int:
    """The greatest power of two that divides a count, up to a limit."""
    return min(count & -count, 1 << max(most, 1).bit_length() - 1)


def _unit(places: Array, origins: Array, controls: Array | None) -> int:
    """How many bytes of a table always go together."""
    for size in _UNITS:
        if places.size % size == 0:
            rows = [each.reshape(-1, size) for each in (places, origins)]
            together = all((np.diff(row, axis=1) == 1).all() for row in rows)
            same = controls is None or (np.diff(controls.reshape(-1, size), axis=1) == 0).all()
            if together and same:
                return size
    return 1
