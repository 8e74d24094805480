"""MGATHER and MSCATTER against loops that spell their definitions out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import *
from ptokit.base.dtypes import dtype
from tests.operands import bits, codes, flood, make, noise, whole

ROW, ELEM = Coalesce.Row, Coalesce.Elem
KINDS = ["i8", "u16", "f16", "bf16", "f32"]
TARGETS = ["a2a3", "a5", "cpu"]


def remap(index: int, entries: int, mode: str, target: str) -> int | None:
    """What an index means; None: nothing. The index is unsigned."""
    unsigned = index % (1 << (64 if target == "cpu" else 32))
    if mode == "Clamp":
        return min(unsigned, entries - 1)
    if mode == "Wrap":
        return unsigned % entries
    return unsigned if unsigned < entries else None


def indices(text: str, values: Any) -> Any:
    tile = make(text)
    tile.fill(np.asarray(values, np.int32).reshape(tile.vr, tile.vc))
    return tile


indexes = st.lists(st.integers(-5, 60) | st.sampled_from([-(2**31), 2**31 - 1]), min_size=40)


# ---- gather ------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(TARGETS),
    st.sampled_from(["Clamp", "Wrap", "Zero"]),
    indexes,
)
def test_gather_rows(kind: str, target: str, mode: str, chosen: list[int]) -> None:
    with device(target, mode="auto"):
        dst, table = make(f"Vec {kind} 16x64 valid 13x50"), make(f"GM {kind} 20x50")
        flood(dst)
        idx = indices("Vec i32 1x16 valid 1x13", chosen[:13])
        MGATHER[ROW, GatherOOB[mode]](dst, table, idx)
        rows, got = bits(table.numpy()[0, 0, 0]), bits(dst.numpy())
        for r in range(13):
            k = remap(chosen[r], 20, mode, target)
            assert (got[r] == (0 if k is None else rows[k])).all()
        assert (whole(dst).read().view(np.uint8)[13:] == 0x5A).all()


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(TARGETS),
    st.sampled_from(["Clamp", "Wrap", "Zero"]),
    indexes,
)
def test_gather_elements(kind: str, target: str, mode: str, chosen: list[int]) -> None:
    with device(target, mode="auto"):
        dst, table = make(f"Vec {kind} 8x32 valid 5x8"), make(f"GM {kind} 3x17")
        idx = indices("Vec i32 8x8 valid 5x8", chosen[:40])
        MGATHER[ELEM, GatherOOB[mode]](dst, table, idx)
        flat, got = bits(table.numpy()).reshape(-1), bits(dst.numpy()).reshape(-1)
        for i in range(40):
            k = remap(chosen[i], 51, mode, target)
            assert got[i] == (0 if k is None else flat[k])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("coalesce", [ROW, ELEM])
@pytest.mark.parametrize("bad", [-1, 20 * 32])
def test_an_index_beyond_the_table_is_an_error_by_default(
    target: str, coalesce: Coalesce, bad: int
) -> None:
    with device(target, mode="auto"):
        text = "Vec i32 1x16" if coalesce == ROW else "Vec i32 16x32"
        idx = make(text)
        idx.fill(0)
        idx.storage.data.view(np.int32)[3] = bad
        with pytest.raises(ProgramError) as error:
            MGATHER[coalesce](make("Vec f32 16x32"), make("GM f32 20x32"), idx)
        assert error.value.codes == ("MGATHER.index-range",)
        assert str(bad) in str(error.value)


def test_default_mode_is_rows_on_devices_and_elements_on_the_permissive_profile() -> None:
    for target, text in (
        ("a2a3", "Vec i32 1x16"),
        ("a5", "Vec i32 1x16"),
        ("cpu", "Vec i32 16x32"),
    ):
        with device(target, mode="auto"):
            idx = make(text)
            idx.fill(2)
            dst, table = make("Vec f32 16x32"), make("GM f32 20x32")
            MGATHER(dst, table, idx)
            row = bits(table.numpy())[0, 0, 0]
            assert (bits(dst.numpy()) == (row[0, 2] if target == "cpu" else row[2])).all()


def test_a2a3_counts_the_rows_of_all_matrices_and_honours_their_stride() -> None:
    memory = noise(float32, (4, 6, 40))
    kind = GlobalTensor[float32, Shape[1, 1, 4, 6, 32], Stride[960, 960, 240, 40, 1]]
    with device("a2a3", mode="auto"):
        dst = make("Vec f32 8x32")
        MGATHER[ROW, GatherOOB.Clamp](
            dst, kind(memory), indices("Vec i32 1x8", [0, 5, 6, 7, 23, 24, 99, 12])
        )
        rows = bits(memory.reshape(24, 40))[:, :32]
        assert (bits(dst.numpy()) == rows[[0, 5, 6, 7, 23, 23, 23, 12]]).all()


def test_elements_ignore_the_strides_of_an_nd_table() -> None:
    memory = noise(float32, (4, 40))
    kind = GlobalTensor[float32, Shape[1, 1, 1, 4, 32], Stride[160, 160, 160, 40, 1]]
    with device("a2a3", mode="auto"):
        dst, idx = make("Vec f32 1x8"), indices("Vec i32 1x8", [0, 31, 32, 39, 40, 41, 100, 127])
        MGATHER[ELEM](dst, kind(memory), idx)
        assert (bits(dst.numpy())[0] == bits(memory).reshape(-1)[idx.numpy()[0]]).all()


def test_a2a3_nz_table() -> None:
    with device("a2a3", mode="auto"):
        table = make("GM f16 32x64 NZ")
        matrix = bits(table.numpy()).transpose(2, 3, 0, 1, 4).reshape(32, 64)
        dst = make("Vec f16 16x64 NZ valid 5x16")
        flood(dst)
        MGATHER[ROW, GatherOOB.Zero](
            dst, table, indices("Vec i32 1x8 valid 1x5", [3, 31, 32, 0, 9])
        )
        got = bits(whole(dst).read())
        expected = np.zeros((16, 64), np.uint16)  # Zero clears the tile first
        expected[:5] = matrix[[3, 31, 0, 0, 9]]  # whole rows, beyond the valid columns
        expected[2] = 0
        assert (got == expected).all()
        one = make("Vec f16 16x16 NZ valid 1x8")
        MGATHER[ELEM](one, table, indices("Vec i32 1x8", [0, 63, 64, 65, 2047, 100, 5, 700]))
        assert (
            bits(one.numpy())[0] == matrix.reshape(-1)[[0, 63, 64, 65, 2047, 100, 5, 700]]
        ).all()


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_rows_into_a_mat_tile(target: str) -> None:
    with device(target, mode="auto"):
        dst, table = make("Mat f16 32x64 NZ valid 20x50"), make("GM f16 30x50")
        flood(dst)
        idx = GlobalTensor(np.arange(29, 9, -1, dtype=np.int32))
        MGATHER(dst, table, idx)
        assert (bits(dst.numpy()) == bits(table.numpy())[0, 0, 0, 29:9:-1]).all()
        assert (bits(whole(dst).read())[20:] == 0x5A5A).all()


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_elements_into_a_mat_tile_go_through_scratch(target: str) -> None:
    chosen = np.random.default_rng(3).integers(0, 640, (20, 50)).astype(np.int32)
    scratch = np.full(2048, 7, np.float16)
    with device(target, mode="auto"):
        dst, table = make("Mat f16 32x64 NZ valid 20x50"), make("GM f16 16x40")
        flood(dst)
        MGATHER[ELEM](dst, table, GlobalTensor(chosen), GlobalTensor(scratch))
        expected = np.zeros((32, 64), np.uint16)
        expected[:20, :50] = bits(table.numpy()).reshape(-1)[chosen]
        assert (bits(whole(dst).read()) == expected).all()
        assert (bits(scratch) == dst.storage.data[: 2048 * 2].view(np.uint16)).all()


@pytest.mark.parametrize(
    ("target", "dst", "table", "idx", "attrs", "code"),
    [
        ("a2a3", "Vec f32 16x64", "GM i32 20x64", "Vec i32 1x16", {}, "table-dtype"),
        ("a2a3", "Vec f32 16x64", "GM f32 20x64", "Vec i16 1x16", {}, "index-dtype"),
        ("a2a3", "Vec f32 16x64", "GM f32 20x64", "Vec i32 16x64", {}, "row-index"),
        (
            "a2a3",
            "Vec f32 16x64",
            "GM f32 20x64",
            "Vec i32 1x16",
            {"coalesce": ELEM},
            "element-index",
        ),
        ("a2a3", "Vec f32 16x64 DN", "GM f32 20x64", "Vec i32 1x16", {}, "layout-pair"),
        ("a2a3", "Vec f32 16x64", "GM f32 20x32", "Vec i32 1x16", {}, "row-width"),
        ("a5", "Vec f32 16x64", "GM f32 1x1x1x20x70", "Vec i32 1x16", {}, "dense-rows"),
        ("a5", "Vec f32 16x64", "GM f32 20x64", "Vec i32 16x8 valid 16x1", {}, "index-order"),
        ("a5", "Vec f32 16x64 NZ", "GM f32 20x64", "Vec i32 1x16", {}, "plain-tile"),
        ("a2a3", "Mat f16 16x64 NZ", "GM f16 20x64", "Vec i32 1x16", {}, "mat-index"),
        ("a2a3", "Mat f16 16x64", "GM f16 20x64", "GM i32 1x16", {}, "mat-tile"),
    ],
)
def test_gathers_that_are_refused(
    target: str, dst: str, table: str, idx: str, attrs: dict[str, Any], code: str
) -> None:
    attrs = {"coalesce": ROW} | attrs
    assert f"MGATHER.{code}" in codes("MGATHER", target, dst, table, idx, **attrs)


def test_a5_takes_a_column_of_indices() -> None:
    with device("a5", mode="auto"):
        dst, table = make("Vec f32 16x64"), make("GM f32 20x64")
        idx = indices("Vec i32 16x1 DN", range(16))
        MGATHER[ROW](dst, table, idx)
        assert (bits(dst.numpy()) == bits(table.numpy())[0, 0, 0, :16]).all()


@pytest.mark.parametrize("target", ["kirin9030", "kirinx90"])
def test_kirin_has_neither(target: str) -> None:
    for name in ("MGATHER", "MSCATTER"):
        assert codes(name, target) == {f"{name}.unavailable"}


# ---- scatter -----------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(TARGETS),
    st.sampled_from(["Skip", "Clamp", "Wrap"]),
    st.booleans(),
    indexes,
)
def test_scatter_of_duplicates_lets_the_last_win(
    kind: str, target: str, mode: str, rows: bool, chosen: list[int]
) -> None:
    with device(target, mode="auto"):
        src = make(f"Vec {kind} 8x32 valid 5x8")
        src.fill(noise(dtype(kind), (5, 8)))
        table = make(f"GM {kind} 7x8")
        expected = bits(table.numpy())[0, 0, 0].copy()
        text = "Vec i32 1x8 valid 1x5" if rows else "Vec i32 8x8 valid 5x8"
        count = 5 if rows else 40
        MSCATTER[ROW if rows else ELEM, ScatterAtomicOp.None_, ScatterOOB[mode]](
            table, src, indices(text, chosen[:count])
        )
        values = bits(src.numpy())
        flat = expected.reshape(-1)
        for i in range(count):
            k = remap(chosen[i], 7 if rows else 56, mode, target)
            if k is None:
                continue
            if rows:
                expected[k] = values[i]
            else:
                flat[k] = values.reshape(-1)[i]
        assert (bits(table.numpy())[0, 0, 0] == expected).all()


OPERATIONS = {"Add": np.add, "Max": np.maximum, "Min": np.minimum}


@pytest.mark.parametrize(
    ("target", "op", "kind"),
    [("a2a3", "Add", k) for k in ("i8", "i16", "i32", "f16", "bf16", "f32")]
    + [("a5", "Add", k) for k in ("i32", "u32", "f32", "f16", "bf16")]
    + [("a5", op, k) for op in ("Max", "Min") for k in ("i32", "u32", "f32")],
)
@pytest.mark.parametrize("coalesce", [ROW, ELEM])
def test_atomic_operations_accumulate(target: str, op: str, kind: str, coalesce: Coalesce) -> None:
    rng = np.random.default_rng(5)
    np_kind = dtype(kind).np
    with device(target, mode="auto"):
        src = make(f"Vec {kind} 8x32")
        src.fill(rng.integers(0, 90, (8, 32)).astype(np_kind))
        table = rng.integers(0, 90, (4, 32)).astype(np_kind)
        expected = table.copy()
        count = 8 if coalesce == ROW else 256
        chosen = rng.integers(0, 4 if coalesce == ROW else 128, count)
        text = "Vec i32 1x8" if coalesce == ROW else "Vec i32 8x32"
        MSCATTER[coalesce, ScatterAtomicOp[op]](GlobalTensor(table), src, indices(text, chosen))
        values, apply = src.numpy(), OPERATIONS[op]
        for i, k in enumerate(chosen):
            if coalesce == ROW:
                expected[k] = apply(expected[k], values[i])
            else:
                flat = expected.reshape(-1)
                flat[k] = apply(flat[k], values.reshape(-1)[i])
        assert (bits(table) == bits(expected)).all()


def test_conflict_default_is_legal_on_a5_only() -> None:
    types = ("GM f32 16x64", "Vec f32 16x64", "Vec i32 16x64")
    for conflict in ScatterConflict:
        attrs = {"coalesce": ELEM, "scatterConflict": conflict}
        assert not codes("MSCATTER", "a5", *types, **attrs)
        assert not codes("MSCATTER", "cpu", *types, **attrs)
        assert codes("MSCATTER", "a2a3", *types, **attrs) == {"MSCATTER.conflict-target"}


@pytest.mark.parametrize(
    ("target", "kind", "op", "code"),
    [
        ("a2a3", "u8", "Add", "add-dtype"),
        ("a5", "i8", "Add", "add-dtype"),
        ("a5", "f16", "Max", "pick-dtype"),
        ("a2a3", "f32", "Min", "pick-target"),
    ],
)
def test_atomic_operations_that_are_refused(target: str, kind: str, op: str, code: str) -> None:
    types = (f"GM {kind} 16x64", f"Vec {kind} 16x64", "Vec i32 16x64")
    attrs = {"coalesce": ELEM, "scatterAtomicOp": ScatterAtomicOp[op]}
    assert codes("MSCATTER", target, *types, **attrs) == {f"MSCATTER.{code}"}


def test_a2a3_scatters_whole_rows_of_an_nz_table() -> None:
    with device("a2a3", mode="auto"):
        table, src = make("GM f16 32x32 NZ"), make("Vec f16 16x32 NZ valid 3x16")
        whole(src).write(noise(float16, (16, 32)))
        whole(src).mark_defined()
        before = bits(table.numpy()).transpose(2, 3, 0, 1, 4).reshape(32, 32).copy()
        MSCATTER[ROW](table, src, indices("Vec i32 1x8 valid 1x3", [30, 2, 30]))
        after = bits(table.numpy()).transpose(2, 3, 0, 1, 4).reshape(32, 32)
        before[2], before[30] = bits(whole(src).read())[1], bits(whole(src).read())[2]
        assert (after == before).all()


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_a5_wants_to_know_the_valid_sizes(target: str) -> None:
    with device(target, mode="auto", rules="strict"):
        table = make("GM f32 20x64")
        for rows, valid in ((True, "?x64"), (True, "?x?"), (False, "16x?")):
            dst = make(f"Vec f32 16x64 valid {valid}")
            dst.SetValidShape(16, 64)
            idx = indices(
                "Vec i32 1x16" if rows else "Vec i32 16x64", np.zeros(16 if rows else 1024)
            )
            gather = MGATHER[ROW if rows else ELEM]
            if target == "a2a3":
                gather(dst, table, idx)
            else:
                with pytest.raises(ProgramError, match=r"MGATHER\.static-sizes"):
                    gather(dst, table, idx)
