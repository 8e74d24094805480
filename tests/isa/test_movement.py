"""TMOV, TEXTRACT and TINSERT: which element goes where, what is converted, what is undefined."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import *
from ptokit.base.dtypes import dtype
from ptokit.base.layout import Array
from ptokit.frontend.session import current
from ptokit.isa.samples import parse
from ptokit.isa.targets import TARGETS as PROFILES
from ptokit.machine.cluster import cluster_of
from ptokit.machine.faults import PoisonRead
from tests.isa.tiles import defined, whole
from tests.support import listen, random_values

DEVICES = ("a2a3", "a5", "kirin9030", "kirinx90")


def make(text: str, target: str = "cpu") -> Tile:
    """A tile from the sample notation, unwritten."""
    made = Tile.of(parse(text, dtype("f32"), PROFILES[target]))  # type: ignore[arg-type]
    current().place(made)
    return made


def filled(text: str, target: str = "cpu", seed: int = 0, everything: bool = True) -> Tile:
    """A tile of distinct values, in its whole capacity or in its valid region."""
    made = make(text, target)
    window = whole(made)
    kind = made.spec.dtype
    if kind.is_packed or kind.itemsize == 1:
        values = np.random.default_rng(seed).integers(0, 8, window.shape).astype(kind.np)
    else:
        values = (np.arange(window.shape[0] * window.shape[1]) % 2000 + seed).astype(kind.np)
        values = values.reshape(window.shape)
    window.write(values)
    if everything:
        window.mark_defined()
    else:
        made.fill(values[: made.vr, : made.vc])
    return made


def contents(tile: Tile) -> Array:
    return whole(tile).read().copy()


def word(scale: float, signed: bool = False) -> int:
    return struct.unpack("<I", struct.pack("<f", scale))[0] | signed << 46


# ---- TMOV --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("source", ["NZ", "ZN"])
@pytest.mark.parametrize("operand", ["Left", "Right"])
def test_matmul_operands_take_the_whole_capacity(target: str, source: str, operand: str) -> None:
    with device(target, mode="auto"):
        src = filled(f"Mat f16 32x64 {source} valid 20x50", target)
        dst = make(f"{operand} f16 32x64", target)
        TMOV(dst, src)
        assert np.array_equal(contents(dst), contents(src))


@pytest.mark.parametrize("target", DEVICES)
def test_undefined_boxes_stay_undefined(target: str) -> None:
    with device(target, mode="auto"):
        src = filled("Mat f16 32x64 NZ valid 20x50", target, everything=False)
        dst = make("Left f16 32x64", target)
        TMOV(dst, src)
        assert np.array_equal(defined(dst), defined(src))
        assert np.array_equal(contents(dst)[:20, :50], src.numpy())


@pytest.mark.parametrize("target", [*DEVICES, "cpu"])
def test_unwritten_valid_elements_are_refused(target: str) -> None:
    with device(target, mode="auto"):
        src, dst = make("Mat f16 32x64 NZ", target), make("Left f16 32x64", target)
        src.fill(1.0)
        whole(src).poison(np.arange(64) + np.zeros((32, 1)) == 7)
        with pytest.raises(PoisonRead, match=r"src\[0, 7\]"):
            TMOV(dst, src)


def test_compact_operands_hold_their_valid_boxes() -> None:
    with device("a5", mode="auto"):
        src = filled("Mat f16 64x64 NZ")
        dst = make("Left f16 64x64 valid 20x40 compact Normal", "a5")
        TMOV(dst, src)
        packed = dst.spec.axis_map(20, 40)
        assert (packed.rows, packed.cols) == (32, 48)
        assert np.array_equal(dst.numpy(), contents(src)[:20, :40])


def test_a_half_bias_is_widened() -> None:
    with device("a2a3", mode="auto"):
        src, dst = filled("Mat f16 1x64", "a2a3"), make("Bias f32 1x64", "a2a3")
        TMOV(dst, src)
        assert np.array_equal(dst.numpy(), src.numpy().astype(np.float32))


@pytest.mark.parametrize(("target", "tail"), [("a2a3", False), ("a5", True), ("kirinx90", True)])
def test_a2a3_loses_the_rest_of_a_block(target: str, tail: bool) -> None:
    with device(target, mode="auto"):
        src = filled("Vec f32 4x16 valid 3x5", target)
        dst = filled("Vec f32 4x16 valid 4x9", target, seed=500)
        before = contents(dst)
        TMOV(dst, src)
        assert np.array_equal(contents(dst)[:3, :5], src.numpy())
        assert defined(dst)[:3, 5:8].all() == tail
        assert defined(dst)[3].all()
        assert defined(dst)[:, 8:].all()
        assert np.array_equal(contents(dst)[:, 8:], before[:, 8:])


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(["ND", "DN", "NZ", "ZN"]),
    st.sampled_from(["ND", "DN", "NZ", "ZN"]),
    st.integers(1, 32),
    st.integers(1, 32),
)
def test_the_permissive_profile_moves_between_any_layouts(
    source: str, result: str, rows: int, cols: int
) -> None:
    with device("cpu", mode="auto"):
        src = filled(f"Vec f32 32x32 {source} valid {rows}x{cols}", everything=False)
        dst = make(f"Mat f16 32x32 {result} valid {rows}x{cols}")
        TMOV(dst, src)
        assert np.array_equal(dst.numpy(), src.numpy())
        assert defined(dst).sum() == rows * cols


@pytest.mark.parametrize("compact", ["Null", "RowPlusOne"])
def test_rows_become_nz_boxes(compact: str) -> None:
    rows, pitch = (20, 32) if compact == "Null" else (20, 33)
    with device("a5", mode="auto"):
        src = filled("Vec f16 32x32 valid 20x32")
        dst = make(f"Vec f16 {pitch}x32 NZ valid 20x32 compact {compact}")
        TMOV(dst, src)
        assert dst.storage is not None
        storage = dst.storage.data.view(np.float16)
        for r in range(rows):
            for c in (0, 15, 16, 31):
                assert storage[(c // 16) * pitch * 16 + r * 16 + c % 16] == src.numpy()[r, c]


def test_an_nz_destination_must_be_packed_by_its_valid_rows() -> None:
    with device("a5", mode="auto"), pytest.raises(ProgramError, match="nd-nz-pitch"):
        TMOV(make("Vec f16 48x32 NZ valid 20x32"), filled("Vec f16 32x32 valid 20x32"))


@pytest.mark.parametrize("rows", [16, 20])
def test_scales_become_boxes(rows: int) -> None:
    with device("a5", mode="auto"):
        src, dst = filled("Vec u8 1x128", "a5"), make(f"Vec u8 32x4 ZZ/32 valid {rows}x4", "a5")
        tmp = make("Vec u8 1x128", "a5")
        scales = contents(src).reshape(-1)[: rows * 4].reshape(rows, 4)
        TMOV(dst, src, tmp)
        assert dst.storage is not None
        storage = dst.storage.data
        for r in range(-(-rows // 16) * 16):
            for c in range(4):
                at = ((r // 16) * 2 + c // 2) * 32 + (r % 16) * 2 + c % 2
                assert storage[at] == (scales[r, c] if r < rows else 0)
        assert not defined(tmp).any()


def test_scales_grouped_along_rows_are_transposed() -> None:
    with device("a5", mode="auto"):
        src, dst = filled("Vec u8 4x32", "a5"), make("Vec u8 32x4 ZZ/32", "a5")
        TMOV[0](dst, src, make("Vec u8 1x128", "a5"))
        assert np.array_equal(dst.numpy(), src.numpy().T)


def test_an_accumulator_fills_whole_boxes_of_a_mat_tile() -> None:
    with device("a2a3", mode="auto"):
        src = filled("Acc f32 32x48 valid 20x33", "a2a3", everything=False)
        dst = make("Mat f16 32x48 NZ valid 20x33", "a2a3")
        TMOV(dst, src)
        assert np.array_equal(dst.numpy(), src.numpy().astype(np.float16))
        assert np.array_equal(defined(dst), defined(src))


def test_boxes_of_an_accumulator_that_hold_nothing_valid_do_not_move() -> None:
    with device("a2a3", mode="auto"):
        src = filled("Acc f32 32x48 valid 20x20", "a2a3")
        dst = make("Mat f16 32x48 NZ valid 20x20", "a2a3")
        TMOV(dst, src)
        assert defined(dst)[:, :32].all()
        assert not defined(dst)[:, 32:].any()


@pytest.mark.parametrize(("target", "loc"), [("a2a3", "Mat"), ("a5", "Vec"), ("cpu", "Mat")])
def test_quantisation_and_relu(target: str, loc: str) -> None:
    layout = "NZ" if loc == "Mat" else "ND"
    with device(target, mode="auto"):
        src, dst = make("Acc i32 32x32", target), make(f"{loc} i8 32x32 {layout}", target)
        src.fill(np.arange(1024).reshape(32, 32) - 512)
        TMOV[ReluPreMode.NormalRelu](dst, src, word(0.25, signed=True))
        assert np.array_equal(dst.numpy(), np.clip(np.rint(src.numpy() / 4), 0, 127))


def test_words_belong_to_columns() -> None:
    with device("a5", mode="auto"):
        src, dst = filled("Acc i32 32x32", "a5"), make("Vec f16 32x32", "a5")
        fp = make("Scaling u64 1x32", "a5")
        fp.fill(np.array([word(2.0**-c) for c in range(32)], np.uint64))
        TMOV_FP(dst, src, fp)
        expected = (src.numpy() * 2.0 ** -np.arange(32)).astype(np.float16)
        assert np.array_equal(dst.numpy(), expected)


@pytest.mark.parametrize("subblock", [0, 1])
def test_two_vector_cores_share_a_result(subblock: int) -> None:
    with device("a5", mode="auto") as machine:
        machine.core.subblock = subblock
        src, dst = filled("Acc f32 32x32", "a5"), make("Vec f32 16x32", "a5")
        TMOV[AccToVecMode.DualModeSplitM](dst, src)
        assert np.array_equal(dst.numpy(), src.numpy()[16 * subblock :][:16])


@pytest.mark.parametrize("subblock", [0, 1])
@pytest.mark.parametrize(
    ("mode", "share", "first"),
    [
        (AccToVecMode.DualModeSplitM, "Vec f32 24x96 NZ/1024", (24, 0)),
        (AccToVecMode.DualModeSplitN, "Vec f32 48x48 NZ/1024", (0, 48)),
    ],
)
def test_nz_tiles_are_divided_in_whole_boxes(
    subblock: int, mode: AccToVecMode, share: str, first: tuple[int, int]
) -> None:
    """All rows of src, and its columns rounded up: also where the valid ones are odd."""
    with device("a5", mode="auto") as machine:
        machine.core.subblock = subblock
        src = make("Acc f32 48x96 valid 45x91", "a5")
        src.fill(np.arange(45 * 91).reshape(45, 91))
        dst = make(share, "a5")
        TMOV[mode](dst, src)
        row, col = (n * subblock for n in first)
        whole_share = contents(dst)
        wanted = src.numpy()[row : row + len(whole_share), col : col + whole_share.shape[1]]
        rows, cols = wanted.shape
        assert np.array_equal(whole_share[:rows, :cols], wanted)
        assert defined(dst)[:rows, :cols].all()
        assert not defined(dst)[rows:].any()


@pytest.mark.parametrize("layout", ["ND", "NZ"])
def test_results_reach_the_other_vector_core(layout: str) -> None:
    with device("a5") as machine:
        cluster = cluster_of(machine.core)
        src, dst = (
            Tile.of(parse(text, dtype("f32"), PROFILES["a5"]))  # type: ignore[arg-type]
            for text in ("Acc f32 32x32", f"Vec f32 16x32 {layout}")
        )
        TASSIGN(src, 0)
        TASSIGN(dst, 256)
        src.fill(np.arange(1024).reshape(32, 32))
        TMOV[AccToVecMode.DualModeSplitM](dst, src)
        other = whole(dst).pattern.at(cluster.vector_memory(1), dst.address)
        assert np.array_equal(dst.numpy(), src.numpy()[:16])
        assert other.is_defined()
        assert np.array_equal(other.read(), src.numpy()[16:])
        large = Tile.of(parse(f"Vec f32 32x32 {layout}", dtype("f32"), PROFILES["a5"]))  # type: ignore[arg-type]
        TASSIGN(large, 8192)
        TMOV[AccToVecMode.SingleModeVec1](large, src)
        assert not defined(large).any()
        other = whole(large).pattern.at(cluster.vector_memory(1), large.address)
        assert np.array_equal(other.read(), src.numpy())


def test_the_pipe_follows_the_path() -> None:
    with device("a5", mode="auto") as machine:
        events = listen(machine)
        TMOV(make("Vec f32 16x16"), filled("Vec f32 16x16"))
        TMOV(make("Left f16 16x16", "a5"), filled("Mat f16 16x16 NZ"))
        TMOV(make("Scaling u64 1x16"), filled("Mat u64 1x16"))
        names = [event.pipe.name for event in events]
        assert names == ["V", "MTE1", "FIX"]


# ---- TEXTRACT and TINSERT ----------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_windows_on_the_permissive_profile(data: Any) -> None:
    layout = data.draw(st.sampled_from(["ND", "DN", "NZ", "ZN"]))
    rows, cols = data.draw(st.integers(1, 32)), data.draw(st.integers(1, 32))
    row, col = data.draw(st.integers(0, 64 - rows)), data.draw(st.integers(0, 64 - cols))
    with device("cpu", mode="auto"):
        large, small = filled(f"Vec f32 64x64 {layout}"), make(f"Vec f32 32x32 valid {rows}x{cols}")
        TEXTRACT(small, large, row, col)
        assert np.array_equal(small.numpy(), contents(large)[row : row + rows, col : col + cols])
        other = filled(f"Vec f32 64x64 {layout}", seed=10_000)
        expected = contents(other)
        expected[row : row + rows, col : col + cols] = small.numpy()
        TINSERT(other, small, row, col)
        assert np.array_equal(contents(other), expected)


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize(("operand", "source"), [("Left", "NZ"), ("Left", "ZN"), ("Right", "NZ")])
def test_windows_of_matrices(target: str, operand: str, source: str) -> None:
    with device(target, mode="auto"):
        src = filled(f"Mat f16 64x96 {source} valid 50x90", target, everything=False)
        dst = make(f"{operand} f16 32x32", target)
        TEXTRACT(dst, src, 32, 64)
        assert np.array_equal(defined(dst), defined(src)[32:64, 64:96])
        assert np.array_equal(contents(dst)[:18, :26], contents(src)[32:50, 64:90])


def test_one_row_feeds_a_matrix_vector_product() -> None:
    with device("a2a3", mode="auto"):
        src, dst = filled("Mat f16 1x768", "a2a3"), make("Left f16 1x512 valid 1x300", "a2a3")
        TEXTRACT(dst, src, 0, 256)
        assert np.array_equal(dst.numpy()[0], src.numpy()[0, 256:556])
        assert defined(dst).sum() == 512


@pytest.mark.parametrize("shape", [(2, 2, 3, 64, 16), (12, 4, 16, 16)])
def test_convolution_weights_become_a_right_operand(shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape))
    with device("a2a3", mode="auto"):
        src = ConvTile[TileType.Mat, float16, size, Layout.FRACTAL_Z, ConvTileShape[shape]]()
        values = random_values(dtype("f16"), shape, np.random.default_rng(0))
        src.fill(values)
        dst = make("Right f16 32x32", "a2a3")
        TEXTRACT(dst, src, 16, 32)
        lines = values.reshape(12, 64, 16)  # (c1, h, w), n, c0
        for r in range(32):
            assert np.array_equal(dst.numpy()[r], lines[(16 + r) // 16, 32:64, (16 + r) % 16])


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_two_windows_at_once(target: str) -> None:
    with device(target, mode="auto"):
        src = filled("Vec f16 64x64", target)
        first, second = make("Vec f16 32x32 NZ", target), make("Vec f16 16x16 NZ", target)
        TEXTRACT(first, second, src, 3, 16, 40, 5)
        assert np.array_equal(first.numpy(), contents(src)[3:35, 16:48])
        assert np.array_equal(second.numpy(), contents(src)[40:56, 5:21])


def test_odd_int8_windows_run_over_hidden_scratch() -> None:
    with device("a2a3") as machine:
        src, first, second = (
            Tile.of(parse(text, dtype("i8"), PROFILES["a2a3"]))  # type: ignore[arg-type]
            for text in ("Vec i8 32x64", "Vec i8 16x32 NZ valid 16x31", "Vec i8 16x32 NZ")
        )
        for tile, address in ((src, 0), (first, 4096), (second, 8192)):
            TASSIGN(tile, address)
        src.fill(1)
        memory = machine.core.memory(TileType.Vec)
        memory.shadow[188416:196608] = 1
        TEXTRACT(first, second, src)
        assert not memory.shadow[188416 : 188416 + 64 * 16].any()  # 64 bytes for each row
        assert memory.shadow[188416 + 64 * 16 : 196608].all()


def test_extracted_columns_keep_their_words() -> None:
    with device("a5", mode="auto"):
        src, dst = filled("Acc i32 32x64", "a5"), make("Vec f16 16x32 valid 10x20", "a5")
        fp = make("Scaling u64 1x64", "a5")
        fp.fill(np.array([word(2.0**-c) for c in range(64)], np.uint64))
        TEXTRACT_FP(dst, src, fp, 4, 16)
        expected = src.numpy()[4:14, 16:36] * 2.0 ** -np.arange(16, 36)
        assert np.array_equal(dst.numpy(), expected.astype(np.float16))


def test_inserted_columns_start_with_the_first_word() -> None:
    with device("a5", mode="auto"):
        dst, src = filled("Vec f16 32x64", "a5"), filled("Acc i32 16x32 valid 16x20", "a5")
        before = contents(dst)
        fp = make("Scaling u64 1x32", "a5")
        fp.fill(np.array([word(2.0**-c) for c in range(32)], np.uint64))
        TINSERT_FP(dst, src, fp, 4, 16)
        expected = src.numpy() * 2.0 ** -np.arange(20)
        assert np.array_equal(contents(dst)[4:20, 16:36], expected.astype(np.float16))
        before[4:20, 16:36] = contents(dst)[4:20, 16:36]
        assert np.array_equal(contents(dst), before)


@pytest.mark.parametrize("mode", [None, TInsertMode.SPLIT2, TInsertMode.SPLIT4])
def test_inserting_defines_only_the_window(mode: TInsertMode | None) -> None:
    """The burst forms, too: they differ in nothing but the transfer."""
    with device("a5", mode="auto"):
        dst, src = make("Mat f16 64x64 NZ"), filled("Vec f16 32x32 NZ valid 30x20")
        (TINSERT if mode is None else TINSERT[mode])(dst, src, 3, 16)
        expected = np.zeros((64, 64), bool)
        expected[3:33, 16:36] = True
        assert np.array_equal(defined(dst), expected)
        assert np.array_equal(contents(dst)[expected].reshape(30, 20), src.numpy())


def test_a_window_outside_the_tile_is_refused() -> None:
    with device("a5", mode="auto"), pytest.raises(ProgramError, match="lies inside src"):
        TEXTRACT(make("Vec f32 8x32"), filled("Vec f32 16x64"), 9, 0)


def test_the_scaling_space_tells_fp_and_tmp_apart() -> None:
    with device("a5", mode="auto"), pytest.raises(ProgramError, match="zz-layouts"):
        TMOV(make("Vec u8 32x32"), filled("Vec u8 32x32"), make("Vec u8 1x128"))
