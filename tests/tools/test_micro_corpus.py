"""The table of files of the micro level: what loads, what is refused, and what has no reason."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from micro_corpus import Verdict, judged, page, summary

F = "!pto.vmi.vreg<64xf32>"
GOOD = f"func.func @f(%a: {F}) {{\n%r = pto.vmi.vadd %a, %a : {F}, {F} -> {F}\nreturn\n}}\n"
BAD = GOOD.replace("vadd", "vand")  # floats have no bits here


def of(tmp_path: Path, text: str) -> Verdict:
    file = tmp_path / "case.pto"
    file.write_text(text)
    return judged(tmp_path, file)


def test_a_program_has_no_remark(tmp_path: Path) -> None:
    found = of(tmp_path, GOOD)
    assert (found.clean, found.rows, found.is_explained) == (1, [], True)


def test_what_must_be_refused_is(tmp_path: Path) -> None:
    found = of(tmp_path, f"// RUN: not ptoas %s\n{BAD}// CHECK: requires integers\n")
    assert (found.must_fail, found.refused, found.rows) == (1, 1, [])
    passes = of(tmp_path, f"// RUN: not ptoas %s\n{GOOD}// CHECK: requires integers\n")
    assert (passes.must_fail, passes.refused, passes.is_explained) == (1, 0, False)


def test_the_line_that_a_test_marks_is_the_one_that_is_told(tmp_path: Path) -> None:
    marked = BAD.replace("%r =", "// expected-error@+1 {{bits}}\n%r =")
    assert of(tmp_path, marked).rows == []
    elsewhere = "// expected-error@+1 {{bits}}\n" + BAD
    assert [kind for kind, _, _ in of(tmp_path, elsewhere).rows] == ["line"]


def test_each_module_is_judged(tmp_path: Path) -> None:
    text = f"// RUN: not ptoas %s\n{BAD}// CHECK: requires integers\n// -----\n{GOOD}"
    found = of(tmp_path, text)
    assert (found.modules, found.must_fail, found.refused, found.clean) == (2, 1, 1, 1)


def test_a_pass_of_the_compiler_may_refuse_what_runs_here(tmp_path: Path) -> None:
    found = of(tmp_path, f"// RUN: not opt %s\n{GOOD}// CHECK: VMI-UNSUPPORTED: no plan\n")
    assert (found.clean, found.must_fail, found.is_explained) == (1, 0, True)
    assert "VMI-UNSUPPORTED" in page([found])


def test_the_last_line_says_whether_something_is_left(tmp_path: Path) -> None:
    good, left = of(tmp_path, GOOD), of(tmp_path, BAD)
    assert summary([good])[-1] == "all vpto and vmi files of the corpus load or are explained"
    assert summary([good, left])[-1].startswith("1 files are not explained: case.pto")


def test_threads_are_explained_by_their_group(tmp_path: Path) -> None:
    text = 'func.func @f(%a: i32) {\n%m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>\n'
    found = of(tmp_path, text + "pto.simt_launch %a\nreturn\n}\n")
    ((code, shown, why),) = found.rows
    assert code == "not-supported"
    assert "pto.simt_launch" in shown
    assert "(line 3)" in shown
    assert "threads" in why
