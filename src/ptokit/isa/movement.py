"""TMOV: a whole tile moves to another memory space or layout."""

from __future__ import annotations

from typing import Any

from ptokit.base.layout import Array
from ptokit.isa.devices import DEVICES
from ptokit.isa.facts import Ops
from ptokit.isa.move_rules import OPERAND_RULES, SCALE_RULES, TABLE_RULES, VECTOR_RULES
from ptokit.isa.rules import NOT_A2A3, must, separate
from ptokit.isa.services import Core, Poison
from ptokit.isa.spec import Asm, Attr, Cpp, Pipe, insn, out, rule, scalar, src, tmp
from ptokit.isa.transfer import (
    PARTS,
    PARTS_FP,
    PHASE,
    RELU,
    VEC_MODE,
    c0,
    is_plain,
    path,
    pipe_of,
    share_size,
    transfer,
    transfer_weights,
    up,
    weight_size,
    whole,
)
from ptokit.isa.transfer_rules import (
    along,
    drain_rules,
    fp_rules,
    mode_rules,
    needs_accumulator,
    paths_exist,
    same_capacity,
    weights_to_right,
)

WORDS = "preQuantScalar fp"


# ---- regions -----------------------------------------------------------------------------------


def _common(o: Any) -> tuple[int, int]:
    return min(o.src.vr, o.dst.vr), min(o.src.vc, o.dst.vc)


def _moved(o: Any) -> tuple[int, int]:
    """Rows and columns that move."""
    way = path(o)
    if way == "Conv>Right":
        return weight_size(o)
    if not o.target.is_device or way == "Vec>Vec":
        return _common(o)
    boxed = o.dst.layout == "NZ"
    if way.startswith("Mat>"):
        return whole(o.dst)
    if way == "Acc>Mat" and boxed:
        return whole(o.src)[0], min(up(o.src.vc, o.dst.inner[1]), o.dst.cols, o.src.cols)
    if way == "Vec>Mat" and boxed:
        rows, cols = map(min, whole(o.src), whole(o.dst))
        return min(up(o.dst.vr, 16), rows), min(up(o.dst.vc, c0(o.dst)), cols)
    return (o.dst.vr, o.dst.vc) if way == "Vec>Mat" else (o.src.vr, o.src.vc)


def _is_zz(o: Any) -> bool:
    """Whether scale factors are boxed; only the device's form differs from a plain copy."""
    return o.tmp is not None and o.target.is_device


def _source(o: Any) -> Any:
    if not _is_zz(o):
        return _moved(o)
    # Scales come densely packed, often as one long row: the valid size of dst divides them.
    return slice(0, o.dst.vr * o.dst.vc) if o.attrs["grp_axis"] else (o.src.vr, o.src.vc)


def _destination(o: Any) -> Any:
    if not _is_zz(o):
        return share_size(o, *_moved(o))
    if not o.attrs["grp_axis"]:
        return o.src.vc, o.src.vr
    return min(up(o.dst.vr, 16), o.dst.rows), o.dst.vc


def _spill(o: Any) -> Any:
    """Where vector tiles are copied in whole 32-byte blocks, what follows each row is lost."""
    rows, cols = _common(o) if path(o) == "Vec>Vec" else (0, 0)
    end = up(cols, c0(o.dst))
    if not o.target.writes_whole_blocks or end == cols or not is_plain(o.dst):
        return None
    return slice(0, rows), slice(cols, end)


# ---- the instructions --------------------------------------------------------------------------

A2A3_PATHS = "Mat>Left Mat>Right Mat>Bias Mat>Scaling Vec>Vec Acc>Mat Conv>Right"
KIRIN_PATHS = "Mat>Left Mat>Right Mat>Bias Mat>Scaling Vec>Vec Vec>Mat Acc>Mat Acc>Vec"
A5_PATHS = KIRIN_PATHS + " Mat>ScaleLeft Mat>ScaleRight Conv>Right"
OPS = {
    "TMOV_V2V": Pipe.V,
    "TMOV_V2M": Pipe.FIX,
    "TMOV_M2L": Pipe.MTE1,
    "TMOV_M2R": Pipe.MTE1,
    "TMOV_M2B": Pipe.MTE1,
    "TMOV_M2S": Pipe.FIX,
    "TMOV_A2V": Pipe.FIX,
    "TMOV_A2M": Pipe.FIX,
}


@insn(
    out("dst", view=_destination, unspecified=_spill),
    src("src", view=_source, kinds=("tile", "conv"), carries=True),
    scalar("preQuantScalar", optional=True, note="quantisation word of an accumulator"),
    src(
        "fp",
        view=lambda o: (1, o.src.vc),
        optional=True,
        space="Scaling",
        note="quantisation words, one per column",
    ),
    tmp(optional=True, lost=lambda o: o.attrs["grp_axis"] == 1, note="indices of the ZZ form"),
    attrs=[
        RELU,
        VEC_MODE,
        PHASE,
        Attr("grp_axis", int, 1, "ZZ form: groups along the columns (1) or the rows (0) of src"),
    ],
    pipe=pipe_of,
    pointwise=lambda o: (
        o.src.kind == "tile" and o.fp is None and o.tmp is None and o.attrs["accToVecMode"] is None
    ),
    ops=OPS,
    targets=DEVICES,
    forms=["dst src", "dst src preQuantScalar", "dst src fp", "dst src tmp"],
    rules=[
        fp_rules(lambda _: 0, lambda o: o.src.vc),
        weights_to_right(),
        separate("dst", "src", on=DEVICES),
        paths_exist("SA-0257", A2A3_PATHS, "a2a3"),
        paths_exist("space-pair", A5_PATHS, "a5"),
        paths_exist("space-pair", KIRIN_PATHS, "kirin9030"),
        paths_exist("space-pair", KIRIN_PATHS + " Conv>Right", "kirinx90"),
        same_capacity("SA-0263", "a2a3"),
        along(" ".join(way for way in A5_PATHS.split() if way.startswith("Mat>")), NOT_A2A3)(
            same_capacity("SA-0262")
        ),
        OPERAND_RULES,
        TABLE_RULES,
        VECTOR_RULES,
        SCALE_RULES,
        needs_accumulator("SA-0102", "a2a3", WORDS),
        needs_accumulator("accumulator-source", NOT_A2A3, WORDS),
        drain_rules(WORDS),
        mode_rules(WORDS),
        must("phase", "a2a3")(
            "the forms with a unit-flag phase do not exist here",
            lambda o: o.attrs["stPhase"] is None,
        ),
    ],
    asm=Asm(
        ins=("src", "fp", "preQuantScalar"),
        outs=("dst",),
        attrs={"accToVecMode": "accToVecMode", "reluPreMode": "reluPreMode"},
        is_paired=True,
        order=("src", "dst", "fp", "preQuantScalar"),
        aliases=tuple(name.lower().replace("_", ".") for name in OPS),  # tmov.m2l ...
    ),
    more_examples="""
        src                   | dst                                       | on
        Mat f16 32x64 NZ      | Left f16 32x64                            |
        Mat f16 32x64 ZN      | Left f16 32x64                            |
        Mat f16 1x256         | Left f16 1x256                            |
        Mat f16 32x64 ZN      | Right f16 32x64                           |
        Mat f16 32x64 NZ      | Right f16 32x64                           |
        Mat f16 64x64 NZ      | Left f16 64x64 valid 40x40 compact Normal |
        Mat i32 1x64          | Bias i32 1x64                             |
        Mat f16 1x64          | Bias f32 1x64                             | a2a3 a5
        Mat u64 1x16          | Scaling u64 1x16                          |
        Mat f8e8m0 32x4 ZZ/32 | ScaleLeft f8e8m0 32x4                     | a5
        Mat f8e8m0 4x32 NN/32 | ScaleRight f8e8m0 4x32                    | a5

        src                                | dst              | on
        Conv Mat f16 FRACTAL_Z 2x2x1x64x16 | Right f16 64x32  | a2a3 a5 kirinx90 cpu
        Conv Mat f16 FRACTAL_Z 4x4x16x16   | Right f16 64x32  | a2a3 a5 kirinx90 cpu
        Acc f32 32x32                      | Mat f16 32x32 NZ | a2a3 a5 cpu

        src           | dst             | preQuantScalar | accToVecMode   | on
        Acc i32 32x32 | Mat i8 32x32 NZ | 0x3f800000     |                |
        Acc f32 32x32 | Mat i8 32x32 NZ | 0x3f800000     |                | a2a3 a5 cpu
        Acc i32 32x32 | Vec i32 32x32   |                |                | a5 kirin
        Acc f16 32x32 | Vec f16 32x32   |                |                | kirin
        Acc f32 32x32 | Vec f32 16x32   |                | DualModeSplitM | a5

        src           | dst             | fp               | accToVecMode   | on
        Acc i32 32x32 | Mat i8 32x32 NZ | Scaling u64 1x32 |                | a2a3
        Acc i32 32x32 | Vec i8 32x32    | Scaling u64 1x32 | SingleModeVec0 | a5 kirin cpu

        src                          | dst                          | tmp          | on
        Vec f16 32x32 NZ valid 20x20 | Mat f16 32x32 NZ valid 20x20 |              | a5 kirin
        Vec f16 32x32                | Mat f16 32x32                |              | a5 kirin
        Vec f16 32x32 valid 30x20    | Vec f16 32x32 NZ valid 30x20 |              | a5 kirin
        Vec f16 32x32                | Vec f16 32x32 ZN             |              | a5
        Vec u8 1x128                 | Vec u8 32x4 ZZ/32            | Vec u8 1x128 | a5 kirinx90

        src         | dst               | tmp          | grp_axis | on
        Vec u8 4x32 | Vec u8 32x4 ZZ/32 | Vec u8 1x128 | 0        | a5 kirinx90
    """,
    cpp=Cpp(PARTS, first=PHASE.name),
)
def TMOV(
    dst: Array,
    src: Array,
    preQuantScalar: int | None,
    fp: Array | None,
    tmp: Array | None,
    ops: Ops,
    poison: Poison,
    core: Core,
) -> None:
    """Move a tile to another memory space or layout; element (r, c) stays element (r, c).

    Which spaces can be connected depends on the target. From Mat the whole capacity moves, in
    compact tiles the valid boxes; a half or bfloat16 row is widened when it becomes a float bias.
    Between vector tiles the common valid region moves; A2A3 copies whole 32-byte blocks and leaves
    the rest of the last block of each row unspecified. An accumulator is converted on the way, see
    the fix pipe: plainly, with one quantisation word (`preQuantScalar`) or one per column (`fp`),
    then ReLU. Into an NZ Mat tile it writes all rows and whole boxes of columns.

    A mode that names a vector core writes to the address of dst in the memory of that core; the
    dual modes give half of the rows or columns to each. Tiles that were placed automatically have
    no other side: there a core sees the half of its own sub-block. With `tmp`, scale factors become
    ZZ boxes: rows are filled up to 16 with zeros, and the source rows read as filling are
    overwritten. Elements outside the source's valid region may be undefined and stay undefined in
    dst.
    """
    if ops.src.kind == "conv":
        transfer_weights(dst, src, poison)
    elif _is_zz(ops):
        _box_scales(dst, src, ops, poison)
    else:
        transfer(dst, src, ops, poison, core, preQuantScalar if fp is None else fp)


def _box_scales(dst: Array, src: Array, o: Ops, poison: Poison) -> None:
    poison.demand("src", (slice(None), slice(None)))
    if o.attrs["grp_axis"] == 0:
        dst[...] = src.T
        return
    dst[: o.dst.vr] = src.reshape(o.dst.vr, o.dst.vc)
    dst[o.dst.vr :] = 0
    poison.poison("src", slice(o.dst.vr, min(up(o.dst.vr, 16), o.src.rows)), slice(0, o.src.cols))


@insn(
    out("dst", view=_moved),
    src("src", view=_moved, carries=True),
    src("fp", view=lambda o: (1, o.src.vc), note="quantisation words, one per column"),
    attrs=[RELU, PHASE],
    pipe=Pipe.FIX,
    ops={"TMOV_A2M": Pipe.FIX, "TMOV_A2V": Pipe.FIX},
    targets=DEVICES,
    rules=[
        fp_rules(lambda _: 0, lambda o: o.src.vc),
        rule("accumulator", "src is an Acc tile", lambda o: o.src.loc.name == "Acc"),
        paths_exist("space-pair", "Acc>Mat Acc>Vec", NOT_A2A3),
        drain_rules("fp"),
        same_capacity("SA-0263", "a2a3"),
        must("phase", "a2a3")(
            "the form with a unit-flag phase does not exist here",
            lambda o: o.attrs["stPhase"] is None,
        ),
    ],
    asm=Asm(name="tmov.fp"),
    example={"src": "Acc i32 32x32", "dst": "Mat i8 32x32 NZ", "fp": "Scaling u64 1x32"},
    more_examples="""
        src                       | dst             | fp               | on
        Acc f32 32x32             | Mat i8 32x32 NZ | Scaling u64 1x32 | a2a3 a5 cpu
        Acc f32 32x48 valid 20x40 | Vec f16 32x48   | Scaling u64 1x48 | a5
        Acc f16 32x32             | Vec i8 32x32    | Scaling u64 1x32 | kirin
    """,
    cpp=Cpp(PARTS_FP),
)
def TMOV_FP(
    dst: Array,
    src: Array,
    fp: Array,
    ops: Ops,
    poison: Poison,
    core: Core,
) -> None:
    """Move an accumulator with a quantisation word per column: dst(r, c) = quant(src(r, c), fp[c]).

    The region is that of TMOV from an accumulator. `fp` must stay unchanged until the move is done.
    """
    transfer(dst, src, ops, poison, core, fp)
