"""`arith`: constants, integer and float arithmetic, comparisons and casts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptokit.ir.attributes import BoolAttr, DenseAttr, FloatAttr, IntAttr, dict_text
from ptokit.ir.core import Op
from ptokit.ir.dialects.definition import Definition, define, definitions_in
from ptokit.ir.format import Draft, finish, read
from ptokit.ir.reader import Head, Reader
from ptokit.ir.types import I1, I64, Type
from ptokit.ir.typetext import suggestion

if TYPE_CHECKING:
    from ptokit.ir.printer import Printer

INT_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)


# ---- constants ---------------------------------------------------------------------------------


def _read_constant(reader: Reader, head: Head, definition: Definition) -> Op:
    draft = Draft()
    if reader.sees("{"):
        draft.attrs.update(reader.attr_dict())
    where = reader.place()
    value = reader.attribute()
    if isinstance(value, BoolAttr):
        draft.types["result"] = [I1]
    elif isinstance(value, IntAttr | FloatAttr | DenseAttr):
        draft.types["result"] = [value.type]
    else:
        raise reader.fail("a constant is a number, true, false or dense<...>", location=where)
    draft.attrs["value"] = value
    return finish(reader, head, definition, draft)


def _write_constant(printer: Printer, op: Op) -> str:
    rest = {k: v for k, v in op.attrs.items() if k != "value"}
    value = op.attrs["value"]
    # An i64 is the one type an integer attribute does not spell out by itself.
    text = f"{value} : i64" if isinstance(value, IntAttr) and value.type == I64 else str(value)
    return f" {dict_text(rest)} {text}" if rest else f" {text}"


# ---- comparisons -------------------------------------------------------------------------------


def _read_compare(reader: Reader, head: Head, definition: Definition) -> Op:
    names = predicates(definition.name)
    draft = Draft()
    where = reader.place()
    word = reader.string() if reader.kind == "string" else reader.take("word", "a predicate")
    if word not in names:
        fix = suggestion(word, names) or f"one of {', '.join(names)}"
        reader.note("bad-attribute", f"{head.name} has no predicate {word!r}", where, fix)
        word = names[0]
    draft.attrs["predicate"] = IntAttr(names.index(word), I64)
    for label in ("lhs", "rhs"):
        reader.expect(",")
        draft.add(label, reader.value(), reader.at - 1)
    if reader.accept("fastmath"):
        reader.attribute()
    if reader.sees("{"):
        draft.attrs.update(reader.attr_dict())
    reader.expect(":")
    reader.typed(draft.operands[0], draft.tokens[0])
    return finish(reader, head, definition, draft)


def _write_compare(printer: Printer, op: Op) -> str:
    number = op.attrs["predicate"]
    assert isinstance(number, IntAttr)
    rest = {k: v for k, v in op.attrs.items() if k != "predicate"}
    lhs, rhs = (printer.name(v) for v in op.operands)
    more = f" {dict_text(rest)}" if rest else ""
    return f" {predicates(op.name)[number.value]}, {lhs}, {rhs}{more} : {op.operands[0].type}"


def predicates(name: str) -> tuple[str, ...]:
    """The predicates of a comparison, in the order of their numbers."""
    return INT_PREDICATES if name == "arith.cmpi" else FLOAT_PREDICATES


# ---- the table ---------------------------------------------------------------------------------

_BINARY_INT = """
addi subi muli divsi divui remsi remui ceildivsi ceildivui floordivsi andi ori xori shli shrsi
shrui maxsi minsi maxui minui
"""
_BINARY_FLOAT = "addf subf mulf divf remf maximumf minimumf maxnumf minnumf"
_CASTS = """
index_cast index_castui bitcast extf truncf extsi extui trunci sitofp uitofp fptosi fptoui
"""
_EXTENDED = "addui_extended mulsi_extended mului_extended"


def _overflow(reader: Reader, head: Head, draft: Draft) -> Type:
    return I1 if head.name.startswith("arith.addui") else draft.operands[0].type


CONSTANT = define(
    "arith.constant",
    "-> result:any",
    read=_read_constant,
    write=_write_constant,
    pure=True,
    properties="value",
)
CMPI = define(
    "arith.cmpi",
    "lhs:T rhs:T -> result:i1",
    read=_read_compare,
    write=_write_compare,
    pure=True,
    properties="predicate",
)
CMPF = define(
    "arith.cmpf",
    "lhs:T rhs:T -> result:i1",
    read=_read_compare,
    write=_write_compare,
    pure=True,
    properties="predicate",
)
SELECT = define(
    "arith.select",
    "condition:i1 true_value:T false_value:T -> result:T",
    "%condition, %true_value, %false_value {} : T(result)",
    pure=True,
)


def _read_flagged(reader: Reader, head: Head, definition: Definition) -> Op:
    """`%a, %b overflow<nsw> : T`: what is promised of overflows changes nothing of the result."""
    draft = Draft()
    for label in ("lhs", "rhs"):
        if draft.operands:
            reader.expect(",")
        draft.add(label, reader.value(), reader.at - 1)
    if reader.accept("overflow"):
        reader.expect("<")
        while not reader.accept(">"):
            reader.accept(",")
            reader.take("word", "nsw or nuw")
    if reader.sees("{"):
        draft.attrs.update(reader.attr_dict())
    reader.expect(":")
    draft.types["result"] = [reader.type(draft.operands[0].type)]
    return finish(reader, head, definition, draft)


_FLAGGED = ["addi", "subi", "muli", "shli"]
_OTHERS = (
    define("arith.negf", "operand:T -> result:T", "%operand {} : T(result)", pure=True),
    *(
        define(
            f"arith.{n}",
            "lhs:T rhs:T -> result:T",
            "%lhs, %rhs {} : T(result)",
            read=_read_flagged if n in _FLAGGED else read,
            pure=True,
        )
        for n in (_BINARY_INT + _BINARY_FLOAT).split()
    ),
    *(
        define(f"arith.{n}", "in:any -> out:any", "%in {} : T(in) to T(out)", pure=True)
        for n in _CASTS.split()
    ),
    # Other signedness, same bits: what conversions between dialects leave of integers.
    define(
        "builtin.unrealized_conversion_cast",
        "in:int -> out:int",
        "%in {} : T(in) to T(out)",
        pure=True,
    ),
    *(
        define(
            f"arith.{n}",
            "lhs:T rhs:T -> low:T high:any",
            "%lhs, %rhs {} : T(lhs)",
            infer=_overflow,
            pure=True,
        )
        for n in _EXTENDED.split()
    ),
)

DEFINITIONS = definitions_in(globals())
NAMES = frozenset(definition.name for definition in DEFINITIONS)

__all__ = ["DEFINITIONS", "predicates"]
