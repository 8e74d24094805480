"""Vector instructions that put elements in another order: join, interleave, pair up, pack."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.layout import Array
from ptokit.isa.devices import A5_FAMILY, DEVICES
from ptokit.isa.effects import steps
from ptokit.isa.facts import Ops
from ptokit.isa.idioms import MOVES
from ptokit.isa.rules import (
    Told,
    behind,
    decides,
    located,
    must,
    on_devices,
    row_major,
    same_dtype,
    same_valid,
    separate,
)
from ptokit.isa.services import Poison, Refused
from ptokit.isa.spec import Asm, Operand, Rule, insn, out, src, types
from ptokit.isa.targets import PerTarget, Target
from ptokit.isa.transfer import c0, rest_of_blocks

INTEGERS = "i8 u8 i16 u16 i32 u32"
ALL_TYPES = f"{INTEGERS} f16 bf16 f32"


# ---- TCONCAT -----------------------------------------------------------------------------------

_TAKES_NOTHING = PerTarget(True, a2a3=False)  # a row may take no element of a source


_SECOND_LATER = PerTarget(False, a2a3=True)  # all rows of src0 are copied before those of src1


def _width(o: Any) -> int:
    return o.src0.vc + o.src1.vc


def _joined(o: Any) -> tuple[int, int]:
    """The columns a row can reach, also past dst; with lengths per row, those of dst."""
    if o.src0Idx is not None:
        return o.dst.vr, o.dst.vc
    return o.dst.vr, _width(o) if o.target.is_device else min(_width(o), o.dst.cols)


def _rows_of(name: str) -> Any:
    """The rows of dst count: those of a source are what lies there."""
    return lambda o: (o.dst.vr, o[name].vc)


def _spill(o: Any) -> Any:
    in_blocks = o.target.writes_whole_blocks and o.src0Idx is None
    return rest_of_blocks(o, o.dst.vr, _width(o)) if in_blocks else None


_WIDTHS = behind(
    "the valid columns of src0 and src1 decide, and a row may run into the next one",
    lambda o: _width(o) <= o.dst.cols,
)


def _lengths(of: str) -> Operand:
    note = f"lengths of {of} in bytes"
    return src(f"{of}Idx", optional=True, steers=True, view=lambda o: (o.dst.vr, 1), note=note)


@insn(
    out("dst", view=_joined, unspecified=_spill),
    src("src0", view=_rows_of("src0")),
    src("src1", view=_rows_of("src1")),
    out("dstIdx", optional=True, view=lambda o: (o.dst.vr, 1), note="resulting lengths in bytes"),
    _lengths("src0"),
    _lengths("src1"),
    types=types(a2a3=ALL_TYPES, a5=ALL_TYPES, kirin=f"{INTEGERS} f16 f32"),
    forms=[
        "dst src0 src1",
        "dst src0 src1 src0Idx src1Idx",
        "dst src0 src1 dstIdx src0Idx src1Idx",
    ],
    rules=[
        same_dtype("dst", "src0", "src1"),
        must("index-dtype")(
            f"the lengths have one element type of {INTEGERS}",
            lambda o: (
                o.src0Idx is None
                or (
                    o.src0Idx.dtype is o.src1Idx.dtype
                    and (o.dstIdx is None or o.dstIdx.dtype is o.src0Idx.dtype)
                    and o.src0Idx.dtype.name in INTEGERS.split()
                )
            ),
        ),
        located("Vec", "dst", "src0", "src1", "dstIdx", "src0Idx", "src1Idx"),
        must("same-rows")(
            "dst, src0 and src1 have the same valid rows",
            lambda o: o.dst.vr == o.src0.vr == o.src1.vr,
            otherwise=Told(
                "the valid rows of dst decide",
                lambda o: (
                    o.target.is_device
                    and (
                        min(o.src0.rows, o.src1.rows) >= o.dst.vr
                        or (o.mode != "auto" and o.src0Idx is None)
                    )
                ),
            ),
        ),
        must("one-length")(
            "dstIdx has one valid column",
            lambda o: o.dstIdx is None or o.dstIdx.vc == 1,
            otherwise="one length is written for each row",
        ),
        must("width", "a2a3 cpu")(
            "the valid columns of src0 and src1 fit into dst",
            lambda o: o.src0Idx is not None or _width(o) <= o.dst.cols,
            otherwise=_WIDTHS,
        ),
        must("width", A5_FAMILY)(
            "the valid columns of src0 and src1 make up those of dst",
            lambda o: o.src0Idx is not None or _width(o) == o.dst.vc,
            otherwise=_WIDTHS,
        ),
        row_major("dst", "src0", "src1", on=DEVICES),
        separate("dst", "src0", "src1", on=DEVICES),
        must("offsets", A5_FAMILY)(
            "positions in dst fit in an integer of the element's width (1- and 2-byte types)",
            lambda o: (
                o.dst.itemsize > 2
                or (o.dst.vr - 1) * o.dst.cols + o.src0.vc + o.src1.vc <= 1 << 8 * o.dst.itemsize
            ),
            "join fewer rows at a time, or use a wider element type",
        ),
    ],
    steps=[
        steps(
            "a2a3",
            lambda o: o.src0Idx is not None,
            start="MTE2->S",
            between="S->V V->S",
            end="S->V S->MTE3",
        ),
        # The second part is then copied by the scalar unit, and no flag follows.
        steps("a2a3", lambda o: o.src0.vc % c0(o.src0) != 0, between="V->S MTE2->S"),
    ],
    asm=Asm(
        forms=frozenset({"l1", "l2"}),
        suffixes={"src0Idx": "idx"},
        aliases=("tconcat",),
        order=("src0", "src1", "src0Idx", "src1Idx", "dst"),
    ),
    example={
        "dst": "Vec {T} 2x128 valid 2x64",
        "src0": "Vec {T} 2x64 valid 2x40",
        "src1": "Vec {T} 2x64 valid 2x24",
    },
    more_examples=[
        {"dst": "Vec f32 8x64 valid 8x24"}
        | {"src0": "Vec f32 8x32 valid 8x10", "src1": "Vec f32 8x32 valid 8x14"}
        | dict.fromkeys(("dstIdx", "src0Idx", "src1Idx"), "Vec i8 8x32 valid 8x1")
    ],
    idiom=lambda o: None if o.src0Idx is not None else MOVES,
)
def TCONCAT(
    dst: Array,
    src0: Array,
    src1: Array,
    dstIdx: Array | None,
    src0Idx: Array | None,
    src1Idx: Array | None,
    target: Target,
    ops: Ops,
    poison: Poison,
) -> None:
    """Join two tiles side by side, row by row; optionally each row has lengths of its own.

    Without lengths, row r of dst is row r of src0 followed by row r of src1. With them, src0Idx and
    src1Idx say how much of each row to take, as a number of bytes of the index type: the count is
    the value divided by the size of the index type, whatever the data type. What does not fit into
    the valid columns of dst is dropped, and dstIdx receives the length that was written. Columns
    past the joined ones keep their contents; on A2A3 up to 31 bytes of them are lost in the form
    without lengths. On A2A3 lengths of 0 are not supported by the hardware.
    """
    if src0Idx is None or src1Idx is None:
        joined = np.concatenate([src0, src1], axis=1)
        if dst.shape[1] > ops.dst.cols:
            joined = _overlaid(joined, src0.shape[1], ops.dst.cols, _SECOND_LATER[target])
        dst[...] = joined[:, : dst.shape[1]]
        return
    size = src0Idx.dtype.itemsize
    counts = np.hstack([src0Idx, src1Idx]).astype(np.int64) // size
    if not _TAKES_NOTHING[target] and (counts < 1).any():
        raise Refused("length", "every row takes at least one element of each source")
    sources = poison.peek("src0"), poison.peek("src1")
    width = dst.shape[1]
    old, known = (whole[: dst.shape[0], :width] for whole in poison.peek("dst"))
    lost = ~known
    dst[...] = old
    for row, (n0, n1) in enumerate(counts.tolist()):
        a = min(n0, width)
        b = min(n1, width - a)
        _take(dst[row], lost[row], slice(0, a), sources[0], row, "src0")
        _take(dst[row], lost[row], slice(a, a + b), sources[1], row, "src1")
    poison.poison_where("dst", lost)
    if dstIdx is not None:
        written = np.minimum(counts.sum(axis=1), width) * size
        # The simulator adds the lengths as they come.
        raw = src0Idx[:, 0] + src1Idx[:, 0]
        dstIdx[:, 0] = written if target.is_device else raw


def _overlaid(joined: Array, first: int, pitch: int, second_later: bool) -> Array:
    """Rows that run into one another, as memory holds them in the end."""
    rows, cols = joined.shape
    places = np.arange(rows)[:, None] * pitch + np.arange(cols)
    memory = np.empty(int(places.max(initial=-1)) + 1, joined.dtype)
    parts = (slice(0, first), slice(first, cols)) if second_later else (slice(0, cols),)
    for part in parts:  # of several values for one place, that of the later row stays
        memory[places[:, part]] = joined[:, part]
    return memory[places]


def _take(
    line: Array, lost: Array, part: slice, source: tuple[Array, Array], row: int, name: str
) -> None:
    """Copy the first elements of a source row to a part of a line of dst."""
    count = part.stop - part.start
    values, known = (whole[row] for whole in source)
    if count < 0 or count > values.size or not known[:count].all():
        raise Refused(
            "length",
            f"a length does not exceed the elements {name} holds in that row",
            got=[("row", row), ("length", count), (f"{name}.Cols", values.size)],
        )
    line[part] = values[:count]
    lost[part] = False


# ---- interleaving ------------------------------------------------------------------------------

FOUR = ("dst1", "dst0", "src1", "src0")


def _even(name: str, otherwise: str = "") -> Rule:
    return must("even")(
        "the number of valid columns is even",
        lambda o: o[name] is None or o[name].vc % 2 == 0,
        "pad the rows by one element",
        on_devices(otherwise) if otherwise else "",
    )


def _like(name: str) -> Any:
    """The size of another operand, whatever the own valid region is."""
    return lambda o: (o[name].vr, o[name].vc)


@insn(
    out("dst1", view=_like("dst0"), note="second half of the stream"),
    out("dst0", note="first half of the stream"),
    src("src1", view=_like("dst0"), note="odd positions of the stream"),
    src("src0", view=_like("dst0"), note="even positions of the stream"),
    types=types("dst0", a5=ALL_TYPES),
    rules=[
        row_major(*FOUR),
        same_dtype(*FOUR),
        same_valid(*FOUR, otherwise=decides("dst0", *FOUR)),
        _even("dst0", "dst1 starts with the pair that dst0 ends with"),
        separate("dst0", "dst1", "src0", "src1", on="a5"),
        separate("dst1", "src0", "src1", on="a5"),
    ],
    asm=Asm(ins=("src0", "src1"), outs=("dst0", "dst1")),
    idiom=lambda o: MOVES,
)
def TINTERLEAVE(dst1: Array, dst0: Array, src1: Array, src0: Array) -> None:
    """Merge two tiles element by element into one stream, given back as two halves.

    The stream of a row is src0(r, 0), src1(r, 0), src0(r, 1), ...; dst0 receives its first half,
    dst1 its second, which starts with a whole pair. Mind the order of the operands: the second half
    comes first.
    """
    stream = np.stack([src0, src1], axis=-1).reshape(src0.shape[0], -1)
    half = src0.shape[1]
    start = half // 2 * 2
    dst0[...], dst1[...] = stream[:, :half], stream[:, start : start + half]


def _separated(o: Any) -> tuple[int, int]:
    """What a destination receives: half of the one source, else the size of dst0."""
    return (o.dst0.vr, o.dst0.vc) if o.src is None else (o.src.vr, o.src.vc // 2)


@insn(
    out("dst1", view=_separated, note="odd positions of the stream"),
    out("dst0", view=_separated, note="even positions of the stream"),
    src("src1", view=_like("dst0"), optional=True, note="second half of the stream"),
    src("src0", view=_like("dst0"), optional=True, note="first half of the stream"),
    src("src", optional=True, note="the whole stream, twice as wide as a destination"),
    types=types("dst0", a5=ALL_TYPES),
    forms=["dst1 dst0 src1 src0", "dst1 dst0 src"],
    rules=[
        row_major(*FOUR, "src"),
        same_dtype(*FOUR, "src"),
        same_valid(*FOUR, otherwise=decides("dst0", *FOUR)),
        _even("src0"),
        must("half-width")(
            "one source has the valid rows of the destinations and twice their valid columns",
            lambda o: o.src is None or (o.src.vr, o.src.vc) == (o.dst0.vr, 2 * o.dst0.vc),
            otherwise=behind(
                "the valid region of src decides",
                lambda o: all(
                    t.rows >= o.src.vr and t.cols >= o.src.vc // 2 for t in (o.dst0, o.dst1)
                ),
            ),
        ),
        must("source-width", "a5")(
            "rows of one source hold two vectors of 256 bytes, so that paired loads stay inside",
            lambda o: o.src is None or o.src.cols * o.src.itemsize >= 512,
            otherwise="more is loaded than is used",
        ),
        separate("dst0", "dst1", "src0", "src1", "src", on="a5"),
        separate("dst1", "src0", "src1", "src", on="a5"),
    ],
    asm=Asm(ins=("src0", "src1", "src"), outs=("dst0", "dst1")),
    example={"src0": "Vec {T} 16x64"},
    more_examples=[{"dst1": "Vec f32 4x64", "dst0": "Vec f32 4x64", "src": "Vec f32 4x128"}],
    idiom=lambda o: MOVES,
)
def TDEINTERLEAVE(
    dst1: Array, dst0: Array, src1: Array | None, src0: Array | None, src: Array | None
) -> None:
    """Separate the even positions of a stream (dst0) from the odd ones (dst1).

    The stream of a row is src0 followed by src1, or one source twice as wide as the destinations.
    Mind the order of the operands: odd positions, and the second half, come first.
    """
    stream = src if src0 is None or src1 is None else np.hstack([src0, src1])
    assert stream is not None
    even, odd = stream[:, 0::2].copy(), stream[:, 1::2].copy()
    dst0[...], dst1[...] = even[:, : dst0.shape[1]], odd


# ---- pairs -------------------------------------------------------------------------------------


def _sums(o: Any) -> tuple[int, int]:
    """Devices write the sums only, the simulator clears the whole tile first."""
    return (o.dst.vr, o.dst.vc // 2) if o.target.is_device else (o.dst.rows, o.dst.cols)


@insn(
    out("dst", view=_sums),
    src("src0", view=lambda o: _like("dst" if o.target.is_device else "src0")(o)),
    types=types(a2a3="f16 f32", a5="f16 f32"),
    rules=[
        same_dtype("dst", "src0"),
        row_major("dst", "src0"),
        same_valid("dst", "src0", otherwise=decides("dst", "src0")),
        separate("dst", "src0", on="a2a3 a5"),
    ],
    steps=[steps("a2a3", between="V", end="V", complete=True)],
)
def TPAIRREDUCESUM(dst: Array, src0: Array, target: Target) -> None:
    """Add neighbouring pairs of each row: dst(r, k) = src0(r, 2k) + src0(r, 2k + 1).

    The sums fill the first half of the valid columns. Devices leave the other half as it was and
    drop an odd last element; the `cpu` profile keeps a lone last element and clears the rest of
    dst, as the simulator does. Use even widths and clear dst first when zeros are needed.
    """
    pairs = src0.shape[1] // 2
    sums = src0[:, 0 : 2 * pairs : 2] + src0[:, 1 : 2 * pairs : 2]
    if target.is_device:
        dst[...] = sums
        return
    lone = src0[:, 2 * pairs :].copy()
    dst[...] = 0
    dst[: sums.shape[0], :pairs] = sums
    dst[: sums.shape[0], pairs : pairs + lone.shape[1]] = lone


@insn(out("dst"), src("src"), targets="", asm=Asm(forms=frozenset({"l1", "l2"})))
def TPACK(dst: Array, src: Array) -> None:
    """Reserved: the name of an instruction that no target has. Use TCVT.

    The instruction pages announce a conversion that packs narrow elements, without saying what it
    does, and nothing implements it. The name is known so that text which uses it can be read and
    answered.
    """
    raise NotImplementedError("TPACK has no defined meaning; convert with TCVT")
