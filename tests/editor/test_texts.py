"""Answers about texts: pages, definitions, offers."""

from __future__ import annotations

import pytest

from ptokit.editor import texts
from ptokit.ir.instructions import forms_by_mnemonic
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.micro import MICRO

TEXT = """\
func.func @twice(%x: !pto.ptr<f32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %total = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c0) -> (index) {
    %next = arith.addi %sum, %i : index  // not %c9 = here
    scf.yield %next : index
  }
  return
}

func.func @other(%x: !pto.ptr<f32>) {
  call @twice(%x, %total) : (!pto.ptr<f32>, index) -> ()
  return
}
"""


def at(word: str, line: int) -> tuple[int, int]:
    """The middle of a word of a line that counts from 1."""
    return line - 1, TEXT.splitlines()[line - 1].index(word) + 1


@pytest.mark.parametrize(
    ("word", "line", "made"),
    [
        ("%n step", 4, 1),
        ("%sum, ", 5, 4),
        ("%i :", 5, 4),
        ("%next :", 6, 5),
        ("%c1 iter", 4, 3),
        ("@twice(", 12, 1),
        ("%x, ", 12, 11),
        ("%total)", 12, 4),
    ],
)
def test_a_definition_is_the_line_that_makes_it(word: str, line: int, made: int) -> None:
    span = texts.definition(TEXT, *at(word, line))
    assert span is not None
    assert span.line == made - 1
    name = word.rstrip(" ,:()").split()[0].rstrip("(),:")
    assert TEXT.splitlines()[span.line][span.start : span.end] == name


@pytest.mark.parametrize("place", [(0, 0), (2, 30), (99, 0)])
def test_elsewhere_there_is_none(place: tuple[int, int]) -> None:
    assert texts.definition(TEXT, *place) is None


@pytest.mark.parametrize(
    "word", [*INSTRUCTIONS, *(f"pto.{m}" for m in (*forms_by_mnemonic(), *MICRO))]
)
def test_every_operation_has_a_page(word: str) -> None:
    assert texts.page_of(word).startswith("# ")


def test_offers() -> None:
    lines = TEXT + "  pto.tad\n  %\n  @\n"
    count = len(TEXT.splitlines())
    assert {"pto.tadd", "pto.tadds"} <= {o.name for o in texts.offers(lines, count, 9)}
    assert not any(o.name.startswith("pto.tsub") for o in texts.offers(lines, count, 9))
    values = [o.name for o in texts.offers(lines, count + 1, 3)]
    assert values[:3] == ["%x", "%n", "%c0"]
    assert [o.name for o in texts.offers(lines, count + 2, 3)] == ["@twice", "@other"]
    assert texts.offers(lines, count, 1) == []


def test_findings_are_those_of_check() -> None:
    assert [d.code for d in texts.findings("k.pto", "func.func @f( {")] == ["syntax"]
    assert texts.findings("k.pto", TEXT.replace("%total)", "%n0)")) != []


@pytest.mark.parametrize("odd", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_only_what_ends_a_line_in_an_editor_ends_one_here(odd: str) -> None:
    text = f"// one {odd} line\r\n%a = pto.get_block_idx\r%b = arith.addi %a, %a : i64\n"
    assert texts.word_at(text, 2, 17) == ("%a", texts.Span(2, 16, 18))
    assert texts.definition(text, 2, 17) == texts.Span(1, 0, 2)


def test_a_second_finding_is_allowed_by_the_same_comment() -> None:
    line = "TADD(a, b, c)  # sum  # ptokit: allow PA-0044"
    assert texts.allowance(line, "E8", "#") == (len(line), ", E8")
    assert texts.allowance("pto.tadd  ", "E8", "//") == (8, "  // ptokit: allow E8")
