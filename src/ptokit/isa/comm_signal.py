"""Signals: 32-bit words in global memory by which devices tell each other how far they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.comm_enums import NotifyOp, WaitCmp
from ptokit.base.dtypes import i32
from ptokit.base.layout import Array
from ptokit.isa.spec import Attr, Operand, Pipe, Rule, View, insn, rule, scalar

_DEVICES = "a2a3 a5"
_SIGNAL = "GM i32 1x1"
_COMPARE = {
    WaitCmp.EQ: np.equal,
    WaitCmp.NE: np.not_equal,
    WaitCmp.GT: np.greater,
    WaitCmp.GE: np.greater_equal,
    WaitCmp.LT: np.less,
    WaitCmp.LE: np.less_equal,
}
_SIGNS = dict(zip(_COMPARE, ("==", "!=", ">", ">=", "<", "<="), strict=True))


def _signal(name: str, role: str, note: str) -> Operand:
    return Operand(name, role, kinds=("global",), view=View.OBJECT, note=note)


def _number(name: str) -> Operand:
    return scalar(name, view=View.OBJECT, note="int32")


def _is_i32(name: str, id: str) -> Rule:
    return rule(
        id,
        f"elements of {name} are int32",
        lambda o: o[name].dtype is i32,
        fix="declare it as Signal, Signal2D or GlobalSignal[int32, ...]",
    )


def _compare_rules() -> list[Rule]:
    return [
        _is_i32("signalData", "TW-1"),
        rule(
            "TW-6",
            "cmp is a member of WaitCmp",
            lambda o: o.attrs["cmp"] in _COMPARE,
            fix="name the comparison: WaitCmp.GE",
        ),
    ]


def _wrapped(value: Any) -> np.int32:
    return np.int64(int(value) & 0xFFFFFFFF).astype(np.int32)


def _look(signalData: Any, ctx: Any) -> Array:
    """The words themselves, which must lie on this device."""
    words = ctx.view("signalData")
    owner = ctx.rank_of(signalData) if words.size else None
    if owner is not None and owner != ctx.rank:
        raise ctx.fail(
            "TW-2",
            "a device looks at signals in its own memory",
            got=[("signal", f"on rank {owner}"), ("running on", f"rank {ctx.rank}")],
            fix="let the other device notify a signal of this one",
        )
    return words


@insn(
    _signal("dstSignalData", "inout", "only the element at the base pointer is touched"),
    _number("value"),
    name="comm.TNOTIFY",
    attrs=[Attr("op", NotifyOp, None, "Set or AtomicAdd", argument=True)],
    pipe=Pipe.S,
    targets=_DEVICES,
    rules=[
        _is_i32("dstSignalData", "TN-1"),
        rule(
            "op",
            "op is NotifyOp.Set or NotifyOp.AtomicAdd",
            lambda o: o.attrs["op"] in tuple(NotifyOp),
            fix="TNOTIFY(signal, value, NotifyOp.Set)",
        ),
    ],
    asm=None,
    example={"dstSignalData": _SIGNAL, "op": "AtomicAdd"},
)
def TNOTIFY(dstSignalData: Any, value: int, op: NotifyOp, ctx: Any) -> None:
    """Set a signal, usually of another device, or add to it atomically.

    One 32-bit word is written, whatever the shape; sums wrap around. The scalar unit does it at
    once and only afterwards waits for all pipes: data the signal announces must be stored before,
    Event[Op.TSTORE_VEC, Op.SCALAR] sees to that. Give signals that different devices Set a cache
    line of 64 bytes each.
    """
    word = ctx.raw("dstSignalData", 4)
    at = dstSignalData.data()
    address = at.buffer.base + at.offset
    if address % 4:
        raise ctx.fail("TN-2", "a signal is aligned to 4 bytes", got=[("address", hex(address))])
    signal = word.view(np.int32)
    with np.errstate(over="ignore"):
        signal[0] = signal[0] + _wrapped(value) if op == NotifyOp.AtomicAdd else _wrapped(value)
    ctx.machine.sync.announce(address, ctx.site)
    ctx.machine.sync.barrier(Pipe.ALL, ctx.site)
    ctx.pause()


@insn(
    _signal("signalData", "in", "a region of up to five dimensions on this device"),
    _number("cmpValue"),
    name="comm.TWAIT",
    attrs=[Attr("cmp", WaitCmp, None, "how each element is compared with cmpValue", argument=True)],
    pipe=Pipe.S,
    targets=_DEVICES,
    rules=_compare_rules(),
    asm=None,
    example={"signalData": _SIGNAL, "cmpValue": "0", "cmp": "GE"},
)
def TWAIT(signalData: Any, cmpValue: int, cmp: WaitCmp, ctx: Any) -> None:
    """Wait until every element of a signal region satisfies a comparison.

    The comparison is signed: element cmp cmpValue. The signal is looked at, not consumed: use
    growing counters, or set it back before its next use. An empty region is satisfied at once.
    Other ranks of a running World go on in the meantime; when nothing can change the signal any
    more, that is an error.
    """
    words, wanted = _look(signalData, ctx), _wrapped(cmpValue)

    def ready() -> bool:
        return bool(_COMPARE[cmp](words, wanted).all())

    def seen() -> list[tuple[str, object]]:
        first = tuple(int(i) for i in np.argwhere(~_COMPARE[cmp](words, wanted))[0])
        index = ", ".join(str(i) for i in first[_leading(words.shape) :])
        return [(f"signal[{index}]", int(words[first]))]

    what = f"TWAIT{_on(ctx)} for a signal {_SIGNS[cmp]} {wanted}"
    ctx.machine.sync.until(ready, what, ctx.site, seen)
    ctx.machine.sync.heed(_addresses(signalData, words), ctx.site)


@insn(
    _signal("signalData", "in", "a region of up to five dimensions on this device"),
    _number("cmpValue"),
    name="comm.TTEST",
    attrs=[Attr("cmp", WaitCmp, None, "how each element is compared with cmpValue", argument=True)],
    pipe=Pipe.S,
    targets=_DEVICES,
    rules=_compare_rules(),
    asm=None,
    returns="signalData",
    example={"signalData": _SIGNAL, "cmpValue": "0", "cmp": "GE"},
)
def TTEST(signalData: Any, cmpValue: int, cmp: WaitCmp, ctx: Any) -> bool:
    """Whether every element of a signal region satisfies a comparison now.

    As TWAIT, but it looks once. A test that fails lets the other ranks of a running World go on,
    so a loop around it sees their signals.
    """
    words = _look(signalData, ctx)
    if _COMPARE[cmp](words, _wrapped(cmpValue)).all():
        ctx.machine.sync.heed(_addresses(signalData, words), ctx.site)
        return True
    ctx.poll(f"a loop around TTEST{_on(ctx)}")
    return False


def _leading(shape: tuple[int, ...]) -> int:
    """How many leading dimensions of extent 1 need not be named; two always are."""
    return next((axis for axis, n in enumerate(shape[:3]) if n != 1), 3)


def _on(ctx: Any) -> str:
    return "" if ctx.rank is None else f" on rank {ctx.rank}"


def _addresses(signal: Any, words: Array) -> list[int]:
    """Where the words lie."""
    at = signal.data()
    offsets = np.indices(words.shape).reshape(len(words.shape), -1).T @ np.array(words.strides)
    return (offsets + at.buffer.base + at.offset).tolist()
