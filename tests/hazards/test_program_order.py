"""A race is told as the program has it: the access is the earlier one that was issued earlier."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.machine import journal
from ptokit.machine.issued import IssueOrder
from tests.hazards.support import *
from tests.native.support import needs_compiler

SCHEDULES = [
    Schedule(),
    *(Schedule(late=late) for late in [(PIPE_MTE2,), (PIPE_V,), (PIPE_MTE3,)]),
    *(Schedule(late=late) for late in [(PIPE_V, PIPE_MTE2), (PIPE_MTE2, PIPE_V)]),
    *map(Schedule, range(6)),
]


def read_what_is_loaded(a: Any, b: Any) -> None:
    TLOAD(a, G32(array()))  # load
    TADDS(b, a, 1.0)


def load_over_what_is_read(a: Any, b: Any) -> None:
    TADDS(b, a, 1.0)
    TLOAD(a, G32(array()))  # load


def fill_what_is_loaded(a: Any, b: Any) -> None:
    TLOAD(a, G32(array()))  # load
    TEXPANDS(a, 1.0)


def behind_a_barrier(part: Callable[[Any, Any], None]) -> Callable[[], None]:
    """A program that does it with tiles that hold something."""

    def program() -> None:
        a, b = at(F32(), 0x0), at(F32(), 0x400)
        TEXPANDS(a, 0.0)
        pipe_barrier(PIPE_ALL)
        part(a, b)

    return program


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize(
    ("part", "kind", "edge"),
    [
        (read_what_is_loaded, "RAW", "MTE2->V"),
        (load_over_what_is_read, "WAR", "V->MTE2"),
        (fill_what_is_loaded, "WAW", "MTE2->V"),
    ],
    ids=["RAW", "WAR", "WAW"],
)
@pytest.mark.parametrize("most", [None, 0], ids=["read at the end", "read at once"])
def test_whichever_ran_first(
    part: Callable[[Any, Any], None],
    kind: str,
    edge: str,
    schedule: Schedule,
    most: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if most is not None:
        monkeypatch.setattr(journal, "_MOST_ENTRIES", most)
    (found,) = check(behind_a_barrier(part), schedule=schedule)
    assert found.evidence is not None
    assert found.evidence.edge == edge
    assert f"({kind})" in found.message
    src, dst = edge.split("->")
    assert f"set_flag(PIPE_{src}, PIPE_{dst}" in found.fix
    lines = [each.location.line for each in (found.evidence.earlier, found.evidence.later)]
    assert lines == sorted(lines)
    assert found.location is not None
    assert found.location.line == lines[1]
    assert lines[edge == "V->MTE2"] == marked(part, "load")


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_one_missing_flag_is_one_finding(schedule: Schedule) -> None:
    """What is loaded behind the addition lies over both of its tiles."""

    def part(a: Any, b: Any) -> None:
        TADDS(b, a, 1.0)
        both = at(Tile[TileType.Vec, float32, 32, 16](), 0x0)
        TLOAD(both, GlobalTensor(np.ones((32, 16), np.float32)))

    (found,) = check(behind_a_barrier(part), schedule=schedule)
    assert found.evidence is not None
    assert found.evidence.edge == "V->MTE2"


def test_the_order_is_kept_while_something_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, note = [0], IssueOrder.note

    def counted(self: IssueOrder, moment: int, issued: Any) -> None:
        note(self, moment, issued)
        kept[0] = max(kept[0], len(self))

    monkeypatch.setattr(IssueOrder, "note", counted)
    monkeypatch.setattr(journal, "_MOST_ENTRIES", 0)

    def program() -> None:
        for _ in range(20):
            read_what_is_loaded(at(F32(), 0x0), at(F32(), 0x400))
            pipe_barrier(PIPE_ALL)

    check(program, schedule=Schedule(late=(PIPE_MTE2, PIPE_V)))
    assert 1 < kept[0] < 4


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_transfers_that_overtake_each_other(schedule: Schedule) -> None:
    z = array(0)

    def program() -> None:
        a, b = at(F32(), 0x0), at(F32(), 0x400)
        TEXPANDS(a, 0.0)
        TEXPANDS(b, 1.0)
        pipe_barrier(PIPE_ALL)
        TSTORE(G32(z), a)  # first
        TSTORE(G32(z), b)  # second

    (found,) = check(program, schedule=schedule)
    assert found.evidence is not None
    assert found.evidence.edge == "barrier MTE3"
    assert found.evidence.earlier.location.line == marked(program, "first")
    assert found.location == found.evidence.later.location


@pytest.mark.parametrize("late", [(PIPE_V, PIPE_MTE2), (PIPE_MTE2, PIPE_V)], ids=str)
def test_what_is_loaded_later_was_not_read_too_early(late: Any) -> None:
    """The load stands in a queue when the addition runs, and yet nothing has written its source."""

    def program() -> None:
        load_over_what_is_read(at(F32(), 0x0), at(F32(), 0x400))

    assert codes(program, schedule=Schedule(late=late)) == ["poison-read"]


# ---- a pipe that waits for another core ----------------------------------------------------------

N = 32


@kernel(core="mix")
def there_and_back(x: Any, ring: Any, y: Any, *, entries: int, missing: str) -> None:
    """The cube multiplies an entry, the vector cores round it, the cube multiplies it again."""
    pipe = TPipe[0, Direction.DIR_BOTH, 4 * N * N, 2](ring, 0, 0)
    with cube_section():
        l1 = Tile[TileType.Mat, half, N, N, BLayout.ColMajor, N, N, SLayout.RowMajor]
        source, back = at(l1(), 0x18000), l1()
        left, right = at(TileLeft[half, N, N](), 0), at(TileRight[half, N, N](), 0)
        acc = at(TileAcc[float32, N, N](), 0)
        for i in range(entries):
            TLOAD(source, GlobalTensor(x))
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
            TMOV(left, source)
            TMOV(right, source)
            PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
            TMATMUL(acc, left, right)
            PtoSetWaitFlag[PIPE_M, PIPE_MTE1]()
            PtoSetWaitFlag[PIPE_M, PIPE_FIX]()
            TPUSH[UP](pipe, acc)
            PtoSetWaitFlag[PIPE_FIX, PIPE_M]()
            TPOP[UP](pipe, back)
            TMOV(left, back)  # second operand
            TFREE[UP](pipe)
            if missing != "MTE1->M":
                PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
            TMATMUL(acc, left, right)  # second product
            if missing != "M->MTE1":
                PtoSetWaitFlag[PIPE_M, PIPE_MTE1]()
            if missing != "M->FIX":
                PtoSetWaitFlag[PIPE_M, PIPE_FIX]()
            TSTORE(GlobalTensor(y)[i * N : i * N + N, :], acc)  # result
            PtoSetWaitFlag[PIPE_FIX, PIPE_M]()
            PtoSetWaitFlag[PIPE_MTE1, PIPE_MTE2]()
    with vector_section():
        Part = Tile[TileType.Vec, float32, N // 2, N]
        entry, answer = Part(), at(Tile[TileType.Vec, half, N // 2, N](), 0x18000)
        for _ in range(entries):
            TPOP[UP](pipe, entry)
            TCVT(answer, entry, RoundMode.CAST_RINT)
            TFREE[UP](pipe)
            PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
            TPUSH[UP](pipe, answer)
            PtoSetWaitFlag[PIPE_MTE3, PIPE_V]()


def arguments(entries: int) -> list[Any]:
    x = np.eye(N, dtype=np.float16)
    return [x, np.zeros(8 * N * N, np.float32), np.zeros((entries * N, N), np.float32)]


def told(run: Callable[[], Any]) -> list[tuple[str, str, str, str]]:
    """The edge that is missing, and the accesses as the author has them, of each finding."""
    with pytest.raises(ProgramError) as caught:
        run()
    found = []
    for each in caught.value.diagnostics:
        evidence = each.evidence
        assert evidence is not None
        assert each.location == evidence.later.location
        kind = each.message.partition("(")[2][:3]
        one, two = evidence.earlier, evidence.later
        found.append((evidence.edge, one.instruction, two.instruction, kind))
    return found


EXPECTED = {
    "MTE1->M": ("MTE1->M", "TMOV", "TMATMUL", "RAW"),
    "M->FIX": ("M->FIX", "TMATMUL", "TSTORE", "RAW"),
    "M->MTE1": ("M->MTE1", "TMATMUL", "TMOV", "WAR"),  # of the next entry
}


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize("missing", EXPECTED)
def test_what_runs_ahead_of_a_pop(missing: str, path: str, engine: str) -> None:
    def run(**more: Any) -> None:
        how = {"entries": 3, "missing": missing, "target": "a5", "path": path, "engine": engine}
        there_and_back[1](*arguments(3), **how, **more)

    assert told(run) == [EXPECTED[missing]]
    assert told(lambda: run(check="full")) == [EXPECTED[missing]]


@pytest.mark.parametrize("missing", EXPECTED)
def test_as_text(missing: str) -> None:
    given = arguments(3)
    text = there_and_back.text(*given, entries=3, missing=missing, target="a5")
    program = loads(text).entry()
    assert told(lambda: program[1](*given, target="a5")) == [EXPECTED[missing]]


def test_the_advice_mends_it() -> None:
    for missing in EXPECTED:
        mended = there_and_back.fix(*arguments(3), entries=3, missing=missing, target="a5")
        src, dst = missing.split("->")
        assert mended.remaining == ()
        assert f"+            set_flag(PIPE_{src}, PIPE_{dst}" in str(mended)


@needs_compiler
def test_as_cpp(tmp_path: Path) -> None:
    given, missing = arguments(3), "MTE1->M"
    source = tmp_path / "kernel.cpp"
    source.write_text(there_and_back.cpp(*given, entries=3, missing=missing, target="a5"))
    program = cpp(source, target="a5")[there_and_back.name]
    more = [np.zeros(64, np.uint64)] * (len(program.source.signature) - len(given))
    assert told(lambda: program[1](*more, *given)) == [EXPECTED[missing]]


@pytest.mark.parametrize("missing", EXPECTED)
def test_in_a_long_loop(missing: str) -> None:
    """Trips that are passed over, and a pipe that falls further behind with each of them."""
    how = {"entries": 100, "missing": missing, "target": "a5"}
    for check in (True, "full"):
        given = arguments(100)
        assert told(partial(there_and_back[1], *given, **how, check=check)) == [EXPECTED[missing]]


def test_nothing_is_missing() -> None:
    """A pipe that waits for both vector cores is woken once by each, however long that goes on."""
    given = arguments(100)
    there_and_back[1](*given, entries=100, missing="", target="a5")
    assert np.array_equal(given[-1], np.tile(np.eye(N), (100, 1)))
