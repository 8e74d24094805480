"""Which elements of an operand an instruction touches, in the terms of its declaration."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType, u8
from ptokit.base.layout import AxisMap
from ptokit.isa.facts import Ops


class View(Enum):
    """Which array of a tile operand the body is handed."""

    VALID = "valid"  # the valid region of a tile, the view of a GlobalTensor: a logical matrix
    WHOLE = "whole"  # the whole capacity of a tile; a GlobalTensor as its five dimensions
    STORAGE = "storage"  # all elements of a tile in memory order, one dimension; a slice: a part
    OBJECT = "object"  # the operand itself: for binding, pipes, and whoever moves data by itself


Places = tuple[int, int] | tuple[slice, slice] | slice | AxisMap


@dataclass(frozen=True)
class Reach:
    """A region of the bytes from the address of a tile on, in elements of another type.

    Hardware is given an address: it does not see which type a tile was declared with.
    """

    places: Places
    dtype: DType | None = None  # None: that of the tile
    sizes: tuple[int, int] | None = None  # so many rows and columns of an address map


def pitched(rows: int, cols: int, pitch: int, dtype: DType | None = None) -> AxisMap | Reach:
    """Rows of consecutive elements, `pitch` elements apart."""
    places = AxisMap((rows, cols), (pitch, 1), (0,), (1,))
    return places if dtype is None else Reach(places, dtype)


def first_bytes(count: int, start: int = 0) -> Reach:
    """Bytes from the address of a tile on: of a scratch tile only the address counts."""
    return Reach(slice(start, start + count), u8)


def end_of(view: View | Extent, tile: Any) -> int:
    """How far a region reaches, in bytes from the address of its tile; 0: no further than that."""
    if isinstance(view, View):
        return 0
    whole = view if isinstance(view, Reach) else Reach(view)
    kind, places = whole.dtype or tile.dtype, whole.places
    if whole.sizes is not None and isinstance(places, AxisMap):
        places = places.covering(*whole.sizes)
    if isinstance(places, tuple):
        rows, cols = (part.stop if isinstance(part, slice) else part for part in places)
        places = tile.axis_map(tile.vr, tile.vc).covering(rows, cols)
    span = places.stop if isinstance(places, slice) else places.span
    return -(-span // 2) if kind.is_packed else span * kind.itemsize


# A convolution tile is handed over as the array of its dimensions, or as a slice of its elements.
# A function gives a view, sizes, two slices, one slice of the elements in memory order, or an
# address map of its own, from the first element of the operand on. All of them may reach further
# than the operand: what lies there is touched, as far as the memory goes.
Extent = Places | Reach
Region = View | Callable[[Ops], View | Extent]
Parts = Extent | list[Extent]
