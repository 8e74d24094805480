"""Rules of programs for two back ends: each makes an object, and objects know little of others.

Modules name the back end that compiles them (`pto.backend`). It means nothing to a run, but files
that both of them work on are put together by a tool that takes only some of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.diagnostics import Diagnostic
from ptokit.ir.attributes import StringAttr, SymbolAttr
from ptokit.ir.core import Function, Module, Unit
from ptokit.ir.dialects.fifo import IMPORT
from ptokit.ir.dialects.func import CALL


def check_back_ends(module: Module) -> Iterator[Diagnostic]:
    """What cannot be put together of modules for more than one back end."""
    units = dict.fromkeys(f.unit for f in module.functions)
    ends = {_back_end(unit, module) for unit in units if unit is not None}
    if len(ends) < 2:
        return
    yield from _strays(module)
    for unit in units:
        yield from _shared_names([f for f in module.functions if f.unit is unit])
    yield from _peers_that_call(module)


def _back_end(unit: Unit, module: Module) -> str:
    named = unit.attrs.get("pto.backend", module.attrs.get("pto.backend"))
    return named.value if isinstance(named, StringAttr) else "emitc"


def _strays(module: Module) -> Iterator[Diagnostic]:
    for function in module.functions:
        if function.unit is None:
            text = f"@{function.name} lies beside modules of two back ends, and in none of them"
            yield Diagnostic(
                "mixed-back-ends", text, function.location, fix="move it into one of the modules"
            )


def _shared_names(functions: list[Function]) -> Iterator[Diagnostic]:
    """Functions of a front end that are one function to it, with several types."""
    first: dict[str, Function] = {}
    for function in functions:
        name = function.attrs.get("pto.ptodsl.logical_name")
        if function.is_private or function.body is None or not isinstance(name, StringAttr):
            continue
        known = first.setdefault(name.value, function)
        if known.input_types != function.input_types:
            text = f"@{name.value} is ambiguous: @{known.name} and @{function.name} both export it"
            fix = "make one of them private, or give it another pto.ptodsl.logical_name"
            yield Diagnostic("mixed-back-ends", text, function.location, fix=fix)


def _peers_that_call(module: Module) -> Iterator[Diagnostic]:
    """A peer in another module is copied, without the functions that it calls."""
    for function in module.functions:
        for op in function.walk():
            named = op.attrs.get("peer_func") if IMPORT.matches(op) else None
            peer = module.function(named.name) if isinstance(named, SymbolAttr) else None
            if peer is None or peer.unit is function.unit:
                continue
            called = [each.attrs["callee"] for each in peer.walk() if CALL.matches(each)]
            if called:
                text = f"{op.name}: @{peer.name} of another module calls {called[0]}"
                fix = "write what it calls out in the peer"
                yield Diagnostic("mixed-back-ends", text, op.location, fix=fix)
