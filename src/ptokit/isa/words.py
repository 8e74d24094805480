"""The words by which somebody may ask for an instruction, beside its name (table.py)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import IntEnum
from typing import get_type_hints

from ptokit.isa.effects import Pipe
from ptokit.isa.record import Insn

TEXT = "text"  # a mnemonic
SYNTAX = "syntax"  # the name of an operation with a syntax of its own
CLASS = "class"  # an operation class, as events name it
ENUMERATION = "enumeration"  # the class of a template argument
DECLARED = "declared"  # such a class that stands beside its instruction
FIELD = "field"  # the class of a field of one
OVERLOAD = "overload"  # the name under which it is called, where that is the name of another


def words(insn: Insn) -> dict[str, list[str]]:
    """All of them, by kind."""
    return {
        TEXT: [*mnemonics(insn)],
        SYNTAX: [*insn.asm.syntax, *insn.asm.aliases] if insn.asm and insn.asm.syntax else [],
        CLASS: [*classes(insn)],
        ENUMERATION: [kind.__name__ for kind in enumerations_of(insn)],
        DECLARED: [kind.__name__ for kind in enumerations_of(insn) if not _is_basic(kind)],
        FIELD: [kind.__name__ for kind in fields_of(insn)],
        OVERLOAD: [insn.overload_of] if insn.overload_of else [],
    }


def mnemonics(insn: Insn) -> Iterator[str]:
    """What a text may call it."""
    if insn.asm is not None:
        yield from insn.asm.syntax or (insn.mnemonic(form) for form in insn.forms)
        yield from insn.asm.aliases


def classes(insn: Insn) -> dict[str, Pipe]:
    """The operation classes that it belongs to, each with its pipe."""
    if insn.orders or "." in insn.name or insn.overload_of:
        return {}
    own = {insn.name: insn.pipe} if isinstance(insn.pipe, Pipe) else {}
    return dict(insn.ops) or own


def enumerations_of(insn: Insn) -> list[type[IntEnum]]:
    """The enumerations of its template arguments."""
    return [attr.type for attr in insn.attrs if issubclass(attr.type, IntEnum)]


def fields_of(insn: Insn) -> list[type[IntEnum]]:
    """The enumerations inside its template arguments."""
    records = [attr.type for attr in insn.attrs if is_dataclass(attr.type)]
    kinds = [kind for record in records for kind in get_type_hints(record).values()]
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, IntEnum)]


def _is_basic(kind: type) -> bool:
    """Whether a class is part of the vocabulary that all instructions share."""
    return kind.__module__.startswith("ptokit.base.")
