"""Ordering the pipes of a program, in each of the ways of `steps.py`.

Functions that set or wait for flags stay as they are, and a warning says so; canonical refuses
them.
"""

from __future__ import annotations

from ptokit.base.diagnostics import Diagnostic, ProgramError, usage_error
from ptokit.ir.core import Function, Module
from ptokit.ir.ordering import effects_of, orders_pipes
from ptokit.isa.effects import Buffer, Flag, Signal, Wait
from ptokit.isa.targets import Target
from ptokit.passes.insert_sync import InsertSync
from ptokit.passes.steps import BARRIER_ALL, BUFID, CANONICAL, Mode


def order(
    mode: Mode,
    module: Module,
    target: Target,
    functions: frozenset[str],
    is_one_core: bool,
    told: list[Diagnostic],
) -> Module:
    """Order the pipes of some functions; `told` hears of those that are left as they are."""
    if mode.name == BARRIER_ALL:
        from ptokit.passes.barrier_all import BarrierAll  # few ask for it

        return BarrierAll(functions).run(module, target)
    if mode.name == BUFID and not target.has_buffer_ids:
        raise usage_error(
            "steps",
            "buffer ids order the pipes of A5: bufid requires --pto-arch=a5",
            got=[("target", target.name)],
            fix='sync="insert"',
        )
    if mode.name == CANONICAL:
        from ptokit.passes.canonical import refusals, taken  # few ask for it

        functions = taken(module, functions)
        found = refusals(module, functions)
        if found:
            raise ProgramError(found)
    else:
        kept = kept_by(mode, module, functions)
        told += map(_kept, kept)
        functions -= {f.name for f in kept}
    return InsertSync(
        is_one_core,
        functions,
        mode.is_reduced,
        event_ids=mode.event_ids,
        with_buffers=mode.name == BUFID,
        is_canonical=mode.name == CANONICAL,
    ).run(module, target)


def kept_by(mode: Mode, module: Module, functions: frozenset[str]) -> list[Function]:
    """Those of some functions that are left as they are: their author orders them already."""
    if mode.name in (BARRIER_ALL, CANONICAL):
        return []
    return [f for f in module.functions if f.name in functions and _is_ordered(mode, f)]


def _is_ordered(mode: Mode, function: Function) -> bool:
    """Whether the author orders it already; barriers alone do not say so."""
    kinds = (Flag, Buffer) if mode.name == BUFID else (Flag,)
    return any(
        isinstance(effect, Signal | Wait) and isinstance(effect.token, kinds)
        for op in function.walk()
        if orders_pipes(op)
        for effect in effects_of(op)
    )


def _kept(function: Function) -> Diagnostic:
    return Diagnostic(
        "sync.kept",
        f"@{function.name} orders its pipes itself: nothing is inserted into it",
        function.location,
        fix='take its flags out, or say sync="keep"',
        severity="warning",
    )
