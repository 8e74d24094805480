"""Operations on two tiles that do not cover the same region.

Where both sources are defined the operation applies, where only one is its element is copied. One
source has the valid region of the destination, the other is no larger in either direction. The
permissive profile accepts any two regions and writes 0 where neither source is defined.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ptokit.isa.devices import A5_FAMILY, DEVICES
from ptokit.isa.effects import UNTIL_DONE, steps
from ptokit.isa.expand import STRICT
from ptokit.isa.expr import Expr, given, on, select
from ptokit.isa.meaning import Partial
from ptokit.isa.numerics import larger, smaller
from ptokit.isa.pointwise import (
    NUMBERS,
    arithmetic,
    narrow,
    not_empty,
    on_a2a3,
    one_vector_of_i64,
    plain,
)
from ptokit.isa.rules import (
    disjoint,
    located,
    must,
    same_dtype,
    same_valid,
    separate,
    whole_overlap,
)
from ptokit.isa.spec import Asm, Rule, family, insn, out, src, types
from ptokit.isa.vector_rules import by_target, ceil_to, per_block, rows_16bit, same_region

# ---- operands and rules --------------------------------------------------------------------------


def _copies(o: Any) -> bool:
    """Whether one source is smaller, so that the other is copied first."""
    return not (same_region(o.src0, o.dst) and same_region(o.src1, o.dst))


def _padding(dst: str, src0: str, src1: str) -> Callable[[Any], tuple[slice, slice] | None]:
    """What a2a3 overwrites behind the valid columns when it copies from the full source.

    It copies whole rows when their lengths agree, otherwise whole 32-byte blocks.
    """

    def left_open(o: Any) -> tuple[slice, slice] | None:
        target, sources = o[dst], (o[src0], o[src1])
        if not on_a2a3(o) or all(same_region(s, target) for s in sources):
            return None
        full = sources[0] if same_region(sources[0], target) else sources[1]
        blocks = ceil_to(target.vc, per_block(target))
        stop = target.cols if full.cols == target.cols else blocks
        return None if stop == target.vc else (slice(0, target.vr), slice(target.vc, stop))

    return left_open


def _regions(dst: str, src0: str, src1: str, covers: str, fits: str) -> list[Rule]:
    """How the valid regions relate; on devices, for the permissive profile takes any."""
    return [
        must(covers, DEVICES)(
            f"{src0} or {src1} has the valid region of {dst}",
            lambda o: same_region(o[src0], o[dst]) or same_region(o[src1], o[dst]),
            "give one source the valid rows and columns of the destination",
        ),
        must(fits, DEVICES)(
            f"neither {src0} nor {src1} has more valid rows or columns than {dst}",
            lambda o: all(o[s].vr <= o[dst].vr and o[s].vc <= o[dst].vc for s in (src0, src1)),
            "shrink the valid region of the source, or enlarge that of the destination",
        ),
    ]


def _not_the_smaller(dst: str, src_: str) -> Rule:
    """Work in place on the full source only: the destination is filled before the other is read."""
    apart = separate(dst, src_).holds
    return must("in-place")(
        f"{dst} shares no storage with {src_} when that has a smaller valid region",
        lambda o: same_region(o[src_], o[dst]) or apart(o),
        "work in place on the larger source, or bind the tiles to other addresses",
    )


def _binary_rules(*, covers: str, same: list[Rule], major: str = "layout") -> list[Rule]:
    tiles = ("dst", "src0", "src1")
    return [
        *same,
        *_regions(*tiles, covers=covers, fits="PA-0054"),
        located("Vec", *tiles),
        plain(*tiles, id=major, on="a2a3"),
        plain(*tiles, on=A5_FAMILY),
        arithmetic("dst"),
        rows_16bit("dst"),
        whole_overlap(*tiles),
        _not_the_smaller("dst", "src0"),
        _not_the_smaller("dst", "src1"),
    ]


_part = partial(
    insn,
    out("dst", unspecified=_padding("dst", "src0", "src1")),
    src("src0"),
    src("src1"),
    means=Partial({"dst": ("src0", "src1")}),
    steps=[steps(when=_copies, between="V")],
    example={"src1": "Vec {T} 16x64 valid 8x32"},
)


# ---- arithmetic ----------------------------------------------------------------------------------


def _numbers(ids: Any, *, covers: str, same: list[Rule], major: str) -> dict[str, Any]:
    rules = _binary_rules(covers=covers, same=same, major=major)
    return {
        "types": types(**NUMBERS, ids=ids),
        "rules": [*rules, one_vector_of_i64("dst")],
    }


_same = partial(same_dtype, "dst", "src0", "src1")


@_part(**_numbers("SA-0287", covers="PA-0051", same=[_same(id="SA-0289")], major="SA-0288"))
def TPARTADD(src0: Expr, src1: Expr) -> Expr:
    """Add two tiles where both are defined, and copy the one that is where only one is.

    The valid region of dst governs; one source has the same, the other may have fewer rows and
    columns, down to none. Integers wrap. dst may be the full source. When a2a3 copies, it also
    overwrites padding columns of dst.
    """
    return src0 + src1


@_part(types=types(**narrow(NUMBERS)), rules=_binary_rules(covers="PA-0054", same=[_same()]))
def TPARTMUL(src0: Expr, src1: Expr) -> Expr:
    """Multiply two tiles where both are defined, and copy the one that is where only one is.

    The regions are as for TPARTADD. Integers wrap.
    """
    return src0 * src1


_MAX_TYPES = by_target("SA-0293", "SA-0290", lambda i, on: _same(id=i, on=on))
family(
    partial(_part, freedom=STRICT),
    """Take the [larger|smaller] element where both tiles are defined; copy where only one is.

    The regions are as for TPARTADD. The result is one of the elements, bit for bit; keep the data
    free of NaN.
    """,
    TPARTMAX=(larger, _numbers("SA-0291", covers="PA-0052", same=_MAX_TYPES, major="SA-0292")),
    TPARTMIN=(
        smaller,
        _numbers(
            {"a2a3": "SA-0294"}, covers="PA-0053", same=[_same(id="SA-0296")], major="SA-0295"
        ),
    ),
)


# ---- values with indices -------------------------------------------------------------------------

_VALUES = ("dstVal", "src0Val", "src1Val")
_INDICES = ("dstIdx", "src0Idx", "src1Idx")
_LEGAL = " ".join(
    f"{value},{index},{index},{index}"
    for value, indices in (("f16", "i16 u16 i32 u32"), ("f32", "i32 u32"))
    for index in indices.split()
)
_PAIR_RULES = [
    same_dtype(*_VALUES, id="value-type"),
    same_dtype(*_INDICES, id="index-type"),
    *(
        same_valid(value, index, id="index-region")
        for value, index in zip(_VALUES, _INDICES, strict=True)
    ),
    *_regions(*_VALUES, covers="full-source", fits="source-region"),
    located("Vec", *_VALUES, *_INDICES),
    plain(*_VALUES, *_INDICES),
    arithmetic("dstVal"),
    not_empty("dstVal", on="a2a3"),
    must("index-columns", "a2a3")(
        "f16 values with 32-bit indices: dstVal has at most 64 valid columns",
        lambda o: o.dstVal.itemsize != 2 or o.dstIdx.itemsize != 4 or o.dstVal.vc <= 64,
        "use 16-bit indices, or split the tile into pieces of 64 columns",
    ),
    rows_16bit("dstVal"),
    disjoint("dstVal", "dstIdx"),
    *(_not_the_smaller(tiles[0], s) for tiles in (_VALUES, _INDICES) for s in tiles[1:]),
]

_pair = partial(
    insn,
    out("dstVal", unspecified=_padding(*_VALUES)),
    src("src0Val"),
    src("src1Val"),
    out("dstIdx", unspecified=_padding(*_INDICES)),
    src("src0Idx"),
    src("src1Idx"),
    means=Partial({"dstVal": _VALUES[1:], "dstIdx": _INDICES[1:]}),
    steps=[UNTIL_DONE],
    types=types("dstVal dstIdx src0Idx src1Idx", a2a3=_LEGAL, a5=_LEGAL, kirin=_LEGAL),
    rules=_PAIR_RULES,
    asm=Asm(ins=("src0Val", "src1Val", "src0Idx", "src1Idx"), outs=("dstVal", "dstIdx")),
    example={
        "src1Val": "Vec {T} 16x64 valid 8x32",
        "src1Idx": "Vec {T} 16x64 valid 8x32",
    }
    | dict.fromkeys(("dstVal", "src0Val"), "Vec {T} 16x64"),
)


def _kept_with_index(*, largest: bool) -> Callable[..., tuple[Expr, Expr]]:
    """The better value and its index; the comparisons are those of the targets."""

    def kept(value0: Expr, value1: Expr, index0: Expr, index1: Expr) -> tuple[Expr, Expr]:
        a, b = (value0, value1) if largest else (value1, value0)
        first = given(on("a2a3"), a >= b, given(on("cpu"), a > b, ~(b > a)))
        return select(first, value0, value1), select(first, index0, index1)

    return kept


family(
    _pair,
    """Keep the [larger|smaller] of two values together with its index; copy where only one is \
defined.

    The regions are as for TPARTADD, and every index tile has the region of its value tile. Equal
    values keep src0. With NaN targets differ: a2a3 takes src1 whenever one value is NaN, others
    src0. The permissive profile takes src1 for equal values and for NaN.
    """,
    TPARTARGMAX=_kept_with_index(largest=True),
    TPARTARGMIN=_kept_with_index(largest=False),
)
