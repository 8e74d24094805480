"""Convolution tiles in C++: their type, and the methods that their operations become."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptokit.base.convs import ConvField
from ptokit.base.tensors import ConvSpec
from ptokit.emit.expressions import literal
from ptokit.ir.attributes import Attribute, IntAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects.conv import (
    GET_PARAM,
    SET_PARAMS,
    SET_SHAPE,
    given_fields,
    read_field,
)
from ptokit.ir.types import ConvTileType

Use = Callable[[Value], str]


def conv_type(spec: ConvSpec) -> str:
    """The C++ type of a convolution tile."""
    shape = f"ConvTileShape<{', '.join(map(str, spec.shape))}>"
    place = f"TileType::{spec.loc.name}, {spec.dtype.cpp}, {spec.buffer_size}"
    return f"ConvTile<{place}, Layout::{spec.layout.name}, {shape}>"


def conv_calls(op: Op, use: Use) -> Iterator[str]:
    """The calls an operation on a convolution tile becomes; one, when it returns a number."""
    tile, type_ = use(op.operands[0]), op.operands[0].type
    assert isinstance(type_, ConvTileType)
    if SET_PARAMS.matches(op):
        for field, given in given_fields(op).items():
            yield f"{tile}.Set{_arguments(field, _number(given, type_, use))}"
    elif GET_PARAM.matches(op):
        yield f"{tile}.Get{_arguments(read_field(op))}"
    elif SET_SHAPE.matches(op):
        # The method takes nothing but int64_t: a plain number would be an int.
        sizes = ", ".join(f"static_cast<int64_t>({use(v)})" for v in op.group("sizes"))
        yield f"{tile}.SetDynamicShape({sizes})"
    else:
        dim = op.attrs["dim"]
        assert isinstance(dim, IntAttr)
        yield f"{tile}.GetShape({dim.value})"


def _arguments(field: ConvField, *values: str) -> str:
    """An accessor behind its verb, and what it takes: lists are changed entry by entry."""
    name = field.parameter.name
    given = values if field.index is None else (str(field.index), *values)
    return f"{name[0].upper()}{name[1:]}({', '.join(given)})"


def _number(given: Attribute | Value, tile: ConvTileType, use: Use) -> str:
    if isinstance(given, Value):
        text = use(given)
        return f"static_cast<{tile.spec.dtype.cpp}>({text})" if _is_element(given) else text
    if isinstance(given, IntAttr):
        return str(given.value)
    text = literal(given)
    return text if text in ("true", "false") else f"static_cast<{tile.spec.dtype.cpp}>({text})"


def _is_element(value: Value) -> bool:
    return str(value.type) not in ("index", "i1")
