"""Stores: from tiles into global memory, accumulators through the fix pipe."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ptokit.base.dtypes import DType
from ptokit.base.enums import AtomicType, Layout, ReluPreMode, STPhase, TileType
from ptokit.base.layout import Array
from ptokit.base.tiles import DYNAMIC
from ptokit.isa import memory
from ptokit.isa import transfer as moves
from ptokit.isa.bursts import drained, moved
from ptokit.isa.conv_layout import WEIGHTS
from ptokit.isa.devices import A5_FAMILY, DEVICES, KIRIN, NEW, OLD
from ptokit.isa.effects import steps
from ptokit.isa.expr import Arg
from ptokit.isa.facts import Ops
from ptokit.isa.fixpipe import (
    WORDS_STEP,
    convert_out,
    drain_loop,
    is_accumulator,
    store_conversions,
)
from ptokit.isa.idioms import MOVES, Elementwise, Idiom, copy
from ptokit.isa.language import in_text
from ptokit.isa.memory import FIX_VIEW, arranged, as_bits_of, c0_of, is_tile, pairs, view_rows_cols
from ptokit.isa.rules import (
    Predicate,
    behind,
    both,
    in_types,
    located,
    must,
    on_devices,
    or_else,
    under,
    when,
    where,
)
from ptokit.isa.scalars import word
from ptokit.isa.spec import Asm, Attr, Cpp, Pipe, Rule, View, gm_out, insn, rule, scalar, src
from ptokit.isa.targets import PerTarget
from ptokit.isa.transfer import RELU

ATOMIC = Attr("atomicType", AtomicType, AtomicType.AtomicNone, "add to what is there")
PHASE = Attr("stPhase", STPhase, STPhase.Unspecified, "unit-flag phase of an accumulator's drain")
_ORDER = ("src", "dst", "fp", "preQuantScalar")
_TEXT = {a.name: a.name for a in (PHASE, ATOMIC, RELU)}

_FIX_LAYOUT = "declare tile and view with the same layout"


_tile, _acc = is_tile("src"), is_tile("src", TileType.Acc)
_vec, _mat = is_tile("src", TileType.Vec), is_tile("src", TileType.Mat)


def _plain(o: Any) -> bool:
    return _tile(o) and not is_accumulator(o)


def _atomic(o: Any) -> bool:
    return o.attrs["atomicType"] == AtomicType.AtomicAdd


def _line(o: Any) -> bool:
    """A single row or column, which has the same bytes in every layout."""
    return o.src.rows == 1 or o.src.cols == 1


def _drains_to(*layouts: Layout) -> Predicate:
    return both(_acc, arranged("dst", *layouts))


_nd, _dn, _nz = (arranged("dst", layout) for layout in (Layout.ND, Layout.DN, Layout.NZ))
_same_layout = pairs("src", "dst", "ND-ND DN-DN NZ-NZ")


def _block_widths(o: Any) -> tuple[int, ...]:
    """Legal columns of a block: the fix pipe writes 16 wide, and splits f32 into halves of 8."""
    kind = o.dst.dtype.name
    return {"f32": (8, 16), "i32": (16,)}.get(kind, (c0_of(o, "dst"),))


def _stored(o: Any) -> Any:
    """The part of the tile that is stored."""
    if o.src.kind == "conv":
        return View.VALID
    return _drained(o) if is_accumulator(o) else moved(o, "src", "dst").tile


def _reached(o: Any) -> Any:
    """The part of global memory that is written."""
    if o.src.kind == "conv":
        return View.WHOLE
    if is_accumulator(o):
        return drained(o.dst, *_drained(o), _block_widths(o)[0])
    return moved(o, "src", "dst").view


# A store to an ND view is one matrix for every width of the view that the valid columns hold.
_COUNTS_MATRICES = PerTarget(False, a2a3=True)


def _drained(o: Any) -> tuple[int, int]:
    """Rows and columns of the accumulator that are stored."""
    nothing = _COUNTS_MATRICES[o.target] and _nd(o) and o.src.vc < o.dst.shape[4]
    return 0 if nothing else o.src.vr, o.src.vc


def _static_block(o: Any) -> bool:
    return o.dst.static_shape[3] == 16 and o.dst.static_shape[4] in _block_widths(o)


def _whole_blocks(o: Any) -> bool:
    line = o.src.rows if o.src.layout == "DN" else o.src.cols
    return o.src.is_boxed or line * o.src.itemsize % 32 == 0


def _conv_fits(o: Any) -> bool:
    weights = len(o.src.shape) == 4 and o.src.layout in WEIGHTS
    view = o.dst.shape[1:] if weights else o.dst.shape
    tile = o.src.shape[:5] if o.dst.layout == Layout.NDC1HWC0 else o.src.shape
    return view == tile


# ---- rules -------------------------------------------------------------------------------------

_SOURCES = (TileType.Vec, TileType.Acc, TileType.Mat)

_PLAIN_RULES = [
    *where(_tile)(
        rule("SA-0101", "src is a Vec, Acc or Mat tile", lambda o: o.src.loc in _SOURCES, OLD),
        rule("SA-0100", "src is a Vec or Acc tile", lambda o: o.src.loc in _SOURCES[:2], NEW),
    ),
    must("SA-0105", OLD, _plain)(
        "tile and view are both ND, both DN or both NZ, or the tile is one row or column",
        lambda o: _same_layout(o) or _line(o),
        _FIX_LAYOUT,
    ),
    must("SA-0338", OLD, both(_plain, lambda o: o.src.itemsize == 8))(
        "8-byte elements are stored ND to ND or DN to DN",
        pairs("src", "dst", "ND-ND DN-DN"),
        _FIX_LAYOUT,
    ),
    *memory.checked_sizes("src", "dst", _plain, OLD),
    *where(both(_mat, _nd), OLD)(
        memory.whole_blocks("PA-0029", "is stored in", Layout.ND, "src", "dst")
    ),
    *where(both(_mat, _dn), OLD)(
        memory.whole_blocks("PA-0028", "is stored in", Layout.DN, "src", "dst")
    ),
    must("SA-0124", NEW, _vec)(
        "tile and view are both ND (Cols * sizeof % 32 == 0), both DN (Rows * sizeof % 32 == 0) "
        "or both NZ, or the tile is one row or column",
        lambda o: _line(o) or (_same_layout(o) and _whole_blocks(o)),
        _FIX_LAYOUT,
    ),
    must("nz-block", NEW, both(_vec, _nz))(
        "NZ: dimensions 3 and 4 of dst are 16 and 32/sizeof (f32 and i32 also 16, 4-bit 64), "
        "statically",
        lambda o: _static_block(o) or o.dst.static_shape[3:] == (16, c0_of(o, "dst")),
        FIX_VIEW,
    ),
    *memory.equal_sizes("src", "dst", _vec, "a5"),
    memory.same_extent("src", "dst", _plain, "view-size", "kirin9030", memory.BY_VIEW),
    memory.same_extent("src", "dst", _tile, "CA-0002", "cpu"),
    must("conv-store", DEVICES)(
        "only the permissive profile stores convolution tiles",
        _tile,
        "store the data through a plain tile over the same storage (TRESHAPE)",
    ),
    must("conv-shape", "cpu", lambda o: not _tile(o))(
        "layout and shape of a convolution tile and its view agree",
        lambda o: o.src.layout == o.dst.layout and _conv_fits(o),
        FIX_VIEW,
    ),
]


_MATRICES = (Layout.ND, Layout.NZ)
_SPLIT = (Layout.NC1HWC0, Layout.NDC1HWC0)
_MAPS = (Layout.NHWC, Layout.NCHW, Layout.NCDHW)
_ATOMIC_TYPES = "f16 f32 i16 i32 i8 bf16"


def _layouts(id: str, on: str, *allowed: Layout) -> Rule:
    told = ", ".join(layout.name for layout in allowed)
    text = f"an accumulator is stored to one of the layouts {told}"
    return rule(id, text, arranged("dst", *allowed), on)


def _described(o: Any) -> tuple[int, int]:
    """Rows and columns of an accumulator that the view has room for."""
    rows, cols = view_rows_cols(o, "dst")
    return rows, cols // o.dst.shape[2] if o.dst.layout == Layout.NCDHW else cols


def _all_drained(o: Any) -> bool:
    """Whether the view takes just the valid accumulator; it may have another illegal layout."""
    known = arranged("dst", *_MATRICES, *_SPLIT, *_MAPS)
    return not known(o) or _described(o) == (o.src.vr, o.src.vc)


_DRAINS_VALID = "the valid rows and columns are stored; the view only gives the distances"
_WHOLE_DRAIN = (
    "the view describes exactly the valid rows and columns of the accumulator",
    _all_drained,
    FIX_VIEW,
    _DRAINS_VALID,
)
# What accumulators need, with one quantisation word or with a vector of them.
_DRAIN_RULES = [
    *where(_acc, DEVICES)(
        _layouts("acc-layout", "a2a3", *_MATRICES, *_SPLIT),
        _layouts("acc-layout", "kirinx90", Layout.ND, Layout.NC1HWC0),
        _layouts("acc-layout", "kirin9030", *_MATRICES),
        _layouts("SA-0337", "a5", *_MATRICES, *_MAPS),
        must("SA-0201", "a2a3 a5")(
            "1 <= Cols <= 4095 of an accumulator", lambda o: 1 <= o.src.cols <= 4095
        ),
        must("SA-0126", "a2a3 a5")(
            "an accumulator has 1 to 8192 rows for an ND view, otherwise 1 to 65535 rows and a "
            "multiple of 16 columns",
            lambda o: (
                1 <= o.src.rows <= 8192
                if o.dst.layout == Layout.ND
                else 1 <= o.src.rows <= 65535 and o.src.cols % 16 == 0
            ),
        ),
        must("PA-0033", "a2a3")(
            "1 <= valid columns <= 4095 of an accumulator", lambda o: 1 <= o.src.vc <= 4095
        ),
        must("acc-size", A5_FAMILY)(*_WHOLE_DRAIN),
    ),
    *where(_drains_to(Layout.ND), "a2a3")(
        must("PA-0064")(
            "at most 8192 valid rows go to an ND view",
            lambda o: o.src.vr <= 8192,
            otherwise=_DRAINS_VALID,
        ),
        must("PA-0023")(
            "an accumulator is stored to one matrix: S0, S1 and S2 are 1",
            lambda o: o.dst.shape[:3] == (1, 1, 1),
            otherwise="only the first slice is stored",
        ),
        must("PA-0048")(
            "an ND view has the valid rows (S3) and columns (S4) of the accumulator",
            lambda o: (o.src.vr, o.src.vc) == o.dst.shape[3:],
            FIX_VIEW,
            f"{_DRAINS_VALID}; with fewer columns than the view nothing is stored",
        ),
    ),
    # PA-0048 speaks about ND views.
    must("acc-size", "a2a3", both(_acc, lambda o: o.dst.layout != Layout.ND))(*_WHOLE_DRAIN),
    *where(_drains_to(Layout.NZ), DEVICES, "NZ: ")(
        must("acc-block")(
            "dimensions 3 and 4 of dst are 16 and 32/sizeof (f32 8 or 16, i32 16), statically",
            _static_block,
            FIX_VIEW,
        ),
        must("acc-columns", "a2a3")(
            "valid columns of the accumulator are a multiple of 16",
            lambda o: o.src.vc % 16 == 0,
            otherwise=_DRAINS_VALID,
        ),
    ),
    must("acc-c0", DEVICES, _drains_to(Layout.NDC1HWC0))(
        "NDC1HWC0: the stride of W is C0, which is 8 for f32, 16 for i32, otherwise 32/sizeof",
        lambda o: o.dst.stride[4] == _block_widths(o)[0],
        otherwise=on_devices("positions lie C0 elements apart, whatever the stride is", "a2a3"),
    ),
    *under(
        {"SA-0026": "a2a3", "SA-0025": "a5"},
        f"AtomicAdd works on {_ATOMIC_TYPES}",
        when(_atomic, in_types("dst", _ATOMIC_TYPES)),
    ),
    must("atomic-target", KIRIN)(
        "the target has no atomic stores", lambda o: not _atomic(o), "load, add and store"
    ),
]


def _drain(dst: Array, src: Array, o: Ops, word: int | Array | None) -> None:
    """Store an accumulator, converted; of the last block of columns only those that are valid."""
    relu = o.attrs["reluPreMode"] == ReluPreMode.NormalRelu
    kinds = o.src.dtype, o.dst.dtype
    values = convert_out(src, *kinds, word=word, relu=relu, target=o.target)
    _store(dst if dst.shape == src.shape else dst[:, : src.shape[1]], values, o)


def _store(dst: Array, values: Array, o: Ops) -> None:
    if _atomic(o):
        memory.atomic_add(dst, values)
    else:
        dst[...] = values


def _loop(o: Ops) -> Idiom | None:
    """A plain store copies; an accumulator that is not quantised is converted."""
    if not _tile(o) or o.preQuantScalar is not None:
        return None
    relu = o.attrs["reluPreMode"] == ReluPreMode.NormalRelu
    loop = drain_loop("dst", o, relu) if _acc(o) else copy("dst", o.dst.dtype) or MOVES
    return _added(loop, o.dst.dtype) if _atomic(o) else loop


def _added(loop: Idiom | None, kind: DType) -> Idiom | None:
    """What is stored, added to what is there."""
    if not isinstance(loop, Elementwise):
        return None
    value = Arg(kind, "src") if loop.is_copy else loop.expr
    return Elementwise(loop.to, Arg(kind, loop.to) + value)


def _same_count(o: Any) -> bool:
    """Whether view and valid region have the same number of elements, in their types.

    An empty region says that nothing is stored.
    """
    sizes = (0,) if o.src.kind != "tile" else (o.src.valid_row, o.src.valid_col)
    is_told = 0 not in sizes and DYNAMIC not in (*sizes, *o.dst.static_shape)
    return not is_told or prod(sizes) == prod(o.dst.static_shape)


@insn(
    gm_out("dst", view=_reached),
    src("src", kinds=("tile", "conv"), view=_stored),
    scalar("preQuantScalar", word(64), optional=True, note="quantisation word, Acc only"),
    attrs=[PHASE, ATOMIC, RELU],
    pipe=lambda o: Pipe.FIX if _acc(o) else Pipe.MTE3,
    pointwise=_tile,
    idiom=_loop,
    ops={"TSTORE_VEC": Pipe.MTE3, "TSTORE_MAT": Pipe.MTE3, "TSTORE_ACC": Pipe.FIX},
    types=memory.moved_types("src", "", "SA-0011", "SA-0125"),
    rules=[
        memory.same_bits("src", "dst", "SA-0099", _plain),
        memory.positive_sizes("src", "dst", OLD + " cpu"),
        memory.known_arrangement("src", "dst"),
        memory.unit_stride("dst", DEVICES),
        _PLAIN_RULES,
        _DRAIN_RULES,
        store_conversions("preQuantScalar"),
        must("acc-only", DEVICES, lambda o: not _acc(o))(
            "only an accumulator is quantised or passed through ReLU on the way out",
            lambda o: o.preQuantScalar is None and o.attrs["reluPreMode"] == ReluPreMode.NoRelu,
            "do it on the tile first (TQUANT, TRELU)",
        ),
        in_text(
            "static-count",
            "the view has as many elements as the tile has valid ones",
            _same_count,
            fix="give the view the valid sizes of the tile",
        ),
    ],
    asm=Asm(attrs=_TEXT, is_paired=True, order=_ORDER, is_counted=True, indexed="dst"),
    more_examples="""
        dst                       | src              | preQuantScalar | on
        GM f32 32x16 DN           | Vec f32 32x16 DN |                |
        GM f16 32x64 NZ           | Vec f16 32x64 NZ |                |
        GM i64 16x16              | Vec i64 16x16    |                |
        GM f16 32x64              | Mat f16 32x64    |                | a2a3 kirinx90
        GM f16 32x64 DN           | Mat f16 32x64 DN |                | a2a3 kirinx90
        GM f32 32x32              | Acc f32 32x32    |                | a2a3 a5 cpu
        GM i32 32x32              | Acc i32 32x32    |                |
        GM i8 32x32               | Acc i32 32x32    | 1065353216     |
        GM f16 32x32 NZ           | Acc f32 32x32    |                | a2a3 a5 cpu
        GM f16 1x2x4x8x16 NC1HWC0 | Acc f32 32x32    |                | a2a3 cpu
        GM f32 1x1x4x8x32 NHWC    | Acc f32 32x32    |                | a5 cpu
        GM f32 1x1x32x4x8 NCHW    | Acc f32 32x32    |                | a5 cpu
        GM f32 1x32x1x4x8 NCDHW   | Acc f32 32x32    |                | a5 cpu
    """,
    cpp=Cpp(("", "src dst @atomicType", "src dst @atomicType @reluPreMode"), first="stPhase"),
)
def TSTORE(dst: Array, src: Array, preQuantScalar: int | None, ops: Ops, pipe: Pipe) -> None:
    """Store the valid region of a tile to a view of global memory.

    Vec and Mat tiles are copied bit by bit. An accumulator leaves through the fix pipe: it is
    converted to the element type of the view (f32 to f16 and bf16 rounding to nearest even, f16
    saturating), or quantised with the word `preQuantScalar`, then passed through ReLU if asked.
    With AtomicType.AtomicAdd the result is added to memory in the view's type, one element at a
    time. Memory outside the view is untouched. The phase orders the drain of an accumulator with
    the matmul that fills it and changes no value.
    """
    if pipe is Pipe.FIX or preQuantScalar is not None:
        _drain(dst, src, ops, preQuantScalar)
    else:
        there = dst[0] if dst.ndim > src.ndim else dst  # four-dimensional weights
        _store(there, as_bits_of(src, there), ops)


@insn(
    gm_out("dst", view=_reached),
    src("src", view=_stored, note="Acc"),
    replace(
        moves.words(
            *(moves.no_column, moves.source_columns), "one 64-bit word per column", optional=False
        ),
        memory=TileType.Scaling,
        grain=WORDS_STEP,
    ),
    attrs=[ATOMIC, RELU],
    pipe=Pipe.FIX,
    targets=DEVICES,
    rules=[
        located("Acc", "src", id="accumulator", on=DEVICES),
        *or_else(
            on_devices("the address of fp is used as one of the fix-pipe buffer"),
            located("Scaling", "fp", id="SA-0052"),
        ),
        must("word-size")(
            "fp holds 64-bit words",
            lambda o: o.fp.itemsize == 8,
            "declare fp as Tile[TileType.Scaling, uint64, 1, Cols]",
            "every column takes the 8 bytes that lie there, whatever fp is declared as",
        ),
        must("word-count")(
            "fp has a word for every valid column of src",
            lambda o: o.fp.nbytes >= 8 * o.src.vc,
            otherwise=behind("what lies past fp counts as words"),
        ),
        must("word-address")(
            "fp starts at a multiple of 128 bytes",
            lambda o: o.mode == "auto" or o.fp.addr % 128 == 0,
            "bind the Scaling tile to a multiple of 128",
            on_devices("the low seven bits of the address are dropped"),
        ),
        memory.positive_sizes("src", "dst", OLD + " cpu"),
        memory.known_arrangement("src", "dst"),
        memory.unit_stride("dst", DEVICES),
        _DRAIN_RULES,
        store_conversions("fp"),
        memory.same_extent("src", "dst", lambda o: True, "CA-0002", "cpu"),
    ],
    steps=[steps("a2a3", start="FIX")],  # behind the register that names the words
    asm=Asm(
        name="tstore",
        attrs=_TEXT,
        clauses={"fp": "fp"},
        order=_ORDER,
        is_counted=True,
        indexed="dst",
        aliases=("tstore_fp",),
    ),
    example={"dst": "GM i8 32x32", "src": "Acc i32 32x32", "fp": "Scaling u64 1x32"},
    cpp=Cpp(("", "src dst fp @atomicType @reluPreMode")),
)
def TSTORE_FP(dst: Array, src: Array, fp: Array, ops: Ops) -> None:
    """Store an accumulator, each column quantised with its own word of `fp`.

    Word k belongs to column k of the source. Apart from where the words come from this is TSTORE of
    an accumulator with a quantisation word. `fp` must stay unchanged until the store is complete.
    """
    _drain(dst, src, ops, fp.view(np.uint64))
