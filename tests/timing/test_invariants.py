"""More of what holds of every timing: paths, meetings, less order, both lines of every wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import (
    PIPE_ALL,
    PIPE_MTE2,
    PIPE_MTE3,
    PIPE_V,
    SYNCALL,
    TADD,
    TLOAD,
    TSTORE,
    GlobalTensor,
    PtoSetWaitFlag,
    SyncCoreType,
    get_block_idx,
    kernel,
    pipe_barrier,
)
from ptokit.base.diagnostics import ProgramError
from ptokit.timing.advice import block_without, signals_of
from ptokit.timing.report import Timing, compare
from ptokit.timing.streams import Kind
from tests.native.support import needs_compiler, source
from tests.timing.test_model import CASES, ROWS, add_one_by_one, arrays, at, each_target, timed

MANUAL = [case for case in CASES if case.kernel.source.mode == "manual"]


@pytest.mark.parametrize("case", MANUAL, ids=lambda case: case.name)
def test_the_same_on_both_paths(case: Any) -> None:
    for target in each_target(case):
        lowered = timed(case, target)
        assert timed(case, target, path="eager").cycles == pytest.approx(lowered.cycles, rel=1e-9)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_less_order_is_never_slower(case: Any) -> None:
    """Each barrier, and each pair of signal and wait, left out in turn - needed or not."""
    found = timed(case)
    items = found.streams.items
    groups = [{n} for n, item in enumerate(items) if item.kind == Kind.BARRIER]
    for core in found.streams.blocks[0].cores:
        groups += [s.gives | s.takes for s in signals_of(core, items).values()]
    assert groups
    for gone in groups:
        blocks = [block_without(block, items, gone) for block in found.streams.blocks]
        without = found.again(replace(found.streams, blocks=blocks))
        assert without.cycles <= found.cycles * (1 + 1e-9), {items[n].label for n in gone}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_wait_has_both_lines_and_no_pipe_waits_while_it_works(case: Any) -> None:
    found = timed(case)
    for wait in found.waits:
        assert f":{(wait.line.origin or wait.line).line}" in wait.reason
        if "had not yet issued" in wait.reason:
            continue  # there is no other line: the scalar unit comes to it in its own time
        assert wait.behind is not None, wait.reason
        assert f":{(wait.behind.origin or wait.behind).line}" in wait.reason
    for core in found.outcome.cores:
        for pipe, busy in core.busy.items():
            stalled = sum(s.cycles for s in core.stalls.values() if s.pipe == pipe)
            assert busy + stalled <= found.cycles * (1 + 1e-9)


def test_a_pipe_that_waits_for_itself_and_the_scalar_unit_for_all() -> None:
    found = stops.time(1, arrays(16), target="a2a3")
    by_reason = {(w.pipe, w.reason.split(" ")[2].strip(":")): w for w in found.waits}
    barrier, both = by_reason["V", "V"], by_reason["S", "MTE3"]
    assert "pipe_barrier(PIPE_V)" in barrier.reason
    assert "after TADD" in barrier.reason
    assert "pipe_barrier(PIPE_ALL)" in both.reason
    assert "after TSTORE" in both.reason
    slower = found.what_if({"flags.barrier": found.params["flags.barrier"] + 1000})
    assert slower.cycles == pytest.approx(found.cycles + 1000)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_breakdown_is_all_of_the_time(case: Any) -> None:
    found = timed(case)
    assert sum(step.us for step in found.breakdown) == pytest.approx(found.us)
    assert found.breakdown[0].share <= 1
    worked = {step.label for step in found.critical}
    assert worked <= {step.label for step in found.breakdown}


@kernel(core="vector")
def stops(x, y):
    a = at(ROWS(), 0)
    TLOAD(a, GlobalTensor(x)[0:16, :])
    PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
    TADD(a, a, a)
    pipe_barrier(PIPE_V)
    TADD(a, a, a)
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
    TSTORE(GlobalTensor(y)[0:16, :], a)
    pipe_barrier(PIPE_ALL)


@kernel(core="vector")
def meets(x, y, *, rounds, meeting):
    """Block 0 works for long; then all meet, and load what was stored."""
    a = at(ROWS(), 0)
    TLOAD(a, GlobalTensor(x)[0:16, :])
    PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
    if get_block_idx() == 0:
        for _ in range(rounds):
            TADD(a, a, a)
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
    TSTORE(GlobalTensor(y)[0:16, :], a)
    if meeting:
        SYNCALL[SyncCoreType.AIVOnly]()
    PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()
    TLOAD(a, GlobalTensor(x)[0:16, :])


def met(rounds: int, meeting: bool = True, **options: Any) -> Timing:
    consts = {"rounds": rounds, "meeting": meeting}
    return meets.time(3, arrays(16), target="a2a3", **consts, **options)


def last_loads(found: Timing) -> dict[tuple[int, ...], float]:
    """When the load behind the meeting begins, by the blocks that do the same."""
    items = found.streams.items
    return {
        core.blocks: max(node[2] for node in core.nodes if items[node[0]].label == "TLOAD")
        for core in found.outcome.cores
    }


def test_syncall_holds_all_until_the_last_has_come() -> None:
    found = met(400)
    items = found.streams.items
    came = max(
        node[3]
        for core in found.outcome.cores
        for node in core.nodes
        if items[node[0]].label == "TSTORE"
    )
    starts = last_loads(found)
    assert len(starts) == 2  # the long block, and the two that do the same
    assert all(start >= came + found.params["flags.meeting"] for start in starts.values())
    assert min(last_loads(met(400, meeting=False)).values()) < came
    waits = [wait for wait in found.waits if "SYNCALL" in wait.reason]
    assert any("block 1 and 1 like it" in wait.core for wait in waits)
    assert met(800).us > found.us
    assert met(400, seed=3).cycles == pytest.approx(found.cycles, rel=1e-9)
    slower = found.what_if({"flags.meeting": found.params["flags.meeting"] + 1000})
    assert slower.cycles == pytest.approx(found.cycles + 1000)


def test_blocks_that_take_different_ways_are_timed_apart() -> None:
    found = met(400, meeting=False)
    assert [core.blocks for core in found.outcome.cores] == [(0,), (1, 2)]
    long, short = found.outcome.cores
    assert len(long.nodes) == len(short.nodes) + 400
    assert long.end > short.end
    whole = met(400, meeting=False, data=True, check=False)
    assert whole.cycles == found.cycles


def diagnosis(run: Callable[[], Any]) -> list[tuple[str, Any]]:
    with pytest.raises(ProgramError) as error:
        run()
    return [(d.code, d.location) for d in error.value.diagnostics]


@kernel(core="vector")
def leaves_early(x, y):
    if get_block_idx() == 0:
        SYNCALL[SyncCoreType.AIVOnly]()


def test_a_meeting_that_somebody_misses_is_the_diagnosis_of_the_simulator() -> None:
    x, y = arrays(16)
    ran = diagnosis(lambda: leaves_early[2](x, y, target="a2a3"))
    assert diagnosis(lambda: leaves_early.time(2, (x, y), target="a2a3")) == ran


def test_two_timings_are_compared_pipe_by_pipe() -> None:
    slow = add_one_by_one.time(1, arrays(), target="a2a3", extra=False)
    quick = slow.what_if({"launch.start": 0.0})
    found = compare(slow, quick)
    assert found.speedup == pytest.approx(slow.us / quick.us)
    assert found.speedup > 1
    told = str(found)
    assert f"{slow.us:.1f} us -> {quick.us:.1f} us" in told
    for pipe in slow.busy:
        (line,) = [each for each in told.splitlines() if each.split() and pipe in each]
        assert f"{100 * slow.busy[pipe]:5.1f} %" in line
        assert f"{100 * quick.busy[pipe]:5.1f} %" in line


@needs_compiler
def test_cpp_is_timed_at_its_own_lines(tmp_path: Path) -> None:
    program = source(
        tmp_path,
        'extern "C" __global__ AICORE void k(__gm__ float *x)\n{\n'
        "T t; TASSIGN(t, 0);\nG g(x);\nTLOAD(t, g);\n"
        "PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();\nTADD(t, t, t);\n}\n",
    )
    x = np.ones((16, 64), np.float32)
    found = program.k.time(2, (x,))
    assert {step.label for step in found.critical} == {"TLOAD", "TADD"}
    lines = program.text.splitlines()
    for step in found.critical:
        assert step.line is not None
        assert step.line.file == str(program.path)
        assert step.label in lines[step.line.line - 1]
    assert (x == 1).all()  # nothing was computed
