"""Whole programs leave the same bytes on every engine: random ones, and all examples."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import ProgramError, PtoError
from ptokit.engines import ENGINES
from ptokit.frontend.launch import launch
from ptokit.frontend.session import current
from ptokit.ir.core import Module
from tests.passes.programs import random_program, rotation
from tests.passes.test_auto_mode import arguments, synchronised
from tests.test_examples import one_target_each

# Of a first launch the third engine, which never repeats one, is the fast one.
BOTH = ("fast", "reference")


def run(module: Module, on: str, mode: str, engine: str, seed: int | None) -> Any:
    """What a program leaves: its arrays, the memories of its core, and the bytes it touched."""
    arrays = arguments()
    prepared = ENGINES[engine].prepare(module)
    events: list[Any] = []

    def body() -> None:
        current().subscribe(events.append)
        prepared.run(current(), module.functions[0], tuple(arrays))

    executor = ENGINES[engine].executor
    launch({"mix": body}, on, mode, seed=seed, executor=executor)
    bases = {0: 0} | {a.ctypes.data: n for n, a in enumerate(arrays)}
    touched = [
        (event.insn.name, access.operand, access.writes, _relative(access.ranges, bases))
        for event in events
        for access in event.accesses
    ]
    return [a.tobytes() for a in arrays], touched


def _relative(ranges: Any, bases: dict[int, int]) -> Any:
    """Byte ranges, counted from the start of the array or memory in which they lie."""
    base = max(b for b in bases if b <= ranges[0][0])
    return bases[base], [(start - base, stop - base) for start, stop in ranges]


def check(module: Module, on: str, seed: int) -> None:
    placed = synchronised(module, on)
    for program, mode in ((module, "auto"), (placed, "manual")):
        if program is not None:
            for order in (None, seed):
                runs = [run(program, on, mode, engine, order) for engine in BOTH]
                assert runs[0] == runs[1], f"seed {seed}, {mode}, order {order}"


@pytest.mark.parametrize("start", range(0, 40, 10))
def test_random_programs_leave_the_same_bytes(start: int) -> None:
    for seed in range(start, start + 10):
        on = ("a2a3", "a5")[seed % 2]
        check(random_program(seed, on), on, seed)


def test_rotations_leave_the_same_bytes() -> None:
    for seed in range(6):
        check(rotation(3, 4, seed, "a5"), "a5", seed)


@pytest.mark.parametrize(("case", "on", "path"), one_target_each())
def test_examples_leave_the_same_bytes(case: Any, on: str, path: str) -> None:
    left: list[Any] = []
    for engine in BOTH:
        args = list(case.inputs(np.random.default_rng(1)))  # as tests of later launches have them
        more = {"target": on, "path": path, "engine": engine, "check": False}
        case.kernel[case.blocks](*args, **more, **case.consts)
        left.append([np.asarray(a).tobytes() for a in args])
    assert left[0] == left[1]


def test_an_engine_is_chosen_by_its_name() -> None:
    case = importlib.import_module("vector_add").CASES[0]
    args = case.inputs(np.random.default_rng(7))
    with pytest.raises(PtoError, match="engine is one of fast, reference, stepwise, not 'slow'"):
        case.kernel[1](*args, engine="slow", target=case.targets[0], **case.consts)


def test_a_read_of_what_nothing_wrote_is_the_same_complaint() -> None:
    found = 0
    for seed in range(20):
        module = random_program(seed, "a5")
        (function,) = module.functions
        assert function.body is not None
        loads = [op for op in function.body.ops if op.insn is not None]
        function.body.ops.remove(loads[0])  # which made the first tile defined
        said = [complaint(module, engine) for engine in BOTH]
        assert said[0] == said[1], f"seed {seed}"
        found += said[0] != []
    assert found >= 5


def complaint(module: Module, engine: str) -> list[str]:
    try:
        run(module, "a5", "auto", engine, None)
    except ProgramError as error:
        return [d.render() for d in error.diagnostics]
    return []
