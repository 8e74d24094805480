"""Address maps: every layout is a bijection onto its storage and equals the written formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptokit.base.dtypes import dtype
from ptokit.base.enums import BLayout, CompactMode, Layout, SLayout, TileType
from ptokit.base.layout import AxisMap, dense_strides
from ptokit.base.tensors import global_axis_map, matrix_shape, matrix_stride
from ptokit.base.tiles import LAYOUT_NAMES, TileSpec

PAIRS = {name: pair for pair, name in LAYOUT_NAMES.items()}


def formula(layout: str, r: int, c: int, spec: TileSpec) -> int:
    """The element offset as the specification writes it, box by box."""
    inner_rows, inner_cols = spec.inner
    br, bc, ir, ic = r // inner_rows, c // inner_cols, r % inner_rows, c % inner_cols
    boxes_down, boxes_across = spec.rows // inner_rows, spec.cols // inner_cols
    box = inner_rows * inner_cols
    return {
        "ND": lambda: r * spec.cols + c,
        "DN": lambda: c * spec.rows + r,
        "NZ": lambda: (bc * boxes_down + br) * box + ir * inner_cols + ic,
        "ZZ": lambda: (br * boxes_across + bc) * box + ir * inner_cols + ic,
        "ZN": lambda: (br * boxes_across + bc) * box + ic * inner_rows + ir,
        "NN": lambda: (bc * boxes_down + br) * box + ic * inner_rows + ir,
    }[layout]()


def tile(layout: str, element: str, fractal: int, down: int, across: int) -> TileSpec:
    blayout, slayout = PAIRS[layout]
    probe = TileSpec.of(TileType.Mat, dtype(element), 16, 64, blayout, None, None, slayout, fractal)
    inner_rows, inner_cols = probe.inner if probe.is_boxed else (8, 32)
    rows, cols = inner_rows * down, inner_cols * across
    return TileSpec.of(
        TileType.Mat, dtype(element), rows, cols, blayout, None, None, slayout, fractal
    )


tiles = st.builds(
    tile,
    st.sampled_from(sorted(PAIRS)),
    st.sampled_from(["i8", "f16", "f32", "i64"]),
    st.just(512),
    st.integers(1, 4),
    st.integers(1, 4),
)
accumulators = st.builds(
    tile, st.just("NZ"), st.just("f32"), st.just(1024), st.integers(1, 4), st.integers(1, 4)
)
scales = st.builds(
    tile, st.sampled_from(["ZZ", "NN"]), st.just("f8e8m0"), st.just(32), st.integers(1, 4),
    st.integers(1, 4),
)  # fmt: skip


@given(tiles | accumulators | scales)
def test_tile_map_is_a_bijection_and_equals_the_formula(spec: TileSpec) -> None:
    offsets = spec.axis_map(spec.rows, spec.cols).offsets
    assert offsets.shape == (spec.rows, spec.cols)
    if spec.rows == 1:
        return  # a single row is a plain vector whatever the boxes say
    assert sorted(offsets.ravel()) == list(range(spec.numel))
    for r in {0, spec.rows // 2, spec.rows - 1}:
        for c in {0, spec.cols // 3, spec.cols - 1}:
            assert offsets[r, c] == formula(spec.layout, r, c, spec)


@given(tiles)
def test_matrix_reads_what_the_offsets_say(spec: TileSpec) -> None:
    storage = np.arange(spec.numel, dtype=np.int32)
    axis_map = spec.axis_map(spec.rows, spec.cols)
    matrix = axis_map.matrix(storage.view(np.uint8), 0, np.dtype(np.int32))
    assert np.array_equal(matrix, storage[axis_map.offsets])


def test_compact_normal_packs_by_the_valid_size() -> None:
    blayout, slayout = PAIRS["NZ"]
    spec = TileSpec.of(
        TileType.Acc, dtype("f32"), 64, 64, blayout, 20, 30, slayout, 1024, 0, CompactMode.Normal
    )
    axis_map = spec.axis_map(20, 30)
    assert (axis_map.rows, axis_map.cols) == (32, 32)
    assert axis_map.offsets[0, 16] == 32 * 16  # the next column block starts behind 32 rows


def test_row_plus_one_leaves_a_spare_row_between_column_blocks() -> None:
    spec = TileSpec.of(
        TileType.Vec, dtype("f16"), 32, 32, BLayout.ColMajor, 20, 32, SLayout.RowMajor, 512, 0,
        CompactMode.RowPlusOne,
    )  # fmt: skip
    assert spec.axis_map(20, 32).offsets[0, 16] == (32 + 1) * 16


@given(st.integers(1, 3), st.integers(1, 3), st.sampled_from(["i8", "f16", "f32"]))
def test_global_views_of_a_matrix_are_bijections(down: int, across: int, element: str) -> None:
    kind = dtype(element)
    rows, cols = 32 * down, 64 * across
    for layout in (
        Layout.ND, Layout.DN, Layout.NZ, Layout.MX_A_ZZ, Layout.MX_A_ND, Layout.MX_A_DN,
        Layout.MX_B_NN, Layout.MX_B_ND, Layout.MX_B_DN,
    ):  # fmt: skip
        shape = matrix_shape(kind, rows, cols, layout)
        axis_map = global_axis_map(shape, matrix_stride(kind, rows, cols, layout), layout)
        assert (axis_map.rows, axis_map.cols) == (rows, cols), layout
        assert sorted(axis_map.offsets.ravel()) == list(range(rows * cols)), layout


@pytest.mark.parametrize(
    ("layout", "index"),
    [
        (Layout.ND, lambda r, c, s: (r // (s[3] * s[2] * s[1]), (r // (s[3] * s[2])) % s[1],
                                     (r // s[3]) % s[2], r % s[3], c)),
        (Layout.DN, lambda r, c, s: (c // (s[4] * s[2] * s[1]), (c // (s[4] * s[2])) % s[1],
                                     (c // s[4]) % s[2], r, c % s[4])),
        (Layout.NZ, lambda r, c, s: ((c // s[4]) // s[1], (c // s[4]) % s[1], r // s[3], r % s[3],
                                     c % s[4])),
        (Layout.MX_A_ZZ, lambda r, c, s: (0, r // 16, c // 2, r % 16, c % 2)),
        (Layout.MX_A_ND, lambda r, c, s: (0, 0, r, c // 2, c % 2)),
        (Layout.MX_A_DN, lambda r, c, s: (0, 0, c // 2, r, c % 2)),
        (Layout.MX_B_NN, lambda r, c, s: (0, c // 16, r // 2, c % 16, r % 2)),
        (Layout.MX_B_ND, lambda r, c, s: (0, 0, r // 2, c, r % 2)),
        (Layout.MX_B_DN, lambda r, c, s: (0, 0, c, r // 2, r % 2)),
    ],
    ids=lambda v: getattr(v, "name", ""),
)  # fmt: skip
def test_global_map_equals_the_formula(layout: Layout, index: object) -> None:
    shape = {
        Layout.ND: (2, 3, 2, 4, 5), Layout.DN: (2, 3, 2, 4, 5), Layout.NZ: (2, 3, 2, 16, 8),
        Layout.MX_A_ZZ: (1, 3, 4, 16, 2), Layout.MX_B_NN: (1, 3, 4, 16, 2),
    }.get(layout, (1, 1, 4, 6, 2))  # fmt: skip
    stride = tuple(s * 3 for s in dense_strides(shape))
    axis_map = global_axis_map(shape, stride, layout)
    for r in range(axis_map.rows):
        for c in range(axis_map.cols):
            want = sum(i * s for i, s in zip(index(r, c, shape), stride, strict=True))  # type: ignore[operator]
            assert axis_map.offsets[r, c] == want


def test_span_counts_up_to_the_last_element() -> None:
    assert AxisMap((2, 3), (10, 2), (0,), (1,)).span == 10 + 4 + 1
    assert AxisMap((0, 3), (10, 2), (0,), (1,)).span == 0
