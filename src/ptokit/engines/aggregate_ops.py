"""Executing arrays and structs of the scalar unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptokit.base.diagnostics import fail
from ptokit.engines.steps import Frame, Handler
from ptokit.ir.aggregates import path_of
from ptokit.ir.core import Op
from ptokit.ir.dialects import Definition
from ptokit.ir.dialects import aggregates as dialect
from ptokit.ir.types import LocalArrayType

if TYPE_CHECKING:
    from ptokit.engines.interpreter import Interpreter

Place = tuple[int, ...]


def _declare(run: Interpreter, op: Op, frame: Frame) -> None:
    frame[op.result] = dict[Place, int | float]()  # nothing is in it yet


def _place(op: Op, frame: Frame) -> Place:
    """Which element is meant."""
    type_ = op.operands[0].type
    if not isinstance(type_, LocalArrayType):
        return path_of(op)
    at = tuple(frame[v] for v in op.group("indices"))
    if not all(0 <= n < size for n, size in zip(at, type_.shape, strict=True)):
        raise fail(
            "local-bounds",
            f"{op.name}: the indices lie inside the array",
            got=[("indices", at), ("sizes", type_.shape)],
            site=op.location,
        )
    return at


def _get(run: Interpreter, op: Op, frame: Frame) -> None:
    at = _place(op, frame)
    held: dict[Place, int | float] = frame[op.operands[0]]
    if at not in held:
        raise fail(
            "poison-read",
            f"{op.name} reads element {list(at)}, which nothing has written",
            site=op.location,
        )
    frame[op.result] = held[at]


def _set(run: Interpreter, op: Op, frame: Frame) -> None:
    frame[op.operands[0]][_place(op, frame)] = frame[op.operands[-1]]


HANDLERS: dict[Definition, Handler] = {
    **dict.fromkeys(dialect.DECLARATIONS, _declare),
    **dict.fromkeys(dialect.READS, _get),
    **dict.fromkeys(dialect.WRITES, _set),
}
