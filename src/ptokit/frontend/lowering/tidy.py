"""What interpreting a kernel wrote in vain: numbers that nobody reads, results of branches too.

A loop is written again when more turns out to change, and a branch yields what its sides leave
different, whether or not it is looked at later. Only numbers go: every instruction stays.
"""

from __future__ import annotations

from ptokit.frontend.lowering.emitter import COMPUTED
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.dialects.scf import IF, SWITCH


def tidy(body: Block) -> None:
    """Remove from a function, from its end backwards, what nothing reads."""
    used: dict[Value, int] = {}
    for op in body.walk():
        for value in op.operands:
            used[value] = used.get(value, 0) + 1
    _tidy(body, used)


def _tidy(block: Block, used: dict[Value, int]) -> None:
    kept: list[Op] = []
    for op in reversed(block.ops):
        if op.name in COMPUTED and not any(used.get(r) for r in op.results):
            _drop(op.operands, used)
            continue
        if IF.matches(op) or SWITCH.matches(op):
            _narrow(op, used)
        for region in reversed(op.regions):
            _tidy(region, used)
        kept.append(op)
    block.ops = kept[::-1]


def _narrow(op: Op, used: dict[Value, int]) -> None:
    """Take away results of a branch that nothing reads."""
    keep = [bool(used.get(result)) for result in op.results]
    for region in op.regions:
        end = region.ops[-1]
        _drop([v for v, stays in zip(end.operands, keep, strict=True) if not stays], used)
        end.operands = [v for v, stays in zip(end.operands, keep, strict=True) if stays]
        end.labels = ("args",) * len(end.operands)
    op.results = [r for r, stays in zip(op.results, keep, strict=True) if stays]
    op.result_labels = ("results",) * len(op.results)
    if IF.matches(op) and len(op.regions) > 1 and not op.results and len(op.regions[1].ops) == 1:
        op.regions.pop()  # an else branch that does nothing


def _drop(values: list[Value], used: dict[Value, int]) -> None:
    for value in values:
        used[value] -= 1
