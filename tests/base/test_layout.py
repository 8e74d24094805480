"""Address maps: every layout is a bijection onto its storage and equals the written formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptokit.base.dtypes import dtype
from ptokit.base.enums import BLayout, CompactMode, Layout, SLayout, TileType
from ptokit.base.layout import AxisMap, common_steps, dense_strides, divided
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
            assert spec.axis_map(spec.rows, spec.cols).offset(r, c) == offsets[r, c]


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


@given(st.data())
def test_two_layouts_are_divided_into_the_same_steps(data: st.DataObject) -> None:
    """Whatever the layouts, one shape describes both, and its strides reach the right elements."""
    down, across = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    one, other = (
        TileSpec.of(TileType.Mat, dtype("f16"), 32 * down, 32 * across, *PAIRS[name][:1],
                    None, None, PAIRS[name][1])
        for name in data.draw(st.tuples(*[st.sampled_from(sorted(PAIRS))] * 2))
    )  # fmt: skip
    rows = data.draw(st.sampled_from([one.rows, 16]))  # all of them, or the first boxes
    maps = [spec.axis_map(spec.rows, spec.cols) for spec in (one, other)]
    axes = [m.axes(rows, one.cols) for m in maps]
    assert axes[0] is not None
    assert axes[1] is not None
    row_steps = common_steps([pair[0] for pair in axes if pair])
    col_steps = common_steps([pair[1] for pair in axes if pair])
    assert row_steps is not None
    assert col_steps is not None
    for axis_map, pair in zip(maps, axes, strict=True):
        assert pair is not None
        strides = divided(pair[0], row_steps) + divided(pair[1], col_steps)
        shape = (*row_steps, *col_steps)
        offsets = np.zeros(shape, np.int64)
        for axis, stride in enumerate(strides):
            steps = np.arange(shape[axis]) * stride
            offsets += steps.reshape([-1 if a == axis else 1 for a in range(len(shape))])
        np.testing.assert_array_equal(offsets.reshape(rows, -1), axis_map.offsets[:rows])


def test_a_region_that_cuts_a_box_has_no_axes() -> None:
    spec = tile("NZ", "f16", 512, 4, 4)
    assert spec.axis_map(spec.rows, spec.cols).axes(spec.rows, spec.cols - 1) is None


def test_sizes_that_do_not_divide_each_other_have_no_common_steps() -> None:
    assert common_steps([[(4, 6), (6, 1)], [(6, 4), (4, 1)]]) is None


@given(st.permutations(range(3)), st.lists(st.integers(1, 4), min_size=3, max_size=3),
       st.lists(st.integers(0, 2), min_size=3, max_size=3))  # fmt: skip
def test_stretches_are_the_elements(order: list[int], shape: list[int], gaps: list[int]) -> None:
    """In any order of axes, dense or with gaps: the stretches are just the offsets, or unknown."""
    strides, step = [0] * 3, 1
    for axis in order:
        strides[axis] = step
        step = step * shape[axis] + gaps[axis]
    axis_map = AxisMap(tuple(shape), tuple(strides), (0,), (1, 2))
    found = axis_map.stretches
    if found is None:
        assert any(gaps)
        return
    length, pitch, count = found
    touched = [start * pitch + i for start in range(count) for i in range(length)]
    assert touched == sorted(axis_map.offsets.ravel())
