"""Lower one kernel for given arguments: arrays become pointers, numbers parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

from ptokit.base.diagnostics import unrepeated
from ptokit.base.dtypes import dtype
from ptokit.base.location import Location
from ptokit.frontend.arguments import is_parameter, leaves_of
from ptokit.frontend.lowering.calls import apply
from ptokit.frontend.lowering.convs import ConvSymbol
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.numbers import NeedsConstant, Number
from ptokit.frontend.lowering.statements import KernelLowering
from ptokit.frontend.lowering.symbols import ArraySymbol, TileSymbol
from ptokit.frontend.lowering.tidy import tidy
from ptokit.frontend.lowering.tracer import Tracer
from ptokit.frontend.session import running
from ptokit.frontend.trees import is_record, taken_apart
from ptokit.ir.attributes import Attribute, EnumAttr, StringAttr, UnitAttr
from ptokit.ir.core import Block, Function, Module, Value
from ptokit.ir.types import (
    F32,
    INDEX,
    ConvTileType,
    PtrType,
    ScalarType,
    TileBufType,
    Type,
)
from ptokit.isa.targets import Target
from ptokit.machine.gm import as_array
from ptokit.machine.objects import ConvObject, TileObject


def lower(
    function: FunctionType,
    arguments: Mapping[str, Any],
    target: Target,
    mode: str,
    core: str = "single",
) -> Module:
    """Return a module with one entry function, specialised to the shapes of the arrays."""
    here = _where(function)
    body = Block()
    attrs: dict[str, Attribute] = {"pto.entry": UnitAttr()}
    if core in ("cube", "vector"):
        attrs["pto.kernel_kind"] = EnumAttr("kernel_kind", core)
    entry = Function(function.__name__, body, (), attrs, location=here)
    emitter = Emitter(entry)
    emitter.location = here
    positional: list[Any] = []
    constants: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        given = arguments[name]
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            constants[name] = given
            continue
        taken = [
            _parameter(emitter, body, n, leaf, here) if is_parameter(leaf) else leaf
            for n, leaf in leaves_of(name, given)
        ]
        positional.append(taken_apart(given, is_record).build(taken))
    interpreter = KernelLowering(emitter, apply)
    interpreter.foreign += [*positional, *constants.values()]
    try:
        with running(Tracer(emitter, target, mode)):
            interpreter.run(function, positional, constants)
    except NeedsConstant as needs:
        raise needs.error from None
    emitter.location = here
    emitter.emit("func.return")
    tidy(body)
    attributes: dict[str, Attribute] = {"pto.target_arch": StringAttr(target.name)}
    remarks = tuple(unrepeated(emitter.remarks))
    return Module([entry], attributes, here, remarks, emitter.names, emitter.calls_out)


def _parameter(emitter: Emitter, body: Block, name: str, given: Any, here: Location) -> Any:
    """The symbol of a parameter: a number, an array, or a tile that the caller has made."""

    def declare(type_: Type) -> Value:
        body.args.append(Value(name, type_, body, here))
        return body.args[-1]

    if isinstance(given, TileObject):
        return TileSymbol(emitter, given.spec, declare(TileBufType(given.spec)))
    if isinstance(given, ConvObject):
        return ConvSymbol(emitter, given.spec, declare(ConvTileType(given.spec)))
    if isinstance(given, bool | int | np.integer):
        return Number(emitter, declare(INDEX))
    if isinstance(given, float | np.floating):
        return Number(emitter, declare(F32))
    array = as_array(given)
    kind = dtype(array.dtype)
    value = declare(PtrType(ScalarType(kind.mlir)))
    strides = tuple(s // array.itemsize for s in array.strides)
    return ArraySymbol(emitter, value, kind, array.shape, strides)


def _where(function: FunctionType) -> Location:
    code = function.__code__
    return Location(code.co_filename, code.co_firstlineno)
