"""Attributes of instructions: their spellings, what they mean, and keys of other tools."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.base.enums import SaturationMode
from ptokit.from_text import Program, loads
from ptokit.ir.core import Op
from ptokit.ir.instructions import template_arguments
from tests.text.kernels import assert_fixpoint, kernel, ran, tile

V = tile("16x64xf32")
COLUMN = tile("16x1xf32", "blayout=col_major")
LEFT = "!pto.tile_buf<left, 16x64xf16, blayout=col_major, slayout=row_major>"
RIGHT = "!pto.tile_buf<right, 64x64xf16, blayout=row_major, slayout=col_major>"
ACC = "!pto.tile_buf<acc, 16x64xf32, blayout=col_major, slayout=row_major, fractal=1024>"
PRECISE = {  # the operations that can be told how precise to be: their words, and their operands
    "div": ("tdiv", V, V),
    "div ": ("tcolexpanddiv", V, tile("1x64xf32")),
    "div  ": ("trowexpanddiv", V, COLUMN),
    "div   ": ("tdivs", V, "f32"),
    "exp": ("texp", V),
    "log": ("tlog", V),
    "recip": ("trecip", V),
    "rem": ("trem", V, V),
    "rsqrt": ("trsqrt", V),
    "sqrt": ("tsqrt", V),
    "fmod": ("tfmod", V, V),
    "pow": ("tpow", V, V),
    "pow ": ("tpows", V, "f32"),
}


def line(name: str, ins: tuple[str, ...], outs: tuple[str, ...], more: str = "") -> Program:
    """A function of one operation over tiles of its own."""
    given = [f"%a{n}" for n in range(len(ins))]
    made = [f"%r{n}" for n in range(len(outs))]
    types = dict(zip([*given, *made], [*ins, *outs], strict=True))
    params = ", ".join(f"{v}: {t}" for v, t in types.items() if "tile" not in t)
    tiles = "".join(f"  {v} = pto.alloc_tile : {t}\n" for v, t in types.items() if "tile" in t)
    text = f"ins({', '.join(given)} : {', '.join(ins)}) outs({', '.join(made)} : {', '.join(outs)})"
    return module(f"func.func @f({params}) {{\n{tiles}  pto.{name} {text} {more}\n  return\n}}")


def module(text: str) -> Program:
    return loads(f'module attributes {{pto.target_arch = "a5"}} {{\n{text}\n}}')


def only(made: Program) -> Op:
    """The instruction of a function that has one, after it was printed and read again."""
    assert_fixpoint(made)
    body = made.module.functions[0].body
    assert body is not None
    return next(op for op in body.ops if op.insn is not None)


def arguments(made: Program) -> dict[str, object]:
    op = only(made)
    assert op.insn is not None
    return dict(zip((a.name for a in op.insn.attrs), template_arguments(op), strict=True))


@pytest.mark.parametrize("kind", PRECISE)
def test_precision_has_a_word_for_every_function(kind: str) -> None:
    name, *ins = PRECISE[kind]
    word = f"#pto<{kind.strip()}_precision high_precision>"
    made = line(name, tuple(ins), (V,), f"{{precisionType = {word}}}")
    assert f"{{precisionType = {word}}}" in str(made)
    assert arguments(made)["PrecisionType"] == 1
    before = f"#pto<{kind.strip()}_algorithm HIGH_PRECISION>"
    assert str(line(name, tuple(ins), (V,), f"{{precisionType = {before}}}")) == str(made)


@pytest.mark.parametrize(
    ("name", "ins"),
    [("tmatmul", (LEFT, RIGHT)), ("tmatmul.acc", (ACC, LEFT, RIGHT)), ("tgemv", (LEFT, RIGHT))],
)
def test_the_phase_of_a_product(name: str, ins: tuple[str, ...]) -> None:
    made = line(name, ins, (ACC,), "{accPhase = #pto<acc_phase partial>}")
    assert arguments(made)["Phase"] == 2
    assert "{accPhase = #pto<acc_phase partial>}" in str(made)
    assert str(line(name, ins, (ACC,), "{phase = #pto<acc_phase Partial>}")) == str(made)


def converted(how: str, target: str = "a5") -> np.ndarray:
    half, small = tile("16x64xf32"), tile("16x64xi16")
    made = kernel(
        f"pto.tcvt ins(%s {{rmode = #pto<round_mode RINT>{how}}} : {half}) outs(%d : {small})",
        {"s": half},
        {"d": small},
        target,
    )
    source, result = np.full((16, 64), 70000.4, "f4"), np.zeros((16, 64), "i2")
    ran(made, [source, result])
    return result


def test_a_conversion_saturates_when_told_to() -> None:
    off = ", {} = #pto<saturation_mode OFF>"
    on = ", {} = #pto<saturation_mode ON>"
    assert (converted("") == 70000 - 65536).all()
    assert all((converted(off.format(k)) == 70000 - 65536).all() for k in ("satmode", "sat_mode"))
    assert all((converted(on.format(k)) == 32767).all() for k in ("satmode", "sat_mode"))


def test_a_text_that_does_not_say_asks_for_no_saturation() -> None:
    # f32 to f16 saturates in a call that leaves it to the instruction.
    made = line("tcvt", (V,), (tile("16x64xf16"),))
    assert arguments(made)["satMode"] == SaturationMode.OFF
    assert "SaturationMode::OFF" in made.cpp()


def test_one_argument_is_given_once() -> None:
    both = "{sat_mode = #pto<saturation_mode ON>, satmode = #pto<saturation_mode OFF>}"
    with pytest.raises(PtoError, match="satmode is sat_mode, which is given with another value"):
        line("tcvt", (V,), (tile("16x64xf16"),), both)


def test_a_histogram_counts_one_byte(engine: str) -> None:
    data, bins, few = tile("16x64xui32"), tile("16x256xui32"), tile("1x64xui8")
    made = kernel(
        f"pto.thistogram ins(%s, %i : {data}, {few}) outs(%d : {bins}) {{byte = 2 : i32}}",
        {"s": data, "i": few},
        {"d": bins},
    )
    rng = np.random.default_rng(1)
    values = rng.integers(0, 2**32, (16, 64), dtype="u4") & 0x03FF_FFFF
    wanted, result = np.full((1, 64), 2, "u1"), np.zeros((16, 256), "u4")
    ran(made, [values, wanted, result], engine)
    byte = np.where(values >> 24 == 2, values >> 16 & 0xFF, 1000)
    assert (result == (byte[:, :, None] <= np.arange(256)).sum(1)).all()


@pytest.mark.parametrize(("word", "byte"), [("false", 0), ("true", 1)])
def test_the_older_key_of_a_histogram(word: str, byte: int) -> None:
    types = (tile("16x64xui16"), tile("32x1xui8", "blayout=col_major")), (tile("16x256xui32"),)
    made = line("thistogram", *types, f"{{isMSB = {word}}}")
    assert f"{{byte = {byte} : i32}}" in str(made)
    with pytest.raises(PtoError, match="isMSB is byte, which is given with another value"):
        line("thistogram", *types, f"{{byte = {1 - byte} : i32, isMSB = {word}}}")


@pytest.mark.parametrize("axis", ["row", "col"])
@pytest.mark.parametrize(("pattern", "start", "step"), [("P1010", 1, 2), ("P0100", 2, 4)])
def test_patterns_of_columns_and_rows(
    axis: str, pattern: str, start: int, step: int, engine: str
) -> None:
    rows, cols = (16, 64 // step) if axis == "row" else (16 // step, 64)
    # Where rows are packed, the loop runs over all rows of the source, and needs the room.
    few = tile(f"16x{cols}xf32", f"valid={rows}x{cols}")
    all_ = tile(f"{16 * step}x64xf32", "valid=16x64")
    how = f"{{maskPattern = #pto.mask_pattern<{pattern}>}}"
    chosen = (slice(None), slice(start, None, step))[:: 1 if axis == "row" else -1]
    whole = np.random.default_rng(0).standard_normal((16, 64)).astype("f4")

    gather = kernel(
        f'pto.tgather ins(%s, {how} : {all_}, "{axis}") outs(%d : {few})', {"s": all_}, {"d": few}
    )
    part = np.zeros((rows, cols), "f4")
    ran(gather, [whole, part], engine)
    assert (part == whole[chosen]).all()
    assert f', "{axis}") outs(' in str(gather)

    scatter = kernel(
        f'pto.tscatter ins(%s, {how} : {few}, "{axis}") outs(%d : {all_})', {"s": few}, {"d": all_}
    )
    spread, expected = np.ones((16, 64), "f4"), np.zeros((16, 64), "f4")
    expected[chosen] = part
    ran(scatter, [part, spread], engine)
    assert (spread == expected).all()


def test_a_pattern_may_follow_the_results() -> None:
    how = "{maskPattern = #pto.mask_pattern<P0101>}"
    made = line("tgather", (V,), (tile("16x32xf32"),), how)
    assert '"row")' in str(made)


def test_an_axis_is_one_of_two_words() -> None:
    text = (
        f'func.func @f(%a: {V}) {{\n  pto.tgather ins(%a : {V}, "rows") outs(%a : {V})\n return }}'
    )
    with pytest.raises(PtoError, match="'rows' is none of the words row, col"):
        loads(text)


def test_a_merge_says_that_it_has_no_scratch() -> None:
    run = "1x64xf32"
    lists, found = f"%a0, %a1 no_tmp {{exhausted = false}} : {tile(run)}, {tile(run)}", "%r, %n"
    made = module(
        f"""func.func @f(%a0: {tile(run)}, %a1: {tile(run)}, %r: {tile("1x128xf32")}) {{
          %n = arith.constant dense<0> : vector<4xi16>
          pto.tmrgsort ins({lists}) outs({found} : {tile("1x128xf32")}, vector<4xi16>)
          return
        }}"""
    )
    assert_fixpoint(made)
    assert "no_tmp {exhausted = false}" in str(made)
    assert not made.check()


def test_a_merge_counts_in_place_which_values_do_not() -> None:
    run, all_of_it = tile("1x64xf32"), tile("1x128xf32")
    made = module(
        f"""func.func @f() {{
          %n = arith.constant dense<0> : vector<4xi16>
          %zero = arith.constant 0.0 : f32
          %a = pto.alloc_tile : {run}
          %r = pto.alloc_tile : {all_of_it}
          pto.texpands ins(%zero : f32) outs(%a : {run})
          pto.tmrgsort ins(%a, %a no_tmp {{exhausted = false}} : {run}, {run})
            outs(%r, %n : {all_of_it}, vector<4xi16>)
          return
        }}"""
    )
    with pytest.raises(PtoError, match=r"pto\.tmrgsort: it counts into %n"):
        made.convert("l1")


# ---- keys of other tools -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["trowexpandmul", "tadd", "tcvt"])
def test_keys_of_other_tools_are_kept(name: str) -> None:
    ins = {"trowexpandmul": (V, COLUMN), "tadd": (V, V), "tcvt": (V,)}[name]
    out = tile("16x64xf16") if name == "tcvt" else V
    keys = "{src1Col = 1 : i64, pto.fusion.order = 3 : i64, mine}"
    plain, made = line(name, ins, (out,)), line(name, ins, (out,), keys)
    assert arguments(made) == arguments(plain)
    assert "src1Col = 1, pto.fusion.order = 3, mine}" in str(made)
    assert not made.check()
    assert made.cpp() == plain.cpp()


def test_a_misspelled_key_is_not_somebody_elses() -> None:
    with pytest.raises(PtoError, match="has no attribute precisiontype"):
        line("texp", (V,), (V,), "{precisiontype = #pto<exp_precision high_precision>}")
