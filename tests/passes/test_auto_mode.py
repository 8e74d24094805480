"""Auto mode: placed and synchronised programs are right, and the hazard checker agrees."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ptokit.base.diagnostics import ProgramError
from ptokit.engines.reference import Interpreter, Prepared
from ptokit.frontend.session import current, running
from ptokit.ir.core import Module
from ptokit.isa.targets import target
from ptokit.machine.scheduler import Schedule, run_cluster
from ptokit.passes.accesses import accesses_of
from ptokit.passes.insert_sync import InsertSync
from ptokit.passes.liveness import Live, live_ranges
from ptokit.passes.place import Place
from tests.passes.programs import ARRAYS, BLOCKS, COLS, ROWS, random_program


def run(module: Module, on: str, mode: str, schedule: Schedule | None = None) -> list[np.ndarray]:
    """Run a program and return its arrays."""
    rng = np.random.default_rng(0)
    shape = (ROWS * BLOCKS, COLS)
    arrays = [rng.standard_normal(shape).astype(np.float32) for _ in range(ARRAYS)]

    def body() -> None:
        Interpreter(Prepared(module), current()).launch(module.functions[0], tuple(arrays))

    run_cluster({"mix": body}, target(on), mode, schedule=schedule, session=running)
    return arrays


def synchronised(module: Module, on: str) -> Module:
    chosen = target(on)
    return InsertSync().run(Place().run(module, chosen), chosen)


def check_seed(seed: int) -> None:
    """One random program: no hazard in any order, and the bytes of the plain program."""
    on = ("a2a3", "a5")[seed % 2]
    module = random_program(seed, on)
    wanted = run(module, on, "auto")
    placed = synchronised(module, on)
    for schedule in (None, Schedule(seed)):
        got = run(placed, on, "manual", schedule)
        assert all(map(np.array_equal, got, wanted)), f"seed {seed} under {schedule}"


@pytest.mark.parametrize("start", range(0, 300, 25))
def test_random_programs(start: int) -> None:
    for seed in range(start, start + 25):
        check_seed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(300, 10_000, 100))
def test_many_random_programs(start: int) -> None:
    for seed in range(start, start + 100):
        check_seed(seed)


@pytest.mark.parametrize("seed", range(40))
def test_removing_a_wait_is_found(seed: int) -> None:
    """The checker is awake: at least one wait of each program matters."""
    on = ("a2a3", "a5")[seed % 2]
    placed = synchronised(random_program(seed, on), on)
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


def overlapping(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


@pytest.mark.parametrize("seed", range(60))
def test_tiles_that_are_live_together_never_share_bytes(seed: int) -> None:
    chosen = target("a2a3")
    placed = Place().run(random_program(seed, "a2a3"), chosen)
    function = placed.functions[0]
    accesses = accesses_of(function, chosen)
    lives = live_ranges(function, accesses)

    def place(live: Live) -> tuple[int, int]:
        start = accesses.known.number(live.alloc.operand("addr"))
        assert start is not None
        assert start % 32 == 0
        return start, start + ROWS * COLS * 4

    for n, first in enumerate(lives):
        for second in lives[n + 1 :]:
            if first.meets(second):
                assert not overlapping(place(first), place(second))


def test_overflow_shows_the_tiles_at_the_worst_point() -> None:
    small = target("a2a3").override({"PTO_UBUF_SIZE_BYTES": 2048})
    module = random_program(
        next(s for s in range(99) if random.Random(s).randrange(2, 5) == 4), "a2a3"
    )
    with pytest.raises(ProgramError) as caught:
        Place().run(module, small)
    (found,) = caught.value.diagnostics
    assert found.code == "place.overflow"
    assert dict(found.got)["capacity"] == "2048 bytes"
    assert len(found.notes) >= 3
    assert "1024 bytes: Vec f32 8x32" in found.notes[0].text
