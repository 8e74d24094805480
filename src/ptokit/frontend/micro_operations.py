"""Micro-operations called from Python: `y = vadd(a, b, mask)`, `y = vcvt[half](x, mask, rnd="R")`.

Operands follow the record, words are strings in any place behind them or given by name. What a
result is follows from the operands; the element type goes in brackets where they leave it open.
Whoever is in force writes the operation: a scope that is recorded, a kernel that is lowered, or the
machine itself for what stands beside scopes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.dtypes import DType
from ptokit.base.entry import hide_frames, public
from ptokit.base.location import user_site
from ptokit.frontend.arguments import unknown_names
from ptokit.frontend.drafts import Draft, OnChipPointer, Writer
from ptokit.frontend.instruction import Operation, kind_of
from ptokit.frontend.scopes import writer_in_force
from ptokit.ir.attributes import Attribute, BoolAttr, IntAttr, StringAttr, UnitAttr
from ptokit.ir.core import Value
from ptokit.ir.micro_calls import SPACES, element_of
from ptokit.ir.types import (
    F32,
    I64,
    INDEX,
    MaskType,
    OpaqueType,
    PtrType,
    RegisterType,
    ScalarType,
    Type,
)
from ptokit.isa.micro import Micro
from ptokit.isa.micro.samples import spelled
from ptokit.isa.micro.spec import KINDS, REGISTER_BYTES, Slot, Word
from ptokit.machine.foreign import as_number
from ptokit.machine.objects import Pointer, pointer

_REGISTERS = frozenset("VWXL")
_MASKS = frozenset("MNB")
_POINTERS = frozenset({*SPACES, "gm", "ptr"})


@public
class MicroOperation(Operation):
    """One micro-operation of the API; `wants_next`: the form that also moves the pointer."""

    def __init__(
        self, record: Micro, *, wants_next: bool = False, chosen: DType | int | None = None
    ) -> None:
        self.record = record
        self.__doc__ = record.doc
        self.__name__ = record.name + "_post" * wants_next
        self._wants_next = wants_next
        self._chosen = chosen  # what a result is made of: an element type, or the bits of a mask

    def __getitem__(self, chosen: DType | int) -> MicroOperation:
        """The operation with a result of this element type; of a mask, for lanes of these bits."""
        return MicroOperation(self.record, wants_next=self._wants_next, chosen=chosen)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Write the operation, or run it; give back its result, or a tuple of them."""
        try:
            site = user_site()
            writer = writer_in_force()
            given, words = self._arranged(args, named)
            return writer.write(self.draft(writer, given, words), site)
        except PtoError as error:
            hide_frames(error)
            raise

    def __repr__(self) -> str:
        return f"<micro-operation {self.__name__}>"

    # ---- arguments -----------------------------------------------------------------------------

    def _arranged(
        self, args: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Operands and words by their names."""
        record = self.record
        words: dict[str, Any] = {}
        values: list[Any] = []
        for arg in args:
            if isinstance(arg, str):
                words[self._word_for(arg, words)] = arg
            else:
                values.append(arg)
        rest = dict(named)
        for word in record.words:
            if word.name in rest:
                said = rest.pop(word.name)
                words[word.name] = str(said).lower() if isinstance(said, bool) else said
        slots = self.in_order
        if len(values) > len(slots) or not set(rest) <= {s.name for s in slots[len(values) :]}:
            raise self._mismatch(rest)
        given = {slot.name: value for slot, value in zip(slots, values, strict=False)} | rest
        lacks = [s.name for s in slots if not s.is_optional and given.get(s.name) is None]
        lacks += [w.name for w in record.words if w.default is None and w.name not in words]
        if lacks:
            raise self._mismatch(rest, lacks)
        return {name: value for name, value in given.items() if value is not None}, words

    @property
    def in_order(self) -> Sequence[Slot]:
        """The operands, those that are given in order first."""
        return self.record.operands

    def _word_for(self, said: str, taken: Mapping[str, str]) -> str:
        free = [word for word in self.record.words if word.name not in taken]
        found = next((w for w in free if said in w.choices), None)
        if found is None:
            listed = "; ".join(f"{w.name}: {', '.join(filter(None, w.choices))}" for w in free)
            raise fail(
                "micro-word",
                f"{self.__name__} has no such word",
                got=[("word", said)],
                fix=f"its words are {listed}" if listed else "it takes none",
            )
        return found.name

    @property
    def _signature(self) -> str:
        operands = [f"{s.name}{' = ...' * s.is_optional}" for s in self.in_order]
        words = [
            f"{w.name}{'' if w.default is None else f' = {w.default!r}'}" for w in self.record.words
        ]
        return f"{self.__name__}({', '.join(operands + words)})"

    def _mismatch(self, rest: Mapping[str, Any], lacks: Sequence[str] = ()) -> PtoError:
        names = [*(s.name for s in self.in_order), *(w.name for w in self.record.words)]
        if set(rest) - set(names):
            return unknown_names(self.__name__, dict(rest), names, self._signature)
        return fail(
            f"{self.record.name}.operands",
            f"{self.__name__} does not take these operands",
            got=[("missing", ", ".join(lacks))] if lacks else [],
            fix=f"write {self._signature}",
        )

    # ---- types ---------------------------------------------------------------------------------

    def draft(self, writer: Writer, given: Mapping[str, Any], words: Mapping[str, str]) -> Draft:
        """The operation on these operands, with these words."""
        record = self.record
        T = self._element(given)
        pairs: list[tuple[str, Value]] = []
        for slot in record.operands:
            if slot.name in given:
                several = given[slot.name] if slot.is_list else (given[slot.name],)
                pairs += [(slot.name, self._value(writer, slot, each, T)) for each in several]
        types = {label: value.type for label, value in pairs}
        results = [
            (slot.name, self._result(slot, types, T, words))
            for slot in record.results
            if not slot.is_optional or self._makes(slot, words)
        ]
        attrs = {name: _attribute(record.word(name), said) for name, said in words.items()}
        return Draft(record, pairs, results, attrs)

    def _makes(self, slot: Slot, words: Mapping[str, Any]) -> bool:
        """Whether a result that may be left out is wanted."""
        return self._wants_next

    def _element(self, given: Mapping[str, Any]) -> DType | None:
        """The element type that registers and numbers share; None: there are none."""
        chosen = self._chosen if isinstance(self._chosen, DType) else None
        for slot in self.record.operands:
            type_ = type_of(given.get(slot.name)) if slot.kind in "VL" else None
            if isinstance(type_, RegisterType):
                return element_of(type_.element)
        if chosen is None and "base" in given:
            type_ = type_of(given["base"])
            return element_of(type_.element) if isinstance(type_, PtrType) else None
        return chosen

    def _value(self, writer: Writer, slot: Slot, given: Any, T: DType | None) -> Value:
        """The value of an operand, of a type that its slot takes."""
        given = as_number(given, slot.name)
        type_ = type_of(given)
        if type_ is not None:
            if not self._takes(slot, type_):
                raise self._unfit(slot, str(type_))
            return writer.operand(given, type_)
        if kind_of(given) != "scalar":
            raise self._unfit(slot, type(given).__name__)
        if slot.kind in ("S", "L", "num") or slot.kind == "factor":
            return writer.operand(given, self._number(slot, T))
        if slot.kind not in ("index", "int"):
            raise self._unfit(slot, type(given).__name__)
        type_ = INDEX if slot.kind == "index" else ScalarType(_integer(self.record, slot))
        return writer.operand(given, type_)

    def _takes(self, slot: Slot, type_: Type) -> bool:
        """Whether a slot is for a value of this type."""
        if isinstance(type_, RegisterType):
            return slot.kind in _REGISTERS
        if isinstance(type_, MaskType):
            return slot.kind in _MASKS
        if isinstance(type_, PtrType):
            space = type_.space or "gm"
            return slot.kind in (space, "ptr") or (slot.kind == "factor" and space == "fb")
        return isinstance(type_, OpaqueType) and slot.kind == type_.name

    def _number(self, slot: Slot, T: DType | None) -> Type:
        if slot.kind in ("S", "L"):
            if T is None:
                raise self._open("the type of its lanes", "float32")
            # Constants have no sign: the lanes say what the bits are.
            return ScalarType(f"i{8 * T.itemsize}" if T.is_integer else spelled(T))
        return F32

    def _result(
        self, slot: Slot, types: Mapping[str, Type], T: DType | None, words: Mapping[str, Any]
    ) -> Type:
        if slot.kind in ("W", "V", "X", "L"):
            kind = self._other(T) if slot.kind == "W" else T
            if kind is None:
                raise self._open("the element type of its result", "float32")
            return RegisterType(REGISTER_BYTES // kind.itemsize, ScalarType(spelled(kind)))
        if slot.kind in _MASKS:
            return MaskType(self._bits(slot, types, T))
        if slot.kind == "align":
            return OpaqueType("align")
        if slot.kind in _POINTERS:
            return types["base"]
        whole = [t for t in types.values() if isinstance(t, ScalarType) and not t.is_float]
        pointers = [t for t in types.values() if isinstance(t, PtrType)]
        if slot.kind == "num" and pointers:
            return pointers[0].element
        return whole[0] if whole else ScalarType("i64")

    def _other(self, T: DType | None) -> DType | None:
        """U: given in brackets, or the only one that goes with T."""
        if isinstance(self._chosen, DType):
            return self._chosen
        found = {one[-1] for one in self.record.types if one[0] is T}
        return next(iter(found)) if len(found) == 1 else None

    def _bits(self, slot: Slot, types: Mapping[str, Type], T: DType | None) -> int:
        if isinstance(self._chosen, int):
            return self._chosen
        named = re.search(r"_b(\d+)$", self.record.name)
        if named:
            return int(named[1])
        masks = [t.bits for t in types.values() if isinstance(t, MaskType)]
        if slot.kind == "B" and masks:
            return masks[0]
        if slot.kind == "B":
            raise self._open("how many bits the lanes of its mask have", "32")
        assert T is not None
        return 8 * min(T.itemsize, 4)

    def _open(self, what: str, example: str) -> PtoError:
        return fail(
            "micro-type",
            f"{self.__name__} does not say {what}",
            fix=f"write it in brackets: {self.__name__}[{example}](...)",
        )

    def _unfit(self, slot: Slot, got: str) -> PtoError:
        return fail(
            "micro-type",
            f"{slot.name} of {self.__name__} is {KINDS[slot.kind]}",
            got=[(slot.name, got)],
            fix=f"write {self._signature}",
        )


def _attribute(word: Word | None, said: Any) -> Attribute:
    is_flag = word is not None and set(word.choices) == {"false", "true"}
    if isinstance(said, int):
        return IntAttr(said, I64)
    if word is not None and not word.choices and said == "true":  # it is only there
        return UnitAttr()
    return BoolAttr(said == "true") if is_flag else StringAttr(said)


def _integer(record: Micro, slot: Slot) -> str:
    """Counts and strides beside lanes are narrow, sizes of transfers are not."""
    if not record.is_inside:
        return "i64"
    return "i16" if "stride" in slot.name or slot.name == "b" else "i32"


def type_of(given: Any) -> Type | None:
    """The type that an argument has by itself; None: it is a number, or nothing of ours."""
    value = getattr(given, "value", None)
    if isinstance(value, Value):
        # A run-time number takes the type that its place asks for.
        return None if isinstance(value.type, ScalarType) else value.type
    if isinstance(given, OnChipPointer):
        return given.type
    if isinstance(given, Pointer | np.ndarray):
        kind = given.dtype if isinstance(given, Pointer) else pointer(given).dtype
        return PtrType(ScalarType(spelled(kind)))
    return None


def operations(records: Mapping[str, Micro]) -> Iterator[tuple[str, MicroOperation]]:
    """Every operation of registers under its name; those that can move their pointer twice."""
    for name, record in records.items():
        if not record.is_logical:
            yield name, MicroOperation(record)
            if any(slot.is_optional for slot in record.results):
                yield f"{name}_post", MicroOperation(record, wants_next=True)
