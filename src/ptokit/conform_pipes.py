"""Recorded FIFO cases: a list of steps, each of them on one core of the cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.enums import Direction, TileSplitAxis
from ptokit.frontend.instruction import Instruction
from ptokit.frontend.pipes import TPipe, cube, subblock
from ptokit.isa import INSTRUCTIONS


def run_steps(case: dict[str, Any], operands: dict[str, Any]) -> None:
    """Open the pipe of a case and carry its steps out in turn."""
    told = case["pipe"]
    direction = Direction[told["direction"]]
    kind = TPipe[told["flag_id"], direction, told["slot_size"], told["slot_num"]]
    rings = 2 if direction in (Direction.DIR_BOTH, Direction.DIR_BOTH_GM) else 1
    size = rings * told["slot_size"] * told["slot_num"]
    pipe = kind(np.zeros(size, np.uint8) if told["through"] == "gm" else None)
    for step in case["steps"]:
        act = cube() if step["core"] == "cube" else subblock(step["subblock"])
        tile = [operands[step["tile"]]] if step["tile"] else []
        with act:
            Instruction(INSTRUCTIONS[step["op"]])[TileSplitAxis[step["split"]]](pipe, *tile)
