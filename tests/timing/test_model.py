"""What holds of every timing, whatever the numbers."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import (
    EVENT_ID0,
    EVENT_ID1,
    PIPE_MTE2,
    PIPE_MTE3,
    PIPE_S,
    PIPE_V,
    TADD,
    TASSIGN,
    TLOAD,
    TSTORE,
    GlobalTensor,
    Tile,
    TileType,
    float32,
    kernel,
    set_flag,
    wait_flag,
)
from ptokit.base.diagnostics import NotSupported, ProgramError, UsageError
from ptokit.kernels import Kernel
from ptokit.timing.report import Timing

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

NAMES = ("flash_attention_cluster", "gelu", "gemm_manual", "layer_norm", "softmax_manual")
CASES = [case for name in NAMES for case in import_module(name).CASES[:1]]
ROWS = Tile[TileType.Vec, float32, 16, 64]


def timed(case: Any, target: str = "a2a3", **options: Any) -> Timing:
    args = case.inputs(np.random.default_rng(0))
    return case.kernel.time(case.blocks, args, target=target, **case.consts, **options)


def each_target(case: Any) -> list[str]:
    return [target for target in ("a2a3", "a5") if target in case.targets]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_between_the_roofline_and_the_serial_sum(case: Any) -> None:
    for target in each_target(case):
        found = timed(case, target)
        busiest = max(max(core.busy.values()) for core in found.outcome.cores)
        assert found.us >= found.roofline_us
        assert found.cycles >= busiest
        assert found.us <= found.serial_us
        assert all(0 < share <= 1 for share in found.busy.values())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_same_with_data_without_and_for_every_seed(case: Any) -> None:
    for target in each_target(case):
        found = timed(case, target).cycles
        assert timed(case, target, data=True, check=False).cycles == found
        for seed in (1, 2):
            assert timed(case, target, seed=seed).cycles == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_monotone_in_every_constant(case: Any) -> None:
    """More cycles for anything never make a launch shorter, more bytes a cycle never longer."""
    found = timed(case, each_target(case)[0])
    for name in found.params.numbers:
        if name.startswith("device."):
            continue
        value = found.params[name]
        other = found.what_if({name: value * 1.5 + 1}).cycles
        grows = not name.endswith(("rate", "l2_bytes", "queue"))
        slack = 1e-9 * found.cycles
        assert other >= found.cycles - slack if grows else other <= found.cycles + slack, name


def at(tile: Any, address: int) -> Any:
    TASSIGN(tile, address)
    return tile


@kernel(mode="manual")
def add_one_by_one(x, y, *, extra):
    a, b = at(ROWS(), 0), at(ROWS(), 0x1000)
    for i in range(0, x.shape[0], 16):
        TLOAD(a, GlobalTensor(x)[i : i + 16, :])
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        if extra:
            set_flag(PIPE_MTE2, PIPE_V, EVENT_ID1)
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        if extra:
            wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID1)
        TADD(b, a, a)
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
        TSTORE(GlobalTensor(y)[i : i + 16, :], b)
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)


def arrays(rows: int = 128) -> tuple[Any, Any]:
    return np.ones((rows, 64), np.float32), np.zeros((rows, 64), np.float32)


def test_a_redundant_flag_costs_time_or_nothing() -> None:
    with_it = add_one_by_one.time(1, arrays(), target="a2a3", extra=True)
    without = add_one_by_one.time(1, arrays(), target="a2a3", extra=False)
    assert without.cycles <= with_it.cycles


def test_nothing_is_computed() -> None:
    x, y = arrays()
    add_one_by_one.time(1, (x, y), target="a2a3", extra=False)
    assert not y.any()
    add_one_by_one.time(1, (x, y), target="a2a3", extra=False, data=True)
    assert (y == 2).all()


def test_a_wait_names_both_lines() -> None:
    found = add_one_by_one.time(1, arrays(), target="a2a3", extra=False)
    waits = [w for w in found.waits if w.pipe == "V"]
    text = Path(__file__).read_text().splitlines()
    (first,) = [w for w in waits if "wait_flag(PIPE_MTE2, PIPE_V" in w.reason]
    assert "wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)" in text[first.line.line - 1]
    assert first.behind is not None
    assert "TLOAD(a" in text[first.behind.line - 1]
    assert "after TLOAD" in first.reason
    assert {step.label for step in found.critical} == {"TLOAD", "TADD", "TSTORE"}


def test_blocks_alike_are_one_and_cores_run_out() -> None:
    x, y = arrays(16)
    found = add_one_by_one.time(48, (x, y), target="a2a3", extra=False)
    assert [core.weight for core in found.outcome.cores] == [24, 24]
    half = found.what_if(cores=48)
    assert [core.weight for core in half.outcome.cores] == [48]
    assert half.cycles < found.cycles


def test_a_clock_scales_the_time_and_no_cycle() -> None:
    found = add_one_by_one.time(1, arrays(), target="a2a3", extra=False)
    slow = found.what_if(clock=found.clock / 2)
    assert slow.cycles == found.cycles
    assert slow.us == pytest.approx(2 * found.us)
    assert not found.what_if({"scalar.issue": 100}).validated


@kernel(mode="manual")
def forgets_to_signal(x, y):
    a = at(ROWS(), 0)
    TLOAD(a, GlobalTensor(x)[0:16, :])
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    TADD(a, a, a)


def diagnosis(run: Any) -> list[tuple[str, Any]]:
    with pytest.raises(ProgramError) as error:
        run()
    return [(d.code, d.location) for d in error.value.diagnostics]


def test_a_hang_is_the_diagnosis_of_the_simulator() -> None:
    x, y = arrays()
    ran = diagnosis(lambda: forgets_to_signal[1](x, y, target="a2a3", check=False))
    assert diagnosis(lambda: forgets_to_signal.time(1, (x, y), target="a2a3")) == ran


@kernel(mode="manual")
def branches_on_data(x, y):
    a = at(ROWS(), 0)
    TLOAD(a, GlobalTensor(x)[0:16, :])
    set_flag(PIPE_MTE2, PIPE_S, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID0)
    if a.GetValue(0) > 0:
        TADD(a, a, a)


def test_what_depends_on_data_is_refused_by_name_or_given_data() -> None:
    with pytest.raises(NotSupported, match="GETVAL reads what the program has computed"):
        branches_on_data.time(1, arrays(), target="a2a3")
    found = branches_on_data.time(1, arrays(), target="a2a3", data=True, check=False)
    assert "TADD" in {span.label for span in found.spans}


def test_a_trace_has_arrows(tmp_path: Path) -> None:
    import json

    found = add_one_by_one.time(1, arrays(), target="a2a3", extra=False)
    found.chrome(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(e["ph"] == "X" for e in events) == 3 * 8
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert all(starts[each]["ts"] <= ends[each]["ts"] for each in starts)
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert set(threads.values()) == set(found.busy)
    assert {e["tid"] for e in events if e["ph"] == "X"} <= threads.keys()


def test_a_core_that_runs_several_blocks_is_as_busy_as_with_one() -> None:
    """Shares are of the whole time, in which a core does the work of all its blocks."""
    one = add_one_by_one.time(1, arrays(), target="a2a3", extra=False)
    assert one.rows == 1
    several = add_one_by_one.time(3 * one.cores, arrays(), target="a2a3", extra=False, check=False)
    assert several.rows == 3
    for pipe, share in several.busy.items():
        assert 0 < share <= 1
        assert share == pytest.approx(one.busy[pipe], rel=0.5)


def test_options_that_make_no_single_run_are_refused() -> None:
    k: Kernel = add_one_by_one
    for wrong in ({"jobs": 2}, {"engine": "reference"}, {"check": "explore"}):
        with pytest.raises(UsageError, match="one run of this process"):
            k.time(2, arrays(), target="a2a3", extra=False, **wrong)
