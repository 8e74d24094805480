"""Every diagnostic code has a program that raises it and a repaired one; both are run here."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.native.support import has_compiler

TOOLS = str(Path(__file__).resolve().parents[2] / "tools")
sys.path.insert(0, TOOLS)

from error_codes import WITHOUT_PROGRAM, rule_codes, source_codes  # noqa: E402
from error_pages import Entry, entries, outcome  # noqa: E402

ENTRIES = list(entries())
RIGHT: set[tuple[str, str]] = set()  # repaired programs that have been run
DOCUMENTED = [code for entry in ENTRIES for code in entry.codes]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: ",".join(entry.codes))
def test_the_program_raises_its_code_and_the_repaired_one_is_clean(entry: Entry) -> None:
    if entry.page == "cpp" and not has_compiler():
        pytest.skip("no C++ compiler at hand")
    assert set(entry.codes) <= {code for _, code in outcome(entry, entry.wrong)}
    if (entry.page, entry.right) not in RIGHT:  # several codes may have one way out
        assert outcome(entry, entry.right) == []
        RIGHT.add((entry.page, entry.right))


def test_every_code_of_the_sources_is_documented() -> None:
    known = {*DOCUMENTED, *WITHOUT_PROGRAM, *rule_codes()}
    missing = {
        code: place
        for code, place in source_codes().items()
        if not any(fnmatchcase(each, code) for each in known)
    }
    assert not missing, "write a section in docs/errors for each"


def test_no_section_outlives_its_code() -> None:
    patterns = {*source_codes(), *rule_codes()}
    places = [(entry.page, code) for entry in ENTRIES for code in entry.codes]
    assert len(places) == len(set(places))
    for code in (*DOCUMENTED, *WITHOUT_PROGRAM):
        assert any(fnmatchcase(code, pattern) for pattern in patterns), code


def test_the_index_leads_to_every_section() -> None:
    index = (Path(TOOLS).parent / "docs/errors.md").read_text("utf-8")
    for entry in ENTRIES:
        assert f"](errors/{entry.page}.md#{entry.anchor})" in index
        assert not set(entry.anchor) - set("abcdefghijklmnopqrstuvwxyz0123456789_-"), entry.anchor


def test_the_collector_sees_all_ways_to_give_a_code() -> None:
    found = source_codes()
    for code in ("E7", "lower.gone", "place.overflow", "poison-read", "gm-bounds", "SA-0065",
                 "syntax", "*.operands", "*.index-range", "check.time", "level3-addr"):  # fmt: skip
        assert code in found
