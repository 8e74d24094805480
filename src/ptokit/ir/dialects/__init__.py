"""The operations with a syntax of their own, one record each: instructions and all others."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptokit.ir.core import Op
from ptokit.ir.dialects import (
    aggregates,
    arith,
    asynchronous,
    cf,
    conv,
    fifo,
    func,
    memory,
    micro,
    records,
    scf,
    sync,
    system,
)
from ptokit.ir.dialects.definition import Definition

_by_name: dict[str, Definition] = {
    name: definition
    for topic in (
        *(
            func,
            arith,
            scf,
            cf,
            memory,
            aggregates,
            conv,
            sync,
            fifo,
            asynchronous,
            system,
            micro,
            records,
        ),
    )
    for definition in topic.DEFINITIONS
    for name in (definition.name, *definition.aliases)
}
DEFINITIONS: Mapping[str, Definition] = MappingProxyType(_by_name)


def definition_of(op: Op) -> Definition | None:
    """The record of an operation; of an instruction written as all others are there is none."""
    found = _by_name.get(op.name)
    # A few micro-operations have the name of an instruction that works on tiles.
    return None if found is not None and found.micro is not None and op.insn else found


__all__ = ["DEFINITIONS", "Definition", "definition_of"]
