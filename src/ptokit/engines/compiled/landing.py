"""Products that land where their accumulator is copied to.

What a product leaves in an accumulator is copied into a plain matrix, and then the next product
takes its place. Where nobody else reads it there, the product writes the matrix itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ptokit.base.layout import Array
from ptokit.engines.compiled.fusion import Part, View
from ptokit.engines.compiled.product import ADDS, PANEL, TO, Landing, Multiply, landing

Plain = tuple[int, int, int]  # where a matrix begins, its steps from row to row and along a row


def landed(kernel: Multiply, words: Sequence[int], copy: Part) -> list[int] | None:
    """The words of a product that writes to where a copy takes all of it; None: it cannot."""
    to, source = copy.views
    if kernel.is_from_row or words[ADDS]:
        return None
    if source.memory != words[TO] or to.size != kernel.to.itemsize:
        return None
    ahead = source.offset - words[TO + 1]
    found = _plain_at(landing(kernel, words), copy.extents, _still(to), _still(source), ahead)
    if found is None:
        return None
    first, down, across = found
    moved = list(words)
    moved[TO : TO + 4] = to.memory, to.offset + first, down, PANEL * across
    return moved


def _still(view: View) -> View:
    """Views that go alike are alike, wherever they lie."""
    return view._replace(memory=0, offset=0)


@lru_cache(maxsize=256)
def _plain_at(
    at: Landing, extents: tuple[int, ...], to: View, source: View, ahead: int
) -> Plain | None:
    """The plain matrix that a copy makes of what a product has left; `ahead` of it it begins."""
    left = at.places()
    taken = offsets(extents, source.strides).reshape(-1) + ahead
    order = np.argsort(taken)
    if taken.size != left.size or not np.array_equal(taken[order], np.sort(left, axis=None)):
        return None  # it takes another part
    brought = offsets(extents, to.strides).reshape(-1)[order]
    found = plain(brought[np.searchsorted(taken[order], left)])
    return None if found is None or found[2] != at.size else found


def offsets(extents: Sequence[int], strides: Sequence[int]) -> Array:
    """Where the elements of some loops lie, in bytes."""
    found = np.zeros((), np.int64)
    for extent, stride in zip(extents, strides, strict=True):
        found = found[..., None] + np.arange(extent) * stride
    return found


def plain(places: Array) -> Plain | None:
    """The plain matrix whose elements lie in these places; None: they are none."""
    first = int(places[0, 0])
    lines = places[:, 0], places[0]
    down, across = (int(line[1]) - first if len(line) > 1 else 0 for line in lines)
    rows, columns = (np.arange(count) for count in places.shape)
    is_plain = np.array_equal(places - first, rows[:, None] * down + columns * across)
    return (first, down, across) if is_plain else None
