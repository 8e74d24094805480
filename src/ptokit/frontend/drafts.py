"""What a micro-operation is before anybody writes it, and who does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ptokit.base.location import Site
from ptokit.ir.attributes import Attribute
from ptokit.ir.core import Value
from ptokit.ir.micro_calls import element_of
from ptokit.ir.types import PtrType, Type
from ptokit.isa.micro import Micro
from ptokit.machine.memory import Storage
from ptokit.machine.registers import LocalPointer


class OnChipPointer(LocalPointer):
    """A pointer into on-chip memory that a running kernel has made."""

    __slots__ = ("type",)
    operand_kind = "pointer"

    def __init__(self, buffer: Storage, type_: PtrType, offset: int) -> None:
        super().__init__(buffer, element_of(type_.element), offset)
        self.type = type_

    def moved(self, elements: int) -> OnChipPointer:
        """The pointer so many elements further."""
        return OnChipPointer(self.buffer, self.type, self.offset + elements * self.dtype.itemsize)

    __add__ = __radd__ = moved


class Writer(Protocol):
    """Who takes an operation: a scope, a kernel that is lowered, or the machine."""

    def operand(self, given: Any, type_: Type) -> Value:
        """The value of a number or a pointer."""
        ...

    def write(self, draft: Draft, site: Site) -> Any:
        """Write, or run, an operation; give back its results."""
        ...


class Draft:
    """An operation that is about to be written."""

    __slots__ = ("attrs", "labels", "operands", "record", "results")

    def __init__(
        self,
        record: Micro,
        operands: Sequence[tuple[str, Value]],
        results: Sequence[tuple[str, Type]],
        attrs: dict[str, Attribute],
    ) -> None:
        self.record = record
        self.operands = [value for _, value in operands]
        self.labels = tuple(label for label, _ in operands)
        self.results = results
        self.attrs = attrs
