"""What a kernel reads beside its arguments: globals and variables of the functions around it.

A lowered kernel holds their values as constants. They may be other ones at the next launch, and a
program that still has the old ones would give wrong answers in silence; so they are a part of what
a kernel is specialised for. `Outside.state` is compared at every launch and has to be cheap: names
are looked up once, and only what can change in place is looked into again.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ptokit.base.location import is_users_file
from ptokit.base.namedtuple import NamedTuple
from ptokit.frontend.lowering.heap import cells_of, is_mutable

_MISSING = object()
_PLAIN = (bool, int, str, bytes, type(None))
DEEPEST = 16  # levels of what is held by what is held
_MOST_BYTES = 1 << 20  # of an array that is compared by its contents


class Outside:
    """The values that a function, and the functions it calls, find outside as they are now."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._states: dict[tuple[Hashable, ...], int] = {}
        self._look()

    def state(self) -> Hashable:
        """Equal for launches that find equal values."""
        if any(read() is not value for read, value in self._found):
            self._look()
        return (self._fixed, *map(contents, self._changeable))

    def _look(self) -> None:
        """Look the names up: behind one that is another function now lie other names."""
        self._found = [(each.look, each.look()) for each in reads(self._function)]
        values = [value for _, value in self._found]
        self._changeable = [value for value in values if _can_change(value)]
        fixed = tuple(contents(value) for value in values if not _can_change(value))
        self._fixed = self._states.setdefault(fixed, len(self._states))


class _Same:
    """Something that is equal only to itself."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def contents(value: Any, depth: int = 0) -> Hashable:
    """What a value is: kernels that were lowered with equal contents are equal."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if isinstance(value, float | np.generic):
        return kind, np.asarray(value).tobytes()  # minus zero is another constant than zero
    if isinstance(value, bytearray):
        return kind, bytes(value)
    if isinstance(value, np.ndarray) and value.nbytes <= _MOST_BYTES:
        return kind, value.dtype.str, value.shape, value.tobytes()
    inner = () if depth == DEEPEST else parts(value)
    return (kind, *(contents(each, depth + 1) for each in inner)) if inner else _Same(value)


def parts(value: Any) -> tuple[Any, ...]:
    """What a value is made of; nothing, when it is one whole."""
    if isinstance(value, tuple | list | deque):
        return (len(value), *value)
    if isinstance(value, set | frozenset):
        return (len(value), *sorted(value, key=repr))
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, partial):
        return value.func, value.args, value.keywords
    if is_mutable(value) and not isinstance(value, np.ndarray):
        cells = cells_of(value)
        if cells or isinstance(value, dict):
            return (*cells, *cells.values())
    return ()


def _can_change(value: Any) -> bool:
    """Whether it can be another value and still the same object."""
    if isinstance(value, tuple | frozenset | MethodType | partial):
        return any(map(_can_change, parts(value)))
    return is_mutable(value)


# ---- which names are read ----------------------------------------------------------------------


class Read(NamedTuple):
    """A name that a function finds outside."""

    function: FunctionType
    name: str
    look: Callable[[], Any]  # what it is now


def reads(function: FunctionType) -> Iterator[Read]:
    """How to look up each name that a function, or one that it may call, finds outside."""
    seen: set[FunctionType] = set()
    work = [function]
    while work:
        each = work.pop()
        if each in seen:
            continue
        seen.add(each)
        names = dict.fromkeys(_names(each.__code__))
        found = [Read(each, name, partial(each.__globals__.get, name, _MISSING)) for name in names]
        cells = zip(each.__code__.co_freevars, each.__closure__ or (), strict=True)
        found += [Read(each, name, partial(_inside, cell)) for name, cell in cells]
        for read in found:
            yield read
            value = read.look()
            work += functions(value)
            if isinstance(value, ModuleType | type) and is_users(value):
                for name in names.keys() & vars(value).keys():
                    yield Read(each, name, partial(getattr, value, name, _MISSING))
                    work += functions(getattr(value, name, None))


def _names(compiled: CodeType) -> Iterator[str]:
    yield from compiled.co_names
    for constant in compiled.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _inside(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it has not been assigned yet
        return _MISSING


def functions(value: Any) -> Iterator[FunctionType]:
    """The functions of the user's that a call of a value, or of one of its methods, runs."""
    inner = getattr(value, "function", value)  # a kernel called from a kernel is a helper
    if isinstance(inner, MethodType):
        inner = inner.__func__
    if isinstance(inner, FunctionType):
        if is_users_file(inner.__code__.co_filename):
            yield inner
        return
    kind: type = value if isinstance(value, type) else type(value)
    if is_users(kind):
        methods = (getattr(m, "__func__", m) for k in kind.__mro__ for m in vars(k).values())
        yield from (m for m in methods if isinstance(m, FunctionType))


def is_users(value: ModuleType | type) -> bool:
    """Whether it is written by the user: what Python, a package or this one has stays."""
    module = value if isinstance(value, ModuleType) else sys.modules.get(value.__module__)
    file = getattr(module, "__file__", None)
    is_builtin = module is None or module.__name__ in sys.builtin_module_names
    return not is_builtin and (file is None or is_users_file(file))  # a notebook has no file
