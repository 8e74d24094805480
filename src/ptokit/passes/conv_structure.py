"""Rules of convolution tiles: their types, their parameters and their run-time sizes."""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.convs import CONV_FIELDS
from ptokit.base.diagnostics import Diagnostic
from ptokit.base.tiles import Violation
from ptokit.ir.attributes import IntAttr
from ptokit.ir.core import Op
from ptokit.ir.dialects import Definition
from ptokit.ir.dialects.conv import (
    GET_DIM,
    GET_PARAM,
    SET_PARAM,
    SET_SHAPE,
    field_of,
    field_type,
)
from ptokit.ir.dialects.memory import ALLOC
from ptokit.ir.types import ConvTileType, ScalarType
from ptokit.ir.typetext import suggestion
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


def check_param(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`set_conv_param`: a field that exists, with a value that its register holds."""
    tile, given, field = op.operands[0].type, op.operands[1], field_of(op)
    if field is None:
        yield _no_such_field(op)
        return
    wanted = field_type(field, tile)
    if isinstance(given.type, ScalarType) and given.type.is_float != wanted.is_float:
        what = "a float" if wanted.is_float else "an integer"
        got = {field.name: given.type}
        yield complaint(op, "type-mismatch", f"{field.name} is {what}", got)
    elif (value := scene.known.numbers.get(given)) is not None:
        yield from _broken(op, field.parameter.violations(value))
    if not isinstance(tile, ConvTileType) or bool(op.results) != tile.is_value:
        yield complaint(
            op,
            "conv-value",
            "a tile that is a value is returned with its new parameter; a buffer is changed",
            fix="%new = pto.set_conv_param %old ... exactly when the type is !pto.conv_tile<...>",
        )


def _no_such_field(op: Op) -> Diagnostic:
    name = str(op.attrs.get("field"))
    near = suggestion(name.strip('"'), CONV_FIELDS) or f"one of {', '.join(CONV_FIELDS)}"
    return complaint(op, "bad-attribute", f"there is no parameter {name}", fix=near)


def check_field(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`get_conv_param`: a field that exists, in its type."""
    field = field_of(op)
    if field is None:
        yield _no_such_field(op)
    elif op.result.type != (wanted := field_type(field, op.operands[0].type)):
        got = {"result": op.result.type}
        yield complaint(op, "type-mismatch", f"{field.name} is read as {wanted}", got)


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
    SET_PARAM: check_param,
    GET_PARAM: check_field,
    SET_SHAPE: check_shape,
    GET_DIM: check_dim,
}
