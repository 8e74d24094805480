"""Where the tiles of a placed program lie, so that conflicts are found by bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptokit.ir.core import Function, Value
from ptokit.ir.flow import allocates
from ptokit.ir.types import PlacedType
from ptokit.ir.types import bytes_of as size_of
from ptokit.passes.accesses import Access, Accesses


@dataclass(frozen=True)
class Bytes:
    """A range of a memory; without a range, all of it. Arrays are memories of their own."""

    memory: object
    start: int = 0
    stop: int = -1

    def meets(self, other: Bytes) -> bool:
        if self.memory != other.memory:
            return False
        if self.stop < 0 or other.stop < 0:
            return True
        return self.start < other.stop and other.start < self.stop


@dataclass
class Map:
    """The bytes of every allocation."""

    places: dict[Value, Bytes] = field(default_factory=dict[Value, Bytes])

    def of(self, access: Access) -> Bytes:
        """The bytes of an allocation, or the whole array behind a pointer."""
        root = access.root
        found = self.places.get(root)
        if found is None and not access.is_memory and isinstance(root.type, PlacedType):
            found = Bytes(root.type.spec.loc)  # somewhere in its memory
        used = access.declared
        if found is None or used is None or used.memory is None:
            return found or Bytes(root)
        is_there = isinstance(root.type, PlacedType) and root.type.spec.loc == used.memory
        memory = found.memory if is_there else used.memory
        return Bytes(memory, found.start - found.start % used.grain, found.stop)


def bytes_of(function: Function, accesses: Accesses) -> Map:
    """Collect the addresses of the allocations."""
    result = Map()
    for op in function.walk():
        if not allocates(op) or not isinstance(op.result.type, PlacedType):
            continue
        kind, address = op.result.type, accesses.known.number(op.operand("addr"))
        if address is not None:
            result.places[op.result] = Bytes(kind.spec.loc, address, address + size_of(kind))
    for root in accesses.fifos.popped:
        ring = accesses.fifos.place_of(root)
        if ring is not None:
            result.places[root] = Bytes(*ring)
    return result
