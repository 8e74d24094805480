"""FIFOs between the cores: the pipe as an object, and what goes through it."""

from __future__ import annotations

from ptokit.emit.calls import Calls
from ptokit.emit.expressions import ATOM
from ptokit.ir.core import Op, Value
from ptokit.ir.fifos import (
    buffer_address,
    entry_of,
    fifo_of,
    is_slot,
    pipe_spec,
)
from ptokit.ir.instructions import template_arguments
from ptokit.ir.types import TileBufType


class Fifos(Calls):
    """Writes pipes, pushes, pops and frees."""

    def buffer(self, op: Op) -> None:
        """A reserved or imported buffer is an address."""
        address = buffer_address(op, self.function, self.module)
        if address is None:
            name, peer = op.attrs.get("name"), op.attrs.get("peer_func")
            raise self._refuse(f"{op.name}: {peer} reserves no buffer {name}", op)
        self.constants[op.result] = address

    def open_pipe(self, op: Op) -> None:
        """The same object in both kinds of cores: memory of the slots, buffers of the consumers."""
        pipe = fifo_of(op)
        self.pipes[pipe] = pipe_spec(op, self.function, self.target)
        gm = op.operand("gm_addr")
        memory = "nullptr"
        if gm is not None:
            at = self.views[gm].pointer if gm in self.views else self._expr(gm)
            memory = f"(__gm__ void *){at.within(ATOM)}"
        buffers = [self._hex(v).text for v in op.operands if v is not gm]
        buffers = buffers or ["0x0"]  # entries that stay in global memory have none
        buffers += buffers[:1] * (2 - len(buffers))  # one address serves both directions
        name = self._declare(pipe)
        self._line(f"{self._pipe_type(pipe)} {name}({memory}, {', '.join(buffers)});")

    def transfer(self, op: Op) -> None:
        insn = op.insn
        assert insn is not None
        pipe = fifo_of(op)
        if pipe not in self.pipes:
            raise self._refuse(f"{op.name} in a function that opens no pipe", op)
        entry = entry_of(op)
        if entry is not None and not isinstance(entry.type, TileBufType) and not is_slot(entry):
            raise self._refuse(f"{op.name} of a view that has memory of its own", op)
        present: dict[str, Value | str] = {"pipe": pipe}
        if entry is not None:
            present["tile" if isinstance(entry.type, TileBufType) else "gmTensor"] = entry
        if (part := op.operand("subBlockId")) is not None:
            present["subBlockId"] = part
        attrs = dict(zip((a.name for a in insn.attrs), template_arguments(op), strict=True))
        self._line(f"{self._call(op, insn, present, attrs)};")

    def declare_tile(self, op: Op) -> None:
        if not isinstance(op.result.type, TileBufType):
            raise self._refuse(f"{op.name} of a value of type {op.result.type}", op)
        self._make(op.result)
