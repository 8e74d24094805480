"""What keeps the start of a process short."""

from __future__ import annotations

import atexit
import gc
import inspect
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any


def late(name: str) -> None:
    """Let a module load when something of it is used, not when it is imported.

    Of other people's modules only in a process of our own: elsewhere it is not ours to say.
    """
    spec = find_spec(name) if name not in sys.modules else None
    if spec is not None and spec.loader is not None:
        sys.modules[name] = module = module_from_spec(spec)
        vars(module).pop("__path__", None)  # for which those ask who import a part of it
        module.__class__ = _Late


class _Late(ModuleType):
    """A module that is not loaded yet. (That of `importlib` is loaded by an import statement.)"""

    def __getattr__(self, name: str) -> Any:
        with _LOCK:  # other threads wait until all of it is there
            spec = self.__spec__
            if type(self) is _Late and spec is not None and spec.loader is not None:
                self.__class__ = _Loading
                if spec.submodule_search_locations is not None:
                    self.__path__ = spec.submodule_search_locations
                spec.loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]
            return ModuleType.__getattribute__(self, name)


class _Loading(_Late):
    """One that is being loaded, and may ask for names of its own meanwhile."""


_LOCK = RLock()


@contextmanager
def uncollected(*, for_good: bool = False) -> Generator[None]:
    """Let nobody look for garbage while modules load: all that they make is kept.

    The collector would walk over the growing table of instructions again and again, for a sixth
    of the time that loading takes; and once more when the process ends and all memory goes with it,
    for a third. `for_good`, in a process of our own: it does not look at what is there by then.
    """
    atexit.register(gc.freeze)
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if for_good:
            gc.freeze()
        if was:
            gc.enable()


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of what a function takes; a signature object takes ten times as long."""
    if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
        code = function.__code__
        if not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if isinstance(function, BuiltinFunctionType):  # whose signature is a text that must be read
        first, *names, last = str(getattr(function, "__text_signature__", None) or ", ").split(", ")
        if (first, last) == ("($module", "/)") and all(map(str.isidentifier, names)):
            return tuple(names)
    return tuple(inspect.signature(function).parameters)
