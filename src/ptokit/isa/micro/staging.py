"""Transfers of the cube core: from global memory to L1, and from there to what products read.

L1 holds a matrix in columns of boxes: a box has 16 rows of 32 bytes, and the boxes of a column lie
one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ptokit.base.convert import convert, pack4, unpack4
from ptokit.base.diagnostics import NotSupported, fail
from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.isa.effects import Pipe
from ptokit.isa.freedom import unspecified
from ptokit.isa.micro.spec import (
    BYTE_MAX,
    HALF_MAX,
    WORD_MAX,
    Example,
    Law,
    Word,
    aligned,
    micro,
    within,
)
from ptokit.isa.micro.transfer import bursts, copy_units

BLOCK, ROWS, BOX = 32, 16, 512  # bytes of a row of a box, its rows, its bytes
_LOOPS = "loop1?*:int loop2?*:int loop3?*:int"
_LOOP_TEXT = "".join(f"[? loop(%loop{n}...)?]" for n in (1, 2, 3))
_LOOP_TYPES = "".join(f"[?, loop T(loop{n}...)?]" for n in (1, 2, 3))
_BURST = "%src, %dst, %len nburst(%nburst...) {} : T(src), T(dst), T(len), T(nburst...)"


def up(number: int, unit: int) -> int:
    """The next multiple."""
    return -(-number // unit) * unit


def boxed(rows: int, cols: int, size: int, height: int) -> Array:
    """Where each element of a boxed matrix lies, in bytes; columns of boxes have so many rows."""
    wide = BLOCK // size
    row, col = np.arange(rows)[:, None], np.arange(cols)[None, :]
    return ((col // wide) * height + row) * BLOCK + col % wide * size


def refused(unit: Any, what: str, fix: str, **got: Any) -> NoReturn:
    """Nothing public says what it does."""
    raise fail(
        "micro-type", what, got=list(got.items()), fix=fix, site=unit.place, kind=NotSupported
    )


# ---- to L1 -------------------------------------------------------------------------------------


@micro(
    f"src:gm dst:l1 len:int nburst*:int {_LOOPS}",
    is_inside=False,
    pipe=Pipe.MTE2,
    syntax=f"%src, %dst, %len nburst(%nburst...){_LOOP_TEXT} {{}} : "
    f"T(src), T(dst), T(len), T(nburst...){_LOOP_TYPES}",
)
def mte_gm_l1(
    src: Any,
    dst: Any,
    len: int,
    nburst: Sequence[int],
    loop1: Sequence[int] | None,
    loop2: Sequence[int] | None,
    loop3: Sequence[int] | None,
    unit: Any,
) -> None:
    """Copy bursts of bytes from global memory to L1, as pto.mte_gm_ub does to the other memory."""
    for here, there in bursts(nburst, loop1, loop2, loop3):
        unit.write(dst, dst.offset + there, *unit.read(src, src.offset + here, len))


@micro(
    "src:gm dst:l1 n:int d:int inner:int outer?:int groups:int row_step:int column_step:int "
    "group_step:int l2:int small:int",
    words=[Word("order", ("nd2nz", "dn2nz"), note="rows of memory are those of n, or those of d")],
    laws=[
        *within(0, WORD_MAX, "inner", "outer", "row_step", "column_step", "group_step"),
        *within(1, WORD_MAX, "groups"),
    ],
    is_inside=False,
    pipe=Pipe.MTE2,
    syntax="%src, %dst, W(order), shape(%n, %d), src_layout(%inner[?, %outer?]), "
    "dst_group(%groups, %row_step, %column_step, %group_step), ctrl(%l2, %small) {} : "
    "T(src), T(dst), W(order), shape T(n), T(d), src_layout(T(inner)[?, T(outer)?]), "
    "dst_group T(groups), T(row_step), T(column_step), T(group_step), ctrl T(l2), T(small)",
)
def mte_gm_l1_frac(
    src: Any,
    dst: Any,
    n: int,
    d: int,
    inner: int,
    outer: int | None,
    groups: int,
    row_step: int,
    column_step: int,
    group_step: int,
    small: int,
    order: str,
    unit: Any,
) -> None:
    """Bring matrices of n rows and d columns from global memory to L1, boxed.

    `inner` is how many bytes lie between two rows of memory, `outer` between two matrices. Steps
    between rows, columns of boxes and matrices in L1 are in blocks of 32 bytes. The last block of a
    row is filled up with zeros.
    """
    if small:
        refused(unit, "the mode for few channels is not supported", "pass false", small=small)
    kind = dst.dtype
    size, wide = kind.itemsize, BLOCK // kind.itemsize
    row, col = np.arange(n)[:, None], np.arange(d)[None, :]
    here = row * inner + col * size if order == "nd2nz" else col * inner + row * size
    cols = np.arange(up(d, wide))[None, :]
    there = (cols // wide * column_step + row * row_step) * BLOCK + cols % wide * size
    for group in range(groups):
        values = np.zeros(there.shape, kind.np)
        values[:, :d] = unit.read_elements(src, here + group * (outer or 0), kind)[0]
        unit.write_elements(dst, there + group * group_step * BLOCK, values, None)


@micro("src:gm dst:l1 a:int b:int c:int d:int", is_inside=False, pipe=Pipe.MTE2)
def copy_gm_to_cbuf(a: int, b: int, unit: Any) -> None:
    """Copy from global memory to L1, in raw form. It is read and checked; running it is refused."""
    refused(
        unit,
        "the units of pto.copy_gm_to_cbuf are told nowhere",
        "use pto.mte_gm_l1, which counts bytes",
        sizes=(a, b),
    )


# ---- between L1 and the unified buffers ----------------------------------------------------------


@micro(
    "src:l1 dst:ub len:int nburst*:int",
    is_inside=False,
    pipe=Pipe.MTE1,
    syntax=_BURST,
    freedom=unspecified("units", "Recorded runs fit blocks and gaps; the reference tells bytes."),
)
def mte_l1_ub(src: Any, dst: Any, len: int, nburst: Sequence[int], unit: Any) -> None:
    """Copy bursts of blocks of 32 bytes from L1 to the unified buffer of vector core 0.

    `nburst` is how many bursts there are, and the blocks between one and the next on both sides.
    """
    copy_units(src, dst, BLOCK, len, nburst, unit)


@micro("src:ub dst:l1 len:int nburst*:int", is_inside=False, pipe=Pipe.MTE3, syntax=_BURST)
def mte_ub_l1(src: Any, dst: Any, len: int, nburst: Sequence[int], unit: Any) -> None:
    """Copy bursts of blocks of 32 bytes from the unified buffer of this core to L1."""
    copy_units(src, dst, BLOCK, len, nburst, unit)


@micro(
    "src:ub dst:l1 sid:int n:int len:int src_gap:int dst_gap:int", is_inside=False, pipe=Pipe.MTE3
)
def copy_ubuf_to_cbuf(
    src: Any, dst: Any, n: int, len: int, src_gap: int, dst_gap: int, unit: Any
) -> None:
    """Copy n bursts of so many blocks of 32 bytes, with gaps, from the unified buffer to L1."""
    copy_units(src, dst, BLOCK, len, (n, src_gap, dst_gap), unit)


@micro(
    "src:l1 dst:ub core:int n:int len:int src_gap:int dst_gap:int", is_inside=False, pipe=Pipe.MTE1
)
def copy_cbuf_to_ubuf(
    src: Any, dst: Any, core: int, n: int, len: int, src_gap: int, dst_gap: int, unit: Any
) -> None:
    """Copy n bursts of so many blocks, with gaps, from L1 to the unified buffer of a core."""
    there = unit.on_vector_core(dst, core)
    copy_units(src, there, BLOCK, len, (n, src_gap, dst_gap), unit)


# ---- operands of products ------------------------------------------------------------------------

_STEPS = ("m_start", "k_start", "m_step", "k_step", "src_stride", "dst_stride")
_OFFSETS = (
    unspecified("row and col", "No recorded run begins anywhere but at 0."),
    unspecified(
        "8-bit elements, transposed, whose columns are no multiple of 32",
        "The operand then has columns of boxes with more rows than a product goes by.",
    ),
)
_TRANSPOSE = Word("transpose", ("false", "true"), "false", "swap rows and columns")


def _boxes(src: Any, dst: Any, steps: Sequence[int], is_swapped: bool, unit: Any) -> None:
    """Copy boxes: from where, how many, and how many lie between columns of them."""
    if is_swapped:
        refused(unit, "boxes are not transposed in this form", "use the form with a matrix")
    m_start, k_start, m_step, k_step, src_stride, dst_stride = steps
    for k in range(k_step):
        here = src.offset + ((k_start + k) * src_stride + m_start) * BOX
        data = unit.read(src, here, m_step * BOX)
        unit.write(dst, dst.offset + k * dst_stride * BOX, *data)


def _operand(
    src: Any, dst: Any, rows: int, cols: int, row: int, col: int, is_swapped: bool, unit: Any
) -> None:
    """Bring a part of a boxed matrix to a boxed matrix of its own, possibly transposed."""
    kind = dst.dtype
    each = 2 if kind.is_packed else 1  # elements of a place
    wide = BLOCK // kind.itemsize * each
    height, width = up(rows, ROWS), (col + up(cols, wide)) // each
    here = boxed(row + height, width, kind.itemsize, up(row + rows, ROWS))[row:, col // each :]
    values, lost = unit.read_elements(src, here, kind)
    if is_swapped and kind.is_packed:
        values = pack4(unpack4(values).T)
        lost = None if lost is None else np.repeat(lost, 2, 1).T.reshape(*values.shape, 2).any(2)
    elif is_swapped:
        values, lost = values.T, None if lost is None else lost.T
    made_rows, made_cols = values.shape
    there = boxed(made_rows, made_cols, kind.itemsize, up(made_rows, ROWS))
    unit.write_elements(dst, there, values, lost)


_LOAD = (
    "%src, %dst, %rows, %cols[?, %row, %col?][?, %src_stride, %dst_stride?] {} : "
    "T(src), T(dst), T(rows), T(cols)[?, T(row), T(col)?][?, T(src_stride), T(dst_stride)?]"
)
_SIZES = "rows:int cols:int row?:int col?:int src_stride?:int dst_stride?:int"
_FROM_ZERO = within(0, WORD_MAX, "rows", "cols", "row", "col", "src_stride", "dst_stride")


def _loads(is_left: bool) -> Callable[..., None]:
    """The load of an operand. The left one lies as it is meant, the right one as its columns."""

    def load(
        src: Any,
        dst: Any,
        rows: int,
        cols: int,
        row: int | None,
        col: int | None,
        src_stride: int | None,
        dst_stride: int | None,
        transpose: str,
        unit: Any,
    ) -> None:
        is_swapped = transpose == "true"
        if src_stride is not None:
            steps = (rows, cols, row or 0, col or 0, src_stride, dst_stride or 0)
            _boxes(src, dst, steps, is_swapped, unit)
            return
        shape = (rows, cols) if is_left is not is_swapped else (cols, rows)
        _operand(src, dst, *shape, row or 0, col or 0, is_swapped, unit)

    return load


for _name, _doc in {
    "a": "Bring a boxed matrix from L1 to the left operand of products, m x k.\n\n"
    "`row` and `col` are where it begins in the matrix of L1, which is k x m with `transpose`. "
    "With\nstrides the numbers are those of pto.load_cbuf_to_ca.",
    "b": "Bring a boxed matrix from L1 to the right operand of products, k x n.\n\n"
    "The operand holds n rows of k elements. The matrix of L1 is k x n with `transpose` and n x k\n"
    "without. With strides the numbers are those of pto.load_cbuf_to_cb.",
}.items():
    micro(
        f"src:l1 dst:l0{_name} {_SIZES}",
        name=f"mte_l1_l0{_name}",
        words=[_TRANSPOSE],
        laws=_FROM_ZERO,
        is_inside=False,
        pipe=Pipe.MTE1,
        syntax=_LOAD,
        freedom=_OFFSETS,
        doc=_doc,
    )(_loads(_name == "a"))


def _raw_load(given: dict[str, Any], unit: Any) -> None:
    steps = [given[name] for name in _STEPS]
    is_swapped = given["transpose"] not in ("false", 0)
    _boxes(given["src"], given["dst"], steps, is_swapped, unit)


_FIELDS = (
    *within(0, HALF_MAX, "m_start", "k_start"),
    *within(1, BYTE_MAX, "m_step", "k_step"),
    *within(1, HALF_MAX, "src_stride", "dst_stride"),
)
_ARE_PAIRS = Law(
    "src and dst hold pairs of 4-bit floats of one type",
    lambda src, dst: src.is_packed and src.spelled == dst.spelled,
    "use pto.load_cbuf_to_ca or pto.load_cbuf_to_cb for other elements",
)
_NO_PAIRS = Law(
    "pairs of 4-bit floats have a load of their own",
    lambda src, dst: not (src.is_packed or dst.is_packed),
    "use the load whose name ends in _s4",
)


def _pairs(space: str) -> Example:
    kinds = {"src": "!pto.ptr<!pto.f4E2M1x2, l1>", "dst": f"!pto.ptr<!pto.f4E2M1x2, {space}>"}
    return lambda T, U: kinds


_RAW = "src:l1 dst:{} " + " ".join(f"{name}:int" for name in _STEPS)
for _name, _space in {"ca": "l0a", "cb": "l0b"}.items():
    micro(
        _RAW.format(_space),
        name=f"load_cbuf_to_{_name}",
        words=[_TRANSPOSE],
        laws=[_NO_PAIRS, *_FIELDS],
        is_inside=False,
        pipe=Pipe.MTE1,
        doc=f"Copy boxes of 512 bytes from L1 to {_space}.\n\n"
        "The box in which it begins, how many there are in a column and how many columns, and how "
        "many boxes lie between two columns in the source and in the destination.",
    )(_raw_load)
    micro(
        f"{_RAW.format(_space)} transpose:int",
        name=f"load_cbuf_to_{_name}_s4",
        example=_pairs(_space),
        laws=[_ARE_PAIRS, *_FIELDS, *within(0, 1, "transpose")],
        is_inside=False,
        pipe=Pipe.MTE1,
        freedom=unspecified("every number", "No recorded run shows it: they count boxes here."),
        doc=f"Copy boxes of 512 bytes, of pairs of 4-bit elements, from L1 to {_space}.\n\n"
        "The numbers are those of pto.load_cbuf_to_ca; the last one is whether to transpose, which "
        "is refused.",
    )(_raw_load)


# ---- scales, bias, parameters --------------------------------------------------------------------


def scale_places(rows: int, k: int) -> Array:
    """Where the scales of rows x ceil(k / 32) blocks lie: pairs of blocks, rows inside."""
    row, group = np.arange(rows)[:, None], np.arange(up(k, 64) // 32)[None, :]
    return (group // 2 * up(rows, ROWS) + row) * 2 + group % 2


_SCALES_AT, _OPERAND_AT = 32, 16  # bytes that the addresses of both are multiples of


def _brings_scales(space: TileType) -> Callable[..., None]:
    """The load of the scales of an operand, which belong to the operand at `dst`."""

    def load(given: dict[str, Any], unit: Any) -> None:
        parts = {name: given[name] for name in ("row", "col", "src_stride")}
        if given["row"] or given["col"] or given["src_stride"] is not None:
            what = "the scales of a part of a matrix are not supported"
            refused(unit, what, "move the pointer", **parts)
        rows, k = given["rows"], given["cols"]
        if space is TileType.ScaleRight:
            rows, k = k, rows
        src, dst = given["src"], given["dst"]
        for at, alignment in ((src, _SCALES_AT), (dst, _OPERAND_AT)):
            if at.offset % alignment:
                raise unit.misaligned(at.buffer, at.offset, alignment)
        to = unit.scales(dst, space)
        unit.write(to, to.offset, *unit.read(src, src.offset, up(rows, ROWS) * up(k, 64) // 32))

    return load


for _name, _space, _what in (
    ("a", TileType.ScaleLeft, "a left operand of m x k"),
    ("b", TileType.ScaleRight, "a right operand of k x n"),
):
    micro(
        f"src:l1 dst:l0{_name} {_SIZES}",
        name=f"mte_l1_l0{_name}_mx",
        laws=[aligned("src", _SCALES_AT), aligned("dst", _OPERAND_AT), *_FROM_ZERO],
        is_inside=False,
        pipe=Pipe.MTE1,
        syntax=_LOAD,
        freedom=unspecified("row, col and strides", "Nothing shows their units: they are refused."),
        doc=f"Bring the scales of {_what} elements from L1: one byte for each 32 of k.\n\n"
        "They belong to the operand at `dst`.",
    )(_brings_scales(_space))


@micro(
    "src:l1 dst:bt len:int nburst*:int",
    is_inside=False,
    pipe=Pipe.MTE1,
    syntax=_BURST,
    freedom=unspecified("the unit of len", "Recorded runs fit any unit of an element or more."),
)
def mte_l1_bt(src: Any, dst: Any, len: int, nburst: Sequence[int], unit: Any) -> None:
    """Bring a row of bias values from L1 to the bias table, as f32 or i32.

    `len` and the gaps of `nburst` count blocks of 32 bytes of the source.
    """
    kind, made = src.dtype, dst.dtype
    each = BLOCK // kind.itemsize
    at = np.arange(len * each)
    for turn in range(nburst[0]):
        here = (at + turn * (len + nburst[1]) * each) * kind.itemsize
        there = (at + turn * (len + nburst[2]) * each) * made.itemsize
        values, lost = unit.read_elements(src, here, kind)
        unit.write_elements(dst, there, convert(values, kind, made), lost)


@micro(
    "src:l1 dst:fb len:int nburst*:int",
    is_inside=False,
    pipe=Pipe.FIX,
    syntax=_BURST,
    freedom=unspecified("the unit of len", "Recorded runs fit 64 bytes."),
)
def mte_l1_fb(src: Any, dst: Any, len: int, nburst: Sequence[int], unit: Any) -> None:
    """Bring parameters of the fix pipe from L1: scales of 8 bytes, or factors of 4 bytes.

    Scales go to its first table, factors to its second, which begins at address 65536. `len` and
    the gaps of `nburst` count 64 bytes.
    """
    copy_units(src, unit.parameters(dst), 64, len, nburst, unit)


@micro("src:l1 dst:fb n:int len:int src_gap:int dst_gap:int", is_inside=False, pipe=Pipe.FIX)
def copy_cbuf_to_fbuf(
    src: Any, dst: Any, n: int, len: int, src_gap: int, dst_gap: int, unit: Any
) -> None:
    """Copy n bursts of so many units of 64 bytes from L1 to the parameters of the fix pipe.

    It is what pto.mte_l1_fb is made of.
    """
    copy_units(src, unit.parameters(dst), 64, len, (n, src_gap, dst_gap), unit)
