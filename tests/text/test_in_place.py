"""What a line may not write over: the operands whose place a result must not take."""

from __future__ import annotations

import re

import pytest

from ptokit.from_text import loads
from tests.text.lines import program

V = "16x64xf32"
# A line with its tiles named, the two that lie at one address, and the targets that refuse it.
CASES = {
    "ttrans": ("ins({16x16xf32 =s}, {16x16xf32}) outs({16x16xf32 =d})", "s d", "a2a3 a5"),
    "tgather": (f"ins({{{V} =s}}, {{16x64xi32}}, {{16x64xi32}}) outs({{{V} =d}})", "s d",
                "a2a3 a5"),
    "tands": ("ins({16x64xi16 =s}, {i16}) outs({16x64xi16 =d})", "s d", "a2a3 a5"),
    "tors": ("ins({16x64xi16 =s}, {i16}) outs({16x64xi16 =d})", "s d", "a2a3 a5"),
    "tfillpad": (f"ins({{{V} =s}}) outs({{24x96xf32 pad=1 =d}})", "s d", "a2a3 a5"),
    "tfmod": (f"ins({{{V} =s}}, {{{V}}}) outs({{{V} =d}})", "s d", "a2a3"),
    "tfmods": (f"ins({{{V} =s}}, {{f32}}) outs({{{V} =d}})", "s d", "a2a3"),
    "trecip": (f"ins({{{V} =s}}) outs({{{V} =d}})", "s d", "a2a3"),
    "trowsum": (f"ins({{{V} =s}}, {{{V}}}) outs({{16x8xf32 valid=16x1 =d}})", "s d", "a2a3 a5"),
    "trowargmax": (f"ins({{{V} =s}}, {{{V}}}) outs({{16x1xui32 col =d}})", "s d", "a2a3 a5"),
    "tcolargmin": (f"ins({{{V} =s}}, {{{V}}}) outs({{1x64xui32 =d}})", "s d", "a2a3 a5"),
    "tsort32": ("ins({1x64xf32 =s}, {1x64xui32}) outs({1x128xf32 =d})", "s d", "a2a3 a5"),
    "tsel": (f"ins({{16x32xi8 =m}}, {{{V}}}, {{{V}}}, {{1x16xi32}}) outs({{{V} =d}})", "m d",
             "a2a3 a5"),
    "trowexpand": (f"ins({{16x8xf32 valid=16x1 =s}}) outs({{{V} =d}})", "s d", "a2a3 a5"),
    "tcolexpand": (f"ins({{1x64xf32 =s}}) outs({{{V} =d}})", "s d", "a2a3 a5"),
    "tcvt": (f"ins({{16x64xf16 =s}}) outs({{{V} =d}})", "s d", "a2a3 a5"),
    "tmov": (f"ins({{{V} =s}}) outs({{{V} valid=8x64 =d}})", "s d", "a2a3 a5"),
}  # fmt: skip
# And the rest is allowed; models rely on it.
ALLOWED = {
    "tadd": f"ins({{{V} =s}}, {{{V}}}) outs({{{V} =d}})",
    "texp": f"ins({{{V} =s}}) outs({{{V} =d}})",
    "tcvt": f"ins({{{V} =s}}) outs({{16x64xbf16 =d}})",
    "trowexpandmul": f"ins({{{V} =s}}, {{16x1xf32 col}}) outs({{{V} =d}})",
    "tmov": f"ins({{{V} =s}}) outs({{{V} =d}})",  # from where it is to where it is
}


def errors(name: str, line: str, shared: str, target: str) -> list[str]:
    """What is wrong where two tiles of a line lie at one address, if it is said where."""
    text = program(f"pto.{name} {line}", placed=True)
    if shared:
        order = [m for m in re.findall(r"\{([^{}]*)\}", line) if "x" in m]
        tiles = dict(zip(range(len(order)), re.findall(r"(%v\d+) = ", text), strict=True))
        names = {m[-1]: tiles[n] for n, m in enumerate(order) if " =" in m}
        first, second = (names[each] for each in shared.split())
        text = text.replace(f"addr = %at{second[1:]} ", f"addr = %at{first[1:]} ")
    return [d.code for d in loads(text).check(target, 3) if d.severity == "error"]


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("name", CASES)
def test_a_result_over_its_source(name: str, target: str) -> None:
    line, shared, refusing = CASES[name]
    assert not errors(name, line, "", target)
    assert bool(errors(name, line, shared, target)) == (target in refusing.split())


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("name", ALLOWED)
def test_in_place_where_it_may_be(name: str, target: str) -> None:
    assert not errors(name, ALLOWED[name], "s d", target)
