"""Convolution tiles: their image-to-column parameters and their run-time sizes.

The parameters belong to the tile and change while the program runs, as the setters of the pages do:

    pto.set_conv_params %fmap fmap_h = 16, fmap_w = %w, pad_left = 1 : !pto.conv_tile_buf<...>

A number stands for itself and is an attribute; a value known only at run time is an operand. At
Level 1, where tiles are values, the operation returns the tile with its new parameters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptokit.base.tensors import CONV_PARAMETERS
from ptokit.ir.attributes import (
    Attribute,
    BoolAttr,
    FloatAttr,
    IntAttr,
    float_of_bits,
    float_text,
)
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects.definition import Definition, define
from ptokit.ir.format import Draft, finish
from ptokit.ir.reader import Head, Reader
from ptokit.ir.types import F32, I1, INDEX, ConvTileType, ScalarType, Type
from ptokit.ir.typetext import suggestion

if TYPE_CHECKING:
    from ptokit.ir.printer import Printer

SET_PARAMS, GET_PARAM = "pto.set_conv_params", "pto.get_conv_param"
SET_SHAPE, GET_DIM = "pto.set_conv_shape", "pto.get_conv_dim"
_SIDES = ("left", "right", "top", "bottom")
_F64 = ScalarType("f64")


@dataclass(frozen=True)
class Field:
    """A parameter as the text names it; the padding of a tile is four of them."""

    name: str
    parameter: str  # its key in CONV_PARAMETERS
    index: int | None = None  # the entry, where the parameter is a list

    @property
    def kind(self) -> str:
        """What its operand may be, in the words of signatures."""
        first, bits = CONV_PARAMETERS[self.parameter]
        return "index" if bits else "i1" if isinstance(first, bool) else "num"

    def type_for(self, tile: Type) -> ScalarType:
        """The type in which the field of a tile is read; numbers of a kernel are index and f32."""
        if self.kind == "num" and isinstance(tile, ConvTileType) and tile.spec.dtype.is_float:
            return F32
        return I1 if self.kind == "i1" else INDEX

    def literal(self, tile: Type, value: Any) -> Attribute:
        """The attribute that gives a field a known value. Pad values keep all their digits: the
        instruction that uses one rounds it."""
        if self.kind == "i1":
            return BoolAttr(bool(value))
        if self.kind == "num" and isinstance(tile, ConvTileType) and tile.spec.dtype.is_float:
            return FloatAttr(float(value), _F64)
        return IntAttr(int(value), INDEX)


def _fields() -> dict[str, Field]:
    found: list[Field] = []
    for parameter, (first, _) in CONV_PARAMETERS.items():
        if isinstance(first, tuple):
            stem = parameter.removesuffix("List")
            found += [Field(f"{stem}_{side}", parameter, n) for n, side in enumerate(_SIDES)]
        else:
            found.append(Field(re.sub(r"(?=[A-Z])", "_", parameter).lower(), parameter))
    return {field.name: field for field in found}


FIELDS = _fields()
BY_PARAMETER = {(f.parameter, f.index): f for f in FIELDS.values()}


def given_fields(op: Op) -> dict[str, Attribute | Value]:
    """What a `set_conv_params` says, in the order of the table."""
    said: dict[str, Attribute | Value] = {k: v for k, v in op.attrs.items() if k in FIELDS}
    said |= {label: v for v, label in zip(op.operands, op.labels, strict=True) if label in FIELDS}
    return {name: said[name] for name in FIELDS if name in said}


def updated(parameters: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a tile after fields have taken new values."""
    result = dict(parameters)
    for name, value in values.items():
        field = FIELDS[name]
        if field.index is None:
            result[field.parameter] = value
        else:
            entries = list(result[field.parameter])
            entries[field.index] = value
            result[field.parameter] = tuple(entries)
    return result


def value_of(attr: Attribute) -> Any:
    """The number an attribute stands for."""
    assert isinstance(attr, IntAttr | FloatAttr | BoolAttr)
    return attr.value


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
    field = FIELDS.get(name)
    if field is None:
        listed = ", ".join(FIELDS)
        fix = suggestion(name, FIELDS) or f"one of {listed}"
        raise reader.fail(f"{head.name} has no parameter {name}", "bad-attribute", place, fix)
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


def _read_literal(reader: Reader, field: Field, tile: Type) -> Attribute:
    """A number without its type: the field tells it, and a colon begins the type of the tile."""
    if field.kind == "i1":
        word = reader.take("word", "true or false")
        if word not in ("true", "false"):
            raise reader.fail("expected true or false", location=reader.place(reader.at - 1))
        return BoolAttr(word == "true")
    if not isinstance(field.literal(tile, 0), FloatAttr):
        return IntAttr(reader.integer(), INDEX)
    text = reader.take("number", "a number")
    return FloatAttr(float_of_bits(int(text, 16), _F64) if "x" in text else float(text), _F64)


def _write_params(printer: Printer, op: Op) -> str:
    parts: list[str] = []
    for name, given in given_fields(op).items():
        if isinstance(given, Value):
            typed = f" : {given.type}" if FIELDS[name].kind == "num" else ""
            parts.append(f"{name} = {printer.name(given)}{typed}")
        else:
            parts.append(f"{name} = {_literal_text(given)}")
    tile = op.operands[0]
    return f" {printer.name(tile)} {', '.join(parts)} : {tile.type}"


def _literal_text(attr: Attribute) -> str:
    if isinstance(attr, FloatAttr):
        return float_text(attr.value, attr.type)
    return str(attr.value) if isinstance(attr, IntAttr) else str(attr)


DEFINITIONS = [
    define(
        SET_PARAMS,
        "tile:conv " + " ".join(f"{f.name}?:{f.kind}" for f in FIELDS.values()) + " -> result:conv",
        read=_read_params,
        write=_write_params,
    ),
    define(
        GET_PARAM,
        "tile:conv -> value:num",
        "%tile[@field] {} : T(tile) -> T(value)",
    ),
    define(
        SET_SHAPE,
        "tile:conv sizes*:index",
        "%tile[%sizes...] {} : T(tile)",
    ),
    define(
        GET_DIM,
        "tile:conv -> size:index",
        "%tile[@dim] {} : T(tile)",
        "dim:i64",
    ),
]
