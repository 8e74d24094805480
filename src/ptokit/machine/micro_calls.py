"""From a micro-operation to the function that carries it out, and to the pipe that does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptokit.base.location import Location, Site
from ptokit.isa.micro.scopes import carrier
from ptokit.isa.micro.typed import Typed
from ptokit.machine.logical_calls import prepared_logical
from ptokit.machine.vector_calls import prepared
from ptokit.machine.vector_unit import Work

if TYPE_CHECKING:
    from ptokit.machine.machine import Machine

Place = Site | Location


def call_of(given: Typed) -> Callable[..., Any]:
    """A function of the unit and the values of the operands, in the order of the record."""
    record, kinds, sizes, vectors, words, results = given
    if record.is_logical:
        return prepared_logical(record, vectors, words, results)
    return prepared(record, kinds, sizes, words, results)


def perform(
    machine: Machine, given: Typed, call: Callable[..., Any], args: list[Any], site: Place
) -> Any:
    """Run an operation beside scopes: an instruction by itself."""
    record, words = given.record, dict(given.words)
    atomic = record.atomic(words, machine.core.hidden)
    unit_flag = str(words.get("unit_flag", ""))
    instruction = carrier(record.name, record.pipe, atomic, unit_flag)
    attrs = tuple(attr.default for attr in instruction.attrs)
    at = args[record.accumulator] if unit_flag else None
    return machine.execute(instruction, [Work(call, args, at)], attrs, site)
