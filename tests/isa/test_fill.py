"""Padding: which elements hold the pad value, which are copied, which stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ptokit import *
from ptokit.base.dtypes import dtype
from ptokit.base.enums import PadValueCustom16
from ptokit.base.layout import Array
from ptokit.base.tiles import TileSpec
from ptokit.frontend.launch import launch
from ptokit.frontend.session import current
from ptokit.isa.devices import TARGETS
from ptokit.isa.targets import TARGETS as PROFILES
from tests.isa.raw import Raw, tile
from tests.isa.tiles import call, defined, whole
from tests.operands import make

KINDS = ["i8", "u8", "i16", "u16", "f16", "bf16", "i32", "u32", "f32"]


def vec(kind: str, rows: int, cols: int, valid: tuple[int, int], pad: int = PadValue.Null) -> Tile:
    spec = TileSpec.of(TileType.Vec, dtype(kind), rows, cols, BLayout.RowMajor, *valid, pad=pad)
    made = Tile.of(spec)
    current().place(made)
    return made


def mat(kind: str, valid: tuple[int, int], compact: CompactMode = CompactMode.Null) -> Tile:
    spec = TileSpec.of(
        TileType.Mat, dtype(kind), 64, 64, BLayout.ColMajor, *valid, SLayout.RowMajor,
        compact=compact,
    )  # fmt: skip
    made = Tile.of(spec)
    current().place(made)
    return made


def bits(tile: Tile) -> Array:
    return whole(tile).read().view(tile.spec.dtype.uint).copy()


def written(tile: Tile, value: int) -> Array:
    """Fill the whole capacity with distinct bit patterns."""
    shape = tile.spec.rows, tile.spec.cols
    pattern = (np.arange(shape[0] * shape[1]).reshape(shape) % 97 + value).astype(
        tile.spec.dtype.uint
    )
    whole(tile).write(pattern.view(tile.spec.dtype.np))
    whole(tile).mark_defined()
    return pattern


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([*TARGETS, "cpu"]),
    st.sampled_from(KINDS),
    st.sampled_from([PadValue.Zero, PadValue.Max, PadValue.Min, PadValueCustom16(0x1234)]),
    st.data(),
)
def test_padding_a_vector_tile(target: str, kind: str, pad: int, data: st.DataObject) -> None:
    expand = data.draw(st.booleans())
    rows, cols = (24, 96) if expand else (16, 64)
    valid = data.draw(st.integers(1, 16)), data.draw(st.integers(1, 64))
    last = data.draw(st.integers(1, rows))
    assume(dtype(kind) in PROFILES[target].dtypes)
    with device(target, mode="auto"):
        src, dst = vec(kind, 16, 64, valid), vec(kind, rows, cols, (last, cols), pad)
        values, before = written(src, 1), written(dst, 100)
        call("TFILLPAD_EXPAND" if expand else "TFILLPAD", dst, src)
        reached = rows if target == "cpu" else max(valid[0], last)
        expected = before
        expected[:reached] = dtype(kind).pad_bits(pad)
        expected[: valid[0], : valid[1]] = values[: valid[0], : valid[1]]
        assert np.array_equal(bits(dst), expected)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_a2a3_trusts_a_source_with_the_same_pad_value(target: str) -> None:
    with device(target, mode="auto"):
        src = vec("f32", 4, 32, (3, 10), PadValue.Max)
        dst = vec("f32", 4, 32, (4, 32), PadValue.Max)
        src.fill(1.0)
        call("TFILLPAD", dst, src)
        # Nothing padded the last block of the source: on A2A3 dst takes what is there.
        assert defined(dst)[:3, 10:16].any() == (target == "a5")
        assert (whole(dst).read()[:3, 16:] == np.inf).all()
        whole(src).write(np.full((4, 32), np.inf, np.float32))
        whole(src).mark_defined()
        src.fill(1.0)
        call("TFILLPAD", dst, src)
        assert np.array_equal(dst.numpy()[:3], np.repeat([[1.0] * 10 + [np.inf] * 22], 3, axis=0))


def test_in_place() -> None:
    with device("a2a3"):
        src, dst = (
            Tile[TileType.Vec, float16, 8, 32, BLayout.RowMajor, 5, 20](),
            Tile.of(TileSpec.of(TileType.Vec, float16, 8, 32, pad=PadValue.Min)),
        )
        TASSIGN(src, 0)
        TASSIGN(dst, 0)
        src.fill(2.0)
        call("TFILLPAD_INPLACE", dst, src)
        expected = np.full((8, 32), -np.inf, np.float16)
        expected[:5, :20] = 2
        assert np.array_equal(dst.numpy(), expected)
        TASSIGN(dst, 1024)
        with pytest.raises(ProgramError, match="same-storage"):
            call("TFILLPAD_INPLACE", dst, src)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("only_rows", [False, True])
def test_clearing_a_cube_tile(target: str, only_rows: bool) -> None:
    compact = CompactMode.RowAlignedPadding if only_rows else CompactMode.Null
    with device(target, mode="auto"):
        tile = mat("f16", (20, 40), compact)
        expected = written(tile, 1)
        call("TFILLPAD", tile, tile)
        expected[20 : 32 if only_rows else 64, :48] = 0
        if not only_rows:
            expected[:, 48:] = 0
        assert np.array_equal(bits(tile), expected)


def test_clearing_leaves_the_rest_of_a_box_undefined() -> None:
    with device("a5", mode="auto"):
        tile = mat("i8", (20, 40))
        tile.fill(3)
        call("TFILLPAD", tile, tile)
        expected = np.ones((64, 64), bool)
        expected[:20, 40:64] = False
        assert np.array_equal(defined(tile), expected)


def test_the_simulator_pads_a_cube_tile_with_any_value() -> None:
    with device("cpu", mode="auto"):
        src, dst = mat("i8", (20, 40)), mat("i8", (20, 40))
        values = written(src, 1)
        call("TFILLPAD", dst, src, template=(PadValue.Max,))
        expected = np.full((64, 64), 127, np.uint8)
        expected[:20, :40] = values[:20, :40]
        assert np.array_equal(bits(dst), expected)


def test_nothing_happens_without_a_valid_region() -> None:
    with device("a5", mode="auto"):
        src, dst = vec("f32", 4, 8, (2, 2)), vec("f32", 4, 8, (0, 8), PadValue.Zero)
        src.fill(1)
        call("TFILLPAD", dst, src)
        assert not defined(dst).any()


def test_the_source_fits_into_the_destination() -> None:
    with device("cpu", mode="auto"):
        src = vec("f32", 16, 32, (13, 30))
        written(src, 1)
        for dst in (vec("f32", 8, 32, (8, 32)), vec("f32", 16, 16, (16, 16))):
            for name in ("TFILLPAD", "TFILLPAD_EXPAND", "TFILLPAD_INPLACE"):
                with pytest.raises(ProgramError, match=f"{name}.room"):
                    call(name, dst, src)


# ---- Mat tiles: only what lies beside the data is written ----------------------------------------


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "kirinx90"])
@pytest.mark.parametrize("kind", ["i8", "f16", "f32"])
@pytest.mark.parametrize("compact", ["", " compact RowAlignedPadding"])
@pytest.mark.parametrize("valid", [(20, 50), (32, 64), (0, 64), (7, 0), (16, 33)])
def test_mat_padding_is_written_and_nothing_is_read(
    target: str, kind: str, compact: str, valid: tuple[int, int]
) -> None:
    block = 32 // dtype(kind).itemsize
    with device(target):
        raw = Raw(TileType.Mat)
        raw.memory.shadow[1024 : 1024 + 32 * 64 * 4] = 0  # nothing of the tile was ever written
        tile_ = tile(f"Mat {kind} 32x64 NZ{compact}", 1024, valid)
        TFILLPAD(tile_, tile_)
        rows, boxes = valid[0], -(-valid[1] // block)
        for box, row in np.ndindex(64 // block, 32):
            written = row >= rows or box >= boxes
            if compact:
                written = rows <= row < -(-rows // 16) * 16 and box < boxes
            part = slice(1024 + (box * 32 + row) * 32, 1024 + (box * 32 + row) * 32 + 32)
            if written:
                assert not raw.memory.data[part].any()
                raw.expected[part] = 0
            assert raw.memory.shadow[part].all() == written
        assert (raw.memory.data == raw.expected).all()


@pytest.mark.parametrize("first", [True, False])
def test_padding_and_loading_a_mat_tile_need_no_order(first: bool) -> None:
    """They write different bytes, on one pipe."""
    x, z = np.ones((20, 48), np.float16), np.zeros((32, 64), np.float16)

    def kernel() -> None:
        tile_ = make("Mat f16 32x64 NZ valid 20x48", 0)
        whole_ = make("Mat f16 32x64 NZ", 0)
        left = make("Left f16 32x64", 0)
        if first:
            TFILLPAD(tile_, tile_)
        TLOAD(tile_, GlobalTensor(x))
        if not first:
            TFILLPAD(tile_, tile_)
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
        TMOV(left, whole_)
        z[:] = left.numpy()

    launch({"cube": kernel})
    assert (z[:20, :48] == 1).all()
    assert z.sum() == 20 * 48
