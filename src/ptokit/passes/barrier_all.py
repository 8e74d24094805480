"""The simplest order there is: a barrier of all pipes before every access to memory."""

from __future__ import annotations

from typing import ClassVar

from ptokit.base.dataclass import dataclass
from ptokit.ir.core import Block, Module, Op
from ptokit.ir.ordering import effects_of, orders_pipes, written
from ptokit.ir.rewrite import clone
from ptokit.isa.effects import Barrier, Pipe
from ptokit.isa.sync import pipe_barrier
from ptokit.isa.targets import Target
from ptokit.passes.base import Pass
from ptokit.passes.call_graph import callee, working
from ptokit.passes.touches import Touches


@dataclass(frozen=True)
class BarrierAll(Pass):
    """Let all pipes meet before each access, and before a function ends."""

    name: ClassVar[str] = "barrier-all"
    only: frozenset[str] | None = None  # the functions meant; None: all

    def run(self, module: Module, target: Target) -> Module:
        module = clone(module)
        busy = working(module)
        for function in module.functions:
            is_meant = self.only is None or function.name in self.only
            if function.body is None or not is_meant or function.name not in busy:
                continue
            touches = Touches(function, target)
            ends = {function.body.ops[-1]}
            acts = {op for op in function.walk() if touches.own(op) or callee(op) in busy}
            _insert(function.body, acts | ends)
        return module


def _insert(block: Block, before: set[Op]) -> None:
    made: list[Op] = []
    for op in block.ops:
        if op in before and not (made and _is_full(made[-1])):
            made.append(written(pipe_barrier, (Pipe.ALL,), op.location))
        made.append(op)
        for region in op.regions:
            _insert(region, before)
    block.ops = made


def _is_full(op: Op) -> bool:
    return orders_pipes(op) and Barrier(Pipe.ALL) in effects_of(op)
