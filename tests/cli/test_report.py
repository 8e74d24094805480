"""`ptokit report`: Python files, texts and C++ become one page."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ptokit.cli import COMMANDS
from ptokit.cli.parser import app
from tests.cli.test_time import KERNEL
from tests.native.support import needs_compiler

CPP = """
#include <pto/pto-inst.hpp>
using namespace pto;
extern "C" __global__ AICORE void twice(__gm__ float *x)
{
    Tile<TileType::Vec, float, 16, 64> a;
    GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>> gx(x);
    TASSIGN(a, 0x0);
    TLOAD(a, gx);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
    TADD(a, a, a);
}
"""


def report(folder: Path, *words: object) -> list[dict[str, Any]]:
    """The launches on the page that the command writes."""
    if "report" not in {c.name for c in app.registered_commands}:
        app.command("report")(import_module(COMMANDS["report"]).command)
    page = folder / "k.html"
    done = CliRunner().invoke(app, ["report", *map(str, words), "-o", str(page)])
    assert done.exit_code == 0, done.output
    found = re.search(r'id="numbers">(.*?)</script>', page.read_text("utf-8"), re.S)
    assert found is not None
    return json.loads(found[1])["launches"]


def lines_of(launch: dict[str, Any], label: str) -> set[str]:
    """The lines on which an instruction stands."""
    places = {item["place"] for item in launch["items"] if item["label"] == label}
    known = [launch["places"][place] for place in places]
    return {launch["files"][file]["lines"][line - 1].strip() for file, line in known}


def test_a_python_file_and_its_text(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(KERNEL)
    (launch,) = report(tmp_path, file, "--target", "a2a3")
    assert lines_of(launch, "TADD") == {"TADD(tile, tile, tile)"}
    text = tmp_path / "k.pto"
    text.write_text("\n".join(launch["ir"]["lines"]))
    (same,) = report(tmp_path, text, "f32[16,64]", "f32[16,64]", "--target", "a2a3")
    assert same["us"] == launch["us"]
    assert all(line.startswith("pto.tadd") for line in lines_of(same, "TADD"))


@needs_compiler
def test_cpp_shows_its_own_lines(tmp_path: Path) -> None:
    file = tmp_path / "k.cpp"
    file.write_text(CPP)
    (launch,) = report(tmp_path, file, "f32[16,64]")
    assert lines_of(launch, "TADD") == {"TADD(a, a, a);"}
    assert launch["checked"]


def test_a_page_of_several_launches_has_the_longest_first(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    first, rest = KERNEL.split("@kernel")
    other = rest.split("if __name__")[0].replace("double", "once").replace("TADD", "# ")
    rest = rest.replace("    for _", "    once[1](x, y, target='a2a3')\n    for _")
    file.write_text(f"{first}@kernel{other}@kernel{rest}")
    launches = report(tmp_path, file, "--no-check")
    assert [launch["kernel"] for launch in launches] == ["double", "once"]
    assert launches[0]["us"] > launches[1]["us"]
    assert not launches[0]["checked"]


def test_a_launch_that_races_has_a_page_with_the_finding(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    manual = KERNEL.replace('mode="auto"', 'mode="manual"')
    file.write_text(manual.replace("    TLOAD", "    TASSIGN(tile, 0)\n    TLOAD"))
    (launch,) = report(tmp_path, file)
    assert [each["severity"] for each in launch["findings"]] == ["error"] * 2
    assert {each["code"] for each in launch["findings"]} == {"E6"}


@pytest.mark.parametrize("wrong", ["missing.py", "missing.pto"])
def test_a_missing_file_is_told(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(Exception, match=r"missing\."):
        raise CliRunner().invoke(app, ["report", str(tmp_path / wrong)]).exception or AssertionError
