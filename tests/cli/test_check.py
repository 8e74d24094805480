"""`ptokit check`: what it finds in files of Python and of text, what it says, how it exits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ptokit.base.diagnostics import UsageError
from ptokit.cli import COMMANDS
from ptokit.cli.answer import Exit
from ptokit.cli.parser import app

ROOT = Path(__file__).resolve().parents[2]
EMPTY = "func.func @f() {\n  return\n}\n"
ADD = """
@kernel(mode="auto")
def add(x: float32[16, 64], y: float32[16, 64], z: float32[16, 64]):
    TileT = Tile[TileType.Vec, float32, 16, 64]
    a, b, c = TileT(), TileT(), TileT()
    TLOAD(a, GlobalTensor(x))
    TLOAD(b, GlobalTensor(y))
    TADD(c, a, b)
    TSTORE(GlobalTensor(z), c)
"""
RACY = """
@kernel
def racy(x: float32[16, 64], z: float32[16, 64]):
    a = Tile[TileType.Vec, float32, 16, 64]()
    TASSIGN(a, 0)
    TLOAD(a, GlobalTensor(x))
    TSTORE(GlobalTensor(z), a)
"""
SILENT = '''
@kernel
def silent(x, n: int, *, k=3):
    pass
'''  # fmt: skip

BROKEN = """\
from types import SimpleNamespace
@kernel
def f(x): pass

def inputs(rng):
    return [1 / 0]

CASES = [SimpleNamespace(kernel=f, inputs=inputs)]
"""


@pytest.fixture(scope="module")
def cli() -> CliRunner:
    from importlib import import_module

    for name, module in COMMANDS.items():
        app.command(name)(import_module(module).command)
    return CliRunner()


def checked(cli: CliRunner, *words: str, text: str | None = None) -> tuple[Result, list[str]]:
    """The result of a check, and the codes it reports with their lines."""
    result = cli.invoke(app, ["check", *words, "--json"], input=text)
    report = json.loads(result.stdout)
    assert report["exit"] == result.exit_code
    found = [f"{d['code']}@{d['location']['line']}" for d in report["diagnostics"]]
    return result, found


def test_kernels_are_checked_for_the_arguments_they_declare(cli: CliRunner, tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    prints = 'print("not part of the answer")\n'
    file.write_text("from ptokit import *\n" + prints + ADD + RACY + SILENT)
    result, found = checked(cli, str(file), "--target", "all")
    assert result.exit_code == 1
    assert found == ["check.arguments@20", "E6@18"]
    report = json.loads(result.stdout)
    assert report["diagnostics"][1]["target"] == "a2a3, a5, kirin9030, kirinx90"
    assert [(c["kernel"], c["errors"]) for c in report["checked"]] == [("add", 0)] * 4 + [
        ("racy", 1)
    ] * 4


UNDER_MAIN = """\
import sys
from ptokit import *
{kernels}
if __name__ == "__main__":
    import numpy as np
    x, y = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    assert len(sys.argv) == 1
    add[1](x, x, y)
    racy[1](x, y)
    sys.exit(0)
"""


def test_calls_under_main_are_taken_when_the_file_is_to_run(cli: CliRunner, tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    undeclared = (ADD + RACY).replace(": float32[16, 64]", "")
    file.write_text(UNDER_MAIN.format(kernels=undeclared))
    result, found = checked(cli, str(file))
    assert [each.partition("@")[0] for each in found] == ["check.arguments"] * 2
    assert "ptokit check --run" in json.loads(result.stdout)["diagnostics"][0]["fix"]
    result, found = checked(cli, str(file), "--run")
    assert found == ["E6@18"]
    report = json.loads(result.stdout)["checked"]
    assert {c["kernel"]: c["errors"] for c in report} == {"add": 0, "racy": 1}
    for command, exit_code in (("explore", 1), ("fix", 0)):
        told = cli.invoke(app, [command, str(file)])
        assert f"ptokit {command} --run" in told.output
        assert cli.invoke(app, [command, str(file), "--run"]).exit_code == exit_code
    file.write_text(file.read_text().replace("    racy[1](x, y)\n", ""))
    _, found = checked(cli, str(file), "--run")
    assert found == ["check.arguments@13"]  # which nothing calls


def test_an_error_of_the_run_hides_no_warning(cli: CliRunner, tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    narrow = "    b = Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, 16, 32]()\n"
    narrow += "    TASSIGN(b, 0x1000)\n    TLOAD(b, GlobalTensor(x))\n"
    load = "    TLOAD(a, GlobalTensor(x))\n"
    file.write_text("from ptokit import *\n" + RACY.replace(load, narrow + load))
    assert checked(cli, str(file))[1] == ["PA-0044@9", "E6@11"]


@pytest.mark.parametrize("head", ["", "from __future__ import annotations\n"])
def test_a_right_file_says_what_was_checked(cli: CliRunner, tmp_path: Path, head: str) -> None:
    file = tmp_path / "k.py"
    file.write_text(head + "from ptokit import *\n" + ADD)
    result = cli.invoke(app, ["check", str(file)])
    assert (result.exit_code, result.stdout) == (
        0,
        f"{file}: add: a2a3 ok\n1 file, 0 errors, 0 warnings\n",
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("def f(:\n", "check.syntax@1"),
        ("Add the tiles, then store them.\n", "check.syntax@1"),
        ("x = 1\n", "check.no-kernel@0"),
        ("\nimport nosuchmodule\n", "check.import@2"),
        ("\nfrom ptokit import *\n\nTAD(1)\n", "unknown-name@4"),
        ("import sys\nsys.exit(0)\n", "check.import@2"),
        ("import os\nos._exit(0)\n", "check.import@0"),
        ("from ptokit import *\nTile[1]\n", "Tile.arguments@2"),
        ("from ptokit import *\n@kernel\ndef f():\n  1 / 0\n", "lower.python@4"),
        ("CASES = [1]\n", "check.cases@0"),
        ("from ptokit import *\n@kernel\ndef f(x: nowhere): ...\n", "unknown-name@3"),
        (f"from ptokit import *\n{BROKEN}", "check.exception@7"),
        (f"from ptokit import *\n{BROKEN.replace('1 / 0', '[]')}", "argument-type@3"),
    ],
)
def test_what_cannot_be_checked_is_not_clean(
    cli: CliRunner, tmp_path: Path, text: str, code: str
) -> None:
    file = tmp_path / "k.py"
    file.write_text(text)
    result, found = checked(cli, str(file))
    assert (result.exit_code, found) == (1, [code])


def test_a_misspelt_import_is_asked_about(cli: CliRunner) -> None:
    result = cli.invoke(app, ["check", "-"], input="from ptokit import TLAOD\n")
    assert "<stdin>:1: error[check.import]" in result.output, "at the line of the file"
    assert "fix: did you mean TLOAD(dst, src)?" in result.output


def test_a_file_has_only_so_much_time(cli: CliRunner, tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text("import time\ntime.sleep(600)\n")
    result, found = checked(cli, str(file), "--seconds", "0.5")
    assert (result.exit_code, found) == (1, ["check.time@0"])


def test_the_launches_of_a_file_are_its_arguments(cli: CliRunner, tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    head = "import numpy as np\nfrom ptokit import *\n"
    plain = ADD.replace(": float32[16, 64]", "")
    calls = "x, z = np.ones((2, 16, 64), 'f4')\nfor i in range(3):\n    add[2](x, x, z)\n"
    file.write_text(head + plain + calls)
    result, found = checked(cli, str(file), "--target", "a2a3,a5")
    assert (result.exit_code, found) == (1, ["E7@11"])  # two blocks, one result
    file.write_text(head + plain + calls.replace("[2]", "[1]"))
    result, found = checked(cli, str(file), "--target", "a2a3,a5")
    assert (result.exit_code, found) == (0, [])
    assert len(json.loads(result.stdout)["checked"]) == 2  # equal calls are one


def test_the_cases_of_a_file_are_its_arguments(cli: CliRunner) -> None:
    result = cli.invoke(app, ["check", str(ROOT / "examples/vector_add.py"), "--target", "a5"])
    assert result.exit_code == 0, result.output
    assert "add_manual: a5 ok" in result.output


def test_standard_input_is_text_or_python(cli: CliRunner) -> None:
    assert checked(cli, "-", text=EMPTY)[0].exit_code == 0
    assert checked(cli, "-", text="func.func @f() {\n  %a = pto.no\n}\n")[1] == ["unknown-op@2"]
    assert checked(cli, "-", text="from ptokit import *\n" + RACY)[1] == ["E6@8"]
    for nothing in ("", "// later\n", "module {\n}\n"):
        result, found = checked(cli, "-", text=nothing)
        assert (result.exit_code, found) == (1, ["check.no-kernel@0"])


def test_a_text_that_is_run_needs_its_arguments(cli: CliRunner, tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    file.write_text("func.func @f(%n: i32) {\n  return\n}\n")
    result = cli.invoke(app, ["check", "--run", str(file)])
    assert isinstance(result.exception, UsageError)
    (found,) = result.exception.diagnostics
    assert found.message == "@f takes 1 arguments, 0 given"
    assert found.fix == (
        "give a number, an .npy file or a shape, f32[16,64], for each: --arg %n: i32"
    )
    result = cli.invoke(app, ["check", "--run", str(file), "--arg", "3"])
    assert result.exit_code == 0
    assert "E1   ok" in result.output


def test_nothing_that_did_not_run_is_called_ok(cli: CliRunner, tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text("from ptokit import *\n" + SILENT)
    result = cli.invoke(app, ["check", "--run", str(file)])
    assert result.exit_code == 1
    assert "ok" not in result.output


def test_fmt_never_imports(cli: CliRunner, tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(f"open({str(tmp_path / 'trace')!r}, 'w')\n")
    assert cli.invoke(app, ["fmt", str(file)]).exit_code == 1
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize(
    "words",
    [("asm", "-", "--to", "l2"), ("emit", "-"), ("fmt", "-"), ("run", "-"), ("check", "-"),
     ("targets",), ("isa", "TADD", "--matrix")],
    ids=lambda words: words[0],
)  # fmt: skip
def test_every_command_answers_in_json(cli: CliRunner, words: tuple[str, ...]) -> None:
    result = cli.invoke(app, [*words, "--json"], input=EMPTY)
    report = json.loads(result.stdout)
    assert (report["exit"], report["diagnostics"], result.exit_code) == (0, [], 0)
    assert len(report) > 2


def test_the_page_describes_every_command_and_exit_code() -> None:
    page = (ROOT / "docs/guide/command-line.md").read_text("utf-8")
    assert [name for name in COMMANDS if f"| `ptokit {name}" not in page] == []
    assert [code for code in Exit if f"\n| {code} | " not in page] == []


def test_the_kernel_of_the_page_is_checked_clean(cli: CliRunner, tmp_path: Path) -> None:
    page = (ROOT / "docs/guide/command-line.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.S)
    (tmp_path / "k.py").write_text(block)
    result = cli.invoke(app, ["check", str(tmp_path / "k.py"), "--target", "all"])
    assert result.exit_code == 0, result.output
    assert "scale: a2a3 ok, a5 ok" in result.output
