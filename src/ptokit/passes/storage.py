"""Where the tiles of a placed program lie, so that conflicts are found by bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

from ptokit.base.dataclass import dataclass
from ptokit.base.enums import TileType
from ptokit.ir.core import Function, Value
from ptokit.ir.flow import allocates
from ptokit.ir.types import MultiTileType, PlacedType
from ptokit.ir.types import bytes_of as size_of
from ptokit.passes.accesses import Access, Accesses
from ptokit.passes.turns import Turn


@dataclass(frozen=True)
class Bytes:
    """A range of a memory; without a range, all of it. Arrays are memories of their own."""

    memory: object
    start: int = 0
    stop: int = -1
    turn: Turn | None = None  # which of several buffers in the range it is, in each round

    array: Value | None = None  # of global memory, where arrays may overlap
    promised: frozenset[Value] = frozenset()  # the arrays that it does not overlap

    @property
    def is_on_chip(self) -> bool:
        return isinstance(self.memory, TileType)

    def is_apart(self, other: Bytes) -> bool:
        """Whether both are in turn one of the same buffers, and never the same one."""
        mine, its = self.turn, other.turn
        if mine is None or its is None or (self.start, self.stop) != (other.start, other.stop):
            return False
        same = (mine.base, mine.factor, mine.count) == (its.base, its.factor, its.count)
        return same and (mine.offset - its.offset) % mine.count != 0

    def meets(self, other: Bytes) -> bool:
        if self.memory != other.memory:
            return False
        if other.array in self.promised or self.array in other.promised:
            return False
        if self.turn is not None and self.turn.is_fixed and self.is_apart(other):
            return False
        if self.stop < 0 or other.stop < 0:
            return True
        return self.start < other.stop and other.start < self.stop


class Neighbours:
    """For each of some ranges the ranges that it meets, itself among them."""

    def __init__(self, ranges: Iterable[Bytes]) -> None:
        self._met: dict[Bytes, list[Bytes]] = {}
        memories: dict[object, list[Bytes]] = {}
        for where in ranges:
            if where not in self._met:
                self._met[where] = [where]
                memories.setdefault(where.memory, []).append(where)
        for listed in memories.values():
            self._sweep(listed)

    def of(self, where: Bytes) -> list[Bytes]:
        return self._met[where]

    def _sweep(self, listed: list[Bytes]) -> None:
        """Go through a memory by addresses, with the ranges that may still be met."""
        open_: list[Bytes] = []
        for where in sorted(listed, key=lambda each: (each.stop >= 0, each.start)):
            open_ = [each for each in open_ if each.stop < 0 or each.stop > where.start]
            for each in open_:
                if each.meets(where):
                    self._met[each].append(where)
                    self._met[where].append(each)
            open_.append(where)


@dataclass
class Map:
    """The bytes of every allocation.

    Where arrays may overlap, `promises` has for each of them those that it does not.
    """

    places: dict[Value, Bytes] = field(default_factory=dict[Value, Bytes])
    promises: dict[Value, frozenset[Value]] | None = None

    def of(self, access: Access) -> Bytes:
        """The bytes of an allocation, or the whole array behind a pointer."""
        root, kind = access.root, access.root.type
        found = self.places.get(root)
        slot = access.slot
        if found is not None and isinstance(slot, Turn):
            found = replace(found, turn=slot)
        elif found is not None and isinstance(slot, int) and isinstance(kind, MultiTileType):
            first = found.start + slot * kind.stride
            found = Bytes(found.memory, first, first + kind.spec.nbytes)
        elif found is not None and access.part is not None:
            found = Bytes(found.memory, *access.part)
        if found is None and not access.is_memory and isinstance(root.type, PlacedType):
            found = Bytes(root.type.spec.loc)  # somewhere in its memory
        used = access.declared
        if found is None and access.is_memory and self.promises is not None:
            return Bytes("GM", array=root, promised=self.promises.get(root, frozenset()))
        if found is None or used is None or used.memory is None:
            return found or Bytes(root)
        is_there = isinstance(root.type, PlacedType) and root.type.spec.loc == used.memory
        memory = found.memory if is_there else used.memory
        return Bytes(memory, found.start - found.start % used.grain, found.stop)


def bytes_of(
    function: Function,
    accesses: Accesses,
    promises: dict[Value, frozenset[Value]] | None = None,
) -> Map:
    """Collect the addresses of the allocations."""
    result = Map(promises=promises)
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
