"""TTRANS: transposition of matrices, and of feature maps and weights between their layouts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from ptokit.base.enums import Layout, TileType
from ptokit.base.layout import Array, AxisMap, dense_strides
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.tiles import BLOCK_BYTES
from ptokit.isa.conv_layout import (
    FILTERS,
    WEIGHTS,
    join_channels,
    split_channels,
    weight_blocks,
)
from ptokit.isa.devices import A5_FAMILY, DEVICES
from ptokit.isa.effects import steps
from ptokit.isa.facts import ConvFacts, Ops, TileFacts
from ptokit.isa.freedom import unspecified
from ptokit.isa.idioms import MOVES
from ptokit.isa.memory import as_bits_of
from ptokit.isa.rules import Told, located, must, under, where
from ptokit.isa.services import Poison
from ptokit.isa.spec import Asm, View, insn, out, rule, src, tmp, types
from ptokit.isa.targets import PerTarget
from ptokit.isa.transfer import c0, rest_of_blocks, up

# Whether all of the tile is transposed, or only its valid region.
_WHOLE_TILE = PerTarget(False, a5=True, kirin=True)
_TAKES_TMP = PerTarget(True, a5=False, kirin=False)  # the others only have the operand
_LISTED = "u32 i32 f32 u16 i16 f16 u8 i8"
Dims = tuple[int, ...]


def _conv(o: Any) -> bool:
    return o.src.kind == "conv" and o.dst.kind == "conv"


def _matrix(o: Any) -> bool:
    return o.src.kind == "tile" and o.dst.kind == "tile"


# ---- convolution layouts -----------------------------------------------------------------------


class Conversion(NamedTuple):
    """One pair of layouts: the shape dst has for a source, and the source laid out like that."""

    ranks: tuple[int, int]  # dimensions of source and destination
    shape: Callable[[Dims, Dims], Dims]
    arrange: Callable[[Array, Dims], Array]


def _groups(count: int, size: int) -> int:
    return -(-count // size)


def _split_shape(s: Dims, d: Dims) -> Dims:
    *lead, c, h, w = s
    return (*lead, _groups(c, d[-1]), h, w, d[-1])


def _joined_shape(s: Dims, d: Dims) -> Dims:
    *lead, c1, h, w, block = s
    channels = d[-3] if _groups(d[-3], block) == c1 else c1 * block
    return (*lead, channels, h, w)


def _weights_shape(s: Dims, d: Dims) -> Dims:
    *group, n, c1, h, w, block = s
    return c1 * h * w * (group[0] if group else 1), _groups(n, d[2]), d[2], block


def _weights_3d_shape(s: Dims, d: Dims) -> Dims:
    n, c, depth, h, w = s
    return depth * _groups(c, d[-1]) * h * w, _groups(n, d[2]), d[2], d[-1]


def _weights_3d(maps: Array, d: Dims) -> Array:
    split = split_channels(maps, _groups(maps.shape[1], d[-1]), d[-1])
    return weight_blocks(np.moveaxis(split, 2, 1), d[2])  # D in front of C1


def _by_group(arrange: Callable[[Array, Dims], Array]) -> Callable[[Array, Dims], Array]:
    return lambda s, d: np.stack([arrange(group, d[1:]) for group in s])


def _split(s: Array, d: Dims) -> Array:
    return split_channels(s, d[1], d[4])


def _joined(s: Array, d: Dims) -> Array:
    return join_channels(s, d[1])


CONVERSIONS = {
    "NCHW-NC1HWC0": Conversion((4, 5), _split_shape, _split),
    "NC1HWC0-NCHW": Conversion((5, 4), _joined_shape, _joined),
    "GNCHW-GNC1HWC0": Conversion((5, 6), _split_shape, _by_group(_split)),
    "GNC1HWC0-GNCHW": Conversion((6, 5), _joined_shape, _by_group(_joined)),
    "NC1HWC0-FRACTAL_Z": Conversion((5, 4), _weights_shape, lambda s, d: weight_blocks(s, d[2])),
    "GNC1HWC0-FRACTAL_Z": Conversion(
        (6, 4), _weights_shape, lambda s, d: weight_blocks(np.moveaxis(s, 0, 1), d[2])
    ),
    "NCDHW-FRACTAL_Z_3D": Conversion((5, 4), _weights_3d_shape, _weights_3d),
}


def _pair(o: Any) -> str:
    return f"{o.src.layout.name}-{o.dst.layout.name}"


def _known_pair(o: Any) -> bool:
    return _pair(o) in CONVERSIONS


def _conversion(o: Any) -> Conversion | None:
    """The conversion between two convolution tiles, if there is one for tiles of these ranks."""
    found = CONVERSIONS.get(_pair(o))
    ranks = (len(o.src.shape), len(o.dst.shape))
    return found if found is not None and found.ranks == ranks else None


def _shape_follows(o: Any) -> bool:
    found = _conversion(o)
    return found is not None and found.shape(o.src.shape, o.dst.shape) == o.dst.shape


def _converts(o: Any) -> bool:
    return _conv(o) and _conversion(o) is not None


# ---- scratch memory ----------------------------------------------------------------------------


def _row_step(o: Any) -> int:
    """Rows the transposer takes at once."""
    return 32 if o.src.itemsize == 1 else 16


def _aligned(o: Any, dst_stride: int, src_stride: int) -> bool:
    """Whether the strides allow the fast transposition, which is the one that uses tmp."""
    block = c0(o.src)
    return dst_stride % _row_step(o) == 0 and src_stride % block == 0 and src_stride // block <= 255


def _is_fast(o: Any) -> bool:
    """Whether this transposition needs tmp."""
    if _matrix(o):
        return _aligned(o, o.dst.row_stride, o.src.row_stride)
    if not _converts(o) or o.dst.layout == Layout.FRACTAL_Z:
        return False
    if o.dst.layout == Layout.FRACTAL_Z_3D:
        return True  # the first stage always goes through tmp
    rows, cols = _domain(o)
    return _aligned(o, rows, cols)


def _domain(o: Any) -> tuple[int, int]:
    """Rows and columns of the matrices a feature map is transposed by: C0 x H*W, or H*W x C0."""
    joined = o.src.layout in (Layout.NCHW, Layout.GNCHW)
    block = (o.dst if joined else o.src).shape[-1]
    h, w = o.src.shape[-2:] if joined else o.dst.shape[-2:]
    return (block, h * w) if joined else (h * w, block)


def _scratch_bytes(o: Any) -> int:
    """Bytes of tmp by the formulas of the page."""
    step, size = _row_step(o), o.src.itemsize
    if _matrix(o):
        return o.src.vc * up(o.src.vr, step) * size if _is_fast(o) else 0
    if not _converts(o) or o.dst.layout == Layout.FRACTAL_Z:
        return 0
    if o.dst.layout == Layout.FRACTAL_Z_3D:
        n, c, _, h, w = o.src.shape
        block = o.dst.shape[-1]
        plane = n * up(c, block) * h * w
        return (plane + max(plane, h * w * up(block, step))) * size
    rows, cols = _domain(o)
    return cols * up(rows, step) * size


def tmp_bytes(dst: Any, src: Any) -> int:
    """Bytes of scratch memory that TTRANS(dst, src, tmp) needs; tiles or tile types.

    0 where the strides rule out the fast transposition of a matrix, and for weights that are only
    rearranged. For the other convolution forms the full size is given, whatever the strides.
    """
    return _scratch_bytes(SimpleNamespace(dst=_facts_of(dst), src=_facts_of(src)))


def _facts_of(operand: Any) -> Any:
    if not isinstance(operand, type):
        return operand.facts()
    kind: Any = operand
    return ConvFacts(kind.TYPE) if hasattr(kind, "TYPE") else TileFacts(kind.spec_for(None))


# ---- rules -------------------------------------------------------------------------------------


def _whole_blocks(tile: Any) -> bool:
    line = tile.cols if tile.is_row_major else tile.rows
    return line * tile.itemsize % BLOCK_BYTES == 0


def _size(o: Any) -> tuple[int, int]:
    """Rows and columns of the source that are transposed."""
    return (o.src.rows, o.src.cols) if _WHOLE_TILE[o.target] else (o.src.vr, o.src.vc)


def _index_fits(o: Any) -> bool:
    longer = o.dst if o.src.rows < o.src.cols else o.src
    last = (longer.rows - 1) * longer.row_stride + longer.cols - 1
    return last <= (0xFFFF_FFFF if o.src.itemsize == 4 else 0xFFFF)


def _uses_tmp(o: Any) -> bool:
    """Whether tmp is touched."""
    return _is_fast(o) and _TAKES_TMP[o.target]


def _source(o: Any) -> View | AxisMap:
    """What is read: a device finds the next group of weights where padded filters would end.

    So it does if `src` reserves as much; the page lets it be as large as its shape.
    """
    if not _conv(o):
        return View.WHOLE if _WHOLE_TILE[o.target] else View.VALID
    if _pair(o) != "GNC1HWC0-FRACTAL_Z" or not o.target.is_device:
        return View.WHOLE
    group, *filters = dense_strides(o.src.shape)
    pitch = group // o.src.shape[1] * o.dst.shape[1] * o.dst.shape[2]
    padded = AxisMap(o.src.shape, (pitch, *filters), (), tuple(range(6)))
    return padded if padded.span <= o.src.buffer_size else View.WHOLE


def _bytes_touched(o: Any, name: str) -> int:
    """How far a tile is used: of a convolution tile its shape, however much it reserves."""
    tile = o[name]
    if tile.kind != "conv":
        return tile.nbytes
    source = _source(o)
    count = source.span if name == "src" and isinstance(source, AxisMap) else prod(tile.shape)
    return -(-count * tile.dtype.bits // 8)


def _apart(o: Any) -> bool:
    used = ["dst", "src"] + ["tmp"] * _uses_tmp(o)
    spans = sorted((o[n].lease, o[n].addr, o[n].addr + _bytes_touched(o, n)) for n in used)
    return all(low[0] != high[0] or low[2] <= high[1] for low, high in pairwise(spans))


_LINES = " are whole 32-byte blocks (Cols * sizeof, column-major: Rows * sizeof)"
_MATRIX_RULES = where(_matrix)(
    must("SA-0347", "a2a3")(
        "src is row-major", lambda o: o.src.is_row_major, "declare the tile with BLayout.RowMajor"
    ),
    must("unboxed", DEVICES)(
        "dst and src have no inner boxes",
        lambda o: not o.dst.is_boxed and not o.src.is_boxed,
        "declare the tiles with SLayout.NoneBox",
    ),
    rule("SA-0343", "lines of src" + _LINES, lambda o: _whole_blocks(o.src), A5_FAMILY),
    rule("SA-0344", "lines of dst" + _LINES, lambda o: _whole_blocks(o.dst), A5_FAMILY),
    must("index-range", A5_FAMILY)(
        "the last element of the longer tile has an index of 16 bits (4-byte elements: 32 bits)",
        _index_fits,
        "transpose in parts",
    ),
    must("room")(
        "dst has a row for every column of src that is transposed, and a column for every row",
        lambda o: o.dst.cols >= _size(o)[0] and o.dst.rows >= _size(o)[1],
    ),
    must("SA-0123", "cpu")(
        "the valid rows and columns of dst are the valid columns and rows of src",
        lambda o: (o.dst.vc, o.dst.vr) == (o.src.vr, o.src.vc),
    ),
)


def _channels(o: Any) -> int:
    """C0 of the split side."""
    return (o.src if o.dst.layout in (Layout.NCHW, Layout.GNCHW) else o.dst).shape[-1]


_ONE_BY_ONE = "elements are moved one by one, with the same values"
_CONV_RULES = [
    must("kinds")(
        "dst and src are both tiles or both convolution tiles", lambda o: o.src.kind == o.dst.kind
    ),
    must("conv-location", DEVICES, _conv)(
        "convolution tiles are Vec tiles", lambda o: o.src.loc == o.dst.loc == TileType.Vec
    ),
    must("conv-layout", applies=_conv)(
        "the pair of layouts is one of " + ", ".join(p.replace("-", " to ") for p in CONVERSIONS),
        _known_pair,
    ),
    must("conv-shape", applies=lambda o: _conv(o) and _known_pair(o))(
        "dst has the shape that follows from src: C1 == ceil(C / C0), N1 == ceil(N / N0)",
        _shape_follows,
    ),
    must("conv-filters", applies=lambda o: _converts(o) and o.dst.layout in WEIGHTS)(
        "blocks of weights hold 16 filters (N0 == 16)",
        lambda o: o.dst.shape[2] == FILTERS,
        otherwise="dst says how many they hold",
    ),
    must("conv-block", DEVICES, lambda o: _converts(o) and o.dst.layout != Layout.FRACTAL_Z_3D)(
        "C0 channels fill 32 bytes (C0 * sizeof == 32), or C0 is 4",
        lambda o: _channels(o) * o.src.itemsize == BLOCK_BYTES or _channels(o) == 4,
        otherwise=_ONE_BY_ONE,
    ),
    must("conv-block-3d", applies=lambda o: _converts(o) and o.dst.layout == Layout.FRACTAL_Z_3D)(
        "FRACTAL_Z_3D: C0 is 64 for 4-bit, 32 for 8-bit, 16 for 16-bit, 8 for 32-bit elements",
        lambda o: _channels(o) * o.src.dtype.bits == 8 * BLOCK_BYTES,
    ),
    must("conv-plane", DEVICES, lambda o: _conv(o) and o.src.layout in (Layout.NCHW, Layout.GNCHW))(
        "planes are whole 32-byte blocks (H * W * sizeof % 32 == 0)",
        lambda o: o.src.shape[-2] * o.src.shape[-1] * o.src.itemsize % BLOCK_BYTES == 0,
        otherwise=_ONE_BY_ONE,
    ),
    must("conv-memory", DEVICES, _conv)(
        "src, dst and tmp together are smaller than the vector memory",
        lambda o: (
            o.src.nbytes + o.dst.nbytes + o.tmp.nbytes < o.target.spaces[TileType.Vec].capacity
        ),
        "convert in parts",
        "nothing changes as long as the tiles lie inside it",
    ),
]


def _beyond(o: Any) -> tuple[slice, slice] | None:
    """What the fast path overwrites: each row of dst to the end of its 32-byte block."""
    in_blocks = _matrix(o) and o.target.writes_whole_blocks and _is_fast(o)
    return rest_of_blocks(o, o.src.vc, o.src.vr) if in_blocks else None


@insn(
    out(
        "dst",
        kinds=("tile", "conv"),
        view=lambda o: View.VALID if _conv(o) else (_size(o)[1], _size(o)[0]),
        unspecified=_beyond,
    ),
    src(
        "src",
        kinds=("tile", "conv"),
        view=_source,
        carries=True,
    ),
    tmp("tmp", lost=lambda o: o.target.is_device and _uses_tmp(o)),
    forms=["dst src tmp"],
    types=types(
        "src",
        a2a3=_LISTED + " bf16",
        a5=_LISTED + " bf16",
        kirin=_LISTED,
        ids="dtype",
        otherwise="elements are transposed bit by bit",
    ),
    rules=[
        under(
            {"SA-0342": "a2a3 cpu", "SA-0345": A5_FAMILY},
            "elements of src and dst have the same size",
            lambda o: o.src.itemsize == o.dst.itemsize,
        ),
        rule("SA-0346", "elements have 1, 2 or 4 bytes", lambda o: o.src.itemsize in (1, 2, 4)),
        must("location", DEVICES, _matrix)(
            "dst and src are Vec tiles", lambda o: o.src.loc == o.dst.loc == TileType.Vec
        ),
        located("Vec", "tmp", id="tmp-location", on=DEVICES),
        must("tmp-size", DEVICES)(
            "tmp has room for the fast transposition: TTRANS.tmp_bytes(dst, src) bytes",
            lambda o: not _is_fast(o) or o.tmp.nbytes >= _scratch_bytes(o),
            lambda o: f"declare tmp with at least {_scratch_bytes(o)} bytes",
            Told("tmp is not looked at", lambda o: not _uses_tmp(o)),
        ),
        must("apart", DEVICES)(
            "src, dst and the tmp that is used do not overlap",
            _apart,
            "bind them to different addresses",
        ),
        _MATRIX_RULES,
        _CONV_RULES,
    ],
    steps=[
        steps("a2a3", lambda o: _matrix(o) and _is_fast(o), between="V", keeps_scratch=True),
        steps("a2a3", _matrix, start="V->S", end="S->V", complete=True),
        steps(
            "a2a3",
            lambda o: o.dst.layout == Layout.FRACTAL_Z_3D,
            between="V->MTE3 MTE3->V MTE3->S S->MTE3 S->V V->S",
            keeps_scratch=True,
        ),
        steps("a2a3", _is_fast, between="V", keeps_scratch=True),
        steps("a2a3", start="V->S", between="V", end="S->V", keeps_scratch=True),
    ],
    asm=Asm(tmp=frozenset()),
    helpers={"tmp_bytes": tmp_bytes},
    example={"dst": "Vec {T} 64x32", "src": "Vec {T} 32x64", "tmp": "Vec {T} 64x32"},
    more_examples="""
        dst                                  | src                              | tmp
        Conv Vec f16 NC1HWC0 1x2x4x8x16      | Conv Vec f16 NCHW 1x20x4x8       | Vec f16 64x512
        Conv Vec f16 NCHW 1x32x4x8           | Conv Vec f16 NC1HWC0 1x2x4x8x16  | Vec f16 64x512
        Conv Vec f16 FRACTAL_Z 16x2x16x16    | Conv Vec f16 NC1HWC0 20x2x2x4x16 | Vec f16 64x512
        Conv Vec f16 FRACTAL_Z_3D 16x1x16x16 | Conv Vec f16 NCDHW 4x20x2x2x2    | Vec f16 64x512
    """,
    freedom=unspecified(
        "channels beyond C",
        "Hardware copies what lies in the source in place of channels beyond C; the reference "
        "engine writes zeros there.",
    ),
    idiom=lambda o: MOVES,
)
def TTRANS(dst: Array, src: Array, tmp: Array, ops: Ops, poison: Poison) -> None:
    """Transpose a Vec tile, or convert a Vec convolution tile between layouts.

    A matrix: dst[i, j] = src[j, i] over the valid region of `src`; A5 and the Kirin targets
    transpose the whole tile whatever is valid. Convolution tiles: NCHW to NC1HWC0 and back, the
    same with groups, NC1HWC0 (with or without groups) to FRACTAL_Z and NCDHW to FRACTAL_Z_3D, whose
    blocks are ordered D, C1, H, W. Bits are copied.

    `tmp` is always passed. It is used, and its contents lost, where the strides allow the fast
    transposition (dst stride a multiple of 16, for 8-bit elements of 32; src stride whole 32-byte
    blocks, at most 255 of them); elsewhere elements are copied one by one. A5 and Kirin do not
    touch it. `TTRANS.tmp_bytes(dst, src)` says how many bytes it needs: sizeof times as many
    elements, with R = 32 for 8-bit elements and R = 16 for others.

    * A matrix of H valid rows and W valid columns: W * ceil(H / R) * R
    * NCHW to NC1HWC0, also with groups, C1 = ceil(C / C0): H * W * ceil(C0 / R) * R
    * NC1HWC0 to NCHW, also with groups: C0 * ceil(H * W / R) * R
    * NC1HWC0 and GNC1HWC0 to FRACTAL_Z, N1 = ceil(N / N0): none, blocks are only rearranged
    * NCDHW to FRACTAL_Z_3D: P + max(P, H * W * ceil(C0 / R) * R), where P = N * C1 * C0 * H * W;
      a plane of depth is taken out into the first part, and the second is for either way to go on

    Groups of GNC1HWC0 weights lie N1 * N0 filters apart on a device whose `src` reserves room for
    that many (BufferSize), N filters elsewhere. Filters beyond N keep their contents in NC1HWC0 to
    FRACTAL_Z: clear `dst` first. Elsewhere channels beyond C and filters beyond N become zero; the
    permissive profile leaves all of them untouched. The fast path of A2A3 leaves the rest of the
    last 32-byte block of each row of `dst` unspecified.
    """
    if _conv(ops):
        _convert(dst, as_bits_of(src, dst), ops, poison)
        return
    missing = poison.undefined("src")
    poison.demand("src", (slice(0, ops.src.vr), slice(0, ops.src.vc)))
    dst[...] = as_bits_of(src, dst).T
    if missing is not None:
        poison.poison_where("dst", missing.T)


def _convert(dst: Array, src: Array, o: Ops, poison: Poison) -> None:
    """Rearrange a convolution tile."""
    poison.demand("src", (slice(None), slice(None)))
    conversion = _conversion(o)
    assert conversion is not None
    values = conversion.arrange(src, o.dst.shape)
    if o.target.is_device and _pair(o) != "NC1HWC0-FRACTAL_Z":
        dst[...] = values
        return
    exists = conversion.arrange(np.ones(src.shape, bool), o.dst.shape)
    untouched = poison.undefined("dst")
    if o.dst.dtype.is_packed:  # then dst is not the memory itself, and has nothing to keep
        dst[...] = 0
    np.copyto(dst, values, where=exists)
    if untouched is not None:
        poison.poison_where("dst", untouched & ~exists.reshape(untouched.shape))
