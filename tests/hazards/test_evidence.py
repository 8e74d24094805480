"""Findings as data: the two accesses, what orders them, the elements, and the cause they share."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ptokit import *
from ptokit.base.diagnostics import Diagnostic, Note, rendered
from ptokit.base.evidence import Part, causes
from ptokit.base.location import Location
from ptokit.machine.codes import CODES
from ptokit.report.sarif import sarif
from tests.command import command
from tests.hazards.support import *

Right = Tile[TileType.Vec, float32, 16, 8, BLayout.RowMajor, 16, 8]


def two_loads(wait: bool = False) -> Any:
    """Two tiles are loaded and added: one missing flag, two races."""

    def program() -> None:
        a, b, c = at(F32(), 0x0), at(F32(), 0x400), at(F32(), 0x800)
        TLOAD(a, G32(array()))  # first
        TLOAD(b, G32(array()))  # second
        if wait:
            PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
        TADD(c, a, b)  # sum
        TADDS(c, c, 1.0)

    return program


def raised(program: Any, **more: Any) -> Any:
    with pytest.raises(ProgramError) as caught:
        launch({"vector": program}, "a5", **more)
    return caught.value


def test_a_race_says_who_and_what_is_missing() -> None:
    program = two_loads()
    first = raised(program).diagnostics[0]
    evidence = first.evidence
    assert evidence is not None
    assert (evidence.memory, evidence.edge, evidence.schedule) == ("UB", "MTE2->V", "in order")
    assert evidence.span == (0, 0x400)
    one, other = evidence.earlier, evidence.later
    assert (one.instruction, one.operand, one.does, one.pipe) == ("TLOAD", "dst", "writes", "MTE2")
    assert (other.instruction, other.operand, other.does) == ("TADD", "src0", "reads")
    assert other.location is not None
    assert other.location.line == marked(program, "sum")
    assert one.part == other.part == Part((0, 16), (0, 16))
    assert raised(program, seed=3).diagnostics[0].evidence.schedule == "seed 3"


def test_bytes_are_elements_of_both_tiles() -> None:
    """The last eight rows of one tile are the first eight of the other."""

    def program() -> None:
        TLOAD(at(F32(), 0), G32(array()))
        TEXPANDS(at(F32(), 0x200), 0.0)

    evidence = raised(program).diagnostics[0].evidence
    assert evidence.earlier.part == Part((8, 16), (0, 16))
    assert evidence.later.part == Part((0, 8), (0, 16))


def test_races_with_one_cause_are_one_finding() -> None:
    error = raised(two_loads())
    assert len(error.diagnostics) == 2
    (finding,) = error.findings
    assert (finding.code, finding.severity, len(finding.others)) == ("E6", "error", 1)


def test_races_that_need_two_edges_are_two_findings() -> None:
    def program() -> None:
        a, b, c = at(F32(), 0x0), at(F32(), 0x400), at(F32(), 0x800)
        TLOAD(a, G32(array()))
        TADDS(c, a, 1.0)
        TLOAD(b, G32(array()))
        TADDS(at(F32(), 0xC00), b, 1.0)

    error = raised(program)
    assert len(error.diagnostics) == len(error.findings) == 2


def test_a_run_has_its_warnings_as_findings() -> None:
    @kernel(mode="manual", target="a2a3")
    def chain(z: Any) -> None:
        tile = F32()
        TASSIGN(tile, 0)
        TEXPANDS(tile, 1.0)
        TADDS(tile, tile, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(GlobalTensor(z), tile)

    (finding,) = chain[1](array(0)).findings
    assert (finding.code, finding.severity) == ("E8", "warning")
    assert finding.evidence is not None
    assert finding.evidence.edge == "barrier V"


def test_what_has_no_evidence_stands_for_itself() -> None:
    found = check(lambda: set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1))
    assert [f.first for f in causes(found)] == list(found)


BROKEN = """
from ptokit import *

T = Tile[TileType.Vec, float32, 16, 16]


@kernel(mode="manual", target="a5")
def broken(x: float32[16, 16], y: float32[16, 16]):
    a, b = T(), T()
    TASSIGN(a, 0)
    TASSIGN(b, 0x400)
    TLOAD(a, GlobalTensor(x))
    TADDS(b, a, 1.0)
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    TSTORE(GlobalTensor(y), b)
"""


def test_the_command_line_gives_data(tmp_path: Path) -> None:
    file, report = tmp_path / "broken.py", tmp_path / "report.sarif"
    file.write_text(BROKEN)
    words = ["check", str(file), "--json", "--sarif", str(report)]
    told = command(*words)
    assert told.returncode == 1
    (race,) = json.loads(told.stdout)["diagnostics"]
    assert race["evidence"]["edge"] == "MTE2->V"
    assert race["evidence"]["later"]["location"]["line"] == 13
    assert race["evidence"]["later"]["part"] == {"rows": [0, 16], "cols": [0, 16]}
    (run,) = json.loads(report.read_text())["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("E6", "error")
    place = result["locations"][0]["physicalLocation"]
    assert place["region"]["startLine"] == 13
    assert place["artifactLocation"]["uri"].endswith("broken.py")
    assert result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 12
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["id"] == "E6"
    assert rule["shortDescription"]["text"].startswith("Two pipes use the same bytes")
    assert rule["help"]["text"] == CODES["E6"][1]


def test_sarif_has_what_its_schema_requires() -> None:
    """The required properties of each object of SARIF 2.1.0 that we write, and its enumerations."""
    strange = Location("a folder/kernel<1>.py", 0)
    found = [
        Diagnostic("E7", "races", strange, severity="warning", notes=(Note("other", strange),)),
        Diagnostic("TLOAD.shape", "does not fit", Location("k.py", 3, 5, 9)),
        Diagnostic("usage", "no line at all"),
    ]
    log = sarif(found, "1.0")
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "ptokit"
    assert [rule["id"] for rule in driver["rules"]] == [each.code for each in found]
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    for result in run["results"]:
        assert result["message"]["text"]
        assert result["level"] in ("none", "note", "warning", "error")
        for place in (*result.get("locations", ()), *result.get("relatedLocations", ())):
            at = place["physicalLocation"]
            assert set(at["artifactLocation"]["uri"]).isdisjoint(" <>")
            region = at["region"]
            assert region["startLine"] >= 1
            assert region.get("endColumn", 2) > region.get("startColumn", 1) >= 1


def test_what_one_edge_mends_is_shown_once() -> None:
    """All rounds of the loop lack the same flags."""

    def program() -> None:
        for i in range(12):
            a, b = at(F32(), 0x1000 * i), at(F32(), 0x1000 * i + 0x400)
            TLOAD(a, G32(array()))
            TLOAD(b, G32(array()))
            TADD(a, a, b)

    error = raised(program)
    text = str(error)
    assert text.count("more with this cause: line ") == len(error.findings) == 1
    assert len(error.diagnostics) > text.count("error[E6]") == 1


def test_causes_beyond_ten_are_counted() -> None:
    found = [replace(raised(two_loads()).diagnostics[0], code=f"E{number}") for number in range(12)]
    text = rendered(found)
    assert text.count(": error[E") == 10
    assert text.endswith("2 more causes: `findings` and --json have them all")
    plain = [replace(each, evidence=None) for each in found]
    assert rendered(plain).count(": error[E") == 12, "what breaks a rule is all told"
