"""Asynchronous transfers: sessions and contexts are objects that the calls take."""

from __future__ import annotations

from ptokit.emit.expressions import ATOM
from ptokit.emit.writer import Writer
from ptokit.ir.core import Op
from ptokit.ir.dialects.asynchronous import config_of, group_of, sync_id
from ptokit.isa.sessions import OWN_GROUP


class Asynchronous(Writer):
    """Writes sessions, contexts, and questions about events."""

    def build_session(self, op: Op) -> None:
        scratch, workspace = op.operands
        name, config, group = self._declare(op.result), config_of(op), group_of(op)
        sizes = f"{config.block_bytes}, {config.comm_block_offset}, {config.queue_num}"
        chosen = "comm::sdma::kAutoChannelGroupIdx" if group == OWN_GROUP else str(group)
        self._line(f"comm::AsyncSession {name};")
        self._line(
            f"comm::BuildAsyncSession({self._use(scratch)}, (__gm__ uint8_t *)"
            f"{self._expr(workspace).within(ATOM)}, {name}, {sync_id(op)}, "
            f"comm::sdma::SdmaBaseConfig{{{sizes}}}, {chosen});"
        )

    def make_context(self, op: Op) -> None:
        workspace = self._expr(op.operands[0]).within(ATOM)
        name = self._declare(op.result)
        self._line(f"PrefetchAsyncContext {name}((__gm__ uint8_t *){workspace});")

    def get_session(self, op: Op) -> None:
        self.names[op.result] = f"{self._use(op.operands[0])}.GetSession()"

    def wait_event(self, op: Op) -> None:
        self._local(op, self._asked(op, "Wait"))

    def test_event(self, op: Op) -> None:
        self._local(op, self._asked(op, "Test"))

    def _asked(self, op: Op, method: str) -> str:
        event, session = (self._use(v) for v in op.operands)
        return f"{event}.{method}({session})"
