"""Synchronisation for auto mode: flags between pipes, barriers inside a pipe.

Where flags and barriers go is said in `place_flags.py`. Of its two ways to go about loops both are
tried; what other flags imply is left out (`reduce_sync.py`), and the cheaper result stays.
"""

from __future__ import annotations

from typing import ClassVar

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import ProgramError
from ptokit.ir.core import Block, Function, Module, Op
from ptokit.ir.flow import core_of, is_loop
from ptokit.ir.rewrite import clone
from ptokit.isa.spec import Pipe
from ptokit.isa.sync import set_flag, wait_flag
from ptokit.isa.targets import Target
from ptokit.passes.base import Pass
from ptokit.passes.buffer_ids import guard
from ptokit.passes.call_graph import callees, working
from ptokit.passes.event_ids import STORES, Held, scarcity
from ptokit.passes.function_attributes import Tail, tail_of
from ptokit.passes.pending import Proof
from ptokit.passes.place_flags import Inserter, barrier_op, flag_op
from ptokit.passes.reduce_sync import cost, implied, remove
from ptokit.passes.touches import Touches


@dataclass(frozen=True)
class InsertSync(Pass):
    """Order the pipes of a placed program, beside whatever order is written in it.

    Sections of cube and vector code run on cores of their own, unless `is_one_core`: then one core
    plays both parts, and its pipes are ordered across sections.
    """

    name: ClassVar[str] = "insert-sync"
    is_one_core: bool = False
    only: frozenset[str] | None = None  # the functions meant; None: all
    is_reduced: bool = True  # without what other flags and barriers imply
    event_ids: int = 8  # of each pair of pipes, if the target has as many
    with_buffers: bool = False  # buffer ids order what shares on-chip memory
    is_canonical: bool = False  # arrays may overlap, and ids that do not suffice are an error

    def run(self, module: Module, target: Target) -> Module:
        module = clone(module)
        busy = working(module)
        called = {name for function in module.functions for name in callees(function)}
        for function in module.functions:
            body = function.body
            is_meant = self.only is None or function.name in self.only
            if body is None or not is_meant or function.name not in busy:
                continue
            # Each kind of core has pipes and flags of its own.
            kinds = {core_of(op) for op in function.walk() if op.regions} - {""}
            for kind in [""] if self.is_one_core else sorted(kinds) or [""]:
                touches = Touches(function, target, kind, self.is_canonical)
                self._order(function, body, touches, busy)
            end = body.ops.pop()
            # Nothing may still be under way when a function ends that others call.
            hint = tail_of(function) if function.name not in called else Tail.BARRIER
            if hint is Tail.STORES:
                held = Held(*STORES, 0)
                body.ops += (flag_op(insn, held, end) for insn in (set_flag, wait_flag))
            else:
                body.ops.append(barrier_op(Pipe.ALL, end))
            body.ops.append(end)
        return module

    def _order(self, function: Function, body: Block, touches: Touches, busy: set[str]) -> None:
        """Try the ways to go about loops, and keep what costs least."""
        has_loops = any(is_loop(op) for op in function.walk())
        as_written, best = _layout(body), None
        for is_far in (False, True) if has_loops else (False,):
            _restore(as_written)
            guards = guard(body, touches) if self.with_buffers else []
            inserter = Inserter(
                function,
                touches,
                busy,
                self.event_ids,
                has_guards=self.with_buffers,
                is_far=is_far,
            )
            inserter.made.guards = guards
            inserter.run(body)
            if inserter.ran_out and (is_far or self.is_canonical):
                continue
            gone: set[Op] = set()
            if self.is_reduced:
                proof = Proof.of(function, touches, busy)
                gone = implied(proof, inserter.made.by_cost)
                if proof.found and best is not None:
                    continue
            remove(body, gone)
            price = cost(body)
            if best is None or price < best[0]:
                best = price, _layout(body)
        if best is None:
            raise ProgramError([scarcity(function, self.event_ids)])
        _restore(best[1])


def _layout(body: Block) -> dict[Block, list[Op]]:
    """The operations of every block."""
    regions = (region for op in body.walk() for region in op.regions)
    return {block: list(block.ops) for block in (body, *regions)}


def _restore(layout: dict[Block, list[Op]]) -> None:
    for block, ops in layout.items():
        block.ops = list(ops)
