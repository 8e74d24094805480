"""Mutants of kernels: every piece of synchronisation that matters is missed when it is gone.

`make mutants` does this to all manual examples; here are the smallest of them, and proof that the
tool itself tells found from harmless from missed.
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def tool() -> Any:
    before = list(sys.path)
    sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "examples")]
    yield importlib.import_module("mutants")
    sys.path[:] = before


def words(verdicts: Any) -> Counter[str]:
    return Counter(v.word for v in verdicts)


@pytest.fixture
def gone(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements are removed, and not changed or moved as well."""
    monkeypatch.setattr(tool, "mutants", importlib.import_module("mutation").lacking)


@pytest.mark.usefixtures("gone")
def test_every_flag_of_a_small_example(tool: ModuleType) -> None:
    verdicts = tool.judge_mutants(EXAMPLES / "vector_add.py", 0, 1, 6)
    assert words(verdicts) == {"found": 12 * 4}, "12 flags on 4 targets"


@pytest.mark.usefixtures("gone")
@pytest.mark.parametrize("statement", ["TPUSH", "TPOP", "TFREE"])
def test_the_ends_of_fifos(tool: ModuleType, statement: str) -> None:
    path = EXAMPLES / "flash_attention_cluster.py"
    lines = path.read_text("utf-8").splitlines()
    chosen = [n for n, text in enumerate(lines, 1) if text.strip().startswith(f"{statement}[")]
    verdicts = [v for n in chosen[:2] for v in tool.judge_mutants(path, 0, 1, 4, n)]
    # A pop through global memory has given the slot back: TFREE does nothing on A2/A3.
    harmless = 2 if statement == "TFREE" else 0
    assert words(verdicts) == {"found": 4 - harmless} | ({"harmless": 2} if harmless else {})


EVENTS = """
import numpy as np
from harness import Case
from ptokit import *

Block = Tile[TileType.Vec, float32, 16, 16]

@kernel
def add(x, z):
    a, b = Block(), Block()
    TASSIGN(a, 0x0)
    TASSIGN(b, 0x400)
    loaded = Event[Op.TLOAD, Op.TADDS](TLOAD(a, GlobalTensor(x)))
    added = Event[Op.TADDS, Op.TSTORE_VEC](TADDS(b, a, 1.0, loaded))
    pipe_barrier(PIPE_V)
    TSTORE(GlobalTensor(z), b, added)

CASES = [Case("add", add, lambda rng: (rng.random((16, 16), np.float32), np.zeros((16, 16), "f4")),
              lambda x, z: (x + 1,), targets=("a2a3",))]
"""

FLAGS = (
    EVENTS.replace("    loaded = Event[Op.TLOAD, Op.TADDS](TLOAD(a, GlobalTensor(x)))",
                   "    TLOAD(a, GlobalTensor(x))\n    PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()")
    .replace("    added = Event[Op.TADDS, Op.TSTORE_VEC](TADDS(b, a, 1.0, loaded))",
             "    TADDS(b, a, 1.0)\n    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()")
    .replace("    pipe_barrier(PIPE_V)\n", "")
    .replace(", b, added)", ", b)")
)  # fmt: skip


@pytest.mark.usefixtures("gone")
def test_events(tool: ModuleType, tmp_path: Path) -> None:
    """Two records and two waits matter; the barrier, with nothing behind it, does not."""
    path = tmp_path / "events.py"
    path.write_text(EVENTS, "utf-8")
    verdicts = tool.judge_mutants(path, 0, 1, 8)
    assert words(verdicts) == {"found": 4, "harmless": 1}
    assert "pipe_barrier" in next(v.what for v in verdicts if v.word == "harmless")


@pytest.mark.usefixtures("gone")
def test_a_checker_that_sees_nothing_is_found_out(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "flags.py"
    path.write_text(FLAGS, "utf-8")
    assert words(tool.judge_mutants(path, 0, 1, 16)) == {"found": 2}
    sees = tool.run
    monkeypatch.setattr(tool, "run", lambda *a, **how: sees(*a, check=False, **how))
    counted = words(tool.judge_mutants(path, 0, 1, 16))
    assert counted == {"MISSED": 2}
    line = "mutants: 0 of 2 found, 0 harmless silent, 0 false alarms (2 mutants: 2 flag)"
    assert tool.closing_line(counted, Counter({"flag": 2})) == line


def test_a_run_that_was_stopped_goes_on(
    tool: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "flags.py"
    path.write_text(FLAGS, "utf-8")
    monkeypatch.setenv("PTOKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tool, "PARTS", 2)

    def run(*more: str) -> str:
        given = ["mutants", "--proof", "1", "--schedules", "1", *more, str(path)]
        monkeypatch.setattr(sys, "argv", given)
        assert tool.main() == 0
        return capsys.readouterr().out

    whole = run("--jobs", "2")
    does, done = tool.judged, []

    def at_most(count: int) -> Any:
        def judged(piece: Any) -> Any:
            if len(done) == count:
                raise KeyboardInterrupt
            done.append(piece)
            return does(piece)

        return judged

    monkeypatch.setattr(tool, "judged", at_most(3))
    with pytest.raises(KeyboardInterrupt):
        run("--jobs", "1")
    monkeypatch.setattr(tool, "judged", at_most(4))
    assert run("--jobs", "1", "--resume") == whole
    assert len(done) == len(set(done)) == 4, "each piece is done once"
    assert not list((tmp_path / "cache").rglob("*.jsonl")), "nobody goes on with what is done"


def test_the_goal_of_a_whole_run(tool: ModuleType) -> None:
    fine, kinds = Counter(found=1600), Counter(dict.fromkeys(tool.KINDS, 200))
    assert tool.goal_line(fine, kinds).endswith("no false alarm: met")
    assert tool.goal_line(Counter(found=1600, MISSED=1), kinds).endswith("MISSED")
    assert tool.goal_line(fine, Counter(flag=1400)).endswith(
        "MISSED (without barrier, buffer, cross-core, event, fifo, rank, register, unit flag)"
    )


def test_a_complaint_about_a_correct_example_is_a_false_alarm(
    tool: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "events.py"
    path.write_text(EVENTS, "utf-8")
    assert tool.watch_original(path, 5, 0, 1) == []
    path.write_text(EVENTS.replace(", b, added)", ", b)"), "utf-8")
    assert words(tool.watch_original(path, 5, 0, 1)) == {"false alarm": 5}


# ---- what can be wrong about order ---------------------------------------------------------------


def of_kind(tool: ModuleType, name: str, kind: str) -> list[Any]:
    """The mutants of a subject that are about one kind of order."""
    text = (tool.SUBJECTS / name).read_text("utf-8")
    return [m for m in importlib.import_module("mutation").mutants(text) if m.kind == kind]


@pytest.mark.parametrize(
    ("name", "kind", "least"),
    [("cores.py", "cross-core", 30), ("units.py", "unit flag", 12), ("units.py", "register", 5),
     ("ranks.py", "rank", 12), ("pipes.py", "buffer", 20), ("pipes.py", "event", 5)],
)  # fmt: skip
def test_every_kind_is_made_and_judged(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str, kind: str, least: int
) -> None:
    made = of_kind(tool, name, kind)
    assert len(made) >= least
    monkeypatch.setattr(tool, "mutants", lambda _: made[:: 1 if kind == "register" else 4])
    verdicts = tool.judge_mutants(tool.SUBJECTS / name, 0, 1, 4)
    assert verdicts
    assert {v.kind for v in verdicts} == {kind}
    assert words(verdicts)["found"] >= 1
    assert set(words(verdicts)) <= {"found", "harmless"}


def test_a_statement_is_removed_changed_and_moved() -> None:
    made = importlib.import_module("mutation").mutants(FLAGS)
    found = [str(m).partition(" ")[2].partition(" ")[2] for m in made]
    call = "PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()"
    assert [f for f in found if call in f] == [
        f"without {call}",
        f"with pipes exchanged in {call}",
        f"with PIPE_MTE3 in {call}",
        f"with PIPE_MTE3 in {call}",
        f"with another id in {call}",
        f"moved {call}, before its neighbour",
        f"moved {call}, behind its neighbour",
    ]


def test_texts_of_auto_kernels(tool: ModuleType) -> None:
    """What the compiler inserted is taken out of its text."""
    verdicts = tool.judge_texts(EXAMPLES / "transpose.py", 0, 5, 4)
    assert {v.kind for v in verdicts} == {"flag", "barrier"}
    assert set(words(verdicts)) <= {"found", "harmless"}
    assert words(verdicts)["found"] > len(verdicts) / 2
