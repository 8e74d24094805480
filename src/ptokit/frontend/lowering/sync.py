"""Synchronisation in a kernel being lowered: flags, barriers and events become operations.

The calls are those of the machine's `Sync`, so events and flags lower through the same code that
runs them; what has no operation in the text says so by name.
"""

from __future__ import annotations

from typing import Any

from ptokit.base.location import Location, Site
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.symbols import Number
from ptokit.ir.attributes import Attribute, EnumAttr
from ptokit.ir.types import I64
from ptokit.isa.spec import Insn, Pipe

Place = Site | Location


def _pipe(pipe: int) -> Attribute:
    return EnumAttr("pipe", f"PIPE_{Pipe(pipe).name}")


class TracedSync:
    """Writes what the machine would do."""

    def __init__(self, emitter: Emitter, mode: str) -> None:
        self.emitter = emitter
        self.mode = mode

    def set_flag(self, src: int, dst: int, id: Any, site: Place | None = None) -> None:
        self._flag("pto.set_flag", src, dst, id)

    def wait_flag(self, src: int, dst: int, id: Any, site: Place | None = None) -> None:
        self._flag("pto.wait_flag", src, dst, id)

    def _flag(self, name: str, src: int, dst: int, id: Any) -> None:
        attrs = {"src_pipe": _pipe(src), "dst_pipe": _pipe(dst)}
        if isinstance(id, Number):
            self.emitter.emit(f"{name}_dyn", [("event_id", id.value)], [], dict(attrs))
        else:
            attrs["event_id"] = EnumAttr("event", f"EVENT_ID{int(id)}")
            self.emitter.emit(name, [], [], dict(attrs))

    def barrier(self, pipe: int, site: Place | None = None) -> None:
        self.emitter.emit("pto.barrier", [], [], {"pipe": _pipe(pipe)})

    def base(self, address: Any) -> None:
        """Where cross-core signals go."""
        given = (
            address.value if isinstance(address, Number) else self.emitter.constant(address, I64)
        )
        self.emitter.emit("pto.set_ffts", [("ffts", given)], [], {})

    def issue(self, insn: Insn, operands: Any) -> None:
        """An instruction of the sync family; in auto mode it does nothing."""
        if self.mode == "auto":
            return
        written = {
            "set_flag": self.set_flag,
            "wait_flag": self.wait_flag,
            "pipe_barrier": self.barrier,
            "set_ffts_base_addr": self.base,
        }.get(insn.name)
        if written is None:
            raise self.emitter.fail(
                "sync",
                f"{insn.name} cannot be lowered yet",
                "use set_flag, wait_flag, pipe_barrier or Event, or run the kernel eagerly",
            )
        written(*operands)

    def __getattr__(self, name: str) -> Any:
        raise self.emitter.fail("sync", f"{name} cannot be lowered yet", "run the kernel eagerly")
