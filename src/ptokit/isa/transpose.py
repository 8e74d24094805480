"""TTRANS: transposition of matrices, and of feature maps and weights between their layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptokit.base.enums import Layout, TileType
from ptokit.base.layout import Array
from ptokit.base.tensors import ConvSpec
from ptokit.base.tiles import BLOCK_BYTES
from ptokit.isa.conv_layout import FILTERS, join_channels, split_channels, weight_blocks
from ptokit.isa.facts import ConvFacts, TileFacts
from ptokit.isa.memory import DEVICES, as_bits_of, both, need, round_up
from ptokit.isa.rules import located
from ptokit.isa.spec import Asm, View, insn, out, rule, src, tmp, types

_STATIC = "a5 kirin9030 kirinx90"  # these transpose the whole tile, not its valid region
_TYPES = "u32 i32 f32 u16 i16 f16 u8 i8"
_RANK = {
    Layout.NCHW: 4,
    Layout.GNCHW: 5,
    Layout.NCDHW: 5,
    Layout.NC1HWC0: 5,
    Layout.GNC1HWC0: 6,
    Layout.FRACTAL_Z: 4,
    Layout.FRACTAL_Z_3D: 4,
}


def _conv(o: Any) -> bool:
    return o.src.kind == "conv"


def _matrix(o: Any) -> bool:
    return o.src.kind == "tile"


# ---- convolution layouts: sizes and arrangement ------------------------------------------------


def _groups(count: int, size: int) -> int:
    return -(-count // size)


def _widths(arrive: tuple[int, ...], channels: int) -> tuple[int, int]:
    """Channels of a feature map that is joined: as many as dst says, if they fill C1 groups."""
    c1, c0 = arrive[-4], arrive[-1]
    return (channels if _groups(channels, c0) == c1 else c1 * c0), c0


def _to_split(s: tuple[int, ...], d: tuple[int, ...]) -> tuple[int, ...]:
    *lead, c, h, w = s
    return (*lead, _groups(c, d[-1]), h, w, d[-1])


def _to_joined(s: tuple[int, ...], d: tuple[int, ...]) -> tuple[int, ...]:
    *lead, c1, h, w, c0 = s
    channels = d[-3] if _groups(d[-3], c0) == c1 else c1 * c0
    return (*lead, channels, h, w)


def _to_weights(s: tuple[int, ...], d: tuple[int, ...]) -> tuple[int, ...]:
    *group, n, c1, h, w, c0 = s
    positions = c1 * h * w * (group[0] if group else 1)
    return positions, _groups(n, FILTERS), FILTERS, c0


def _to_weights_3d(s: tuple[int, ...], d: tuple[int, ...]) -> tuple[int, ...]:
    n, c, depth, h, w = s
    return depth * _groups(c, d[-1]) * h * w, _groups(n, FILTERS), FILTERS, d[-1]


def _split_3d(maps: Array, d: tuple[int, ...]) -> Array:
    c1 = d[0] // (maps.shape[2] * maps.shape[3] * maps.shape[4])
    return weight_blocks(np.moveaxis(split_channels(maps, c1, d[-1]), 2, 1))


def _each_group(one: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda maps: np.stack([one(group) for group in maps])


# For each pair: the shape dst must have, and the source rearranged to it.
_CONVERSIONS: dict[
    tuple[Layout, Layout],
    tuple[
        Callable[[tuple[int, ...], tuple[int, ...]], tuple[int, ...]],
        Callable[[Array, tuple[int, ...]], Array],
    ],
] = {
    (Layout.NCHW, Layout.NC1HWC0): (_to_split, lambda s, d: split_channels(s, d[1], d[4])),
    (Layout.NC1HWC0, Layout.NCHW): (_to_joined, lambda s, d: join_channels(s, d[1])),
    (Layout.GNCHW, Layout.GNC1HWC0): (
        _to_split,
        lambda s, d: _each_group(lambda g: split_channels(g, d[2], d[5]))(s),
    ),
    (Layout.GNC1HWC0, Layout.GNCHW): (
        _to_joined,
        lambda s, d: _each_group(lambda g: join_channels(g, d[2]))(s),
    ),
    (Layout.NC1HWC0, Layout.FRACTAL_Z): (_to_weights, lambda s, d: weight_blocks(s)),
    (Layout.GNC1HWC0, Layout.FRACTAL_Z): (
        _to_weights,
        lambda s, d: weight_blocks(np.moveaxis(s, 0, 1)),
    ),
    (Layout.NCDHW, Layout.FRACTAL_Z_3D): (_to_weights_3d, _split_3d),
}
