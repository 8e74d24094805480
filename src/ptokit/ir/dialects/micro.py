"""Scopes of the vector unit, pointers into on-chip memory, and the micro-operations of the table.

A micro-operation is written as its record says (isa/micro); what is here follows from that.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ptokit.ir.core import Op, Value
from ptokit.ir.dialects.definition import Definition, Edge, define, definitions_in
from ptokit.ir.format import Draft, finish
from ptokit.ir.reader import Head, Reader
from ptokit.isa.micro import Micro
from ptokit.isa.micro.spec import Slot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ptokit.ir.printer import Printer

# ---- scopes ------------------------------------------------------------------------------------


def _read_strict(reader: Reader, head: Head, definition: Definition) -> Op:
    """`(%ub, %n) { ^bb0(%p: T, %k: T): ... } : (T, T) -> ()`."""
    draft = Draft()
    reader.expect("(")
    while not reader.accept(")"):
        if draft.operands:
            reader.expect(",")
        draft.add("args", reader.value(), reader.at - 1)
    draft.regions.append(reader.block())
    if reader.sees("{"):
        draft.attrs.update(reader.attr_dict())
    reader.expect(":")
    signature = reader.function_type()
    for value, type_, token in zip(draft.operands, signature.inputs, draft.tokens, strict=False):
        if value.type != type_:
            reader.note("type-mismatch", f"the argument has type {value.type}", reader.place(token))
    given = [value.type for value in draft.operands]
    inside = [value.type for value in draft.regions[0].args]
    if given != inside:
        reader.note(
            "type-mismatch",
            f"{head.name}: the block has an argument for each operand, of its type",
            head.location,
            f"write ^bb0({', '.join(f'%a{n}: {t}' for n, t in enumerate(given))}):",
        )
    return finish(reader, head, definition, draft)


def _write_strict(printer: Printer, op: Op) -> str:
    names = ", ".join(printer.name(value) for value in op.operands)
    types = ", ".join(str(value.type) for value in op.operands)
    with printer.scope():
        body = printer.block(op.regions[0], labelled=True)
    return f"({names}) {body}{printer.attr_dict(op)} : ({types}) -> ()"


def _into_scope(op: Op) -> Iterator[Edge]:
    yield from (Edge(a, b) for a, b in zip(op.operands, op.regions[0].args, strict=False))


SCOPE = define("pto.vecscope", "", "R {}", core="vector")
STRICT_SCOPE = define(
    "pto.strict_vecscope",
    "args*:any",
    read=_read_strict,
    write=_write_strict,
    core="vector",
    flow=_into_scope,
)
CAST_POINTER = define(
    "pto.castptr",
    "source:any -> result:any",
    "%source {} : T(source) -> T(result)",
    pure=True,
    renames="source",
)
SCOPES = (SCOPE, STRICT_SCOPE)

# ---- operations of the table -------------------------------------------------------------------

_KINDS = {  # of the record -> of the text
    "V": "vreg",
    "W": "vreg",
    "X": "vreg",
    "L": "lane",
    "M": "mask",
    "N": "mask",
    "B": "mask",
    "S": "num",
    "G": "vreg",
    "H": "vreg",
    "E": "either",
    "P": "single",
    "gm": "ptr",
}


_LOGICAL = {"vreg": "lvreg", "mask": "lmask", "lane": "llane"}


def _slot(slot: Slot, is_logical: bool) -> str:
    mark = "*" if slot.is_list else "?" if slot.is_optional else ""
    kind = _KINDS.get(slot.kind, slot.kind)
    return f"{slot.name}{mark}:{_LOGICAL.get(kind, kind) if is_logical else kind}"


@cache
def definition_of(record: Micro) -> Definition:
    """The operation that writes a micro-operation."""
    operands = " ".join(_slot(slot, record.is_logical) for slot in record.operands)
    results = " ".join(_slot(slot, record.is_logical) for slot in record.results)
    return define(
        f"pto.{record.name}",
        f"{operands} -> {results}" if results else operands,
        record.syntax,
        micro=record,
        is_generic=record.is_generic,
        aliases=" ".join(f"pto.{name}" for name in record.aliases),
    )


def scope_arguments(op: Op) -> list[tuple[Value, Value]]:
    """The values that a scope is handed by name, and those it calls them by."""
    return list(zip(op.regions[0].args, op.operands, strict=True))


DEFINITIONS = definitions_in(globals())
