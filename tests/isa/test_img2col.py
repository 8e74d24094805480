"""Image to column: the unrolled matrix, element by element, and the registers behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import *
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.frontend.session import current
from ptokit.isa import INSTRUCTIONS

A_MANUAL, B_MANUAL = SetFmatrixMode.FMATRIX_A_MANUAL, SetFmatrixMode.FMATRIX_B_MANUAL
A_AUTO, B_AUTO = SetFmatrixMode.FMATRIX_A_AUTO, SetFmatrixMode.FMATRIX_B_AUTO


@contextmanager
def refused(code: str) -> Iterator[None]:
    with pytest.raises(PtoError) as caught:
        yield
    assert code in [d.code for d in caught.value.diagnostics]


def feature_map(
    kind: DType,
    shape: tuple[int, ...],
    *,
    pads: tuple[int, ...] = (0, 0, 0, 0),
    filter: tuple[int, int] = (1, 1),
    stride: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] = (1, 1),
    pad_value: float = 0,
) -> ConvTile:
    layout = Layout.NC1HWC0 if len(shape) == 5 else Layout.NDC1HWC0
    size = int(np.prod(shape))
    tile = ConvTile[TileType.Mat, kind, size, layout, ConvTileShape[shape]]()
    tile.fill((np.arange(size) % 251).reshape(shape))
    tile.SetFmapH(shape[-3])
    tile.SetFmapW(shape[-2])
    tile.SetPadListArray(pads)
    tile.SetFilterH(filter[0])
    tile.SetFilterW(filter[1])
    tile.SetStrideH(stride[0])
    tile.SetStrideW(stride[1])
    tile.SetDilationH(dilation[0])
    tile.SetDilationW(dilation[1])
    tile.SetChannelSize(shape[-4] * shape[-1])
    tile.SetPadValue(pad_value)
    return tile


def unrolled(tile: ConvTile) -> Array:
    """The whole unrolled matrix, by the definition."""
    data = tile.numpy()
    if data.ndim == 5:
        data = data[:, None]
    depths = [(n, d) for n in range(data.shape[0]) for d in range(data.shape[1])]
    c1, height, width, c0 = data.shape[2:]
    left, right, top, bottom = tile.GetPadListArray()
    fh, fw = tile.GetFilterH(), tile.GetFilterW()
    dh, dw = tile.GetDilationH(), tile.GetDilationW()
    rows = []
    for n, d in depths:
        for y in range(-top, height + bottom - dh * (fh - 1), tile.GetStrideH()):
            for x in range(-left, width + right - dw * (fw - 1), tile.GetStrideW()):
                row = [
                    data[n, d, c, y + kh * dh, x + kw * dw, lane]
                    if 0 <= y + kh * dh < height and 0 <= x + kw * dw < width
                    else tile.GetPadValue()
                    for c in range(c1)
                    for kh in range(fh)
                    for kw in range(fw)
                    for lane in range(c0)
                ]
                rows.append(row)
    return np.array(rows).astype(data.dtype)


KINDS = {
    target: [combo[0] for combo in sorted(allowed, key=str)]
    for target, allowed in INSTRUCTIONS["TIMG2COL"].types[0].allowed.items()
}


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_unrolled_matrix(data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(sorted(KINDS)))
    kind = data.draw(st.sampled_from(KINDS[target]))
    pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
    c0 = 32 // kind.itemsize
    outer = data.draw(st.sampled_from([(1,), (2,), (1, 2)]))
    shape = (*outer, data.draw(st.integers(1, 2)), *data.draw(pair), c0)
    shape = (*shape[:-3], shape[-3] + 2, shape[-2] + 2, c0)
    with device(target, mode="auto"):
        src = feature_map(
            kind,
            shape,
            pads=data.draw(st.tuples(*[st.integers(0, 2)] * 4)),
            filter=data.draw(pair),
            stride=data.draw(pair),
            dilation=data.draw(st.sampled_from([(1, 1), (2, 1)])),
            pad_value=9,
        )
        expected = unrolled(src)
        if not expected.size:
            return
        m = data.draw(st.integers(0, expected.shape[0] - 1))
        k = data.draw(st.integers(0, expected.shape[1] // c0 - 1)) * c0
        rows = data.draw(st.integers(1, min(48, expected.shape[0] - m)))
        cols = data.draw(st.integers(1, min(64, expected.shape[1] - k)))
        dst = TileLeft[kind, 48, 64, rows, cols]()
        mode = data.draw(st.sampled_from([A_AUTO, B_AUTO, A_MANUAL, B_MANUAL]))
        if mode in (A_MANUAL, B_MANUAL):
            SETFMATRIX[mode](src)
            SET_IMG2COL_RPT[mode](src)
            SET_IMG2COL_PADDING[mode](src)
        TIMG2COL[mode](dst, src, m, k)
        assert np.array_equal(dst.numpy(), expected[m : m + rows, k : k + cols])


def test_columns_come_in_whole_blocks_of_channels() -> None:
    with device("a5", mode="auto"):
        src = feature_map(float16, (1, 1, 4, 4, 16))
        dst = TileLeft[half, 16, 32, DYNAMIC, DYNAMIC](16, 5)
        TIMG2COL[A_AUTO](dst, src)
        dst.SetValidShape(16, 16)
        assert np.array_equal(dst.numpy(), unrolled(src))


# ---- registers ----------------------------------------------------------------------------------


def registers() -> dict[str, Any]:
    return current().core.registers


def test_setfmatrix_word() -> None:
    with device("a2a3"):
        tile = ConvTile[TileType.Mat, half, 256, Layout.NC1HWC0, ConvTileShape[1, 1, 4, 4, 16]]()
        tile.SetFmapH(0x0102)
        tile.SetFmapW(0x0304)
        tile.SetPadListArray([5, 6, 7, 8])
        SETFMATRIX(tile)
        assert registers() == {"FMATRIX": 0x0807_0605_0102_0304}
        SETFMATRIX[B_MANUAL](tile)
        assert registers()["FMATRIX_B"] == 0x0807_0605_0102_0304
        registers().clear()
        SETFMATRIX[A_AUTO](tile)
        SETFMATRIX[B_AUTO](tile)
        assert registers() == {}


@pytest.mark.parametrize(("target", "name"), [("a2a3", "L3D_RPT"), ("a5", "L3D_RPT_B")])
def test_repeat_word(target: str, name: str) -> None:
    with device(target):
        tile = ConvTile[TileType.Mat, half, 256, Layout.NC1HWC0, ConvTileShape[1, 1, 4, 4, 16]]()
        tile.SetRepeatStride(0x0102)
        tile.SetRepeatTime(3)
        tile.SetRepeatMode(4)
        tile.SetDstStride(0x0506)
        tile.SetDstMposition(0x0708)
        SET_IMG2COL_RPT[B_MANUAL](tile)
        high = 0x0708_0506 << 32 if target == "a5" else 0
        assert registers() == {name: high | 0x0403_0102}


@pytest.mark.parametrize(
    ("kind", "value", "word"),
    [
        (int8, -2, 0xFEFE),
        (uint8, 3, 0x0303),
        (float16, 1.0, 0x3C00),
        (bfloat16, -1.0, 0xBF80),
        (float32, 1.0, 0x3F80_0000),
    ],
)
def test_padding_word(kind: DType, value: float, word: int) -> None:
    with device("a5"):
        tile = ConvTile[TileType.Mat, kind, 256, Layout.NC1HWC0, ConvTileShape[1, 1, 4, 2, 32]]()
        tile.SetPadValue(value)
        SET_IMG2COL_PADDING(tile)
        assert registers() == {"PADDING": word}


def test_manual_modes_use_what_was_loaded() -> None:
    """The registers decide, not the tile: here the map is read as if it were padded."""
    with device("a2a3", mode="auto"):
        padded = feature_map(float16, (1, 1, 3, 3, 16), pads=(1, 1, 1, 1), pad_value=7)
        SETFMATRIX(padded)
        SET_IMG2COL_PADDING(padded)
        plain = feature_map(float16, (1, 1, 3, 3, 16))
        dst = TileLeft[half, 32, 16, 25, 16]()
        TIMG2COL(dst, plain)
        assert np.array_equal(dst.numpy(), unrolled(padded))


def test_auto_modes_load_the_registers_themselves() -> None:
    with device("a5", mode="auto"):
        src = feature_map(float16, (1, 1, 3, 3, 16), pad_value=1)
        TIMG2COL[B_AUTO](TileLeft[half, 16, 16, 9, 16](), src)
        assert registers() == {
            "FMATRIX_B": 3 << 16 | 3,
            "L3D_RPT_B": 1 << 16,
            "PADDING_B": 0x3C00,
        }


def test_the_padding_register_starts_with_zero() -> None:
    with device("a2a3", mode="auto") as machine:
        src = feature_map(float16, (1, 1, 3, 3, 16), pads=(1, 0, 0, 0))
        results: list[Array] = []
        for loaded in (False, True):
            SETFMATRIX(src)
            if loaded:  # with its pad value, which is 0
                SET_IMG2COL_PADDING(src)
            dst = TileLeft[half, 16, 16, 12, 16]()
            TIMG2COL(dst, src)
            results.append(dst.numpy().copy())
        assert (results[0] == results[1]).all()
        assert [w.code for w in machine.warnings] == ["TIMG2COL.register"]


def test_manual_modes_want_loaded_registers() -> None:
    with device("a2a3", mode="auto", rules="strict"):
        src = feature_map(float16, (1, 1, 3, 3, 16), pads=(1, 0, 0, 0))
        dst = TileLeft[half, 16, 16, 12, 16]()
        with pytest.raises(PtoError, match="call SETFMATRIX before"):
            TIMG2COL(dst, src)
        SETFMATRIX(src)
        with pytest.raises(PtoError, match="call SET_IMG2COL_PADDING before"):
            TIMG2COL(dst, src)


# ---- what is refused ----------------------------------------------------------------------------


def test_mistakes_are_named() -> None:
    with device("a5", mode="auto"):
        dst = TileLeft[half, 16, 32, 9, 16]()

        def src(**changed: Any) -> ConvTile:
            return feature_map(float16, (1, 1, 3, 3, 16), **changed)

        with refused("TIMG2COL.unrolled-range"):
            TIMG2COL[A_AUTO](dst, src(), 1)
        with refused("TIMG2COL.unrolled-range"):
            TIMG2COL[A_AUTO](dst, src(), 0, 16)
        with refused("TIMG2COL.pos-k"):
            TIMG2COL[A_AUTO](dst, src(), 0, 8)
        with refused("TIMG2COL.filter"):
            TIMG2COL[A_AUTO](dst, src(filter=(512, 1)))
        with refused("TIMG2COL.filter"):
            TIMG2COL[A_AUTO](dst, src(stride=(0, 1)))
        wrong = src()
        wrong.SetChannelSize(8)
        with refused("TIMG2COL.channels"):
            TIMG2COL[A_AUTO](dst, wrong)
        wrong = src()
        wrong.SetFmapH(0)
        with refused("TIMG2COL.feature-map"):
            TIMG2COL[A_AUTO](dst, wrong)
        wrong = src()
        wrong.SetRepeatTime(2)
        with pytest.raises(NotSupported, match="repeatTime"):
            TIMG2COL[A_AUTO](dst, wrong)
        narrow = feature_map(float16, (1, 1, 3, 3, 8))
        with refused("TIMG2COL.channel-blocks"):
            TIMG2COL[A_AUTO](dst, narrow)
        other = feature_map(bfloat16, (1, 1, 3, 3, 16))
        with refused("TIMG2COL.same-dtype"):
            TIMG2COL[A_AUTO](dst, other)
        flat = ConvTile[TileType.Mat, half, 256, Layout.NCHW, ConvTileShape[1, 16, 4, 4]]()
        flat.fill(0)
        with refused("TIMG2COL.src-layout"):
            TIMG2COL[A_AUTO](dst, flat)
    with device("a2a3", mode="auto"):
        nz = Tile[TileType.Left, half, 16, 32, BLayout.ColMajor, 9, 16, SLayout.RowMajor]()
        with refused("TIMG2COL.dst-layout"):
            TIMG2COL[A_AUTO](nz, src())
    with device("kirin9030", mode="auto"), refused("TIMG2COL.unavailable"):
        TIMG2COL[A_AUTO](TileLeft[half, 16, 32, 9, 16](), src())


def test_parameters_fit_their_registers() -> None:
    tile = ConvTile[TileType.Mat, half, 256, Layout.NC1HWC0, ConvTileShape[1, 1, 4, 4, 16]]()
    for setter, value in (("SetFmapH", 1 << 16), ("SetStrideW", 256), ("SetRepeatTime", -1)):
        with refused("conv-parameter"):
            getattr(tile, setter)(value)
    for pads in ([1, 2, 3], [0, 0, 0, 256]):
        with refused("conv-parameter"):
            tile.SetPadListArray(pads)
    assert tile.GetPadListArray() == (0, 0, 0, 0)
    assert (tile.GetFilterH(), tile.GetRepeatTime(), tile.GetFmapW()) == (1, 1, 0)
    tile.SetTranspose(True)
    assert tile.GetTranspose()
