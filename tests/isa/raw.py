"""A memory full of known bytes, for tests that say exactly which of them an instruction changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.frontend.session import current
from tests.operands import make


class Raw:
    """One memory of the machine in force, and what it ought to hold."""

    def __init__(self, loc: TileType = TileType.Vec, seed: int = 5) -> None:
        self.memory = current().core.memory(loc)
        size = self.memory.nbytes
        self.memory.data[:] = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
        self.memory.shadow[:] = 1
        self.before = self.memory.data.copy()
        self.expected = self.memory.data.copy()
        self.open = np.zeros(size, np.bool_)  # bytes that may hold anything, and must be undefined

    def put(self, at: int, values: Any) -> None:
        """Have the memory hold these values from this byte on."""
        raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        for each in (self.memory.data, self.before, self.expected):
            each[at : at + raw.size] = raw

    def get(self, at: int, count: int, kind: Any) -> Array:
        """Elements that the memory held before the instruction."""
        size = np.dtype(kind).itemsize
        return self.before[at : at + count * size].view(kind)

    def expect(self, at: int, values: Any) -> None:
        """The instruction is to write these values."""
        raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        self.expected[at : at + raw.size] = raw
        self.open[at : at + raw.size] = False

    def lose(self, at: int, count: int) -> None:
        """The instruction leaves these bytes undefined."""
        self.open[at : at + count] = True

    def check(self) -> None:
        """The memory holds what is expected, and nothing else has changed."""
        wrong = np.flatnonzero((self.memory.data != self.expected) & ~self.open)
        assert not wrong.size, f"bytes {wrong[:8]} of {wrong.size}"
        defined = self.memory.shadow != 0
        assert (defined == ~self.open).all(), np.flatnonzero(defined == self.open)[:8]


def tile(text: str, at: int, valid: tuple[int, int] | None = None) -> Any:
    """A tile at an address, with valid sizes that its type leaves open."""
    made = make(text if valid is None else f"{text} valid ?x?", at)
    if valid is not None:
        made.SetValidShape(*valid)
    return made


def warned(machine: Any) -> set[str]:
    """The codes of the warnings so far."""
    return {each.code for each in machine.warnings}
