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


# ---- gathers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_indices_lead_to_whatever_lies_there(target: str, kind: type) -> None:
    """Also behind the tile of indices, in whose rows the index of each element of dst is looked up,
    and behind the data."""
    name, size = np.dtype(kind).name.replace("float", "f"), np.dtype(kind).itemsize
    with device(target) as machine:
        raw = Raw()
        indices = np.random.default_rng(4).integers(-20, 200, (5, 16)).astype(np.int32)
        raw.put(4096, indices)
        dst = tile(f"Vec {name} 6x16", 0, (5, 13))
        src, index = tile(f"Vec {name} 2x16", 8192), tile("Vec i32 4x16", 4096, (4, 8))
        tmp = tile("Vec i32 4x16", 65536, (3, 8))
        for row in range(5):
            for col in range(13):
                at = 8192 + int(indices[row, col]) * size
                raw.expect((row * 16 + col) * size, raw.get(at, 1, kind))
        if target == "a2a3" and size == 2:  # byte offsets, in the rows of dst
            raw.lose(65536, 5 * 16 * 4)
        TGATHER(dst, src, index, tmp)
        raw.check()
        assert {"TGATHER.index-range", "TGATHER.index-cover"} <= warned(machine)


def test_an_index_behind_the_memory_is_an_error() -> None:
    with device("a5"):
        raw = Raw()
        raw.put(4096, np.full(16, 1 << 20, np.int32))
        with pytest.raises(ProgramError, match="index-range"):
            TGATHER(
                tile("Vec f32 1x16", 0),
                tile("Vec f32 1x16", 8192),
                tile("Vec i32 1x16", 4096),
                tile("Vec i32 1x16", 0),
            )


PATTERNS = {
    MaskPattern.P0101: (2, 0),
    MaskPattern.P1010: (2, 1),
    MaskPattern.P0001: (4, 0),
    MaskPattern.P0100: (4, 2),
}


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_selected_columns_are_one_stream(target: str, pattern: MaskPattern) -> None:
    """Whatever the columns of dst are, and however many rows it has."""
    step, first = PATTERNS[pattern]
    with device(target) as machine:
        raw = Raw()
        src, dst = tile("Vec f32 6x40", 8192, (6, 37)), tile("Vec f32 2x16", 0, (2, 9))
        stream = [
            raw.get(8192 + (row * 40 + col) * 4, 1, np.float32)
            for row in range(6)
            for col in range(first, 37, step)
        ]
        raw.expect(0, np.concatenate(stream))
        TGATHER[pattern](dst, src)
        raw.check()
        wanted = {"TGATHER.pattern-room"} | ({"PA-0009"} if target == "a2a3" else set())
        assert warned(machine) == wanted


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_selected_rows_go_on_behind_dst(target: str, pattern: MaskPattern) -> None:
    """dst has the rows that are selected; as many as src has valid ones are written."""
    step, first = PATTERNS[pattern]
    with device(target) as machine:
        raw = Raw()
        src = tile("Vec f32 16x40", 8192, (16, 37))
        dst = tile(f"Vec f32 {16 // step}x48", 0, (16 // step, 37))
        for row in range(16):
            if row < 16 // step:
                taken = raw.get(8192 + (step * row + first) * 160, 37, np.float32)
                raw.expect(row * 192, taken)
            else:
                raw.lose(row * 192, 37 * 4)
        TGATHER[pattern, GatherAxis.GATHER_COL](dst, src)
        raw.check()
        assert warned(machine) == {"TGATHER.row-room"}


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_hits_that_do_not_fit_run_into_the_next_row(target: str) -> None:
    with device(target) as machine:
        raw = Raw()
        hits = np.random.default_rng(6).integers(0, 2, (4, 64)).astype(np.uint32)
        hits[3, :] = 1
        raw.put(8192, hits.astype(np.float32) if target == "a2a3" else hits)
        raw.put(4096, np.zeros(8, np.uint32))
        kinds = ("f32", "i32") if target == "a2a3" else ("u32", "u32")
        dst = tile("Vec i32 4x16", 0)
        src, k = tile(f"Vec {kinds[0]} 4x64", 8192), tile(f"Vec {kinds[1]} 1x8", 4096)
        count, tmp = tile("Vec u32 1x8", 2048), tile("Vec u32 8x128", 65536)
        raw.lose(0, 4 * 16 * 4)
        for row in range(4):
            found = np.flatnonzero(hits[row]).astype(np.int32)
            raw.expect(row * 64, found + row * 64 + 7)
        raw.expect(2048, hits.sum(axis=1).astype(np.uint32))
        if target == "a2a3":
            raw.lose(65536, 8 * 128 + 4 * 64 * 4 + 4 * 4)
        TGATHER[CmpMode.GT](dst, src, k, count, tmp, 7)
        raw.check()
        assert warned(machine) == {"TGATHER.hits"}


@pytest.mark.parametrize("target", DEVICES)
def test_blocks_are_taken_as_dst_counts_them(target: str) -> None:
    """Words of any type are offsets, and elements have the size of dst."""
    with device(target) as machine:
        raw = Raw()
        offsets = np.random.default_rng(8).integers(0, 16, (2, 16)).astype(np.uint32) * 32
        raw.put(4096, offsets)
        for row, block in np.ndindex(2, 16):
            source = 8192 + int(offsets[row, block])
            raw.expect((row * 16 + block) * 32, raw.get(source, 32, np.uint8))
        TGATHERB(tile("Vec f16 2x256", 0), tile("Vec i32 4x64", 8192), tile("Vec f32 2x16", 4096))
        raw.check()
        assert warned(machine) == {"TGATHERB.same-element-size", "TGATHERB.offset-type"}


# ---- scatters ------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", DEVICES)
def test_a_scatter_writes_where_its_indexes_lead(target: str) -> None:
    """Outside dst too; the sizes of the index tile decide, whatever src has."""
    with device(target) as machine:
        raw = Raw()
        places = np.random.default_rng(9).permutation(200)[:48].astype(np.int32).reshape(3, 16)
        raw.put(4096, places)
        dst, src = tile("Vec f32 4x16", 0), tile("Vec f32 3x16", 8192, (2, 8))
        raw.expect(0, np.zeros(64, np.float32))
        for row, col in np.ndindex(3, 16):
            value = raw.get(8192 + (row * 16 + col) * 4, 1, np.float32)
            raw.expect(int(places[row, col]) * 4, value)
        TSCATTER(dst, src, tile("Vec i32 3x16", 4096))
        raw.check()
        assert warned(machine) == {"TSCATTER.index-range", "PA-0018", "PA-0021"}


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("axis", list(ScatterAxis))
@pytest.mark.parametrize("valid", [(3, 5), (8, 32), (5, 16)])
def test_a_pattern_spreads_the_valid_region_of_src(
    target: str, pattern: MaskPattern, axis: ScatterAxis, valid: tuple[int, int]
) -> None:
    """dst is cleared whole; its valid sizes play no part, and rows run into the next ones."""
    step, first = PATTERNS[pattern]
    with device(target):
        raw = Raw()
        dst, src = tile("Vec f32 8x40", 0, (2, 2)), tile("Vec f32 8x32", 8192, valid)
        raw.expect(0, np.zeros(8 * 40, np.float32))
        for row, col in np.ndindex(*valid):
            value = raw.get(8192 + (row * 32 + col) * 4, 1, np.float32)
            if axis == ScatterAxis.SCATTER_COL:
                raw.expect(((row * step + first) * 40 + col) * 4, value)
            else:
                raw.expect((row * 40 + col * step + first) * 4, value)
        TSCATTER[pattern, axis](dst, src)
        raw.check()


@pytest.mark.parametrize("target", DEVICES)
def test_the_full_pattern_copies_the_smaller_sizes(target: str) -> None:
    with device(target):
        raw = Raw()
        dst, src = tile("Vec f32 8x40", 0, (7, 10)), tile("Vec f32 8x32", 8192, (3, 20))
        for row in range(3):
            raw.expect(row * 160, raw.get(8192 + row * 128, 10, np.float32))
        TSCATTER[MaskPattern.P1111](dst, src)
        raw.check()


# ---- single elements -----------------------------------------------------------------------------


@pytest.mark.parametrize("target", DEVICES)
def test_single_elements_are_counted_from_the_base(target: str) -> None:
    with device(target) as machine:
        raw = Raw()
        raw.put(16 * 4 + 36, np.float32(3.5))
        data = tile("Vec f32 2x8", 0)
        assert data.GetValue(25) == 3.5
        data.SetValue(17, 2.5)
        raw.expect(17 * 4, np.float32(2.5))
        raw.check()
        assert warned(machine) == {"GETVAL.offset", "SETVAL.offset"}
