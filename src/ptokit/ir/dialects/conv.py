"""Convolution tiles: their image-to-column parameters and their run-time sizes.

The parameters belong to the tile and change while the program runs, as the setters of the pages do:

    pto.set_conv_params %fmap fmap_h = 16, fmap_w = %w, pad_left = 1 : !pto.conv_tile_buf<...>

A number stands for itself and is an attribute; a value known only at run time is an operand. At
Level 1, where tiles are values, the operation returns the tile with its new parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptokit.base.convs import CONV_FIELDS, ConvField
from ptokit.ir.attributes import (
    Attribute,
    BoolAttr,
    FloatAttr,
    IntAttr,
    StringAttr,
    float_of_bits,
    float_text,
)
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects.definition import Definition, define, definitions_in
from ptokit.ir.format import Draft, finish
from ptokit.ir.reader import Head, Reader
from ptokit.ir.types import F32, I1, INDEX, ConvTileType, ScalarType, Type
from ptokit.ir.typetext import suggestion

if TYPE_CHECKING:
    from ptokit.ir.printer import Printer

_F64 = ScalarType("f64")


def field_type(field: ConvField, tile: Type) -> ScalarType:
    """The type in which a field of a tile is read; numbers of a kernel are index and f32."""
    if field.kind == "num" and isinstance(tile, ConvTileType) and tile.spec.dtype.is_float:
        return F32
    return I1 if field.kind == "i1" else INDEX


def field_literal(field: ConvField, tile: Type, value: Any) -> Attribute:
    """The attribute that gives a field a known value. Pad values keep all their digits: the
    instruction that uses one rounds it."""
    type_ = field_type(field, tile)
    if type_ == F32:
        return FloatAttr(float(value), _F64)
    return BoolAttr(bool(value)) if type_ == I1 else IntAttr(int(value), INDEX)


def given_fields(op: Op) -> dict[ConvField, Attribute | Value]:
    """What a `set_conv_params` says, in the order of the table."""
    said: dict[str, Attribute | Value] = {**op.attrs}
    said |= {label: v for v, label in zip(op.operands, op.labels, strict=True)}
    return {field: said[name] for name, field in CONV_FIELDS.items() if name in said}


def read_field(op: Op) -> ConvField:
    """The field that a `get_conv_param` asks for."""
    name = op.attrs["field"]
    assert isinstance(name, StringAttr)
    return CONV_FIELDS[name.value]


def value_of(attr: Attribute) -> Any:
    """The number an attribute stands for."""
    assert isinstance(attr, IntAttr | FloatAttr | BoolAttr)
    return attr.value


def unknown_field(name: str) -> str:
    """The advice for a field that does not exist."""
    return suggestion(name, CONV_FIELDS) or f"one of {', '.join(CONV_FIELDS)}"


# ---- text ----------------------------------------------------------------------------------------


def _read_params(reader: Reader, head: Head, definition: Definition) -> Op:
    draft = Draft()
    draft.add("tile", reader.value(), reader.at - 1)
    tile = draft.operands[0].type
    while reader.kind == "word":
        _read_field(reader, head, draft, tile)
        if not reader.accept(","):
            break
    reader.expect(":")
    reader.typed(draft.operands[0], draft.tokens[0])
    draft.types["result"] = [tile] if head.results else []
    return finish(reader, head, definition, draft)


def _read_field(reader: Reader, head: Head, draft: Draft, tile: Type) -> None:
    place = reader.place()
    name = reader.take("word", "a parameter")
    field = CONV_FIELDS.get(name)
    if field is None:
        text = f"{head.name} has no parameter {name}"
        raise reader.fail(text, "bad-attribute", place, unknown_field(name))
    if name in draft.labels or name in draft.attrs:
        reader.note("bad-attribute", f"{name} is given twice", place)
    reader.expect("=")
    if reader.kind == "value":
        draft.add(name, reader.value(), reader.at - 1)
        if field.kind == "num":
            reader.expect(":")
            reader.typed(draft.operands[-1], draft.tokens[-1])
        return
    draft.attrs[name] = _read_literal(reader, field, tile)


def _read_literal(reader: Reader, field: ConvField, tile: Type) -> Attribute:
    """A number without its type: the field tells it, and a colon begins the type of the tile."""
    if field.kind == "i1":
        word = reader.take("word", "true or false")
        if word not in ("true", "false"):
            raise reader.fail("expected true or false", location=reader.place(reader.at - 1))
        return BoolAttr(word == "true")
    if field_type(field, tile) != F32:
        return IntAttr(reader.integer(), INDEX)
    text = reader.take("number", "a number")
    return FloatAttr(float_of_bits(int(text, 16), _F64) if "x" in text else float(text), _F64)


def _write_params(printer: Printer, op: Op) -> str:
    parts: list[str] = []
    for field, given in given_fields(op).items():
        if isinstance(given, Value):
            typed = f" : {given.type}" if field.kind == "num" else ""
            parts.append(f"{field.name} = {printer.name(given)}{typed}")
        else:
            parts.append(f"{field.name} = {_literal_text(given)}")
    tile = op.operands[0]
    return f" {printer.name(tile)} {', '.join(parts)} : {tile.type}"


def _literal_text(attr: Attribute) -> str:
    if isinstance(attr, FloatAttr):
        return float_text(attr.value, attr.type)
    return str(attr.value) if isinstance(attr, IntAttr) else str(attr)


SET_PARAMS = define(
    "pto.set_conv_params",
    f"tile:conv {' '.join(f'{f.name}?:{f.kind}' for f in CONV_FIELDS.values())} -> result:conv",
    read=_read_params,
    write=_write_params,
)
GET_PARAM = define(
    "pto.get_conv_param", "tile:conv -> value:num", "%tile[@field] {} : T(tile) -> T(value)"
)
SET_SHAPE = define("pto.set_conv_shape", "tile:conv sizes*:index", "%tile[%sizes...] {} : T(tile)")
GET_DIM = define(
    "pto.get_conv_dim", "tile:conv -> size:index", "%tile[@dim] {} : T(tile)", "dim:i64"
)
CHANGES = (SET_PARAMS, SET_SHAPE)
READS = (GET_PARAM, GET_DIM)

DEFINITIONS = definitions_in(globals())
