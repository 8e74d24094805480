"""Masks of logical vectors: a bit for each lane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.isa.micro.logical import GROUP, GROUPS, logical
from ptokit.isa.micro.spec import Flow, Law, Masking, Vector, Word


@logical("n:index -> dst:M", name="vmi.create_mask")
def create_mask(n: int, lanes: int) -> Array:
    """Activate the first lanes, as many as a number says."""
    return np.arange(lanes) < n


@logical(
    "n:index -> dst:M",
    name="vmi.create_group_mask",
    words=[GROUPS, Word("group_size", (), None, example="8 : i64")],
    laws=[
        Law(
            "num_groups * group_size is the number of lanes",
            lambda dst, num_groups, group_size: (
                num_groups > 0 and group_size > 0 and num_groups * group_size == dst.lanes
            ),
        )
    ],
)
def create_group_mask(n: int, group_size: int, lanes: int) -> Array:
    """Activate the first lanes of every group, as many as a number says."""
    return np.arange(lanes) % group_size < n


_WHOLE_GROUPS = Law(
    "the groups have the same number of lanes",
    lambda dst, group: group >= 0 and (not group or dst.lanes % group == 0),
)


@logical(
    "-> dst:M",
    name="vmi.pset",
    words=[Word("pattern", ("PAT_ALL",)), GROUP],
    laws=[_WHOLE_GROUPS],
    syntax="@pattern {} : T(dst)",
)
def pset(lanes: int) -> Array:
    """Activate every lane."""
    return np.ones(lanes, np.bool_)


def _named(pattern: str) -> int:
    """The lanes of PAT_VL16; 0 of what is no such pattern."""
    count = pattern.removeprefix("PAT_VL")
    return int(count) if pattern.startswith("PAT_VL") and count.isascii() and count.isdigit() else 0


def _names_lanes(dst: Vector, pattern: str) -> bool:
    return 0 < _named(pattern) <= dst.lanes


@logical(
    "-> dst:M",
    name="vmi.pge",
    words=[Word("pattern", (), None, "PAT_VL and a number of lanes", '"PAT_VL16"'), GROUP],
    laws=[
        Law("pattern is PAT_VL with a number from 1 to the lanes of dst", _names_lanes),
        _WHOLE_GROUPS,
    ],
    syntax="@pattern {} : T(dst)",
)
def pge(pattern: str, group: int, lanes: int) -> Array:
    """Activate as many lanes as the pattern says, the first ones or the first of every group."""
    return np.arange(lanes) % (lanes // (group or 1)) < _named(pattern)


@logical(
    "n:int -> dst:M rest:int",
    name="vmi.plt",
    laws=[Law("the numbers are i32", lambda n, rest: n.spelled == rest.spelled == "i32")],
)
def plt(n: int, lanes: int) -> tuple[Array, int]:
    """Activate the first lanes, as many as a number says; the rest of the number comes with it."""
    return np.arange(lanes) < n, max(int(n) - lanes, 0)


@logical(
    "-> dst:M",
    name="vmi.constant_mask",
    words=[Word("value", (), None, example="dense<true> : vector<64xi1>")],
    laws=[
        Law(
            "value lists i1 for all lanes: dense<true> : vector<64xi1>",
            lambda dst, value: (
                isinstance(value, Vector) and value.spelled == "i1" and value.lanes == dst.lanes
            ),
        )
    ],
    syntax="{} : T(dst)",
    is_generic=True,
)
def constant_mask(value: Sequence[float], lanes: int) -> Array:
    """Activate the lanes that are listed as true."""
    return np.resize(np.array(value, np.bool_), lanes)


@logical(
    "mask:M -> dst:V",
    name="vmi.active_prefix_index",
    example=lambda T, U: {"dst": f"!pto.vmi.vreg<64xi{T.bits}>"},
    types="u8 u16 u32",
    laws=[
        Law("the result has integers without a sign: i32", lambda dst: dst.spelled[0] == "i"),
        Law(
            "a mask of a width is that of the lanes of dst",
            lambda mask, dst: mask.spelled in ("pred", f"b{dst.bits}"),
        ),
    ],
    masking=Masking.SELECT,
)
def active_prefix_index(mask: Array, U: DType) -> Array:
    """Count for each lane the active ones before it."""
    return (np.cumsum(mask) - mask).astype(U.np)


@logical("a:V mask:M -> dst:V", name="vmi.compress", masking=Masking.SELECT, flow=Flow.BYTES)
def compress(a: Array, mask: Array) -> Array:
    """Move the active lanes to the front, in their order; zeros follow."""
    found = np.zeros_like(a)
    kept = a[mask]
    found[: kept.size] = kept
    return found
