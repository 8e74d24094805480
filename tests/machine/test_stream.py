"""The stream of events: one per executed operation, the same whatever way a program runs."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.frontend.launch import launch
from ptokit.isa.effects import Flag, Pipe, Slot
from ptokit.machine.recording import Recorded, Recording
from tests.frontend.test_fifos import V2C, V2C_GM, square

X = np.arange(64 * 16, dtype=np.float32).reshape(64, 16)


@kernel
def double(x: Any, z: Any) -> None:
    tile = Tile[TileType.Vec, float32, 16, 16]()
    TASSIGN(tile, 0)
    row = get_block_idx() * 16
    loaded = Event[Op.TLOAD, Op.TMULS](TLOAD(tile, GlobalTensor(x)[row : row + 16, :]))
    TMULS(tile, tile, 2.0, loaded)
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1)
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID1)
    TSTORE(GlobalTensor(z)[row : row + 16, :], tile)
    pipe_barrier(PIPE_ALL)


def events(run: Any) -> list[Recorded]:
    assert run.events is not None
    return list(run.events)


def apart_from_lines(found: list[Recorded]) -> list[tuple[Any, ...]]:
    return [each[:-1] for each in found]


def in_text(of: Any, folder: Path, args: tuple[Any, ...], **consts: Any) -> Any:
    path = folder / "kernel.pto"
    path.write_text(of.text(*args, **consts))
    return load(str(path))[of.name]


def test_every_path_gives_the_same_events(tmp_path: Path) -> None:
    z = np.zeros_like(X)
    eager = events(double[4](X, z, events=True))
    np.testing.assert_array_equal(z, 2 * X)
    assert events(double[4](X, z, path="lowered", events=True)) == eager
    assert events(double[4](X, z, path="lowered", jobs=3, events=True)) == eager
    assert events(double[4](X, z, seed=3, events=True)) == eager  # program order, not time
    text = events(in_text(double, tmp_path, (X, z))[4](X, z, events=True))
    assert apart_from_lines(text) == apart_from_lines(eager)
    written = (tmp_path / "kernel.pto").read_text().splitlines()
    assert "pto.tmuls" in written[text[3].line - 1]


def test_an_event_says_who_did_what_where_and_after_whom() -> None:
    found = events(double[4](X, np.zeros_like(X), events=True))
    second = [each for each in found if each.block == 1]
    assert [(e.operation, e.pipe.name) for e in second] == [
        ("TLOAD", "MTE2"),
        ("set_flag", "MTE2"),
        ("wait_flag", "V"),
        ("TMULS", "V"),
        ("set_flag", "V"),
        ("wait_flag", "MTE3"),
        ("TSTORE", "MTE3"),
        ("pipe_barrier", "ALL"),
    ]
    load_, set_, wait, multiply, *_, store, _ = second
    part = ((1024, 2048),)  # the second block of 16 rows, counted from the start of the array
    assert [(a.memory, a.ranges, a.writes, a.operand) for a in load_.accesses] == [
        ("UB", ((0, 1024),), True, "dst"),
        ("GM0", part, False, "src"),
    ]
    assert ("GM1", part, True, "dst") in store.accesses
    flag = Flag(Pipe.MTE2, Pipe.V, 0)
    assert set_.signals == (flag,)
    assert wait.waits == ((flag, set_.name),)
    assert multiply.location.text.strip() == "TMULS(tile, tile, 2.0, loaded)"


@pytest.mark.parametrize(("target", "way"), [("a2a3", V2C), ("a5", V2C), ("a5", V2C_GM)])
def test_a_push_is_one_event_with_its_data_and_its_signal(target: str, way: Any) -> None:
    x = np.eye(32, dtype=np.float16)
    ring, y = np.zeros(4096, np.uint8), np.zeros((32, 32), np.float32)
    args = (x, ring, y)
    runs = [
        events(square[1](*args, way=way, target=target, path=path, events=True))
        for path in ("eager", "lowered")
    ]
    assert runs[0] == runs[1]
    pushes = [e for e in runs[0] if e.operation == "TPUSH"]
    (pop,) = [e for e in runs[0] if e.operation == "TPOP"]
    assert [(e.core, e.pipe.name) for e in pushes] == [("vector 0", "MTE3"), ("vector 1", "MTE3")]
    ready = Slot(c2v=False, is_free=False)
    for push in pushes:
        assert {a.operand for a in push.accesses} == {"tile", "slot"}
        assert push.signals == (ready,)
    # The pop of the cube core took one token from each of them.
    assert pop.waits == tuple((ready, push.name) for push in pushes)


def test_nobody_but_the_hazard_log_costs_nothing() -> None:
    with device("a2a3") as machine:
        assert not machine.follows
        set_flag(PIPE_V, PIPE_S, EVENT_ID0)
        wait_flag(PIPE_V, PIPE_S, EVENT_ID0)
        assert machine.operation is None
        assert machine.core.issued == 0


def test_any_number_of_subscribers_hear_the_same() -> None:
    first: list[str] = []
    second: list[str] = []
    told = [lambda e: first.append(e.insn.name), lambda e: second.append(e.insn.name)]
    z = np.zeros_like(X)
    body = lambda: double.function(X[:16], z[:16])  # noqa: E731
    launch({"mix": body}, subscribers=told)
    assert first == second
    assert first[:3] == ["TLOAD", "set_flag", "wait_flag"]


def test_long_streams_go_to_disk_and_nothing_is_cut() -> None:
    whole, spilled = Recording([X]), Recording([X], in_memory=10)
    z = np.zeros_like(X)
    body = lambda: double.function(X, z)  # noqa: E731
    launch({"mix": body}, grid=4, subscribers=[whole.see, spilled.see])
    assert list(spilled.finish()) == list(whole.finish())
    assert len(spilled) == len(whole) == 32
    path = spilled._path
    assert path is not None
    assert Path(path).exists()
    del spilled
    gc.collect()  # the machine of the run has listened to it
    assert not Path(path).exists()
