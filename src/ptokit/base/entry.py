"""Where a user's code enters ptokit: an error leaves here without our frames in its traceback.

A diagnostic names the user's line, the values and the fix; the frames of ptokit above it would only
bury that. `@public` marks a function, or a class all of whose methods users call. Frames of the
user's own functions stay, also those that ptokit called, such as the body of a kernel; an exception
that such a function raises itself is the user's and loses our frames too. Bugs of ptokit
(InternalError, and whatever else our own code raises) keep every frame; so does all else under
`python -X dev`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from types import FrameType, FunctionType, TracebackType
from typing import Any, TypeVar, cast

import numpy as np

from ptokit.base.diagnostics import InternalError, PtoError
from ptokit.base.location import is_ours

T = TypeVar("T")
_LIBRARIES = (os.path.dirname(os.__file__), os.path.dirname(np.__file__))
_NOT_WRAPPED = {"__repr__", "__str__", "__reduce__", "__dir__", "__len__", "__hash__", "__eq__"}


def public(thing: T) -> T:
    """Hide the frames of ptokit in the errors of a function, or of every method of a class."""
    if isinstance(thing, type):
        for name, member in list(vars(thing).items()):
            if _is_public(name):
                replaced = _member(member)
                if replaced is not member:
                    setattr(thing, name, replaced)
        return thing
    return cast("T", _entered(cast("Any", thing)))


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


def _entered(function: Callable[..., Any], *kinds: type[Exception]) -> Callable[..., Any]:
    raised = (PtoError, *kinds)
    if function.__name__ == "__getattr__":
        raised += (AttributeError,)  # how Python wants to hear of an attribute that is not there

    @wraps(function)
    def enter(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except raised as error:
            hide_frames(error)
            raise
        except Exception as error:
            trace = error.__traceback__
            if isinstance(error, TypeError) and trace is not None and trace.tb_next is None:
                error.__traceback__ = None  # the call itself does not fit the signature
            elif _is_the_users(trace):
                hide_frames(error)
            raise

    return enter


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
        return name.startswith(_LIBRARIES[1])
    return name.startswith((*_LIBRARIES, "<frozen"))
