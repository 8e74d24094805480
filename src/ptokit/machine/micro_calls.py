"""The function that carries out a micro-operation, on registers or on logical vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptokit.isa.micro.typed import Typed
from ptokit.machine.logical_calls import prepared_logical
from ptokit.machine.vector_calls import prepared


def call_of(given: Typed) -> Callable[..., Any]:
    """A function of the unit and the values of the operands, in the order of the record."""
    record, kinds, sizes, lanes, words, results = given
    if record.is_logical:
        return prepared_logical(record, kinds, lanes, words)
    return prepared(record, kinds, sizes, words, results)
