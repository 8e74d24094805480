"""Rules of single micro-operations and scopes: the record, memories, the target."""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.diagnostics import Diagnostic
from ptokit.ir.attributes import EnumAttr
from ptokit.ir.core import Op, Value, complaint
from ptokit.ir.dialects import Definition, definition_of, micro
from ptokit.ir.types import PtrType, ScalarType, Type
from ptokit.passes.structure import Check, Scene


def check_operation(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """What the record of an operation says of its operands."""
    from ptokit.ir.micro_rules import broken_rules, lacks_registers  # where there are some

    definition = definition_of(op)
    assert definition is not None
    assert definition.micro is not None
    yield from lacks_registers(op, scene.target)
    yield from broken_rules(op, definition.micro, lambda value: _number(value, scene))


def _number(value: Value, scene: Scene) -> int | None:
    """An integer, or the address of a pointer, that is known."""
    made = value.owner
    if isinstance(made, Op) and micro.CAST_POINTER.matches(made):
        value = made.operands[0]
    found = scene.known.numbers.get(value)
    return found if isinstance(found, int) else None  # no float, which may be none at all


def check_scope(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """A scope runs on a device that has vector registers, on a vector core."""
    from ptokit.ir.micro_rules import lacks_registers  # where there are some

    yield from lacks_registers(op, scene.target)
    kind = scene.function.attrs.get("pto.kernel_kind")
    if isinstance(kind, EnumAttr) and kind.value == "cube":
        yield complaint(op, "micro-space", "a cube core has no vector registers", {"kind": "cube"})


def check_cast(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`castptr`: between addresses and pointers, in one memory, on a core that has it."""
    source, result = op.operands[0].type, op.result.type
    ends = [t for t in (source, result) if isinstance(t, PtrType)]
    if not ends or not all(_is_address(t) for t in (source, result)):
        got = {"source": source, "result": result}
        yield complaint(op, "micro-type", "one of both is a pointer, the other an i64 too", got)
        return
    if len(ends) == 2 and ends[0].space != ends[1].space:
        spaces = {"source": ends[0].space or "gm", "result": ends[1].space or "gm"}
        yield complaint(op, "micro-space", "a pointer stays in its memory", spaces)
    kind = scene.function.attrs.get("pto.kernel_kind")
    wanted = kind.value if isinstance(kind, EnumAttr) else ""
    for end in ends:
        owner = "vector" if end.space == "ub" else "cube" if end.space else wanted
        if wanted in ("cube", "vector") and owner != wanted and end.space not in ("ub", "l1"):
            got = {"memory": end.space, "kernel": wanted}
            yield complaint(op, "micro-space", "the kernel names memories that its core has", got)


def _is_address(type_: Type) -> bool:
    return isinstance(type_, PtrType) or (isinstance(type_, ScalarType) and not type_.is_float)


MICRO_CHECKS: dict[Definition, Check] = {
    micro.SCOPE: check_scope,
    micro.STRICT_SCOPE: check_scope,
    micro.CAST_POINTER: check_cast,
}
