"""TGATHER, TGATHERB and TSCATTER against plain definitions over flat storage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import device
from ptokit.base.diagnostics import ProgramError
from ptokit.base.dtypes import DType
from ptokit.base.enums import CmpMode, GatherAxis, MaskPattern, ScatterAxis
from ptokit.base.layout import Array
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.devices import TARGETS
from ptokit.machine.faults import PoisonRead
from tests.isa.tiles import call, defined, same_bits, whole
from tests.operands import codes, flood, make, noise

PATTERNS = [p for p in MaskPattern if p != MaskPattern.P1111]
EMPTY = set[str]()


def fill_all(tile: Any) -> Array:
    """Random bits everywhere, padding included; the contents in memory order."""
    values = noise(tile.spec.dtype, (tile.spec.rows, tile.spec.cols))
    whole(tile).write(values)
    whole(tile).mark_defined()
    return values.reshape(-1)


def flat(tile: Any) -> Array:
    return whole(tile).read().reshape(-1)


def chosen(pattern: MaskPattern, extent: int) -> list[int]:
    """The positions a pattern means, by its name: digits from the right."""
    digits = pattern.name[:0:-1]
    return [p for p in range(extent) if digits[p % len(digits)] == "1"]


def kinds_of(name: str, target: str) -> list[DType]:
    (group,) = INSTRUCTIONS[name].types
    return sorted((combo[0] for combo in group.allowed[target]), key=str)


# ---- TGATHER by index ----------------------------------------------------------------------------


def index_kinds(target: str, kind: DType) -> list[str]:
    if target == "a2a3" or kind.itemsize > 2:
        return ["i32", "u32"]
    if kind.itemsize == 1:
        return [] if "kirin" in target else ["i16", "u16"]
    return ["i16", "u16", "i32", "u32"]


@given(data=st.data(), rows=st.integers(1, 6), cols=st.integers(1, 30))
@settings(max_examples=80, deadline=None)
@pytest.mark.parametrize("target", TARGETS)
def test_by_index(target: str, data: st.DataObject, rows: int, cols: int) -> None:
    """An index counts the elements of src0 in memory order, padding included."""
    legal = [(k, i) for k in kinds_of("TGATHER", target) for i in index_kinds(target, k)]
    kind, index = data.draw(st.sampled_from(legal))
    with device(target, mode="auto"):
        src = make(f"Vec {kind.name} 7x64 valid 5x40")
        dst = make(f"Vec {kind.name} 8x32 valid {rows}x{cols}")
        where, tmp = (make(f"Vec {index} 8x64 valid {rows}x{cols}") for _ in range(2))
        contents = fill_all(src)
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        places = rng.integers(0, 7 * 64, (rows, cols))
        where.fill(places)
        call("TGATHER", dst, src, where, tmp)
        assert same_bits(dst.numpy().view(kind.uint), contents[places].view(kind.uint))


def test_only_named_elements_must_be_defined() -> None:
    with device("a2a3", mode="auto"):
        src, dst = make("Vec f32 4x16 valid 4x10"), make("Vec f32 1x8 valid 1x3")
        where, tmp = make("Vec i32 1x8 valid 1x3"), make("Vec i32 1x8 valid 1x3")
        src.fill(np.arange(40).reshape(4, 10))
        where.fill([[0, 16, 57]])
        call("TGATHER", dst, src, where, tmp)
        assert dst.numpy().tolist() == [[0, 10, 39]]
        where.fill([[0, 16, 58]])
        with pytest.raises(PoisonRead, match=r"src0\[3, 10\]"):
            call("TGATHER", dst, src, where, tmp)


@pytest.mark.parametrize("wrong", [-1, 64])
def test_index_out_of_range(wrong: int) -> None:
    for target in ("a5", "cpu"):
        with device(target, mode="auto"):
            src, dst = make("Vec f32 4x16"), make("Vec f32 1x8")
            where, tmp = make("Vec i32 1x8"), make("Vec i32 1x8")
            src.fill(7)
            where.fill([[1, 2, wrong, 3, 4, 5, 6, 7]])
            if target == "cpu":
                call("TGATHER", dst, src, where, tmp)
                assert dst.numpy().tolist() == [[7, 7, 0, 7, 7, 7, 7, 7]]
                continue
            with pytest.raises(ProgramError) as error:
                call("TGATHER", dst, src, where, tmp)
            (found,) = error.value.diagnostics
            assert (found.code, found.got) == (
                "TGATHER.index-range",
                (("src1[0, 2]", str(wrong)),),
            )


# ---- TGATHER by pattern --------------------------------------------------------------------------


@given(data=st.data(), rows=st.integers(1, 6), cols=st.integers(1, 40))
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("target", TARGETS)
def test_columns_by_pattern(target: str, data: st.DataObject, rows: int, cols: int) -> None:
    """Rows are packed one after the other; what lies past stays as it was."""
    kind = data.draw(st.sampled_from(kinds_of("TGATHER", target)))
    pattern = data.draw(st.sampled_from(list(MaskPattern)))
    with device(target, mode="auto"):
        src = make(f"Vec {kind.name} 8x64 valid {rows}x{cols}")
        dst = make(f"Vec {kind.name} 8x64")
        fill_all(src)
        before = fill_all(dst).copy()
        call("TGATHER", dst, src, template=(pattern,))
        values = src.numpy().view(kind.uint)
        expected = before.view(kind.uint)
        step = len(chosen(pattern, 64))
        place = 0
        for row in range(rows):
            if kind.itemsize == 8:  # the 64-bit kernels keep the rows of dst apart
                place = row * step
            for col in chosen(pattern, cols):
                expected[place] = values[row, col]
                place += 1
        assert (flat(dst).view(kind.uint) == expected).all()


def test_columns_define_only_what_they_write() -> None:
    with device("a5", mode="auto"):
        src, dst = make("Vec f32 2x16"), make("Vec i32 4x16")
        src.fill(1.0)
        call("TGATHER", dst, src, template=(MaskPattern.P0100,))
        assert (defined(dst).reshape(-1) == (np.arange(64) < 8)).all()
        assert (flat(dst)[:8] == 0x3F800000).all()  # bits are copied
        wide, apart = make("Vec i64 2x8 valid 2x4"), make("Vec i64 4x8")
        wide.fill(1)
        call("TGATHER", apart, wide, template=(MaskPattern.P0101,))
        assert np.flatnonzero(defined(apart)).tolist() == [0, 1, 4, 5]  # rows are 8 / 2 apart


@pytest.mark.parametrize("pattern", PATTERNS)
def test_rows_by_pattern(pattern: MaskPattern) -> None:
    times = 64 // len(chosen(pattern, 64))
    rows = 8 // times
    axis = GatherAxis.GATHER_COL
    for target in ("a2a3", "a5", "cpu"):
        with device(target, mode="auto"):
            src = make("Vec f32 32x16 valid 8x10")
            dst = make(f"Vec f32 8x16 valid {rows}x10")
            fill_all(src)
            flood(dst)
            call("TGATHER", dst, src, template=(pattern, axis))
            expected = src.numpy()[chosen(pattern, 8)]
            assert same_bits(dst.numpy(), expected)
            # Devices go on over all rows of src; what they write there is garbage.
            assert defined(dst)[rows:, :10].all() == (target == "cpu")
            assert defined(dst)[:, 10:].all()
    assert codes("TGATHER", "kirinx90", "Vec f32 8x16", "Vec f32 32x16", maskPattern=pattern,
                 gatherType=axis) == {"TGATHER.pattern-axis"}  # fmt: skip


# ---- TGATHER by comparison -----------------------------------------------------------------------


def compared(target: str, kind: str, k_kind: str, values: Any, ks: Any, mode: CmpMode) -> Any:
    """Numbers and counts for a source of two rows, of which 64 columns are valid."""
    with device(target, mode="auto"):
        src, dst = make(f"Vec {kind} 2x128 valid 2x64"), make("Vec u32 2x64")
        k, count, tmp = make(f"Vec {k_kind} 1x16"), make("Vec u32 1x8"), make("Vec u32 8x128")
        src.fill(values)
        k.fill(np.resize(ks, 16))
        call("TGATHER", dst, src, k, count, tmp, 1000, template=(mode,))
        counts = whole(count).read()[0, :2]
        assert (defined(dst) == (np.arange(64) < counts[:, None])).all()
        assert defined(count)[0].tolist() == [True] * 2 + [False] * 6
        return [whole(dst).read()[row, :n].tolist() for row, n in enumerate(counts)]


def test_numbering_of_hits() -> None:
    """a2a3 counts the padding columns of src0, a5 rows rounded up to 64."""
    values = np.zeros((2, 64), "f4")
    values[0, [3, 60]] = 9
    values[1, 5] = 9
    expected = {"a2a3": [[1003, 1060], [1133]], "a5": [[1003, 1060], [1069]]}
    for target, numbers in expected.items():
        kind = "i32" if target == "a2a3" else "u32"
        assert compared(target, "f32", kind, values, [8, 8], CmpMode.GT) == numbers
        assert compared(target, "f32", kind, values, [9, 8], CmpMode.EQ) == [numbers[0], []]


def test_thresholds_are_signed_on_a2a3_and_unsigned_on_a5() -> None:
    values = np.full((2, 64), 5, "f4")
    values[:, 1] = -2
    rest = [[1000 + n for n in range(64) if n != 1], []]
    got = compared("a2a3", "f32", "i32", values, [-2, 7], CmpMode.GT)
    assert got == rest
    got = compared("a5", "f32", "u32", values, [5, 7], CmpMode.GT)
    assert got == [[1001], [1065]]  # -2 looks large
    halves = compared("a5", "f16", "u16", values, [0xFFFE, 7], CmpMode.GT)
    assert halves == rest  # halves compare as numbers, with a signed threshold
    rounded = np.full((2, 64), 2.5, "f4")
    assert compared("a5", "f32", "u32", rounded, [2, 3], CmpMode.EQ) == [
        [1000 + n for n in range(64)],
        [],
    ]


def test_hits_must_fit_into_their_row() -> None:
    with device("a2a3", mode="auto"):
        src, dst = make("Vec f32 1x64"), make("Vec u32 1x32")
        k, count, tmp = make("Vec i32 1x8"), make("Vec u32 1x8"), make("Vec u32 8x128")
        src.fill(1)
        k.fill(0)
        with pytest.raises(ProgramError) as error:
            call("TGATHER", dst, src, k, count, tmp, 0, template=(CmpMode.GT,))
    (found,) = error.value.diagnostics
    assert found.code == "TGATHER.hits"
    assert dict(found.got)["hits"] == "64"


def test_comparison_does_not_exist_on_kirin() -> None:
    operands = ("Vec i32 8x64", "Vec f32 8x64", None, "Vec i32 1x8", "Vec i32 1x8", "Vec u32 8x88")
    for target in ("kirin9030", "kirinx90"):
        assert codes("TGATHER", target, *operands, "0") == {"TGATHER.compare-available"}
    assert codes("TGATHER", "a2a3", *operands, "0") == EMPTY
    less = codes("TGATHER", "a2a3", *operands, "0", cmpMode=CmpMode.LT)
    assert less == {"TGATHER.compare-mode"}


# ---- TGATHERB ------------------------------------------------------------------------------------


@given(data=st.data(), rows=st.integers(1, 5))
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("target", TARGETS)
def test_blocks(target: str, data: st.DataObject, rows: int) -> None:
    kind = data.draw(st.sampled_from(kinds_of("TGATHERB", target)))
    per_block = 32 // kind.itemsize
    cols = 8 * per_block if target == "a2a3" else 4 * data.draw(st.integers(1, 2 * per_block))
    with device(target, mode="auto"):
        src = make(f"Vec {kind.name} 6x{8 * per_block}")
        dst = make(f"Vec {kind.name} 8x{8 * per_block} valid {rows}x{cols}")
        offset = make(f"Vec u32 8x8 valid {rows}x8")
        contents = fill_all(src).view(np.uint8)
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        places = 32 * rng.integers(0, 48, (rows, 8))
        offset.fill(places)
        call("TGATHERB", dst, src, offset)
        expected = np.stack([np.concatenate([contents[o : o + 32] for o in row]) for row in places])
        got = dst.numpy().view(kind.uint)
        assert (got == expected.view(kind.uint)[:, :cols]).all()


@pytest.mark.parametrize("wrong", [16, 256, 1 << 31])
def test_offsets_are_checked_on_devices(wrong: int) -> None:
    for target in ("a5", "cpu"):
        with device(target, mode="auto"):
            src, dst = make("Vec f32 1x64"), make("Vec f32 1x64")
            offset = make("Vec u32 1x8")
            src.fill(np.arange(64))
            flood(dst)
            offset.fill([[0, 32, 64, wrong, 0, 0, 0, 0]])
            if target == "cpu":
                call("TGATHERB", dst, src, offset)
                block = dst.numpy()[0, 24:32]
                unaligned = np.arange(4, 12).tolist()
                untouched = np.full(8, 0x5A5A5A5A, "u4").view("f4").tolist()
                assert block.tolist() == (unaligned if wrong == 16 else untouched)
                continue
            with pytest.raises(ProgramError) as error:
                call("TGATHERB", dst, src, offset)
            assert error.value.diagnostics[0].code == "TGATHERB.offset-range"


def test_only_copied_blocks_must_be_defined() -> None:
    with device("a2a3", mode="auto"):
        src, dst = make("Vec f32 2x64 valid 1x64"), make("Vec f32 1x64")
        offset = make("Vec u32 1x8")
        src.fill(3)
        offset.fill(32 * np.arange(8))
        call("TGATHERB", dst, src, offset)
        assert (dst.numpy() == 3).all()
        offset.fill(32 * np.arange(1, 9))
        with pytest.raises(PoisonRead):
            call("TGATHERB", dst, src, offset)


def test_block_rules() -> None:
    operands = ("Vec f32 4x64", "Vec f32 4x64", "Vec u32 4x8")
    assert codes("TGATHERB", "a2a3", *operands) == EMPTY
    short = ("Vec f32 4x64 valid 4x48", *operands[1:])
    assert codes("TGATHERB", "a2a3", *short) == {"TGATHERB.whole-registers"}
    assert codes("TGATHERB", "a5", *short) == EMPTY
    few = (*operands[:2], "Vec u32 4x8 valid 4x7")
    assert codes("TGATHERB", "a5", *few) == {"TGATHERB.offset-columns"}
    wide = ("Vec f32 4x96", "Vec f32 4x64", "Vec u32 4x12")
    assert codes("TGATHERB", "a5", *wide) == EMPTY
    assert codes("TGATHERB", "kirin9030", *wide) == {"TGATHERB.eight-offsets"}


# ---- TSCATTER ------------------------------------------------------------------------------------


@given(data=st.data(), rows=st.integers(1, 6), cols=st.integers(1, 30))
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("target", TARGETS)
def test_scatter_by_index(target: str, data: st.DataObject, rows: int, cols: int) -> None:
    """All of dst becomes zero first; of equal indices the last in row order wins."""
    kind = data.draw(st.sampled_from(kinds_of("TSCATTER", target)))
    index = data.draw(st.sampled_from("iu")) + ("16" if kind.itemsize <= 2 else "32")
    with device(target, mode="auto"):
        dst = make(f"Vec {kind.name} 6x32 valid 2x7")
        src = make(f"Vec {kind.name} 6x32")
        where = make(f"Vec {index} 8x32 valid {rows}x{cols}")
        fill_all(dst)
        fill_all(src)
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        places = rng.integers(0, 6 * 32, (rows, cols))
        where.fill(places)
        call("TSCATTER", dst, src, where)
        expected = np.zeros(6 * 32, kind.uint)
        for place in np.ndindex(places.shape):
            expected[places[place]] = src.numpy()[place].view(kind.uint)
        assert (flat(dst).view(kind.uint) == expected).all()
        assert defined(dst).all()


@pytest.mark.parametrize("target", ["a2a3", "a5", "cpu"])
@pytest.mark.parametrize("wrong", [-1, 128])
def test_scatter_out_of_range(target: str, wrong: int) -> None:
    with device(target, mode="auto"):
        dst, src, where = make("Vec f32 2x64"), make("Vec f32 1x8"), make("Vec i32 1x8")
        src.fill(1)
        where.fill([[0, 1, wrong, 2, 3, 4, 5, 6]])
        with pytest.raises(ProgramError) as error:
            call("TSCATTER", dst, src, where)
    assert error.value.diagnostics[0].code == "TSCATTER.index-range"


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "cpu"])
def test_scatter_by_pattern(target: str, pattern: MaskPattern) -> None:
    times = 64 // len(chosen(pattern, 64))
    for axis in ScatterAxis:
        with device(target, mode="auto"):
            if axis == ScatterAxis.SCATTER_ROW:
                src = make("Vec f16 4x16 valid 3x10")
                dst = make(f"Vec f16 8x64 valid 3x{10 * times}")
            else:
                src = make("Vec f16 4x16 valid 2x10")
                dst = make(f"Vec f16 8x64 valid {2 * times}x10")
            fill_all(src)
            flood(dst)
            call("TSCATTER", dst, src, template=(pattern, axis))
            expected = np.zeros((8, 64), "u2")
            if target == "cpu":  # the simulator clears the valid region only
                expected[...] = 0x5A5A
                expected[: dst.vr, : dst.vc] = 0
            values = src.numpy().view("u2")
            if axis == ScatterAxis.SCATTER_ROW:
                expected[:3, chosen(pattern, 10 * times)] = values
            else:
                expected[chosen(pattern, 2 * times), :10] = values
            assert (whole(dst).read().view("u2") == expected).all()


def test_full_pattern_is_a_copy() -> None:
    with device("a5", mode="auto"):
        dst, src = make("Vec f32 4x16 valid 2x10"), make("Vec f32 4x16 valid 2x10")
        fill_all(src)
        flood(dst)
        call("TSCATTER", dst, src)
        assert same_bits(dst.numpy(), src.numpy())
        assert (whole(dst).read()[2:].view("u4") == 0x5A5A5A5A).all()


def test_scatter_rules() -> None:
    tile, index = "Vec f32 8x64", "Vec i32 8x64"
    assert codes("TSCATTER", "a2a3", tile, tile, index) == EMPTY
    assert codes("TSCATTER", "a2a3", tile, tile, "Vec i16 8x64") == {"TSCATTER.index-size"}
    assert codes("TSCATTER", "a2a3", tile, tile, tile) == {"SA-0325"}
    narrow = codes("TSCATTER", "a5", tile, "Vec f32 8x64 valid 8x63", index)
    assert narrow == {"PA-0018"}
    assert codes("TSCATTER", "a5", tile, "Vec f32 8x64 valid 7x64", index) == {"PA-0021"}
    half = "Vec f32 8x32"
    pattern = MaskPattern.P0101
    assert codes("TSCATTER", "a5", tile, half, maskPattern=pattern) == EMPTY
    assert codes("TSCATTER", "a5", tile, tile, maskPattern=pattern) == {"TSCATTER.column-pattern"}
    assert codes("TSCATTER", "a5", tile, half) == {"TSCATTER.full-pattern"}
    bytes_ = ("Vec i8 8x64", "Vec i8 4x64")
    axis = {"maskPattern": pattern, "ScatterType": ScatterAxis.SCATTER_COL}
    assert codes("TSCATTER", "a2a3", *bytes_, **axis) == {"TSCATTER.byte-rows"}
    assert codes("TSCATTER", "a5", *bytes_, **axis) == EMPTY


def test_patterns_are_read_from_the_right() -> None:
    """The names as these tests read them, against the words of the pages."""
    assert chosen(MaskPattern.P0101, 6) == [0, 2, 4]
    assert chosen(MaskPattern.P1010, 6) == [1, 3, 5]
    assert chosen(MaskPattern.P0010, 8) == [1, 5]
