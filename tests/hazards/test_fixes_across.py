"""Repairs between cores, blocks and ranks: signals, meetings and entries that come back.

`make fixes` does this to every race mutant of `tools/subjects`; here is each kind of remedy once.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit import loads
from ptokit.isa.spec import Pipe
from ptokit.repair.search import Repair, repair
from ptokit.repair.signals import core_signals
from ptokit.repair.spelling import PythonSpelling, TextSpelling
from tests.hazards.support import at

ROOT = Path(__file__).resolve().parents[2]
T = Tile[TileType.Vec, float32, 16, 16]


def changed(fixed: Repair) -> list[str]:
    """The lines that a repair adds (+) and takes out (-), without their indentation."""
    lines = [line for line in fixed.diff.splitlines() if not line.startswith(("---", "+++"))]
    return [f"{line[0]}{line[1:].strip()}" for line in lines if line[0] in "+-"]


# ---- blocks --------------------------------------------------------------------------------------


def two_blocks() -> tuple[np.ndarray, np.ndarray]:
    return np.ones((32, 16), np.float32), np.zeros((32, 16), np.float32)


def test_blocks_meet() -> None:
    @kernel(target="a2a3", core="vector")
    def k(c: Any, y: Any) -> None:
        a, mine = at(T(), 0), get_block_idx() * 16
        TEXPANDS(a, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(GlobalTensor(c)[mine : mine + 16, :], a)
        PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()
        TLOAD(a, GlobalTensor(c)[16 - mine : 32 - mine, :])
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
        TSTORE(GlobalTensor(y)[mine : mine + 16, :], a)

    fixed = k.fix(*two_blocks(), grid=2)
    assert [d.evidence.edge for d in fixed.found if d.evidence] == ["between blocks"] * 2
    assert fixed.is_clean
    assert changed(fixed) == ["+SYNCALL[SyncCoreType.AIVOnly]()"]


def test_blocks_meet_where_all_of_them_come() -> None:
    @kernel(target="a2a3", core="vector")
    def k(c: Any, y: Any) -> None:
        a, mine = at(T(), 0), get_block_idx() * 16
        TEXPANDS(a, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(GlobalTensor(c)[mine : mine + 16, :], a)
        PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()
        if get_block_idx() == 0:
            TLOAD(a, GlobalTensor(c)[16:32, :])
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
            TSTORE(GlobalTensor(y)[0:16, :], a)

    fixed = k.fix(*two_blocks(), grid=2)
    assert fixed.is_clean
    (line,) = changed(fixed)
    lines = fixed.after.splitlines()
    here = next(n for n, each in enumerate(lines) if each.strip() == line[1:])
    assert lines[here + 1].strip() == "if get_block_idx() == 0:"


def test_blocks_of_a_text_meet() -> None:
    tile, part = "!pto.tile_buf<vec, 16x16xf32>", "!pto.partition_tensor_view<16x16xf32>"
    view = "!pto.tensor_view<?x?xf32>"
    text = f"""func.func @k(%c: !pto.ptr<f32>) attributes {{pto.kernel}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 16 : index
  %all = arith.constant 32 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1.0 : f32
  %block = pto.get_block_idx
  %number = arith.index_cast %block : i64 to index
  %mine = arith.muli %number, %n : index
  %other = arith.subi %n, %mine : index
  %v = pto.make_tensor_view %c, shape = [%all, %n], strides = [%n, %c1] : {view}
  %p = pto.partition_view %v, offsets = [%mine, %c0], sizes = [%n, %n] : {view} -> {part}
  %q = pto.partition_view %v, offsets = [%other, %c0], sizes = [%n, %n] : {view} -> {part}
  %a = pto.alloc_tile addr = %zero : {tile}
  pto.texpands ins(%one : f32) outs(%a : {tile})
  pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
  pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
  pto.tstore ins(%a : {tile}) outs(%p : {part})
  pto.set_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]
  pto.wait_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]
  pto.tload ins(%q : {part}) outs(%a : {tile})
  return
}}
"""
    fixed = loads(text)["k"].fix(np.zeros((32, 16), np.float32), grid=2, target="a2a3")
    assert fixed.is_clean
    (line,) = changed(fixed)
    assert line.startswith("+pto.syncall() mode = #pto.sync_all_mode<hard>")


# ---- cores of one block --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tool() -> Any:
    before = list(sys.path)
    sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "examples")]
    yield importlib.import_module("fixes")
    sys.path[:] = before


def test_a_wait_is_the_other_end_of_its_signal() -> None:
    """As their effects say: the same token, with as much beside it."""
    pairs = {each.gives.name: (each.takes.name, each.by_core) for each in core_signals()}
    assert pairs == {
        "ffts_cross_core_sync": ("wait_flag_dev", False),
        "set_intra_block": ("wait_intra_block", True),
        "sync_set": ("sync_wait", False),
        "set_cross_block": ("wait_cross_block", False),
    }
    text, python = TextSpelling(), PythonSpelling("from ptokit import *")
    code = "pto.set_cross_block <PIPE_MTE3>, 3"
    assert text.awaited(code, Pipe.MTE2, "3") == "pto.wait_cross_block <PIPE_MTE2>, 3"
    code = "ffts_cross_core_sync(PIPE_MTE3, getFFTSMsg(2, i))"
    assert python.awaited(code, Pipe.MTE2, "i") == "wait_flag_dev(i)"
    code = "set_intra_block(PIPE_MTE3, i)"
    assert python.awaited(code, Pipe.MTE2, "i") == "wait_intra_block(PIPE_MTE2, i)"


@pytest.fixture(scope="module")
def cores(tool: Any) -> Any:
    return tool.Example(tool.SUBJECTS / "cores.py")


def repaired(tool: Any, example: Any, case: tuple[str, str], *gone: str) -> Repair:
    """A subject without some lines, and what comes of it."""
    path = tool.SUBJECTS / f"{example.stem}.py"
    lines = path.read_text("utf-8").splitlines(keepends=True)
    for each in gone:
        assert any(each in line for line in lines), each
    text = "".join(
        line[: len(line) - len(line.lstrip())] + "pass\n" if any(g in line for g in gone) else line
        for line in lines
    )
    fixed = repair(text, lambda text: example.check(text, [case])[0], path.name)
    assert fixed.found
    return fixed


ROUNDS = [("messages, 3 rounds", "a2a3"), ("counters, 3 rounds", "a5")]


@pytest.mark.parametrize(("case", "gone", "back"), [
    (ROUNDS[0], "wait_flag_dev(FULL)", "wait_flag_dev(FULL)"),
    (ROUNDS[1], "wait_intra_block(PIPE_MTE2, FULL)", "wait_intra_block(PIPE_MTE2, FULL)"),
    (ROUNDS[1], "wait_intra_block(PIPE_FIX, BUSY + 16)", "wait_intra_block(PIPE_FIX, BUSY + 16)"),
])  # fmt: skip
def test_a_signal_is_awaited(
    tool: Any, cores: Any, case: tuple[str, str], gone: str, back: str
) -> None:
    fixed = repaired(tool, cores, case, gone)
    assert fixed.is_clean
    assert changed(fixed) == [f"+{back}"]


def test_a_signal_that_goes_round_is_primed(tool: Any, cores: Any) -> None:
    path = tool.SUBJECTS / "cores.py"
    text = path.read_text("utf-8")
    wait = "            if i > 0:\n                wait_flag_dev(BUSY)\n"
    assert wait in text
    broken = text.replace(wait, "")
    fixed = repair(broken, lambda text: cores.check(text, ROUNDS[:1])[0], path.name)
    assert fixed.is_clean
    assert changed(fixed) == [
        "+wait_flag_dev(BUSY)",
        "+ffts_cross_core_sync(PIPE_MTE2, getFFTSMsg(2, BUSY))",
    ]


@pytest.mark.parametrize(("case", "gone", "back"), [
    (
        ("messages, 1 rounds", "a2a3"),
        ("ffts_cross_core_sync(PIPE_FIX", "wait_flag_dev(FULL)"),
        ["+ffts_cross_core_sync(PIPE_FIX, getFFTSMsg(2, 0))", "+wait_flag_dev(0)"],
    ),
    (
        ("counters, 1 rounds", "a5"),
        ("set_intra_block(PIPE_FIX, FULL", "wait_intra_block(PIPE_MTE2, FULL)"),
        ["+set_intra_block(PIPE_FIX, 0)", "+set_intra_block(PIPE_FIX, 16)",
         "+wait_intra_block(PIPE_MTE2, 0)"],
    ),
])  # fmt: skip
def test_a_new_signal(
    tool: Any, cores: Any, case: tuple[str, str], gone: tuple[str, ...], back: list[str]
) -> None:
    fixed = repaired(tool, cores, case, *gone)
    assert fixed.is_clean
    assert changed(fixed) == back


def test_without_a_place_for_signals_there_is_no_patch(tool: Any, cores: Any) -> None:
    """On A2/A3 the host says where the flags of the cores lie: nobody can make that up."""
    gone = "ffts_cross_core_sync(PIPE_FIX", "wait_flag_dev(FULL)", "set_ffts_base_addr"
    fixed = repaired(tool, cores, ("messages, 1 rounds", "a2a3"), *gone)
    assert not fixed.diff
    (left,) = {d.code for d in fixed.remaining}
    assert left == "E7"
    assert "order the cores: hand the data over with TPUSH and TPOP" in fixed.remaining[0].fix


def test_a_signal_of_another_pipe(tool: Any, cores: Any) -> None:
    path = tool.SUBJECTS / "cores.py"
    signal = "ffts_cross_core_sync(PIPE_MTE2, getFFTSMsg(2, BUSY))"
    wrong = signal.replace("MTE2", "MTE3")
    text = path.read_text("utf-8").replace(signal, wrong)
    fixed = repair(text, lambda text: cores.check(text, ROUNDS[:1])[0], path.name)
    assert fixed.is_clean
    assert changed(fixed) == [f"-{wrong}", f"+{signal}"]


# ---- entries of a FIFO ---------------------------------------------------------------------------


def test_entries_are_given_back(tool: Any) -> None:
    example = tool.Example(tool.EXAMPLES / "fifo.py")
    text = (tool.EXAMPLES / "fifo.py").read_text("utf-8")
    head, kernel, rest = text.partition("def there_and_back")
    broken = head + kernel + rest.replace("            TFREE[split](pipe)\n", "", 1)
    *_, case = ((c.name, t) for c, t in example.cases if c.kernel.name == "there_and_back")
    fixed = repair(broken, lambda text: example.check(text, [case])[0], "fifo.py")
    assert {d.code for d in fixed.found} == {"E1"}
    assert fixed.is_clean
    assert changed(fixed) == ["+TFREE[split](pipe)"]


# ---- ranks ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ranks(tool: Any) -> Any:
    return tool.Example(tool.SUBJECTS / "ranks.py")


@pytest.mark.parametrize(("gone", "back"), [
    ("TWAIT(state.ready.signal(), turn, ", "TWAIT(state.ready.signal(), turn, WaitCmp.GE)"),
    ("TWAIT(state.free.signal(), ", "TWAIT(state.free.signal(), turn - 1, WaitCmp.GE)"),
])  # fmt: skip
def test_a_rank_waits_for_the_round(tool: Any, ranks: Any, gone: str, back: str) -> None:
    fixed = repaired(tool, ranks, ("hand_over of 2, 3 rounds", "a2a3"), gone)
    assert fixed.is_clean
    assert changed(fixed) == [f"+{back}"]


def test_a_rank_tells_of_work_that_is_done(tool: Any, ranks: Any) -> None:
    gone = "PtoSetWaitFlag[PIPE_MTE2, PIPE_S]()"
    fixed = repaired(tool, ranks, ("hand_over of 2, 3 rounds", "a2a3"), gone)
    assert fixed.is_clean
    assert changed(fixed) == [
        "+set_flag(PIPE_MTE2, PIPE_S, EVENT_ID0)",
        "+wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID0)",
    ]


def test_another_protocol_is_left_alone(tool: Any, ranks: Any) -> None:
    """A signal that is not counted by rounds: which number to wait for nobody can say."""
    path = tool.SUBJECTS / "ranks.py"
    text = path.read_text("utf-8").replace("NotifyOp.AtomicAdd", "NotifyOp.Set")
    text = text.replace("TWAIT(state.ready.signal(), turn, WaitCmp.GE)", "pass")
    case = ("hand_over of 2, 1 rounds", "a2a3")
    fixed = repair(text, lambda text: ranks.check(text, [case])[0], path.name)
    assert not fixed.diff
    assert {d.evidence.edge for d in fixed.remaining if d.evidence} == {"between ranks"}
    assert all("TNOTIFY" in d.fix for d in fixed.remaining)
