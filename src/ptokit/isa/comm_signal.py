"""Signals: 32-bit words in global memory by which devices tell each other how far they are."""

from __future__ import annotations

from functools import partial
from typing import Any

from ptokit.base.comm_enums import NotifyOp, WaitCmp
from ptokit.base.dtypes import i32
from ptokit.isa.costs import COMMUNICATION
from ptokit.isa.effects import Barrier, Signal, Test, Wait, Word
from ptokit.isa.rules import must
from ptokit.isa.scalars import signed
from ptokit.isa.signals import COMPARE
from ptokit.isa.spec import Asm, Attr, Operand, Pipe, Rule, View, insn, scalar

_SIGNAL = "GM i32 1x1"


def _operands(name: str, role: str, note: str, number: str) -> tuple[Operand, Operand]:
    word = Operand(name, role, kinds=("global",), view=View.OBJECT, note=note)
    return word, scalar(number, signed(32), view=View.OBJECT)


def _text(
    name: str, signal: str, number: str, attrs: dict[str, str] | None = None, result: str = ""
) -> Asm:
    syntax = f"(%{signal}, %{number} : T({signal}), T({number})) {{}}{result}"
    return Asm(
        syntax={f"comm.{name}": syntax},
        types={number: "i32"},
        attrs=attrs or {},
        extents="static",
    )


def _is_i32(name: str, id: str) -> Rule:
    return must(id)(
        f"elements of {name} are int32",
        lambda o: o[name].dtype is i32,
        "declare it as Signal, Signal2D or GlobalSignal[int32, ...]",
    )


def _compared(o: Any) -> Word:
    return Word("signalData", o.cmpValue.value, o.attrs["cmp"])


_signal = partial(insn, pipe=Pipe.S, targets="a2a3 a5", cost=COMMUNICATION)


@_signal(
    *_operands(
        "dstSignalData", "inout", "only the element at the base pointer is touched", "value"
    ),
    name="comm.TNOTIFY",
    asm=_text("tnotify", "dstSignalData", "value", {"op": "notifyOp"}),
    attrs=[Attr("op", NotifyOp, None, "Set or AtomicAdd", argument=True)],
    rules=[
        _is_i32("dstSignalData", "TN-1"),
        must("op")(
            "op is NotifyOp.Set or NotifyOp.AtomicAdd",
            lambda o: o.attrs["op"] in tuple(NotifyOp),
            "TNOTIFY(signal, value, NotifyOp.Set)",
        ),
    ],
    effects=lambda o: [
        Signal(Pipe.S, Word("dstSignalData", o.value.value, o.attrs["op"])),
        Barrier(Pipe.ALL),
    ],
    example={"dstSignalData": _SIGNAL, "op": "AtomicAdd"},
)
def TNOTIFY(dstSignalData: Any, value: int) -> None:
    """Set a signal, usually of another device, or add to it atomically.

    One 32-bit word is written, whatever the shape; sums wrap around. The scalar unit does it at
    once and only afterwards waits for all pipes: data the signal announces must be stored before,
    Event[Op.TSTORE_VEC, Op.SCALAR] sees to that. Give signals that different devices Set a cache
    line of 64 bytes each.
    """


_comparison = partial(
    _signal,
    *_operands("signalData", "in", "a region of up to five dimensions on this device", "cmpValue"),
    attrs=[Attr("cmp", WaitCmp, None, "how each element is compared with cmpValue", argument=True)],
    rules=[
        _is_i32("signalData", "TW-1"),
        must("TW-6")(
            "cmp is a member of WaitCmp",
            lambda o: o.attrs["cmp"] in COMPARE,
            "name the comparison: WaitCmp.GE",
        ),
    ],
    example={"signalData": _SIGNAL, "cmpValue": "0", "cmp": "GE"},
)


@_comparison(
    name="comm.TWAIT",
    effects=lambda o: [Wait(Pipe.S, _compared(o))],
    asm=_text("twait", "signalData", "cmpValue"),
)
def TWAIT(signalData: Any, cmpValue: int) -> None:
    """Wait until every element of a signal region satisfies a comparison.

    The comparison is signed: element cmp cmpValue. The signal is looked at, not consumed: use
    growing counters, or set it back before its next use. An empty region is satisfied at once.
    Other ranks of a running World go on in the meantime; when nothing can change the signal any
    more, that is an error.
    """


@_comparison(
    name="comm.TTEST",
    effects=lambda o: [Test(Pipe.S, _compared(o))],
    asm=_text("ttest", "signalData", "cmpValue", result=" -> T(result)"),
    returns="i1",
)
def TTEST(signalData: Any, cmpValue: int) -> None:
    """Whether every element of a signal region satisfies a comparison now.

    As TWAIT, but it looks once. A test that fails lets the other ranks of a running World go on,
    so a loop around it sees their signals.
    """
