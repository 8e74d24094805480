"""A program of ranks, as other machines take it over.

Functions go as the source of their files with the values that they name, kernels of texts as texts.
Worlds and windows in them become those of the actor; other arrays come as copies that cannot be
written, since nobody would see it.
"""

from __future__ import annotations

import io
import linecache
import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from types import CodeType
from typing import Any

import numpy as np

from ptokit.base.diagnostics import usage_error
from ptokit.base.layout import Array, raw_bytes
from ptokit.base.usercode import compiled
from ptokit.machine.apart import Spot

_PUBLIC = ("ptokit", "ptokit.comm", "ptokit.micro", "ptokit.vmi")

_here: list[Any] = []  # the world of the actor


def _world() -> Any:
    return _here[0]


def _window(number: int) -> Any:
    return _here[0].windows[number]


def _part(at: Spot, shape: Sequence[int], strides: Sequence[int], kind: Any) -> Array:
    raw = raw_bytes(_here[0].windows[at.window].arrays[at.rank])
    return np.ndarray(tuple(shape), kind, raw.data, at.offset, tuple(strides))


def _frozen(data: bytes) -> Array:
    array: Array = pickle.loads(data)
    array.flags.writeable = False
    return array


def _named(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def sent(world: Any, program: Any, args: tuple[Any, ...]) -> bytes:
    """A program with its arguments, as an actor can take them over."""
    base: Any = import_module("ray.cloudpickle").Pickler
    names: dict[int, tuple[str, str]] = {}
    for module in _PUBLIC:
        loaded: Any = sys.modules.get(module)
        for name in getattr(loaded, "__all__", ()):
            with suppress(AttributeError):
                names.setdefault(id(getattr(loaded, name)), (module, name))
    texts: dict[str, str] = {}  # of files

    class Sender(base):
        def reducer_override(self, obj: Any) -> Any:
            found = _by_name(obj, names) or _by_place(obj, world) or _by_source(obj, texts)
            return found if found is not None else super().reducer_override(obj)

    into = io.BytesIO()
    Sender(into).dump((program, args))
    return pickle.dumps((texts, into.getvalue()))


def received(world: Any, data: bytes) -> tuple[Any, tuple[Any, ...]]:
    """A program with its arguments, in the actor of that world."""
    _here[:] = [world]
    texts, program = pickle.loads(data)
    for file, text in texts.items():
        linecache.cache[file] = len(text), None, text.splitlines(True), file
    try:
        return pickle.loads(program)
    except ImportError as error:
        raise usage_error(
            "cluster",
            f"the program of a rank cannot be read on its machine: {error}",
            fix="have the module there as well (ray job submit --working-dir takes a folder "
            "along), or keep what ranks do in the file that is run",
        ) from None


# ---- code ----------------------------------------------------------------------------------------


def _by_source(obj: Any, texts: dict[str, str]) -> Any:
    """Code that is what its file says goes as the text of the file, and which part of it that is.

    What was made in another way, or of a file that has changed since, goes as it was compiled.
    """
    if not isinstance(obj, CodeType):
        return None
    file = obj.co_filename
    text = texts.get(file) or "".join(linecache.getlines(file))
    alike = _alike(text, file, obj.co_qualname, obj.co_firstlineno)
    if obj not in alike:
        return None
    texts[file] = text
    return _code, (file, obj.co_qualname, obj.co_firstlineno, alike.index(obj))


def _code(file: str, name: str, line: int, number: int) -> CodeType:
    return _alike("".join(linecache.getlines(file)), file, name, line)[number]


@cache
def _alike(text: str, file: str, name: str, line: int) -> list[CodeType]:
    """The code of a text that begins at a line under a name: that of several lambdas, if so."""
    return [e for e in _all_code(text, file) if (e.co_qualname, e.co_firstlineno) == (name, line)]


@cache
def _all_code(text: str, file: str) -> list[CodeType]:
    try:
        return [*_inside(compiled(text, file))]
    except (SyntaxError, ValueError):  # something else lies there now, or cells of a notebook
        return []


def _inside(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _inside(each)


# ---- what is there already -----------------------------------------------------------------------


def _by_name(obj: Any, names: Mapping[int, tuple[str, str]]) -> Any:
    """What is ours is there as well: types by what they are made of, the rest by its name."""
    if id(obj) in names:
        return _named, names[id(obj)]
    return vars(obj).get("made_by") if isinstance(obj, type) else None


def _by_place(obj: Any, world: Any) -> Any:
    """Worlds, windows and parts of windows are those of the actor."""
    if obj is world:
        return _world, ()
    if type(obj).__name__ == "SymmetricWindow" and getattr(obj, "world", None) is world:
        return _window, (world.windows.index(obj),)
    if not isinstance(obj, np.ndarray) or obj.dtype.hasobject:
        return None
    low = int(np.lib.array_utils.byte_bounds(obj)[0])
    for number, each in enumerate(world.windows):
        for rank, array in enumerate(each.arrays):
            first, last = np.lib.array_utils.byte_bounds(array)
            if first <= low < last:
                at = Spot(number, rank, obj.ctypes.data - int(first))
                return _part, (at, obj.shape, obj.strides, obj.dtype.str)
    return _frozen, (pickle.dumps(obj, protocol=5),)
