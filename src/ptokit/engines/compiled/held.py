"""What a driver holds of the values of a program: words in registers instead of objects.

A number is one word; a pointer an array and an offset; a view a pointer with sizes and strides; a
tile where it lives, its address and its valid sizes. Handles cost nothing that way, and an
operation that Python executes is handed objects made of the words. Values of other types are
numbers of objects that are kept in a list.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol, Self

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.enums import Layout
from ptokit.base.tiles import TileSpec
from ptokit.engines.values import Form, View, layout_of
from ptokit.machine.gm import GmBuffer
from ptokit.machine.memory import Storage
from ptokit.machine.objects import Pointer, TileObject

TILE_WORDS = 4


class Objects(Protocol):
    """Who knows the objects behind the words."""

    def buffer(self, number: int) -> GmBuffer: ...
    def number_of(self, buffer: GmBuffer) -> int: ...
    def home(self, number: int) -> Home: ...
    def home_of(self, tile: TileObject) -> int: ...
    def other(self, number: int) -> Any: ...
    def keep(self, value: Any) -> int: ...


@dataclass(frozen=True, eq=False)
class Home:
    """What tiles at different addresses have in common."""

    spec: TileSpec
    storage: Storage | None
    lease: Any
    ahead: int  # of a window: how far behind the address of its tile it lies
    in_ring: bool


@dataclass(frozen=True)
class Held:
    """A value of the program, as texts of words. A `key` decides what an operation does with it;
    what is `moving` only where."""

    words: tuple[str, ...]
    moving = 0  # of the words, those at the end

    def over(self, words: Sequence[str]) -> Self:
        """A value of the same kind in other words."""
        return replace(self, words=tuple(words))

    @property
    def kind(self) -> object:
        """Equal for values that may take each other's place."""
        return replace(self, words=()), len(self.words)

    @property
    def key(self) -> tuple[str, ...]:
        return self.words[: len(self.words) - self.moving]

    @property
    def place(self) -> tuple[str, ...]:
        return self.words[len(self.words) - self.moving :]

    def taken(self, objects: Objects, words: Sequence[int]) -> Any:
        """The object that words stand for."""
        raise NotImplementedError

    def given(self, objects: Objects, value: Any) -> Sequence[int]:
        """The words of an object."""
        raise NotImplementedError


@dataclass(frozen=True)
class Number(Held):
    """An integer; a float as the bits of a double."""

    is_float: bool = False

    def taken(self, objects: Objects, words: Sequence[int]) -> int | float:
        (word,) = words
        return struct.unpack("d", struct.pack("q", word))[0] if self.is_float else word

    def given(self, objects: Objects, value: Any) -> Sequence[int]:
        return struct.unpack("q", struct.pack("d", value)) if self.is_float else (int(value),)


@dataclass(frozen=True)
class Address(Held):
    """A pointer to global memory."""

    element: DType | None = None
    moving = 2

    def taken(self, objects: Objects, words: Sequence[int]) -> Pointer:
        assert self.element is not None
        return Pointer(objects.buffer(words[0]), self.element, words[1])

    def given(self, objects: Objects, value: Any) -> Sequence[int]:
        return objects.number_of(value.buffer), value.offset


@dataclass(frozen=True)
class Window(Held):
    """A view of global memory: sizes, strides, and where it begins."""

    element: DType | None = None
    layout: Layout | None = None  # None: that of its strides
    moving = 2

    @property
    def rank(self) -> int:
        return (len(self.words) - 2) // 2

    @property
    def sizes(self) -> tuple[str, ...]:
        return self.words[: self.rank]

    @property
    def strides(self) -> tuple[str, ...]:
        return self.words[self.rank : 2 * self.rank]

    def taken(self, objects: Objects, words: Sequence[int]) -> View:
        *numbers, buffer, offset = words
        assert self.element is not None
        shape, stride = tuple(numbers[: self.rank]), tuple(numbers[self.rank :])
        layout = layout_of(shape, stride) if self.layout is None else self.layout
        form = Form(self.element, shape, stride, layout, self.layout is not None)
        return View(Pointer(objects.buffer(buffer), self.element, offset), form)

    def given(self, objects: Objects, value: Any) -> Sequence[int]:
        at, form = value.pointer, value.form
        return *form.shape, *form.stride, objects.number_of(at.buffer), at.offset


@dataclass(frozen=True)
class TileHeld(Held):
    """A tile: its home, its address there, its valid rows and columns."""

    def taken(self, objects: Objects, words: Sequence[int]) -> TileObject:
        number, address, rows, cols = words
        home = objects.home(number)
        made = TileObject(home.spec, rows, cols)
        if home.storage is not None:
            made.bind(home.storage, address, home.lease)
            made.assigned, made.in_ring = address - home.ahead, home.in_ring
        return made

    def given(self, objects: Objects, value: Any) -> Sequence[int]:
        return objects.home_of(value), value.address, value.vr, value.vc


@dataclass(frozen=True)
class Other(Held):
    """Anything else, by its number among the objects."""

    def taken(self, objects: Objects, words: Sequence[int]) -> Any:
        return objects.other(words[0])

    def given(self, objects: Objects, value: Any) -> Sequence[int]:
        return (objects.keep(value),)


def chopped(words: Sequence[int], held: Sequence[Held]) -> Iterator[list[int]]:
    """The words of several values as they lie: keys first, then what moves."""
    at, behind = 0, sum(len(each.key) for each in held)
    for each in held:
        own = [*words[at : at + len(each.key)], *words[behind : behind + each.moving]]
        at, behind = at + len(each.key), behind + each.moving
        yield own
