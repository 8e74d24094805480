"""What the time of an operation depends on: its class, and the numbers the class is a function of.

The class follows from what a record says - its meaning, its pipe, whether it only orders - and a
definition names another where that is too coarse. A timing model has one function per class; the
pages of the documentation are grouped by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ptokit.isa.effects import Pipe


@dataclass(frozen=True)
class Cost:
    """A class of operations that take time in the same way, and the numbers it depends on."""

    name: str
    features: tuple[str, ...] = ()


_ELEMENTS = ("elements", "itemsize")

ELEMENTWISE = Cost("elementwise", _ELEMENTS)
REDUCTION = Cost("reduction", ("rows", "columns", "itemsize"))
VECTOR = Cost("other vector work", _ELEMENTS)
MATRIX = Cost("matrix product", ("m", "k", "n", "itemsize"))
TRANSFER = Cost("transfer", ("bytes", "bursts"))
SCALAR = Cost("scalar unit")
ORDER = Cost("order of work")
FIFO = Cost("FIFO between cores", ("bytes", "bursts"))

COMMUNICATION = Cost("between devices", ("bytes", "ranks"))
GATHER = Cost("gather and scatter", _ELEMENTS)
GENERATE = Cost("generated values", _ELEMENTS)
QUANTISE = Cost("quantisation", _ELEMENTS)
SORT = Cost("sorting", ("records", "lists"))

_BY_PIPE = {Pipe.V: VECTOR, Pipe.M: MATRIX, Pipe.S: SCALAR, None: SCALAR}


def class_of(pipe: Pipe | Callable[..., Any] | None, orders: bool, acts_on_fifo: bool) -> Cost:
    """The class of an operation whose meaning is a body, from where it runs and what it orders."""
    if acts_on_fifo:
        return FIFO
    if orders:
        return ORDER
    return TRANSFER if callable(pipe) else _BY_PIPE.get(pipe, TRANSFER)
