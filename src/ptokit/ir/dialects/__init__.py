"""The operations that are not instructions, one record each, by topic."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptokit.ir.dialects import arith, conv, fifo, func, memory, scf, sync, system
from ptokit.ir.dialects.definition import Definition

DEFINITIONS: Mapping[str, Definition] = MappingProxyType(
    {
        definition.name: definition
        for topic in (func, arith, scf, memory, conv, sync, fifo, system)
        for definition in topic.DEFINITIONS
    }
)

__all__ = ["DEFINITIONS", "Definition"]
