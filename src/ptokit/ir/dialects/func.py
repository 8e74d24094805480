"""`func` and the parts of `memref` that lowered files use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptokit.ir.attributes import SymbolAttr
from ptokit.ir.core import Op
from ptokit.ir.dialects.definition import Definition, define, definitions_in
from ptokit.ir.format import Draft, finish
from ptokit.ir.reader import Head, Reader
from ptokit.ir.types import FunctionType, same_type

if TYPE_CHECKING:
    from ptokit.ir.printer import Printer


def _read_call(reader: Reader, head: Head, definition: Definition) -> Op:
    draft = Draft()
    draft.attrs["callee"] = SymbolAttr(reader.symbol())
    reader.expect("(")
    while not reader.accept(")"):
        if draft.operands:
            reader.expect(",")
        draft.add("operands", reader.value(), reader.at - 1)
    if reader.sees("{"):
        draft.attrs.update(reader.attr_dict())
    reader.expect(":")
    signature = reader.function_type()
    given = [v.type for v in draft.operands]
    if len(given) != len(signature.inputs) or not all(map(same_type, given, signature.inputs)):
        reader.note(
            "type-mismatch",
            "the signature of a call lists the types of its operands",
            head.location,
            f"write ({', '.join(map(str, given))})",
        )
    draft.types["results"] = list(signature.results)
    return finish(reader, head, definition, draft)


def _write_call(printer: Printer, op: Op) -> str:
    names = ", ".join(printer.name(v) for v in op.operands)
    signature = FunctionType(tuple(v.type for v in op.operands), tuple(v.type for v in op.results))
    more = printer.attr_dict(op, without=("callee",))
    return f" {op.attrs['callee']}({names}){more} : {signature}"


RETURN = define(
    "func.return",
    "operands*:any",
    "[?%operands... : T(operands...)?] {}",
    is_terminator=True,
)
CALL = define(
    "func.call",
    "operands*:any -> results*:any",
    read=_read_call,
    write=_write_call,
    properties="callee",
)
MEMREF_ALLOC = define("memref.alloc", "sizes*:index -> memref:memref", "(%sizes...) {} : T(memref)")
REINTERPRET = define(
    "memref.reinterpret_cast",
    "source:memref offsets*:index sizes*:index strides*:index -> result:memref",
    "%source to offset : M(offsets), sizes : M(sizes), strides : M(strides) {} "
    ": T(source) to T(result)",
    pure=True,
    renames="source",
)

_OTHERS = (
    define("memref.alloca", "sizes*:index -> memref:memref", "(%sizes...) {} : T(memref)"),
    define("memref.dealloc", "memref:memref", "%memref {} : T(memref)"),
    define(
        "memref.cast",
        "source:memref -> result:memref",
        "%source {} : T(source) to T(result)",
        renames="source",
    ),
)

DEFINITIONS = definitions_in(globals())
