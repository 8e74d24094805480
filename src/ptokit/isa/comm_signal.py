"""Signals: 32-bit words in global memory by which devices tell each other how far they are."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ptokit.base.comm_enums import NotifyOp, WaitCmp
from ptokit.base.dtypes import i32
from ptokit.base.layout import Array
from ptokit.isa.costs import COMMUNICATION
from ptokit.isa.effects import Barrier, Signal, Wait, Word
from ptokit.isa.rules import must
from ptokit.isa.services import Refused, Seen, World
from ptokit.isa.spec import Asm, Attr, Operand, Pipe, Rule, View, insn, scalar

_SIGNAL = "GM i32 1x1"
_COMPARE = {
    WaitCmp.EQ: ("==", np.equal),
    WaitCmp.NE: ("!=", np.not_equal),
    WaitCmp.GT: (">", np.greater),
    WaitCmp.GE: (">=", np.greater_equal),
    WaitCmp.LT: ("<", np.less),
    WaitCmp.LE: ("<=", np.less_equal),
}


def _operands(name: str, role: str, note: str, number: str) -> tuple[Operand, Operand]:
    word = Operand(name, role, kinds=("global",), view=View.OBJECT, note=note)
    return word, scalar(number, view=View.OBJECT, note="int32")


def _text(
    name: str, signal: str, number: str, attrs: dict[str, str] | None = None, result: str = ""
) -> Asm:
    syntax = f"(%{signal}, %{number} : T({signal}), T({number})) {{}}{result}"
    return Asm(syntax={f"comm.{name}": syntax}, types={number: "i32"}, attrs=attrs or {})


def _is_i32(name: str, id: str) -> Rule:
    return must(id)(
        f"elements of {name} are int32",
        lambda o: o[name].dtype is i32,
        "declare it as Signal, Signal2D or GlobalSignal[int32, ...]",
    )


def _wrapped(value: Any) -> np.int32:
    return np.int64(int(value) & 0xFFFFFFFF).astype(np.int32)


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
    effects=lambda o: [Signal(Pipe.S, Word("dstSignalData")), Barrier(Pipe.ALL)],
    example={"dstSignalData": _SIGNAL, "op": "AtomicAdd"},
)
def TNOTIFY(dstSignalData: Any, value: int, op: NotifyOp, world: World) -> None:
    """Set a signal, usually of another device, or add to it atomically.

    One 32-bit word is written, whatever the shape; sums wrap around. The scalar unit does it at
    once and only afterwards waits for all pipes: data the signal announces must be stored before,
    Event[Op.TSTORE_VEC, Op.SCALAR] sees to that. Give signals that different devices Set a cache
    line of 64 bytes each.
    """
    word = world.raw("dstSignalData", 4)
    address = _address(dstSignalData)
    if address % 4:
        raise Refused("TN-2", "a signal is aligned to 4 bytes", got=[("address", hex(address))])
    signal = word.view(np.int32)
    with np.errstate(over="ignore"):
        signal[0] = signal[0] + _wrapped(value) if op == NotifyOp.AtomicAdd else _wrapped(value)
    world.announce("dstSignalData", address)
    world.drain(Pipe.ALL)
    world.pause()


_comparison = partial(
    _signal,
    *_operands("signalData", "in", "a region of up to five dimensions on this device", "cmpValue"),
    attrs=[Attr("cmp", WaitCmp, None, "how each element is compared with cmpValue", argument=True)],
    rules=[
        _is_i32("signalData", "TW-1"),
        must("TW-6")(
            "cmp is a member of WaitCmp",
            lambda o: o.attrs["cmp"] in _COMPARE,
            "name the comparison: WaitCmp.GE",
        ),
    ],
    example={"signalData": _SIGNAL, "cmpValue": "0", "cmp": "GE"},
)


@_comparison(
    name="comm.TWAIT",
    effects=lambda o: [Wait(Pipe.S, Word("signalData"))],
    asm=_text("twait", "signalData", "cmpValue"),
)
def TWAIT(signalData: Any, cmpValue: int, cmp: WaitCmp, world: World) -> None:
    """Wait until every element of a signal region satisfies a comparison.

    The comparison is signed: element cmp cmpValue. The signal is looked at, not consumed: use
    growing counters, or set it back before its next use. An empty region is satisfied at once.
    Other ranks of a running World go on in the meantime; when nothing can change the signal any
    more, that is an error.
    """
    words, wanted = _look(signalData, world), _wrapped(cmpValue)
    sign, compare = _COMPARE[cmp]

    def ready() -> bool:
        return bool(compare(words, wanted).all())

    def seen() -> Seen:
        first = tuple(int(i) for i in np.argwhere(~compare(words, wanted))[0])
        index = ", ".join(str(i) for i in first[_leading(words.shape) :])
        return [(f"signal[{index}]", int(words[first]))]

    world.wait_until(ready, f"TWAIT{_on(world)} for a signal {sign} {wanted}", seen)
    world.heed("signalData", _addresses(signalData, words))


@_comparison(
    name="comm.TTEST",
    asm=_text("ttest", "signalData", "cmpValue", result=" -> T(result)"),
    returns="i1",
)
def TTEST(signalData: Any, cmpValue: int, cmp: WaitCmp, world: World) -> bool:
    """Whether every element of a signal region satisfies a comparison now.

    As TWAIT, but it looks once. A test that fails lets the other ranks of a running World go on,
    so a loop around it sees their signals.
    """
    words = _look(signalData, world)
    if _COMPARE[cmp][1](words, _wrapped(cmpValue)).all():
        world.heed("signalData", _addresses(signalData, words))
        return True
    world.poll(f"a loop around TTEST{_on(world)}")
    return False


def _look(signalData: Any, world: World) -> Array:
    """The words themselves, which must lie on this device."""
    words = world.view("signalData")
    owner = world.rank_of(signalData) if words.size else None
    if owner is not None and owner != world.rank:
        raise Refused(
            "TW-2",
            "a device looks at signals in its own memory",
            got=[("signal", f"on rank {owner}"), ("running on", f"rank {world.rank}")],
            fix="let the other device notify a signal of this one",
        )
    return words


def _leading(shape: tuple[int, ...]) -> int:
    """How many leading dimensions of extent 1 need not be named; two always are."""
    return next((axis for axis, n in enumerate(shape[:3]) if n != 1), 3)


def _on(world: World) -> str:
    return "" if world.rank is None else f" on rank {world.rank}"


def _address(signal: Any) -> int:
    at = signal.data()
    return at.buffer.base + at.offset


def _addresses(signal: Any, words: Array) -> list[int]:
    """Where the words lie."""
    offsets = np.indices(words.shape).reshape(len(words.shape), -1).T @ np.array(words.strides)
    return (offsets + _address(signal)).tolist()
