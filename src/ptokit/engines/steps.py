"""Steps: operations prepared for running, with everything looked up that does not change.

An operation in a loop runs many times. What its name, attributes and types say is worked out when
it is prepared; a step then only fetches values from the frame and acts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptokit.base.diagnostics import NotSupported, fail
from ptokit.engines.values import Frame
from ptokit.ir.arithmetic import Undefined
from ptokit.ir.core import Op
from ptokit.ir.evaluate import meaning

if TYPE_CHECKING:
    from ptokit.engines.interpreter import Interpreter

Step = Callable[[Any, Frame], None]
Prepare = Callable[[Op], Step]
Handler = Callable[["Interpreter", Op, Frame], None]  # an operation that is rare or does much


def handled(handler: Handler, op: Op) -> Step:
    """A step that hands its operation to a handler."""

    def step(run: Interpreter, frame: Frame) -> None:
        handler(run, op, frame)

    return step


def arithmetic(op: Op) -> Step:
    """Evaluate an operation of `arith`."""
    compute = meaning(op)
    if compute is None:
        return handled(_unknown, op)
    operands, results = tuple(op.operands), tuple(op.results)
    if not operands:
        constants = dict(zip(results, compute(()), strict=True))
        return lambda run, frame: frame.update(constants)

    def step(run: Interpreter, frame: Frame) -> None:
        try:
            found = compute([frame[v] for v in operands])
        except Undefined as error:
            raise fail("arith", f"{op.name}: {error}", site=op.location) from None
        for result, value in zip(results, found, strict=True):
            frame[result] = value

    return step


def _unknown(run: Interpreter, op: Op, frame: Frame) -> None:
    raise fail(
        "not-supported", f"{op.name} cannot be executed", site=op.location, kind=NotSupported
    )
