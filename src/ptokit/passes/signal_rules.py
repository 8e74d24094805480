"""What texts ask of signals between cores beyond the rules of the instructions."""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.diagnostics import Diagnostic
from ptokit.ir.attributes import EnumAttr
from ptokit.ir.core import Module, Op
from ptokit.ir.instructions import pipe_named
from ptokit.ir.types import PtrType, ShapedType
from ptokit.isa.sync import (
    SIGNAL_PIPES,
    SYNCALL,
    set_ffts_base_addr,
    set_intra_block,
    wait_intra_block,
)
from ptokit.passes.structure import complaint


def check_signals(module: Module) -> Iterator[Diagnostic]:
    """Pipes that signal, and the address at which signals are kept."""
    for op in module.walk():
        if op.insn in (set_intra_block, wait_intra_block):
            yield from _pipe(op)
        elif op.insn is set_ffts_base_addr:
            yield from _base(op)
        elif op.insn is SYNCALL:
            yield from _meeting(op)


def _pipe(op: Op) -> Iterator[Diagnostic]:
    given = op.attrs.get("pipe")
    if isinstance(given, EnumAttr) and pipe_named(given, op) not in SIGNAL_PIPES:
        names = ", ".join(f"<PIPE_{pipe.name}>" for pipe in SIGNAL_PIPES)
        text = "this pipe signals no other core"
        yield complaint(op, "signal-pipe", text, {"pipe": given.value}, f"one of {names}")


def _meeting(op: Op) -> Iterator[Diagnostic]:
    workspace, used = op.operand("gmWorkspace"), op.operand("usedCores")
    if workspace is not None and isinstance(workspace.type, ShapedType):
        text = "the workspace of a barrier is a pointer or a view of global memory"
        yield complaint(op, "workspace", text, {"workspace": workspace.type})
    if used is not None and str(used.type) != "i32":
        text = "the number of cores that meet is an i32"
        yield complaint(op, "workspace", text, {"used cores": used.type})


def _base(op: Op) -> Iterator[Diagnostic]:
    given = op.operands[0].type if op.operands else None
    if isinstance(given, PtrType) and given.element.name not in ("i64", "i8"):
        text = "the address of the signals is a pointer to i64 or i8"
        yield complaint(op, "ffts-pointer", text, {"pointer": given})
