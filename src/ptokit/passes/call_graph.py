"""Which functions of a module call which."""

from __future__ import annotations

from dataclasses import replace

from ptokit.ir.attributes import SymbolAttr
from ptokit.ir.core import Function, Module, Op
from ptokit.ir.dialects.func import CALL


def callee(op: Op) -> str:
    """The name of the function an operation calls; empty when it calls none."""
    called = op.attrs.get("callee") if CALL.matches(op) else None
    return called.name if isinstance(called, SymbolAttr) else ""


def callees(function: Function) -> list[str]:
    """The functions that one calls, each once."""
    return list(dict.fromkeys(name for op in function.walk() if (name := callee(op))))


def callers_first(module: Module) -> list[Function]:
    """The functions with a body, each behind all that call it; a module has no recursion."""
    order: list[Function] = []

    def visit(function: Function) -> None:
        if function.body is None or function in order:
            return
        for other in module.functions:
            if other is not function and function.name in callees(other):
                visit(other)
        order.append(function)

    for function in module.functions:
        visit(function)
    return order


def working(module: Module) -> set[str]:
    """The functions that give work to a pipe, themselves or through others."""
    found: set[str] = set()
    for function in reversed(callers_first(module)):
        if any(op.insn is not None or callee(op) in found for op in function.walk()):
            found.add(function.name)
    return found


def connected(module: Module, name: str) -> Module:
    """The functions that have to do with one: they name each other, directly or by others."""
    near: dict[str, set[str]] = {}
    for function in module.functions:
        for op in function.walk():
            for named in op.attrs.values():
                if isinstance(named, SymbolAttr):
                    near.setdefault(function.name, set()).add(named.name)
                    near.setdefault(named.name, set()).add(function.name)
    found, new = {name}, {name}
    while new:
        new = {each for known in new for each in near.get(known, ())} - found
        found |= new
    kept = [f for f in module.functions if f.name in found]
    return module if len(kept) == len(module.functions) else replace(module, functions=kept)
