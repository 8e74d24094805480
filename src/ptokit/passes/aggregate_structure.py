"""Rules of arrays and structs of the scalar unit."""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.diagnostics import Diagnostic
from ptokit.ir.aggregates import element_of, path_of
from ptokit.ir.core import Module, Op
from ptokit.ir.dialects import Definition, aggregates, definition_of
from ptokit.ir.flow import is_terminator
from ptokit.ir.types import LocalArrayType, StructType
from ptokit.passes.structure import Check, Scene, complaint


def check_element(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """What is read or written is one number, of the type that lies there."""
    whole, found = op.operands[0].type, element_of(op)
    moved = op.results[0].type if op.results else op.operands[-1].type
    if found is None:
        at = len(op.group("indices")) if isinstance(whole, LocalArrayType) else path_of(op)
        text = "the indices lead to a number: one for each size, and inside each struct"
        yield complaint(op, "local-element", text, {"type": whole, "indices": at})
    elif found != moved:
        text = "the number has the type of the element"
        yield complaint(op, "local-type", text, {"element": found, "number": moved})
    if isinstance(whole, LocalArrayType):
        for axis, (index, size) in enumerate(zip(op.group("indices"), whole.shape, strict=False)):
            at = scene.known.number(index)
            if at is not None and not 0 <= at < size:
                values = {"axis": axis, "index": at, "size": size}
                yield complaint(op, "local-bounds", "the indices lie inside the array", values)


def check_declaration(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """An array or struct stays in the function, and in the region, that makes it."""
    for user in scene.function.walk():
        if is_terminator(user) and op.result in user.operands:
            text = "an array or struct is not handed on: its elements are"
            yield complaint(user, "local-escapes", text, {"value": op.result.type})


def check_origins(module: Module) -> Iterator[Diagnostic]:
    """A struct comes from its declaration, in the same function: no other way leads to one."""
    for function in module.functions:
        passed = [p.type for p in function.params] + list(function.results)
        for type_ in passed:
            if isinstance(type_, StructType):
                text = f"@{function.name}: a struct is no argument and no result of a function"
                fix = "pass its elements, or the numbers it is made of"
                values = (("type", str(type_)),)
                yield Diagnostic("local-escapes", text, function.location, values, fix)
        for op in function.walk():
            is_made = definition_of(op) in aggregates.DECLARATIONS
            if not is_made and any(isinstance(r.type, StructType) for r in op.results):
                text = "only pto.declare_struct makes a struct"
                yield complaint(op, "local-escapes", text, fix="choose between its elements")


CHECKS: dict[Definition, Check] = {
    **dict.fromkeys((*aggregates.READS, *aggregates.WRITES), check_element),
    **dict.fromkeys(aggregates.DECLARATIONS, check_declaration),
}
