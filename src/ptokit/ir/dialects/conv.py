"""Convolution tiles: their image-to-column parameters and their run-time sizes.

The parameters belong to the tile and change while the program runs, as the setters of the pages do:

    pto.set_conv_param %fmap["fmap_h"], %h : !pto.conv_tile_buf<...>, index

At Level 1, where tiles are values, the operation returns the tile with its new parameter.
"""

from __future__ import annotations

from ptokit.base.convs import CONV_FIELDS, ConvField
from ptokit.ir.attributes import StringAttr
from ptokit.ir.core import Op
from ptokit.ir.dialects.definition import define, definitions_in
from ptokit.ir.types import F32, I1, INDEX, ConvTileType, ScalarType, Type

SET_PARAM = define(
    "pto.set_conv_param",
    "tile:conv value:num -> result?:conv",
    "%tile[@field], %value {} : T(tile), T(value)[? -> T(result)?]",
)
GET_PARAM = define(
    "pto.get_conv_param", "tile:conv -> value:num", "%tile[@field] {} : T(tile) -> T(value)"
)
SET_SHAPE = define("pto.set_conv_shape", "tile:conv sizes*:index", "%tile[%sizes...] {} : T(tile)")
GET_DIM = define(
    "pto.get_conv_dim", "tile:conv -> size:index", "%tile[@dim] {} : T(tile)", "dim:i64"
)
CHANGES = (SET_PARAM, SET_SHAPE)
READS = (GET_PARAM, GET_DIM)

DEFINITIONS = definitions_in(globals())


def field_of(op: Op) -> ConvField | None:
    """The field that an operation sets or reads; None: there is no such field."""
    name = op.attrs.get("field")
    return CONV_FIELDS.get(name.value) if isinstance(name, StringAttr) else None


def field_type(field: ConvField, tile: Type) -> ScalarType:
    """The type in which a field of a tile is read; numbers of a kernel are index and f32."""
    if field.kind == "num" and isinstance(tile, ConvTileType) and tile.spec.dtype.is_float:
        return F32
    return I1 if field.kind == "i1" else INDEX
