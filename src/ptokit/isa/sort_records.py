"""The records that the sorting instructions make and merge.

A record has 8 bytes: the value, zeros up to 4 bytes, then a 32-bit index. In a tile of f32 it
takes two elements, in one of f16 four. Records stand in descending order. Values compare by sign
and magnitude of their bits, so that a negative NaN, which fills up short runs, comes after
everything and a positive NaN before; +0 and -0 are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ptokit.base.diagnostics import fail
from ptokit.base.entry import public
from ptokit.base.layout import Array

RECORD_BYTES = 8


def elements_per_record(tile: Any) -> int:
    """Tile elements a record takes."""
    return RECORD_BYTES // tile.itemsize


def sort_keys(values: Array) -> Array:
    """Integers that order as the values do."""
    if values.dtype.kind in "iu":  # only the permissive profile sorts integers
        return values.astype(np.int64)
    bits = values.view(f"u{values.itemsize}").astype(np.int64)
    sign = 1 << 8 * values.itemsize - 1
    return np.where(bits & sign, -(bits & ~sign), bits)


@public
class MrgSortExecutedNumList:
    """How many records TMRGSORT took from each of its lists: mrgSortList0 to mrgSortList3.

    Only a merge with `exhausted` fills it in; before, the counts are undefined.
    """

    __slots__ = ("_counts",)
    key = "MrgSortExecutedNumList"  # calls do not depend on the contents
    operand_kind = "mrg_sort_executed_num_list"

    def __init__(self) -> None:
        self._counts: tuple[int, ...] | None = None

    def set(self, counts: Sequence[int]) -> None:
        """Store the counts; a list that did not take part counts 0."""
        self._counts = (*counts, 0, 0, 0, 0)[:4]

    @property
    def is_set(self) -> bool:
        """Whether a merge has filled it in."""
        return self._counts is not None

    def __getitem__(self, number: int) -> int:
        """The count of list 0, 1, 2 or 3."""
        if self._counts is None:
            raise fail(
                "poison-read",
                "the executed counts are read, but no TMRGSORT has written them",
                fix="run TMRGSORT with exhausted = true: TMRGSORT[True](dst, executed, tmp, ...)",
            )
        return self._counts[number]

    def __iter__(self) -> Iterator[int]:
        return iter([self[number] for number in range(4)])

    @property
    def mrgSortList0(self) -> int:
        return self[0]

    @property
    def mrgSortList1(self) -> int:
        return self[1]

    @property
    def mrgSortList2(self) -> int:
        return self[2]

    @property
    def mrgSortList3(self) -> int:
        return self[3]

    def __repr__(self) -> str:
        return f"<executed {'?' if self._counts is None else list(self._counts)}>"
