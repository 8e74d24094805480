"""What an operation of `arith` computes: the one meaning that folding and execution share."""

from __future__ import annotations

from collections.abc import Sequence

from ptokit.ir.arithmetic import Meaning, Number
from ptokit.ir.core import Op
from ptokit.ir.dialects.arith import arithmetic_of


def evaluate(op: Op, args: Sequence[Number]) -> tuple[Number, ...] | None:
    """The results of an `arith` operation; None when it is something else."""
    compute = meaning(op)
    return None if compute is None else compute(args)


def meaning(op: Op) -> Meaning | None:
    """What an `arith` operation computes, found once for all its runs; None: something else."""
    record = arithmetic_of(op)
    return None if record is None or not op.results else record.of(op)


def is_total(op: Op) -> bool:
    """Whether an operation computes a number of any operands: it can be evaluated in vain."""
    record = arithmetic_of(op)
    return record is not None and record.is_total(op)
