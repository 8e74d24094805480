"""Executing what belongs to convolution tiles: making them, their parameters and sizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ptokit.base.diagnostics import fail
from ptokit.base.tiles import Violation
from ptokit.engines.steps import Frame, Handler
from ptokit.ir.attributes import IntAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects import Definition
from ptokit.ir.dialects.conv import (
    GET_DIM,
    GET_PARAM,
    SET_PARAMS,
    SET_SHAPE,
    given_fields,
    read_field,
    value_of,
)
from ptokit.ir.evaluate import round_to
from ptokit.ir.types import ScalarType
from ptokit.machine.objects import ConvObject

if TYPE_CHECKING:
    from ptokit.engines.interpreter import Interpreter


def _refuse(op: Op, found: Iterable[Violation]) -> None:
    for broken in found:
        raise fail(broken.code, f"{op.name}: {broken.rule}", got=broken.got, site=op.location)


def _set_params(run: Interpreter, op: Op, frame: Frame) -> None:
    tile: ConvObject = frame[op.operands[0]]
    parameters = dict(tile.parameters)
    for field, given in given_fields(op).items():
        value = frame[given] if isinstance(given, Value) else value_of(given)
        _refuse(op, field.parameter.violations(value))
        field.put(value, parameters)
    if op.results:  # tiles are values: the old one keeps what it had
        changed = ConvObject(tile.spec, tile.shape)
        run.machine.place(tile)
        changed.share(tile)
        frame[op.result] = tile = changed
    tile.parameters = parameters
    tile.refresh()


def _get_param(run: Interpreter, op: Op, frame: Frame) -> None:
    tile: ConvObject = frame[op.operands[0]]
    value, type_ = read_field(op).of(tile.parameters), op.result.type
    assert isinstance(type_, ScalarType)
    frame[op.result] = round_to(value, type_) if type_.is_float else value


def _set_shape(run: Interpreter, op: Op, frame: Frame) -> None:
    tile: ConvObject = frame[op.operands[0]]
    sizes = tuple(frame[v] for v in op.group("sizes"))
    _refuse(op, tile.spec.size_violations(sizes))
    tile.shape = tile.spec.in_force(sizes)
    tile.refresh()


def _get_dim(run: Interpreter, op: Op, frame: Frame) -> None:
    tile: ConvObject = frame[op.operands[0]]
    dim = op.attrs["dim"]
    assert isinstance(dim, IntAttr)
    frame[op.result] = tile.GetShape(dim.value)


HANDLERS: dict[Definition, Handler] = {
    SET_PARAMS: _set_params,
    GET_PARAM: _get_param,
    SET_SHAPE: _set_shape,
    GET_DIM: _get_dim,
}
