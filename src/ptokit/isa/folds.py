"""The order in which each target combines the elements of a row or a column.

Sums and products of floats depend on it, so it is said here once, for all reductions. A vector
register holds 256 bytes (its lanes), a block 32. What no target states is the order inside the
cross-lane add; the reference adds neighbouring lanes, then neighbouring sums, and so on. Integers
wrap, so for them every order gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.convert import convert
from ptokit.base.dtypes import DType
from ptokit.base.enums import SaturationMode
from ptokit.base.layout import Array
from ptokit.isa.vector_rules import BLOCK_BYTES, REGISTER_BYTES

Op = Callable[[Any, Any], Any]


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


def across(op: Op, values: Array) -> Array:
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


def row_sums(values: Array, target: str) -> Array:
    """Sum every row in the element type, in the order of a device."""
    if values.dtype.kind in "iu":
        return np.add.reduce(values, axis=1, dtype=values.dtype)
    lanes = REGISTER_BYTES // values.itemsize
    rows, cols = values.shape
    if target == "a2a3":
        chunks = [values[:, c : c + lanes] for c in range(0, cols, lanes)]
        return across(np.add, _add_chunks(chunks, lanes))
    whole = cols // lanes * lanes
    total = np.zeros(rows, values.dtype)
    for part in across(np.add, values[:, :whole].reshape(rows, whole // lanes, lanes)).T:
        total = total + part
    return total if whole == cols else total + across(np.add, values[:, whole:])


def _add_chunks(chunks: list[Array], lanes: int) -> Array:
    """Add registers lane by lane: in pairs, an odd one to the first pair, the short one last."""
    rest = chunks.pop() if chunks[-1].shape[1] < lanes and len(chunks) > 1 else None
    if len(chunks) == 1:
        parts = [chunks[0].copy()]
    else:
        parts = _pairwise(chunks)
        if len(chunks) % 2:
            parts[0] = parts[0] + chunks[-1]
    if rest is not None:
        parts[0][:, : rest.shape[1]] += rest
    while len(parts) > 1:
        odd = parts[-1] if len(parts) % 2 else None
        parts = _pairwise(parts)
        if odd is not None:
            parts[-1] = parts[-1] + odd
    return parts[0]


def _pairwise(parts: Sequence[Array]) -> list[Array]:
    return [a + b for a, b in zip(parts[0::2], parts[1::2], strict=False)]


def row_sums_by_blocks(values: Array) -> Array:
    """Sum rows of floats as a2a3 does for some shapes: inside blocks first, then across blocks."""
    rows = values.shape[0]
    width = BLOCK_BYTES // values.itemsize

    def inside(parts: Array) -> Array:
        return across(np.add, parts.reshape(-1, width)).reshape(rows, -1)

    parts = inside(values)
    if parts.shape[1] >= width * width:
        parts = inside(parts)
    while parts.shape[1] > width:
        pairs = parts.reshape(rows, -1, 2, width)
        parts = (pairs[:, :, 0] + pairs[:, :, 1]).reshape(rows, -1)
    return inside(parts)[:, 0]


def row_products(values: Array, kind: DType, target: str) -> Array:
    """Multiply every row in the element type, in the order of a device."""
    if kind.is_integer:
        return np.multiply.reduce(values, axis=1, dtype=values.dtype)
    lanes = (BLOCK_BYTES if target == "a2a3" else REGISTER_BYTES) // values.itemsize
    product = np.ones((values.shape[0], lanes), values.dtype)
    for start in range(0, values.shape[1], lanes):
        chunk = values[:, start : start + lanes]
        product[:, : chunk.shape[1]] *= chunk
    if target == "a2a3":  # the scalar unit finishes, from left to right, in f32
        return _sequential(np.multiply, product, kind, dt.f32, kind)
    while lanes > 1:
        lanes //= 2
        product = product[:, :lanes] * product[:, lanes:]
    return product[:, 0]


def simulated_row_sums(values: Array, src: DType, dst: DType) -> Array:
    """Sum every row from left to right, 16-bit floats in f32: the `cpu` profile."""
    wide = dt.f32 if src is dt.f16 or src is dt.bf16 else dst
    return _sequential(np.add, values, src, wide, dst)


def simulated_row_products(values: Array, src: DType, dst: DType) -> Array:
    """Multiply every row from left to right in the destination's type: the `cpu` profile."""
    return _sequential(np.multiply, values, src, dst, dst)


def _sequential(op: Any, values: Array, src: DType, wide: DType, dst: DType) -> Array:
    """Combine from left to right in one type, then round to another once."""
    total = op.accumulate(convert(values, src, wide), axis=1, dtype=wide.np)[:, -1]
    return convert(total, wide, dst, saturation=SaturationMode.OFF)


# ---- columns -------------------------------------------------------------------------------------


def fold_rows(op: Any, values: Array, target: str) -> Array:
    """Combine the rows of a matrix from top to bottom, in the order of the target."""
    if values.dtype.kind in "iu":
        return op.reduce(values, axis=0, dtype=values.dtype)
    total = values[0]
    if target in ("a2a3", "cpu"):
        for row in values[1:]:
            total = op(total, row)
        return total
    for first in range(1, len(values) - 1, 2):  # two rows at a time
        total = op(total, op(values[first], values[first + 1]))
    return total if len(values) % 2 else op(total, values[-1])


def tree_rows(op: Any, values: Array, target: str) -> Array:
    """Combine the rows of a matrix by a pairwise tree; targets differ in where an odd row goes."""
    if len(values) == 1:
        return values[0].copy() if target == "a2a3" else op(values[0], values.dtype.type(0))
    while len(values) > 1:
        pairs = op(values[0:-1:2], values[1::2])
        if len(values) % 2:
            home = 0 if target == "a2a3" else -1
            pairs[home] = op(pairs[home], values[-1])
        values = pairs
    return values[0]
