"""What is inserted, held against the oracle: order by brute force, which shares no code with us."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import ProgramError
from ptokit.ir.attributes import IntAttr
from ptokit.ir.core import Module, Op
from ptokit.ir.types import TileBufType
from ptokit.isa.targets import target
from ptokit.passes.finish import finish
from ptokit.passes.place import Place
from ptokit.passes.steps import Steps
from tests.hazards.oracle import Order, Touch
from tests.passes.evaluate import Evaluator
from tests.passes.programs import random_program
from tests.passes.test_auto_mode import arguments

PIPES = {"tload": "MTE2", "tstore": "MTE3"}  # all else is work of the vector unit
MOST = 300  # entries that the oracle can look at
CORE = "vector"


class TooLongError(Exception):
    pass


class Follower(Evaluator):
    """Goes through a program as it is written down, and tells the oracle what it meets."""

    def __init__(self, on: str) -> None:
        super().__init__()
        self.order = Order(on)
        self.memory = np.zeros(1 << 18, np.uint8)

    def op(self, op: Op) -> list[Any]:
        name = op.name.removeprefix("pto.")
        words = " ".join(map(str, op.attrs.values()))
        pipes = [word.removeprefix("PIPE_") for word in re.findall(r"PIPE_\w+", words)]
        if len(self.order.entries) > MOST:
            raise TooLongError
        if name in ("set_flag", "wait_flag"):
            token = (*pipes, re.findall(r"EVENT_ID\d", words)[0])
            if name == "set_flag":
                self.order.signal(CORE, pipes[0], 0, token)
            else:
                self.order.wait(CORE, pipes[1], 0, token)
        elif name == "barrier":
            self.order.barrier(CORE, pipes[0], 0)
        elif name in ("get_buf", "rls_buf"):
            number = op.attrs["buf_id"]
            assert isinstance(number, IntAttr)
            act = self.order.acquire if name == "get_buf" else self.order.release
            act(CORE, pipes[0], 0, number.value)
        elif name == "alloc_tile":
            return [self.placed(op)]
        else:
            if op.insn is not None and not op.insn.binds:
                self.note(op, name)
            return super().op(op)
        return []

    def placed(self, op: Op) -> np.ndarray:
        type_ = op.result.type
        assert isinstance(type_, TileBufType)
        address = op.operand("addr")
        assert address is not None
        start = self.frame[address]
        part = self.memory[start : start + type_.spec.nbytes].view(np.float32)
        return part.reshape(type_.spec.rows, type_.spec.cols)

    def note(self, op: Op, name: str) -> None:
        touches: list[Touch] = []
        for label, value in zip(op.labels, op.operands, strict=True):
            array = self.frame[value]
            if isinstance(array, np.ndarray):
                start, stop = np.lib.array_utils.byte_bounds(array)
                touches.append(Touch("bytes", start, stop, label == "dst"))
        self.order.work(CORE, PIPES.get(name, "V"), 0, touches)


def ordered(seed: int, on: str, mode: str) -> Module | None:
    try:
        module = Place().run(random_program(seed, on), target(on))
        return finish(module, target(on), Steps(sync=mode))
    except ProgramError:
        return None  # it keeps a tile of a loop for ever


def races(module: Module, on: str) -> list[Any] | None:
    follower = Follower(on)
    try:
        follower.run(module, arguments())
    except TooLongError:
        return None
    return list(follower.order.races())


@pytest.mark.parametrize("mode", ["insert", "bufid", "barrier-all"])
@pytest.mark.parametrize("start", range(0, 60, 20))
def test_the_oracle_finds_nothing(mode: str, start: int) -> None:
    looked_at = 0
    for seed in range(start, start + 20):
        on = "a5" if mode == "bufid" else ("a2a3", "a5")[seed % 2]
        module = ordered(seed, on, mode)
        found = None if module is None else races(module, on)
        looked_at += found is not None
        assert not found, f"seed {seed}"
    assert looked_at > 5


@pytest.mark.parametrize("seed", range(12))
def test_and_is_awake(seed: int) -> None:
    """Without any order it finds something, wherever two pipes work at all."""
    module = ordered(seed, "a5", "keep")
    found = None if module is None else races(module, "a5")
    worked = [] if module is None else [op.name for op in module.walk() if op.insn is not None]
    assert found is None or found or len({PIPES.get(n[4:], "V") for n in worked}) < 2
