"""Four times the tiles take about four times the time, and not sixteen (`bench/growth.py`)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import growth_passes

from ptokit.ir.attributes import IntAttr
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.printer import print_module
from ptokit.ir.types import I64

MOST = 9.0  # between 4 and 16: a busy machine does not matter, a quadratic step does


@pytest.mark.parametrize("make", [growth_passes.together, growth_passes.in_turn])
def test_time_grows_with_the_tiles(make) -> None:
    few, many = (
        growth_passes.best(lambda n=n: growth_passes.of_text(make(n)), 2) for n in (150, 600)
    )
    slow = {step: many[step] / few[step] for step in few if many[step] > MOST * few[step]}
    assert not slow


def test_equal_names_are_numbered_at_once() -> None:
    """As lowering leaves them: the next free number is known, not searched for."""

    def printed(count: int) -> dict[str, float]:
        ops = [Op("arith.constant", attrs={"value": IntAttr(n, I64)}) for n in range(count)]
        for op in ops:
            op.results, op.result_labels = [Value("x", I64, op)], ("result",)
        module = Module([Function("f", Block(ops=[*ops, Op("func.return")]))])
        taken, text = growth_passes.seconds(lambda: print_module(module))
        assert f"%x_{count - 1} = " in text
        return {"print": taken}

    few, many = (growth_passes.best(lambda n=n: printed(n), 2)["print"] for n in (2000, 8000))
    assert many < MOST * few
