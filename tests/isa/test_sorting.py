"""TSORT32 and TMRGSORT against plain definitions over lists of records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import MrgSortExecutedNumList, device
from ptokit.base.diagnostics import ProgramError
from ptokit.base.dtypes import dtype
from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.machine.faults import PoisonRead
from tests.isa.tiles import call, defined, whole
from tests.operands import codes, flood, make

Record = tuple[float, int]
KINDS = ("f16", "f32")
EMPTY = set[str]()


def unpack(row: Array) -> list[Record]:
    """The records in a row of tile elements, bit for bit where it matters."""
    raw = row.tobytes()
    step = 8
    records: list[Record] = []
    for at in range(0, len(raw), step):
        value = np.frombuffer(raw, row.dtype, 1, at)[0]
        index = np.frombuffer(raw, np.uint32, 1, at + 4)[0]
        assert row.itemsize == 4 or raw[at + 2 : at + 4] == b"\0\0"
        records.append((float(value), int(index)))
    return records


def pack(records: list[Record], kind: str) -> Array:
    """A row of tile elements that holds these records."""
    words = np.zeros((len(records), 2), np.uint32)
    values = np.array([v for v, _ in records], dtype(kind).np)
    words[:, 0] = values.view(f"u{values.itemsize}")
    words[:, 1] = [i for _, i in records]
    return words.view(dtype(kind).np).reshape(1, -1)


# ---- TSORT32 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_tmp_that_is_not_needed_may_lie_anywhere(target: str) -> None:
    """Rows of whole runs do not touch it: it may reach beyond the end of the memory."""
    with device(target) as machine:
        end = machine.core.memory(TileType.Vec).nbytes
        dst, src = make("Vec f32 1x128", 0), make("Vec f32 1x64", 8192)
        idx, tmp = make("Vec u32 1x64", 16384), make("Vec f32 1x64", end - 32)
        src.fill(np.arange(64, dtype=np.float32).reshape(1, 64))
        idx.fill(np.arange(64, dtype=np.uint32).reshape(1, 64))
        call("TSORT32", dst, src, idx, tmp)
        records = unpack(dst.numpy()[0])
    assert [int(value) for value, _ in records] == [*range(31, -1, -1), *range(63, 31, -1)]


@given(data=st.data(), kind=st.sampled_from(KINDS), seed=st.integers(0, 999))
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "kirinx90"])
def test_runs_are_sorted_stably(target: str, data: st.DataObject, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cols = data.draw(st.integers(1, 100))
    one_row = data.draw(st.booleans())
    runs = -(-cols // 32)
    values = rng.choice(np.array([0, -0.0, 1, 2, -3, np.inf, -np.inf], dtype(kind).np), (3, cols))
    numbers = rng.integers(0, 1 << 32, (1 if one_row else 3, runs * 32), np.uint32)
    elements = 8 // dtype(kind).itemsize
    with device(target, mode="auto"):
        dst = make(f"Vec {kind} 3x{runs * 32 * elements}")
        src = make(f"Vec {kind} 3x128 valid 3x{cols}")
        idx = make(f"Vec u32 {len(numbers)}x{runs * 32}")
        tmp = make(f"Vec {kind} 1x128")
        src.fill(values)
        idx.fill(numbers)
        call("TSORT32", dst, src, idx, *([tmp] if cols % 32 or data.draw(st.booleans()) else []))
        got = dst.numpy()
    for row in range(3):
        index = numbers[0 if one_row else row]
        records = unpack(got[row])
        for run in range(runs):
            part = records[32 * run : 32 * run + 32]
            known = [
                (float(values[row, c]), int(index[c]))
                for c in range(32 * run, min(cols, 32 * run + 32))
            ]
            assert part[: len(known)] == sorted(known, key=lambda r: -r[0])
            pads = part[len(known) :]
            assert all(np.isnan(v) for v, _ in pads)
            assert [i for _, i in pads] == index[32 * run + len(known) : 32 * run + 32].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_all_bit_patterns(kind: str) -> None:
    """Positive NaN, numbers, negative NaN; the pad is the NaN the hardware uses."""
    element = dtype(kind)
    values = np.array([-np.inf, np.nan, 3, -np.nan, np.inf, -1], element.np)
    values = np.copysign(values, [-1, 1, 1, -1, 1, -1]).astype(element.np)
    with device("a5", mode="auto"):
        dst = make(f"Vec {kind} 1x{32 * 8 // element.itemsize}")
        src = make(f"Vec {kind} 1x32 valid 1x6")
        idx, tmp = make("Vec u32 1x32"), make(f"Vec {kind} 1x32")
        src.fill(values)
        idx.fill(np.arange(32))
        call("TSORT32", dst, src, idx, tmp)
        got = dst.numpy()[0]
    assert [i for _, i in unpack(got)][:6] == [1, 4, 2, 5, 0, 3]
    pad = got.view(f"u{element.itemsize}")[-8 // element.itemsize]
    assert pad == (0xFE00 if kind == "f16" else 0xFFC00000)


def test_unknown_indices_of_pads_stay_unknown() -> None:
    with device("a2a3", mode="auto"):
        dst, src = make("Vec f32 1x64"), make("Vec f32 1x32 valid 1x20")
        idx, tmp = make("Vec u32 1x32 valid 1x20"), make("Vec f32 1x32")
        src.fill(1)
        idx.fill(np.arange(20))
        call("TSORT32", dst, src, idx, tmp)
        expected = np.ones(64, bool)
        expected[41::2] = False  # the indices of the twelve records that fill the run up
        assert (defined(dst)[0] == expected).all()
        assert not defined(tmp).any()
        short = make("Vec u32 1x32 valid 1x19")
        short.fill(0)
        with pytest.raises(PoisonRead, match=r"idx\[0, 19\]"):
            call("TSORT32", dst, src, short, tmp)


def test_permissive_profile() -> None:
    """Integers sort too, ties go to the smaller index, a short run is not filled up."""
    with device("cpu", mode="auto"):
        dst, src, idx = make("Vec i32 1x64"), make("Vec i32 1x32 valid 1x3"), make("Vec u32 1x32")
        flood(dst)
        src.fill([[5, -7, 5]])
        idx.fill(np.arange(32)[::-1])
        call("TSORT32", dst, src, idx)
        got = dst.numpy()[0]
    assert got[:6].tolist() == [5, 29, 5, 31, -7, 30]
    assert (got[6:] == 0x5A5A5A5A).all()


@pytest.mark.parametrize(
    ("target", "operands", "expected"),
    [
        ("a2a3", ("Vec f32 1x64", "Vec f32 1x32", "Vec u32 1x32"), EMPTY),
        ("a2a3", ("Vec f16 1x64", "Vec f16 1x32", "Vec u32 1x32"), {"TSORT32.record-columns"}),
        ("a2a3", ("Vec f16 1x128", "Vec f32 1x32", "Vec u32 1x32"), {"SA-0028"}),
        ("a5", ("Vec f16 1x128", "Vec f32 1x32", "Vec u32 1x32"), {"SA-0022"}),
        ("a5", ("Vec f32 1x64", "Vec f32 1x32", "Vec i32 1x32"), {"SA-0058"}),
        (
            "a5",
            ("Vec f32 1x64", "Vec f32 1x32 valid 1x30", "Vec u32 1x32"),
            {"TSORT32.whole-runs"},
        ),
        (
            "a5",
            ("Vec f32 1x128", "Vec f32 1x64 valid 1x33", "Vec u32 1x64", "Vec f32 1x32"),
            {"TSORT32.tmp-size"},
        ),
    ],
)
def test_sort_rules(target: str, operands: tuple[str, ...], expected: set[str]) -> None:
    assert codes("TSORT32", target, *operands) == expected


def test_threshold_of_the_scratch_counts_elements_or_bytes() -> None:
    operands = ("Vec f32 1x8192", "Vec f32 1x4096 valid 1x4090", "Vec u32 1x4096", "Vec f32 1x32")
    assert codes("TSORT32", "a2a3", *operands) == {"TSORT32.tmp-size"}
    assert codes("TSORT32", "a5", *operands) == EMPTY


# ---- TMRGSORT ------------------------------------------------------------------------------------


def merge(lists: list[list[Record]], stop_early: bool) -> tuple[list[Record], list[int]]:
    """Take the greatest head, the first list on ties."""
    places, out = [0] * len(lists), []
    while any(p < len(records) for p, records in zip(places, lists, strict=True)):
        heads = [
            records[p][0] if p < len(records) else -np.inf
            for p, records in zip(places, lists, strict=True)
        ]
        left = [k for k, p in enumerate(places) if p < len(lists[k])]
        k = max(left, key=lambda n: (heads[n], -n))
        out.append(lists[k][places[k]])
        places[k] += 1
        if stop_early and places[k] == len(lists[k]):
            break
    return out, places


values = st.integers(-3, 3).map(float)


def lists_of(data: st.DataObject, count: int, ordered: bool) -> list[list[Record]]:
    made: list[list[Record]] = []
    for k in range(count):
        length = 4 * data.draw(st.integers(1, 5))
        heads = data.draw(st.lists(values, min_size=length, max_size=length))
        heads = sorted(heads, reverse=True) if ordered else heads
        made.append([(v, 100 * k + n) for n, v in enumerate(heads)])
    return made


@given(data=st.data(), kind=st.sampled_from(KINDS), count=st.integers(2, 4))
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("exhausted", [False, True])
@pytest.mark.parametrize("target", ["a2a3", "kirinx90", "cpu"])
def test_lists(target: str, exhausted: bool, data: st.DataObject, kind: str, count: int) -> None:
    """Also for lists that are not sorted, where the reference merges by the heads."""
    lists = lists_of(data, count, data.draw(st.booleans()))
    total = sum(map(len, lists))
    elements = 8 // dtype(kind).itemsize
    kept = data.draw(st.sampled_from([total, total // 2 // 4 * 4 or 4]))
    expected, taken = merge(lists, exhausted)
    with device(target, mode="auto"):
        dst = make(f"Vec {kind} 1x{kept * elements}")
        tmp = make(f"Vec {kind} 1x{total * elements}")
        sources = [make(f"Vec {kind} 1x{len(records) * elements}") for records in lists]
        for source, records in zip(sources, lists, strict=True):
            source.fill(pack(records, kind))
        executed = MrgSortExecutedNumList()
        call("TMRGSORT", dst, executed, tmp, *sources, template=(exhausted,))
        known = min(len(expected), kept)
        assert unpack(whole(dst).read()[0, : known * elements]) == expected[:known]
        assert (defined(dst)[0] == (np.arange(kept * elements) < known * elements)).all()
        if target == "cpu":
            assert sum(executed) == known
        elif exhausted:
            assert list(executed) == [*taken, 0, 0][:4]
        else:
            with pytest.raises(ProgramError, match="executed counts"):
                list(executed)
        assert not defined(tmp).any()


def test_undefined_rest_is_only_what_nothing_wrote_on_cpu() -> None:
    with device("cpu", mode="auto"):
        dst, tmp = make("Vec f32 1x16"), make("Vec f32 1x16")
        sources = [make("Vec f32 1x8") for _ in range(2)]
        for k, source in enumerate(sources):
            source.fill(pack([(9.0 - k, n) for n in range(4)], "f32"))
        flood(dst)
        call("TMRGSORT", dst, MrgSortExecutedNumList(), tmp, *sources, template=(True,))
        assert defined(dst).all()
        assert (whole(dst).read()[0, 8:].view("u4") == 0x5A5A5A5A).all()


@given(data=st.data(), kind=st.sampled_from(KINDS), groups=st.integers(1, 3))
@settings(max_examples=30, deadline=None)
@pytest.mark.parametrize("target", ["a2a3", "a5", "cpu"])
def test_blocks(target: str, data: st.DataObject, kind: str, groups: int) -> None:
    elements = 8 // dtype(kind).itemsize
    per_block = 64 // elements
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    blocks = [
        [(float(v), 1000 * b + n) for n, v in enumerate(-np.sort(rng.integers(-5, 5, per_block)))]
        for b in range(4 * groups)
    ]
    expected = [r for g in range(groups) for r in merge(blocks[4 * g : 4 * g + 4], False)[0]]
    with device(target, mode="auto"):
        dst, src = (make(f"Vec {kind} 1x{64 * 4 * groups}") for _ in range(2))
        src.fill(np.hstack([pack(block, kind) for block in blocks]))
        call("TMRGSORT", dst, src, 64)
        assert unpack(dst.numpy()[0]) == expected


def test_permissive_blocks_leave_an_odd_end_alone() -> None:
    with device("cpu", mode="auto"):
        dst, src = make("Vec f32 1x96"), make("Vec f32 1x96")
        flood(dst)
        src.fill(pack([(float(-n % 5), n) for n in range(48)], "f32"))
        call("TMRGSORT", dst, src, 16)  # four blocks of eight records make 64 elements
        assert (dst.numpy()[0, 64:].view("u4") == 0x5A5A5A5A).all()
        assert sorted(i for _, i in unpack(dst.numpy()[0, :64])) == list(range(32))


def merge_codes(target: str, *operands: str | None) -> set[str]:
    """Operands in the order of the record: dst, executed, tmp, four sources, blockLen."""
    return codes("TMRGSORT", target, *operands)


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030"])
def test_block_rules(target: str) -> None:
    """Assertions of A2/A3; elsewhere nothing is asked of blocks but that they hold something."""

    def asserted(*ids: str) -> set[str]:
        return set(ids) if target == "a2a3" else EMPTY

    def broken(cols: int, length: int) -> set[str]:
        tile = f"Vec f32 1x{cols}"
        return merge_codes(target, tile, None, None, tile, None, None, None, str(length))

    assert broken(512, 64) == EMPTY
    assert broken(512, 128) == EMPTY
    assert broken(512, 32) == asserted("PA-0001")
    assert broken(384, 64) == asserted("PA-0003")
    assert broken(512, 192) == asserted("PA-0003", "PA-0004")
    assert broken(512, 0) == {"TMRGSORT.block"}


def test_list_rules() -> None:
    short, long = "Vec f32 1x64", "Vec f32 1x128"
    executed = "new MrgSortExecutedNumList"
    assert merge_codes("a5", long, executed, long, short, short) == EMPTY
    assert merge_codes("a5", long, executed, short, short, short) == {"TMRGSORT.tmp-columns"}
    assert merge_codes("a5", long, executed, long, short, "Vec f32 2x32") == {"SA-0278"}
    assert merge_codes("a5", long, executed, long, short, "Vec f16 1x64") == {"SA-0275"}
    half: Any = "Vec f32 1x16384"
    whole_memory = merge_codes("kirin9030", half, executed, "Vec f32 1x32768", half, half)
    assert whole_memory == {"SA-0043"}
    crowded = merge_codes("a2a3", half, executed, "Vec f32 1x32768", half, half)
    assert crowded == {"PA-0008"}


def test_executed_counts_by_name() -> None:
    counts = MrgSortExecutedNumList()
    assert repr(counts) == "<executed ?>"
    counts.set([3, 5])
    names = [getattr(counts, f"mrgSortList{k}") for k in range(4)]
    assert names == [3, 5, 0, 0] == list(counts)
