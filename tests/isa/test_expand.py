"""Broadcasts along rows and columns against plain definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
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
from ptokit.base.precision import DivAlgorithm
from ptokit.base.tiles import TileSpec
from ptokit.frontend.session import current
from ptokit.frontend.types import Tile
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.devices import TARGETS
from ptokit.machine.faults import PoisonRead
from tests.isa.tiles import blank, call, defined, same_bits, tile, whole
from tests.operands import codes, flood, make


def made(kind: DType, rows: int, cols: int, values: Array, blayout: BLayout) -> Tile:
    spec = TileSpec.of(TileType.Vec, kind, rows, cols, blayout, *values.shape)
    tile_ = Tile.of(spec)
    current().place(tile_)
    tile_.fill(values)
    return tile_


def per_row(kind: DType, values: Array, *, repeated: bool) -> Tile:
    """One value per row: as a column, or repeated to 32 bytes per row."""
    rows = -(-len(values) // 32) * 32
    if repeated:
        width = 32 // kind.itemsize
        spread = np.repeat(values, width, axis=1)
        return made(kind, rows, width, spread, BLayout.RowMajor)
    return made(kind, rows, 1, values, BLayout.ColMajor)


def draw(kind: DType, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    if kind.is_integer:
        low, high = int(kind.min_value), int(kind.max_value)
        return rng.integers(low, high, shape, kind.np, endpoint=True)
    return rng.uniform(-9, 9, shape).astype(kind.np)


def wrapped(kind: DType, number: int) -> int:
    low = number & (1 << kind.bits) - 1
    return low - (1 << kind.bits) if kind.is_signed and low >> kind.bits - 1 else low


def truncated(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGER: dict[str, Callable[[int, int], int]] = {
    "ADD": lambda a, b: a + b,
    "SUB": lambda a, b: a - b,
    "MUL": lambda a, b: a * b,
    "DIV": truncated,
    "MAX": max,
    "MIN": min,
}
# In double precision, rounded to the element type by the caller.
FLOAT: dict[str, Callable[[float, float], float]] = {
    "ADD": lambda a, b: a + b,
    "SUB": lambda a, b: a - b,
    "MUL": lambda a, b: a * b,
    "DIV": lambda a, b: a / b,
    "MAX": max,
    "MIN": min,
}


def apply(op: str, kind: DType, a: Array, b: Array, target: str) -> Array:
    """The operation element by element, on scalars."""
    a, b = np.broadcast_arrays(a, b)
    out = np.empty(a.shape, kind.np)
    for place in np.ndindex(a.shape):
        x, y = a[place], b[place]
        if kind.is_integer:
            out[place] = wrapped(kind, INTEGER[op](int(x), int(y)))
        elif op == "EXPDIF":
            fused = target == "a5" and kind.name == "f32"
            difference = float(x) - float(y) if fused else float(kind.np.type(x - y))
            with np.errstate(over="ignore"):
                out[place] = math.exp(difference)
        else:
            out[place] = FLOAT[op](float(x), float(y))
    return out


@given(data=st.data())
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("op", [*FLOAT, "EXPDIF"])
@pytest.mark.parametrize("axis", ["ROW", "COL"])
def test_binary(axis: str, op: str, data: st.DataObject) -> None:
    """Either source may be the small one; the operands keep their order."""
    name = f"T{axis}EXPAND{op}"
    target = data.draw(st.sampled_from(TARGETS))
    (group,) = INSTRUCTIONS[name].types
    (kind,) = data.draw(st.sampled_from(sorted(group.allowed[target], key=str)))
    rows, cols = data.draw(st.tuples(st.integers(1, 9), st.integers(2, 40)))
    rng = np.random.default_rng(data.draw(st.integers(0, 500)))
    full = draw(kind, (rows, cols), rng)
    small = draw(kind, (rows, 1) if axis == "ROW" else (1, cols), rng)
    first = data.draw(st.booleans())
    values = (small, full) if first else (full, small)
    expected = apply(op, kind, *values, target)
    with device(target, mode="auto"):
        if axis == "ROW":
            repeated = data.draw(st.booleans()) and cols != 32 // kind.itemsize
            thin = per_row(kind, small, repeated=repeated)
        else:
            thin = tile(kind, small)
        wide = tile(kind, full)
        dst = blank(kind, (rows, cols)) if data.draw(st.booleans()) else wide
        call(name, dst, *((thin, wide) if first else (wide, thin)))
        assert same_bits(dst.numpy(), expected)


def test_per_row_block_repeats_along_the_row() -> None:
    with device("a5", mode="auto"):
        block = np.arange(16, dtype="f4").reshape(2, 8)
        thin = made(dtype("f32"), 2, 8, block, BLayout.RowMajor)
        dst = blank("f32", (2, 20))
        call("TROWEXPANDADD", dst, tile("f32", np.zeros((2, 20))), thin)
        assert (dst.numpy() == np.tile(block, 3)[:, :20]).all()


def test_high_precision_division_reaches_a5() -> None:
    """The f16 sequence of a5 cuts off where the plain quotient rounds up to a subnormal."""
    tiny = np.array([[1.5 * 2.0**-24]], "f2")
    half = np.array([[2.5]], "f2")
    for template, expected in (((), 2.0**-24), ((DivAlgorithm.HIGH_PRECISION,), 0.0)):
        with device("a5", mode="auto"):
            dst = blank("f16", (1, 1))
            column = per_row(dtype("f16"), half, repeated=False)
            call("TROWEXPANDDIV", dst, tile("f16", tiny), column, template=template)
            assert float(dst.numpy()[0, 0]) == expected


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("axis", ["ROW", "COL"])
def test_nan_of_the_second_source_is_dropped(axis: str, target: str) -> None:
    with device(target, mode="auto"):
        one, nan = np.ones((1, 8), "f4"), np.full((1, 1 if axis == "ROW" else 8), np.nan, "f4")
        thin = per_row(dtype("f32"), nan, repeated=False) if axis == "ROW" else tile("f32", nan)
        for op in ("MAX", "MIN"):
            dst = blank("f32", (1, 8))
            call(f"T{axis}EXPAND{op}", dst, tile("f32", one), thin)
            assert (dst.numpy() == 1).all()


# ---- plain copies --------------------------------------------------------------------------------


@given(data=st.data())
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("name", ["TROWEXPAND", "TCOLEXPAND"])
def test_copies(name: str, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(TARGETS))
    (group,) = INSTRUCTIONS[name].types
    (kind,) = data.draw(st.sampled_from(sorted(group.allowed[target], key=str)))
    rows, cols = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 40)))
    rng = np.random.default_rng(data.draw(st.integers(0, 500)))
    with device(target, mode="auto"):
        dst = blank(kind, (rows, cols))
        flood(dst)
        before = whole(dst).read().copy()
        if name == "TROWEXPAND":
            values = draw(kind, (rows, 1), rng)
            call(name, dst, per_row(kind, values, repeated=False))
        else:
            values = draw(kind, (1, cols), rng)
            call(name, dst, tile(kind, values))
        assert same_bits(dst.numpy(), np.broadcast_to(values, (rows, cols)))
        after, known = whole(dst).read(), defined(dst)
        beyond, lost = cols, cols
        if target == "a2a3" and name == "TROWEXPAND" and kind.itemsize == 1:
            beyond += cols % 2  # bytes are written in pairs
        if target == "a2a3" and name == "TCOLEXPAND":
            lost = -(-cols * kind.itemsize // 32) * 32 // kind.itemsize
        assert same_bits(after[:rows, beyond:], before[:rows, beyond:])
        assert same_bits(after[rows:], before[rows:])
        expected = np.ones(known.shape, bool)
        expected[:rows, cols:lost] = False
        assert (known == expected).all()


# ---- the scratch of a2a3 -------------------------------------------------------------------------


def test_a_column_without_tmp_costs_the_window() -> None:
    with device("a2a3", check=False):
        dst, src, thin = make("Vec f32 8x8"), make("Vec f32 8x8", 256), make("Vec f32 8x1 DN", 512)
        victim, far = make("Vec f32 1x8", 188416), make("Vec f32 1x8", 188384)
        for each in (src, thin, victim, far):
            each.fill(1)
        call("TROWEXPANDADD", dst, src, thin)
        assert (dst.numpy() == 2).all()
        assert (far.numpy() == 1).all()
        with pytest.raises(ProgramError, match="never written"):
            victim.numpy()

        victim.fill(1)
        scratch = make("Vec f32 8x64", 1024)
        call("TROWEXPANDADD", dst, src, thin, scratch)
        assert (victim.numpy() == 1).all()
        scratch.vr = scratch.vc = 1
        with pytest.raises(ProgramError, match="never written"):
            scratch.numpy()

        high = make("Vec f32 8x8", 188416)
        call("TROWEXPANDADD", high, src, thin)
        assert [w.code for w in current().warnings] == ["TROWEXPANDADD.ub-window"]
        assert not defined(high).any()


def test_a_filled_up_group_of_rows_overruns() -> None:
    """475 rows are two groups of 240, of which the second lacks 5: all of it is processed."""
    with device("a2a3", mode="auto"):
        dst, src = (make("Vec f32 480x8 valid 475x8") for _ in range(2))
        thin = make("Vec f32 480x1 DN valid 475x1")
        src.fill(1)
        thin.fill(2)
        flood(dst)
        call("TROWEXPANDMUL", dst, src, thin)
        assert (dst.numpy() == 2).all()
        assert not defined(dst)[475:].any()
    short = ("Vec f32 476x8 valid 475x8", "Vec f32 480x8 valid 475x8")
    thin = "Vec f32 480x1 DN valid 475x1"
    assert codes("TROWEXPANDMUL", "a2a3", *short, thin) == {"TROWEXPANDMUL.row-groups"}
    assert codes("TROWEXPANDMUL", "a5", *short, thin) == set()


# ---- legality ------------------------------------------------------------------------------------

FULL = "Vec f32 16x64"


@pytest.mark.parametrize(
    ("thin", "expected"),
    [
        ("Vec f32 16x1 DN", set[str]()),
        ("Vec f32 16x8", set[str]()),
        ("Vec f32 16x16 valid 16x8", {"TROWEXPANDSUB.row-pitch"}),
        ("Vec f32 16x16", {"PA-0059", "TROWEXPANDSUB.row-pitch"}),
        ("Vec f32 16x1 DN valid 8x1", {"PA-0059"}),
        ("Vec f16 16x1 DN", {"SA-0317"}),
    ],
)
def test_per_row_source(thin: str, expected: set[str]) -> None:
    assert codes("TROWEXPANDSUB", "a5", FULL, FULL, thin) == expected
    assert codes("TROWEXPANDSUB", "a5", FULL, thin, FULL) == expected


def test_tmp_of_a2a3() -> None:
    column, blocks = "Vec f32 16x1 DN", "Vec f32 16x8"
    assert codes("TROWEXPANDDIV", "a2a3", FULL, FULL, column, "Vec f32 2x64") == set()
    small = codes("TROWEXPANDDIV", "a2a3", FULL, FULL, column, "Vec f32 1x64")
    assert small == {"TROWEXPANDDIV.tmp-size"}
    assert codes("TROWEXPANDDIV", "a2a3", FULL, FULL, blocks, FULL) == {"PA-0057"}
    assert codes("TROWEXPANDDIV", "a5", FULL, FULL, blocks, "Vec f32 1x64") == set()


def test_narrow_tiles_of_a5_are_contiguous() -> None:
    padded = ("Vec f32 16x16", "Vec f32 16x32 valid 16x16", "Vec f32 16x1 DN")
    assert codes("TROWEXPANDADD", "a5", *padded) == {"TROWEXPANDADD.contiguous"}
    assert codes("TROWEXPANDADD", "a2a3", *padded) == set()
    valid = ("Vec f32 16x32 valid 16x16", *padded[1:])
    assert codes("TROWEXPANDADD", "a5", *valid) == set()


def test_column_sources() -> None:
    row = "Vec f32 1x64"
    assert codes("TCOLEXPANDMUL", "a2a3", FULL, row, FULL) == set()
    assert codes("TCOLEXPANDMUL", "a2a3", FULL, FULL, "Vec f32 1x32") == {
        "TCOLEXPANDMUL.row-source"
    }
    assert codes("TCOLEXPANDMUL", "a2a3", FULL, row, row) == {"TCOLEXPANDMUL.full-source"}
    tall = "Vec f32 256x64"
    assert codes("TCOLEXPANDMUL", "a2a3", tall, tall, row) == {"TCOLEXPANDMUL.repeat-count"}
    loose = "Vec f32 256x64 valid 256x60"
    assert codes("TCOLEXPANDMUL", "a2a3", loose, loose, row) == set()


def test_only_what_is_needed_must_be_defined() -> None:
    with device("a5", mode="auto"):
        dst, src = blank("f32", (2, 8)), blank("f32", (4, 8))
        whole(src).write(np.ones((32, 32), "f4"))
        with pytest.raises(PoisonRead):
            call("TCOLEXPAND", dst, src)
        src = tile("f32", np.ones((1, 8)))  # the rows past row 0 stay undefined
        call("TCOLEXPAND", dst, src)
        assert (dst.numpy() == 1).all()


def test_static_column_on_a5() -> None:
    wide: Any = ("Vec f32 16x64", "Vec f32 16x8")
    assert codes("TROWEXPAND", "a2a3", *wide) == set()
    assert codes("TROWEXPAND", "a5", *wide) == {"TROWEXPAND.static-column"}
    assert codes("TROWEXPAND", "a5", wide[0], "Vec f32 16x8 valid 16x1") == set()
