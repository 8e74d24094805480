"""The convolution forms of TLOAD: feature maps and weights into convolution tiles.

Most of them copy a view of the same layout. On A5 the transfer may also split the channels; then
channels beyond C, and filters beyond N, become zero.
"""

from __future__ import annotations

from math import prod
from operator import eq, le
from typing import Any

import numpy as np

from ptokit.base.enums import Layout, TileType
from ptokit.base.layout import Array, AxisMap
from ptokit.base.tensors import all_axes
from ptokit.isa.bursts import blocks
from ptokit.isa.conv_layout import FILTERS, WEIGHTS, split_channels, weight_blocks
from ptokit.isa.devices import DEVICES, NEW, OLD, on
from ptokit.isa.memory import FIX_VIEW
from ptokit.isa.rules import Told, in_types, must, where
from ptokit.isa.spec import Rule, View, examples, rule
from ptokit.isa.transfer import c0

_PAIRS = {
    "a2a3": "NC1HWC0 NDC1HWC0 FRACTAL_Z FRACTAL_Z_3D",
    "kirinx90": "NC1HWC0 NDC1HWC0 FRACTAL_Z FRACTAL_Z_3D",
    "kirin9030": "NC1HWC0 FRACTAL_Z",
    "a5": "NC1HWC0 FRACTAL_Z NHWC-NC1HWC0 NCHW-NC1HWC0 NCHW-FRACTAL_Z NCDHW-NDC1HWC0 "
    "NCDHW-FRACTAL_Z_3D",
}
_PAIRS["cpu"] = _PAIRS["a5"] + " NDC1HWC0 FRACTAL_Z_3D"
_KIRIN = "i8 u8 i16 u16 i32 u32 f16 f32"
_TYPES = {
    "a2a3": _KIRIN + " bf16",
    "kirinx90": _KIRIN,
    "kirin9030": _KIRIN,
    "a5": _KIRIN + " bf16 f8e4m3 f8e5m2",
}


# ---- the transfer ------------------------------------------------------------------------------


def _is_blocks(o: Any) -> bool:
    """Whether the view holds four-dimensional weights, which have a leading 1 there."""
    return len(o.dst.shape) == 4 and o.src.layout in WEIGHTS


def _axes(o: Any) -> tuple[int, ...]:
    """Sizes of the view in memory."""
    shape, _ = all_axes(o.src.shape, o.src.stride, o.src.layout)
    return shape[1:] if _is_blocks(o) else shape


def _sizes(o: Any) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
    """What must agree: two lists of sizes, and C with its room where it is split."""
    if o.src.layout == o.dst.layout:
        return _axes(o), o.dst.shape, 0, 0
    tile, view = o.dst.shape, o.src.shape
    rank = {Layout.NC1HWC0: 5, Layout.NDC1HWC0: 6}.get(o.dst.layout, 4)
    if len(tile) != rank:
        return tile, (rank,), 0, 0  # never equal: the rule names the shape
    if o.src.layout == Layout.NHWC:
        (_, n, h, w, c), d = view, 1
    else:
        n, c, d, h, w = view if o.src.layout == Layout.NCDHW else (view[1], view[2], 1, *view[3:])
    if o.dst.layout == Layout.NC1HWC0:
        return (tile[0], tile[2], tile[3]), (n, h, w), c, tile[1] * tile[4]
    if o.dst.layout == Layout.NDC1HWC0:
        sizes = (tile[0], tile[1], tile[3], tile[4])
        return sizes, (n, d, h, w), c, tile[2] * tile[5]
    plane = d * h * w
    if not plane:
        return tile, (plane,), 0, 0  # never equal either
    sizes = (tile[0] % plane, tile[1], tile[2])
    return sizes, (0, -(-n // FILTERS), FILTERS), c, tile[0] // plane * tile[3]


_MOST_BURSTS = 4095  # of one command; more are issued channel by channel
_is_old = on(OLD)


def taken_of_maps(o: Any) -> View | AxisMap:
    """What is read of a view: all of it, unless it is not the one that the tile asks for."""
    shape, stride = o.dst.shape, o.src.stride
    if _is_old(o) and _five(o) and not _same_plane(o):
        *counts, filters, width = shape
        length, gap = filters * width, stride[2] - o.src.shape[3] * width
        pitch = length + blocks(o.dst, gap)
        if prod(counts) <= _MOST_BURSTS:
            return AxisMap((prod(counts), length), (pitch, 1), (0,), (1,))
        places = (counts[0], prod(counts[1:]), length), (stride[0], pitch, 1)
        return AxisMap(*places, (0, 1), (2,))
    if _by_tile(o) and not eq(*_sizes(o)[:2]):
        return AxisMap(
            shape, stride[-len(shape) :], tuple(range(len(shape) - 1)), (len(shape) - 1,)
        )
    return View.WHOLE


def _by_tile(o: Any) -> bool:
    """Whether the sizes of the tile decide: where the channels are split, those of the view do."""
    return on("a5")(o) and _same(o) and len(o.dst.shape) == len(_axes(o))


def load_conv(dst: Array, src: Array, o: Any) -> None:
    """Copy a view (all of its dimensions) into a convolution tile."""
    view, tile = o.src.layout, o.dst.layout
    if taken_of_maps(o) is not View.WHOLE:
        dst[...] = src.reshape(dst.shape)
        return
    if view == tile:
        source = src[0] if _is_blocks(o) else src
        dst[...] = source[tuple(slice(0, n) for n in dst.shape)]
        return
    # (N, C, ...) with whatever plane there is behind the channels.
    maps = {Layout.NHWC: lambda: np.moveaxis(src[0], -1, 1), Layout.NCHW: lambda: src[0]}.get(
        view, lambda: src
    )()
    if tile == Layout.NC1HWC0:
        dst[...] = split_channels(maps, dst.shape[1], dst.shape[4])
    elif tile == Layout.NDC1HWC0:
        dst[...] = np.moveaxis(split_channels(maps, dst.shape[2], dst.shape[5]), 2, 1)
    else:
        plane = int(np.prod(maps.shape[2:]))
        dst[...] = weight_blocks(split_channels(maps, dst.shape[0] // plane, dst.shape[3]))


# ---- rules -------------------------------------------------------------------------------------


def _same(o: Any) -> bool:
    return o.src.layout == o.dst.layout


def _five(o: Any) -> bool:
    return _same(o) and o.dst.layout == Layout.FRACTAL_Z and len(o.dst.shape) == 5


def _same_plane(o: Any) -> bool:
    return o.dst.shape[1:3] == o.src.shape[1:3]


def _legal_pair(target: str) -> Rule:
    listed = _PAIRS[target].split()
    full = [p if "-" in p else f"{p}-{p}" for p in listed]
    told = ", ".join(p.replace("-", " to ") if "-" in p else f"{p} to {p}" for p in listed)

    return must("conv-layout", target)(
        f"a convolution tile is loaded {told}",
        lambda o: f"{o.src.layout.name}-{o.dst.layout.name}" in full,
    )


def _cuts_map(o: Any) -> bool:
    """Whether rows or planes of a feature map in memory do not follow each other without a gap."""
    if not _same(o) or o.dst.layout not in (Layout.NC1HWC0, Layout.NDC1HWC0):
        return False
    shape, stride = all_axes(o.src.shape, o.src.stride, o.src.layout)
    h, w, block = shape[-3:]
    return stride[-3] != w * block or stride[-4] != h * w * block


def _inside(o: Any) -> bool:
    axes, tile = _axes(o), o.dst.shape
    return (
        len(axes) == len(tile)
        and axes[-1] == tile[-1]
        and all(a >= t for a, t in zip(axes, tile, strict=True))
    )


CONV_RULES = where(lambda o: o.dst.kind == "conv")(
    must("conv-location", DEVICES)(
        "a convolution tile that is loaded is a Mat tile", lambda o: o.dst.loc == TileType.Mat
    ),
    [
        must("conv-dtype", target)(
            f"elements of a convolution tile are one of {kinds}", in_types("dst", kinds)
        )
        for target, kinds in _TYPES.items()
    ],
    map(_legal_pair, _PAIRS),
    must("conv-window", OLD, _same)(
        "the sizes of the tile fit into those of the view, and C0 is the same", _inside, FIX_VIEW
    ),
    must("conv-window-size", OLD, _cuts_map)(
        "a window of a feature map has at most 4095 rows of at most 65535 positions",
        lambda o: o.dst.shape[-3] <= 4095 and o.dst.shape[-2] <= 65535,
    ),
    must("conv-blocks", OLD, lambda o: _same(o) and _is_blocks(o))(
        "four-dimensional weights: the last two dimensions are 16 and 32/sizeof, statically, in "
        "tile and view",
        lambda o: o.dst.spec.shape[2:] == o.src.static_shape[3:] == (FILTERS, c0(o.dst)),
    ),
    *where(_five, OLD, "five-dimensional weights: ")(
        must("conv-plane")(
            "H and W of tile and view are equal",
            _same_plane,
            FIX_VIEW,
            "the sizes of the tile decide, and burst follows burst as if the planes were equal",
        ),
        rule("conv-filters", "N is at most 65535", lambda o: o.dst.shape[3] <= 65535),
    ),
    must("conv-shape", NEW + " cpu")(
        "tile and view agree dimension by dimension",
        lambda o: eq(*_sizes(o)[:2]),
        FIX_VIEW,
        Told("the sizes of the tile decide, with the strides of the view", _by_tile),
    ),
    must("conv-channels", NEW + " cpu")(
        "the channels of the view fit into the tile (C <= C1 * C0)", lambda o: le(*_sizes(o)[2:])
    ),
    must(
        "conv-whole-plane",
        "a5",
        lambda o: (o.src.layout, o.dst.layout) == (Layout.NCHW, Layout.FRACTAL_Z),
    )(
        "NCHW to FRACTAL_Z loads whole planes: the stride of C is H * W",
        lambda o: o.src.stride[2] == o.src.shape[3] * o.src.shape[4],
    ),
)

CONV_EXAMPLES = examples("""
    dst                                | src                                          | on
    Conv Mat f16 NC1HWC0 1x2x4x8x16    | GM f16 1x2x4x8x16 NC1HWC0                    |
    Conv Mat i8 NC1HWC0 1x1x4095x1x32 | GM i8 1x1x4095x1x32 NC1HWC0 of 1x1x4096x1x32 | a2a3 kirinx90
    Conv Mat f16 FRACTAL_Z 8x2x16x16   | GM f16 1x8x2x16x16 FRACTAL_Z                 |
    Conv Mat f16 FRACTAL_Z 2x2x2x16x16 | GM f16 2x2x2x16x16 FRACTAL_Z                 |
    Conv Mat f16 NC1HWC0 1x2x4x8x16    | GM f16 1x1x4x8x20 NHWC                       | a5 cpu
    Conv Mat f16 FRACTAL_Z 8x2x16x16   | GM f16 1x20x20x2x2 NCHW                      | a5 cpu
""")
