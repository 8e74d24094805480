"""Operations on logical vectors from Python: `y = vmi.vadd(a, b)`, `x = vmi.vload[128](ub, 0)`.

They stand in a scope as those of registers do. Brackets hold what operands leave open of a result:
its element type, its lanes, or both.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ptokit.base.dtypes import DType
from ptokit.frontend.micro_operations import MicroOperation, type_of
from ptokit.ir.micro_calls import element_of
from ptokit.ir.types import LogicalMaskType, LogicalType, PtrType, ScalarType, Type
from ptokit.isa.micro import Micro
from ptokit.isa.micro.samples import signed
from ptokit.isa.micro.spec import Flow, Slot

_VECTORS, _MASKS = frozenset("VWXLGHE"), frozenset("MNE")
_GROUPS = ("num_groups", "group")  # the words that say how many there are


class LogicalOperation(MicroOperation):
    """One operation on logical vectors."""

    def __init__(self, record: Micro, *, chosen: DType | None = None, lanes: int = 0) -> None:
        super().__init__(record, chosen=chosen)
        self.__name__ = own_name(record)
        self._lanes = lanes

    def __getitem__(self, chosen: DType | int | tuple[DType | int, ...]) -> LogicalOperation:
        """The operation with a result of this element type, and this number of lanes."""
        parts = chosen if isinstance(chosen, tuple) else (chosen,)
        kind = next((part for part in parts if isinstance(part, DType)), None)
        lanes = next((part for part in parts if isinstance(part, int)), 0)
        return LogicalOperation(self.record, chosen=kind, lanes=lanes)

    @property
    def in_order(self) -> Sequence[Slot]:
        """Those that may be left out come behind the others."""
        return sorted(self.record.operands, key=lambda slot: slot.is_optional)

    # ---- types ---------------------------------------------------------------------------------

    def _makes(self, slot: Slot, words: Mapping[str, Any]) -> bool:
        """The second vector of a load that deals lanes out to two."""
        return words.get("dist_mode", "continuous") != "continuous"

    def _takes(self, slot: Slot, type_: Type) -> bool:
        if isinstance(type_, LogicalType):
            return slot.kind in _VECTORS
        if isinstance(type_, LogicalMaskType):
            return slot.kind in _MASKS
        return isinstance(type_, PtrType) and super()._takes(slot, type_)

    def _element(self, given: Mapping[str, Any]) -> DType | None:
        for slot in self.record.operands:
            type_ = type_of(given.get(slot.name)) if slot.kind in "VLE" else None
            if isinstance(type_, LogicalType):
                return element_of(type_.element)
        return super()._element(given)

    def _result(
        self, slot: Slot, types: Mapping[str, Type], T: DType | None, words: Mapping[str, Any]
    ) -> Type:
        if slot.kind == "int":
            return next(t for t in types.values() if isinstance(t, ScalarType))
        operands = {s.name: s.kind for s in self.record.operands}
        vectors = [(operands[n], t) for n, t in types.items() if isinstance(t, LogicalType)]
        masks = [t for t in types.values() if isinstance(t, LogicalMaskType)]
        own = [type_ for kind, type_ in vectors if kind == slot.kind]
        beside = [type_.lanes for type_ in ([t for _, t in vectors] or masks)]
        if slot.kind == "M" or (slot.kind == "E" and not own):
            return LogicalMaskType(self._lanes or next(iter(beside), 0) or self._no_lanes())
        if own and slot.kind in "VEG":
            return own[0]
        if slot.kind == "H":
            return self._seen_as(vectors[0][1])
        kind = self._other(T) if slot.kind == "W" else self._chosen or T
        if not isinstance(kind, DType):
            raise self._open("the element type of its result", "float32")
        lanes = self._lanes
        if not lanes and slot.kind == "G":
            groups = next((words[word] for word in _GROUPS if word in words), 1)
            lanes = groups if self.record.flow is Flow.ALL else 0
        elif not lanes:
            lanes = next(iter(beside), 0)
        return LogicalType(lanes or self._no_lanes(), ScalarType(signed(kind)))

    def _seen_as(self, type_: LogicalType) -> LogicalType:
        """The same bits as lanes of another type."""
        kind = self._chosen
        if not isinstance(kind, DType):
            raise self._open("the element type of its result", "float32")
        bits = type_.lanes * element_of(type_.element).bits
        return LogicalType(bits // kind.bits, ScalarType(signed(kind)))

    def _no_lanes(self) -> int:
        raise self._open("how many lanes its result has", "128")


def own_name(record: Micro) -> str:
    """The name in Python."""
    name = record.name.removeprefix("vmi.")
    return f"{name}_" if keyword.iskeyword(name) else name


def logical_operations(records: Mapping[str, Micro]) -> Iterator[tuple[str, LogicalOperation]]:
    """Every operation on logical vectors under its name.

    Lists of elements, several results of one name and layouts have no form in Python: constants
    are numbers that are broadcast there, and where lanes lie is the compiler's business.
    """
    for record in records.values():
        slots = (*record.operands, *record.results)
        is_plain = all(s.kind not in "PN" and (not s.is_list or s.is_optional) for s in slots)
        lists = [word for word in record.words if word.example.startswith(("dense", "array"))]
        if record.is_logical and is_plain and not lists:
            yield own_name(record), LogicalOperation(record)
