"""Rules of single micro-operations: element types, masks, words.

They follow from the record alone, so that whoever writes an operation - a text, a kernel that is
lowered, one that runs - is told the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.diagnostics import Diagnostic
from ptokit.base.dtypes import DType, dtype
from ptokit.ir.attributes import IntAttr, StringAttr
from ptokit.ir.core import Op, complaint
from ptokit.ir.logical_rules import KnownNumber, broken_laws, broken_vectors, unknown
from ptokit.ir.types import SINGLES_OF, MaskType, RegisterType, ScalarType, Type
from ptokit.isa.micro import Micro
from ptokit.isa.micro.footprints import width
from ptokit.isa.micro.spec import Masking
from ptokit.isa.targets import Target


def lacks_registers(op: Op, target: Target) -> Iterator[Diagnostic]:
    """A device whose registers no program names runs none of this."""
    if not target.has_vector_registers:
        yield complaint(
            op,
            "micro-target",
            "this device has no vector registers that programs name",
            {"target": target.name},
            "run it on a5",
        )


def broken_rules(op: Op, record: Micro, known: KnownNumber = unknown) -> Iterator[Diagnostic]:
    """What the record of an operation says of its operands, where it does not hold."""
    words = list(_words(op, record))
    yield from words
    found = list(broken_vectors(op, record) if record.is_logical else _broken_types(op, record))
    yield from found or ([] if words else broken_laws(op, record, known))


def _broken_types(op: Op, record: Micro) -> Iterator[Diagnostic]:
    types = {
        **dict(zip(op.labels, (v.type for v in op.operands), strict=True)),
        **dict(zip(op.result_labels, (v.type for v in op.results), strict=True)),
    }
    yield from _elements(op, record, types)
    yield from _masks(op, record, types)
    yield from _moved(op, types)


def _moved(op: Op, types: dict[str, Type]) -> Iterator[Diagnostic]:
    """A pointer that is moved on keeps its type."""
    if "next" in types and "base" in types and types["next"] != types["base"]:
        got = {"base": types["base"], "next": types["next"]}
        fix = "move the pointer first, then look at it as another with pto.castptr"
        yield complaint(
            op, "micro-type", "the pointer that is moved on has the type of base", got, fix
        )


# ---- words -------------------------------------------------------------------------------------


def _words(op: Op, record: Micro) -> Iterator[Diagnostic]:
    for key, attr in op.attrs.items():
        word = record.word(key)
        given = attr.value if isinstance(attr, StringAttr) else str(attr)
        if word is not None and word.choices and given not in word.choices:
            listed = ", ".join(choice for choice in word.choices if choice)
            yield complaint(
                op, "micro-word", f"{key} is one of {listed}", {key: given}, "use one of these"
            )
        elif word is not None and word.is_number and not isinstance(attr, IntAttr):
            shown = f"write {{{key} = {word.example or word.default}}}"
            yield complaint(op, "micro-word", f"{key} is a whole number", {key: given}, shown)


# ---- types -------------------------------------------------------------------------------------


def _dtype(type_: ScalarType) -> DType | None:
    name = SINGLES_OF.get(type_.name, type_.name)
    try:
        return dtype(name)
    except ValueError:
        return None


def _elements(op: Op, record: Micro, types: dict[str, Type]) -> Iterator[Diagnostic]:
    """Registers under one letter have one type, which the record lists."""
    slots = (*record.operands, *record.results)
    letters: dict[str, list[tuple[str, RegisterType]]] = {}
    for slot in slots:
        found = types.get(slot.name)
        if isinstance(found, RegisterType):
            letters.setdefault(slot.kind, []).append((slot.name, found))
    for named in letters.values():
        (first, kind), *others = named
        for name, other in others:
            if _dtype(other.element) is not _dtype(kind.element):
                got = {first: kind, name: other}
                yield complaint(op, "micro-type", f"{first} and {name} have one type", got)
    stated = len(record.types[0]) if record.types else 0  # T, or T and U
    chosen = [letters[letter][0] for letter in "VW"[:stated] if letter in letters]
    kinds = tuple(_dtype(kind.element) for _, kind in chosen)
    if stated and len(kinds) == stated and kinds not in record.types:
        names = [name for name, _ in chosen]
        listed = ", ".join(">".join(each.mlir for each in one) for one in record.types)
        yield complaint(
            op,
            "micro-type",
            f"the element type{'s' * (len(names) > 1)} of {' and '.join(names)} "
            f"{'are' if len(names) > 1 else 'is'} one of {listed}",
            dict(chosen),
            "convert first with pto.vcvt, or look at the bits with pto.vbitcast",
        )
    yield from _numbers(op, record, types, letters)


def _numbers(
    op: Op,
    record: Micro,
    types: dict[str, Type],
    letters: dict[str, list[tuple[str, RegisterType]]],
) -> Iterator[Diagnostic]:
    """A number beside lanes has their type; integers without a sign are taken for both."""
    if "V" not in letters:
        return
    name, lanes = letters["V"][0]
    for slot in record.operands:
        given = types.get(slot.name)
        if slot.kind not in ("S", "L") or not isinstance(given, ScalarType):
            continue
        same_bits = given.bits == lanes.element.bits and not (
            given.is_float or lanes.element.is_float
        )
        if _dtype(given) is not _dtype(lanes.element) and not same_bits:
            got = {slot.name: given, name: lanes}
            what = f"{slot.name} has the element type of {name}"
            yield complaint(op, "micro-type", what, got, "convert the number before the scope")


def _masks(op: Op, record: Micro, types: dict[str, Type]) -> Iterator[Diagnostic]:
    """A mask counts the lanes of the registers beside it, or of the slots that a pattern stores."""
    register = next((t for t in types.values() if isinstance(t, RegisterType)), None)
    if record.masking is Masking.IGNORED:
        return
    if register is None:
        yield from _named_width(op, record, types)
        return
    size = _lane(op, record, types, register)
    for slot in (*record.operands, *record.results):
        given = types.get(slot.name)
        is_counted = slot.kind == "M" or (slot.kind == "N" and record.footprint is not None)
        if isinstance(given, MaskType) and is_counted and given.lane_bytes != min(size, 4):
            got = {slot.name: given, "lanes": f"{8 * size} bits"}
            fix = f"make it with pto.pset_b{8 * min(size, 4)} or pto.plt_b{8 * min(size, 4)}"
            yield complaint(op, "micro-type", f"{slot.name} is a mask of such lanes", got, fix)


def _lane(op: Op, record: Micro, types: dict[str, Type], register: RegisterType) -> int:
    index = types.get("index")
    if isinstance(index, RegisterType) and record.footprint is not None:
        return index.lane_bytes
    lanes = next(
        (
            t
            for s in record.operands
            if s.kind == "V" and isinstance(t := types.get(s.name), RegisterType)
        ),
        register,
    )
    dist = op.attrs.get("dist")
    if record.footprint is not None and isinstance(dist, StringAttr) and record.footprint.writes:
        return width(dist.value, lanes.lane_bytes)
    return lanes.lane_bytes


def _named_width(op: Op, record: Micro, types: dict[str, Type]) -> Iterator[Diagnostic]:
    """`pset_b32` makes masks of 32-bit lanes."""
    _, found, bits = record.name.rpartition("_b")
    if not found or not bits.isdigit():
        return
    for name, given in types.items():
        if isinstance(given, MaskType) and given.bits != int(bits):
            got = {name: given}
            yield complaint(op, "micro-type", f"{name} is a mask of {bits}-bit lanes", got)
