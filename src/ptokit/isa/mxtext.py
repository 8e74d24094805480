"""What the verifier of texts states of MX quantisation, along a row and down a column.

It wants all sizes in the types, one place for every group, and none of the forms that the library
of the tool chain does not have.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ptokit.base.dtypes import f16, f32
from ptokit.base.enums import QuantScaleAlg
from ptokit.base.tiles import DYNAMIC
from ptokit.isa.facts import Unknown
from ptokit.isa.language import in_text
from ptokit.isa.microscaling import GROUP, format_of
from ptokit.isa.rules import Predicate
from ptokit.isa.spec import Rule

_TILES = ("dst", "src", "exp", "max", "scaling")


def _valid(tile: Any) -> tuple[int, int]:
    """The valid sizes in a type; where they are open, another rule says so."""
    sizes = tile.valid_row, tile.valid_col
    if DYNAMIC in sizes:
        raise Unknown
    return sizes


def _is_static(o: Any) -> bool:
    return all(DYNAMIC not in (o[name].valid_row, o[name].valid_col) for name in _TILES)


def _stated(id: str, text: str, holds: Predicate, fix: str = "") -> Rule:
    return in_text(id, text, holds, "a5", fix)


def _groups(o: Any) -> int:
    return prod(_valid(o.src)) // GROUP


def _is_flat(o: Any) -> bool:
    return o.exp.rows == 1


def _of_two_bytes(o: Any) -> bool:
    return o.src.itemsize == 2


_SHARED = [
    in_text(
        "static",
        "sizes of src, dst, exp, max and scaling are in their types",
        _is_static,
        "a5",
        "write v_row and v_col as numbers",
    ),
    _stated(
        "code-region",
        "dst has the valid region of src",
        lambda o: _valid(o.dst) == _valid(o.src),
        "give dst a valid code for every valid element",
    ),
    _stated(
        "padding-store",
        "the padding of 16-bit rows that divide 256 bytes is cleared in whole 256 bytes",
        lambda o: (
            not _of_two_bytes(o)
            or _valid(o.src)[1] == o.src.cols
            or 128 % o.src.cols != 0
            or _valid(o.src)[0] * o.src.cols % 128 == 0
        ),
        "quantise more rows at a time, or tiles without padding",
    ),
]

# ---- along a row ---------------------------------------------------------------------------------


def _is_grouped(o: Any, name: str) -> bool:
    """One place for each group of a row, or all of them in one row."""
    rows, cols = _valid(o.src)
    return _valid(o[name]) in ((rows, cols // GROUP), (1, _groups(o)))


def _is_compact(tile: Any) -> bool:
    rows, cols = _valid(tile)
    return rows == 1 or tile.cols == cols


def _scaling_bytes(o: Any) -> int:
    """What flat scales take: whole vectors, twice as many where the loop is unrolled."""
    if o.src.dtype is not f32:
        return -(-_groups(o) // 128) * 256
    every, used = o.src.rows * o.src.cols, _valid(o.src)[0] * o.src.cols
    is_unrolled = every > 1024 and every % 256 == used % 256 == 0
    return -(-_groups(o) * (2 if is_unrolled else 1) // 64) * 256


ALONG_ROW = [
    *_SHARED,
    _stated(
        "groups",
        "the valid columns of src are a multiple of 32",
        lambda o: _valid(o.src)[1] % GROUP == 0,
    ),
    _stated(
        "group-region",
        "exp, max and scaling are valid for [M, N/32] groups, or for all of them in one row",
        lambda o: all(_is_grouped(o, name) for name in ("exp", "max", "scaling")),
    ),
    _stated(
        "code-columns",
        "dst has as many columns as src, two to a byte for MXFP4",
        lambda o: o.dst.cols == o.src.cols,
    ),
    _stated(
        "compact",
        "the valid elements of max and scaling lie one after the other",
        lambda o: _is_compact(o.max) and _is_compact(o.scaling),
        "give them as many columns as are valid",
    ),
    _stated(
        "flat-source",
        "where exp is one row, all groups are in it and src has no padding; otherwise exp has "
        "several valid rows",
        lambda o: (
            (o.src.cols == _valid(o.src)[1] and _valid(o.exp) == (1, _groups(o)))
            if _is_flat(o)
            else _valid(o.exp)[0] != 1
        ),
    ),
    _stated(
        "flat-scaling",
        "flat scaling has room for whole vectors of scales",
        lambda o: not _is_flat(o) or o.scaling.nbytes >= _scaling_bytes(o),
        "give scaling more columns",
    ),
    _stated(
        "flat-algorithm",
        "flat groups of f16 and bf16 are scaled by the OCP rule",
        lambda o: (
            not (_is_flat(o) and _of_two_bytes(o)) or o.attrs["scale_alg"] != QuantScaleAlg.NV
        ),
        "leave quantScaleAlg out",
    ),
    _stated(
        "two-dimensional",
        "groups of f16 and bf16 are stored flat",
        lambda o: _is_flat(o) or not _of_two_bytes(o),
        "give exp one row",
    ),
]

# ---- down a column -------------------------------------------------------------------------------


def _down(o: Any) -> tuple[int, int]:
    return _valid(o.src)[0] // GROUP, _valid(o.src)[1]


def _down_exponents(o: Any) -> tuple[int, int]:
    rows, cols = _down(o)
    return (rows // 2, 2 * cols) if o.attrs["interleave"] else (rows, cols)


DOWN_COLUMN = [
    *_SHARED,
    _stated(
        "groups",
        "the valid rows of src are a multiple of 32, of 64 with interleaved exponents",
        lambda o: _valid(o.src)[0] % (2 * GROUP if o.attrs["interleave"] else GROUP) == 0,
    ),
    _stated(
        "interleaved-groups",
        "with interleaved exponents rows of src are a multiple of 64",
        lambda o: not o.attrs["interleave"] or o.src.rows % 64 == 0,
    ),
    _stated(
        "group-region",
        "max and scaling are valid for [M/32, N] groups, exp as well; interleaved for [M/64, 2N]",
        lambda o: (
            _valid(o.max) == _valid(o.scaling) == _down(o) and _valid(o.exp) == _down_exponents(o)
        ),
    ),
    _stated(
        "pitch",
        "max, scaling and a plain exp have the columns of src",
        lambda o: (
            o.max.cols == o.scaling.cols == o.src.cols
            and (o.attrs["interleave"] or o.exp.cols == o.src.cols)
        ),
    ),
    _stated(
        "code-columns",
        "dst of MXFP4 has as many columns as src, which is even",
        lambda o: not format_of(o.attrs).fp4 or (o.dst.cols == o.src.cols and o.src.cols % 2 == 0),
    ),
    _stated(
        "packed-pitch",
        "rows of MXFP4 codes of an f16 src lie a multiple of 32 bytes apart",
        lambda o: not format_of(o.attrs).fp4 or o.src.dtype is not f16 or o.src.cols // 2 % 32 == 0,
        "use bf16, or wider tiles",
    ),
    _stated(
        "interleaved-type",
        "exponents of an f32 src are not interleaved",
        lambda o: not o.attrs["interleave"] or o.src.dtype is not f32,
        "leave interleave out, or convert src first",
    ),
]
