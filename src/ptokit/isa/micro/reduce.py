"""Reductions: lanes of a register become one, one per block of 32 bytes, or one per pair."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.isa.freedom import reassociates, unspecified
from ptokit.isa.micro.arithmetic import INTEGERS
from ptokit.isa.micro.idioms import ADD, MAX, MIN, Fold
from ptokit.isa.micro.spec import ZEROING_CALL, Flow, Masking, micro

_TYPES = f"{INTEGERS} f16 f32"
_ORDER = reassociates("Floats are added in f32, neighbours first; the order is open.")
_REDUCE = "a:V mask:M -> dst:V"
_BLOCK = 32


def _wide(a: Array) -> Array:
    """Lanes in the type in which they are added or compared."""
    if a.dtype.kind in "iu":
        return a.astype(np.int64)
    return a.astype(np.float32)


def _neutral(T: DType, is_max: bool) -> float:
    if T.is_float:
        return -np.inf if is_max else np.inf
    return T.min_value if is_max else T.max_value


def _first(value: Array, count: int, kind: np.dtype[Any]) -> Array:
    found = np.zeros(count, kind)
    found[: value.size] = value.astype(kind)
    return found


@micro(
    "a:V mask:M -> dst:W",
    types="i8>i16 u8>u16 i16>i32 u16>u32 i32>i32 u32>u32 f16>f16 f32>f32",
    masking=Masking.NEUTRAL,
    flow=Flow.ALL,
    fold=Fold(ADD),
    freedom=_ORDER,
    cpp=ZEROING_CALL,
)
def vcadd(a: Array, mask: Array, U: DType) -> Array:
    """Add the active lanes; the sum is in lane 0, the others are 0.

    Integers of less than 32 bits have a sum of twice their width.
    """
    sums = added(np.where(mask, _wide(a), 0)[None, :])
    return _first(sums, 256 // U.itemsize, U.np)


def _extreme(is_max: bool) -> Callable[..., Array]:
    def found(a: Array, mask: Array, T: DType) -> Array:
        lanes = np.where(mask, _wide(a), _neutral(T, is_max))
        where = int(lanes.argmax() if is_max else lanes.argmin())
        result = np.zeros(a.size, T.np)
        result[0] = lanes[where].astype(T.np)
        result.view(T.uint)[1] = where
        return result

    return found


def _groups(
    combine: Callable[..., Array], neutral: Callable[[DType], float]
) -> Callable[..., Array]:
    def found(a: Array, mask: Array, T: DType) -> Array:
        lanes = np.where(mask, _wide(a), neutral(T)).reshape(-1, _BLOCK // T.itemsize)
        return _first(combine(lanes), a.size, T.np)

    return found


def added(lanes: Array) -> Array:
    """The sum of each row, neighbours first."""
    while lanes.shape[1] > 1:
        odd = lanes[:, lanes.shape[1] & ~1 :]
        pairs = lanes[:, : lanes.shape[1] & ~1]
        lanes = np.concatenate([pairs[:, ::2] + pairs[:, 1::2], odd], axis=1)
    return lanes[:, 0]


def largest(lanes: Array) -> Array:
    """The first greatest element of each row; a NaN is that."""
    return lanes[np.arange(len(lanes)), lanes.argmax(axis=1)]


def smallest(lanes: Array) -> Array:
    """The first least element of each row; a NaN is that."""
    return lanes[np.arange(len(lanes)), lanes.argmin(axis=1)]


def _zero(T: DType) -> float:
    return 0


def _where(is_max: bool) -> Callable[..., tuple[Array, Array]]:
    def found(a: Array, mask: Array, T: DType) -> tuple[Array, Array]:
        lanes = np.where(mask, _wide(a), _neutral(T, is_max))
        value = lanes[lanes.argmax() if is_max else lanes.argmin()]
        return _first(np.array([value]), a.size, T.np), mask & (lanes == value)

    return found


_reduction = partial(
    micro, _REDUCE, types=_TYPES, masking=Masking.NEUTRAL, flow=Flow.ALL, cpp=ZEROING_CALL
)
_and_where = partial(
    micro, "a:V mask:M -> dst:V where:M", types=_TYPES, masking=Masking.NEUTRAL, flow=Flow.ALL
)


def _define_extremes(end: str, word: str, is_max: bool) -> None:
    place = "its value in lane 0, its first place, an integer, in lane 1"
    _reduction(
        name=f"vc{end}",
        fold=Fold(end, has_place=True),
        doc=f"Find the {word} active lane: {place}.\n\nWithout an active lane, lane 0 is the "
        "neutral element.",
    )(_extreme(is_max))
    _reduction(
        name=f"vcg{end}",
        fold=Fold(end, bytes_of_group=_BLOCK),
        doc=f"Find the {word} active lane of each block of 32 bytes; lane g is that of block g.",
    )(_groups(largest if is_max else smallest, partial(_neutral, is_max=is_max)))
    _and_where(
        name=f"vcb{end}",
        fold=Fold(end),
        doc=f"Find the {word} active lane, in lane 0, and a mask of the lanes equal to it.",
        freedom=unspecified("every lane", "No recorded run shows this operation."),
    )(_where(is_max))


_define_extremes(MAX, "largest", True)
_define_extremes(MIN, "smallest", False)
_reduction(
    name="vcgadd",
    fold=Fold(ADD, bytes_of_group=_BLOCK),
    freedom=_ORDER,
    doc="Add the active lanes of each block of 32 bytes; lane g is the sum of block g.",
)(_groups(added, _zero))


@micro(
    _REDUCE,
    types="f16 f32",
    masking=Masking.NEUTRAL,
    flow=Flow.ALL,
    fold=Fold(ADD, lanes_of_group=2),
    cpp=ZEROING_CALL,
)
def vcpadd(a: Array, mask: Array, T: DType) -> Array:
    """Add neighbours: lane i is the sum of the active ones of lanes 2i and 2i + 1."""
    lanes = np.where(mask, _wide(a), 0)
    return _first(lanes[::2] + lanes[1::2], a.size, T.np)
