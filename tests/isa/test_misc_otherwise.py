"""Sequences, triangles, histograms and tables where a rule that nothing enforces is broken."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
from ptokit.base.tensors import GlobalSpec
from ptokit.frontend.tensor_types import global_class
from tests.isa.raw import Raw, tile, warned


@pytest.mark.parametrize(("kind", "used"), [("f16", 1792), ("f32", 768), ("i16", 1792)])
def test_a2a3_counts_in_any_type_and_over_a_small_tmp(kind: str, used: int) -> None:
    with device("a2a3") as machine:
        raw = Raw()
        raw.expect(0, np.arange(3, 33).astype({"f16": "f2", "f32": "f4", "i16": "i2"}[kind]))
        raw.lose(8192, used)
        TCI(tile(f"Vec {kind} 1x32", 0, (1, 30)), 3, tile("Vec i16 1x32", 8192))
        raw.check()
        wanted = {"TCI.tmp-size"} | (set() if kind == "i16" else {"TCI.dtype"})
        assert warned(machine) == wanted


@pytest.mark.parametrize("target", ["a5", "kirin9030", "kirinx90"])
def test_triangles_are_written_by_rows(target: str) -> None:
    """RowStride elements apart: those of a column-major tile lie over one another."""
    with device(target) as machine:
        raw = Raw()
        for row in range(6):
            raw.expect(row * 4, (np.arange(5) <= row + 1).astype(np.float32))
        TTRI(tile("Vec f32 8x8 DN", 0, (6, 5)), 1)
        raw.check()
        assert warned(machine) == {"TTRI.row-major"}


@pytest.mark.parametrize("target", ["a5", "kirin9030"])
@pytest.mark.parametrize("shape", ["4x512", "2x128"])
def test_bins_of_rows_follow_one_another(target: str, shape: str) -> None:
    with device(target) as machine:
        raw = Raw()
        data = np.random.default_rng(2).integers(0, 1 << 16, (4, 64)).astype(np.uint16)
        raw.put(32768, data)
        for row in range(4):
            counts = np.bincount(data[row] >> 8, minlength=256)
            raw.expect(row * 1024, np.cumsum(counts).astype(np.uint32))
        THISTOGRAM[HistByte.BYTE_1](
            tile(f"Vec u32 {shape}", 0), tile("Vec u16 4x64", 32768), tile("Vec u8 32x1 DN", 16384)
        )
        raw.check()
        assert "THISTOGRAM.bin-pitch" in warned(machine)


@pytest.mark.parametrize("name", ["MGATHER", "MSCATTER"])
def test_rows_of_a_table_follow_one_another_on_a5(name: str) -> None:
    """By the valid columns of the tile, whatever the view says; indices lie one after the other."""
    with device("a5") as machine:
        raw = Raw()
        numbers = np.random.default_rng(5).permutation(10)[:6].astype(np.int32)
        raw.put(4096, numbers)
        data, index = tile("Vec f32 8x32", 0, (6, 20)), tile("Vec i32 8x8", 4096, (6, 1))
        array = np.random.default_rng(6).normal(size=(16, 40)).astype(np.float32)
        spec = GlobalSpec.of(data.spec.dtype, (1, 1, 1, 12, 40), (0, 0, 0, 40, 1), Layout.ND)
        flat, expected = array.reshape(-1), array.reshape(-1).copy()
        for row, number in enumerate(numbers.tolist()):
            place = slice(number * 20, number * 20 + 20)
            if name == "MGATHER":
                raw.expect(row * 128, flat[place])
            expected[place] = raw.get(row * 128, 20, np.float32)
        if name == "MGATHER":
            MGATHER[Coalesce.Row](data, global_class(spec)(array), index)
            raw.check()
        else:
            MSCATTER[Coalesce.Row](global_class(spec)(array), data, index)
            assert flat.tobytes() == expected.tobytes()
        assert {f"{name}.dense-rows", f"{name}.index-order"} <= warned(machine)
