"""Registers of a core that other operations go by: CTRL, and how stores change global memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptokit.base.dtypes import DType, dtype
from ptokit.base.layout import Array
from ptokit.isa.effects import Pipe
from ptokit.isa.micro.spec import micro

# ---- CTRL --------------------------------------------------------------------------------------

KEEPS_INFINITY = 1 << 48  # of CTRL: what is out of range becomes infinite, not the largest number


@micro("-> value:int", is_inside=False, pipe=Pipe.S, syntax=": T(value)")
def get_ctrl(unit: Any) -> int:
    """Return the control register of the core. It is 0 at the start."""
    return unit.control.get("CTRL", 0)


@micro("value:int", is_inside=False, pipe=Pipe.S)
def set_ctrl(value: int, unit: Any) -> None:
    """Set the control register of the core."""
    unit.control["CTRL"] = value


@micro("value:int bit:int -> result:int", is_inside=False, pipe=Pipe.S)
def sbitset0(value: int, bit: int, unit: Any) -> int:
    """Return a number with one of its bits cleared."""
    return value & ~(1 << bit)


@micro("value:int bit:int -> result:int", is_inside=False, pipe=Pipe.S)
def sbitset1(value: int, bit: int, unit: Any) -> int:
    """Return a number with one of its bits set."""
    return value | 1 << bit


# ---- atomic stores -----------------------------------------------------------------------------

ATOMIC_TYPES = {"s8": "i8", "s16": "i16", "s32": "i32", "f16": "f16", "bf16": "bf16", "f32": "f32"}
_COMBINE: dict[str, Callable[..., Array]] = {"add": np.add, "max": np.maximum, "min": np.minimum}
ATOMIC_OPS = tuple(_COMBINE)


def combining(kind: DType, op: str) -> Callable[[Array, Array], Array]:
    """What makes new bytes of elements of those that are there and those that come."""

    def combine(old: Array, new: Array) -> Array:
        raw = [np.ascontiguousarray(each).view(kind.np) for each in (old, new)]
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(_COMBINE[op](*raw).astype(kind.np)).view(np.uint8)

    return combine


def atomic_mode(unit: Any) -> Callable[[Array, Array], Array] | None:
    """How a store to global memory changes it, as the registers say; None: it overwrites."""
    op = unit.registers.get("ATOMIC")
    return combining(dtype(ATOMIC_TYPES[unit.hidden("ATOMIC_TYPE")]), op) if op else None


def _setter(register: str, value: str) -> Callable[..., None]:
    def body(unit: Any) -> None:
        unit.set_hidden(register, value)

    return body


for _type in ATOMIC_TYPES:
    micro(
        "",
        name=f"set_atomic_{_type}",
        is_inside=False,
        pipe=Pipe.S,
        sets="ATOMIC_TYPE",
        doc=f"Let atomic stores to global memory take elements of {ATOMIC_TYPES[_type]}.",
    )(_setter("ATOMIC_TYPE", _type))
for _op, _doc in {
    "add": "add to what is there",
    "max": "keep the greater of both values",
    "min": "keep the smaller of both values",
    "none": "overwrite it, as at the start",
}.items():
    micro(
        "",
        name=f"set_atomic_{_op}",
        is_inside=False,
        pipe=Pipe.S,
        sets="ATOMIC",
        doc=f"Let stores to global memory {_doc}, until this is set again.",
    )(_setter("ATOMIC", "" if _op == "none" else _op))
