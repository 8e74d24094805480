"""Executing what belongs to convolution tiles: their parameters and sizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ptokit.base.convs import ConvField
from ptokit.base.diagnostics import fail
from ptokit.base.tiles import Violation
from ptokit.engines.steps import Frame, Handler
from ptokit.ir.arithmetic import round_to
from ptokit.ir.attributes import IntAttr
from ptokit.ir.core import Op
from ptokit.ir.dialects import Definition, conv
from ptokit.ir.types import ScalarType
from ptokit.machine.objects import ConvObject

if TYPE_CHECKING:
    from ptokit.engines.interpreter import Interpreter


def _refuse(op: Op, found: Iterable[Violation]) -> None:
    for broken in found:
        raise fail(broken.code, f"{op.name}: {broken.rule}", got=broken.got, site=op.location)


def _field(op: Op) -> ConvField:
    found = conv.field_of(op)
    if found is None:
        raise fail("bad-attribute", f"{op.name}: there is no such parameter", site=op.location)
    return found


def _set_param(run: Interpreter, op: Op, frame: Frame) -> None:
    tile: ConvObject = frame[op.operands[0]]
    field, value = _field(op), frame[op.operands[1]]
    _refuse(op, field.parameter.violations(value))
    field.put(value, tile.parameters)
    tile.refresh()


def _get_param(run: Interpreter, op: Op, frame: Frame) -> None:
    tile: ConvObject = frame[op.operands[0]]
    value, type_ = _field(op).of(tile.parameters), op.result.type
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
    conv.SET_PARAM: _set_param,
    conv.GET_PARAM: _get_param,
    conv.SET_SHAPE: _set_shape,
    conv.GET_DIM: _get_dim,
}
