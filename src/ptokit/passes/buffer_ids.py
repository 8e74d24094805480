"""Buffer ids: whoever shares on-chip memory across pipes acquires it, works, and releases it.

Ranges of memory that overlap, and on which two pipes conflict, are one buffer with one id. Each
operation that touches it gets the id before and gives it back behind; regions of one id follow each
other in program order, whatever pipe they are on, also around loops. There are 32 ids: where there
are more buffers, some share one, which orders more and never less. The scalar unit holds no
buffers; flags order it, global memory and registers, as in any other mode.
"""

from __future__ import annotations

from ptokit.ir.core import Block, Op
from ptokit.ir.ordering import written
from ptokit.isa.effects import Pipe
from ptokit.isa.sync import get_buf, rls_buf
from ptokit.passes.storage import Bytes, Neighbours
from ptokit.passes.touches import Past, Touch, Touches

COUNT = 32  # of a core


def is_guarded(one: Touch, other: Touch) -> bool:
    """Whether buffer ids order two accesses that conflict."""
    return Pipe.S not in (one.pipe, other.pipe) and one.where.is_on_chip and other.where.is_on_chip


def guard(body: Block, touches: Touches) -> list[tuple[Op, ...]]:
    """Put ids around the operations of a function; returns each acquisition with its release."""
    ops = [op for op in body.walk() if touches.own(op)]
    numbers = _numbers(ops, touches)
    groups: list[tuple[Op, ...]] = []
    _insert(body, touches, numbers, groups)
    return groups


def _numbers(ops: list[Op], touches: Touches) -> dict[Bytes, int]:
    """The id of every range that needs one."""
    every = {touch: None for op in ops for touch in touches.own(op)}
    past = Past(Neighbours({touch.where: None for touch in every}))
    for touch in every:
        past.add(touch, 0)
    leader: dict[Bytes, Bytes] = {}

    def find(where: Bytes) -> Bytes:
        while leader.setdefault(where, where) is not where:
            where = leader[where]
        return where

    for touch in every:
        for other, _ in past.conflicts(touch):
            if other.pipe != touch.pipe and is_guarded(touch, other):
                leader[find(touch.where)] = find(other.where)
    order: dict[Bytes, int] = {}
    return {where: order.setdefault(find(where), len(order)) % COUNT for where in list(leader)}


def _insert(
    block: Block, touches: Touches, numbers: dict[Bytes, int], groups: list[tuple[Op, ...]]
) -> None:
    made: list[Op] = []
    for op in block.ops:
        if touches.is_elsewhere(op):
            made.append(op)
            continue
        mine = [t for t in touches.own(op) if t.pipe is not Pipe.S]
        used = sorted({numbers[t.where] for t in mine if t.where in numbers})
        gets = [written(get_buf, (mine[0].pipe, n, 0), op.location) for n in used]
        gives = [written(rls_buf, (mine[0].pipe, n, 0), op.location) for n in used]
        groups += zip(gets, gives, strict=True)
        made += (*gets, op, *reversed(gives))
        for region in op.regions:
            _insert(region, touches, numbers, groups)
    block.ops = made
