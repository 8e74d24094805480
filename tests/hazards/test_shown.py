"""Exploration: order that is missing shows in some schedule, order that is complete in none.

Two exceptions are the checker's alone: the scalar unit does its own work when it comes to it, and
a pipe for vectors or products its own in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

from ptokit import *
from ptokit.frontend.launch import explore
from tests.hazards.oracle import Memory, Program, cores_of, expected, random_program
from tests.hazards.support import *

SCHEDULES = 30


def differs(programs: dict[str, Any], arrays: list[Any], target: str = "a2a3") -> bool:
    found = explore(programs, arrays, target, schedules=SCHEDULES)
    assert all(d.code == "schedule-dependent" for d in found)
    return bool(found)


# ---- two pipes -----------------------------------------------------------------------------------


class Act(NamedTuple):
    """Something that a pipe does to a memory."""

    name: str
    pipe: Any
    memory: str
    writes: bool
    do: Callable[[Any], Any]


class Vector:
    """The tiles of a vector core and two arrays."""

    def __init__(self) -> None:
        self.x, self.y, self.out = array(1), array(2), np.zeros((2, 16, 16), np.float32)

    def begin(self) -> None:
        self.tile, self.copy = at(F32(), 0), at(F32(), 0x400)
        self.other = at(F32(), 0x800)
        for value, each in enumerate((self.tile, self.copy, self.other)):
            each.fill(10 + value)

    def end(self) -> None:
        for part, each in zip(self.out, (self.tile, self.copy), strict=True):
            TSTORE(G32(part), each)

    @property
    def arrays(self) -> list[Any]:
        return [self.x, self.y, self.out]


class Cube:
    """The buffers of a cube core, each filled with one number."""

    def __init__(self) -> None:
        self.x, self.y = np.full((16, 16), 2, np.float16), array(2)
        self.out = np.zeros((2, 16, 16), np.float32)

    def begin(self) -> None:
        Mat = Tile[TileType.Mat, half, 16, 16, BLayout.ColMajor, 16, 16, SLayout.RowMajor]
        self.mat, self.left = at(Mat(), 0), at(TileLeft[half, 16, 16](), 0)
        self.right = at(TileRight[half, 16, 16](), 0)
        self.acc, self.second = (at(TileAcc[float32, 16, 16](), n * 1024) for n in range(2))
        for value, each in enumerate((self.mat, self.left, self.right, self.acc, self.second)):
            each.fill(3 + value)

    def end(self) -> None:
        TMATMUL(self.second, self.left, self.right)
        pipe_barrier(PIPE_ALL)
        for part, each in zip(self.out, (self.acc, self.second), strict=True):
            TSTORE(G32(part), each)

    @property
    def arrays(self) -> list[Any]:
        return [self.x, self.y, self.out]


ACTS: dict[type, list[Act]] = {
    Vector: [
        Act("load", PIPE_MTE2, "tile", True, lambda m: TLOAD(m.tile, G32(m.x))),
        Act("fill", PIPE_V, "tile", True, lambda m: TEXPANDS(m.tile, 5.0)),
        Act("add", PIPE_V, "tile", False, lambda m: TADDS(m.copy, m.tile, 1.0)),
        Act("store", PIPE_MTE3, "tile", False, lambda m: TSTORE(G32(m.y), m.tile)),
        Act("set", PIPE_S, "tile", True, lambda m: m.tile.SetValue(0, 7.0)),
        Act("get", PIPE_S, "tile", False, lambda m: TEXPANDS(m.copy, m.tile.GetValue(0))),
        Act("load y", PIPE_MTE2, "y", False, lambda m: TLOAD(m.copy, G32(m.y))),
        Act("store y", PIPE_MTE3, "y", True, lambda m: TSTORE(G32(m.y), m.other)),
    ],
    Cube: [
        Act("load", PIPE_MTE2, "mat", True, lambda m: TLOAD(m.mat, GlobalTensor(m.x))),
        Act("move", PIPE_MTE1, "mat", False, lambda m: TMOV(m.left, m.mat)),
        Act("left", PIPE_MTE1, "left", True, lambda m: TMOV(m.left, m.mat)),
        Act("multiply", PIPE_M, "left", False, lambda m: TMATMUL(m.acc, m.left, m.right)),
        Act("sum", PIPE_M, "acc", True, lambda m: TMATMUL(m.acc, m.left, m.right)),
        Act("store", PIPE_FIX, "acc", False, lambda m: TSTORE(G32(m.y), m.acc)),
    ],
}


def pairs() -> Iterator[Any]:
    for kind, acts in ACTS.items():
        for first, second in product(acts, acts):
            meet = first.memory == second.memory and (first.writes or second.writes)
            if meet and first.pipe != second.pipe and first.pipe is not PIPE_S:
                core = kind.__name__.lower()
                yield pytest.param(kind, first, second, id=f"{core} {first.name}, {second.name}")


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize(("kind", "first", "second"), list(pairs()))
def test_a_missing_flag_shows_and_a_flag_mends_it(
    kind: Any, first: Act, second: Act, target: str
) -> None:
    for ordered in (False, True):
        m = kind()

        def program(m: Any = m, ordered: bool = ordered) -> None:
            m.begin()
            first.do(m)
            if ordered:
                PtoSetWaitFlag[first.pipe, second.pipe]()
            second.do(m)
            pipe_barrier(PIPE_ALL)
            m.end()

        core = {kind.__name__.lower(): program}
        assert differs(core, m.arrays, target) == (not ordered)
        assert bool(check(core, target)) == (not ordered)


# ---- one pipe ------------------------------------------------------------------------------------


def two_loads(m: Vector) -> tuple[Any, Any, Any]:
    return (
        lambda: TLOAD(m.tile, G32(m.x)),
        lambda: TLOAD(m.tile, G32(m.y)),
        (PIPE_MTE2, PIPE_V),
    )


def two_stores(m: Vector) -> tuple[Any, Any, Any]:
    return (
        lambda: TSTORE(G32(m.y), m.tile),
        lambda: TSTORE(G32(m.y), m.other),
        (PIPE_MTE3, PIPE_V),
    )


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("between", ["", "signal", "barrier", "wait"])
@pytest.mark.parametrize("both", [two_loads, two_stores])
def test_transfers_of_one_pipe_overtake_each_other(both: Any, between: str, target: str) -> None:
    """A signal between them holds nobody up; a barrier does, and a wait for what comes behind."""
    m = Vector()

    def program() -> None:
        m.begin()
        first, second, (pipe, other) = both(m)
        first()
        if between in ("signal", "wait"):
            set_flag(pipe, other, 0)
        if between == "wait":
            wait_flag(pipe, other, 0)
            set_flag(other, pipe, 0)
            wait_flag(other, pipe, 0)
        elif between == "barrier":
            pipe_barrier(pipe)
        second()
        if between == "signal":
            wait_flag(pipe, other, 0)
        pipe_barrier(PIPE_ALL)
        m.end()

    # Loads over each other land in order.
    overtakes = both is two_stores and between in ("", "signal")
    assert differs({"vector": program}, m.arrays, target) == overtakes
    told = [(d.code, d.severity) for d in check(program, target)]
    assert told == ([("E8", "warning")] if overtakes else [])


# ---- operands ------------------------------------------------------------------------------------


def moved_pointer(m: Vector) -> None:
    """A GlobalTensor that points elsewhere before the transfer is made."""
    tensor = G32(m.x)
    TLOAD(m.tile, tensor)
    TASSIGN(tensor, ptr(m.y))


def moved_tile(m: Vector) -> None:
    tile = at(F32(), 0)
    TLOAD(tile, G32(m.x))
    TASSIGN(tile, 0x800)


def resized_tile(m: Vector) -> None:
    tile = Tile[TileType.Vec, float32, 16, 16, BLayout.RowMajor, DYNAMIC, DYNAMIC](16, 16)
    TASSIGN(tile, 0)
    TADDS(tile, m.other, 1.0)
    tile.SetValidShape(2, 16)


def reused_number(m: Vector) -> None:
    for number in (1.0, 2.0):
        TADDS(m.tile, m.other, number)
        pipe_barrier(PIPE_V)


def renamed_tile(m: Vector) -> None:
    """Another tile under the same name."""
    tile = m.tile
    TADDS(tile, m.other, 1.0)
    tile = m.copy
    TADDS(tile, m.other, 2.0)


@pytest.mark.parametrize(
    "change", [moved_pointer, moved_tile, resized_tile, reused_number, renamed_tile]
)
def test_an_instruction_has_the_operands_it_was_issued_with(change: Any) -> None:
    m = Vector()

    def program() -> None:
        m.begin()
        change(m)
        pipe_barrier(PIPE_ALL)
        m.end()

    assert not differs({"vector": program}, m.arrays)
    assert not np.array_equal(m.out[0], np.full((16, 16), 10)), "it has done something"


@pytest.mark.parametrize("waits", [True, False])
def test_a_product_has_the_mode_in_which_it_was_issued(waits: bool) -> None:
    """The simulator keeps it either way; that hardware does not is for the checker to say."""
    result = np.zeros((16, 16), np.float32)

    def program() -> None:
        left, right = at(TileLeft[float32, 16, 16](), 0), at(TileRight[float32, 16, 16](), 0)
        acc = at(TileAcc[float32, 16, 16](), 0)
        left.fill(1 + 2**-20)
        right.fill(1)
        TSETTF32MODE[True]()
        TMATMUL(acc, left, right)
        if waits:
            PtoSetWaitFlag[PIPE_M, PIPE_S]()
        TSETTF32MODE[False]()
        PtoSetWaitFlag[PIPE_M, PIPE_FIX]()
        TSTORE(G32(result), acc)

    assert not differs({"cube": program}, [result])
    assert (result == 16).all()
    assert codes({"cube": program}) == ([] if waits else ["E6"])


# ---- random programs -----------------------------------------------------------------------------


def shows(program: Program) -> bool:
    memory = Memory.new()
    return differs(cores_of(program, memory, observed=True), list(memory), program.target)


@pytest.mark.parametrize("first", range(0, 36, 12))
def test_a_program_without_races_never_changes(first: int) -> None:
    for seed in range(first, first + 12):
        program = random_program(seed)
        if not expected(program) and not program.is_world:
            assert not shows(program), program.source


def test_most_races_of_random_programs_show() -> None:
    """Between two pipes, and unless nobody ever looks at the bytes."""
    racing = [p for p in map(random_program, range(60)) if _is_between_pipes(p)]
    assert len(racing) >= 12
    assert sum(map(shows, racing)) >= 0.7 * len(racing)


def _is_between_pipes(program: Program) -> bool:
    if program.is_world:
        return False
    order = program.order()
    pipes = {entry.line: entry.pipe for entry in order.entries if entry.touches}
    return any(
        pipes[i] != pipes[j] and pipes[i] != "S"
        for i, j, severity in order.races()
        if severity == "error"
    )
