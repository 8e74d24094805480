"""What operations do to the order of work, read from the effects of their records."""

from __future__ import annotations

from collections.abc import Sequence

from ptokit.base.location import Location
from ptokit.ir.core import Module, Op
from ptokit.ir.fifos import is_transfer
from ptokit.ir.instructions import literal, literal_attribute, template_arguments
from ptokit.isa.effects import (
    SIGNAL_BASE,
    Barrier,
    Buffer,
    Effect,
    Flag,
    InAuto,
    Load,
    Signal,
    Wait,
)
from ptokit.isa.facts import Facts, Ops, ScalarFacts
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS

_ANY = TARGETS["cpu"]  # what an operation signals does not depend on the target


def effects_of(op: Op) -> list[Effect]:
    """What an operation signals, waits for and drains; numbers not known yet count as 0."""
    insn = op.insn
    if insn is None or insn.effects is None:
        return []
    named: dict[str, Facts | None] = {}
    for declared in insn.operands:
        number = literal(op, declared)
        given = number is not None or declared.name in op.labels
        named[declared.name] = ScalarFacts(None, number or 0) if given else None
    template = zip((a.name for a in insn.attrs), template_arguments(op), strict=True)
    return insn.effects(Ops(named, dict(template), _ANY, "manual"))


def orders_pipes(op: Op) -> bool:
    """Whether an operation does nothing but order the pipes of its core, as a compiler would."""
    insn = op.insn
    if insn is None or not insn.orders or insn.in_auto is InAuto.RUNS or insn.moves_entries:
        return False
    return all(
        isinstance(effect, Barrier)
        or (isinstance(effect, Signal | Wait) and isinstance(effect.token, Flag | Buffer))
        for effect in effects_of(op)
    )


def lacks_signal_base(module: Module) -> bool:
    """Whether cores signal each other, and nothing says where they keep their signals."""
    transfers = any(is_transfer(op) for op in module.walk())
    loads = [
        effect
        for op in module.walk()
        if op.insn is not None and op.insn.effects is not None and not is_transfer(op)
        for effect in effects_of(op)
        if isinstance(effect, Load) and effect.register == SIGNAL_BASE
    ]
    return bool(transfers or loads) and not any(load.operand for load in loads)


def written(insn: Insn, numbers: Sequence[int], location: Location) -> Op:
    """The operation of an instruction whose operands are numbers that are not data."""
    assert insn.asm is not None
    pairs = zip(insn.operands, numbers, strict=True)
    attrs = dict(literal_attribute(insn, operand, number) for operand, number in pairs)
    return Op(f"pto.{next(iter(insn.asm.syntax))}", attrs=attrs, location=location, insn=insn)
