"""The executor: the one place where a call becomes bytes.

`call` gives the verified call of an instruction and its operands, from the cache or anew;
`execute` fetches the operands, checks that what is read is defined, runs the body, writes back,
marks what is defined now and publishes an event. What one execution of a call costs beside its
body is counted in single microseconds: what can be known beforehand is in the `Call`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ptokit.base.diagnostics import PtoError
from ptokit.base.location import Location, Site
from ptokit.isa.effects import Steps
from ptokit.isa.facts import Ops
from ptokit.isa.services import Refused
from ptokit.isa.spec import Insn, Pipe
from ptokit.machine.access import Access
from ptokit.machine.calls import NOTHING, Call, bind_global, bind_hidden, cache_key, where_used
from ptokit.machine.faults import failure, overwritten, refusal
from ptokit.machine.poison import spread, taken
from ptokit.machine.providers import Services
from ptokit.machine.sync import Given

if TYPE_CHECKING:
    from ptokit.machine.machine import Machine

Place = Site | Location
_NONE: tuple[Access, ...] = ()


class Ready(Protocol):
    """What the machine knows of a call, whoever made it."""

    @property
    def insn(self) -> Insn: ...
    @property
    def ops(self) -> Ops: ...
    @property
    def pipe(self) -> Pipe: ...
    @property
    def steps(self) -> Steps | None: ...
    @property
    def accesses(self) -> Sequence[Any]: ...
    @property
    def facts(self) -> Any: ...


class Executor(Protocol):
    """Verifies instructions and executes them; a machine has one."""

    def call(self, insn: Insn, operands: Sequence[Any], attrs: tuple[Any, ...], site: Place) -> Any:
        """The call of an instruction on these operands; raises what its rules forbid."""
        ...

    def execute(self, call: Any, operands: Sequence[Any], site: Place) -> Any:
        """Execute a call that `call` gave, and publish an event."""
        ...


class FastExecutor:
    """Executes calls over arrays that are the memory itself wherever a layout allows."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def call(
        self, insn: Insn, operands: Sequence[Any], attrs: tuple[Any, ...], site: Place
    ) -> Call:
        """From the cache, or verified and laid out now."""
        machine = self.machine
        used = where_used(insn, operands, machine.core) if insn.addressed else operands
        key = cache_key(insn, attrs, operands, used)
        found = machine.calls.get(key)
        if found is None:
            for operand in operands:
                machine.place(operand)
            key = cache_key(insn, attrs, operands, used)
            found, broken = machine.calls.suspect.get(key, (None, NOTHING))
            if found is not None:  # each line is judged by itself
                machine.judge(insn, found.ops, broken, site)
                return found
            ops, broken = machine.verified(insn, operands, attrs, site)
            found = Call(insn, ops, used, attrs, site)
            machine.calls.keep(key, found, broken)
        return found

    def execute(self, call: Call, operands: Sequence[Any], site: Place) -> Any:
        """Fetch, check, run, write back, mark, publish."""
        if call.effects is not None:
            return order(self.machine, call, operands, site)
        machine, missing = self.machine, None
        if call.before:
            machine.sync.apply(call.before, site, named(call, operands))
        for access in call.checked:
            if access.clean != access.memory.epoch and not access.is_defined():
                missing = {**(missing or {}), access.operand: taken(machine, call, access, site)}
        args, bound, more, services = call.args, _NONE, call.keywords, None
        if call.fetches:
            args, bound = _fetch(call, operands, site)
            if machine.peek is not None and (bound or call.across):
                machine.peek(call, bound)
        # Before it runs: the result may lie where the indices do.
        chosen = _chosen(call, args, bound) if call.narrows and machine.is_watched else None
        if call.services:
            services = Services(machine, call, operands, site)
            more = {**more, **{name: services.of(name) for name in call.services}}
        try:
            if call.is_quiet or machine.is_quiet:
                result = call.body(*args, **more)
            else:
                with np.errstate(all="ignore"):
                    result = call.body(*args, **more)
        except PtoError:
            raise
        except Refused as error:
            raise refusal(call.insn, error, site, call.ops.target.name) from None
        except Exception as error:
            raise failure(call, error, site) from error
        for index, access in call.copies:
            if access.pattern.writes:
                access.store(args[index])
        if bound:
            for (index, pattern), access in zip(call.global_patterns, bound, strict=True):
                if pattern.steps is None and pattern.writes:
                    access.store(args[index])
        for access in call.written:
            if access.clean != access.memory.epoch:
                access.mark_defined()
        if call.spills:
            judge_scratch(machine, call, site)
        for access in call.cleared:
            access.write(np.zeros(access.shape, access.dtype.np))
            access.mark_defined()
        for access in call.scratch:
            access.poison()
        if services is not None:
            services.finish()
            if services.missing:
                missing = {**(missing or {}), **services.missing}
            if services.far:
                bound = (*bound, *services.far)
        if missing:
            stored = [access for access in bound if access.writes]
            spread(machine, call, missing, (*call.written, *stored), site)
        if call.hidden:
            hidden = bind_hidden(call, operands, machine.core, site)
            bound = (*bound, *hidden)
            for access in hidden:
                access.poison()
        if machine.tape is not None:
            machine.tape(call, args, operands, bound, site, services)
        if chosen:
            bound = [chosen.get(place, access) for place, access in enumerate(bound)]
        machine.publish(call, site, bound)
        return result


def _chosen(call: Call, args: Sequence[Any], bound: Sequence[Access]) -> dict[int, Access]:
    """By place, the accesses to tables: only what the values of the operands lead to."""
    found: dict[int, Access] = {}
    given = dict(zip(call.insn.names, args, strict=True))
    for place, (index, _) in enumerate(call.global_patterns):
        touches = call.insn.operands[index].touches
        if touches is not None:
            with suppress(Refused):  # which the run says, if it does
                found[place] = bound[place].chosen(touches(call.ops, given))
    return found


def judge_scratch(machine: Machine, call: Any, site: Place) -> None:
    """Tell of data that lies past a scratch tile and is overwritten with it."""
    for spill in call.spills:
        if spill.harms():
            machine.tell(overwritten(call, spill, site))


def order(machine: Machine, call: Any, operands: Sequence[Any], site: Place) -> Any:
    """Execute what orders the work of others, or hands it over."""
    given = named(call, operands)
    if call.insn.moves_entries:
        return given["pipe"].act(call, given, site)
    return machine.sync.execute(call.insn, call.effects or (), site, given)


def named(call: Any, operands: Sequence[Any]) -> Given:
    """The operands of a call as its effects name them."""
    given = Given(zip(call.insn.names, operands, strict=True))
    given.call = call
    return given


def _fetch(
    call: Call, operands: Sequence[Any], site: Place
) -> tuple[list[Any], tuple[Access, ...]]:
    """What the body is handed in this run, and the global memory it reaches."""
    args = call.args.copy()
    for index in call.values:
        args[index] = operands[index]
    for index, access in call.copies:
        pattern = access.pattern
        # What is only written starts as garbage: the body fills all of it.
        args[index] = access.array() if pattern.reads else np.empty(pattern.shape, pattern.dtype.np)
    bound: list[Access] = []
    for index, pattern in call.global_patterns:
        access = bind_global(pattern, operands[index], call.insn, site)
        bound.append(access)
        args[index] = access.array()
    return args, tuple(bound)


__all__ = ["Executor", "FastExecutor", "Ready", "named", "order"]
