"""`pypto.language`: types, scopes and loops, and the operations of `tiles.py`."""

from __future__ import annotations

import ast
import builtins
import enum
import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from ptokit.base import dtypes
from ptokit.base.diagnostics import ProgramError
from ptokit.base.entry import public
from ptokit.base.enums import AtomicType, PadValue
from ptokit.compat.pypto import distributed, programs, specs, texts, tiles
from ptokit.compat.pypto.annotations import Annotation
from ptokit.compat.pypto.dispatch import Blocks, Settings
from ptokit.frontend.events import get_block_idx, get_block_num
from ptokit.frontend.lowering.calls import HANDLERS
from ptokit.values.value import Value, combine

# ---- types: read by PyPTO's compiler, and by people ----------------------------------------------


class Anything:
    """A choice that only matters to PyPTO's compiler: `pl.Level.CORE_GROUP`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class Index(enum.Enum):
    """Types of numbers that no tile holds."""

    INDEX = enum.auto()
    BOOL = enum.auto()
    TASK_ID = enum.auto()


ELEMENTS = {
    "FP32": dtypes.f32, "FP16": dtypes.f16, "BF16": dtypes.bf16, "FP4": dtypes.f4e2m1x2,
    "FP8E4M3FN": dtypes.f8e4m3, "FP8E5M2": dtypes.f8e5m2, "FP8E8M0": dtypes.f8e8m0,
    "HF8": dtypes.hif8, "HF4": dtypes.hif4x2, "INT4": dtypes.i4,
    "INT8": dtypes.i8, "INT16": dtypes.i16, "INT32": dtypes.i32, "INT64": dtypes.i64,
    "UINT8": dtypes.u8, "UINT16": dtypes.u16, "UINT32": dtypes.u32, "UINT64": dtypes.u64,
}  # fmt: skip


# ---- loops and scopes ----------------------------------------------------------------------------


class _Scope:
    """A context that is PyPTO's business: a level, a hint. What is in it is executed."""

    hides = "a name of its own"

    def __enter__(self) -> _Scope:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def lower(self, _: Any, body: Any) -> None:
        body()


def scope(*_: object, **__: object) -> _Scope:
    """`with pl.at(level=...)`, `pl.cluster()`, `pl.scope()`."""
    return _Scope()


_carried: list[tuple[Any, ...]] = []  # what the innermost `yield_` has given, by loop


def loop(*bounds: Any, init_values: Sequence[Any] | None = None, **_: object) -> Any:
    """`pl.range` and its kin. With initial values each round gets what the last one has yielded."""
    return builtins.range(*bounds) if init_values is None else _rounds(bounds, tuple(init_values))


def _rounds(
    bounds: tuple[Any, ...], state: tuple[Any, ...]
) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    _carried.append(state)
    try:
        for number in builtins.range(*bounds):
            yield number, _carried[-1]
    finally:
        _carried.pop()


def yield_(*values: Any) -> Any:
    """What a branch or a round hands on; one value is itself, unless unpacked: `(a,) = ...`."""
    if _carried and len(_carried[-1]) == len(values):
        _carried[-1] = values
    if len(values) != 1:
        return values
    frame = sys._getframe(1)
    return values if frame.f_lineno in _unpacking(frame.f_code) else values[0]


@cache
def _unpacking(code: CodeType) -> frozenset[int]:
    """The lines of a function where what a call gives is unpacked into a tuple of one."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, SyntaxError):  # it has no source, or is no whole statement of it
        return frozenset()
    found = (each for each in ast.walk(tree) if isinstance(each, ast.Assign))
    return frozenset(
        code.co_firstlineno + line - 1
        for each in found
        if isinstance(each.targets[0], ast.Tuple) and len(each.targets[0].elts) == 1
        for line in builtins.range(each.lineno, (each.end_lineno or each.lineno) + 1)
    )


def _extreme(which: str) -> Any:
    """`pl.max` and `pl.min`: of tiles, or of numbers."""

    def handler(interpreter: Any, a: Any, b: Any) -> Any:
        if isinstance(a, Value) or isinstance(b, Value):
            return combine(f"{which}imum", a, b)
        return HANDLERS[getattr(builtins, which)](interpreter, a, b)

    def extreme(a: Any, b: Any) -> Any:
        return handler(None, a, b)

    HANDLERS[extreme] = handler
    return extreme


HANDLERS[loop] = lambda interpreter, *bounds, **_: HANDLERS[builtins.range](interpreter, *bounds)
largest, smallest = _extreme("max"), _extreme("min")


@public
def submit(work: Any, *args: Any, deps: Sequence[Any] = (), **named: Any) -> Any:
    """A task: it is run at once, which is one of the orders that its dependences leave."""
    result = work(*args, **named)
    return (*result, Task()) if isinstance(result, tuple) else (result, Task())


class Task:
    """The id of a task, which has ended."""


def create_tensor(shape: Sequence[int], dtype: Any, **_: object) -> Any:
    """A tensor of the program's own in global memory."""
    return np.zeros(tuple(shape), dtype.np)


def dim(tensor: Any, axis: int) -> Any:
    """A size of a tensor."""
    return tensor.shape[axis]


# ---- the modules ---------------------------------------------------------------------------------


class Language(ModuleType):
    """`pl`, `pl.tile`, `pl.tensor`: what they lack is looked for among the instructions."""

    def __getattr__(self, name: str) -> Any:
        found = None if name.startswith("__") else tiles.instruction(name)
        if found is None:
            raise AttributeError(
                f"{self.__name__} has no {name} here: it is no operation on tiles, and no "
                "instruction has this name"
            )
        vars(self)[name] = found
        return found


def _operations() -> dict[str, Any]:
    own = ("load", "store", "create_tile", "move", "read", "write", "expands", "full", "cast",
           "cmp", "sel", "reshape", "transpose", "transpose_view", "assemble", "concat", "fillpad",
           "set_validshape", "matmul", "matmul_acc")  # fmt: skip
    found: dict[str, Any] = {name: getattr(tiles, name) for name in own}
    found.update(tiles.ARITHMETIC)
    found.update(slice=tiles.slice_, cmps=tiles.cmp, create=tiles.create_tile, max=largest,
                 min=smallest, row_expand=tiles.spread, col_expand=tiles.spread,
                 get_block_idx=get_block_idx, get_block_num=get_block_num)  # fmt: skip
    return found


def _pads() -> Any:
    return type("PadValue", (), {name.lower(): PadValue[name] for name in ("Zero", "Min", "Max",
                                                                           "Null")})  # fmt: skip


@cache
def language() -> ModuleType:
    """`pypto.language`."""
    found = Language("pypto.language")
    names = vars(found)
    names.update(_operations() | ELEMENTS | {each.name: each for each in Index})
    names.update({name: Annotation(name) for name in (
        "Tensor", "Tile", "Scalar", "Out", "InOut", "Tuple", "Array")})  # fmt: skip
    names.update(dict.fromkeys(("TensorView", "TileView"), lambda **_: None))
    names.update({name: Anything() for name in (
        "Level", "FunctionType", "Role", "SplitMode", "TensorLayout", "ScopeMode")})  # fmt: skip
    atomic = type("AtomicType", (), {"None_": AtomicType.AtomicNone, "Add": AtomicType.AtomicAdd})
    names.update(MemorySpace=tiles.MemorySpace, Mem=tiles.MemorySpace, PadValue=_pads(),
                 AtomicType=atomic, jit=programs.jit, JITFunction=programs.Compiled,
                 function=programs.function, inline=programs.function, program=programs.program,
                 yield_=yield_, create_tensor=create_tensor, dim=dim, parse=texts.parse_pypto,
                 loads=texts.loads, dynamic=str)  # fmt: skip
    names.update(dict.fromkeys(("range", "parallel", "unroll", "pipeline"), loop))
    names.update(dict.fromkeys(("at", "cluster", "scope", "manual_scope"), scope))
    names.update(dict.fromkeys(("split", "cross_core_slot", "static_print"), lambda *_, **__: None))
    names["array"] = SimpleNamespace(create=lambda size, dtype: [None] * size)
    names["system"] = SimpleNamespace(task_dummy=lambda deps=(): Task())
    names.update(spmd=Blocks, submit=submit)
    for name in ("tile", "tensor"):
        names[name] = Language(f"pypto.language.{name}")
        vars(names[name]).update(_operations())
    vars(names["tensor"]).update(create=create_tensor, dim=dim)
    return found


class Root(ModuleType):
    """`pypto`: what lies in it is imported when it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name not in MODULES:
            raise AttributeError(f"pypto has no {name} here")
        return importlib.import_module(f"pypto.{name}")


def runtime() -> ModuleType:
    """`pypto.runtime`."""
    found = distributed.Part("pypto.runtime")
    vars(found).update(RunConfig=Settings, run=programs.run, TensorSpec=specs.TensorSpec)
    vars(found).update(dict.fromkeys(("ChipWorker", "DistributedWorker"), programs.Prepared))
    return found


def ir() -> ModuleType:
    """`pypto.ir`."""
    found = _choices("pypto.ir", "OptimizationStrategy")
    vars(found).update(compile=programs.compile_program, Function=programs.Compiled,
                       Program=programs.Program, serialize=texts.serialize,
                       deserialize=texts.deserialize)  # fmt: skip
    return found


def _generator() -> ModuleType:
    """`pypto.backend.pto_backend`: there code is generated; here programs are judged instead."""
    found = distributed.Part("pypto.backend.pto_backend")
    vars(found).update(PartialCodegenError=ProgramError)
    return found


def _choices(name: str, *classes: str) -> ModuleType:
    found = distributed.Part(name)
    vars(found).update({each: Anything() for each in classes})
    return found


def _several_devices() -> ModuleType:
    found = distributed.Part("pypto.ir.distributed_compiled_program")
    vars(found).update(DistributedConfig=Settings,
                       DistributedCompiledProgram=programs.CompiledProgram)  # fmt: skip
    return found


def _runner() -> ModuleType:
    found = distributed.Part("pypto.runtime.distributed_runner")
    vars(found).update(_tensor_from_continuous=lambda tensor: tensor)
    return found


MODULES: dict[str, Callable[[], ModuleType]] = {
    "": lambda: Root("pypto"),
    "language": language,
    "language.distributed": distributed.module,
    "runtime": runtime,
    "runtime.distributed_runner": _runner,
    "backend": lambda: _choices("pypto.backend", "BackendType"),
    "backend.pto_backend": _generator,
    "ir": ir,
    "ir.distributed_compiled_program": _several_devices,
    "ir.pass_manager": lambda: _choices("pypto.ir.pass_manager", "OptimizationStrategy"),
}
