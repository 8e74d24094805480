"""What happens where a rule of a vector instruction is broken that nothing enforces.

Each test puts known values into the whole of UB, so that an instruction may read and write behind
its tiles, and works out by the sentence of the specification which bytes meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ptokit import device
from ptokit.base.diagnostics import ProgramError
from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import BLayout, CmpMode, TileType
from ptokit.base.layout import Array
from ptokit.base.tiles import TileSpec
from ptokit.frontend.instruction import Instruction
from ptokit.frontend.session import current
from ptokit.frontend.types import Tile
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.pointwise import GOVERNED
from ptokit.isa.regions import end_of
from ptokit.isa.samples import samples
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS
from tests.isa.tiles import call, same_bits
from tests.operands import make

V = TileType.Vec
SILENT = {"TADDS", "TSUBS", "TMINS", "TDIVS", "TAXPY"}  # on A2/A3, when sizes differ


def memory() -> Any:
    return current().core.memory(V)


def fill_memory(kind: DType, seed: int = 3) -> None:
    """Small numbers everywhere; every byte is defined."""
    rng = np.random.default_rng(seed)
    flat = memory().data.view(kind.np)
    low = 0 if kind.is_integer else -7
    flat[...] = rng.integers(low, 8, flat.size).astype(kind.np)
    memory().shadow[...] = 1


def at(address: int, spec: str) -> Any:
    return make(spec, address)


def found(address: int, kind: DType, places: Any) -> Array:
    """Elements behind an address, by their places."""
    size = (memory().nbytes - address) // kind.itemsize
    flat = np.ndarray((size,), kind.np, memory().data, address)
    return flat[np.asarray(places)].copy()


def grid(rows: int, cols: int, pitch: int) -> Array:
    """The places of rows that lie so far apart."""
    return np.arange(rows)[:, None] * pitch + np.arange(cols)


def defined(tile: Any, rows: int, cols: int) -> Array:
    """Which elements of a row-major tile hold a defined value."""
    spec, shadow = tile.spec, memory().shadow
    places = tile.address + grid(rows, cols, spec.cols) * spec.itemsize
    return shadow[places].astype(bool)


def codes() -> list[str]:
    return [warning.code for warning in current().warnings]


# ---- valid regions -----------------------------------------------------------------------------


def sample(insn: Insn, target: str) -> Any:
    """A legal call of an instruction that states its meaning."""
    exists = insn.means is not None and target in insn.targets
    return next(iter(samples(insn, TARGETS[target])), None) if exists else None


def governed(target: str) -> Iterator[Any]:
    """The instructions whose sources may have any valid region."""
    for insn in INSTRUCTIONS.values():
        legal = sample(insn, target)
        if legal is None or any(rule.id == "same-type" for rule in insn.rules):
            continue
        silent = target == "a2a3" and insn.name in SILENT
        if silent or any(outcome(rule, legal.facts()) == GOVERNED for rule in insn.rules):
            yield pytest.param(target, insn, legal, id=f"{insn.name}-{target}")


def outcome(rule: Any, ops: Any) -> str:
    """What the rule says of equal or unequal valid regions."""
    if rule.text.split()[-1] not in ("rows", "columns"):
        return ""
    return rule.otherwise if isinstance(rule.otherwise, str) else rule.otherwise(ops)


@pytest.mark.parametrize(
    ("target", "insn", "legal"), [*governed("a2a3"), *governed("a5"), *governed("kirin9030")]
)
def test_the_region_of_dst_governs(target: str, insn: Insn, legal: Any) -> None:
    """Sources are read at (i, j) with their own distance of rows, whatever their valid sizes."""
    rows, cols = 5, 20
    sources = [o.name for o in insn.operands if o.role == "in" and "tile" in o.kinds]
    sources = [n for n in sources if isinstance(legal.operands.get(n), TileSpec)]
    masks = [n for n in sources if "mask" in n.lower()]

    def run(unequal: bool) -> tuple[Array, Array]:
        with device(target):
            fill_memory(legal.operands["dst"].dtype)
            given: list[Any] = []
            for index, declared in enumerate(insn.operands):
                spec = legal.operands.get(declared.name)
                if isinstance(spec, TileSpec):
                    valid = (rows, cols)
                    wide = TileSpec.of(V, spec.dtype, 8, 96, BLayout.RowMajor, *valid)
                    if declared.name in sources and declared.name not in masks and unequal:
                        wide = TileSpec.of(V, spec.dtype, 4, 96, BLayout.RowMajor, 3, 9)
                    spec = spec if declared.name in masks or declared.role == "tmp" else wide
                    tile = Tile.of(spec)
                    tile.bind(memory(), 0x1000 * index)
                    given.append(tile)
                elif spec is not None:
                    given.append(spec)
            before = given[0].numpy().copy()
            call(insn.name, *given)
            return before, given[0].numpy()

    before, got = run(unequal=True)
    _, expected = run(unequal=False)
    if target == "a2a3" and insn.name in SILENT:
        expected = before
    assert same_bits(got, expected)


def not_empty(target: str) -> Iterator[Any]:
    for insn in INSTRUCTIONS.values():
        legal = sample(insn, target)
        if legal is None or "dst" not in legal.operands:
            continue
        if any(o.role == "in" and "tile" in o.kinds for o in insn.operands):
            yield pytest.param(target, insn, legal, id=f"{insn.name}-{target}")


@pytest.mark.parametrize(("target", "insn", "legal"), [*not_empty("a2a3"), *not_empty("a5")])
def test_empty_regions_change_nothing(target: str, insn: Insn, legal: Any) -> None:
    with device(target):
        fill_memory(legal.operands["dst"].dtype)
        before, given = memory().data.copy(), []
        for index, declared in enumerate(insn.operands):
            spec = legal.operands.get(declared.name)
            if isinstance(spec, TileSpec):
                tile = Tile.of(spec if declared.role == "tmp" else without_rows(spec))
                tile.bind(memory(), 0x4000 * index)
                given.append(tile)
            elif spec is not None:
                given.append(spec)
        call(insn.name, *given, template=())
        assert (memory().data == before).all()


def without_rows(spec: TileSpec) -> TileSpec:
    sizes = spec.rows, spec.cols, spec.blayout, 0, spec.valid_col
    return TileSpec.of(spec.loc, spec.dtype, *sizes)


def test_sources_are_read_as_elements_of_the_type_of_dst() -> None:
    with device("a2a3"):
        fill_memory(dtype("f16"))
        dst, a = at(0, "Vec f32 4x16"), at(0x1000, "Vec f32 4x16")
        b = at(0x2000, "Vec f16 4x32 valid 4x16")
        with np.errstate(all="ignore"):
            expected = a.numpy() / found(0x2000, dtype("f32"), grid(4, 16, 32))
        call("TDIV", dst, a, b)
        assert same_bits(dst.numpy(), expected)
        assert codes() == ["TDIV.same-dtype"]


def test_a_partial_overlap_leaves_the_result_undefined() -> None:
    with device("a2a3"):
        fill_memory(dtype("f32"))
        dst = at(0x40, "Vec f32 4x16")
        call("TADD", dst, at(0, "Vec f32 4x16"), at(0x1000, "Vec f32 4x16"))
        assert codes() == ["TADD.partial-overlap"]
        assert not defined(dst, 4, 16).any()


@pytest.mark.parametrize("name", ["TADDS", "TSUBS", "TMULS", "TMAXS", "TSHLS"])
@pytest.mark.parametrize("source", ["DN", ""])
def test_rows_of_column_major_tiles_go_by_their_row_stride(name: str, source: str) -> None:
    """On A2/A3 that is 1: rows overlap, and a later one overwrites the earlier."""
    function = {
        "TADDS": np.add,
        "TSUBS": np.subtract,
        "TMULS": np.multiply,
        "TMAXS": np.maximum,
        "TSHLS": np.left_shift,
    }[name]
    with device("a2a3"):
        fill_memory(dtype("i32"))
        dst, src = at(0, "Vec i32 8x4 DN"), at(0x1000, f"Vec i32 8x{4 if source else 8} {source}")
        src = src if source else at(0x1000, "Vec i32 8x8 valid 8x4")
        pitch = 1 if source else 8
        values = function(found(0x1000, dtype("i32"), grid(8, 4, pitch)), np.int32(2))
        expected = np.zeros(11, "i4")
        for row in range(8):
            expected[row : row + 4] = values[row]
        call(name, dst, src, 2)
        assert (found(0, dtype("i32"), np.arange(11)) == expected).all()
        assert codes() == [f"{name}.layout"]


# ---- one tile under two names ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tiles", "expected"),
    [
        ("dst a", lambda a, b: a ^ b),
        ("dst b", lambda a, b: a ^ b),
        ("dst tmp", lambda a, b: ~(a & b)),
        ("a tmp", lambda a, b: a & ~b),
        ("b tmp", lambda a, b: b & ~a),
    ],
)
def test_steps_of_an_exclusive_or(tiles: str, expected: Any) -> None:
    where = dict(zip(("dst", "a", "b", "tmp"), range(0, 0x4000, 0x1000), strict=True))
    first, second = tiles.split()
    where[first] = where[second]
    with device("a2a3"):
        fill_memory(dtype("i16"))
        dst, a, b, tmp = (at(where[n], "Vec i16 4x32") for n in ("dst", "a", "b", "tmp"))
        x, y = a.numpy().copy(), b.numpy().copy()
        call("TXOR", dst, a, b, tmp)
        assert (dst.numpy() == expected(x, y)).all()
        assert codes() == ["TXOR.separate"]


@pytest.mark.parametrize(
    ("tiles", "expected"),
    [
        ("dst a", lambda a, s: a & ~s),
        ("dst tmp", lambda a, s: ~(a & s)),
        ("a tmp", lambda a, s: a & 0),
    ],
)
def test_steps_of_an_exclusive_or_with_a_scalar(tiles: str, expected: Any) -> None:
    where = dict(zip(("dst", "a", "tmp"), range(0, 0x3000, 0x1000), strict=True))
    first, second = tiles.split()
    where[first] = where[second]
    with device("a2a3"):
        fill_memory(dtype("i16"))
        dst, a, tmp = (at(where[n], "Vec i16 4x32") for n in ("dst", "a", "tmp"))
        x = a.numpy().copy()
        call("TXORS", dst, a, 5, tmp)
        assert (dst.numpy() == expected(x, np.int16(5))).all()


def test_what_fills_its_destination_first_finds_it_filled() -> None:
    with device("a2a3", check=False):
        fill_memory(dtype("f32"))
        whole = at(0x1000, "Vec i32 4x16")
        for name in ("TANDS", "TORS"):
            call(name, whole, whole, 6)
            assert (whole.numpy() == 6).all()
        tile = at(0, "Vec f32 4x16")
        call("TDIVS", tile, 3.0, tile)
        assert (tile.numpy() == 1).all()
        tile.fill(4)
        call("TRECIP", tile, tile)
        assert (tile.numpy() == 1).all()
        whole.fill(2)
        call("TDIVS", whole, 9, whole)
        assert (whole.numpy() == 4).all(), "integers are divided one by one"


# ---- bits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030"])
@pytest.mark.parametrize("kind", ["i8", "u8", "i16", "u16"])
def test_counts_past_the_width_shift_every_bit_out(target: str, kind: str) -> None:
    with device(target):
        fill_memory(dtype(kind))
        src, counts = at(0, f"Vec {kind} 4x32"), at(0x1000, f"Vec {kind} 4x32")
        counts.fill(np.arange(128).reshape(4, 32) % 32)
        values, n = src.numpy().astype(np.int64), counts.numpy().astype(np.int64)
        left, right = at(0x2000, f"Vec {kind} 4x32"), at(0x3000, f"Vec {kind} 4x32")
        call("TSHL", left, src, counts)
        call("TSHR", right, src, counts)
        assert (left.numpy() == (values << n).astype(dtype(kind).np)).all()
        assert (right.numpy() == values >> n).all()


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_and_takes_f16_bit_by_bit(target: str) -> None:
    with device(target, rules="strict"):
        fill_memory(dtype("u16"))
        dst, a, b = (at(0x1000 * k, "Vec f16 4x32") for k in range(3))
        bits = a.numpy().view("u2") & b.numpy().view("u2")
        call("TAND", dst, a, b)
        assert (dst.numpy().view("u2") == bits).all()


def test_a_scalar_is_subtracted_by_way_of_f32_on_a2a3() -> None:
    with device("a2a3"):
        fill_memory(dtype("i32"))
        dst, src = at(0, "Vec i32 1x8"), at(0x1000, "Vec i32 1x8")
        call("TSUBS", dst, src, (1 << 24) + 1)
        assert (dst.numpy() == src.numpy() - (1 << 24)).all()
        assert codes() == ["TSUBS.scalar-range"]


@pytest.mark.parametrize("kind", ["f32", "i32"])
def test_a_remainder_is_corrected_by_64_lanes_on_a2a3(kind: str) -> None:
    """Column c gets the divisor added where the remainder of column c mod 64 asks for it."""
    with device("a2a3"):
        fill_memory(dtype(kind))
        dst, src = at(0, f"Vec {kind} 2x160"), at(0x2000, f"Vec {kind} 2x160")
        # Quotients that are rounded up leave a remainder on the wrong side of zero.
        values = np.random.default_rng(1).integers(1 << 24, 1 << 27, (2, 160))
        src.fill(values)
        divisor = np.float32(3)
        a = src.numpy().astype("f4")
        r = a - np.floor(a / divisor) * divisor
        if kind == "i32":
            whole = np.rint(a).astype("i8") - np.floor(a / divisor).astype("i8") * 3
            r = whole.astype("i4").astype("f4")
        needs = r * divisor < 0
        assert (needs != needs[:, np.arange(160) % 64]).any()
        c = np.arange(160)
        expected = np.where(needs[:, c % 64], r + divisor, r).astype(dtype(kind).np)
        call("TREMS", dst, src, 3, at(0x4000, f"Vec {kind} 1x160"))
        assert same_bits(dst.numpy(), expected)
        assert codes() == ["TREMS.correction-lanes"]


# ---- broadcasts --------------------------------------------------------------------------------

OPERATIONS: dict[str, Any] = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "MAX": np.maximum,
    "MIN": np.minimum,
}


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("op", OPERATIONS)
def test_a_row_major_row_operand_is_packed_blocks(target: str, op: str) -> None:
    """Two full tiles: the second gives block i to row i, whatever its own rows are."""
    with device(target):
        fill_memory(dtype("f32"))
        dst, full, blocks = (at(0x2000 * k, "Vec f32 16x64") for k in range(3))
        i, j = np.indices((16, 64))
        expected = OPERATIONS[op](full.numpy(), found(0x4000, dtype("f32"), 8 * i + j % 8))
        call(f"TROWEXPAND{op}", dst, full, blocks)
        assert same_bits(dst.numpy(), expected)


@pytest.mark.parametrize("op", OPERATIONS)
def test_a_column_of_several_columns(op: str) -> None:
    """Of a column-major row operand A2/A3 takes element i, later targets element i * Cols."""
    for target, step in (("a2a3", 1), ("a5", 2)):
        with device(target):
            fill_memory(dtype("f32"))
            dst, full = at(0, "Vec f32 16x64"), at(0x2000, "Vec f32 16x64")
            values = found(0x4000, dtype("f32"), np.arange(16)[:, None] * step)
            expected = OPERATIONS[op](full.numpy(), values)
            call(f"TROWEXPAND{op}", dst, full, at(0x4000, "Vec f32 16x2 DN"))
            assert same_bits(dst.numpy(), expected)


def test_with_scratch_a_row_operand_is_a_column_on_a2a3() -> None:
    with device("a2a3"):
        fill_memory(dtype("f32"))
        dst, full = at(0, "Vec f32 16x64"), at(0x2000, "Vec f32 16x64")
        values = found(0x4000, dtype("f32"), np.arange(16)[:, None])
        expected = full.numpy() + values
        call("TROWEXPANDADD", dst, full, at(0x4000, "Vec f32 16x8"), at(0x6000, "Vec f32 16x64"))
        assert same_bits(dst.numpy(), expected)


def test_many_rows_of_blocks_take_one_pitch_per_255_rows() -> None:
    with device("a2a3"):
        fill_memory(dtype("f16"))
        rows = 300
        dst, full = at(0, f"Vec f16 {rows}x16"), at(0x4000, f"Vec f16 {rows}x16")
        i, j = np.indices((rows, 16))
        places = i // 255 * 255 * 32 + i % 255 * 16 + j % 16
        expected = full.numpy() + found(0x8000, dtype("f16"), places)
        call("TROWEXPANDADD", dst, full, at(0x8000, f"Vec f16 {rows}x32"))
        assert same_bits(dst.numpy(), expected)


def test_neither_source_is_full() -> None:
    """Then src1 is taken as full, at the places of dst; src0 holds the values of the rows."""
    for name, small in (("TROWEXPANDADD", "blocks"), ("TCOLEXPANDADD", "row")):
        with device("a5"):
            fill_memory(dtype("f32"))
            dst = at(0, "Vec f32 8x128")
            a, b = at(0x2000, "Vec f32 4x64"), at(0x4000, "Vec f32 8x64 valid 3x5")
            i, j = np.indices((8, 128))
            first = 8 * i + j % 8 if small == "blocks" else j
            expected = found(0x2000, dtype("f32"), first) + found(0x4000, dtype("f32"), i * 64 + j)
            call(name, dst, a, b)
            assert same_bits(dst.numpy(), expected)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_expanding_reads_the_storage_of_its_source(target: str) -> None:
    with device(target, check=False):
        fill_memory(dtype("f32"))
        dst, row = at(0, "Vec f32 8x64"), at(0x2000, "Vec f32 1x64 valid 1x8")
        call("TCOLEXPAND", dst, row)
        assert (dst.numpy() == found(0x2000, dtype("f32"), np.arange(64))).all()
        assert codes() == ["TCOLEXPAND.same-columns"]
        column = at(0x3000, "Vec f32 8x1 DN valid 3x1")
        call("TROWEXPAND", dst, column)
        assert (dst.numpy() == found(0x3000, dtype("f32"), np.arange(8)[:, None])).all()
        assert codes()[1:] == ["TROWEXPAND.same-rows"]


def test_repeats_have_8_bits_on_a2a3() -> None:
    with device("a2a3"):
        fill_memory(dtype("f32"))
        before = memory().data[: 300 * 32].view("f4").reshape(300, 8).copy()
        dst, full = at(0, "Vec f32 300x8"), at(0x8000, "Vec f32 300x8")
        expected = full.numpy() + at(0x10000, "Vec f32 1x8").numpy()
        call("TCOLEXPANDADD", dst, full, at(0x10000, "Vec f32 1x8"))
        assert same_bits(dst.numpy()[: 300 % 256], expected[: 300 % 256])
        assert same_bits(dst.numpy()[300 % 256 :], before[300 % 256 :])
        assert codes() == ["TCOLEXPANDADD.repeat-count"]


# ---- masks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("mask", ["u8", "i8", "u16", "f32"])
def test_rows_of_a_mask_lie_as_far_apart_as_those_of_its_tile(target: str, mask: str) -> None:
    pitch = 32 * dtype(mask).itemsize
    with device(target, check=False):
        fill_memory(dtype("f32"))
        dst, a, b = (
            at(0, f"Vec {mask} 3x32"),
            at(0x1000, "Vec f32 3x64"),
            at(0x2000, "Vec f32 3x64"),
        )
        packed = np.packbits(a.numpy() > b.numpy(), axis=1, bitorder="little")
        call("TCMP", dst, a, b, CmpMode.GT)
        assert (memory().data[grid(3, 8, pitch)] == packed).all()
        data, choice, tmp = at(0x3000, "Vec f32 3x64"), at(0x4000, "Vec f32 3x64"), 0x5000
        call("TSELS", choice, dst, data, at(tmp, "Vec u8 1x32"), 9.0)
        bits = np.unpackbits(packed, axis=1, bitorder="little").astype(bool)
        assert same_bits(choice.numpy(), np.where(bits, data.numpy(), np.float32(9)))
        # TSEL of later targets takes the row stride of the mask for bytes.
        step = pitch if target == "a2a3" else 32
        packed = memory().data[grid(3, 8, step)]
        bits = np.unpackbits(packed, axis=1, bitorder="little").astype(bool)
        call("TSEL", choice, dst, data, a, at(tmp, "Vec u8 1x32"))
        assert same_bits(choice.numpy(), np.where(bits, data.numpy(), a.numpy()))


@pytest.mark.parametrize("mode", [CmpMode.GE, CmpMode.NE])
def test_a2a3_compares_what_lies_behind_a_row(mode: CmpMode) -> None:
    """Whole registers are compared, and NE inverts the rest of the mask row as well."""
    answer = np.greater_equal if mode == CmpMode.GE else np.not_equal
    with device("a2a3", check=False):
        fill_memory(dtype("f32"))
        dst, a = at(0, "Vec u8 3x32"), at(0x1000, "Vec f32 3x40")
        b = at(0x2000, "Vec f32 3x48 valid 3x40")
        left, right = (
            found(address, dtype("f32"), grid(3, 64, pitch))
            for address, pitch in ((0x1000, 40), (0x2000, 48))
        )
        before = memory().data[grid(3, 32, 32)]
        call("TCMP", dst, a, b, mode)
        got = memory().data[grid(3, 32, 32)]
        assert (got[:, :8] == np.packbits(answer(left, right), axis=1, bitorder="little")).all()
        assert (got[:, 8:] == (~before if mode == CmpMode.NE else before)[:, 8:]).all()
        memory().shadow[0x2000 + 4 * (2 * 48 + 40) :] = 0  # nothing behind the last row
        memory().epoch += 1
        call("TCMP", dst, a, b, mode)
        assert defined(dst, 3, 8).sum(axis=1).tolist() == [8, 8, 5]


def test_short_mask_rows_overwrite_one_another() -> None:
    with device("a5"):
        fill_memory(dtype("f16"))
        dst = at(0, "Vec u8 3x32")
        a, b = at(0x1000, "Vec f16 3x512"), at(0x3000, "Vec f16 3x512")
        packed = np.packbits(a.numpy() < b.numpy(), axis=1, bitorder="little")
        expected = np.zeros(2 * 32 + 64, np.uint8)
        for row in range(3):
            expected[row * 32 : row * 32 + 64] = packed[row]
        call("TCMP", dst, a, b, CmpMode.LT)
        assert (memory().data[: len(expected)] == expected).all()
        assert set(codes()) == {"TCMP.mask-width", "TCMP.mask-store"}


def test_mixed_row_strides_on_a5() -> None:
    with device("a5"):
        fill_memory(dtype("f32"))
        dst = at(0, "Vec u8 4x32")
        a, b = at(0x1000, "Vec f32 4x128 valid 4x100"), at(0x3000, "Vec f32 4x256 valid 4x100")
        i, j = np.indices((4, 100))
        places = i * np.where(j % 128 < 64, 128, 256) + j
        answers = found(0x1000, dtype("f32"), places) <= found(0x3000, dtype("f32"), places)
        call("TCMP", dst, a, b, CmpMode.LE)
        got = np.unpackbits(memory().data[grid(4, 32, 32)], axis=1, bitorder="little")
        assert (got[:, :100] == answers).all()
        assert codes() == ["TCMP.same-stride"]


def test_masks_of_wide_rows_of_bytes_on_a5() -> None:
    """For every 256 columns the mask is read on 16 bytes further."""
    with device("a5"):
        fill_memory(dtype("u8"))
        dst, a, b = (at(0x1000 * k, "Vec i8 2x1024") for k in range(3))
        mask = at(0x4000, "Vec u8 2x128")
        i, c = np.indices((2, 1024))
        byte = memory().data[0x4000 + i * 128 + 16 * (c // 256) + c % 256 // 8]
        expected = np.where(byte >> (c % 8) & 1, a.numpy(), b.numpy())
        call("TSEL", dst, mask, a, b, at(0x5000, "Vec u8 1x32"))
        assert (dst.numpy() == expected).all()


def test_the_result_overwrites_a_scalar_that_was_put_into_it() -> None:
    with device("a2a3"):
        fill_memory(dtype("f32"))
        dst, src, mask = (
            at(0, "Vec f32 3x64"),
            at(0x1000, "Vec f32 3x64"),
            at(0x2000, "Vec u8 3x32"),
        )
        bits = np.unpackbits(mask.numpy()[:, :8], axis=1, bitorder="little").astype(bool)
        call("TSELS", dst, mask, src, dst, 7.0)
        assert same_bits(dst.numpy(), np.where(bits, src.numpy(), np.float32(7)))


# ---- reductions --------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("name", ["TROWMAX", "TROWMIN", "TROWARGMAX", "TCOLMAX", "TCOLARGMIN"])
def test_the_region_of_src_governs_a_reduction(target: str, name: str) -> None:
    kind = "i32" if "ARG" in name else "f32"
    with device(target):
        fill_memory(dtype("f32"))
        src, tmp = at(0x2000, "Vec f32 16x64 valid 13x40"), at(0x4000, "Vec f32 16x64")
        values, axis = src.numpy(), 1 if "ROW" in name else 0
        dst = at(0, f"Vec {kind} 32x1 DN valid 5x1" if axis else f"Vec {kind} 1x64 valid 1x9")
        function = getattr(np, ("arg" if "ARG" in name else "") + name[-3:].lower())
        expected = function(values, axis=axis)
        call(name, dst, src, *([tmp] if name != "TCOLMAX" else []))
        assert (found(0, dtype(kind), np.arange(len(expected))) == expected).all()


def test_rows_without_columns_have_undefined_results() -> None:
    with device("a2a3"):
        fill_memory(dtype("f32"))
        dst, src = at(0, "Vec f32 16x8 valid 16x1"), at(0x2000, "Vec f32 16x64 valid 16x0")
        call("TROWSUM", dst, src, at(0x4000, "Vec f32 16x64"))
        assert not defined(dst, 16, 1).any()
        assert defined(dst, 16, 8)[:, 1:].all()
        assert codes() == ["PA-0030"]


def test_column_indices_pass_through_f16_on_a2a3() -> None:
    with device("a2a3"):
        fill_memory(dtype("f16"))
        src, index = at(0x2000, "Vec f16 2200x16"), at(0, "Vec i32 1x16")
        values = np.zeros((2200, 16), "f2")
        values[2051:2067, :][np.arange(16), np.arange(16)] = 9
        src.fill(values)
        call("TCOLARGMAX", index, src, at(0x1000, "Vec f16 3x128"))
        expected = np.arange(2051, 2067).astype("f2").astype(int)
        assert index.numpy().tolist() == [expected.tolist()]
        assert codes() == ["TCOLARGMAX.index-precision"]


# ---- tiles that do not cover the same region ---------------------------------------------------


@pytest.mark.parametrize("op", ["ADD", "MUL", "MAX", "MIN"])
@pytest.mark.parametrize("regions", [(3, 9, 5, 7), (6, 4, 2, 12), (7, 20, 9, 3), (5, 0, 4, 8)])
def test_neither_source_has_the_region_of_dst(op: str, regions: tuple[int, ...]) -> None:
    """A5 copies the storage of the bigger source, A2/A3 writes nothing."""
    rows, cols = 6, 12
    r0, c0, r1, c1 = regions
    for target in ("a5", "a2a3"):
        with device(target):
            fill_memory(dtype("f32"))
            dst = at(0, f"Vec f32 16x16 valid {rows}x{cols}")
            a = at(0x2000, f"Vec f32 16x32 valid {r0}x{c0}")
            b = at(0x4000, f"Vec f32 16x64 valid {r1}x{c1}")
            left, right = (
                found(0x2000, dtype("f32"), grid(16, 16, 32)),
                found(0x4000, dtype("f32"), grid(16, 16, 64)),
            )
            expected = found(0, dtype("f32"), grid(16, 16, 16))
            if target == "a5" and 0 in (r0, c0):
                part = np.s_[: min(rows, r1), : min(cols, c1)]
                expected[part] = right[part]
            elif target == "a5":
                bigger = right if r0 < r1 or c0 < c1 else left
                both = np.s_[: min(r0, r1), : min(c0, c1, cols)]
                everything = np.s_[: max(rows, min(r0, r1)), :cols]
                expected[everything] = bigger[everything]
                expected[both] = OPERATIONS[op](left[both], right[both])
            call(f"TPART{op}", dst, a, b)
            assert same_bits(found(0, dtype("f32"), grid(16, 16, 16)), expected)


def test_an_empty_source_makes_dst_a_copy() -> None:
    for target in ("a2a3", "a5", "kirin9030"):
        with device(target, rules="strict"):
            fill_memory(dtype("f16"))
            dst, full = at(0, "Vec f16 4x32"), at(0x1000, "Vec f16 4x32")
            call("TPARTMIN", dst, at(0x2000, "Vec f16 4x32 valid 0x0"), full)
            assert same_bits(dst.numpy(), full.numpy())


@pytest.mark.parametrize("cols", [150, 200])
def test_wide_indices_reach_half_the_columns_on_a2a3(cols: int) -> None:
    with device("a2a3"):
        fill_memory(dtype("f16"))
        value, first, second = (at(0x1000 * k, f"Vec f16 2x256 valid 2x{cols}") for k in range(3))
        number = f"Vec i32 2x256 valid 2x{cols}"
        index, i0, i1 = (at(0x4000 + 0x1000 * k, number) for k in range(3))
        rows = grid(2, 256, 256)  # also what lies past the valid columns
        values = [found(0x1000 * k, dtype("f16"), rows) for k in range(3)]
        numbers = [found(0x4000 + 0x1000 * k, dtype("i32"), rows) for k in range(3)]
        (before, a, b), (kept, m, n) = values, numbers
        columns = np.arange(256)[None, :]
        reached = (columns % 128 < 64) & (columns < cols)
        expected = np.where(reached, np.where(a >= b, a, b), before)
        places = np.where(reached, np.where(a >= b, m, n), kept)
        call("TPARTARGMAX", value, first, second, index, i0, i1)
        assert same_bits(found(0, dtype("f16"), rows), expected)
        assert (found(0x4000, dtype("i32"), rows) == places).all()


# ---- scratch -----------------------------------------------------------------------------------


STEP = 0x8000


def with_scratch() -> Iterator[Any]:
    """The instructions of A2/A3 that are given the address of scratch, with a legal call."""
    for insn in INSTRUCTIONS.values():
        for legal in samples(insn, TARGETS["a2a3"]):
            tmp = legal.operands.get("tmp")
            rules = [r for r in insn.rules if r.id == "tmp-size" and "automatically" in r.text]
            if rules and isinstance(tmp, TileSpec):
                view = insn.operand("tmp").view
                assert callable(view)
                if end_of(view(legal.facts()), legal.facts().tmp) > 32:
                    yield pytest.param(insn, legal, id=f"{insn.name}-{legal.operands['tmp']}")
                    break


@pytest.mark.parametrize(("insn", "legal"), [*with_scratch()])
@pytest.mark.parametrize("lives", [False, True])
def test_of_scratch_only_the_address_counts(insn: Insn, legal: Any, lives: bool) -> None:
    """A tile of 32 bytes will do where nothing lies past it; what lives there is lost."""
    declared_tmp = legal.operands["tmp"]
    ids = {rule.id for rule in insn.rules}
    pitch = "tree-pitch" in ids or ("tmp-pitch" in ids and legal.operands["src"].cols > 128)
    # Where the distance of its rows counts as well, it has one row.
    small = TileSpec.of(
        V, declared_tmp.dtype, 1, declared_tmp.cols if pitch else 32 // declared_tmp.itemsize
    )

    def run(spec: TileSpec) -> tuple[list[Array], set[str], Array]:
        with device("a2a3"):
            fill_memory(next(s for s in legal.operands.values() if s is not None).dtype)
            given: list[Any] = []
            for index, declared in enumerate(insn.operands):
                tile = spec if declared.name == "tmp" else legal.operands.get(declared.name)
                if isinstance(tile, TileSpec):
                    given.append(Tile.of(tile))
                    given[-1].bind(memory(), STEP * index)
                elif tile is not None:
                    given.append(tile)
                if declared.name == "tmp" and not lives:
                    memory().shadow[STEP * index + spec.nbytes : STEP * (index + 1)] = 0
            named = [o.name for o in insn.operands if legal.operands.get(o.name) is not None]
            chosen = {
                a.name: legal.attrs[a.name]
                for a in insn.attrs
                if a.argument and legal.attrs[a.name] != a.default
            }
            Instruction(insn)(*given, **chosen)
            results = [
                tile.numpy()
                for name, tile in zip(named, given, strict=True)
                if insn.operand(name).role in ("out", "inout")
            ]
            tmp = given[named.index("tmp")]
            behind = memory().shadow[tmp.address : tmp.address + 0x2000].astype(bool)
            return results, set(codes()), behind

    legally, _, _ = run(legal.operands["tmp"])
    results, warned, behind = run(small)
    assert all(same_bits(a, b) for a, b in zip(results, legally, strict=True))
    assert (f"{insn.name}.tmp-size" in warned) == lives
    if lives:
        assert not behind[:32].all()
        assert not behind[small.nbytes : small.nbytes + 4].any()


def test_what_scratch_overwrites_is_an_error_when_rules_are_strict() -> None:
    with device("a2a3", rules="strict"):
        fill_memory(dtype("f32"))
        dst, full = at(0, "Vec f32 16x64"), at(0x2000, "Vec f32 16x64")
        column, tmp = at(0x4000, "Vec f32 16x1 DN"), at(0x6000, "Vec f32 1x8")
        with pytest.raises(ProgramError) as error:
            call("TROWEXPANDADD", dst, full, column, tmp)
    assert error.value.codes == ("TROWEXPANDADD.tmp-size",)
