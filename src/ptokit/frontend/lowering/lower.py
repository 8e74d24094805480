"""Lower one kernel for given arguments: arrays become pointers, numbers parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

from ptokit.base.dtypes import dtype
from ptokit.base.location import Location
from ptokit.frontend.lowering.calls import Tracer, apply
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.interpreter import Interpreter
from ptokit.frontend.lowering.symbols import NeedsConstant, Number, PointerSymbol
from ptokit.frontend.session import running
from ptokit.ir.attributes import Attribute, EnumAttr, StringAttr, UnitAttr
from ptokit.ir.core import Block, Function, Module, Value
from ptokit.ir.types import F32, INDEX, PtrType, ScalarType, Type
from ptokit.isa.targets import Target
from ptokit.machine.objects import as_array


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
        else:
            positional.append(_parameter(emitter, body, name, given, here))
    interpreter = Interpreter(emitter, apply)
    try:
        with running(Tracer(emitter, target, mode)):
            interpreter.run(function, positional, constants)
    except NeedsConstant as needs:
        raise needs.error from None
    emitter.location = here
    emitter.emit("func.return")
    return Module([entry], {"pto.target_arch": StringAttr(target.name)}, here)


def _parameter(emitter: Emitter, body: Block, name: str, given: Any, here: Location) -> Any:
    type_: Type
    if isinstance(given, bool | int | np.integer):
        type_ = INDEX
    elif isinstance(given, float | np.floating):
        type_ = F32
    else:
        array = as_array(given)
        kind = dtype(array.dtype)
        type_ = PtrType(ScalarType(kind.mlir))
        value = Value(name, type_, body, here)
        body.args.append(value)
        strides = tuple(s // array.itemsize for s in array.strides)
        return PointerSymbol(emitter, value, kind, array.shape, strides)
    value = Value(name, type_, body, here)
    body.args.append(value)
    return Number(emitter, value)


def _where(function: FunctionType) -> Location:
    code = function.__code__
    return Location(code.co_filename, code.co_firstlineno)
