"""Rules of operations on logical vectors: lanes, element types, masks, and their own laws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ptokit.base.diagnostics import Diagnostic, Note
from ptokit.ir.core import Op, Value, complaint
from ptokit.ir.logical import seen, vector_of
from ptokit.ir.types import PtrType, ScalarType, Type
from ptokit.isa.micro import Micro
from ptokit.isa.micro.samples import signed
from ptokit.isa.micro.spec import Law, Slot, Vector

_WITH_LANES = "VWXM"  # kinds of one number of lanes


def broken_vectors(op: Op, record: Micro) -> Iterator[Diagnostic]:
    """What the record of an operation says of its vectors."""
    types = _types(op)
    slots = [
        (slot, vector, type_)
        for slot in (*record.operands, *record.results)
        for type_ in types.get(slot.name, ())
        if (vector := vector_of(type_, record.signless)) is not None
    ]
    yield from _lanes(op, slots)
    yield from _elements(op, record, slots)
    yield from _masks(op, slots)


def _types(op: Op) -> dict[str, list[Type]]:
    """The types of operands and results, by their labels."""
    found: dict[str, list[Type]] = {}
    values = zip((*op.labels, *op.result_labels), (*op.operands, *op.results), strict=True)
    for label, value in values:
        found.setdefault(label, []).append(value.type)
    return found


_Seen = list[tuple[Slot, Vector, Type]]
_Named = tuple[str, Vector, Type]


def _kind(slot: Slot, vector: Vector) -> str:
    if slot.kind == "E":
        return "V" if vector.kind is not None else "M"
    return slot.kind


def _lanes(op: Op, slots: _Seen) -> Iterator[Diagnostic]:
    counted = [(slot, v, t) for slot, v, t in slots if _kind(slot, v) in _WITH_LANES]
    for slot, vector, type_ in counted[1:]:
        first, other, its = counted[0]
        if vector.lanes != other.lanes:
            got = {first.name: its, slot.name: type_}
            what = f"{first.name} and {slot.name} have as many lanes"
            yield complaint(op, "micro-type", what, got, "make both vectors of one length")
            return


def _elements(op: Op, record: Micro, slots: _Seen) -> Iterator[Diagnostic]:
    """Vectors under one letter have one type, which the record lists; numbers beside them too."""
    letters: dict[str, list[_Named]] = {}
    for slot, vector, type_ in slots:
        letters.setdefault(_kind(slot, vector), []).append((slot.name, vector, type_))
    for letter in "VW":
        if letter not in letters:
            continue
        (first, vector, type_), *others = letters[letter]
        for name, other, its in others:
            if other.spelled != vector.spelled:
                got = {first: type_, name: its}
                yield complaint(op, "micro-type", f"{first} and {name} have one type", got)
                return
    stated = len(record.types[0]) if record.types else 0  # T, or T and U
    chosen = [letters[letter][0] for letter in "VW"[:stated] if letter in letters]
    kinds = tuple(vector.kind for _, vector, _ in chosen)
    # Of conversions between pairs a law tells.
    is_law = stated > 1 and any(vector.is_pair for _, vector, _ in chosen)
    is_stated = len(kinds) == stated and not is_law
    is_pair = any(vector.is_pair for _, vector, _ in chosen)
    if stated and is_stated and (is_pair or kinds not in record.types):
        got = {name: type_ for name, _, type_ in chosen}
        # Of pairs those that begin as this one does, where there are any.
        seconds = [one[-1] for one in record.types if stated > 1 and one[0] is kinds[0]]
        listed = seconds or dict.fromkeys(one[0] for one in record.types)
        name = chosen[-1 if seconds else 0][0]
        what = f"the element type of {name} is one of {', '.join(map(signed, listed))}"
        yield complaint(op, "micro-type", what, got, "convert first with pto.vmi.vcvt")
        return
    if "V" in letters:
        yield from _numbers(op, letters["V"][0], letters.get("S", []))


def _numbers(op: Op, lanes: _Named, numbers: list[_Named]) -> Iterator[Diagnostic]:
    """A number beside lanes has their type; of integers the bits count."""
    first, vector, its = lanes
    for name, number, type_ in numbers:
        are_bits = number.is_integer and vector.is_integer and number.bits == vector.bits
        if number.spelled != vector.spelled and not are_bits:
            what = f"{name} has the element type of {first}"
            fix = "convert the number before the scope"
            yield complaint(op, "micro-type", what, {name: type_, first: its}, fix)


def _masks(op: Op, slots: _Seen) -> Iterator[Diagnostic]:
    """A mask that says for lanes of which width it is has that of the vectors beside it."""
    masks = [(s, v, t) for s, v, t in slots if v.kind is None and _kind(s, v) == "M"]
    vectors = [(s, v, t) for s, v, t in slots if v.kind is not None and _kind(s, v) == "V"]
    for slot, mask, type_ in masks:
        for other, vector, its in vectors[:1]:
            if mask.spelled not in ("pred", f"b{vector.bits}"):
                got = {slot.name: type_, other.name: its}
                fix = f"make it a mask of b{vector.bits}, or of pred"
                what = f"{slot.name} is a mask of such lanes"
                yield complaint(op, "micro-type", what, got, fix)
                return
    if not vectors and len({mask.spelled for _, mask, _ in masks}) > 1:
        got = {slot.name: type_ for slot, _, type_ in masks}
        yield complaint(op, "micro-type", "the masks are those of lanes of one width", got)


# ---- laws --------------------------------------------------------------------------------------


# The number that a value is, or the address of a pointer, as far as it is known.
KnownNumber = Callable[[Value], int | None]


def unknown(_: Value) -> None:
    """Nothing is known."""


def broken_laws(op: Op, record: Micro, known: KnownNumber) -> Iterator[Diagnostic]:
    """The first law of a record that does not hold."""
    if not record.laws:
        return
    types = _types(op)
    vectors: dict[str, list[Vector | None]] = {}
    for label, value in zip(op.labels, op.operands, strict=True):
        found = vector_of(value.type, record.signless)
        if found is not None and isinstance(value.type, ScalarType | PtrType):
            found = replace(found, number=known(value))
        vectors.setdefault(label, []).append(found)
    for label, value in zip(op.result_labels, op.results, strict=True):
        vectors.setdefault(label, []).append(vector_of(value.type, record.signless))
    facts: dict[str, object] = {}
    for slot in (*record.operands, *record.results):
        made = vectors.get(slot.name, [])
        facts[slot.name] = made if slot.is_list else next(iter(made), None)
    for word in record.words:
        default = word.default if word.choices or word.default is None else word.number
        facts[word.name] = seen(op.attrs[word.name]) if word.name in op.attrs else default
    for law in record.laws:
        if not law.holds(**{name: facts[name] for name in law.parameters}):
            found = complaint(op, law.code, law.text, _shown(op, law, types, vectors), law.fix)
            yield replace(found, is_allowable=bool(law.otherwise), notes=_otherwise(law))
            return


def _otherwise(law: Law) -> tuple[Note, ...]:
    return (Note(f"where it is allowed, {law.otherwise}"),) if law.otherwise else ()


def _shown(
    op: Op,
    law: Law,
    types: Mapping[str, list[Type]],
    vectors: Mapping[str, list[Vector | None]],
) -> dict[str, object]:
    """What a law has looked at: a number, types, or a word."""

    def shown(name: str) -> object:
        numbers = [
            v.number for v in vectors.get(name, ()) if v is not None and v.number is not None
        ]
        if numbers:
            return numbers[0]
        return ", ".join(map(str, types[name])) if name in types else op.attrs.get(name, "none")

    return {name: shown(name) for name in law.parameters}
