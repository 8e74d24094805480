"""Two tiles or arrays held against each other, and a picture of where they differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.dtypes import DType, dtype
from ptokit.base.layout import Array
from ptokit.machine.foreign import as_numpy
from ptokit.machine.objects import TileObject

SHADES = ".:-=+*#%@"  # of a cell of the picture: the share of its elements that differ
ROWS, COLUMNS = 16, 64  # of the picture, at most


def assert_tile_equal(
    actual: Any, expected: Any, *, ulp: int = 0, rtol: float = 0.0, atol: float = 0.0
) -> None:
    """Raise AssertionError unless all elements agree, saying which do not.

    Takes tiles, arrays of NumPy and tensors of torch. An element agrees when it is the same value
    (NaN agrees with NaN, 0 with -0), when it is at most `ulp` floats of the type of `actual` away,
    or when it is within `atol + rtol * |expected|`. Where `actual` has floats `expected` is first
    rounded to their type; its shape must be the same, or it is one number for all.
    """
    __tracebackhide__ = True
    if min(ulp, rtol, atol) < 0:
        raise ValueError(f"tolerances are not negative: ulp={ulp}, rtol={rtol}, atol={atol}")
    mine = _array(actual, "actual")
    theirs = _array(expected, "expected")
    if theirs.ndim and mine.shape != theirs.shape:
        raise AssertionError(f"the shapes differ: {mine.shape}, expected {theirs.shape}")
    kind = dtype(mine.dtype)
    wanted = np.broadcast_to(_rounded(theirs, kind), mine.shape)
    differs = ~_agree(mine, wanted, kind, ulp, rtol, atol)
    if differs.any():
        raise AssertionError(_difference(mine, wanted, kind, differs, _allowed(ulp, rtol, atol)))


def _array(value: Any, name: str) -> Array:
    if isinstance(value, TileObject):
        return value.numpy()  # type: ignore[attr-defined]
    is_number = isinstance(value, int | float | np.generic | list | tuple)
    return np.asarray(value) if is_number else as_numpy(value, name)


def _rounded(values: Array, kind: DType) -> Array:
    """Values in the type of the result; whole numbers are compared as they are."""
    if kind.is_integer or values.dtype == kind.np:
        return values
    with np.errstate(all="ignore"):
        return values.astype(kind.np)


def _agree(a: Array, b: Array, kind: DType, ulp: int, rtol: float, atol: float) -> Array:
    if kind.is_integer and not (rtol or atol):
        return np.asarray(a == b)
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float64), b.astype(np.float64)
        agree = (x == y) | (np.isnan(x) & np.isnan(y))
        agree |= np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= atol + rtol * np.abs(y))
    if kind.is_float and ulp:
        agree |= ~(np.isnan(x) | np.isnan(y)) & (_distance(a, b, kind) <= ulp)
    return agree


def _distance(a: Array, b: Array, kind: DType) -> Array:
    """How many floats of their type two values are apart."""
    return np.abs(_ordinal(a, kind) - _ordinal(b, kind))


def _ordinal(values: Array, kind: DType) -> Array:
    """The place of each value among the floats of its type, in ascending order; 0 has place 0."""
    bits = np.ascontiguousarray(values).view(kind.uint).astype(np.int64)
    sign = 1 << kind.bits - 1
    return np.where(bits & sign, sign - bits, bits) if kind.is_signed else bits


def _allowed(ulp: int, rtol: float, atol: float) -> str:
    given = {"ulp": ulp, "rtol": rtol, "atol": atol}
    return ", ".join(f"{name}={value}" for name, value in given.items() if value)


def _difference(a: Array, b: Array, kind: DType, differs: Array, allowed: str) -> str:
    """What differs: how many, the first, the worst, and where they lie."""
    places = np.argwhere(differs)
    first = tuple(int(i) for i in places[0])
    with np.errstate(all="ignore"):
        off = np.abs(a.astype(np.float64) - b.astype(np.float64))
    off = np.where(differs, np.where(np.isnan(off), np.inf, off), -1.0)
    worst = tuple(int(i) for i in np.unravel_index(int(np.argmax(off)), off.shape))
    within = f" by more than {allowed}" if allowed else ""
    lines = [
        f"{len(places)} of {a.size} elements differ{within} ({kind}, shape {a.shape})",
        f"  first at {_place(first)}: {_apart(a, b, first, kind)}",
    ]
    if worst != first:
        lines.append(f"  worst at {_place(worst)}: {_apart(a, b, worst, kind)}")
    return "\n".join([*lines, *_heat_map(differs)])


def _place(at: tuple[int, ...]) -> str:
    if len(at) == 2:
        return f"row {at[0]}, column {at[1]}"
    return f"[{', '.join(map(str, at))}]"


def _apart(a: Array, b: Array, at: tuple[int, ...], kind: DType) -> str:
    got, want = a[at], b[at]
    both = f"{got!s}, expected {want!s}"
    if kind.is_integer or not (np.isfinite(float(got)) and np.isfinite(float(want))):
        return both
    one, other = np.array([got], kind.np), np.array([want], kind.np)
    return f"{both} ({int(_distance(one, other, kind)[0])} ulp)"


def _heat_map(differs: Array) -> list[str]:
    """Rows of shades, each cell a part of the tile; leading dimensions are laid out as rows."""
    if differs.ndim == 0 or differs.size == 1:
        return []
    flat = differs.reshape(-1, differs.shape[-1])
    rows = np.array_split(np.arange(flat.shape[0]), min(ROWS, flat.shape[0]))
    columns = np.array_split(np.arange(flat.shape[1]), min(COLUMNS, flat.shape[1]))
    width = len(str(flat.shape[0] - 1))
    tall, wide = len(rows[0]), len(columns[0])
    cell = "one element" if tall == wide == 1 else f"{tall}x{wide} elements"
    lines = [f"  where (each character is {cell}; blank agrees, {SHADES[-1]} differs throughout):"]
    for row in rows:
        shares = [float(flat[np.ix_(row, column)].mean()) for column in columns]
        lines.append(f"  {row[0]:>{width}} |{''.join(map(_shade, shares)).rstrip()}")
    return lines


def _shade(share: float) -> str:
    return SHADES[min(int(share * len(SHADES)), len(SHADES) - 1)] if share else " "
