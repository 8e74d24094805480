"""Diagnostics as SARIF 2.1.0, which code review tools show at their lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from ptokit.base.diagnostics import Diagnostic
from ptokit.base.location import Location
from ptokit.machine.codes import CODES

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(found: Iterable[Diagnostic], version: str) -> dict[str, Any]:
    """One run with all diagnostics; notes are related locations."""
    found = list(found)
    results = [_result(each) for each in found]
    said = {each.code: each.message for each in reversed(found)}
    rules = [_rule(code, said[code]) for code in dict.fromkeys(each.code for each in found)]
    driver = {"name": "ptokit", "version": version, "rules": rules}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(driver, results)]}


def _rule(code: str, message: str) -> dict[str, Any]:
    """A rule with what it is about; of those of single instructions the message says it."""
    if code not in CODES:
        return {"id": code, "shortDescription": {"text": message}}
    meaning, way_out = CODES[code]
    first, _, _ = meaning.partition(". ")
    return {
        "id": code,
        "shortDescription": {"text": first.rstrip(".") + "."},
        "fullDescription": {"text": meaning},
        "help": {"text": way_out},
    }


def _run(driver: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    return {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}


def _result(found: Diagnostic) -> dict[str, Any]:
    values = "".join(f"\n{path} = {value}" for path, value in found.got)
    fix = f"\nfix: {found.fix}" if found.fix else ""
    result: dict[str, Any] = {
        "ruleId": found.code,
        "level": found.severity,
        "message": {"text": f"{found.message}{values}{fix}"},
        "properties": {"target": found.target},
    }
    if found.location is not None:
        result["locations"] = [{"physicalLocation": _place(found.location)}]
    related = [
        {"id": number, "message": {"text": note.text}, "physicalLocation": _place(note.location)}
        for number, note in enumerate(found.notes, 1)
        if note.location is not None
    ]
    if related:
        result["relatedLocations"] = related
    return result


def _place(at: Location) -> dict[str, Any]:
    region: dict[str, int] = {"startLine": max(1, at.line)}
    if at.col:
        region["startColumn"] = at.col
        if at.end_col:
            region["endColumn"] = at.end_col
    uri = quote(at.file.replace("\\", "/"), safe="/:")
    return {"artifactLocation": {"uri": uri}, "region": region}
