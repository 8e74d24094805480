"""Comparing, selecting, and making registers of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.convert import element
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.isa.expr import Expr, apply, select
from ptokit.isa.freedom import unspecified
from ptokit.isa.micro.arithmetic import BITS, EVERY, NUMBERS, ZEROING
from ptokit.isa.micro.spec import CALL, REGISTER_BYTES, Flow, Masking, Word, lanewise, micro

_TESTS = Word("op", ("eq", "ne", "lt", "le", "gt", "ge"))


@lanewise("a:V b:V mask:M -> dst:M", types=NUMBERS, words=[_TESTS], cpp="{name}_{op}({all})")
def vcmp(a: Expr, b: Expr, op: str) -> Expr:
    """Compare two registers: a bit is set where the mask is and the comparison holds.

    NaN compares false with everything, and true with `ne`.
    """
    return apply(op, a, b)


@lanewise("a:V s:S mask:M -> dst:M", types=NUMBERS, words=[_TESTS], cpp="{name}_{op}({all})")
def vcmps(a: Expr, s: Expr, op: str) -> Expr:
    """Compare a register with a number: a bit is set where the mask is and it holds."""
    return apply(op, a, s)


@lanewise("a:V b:V mask:M -> dst:V", types=EVERY, masking=Masking.SELECT, flow=Flow.BYTES, cpp=CALL)
def vsel(a: Expr, b: Expr, mask: Expr) -> Expr:
    """Take the lanes of one register where the mask is set, those of another elsewhere."""
    return select(mask, a, b)


@micro(
    "a:V index:X -> dst:V",
    types=BITS,
    flow=Flow.BYTES,
    freedom=unspecified("an index past the last lane", "It is taken modulo the lanes here."),
    cpp=CALL,
)
def vselr(a: Array, index: Array) -> Array:
    """Permute lanes: each is the lane of the first register that the index beside it names."""
    unsigned = index.view(f"u{index.itemsize}").astype(np.intp)
    return a[unsigned % a.size]


@lanewise("s:S -> dst:V", types=BITS, cpp=CALL)
def vbr(s: Expr) -> Expr:
    """Make all lanes a number."""
    return s


@micro(
    "a:L mask:M -> dst:V",
    types=BITS,
    words=[Word("position", ("LOWEST", "HIGHEST"), "LOWEST", "the lane of a register")],
    syntax="%a, %mask {} : T(a), T(mask) -> T(dst)",
    flow=Flow.BYTES,
    freedom=ZEROING,
    cpp="{name}({all}{position:?, POS_}, MODE_ZEROING)",  # of a register always, of a number never
)
def vdup(a: Any, position: str, U: DType) -> Array:
    """Make all active lanes a number, or one lane of a register."""
    one = element(a, U) if np.ndim(a) == 0 else a[0] if position == "LOWEST" else a[-1]
    return np.full(REGISTER_BYTES // U.itemsize, one)


@micro(
    "s:S -> dst:V",
    types="i8 u8 i16 u16 i32 u32 f16 f32",
    words=[Word("order", ("ASC", "DESC"), "ASC")],
    cpp="{name}({all}, {order:ASC=INC_ORDER;DESC=DEC_ORDER})",
)
def vci(s: Any, order: str, T: DType) -> Array:
    """Count from a number on, upwards or downwards."""
    steps = np.arange(REGISTER_BYTES // T.itemsize) * (1 if order == "ASC" else -1)
    if T.is_integer:
        return (int(s) + steps).astype(T.np)
    return (np.float32(s) + steps.astype(np.float32)).astype(T.np)
