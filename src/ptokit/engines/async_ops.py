"""Executing what belongs to asynchronous transfers: sessions, contexts, and waiting for events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptokit.engines.steps import Frame, Handler
from ptokit.ir.core import Op
from ptokit.ir.dialects import Definition, asynchronous
from ptokit.machine.asynchronous import AsyncSession, PrefetchAsyncContext

if TYPE_CHECKING:
    from ptokit.engines.interpreter import Interpreter


def _build(run: Interpreter, op: Op, frame: Frame) -> None:
    scratch, workspace = (frame[v] for v in op.operands)
    session = frame[op.result] = AsyncSession()
    sync_id, group = asynchronous.sync_id(op), asynchronous.group_of(op)
    session.build(run.machine, scratch, workspace, sync_id, asynchronous.config_of(op), group)


def _make_context(run: Interpreter, op: Op, frame: Frame) -> None:
    frame[op.result] = PrefetchAsyncContext(frame[op.operands[0]])


def _get_session(run: Interpreter, op: Op, frame: Frame) -> None:
    frame[op.result] = frame[op.operands[0]].GetSession()


def _wait(run: Interpreter, op: Op, frame: Frame) -> None:
    event, session = (frame[v] for v in op.operands)
    frame[op.result] = event.Wait(session)


def _test(run: Interpreter, op: Op, frame: Frame) -> None:
    event, session = (frame[v] for v in op.operands)
    frame[op.result] = event.Test(session)


HANDLERS: dict[Definition, Handler] = {
    asynchronous.BUILD: _build,
    asynchronous.MAKE_CONTEXT: _make_context,
    asynchronous.GET_SESSION: _get_session,
    asynchronous.WAIT: _wait,
    asynchronous.TEST: _test,
}
