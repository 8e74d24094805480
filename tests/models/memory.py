"""Bytes: memories of a core, tiles in them, and views of the arrays of the user."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

DTYPES = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    **{f"i{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)},
    **{f"ui{n}": np.dtype(f"u{n // 8}") for n in (8, 16, 32, 64)},
}
SIZE = 1 << 20  # of a memory, in bytes: larger than any


@lru_cache(maxsize=4096)
def places(rows: int, cols: int, size: int, layout: str, fractal: int) -> np.ndarray:
    """Where the elements of a tile lie, counted from its first; `layout` is the initials of
    blayout and slayout: rn, cn, cr (Nz), rc (Zn) or rr (Zz)."""
    r, c = np.arange(rows)[:, None], np.arange(cols)[None, :]
    if layout == "rn":
        return r * cols + c
    if layout == "cn":
        return c * rows + r
    short = fractal // 16 // size  # 16 rows (or columns) of so many elements are a box
    high, wide = (16, short) if layout[1] == "r" else (short, 16)
    down, across = -(-rows // high), -(-cols // wide)
    box = (r // high) * across + c // wide if layout[0] == "r" else (c // wide) * down + r // high
    inside = (r % high) * wide + c % wide if layout[1] == "r" else (c % wide) * high + r % high
    return box * (high * wide) + inside


@dataclass
class Tile:
    """A matrix of elements in a memory; the handle knows how much of it is valid."""

    data: np.ndarray  # the memory from its first element on
    places: np.ndarray  # of its elements
    rows: int  # that are valid
    cols: int
    layout: str
    pad: int = 0
    loc: str = "vec"

    @property
    def shape(self) -> tuple[int, int]:
        return self.places.shape  # type: ignore[return-value]

    def read(
        self, rows: int | None = None, cols: int | None = None, at: tuple[int, int] = (0, 0)
    ) -> np.ndarray:
        """A part of it: the valid one, unless the size is given."""
        rows, cols = self.rows if rows is None else rows, self.cols if cols is None else cols
        return self.data[self.places[at[0] : at[0] + rows, at[1] : at[1] + cols]]

    def write(self, values: Any) -> None:
        """Write a matrix to its first rows and columns."""
        rows, cols = values.shape
        self.data[self.places[:rows, :cols]] = values.astype(self.data.dtype, copy=False)


def tile(memory: np.ndarray, address: int, keys: dict[str, str], rows: int, cols: int) -> Tile:
    """The tile of a type at an address."""
    kind = DTYPES[keys["dtype"]]
    layout = keys["blayout"][0] + keys["slayout"][0]
    found = places(
        int(keys["rows"]), int(keys["cols"]), kind.itemsize, layout, int(keys["fractal"])
    )
    rest = memory[address : len(memory) - len(memory[address:]) % kind.itemsize]
    return Tile(rest.view(kind), found, rows, cols, layout, int(keys["pad"]), keys["loc"])


@dataclass
class Pointer:
    array: np.ndarray  # flat
    offset: int = 0


@dataclass
class View:
    """A strided part of an array."""

    at: Pointer
    shape: list[int]
    strides: list[int]

    def part(self, offsets: list[int], sizes: list[int]) -> View:
        moved = sum(o * s for o, s in zip(offsets, self.strides, strict=True))
        return View(Pointer(self.at.array, self.at.offset + moved), sizes, self.strides)

    def matrix(self) -> np.ndarray:
        """Where its elements lie, as a matrix: all dimensions but the last are rows."""
        where = np.full(self.shape, self.at.offset)
        for axis, step in enumerate(self.strides):
            index = np.arange(self.shape[axis]) * step
            where += index.reshape([-1 if n == axis else 1 for n in range(len(self.shape))])
        return where.reshape(prod(self.shape[:-1]), self.shape[-1])
