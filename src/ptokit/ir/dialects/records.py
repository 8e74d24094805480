"""Operations of instructions whose record gives them a syntax of their own (`Asm.syntax`)."""

from __future__ import annotations

import re
from functools import cache

from ptokit.ir.dialects.definition import Definition, Slot
from ptokit.ir.instructions import (
    RETURNED,
    attributes_in,
    declared_types,
    is_plain_number,
    literal_keys,
    operands_in,
)
from ptokit.isa.spec import Insn, Operand

# The kind of a slot that takes the operands of a kind; several kinds together take anything.
_KINDS = {
    "tile": "tile",
    "global": "part",
    "scalar": "num",
    "fifo": "pipe",
    "conv": "conv",
    "async_session": "async_session",
    "prefetch_async_context": "prefetch_async_context",
}


def _slot(insn: Insn, operand: Operand, syntax: str, stated: str = "") -> Slot:
    is_list = f"%{operand.name}..." in syntax
    # A pointer where the call has a view, or into any memory; a tile where it has a view.
    if stated in ("memory", "element", "data"):
        kind = stated
    elif is_plain_number(operand):
        kind = "int" if len(operand.kinds) == 1 else "any"
    elif set(operand.kinds) == {"pointer", "global"}:
        kind = "element" if insn.accesses_element else "memory"
    else:
        kind = _KINDS.get(operand.kinds[0], "any") if len(operand.kinds) == 1 else "any"
    keys = {operand.name, *(k for k, each in literal_keys(insn).items() if each is operand)}
    is_optional = operand.optional or not keys.isdisjoint(attributes_in(syntax))
    return Slot(operand.name, "part" if is_list else kind, is_optional, is_list)


def definition_of(insn: Insn, name: str, syntax: str) -> Definition:
    """The definition of one of the operations that write an instruction."""
    assert insn.asm is not None
    own = {operand.name: operand for operand in insn.operands}
    names = insn.asm.order or operands_in(syntax)
    more = Slot("events", "any", is_list=True)  # what the text lists and the call waits for
    stated = insn.asm.types
    operands = tuple(
        _slot(insn, own[n], syntax, stated.get(n, "")) if n in own else more for n in names
    )
    returned = "any" if insn.returns in own else insn.returns
    results = (Slot(RETURNED, returned),) if insn.returns else ()
    types, before = declared_types(insn), tuple(f"pto.{a}" for a in insn.asm.aliases)
    # One place of the text may be for either of two operands: the generic form has one for both.
    # A list of them is for both.
    choices = (each.split("|") for each in re.findall(r"%(\w+(?:\|\w+)+)(?![\w|.])", syntax))
    instead = {other: first for first, *others in choices for other in others}
    # A tile that stands for an entry says nothing that the call wants to know.
    taken = {n: _KINDS[own[n].kinds[0]] for n in names if stated.get(n) == "data"}
    return Definition(
        f"pto.{name}",
        operands,
        results,
        syntax,
        types,
        insn=insn,
        aliases=before,
        instead=instead,
        taken=taken,
    )


@cache
def definitions_of(insn: Insn) -> tuple[Definition, ...]:
    """The operations that write an instruction, if it has a syntax of its own."""
    syntax = insn.asm.syntax if insn.asm is not None else {}
    return tuple(definition_of(insn, name, line) for name, line in syntax.items())
