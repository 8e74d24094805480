"""Where a user's code enters ptokit: an error leaves here without our frames in its traceback.

A diagnostic names the user's line, the values and the fix; the frames of ptokit above it would only
bury that. `@public` marks a function, or a class all of whose methods users call. Frames of the
user's own functions stay, also those that ptokit called, such as the body of a kernel; an exception
that such a function raises itself is the user's and loses our frames too. What our own code raises
because it was called with another type than it declares, or ran out of memory or disk, becomes a
usage error. Bugs of ptokit (InternalError, and whatever else our own code raises) keep every frame;
so does all else under `python -X dev`.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, wraps
from types import FrameType, FunctionType, TracebackType, UnionType
from typing import Any, ForwardRef, TypeVar, Union, cast, get_args, get_origin

import numpy as np

from ptokit.base.diagnostics import InternalError, PtoError, brief, usage_error
from ptokit.base.location import is_ours

T = TypeVar("T")
_NOT_WRAPPED = {"__repr__", "__str__", "__reduce__", "__dir__", "__len__", "__hash__", "__eq__"}


def public(thing: T) -> T:
    """Hide the frames of ptokit in the errors of a function, or of every method of a class."""
    if isinstance(thing, type):
        getattr(thing, "__dataclass_fields__", None)  # what a dataclass has is made before
        for name, member in list(vars(thing).items()):
            if _is_public(name):
                replaced = _member(member)
                if replaced is not member:
                    setattr(thing, name, replaced)
        return thing
    return cast("T", _entered(cast("Any", thing)))


def public_record(kind: type[T]) -> type[T]:
    """As `public`, for a class that only keeps what it is made with: it is looked at beforehand."""
    found = public(kind)
    made = cast("Any", kind.__init__)
    kind.__init__ = _entered(inspect.unwrap(made), checks=True)  # type: ignore[method-assign]
    return found


def public_raising(*kinds: type[Exception]) -> Callable[[T], T]:
    """As `public`, for a function that also raises exceptions of Python's on purpose."""
    return lambda function: cast("T", _entered(cast("Any", function), *kinds))


def hide_frames(error: BaseException) -> None:
    """Take our frames out of the traceback of an error, and of the errors behind it.

    A bare `raise` must follow: alone among the ways to raise, it adds no frame of its own.
    """
    if isinstance(error, InternalError) or sys.flags.dev_mode:
        return
    seen: BaseException | None = error
    while seen is not None:
        seen.__traceback__ = _of_the_user(seen.__traceback__)
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def _is_public(name: str) -> bool:
    operator = name.startswith("__") and name.endswith("__")
    return name not in _NOT_WRAPPED and (operator or not name.startswith("_"))


def _member(member: Any) -> Any:
    """A member of a class whose errors show no frame of ours."""
    if isinstance(member, FunctionType):
        written = not member.__code__.co_filename.startswith("<")  # not made by @dataclass
        return _entered(member) if written else member
    if isinstance(member, classmethod | staticmethod):
        return type(member)(_entered(member.__func__))
    if isinstance(member, property) and member.fget is not None:
        return property(_entered(member.fget), member.fset, member.fdel, member.__doc__)
    return member


def _entered(
    function: Callable[..., Any], *kinds: type[Exception], checks: bool = False
) -> Callable[..., Any]:
    raised = (PtoError, *kinds)
    if function.__name__ == "__getattr__":
        raised += (AttributeError,)  # how Python wants to hear of an attribute that is not there

    @wraps(function)
    def enter(*args: Any, **named: Any) -> Any:
        try:
            try:
                result = function(*args, **named)
                if checks and (told := _unfit(function, args, named)) is not None:
                    raise told
                return result
            except raised:
                raise
            except Exception as error:
                trace = error.__traceback__
                if isinstance(error, TypeError) and trace is not None and trace.tb_next is None:
                    error.__traceback__ = None  # the call itself does not fit the signature
                elif _is_the_users(trace):
                    hide_frames(error)
                elif (told := _usage(error, function, args, named)) is not None:
                    raise told from None
                raise
        except raised as error:
            hide_frames(error)
            raise

    return enter


# ---- what a call is to blame for -----------------------------------------------------------------


def _usage(
    error: Exception, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> PtoError | None:
    """What our own code stumbled over, where the call is to blame; None: it is a bug of ours.

    Nobody checks every argument of every call beforehand: when a call fails, the types that the
    function declares tell whether it was given something else.
    """
    if isinstance(error, MemoryError):
        return usage_error("memory", "there is not enough memory for this", fix="use less of it")
    if isinstance(error, OSError):
        return usage_error("file", str(error))
    return _unfit(function, args, named)


def _unfit(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> PtoError | None:
    """The error of a call with an argument of another type than the function declares."""
    for name, kind, value in _unlike(function, args, named):
        wanted = getattr(kind, "__name__", "") if isinstance(kind, type) else str(kind)
        return usage_error(
            "argument-type",
            f"{function.__qualname__.removesuffix('.__init__')} takes no such thing as {name}",
            got=[(name, f"{type(value).__name__}: {brief(value)}")],
            fix=f"{name}: {wanted.replace('typing.', '').replace('collections.abc.', '')}",
        )
    return None


def _unlike(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """The arguments of a call that are not what the function declares, with what it does."""
    hints: dict[str, Any] = {}
    for name, kind in function.__annotations__.items():
        with suppress(NameError):  # a type that is known to checkers only
            hints[name] = eval(kind, function.__globals__) if isinstance(kind, str) else kind
    call = inspect.signature(function).bind(*args, **named)
    for name, value in call.arguments.items():
        parameter = call.signature.parameters[name]
        values = {parameter.VAR_POSITIONAL: value, parameter.VAR_KEYWORD: ()}
        for each in values.get(parameter.kind, (value,)):
            if name in hints and not _is_a(each, hints[name]):
                yield name, hints[name], each


def _is_a(value: Any, kind: Any) -> bool:
    """Whether a value is of a declared type, as far as that can be told."""
    if kind is Any or kind is None:
        return kind is Any or value is None
    if isinstance(kind, ForwardRef):  # a type of NumPy's, which need not be loaded for its name
        kind = eval(kind.__forward_arg__, {"np": np, "Any": Any})
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_is_a(value, part) for part in parts)
    if kind in (int, bool):
        plain = type(value) in (int, bool)
        return plain or (hasattr(type(value), "__index__") and not isinstance(value, np.ndarray))
    if kind is float:
        number = isinstance(value, int | float | np.integer | np.floating)
        return number and not isinstance(value, np.timedelta64)
    plain = origin or kind
    if not isinstance(plain, type) or getattr(plain, "_is_protocol", False):
        return True
    if not isinstance(value, plain):
        return False
    if isinstance(value, np.ndarray):
        return not parts or plain is np.ndarray  # of which type its elements are, is said elsewhere
    if isinstance(value, list | tuple | set | frozenset) and parts:
        return all(_is_a(each, parts[0]) for each in cast("Iterable[Any]", value))
    return True


def _is_the_users(trace: TracebackType | None) -> bool:
    """Whether an exception was raised by the user's code, or by a library that it called."""
    inside = True
    while trace is not None:
        frame = trace.tb_frame
        inside = is_ours(frame) or (inside and is_library(frame))
        trace = trace.tb_next
    return not inside


def _of_the_user(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without our frames, nor those of libraries that we called."""
    kept: list[TracebackType] = []
    inside = False
    while trace is not None:
        frame = trace.tb_frame
        inside = is_ours(frame) or (inside and is_library(frame))
        if not inside:
            kept.append(trace)
        trace = trace.tb_next
    rest = None
    for each in reversed(kept):
        each.tb_next = rest
        rest = each
    return rest


def is_library(frame: FrameType) -> bool:
    """Whether the frame runs code of Python's library or of NumPy."""
    name = frame.f_code.co_filename
    if "site-packages" in name:  # lies in the folder of the standard library on some systems
        return name.startswith(_libraries()[1])
    return name.startswith((*_libraries(), "<frozen"))


@cache
def _libraries() -> tuple[str, str]:
    return os.path.dirname(os.__file__), os.path.dirname(np.__file__)
