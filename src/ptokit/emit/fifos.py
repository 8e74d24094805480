"""FIFOs between the cores: the pipe as an object, and what goes through it."""

from __future__ import annotations

from ptokit.base.tiles import DYNAMIC
from ptokit.emit.calls import Calls
from ptokit.ir.core import Op, Value
from ptokit.ir.fifos import (
    buffer_address,
    entry_of,
    fifo_of,
    is_slot,
    pipe_spec,
)
from ptokit.ir.instructions import template_arguments
from ptokit.ir.types import OpaqueType, TileBufType


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
        pipe = self._pipe(op)
        self.pipes[pipe] = pipe_spec(op, self.function, self.target)
        gm = op.operand("gm_addr") or op.operand("gm_slot_buffer")
        memory = "nullptr" if gm is None else f"(__gm__ void *){self._use(gm)}"
        buffers = [self._hex(v) for v in op.operands if v is not gm]
        buffers += buffers[:1] * (2 - len(buffers))  # one address serves both directions
        name = self._declare(pipe)
        self._line(f"{self._pipe_type(self.pipes[pipe])} {name}({memory}, {', '.join(buffers)});")

    def _pipe(self, op: Op) -> Value:
        """The pipe of an operation; a front end tells pipes apart by numbers."""
        pipe = fifo_of(op)
        if isinstance(pipe, Value):
            return pipe
        made = Value("pipe" if pipe == 0 else f"pipe{pipe}", OpaqueType("pipe"))
        return self.front_pipes.setdefault(pipe, made)

    def transfer(self, op: Op) -> None:
        insn = op.insn
        assert insn is not None
        pipe = self._pipe(op)
        if pipe not in self.pipes:
            raise self._refuse(f"{op.name} in a function that opens no pipe", op)
        entry = entry_of(op)
        if op.results:
            self._popped(op)
        elif entry is not None and not isinstance(entry.type, TileBufType) and not is_slot(entry):
            raise self._refuse(f"{op.name} of a view that has memory of its own", op)
        present: dict[str, Value | str] = {"pipe": pipe}
        if entry is not None:
            present["tile" if isinstance(entry.type, TileBufType) else "gmTensor"] = entry
        if (part := op.operand("subBlockId")) is not None:
            present["subBlockId"] = part
        attrs = dict(zip((a.name for a in insn.attrs), template_arguments(op), strict=True))
        self._line(f"{self._call(op, insn, present, attrs)};")

    def _popped(self, op: Op) -> None:
        """The tile that a pop makes; TPOP binds it."""
        kind = op.result.type
        if not isinstance(kind, TileBufType):
            raise self._refuse(f"{op.name} of a value of type {kind}", op)
        self._unbound(op.result, [self._use(v) for v in op.operands])

    def declare_tile(self, op: Op) -> None:
        if not isinstance(op.result.type, TileBufType):
            raise self._refuse(f"{op.name} of a value of type {op.result.type}", op)
        self._unbound(op.result, [])

    def _unbound(self, tile: Value, sizes: list[str]) -> None:
        """A tile without an address; sizes known at run time are those of its storage at first."""
        assert isinstance(tile.type, TileBufType)
        spec = tile.type.spec
        if not sizes:
            pairs = ((spec.valid_row, spec.rows), (spec.valid_col, spec.cols))
            sizes = [str(most) for valid, most in pairs if valid == DYNAMIC]
        given = f"({', '.join(sizes)})" if sizes else ""
        self._line(f"{self._tile_type(spec)} {self._declare(tile)}{given};")
