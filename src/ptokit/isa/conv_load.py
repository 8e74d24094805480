"""The convolution forms of TLOAD: feature maps and weights into convolution tiles.

Most of them copy a view of the same layout. On A5 the transfer may also split the channels; then
channels beyond C, and filters beyond N, become zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.enums import Layout, TileType
from ptokit.base.layout import Array
from ptokit.base.tensors import all_axes
from ptokit.isa.conv_layout import FILTERS, WEIGHTS, split_channels, weight_blocks
from ptokit.isa.devices import DEVICES, NEW, OLD
from ptokit.isa.memory import FIX_VIEW
from ptokit.isa.rules import both, in_types, must, when
from ptokit.isa.spec import Rule, rule

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


def _axes(o: Any) -> tuple[int, ...]:
    """Sizes of the view in memory, without the leading 1 of a four-dimensional weight view."""
    shape, _ = all_axes(o.src.shape, o.src.stride, o.src.layout)
    return shape[1:] if len(o.dst.shape) == 4 and o.src.layout in WEIGHTS else shape


def _converted(o: Any) -> tuple[tuple[int, ...], tuple[int, ...], int, int] | None:
    """What must agree when channels are split: tile sizes, view sizes, C and its room."""
    if o.src.layout == o.dst.layout:
        return None
    tile, view = o.dst.shape, o.src.shape
    rank = {Layout.NC1HWC0: 5, Layout.NDC1HWC0: 6}.get(o.dst.layout, 4)
    if len(tile) != rank:
        return tile, (rank,), 0, 0  # never equal: the rule names the shape
    if o.src.layout == Layout.NHWC:
        _, n, h, w, c = view
        return (tile[0], tile[2], tile[3]), (n, h, w), c, tile[1] * tile[4]
    n, c, d, h, w = view if o.src.layout == Layout.NCDHW else (view[1], view[2], 1, *view[3:])
    if o.dst.layout == Layout.NC1HWC0:
        return (tile[0], tile[2], tile[3]), (n, h, w), c, tile[1] * tile[4]
    if o.dst.layout == Layout.NDC1HWC0:
        sizes = (tile[0], tile[1], tile[3], tile[4])
        return sizes, (n, d, h, w), c, tile[2] * tile[5]
    plane = d * h * w
    sizes = (tile[0] % plane, tile[1], tile[2])
    return sizes, (0, -(-n // FILTERS), FILTERS), c, tile[0] // plane * tile[3]


def load_conv(dst: Array, src: Array, o: Any) -> None:
    """Copy a view (all of its dimensions) into a convolution tile."""
    view, tile = o.src.layout, o.dst.layout
    if view == tile:
        source = src[0] if dst.ndim == 4 and view in WEIGHTS else src
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


def _conv(o: Any) -> bool:
    return o.dst.kind == "conv"


def _same(o: Any) -> bool:
    return _conv(o) and o.src.layout == o.dst.layout


def _maps(o: Any) -> bool:
    return _same(o) and o.dst.layout in (Layout.NC1HWC0, Layout.NDC1HWC0)


def _blocks(o: Any) -> bool:
    return _same(o) and o.dst.layout in WEIGHTS and len(o.dst.shape) == 4


def _five(o: Any) -> bool:
    return _same(o) and o.dst.layout == Layout.FRACTAL_Z and len(o.dst.shape) == 5


def _legal_pair(target: str) -> Rule:
    listed = _PAIRS[target].split()
    full = " ".join(p if "-" in p else f"{p}-{p}" for p in listed)
    told = ", ".join(p.replace("-", " to ") if "-" in p else f"{p} to {p}" for p in listed)

    def holds(o: Any) -> bool:
        return f"{o.src.layout.name}-{o.dst.layout.name}" in full.split()

    return rule("conv-layout", f"a convolution tile is loaded {told}", when(_conv, holds), target)


def _is_window(o: Any) -> bool:
    """Whether rows or planes of the view do not follow each other without a gap."""
    shape, stride = all_axes(o.src.shape, o.src.stride, o.src.layout)
    h, w, c0 = shape[-3:]
    return stride[-3] != w * c0 or stride[-4] != h * w * c0


def _inside(o: Any) -> bool:
    axes, tile = _axes(o), o.dst.shape
    return (
        len(axes) == len(tile)
        and axes[-1] == tile[-1]
        and all(a >= t for a, t in zip(axes, tile, strict=True))
    )


def _shapes_agree(o: Any) -> bool:
    found = _converted(o)
    return _axes(o) == o.dst.shape if found is None else found[0] == found[1]


def _channels_fit(o: Any) -> bool:
    found = _converted(o)
    return found is None or found[2] <= found[3]


CONV_RULES = [
    must("conv-location", DEVICES)(
        "a convolution tile that is loaded is a Mat tile",
        when(_conv, lambda o: o.dst.loc == TileType.Mat),
    ),
    *(
        must("conv-dtype", target)(
            f"elements of a convolution tile are one of {kinds}",
            when(_conv, in_types("dst", kinds)),
        )
        for target, kinds in _TYPES.items()
    ),
    *(_legal_pair(target) for target in _PAIRS),
    must("conv-window", OLD)(
        "the sizes of the tile fit into those of the view, and C0 is the same",
        when(_same, _inside),
        FIX_VIEW,
    ),
    must("conv-window-size", OLD)(
        "a window of a feature map has at most 4095 rows of at most 65535 positions",
        when(
            both(_maps, _is_window), lambda o: o.dst.shape[-3] <= 4095 and o.dst.shape[-2] <= 65535
        ),
    ),
    must("conv-blocks", OLD)(
        "four-dimensional weights: the last two dimensions are 16 and 32/sizeof, statically, in "
        "tile and view",
        when(
            _blocks,
            lambda o: (
                o.dst.spec.shape[2:] == o.src.static_shape[3:] == (FILTERS, 32 // o.dst.itemsize)
            ),
        ),
    ),
    must("conv-plane", OLD)(
        "five-dimensional weights: H and W of tile and view are equal",
        when(_five, lambda o: o.dst.shape[1:3] == o.src.shape[1:3]),
    ),
    must("conv-filters", OLD)(
        "five-dimensional weights: N is at most 65535",
        when(_five, lambda o: o.dst.shape[3] <= 65535),
    ),
    must("conv-shape", NEW + " cpu")(
        "tile and view agree dimension by dimension", when(_conv, _shapes_agree), FIX_VIEW
    ),
    must("conv-channels", NEW + " cpu")(
        "the channels of the view fit into the tile (C <= C1 * C0)", when(_conv, _channels_fit)
    ),
    must("conv-whole-plane", "a5")(
        "NCHW to FRACTAL_Z loads whole planes: the stride of C is H * W",
        when(
            both(_conv, lambda o: o.src.layout == Layout.NCHW and o.dst.layout == Layout.FRACTAL_Z),
            lambda o: o.src.stride[2] == o.src.shape[3] * o.src.shape[4],
        ),
    ),
]

CONV_EXAMPLES = [
    {"dst": "Conv Mat f16 NC1HWC0 1x2x4x8x16", "src": "GM f16 1x2x4x8x16 NC1HWC0"},
    {"dst": "Conv Mat i8 NC1HWC0 1x1x4096x1x32", "src": "GM i8 1x1x4096x1x32 NC1HWC0", "on": OLD},
    {"dst": "Conv Mat f16 FRACTAL_Z 8x2x16x16", "src": "GM f16 1x8x2x16x16 FRACTAL_Z"},
    {"dst": "Conv Mat f16 FRACTAL_Z 2x2x2x16x16", "src": "GM f16 2x2x2x16x16 FRACTAL_Z"},
    {"dst": "Conv Mat f16 NC1HWC0 1x2x4x8x16", "src": "GM f16 1x1x4x8x20 NHWC", "on": "a5 cpu"},
    {"dst": "Conv Mat f16 FRACTAL_Z 8x2x16x16", "src": "GM f16 1x20x20x2x2 NCHW", "on": "a5 cpu"},
]
