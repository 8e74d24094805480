"""What sorts, gathers and scatters do where a rule that nothing enforces is broken.

Each test takes one sentence of the specification and works out the bytes of the whole memory by
itself; tiles lie where a test puts them, so that what runs over their end is seen.
"""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
from ptokit.base.layout import Array
from tests.isa.raw import Raw, tile, warned

DEVICES = ["a2a3", "a5", "kirin9030", "kirinx90"]
FLOATS = {"f16": np.float16, "f32": np.float32}


def descending(values: Array) -> Array:
    """The stable order of a run; negative NaNs, which fill runs up, come last."""
    keys = np.where(np.isnan(values), -np.inf, values.astype(np.float64))
    return np.lexsort((np.arange(values.size), np.isnan(values), -keys))


def records(values: Array, indices: Array) -> Array:
    """Value, zeros, index: 8 bytes each."""
    words = np.zeros((values.size, 2), np.uint32)
    words[:, 0] = values.view(f"u{values.itemsize}")
    words[:, 1] = indices
    return words


def sorted_runs(raw: Raw, kind: str, src: int, idx: int, count: int, valid: int) -> Array:
    """The records of a row: runs of 32, of which only so many elements are data."""
    found: list[Array] = []
    for at in range(0, count, 32):
        values = raw.get(src + at * FLOATS[kind]().itemsize, 32, FLOATS[kind]).copy()
        values[max(valid - at, 0) :] = -np.nan
        numbers = raw.get(idx + at * 4, 32, np.uint32)
        order = descending(values)
        found.append(records(values[order], numbers[order]))
    return np.concatenate(found) if found else np.zeros((0, 2), np.uint32)


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("kind", FLOATS)
def test_records_that_do_not_fit_run_into_the_next_row(target: str, kind: str) -> None:
    """13 columns, whose rows lie 128 bytes apart: 256 are written for each."""
    size = FLOATS[kind]().itemsize
    with device(target) as machine:
        raw = Raw()
        raw.put(8192, np.random.default_rng(1).normal(size=256).astype(FLOATS[kind]))
        dst = tile(f"Vec {kind} 4x{128 // size}", 0, (4, 26))
        src, idx = tile(f"Vec {kind} 4x16", 8192, (4, 13)), tile("Vec u32 1x16", 16384, (1, 13))
        tmp = tile(f"Vec {kind} 1x16", 32768)  # smaller than a run
        for row in range(4):
            raw.expect(row * 128, sorted_runs(raw, kind, 8192 + row * 16 * size, 16384, 32, 13))
        raw.lose(32768, 32 * size)
        TSORT32(dst, src, idx, tmp)
        raw.check()
        wanted = {"TSORT32.record-columns", "TSORT32.idx-size", "TSORT32.tmp-size"}
        assert warned(machine) == wanted


@pytest.mark.parametrize("target", DEVICES)
def test_without_tmp_a_short_run_is_left_out(target: str) -> None:
    with device(target) as machine:
        raw = Raw()
        raw.put(8192, np.arange(200, dtype=np.float32) % 7)
        dst, src = tile("Vec f32 1x256", 0), tile("Vec f32 1x96", 8192, (1, 70))
        raw.expect(0, sorted_runs(raw, "f32", 8192, 16384, 64, 70))
        TSORT32(dst, src, tile("Vec u32 1x96", 16384))
        raw.check()
        assert warned(machine) == {"TSORT32.whole-runs"}


@pytest.mark.parametrize("target", DEVICES)
def test_tmp_is_untouched_unless_a_run_is_short(target: str) -> None:
    """With whole runs it may even lie over dst."""
    with device(target) as machine:
        raw = Raw()
        raw.put(8192, np.arange(200, dtype=np.float32) % 7)
        dst, src, idx = (
            tile("Vec f32 1x128", 0),
            tile("Vec f32 1x64", 8192),
            tile("Vec u32 1x64", 16384),
        )
        raw.expect(0, sorted_runs(raw, "f32", 8192, 16384, 64, 64))
        TSORT32(dst, src, idx, tile("Vec f16 1x64", 64))
        raw.check()
        assert warned(machine) == {"TSORT32.tmp-type"}


def test_of_a_multiple_of_255_runs_the_last_are_not_sorted() -> None:
    with device("a5") as machine:
        raw = Raw()
        count = 510 * 32
        values = np.random.default_rng(2).permutation(count).astype(np.float16)
        raw.put(0, values)
        src, idx = tile(f"Vec f16 1x{count}", 0), tile(f"Vec u32 1x{count}", 32768)
        dst = tile(f"Vec f16 1x{4 * count}", 98304)
        raw.expect(98304, sorted_runs(raw, "f16", 0, 32768, count // 2, count))
        TSORT32(dst, src, idx)
        raw.check()
        assert "TSORT32.run-count" in warned(machine)


def merged(*lists: Array) -> Array:
    """Records of descending lists as one; of equals those of the first list come first."""
    every = np.concatenate(lists)
    return every[np.argsort(-every[:, 0].view(np.float32), kind="stable")]


def a_list(count: int, seed: int) -> Array:
    values = np.sort(np.random.default_rng(seed).integers(0, 50, count).astype(np.float32))[::-1]
    return records(values, np.arange(count) + 100 * seed)


@pytest.mark.parametrize("target", DEVICES)
def test_lists_are_merged_by_their_valid_columns(target: str) -> None:
    """tmp has room for the records of the valid columns, not for those of all columns; dst lies
    over a list, and what it takes of tmp behind the merged records is what tmp held."""
    with device(target) as machine:
        raw = Raw()
        for n in range(3):
            raw.put(4096 * n, a_list(16, n))
        lists = [tile("Vec f32 1x32", 4096 * n, (1, 16 + 4 * n)) for n in range(3)]
        result = merged(*(a_list(16, n)[: 8 + 2 * n] for n in range(3)))
        raw.lose(65536, result.nbytes)
        raw.expect(0, result)
        raw.expect(result.nbytes, raw.get(65536 + result.nbytes, 4, np.float32))
        dst = tile("Vec f32 1x96", 0, (1, 2 * len(result) + 4))
        TMRGSORT(dst, MrgSortExecutedNumList(), tile("Vec f32 1x64", 65536), *lists)
        raw.check()
        assert warned(machine) == {"TMRGSORT.tmp-columns"}


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize(
    ("length", "cols", "groups"),
    [(32, 512, 4), (64, 448, 1), (64, 200, 0), (10, 100, 2), (2, 8 * 300, 44)],
)
def test_blocks_are_whole_records_and_groups_of_four(
    target: str, length: int, cols: int, groups: int
) -> None:
    """Short lengths, an odd end, and a count that does not fit into 8 bits."""
    with device(target) as machine:
        raw = Raw()
        count = length // 2
        blocks = [a_list(count, n) for n in range(groups * 4)]
        if blocks:
            raw.put(65536, np.concatenate(blocks))
        for n in range(groups):
            raw.expect(n * 32 * count, merged(*blocks[4 * n : 4 * n + 4]))
        src = tile(f"Vec f32 1x{-(-cols // 8) * 8}", 65536, (1, cols))
        dst = tile(f"Vec f32 1x{-(-cols // 8) * 8}", 0)
        TMRGSORT(dst, src, length)
        raw.check()
        assert bool(warned(machine)) == (target == "a2a3")
