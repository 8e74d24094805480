"""Convolution tiles in C++: their type, and the methods that their operations become."""

from __future__ import annotations

from collections.abc import Callable

from ptokit.base.tensors import ConvSpec
from ptokit.ir.attributes import IntAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects.conv import SET_PARAM, SET_SHAPE, field_of
from ptokit.ir.types import ConvTileType


def conv_type(spec: ConvSpec) -> str:
    """The C++ type of a convolution tile."""
    shape = f"ConvTileShape<{', '.join(map(str, spec.shape))}>"
    place = f"TileType::{spec.loc.name}, {spec.dtype.cpp}, {spec.buffer_size}"
    return f"ConvTile<{place}, Layout::{spec.layout.name}, {shape}>"


def conv_call(op: Op, use: Callable[[Value], str]) -> str:
    """The call that an operation on a convolution tile becomes."""
    tile, type_, field = use(op.operands[0]), op.operands[0].type, field_of(op)
    assert isinstance(type_, ConvTileType)
    if field is not None:
        name = field.parameter.name
        given = [] if field.index is None else [str(field.index)]  # lists change entry by entry
        if SET_PARAM.matches(op):
            value = use(op.operands[1])
            is_element = str(op.operands[1].type) not in ("index", "i1")
            given.append(f"static_cast<{type_.spec.dtype.cpp}>({value})" if is_element else value)
        verb = "Set" if SET_PARAM.matches(op) else "Get"
        return f"{tile}.{verb}{name[0].upper()}{name[1:]}({', '.join(given)})"
    if SET_SHAPE.matches(op):
        # The method takes nothing but int64_t: a plain number would be an int.
        sizes = ", ".join(f"static_cast<int64_t>({use(v)})" for v in op.group("sizes"))
        return f"{tile}.SetDynamicShape({sizes})"
    dim = op.attrs["dim"]
    assert isinstance(dim, IntAttr)
    return f"{tile}.GetShape({dim.value})"
