"""Feature maps and weights whose sizes are not those of the view, or of the engine's counters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.dtypes import f16
from ptokit.base.layout import Array
from ptokit.base.tensors import GlobalSpec
from tests.isa.raw import Raw, warned
from tests.operands import make, tensor

NDC1HWC0 = Layout.NDC1HWC0


def load(target: str, tile: str, view: str) -> tuple[Array, Array, set[str]]:
    """What a load leaves in a convolution tile, the array of the view, and the warnings."""
    with device(target) as machine:
        Raw(TileType.Mat)
        dst, src = make(tile), make(view)
        TLOAD(dst, src)
        array: Any = src.data().buffer.data.view("u2")
        return dst.storage.data[: dst.spec.nbytes].view("u2").copy(), array, warned(machine)


@pytest.mark.parametrize("target", ["a2a3", "kirinx90"])
def test_bursts_of_weights_follow_one_another(target: str) -> None:
    """Tile and view differ in H and W: box after box, with the gap behind N that the view has."""
    view = "GM f16 2x4x3x16x16 FRACTAL_Z of 2x4x3x32x16"
    held, array, told = load(target, "Conv Mat f16 FRACTAL_Z 2x2x2x16x16", view)
    bursts = [array[k * 512 : k * 512 + 256] for k in range(8)]
    assert (held == np.concatenate(bursts)).all()
    assert told == {"TLOAD.conv-plane"}


def test_the_sizes_of_the_tile_decide_on_a5() -> None:
    held, array, told = load("a5", "Conv Mat f16 NC1HWC0 1x2x3x5x16", "GM f16 1x2x4x8x16 NC1HWC0")
    assert (held.reshape(2, 3, 5, 16) == array[:1024].reshape(2, 4, 8, 16)[:, :3, :5]).all()
    assert told == {"TLOAD.conv-shape"}


def test_weights_of_four_dimensions_on_a5() -> None:
    held, array, told = load(
        "a5", "Conv Mat f16 FRACTAL_Z 5x1x16x16", "GM f16 1x8x2x16x16 FRACTAL_Z"
    )
    assert (held.reshape(5, 256) == array[:4096].reshape(8, 512)[:5, :256]).all()
    assert told == {"TLOAD.conv-shape"}


def test_channels_that_are_split_must_agree() -> None:
    """The engine that splits channels takes its sizes from the view: nothing is said of it."""
    with pytest.raises(ProgramError, match="conv-shape"):
        load("a5", "Conv Mat f16 NC1HWC0 1x2x3x8x16", "GM f16 1x1x4x8x20 NHWC")


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "kirinx90"])
def test_the_number_of_blocks_is_cut(target: str) -> None:
    """Only so many blocks are filled as fit into the 15 bits of the count."""
    rules = {} if target == "a2a3" else {"rules": "release"}
    with device(target, **rules) as machine:
        raw = Raw(TileType.Mat)
        TEXPANDS(make("Conv Mat u8 NC1HWC0 1x1x260x128x1"), 7)
        raw.expect(0, np.full((260 * 128 - 32768) * 32, 7, np.uint8))
        raw.check()
        assert warned(machine) == {"TEXPANDS.conv-size"}


def test_positions_of_an_accumulator_lie_c0_elements_apart() -> None:
    with device("a2a3") as machine:
        sums = Raw(TileType.Acc)
        sums.put(0, np.arange(16 * 16, dtype="f4"))
        dst = tensor(GlobalSpec.of(f16, (1, 1, 1, 4, 4), (512, 512, 512, 128, 32), NDC1HWC0))
        array: Any = dst.data().buffer.data.view("f2")
        array[:] = -1
        TSTORE(dst, make("Acc f32 16x16"))
        assert (array[:256] == np.arange(256)).all()
        assert (array[256:] == -1).all()
        assert warned(machine) == {"TSTORE.acc-c0", "TSTORE.acc-size"}
