"""The operations with a syntax of their own, one record each: instructions and all others."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptokit.ir.dialects import (
    arith,
    asynchronous,
    conv,
    fifo,
    func,
    memory,
    records,
    scf,
    sync,
    system,
)
from ptokit.ir.dialects.definition import Definition

DEFINITIONS: Mapping[str, Definition] = MappingProxyType(
    {
        name: definition
        for topic in (func, arith, scf, memory, conv, sync, fifo, asynchronous, system, records)
        for definition in topic.DEFINITIONS
        for name in (definition.name, *definition.aliases)
    }
)

__all__ = ["DEFINITIONS", "Definition"]
