"""`arith`: constants, integer and float arithmetic, comparisons and casts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptokit.ir import arithmetic
from ptokit.ir.arithmetic import Arithmetic
from ptokit.ir.attributes import BoolAttr, DenseAttr, FloatAttr, IntAttr, dict_text
from ptokit.ir.core import Op
from ptokit.ir.dialects.definition import Definition, define, definitions_in
from ptokit.ir.format import Draft, finish, read
from ptokit.ir.reader import Head, Reader
from ptokit.ir.types import I1, I64
from ptokit.ir.typetext import suggestion

if TYPE_CHECKING:
    from ptokit.ir.printer import Printer


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
    names = predicates(definition)
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
    word = predicates(op)[number.value]
    return f" {word}, {lhs}, {rhs}{more} : {op.operands[0].type}"


def arithmetic_of(op: Op) -> Arithmetic | None:
    """What an operation computes, where that is a number made of others."""
    return _ARITHMETIC.get(op.name)


def operator_of(op: Op) -> str:
    """The operator of such an operation, whatever the type of its numbers; else nothing."""
    found = _ARITHMETIC.get(op.name)
    return "" if found is None else found.operator


def predicates(op: Op | Definition) -> tuple[str, ...]:
    """The predicates of a comparison, in the order of their numbers; of others none."""
    found = _ARITHMETIC.get(op.name)
    return () if found is None else found.predicates


# ---- the table ---------------------------------------------------------------------------------

CONSTANT = define(
    "arith.constant",
    "-> result:any",
    read=_read_constant,
    write=_write_constant,
    pure=True,
    properties="value",
    arithmetic=arithmetic.CONSTANT,
)
CMPI, CMPF = (
    define(
        f"arith.{name}",
        "lhs:T rhs:T -> result:i1",
        read=_read_compare,
        write=_write_compare,
        pure=True,
        properties="predicate",
        arithmetic=record,
    )
    for name, record in (
        ("cmpi", arithmetic.COMPARE_INTEGERS),
        ("cmpf", arithmetic.COMPARE_FLOATS),
    )
)
SELECT = define(
    "arith.select",
    "condition:i1 true_value:T false_value:T -> result:T",
    "%condition, %true_value, %false_value {} : T(result)",
    pure=True,
    arithmetic=arithmetic.SELECT,
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


def _two(name: str, meaning: Arithmetic, high: str = "") -> Definition:
    """An operation on two numbers of one type; some have a second result."""
    return define(
        f"arith.{name}",
        f"lhs:T rhs:T -> low:T high:{high}" if high else "lhs:T rhs:T -> result:T",
        f"%lhs, %rhs {{}} : T({'lhs' if high else 'result'})",
        read=_read_flagged if name in _FLAGGED else read,
        pure=True,
        arithmetic=meaning,
    )


def _one(name: str, meaning: Arithmetic, kind: str = "any") -> Definition:
    """An operation that makes a number of one of another type."""
    return define(
        name,
        f"in:{kind} -> out:{kind}",
        "%in {} : T(in) to T(out)",
        pure=True,
        arithmetic=meaning,
    )


_OTHERS = (
    define(
        "arith.negf",
        "operand:T -> result:T",
        "%operand {} : T(result)",
        pure=True,
        arithmetic=arithmetic.NEGATE,
    ),
    *(_two(name, each) for name, each in arithmetic.INTEGERS.items()),
    *(_two(name, each) for name, each in arithmetic.FLOATS.items()),
    *(_one(f"arith.{name}", each) for name, each in arithmetic.CASTS.items()),
    _one("builtin.unrealized_conversion_cast", arithmetic.SAME_BITS, "int"),
    _two("addui_extended", arithmetic.SUM_AND_CARRY, high="i1"),
    *(_two(name, each, high="T") for name, each in arithmetic.PRODUCTS.items()),
)

DEFINITIONS = definitions_in(globals())
_ARITHMETIC = {each.name: each.arithmetic for each in DEFINITIONS if each.arithmetic is not None}
