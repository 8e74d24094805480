"""Slices of views: `g[r0:r1, c0:c1]`, in one to five dimensions, on every path.

Indices stand for the dimensions of the array that the view was made from, the first ones first; a
view of five sizes counts as a matrix when the outer three are 1. A single index keeps its
dimension, as one row or column. What is known is checked here; what is known only when a kernel
runs is taken as it is.
"""

from __future__ import annotations

from operator import index
from typing import Any

from ptokit.base.diagnostics import fail
from ptokit.base.enums import Layout
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.tensors import GlobalSpec

Sizes = tuple[Any, ...]


class Window(NamedTuple):
    """A part of a view: where it starts in each dimension, and its sizes."""

    start: Sizes
    shape: Sizes


def rank_of(shape: Sizes) -> int:
    """The dimensions of a view that was not made from an array of so many."""
    return 2 if shape[:3] == (1, 1, 1) else 5


def window(given: Any, spec: GlobalSpec, shape: Sizes, rank: int, symbol: type | None) -> Window:
    """The part of a view that a slice names; values of the type `symbol` are not looked at."""
    parts = given if isinstance(given, tuple) else (given,)
    rank = max(rank, rank_of(shape) if len(parts) > rank else 1)
    if spec.layout not in (Layout.ND, Layout.DN):
        raise fail(
            "slice-layout",
            "only ND and DN views can be sliced",
            got=[("layout", spec.layout.name), ("shape", shape)],
            fix="make a GlobalTensor of the part: GlobalTensor[...](ptr(array, offset))",
        )
    if len(parts) > rank:
        raise fail(
            "slice-rank",
            f"this view has {rank} dimension{'s' if rank > 1 else ''}",
            got=[("indices", len(parts)), ("shape", shape[-rank:])],
            fix=f"give at most {rank}",
        )
    first = 5 - rank
    starts, sizes = [0] * 5, list(shape)
    for axis, part in enumerate(parts, first):
        if part.__class__ is slice and part.step is None:  # what most slices are
            extent = shape[axis]
            start = 0 if part.start is None else part.start
            stop = extent if part.stop is None else part.stop
            are_known = start.__class__ is stop.__class__ is extent.__class__ is int
            if are_known and 0 <= start <= stop <= extent:
                starts[axis], sizes[axis] = start, stop - start
                continue
        starts[axis], sizes[axis] = _extent(part, shape[axis], axis - first, rank, symbol)
    return Window(tuple(starts), tuple(sizes))


_NAMES = {1: ("elements",), 2: ("rows", "columns")}


def _extent(part: Any, extent: Any, axis: int, rank: int, symbol: type | None) -> tuple[Any, Any]:
    names = _NAMES.get(rank, ())
    what = names[axis] if names else f"dimension {axis}"

    def whole(number: Any) -> Any:
        return number if symbol is not None and isinstance(number, symbol) else index(number)

    try:
        if isinstance(part, slice):
            start = 0 if part.start is None else whole(part.start)
            stop = extent if part.stop is None else whole(part.stop)
            step = 1 if part.step is None else whole(part.step)
        else:
            start, step = whole(part), 1
            stop = start + 1
    except TypeError:
        raise fail(
            "slice-range",
            "a view is sliced by whole numbers, rows first",
            got=[(what, part)],
            fix="view[r0:r1, c0:c1]",
        ) from None
    if not isinstance(step, int) or step != 1:
        raise fail(
            "slice-step",
            f"a slice of {what} has step 1: memory is moved as it lies",
            got=[("step", step)],
            fix="move the whole range, or make a view with another Stride",
        )
    known = [n for n in (start, stop, extent) if isinstance(n, int)]
    is_inside = all(n >= 0 for n in known)
    if isinstance(start, int) and isinstance(stop, int):
        is_inside = 0 <= start <= stop
    if isinstance(extent, int):
        is_inside &= all(n <= extent for n in (start, stop) if isinstance(n, int))
    if not is_inside:
        raise fail(
            "slice-range",
            f"a slice of {what} lies inside the view and has step 1",
            got=[("slice", part), (what, extent)],
            fix=f"0 <= start <= stop <= {extent}; negative positions and steps are not taken",
        )
    return start, stop - start
