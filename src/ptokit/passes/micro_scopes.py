"""Rules of scopes: what stands in one, what may not, and which values stay inside."""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.diagnostics import Diagnostic, Note
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.dialects import definition_of, micro
from ptokit.ir.entries import is_marked
from ptokit.passes.open_scopes import inner_functions, lives_inside, may_stand_inside
from ptokit.passes.structure import complaint

THREADS = "pto.simt_entry"  # the mark of a function that threads run


def check_scopes(module: Module) -> Iterator[Diagnostic]:
    """Every rule about the borders of scopes."""
    inner = inner_functions(module)
    for function in module.functions:
        if THREADS in function.attrs:
            yield Diagnostic(
                "not-supported",
                f"@{function.name} is run by threads ({THREADS}), which ptokit does not have",
                function.location,
                fix="write it with vector registers",
            )
        if is_marked(function):
            yield from _signature(function)
        if function.body is not None:
            check = _inside if function.name in inner else _block
            yield from check(function.body)
            yield from _border(function.body)


def _signature(function: Function) -> Iterator[Diagnostic]:
    """A kernel is handed nothing that lives in a scope; what is called inside one may be."""
    for type_ in (*function.input_types, *function.results):
        if lives_inside(type_):
            yield Diagnostic(
                "scope-border",
                f"@{function.name}: a value of type {type_} never leaves its scope",
                function.location,
                fix="store it in the unified buffer and hand over a pointer",
            )


def _block(block: Block) -> Iterator[Diagnostic]:
    """Rules of a block outside scopes."""
    for op in block.ops:
        if definition_of(op) in micro.SCOPES:
            yield from _inside(op.regions[0])
            if definition_of(op) is micro.STRICT_SCOPE:
                yield from _strict(op)
        else:
            for region in op.regions:
                yield from _block(region)


def _inside(block: Block) -> Iterator[Diagnostic]:
    for op in block.ops:
        if definition_of(op) in micro.SCOPES:
            yield complaint(op, "scope-inside", "scopes do not nest", fix="end the outer one first")
        elif not may_stand_inside(op):
            yield complaint(
                op,
                "scope-inside",
                "a scope holds vector code, numbers, loops and branches, and nothing else",
                fix="put it before the scope or after it",
            )
        else:
            for region in op.regions:
                yield from _inside(region)


def _border(block: Block) -> Iterator[Diagnostic]:
    """Values of a scope that others use: vector code that stands by itself is a scope too."""
    scopes = [op for op in block.walk() if definition_of(op) in micro.SCOPES]
    if not scopes:
        return
    owners: dict[Value, Op] = {}
    inside: dict[Op, Op] = {}
    for scope in scopes:
        for op in scope.regions[0].walk():
            inside[op] = scope
            owners.update((value, scope) for value in op.results)
    for op in block.walk():
        for value in op.operands:
            if value in owners and owners[value] is not inside.get(op):
                yield complaint(
                    op,
                    "scope-border",
                    f"%{value.name} lives in the scope of the vector code before it",
                    {"type": value.type},
                    "store it in the unified buffer, or write pto.vecscope around both",
                )


def _strict(op: Op) -> Iterator[Diagnostic]:
    """A strict scope uses no value of its surroundings that it is not handed."""
    (body,) = op.regions
    known: set[Value] = set(body.args)
    for inner in body.walk():
        known.update(inner.results)
        for region in inner.regions:
            known.update(region.args)
    for inner in body.walk():
        for value in inner.operands:
            if value not in known:
                known.add(value)
                found = complaint(
                    inner,
                    "scope-border",
                    f"%{value.name} comes from outside, and a strict scope is not handed it",
                    fix="list it as an argument of the scope",
                )
                yield Diagnostic(
                    found.code,
                    found.message,
                    found.location,
                    fix=found.fix,
                    notes=(Note(f"%{value.name} is made here", value.location),),
                )
