"""Quantisation: INT8 by rows, microscaling along both axes, and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import TDEQUANT, TQUANT, device
from ptokit.base.convert import to_float32, unpack4
from ptokit.base.diagnostics import ProgramError
from ptokit.base.dtypes import bf16, dtype, f4e2m1x2, f8e4m3, f32
from ptokit.base.enums import BLayout, MxQuantAlg, QuantScaleAlg, QuantType, TileType, VecStoreMode
from ptokit.base.layout import Array
from ptokit.base.tiles import TileSpec
from ptokit.frontend.session import current
from ptokit.frontend.types import Tile
from ptokit.isa.microscaling import Format, encode, scale_bits, shared_exponent
from tests.isa.raw import Raw, tile, warned
from tests.isa.tiles import call, defined, same_bits

SYM, ASYM = QuantType.INT8_SYM, QuantType.INT8_ASYM
FP8, NV_FP8 = MxQuantAlg.OcpMxFp8E4M3, MxQuantAlg.NvMxFp8E4M3
FP4, NV_FP4 = MxQuantAlg.OcpMxFp4E2M1, MxQuantAlg.NvMxFp4E2M1


def made(
    kind: str,
    rows: int,
    cols: int,
    *valid: int,
    values: Any = None,
    layout: BLayout = BLayout.RowMajor,
) -> Tile:
    """A tile of exactly this size."""
    tile = Tile.of(TileSpec.of(TileType.Vec, dtype(kind), rows, cols, layout, *valid))
    current().place(tile)
    if values is not None:
        tile.fill(values)
    return tile


# ---- 8-bit integers ----------------------------------------------------------------------------


def quantised(target: str, values: Array, scale: Array, offset: Array | None = None) -> Array:
    rows, cols = values.shape
    column = (rows + 7) // 8 * 8
    with device(target, mode="auto"):
        src = made("f32", rows, 64, rows, cols, values=values)
        operands = [made("f32", column, 1, rows, 1, values=scale[:, None], layout=BLayout.ColMajor)]
        if target == "a2a3":
            operands.append(made("f32", rows, 64))
        if offset is not None:
            shape = (column, 1, rows, 1)
            operands.append(made("f32", *shape, values=offset[:, None], layout=BLayout.ColMajor))
        dst = made("i8" if offset is None else "u8", rows, 64, rows, cols)
        call("TQUANT", dst, src, *operands, template=(SYM if offset is None else ASYM,))
        assert defined(src)[:rows, :cols].all() == (target != "a2a3"), "A2/A3 destroys src"
        return dst.numpy()


@given(
    target=st.sampled_from(["a2a3", "a5", "kirin9030", "kirinx90", "cpu"]),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 64)),
    seed=st.integers(0, 999),
    shifted=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_rows_become_integers(
    target: str, shape: tuple[int, int], seed: int, shifted: bool
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 10, shape).astype("f4")
    scale = rng.uniform(0.1, 30, shape[0]).astype("f4")
    offset = rng.uniform(0, 255, shape[0]).astype("f4") if shifted else None
    product = values * scale[:, None]
    if offset is not None:
        product += offset[:, None]
    low, high = (0, 255) if shifted else (-128, 127)
    want = np.clip(np.rint(product), low, high).astype("u1" if shifted else "i1")
    assert (quantised(target, values, scale, offset) == want).all()


def test_ties_go_to_even_and_nan_to_zero() -> None:
    values = np.array([[0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, math.inf, math.nan]], "f4")
    got = quantised("a5", values, np.ones(1, "f4"))
    assert got.tolist() == [[0, 2, 2, 0, -2, 127, -128, 127, 0]]


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "kirinx90"])
@pytest.mark.parametrize("shape", ["2x8", "8x1 DN", "1x8", "1x32"])
@pytest.mark.parametrize("quant", [SYM, ASYM])
def test_row_r_takes_word_r_whatever_the_shape(target: str, shape: str, quant: Any) -> None:
    """Also behind the parameter, and with a tmp of another type that is too small."""
    kind = np.int8 if quant == SYM else np.uint8
    with device(target):
        raw = Raw()
        raw.put(0, np.arange(1, 33, dtype=np.float32))
        raw.put(1024, np.arange(2, 66, 2, dtype=np.float32))
        raw.put(8192, np.ones((20, 64), np.float32))
        for row in range(20):
            value = row + 1 + (2 * row + 2 if quant == ASYM else 0)
            raw.expect(16384 + row * 64, np.full(50, value, kind))
        if target == "a2a3":
            raw.lose(8192, 20 * 256)
            for row in range(20):
                raw.open[8192 + row * 256 + 200 : 8192 + row * 256 + 256] = False
            raw.lose(65536, 20 * 64 * 4)
        result = tile(f"Vec {np.dtype(kind).name.replace('int', 'i')} 20x64", 16384)
        source = tile("Vec f32 20x64", 8192, (20, 50))
        parameters = [tile(f"Vec f32 {shape}", 0), tile(f"Vec f32 {shape}", 1024)]
        tmp = tile("Vec i16 1x16", 65536)
        if quant == SYM:
            TQUANT[quant](result, source, parameters[0], tmp)
        else:
            TQUANT[quant](result, source, parameters[0], tmp, parameters[1])
        raw.check()


@pytest.mark.parametrize("target", ["a5", "kirin9030", "kirinx90"])
def test_integers_may_be_quantised_in_place(target: str) -> None:
    with device(target) as machine:
        raw = Raw()
        raw.put(0, np.ones(8, np.float32))
        raw.put(8192, np.arange(8 * 64, dtype=np.float32) % 100)
        raw.expect(8192, (np.arange(8 * 64) % 100).astype(np.int8))
        TQUANT[SYM](tile("Vec i8 8x64", 8192), tile("Vec f32 8x64", 8192), tile("Vec f32 1x8", 0))
        raw.check()
        assert not machine.warnings


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030"])
def test_the_result_decides_how_much_comes_back(target: str) -> None:
    """Of source and parameters that have other valid sizes."""
    with device(target) as machine:
        raw = Raw()
        raw.put(8192, np.arange(512, dtype=np.int32).astype(np.int8))
        raw.put(16384, np.ones((8, 8), np.float32) * np.arange(1, 9)[:, None].astype(np.float32))
        raw.put(32768, np.zeros((8, 8), np.float32))
        for row in range(7):
            values = raw.get(8192 + row * 64, 40, np.int8).astype(np.float32)
            raw.expect(row * 256, values * np.float32(row + 1))
        TDEQUANT(
            tile("Vec f32 8x64", 0, (7, 40)),
            tile("Vec i8 8x64", 8192, (3, 2)),
            tile("Vec f32 8x8", 16384, (3, 8)),
            tile("Vec f32 8x8", 32768, (3, 8)),
        )
        raw.check()
        assert {"TDEQUANT.valid-rows", "TDEQUANT.valid-columns"} <= warned(machine)


def test_integer_quantisation_names_what_is_missing() -> None:
    with device("a2a3", mode="auto"):
        src, scale = made("f32", 8, 64, values=np.zeros((8, 64))), made("f32", 8, 8, values=1.0)
        dst, tmp = made("i8", 8, 64), made("f32", 8, 64)
        with pytest.raises(ProgramError, match=r"TQUANT\.tmp"):
            call("TQUANT", dst, src, scale, template=(SYM,))
        with pytest.raises(ProgramError, match=r"TQUANT\.quant-type"):
            call("TQUANT", dst, src, scale)
        with pytest.raises(ProgramError, match=r"TQUANT\.result-type"):
            call("TQUANT", dst, src, scale, tmp, scale, template=(ASYM,))


@pytest.mark.parametrize("kind", ["i8", "i16"])
@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "cpu"])
def test_back_to_floats(target: str, kind: str) -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(-100, 100, (7, 50))
    scale, offset = rng.uniform(-2, 2, (2, 7, 1)).astype("f4")
    with device(target, mode="auto"):
        dst, src = made("f32", 8, 64, 7, 50), made(kind, 8, 64, 7, 50, values=values)
        parameters = [made("f32", 8, 8, 7, 1, values=p) for p in (scale, offset)]
        call("TDEQUANT", dst, src, *parameters)
        assert same_bits(dst.numpy(), (values.astype("f4") - offset) * scale)


def test_a5_may_overwrite_the_padding_of_a_wide_dequantised_tile() -> None:
    with device("a5", mode="auto"):
        dst, src = made("f32", 2, 160, 2, 70), made("i8", 2, 160, 2, 70, values=1)
        dst.storage.shadow[:] = 1  # type: ignore[union-attr]
        call("TDEQUANT", dst, src, made("f32", 2, 8, values=1), made("f32", 2, 8, values=0))
        assert np.flatnonzero(~defined(dst)[0]).tolist() == list(range(70, 128))


# ---- microscaling: one group at a time ---------------------------------------------------------

OCP8, NV8 = Format(fp4=False, nv=False), Format(fp4=False, nv=True)
OCP4, NV4 = Format(fp4=True, nv=False), Format(fp4=True, nv=True)


@pytest.mark.parametrize(
    ("form", "maximum", "exponent"),
    [
        (OCP8, 1.0, 119),
        (OCP8, 448.0, 127),
        (OCP8, math.inf, 247),
        (OCP8, math.nan, 255),
        (OCP8, 0.0, 0),
        (OCP8, 1e-44, 0),
        (OCP4, 1.0, 125),
        (OCP4, 6.0, 127),
        (NV8, 448.0, 127),
        (NV8, 449.0, 128),
        (NV8, 1.0, 119),
        (NV8, 3.0, 120),
        (NV8, 0.0, 0),
        (NV8, math.inf, 254),
        (NV8, math.nan, 255),
        (NV4, 6.0, 127),
        (NV4, 7.0, 128),
        (NV4, 4.0, 127),
        (NV4, 3.0, 126),
        (NV4, 1.0, 125),
    ],
)
def test_shared_exponents(form: Format, maximum: float, exponent: int) -> None:
    with np.errstate(all="ignore"):
        found = shared_exponent(np.array([maximum], "f4"), form)
    assert found.tolist() == [exponent]
    scale = scale_bits(found).view("f4")[0]
    assert math.isnan(scale) if exponent == 255 else scale == 2.0 ** (127 - exponent)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        *[(0.25, 0), (0.26, 1), (0.5, 1), (0.75, 2), (1.25, 2), (1.75, 4), (2.5, 4), (3.5, 6)],
        *[(5, 6), (5.1, 7), (100, 7), (-0.75, 10), (-0.2, 8)],
        *[(math.inf, 7), (-math.inf, 15), (math.nan, 7)],
    ],
)
def test_four_bit_codes(value: float, code: int) -> None:
    one = np.ones(1, "f4")
    for simulated in (False, True):
        found = encode(np.array([value], "f4"), one, f32, OCP4, simulated=simulated)
        assert found.tolist() == [code]


# ---- microscaling: whole tiles -----------------------------------------------------------------


def reconstructed(dst: Tile, exponents: Array, axis: int) -> Array:
    """Codes and exponents as the numbers they stand for."""
    codes = dst.numpy()
    fp4 = dst.spec.dtype is f4e2m1x2
    values = to_float32(codes if fp4 else codes.view(f8e4m3.np), f4e2m1x2 if fp4 else f8e4m3)
    return values * np.repeat(2.0 ** (exponents.astype(float) - 127), 32, axis)


def mx_tiles(kind: str, alg: MxQuantAlg, values: Array, cols: int) -> dict[str, Tile]:
    rows = values.shape[0]
    code = "f4e2m1x2" if alg in (FP4, NV_FP4) else "i8"
    return {
        "dst": made(code, rows, cols, *values.shape),
        "src": made(kind, rows, cols, *values.shape, values=values.astype(dtype(kind).np)),
    }


# The magnitudes each format has.
GRID = {
    True: to_float32(np.arange(8, dtype=np.uint8), f4e2m1x2),
    False: to_float32(np.arange(127, dtype=np.uint8).view(f8e4m3.np), f8e4m3),
}


@pytest.mark.parametrize(
    ("kind", "alg"),
    [(kind, alg) for kind in ("f16", "bf16") for alg in (FP8, NV_FP8, FP4, NV_FP4)]
    + [("f32", FP8), ("f32", NV_FP8)],  # no device quantises f32 to E2M1
)
@pytest.mark.parametrize("axis", [0, 1])
def test_elements_become_the_nearest_multiple_of_their_scale(
    kind: str, alg: MxQuantAlg, axis: int
) -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(0, 1, (64, 64)) * 2.0 ** rng.integers(-6, 6, (64, 64))
    with device("a5", mode="auto"):
        tiles = mx_tiles(kind, alg, values, 64)
        if axis == 1:
            results = [made("u8", 64, 32, 64, 2), made(kind, 2, 128), made(kind, 2, 128)]
        else:
            results = [made("u8", 2, 64), made(kind, 2, 64), made(kind, 2, 64)]
        call("TQUANT", tiles["dst"], tiles["src"], *results, template=(axis, alg))
        exponents = results[0].numpy()
        got = reconstructed(tiles["dst"], exponents, axis)
        given_ = to_float32(tiles["src"].numpy(), dtype(kind))
        step = np.repeat(2.0 ** (exponents.astype(float) - 127), 32, axis)
        scaled = np.abs(given_ / step)
        error = np.abs(scaled[..., None] - GRID[alg in (FP4, NV_FP4)])
        assert (np.abs(np.abs(got) / step - scaled) == error.min(axis=-1)).all()
        assert (np.sign(got) * np.sign(given_) >= 0).all()
        inside = scaled <= GRID[alg in (FP4, NV_FP4)].max()
        if alg in (NV_FP8, NV_FP4):
            assert inside.all(), "the NV scale leaves nothing to saturate"


def test_both_spellings_of_the_row_form_agree() -> None:
    values = np.random.default_rng(6).normal(0, 1, (16, 64)).astype("f4")
    stored: list[bytes] = []
    for template in ((1, NV_FP8), (QuantType.MXFP8, QuantScaleAlg.NV)):
        with device("a5", mode="auto"):
            tiles = mx_tiles("f32", NV_FP8, values, 64)
            exp = made("u8", 1, 32)
            scratch = made("f32", 1, 32), made("f32", 1, 32)
            call("TQUANT", tiles["dst"], tiles["src"], exp, *scratch, template=template)
            stored.append(b"".join(t.numpy().tobytes() for t in (tiles["dst"], exp, *scratch)))
    assert stored[0] == stored[1]


def test_where_the_row_form_puts_its_results() -> None:
    values = np.full((3, 40), 1.0)
    values[1] = 2.0
    with device("a5", mode="auto"):
        tiles = mx_tiles("bf16", FP8, values, 64)
        exp, most, scaling = made("u8", 3, 64), made("bf16", 1, 64), made("bf16", 1, 64)
        call("TQUANT", tiles["dst"], tiles["src"], exp, most, scaling, template=(1, FP8))
        assert exp.storage is not None
        rows = exp.storage.data.reshape(3, 64)
        assert rows[:, :2].tolist() == [[119, 119], [120, 120], [119, 119]]
        # Few groups: bytes 16..31 of each exponent row served as scratch.
        assert np.flatnonzero(defined(exp)[0]).tolist() == [0, 1]
        bits = scaling.storage.data.view(np.uint16)[:6]  # type: ignore[union-attr]
        assert (bits.view(bf16.np) == [256, 256, 128, 128, 256, 256]).all()
        assert not defined(most).any(), "the two-dimensional form uses max as a window"
        src, dst = tiles["src"], tiles["dst"]
        assert src.storage is not None
        padding = src.storage.data.view(bf16.np).reshape(3, 64)[:, 40:]
        assert defined(src).all()
        assert (padding == 0).all()
        assert defined(dst).all()


def test_single_precision_ignores_padding_instead_of_clearing_it() -> None:
    values = np.full((8, 40), 1.0)
    with device("a5", mode="auto"):
        tiles = mx_tiles("f32", FP8, values, 64)
        exp, most, scaling = made("u8", 8, 32), made("f32", 1, 64), made("f32", 1, 64)
        call("TQUANT", tiles["dst"], tiles["src"], exp, most, scaling, template=(1, FP8))
        assert not defined(tiles["src"])[:, 40:].any()
        assert not defined(tiles["dst"])[:, 40:].any()
        flat = made("u8", 1, 32)
        with pytest.raises(ProgramError, match=r"TQUANT_MX\.padding"):
            call("TQUANT", tiles["dst"], tiles["src"], flat, most, scaling, template=(1, FP8))


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
def test_a_nan_spoils_its_group_and_no_other(kind: str) -> None:
    values = np.ones((1, 64))
    values[0, 5] = np.nan
    with device("a5", mode="auto"):
        tiles = mx_tiles(kind, FP8, values, 64)
        exp, most, scaling = made("u8", 1, 32), made(kind, 1, 32), made(kind, 1, 32)
        call("TQUANT", tiles["dst"], tiles["src"], exp, most, scaling, template=(1, FP8))
        assert exp.storage is not None
        assert exp.storage.data[:2].tolist() == [255, 119]
        codes = tiles["dst"].numpy().view(np.uint8)[0]
        assert (codes[:32] & 0x7F == 0x7F).all()
        assert (codes[32:] == 0x78).all()  # 2^8


def test_columns_interleave_the_exponents_of_neighbouring_groups() -> None:
    values = np.repeat([1.0, 2.0, 4.0, 8.0], 32)[:, None] * np.ones((1, 16))
    values[:, 3] *= 16
    with device("a5", mode="auto"):
        plain, woven = made("u8", 4, 32, 4, 16), made("u8", 2, 64, 2, 32)
        for exp, template in ((plain, (0, FP8)), (woven, (0, FP8, True))):
            tiles = mx_tiles("f32", FP8, values, 32)
            call(
                "TQUANT",
                tiles["dst"],
                tiles["src"],
                exp,
                made("f32", 4, 32),
                made("f32", 4, 32),
                template=template,
            )
        rows = plain.numpy()
        assert rows[:, 0].tolist() == [119, 120, 121, 122]
        pairs = woven.numpy().reshape(2, 16, 2)
        for p in range(4):
            assert (pairs[p // 2, :, p % 2] == rows[p]).all()


def test_exponents_in_blocks_for_the_matrix_unit() -> None:
    values = (
        2.0 ** np.arange(-8, 8)[:, None] * np.ones((1, 128)) * 2.0 ** np.repeat([0, 1, 2, 3], 32)
    )
    with device("cpu", mode="auto"):
        tiles = mx_tiles("f32", FP8, values, 128)
        exp, zz = made("u8", 16, 32, 16, 4), made("u8", 2, 32)
        scratch = [made("f32", 1, 64) for _ in range(2)]
        template = (QuantType.MXFP8, VecStoreMode.NZ)
        call("TQUANT", tiles["dst"], tiles["src"], exp, *scratch, zz, template=template)
        boxes = zz.numpy().reshape(2, 16, 2)
        for row in range(16):
            for group in range(4):
                assert boxes[group // 2, row, group % 2] == exp.numpy()[row, group]
    with device("a5", mode="auto"):
        tiles = mx_tiles("f32", FP8, values, 128)
        operands = (made("u8", 16, 32), made("f32", 1, 128), made("f32", 1, 128), made("u8", 2, 32))
        with pytest.raises(ProgramError, match=r"TQUANT_MX\.no-zz"):
            call("TQUANT", tiles["dst"], tiles["src"], *operands, template=template)


def test_four_bit_codes_share_bytes() -> None:
    values = np.tile([0.5, -6.0], 16)[None]
    with device("a5", mode="auto"):
        tiles = mx_tiles("f16", FP4, values, 32)
        scratch = made("u8", 1, 32), made("f16", 1, 32), made("f16", 1, 32)
        call("TQUANT", tiles["dst"], tiles["src"], *scratch, template=(1, FP4))
        assert tiles["dst"].storage is not None
        packed = tiles["dst"].storage.data[:16]
        assert set(packed.tolist()) == {0xF1}
        assert unpack4(packed)[:2].tolist() == [1, 15]


@pytest.mark.parametrize("target", ["a2a3", "kirin9030", "kirinx90"])
def test_only_a5_has_microscaling(target: str) -> None:
    with device(target, mode="auto"):
        tiles = [made("i8", 16, 64), made("f32", 16, 64, values=1.0), made("u8", 16, 32)]
        scratch = [made("f32", 1, 64) for _ in range(2)]
        with pytest.raises(ProgramError, match=f"TQUANT_MX does not exist on {target}"):
            call("TQUANT", *tiles, *scratch, template=(QuantType.MXFP8,))


def test_hif4_is_refused() -> None:
    with device("a5", mode="auto"):
        tiles = [made("i8", 16, 64), made("bf16", 16, 64, values=1.0), made("u8", 16, 32)]
        scratch = [made("bf16", 1, 64) for _ in range(2)]
        with pytest.raises(ProgramError, match=r"TQUANT_MX\.format"):
            call("TQUANT", *tiles, *scratch, template=(1, MxQuantAlg.Hif4))
