"""Reductions of rows and columns, with and without indices, against plain definitions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import device
from ptokit.base.diagnostics import ProgramError
from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import BLayout, TileType
from ptokit.base.layout import Array
from ptokit.base.tiles import TileSpec
from ptokit.frontend.session import current
from ptokit.frontend.types import Tile
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.devices import TARGETS
from tests.isa.tiles import blank, call, defined, same_bits, tile, whole
from tests.operands import codes, make

NAN = math.nan
PLAIN = [f"T{axis}{op}" for axis in ("ROW", "COL") for op in ("SUM", "PROD", "MAX", "MIN")]
WITH_INDEX = [f"T{axis}ARG{op}" for axis in ("ROW", "COL") for op in ("MAX", "MIN")]


def column(kind: DType | str, rows: int) -> Tile:
    """A result with one element per row: DN with a single column."""
    room = -(-rows // 32) * 32
    spec = TileSpec.of(TileType.Vec, dtype(kind), room, 1, BLayout.ColMajor, rows, 1)
    made = Tile.of(spec)
    current().place(made)
    return made


def result(name: str, kind: DType | str, shape: tuple[int, int]) -> Tile:
    rows, cols = shape
    return column(kind, rows) if "ROW" in name else blank(kind, (1, cols))


def reduced(name: str, kind: DType, values: Array, out: DType | None = None) -> Array:
    """What the instruction makes of these values."""
    dst = result(name, out or kind, values.shape)
    scratch = [blank(kind, values.shape)] if "ROW" in name else []
    call(name, dst, tile(kind, values), *scratch)
    return dst.numpy().reshape(-1)


def lines(name: str, values: Array) -> list[Array]:
    """The rows or columns that are reduced, one by one."""
    return list(values if "ROW" in name else values.T)


# ---- integers: every order gives the same bits ---------------------------------------------------

INTEGER: dict[str, Callable[[int, int], int]] = {
    "SUM": operator.add,
    "PROD": operator.mul,
    "MAX": max,
    "MIN": min,
}


@given(data=st.data())
@settings(max_examples=120, deadline=None)
@pytest.mark.parametrize("name", PLAIN)
def test_integers(name: str, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(TARGETS))
    (group,) = INSTRUCTIONS[name].types
    kind = data.draw(st.sampled_from(sorted(group.allowed[target], key=str)))[0]
    if kind.is_float:
        return
    shape = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 64)))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    values = rng.integers(int(kind.min_value), int(kind.max_value), shape, kind.np, endpoint=True)
    op = INTEGER[name.removeprefix("TROW").removeprefix("TCOL")]
    expected = [reduce(op, map(int, line)) & (1 << kind.bits) - 1 for line in lines(name, values)]
    with device(target, mode="auto"):
        got = reduced(name, kind, values)
    assert [int(v) & (1 << kind.bits) - 1 for v in got] == expected


# ---- floats: the order of each target, one addition at a time ------------------------------------


def tree(values: list[Any]) -> Any:
    """Neighbours, then neighbouring sums."""
    while len(values) > 1:
        paired = [values[k] + values[k + 1] for k in range(0, len(values) - 1, 2)]
        values = paired + ([values[-1]] if len(values) % 2 else [])
    return values[0]


def row_sum_a2a3(row: list[Any], lanes: int) -> Any:
    if len(row) <= lanes:
        return tree(row)
    whole_ones = len(row) // lanes
    chunks = [row[k * lanes : (k + 1) * lanes] for k in range(whole_ones)]
    rest = row[whole_ones * lanes :]
    if whole_ones == 1:
        parts = chunks
    else:
        parts = [
            [a + b for a, b in zip(chunks[2 * k], chunks[2 * k + 1], strict=True)]
            for k in range(whole_ones // 2)
        ]
        if whole_ones % 2:
            parts[0] = [a + b for a, b in zip(parts[0], chunks[-1], strict=True)]
    parts[0] = [a + b for a, b in zip(parts[0], rest, strict=False)] + parts[0][len(rest) :]
    count = len(parts)
    while count > 1:
        last = parts[count - 1]
        for k in range(count // 2):
            parts[k] = [a + b for a, b in zip(parts[2 * k], parts[2 * k + 1], strict=True)]
        if count % 2:
            half = count // 2 - 1
            parts[half] = [a + b for a, b in zip(parts[half], last, strict=True)]
        count //= 2
    return tree(parts[0])


def row_sum_a5(row: list[Any], lanes: int) -> Any:
    total = row[0] * 0
    for start in range(0, len(row), lanes):
        total = total + tree(row[start : start + lanes])
    return total


def row_product_a2a3(row: list[Any], lanes: int) -> Any:
    kind = type(row[0])
    products = [kind(1)] * (lanes // 8)
    for place, value in enumerate(row):
        products[place % len(products)] *= value
    return kind(reduce(operator.mul, map(np.float32, products)))


def row_product_a5(row: list[Any], lanes: int) -> Any:
    products = [type(row[0])(1)] * lanes
    for place, value in enumerate(row):
        products[place % lanes] *= value
    while len(products) > 1:
        half = len(products) // 2
        products = [products[k] * products[k + half] for k in range(half)]
    return products[0]


def fold_a5(op: Any, line: list[Any]) -> Any:
    total = line[0]
    for k in range((len(line) - 1) // 2):
        total = op(total, op(line[2 * k + 1], line[2 * k + 2]))
    return op(total, line[-1]) if (len(line) - 1) % 2 else total


ROW_ORDERS = {
    ("TROWSUM", "a2a3"): row_sum_a2a3,
    ("TROWSUM", "a5"): row_sum_a5,
    ("TROWPROD", "a2a3"): row_product_a2a3,
    ("TROWPROD", "a5"): row_product_a5,
}


@pytest.mark.parametrize("cols", [1, 5, 64, 65, 100, 128, 129, 200, 321, 455, 700, 1400])
@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize(("name", "target"), ROW_ORDERS)
def test_order_of_rows(name: str, target: str, kind: str, cols: int) -> None:
    element = dtype(kind)
    near_one = (0.9, 1.1) if "PROD" in name else (-3, 3)
    values = np.random.default_rng(cols).uniform(*near_one, (12, cols)).astype(element.np)
    lanes = 256 // element.itemsize
    expected = [ROW_ORDERS[name, target](list(row), lanes) for row in values]
    with device(target, mode="auto"):
        got = reduced(name, element, values)
    assert same_bits(got, np.array(expected, element.np))


@pytest.mark.parametrize("shape", [(64, 128), (32, 256), (16, 512), (8, 1024)], ids=str)
def test_block_path_of_a2a3(shape: tuple[int, int]) -> None:
    """Full f32 tiles of four shapes: blocks of 8 are added inside, then across."""
    values = np.random.default_rng(1).uniform(-3, 3, shape).astype("f4")

    def by_blocks(row: list[Any]) -> Any:
        parts = [tree(row[k : k + 8]) for k in range(0, len(row), 8)]
        if len(parts) >= 64:
            parts = [tree(parts[k : k + 8]) for k in range(0, len(parts), 8)]
        blocks = [parts[k : k + 8] for k in range(0, len(parts), 8)]
        while len(blocks) > 1:
            pairs = zip(blocks[0::2], blocks[1::2], strict=True)
            blocks = [[x + y for x, y in zip(a, b, strict=True)] for a, b in pairs]
        return tree(blocks[0])

    with device("a2a3", mode="auto"):
        text = f"Vec f32 {shape[0]}x{shape[1]}"
        src, dst, scratch = make(text), make(f"Vec f32 {shape[0]}x1 DN"), make(text)
        src.fill(values)
        call("TROWSUM", dst, src, scratch)
        got = dst.numpy()[:, 0]
    assert same_bits(got, np.array([by_blocks(list(row)) for row in values], "f4"))
    with device("a2a3", mode="auto"):
        assert not same_bits(got, reduced("TROWSUM", dtype("f32"), values))  # the general path


@pytest.mark.parametrize("rows", range(1, 12))
@pytest.mark.parametrize(("name", "op"), [("TCOLSUM", operator.add), ("TCOLPROD", operator.mul)])
def test_order_of_columns(name: str, op: Any, rows: int) -> None:
    values = np.random.default_rng(rows).uniform(0.5, 2, (rows, 7)).astype("f2")
    one_by_one = [reduce(op, column) for column in values.T]
    two_by_two = [fold_a5(op, list(column)) for column in values.T]
    for target in ("a2a3", "cpu", "a5", "kirin9030"):
        expected = one_by_one if target in ("a2a3", "cpu") else two_by_two
        with device(target, mode="auto"):
            assert same_bits(reduced(name, dtype("f16"), values), np.array(expected, "f2"))


@pytest.mark.parametrize("rows", range(1, 12))
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_binary_tree_of_columns(target: str, rows: int) -> None:
    values = np.random.default_rng(rows).uniform(-2, 2, (rows, 9)).astype("f2")

    def by_tree(column: list[Any]) -> Any:
        while len(column) > 1:
            sums = [column[k] + column[k + 1] for k in range(0, len(column) - 1, 2)]
            if len(column) % 2:
                sums[0 if target == "a2a3" else -1] += column[-1]
            column = sums
        return column[0]

    with device(target, mode="auto"):
        dst = blank("f16", (1, 9))
        call("TCOLSUM", dst, tile("f16", values), blank("f16", (rows, 9)), True)
        assert same_bits(
            dst.numpy()[0], np.array([by_tree(list(column)) for column in values.T], "f2")
        )


def test_permissive_sums_widen_and_round_once() -> None:
    with device("cpu", mode="auto"):
        halves = np.array([[2048, 1, 1], [0.5, 0.25, 1e-3]], "f2")
        kinds = dtype("f16"), dtype("f32")
        wide = np.array([2050, np.float32(0.75) + np.float32(halves[1, 2])], "f4")
        assert same_bits(reduced("TROWSUM", kinds[0], halves, kinds[1]), wide)
        assert same_bits(reduced("TROWSUM", kinds[0], halves), wide.astype("f2"))
        words = np.array([[30000, 30000]], "i2")
        assert reduced("TROWSUM", dtype("i16"), words, dtype("i32")).tolist() == [60000]
        assert reduced("TCOLMAX", kinds[0], halves, kinds[1]).tolist() == [2048, 1, 1]


# ---- extremes ------------------------------------------------------------------------------------


def scan(line: Array, better: Callable[[Any, Any], bool]) -> int:
    best = 0
    for place, value in enumerate(line):
        if better(value, line[best]):
            best = place
    return best


@given(seed=st.integers(0, 500), target=st.sampled_from(["a5", "kirinx90", "cpu"]))
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("name", [*PLAIN[2:4], *PLAIN[6:], *WITH_INDEX])
def test_extremes_are_a_scan_with_a_strict_comparison(name: str, target: str, seed: int) -> None:
    """The first of equals wins; a NaN wins only when it comes first; values keep their bits."""
    rng = np.random.default_rng(seed)
    values = rng.choice(
        np.array([0.0, -0.0, 1, -1, 2.5, np.inf, -np.inf, NAN], "f4"), (5, int(rng.integers(1, 12)))
    )
    better = operator.gt if "MAX" in name else operator.lt
    found = [scan(line, better) for line in lines(name, values)]
    best = np.array([line[k] for line, k in zip(lines(name, values), found, strict=True)], "f4")
    with device(target, mode="auto"):
        if "ARG" not in name:
            assert same_bits(reduced(name, dtype("f32"), values), best)
            return
        dst, index = (result(name, kind, values.shape) for kind in ("f32", "u32"))
        src, scratch = tile("f32", values), blank("f32", values.shape)
        call(name, dst, index, src, scratch)
        assert index.numpy().reshape(-1).tolist() == found
        assert same_bits(dst.numpy().reshape(-1), best)
        alone = result(name, "i32", values.shape)
        call(name, alone, src, scratch)
        assert alone.numpy().reshape(-1).tolist() == found


@pytest.mark.parametrize("name", ["TCOLARGMAX", "TCOLARGMIN"])
def test_a2a3_moves_on_after_a_nan(name: str) -> None:
    sign = 1 if "MAX" in name else -1
    with device("a2a3", mode="auto"):
        values = sign * np.array([[1, 5, 3], [NAN, 3, 5], [0, NAN, 4], [0, 4, 9]], "f4")
        index = blank("i32", (1, 3))
        call(name, index, tile("f32", values), blank("f32", (4, 3)))
        assert index.numpy().tolist() == [[1, 2, 3]]


def test_a2a3_compares_unsigned_as_floats() -> None:
    with device("a2a3", mode="auto"):
        index, scratch = blank("u32", (1, 2)), blank("u16", (2, 2))
        call("TCOLARGMAX", index, tile("u16", [[3, 0x7BFF], [9, 5]]), scratch)
        assert index.numpy().tolist() == [[1, 0]]
        # Patterns with the top bit set are negative, that of infinity is the largest.
        call("TCOLARGMAX", index, tile("u16", [[0x8001, 0x7C00], [9, 5]]), scratch)
        assert index.numpy().tolist() == [[1, 0]]


# ---- what is written -----------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["a2a3", "a5", "cpu"])
@pytest.mark.parametrize("name", PLAIN)
def test_only_the_result_is_written(name: str, target: str) -> None:
    with device(target, mode="auto"):
        values = np.arange(1, 31, dtype="f4").reshape(3, 10)
        dst = blank("f32", (3, 10) if "ROW" in name else (1, 10))
        whole(dst).write(np.full((dst.spec.rows, dst.spec.cols), 7, "f4"))
        whole(dst).mark_defined()
        scratch = [blank("f32", (3, 10))] if "ROW" in name else []
        call(name, dst, tile("f32", values), *scratch)
        after, known = whole(dst).read(), defined(dst)
        if "ROW" in name:
            assert (after[3:] == 7).all()
            assert (after[:, 1:] == 7).all()
            assert known.all()
        else:
            assert (after[1:] == 7).all()
            assert (after[0, 10:] == 7).all()
            lost = np.zeros(known.shape, bool)
            lost[0, 10:16] = target == "a2a3"  # it copies whole 32-byte blocks
            assert (known == ~lost).all()


def test_scratch_is_lost_on_a2a3_only() -> None:
    for target in ("a2a3", "a5"):
        with device(target, mode="auto"):
            scratch = tile("f32", np.zeros((2, 80)))
            call("TROWSUM", column("f32", 2), tile("f32", np.ones((2, 80))), scratch)
            kept = defined(scratch)[:2]
            assert kept[:, 64:80].any(), "behind a register nothing is overwritten"
            assert kept[:, :64].any() == (target == "a5")


def test_columns_without_rows_write_nothing() -> None:
    with device("a5", mode="auto"):
        dst, src = make("Vec f32 1x64 valid ?x8"), make("Vec f32 16x64 valid ?x8")
        dst.fill(3)
        src.SetValidRow(0)
        for name in ("TCOLSUM", "TCOLPROD", "TCOLMAX", "TCOLMIN"):
            call(name, dst, src)
        assert (dst.numpy() == 3).all()


# ---- legality ------------------------------------------------------------------------------------


def test_ids_follow_the_target() -> None:
    wrong = ("Mat f32 16x1 DN", "Vec f32 16x64", "Vec f32 16x64")
    assert codes("TROWSUM", "a2a3", *wrong) == {"SA-0211"}
    assert codes("TROWSUM", "a5", *wrong) == {"SA-0212"}
    narrow = ("Vec f16 16x1 DN", "Vec f32 16x64", "Vec f32 16x64")
    assert codes("TROWMAX", "a2a3", *narrow) == {"SA-0190"}
    assert codes("TROWMAX", "kirinx90", *narrow) == {"SA-0091"}
    wide = ("Vec f32 16x1 DN", "Vec f16 16x64", "Vec f16 16x64")
    assert codes("TROWSUM", "a5", *wide) == {"SA-0091"}
    assert codes("TROWSUM", "cpu", *wide) == set()
    assert codes("TROWMAX", "cpu", *wide) == {"SA-0190"}


@pytest.mark.parametrize(
    ("name", "cols", "enough"),
    [
        ("TROWSUM", 64, 0),
        ("TROWSUM", 100, 64),
        ("TROWSUM", 128, 64),
        ("TROWSUM", 384, 192),
        ("TROWMIN", 384, 64),
    ],
)
def test_scratch_of_a2a3(name: str, cols: int, enough: int) -> None:
    def broken(width: int) -> set[str]:
        src = f"Vec f32 4x512 valid 4x{cols}"
        return codes(name, "a2a3", "Vec f32 8x1 DN valid 4x1", src, f"Vec f32 4x{width}")

    assert broken(max(enough, 8)) == set()
    if enough:
        assert broken(enough - 8) == {f"{name}.tmp-size", f"{name}.tmp-pitch"}


@pytest.mark.parametrize(("form", "enough"), [("index", 16), ("value", 16)])
def test_scratch_of_row_indices(form: str, enough: int) -> None:
    """96 columns of f32 are two registers: a block of two pairs, and a block of two values."""
    value = "Vec f32 8x1 DN valid 4x1" if form == "value" else None
    index = "Vec i32 8x1 DN valid 4x1"

    def broken(width: int) -> set[str]:
        src = "Vec f32 4x128 valid 4x96"
        return codes("TROWARGMAX", "a2a3", value, index, src, f"Vec f32 4x{width}")

    assert broken(enough) == set()
    assert broken(enough - 8) == {"TROWARGMAX.tmp-size", "TROWARGMAX.tmp-pitch"}


@pytest.mark.parametrize(
    ("value", "kind", "cols", "enough"),
    [
        (False, "f16", 40, 3 * 48),
        (False, "f16", 200, 3 * 128),
        (False, "f32", 40, 2 * 40),
        (True, "f16", 200, 2 * 128),
    ],
)
def test_scratch_of_column_indices(value: bool, kind: str, cols: int, enough: int) -> None:
    """A counter and a best value per column of a step; the index form of f16 also an index."""
    region = f"1x256 valid 1x{cols}"
    dst = f"Vec {kind} {region}" if value else None
    index = f"Vec {'i16' if value else 'i32'} {region}"

    def broken(size: int) -> set[str]:
        src = f"Vec {kind} 4x256 valid 4x{cols}"
        return codes("TCOLARGMIN", "a2a3", dst, index, src, f"Vec {kind} 1x{size}")

    assert broken(enough) == set()
    assert broken(enough - 1) == {"TCOLARGMIN.tmp-size"}


def test_tree_needs_half_the_rows() -> None:
    def broken(rows: int, **attrs: bool) -> set[str]:
        tiles = ("Vec f32 1x64", "Vec f32 9x64", f"Vec f32 {rows}x64")
        return codes("TCOLSUM", "a5", *tiles, **attrs)

    assert broken(4, isBinary=True) == set()
    assert broken(3, isBinary=True) == {"TCOLSUM.tmp-size"}
    assert broken(3, isBinary=False) == set()


def test_index_types() -> None:
    def row(value: str | None, index: str, kind: str) -> set[str]:
        dst = None if value is None else f"Vec {value} 16x64 valid 8x1"
        src = f"Vec {kind} 8x32"
        return codes("TROWARGMIN", "a5", dst, f"Vec {index} 16x64 valid 8x1", src, src)

    assert row(None, "u32", "f16") == set()
    assert row(None, "u16", "f16") == {"TROWARGMIN.index-type"}
    assert row("f16", "u16", "f16") == set()
    assert row("f32", "u16", "f32") == {"TROWARGMIN.value-index-type"}

    def col(value: str | None, index: str, kind: str) -> set[str]:
        dst = None if value is None else f"Vec {value} 1x32"
        src = f"Vec {kind} 8x32"
        return codes("TCOLARGMIN", "a5", dst, f"Vec {index} 1x32", src, src)

    assert col(None, "i32", "i8") == set()
    assert col("i8", "i32", "i8") == {"TCOLARGMIN.value-index-type", "TCOLARGMIN.narrow-values"}
    assert col("i16", "i32", "i16") == {"TCOLARGMIN.value-index-type"}


def test_operands_do_not_overlap() -> None:
    with device("a2a3"):
        dst, src, scratch = make("Vec f32 8x1 DN"), make("Vec f32 8x8", 32), make("Vec f32 8x8", 64)
        src.fill(1)
        with pytest.raises(ProgramError) as error:
            call("TROWMAX", dst, src, scratch)
    assert [d.code for d in error.value.diagnostics] == ["TROWMAX.tmp-apart"]
