"""The operations with a syntax of their own, one record each: instructions and all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.micro import MICRO
from ptokit.isa.words import SYNTAX, TEXT

TOPICS = (func, arith, scf, cf, memory, aggregates, conv, sync, fifo, asynchronous, system, micro)


class _Definitions(Mapping[str, Definition]):
    """By name: those of the topics, and of operations of the tables those that are asked for."""

    def __init__(self) -> None:
        listed = (definition for topic in TOPICS for definition in topic.DEFINITIONS)
        self._found = {name: each for each in listed for name in (each.name, *each.aliases)}
        self._written = tuple(self._found)
        # Most operations are instructions, which have none: that is asked most often.
        self._missed: set[str] = set()
        self._indices: tuple[object, ...] = ()  # that these were looked up in

    def __getitem__(self, name: str) -> Definition:
        found = self.find(name)
        if found is None:
            raise KeyError(name)
        return found

    def find(self, name: str) -> Definition | None:
        """The record of a name, where it has one."""
        found = self._found.get(name)
        if found is None:
            indices = INSTRUCTIONS.index, MICRO.index
            if indices != self._indices:  # which know others now
                self._indices = indices
                self._missed.clear()
            if name not in self._missed:
                found = self._made(name)
                if found is None:
                    self._missed.add(name)
                else:
                    self._found[name] = found
        return found

    def _made(self, name: str) -> Definition | None:
        dialect, _, own = name.partition(".")
        if dialect == "pto":
            for insn in INSTRUCTIONS.called(SYNTAX, own):
                made = reversed(records.definitions_of(insn))
                return next(each for each in made if name in (each.name, *each.aliases))
            if own in MICRO:
                return micro.definition_of(MICRO[own])
            for record in MICRO.called(TEXT, own):
                return micro.definition_of(record)
        return None

    def __iter__(self) -> Iterator[str]:
        of_tables = (*MICRO, *MICRO.words(TEXT), *INSTRUCTIONS.words(SYNTAX))
        return iter(dict.fromkeys((*self._written, *(f"pto.{name}" for name in of_tables))))

    def __len__(self) -> int:
        return len(list(iter(self)))


DEFINITIONS = _Definitions()


def definition_of(op: Op) -> Definition | None:
    """The record of an operation; of an instruction written as all others are there is none."""
    found = DEFINITIONS.find(op.name)
    # A few micro-operations have the name of an instruction that works on tiles.
    return None if found is not None and found.micro is not None and op.insn else found


__all__ = ["DEFINITIONS", "Definition", "definition_of"]
