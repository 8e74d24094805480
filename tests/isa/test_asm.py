"""The text patterns that pages show: one line per overload, with the attributes it takes."""

from __future__ import annotations

import re

import pytest

from ptokit.ir.dialects import DEFINITIONS
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.asm import FORMS, mnemonic, text_forms
from tests.isa.specification import FOLDER, available, entries

TILE, BUF = "!pto.tile<...>", "!pto.tile_buf<...>"
COMPARED = "%src0, %src1 {cmpMode = #pto<...>}"
TREE = "%src, %tmp {isBinary = false}"
UP = "{descending = false}"
BOTH = "%dstVal, %dstIdx = pto.tcolargmax"


@pytest.mark.parametrize(
    ("name", "form", "lines"),
    [
        ("TADD", "l1", [f"%dst = pto.tadd %src0, %src1 : ({TILE}, {TILE}) -> {TILE}"]),
        ("TADD", "l2", [f"pto.tadd ins(%src0, %src1 : {BUF}, {BUF}) outs(%dst : {BUF})"]),
        (
            "TCMP",
            "l2",
            [f"pto.tcmp ins({COMPARED} : {BUF}, {BUF}) outs(%dst : {BUF})"],
        ),
        (
            "TLOAD",
            "sync",
            [f"%dst = tload %src[%row, %col] : (!pto.memref<...>, index, index) -> {TILE}"],
        ),
        ("TCI", "l1", [f"%dst = pto.tci %start {UP} : dtype -> {TILE}"]),
        (
            "TCI",
            "l2",
            [
                f"pto.tci ins(%start : dtype) outs(%dst : {BUF}) {UP}",
                f"pto.tci ins(%start, %tmp : dtype, {BUF}) outs(%dst : {BUF}) {UP}",
            ],
        ),
        (
            "TCOLSUM",
            "l2",
            [
                f"pto.tcolsum ins(%src : {BUF}) outs(%dst : {BUF})",
                f"pto.tcolsum ins({TREE} : {BUF}, {BUF}) outs(%dst : {BUF})",
            ],
        ),
        (
            "TCOLARGMAX",
            "l1",
            [
                f"%dstIdx = pto.tcolargmax %src, %tmp : ({TILE}, {TILE}) -> {TILE}",
                f"{BOTH} %src, %tmp : ({TILE}, {TILE}) -> ({TILE}, {TILE})",
            ],
        ),
        (
            "TDEINTERLEAVE",
            "sync",
            [
                f"%dst0, %dst1 = tdeinterleave %src0, %src1 : ({TILE}, {TILE}) -> ({TILE}, {TILE})",
                f"%dst0, %dst1 = tdeinterleave %src : {TILE} -> ({TILE}, {TILE})",
            ],
        ),
    ],
)
def test_patterns(name: str, form: str, lines: list[str]) -> None:
    assert text_forms(INSTRUCTIONS[name])[form].splitlines() == lines


def test_overloads_may_have_a_mnemonic_of_their_own() -> None:
    lines = text_forms(INSTRUCTIONS["TMATMUL_MX"])["l2"].splitlines()
    names = [line.partition(" ")[0] for line in lines]
    assert names == ["pto.tmatmul.mx", "pto.tmatmul.mx.acc", "pto.tmatmul.mx.bias"]


def test_attributes_appear_only_where_they_mean_something() -> None:
    blocks, *lists = text_forms(INSTRUCTIONS["TMRGSORT"])["l1"].splitlines()
    assert "exhausted" not in blocks
    assert len(lists) == 3
    assert all("{exhausted = false}" in line for line in lists)


@pytest.mark.parametrize("name", [n for n, insn in INSTRUCTIONS.items() if insn.asm is not None])
def test_every_text_form_has_a_pattern(name: str) -> None:
    insn = INSTRUCTIONS[name]
    assert insn.asm is not None
    forms = text_forms(insn)
    assert set(forms) == insn.asm.forms
    for text in forms.values():
        assert text
        assert "  " not in text


@pytest.mark.parametrize("name", [n for n, i in INSTRUCTIONS.items() if i.asm and i.asm.syntax])
def test_a_syntax_of_its_own_is_an_operation_of_the_record(name: str) -> None:
    """No second list spells what the table spells."""
    insn = INSTRUCTIONS[name]
    assert insn.asm is not None
    for word in insn.asm.syntax:
        assert DEFINITIONS[f"pto.{word}"].insn is insn


def test_spellings_of_our_own_are_marked() -> None:
    """What the published language and the pages do not spell says so on its page."""
    available()
    published: set[str] = set()
    for file in ("text.md", "text-current.md"):
        text = (FOLDER / file).read_text("utf-8")
        rows = "\n".join(line for line in text.splitlines() if line.startswith("|"))
        published |= {n.rstrip(".") for n in re.findall(r"pto\.([A-Za-z_][\w.]*)", text)}
        published |= set(re.findall(r"`([\w.]+)`", rows))
        listed = re.findall(
            r"^\| ([a-z_]\w*(?:, [a-z_]\w*)+) \|", rows, re.M
        )  # names in a first cell
        published |= {name for cell in listed for name in cell.split(", ")}
    pages = [entry.data.get("asm") for found in entries().values() for entry in found]
    shown = [str(asm.get(form)) for asm in pages if isinstance(asm, dict) for form in FORMS]
    for line in shown:  # `pto.tadd ins(...)`, `%dst = tadd %src0, ...`, `tsync %event`
        published |= set(re.findall(r"pto\.([A-Za-z_][\w.]*)", line))
        published |= set(re.findall(r"(?:^|= |\| )([a-z][\w.]*)(?: [%{]|$)", line))
    ours = {
        insn.name
        for insn in INSTRUCTIONS.values()
        if insn.asm and not {mnemonic(insn), *insn.asm.syntax} & published
    }
    marked = {insn.name for insn in INSTRUCTIONS.values() if insn.asm and not insn.asm.is_stable}
    assert marked == ours | {"TALLOC"}  # whose page says that it has no stable form yet
