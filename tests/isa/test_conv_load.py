"""Convolution tiles: loads of feature maps and weights against the definitions of their layouts."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
from ptokit.base.dtypes import dtype
from ptokit.base.tensors import GlobalSpec
from tests.operands import bits, codes, make, noise, tensor


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "kirinx90", "cpu"])
@pytest.mark.parametrize(
    ("tile", "view"),
    [
        ("NC1HWC0 2x2x3x4x16", "2x2x3x4x16 NC1HWC0"),
        ("FRACTAL_Z 8x2x16x16", "1x8x2x16x16 FRACTAL_Z"),
        ("FRACTAL_Z 2x2x2x20x16", "2x2x2x20x16 FRACTAL_Z"),
    ],
)
def test_convolution_tiles_of_the_same_layout(target: str, tile: str, view: str) -> None:
    with device(target, mode="auto"):
        dst, src = make(f"Conv Mat f16 {tile}"), make(f"GM f16 {view}")
        TLOAD(dst, src)
        assert (bits(dst.numpy()) == bits(src.numpy()).reshape(dst.shape)).all()


def test_a_window_of_a_larger_feature_map() -> None:
    with device("a2a3", mode="auto"):
        dst, src = make("Conv Mat f16 NC1HWC0 1x2x2x3x16"), make("GM f16 1x2x5x7x16 NC1HWC0")
        TLOAD(dst, src)
        assert (bits(dst.numpy()) == bits(src.numpy()[:, :, :2, :3])).all()


def test_feature_maps_with_a_depth() -> None:
    shape, stride = (1, 2, 2, 3, 4), (768, 384, 192, 64, 16)
    spec = GlobalSpec.of(dtype("f16"), shape, stride, Layout.NDC1HWC0)
    with device("a2a3", mode="auto"):
        dst, src = make("Conv Mat f16 NDC1HWC0 1x2x2x3x4x16"), tensor(spec)
        TLOAD(dst, src)
        memory = src.data().buffer.owner[:768].reshape(1, 2, 2, 3, 4, 16)
        assert (bits(dst.numpy()) == bits(memory)).all()


def put(pair: str, d: tuple[int, ...], t: tuple[int, ...]) -> tuple[int, ...]:
    """Index in the view (n, c, plane...) of position `d` of a tile with shape `t`."""
    if pair.endswith("NDC1HWC0"):
        n, depth, c1, h, w, c = d
        return n, c1 * t[5] + c, depth, h, w
    if pair.endswith("NC1HWC0"):
        n, c1, h, w, c = d
        return n, c1 * t[4] + c, h, w
    k, n1, n0, c = d
    if pair == "NCHW-FRACTAL_Z":  # planes of 2 x 3
        return n1 * 16 + n0, k // 6 * t[3] + c, k // 3 % 2, k % 3
    return n1 * 16 + n0, k // 12 * t[3] + c, k // 6 % 2, k // 3 % 2, k % 3  # C1, D = 2, 2 x 3


@pytest.mark.parametrize(
    ("pair", "view", "tile"),
    [
        ("NHWC-NC1HWC0", "1x2x2x3x20", "2x2x2x3x16"),
        ("NCHW-NC1HWC0", "1x2x20x2x3", "2x2x2x3x16"),
        ("NCHW-FRACTAL_Z", "1x18x20x2x3", "12x2x16x16"),
        ("NCDHW-NDC1HWC0", "2x20x2x2x3", "2x2x2x2x3x16"),
        ("NCDHW-FRACTAL_Z_3D", "18x20x2x2x3", "24x2x16x16"),
    ],
)
def test_a5_splits_channels_on_the_way(pair: str, view: str, tile: str) -> None:
    """Channels beyond C and filters beyond N become zero."""
    before, after = pair.split("-")
    with device("a5", mode="auto"):
        dst, src = make(f"Conv Mat f16 {after} {tile}"), make(f"GM f16 {view} {before}")
        TLOAD(dst, src)
        five = bits(src.numpy())
        maps = {"NHWC": lambda: np.moveaxis(five[0], -1, 1), "NCHW": lambda: five[0]}
        source = maps.get(before, lambda: five)()
        got = bits(dst.numpy())
        for d in np.ndindex(dst.shape):
            at = put(pair, d, dst.shape)
            inside = all(i < n for i, n in zip(at, source.shape, strict=True))
            assert got[d] == (source[at] if inside else 0)


@pytest.mark.parametrize(
    ("target", "tile", "view", "code"),
    [
        ("a2a3", "f16 NC1HWC0 2x2x2x3x16", "f16 1x2x20x2x3 NCHW", "conv-layout"),
        ("a5", "f16 FRACTAL_Z_3D 8x2x16x16", "f16 1x8x2x16x16 FRACTAL_Z_3D", "conv-layout"),
        ("a5", "f16 NC1HWC0 2x2x2x3x16", "f16 1x2x40x2x3 NCHW", "conv-channels"),
        ("a5", "f16 NC1HWC0 2x2x2x4x16", "f16 1x2x20x2x3 NCHW", "conv-shape"),
        ("a2a3", "f16 NC1HWC0 2x2x2x4x16", "f16 2x2x2x3x16 NC1HWC0", "conv-window"),
        ("a2a3", "i64 NC1HWC0 2x2x2x4x4", "i64 2x2x2x4x4 NC1HWC0", "conv-dtype"),
        ("kirin9030", "bf16 NC1HWC0 2x2x2x4x16", "bf16 2x2x2x4x16 NC1HWC0", "conv-dtype"),
        ("a2a3", "f16 FRACTAL_Z 8x2x8x16", "f16 1x8x2x8x16 FRACTAL_Z", "conv-blocks"),
    ],
)
def test_convolution_loads_that_are_refused(target: str, tile: str, view: str, code: str) -> None:
    assert f"TLOAD.{code}" in codes("TLOAD", target, f"Conv Mat {tile}", f"GM {view}")


@pytest.mark.parametrize(
    ("tile", "view"),
    [
        ("NC1HWC0 2x2x3x4x16", "2x2x3x4x16 NC1HWC0"),
        ("FRACTAL_Z 8x2x16x16", "1x8x2x16x16 FRACTAL_Z"),
    ],
)
def test_only_the_permissive_profile_stores_convolution_tiles(tile: str, view: str) -> None:
    for target in ("a2a3", "a5", "kirin9030", "kirinx90"):
        found = codes("TSTORE", target, f"GM f16 {view}", f"Conv Mat f16 {tile}")
        assert "TSTORE.conv-store" in found
    with device("cpu", mode="auto"):
        src, dst = make(f"Conv Mat f16 {tile}"), make(f"GM f16 {view}")
        src.fill(noise(float16, src.shape))
        TSTORE(dst, src)
        assert (bits(dst.numpy()).reshape(src.shape) == bits(src.numpy())).all()
