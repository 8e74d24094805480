"""The order in which each target combines the elements of a row or a column.

Sums and products of floats depend on it, so it is said here once, for all reductions. A vector
register holds 256 bytes (its lanes), a block 32. What no target states is the order inside the
cross-lane add; the reference adds neighbouring lanes, then neighbouring sums, and so on. Integers
wrap, so for them every order gives the same bits.

An order works on arrays of numbers and, the same code, on arrays of symbols: `tree` shows which
elements meet in which step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from ptokit.base.convert import convert
from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType, bf16, f16, f32
from ptokit.base.enums import SaturationMode
from ptokit.base.layout import Array
from ptokit.base.namedtuple import NamedTuple

REGISTER_BYTES = 256
BLOCK_BYTES = 32


class Steps(NamedTuple):
    """What an order is made of: the combination of two values, its identity, changes of type."""

    op: Any  # a ufunc
    identity: Any
    kind: DType
    cast: Callable[[Array, DType, DType], Array]


@dataclass(frozen=True)
class Order:
    """An order of combination along an axis (1: a row), and the type in which it is done."""

    text: str
    axis: int
    fold: Callable[[Steps, Array], Array] = field(repr=False)
    # Of the types of source and destination; None: that of the destination.
    wide: Callable[[DType, DType], DType] | None = field(default=None, repr=False)


def narrowed(values: Array, src: DType, dst: DType) -> Array:
    """Values in another type; what is too large becomes an infinity."""
    return values if src is dst else convert(values, src, dst, saturation=SaturationMode.OFF)


def tree(order: Order, kind: DType, count: int) -> Any:
    """Which of `count` elements meet: a number is an element, a pair a combination, None the
    identity, and ("f32", x) a change of type."""
    pair = np.frompyfunc(lambda a, b: (a, b), 2, 1)

    def cast(values: Array, _: DType, to: DType) -> Any:
        return np.frompyfunc(lambda value: (to.name, value), 1, 1)(values)

    leaves = np.expand_dims(np.arange(count).astype(object), 1 - order.axis)
    return order.fold(Steps(pair, None, kind, cast), leaves)[0]


def _across(op: Any, values: Array) -> Array:
    """Combine the lanes, the last axis: neighbours first, then neighbouring results."""
    *rows, lanes = values.shape
    if lanes and lanes & lanes - 1 == 0:  # then neighbours stay neighbours without their rows
        values = values.reshape(-1)
        for _ in range(lanes.bit_length() - 1):
            values = op(values[0::2], values[1::2])
        return values.reshape(rows)
    while (lanes := values.shape[-1]) > 1:
        even = lanes // 2 * 2
        pairs = op(values[..., 0:even:2], values[..., 1:even:2])
        values = pairs if even == lanes else np.concatenate((pairs, values[..., even:]), axis=-1)
    return values[..., 0]


# ---- rows ----------------------------------------------------------------------------------------


def _one_by_one(steps: Steps, values: Array) -> Array:
    return steps.op.accumulate(values, axis=1, dtype=values.dtype)[:, -1]


def _registers(steps: Steps, values: Array) -> Array:
    lanes = REGISTER_BYTES // steps.kind.itemsize
    rows, cols = values.shape
    whole = cols // lanes * lanes
    total = np.full(rows, steps.identity, values.dtype)
    for part in _across(steps.op, values[:, :whole].reshape(rows, whole // lanes, lanes)).T:
        total = steps.op(total, part)
    return total if whole == cols else steps.op(total, _across(steps.op, values[:, whole:]))


def _paired_registers(steps: Steps, values: Array) -> Array:
    lanes = REGISTER_BYTES // steps.kind.itemsize
    chunks = [values[:, c : c + lanes] for c in range(0, values.shape[1], lanes)]
    rest = chunks.pop() if chunks[-1].shape[1] < lanes and len(chunks) > 1 else None
    parts = [chunks[0].copy()] if len(chunks) == 1 else _pairs(steps.op, chunks)
    if len(chunks) > 1 and len(chunks) % 2:
        parts[0] = steps.op(parts[0], chunks[-1])
    if rest is not None:
        short = parts[0][:, : rest.shape[1]]
        short[...] = steps.op(short, rest)
    while len(parts) > 1:
        odd = parts[-1] if len(parts) % 2 else None
        parts = _pairs(steps.op, parts)
        if odd is not None:
            parts[-1] = steps.op(parts[-1], odd)
    return _across(steps.op, parts[0])


def _pairs(op: Any, parts: list[Array]) -> list[Array]:
    return [op(a, b) for a, b in zip(parts[0::2], parts[1::2], strict=False)]


def _blocks(steps: Steps, values: Array) -> Array:
    rows = values.shape[0]
    width = BLOCK_BYTES // steps.kind.itemsize

    def inside(parts: Array) -> Array:
        return _across(steps.op, parts.reshape(-1, width)).reshape(rows, -1)

    parts = inside(values)
    if parts.shape[1] >= width * width:
        parts = inside(parts)
    while parts.shape[1] > width:
        pairs = parts.reshape(rows, -1, 2, width)
        parts = steps.op(pairs[:, :, 0], pairs[:, :, 1]).reshape(rows, -1)
    return inside(parts)[:, 0]


def _by_lane(steps: Steps, values: Array, lanes: int) -> Array:
    """Combine pieces of a row lane by lane."""
    total = np.full((values.shape[0], lanes), steps.identity, values.dtype)
    for start in range(0, values.shape[1], lanes):
        chunk = values[:, start : start + lanes]
        part = total[:, : chunk.shape[1]]
        part[...] = steps.op(part, chunk)
    return total


def _halves(steps: Steps, values: Array) -> Array:
    total = _by_lane(steps, values, REGISTER_BYTES // steps.kind.itemsize)
    while (lanes := total.shape[1] // 2) > 0:
        total = steps.op(total[:, :lanes], total[:, lanes:])
    return total[:, 0]


def _scalar_unit(steps: Steps, values: Array) -> Array:
    total = _by_lane(steps, values, BLOCK_BYTES // steps.kind.itemsize)
    wide = steps.cast(total, steps.kind, f32)
    return steps.cast(_one_by_one(steps, wide), f32, steps.kind)


def _wide_sum(src: DType, dst: DType) -> DType:
    return f32 if src is f16 or src is bf16 else dst


LEFT_TO_RIGHT = Order("from left to right", 1, _one_by_one)
WIDE_LEFT_TO_RIGHT = Order("from left to right, 16-bit floats in f32", 1, _one_by_one, _wide_sum)
REGISTERS = Order("256 bytes at a time, neighbours first, onto the identity", 1, _registers)
PAIRED_REGISTERS = Order(
    "registers lane by lane in pairs (an odd one to the first pair, the short one last), then "
    "neighbouring lanes",
    1,
    _paired_registers,
)
BLOCKS = Order("inside blocks of 32 bytes, then across blocks", 1, _blocks)
LANES_THEN_HALVES = Order("registers lane by lane, then halves", 1, _halves)
LANES_THEN_SCALAR = Order(
    "blocks lane by lane, then the lanes from left to right in f32", 1, _scalar_unit
)


# ---- columns -------------------------------------------------------------------------------------


def _row_by_row(steps: Steps, values: Array) -> Array:
    total = values[0]
    for row in values[1:]:
        total = steps.op(total, row)
    return total


def _two_rows_at_a_time(steps: Steps, values: Array) -> Array:
    total = values[0]
    for first in range(1, len(values) - 1, 2):
        total = steps.op(total, steps.op(values[first], values[first + 1]))
    return total if len(values) % 2 else steps.op(total, values[-1])


def _tree(home: int) -> Callable[[Steps, Array], Array]:
    """A pairwise tree; `home` is the pair that takes an odd row in."""

    def fold(steps: Steps, values: Array) -> Array:
        if len(values) == 1:
            return values[0] if home == 0 else steps.op(values[0], steps.identity)
        while len(values) > 1:
            pairs = steps.op(values[0:-1:2], values[1::2])
            if len(values) % 2:
                pairs[home] = steps.op(pairs[home], values[-1])
            values = pairs
        return values[0]

    return fold


ROW_BY_ROW = Order("row by row", 0, _row_by_row)
TWO_ROWS_AT_A_TIME = Order("two rows at a time", 0, _two_rows_at_a_time)
TREE_TO_FIRST = Order("a pairwise tree, an odd row joins the first pair", 0, _tree(0))
TREE_TO_LAST = Order("a pairwise tree, an odd row joins the last pair", 0, _tree(-1))


# ---- extremes ------------------------------------------------------------------------------------


def first_extreme(values: Array, axis: int, *, largest: bool) -> Array:
    """Index of the extreme along an axis as a scan with a strict comparison finds it.

    The first of equal elements wins, +0 and -0 are equal. A NaN is never better than what the scan
    holds, and nothing is better than a NaN, so only one at the start is ever chosen.
    """
    find = np.argmax if largest else np.argmin
    if values.dtype.kind in "iu":
        return find(values, axis=axis)
    nans = np.isnan(values)
    if not nans.any():
        return find(values, axis=axis)
    worst = values.dtype.type(-np.inf if largest else np.inf)
    found = find(np.where(nans, worst, values), axis=axis)
    return np.where(nans.take(0, axis=axis), 0, found)


def extreme(values: Array, axis: int, *, largest: bool) -> Array:
    """The extreme along an axis, bit for bit the element that such a scan finds."""
    found = (np.maximum if largest else np.minimum).reduce(values, axis=axis, keepdims=True)
    # Among zeros of both signs the first one counts, and NaNs have rules of their own.
    plain = values.dtype.kind in "iu" or np.count_nonzero(abs(found) > 0) == found.size
    if plain:
        return found
    index = np.expand_dims(first_extreme(values, axis, largest=largest), axis)
    return np.take_along_axis(values, index, axis=axis)
