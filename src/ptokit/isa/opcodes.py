"""Operation classes: the names by which events speak of instructions, and the pipe of each.

They are a fold over the instruction table: an instruction's own name, or the names its record
gives where one instruction takes several paths (`TSTORE_VEC`, `TSTORE_ACC`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from ptokit.base.dataclass import dataclass
from ptokit.isa.spec import INSTRUCTIONS, Pipe
from ptokit.isa.words import CLASS, classes

# Any work of the unit, for instructions that have no class of their own.
GENERIC = {"SCALAR": Pipe.S, "VECTOR": Pipe.V}
# Classes that only texts know.
_OF_TEXT = {"TVEC": Pipe.V, "TVECWAIT_EVENT": Pipe.V, "TMOV_M2V": Pipe.MTE1}


@dataclass(frozen=True)
class OpCode:
    """An operation class, `Op.TADD`; events order the pipes behind two of them."""

    name: str
    pipe: Pipe

    def __repr__(self) -> str:
        return f"Op.{self.name}"


OP_COUNT = OpCode("OP_COUNT", Pipe.ALL)  # the number of classes; not an operation


@cache
def op_codes() -> Mapping[str, OpCode]:
    """All operation classes by name."""
    names = (*GENERIC, *INSTRUCTIONS.words(CLASS), OP_COUNT.name)
    return MappingProxyType({name: code for name in names if (code := op_code(name))})


@cache
def op_code(name: str) -> OpCode | None:
    """The operation class of a name; None when there is none."""
    if name == OP_COUNT.name:
        return OP_COUNT
    for insn in INSTRUCTIONS.called(CLASS, name):
        return OpCode(name, classes(insn)[name])
    return OpCode(name, GENERIC[name]) if name in GENERIC else None


def class_pipe(name: str) -> Pipe | None:
    """The pipe of an operation class that a text names; None when there is no such class."""
    if name in _OF_TEXT:
        return _OF_TEXT[name]
    known = op_code(name)
    return None if known is None else known.pipe
