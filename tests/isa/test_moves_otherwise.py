"""Moves between tiles where a rule that nothing enforces is broken.

A window that leaves its tile is read or written where it lies; the expected bytes of the whole
memory are worked out here, element by element, from the formulas of the layouts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.dtypes import dtype
from ptokit.isa.effects import Pipe
from ptokit.machine.faults import OutOfBounds
from tests.isa.raw import Raw, tile, warned
from tests.support import listen

DEVICES = ["a2a3", "a5", "kirin9030", "kirinx90"]
A5_FAMILY = DEVICES[1:]
Place = Callable[[int, int], int]


def rows_of(cols: int) -> Place:
    return lambda r, c: r * cols + c


def nz(rows: int, c0: int) -> Place:
    return lambda r, c: c // c0 * rows * c0 + r * c0 + c % c0


def zz(cols: int, c0: int) -> Place:
    return lambda r, c: r // 16 * 16 * cols + c // c0 * 16 * c0 + r % 16 * c0 + c % c0


def copy(there: Raw, to: Place, here: Raw, source: Place, size: tuple[int, int], **at: Any) -> None:
    """Expect a window of one memory in another; `at` are bases and corners."""
    kind = at.get("kind", np.uint16)
    width = np.dtype(kind).itemsize
    (r0, c0), (r1, c1) = at.get("dst", (0, 0)), at.get("src", (0, 0))
    for r, c in np.ndindex(*size):
        value = here.get(at.get("base", 0) + source(r + r1, c + c1) * width, 1, kind)
        there.expect(at.get("onto", 0) + to(r + r0, c + c0) * width, value)


# ---- windows of vector tiles ---------------------------------------------------------------------


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("layout", ["ND", "NZ"])
@pytest.mark.parametrize("corner", [(16, 32), (32, 16), (0, 48)])
@pytest.mark.parametrize("name", ["TEXTRACT", "TINSERT"])
def test_windows_in_vector_tiles_go_on_behind_them(
    target: str, layout: str, corner: tuple[int, int], name: str
) -> None:
    with device(target) as machine:
        raw = Raw()
        small, large = tile(f"Vec f16 32x48 {layout}", 32768), tile(f"Vec f16 32x48 {layout}", 0)
        place = rows_of(48) if layout == "ND" else nz(32, 16)
        if name == "TEXTRACT":
            copy(raw, place, raw, place, (32, 48), src=corner, onto=32768)
            TEXTRACT(small, large, *corner)
        else:
            copy(raw, place, raw, place, (32, 48), dst=corner, base=32768)
            TINSERT(large, small, *corner)
        raw.check()
        assert warned(machine) == {f"{name}.window"}


def test_a_window_does_not_begin_before_its_tile() -> None:
    with device("a5"):
        Raw()
        with pytest.raises(ProgramError, match=r"TEXTRACT\.number"):
            TEXTRACT(tile("Vec f16 16x16", 0), tile("Vec f16 32x48", 4096), 0, -16)


# ---- windows of Mat tiles and accumulators -------------------------------------------------------


@pytest.mark.parametrize("target", ["a2a3", "kirinx90"])
@pytest.mark.parametrize("corner", [(16, 48), (32, 32), (32, 64)])
def test_windows_of_mat_tiles_go_on_behind_them(target: str, corner: tuple[int, int]) -> None:
    with device(target) as machine:
        here, there = Raw(TileType.Mat), Raw(TileType.Left)
        copy(there, zz(32, 16), here, nz(32, 16), (32, 32), src=corner, base=1024)
        TEXTRACT(tile("Left f16 32x32", 0), tile("Mat f16 32x64 NZ", 1024), *corner)
        there.check()
        assert warned(machine) <= {"PA-0040", "PA-0041"}
        end = here.memory.nbytes - 32 * 64 * 2
        with pytest.raises(OutOfBounds):
            TEXTRACT(tile("Left f16 32x32", 0), tile("Mat f16 32x64 NZ", end), *corner)


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirinx90"])
def test_a_row_is_read_from_whole_boxes(target: str) -> None:
    """The part of the column inside 512 bytes is lost."""
    with device(target) as machine:
        here, there = Raw(TileType.Mat), Raw(TileType.Left)
        there.expect(0, here.get(1024 + 512, 512, np.uint8))
        TEXTRACT(tile("Left f16 1x256", 0), tile("Mat f16 1x1024", 1024), 0, 300)
        there.check()
        assert warned(machine) == {"TEXTRACT.vector-corner"}


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("name", ["TEXTRACT", "TINSERT"])
@pytest.mark.parametrize("corner", [(16, 32), (32, 16), (8, 48)])
def test_windows_of_accumulators_go_on(target: str, name: str, corner: tuple[int, int]) -> None:
    """Of an accumulator in Mat: small whole numbers, which f16 holds exactly."""
    with device(target):
        mat, acc = Raw(TileType.Mat), Raw(TileType.Acc)
        values = np.random.default_rng(3).integers(-99, 99, 8192).astype(np.float32)
        acc.put(0, values)
        rows, cols = 32, 48
        at = (corner, (0, 0)) if name == "TEXTRACT" else ((0, 0), corner)
        for r, c in np.ndindex(rows, cols):
            value = values[nz(rows, 16)(r + at[0][0], c + at[0][1])]
            mat.expect(nz(rows, 16)(r + at[1][0], c + at[1][1]) * 2, np.float16(value))
        source, result = tile("Acc f32 32x48", 0), tile("Mat f16 32x48 NZ", 0)
        if name == "TEXTRACT":
            TEXTRACT(result, source, *corner)
        else:
            TINSERT(result, source, *corner)
        mat.check()


# ---- quantisation words --------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("kind", ["u64", "f32", "f16", "i8"])
@pytest.mark.parametrize("name", ["TMOV_FP", "TEXTRACT_FP", "TINSERT_FP", "TSTORE_FP"])
def test_words_are_the_bytes_that_lie_there(target: str, kind: str, name: str) -> None:
    """Whatever the type of fp, and also behind it; a window begins at a multiple of 16 words."""
    corner = (16, 24) if name == "TEXTRACT_FP" else (0, 0)
    with device(target) as machine:
        mat, acc, fp = Raw(TileType.Mat), Raw(TileType.Acc), Raw(TileType.Scaling)
        values = np.random.default_rng(3).integers(-9, 9, 8192).astype(np.int32)
        scales = np.random.default_rng(4).integers(1, 5, 96).astype(np.float32)
        acc.put(0, values)
        words = scales.view(np.uint32).astype(np.uint64) | np.uint64(1 << 46)  # a signed result
        fp.put(256, words)
        array = np.full((32, 64), 77, np.int8)
        expected = array.copy()
        for r, c in np.ndindex(32, 64):
            value = values[nz(64, 16)(r + corner[0], c + corner[1])]
            expected[r, c] = value * scales[c + corner[1] // 16 * 16]
            if name != "TSTORE_FP":
                mat.expect(nz(64 if name == "TMOV_FP" else 32, 32)(r, c), expected[r, c])
        size = 32 // dtype(kind).itemsize
        table, source = tile(f"Scaling {kind} 1x{size}", 256), tile("Acc i32 64x96", 0, (32, 64))
        if name == "TSTORE_FP":
            TSTORE_FP(GlobalTensor(array), source, table)
            assert (array == expected).all()
        elif name == "TMOV_FP":
            for r, c in np.ndindex(64, 64):  # all rows of the accumulator leave it
                value = values[nz(64, 16)(r, c)] * scales[c]
                mat.expect(nz(64, 32)(r, c), np.int8(value))
            TMOV_FP(tile("Mat i8 64x96 NZ", 0), source, table)
        elif name == "TEXTRACT_FP":
            TEXTRACT_FP(tile("Mat i8 32x64 NZ", 0), source, table, *corner)
        else:
            TINSERT_FP(tile("Mat i8 32x64 NZ", 0), tile("Acc i32 64x96", 0, (32, 64)), table, 0, 0)
        if name in ("TMOV_FP", "TEXTRACT_FP"):
            mat.check()
        assert any("word" in code for code in warned(machine))


# ---- TMOV ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("valid", [(0, 8), (8, 0), (0, 0)])
def test_an_empty_move_moves_nothing(target: str, valid: tuple[int, int]) -> None:
    with device(target) as machine:
        raw = Raw()
        TMOV(tile("Vec f16 16x16", 0), tile("Vec f16 16x16", 4096, valid))
        raw.check()
        assert warned(machine) == {"TMOV.not-empty"}


@pytest.mark.parametrize(
    ("dst", "src", "valid"),
    [
        ("16x32 DN", "16x32 DN", (10, 32)),  # whole rows: one piece
        ("16x32 DN", "16x32 DN", (10, 20)),
        ("16x32 NZ", "16x32 NZ", (10, 20)),
        ("16x32 NZ", "16x32 NZ", (7, 32)),
    ],
)
def test_a2a3_moves_bytes_as_they_lie(dst: str, src: str, valid: tuple[int, int]) -> None:
    with device("a2a3") as machine:
        raw = Raw()
        a, b = tile(f"Vec f32 {dst}", 0, valid), tile(f"Vec f32 {src}", 8192, valid)
        rows, cols = valid
        if cols == 32:
            raw.expect(0, raw.get(8192, rows * 32, np.float32))
        else:
            length = -(-cols // 8) * 8
            for row in range(rows):
                piece = raw.get(8192 + row * b.spec.row_stride * 4, length, np.float32)
                raw.expect(row * a.spec.row_stride * 4, piece)
        TMOV(a, b)
        raw.check()
        assert warned(machine) == {"TMOV.vector-layouts"}


# ---- TINSERT and TEXTRACT on A5 ------------------------------------------------------------------


@pytest.mark.parametrize("target", A5_FAMILY)
def test_zn_boxes_are_inserted_whole(target: str) -> None:
    with device(target) as machine:
        mat, vec = Raw(TileType.Mat), Raw(TileType.Vec)

        def place(cols: int) -> Place:
            return lambda r, c: r // 16 * 16 * cols + c * 16 + r % 16

        copy(mat, place(48), vec, place(32), (16, 32), dst=(16, 5))
        TINSERT(tile("Mat f16 64x48 ZN", 0), tile("Vec f16 32x32 ZN", 0, (30, 32)), 20, 5)
        mat.check()
        assert warned(machine) == {"TINSERT.zn-boxes"}


def test_an_odd_nibble_is_not_inserted() -> None:
    with device("a5") as machine:
        mat, vec = Raw(TileType.Mat), Raw(TileType.Vec)
        for row in range(4):
            mat.expect(row * 32 + 16, vec.get(row * 16, 7, np.uint8))
        TINSERT(tile("Mat f4e2m1x2 4x64", 0), tile("Vec f4e2m1x2 4x32", 0, (4, 15)), 0, 33)
        mat.check()
        assert warned(machine) == {"TINSERT.fp4-pairs"}


@pytest.mark.parametrize("word", [None, 0x3F800000])
def test_relu_is_dropped_on_the_plain_way_to_a_vector_tile(word: int | None) -> None:
    """With a quantisation word it is not."""
    kind = "f32" if word is None else "i8"
    with device("a5") as machine:
        acc = Raw(TileType.Acc)
        values = np.arange(-128, 128, dtype=np.float32)
        acc.put(0, values)
        result = tile(f"Vec {kind} 16x32", 0, (16, 16))
        words = () if word is None else (word | 1 << 46,)
        TEXTRACT[ReluPreMode.NormalRelu](result, tile("Acc f32 16x16", 0), *words, 0, 0)
        expected = values if word is None else np.maximum(values, 0)
        assert (result.numpy() == expected.reshape(16, 16)).all()
        assert warned(machine) == ({"TEXTRACT.relu-to-vec"} if word is None else set())


@pytest.mark.parametrize("target", A5_FAMILY)
@pytest.mark.parametrize("name", ["TMOV", "TEXTRACT", "TINSERT"])
def test_from_vec_to_mat_goes_the_dma_of_the_vector_core(target: str, name: str) -> None:
    """Events call it FIX; a vector core has no such pipe."""
    with device(target) as machine:
        Raw(TileType.Vec)
        seen = listen(machine)
        corner = () if name == "TMOV" else (0, 0)
        globals()[name](tile("Mat f16 32x32", 0), tile("Vec f16 32x32", 0), *corner)
        assert [event.pipe for event in seen] == [Pipe.MTE3]
