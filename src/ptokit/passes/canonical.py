"""What the canonical mode of synchronisation does not take: programs it could not answer for.

Its contract is that all order of a function is its own: it refuses what is ordered by hand, what
goes on beside the pipes, and what it cannot look into.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.diagnostics import Diagnostic
from ptokit.ir.core import Function, Module, Op
from ptokit.ir.dialects import asynchronous, cf, definition_of, scf
from ptokit.ir.dialects.func import CALL
from ptokit.ir.entries import is_helper, kind_of
from ptokit.ir.fifos import is_transfer
from ptokit.ir.flow import core_of, is_terminator
from ptokit.ir.ordering import effects_of
from ptokit.isa.effects import Barrier, Effect, Signal, Wait, Word
from ptokit.passes.call_graph import callee

_REGIONS = frozenset({scf.FOR, scf.IF, scf.WHILE})
_ASYNCHRONOUS = frozenset(asynchronous.DEFINITIONS)
_JUMPS = frozenset(cf.DEFINITIONS)


def taken(module: Module, functions: frozenset[str]) -> frozenset[str]:
    """The functions meant: not helpers, nor kernels that only call others."""
    return frozenset(
        f.name
        for f in module.functions
        if f.name in functions and not _is_dispatch(f, module) and not is_helper(f)
    )


def refusals(module: Module, functions: frozenset[str]) -> list[Diagnostic]:
    """Why functions are not taken."""
    walked = (op for f in module.functions if f.name in functions for op in f.walk())
    return [_refusal(op, why) for op in walked for why in _reasons(op, module)]


def _is_dispatch(function: Function, module: Module) -> bool:
    """Whether a function does nothing but call kernels of one kind of core."""
    ops = [] if function.body is None else function.body.ops
    called = [module.function(callee(op)) for op in ops if CALL.matches(op)]
    only_calls = all(CALL.matches(op) or is_terminator(op) for op in ops)
    return only_calls and bool(called) and all(f is not None and kind_of(f) for f in called)


def _reasons(op: Op, module: Module) -> Iterator[str]:
    definition = definition_of(op)
    if definition in _ASYNCHRONOUS:
        yield "does not accept transfers that go on beside the pipes"
    elif op.insn is not None and not is_transfer(op) and any(map(_is_manual, effects_of(op))):
        yield "does not accept manual synchronisation"
    elif definition in _JUMPS:
        yield "does not support unstructured control flow"
    elif op.regions and definition not in _REGIONS and not core_of(op):
        yield "cannot model this operation with regions"
    elif CALL.matches(op):
        called = module.function(callee(op))
        if called is None or not is_helper(called):
            yield "cannot model a call whose effects are not stated"


def _is_manual(effect: Effect) -> bool:
    """Whether the author orders work; a word in global memory is data to the scalar unit."""
    if isinstance(effect, Signal | Wait):
        return not isinstance(effect.token, Word)
    return isinstance(effect, Barrier)


def _refusal(op: Op, why: str) -> Diagnostic:
    return Diagnostic(
        "sync.canonical",
        f"the canonical mode of synchronisation {why}",
        op.location,
        (("operation", op.name),),
        'order it in another way: sync="insert"',
    )
