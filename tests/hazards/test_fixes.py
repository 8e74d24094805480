"""Repairs: the order a kernel lacks is derived from its blocks and loops, and tried before kept.

`make fixes` does this to every race mutant of the examples and to 200 random kernels; here are the
shapes of control flow, one each, and proof that the tool tells clean from left from worse.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit import loads
from ptokit.repair.buffers import remedies_of_buffers
from ptokit.repair.outline import Outline, of_python, of_text
from ptokit.repair.search import Trial, repair
from tests.command import command
from tests.hazards.support import array, at, check

ROOT = Path(__file__).resolve().parents[2]
T = Tile[TileType.Vec, float32, 16, 16]


def inserted(fixed: Any) -> list[str]:
    """The lines that a repair has added, without their indentation."""
    lines = fixed.diff.splitlines()
    assert not [line for line in lines if line.startswith("-") and not line.startswith("---")]
    return [line[1:].strip() for line in lines if line.startswith("+") and line[1] == " "]


def clean(kernel: Any, *args: Any, **more: Any) -> list[str]:
    """What had to be added until nothing complains."""
    fixed = kernel.fix(*args, **more)
    assert fixed.found, "nothing was wrong"
    assert fixed.is_clean, fixed
    return inserted(fixed)


# ---- shapes of control flow ----------------------------------------------------------------------


def test_forward() -> None:
    @kernel(target="a5")
    def k(x: Any, y: Any) -> None:
        a = at(T(), 0)
        TLOAD(a, GlobalTensor(x))
        TSTORE(GlobalTensor(y), a)

    assert clean(k, array(), array(0)) == [
        "set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)",
        "wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)",
    ]


def test_a_loop_is_primed_and_drained() -> None:
    @kernel(target="a5")
    def k(x: Any, y: Any) -> None:
        a = at(T(), 0)
        for _ in range(3):
            TLOAD(a, GlobalTensor(x))
            set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
            wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
            TSTORE(GlobalTensor(y), a)

    lines = k.fix(array(), array(0)).after.splitlines()
    body = [line.strip() for line in lines]
    set_, wait = (f"{end}_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)" for end in ("set", "wait"))
    loop = next(n for n, line in enumerate(body) if line == set_ and "for _" in body[n + 1]) + 1
    assert body[loop + 1 : loop + 3] == [wait, "TLOAD(a, GlobalTensor(x))"]
    assert body[loop + 5 : loop + 8] == ["TSTORE(GlobalTensor(y), a)", set_, wait]
    assert lines[loop + 7].index("wait") == lines[loop].index("for"), "after the loop"


def test_one_id_per_buffer() -> None:
    @kernel(target="a5")
    def k(x: Any, y: Any) -> None:
        a = [at(T(), 0), at(T(), 0x400)]
        for i in range(4):
            TLOAD(a[i % 2], GlobalTensor(x))
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
            TSTORE(GlobalTensor(y)[i * 16 : i * 16 + 16, :], a[i % 2])

    added = clean(k, array(), np.zeros((64, 16), np.float32))
    assert [a for a in added if "i % 2" in a] == [
        "wait_flag(PIPE_MTE3, PIPE_MTE2, i % 2)",
        "set_flag(PIPE_MTE3, PIPE_MTE2, i % 2)",
    ]
    assert Counter(a.split("(")[0] for a in added) == {"set_flag": 3, "wait_flag": 3}


def test_branches_are_left_together() -> None:
    """What is set behind a branch is set on every path."""

    @kernel(target="a5")
    def k(x: Any, y: Any, n: int) -> None:
        a = at(T(), 0)
        TEXPANDS(a, 0.0)
        for i in range(n):
            if i % 2 == 0:
                TADDS(a, a, 1.0)
            elif i == 1:
                TADDS(a, a, 2.0)
            else:
                TMULS(a, a, 2.0)
            TSTORE(GlobalTensor(y), a)

    clean(k, array(), array(0), 4)
    clean(k, array(), array(0), 4, path="lowered")


def load_into(a: Any, x: Any) -> None:
    TLOAD(a, GlobalTensor(x))


def store_from(y: Any, a: Any) -> None:
    TSTORE(GlobalTensor(y), a)


@kernel(target="a5")
def through_helpers(x: Any, y: Any) -> None:
    a = at(T(), 0)
    for _ in range(3):
        load_into(a, x)
        store_from(y, a)


def test_lines_of_helpers_meet_where_they_are_called() -> None:
    fixed = through_helpers.fix(array(), array(0))
    assert fixed.is_clean
    body = [line.strip() for line in fixed.after.splitlines()]
    call = body.index("store_from(y, a)")
    assert body[call - 1] == "wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)"
    assert body[call + 1] == "set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)"


def test_one_pipe_wants_a_barrier() -> None:
    @kernel(target="a2a3")
    def k(y: Any) -> None:
        a, b = at(T(), 0), at(T(), 0x400)
        TEXPANDS(a, 1.0)
        TADDS(b, a, 1.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(GlobalTensor(y), b)

    assert clean(k, array(0)) == ["pipe_barrier(PIPE_V)"]


def test_only_free_ids() -> None:
    @kernel(target="a5")
    def k(x: Any, y: Any) -> None:
        a, b = at(T(), 0), at(T(), 0x400)
        for number in static_range(7):
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3](number, number)
        TLOAD(a, GlobalTensor(x))
        TSTORE(GlobalTensor(y), a)
        PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()
        TLOAD(b, GlobalTensor(x))
        TSTORE(GlobalTensor(y), b)

    added = clean(k, array(), array(0))
    assert added[:2] == [f"{end}_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID7)" for end in ("set", "wait")]
    assert added[2:] == ["pipe_barrier(PIPE_ALL)"], "no id is left"


# ---- flags that have lost an end -----------------------------------------------------------------

LOOP = """
from ptokit import *

T = Tile[TileType.Vec, float32, 16, 16]


@kernel(target="a5")
def k(x: float32[16, 16], y: float32[16, 16]):
    a = T()
    TASSIGN(a, 0)
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID2)  # prime
    for i in range(3):
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID2)
        TLOAD(a, GlobalTensor(x))
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID1)
        wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID1)
        TSTORE(GlobalTensor(y), a)
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID2)
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID2)  # drain
"""


def written(tmp_path: Path, text: str) -> Any:
    file = tmp_path / "kernels.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(f"kernels_{abs(hash(text))}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.k


FLAGS = [n for n, line in enumerate(LOOP.splitlines()) if "_flag(" in line]


@pytest.mark.parametrize("gone", FLAGS, ids=lambda n: LOOP.splitlines()[n].strip()[:40])
def test_the_missing_end_comes_back(gone: int, tmp_path: Path) -> None:
    lines = LOOP.splitlines(keepends=True)
    removed = lines.pop(gone)
    (added,) = clean(written(tmp_path, "".join(lines)))
    assert added == removed.split("#")[0].strip()


@pytest.mark.parametrize("line", FLAGS[:2] + FLAGS[3:4], ids=["prime", "wait", "forward"])
@pytest.mark.parametrize("change", [("PIPE_MTE3", "PIPE_V"), ("EVENT_ID", "3 + EVENT_ID")], ids=str)
def test_ends_that_do_not_fit(line: int, change: tuple[str, str], tmp_path: Path) -> None:
    """A set and a wait of different pipes or ids become a pair again: one line changes."""
    lines = LOOP.splitlines(keepends=True)
    lines[line] = lines[line].replace(*change)
    fixed = written(tmp_path, "".join(lines)).fix()
    assert fixed.is_clean, fixed
    assert len(fixed.remedies) == 1
    assert str(fixed.remedies[0]).partition(" instead of line ")[1]
    assert len(fixed.after.splitlines()) == len(lines)


EVENTS = """
from ptokit import *

T = Tile[TileType.Vec, float32, 16, 16]


@kernel(target="a5")
def k(x: float32[16, 16], y: float32[16, 16]):
    a, b = T(), T()
    TASSIGN(a, 0)
    TASSIGN(b, 0x400)
    loaded = Event[Op.TLOAD, Op.TADDS](TLOAD(a, GlobalTensor(x)))
    added = Event[Op.TADDS, Op.TSTORE_VEC](TADDS(b, a, 1.0, loaded))
    TSTORE(GlobalTensor(y), b, added)
"""


@pytest.mark.parametrize("gone", [", loaded", ", added"])
def test_an_event_that_nobody_waits_for(gone: str, tmp_path: Path) -> None:
    (added,) = clean(written(tmp_path, EVENTS.replace(f"{gone})", ")")))
    assert added == f"{gone.removeprefix(', ')}.Wait()"


def test_an_event_of_other_pipes(tmp_path: Path) -> None:
    kernel = written(tmp_path, EVENTS.replace("Op.TLOAD, Op.TADDS", "Op.TLOAD, Op.TSTORE_VEC"))
    with pytest.raises(ProgramError) as caught:
        kernel[1](array(), array(0))
    line = "loaded = Event[Op.TLOAD, Op.TADDS](TLOAD(a, GlobalTensor(x))) instead of line 12"
    assert caught.value.diagnostics[0].fix == line
    fixed = kernel.fix()
    assert fixed.after == EVENTS


# ---- spelling ------------------------------------------------------------------------------------

SPELLINGS = {
    "import ptokit as pto": "pto.set_flag(pto.PIPE_MTE2, pto.PIPE_MTE3, pto.EVENT_ID0)",
    "import ptokit": "ptokit.set_flag(ptokit.PIPE_MTE2, ptokit.PIPE_MTE3, ptokit.EVENT_ID0)",
    "from ptokit import kernel, TLOAD, TSTORE, TASSIGN, Tile, TileType, GlobalTensor, float32":
        "set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)",
}  # fmt: skip


@pytest.mark.parametrize("head", SPELLINGS)
def test_names_are_those_of_the_file(head: str, tmp_path: Path) -> None:
    alias = head.split()[-1] + "." if head.startswith("import") else ""
    text = f"""
{head}

@kernel(target="a5")
def k(x: float32[16, 16], y: float32[16, 16]):
    a = Tile[TileType.Vec, float32, 16, 16]()
    TASSIGN(a, 0)
    TLOAD(a, GlobalTensor(x))
    TSTORE(GlobalTensor(y), a)
"""
    for name in ("kernel", "TLOAD", "TSTORE", "TASSIGN", "TileType", "GlobalTensor", "float32"):
        text = text.replace(name, f"{alias}{name}") if alias else text
    text = text.replace(" Tile[", f" {alias}Tile[")
    file = tmp_path / "k.py"
    file.write_text(text)
    told = command("fix", str(file), "--write")
    assert told.returncode == 0, told.stderr
    assert SPELLINGS[head] in file.read_text()
    assert command("check", str(file)).returncode == 0


# ---- the command and texts -----------------------------------------------------------------------


def of_kernel() -> str:
    """The text of a kernel with a loop around a load and a store, without the flag backwards."""
    text = LOOPED.text(array(), array(0), target="a5")
    assert "scf.for" in text
    return text


@kernel(target="a5")
def LOOPED(x: Any, y: Any) -> None:
    a = at(T(), 0)
    for _ in range(get_block_num() + 2):
        TLOAD(a, GlobalTensor(x))
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID1)
        wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID1)
        TSTORE(GlobalTensor(y), a)


def test_a_text_is_repaired_as_text(tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    file.write_text(of_kernel())
    told = command("fix", str(file), "--target", "a5", "--json")
    data = json.loads(told.stdout)
    assert data["exit"] == 0
    (remedy,) = data["remedies"]
    assert remedy.startswith("prime: pto.set_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>] before")
    assert data["diff"].count("\n+ ") == 4
    assert file.read_text() == of_kernel(), "nothing is written unasked"
    assert command("fix", str(file), "--target", "a5", "--write").returncode == 0
    again = command("fix", str(file), "--target", "a5")
    assert (again.stdout, again.stderr) == ("", "nothing to repair\n")


def test_a_text_in_python() -> None:
    program = loads(of_kernel())
    fixed = program.entry().fix(array(), array(0), target="a5")
    assert fixed.is_clean
    x, y = array(2.0), array(0)
    loads(fixed.after).entry()[1](x, y, target="a5")
    assert (y == x).all()


def test_a_kernel_without_a_file_cannot_be_rewritten() -> None:
    names: dict[str, Any] = {}
    exec("from ptokit import *\n@kernel\ndef k(x): TPRINT(x)", names)
    with pytest.raises(PtoError, match="the source of k cannot be found"):
        names["k"].fix(array())


def test_what_remains_is_said(tmp_path: Path) -> None:
    """No flag mends an array that is too small."""
    file = tmp_path / "k.py"
    file.write_text(LOOP.replace("y: float32[16, 16]", "y: float32[16, 8]"))
    told = command("fix", str(file))
    assert told.returncode == 1
    assert told.stdout == ""
    assert "gm-bounds" in told.stderr
    assert "2 findings, 0 repairs: 2 left" in told.stderr  # what warns of it is told as well


def test_a_repair_that_does_not_help_is_not_kept() -> None:
    """A check that is never content leaves the program as it was."""
    fixed = through_helpers.fix(array(), array(0))
    stubborn = repair(fixed.before, lambda text: Trial("f.py", fixed.found), "f.py")
    assert stubborn.after == stubborn.before
    assert not stubborn.is_clean


# ---- advice --------------------------------------------------------------------------------------


def test_the_advice_of_a_race_is_its_repair() -> None:
    with pytest.raises(ProgramError) as caught:
        through_helpers[1](array(), array(0))
    first, second = caught.value.diagnostics
    assert first.fix.startswith("set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0) after line ")
    steps = second.fix.split("; ")
    assert [step.split("(")[0] for step in steps] == [
        "prime: set_flag", "wait_flag", "set_flag", "drain: wait_flag"
    ]  # fmt: skip


def test_the_advice_of_a_session_is_the_repair_too() -> None:
    def copied() -> None:
        with device("a5"):
            a = at(T(), 0)
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
            TLOAD(a, GlobalTensor(array()))
            TSTORE(GlobalTensor(array(0)), a)

    with pytest.raises(ProgramError) as caught:
        copied()
    (found,) = caught.value.diagnostics
    assert found.fix.startswith("set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID1) after line ")


# ---- outlines ------------------------------------------------------------------------------------


def test_an_outline_of_python() -> None:
    program = of_python(
        "def f():\n    if a:\n        b\n    elif c:\n        d\n    else: e\n    for i in x:\n"
        "        g(\n            1)\n"
    )
    assert program is not None
    (function,) = program.top.statements
    branch, loop = function.blocks[0].statements
    assert (branch.first, branch.last, len(branch.blocks)) == (2, 6, 0), "else shares its line"
    assert (loop.first, loop.last, loop.is_loop) == (7, 9, True)
    inner = program.find(9)
    assert inner is not None
    assert (inner.first, inner.last, inner.block.indent) == (8, 9, "        ")


def test_an_outline_of_text() -> None:
    program = of_text(of_kernel())
    assert program is not None
    loop = next(each for each in program if each.is_loop)
    assert "scf.for" in program.lines[loop.first - 1]
    assert program.lines[loop.last - 1].strip() == "}"
    assert all(loop.first < each.first < loop.last for each in loop.blocks[0].statements)


# ---- the tool ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tool() -> Any:
    before = list(sys.path)
    sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "examples")]
    yield importlib.import_module("fixes")
    sys.path[:] = before


def test_mutants_of_a_small_example(tool: Any) -> None:
    outcomes = tool.of_example(ROOT / "examples" / "vector_add.py", 0, 3)
    tally = Counter(each.word for each in outcomes)
    assert tally["clean"] == tally.total() >= 6


@pytest.mark.parametrize(
    ("broken", "mended"),
    [
        ("without get_buf(PIPE_V, 0)", "get_buf(PIPE_V, 0)"),
        ("without get_buf(PIPE_MTE3, 1)", "get_buf(PIPE_MTE3, 1)"),
        ("with PIPE_MTE3 in get_buf(PIPE_V, 0)", "get_buf(PIPE_V, 0)"),
        ("without free.Wait()", "free.Wait()"),
    ],
)
def test_buffers_and_events_get_the_end_that_they_lack(
    tool: Any, pipes: Any, broken: str, mended: str
) -> None:
    """And nothing beside it."""
    made = tool.mutants((tool.SUBJECTS / "pipes.py").read_text("utf-8"))
    (mutant,) = [each for each in made if str(each).endswith(broken)]
    (outcome,) = pipes.judge(mutant)
    assert outcome.word == "clean"
    lines = [each[1:].strip() for each in outcome.why.splitlines() if each.startswith("+ ")]
    assert lines == [mended]


def test_a_buffer_that_is_never_released() -> None:
    """Found by hand: the acquire is the end that is there."""
    text = "def k(a, x):\n    get_buf(PIPE_V, 0)\n    TADDS(a, a, 1.0)\n    TABS(a, a)\n"
    program = of_python(text)
    assert program is not None
    near = program.find(3)
    assert near is not None
    (remedy,) = remedies_of_buffers(program, near)
    assert remedy.applied(program) == f"{text}    rls_buf(PIPE_V, 0)\n"


@pytest.fixture(scope="module")
def pipes(tool: Any) -> Any:
    return tool.Example(tool.SUBJECTS / "pipes.py")


def test_random_kernels(tool: Any) -> None:
    tally = Counter(each.word for seed in range(7, 12) for each in tool.of_seed(seed))
    assert tally["clean"] == tally.total() >= 3
    assert tool.closing_line(tally).endswith("clean, 0 worse")


def test_silence_with_other_bytes_is_worse(tool: Any) -> None:
    fixed = through_helpers.fix(array(), array(0))
    assert fixed.found[0].location is not None
    file = fixed.found[0].location.file

    def check(text: str) -> Any:
        is_same = text == fixed.before
        return Trial(file, fixed.found if is_same else ()), is_same

    (outcome,) = tool.judge("x", fixed.before, check)
    assert outcome.word == "WORSE"


def test_advice_on_many_lines_reads_each_of_them_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To read all of a program again for each thing that is found would be square."""
    head = """from ptokit import *

def program():
    a = Tile[TileType.Vec, float32, 16, 16]()
    TASSIGN(a, 0)
    TEXPANDS(a, 1.0)
"""
    path = tmp_path / "many.py"
    path.write_text(head + "".join(f"    TADDS(a, a, {n}.0)\n" for n in range(60)), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    program = importlib.import_module("many").program
    read: list[Any] = []
    written = Outline._written
    monkeypatch.setattr(Outline, "_written", lambda self, s: read.append(s) or written(self, s))
    found = check(program)
    assert len(found) == 60
    assert [d.fix for d in found] == [
        f"pipe_barrier(PIPE_V) before line {line}" for line in range(7, 67)
    ]
    assert len(read) == len(set(read))
