"""The command line: what it prints and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.command import command


def test_demo_shows_a_rule_a_race_and_a_hang() -> None:
    line = [sys.executable, "-m", "ptokit", "demo"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    out = done.stdout
    for words in (
        "bytes used",
        "error[TTRANS.tmp-size]",
        "here: tmp.Cols = 128 or tmp.Rows = 32",
        "rows=32), as advised",
        "error[E6]",
        "the other access, TLOAD",
        "error[E1]",
        "waits forever: wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)",
    ):
        assert words in out
    assert out.count("differs from NumPy by 0.0e+00") == 2


def test_the_demo_is_quick_and_its_kernels_are_right_but_for_one_mistake_each() -> None:
    code, out, _ = command("demo", "--json")
    report = json.loads(out)
    assert (code, report["refused"]) == (0, ["TTRANS.tmp-size", "E6", "E1"])
    assert report["seconds"] < 5


def test_targets_with_overrides() -> None:
    code, out, _ = command("targets", "-D", "PTO_UBUF_SIZE_BYTES=0x10000")
    assert code == 0
    assert (
        next(line for line in out.splitlines() if line.startswith("Vec")).split()[1:6] == ["64"] * 5
    )
    code, _, err = command("targets", "-D", "PTO_UBUF_SIZE=1")
    assert code == 2
    assert "did you mean PTO_UBUF_SIZE_BYTES?" in err


def test_sizes_can_be_overridden_wherever_a_program_is_checked_or_run(tmp_path: Path) -> None:
    """A tile of 256 KB fits into UB of A2A3 only with -D PTO_UBUF_SIZE_BYTES=262144."""
    kind = "!pto.tile_buf<vec, 256x256xf32>"
    text = f"""func.func @f(%s: f32) {{
      %t = pto.alloc_tile : {kind}
      pto.texpands ins(%s : f32) outs(%t : {kind})
      return
    }}"""
    (tmp_path / "big.pto").write_text(text)
    big = str(tmp_path / "big.pto")
    roomy = ("-D", "PTO_UBUF_SIZE_BYTES=262144")
    assert command("asm", big, "--to", "l3")[0] == 1
    code, placed, err = command("asm", big, "--to", "l3", *roomy)
    assert code == 0, err
    (tmp_path / "placed.pto").write_text(placed)
    at = str(tmp_path / "placed.pto")
    for words in (("check", at), ("run", at, "1.0")):
        assert command(*words)[0] == 1
        code, out, err = command(*words, *roomy)
        assert code == 0, out + err


def test_isa_page_listing_and_matrix() -> None:
    assert "Add two tiles." in command("isa", "tadd")[1]
    assert "TLOAD" in command("isa")[1]
    matrix = command("isa", "--matrix")[1].splitlines()
    sums = [line.split() for line in matrix if line.split()[:1] == ["TADD"]]
    assert sums[0] == ["TADD", "a2a3", "i16", "i32", "f16", "f32"]
    assert [line[1] for line in sums] == ["a2a3", "a5", "kirin"]
    code, _, err = command("isa", "TLOADS")
    assert code == 2
    assert "did you mean TLOAD" in err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one right case, one wrong, one disputed and one of an unknown instruction."""
    tile = {
        "kind": "tile", "loc": "Vec", "dtype": "f32", "rows": 8, "cols": 8, "blayout": "RowMajor",
        "slayout": "NoneBox", "fractal": 512, "valid_row": 8, "valid_col": 8, "pad": "Null",
        "compact": "Null", "dynamic_valid": False, "inner": [1, 1],
    }  # fmt: skip
    operands = [
        tile | {"name": n, "role": r} for n, r in (("dst", "out"), ("a", "in"), ("b", "in"))
    ]
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    cases = []
    for label, op, result, extra in (
        ("right", "TADD", x + x, {}),
        ("wrong", "TADD", x + x + 1, {}),
        ("doubtful", "TADD", x + x + 1, {"disputed": "the page says otherwise"}),
        ("unknown", "TNOSUCH", x, {}),
    ):
        np.savez(tmp_path / f"{label}.npz", **{"a.in2d": x, "b.in2d": x, "dst.out2d": result})
        call = {"op": op, "template": [], "args": [{"ref": n} for n in ("dst", "a", "b")]}
        case = {"instr": op, "case": label, "file": f"{label}.npz", "operands": operands}
        compare = {"mode": "exact", "region": "valid"}
        cases.append({**case, "calls": [call], "compare": compare, **extra})
    (tmp_path / "manifest.json").write_text(json.dumps({"meta": {}, "cases": cases}))
    return tmp_path


def test_conform_counts_and_exits(folder: Path) -> None:
    code, out, err = command("conform", str(folder), "-o", str(folder / "verdicts.json"))
    assert code == 1, err
    assert out.splitlines()[-1] == "conform: 1 passed, 1 failed, 1 disputed, 1 unsupported of 4"
    assert "64 of 64 differ, first at (0, 0): got 0.0, expected 1.0" in out
    verdicts = json.loads((folder / "verdicts.json").read_text())
    assert [v["status"] for v in verdicts] == ["passed", "failed", "disputed", "unsupported"]
    code, out, _ = command("conform", str(folder), "--json")
    assert code == 1
    assert json.loads(out) == {"exit": 1, "diagnostics": [], "cases": verdicts}
    code, out, _ = command("conform", str(folder), "--only", "TNOSUCH")
    assert code == 1
    assert out.splitlines()[-1].endswith("0 passed, 0 failed, 0 disputed, 1 unsupported of 1")


def test_conform_without_a_manifest(tmp_path: Path) -> None:
    code, _, err = command("conform", str(tmp_path))
    assert code == 2
    assert "there is no manifest.json" in err
    assert "Traceback" not in err


def test_a_deviation_hides_nothing_that_it_does_not_explain(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listed case is disputed only when zeroing the damaged bytes makes it agree."""
    from ptokit import conform

    entry = {"why": "known damage", "damaged": "a", "cleared_by": "dst"}
    monkeypatch.setattr(conform, "deviations", lambda: {"TADD/*": entry})
    right, wrong, *_ = conform.load_cases(folder)
    assert conform.run_case(folder, wrong).status == "failed"
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    lost = x.copy()
    lost.reshape(-1).view(np.uint8)[:32] = 0
    np.savez(folder / "right.npz", **{"a.in2d": x, "b.in2d": x, "dst.out2d": lost + x})
    verdict = conform.run_case(folder, right)
    assert (verdict.status, "known damage" in verdict.reason) == ("disputed", True)
