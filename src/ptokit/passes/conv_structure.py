"""Rules of convolution tiles: their types, their parameters and their run-time sizes."""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.convs import CONV_FIELDS
from ptokit.base.diagnostics import Diagnostic
from ptokit.base.tiles import Violation
from ptokit.ir.attributes import IntAttr, StringAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects import Definition
from ptokit.ir.dialects.conv import (
    GET_DIM,
    GET_PARAM,
    SET_PARAMS,
    SET_SHAPE,
    field_literal,
    field_type,
    given_fields,
    unknown_field,
    value_of,
)
from ptokit.ir.dialects.memory import ALLOC
from ptokit.ir.types import ConvTileType, ScalarType
from ptokit.isa.facts import ConvFacts
from ptokit.passes.structure import Check, Scene, check_address, complaint, tile_type


def _broken(op: Op, found: Iterator[Violation]) -> Iterator[Diagnostic]:
    for violation in found:
        yield complaint(op, violation.code, violation.rule, dict(violation.got))


def check_alloc(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`alloc_tile` of a convolution tile: type and address; valid sizes are those of tiles."""
    type_ = op.result.type
    if not isinstance(type_, ConvTileType):
        return
    yield from tile_type(op, type_.spec, scene)
    for label in ("valid_row", "valid_col"):
        if op.operand(label) is not None:
            yield complaint(
                op,
                "valid-operand",
                f"a convolution tile takes no {label}",
                fix="its sizes are those of its shape; run-time ones are set by pto.set_conv_shape",
            )
    yield from check_address(op, ConvFacts(type_.spec), scene)


def check_params(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`set_conv_params`: fields that exist, given once, with values their registers hold."""
    tile = op.operands[0].type
    for key in op.attrs:
        if key not in CONV_FIELDS:
            yield _no_such_field(op, key)
        elif key in op.labels:
            yield complaint(op, "bad-attribute", f"{key} is given once: as a number or a value")
    for field, given in given_fields(op).items():
        if isinstance(given, Value):
            value = scene.known.numbers.get(given)
            wanted = field_type(field, tile)
            if isinstance(given.type, ScalarType) and given.type.is_float != wanted.is_float:
                what = "a float" if wanted.is_float else "an integer"
                got = {field.name: given.type}
                yield complaint(op, "type-mismatch", f"{field.name} is {what}", got)
        elif type(given) is not type(field_literal(field, tile, 0)):
            yield complaint(op, "bad-attribute", f"{field.name} cannot be {given}")
            continue
        else:
            value = value_of(given)
        if value is not None:
            yield from _broken(op, field.parameter.violations(value))
    if not isinstance(tile, ConvTileType) or bool(op.results) != tile.is_value:
        yield complaint(
            op,
            "conv-value",
            "a tile that is a value is returned with its new parameters; a buffer is changed",
            fix="%new = pto.set_conv_params %old ... exactly when the type is !pto.conv_tile<...>",
        )


def _no_such_field(op: Op, name: str) -> Diagnostic:
    return complaint(
        op, "bad-attribute", f"there is no parameter {name}", fix=unknown_field(name.strip('"'))
    )


def check_field(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`get_conv_param`: a field that exists, in its type."""
    name = op.attrs.get("field")
    if not isinstance(name, StringAttr) or name.value not in CONV_FIELDS:
        yield _no_such_field(op, str(name))
        return
    wanted = field_type(CONV_FIELDS[name.value], op.operands[0].type)
    if op.result.type != wanted:
        got = {"result": op.result.type}
        yield complaint(op, "type-mismatch", f"{name.value} is read as {wanted}", got)


def check_shape(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`set_conv_shape`: one size per run-time dimension, and room for them."""
    type_ = op.operands[0].type
    if not isinstance(type_, ConvTileType):
        return
    numbers = [scene.known.number(v) for v in op.group("sizes")]
    known = tuple(n for n in numbers if n is not None)
    if len(numbers) != type_.spec.dynamic:
        yield from _broken(op, type_.spec.size_violations((1,) * len(numbers)))
    elif len(known) == len(numbers):
        yield from _broken(op, type_.spec.size_violations(known))
    if type_.is_value:
        yield complaint(op, "conv-value", "the sizes of a tile that is a value do not change")


def check_dim(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`get_conv_dim`: a dimension the tile has."""
    type_, dim = op.operands[0].type, op.attrs.get("dim")
    if not isinstance(type_, ConvTileType):
        return
    rank = len(type_.spec.shape)
    if not isinstance(dim, IntAttr) or not 0 <= dim.value < rank:
        yield complaint(op, "conv-rank", f"the tile has {rank} dimensions", {"dimension": dim})


CONV_CHECKS: dict[Definition, Check] = {
    ALLOC: check_alloc,
    SET_PARAMS: check_params,
    GET_PARAM: check_field,
    SET_SHAPE: check_shape,
    GET_DIM: check_dim,
}
