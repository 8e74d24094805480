"""The table of public programs: what is run, beside what, and how that is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.programs import ADD
from tools import compat_table
from tools.compat_table import Command, Journal, Told

TILE = "!pto.tile_buf<vec, 16x64xf32>"
PART = "!pto.partition_tensor_view<16x64xf32>"
PROGRAM = """
from mlir.ir import Module
Module.parse('''
func.func @k(%x: {part}) {{
  %a = pto.alloc_tile : {tile}
  %b = pto.alloc_tile : {tile}
  {body}
  return
}}
''')
"""
LOADED = f"pto.tload ins(%x : {PART}) outs(%a : {TILE})"
ADDED = f"pto.tadd ins(%a, %a : {TILE}, {TILE}) outs(%b : {TILE})"
UNBOXED = "!pto.tile_buf<acc, 16x64xf32>"
BODIES = {
    "runs": f"{LOADED}\n  {ADDED}",
    "reads": ADDED,
    "traps": "pto.trap",
    "breaks": f"%c = pto.alloc_tile : {UNBOXED}\n  pto.tload ins(%x : {PART}) outs(%c : {UNBOXED})",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = tmp_path / "public"
    found.mkdir()
    for name, body in BODIES.items():
        (found / f"{name}.py").write_text(PROGRAM.format(part=PART, tile=TILE, body=body), "utf-8")
    return found


def told(root: Path, name: str) -> Told:
    found = compat_table.told(root / f"{name}.py", root, 60)
    assert found is not None
    return found


def test_a_program_runs_or_is_told_to_run_beside_what_may_be_allowed(root: Path) -> None:
    assert told(root, "runs") == Told("runs.py", True)
    assert told(root, "reads") == Told("reads.py", True, beside="poison-read")
    (root / "reads.py").rename(root / "reads_invalid.py")  # which is to be refused
    assert told(root, "reads_invalid").beside == ""


def test_programs_that_break_a_rule_or_stop_themselves_have_not_run(root: Path) -> None:
    broken, stopped = told(root, "breaks"), told(root, "traps")
    assert (broken.is_refused, broken.has_run, broken.has_stopped_itself) == (True, False, False)
    assert (stopped.has_run, stopped.has_stopped_itself) == (False, True)
    page = compat_table.table(root, [told(root, "runs"), broken, stopped], [])
    head = "| folder | programs | built | ran | break a rule | stop themselves |"
    assert head in page.splitlines()
    assert "| all | 3 | 3 | 1 | 1 | 1 |" in page.splitlines()
    assert "| breaks.py | yes | `" in page
    assert "| traps.py | yes |" not in page  # it does what it says


README = "# How\n\n```bash\npython ./run.py --small\n```\n"
DEVICE = "import torch\nif __name__ == '__main__':\n    print('here')\n"


def test_commands_are_those_of_readme_files_and_of_files_started_by_themselves(
    tmp_path: Path,
) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.py").write_text(DEVICE, "utf-8")
    (tmp_path / "two" / "test_run.py").write_text(DEVICE, "utf-8")
    (tmp_path / "two" / "library.py").write_text("import torch\n", "utf-8")
    (tmp_path / "one" / "README.md").write_text(README, "utf-8")
    of_readme = ("one", "python ./run.py --small")
    assert list(compat_table.commands_in(tmp_path, "", "")) == [of_readme]
    assert list(compat_table.commands_in(tmp_path, "^two", "")) == []
    found = list(compat_table.commands_in(tmp_path, "", r"\.py$"))
    assert found == [of_readme, ("two", "python ./run.py")]


def command(tmp_path: Path, script: str, seconds: float = 60) -> Command:
    (tmp_path / "run.sh").write_text(script, "utf-8")
    return compat_table.run_command(tmp_path, ".", "bash ./run.sh", seconds)


def test_a_command_runs_again_beside_what_it_was_stopped_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PTOKIT_ALLOW", "PTOKIT_SLACK"):  # which the command line sets for its process
        monkeypatch.delenv(name, raising=False)
    said = 'echo "k.cpp:1:1: error[{0}] [a2a3]: {0} was found" >&2; exit 1'
    stops = f'[[ ",$PTOKIT_ALLOW," == *,E6,* ]] || {{ {said.format("E6")}; }}\n'
    room = f'[ "$PTOKIT_SLACK" ] || {{ {said.format("gm-bounds")}; }}\n'
    done = command(tmp_path, stops + room)
    assert (done.reason, done.beside) == ("", "E6, gm-bounds")
    done = command(tmp_path, said.format("trap"))  # allowing it does not help
    assert (done.reason, done.beside) == ("`trap` trap was found", "")


def test_a_command_has_its_own_time(tmp_path: Path) -> None:
    assert command(tmp_path, "while :; do :; done", 1).reason == "takes more than 1 s"


def test_what_a_journal_has_is_not_run_again(tmp_path: Path, root: Path) -> None:
    file, asked = tmp_path / "journal", list[str]()

    def find() -> Command:
        asked.append("now")
        return Command("one", "python ./run.py", seconds=2.5)

    for _ in range(2):
        known = Journal(file, root).get("one: python ./run.py", find)
        assert known is not None
        assert Command(**known) == Command("one", "python ./run.py", seconds=2.5)
    assert asked == ["now"]


def test_programs_of_the_bindings_are_found(root: Path) -> None:
    (root / "add.py").write_text(ADD, "utf-8")
    (root / "test_add.py").write_text(ADD, "utf-8")
    (root / "device.py").write_text(ADD + "import torch\n", "utf-8")
    found = [each.name for each in compat_table.programs(root, "")]
    assert found == ["add.py", *(f"{name}.py" for name in sorted(BODIES))]
