"""Sorting records in memory: a score and an index, eight bytes. Instructions beside scopes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.convert import to_float64
from ptokit.base.dtypes import f32
from ptokit.base.layout import Array
from ptokit.isa.effects import Pipe
from ptokit.isa.freedom import unspecified
from ptokit.isa.micro.spec import micro

_GROUP = 32  # records that are sorted at once
_RECORD = 8  # bytes


def _read(unit: Any, at: Any, start: int, nbytes: int, what: str) -> Array:
    data, poison = unit.read(at, start, nbytes)
    if poison is not None:
        unit.require(poison, what)
    return data


@micro("dst:ub src:ub index:ub n:index", is_inside=False)
def vbitsort(dst: Any, src: Any, index: Any, n: int, unit: Any) -> None:
    """Sort groups of 32 scores, each with its index, into records of eight bytes.

    The score takes the first bytes of a record, the index its last four. Scores fall; equal ones
    stay in the order of the input.
    """
    kind = src.dtype
    for group in range(n):
        size = _GROUP * kind.itemsize
        scores = _read(unit, src, src.offset + group * size, size, "the scores").view(kind.np)
        places = _read(unit, index, index.offset + group * 128, 128, "the indices").reshape(-1, 4)
        order = np.argsort(-to_float64(scores, kind), kind="stable")
        records = np.zeros((_GROUP, _RECORD), np.uint8)
        records[:, : kind.itemsize] = scores[order].view(np.uint8).reshape(_GROUP, -1)
        records[:, 4:] = places[order]
        at = dst.offset + group * _GROUP * _RECORD
        unit.write(dst, at, records.reshape(-1), None)


@micro(
    "dst:ub a:ub b:ub c:ub d:ub counts:int config:int",
    is_inside=False,
    sets="VMS4",
    freedom=unspecified("a repeat of more than 1", "No recorded run shows it: one merge is done."),
)
def vmrgsort4(
    dst: Any, a: Any, b: Any, c: Any, d: Any, counts: int, config: int, unit: Any
) -> None:
    """Merge up to four lists of sorted records by falling score; of equal ones the first list's.

    `counts` has the four lengths, 16 bits each; of `config` bits 8 to 11 say which lists there are,
    and bit 12 ends the merge when one of them runs out. The hidden register VMS4 has how many
    records were taken of each.
    """
    lists: list[Array] = []
    for number, at in enumerate((a, b, c, d)):
        length = counts >> 16 * number & 0xFFFF if config >> 8 + number & 1 else 0
        data = _read(unit, at, at.offset, length * _RECORD, "a list of records")
        lists.append(data.reshape(-1, _RECORD).copy())
    scores = [np.ascontiguousarray(each[:, :4]).view(f32.np)[:, 0] for each in lists]
    taken, merged = [0, 0, 0, 0], list[Array]()
    while any(taken[n] < len(each) for n, each in enumerate(lists)):
        heads = [(-scores[n][taken[n]], n) for n, each in enumerate(lists) if taken[n] < len(each)]
        first = min(heads)[1]
        merged.append(lists[first][taken[first]])
        taken[first] += 1
        if config >> 12 & 1 and taken[first] == len(lists[first]):
            break
    if merged:
        unit.write(dst, dst.offset, np.concatenate(merged), None)
    unit.registers["VMS4"] = tuple(taken)


@micro(
    "-> a:int b:int c:int d:int",
    is_inside=False,
    pipe=Pipe.S,
    uses="VMS4",
    syntax="{} : T(a), T(b), T(c), T(d)",
)
def get_vms4_sr(unit: Any) -> Any:
    """Read how many records the last merge has taken of each list."""
    return unit.hidden("VMS4")
