"""What the moves between tiles do alike: data paths, sizes, and the copy itself.

TMOV, TEXTRACT and TINSERT are one idea - a rectangle of one tile becomes a rectangle of another -
on about ten data paths with their own conditions. A path is written `Mat>Left`: where the data
comes from, where it goes; a convolution tile is `Conv`.

Moves of the cube side copy whole boxes, beyond the valid region. What lies there may never have
been written, so such a move passes undefined elements on as undefined instead of refusing to read
them; elements of the source's valid region must be defined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptokit.base.enums import AccToVecMode, ReluPreMode, STPhase, TileType
from ptokit.base.layout import Array
from ptokit.base.tiles import BLOCK_BYTES
from ptokit.isa.facts import Ops
from ptokit.isa.fixpipe import convert_out, drain_loop, is_accumulator
from ptokit.isa.idioms import MOVES, Idiom, copy
from ptokit.isa.scalars import word
from ptokit.isa.services import Core, Poison, Refused
from ptokit.isa.spec import Asm, Attr, Operand, Pipe, scalar, src

DUAL = (AccToVecMode.DualModeSplitM, AccToVecMode.DualModeSplitN)

RELU = Attr("reluPreMode", ReluPreMode, ReluPreMode.NoRelu, "max(x, 0) on the way out of Acc")
PHASE = Attr("stPhase", STPhase, None, "unit-flag phase of the drain; the data is the same")
VEC_MODE = Attr("accToVecMode", AccToVecMode, None, "which vector core receives an accumulator")

WORD = scalar("preQuantScalar", word(64), optional=True, note="quantisation word of an accumulator")


Count = Callable[[Any], int]


def words(first: Count, columns: Count, note: str, *, optional: bool = True) -> Operand:
    """The quantisation words of so many columns from the first on: the bytes that lie there.

    Their address is cut down to a multiple of 128 bytes.
    """

    def region(o: Any) -> slice:
        start = first(o) // 16 * 16 if o.target.is_device else first(o)
        return slice(*(n * 8 // o.fp.itemsize for n in (start, start + columns(o))))

    return src("fp", view=region, optional=optional, space="Scaling" * optional, note=note)


def no_column(o: Any) -> int:
    """Words begin with that of the first column."""
    return 0


def source_columns(o: Any) -> int:
    """There is a word for every valid column of src."""
    return o.src.vc


# The template arguments of the C++ calls that move a part of a tile.
PARTS = (
    "",
    "dst src fp @accToVecMode @reluPreMode",
    "dst src @reluPreMode",
    "dst src @accToVecMode @reluPreMode",
)
PARTS_FP = ("", "dst src fp @reluPreMode")


_CLAUSES = {"fp": "fp", "preQuantScalar": "pre_quant"}


def window_text(clauses: str, more: str = "", **others: Any) -> Asm:
    """The text of a move of a window: its first element follows the source, words come last.

    Those among `clauses` are written behind a word of their own: `fp %x : T`, `pre_quant %x : i64`.
    """
    place = ("src", "indexRow", "indexCol")
    return Asm(
        ins=(*place, *more.split(), *_CLAUSES),
        order=(*place, "dst", *_CLAUSES),
        is_counted=True,
        clauses={operand: _CLAUSES[operand] for operand in clauses.split()},
        **others,
    )


# ---- paths -------------------------------------------------------------------------------------


def path(o: Any) -> str:
    """The data path of a move, such as `Mat>Left`."""
    source = "Conv" if o.src.kind == "conv" else o.src.loc.name
    return f"{source}>{o.dst.loc.name}"


def pipe_of(o: Any) -> Pipe:
    """The pipe of a move, by path.

    It is that of the event table, except from Vec to Mat: a vector core has no FIX pipe and moves
    the data by its DMA, whatever events call it.
    """
    source, target = path(o).split(">")
    if source == "Acc" or target == "Scaling":
        return Pipe.FIX
    if source in ("Mat", "Conv"):
        return Pipe.MTE1
    return Pipe.MTE3 if target == "Mat" else Pipe.V


# ---- sizes -------------------------------------------------------------------------------------


def up(size: int, unit: int) -> int:
    """Round up to a multiple."""
    return -(-size // unit) * unit


def c0(tile: Any) -> int:
    """Elements in a block of 32 bytes."""
    return BLOCK_BYTES // tile.itemsize


def whole(tile: Any) -> tuple[int, int]:
    """Rows and columns a tile has storage for; a compact tile only those of its valid boxes."""
    axis_map = tile.axis_map(tile.vr, tile.vc)
    return axis_map.rows, axis_map.cols


def rest_of_blocks(o: Any, rows: int, cols: int) -> tuple[slice, slice] | None:
    """What follows so many columns of dst to the end of a 32-byte block, lost with the block."""
    stop = min(up(cols, c0(o.dst)), o.dst.cols)
    return (slice(0, rows), slice(cols, stop)) if stop > cols else None


def is_plain(tile: Any) -> bool:
    """Whether a tile is row-major without boxes."""
    return tile.layout == "ND"


def is_row(tile: Any) -> bool:
    """Whether a tile is one row in address order, as the matrix-vector product wants it."""
    return tile.rows == 1 and tile.is_row_major


# ---- the copy ----------------------------------------------------------------------------------


def transfer(
    dst: Array,
    src: Array,
    o: Ops,
    poison: Poison,
    core: Core,
    word: int | Array | None,
    corner: tuple[int, int] = (0, 0),
    relu: bool | None = None,
) -> None:
    """Copy one region to another, converted on the way where the path converts.

    `corner` is where the region starts in the source. `word` is a quantisation word, or one per
    valid column: the columns past them, which only fill up a box, come out undefined. `relu`
    overrides what the template argument asks for.
    """
    wanted = o.attrs["reluPreMode"] == ReluPreMode.NormalRelu if relu is None else relu
    mode: AccToVecMode | None = o.attrs.get("accToVecMode")
    missing = poison.undefined("src")
    if missing is not None:
        poison.demand("src", (_within(o.src.vr - corner[0]), _within(o.src.vc - corner[1])))
    if isinstance(word, np.ndarray):
        word, missing = _spread(word, src, missing)
    values = _converted(src, o, word, wanted)
    if mode is None and missing is None:
        dst[...] = values
        return
    lands_here = False
    for number, part in _receivers(mode, src.shape, o, core):
        lost = None if missing is None else missing[part]
        window = None if number is None else core.on_vector_core("dst", number)
        if window is None:
            lands_here = True
            dst[...] = values[part]
            if lost is not None and lost.any():
                poison.poison_where("dst", lost)
        else:
            window.write(values[part])
            window.mark_defined()
            if lost is not None:
                window.poison(lost)
    if not lands_here:
        poison.leave("dst", dst)


def loop(o: Ops) -> Idiom | None:
    """What `transfer` amounts to where nothing is quantised, and one core gets all of it.

    Without conversion, it moves bytes.
    """
    given = {name for name, facts in o if facts is not None}
    if given & {"preQuantScalar", "fp"} or o.attrs.get("accToVecMode") is not None:
        return None
    relu = o.attrs["reluPreMode"] == ReluPreMode.NormalRelu
    if o.src.kind == "tile" and is_accumulator(o):
        return drain_loop("dst", o, relu)
    if relu or o.src.dtype is not o.dst.dtype:
        return None
    is_plain = o.src.kind == "tile" and not given & {"tmp", "dst1"}
    return (copy("dst", o.dst.dtype) if is_plain else None) or MOVES


def _within(size: int) -> slice:
    return slice(0, max(size, 0))


def _spread(word: Array, src: Array, missing: Array | None) -> tuple[Array, Array | None]:
    """Give every column a word, and mark the columns that have none."""
    words = word.reshape(-1).view(np.uint64)
    extra = src.shape[1] - words.size
    if extra <= 0:
        return words[: src.shape[1]], missing
    marked = np.zeros(src.shape, bool) if missing is None else missing
    marked[:, words.size :] = True
    return np.concatenate([words, np.zeros(extra, np.uint64)]), marked


def _converted(values: Array, o: Ops, word: int | Array | None, relu: bool) -> Array:
    source, result = o.src.dtype, o.dst.dtype
    permissive = not o.target.is_device
    if is_accumulator(o) or relu or (permissive and source is not result):
        return convert_out(values, source, result, word=word, relu=relu, target=o.target)
    if o.dst.loc == TileType.Bias and source is not result:
        return convert_out(values, source, result)  # widening, exact
    return values if source is result else values.view(result.np)


def _receivers(
    mode: AccToVecMode | None, shape: tuple[int, ...], o: Ops, core: Core
) -> list[tuple[int | None, tuple[slice, slice]]]:
    """Which vector core gets which part; None is wherever dst lies.

    Without the other vector core at hand, a core sees the half of its own sub-block.
    """
    everything = slice(None), slice(None)
    if mode is None or not o.target.is_device:
        return [(None, everything)]
    if mode not in DUAL:
        return [(int(mode == AccToVecMode.SingleModeVec1), everything)]
    axis = DUAL.index(mode)
    half = shape[axis] // 2
    parts = [slice(0, half), slice(half, 2 * half)]
    both = [(part, slice(None)) if axis == 0 else (slice(None), part) for part in parts]
    if core.on_vector_core("dst", 1) is None:
        return [(None, both[core.subblock])]
    return [(0, both[0]), (1, both[1])]


def dual_columns(o: Any) -> int:
    """What the columns of an NZ tile are rounded up to before two vector cores divide it."""
    return 16 if o.attrs["accToVecMode"] == AccToVecMode.DualModeSplitM else 32


def share_size(o: Any, rows: int, cols: int) -> tuple[int, int]:
    """Size of the destination region when two vector cores divide the result."""
    mode = o.attrs.get("accToVecMode")
    if not o.target.is_device or mode not in DUAL:
        return rows, cols
    return (rows // 2, cols) if mode == AccToVecMode.DualModeSplitM else (rows, cols // 2)


def weights(conv: Array) -> Array:
    """Convolution weights as the matrix of the right operand: K = (c1, h, w, c0) rows, N columns.

    Four dimensions are (C1*H*W, N/16, 16, C0), five (C1, H, W, N, C0), six add D in front.
    """
    if conv.ndim == 4:
        return conv.transpose(0, 3, 1, 2).reshape(conv.shape[0] * conv.shape[3], -1)
    n, block = conv.shape[-2:]
    return conv.reshape(-1, n, block).transpose(0, 2, 1).reshape(-1, n)


def transfer_weights(
    dst: Array, src: Array, poison: Poison, corner: tuple[int, int] = (0, 0)
) -> None:
    """Copy the window of convolution weights that starts at `corner` into a right operand."""
    (row, col), (rows, cols) = corner, dst.shape
    part = slice(row, row + rows), slice(col, col + cols)
    window = weights(src)[part]
    if window.shape != dst.shape:
        raise Refused(
            "window",
            "the window lies inside the weights",
            got=[("weights (K x N)", weights(src).shape), ("indexRow", row), ("indexCol", col)],
        )
    dst[...] = window
    missing = poison.undefined("src")
    if missing is not None:
        poison.poison_where("dst", weights(missing.reshape(src.shape))[part])


def weight_size(o: Any) -> tuple[int, int]:
    """The region of the right operand that weights fill: the valid one, in whole boxes."""
    return up(o.dst.vr, c0(o.dst)), up(o.dst.vc, 16)
