"""Every script under `bench/` runs, at the smallest size that still takes all of its steps."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow  # compilers and processes take their time

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

Small = Callable[[Any], dict[str, Any]]  # what a script calls these, and what they are here


def of_fast(bench: Any) -> dict[str, Any]:
    import ways

    def rows(whole: bool) -> list[tuple[str, Any]]:
        assert not whole
        assert len(list(ways.rows(True))) > len(list(ways.rows())) > 45
        return [
            ("GEMM", lambda: ways.product(32, ways.half, (32, 32, 32))),
            ("softmax", lambda: ways.soft(64, 2)),
            ("attention", lambda: ways.attention(64, 64, ways.float32, True, 2)),
            ("decoder", lambda: ways.decoder(128, 256, 4, 256)),
            ("chain", lambda: ways.chain(32, 16)),
        ]

    return {"ROUNDS": 1, "rows": rows}


def of_growth(bench: Any) -> dict[str, Any]:
    series = tuple(bench.Series(each.name, (2, 4), each.make) for each in bench.SERIES)
    passes = {
        name: (make, (100, 200) if max(sizes) > 1000 else (4, 8))
        for name, (make, sizes) in bench.growth_passes.SERIES.items()
    }
    return {"SERIES": series, "growth_passes.SERIES": passes}


def of_run(bench: Any) -> dict[str, Any]:
    best = bench.best
    return {"ROUNDS": 1, "IMPORTS": 1, "best": lambda call, repeat: best(call, repeat // 1000 + 1)}


# Each script, how it is made small, and a word that it prints at its end.
SCRIPTS: dict[str, tuple[Small, str]] = {
    "cpp": (lambda _: {"ROUNDS": 1, "LONG": 32}, "a launch of 16 trips"),
    "fast": (of_fast, "chain"),
    "growth": (of_growth, "goal: exponents"),
    "kernels": (lambda _: {"ROUNDS": 1, "SIDE": 128, "LENGTH": 128}, "Triton interpreter"),
    "lowering": (lambda _: {"ROUNDS": 2, "INSTRUCTIONS": 10}, "lowered, verified and placed"),
    "micro": (lambda _: {"ROUNDS": 100}, "400 operations on registers"),
    "run": (of_run, "import ptokit"),
    "text": (lambda _: {"ROUNDS": 1, "OPERATIONS": 100}, "goal"),
}
# What the scripts are made of, and those that have tests of their own in tests/timing.
OTHERS = {"fitting", "growth_passes", "layers", "timing", "triton_kernels", "ways"}


def test_every_script_is_run() -> None:
    assert {path.stem for path in BENCH.glob("*.py")} == {*SCRIPTS, *OTHERS}


@pytest.mark.parametrize("name", SCRIPTS)
def test_bench_runs(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "cpp" and not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("needs a C++ compiler")
    bench = import_module(name)
    small, said = SCRIPTS[name]
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--quick"])
    for each, value in small(bench).items():
        monkeypatch.setattr(f"{name}.{each}", value)
    bench.main()
    assert said in capsys.readouterr().out


@pytest.mark.skipif(not (find_spec("torch") and find_spec("triton")), reason="needs torch, triton")
def test_triton_kernels_load() -> None:
    assert import_module("triton_kernels").gemm
