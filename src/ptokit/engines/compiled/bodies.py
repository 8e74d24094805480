"""Calls that run as their bodies do, once more: what the library has no function for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptokit.base.layout import Array
from ptokit.base.namedtuple import NamedTuple
from ptokit.engines.compiled.memories import Memories
from ptokit.isa.services import Refused
from ptokit.machine.access import Access
from ptokit.machine.calls import Call
from ptokit.machine.core import Core
from ptokit.machine.faults import refusal
from ptokit.machine.gm import GmBuffer
from ptokit.machine.machine import Machine
from ptokit.machine.providers import BeyondProvider, PoisonProvider, Services


class Noted(NamedTuple):
    """One executed call."""

    call: Call
    args: Sequence[Any]
    operands: Sequence[Any]
    bound: Sequence[Access]  # of the operands in global memory, in their order
    site: Any
    core: Core
    registers: dict[str, Any] | None  # where it looks at them
    undefined: tuple[Any, ...]  # regions of its operands that it declared undefined


def region(access: Access) -> tuple[str, slice, slice]:
    return access.operand, access.pattern.rows, access.pattern.cols


class Body:
    """A call that runs as its body does."""

    def __init__(self, note: Noted, memories: Memories) -> None:
        # Of the operands in global memory: which, the access, and the array of the user with the
        # place there.
        self._far: list[tuple[int, Access, tuple[int, int] | None]] = []
        args = list(note.args)
        for (index, _), access in zip(note.call.global_patterns, note.bound, strict=False):
            self._far.append((index, access, memories.array(access)))
            args[index] = None
        self._note = note._replace(args=args, bound=())  # arrays of the first launch may go

    def run(self, machine: Machine, arrays: Sequence[Array]) -> None:
        """Fetch, run, write back; what is defined was found out when it was noted."""
        far = [
            (index, access if place is None else moved(access, arrays[place[0]], place[1]))
            for index, access, place in self._far
        ]
        carry_out(self._note, machine, far)


def moved(access: Access, array: Array, offset: int) -> Access:
    """The same access in another array."""
    return access.pattern.at(GmBuffer(array), offset)


def carry_out(note: Noted, machine: Machine, far: Sequence[tuple[int, Access]]) -> None:
    """Run the body of a call once more, with these operands in global memory.

    Raises `Differs` where it does not declare the same undefined as it did when it was noted.
    """
    call, args = note.call, list(note.args)
    for index, access in call.copies:
        pattern = access.pattern
        empty = np.empty(pattern.shape, pattern.dtype.np)
        args[index] = access.array() if pattern.reads else empty
    for index, access in far:
        args[index] = access.array()
    more, services = call.keywords, None
    if call.services:
        services = _Unchecked(machine, call, note.operands, note.site)
        services.registers = {} if note.registers is None else dict(note.registers)
        services.regions = []
        more = {**more, **{name: services.of(name) for name in call.services}}
    before, machine.core = machine.core, note.core
    try:
        call.body(*args, **more)
    except Refused as error:
        raise refusal(call.insn, error, note.site, call.ops.target.name) from None
    finally:
        machine.core = before
    if services is not None and tuple(services.regions) != note.undefined:
        raise Differs
    for index, access in (*call.copies, *far):
        if access.pattern.steps is None and access.writes:
            access.store(args[index])
    for access in call.cleared:
        access.write(np.zeros(access.shape, access.dtype.np))


class Differs(Exception):  # noqa: N818 - named after what happened
    """Values lead to undefined elements: whether these are ever read, only the steps can tell."""


class _Defined(PoisonProvider):
    """All is defined: that was found out when the run was noted."""

    __slots__ = ()

    def poison(self, name: str, rows: slice, cols: slice) -> None:
        if rows.start < rows.stop and cols.start < cols.stop:
            run = self._run
            assert isinstance(run, _Unchecked)
            run.regions.append(region(self._region(name, rows, cols)))

    def poison_where(self, name: str, where: Array) -> None:
        if where.any():
            raise Differs

    def undefined(self, name: str) -> Array | None:
        return None

    def demand(self, name: str, part: tuple[slice, slice]) -> None:
        return

    def demand_where(self, name: str, where: Array) -> None:
        return

    def leave(self, name: str, array: Array) -> None:
        array[...] = self._handed(name).read()

    def peek(self, name: str) -> tuple[Array, Array]:
        values, defined = super().peek(name)
        return values, np.ones_like(defined)


class _Beyond(BeyondProvider):
    """Nothing is known of elements outside the operands."""

    __slots__ = ()

    def read(self, name: str, places: Array) -> Array:
        raise Differs


class _Unchecked(Services):
    """What a body may ask for in a run that is repeated."""

    __slots__ = ("regions", "registers")

    registers: dict[str, Any]
    regions: list[tuple[str, slice, slice]]  # that the body has declared undefined

    def of(self, name: str) -> Any:
        if name == "registers":
            return self.registers
        provider = {"poison": _Defined, "beyond": _Beyond}.get(name)
        return super().of(name) if provider is None else provider(self)
