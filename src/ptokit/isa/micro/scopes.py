"""What orders accesses inside a scope, and the instructions that scopes and transfers are."""

from __future__ import annotations

from functools import cache
from typing import Any

from ptokit.base.enums import AccPhase, ScatterAtomicOp
from ptokit.isa.effects import Pipe
from ptokit.isa.freedom import unspecified
from ptokit.isa.micro.spec import Word, micro
from ptokit.isa.spec import Attr, Insn, insn, thing

BARRIERS = (
    *("VV_ALL", "VST_VLD", "VLD_VST", "VST_VST", "VS_ALL", "VST_LD", "VLD_ST", "VST_ST"),
    *("SV_ALL", "ST_VLD", "LD_VST", "ST_VST"),
)


@micro(
    "",
    words=[Word("kind", BARRIERS)],
    cpp="{name}({kind})",
    freedom=unspecified("other kinds than VST_VLD", "No recorded run shows what they order."),
)
def mem_bar(kind: str, unit: Any) -> None:
    """Put accesses of a scope in order: those of one class before it, those of another behind it.

    `VST_VLD` lets loads of the vector unit see what it has stored. V stands for accesses of the
    vector unit, S for those of the scalar unit; LD and ST without a V are the latter.
    """
    unit.barrier(kind)


PHASES = {  # of the hand-shake between products and the fix pipe, by the word of an operation
    "": AccPhase.Unspecified,
    "check_only": AccPhase.Partial,
    "check_and_set": AccPhase.Final,
    "check_and_clear": AccPhase.Final,
}


@cache
def carrier(name: str, pipe: Pipe, atomic: str = "", unit_flag: str = "") -> Insn:
    """The instruction that a scope, or an operation beside scopes, is to the rest of the machine.

    It is in no list: whoever executes it hands over what is to be done with the unit. An atomic
    one changes what global memory holds in place; a unit flag orders it with others that use its
    accumulator.
    """
    attrs = [Attr("atomic", ScatterAtomicOp, ScatterAtomicOp[atomic.title()])] if atomic else []
    attrs += [Attr("phase", AccPhase, PHASES[unit_flag])] if unit_flag else []

    def run(work: Any, unit: Any) -> Any:
        return work(unit)

    return insn(
        thing("work", kind="micro"),
        name=name,
        pipe=pipe,
        attrs=attrs,
        asm=None,
        doc="Work of the level below tiles.",
        is_listed=False,
    )(run)
