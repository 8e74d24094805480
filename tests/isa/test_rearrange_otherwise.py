"""Joining, interleaving, filling and transposing where a rule that nothing enforces is broken."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
from ptokit.base.dtypes import dtype
from tests.isa.raw import Raw, tile, warned

DEVICES = ["a2a3", "a5", "kirin9030", "kirinx90"]


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize(
    ("widths", "rows"),
    [((24, 32), (3, 3)), ((8, 16), (1, 2)), ((16, 40), (4, 2)), ((24, 8), (3, 5))],
)
def test_joined_rows_run_into_the_next_ones(
    target: str, widths: tuple[int, int], rows: tuple[int, int]
) -> None:
    """The rows of dst count. A2/A3 copies all of src0 first, the others row by row."""
    with device(target):
        raw = Raw()
        dst = tile("Vec f32 4x40", 0, (3, 40))
        src0 = tile("Vec f32 8x40", 8192, (rows[0], widths[0]))
        src1 = tile("Vec f32 8x40", 16384, (rows[1], widths[1]))
        pieces = [(8192, 0, widths[0]), (16384, widths[0], widths[1])]
        order = [(row, piece) for row in range(3) for piece in pieces]
        if target == "a2a3":
            order = [(row, piece) for piece in pieces for row in range(3)]
        for row, (source, column, width) in order:
            raw.expect((row * 40 + column) * 4, raw.get(source + row * 160, width, np.float32))
        TCONCAT(dst, src0, src1)
        raw.check()


def test_one_length_is_written_for_each_row() -> None:
    with device("a5") as machine:
        raw = Raw()
        for at in (4096, 5120):
            for row in range(3):
                raw.put(at + row * 32, np.int32(8 * (row + 1)))
        for row in range(3):
            count = 2 * (row + 1)
            raw.expect(row * 128, raw.get(8192 + row * 128, count, np.float32))
            raw.expect(row * 128 + count * 4, raw.get(16384 + row * 128, count, np.float32))
            raw.expect(6144 + row * 32, np.int32(2 * count * 4))
        TCONCAT(
            tile("Vec f32 3x32", 0),
            tile("Vec f32 3x32", 8192),
            tile("Vec f32 3x32", 16384),
            tile("Vec i32 3x8", 6144, (3, 5)),
            tile("Vec i32 3x8", 4096, (3, 1)),
            tile("Vec i32 3x8", 5120, (3, 1)),
        )
        raw.check()
        assert warned(machine) == {"TCONCAT.one-length"}


def test_the_first_destination_decides_how_much_is_interleaved() -> None:
    for name in ("TINTERLEAVE", "TDEINTERLEAVE"):
        with device("a5") as machine:
            raw = Raw()
            dst0, dst1 = tile("Vec f32 4x16", 0, (3, 10)), tile("Vec f32 4x16", 1024, (1, 4))
            src0, src1 = tile("Vec f32 4x16", 2048, (4, 2)), tile("Vec f32 4x16", 3072, (2, 16))
            for row in range(3):
                a = raw.get(2048 + row * 64, 10, np.float32)
                b = raw.get(3072 + row * 64, 10, np.float32)
                if name == "TINTERLEAVE":
                    stream = np.stack([a, b], axis=-1).reshape(-1)
                    first, second = stream[:10], stream[10:]
                else:
                    stream = np.concatenate([a, b])
                    first, second = stream[::2], stream[1::2]
                raw.expect(row * 64, first)
                raw.expect(1024 + row * 64, second)
            globals()[name](dst1, dst0, src1, src0)
            raw.check()
            assert warned(machine) == {f"{name}.same-valid"}


def test_one_stream_decides_how_much_is_separated() -> None:
    with device("a5") as machine:
        raw = Raw()
        for row in range(3):
            stream = raw.get(8192 + row * 128, 20, np.float32)
            raw.expect(row * 64, stream[::2])
            raw.expect(1024 + row * 64, stream[1::2])
        dst0, dst1 = tile("Vec f32 4x16", 0, (2, 4)), tile("Vec f32 4x16", 1024, (4, 16))
        TDEINTERLEAVE(dst1, dst0, tile("Vec f32 4x32", 8192, (3, 20)))
        raw.check()
        wanted = {"TDEINTERLEAVE.half-width", "TDEINTERLEAVE.source-width"}
        assert wanted <= warned(machine)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_the_destination_decides_which_pairs_are_added(target: str) -> None:
    with device(target) as machine:
        raw = Raw()
        raw.put(8192, np.arange(64, dtype=np.float32))
        for row in range(3):
            pairs = raw.get(8192 + row * 64, 10, np.float32)
            raw.expect(row * 64, pairs[::2] + pairs[1::2])
        TPAIRREDUCESUM(tile("Vec f32 4x16", 0, (3, 10)), tile("Vec f32 4x16", 8192, (1, 2)))
        raw.check()
        assert warned(machine) == {"TPAIRREDUCESUM.same-valid"}


# ---- filling: what a page states is a warning only under release ---------------------------------


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("valid", [(16, 5), (10, 3), (7, 1)])
def test_columns_are_filled_over_the_valid_region(target: str, valid: tuple[int, int]) -> None:
    with device(target, rules="release") as machine:
        raw = Raw()
        for col in range(valid[1]):
            raw.expect(col * 64, np.full(valid[0], 3, np.float32))
        TEXPANDS(tile("Vec f32 16x8 DN", 0, valid), 3.0)
        raw.check()
        assert warned(machine) == {"TEXPANDS.row-major"}
    with device(target), pytest.raises(ProgramError, match="row-major"):
        TEXPANDS(tile("Vec f32 16x8 DN", 0, valid), 3.0)


@pytest.mark.parametrize("kind", ["u8", "i8", "u16", "u32", "bf16"])
def test_types_that_no_page_lists_are_filled(kind: str) -> None:
    with device("a2a3", rules="release") as machine:
        raw = Raw()
        made = tile(f"Vec {kind} 4x32", 0, (3, 7))
        one = np.array(2 if kind != "bf16" else 0x4000, dtype(kind).uint)
        width = 8 if dtype(kind).itemsize == 1 else 7  # bytes go in pairs
        for row in range(3):
            raw.expect(row * 32 * dtype(kind).itemsize, np.full(width, one))
        TEXPANDS(made, 2)
        raw.check()
        assert warned(machine) == {"TEXPANDS.page-types"}


@pytest.mark.parametrize(("kind", "filled"), [("bf16", True), ("u64", False)])
def test_a5_fills_mat_tiles_of_other_types(kind: str, filled: bool) -> None:
    with device("a5", rules="release"):
        raw = Raw(TileType.Mat)
        if filled:
            raw.expect(0, np.full(16 * 32, 0x4000, np.uint16))
        TEXPANDS(tile(f"Mat {kind} 16x32", 0), 2)
        raw.check()


def test_the_number_of_blocks_has_15_bits() -> None:
    with device("a2a3", rules="release") as machine:
        raw = Raw(TileType.Mat, seed=1)
        raw.memory.data[:] = raw.expected[:] = 0  # all of it would be too much to look at
        rows = 32768 + 5
        made = tile(f"Mat f16 {rows}x16", 0)
        raw.expect(0, np.full(5 * 16, 1.0, np.float16))
        TEXPANDS(made, 1.0)
        raw.check()
        assert warned(machine) == {"TEXPANDS.mat-size"}


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("kind", ["hif8", "f8e4m3"])
def test_any_element_of_four_bytes_or_less_is_transposed(target: str, kind: str) -> None:
    with device(target, rules="release") as machine:
        raw = Raw()
        for row, col in np.ndindex(32, 64):
            raw.expect(col * 32 + row, raw.get(8192 + row * 64 + col, 1, np.uint8))
        tmp = tile("Vec u8 64x32", 32768)
        if target == "a2a3":
            raw.lose(32768, 64 * 32)
        TTRANS(tile(f"Vec {kind} 64x32", 0), tile(f"Vec {kind} 32x64", 8192), tmp)
        raw.check()
        assert warned(machine) == {"TTRANS.dtype"}


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("n", [3, 4])
def test_groups_of_weights_lie_as_far_apart_as_those_of_their_blocks(target: str, n: int) -> None:
    """Blocks of two filters; a source that has room for it is padded as its result is."""
    groups, positions, c0, padded = 2, 4, 4, 4
    with device(target, rules="release") as machine:
        raw = Raw()
        for g, p, f, c in np.ndindex(groups, positions, padded, c0):
            at = ((g * padded + f) * positions + p) * c0 + c
            found = raw.get(8192 + at * 4, 1, np.float32) if f < n else np.float32(0)
            raw.expect((((g * positions + p) * padded + f) * c0 + c) * 4, found)
        reserved = groups * padded * positions * c0
        Source = ConvTile[
            TileType.Vec, float32, reserved, Layout.GNC1HWC0, ConvTileShape[groups, n, 1, 2, 2, c0]
        ]
        Blocks = ConvTile[
            TileType.Vec, float32, reserved, Layout.FRACTAL_Z, ConvTileShape[8, 2, 2, c0]
        ]
        src, dst = Source(), Blocks()
        TASSIGN(dst, 0)
        TASSIGN(src, 8192)
        TTRANS(dst, src, tile("Vec f32 16x32", 32768))
        raw.check()
        assert warned(machine) == {"TTRANS.conv-filters"}


@pytest.mark.parametrize("target", DEVICES)
def test_convolution_tiles_may_reserve_what_others_use(target: str) -> None:
    """What two of them touch lies apart: what they reserve need not."""
    with device(target):
        raw = Raw()
        Maps = ConvTile[TileType.Vec, float32, 512, Layout.NCHW, ConvTileShape[1, 8, 4, 8]]
        Split = ConvTile[TileType.Vec, float32, 512, Layout.NC1HWC0, ConvTileShape[1, 1, 4, 8, 8]]
        src, dst, tmp = Maps(), Split(), tile("Vec f32 32x16", 8192)
        TASSIGN(src, 0)
        TASSIGN(dst, 1024)
        raw.expect(1024, raw.get(0, 256, np.float32).reshape(8, 32).T)
        TTRANS(dst, src, tmp)
        raw.check()
        TASSIGN(dst, 992)
        with pytest.raises(ProgramError, match=r"TTRANS.apart"):
            TTRANS(dst, src, tmp)
