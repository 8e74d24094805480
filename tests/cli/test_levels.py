"""`check` takes the options of the public assembler, and refuses what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ptokit.base.diagnostics import UsageError
from ptokit.cli import switches
from ptokit.cli.check import command
from ptokit.cli.parser import app

TILE = "!pto.tile_buf<vec, 16x64xf32>"
PLACED = f"""func.func @f(%s: f32) {{
  %at = arith.constant 0 : i64
  %t = pto.alloc_tile addr = %at : {TILE}
  pto.texpands ins(%s : f32) outs(%t : {TILE})
  return
}}
"""
UNPLACED = PLACED.replace("addr = %at ", "")
BOUND = PLACED.replace("  return", f"  %u = pto.tassign %t, %at : {TILE}, i64 -> {TILE}\n  return")
OLD = UNPLACED.replace(
    "  return", f"  %w = pto.subset %t[%c, %c] sizes [8, 64] : {TILE}\n  return"
).replace("  %at", "  %c = arith.constant 0 : index\n  %at")


def check(folder: Path, text: str, *words: str) -> Result:
    if "check" not in {c.name for c in app.registered_commands}:
        app.command("check")(command)
    path = folder / "k.pto"
    path.write_text(text)
    return CliRunner().invoke(app, ["check", str(path), *switches(words)])


SYNCS = (
    "--enable-insert-sync",
    "--enable-bufid_sync",
    "--enable-inject-barrier-all-sync",
    "--enable-graph-sync-solver",
    "--enable-canonical-sync",
)


@pytest.mark.parametrize(
    ("text", "words", "code"),
    [
        (PLACED, ["--pto-level=level1"], "level-addr"),
        (PLACED, ["--pto-level=level2"], "level-addr"),
        (PLACED, ["--pto-level=level3"], ""),
        (PLACED, [], ""),
        (UNPLACED, ["--pto-level=level3"], "level3-addr"),
        (UNPLACED, ["--level", "3"], "level3-addr"),
        (UNPLACED, ["--pto-level=level2"], ""),
        (BOUND, ["--pto-level=level2"], "level-addr"),
        (BOUND, ["--pto-level=level3"], ""),
        *((BOUND, ["--pto-level=level3", sync, "--pto-arch=a5"], "sync.bound") for sync in SYNCS),
        (OLD, ["--dialect=2026-08"], "unknown-op"),
        (OLD, ["--dialect=0.27"], ""),
    ],
)
def test_levels_and_dialects(tmp_path: Path, text: str, words: list[str], code: str) -> None:
    done = check(tmp_path, text, *words)
    assert done.exit_code == bool(code), done.output
    assert f"error[{code}]" in done.output if code else "error[" not in done.output


@pytest.mark.parametrize(
    "words",
    [
        ["--enable-bufid_sync", "--pto-arch=a3"],
        ["--enable-bufid_sync"],
        ["--enable-op-fusion=true", "--pto-arch=a3"],
        [SYNCS[0], SYNCS[3]],
        ["--pto-level=level4"],
        [SYNCS[0], "--sync=keep"],
        ["--dialect=1"],
    ],
)
def test_options_that_contradict(tmp_path: Path, words: list[str]) -> None:
    done = check(tmp_path, UNPLACED, *words)
    assert isinstance(done.exception, UsageError)


@pytest.mark.parametrize(
    "words", [["--plan-memory-impl=typo"], ["--canonical-sync-event-id-max=9"]]
)
def test_values_that_no_option_has(tmp_path: Path, words: list[str]) -> None:
    assert check(tmp_path, PLACED, "--pto-level=level3", *words).exit_code == 2


@pytest.mark.parametrize(
    "words",
    [
        ["--enable-op-fusion=true", "--pto-arch=a5"],
        ["--enable-op-fusion=false"],
        ["-enable-insert-sync", "--plan-memory-impl=modern", "--plan-memory-order-by-size=true"],
        ["--canonical-sync-event-id-max=8", "--pto-backend=vpto", "-emit-pto-ir"],
        ["--disable-infer-layout"],
    ],
)
def test_options_that_change_nothing(tmp_path: Path, words: list[str]) -> None:
    assert check(tmp_path, UNPLACED, *words).exit_code == 0


def test_what_a_text_is_taken_for(tmp_path: Path) -> None:
    assert "dialect 0.27 (pto.subset, line 6), level 2 (no" in check(tmp_path, OLD, "-v").output
    new = check(tmp_path, PLACED, "-v", "--pto-arch=a5").output
    assert "dialect 2026-08, level 3 (all tiles have an address), for a5" in new
