"""Auto mode: placed and synchronised programs are right, and the hazard checker agrees."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit.base.diagnostics import ProgramError
from ptokit.engines.fast import Prepared
from ptokit.frontend.launch import Schedule, launch
from ptokit.frontend.session import current
from ptokit.ir.attributes import EnumAttr
from ptokit.ir.core import Module
from ptokit.ir.types import TileBufType
from ptokit.isa.targets import target
from ptokit.passes.accesses import accesses_of
from ptokit.passes.insert_sync import InsertSync
from ptokit.passes.liveness import Live, live_ranges
from ptokit.passes.place import Place
from tests.passes import carried_kernels as k
from tests.passes.evaluate import Evaluator
from tests.passes.programs import ARRAYS, BLOCKS, COLS, ROWS, random_program, rotation


def arguments() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shape = (ROWS * BLOCKS, COLS)
    return [rng.standard_normal(shape).astype(np.float32) for _ in range(ARRAYS)]


def run(module: Module, on: str, mode: str, schedule: Schedule | None = None) -> list[np.ndarray]:
    """Run a program and return its arrays."""
    arrays = arguments()

    def body() -> None:
        Prepared(module).run(current(), module.functions[0], tuple(arrays))

    launch({"mix": body}, on, mode, schedule=schedule or Schedule(), rules="strict")
    return arrays


def synchronised(module: Module, on: str) -> Module | None:
    """The program with addresses and flags; None where it keeps a tile of a loop for ever."""
    chosen = target(on)
    try:
        return InsertSync().run(Place().run(module, chosen), chosen)
    except ProgramError as error:
        if {d.code for d in error.diagnostics} == {"place.carried"}:
            return None
        raise


def check(module: Module, on: str, seed: int) -> bool:
    """No hazard in any order, and the bytes of the plain program; False where it is refused."""
    wanted = arguments()
    Evaluator().run(module, wanted)
    assert all(map(np.array_equal, run(module, on, "auto"), wanted)), f"seed {seed}, as it stands"
    placed = synchronised(module, on)
    if placed is None:
        return False
    for schedule in (None, Schedule(seed)):
        got = run(placed, on, "manual", schedule)
        assert all(map(np.array_equal, got, wanted)), f"seed {seed} under {schedule}"
    return True


def check_seeds(seeds: range) -> None:
    done = 0
    for seed in seeds:
        on = ("a2a3", "a5")[seed % 2]
        done += check(random_program(seed, on), on, seed)
    assert done >= 0.7 * len(seeds)  # few of them keep tiles for ever


@pytest.mark.parametrize("start", range(0, 300, 25))
def test_random_programs(start: int) -> None:
    check_seeds(range(start, start + 25))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(300, 10_000, 100))
def test_many_random_programs(start: int) -> None:
    check_seeds(range(start, start + 100))


@pytest.mark.parametrize("count", range(2, 13))
@pytest.mark.parametrize("rounds", [0, 1, 3, 11])
def test_rotations(count: int, rounds: int) -> None:
    for on in ("a2a3", "a5"):
        assert check(rotation(count, rounds, count, on), on, count)


@pytest.mark.parametrize("seed", range(40))
def test_removing_a_wait_is_found(seed: int) -> None:
    """The checker is awake: at least one wait of each program matters."""
    on = ("a2a3", "a5")[seed % 2]
    placed = synchronised(random_program(seed, on), on)
    if placed is None:
        return
    blocks = [placed.functions[0].body, *(r for op in placed.walk() for r in op.regions)]
    waits = [(b, op) for b in blocks for op in b.ops if op.name == "pto.wait_flag"]
    found = 0
    for block, op in waits[:4]:
        index = block.ops.index(op)
        del block.ops[index]
        try:
            run(placed, on, "manual")
        except ProgramError:
            found += 1
        block.ops.insert(index, op)
    assert found or not waits


@pytest.mark.parametrize("seed", range(30))
def test_no_barrier_of_the_vector_pipe_is_needless(seed: int) -> None:
    """Compiler and checker have one notion of order: without any of them there is a complaint.

    Between instructions that go through the same bytes position by position it is a warning.
    """
    placed = synchronised(random_program(seed, "a2a3", levels=0), "a2a3")
    assert placed is not None
    assert placed.functions[0].body is not None
    ops = placed.functions[0].body.ops
    for barrier in [op for op in ops if op.attrs.get("pipe") == EnumAttr("pipe", "PIPE_V")]:
        index = ops.index(barrier)
        del ops[index]
        with pytest.raises(ProgramError, match="PIPE_V"):
            run(placed, "a2a3", "manual")
        ops.insert(index, barrier)


def test_neighbours_that_depend_on_each_other_have_a_barrier_between_them() -> None:
    """Also those that go through a tile element by element; every compiler writes it."""
    x = np.ones((8, 32), np.float32)
    assert "pto.barrier <PIPE_V>" in k.in_step.text(x, x, 3, target="a2a3")
    assert "pto.barrier <PIPE_V>" not in k.in_step.text(x, x, 3, target="a5")
    k.in_step[1](x, x.copy(), 3, target="a2a3", path="lowered", rules="strict")


def overlapping(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


@pytest.mark.parametrize("seed", range(60))
def test_tiles_that_are_live_together_never_share_bytes(seed: int) -> None:
    chosen = target("a2a3")
    placed = synchronised(random_program(seed, "a2a3"), "a2a3")
    if placed is None:
        return
    function = placed.functions[0]
    accesses = accesses_of(function, chosen)
    lives = live_ranges(function, accesses)

    def place(live: Live) -> tuple[int, int]:
        start = accesses.known.number(live.alloc.operand("addr"))
        assert start is not None
        assert start % 32 == 0
        assert isinstance(live.alloc.result.type, TileBufType)
        return start, start + live.alloc.result.type.spec.nbytes

    for n, first in enumerate(lives):
        for second in lives[n + 1 :]:
            if first.start <= second.stop and second.start <= first.stop:
                assert not overlapping(place(first), place(second))


def test_nothing_is_under_way_when_a_kernel_ends() -> None:
    placed = synchronised(rotation(2, 3, 0, "a5"), "a5")
    assert placed is not None
    assert placed.functions[0].body is not None
    *_, last, end = placed.functions[0].body.ops
    assert (last.name, last.attrs["pipe"]) == ("pto.barrier", EnumAttr("pipe", "PIPE_ALL"))
    assert end.name == "func.return"


def test_overflow_shows_the_tiles_at_the_worst_point() -> None:
    small = target("a2a3").override({"PTO_UBUF_SIZE_BYTES": 2048})
    with pytest.raises(ProgramError) as caught:
        Place().run(rotation(4, 3, 0, "a2a3"), small)
    (found,) = caught.value.diagnostics
    assert found.code == "place.overflow"
    assert dict(found.got)["capacity"] == "2048 bytes"
    assert len(found.notes) == 5  # those that go round, and one of the loop
    assert "1024 bytes: Vec f32 8x32" in found.notes[0].text
