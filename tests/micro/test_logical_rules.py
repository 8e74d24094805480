"""What holds of lanes, element types, masks and words of logical vectors: both sides of each."""

from __future__ import annotations

import pytest

from ptokit import PtoError
from ptokit.from_text import loads


def told(line: str, *params: str) -> list[str]:
    """The codes that a line is told, in a function with parameters a, b, c of these types."""
    names = [f"%{name}: {type_}" for name, type_ in zip("abcdef", params, strict=False)]
    text = f"func.func private @f({', '.join(names)}) {{\n{line}\nreturn\n}}"
    return [d.code for d in loads(text).check("a5")]


def vector(lanes: int, kind: str = "f32") -> str:
    return f"!pto.vmi.vreg<{lanes}x{kind}>"


def mask(lanes: int, width: str = "pred") -> str:
    return f"!pto.vmi.mask<{lanes}x{width}>"


F, UB = vector(64), "!pto.ptr<f32, ub>"
WRONG = ["micro-type"]


@pytest.mark.parametrize(
    ("other", "expected"),
    [(F, []), (vector(32), WRONG), (vector(64, "f16"), WRONG)],
)
def test_vectors_of_one_operation_are_alike(other: str, expected: list[str]) -> None:
    assert told(f"%r = pto.vmi.vadd %a, %b : {F}, {other} -> {F}", F, other) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (mask(64), []),
        (mask(64, "b32"), []),
        (mask(64, "b16"), WRONG),
        (mask(32), WRONG),
    ],
)
def test_a_mask_counts_the_lanes_beside_it(given: str, expected: list[str]) -> None:
    line = f"%r = pto.vmi.vadd %a, %a, %b : {F}, {F}, {given} -> {F}"
    assert told(line, F, given) == expected


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("vdiv", "f16", []),
        ("vdiv", "i32", WRONG),
        ("divf", "i32", WRONG),
        ("vand", "i32", []),
        ("vand", "f32", WRONG),
        ("addi", "f32", WRONG),
        ("addf", "f32", []),
        ("addf", "i32", WRONG),
        ("shrsi", "si32", []),
        ("shrsi", "i32", WRONG),  # which has no sign
        ("shrui", "i32", []),
    ],
)
def test_element_types_are_those_of_the_record(name: str, kind: str, expected: list[str]) -> None:
    v = vector(64, kind)
    assert told(f"%r = pto.vmi.{name} %a, %b : {v}, {v} -> {v}", v, v) == expected


@pytest.mark.parametrize(
    ("lanes", "words", "expected"),
    [
        (8, "group = 8, reassoc", []),
        (1, "reassoc", []),
        (8, "group = 4, reassoc", WRONG),
        (7, "group = 7, reassoc", WRONG),
        (8, "group = 8", WRONG),  # floats may be added in any order, and it says so
    ],
)
def test_a_reduction_has_a_lane_for_each_group(lanes: int, words: str, expected: list[str]) -> None:
    line = f"%r = pto.vmi.vcadd %a, %b {{{words}}} : {F}, {mask(64)} -> {vector(lanes)}"
    assert told(line, F, mask(64)) == expected


@pytest.mark.parametrize(
    ("source", "result", "words", "expected"),
    [
        ("f32", "f16", 'rounding = "H", saturate = "SAT"', []),
        ("f32", "f16", "", ["micro-saturate"]),
        ("f32", "f16", 'saturate = "OFTEN"', ["micro-word"]),
        ("f32", "f16", 'rounding = "C", saturate = "SAT"', WRONG),
        ("f16", "f32", "", []),
        ("f16", "f32", 'rounding = "R"', WRONG),
        ("f16", "f32", 'saturate = "SAT"', WRONG),
        ("bf16", "f16", 'saturate = "SAT"', []),
        ("f16", "bf16", 'saturate = "SAT"', WRONG),
        ("f32", "si16", 'rounding = "C", saturate = "NOSAT"', []),
        ("f32", "si8", 'saturate = "NOSAT"', WRONG),
        ("f32", "i32", 'saturate = "NOSAT"', WRONG),  # no sign
        ("f16", "si32", "", []),
        ("si32", "f32", "", []),
        ("i32", "f32", "", WRONG),
        ("si32", "si8", 'saturate = "NOSAT"', []),
        ("si32", "si8", 'saturate = "SAT"', WRONG),
        ("si32", "ui32", "", WRONG),
        ("!pto.bf16x2", "!pto.f4E2M1x2", 'rounding = "C"', []),
        ("!pto.bf16x2", "!pto.f4E2M1x2", 'saturate = "SAT"', WRONG),
        ("!pto.bf16x2", "f16", "", WRONG),
        ("!pto.f4E2M1x2", "bf16", "", WRONG),
    ],
)
def test_conversions(source: str, result: str, words: str, expected: list[str]) -> None:
    a, r = vector(64, source), vector(64, result)
    assert told(f"%r = pto.vmi.vcvt %a {{{words}}} : {a} -> {r}", a) == expected


def test_what_does_not_say_whether_it_saturates_may_be_allowed() -> None:
    line = f"%r = pto.vmi.truncf %a : {F} -> {vector(64, 'bf16')} // ptokit: allow micro-saturate"
    assert told(line, F) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%r = pto.vmi.vload %b[%c] : {ub} -> {f}", []),
        ("%r = pto.vmi.vload %b[%c] : {ub} -> {h}", WRONG),
        ('%r = pto.vmi.vload %b[%c] {{dist_mode = "far"}} : {ub} -> {f}', ["micro-word"]),
        ("%r = pto.vmi.vload %b[%c], %c {{group = 8}} : {ub} -> {f}", []),
        ("%r = pto.vmi.vload %b[%c], %c : {ub} -> {f}", WRONG),
        ("%r = pto.vmi.vload %b[%c] {{group = 8}} : {ub} -> {f}", WRONG),
        ("%r = pto.vmi.vload %b[%c], %c {{group = 7}} : {ub} -> {f}", WRONG),
        ('%r, %s = pto.vmi.vload %b[%c] {{dist_mode = "dintlv"}} : {ub} -> {f}, {f}', []),
        ("%r, %s = pto.vmi.vload %b[%c] : {ub} -> {f}, {f}", WRONG),
        ('%r = pto.vmi.vload %b[%c] {{dist_mode = "dintlv"}} : {ub} -> {f}', WRONG),
        ('pto.vmi.vstore %a, %a, %b[%c] {{dist_mode = "dintlv"}} : {f}, {f}, {ub}', []),
        ("pto.vmi.vstore %a, %a, %b[%c] : {f}, {f}, {ub}", WRONG),
        ('pto.vmi.vstore %a, %b[%c], %d {{pmode = "merge"}} : {f}, {ub}, {m}', ["micro-word"]),
        ("pto.vmi.vstore %a, %b[%c], %c, %d {{group = 8}} : {f}, {ub}, {m}", WRONG),
        ("pto.vmi.masked_store %a, %b[%c], %d : {f}, {ub}, {m}", []),
    ],
)
def test_loads_and_stores_have_one_mode(text: str, expected: list[str]) -> None:
    line = text.format(ub=UB, f=F, h=vector(64, "f16"), m=mask(64))
    assert told(line, F, UB, "index", mask(64)) == expected


SPREAD = "!pto.vmi.vreg<{}xf32, #pto.vmi.layout<{}>>"


@pytest.mark.parametrize(
    ("lanes", "layout", "parts"),
    [
        (128, "contiguous", 2),
        (100, "contiguous", 2),
        (128, "deinterleaved = 2", 2),
        (100, "deinterleaved = 4", 4),
        (128, "contiguous, lane_stride = 2", 4),
        (256, "block_deinterleaved = 2", 4),
        (8, "num_groups = 8, slots = 8", 1),
        (8, "num_groups = 8, slots = 1", 8),
        (10, "num_groups = 10, slots = 8", 2),
    ],
)
def test_a_layout_takes_so_many_registers(lanes: int, layout: str, parts: int) -> None:
    given = SPREAD.format(lanes, layout)
    for count, expected in ((parts, []), (parts + 1, WRONG)):
        names = ", ".join(f"%r{n}" for n in range(count))
        types = ", ".join(["!pto.vreg<64xf32>"] * count)
        line = f'{names} = "pto.vmi.unpack"(%a) : ({given}) -> ({types})'
        assert told(line, given) == expected


@pytest.mark.parametrize(
    "text",
    [
        "!pto.vmi.vreg<64xi64>",
        "!pto.vmi.vreg<64xf32, #pto.vmi.layout<deinterleaved = 3>>",
        "!pto.vmi.vreg<64xf32, #pto.vmi.layout<contiguous = 2>>",
        "!pto.vmi.vreg<64xf32, #pto.vmi.layout<sideways>>",
        "!pto.vmi.vreg<64xf32, #pto.vmi.layout<num_groups = 8>>",
        "!pto.vmi.vreg<8xf32, #pto.vmi.layout<num_groups = 8, slots = -1>>",
        "!pto.vmi.vreg<64xf32, #pto.vmi.layout<block_deinterleaved = 2, lane_stride = 2>>",
        "!pto.vmi.mask<64xpred, #pto.vmi.layout<contiguous>>",
        "!pto.vmi.mask<64xb64>",
    ],
)
def test_types_that_no_vector_has(text: str) -> None:
    with pytest.raises(PtoError, match="unknown-type"):
        loads(f"func.func private @f(%a: {text}) {{ return }}")


@pytest.mark.parametrize(
    ("type_", "is_read"),
    [
        (vector(1 << 20), True),
        (vector((1 << 20) + 1), False),
        (mask(1 << 20), True),
        (mask((1 << 20) + 1), False),
        ("!pto.vmi.vreg<64xf32, #pto.vmi.layout<contiguous, lane_stride = 65536>>", True),
        ("!pto.vmi.vreg<64xf32, #pto.vmi.layout<contiguous, lane_stride = 65537>>", False),
    ],
)
def test_sizes_of_types_have_bounds(type_: str, is_read: bool) -> None:
    """Beyond, working out where lanes lie would take memory without end."""
    try:
        assert (told("", type_) == []) == is_read
    except PtoError:
        assert not is_read


@pytest.mark.parametrize(
    ("number", "expected"),
    [("8 : i64", []), ("8.0 : f32", ["micro-word"]), ('"8"', ["micro-word"])],
)
def test_a_word_that_is_a_number_is_one(number: str, expected: list[str]) -> None:
    """It is said before any law counts with it."""
    small = vector(8)
    line = f"%r = pto.vmi.group_reduce_addf %a, %b {{num_groups = {number}, reassoc}}"
    types = f": {F}, {mask(64)} -> {small}"
    assert told(f"{line} {types}", F, mask(64)) == expected
