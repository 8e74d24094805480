"""Values of the vector unit: registers, masks, the state of a stream, pointers to its memory.

They are values, never changed: an operation makes new ones. Beside its bytes each knows which of
them are undefined, and which accesses of the scope come before it (scope_order.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.machine.memory import Storage

BYTES = 256


class LocalPointer:
    """A typed address in an on-chip memory. It is no part of any tile: only the memory ends it."""

    __slots__ = ("buffer", "dtype", "key", "offset")

    def __init__(self, buffer: Storage, dtype: DType, offset: int) -> None:
        self.buffer = buffer
        self.dtype = dtype
        self.offset = offset  # bytes
        self.key = dtype

    def moved(self, elements: int) -> LocalPointer:
        """The pointer so many elements further."""
        return LocalPointer(self.buffer, self.dtype, self.offset + elements * self.dtype.itemsize)

    __add__ = moved

    def at(self, offset: int) -> LocalPointer:
        """A pointer of the same type to another byte."""
        return LocalPointer(self.buffer, self.dtype, offset)

    def __repr__(self) -> str:
        return f"<{self.dtype.name}* {self.buffer.name} {self.offset:#x}>"


class Register:
    """256 bytes, looked at as lanes of any type."""

    __slots__ = ("after", "lanes", "poison", "turn")

    def __init__(
        self, lanes: Array, poison: Array | None = None, after: int = 0, turn: int = 0
    ) -> None:
        self.lanes = lanes
        self.poison = poison  # a byte for each, not 0 where it is undefined; None: nowhere
        self.after = after  # the accesses that come before it, as bits of their numbers
        self.turn = turn

    def of(self, kind: np.dtype[Any]) -> Array:
        """The lanes of a type."""
        lanes = self.lanes
        return lanes if lanes.dtype is kind else lanes.view(kind)

    @property
    def data(self) -> Array:
        """The bytes."""
        return self.lanes.view(np.uint8)


class Mask:
    """256 bits, one for each byte of a register. A lane looks at the bit of its first byte."""

    __slots__ = ("_bytes", "_lanes", "after", "bits", "poison", "turn")

    def __init__(
        self, bits: Array, poison: Array | None = None, after: int = 0, turn: int = 0
    ) -> None:
        self.bits = bits
        self.poison = poison  # which bits are undefined; None: not one
        self.after = after
        self.turn = turn
        self._lanes: dict[int, Array | None] = {}
        self._bytes: dict[int, Array] = {}

    @classmethod
    def of_lanes(cls, lanes: Array, size: int) -> Mask:
        """The mask of lanes of so many bytes; the other bits of each are 0."""
        bits = np.zeros(BYTES, np.bool_)
        bits[::size] = lanes
        return cls(bits)

    def lanes(self, size: int) -> Array | None:
        """Which lanes of so many bytes are active; None: all of them."""
        if size in self._lanes:
            return self._lanes[size]
        lanes = self.bits[::size]
        found = self._lanes[size] = None if lanes.all() else lanes
        return found

    def spread(self, size: int) -> Array:
        """Which bytes belong to an active lane of so many bytes."""
        found = self._bytes.get(size)
        if found is None:
            found = self._bytes[size] = np.repeat(self.bits[::size], size)
        return found


class Align:
    """An unaligned stream: the bytes of a store that have not filled a block, and where it is."""

    __slots__ = ("after", "end", "memory", "pending", "poison", "turn")

    def __init__(
        self,
        memory: Storage | None = None,
        end: int = 0,
        pending: Array | None = None,
        poison: Array | None = None,
        after: int = 0,
        turn: int = 0,
    ) -> None:
        self.memory = memory  # None: nothing has been stored yet
        self.end = end  # the byte behind the last one
        self.pending = _NOTHING if pending is None else pending
        self.poison = poison
        self.after = after
        self.turn = turn


_NOTHING = np.zeros(0, np.uint8)
Value = Register | Mask | Align
