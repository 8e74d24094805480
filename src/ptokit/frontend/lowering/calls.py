"""What a call in a kernel means: instructions, types, helpers of ours, Python functions.

Instructions are traced through the very API that runs them (see tracer.py).
"""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Callable
from dataclasses import is_dataclass
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ptokit.base.comm_enums import DmaEngine
from ptokit.base.location import is_users_file
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.frontend.arguments import positional
from ptokit.frontend.asynchronous import (
    AsyncSession,
    BuildAsyncSession,
    PrefetchAsyncContext,
    async_session,
)
from ptokit.frontend.events import (
    get_block_idx,
    get_block_num,
    get_subblockdim,
    get_subblockid,
)
from ptokit.frontend.instruction import Operation
from ptokit.frontend.lowering import asynchronous, fifos
from ptokit.frontend.lowering.convs import make_conv_tile
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.heap import Symbol
from ptokit.frontend.lowering.loops import RunTimeRange
from ptokit.frontend.lowering.numbers import Number, as_value, cast, extreme, truth
from ptokit.frontend.lowering.statements import Closure, KernelLowering
from ptokit.frontend.lowering.symbols import (
    ArraySymbol,
    BufferSymbol,
    GlobalSymbol,
    GroupSymbol,
    PointerSymbol,
    TileSymbol,
)
from ptokit.frontend.lowering.views import make_view
from ptokit.frontend.pipes import TPipe
from ptokit.frontend.session import current
from ptokit.frontend.tensor_types import (
    ConvTile,
    GlobalTensor,
    Shape,
    Stride,
    global_class,
    ptr,
)
from ptokit.frontend.types import Tile, tile_class
from ptokit.ir.attributes import StringAttr
from ptokit.ir.dialects import Definition, system
from ptokit.ir.types import F32, F64, I1, I64, INDEX, TileBufType
from ptokit.isa.groups import Group

_SYMBOLS = (Number, BufferSymbol, GlobalSymbol, PointerSymbol)


# ---- calls -------------------------------------------------------------------------------------


def apply(
    interpreter: KernelLowering, function: Any, args: list[Any], kwargs: dict[str, Any]
) -> Any:
    """Carry out a call; the interpreter's emitter stands at its line."""
    emitter = interpreter.emitter
    handler = HANDLERS.get(function) if _hashable(function) else None
    if handler is not None:
        return handler(interpreter, *args, **kwargs)
    if isinstance(function, Closure):
        return interpreter.run_closure(function, args, kwargs)
    if isinstance(function, type):
        made = _construct(interpreter, function, args, kwargs)
        if made is not None:
            return made
    if isinstance(function, Operation):
        return function(*args, **kwargs)
    inner = getattr(function, "function", function)  # a kernel called from a kernel is a helper
    if isinstance(inner, FunctionType) and _is_users(inner):
        return interpreter.run(inner, args, kwargs)
    if isinstance(function, MethodType):
        method = function.__func__
        if isinstance(function.__self__, _SYMBOLS):
            return function(*args, **kwargs)
        if isinstance(method, FunctionType) and _is_users(method):
            return interpreter.run(method, [function.__self__, *args], kwargs)
    call: Any = getattr(type(function), "__call__", None)  # noqa: B004 - it is looked into
    if isinstance(call, FunctionType) and _is_users(call):
        return interpreter.run(call, [function, *args], kwargs)
    values = [*args, *kwargs.values()]
    name = getattr(function, "__name__", repr(function))
    own = getattr(function, "__self__", None)
    keeps = (_hashable(function) and function in _KEEPING) or isinstance(own, list | dict | deque)
    # Tiles and arrays answer to NumPy themselves, with what to write instead.
    is_answered = function is np.asarray or function is np.array or isinstance(function, np.ufunc)
    sees = any(isinstance(v, Number) for v in values) or not is_answered
    if sees and _has_symbol(values) and _is_compiled(function) and not keeps:
        raise emitter.fail(
            "call",
            f"{name} cannot be called with a value known only at run time",
            "use arithmetic, comparisons, min, max, abs, int, float, or an instruction",
        )
    if _is_impure(function):
        raise emitter.fail(
            "impure",
            f"{name} answers differently at every call, but a kernel is lowered once",
            "call it before the launch, and pass what it gives as an argument",
        )
    if own is not None and not isinstance(own, ModuleType):
        interpreter.touch(own, f".{name}()")
    emitter.heap.touch_all(values, f"{name}()", emitter.location)
    emitter.calls_out = emitter.calls_out or not _only_answers(function)
    return function(*args, **kwargs)


_IMPURE = ("random.", "numpy.random.", "secrets.", "time.", "uuid.")
# Packages whose functions and objects give answers and do nothing else, but for some.
_QUIET = {"builtins", "math", "cmath", "operator", "itertools", "functools", "collections", "copy",
          "enum", "fractions", "typing", "numpy", "ptokit"}  # fmt: skip
_LOUD = {"breakpoint", "compile", "eval", "exec", "input", "open", "__import__"}
_KEEPING = {list, tuple, dict, enumerate, zip, reversed, len, sum, iter}


def _is_compiled(function: Any) -> bool:
    """Whether a call runs code of Python's or NumPy's own, which knows nothing of symbols."""
    if isinstance(function, type):
        return function.__module__.partition(".")[0] in ("builtins", "numpy")
    return isinstance(function, BuiltinFunctionType | np.ufunc)


def _hashable(function: Any) -> bool:
    try:
        hash(function)
    except TypeError:
        return False
    return True


def _has_symbol(values: list[Any]) -> bool:
    return any(isinstance(v, _SYMBOLS) for v in values)


def _is_users(function: FunctionType) -> bool:
    return is_users_file(function.__code__.co_filename)


def _is_impure(function: Any) -> bool:
    """Whether a function of Python's or NumPy's answers differently at every call."""
    makers = (function, type(getattr(function, "__self__", None)))
    homes = (f"{getattr(maker, '__module__', None)}." for maker in makers)
    return any(home.startswith(_IMPURE) for home in homes)


def _only_answers(function: Any) -> bool:
    """Whether nobody would miss a call whose answer is known."""
    own = getattr(function, "__self__", None)
    of_object = own is not None and not isinstance(own, ModuleType)
    maker = (own if isinstance(own, type) else type(own)) if of_object else function
    home = str(getattr(maker, "__module__", None) or type(maker).__module__)
    is_quiet = home.partition(".")[0].lstrip("_") in _QUIET or _is_record(function)
    return is_quiet and getattr(function, "__name__", "") not in _LOUD


def _is_record(kind: Any) -> bool:
    """Whether something is a class whose objects only hold what they are given."""
    if not isinstance(kind, type) or not (is_dataclass(kind) or issubclass(kind, tuple | Enum)):
        return False
    makers = (getattr(kind, name, None) for name in ("__new__", "__init__", "__post_init__"))
    return not any(isinstance(m, FunctionType) and _is_users(m) and _has_source(m) for m in makers)


def _construct(
    interpreter: KernelLowering, kind: type, args: list[Any], kwargs: dict[str, Any]
) -> Any:
    """Tiles and tensors made in a kernel, and objects of the user's classes."""
    emitter = interpreter.emitter
    ours = (Tile, ConvTile, GlobalTensor, TPipe, Shape, Stride)
    if kwargs and issubclass(kind, ours):
        args, kwargs = list(positional(kind, args, kwargs)), {}
    if issubclass(kind, Tile):
        return make_tile(emitter, kind, args)
    if issubclass(kind, ConvTile):
        return _make_conv(emitter, kind, args)
    if issubclass(kind, GlobalTensor):
        return make_view(emitter, kind, args)
    if issubclass(kind, TPipe) and kind.SPEC is not None:
        return fifos.make_pipe(emitter, current().target, kind.SPEC, args)
    if issubclass(kind, Group) and args and _has_symbol(list(args[0])):
        return GroupSymbol(tuple(args[0]), *args[1:])
    if issubclass(kind, Shape | Stride) and _has_symbol(args):
        return _Sizes(kind, args)
    begin = kind.__init__
    if isinstance(begin, FunctionType) and _is_users(begin) and _has_source(begin):
        made: Any = object.__new__(kind)
        interpreter.run(begin, [made, *args], kwargs)
        return made
    return None


def _has_source(function: FunctionType) -> bool:
    """Whether a function was written, not generated."""
    return not function.__code__.co_filename.startswith("<")


def make_tile(emitter: Emitter, kind: Any, args: list[Any]) -> TileSymbol:
    if kind.spec_for is None:
        raise emitter.fail("tile-type", "Tile is not a type yet", "Tile[TileType.Vec, ...]()")
    spec: TileSpec = kind.spec_for(current().target)
    dynamic = [
        label
        for label, size in (("valid_row", spec.valid_row), ("valid_col", spec.valid_col))
        if size == DYNAMIC
    ]
    if len(dynamic) != len(args):
        raise emitter.fail(
            "tile-constructor", "a tile is made with one argument per DYNAMIC valid size"
        )
    pairs = [(label, as_value(emitter, a, INDEX)) for label, a in zip(dynamic, args, strict=True)]
    op = emitter.emit("pto.alloc_tile", pairs, [("result", TileBufType(spec))], hint="tile")
    sizes = iter(args)
    valid = (
        next(sizes) if spec.valid_row == DYNAMIC else spec.valid_row,
        next(sizes) if spec.valid_col == DYNAMIC else spec.valid_col,
    )
    return TileSymbol(emitter, spec, op.result, op, valid)


def _make_conv(emitter: Emitter, kind: type[ConvTile], args: list[Any]) -> BufferSymbol:
    if kind.TYPE is None:
        raise emitter.fail("tile-type", "ConvTile is not a type yet", "ConvTile[TileType.Mat, ...]")
    return make_conv_tile(emitter, kind.TYPE, args)


class _Sizes:
    """A Shape or Stride with sizes known only at run time."""

    def __init__(self, kind: Any, args: list[Any]) -> None:
        dynamic = iter(args)
        if len(args) == 5:
            self.values = tuple(
                a if d == DYNAMIC else d for a, d in zip(args, kind.dims, strict=True)
            )
        else:
            self.values = tuple(next(dynamic) if d == DYNAMIC else d for d in kind.dims)


# ---- functions with a meaning of their own -----------------------------------------------------

Handler = Callable[..., Any]


def _range(interpreter: KernelLowering, *bounds: Any) -> Any:
    if _has_symbol(list(bounds)):
        return RunTimeRange(interpreter.emitter, *bounds)
    return range(*bounds)


def _extreme(which: str) -> Handler:
    def handler(interpreter: KernelLowering, *args: Any, **kwargs: Any) -> Any:
        values = list(args[0]) if len(args) == 1 else list(args)
        if not _has_symbol(values):
            return getattr(builtins, which)(*args, **kwargs)
        result = values[0]
        for other in values[1:]:
            if _has_symbol([result, other]):
                result = extreme(interpreter.emitter, which, result, other)
            else:
                result = getattr(builtins, which)(result, other)
        return result

    return handler


def _int(interpreter: KernelLowering, value: Any = 0) -> Any:
    return cast(interpreter.emitter, value, INDEX) if isinstance(value, Number) else int(value)


def _float(interpreter: KernelLowering, value: Any = 0.0) -> Any:
    if isinstance(value, Number):
        return value if value.is_float else cast(interpreter.emitter, value, F64)
    return float(value)


def _print(interpreter: KernelLowering, *args: Any) -> None:
    """Numbers become pto.print; the text between them is its format."""
    numbers = [a for a in args if isinstance(a, Number)]
    words = ["%f" if getattr(a, "is_float", False) else "%d" if isinstance(a, Number) else str(a)
             for a in args]  # fmt: skip
    if len(numbers) != 1:
        raise interpreter.emitter.fail(
            "print",
            "print in a kernel takes text and exactly one run-time number",
            "print tiles with TPRINT(tile)",
        )
    attrs = {"format": StringAttr(" ".join(words) + "\n")}
    interpreter.emitter.emit("pto.print", [("scalar", numbers[0].value)], [], dict(attrs))


# On cores of one kind, each of which is a block: there is no second vector core beside it.
_ALONE = {system.SUBBLOCK_IDX: 0, system.SUBBLOCK_NUM: 1}


def query(record: Definition) -> Handler:
    """A question about the place in the grid."""
    return lambda interpreter: answer(interpreter.emitter, record)


def answer(emitter: Emitter, record: Definition) -> Any:
    """What a core knows of its place in the grid."""
    if record in _ALONE and "pto.kernel_kind" in emitter.function.attrs:
        return _ALONE[record]
    hint = record.name.removeprefix("pto.get_")
    found = emitter.emit(record.name, [], [("result", I64)], hint=hint)
    value = emitter.emit("arith.index_cast", [("in", found.result)], [("out", INDEX)]).result
    return Number(emitter, value, nonnegative=True)


def _type(interpreter: KernelLowering, value: Any) -> type:
    """What a value is when the kernel runs: of a symbol, what it stands for."""
    if isinstance(value, Number):
        return {I1: bool, INDEX: int, F32: np.float32, F64: float}[value.type]
    if isinstance(value, TileSymbol):
        return tile_class(value.tile)
    if isinstance(value, GlobalSymbol):
        return global_class(value.spec)
    if isinstance(value, PointerSymbol):
        return np.ndarray
    if isinstance(value, Symbol):
        raise interpreter.emitter.fail("call", f"the type of {value!r} cannot be asked for")
    return type(value)


def _isinstance(interpreter: KernelLowering, value: Any, kinds: Any) -> bool:
    if not isinstance(value, Symbol):
        return isinstance(value, kinds)
    return issubclass(_type(interpreter, value), kinds)


def _ptr(interpreter: KernelLowering, array: Any, offset: Any = 0) -> Any:
    start = array.pointer if isinstance(array, ArraySymbol) else array
    return start if isinstance(offset, int) and offset == 0 else start + offset


HANDLERS: dict[Any, Handler] = {
    range: _range,
    type: _type,
    isinstance: _isinstance,
    min: _extreme("min"),
    max: _extreme("max"),
    abs: lambda interpreter, value: abs(value),
    divmod: lambda interpreter, a, b: divmod(a, b),
    pow: lambda interpreter, *args: pow(*args),
    bool: lambda interpreter, value=False: truth(interpreter.emitter, value),
    int: _int,
    float: _float,
    print: _print,
    ptr: _ptr,
    get_block_idx: query(system.BLOCK_IDX),
    get_block_num: query(system.BLOCK_NUM),
    get_subblockid: query(system.SUBBLOCK_IDX),
    get_subblockdim: query(system.SUBBLOCK_NUM),
    AsyncSession: asynchronous.make_session,
    PrefetchAsyncContext: asynchronous.make_context,
    **{BuildAsyncSession[engine]: asynchronous.no_session for engine in DmaEngine},
    BuildAsyncSession: asynchronous.build_session,
    async_session: asynchronous.no_session,
}
