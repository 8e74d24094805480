"""Operations on two tiles that do not cover the same region.

Where both sources are defined the operation applies, where only one is its element is copied. One
source has the valid region of the destination, the other is no larger in either direction; what
happens otherwise, `_touched` says. The permissive profile accepts any two regions and writes 0
where neither source is defined.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ptokit.base.layout import AxisMap
from ptokit.isa.devices import A5_FAMILY, DEVICES
from ptokit.isa.effects import UNTIL_DONE, steps
from ptokit.isa.expand import STRICT
from ptokit.isa.expr import Expr, given, on, select
from ptokit.isa.meaning import Partial, at_the_same_places
from ptokit.isa.numerics import larger, smaller
from ptokit.isa.pointwise import (
    BY_ROW_STRIDE,
    NUMBERS,
    arithmetic,
    in_place_or_apart,
    narrow,
    not_empty,
    on_a2a3,
    one_vector,
    one_vector_of_i64,
    plain,
)
from ptokit.isa.regions import Extent, Reach, View, pitched
from ptokit.isa.rules import (
    disjoint,
    located,
    must,
    or_else,
    same_dtype,
    same_valid,
    separate,
)
from ptokit.isa.spec import Asm, Rule, family, insn, out, src, types
from ptokit.isa.vector_rules import (
    by_target,
    ceil_to,
    counted,
    per_block,
    rows_16bit,
    same_region,
)

# ---- which elements meet -------------------------------------------------------------------------

Sizes = tuple[int, int]
_VALUES = ("dstVal", "src0Val", "src1Val")
_INDICES = ("dstIdx", "src0Idx", "src1Idx")


def _is_empty(tile: Any) -> bool:
    return tile.vr == 0 or tile.vc == 0


def _agree(o: Any, dst: str, src0: str, src1: str) -> bool:
    """Whether one source has the valid region of dst, and the other fits into it."""
    target, sources = o[dst], (o[src0], o[src1])
    return any(same_region(s, target) for s in sources) and all(
        s.vr <= target.vr and s.vc <= target.vc for s in sources
    )


def _touched(o: Any, dst: str, src0: str, src1: str) -> dict[str, Sizes]:
    """Rows and columns of each tile on a device.

    The operation applies where both sources are valid. What is left of dst is copied from the
    storage of the bigger source, valid or not, and rows of that size are gone over even if dst has
    fewer. A2/A3 does nothing when the regions do not agree.
    """
    target, first, second = o[dst], o[src0], o[src1]
    agree = _agree(o, dst, src0, src1)
    if _is_empty(target) or (on_a2a3(o) and not agree):
        return dict.fromkeys((dst, src0, src1), (0, 0))
    if o.target.tile_library and not agree:  # each source counts where it is valid
        return {n: (min(o[n].vr, target.vr), min(o[n].vc, target.vc)) for n in (dst, src0, src1)}
    width = one_vector(o, dst)[1]
    for empty, other in ((src0, src1), (src1, src0)):
        if _is_empty(o[empty]):
            sizes = min(target.vr, o[other].vr), min(width, o[other].vc)
            return {dst: sizes, other: sizes, empty: (0, 0)}
    both = min(first.vr, second.vr), min(first.vc, second.vc, width)
    bigger = src1 if first.vr < second.vr or first.vc < second.vc else src0
    everything = max(both[0], target.vr), width
    return {src0: both, src1: both, bigger: everything, dst: everything}


def _region(name: str, *tiles: str) -> Callable[[Any], View | Extent]:
    """What of an operand is touched; `tiles` are dst and the sources it goes with."""

    def region(o: Any) -> View | Extent:
        if not o.target.is_device:
            return View.VALID
        rows, cols = _touched(o, *tiles)[name]
        rows = counted(o, rows)
        if o[name].layout == "ND":
            return at_the_same_places(o[name], (rows, cols))
        return pitched(rows, cols, o[name].row_stride)

    return region


def _pair_region(name: str) -> Callable[[Any], View | Extent]:
    """The same for values and indices: the regions of the values govern.

    A2/A3 does nothing when an index tile has another region than its values. Where indices are
    wider than values, it goes over the first 64 of every 128 columns.
    """
    value = name.replace("Idx", "Val")

    def region(o: Any) -> View | Extent:
        if not o.target.is_device:
            return View.VALID
        rows, cols = _touched(o, *_VALUES)[value]
        if on_a2a3(o) and not _has_equal_regions(o):
            return 0, 0
        if on_a2a3(o) and o.dstVal.itemsize < o.dstIdx.itemsize and cols > 64:
            reached = cols // 128 * 64 + min(64, cols % 128)
            halves = (rows, -(-cols // 128), 64), (o[name].row_stride, 128, 1)
            return Reach(AxisMap(*halves, (0,), (1, 2)), sizes=(rows, reached))
        return at_the_same_places(o[name], (counted(o, rows), cols))

    return region


def _has_equal_regions(o: Any) -> bool:
    return all(same_region(o[v], o[i]) for v, i in zip(_VALUES, _INDICES, strict=True))


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
        if _is_empty(target) or not _agree(o, dst, src0, src1):
            return None
        full = sources[0] if same_region(sources[0], target) else sources[1]
        blocks = ceil_to(target.vc, per_block(target))
        stop = target.cols if full.cols == target.cols else blocks
        return None if stop == target.vc else (slice(0, target.vr), slice(target.vc, stop))

    return left_open


def _copied(o: Any) -> str:
    """What happens to two sources of which none has the region of dst."""
    if on_a2a3(o):
        return "nothing is written"
    if o.target.tile_library:
        return (
            "where no source is valid dst is 0, of TPARTMAX the smallest, of TPARTMIN the largest"
        )
    return "what is left of dst is a copy of the storage of the bigger source, valid or not"


def _regions(
    dst: str, src0: str, src1: str, covers: str, fits: str, outcome: Callable[[Any], str]
) -> list[Rule]:
    """How the valid regions relate; on devices, for the permissive profile takes any."""
    return [
        must(covers, DEVICES)(
            f"{src0} or {src1} has the valid region of {dst}",
            lambda o: same_region(o[src0], o[dst]) or same_region(o[src1], o[dst]),
            "give one source the valid rows and columns of the destination",
            outcome,
        ),
        must(fits, DEVICES)(
            f"neither {src0} nor {src1} has more valid rows or columns than {dst}",
            lambda o: all(o[s].vr <= o[dst].vr and o[s].vc <= o[dst].vc for s in (src0, src1)),
            "shrink the valid region of the source, or enlarge that of the destination",
            outcome,
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
        *_regions(*tiles, covers=covers, fits="PA-0054", outcome=_copied),
        located("Vec", *tiles),
        plain(*tiles, id=major, on="a2a3"),
        *or_else(BY_ROW_STRIDE, plain(*tiles, on=A5_FAMILY)),
        arithmetic("dst"),
        rows_16bit("dst"),
        *in_place_or_apart(*tiles),
        _not_the_smaller("dst", "src0"),
        _not_the_smaller("dst", "src1"),
    ]


_TILES = ("dst", "src0", "src1")
_part = partial(
    insn,
    out("dst", view=_region("dst", *_TILES), unspecified=_padding(*_TILES)),
    src("src0", view=_region("src0", *_TILES)),
    src("src1", view=_region("src1", *_TILES)),
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
_extreme = partial(Partial, {"dst": ("src0", "src1")})
family(
    partial(_part, freedom=STRICT),
    """Take the [larger|smaller] element where both tiles are defined; copy where only one is.

    The regions are as for TPARTADD. The result is one of the elements, bit for bit; keep the data
    free of NaN.
    """,
    TPARTMAX=(
        larger,
        {
            **_numbers("SA-0291", covers="PA-0052", same=_MAX_TYPES, major="SA-0292"),
            "means": _extreme(nothing=lambda kind: kind.min_value),
        },
    ),
    TPARTMIN=(
        smaller,
        {
            **_numbers(
                {"a2a3": "SA-0294"}, covers="PA-0053", same=[_same(id="SA-0296")], major="SA-0295"
            ),
            "means": _extreme(nothing=lambda kind: kind.max_value),
        },
    ),
)


# ---- values with indices -------------------------------------------------------------------------

_LEGAL = " ".join(
    f"{value},{index},{index},{index}"
    for value, indices in (("f16", "i16 u16 i32 u32"), ("f32", "i32 u32"))
    for index in indices.split()
)


def _pair_outcome(o: Any) -> str:
    if on_a2a3(o):
        return "nothing is written"
    return "the other source is copied" if _has_empty_source(o) else "the results are undefined"


def _has_empty_source(o: Any) -> bool:
    return _is_empty(o.src0Val) or _is_empty(o.src1Val)


_PAIR_RULES = [
    same_dtype(*_VALUES, id="value-type"),
    same_dtype(*_INDICES, id="index-type"),
    *(
        each
        for value, index in zip(_VALUES, _INDICES, strict=True)
        for each in or_else(
            lambda o: "nothing is written" if on_a2a3(o) else "the regions of the values govern",
            same_valid(value, index, id="index-region"),
        )
    ),
    *_regions(*_VALUES, covers="full-source", fits="source-region", outcome=_pair_outcome),
    must("known-regions", A5_FAMILY)(
        "the regions of the values agree, or one source is empty",
        lambda o: _agree(o, *_VALUES) or _has_empty_source(o),
        "give one source the valid rows and columns of the destination",
        "the results are undefined",
        voids=True,
    ),
    located("Vec", *_VALUES, *_INDICES),
    plain(*_VALUES, *_INDICES),
    arithmetic("dstVal"),
    not_empty("dstVal", on="a2a3"),
    must("index-columns", "a2a3")(
        "f16 values with 32-bit indices: dstVal has at most 64 valid columns",
        lambda o: o.dstVal.itemsize != 2 or o.dstIdx.itemsize != 4 or o.dstVal.vc <= 64,
        "use 16-bit indices, or split the tile into pieces of 64 columns",
        "columns 64 to 127 of every 128 are left as they are",
    ),
    rows_16bit("dstVal"),
    disjoint("dstVal", "dstIdx"),
    *(_not_the_smaller(tiles[0], s) for tiles in (_VALUES, _INDICES) for s in tiles[1:]),
]

_pair = partial(
    insn,
    out("dstVal", view=_pair_region("dstVal"), unspecified=_padding(*_VALUES)),
    src("src0Val", view=_pair_region("src0Val")),
    src("src1Val", view=_pair_region("src1Val")),
    out("dstIdx", view=_pair_region("dstIdx"), unspecified=_padding(*_INDICES)),
    src("src0Idx", view=_pair_region("src0Idx")),
    src("src1Idx", view=_pair_region("src1Idx")),
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
