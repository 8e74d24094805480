"""The text files of this folder: programs that round-trip, and programs that must be refused.

`programs/` holds one feature per file. `errors/` and `rules/` hold many bad programs per file,
separated by `// -----`; a comment `// expect LINES:COL CODE MESSAGE [| FIX]` names the diagnostic
that the line so many lines below it must get, and no other may appear.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptokit.base.diagnostics import Diagnostic
from ptokit.from_text import Program, formatted
from ptokit.ir.asmform import print_asm
from ptokit.ir.lexer import Source
from ptokit.ir.parser import parse, parse_file, parse_with_errors
from ptokit.ir.printer import print_module
from ptokit.ir.rewrite import clone, same_module

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.pto"))
ERRORS = sorted((HERE / "errors").glob("*.pto"))
RULES = sorted((HERE / "rules").glob("*.pto"))
_EXPECT = re.compile(r"//\s*expect (\d+):(\d+) (\S+) ([^|\n]+?)(?: \| ([^\n]+))?$")


def name_of(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_printing_reads_back_to_the_same_module(path: Path) -> None:
    module = parse_file(path)
    for generic in (False, True):
        if generic and path.stem.startswith("assembly"):
            continue  # operands with indices have no generic form
        text = print_module(module, generic=generic)
        again = parse(text, "printed")
        assert same_module(module, again), text
        assert print_module(again, generic=generic) == text
        assert not re.search(r",[^\s]", text), "a space stands behind every comma"


@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_a_clone_is_equal_and_shares_no_operation(path: Path) -> None:
    module = parse_file(path)
    copy = clone(module)
    assert same_module(module, copy)
    assert not set(module.walk()) & set(copy.walk())


@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_every_operation_knows_its_line(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    for op in parse_file(path).walk():
        if op.name == "func.return" or not op.location.col:
            continue
        word = op.name.rpartition(".")[2]
        line = lines[op.location.line - 1]
        assert word in line or op.name == "arith.constant" or op.name == "scf.yield", (op, line)


@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_formatting_is_idempotent_and_keeps_comments(path: Path) -> None:
    text = formatted(path.read_text("utf-8"), str(path))
    assert formatted(text) == text
    for comment in re.findall(r"//[^\n]*", path.read_text("utf-8")):
        assert comment.rstrip() in text


@pytest.mark.parametrize("name", sorted(p.name for p in (HERE / "programs").glob("assembly*.pto")))
def test_assembly_lines_read_back(name: str) -> None:
    module = parse_file(HERE / "programs" / name)
    text = print_asm(module)
    assert same_module(module, parse(text, name))
    assert print_asm(parse(text, name)) == text


def test_assembly_lines_stay_assembly_lines_and_keep_their_comments() -> None:
    text = """\
# As the instruction pages write comments.
.arg %src : !pto.tile<16x16xf32>;  // the source
// in between
%dst = ttrans %src : !pto.tile<16x16xf32> -> !pto.tile<16x16xf32>;  # behind
# at the end
"""
    assert formatted(text) == text


def pieces(path: Path) -> list[tuple[int, str]]:
    """The programs of a file with the number of lines in front of each."""
    found: list[tuple[int, str]] = []
    before = 0
    for piece in re.split(r"(?m)^// -----\n", path.read_text("utf-8")):
        found.append((before, piece))
        before += piece.count("\n") + 1
    return found


def compare(piece: str, found: list[Diagnostic]) -> None:
    wanted = []
    for number, line in enumerate(piece.splitlines(), 1):
        match = _EXPECT.search(line)
        if match:
            below, col, code, message, fix = match.groups()
            wanted.append((number + int(below), int(col), code, message, fix or ""))
    assert wanted, "a program without an expectation"
    got = [(d.location.line, d.location.col, d.code) for d in found if d.location]
    assert got == [w[:3] for w in wanted], "\n".join(d.render() for d in found)
    for diagnostic, (*_, message, fix) in zip(found, wanted, strict=True):
        assert message in diagnostic.message
        assert fix in diagnostic.fix
        shown = diagnostic.render()
        assert "^" in shown
        assert "src/ptokit" not in shown


CASES = [
    pytest.param(piece, id=f"{path.stem}-{n}")
    for path in ERRORS
    for n, (_, piece) in enumerate(pieces(path))
]


@pytest.mark.parametrize("piece", CASES)
def test_mistakes_are_found_where_they_are(piece: str) -> None:
    _, errors = parse_with_errors(Source(piece, "bad.pto"))
    compare(piece, errors)


RULE_CASES = [
    pytest.param(piece, id=f"{path.stem}-{n}")
    for path in RULES
    for n, (_, piece) in enumerate(pieces(path))
]


@pytest.mark.parametrize("piece", RULE_CASES)
def test_broken_rules_are_found_where_they_are(piece: str) -> None:
    options = dict(re.findall(r"//\s*(target|level) (\S+)", piece))
    program = Program(parse(piece, "bad.pto"))
    found = program.check(options.get("target"), int(options.get("level", "0")))
    compare(piece, found)
