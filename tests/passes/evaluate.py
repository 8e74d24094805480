"""What a random program means, in NumPy: a tile is an array, a handle a name for one."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ptokit.ir.attributes import ArrayAttr, FloatAttr, IntAttr
from ptokit.ir.core import Block, Module, Op, Value
from ptokit.ir.types import TileBufType

BINARY = {"tmax": np.maximum, "tmin": np.minimum, "tpartmax": np.maximum}
ARITHMETIC = {"addi": operator.add, "muli": operator.mul, "remsi": operator.mod}
COMPARED = {0: operator.eq, 1: operator.ne, 2: operator.lt}


class Evaluator:
    """Executes operations one after the other; there are no pipes and no addresses."""

    def __init__(self) -> None:
        self.frame: dict[Value, Any] = {}

    def run(self, module: Module, arrays: list[np.ndarray]) -> None:
        (function,) = module.functions
        assert function.body is not None
        self.block(function.body, list(arrays))

    def block(self, block: Block, args: list[Any]) -> list[Any]:
        self.frame.update(zip(block.args, args, strict=True))
        for op in block.ops[:-1]:
            results = self.op(op)
            self.frame.update(zip(op.results, results, strict=True))
        return [self.frame[v] for v in block.ops[-1].operands]

    def op(self, op: Op) -> list[Any]:
        dialect, _, name = op.name.partition(".")
        given = [self.frame[v] for v in op.operands]
        named = dict(zip(op.labels, given, strict=True))
        if dialect == "arith":
            return [self.arith(op, name, given)]
        if dialect == "scf":
            return self.flow(op, name, given)
        if name == "make_tensor_view":
            return [given[0]]
        if name == "partition_view":
            row, col, rows, cols = given[1:]
            return [given[0][row : row + rows, col : col + cols]]
        if name == "alloc_tile":
            type_ = op.result.type
            assert isinstance(type_, TileBufType)
            spec = type_.spec
            return [np.full(spec.rows * spec.cols, np.nan, np.float32).reshape(spec.rows, -1)]
        if name == "treshape":
            # The name stands for the other tile's memory from now on.
            self.frame[op.operands[op.labels.index("dst")]] = named["src"].reshape(
                named["dst"].shape
            )
        elif name in ("tload", "tstore"):
            named["dst"][...] = named["src"]
        elif name == "tmuls":
            named["dst"][...] = named["src"] * np.float32(named["scalar"])
        else:
            named["dst"][...] = BINARY[name](named["src0"], named["src1"])
        return []

    def arith(self, op: Op, name: str, given: list[Any]) -> Any:
        if name == "constant":
            value = op.attrs["value"]
            assert isinstance(value, IntAttr | FloatAttr)
            return value.value
        if name == "cmpi":
            predicate = op.attrs["predicate"]
            assert isinstance(predicate, IntAttr)
            return COMPARED[predicate.value](*given)
        return ARITHMETIC[name](*given)

    def flow(self, op: Op, name: str, given: list[Any]) -> list[Any]:
        if name == "for":
            lower, upper, step, *carried = given
            for n in range(lower, upper, step):
                carried = self.block(op.regions[0], [n, *carried])
            return carried
        if name == "while":
            before, after = op.regions
            while True:
                goes_on, *passed = self.block(before, given)
                if not goes_on:
                    return passed
                given = self.block(after, passed)
        if name == "if":
            return self.block(op.regions[0 if given[0] else 1], [])
        cases = op.attrs["cases"]
        assert isinstance(cases, ArrayAttr)
        numbers = [c.value for c in cases.items if isinstance(c, IntAttr)]
        chosen = 1 + numbers.index(given[0]) if given[0] in numbers else 0
        return self.block(op.regions[chosen], [])
