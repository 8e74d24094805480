"""Reductions of logical vectors: all lanes, or those of each group, to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.isa.freedom import unspecified
from ptokit.isa.micro.arithmetic import FLOATS, INTEGERS
from ptokit.isa.micro.idioms import ADD, MAX, MIN, Fold
from ptokit.isa.micro.logical import GROUP, GROUPS, ONE_TYPE, PMODE, logical
from ptokit.isa.micro.reduce import added, largest, smallest
from ptokit.isa.micro.samples import vector
from ptokit.isa.micro.spec import Example, Flow, Law, Masking, Vector, Word

_ORDER = unspecified("the order of sums", "In wide arithmetic here, rounded once.")


def _grouped(a: Array, mask: Array | None, lanes: int, neutral: Any) -> Array:
    """A row for each group, with a neutral element in the place of inactive lanes."""
    wide = a.astype(np.float64 if a.dtype.kind not in "iu" else np.int64)
    return (wide if mask is None else np.where(mask, wide, neutral)).reshape(lanes, -1)


def _sum(a: Array, mask: Array | None, lanes: int) -> Array:
    return added(_grouped(a, mask, lanes, 0))


def _greatest(a: Array, mask: Array | None, lanes: int, T: DType) -> Array:
    lowest = -np.inf if T.is_float else np.iinfo(T.np).min
    return largest(_grouped(a, mask, lanes, lowest))


def _least(a: Array, mask: Array | None, lanes: int, T: DType) -> Array:
    highest = np.inf if T.is_float else np.iinfo(T.np).max
    return smallest(_grouped(a, mask, lanes, highest))


_FOLDS: dict[str, tuple[Callable[..., Array], str]] = {
    ADD: (_sum, "Add the active lanes"),
    MAX: (_greatest, "Take the greatest active lane"),
    MIN: (_least, "Take the least active lane"),
}


def _one_per_group(a: Vector, dst: Vector, group: int) -> bool:
    return group >= 0 and dst.lanes == (group or 1) and a.lanes % dst.lanes == 0


def _one_per_row(a: Vector, dst: Vector, num_groups: int) -> bool:
    return num_groups > 0 and _one_per_group(a, dst, num_groups)


_BY_GROUP = Law("dst has a lane for each group, without groups one", _one_per_group)
_BY_ROW = Law("dst has a lane for each group, all of as many lanes of a", _one_per_row)
_TO_ONE = Law("dst has one lane", lambda dst: dst.lanes == 1)
_REASSOC = Word("reassoc", (), "", "sums of floats may be taken in any order")
_ANY_ORDER = Law(
    "a sum of floats says that it may be taken in any order",
    lambda a, reassoc: not a.is_float or reassoc != "",
    "write {reassoc}",
)


def _shown(lanes: int, is_sum: bool) -> Example:
    """A sample: so many results, and sums of floats that may be taken in any order."""

    def example(T: DType, U: DType) -> dict[str, str]:
        more = {"reassoc": ""} if is_sum and T.is_float else {}
        return {"dst": vector(lanes, T)} | more

    return example


_REDUCES: dict[str, Any] = {
    "signature": "a:V mask?:M -> dst:G",
    "syntax": "%a[?, %mask?] {} : T(a)[?, T(mask)?] -> T(dst)",
    "masking": Masking.NEUTRAL,
    "flow": Flow.ALL,
}
for _fold, (_body, _what) in _FOLDS.items():
    _sums = _fold == ADD
    _open = {"freedom": _ORDER} if _sums else {}
    _words, _laws = ([_REASSOC], [_ANY_ORDER]) if _sums else ([], [])
    logical(
        name=f"vmi.vc{_fold}",
        types=f"{INTEGERS} {FLOATS}",
        words=[GROUP, PMODE, *_words],
        laws=[ONE_TYPE, _BY_GROUP, *_laws],
        doc=f"{_what} of each group; the result has a lane for each.",
        example=_shown(1, _sums),
        fold=Fold(_fold),
        **_open,
        **_REDUCES,
    )(_body)
    for _letter, _kinds, _of in (("f", FLOATS, "floats"), ("i", INTEGERS, "integers")):
        _more = (_words, _laws) if _letter == "f" else (_words and [_REASSOC], [])
        _whole = "i32 u32" if _sums and _letter == "i" else _kinds
        logical(
            name=f"vmi.reduce_{_fold}{_letter}",
            types=_whole,
            words=_more[0],
            laws=[ONE_TYPE, _TO_ONE, *_more[1]],
            doc=f"{_what} of a vector of {_of}.",
            example=_shown(1, _sums),
            fold=Fold(_fold),
            **(_open if _letter == "f" else {}),
            **_REDUCES,
        )(_body)
        logical(
            name=f"vmi.group_reduce_{_fold}{_letter}",
            types=_kinds,
            words=[GROUPS, *_more[0]],
            laws=[ONE_TYPE, _BY_ROW, *_more[1]],
            doc=f"{_what} of each group of {_of}; the result has a lane for each.",
            example=_shown(8, _sums),
            fold=Fold(_fold),
            **(_open if _letter == "f" else {}),
            **_REDUCES,
        )(_body)

# ---- counting ----------------------------------------------------------------------------------


def _histogram(values: Array, mask: Array, bins: int) -> Array:
    return np.bincount(values[mask].view(np.uint8), minlength=256)[:bins]


_BINS = Law(
    "a and dst have 128 or 256 counts, 16-bit integers without sign",
    lambda a, dst: (
        a.lanes == dst.lanes
        and a.lanes in (128, 256)
        and all(v.bits == 16 and v.is_integer and not v.has_sign for v in (a, dst))
    ),
)
_COUNTS: dict[str, Any] = {
    "signature": "a:G values:V mask:M -> dst:G",
    "types": "u8",
    "laws": [_BINS],
    "example": lambda T, U: dict.fromkeys(("a", "dst"), "!pto.vmi.vreg<256xui16>"),
    "masking": Masking.NEUTRAL,
    "flow": Flow.ALL,
}


@logical(name="vmi.vdhist", **_COUNTS)
def vdhist(a: Array, values: Array, mask: Array) -> Array:
    """Add to each count, of 256 or the first 128, how many active bytes have its number."""
    return a.astype(np.int64) + _histogram(values, mask, a.size)


@logical(name="vmi.vchist", **_COUNTS)
def vchist(a: Array, values: Array, mask: Array) -> Array:
    """Add to each count, of 256 or the first 128, how many active bytes are not above it."""
    return a.astype(np.int64) + np.cumsum(_histogram(values, mask, 256))[: a.size]
