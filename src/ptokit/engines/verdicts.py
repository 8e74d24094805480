"""Verdicts that hold for the next launch: a program that reads no data to decide what it does.

Which instructions run, in which order, and which bytes they touch, follows then from the program,
the grid, the numbers it is given and how its arrays lie to each other. A checked run answers for
all launches that agree in these, and in what they make of a finding; they need not look for races
again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from ptokit.base.layout import Array
from ptokit.base.policy import Policy
from ptokit.ir.core import Module, Op
from ptokit.ir.dialects import definition_of, system
from ptokit.ir.fifos import is_transfer
from ptokit.ir.ordering import effects_of
from ptokit.isa.effects import CoreFlag, Meeting, Reach, Signal, Token, Wait, Word
from ptokit.isa.spec import Insn, Pipe
from ptokit.machine.gm import Roomy, as_array


def question(
    program: Hashable, blocks: int, arguments: Iterable[Any], policy: Policy
) -> Hashable | None:
    """What the verdict on a launch depends on, of a program that reads no data; None: on more."""
    arrays: list[Array] = []
    numbers: list[Hashable] = []
    for value in arguments:
        if isinstance(value, np.generic):
            value = value.item()
        if hasattr(value, "shape"):
            arrays.append(as_array(value))
            numbers.append(_kind(arrays[-1]))
        elif value is None or isinstance(value, int | float | str):
            numbers.append((type(value), repr(value)))  # zeros of both signs are two numbers
        else:
            return None
    return program, policy, blocks, tuple(numbers), _neighbours(arrays)


@lru_cache(maxsize=256)
def reads_no_data(module: Module) -> bool:
    """Whether nothing that a program does depends on what its arrays hold, or on other devices."""
    for op in module.walk():
        definition = definition_of(op)
        record = None if definition is None else definition.micro
        if (record is not None and record.looks_at_data) or (op.insn and may_look(op.insn)):
            return False
    return True


@lru_cache(maxsize=256)
def says_nothing(module: Module) -> bool:
    """Whether a program shows nothing as it runs that would be missed."""
    return not any(system.PRINT.matches(op) for op in module.walk())


def blocks_meet(module: Module) -> bool:
    """Whether blocks of a program may wait for each other."""
    return meeting_of(module) is not None


@lru_cache(maxsize=256)
def meeting_of(module: Module) -> Op | None:
    """The first operation by which blocks of a program may wait for each other."""
    for op in module.walk():
        if is_transfer(op):  # between the cores of one block
            continue
        for effect in effects_of(op):
            if isinstance(effect, Signal | Wait) and _reaches_others(effect.token):
                return op
    return None


def _reaches_others(token: Token) -> bool:
    if isinstance(token, CoreFlag):
        return token.reach is Reach.KIND
    return isinstance(token, Meeting | Word)


def may_look(insn: Insn) -> bool:
    """Whether an instruction hands a value on, or looks at words of global memory by itself.

    Where scalar accesses meet, the place of an array in the lines of the data cache matters too.
    """
    if insn.returns or "world" in insn.services:
        return True
    is_scalar = insn.orders and insn.pipe is Pipe.S
    return is_scalar and any("global" in operand.kinds for operand in insn.operands)


def _kind(array: Array) -> Hashable:
    room = array.slack if isinstance(array, Roomy) else 0  # behind it, which it may use
    return array.dtype.str, array.shape, array.strides, array.flags.writeable, room


def _neighbours(arrays: Sequence[Array]) -> Hashable:
    """Which arrays share memory, and where one lies in the other."""
    bounds = [np.lib.array_utils.byte_bounds(array) for array in arrays]
    return tuple(
        (i, j, bounds[j][0] - bounds[i][0])
        for i, j in combinations(range(len(bounds)), 2)
        if bounds[i][0] < bounds[j][1] and bounds[j][0] < bounds[i][1]
    )
