"""What keeps the start of a process short."""

from __future__ import annotations

import atexit
import gc
import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FunctionType
from typing import Any


@contextmanager
def uncollected() -> Generator[None]:
    """Let nobody look for garbage while modules load: all that they make is kept.

    The collector would walk over the growing table of instructions again and again, for a sixth
    of the time that loading takes; and once more when the process ends and all memory goes with it,
    for a third.
    """
    atexit.register(gc.freeze)
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of what a function takes; a signature object takes ten times as long."""
    if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
        code = function.__code__
        if not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple(inspect.signature(function).parameters)
