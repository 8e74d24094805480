"""Values that travel through loops and branches: taken apart into what the IR can hand on.

A number or a tile is handed on as it is, a tuple element by element. What is the same on every way
through a region is not handed on at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptokit.frontend.lowering.asynchronous import EventSymbol
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.numbers import Number, as_value
from ptokit.frontend.lowering.symbols import BufferSymbol
from ptokit.frontend.lowering.vectors import OnChipSymbol, VectorSymbol
from ptokit.frontend.trees import is_frozen, taken_apart
from ptokit.ir.core import Value
from ptokit.ir.types import F32, F64, I1, INDEX, BufferType, ScalarType, Type

Types = tuple[Type | None, ...]  # of the leaves of a value; None: the same wherever one comes from


# What stands for a value of the IR itself.
_HANDLES = (BufferSymbol, EventSymbol, OnChipSymbol, VectorSymbol)


class Differ(Exception):  # noqa: N818 - an answer, turned into an error where the line is known
    """Two values that no single value of the IR can stand for, and why."""


# ---- comparing ---------------------------------------------------------------------------------


def is_same(a: Any, b: Any) -> bool:
    """Whether two values are one: the same object, or equal values that cannot change."""
    if a is b:
        return True
    if isinstance(a, Number) and isinstance(b, Number):
        return a.value is b.value
    if type(a) is not type(b):
        return False
    if isinstance(a, bool | int | float | str | bytes):
        return repr(a) == repr(b)  # a zero and a negative zero are two values
    if isinstance(a, tuple) or is_frozen(a):
        left, right = taken_apart(a), taken_apart(b)
        return left.shape == right.shape and all(map(is_same, left.leaves, right.leaves))
    return False


def merged_types(a: Any, b: Any, so_far: Types | None = None) -> Types:
    """The types that leaves must have to hold either value; raises Differ."""
    left, right = taken_apart(a), taken_apart(b)
    if left.shape != right.shape:
        raise _differ(a, b)
    known = so_far or (None,) * len(left.leaves)
    return tuple(
        None if type_ is None and is_same(x, y) else _merged(x, y, type_)
        for x, y, type_ in zip(left.leaves, right.leaves, known, strict=True)
    )


def own_types(value: Any) -> Types:
    """The types of the leaves that can be handed on."""
    leaves = taken_apart(value).leaves
    return tuple(_type_of(leaf) if _can_travel(leaf) else None for leaf in leaves)


def _merged(a: Any, b: Any, so_far: Type | None) -> Type:
    if not all(_can_travel(each) for each in (a, b)):
        raise _differ(a, b)
    types = [_type_of(a), _type_of(b), *([so_far] if so_far is not None else [])]
    if all(t == types[0] for t in types):
        return types[0]
    if not all(isinstance(t, ScalarType) for t in types):
        raise _differ(a, b)
    if any(isinstance(t, ScalarType) and t.is_float for t in types):
        return F32 if F32 in types else F64
    return INDEX


def _can_travel(value: Any) -> bool:
    if isinstance(value, Value):
        return isinstance(value.type, BufferType)
    return isinstance(value, (*_HANDLES, Number, int, float))


def _type_of(value: Any) -> Type:
    if isinstance(value, Value):
        return value.type
    if isinstance(value, (*_HANDLES, Number)):
        return value.value.type
    return I1 if isinstance(value, bool) else INDEX if isinstance(value, int) else F64


def _differ(a: Any, b: Any) -> Differ:
    first, second = _shown(a), _shown(b)
    return Differ(f"{first} or another one" if first == second else f"{first} or {second}")


def _shown(value: Any) -> str:
    if isinstance(value, Number):
        return f"a run-time {value.type}"
    if isinstance(value, BufferSymbol):
        return f"a tile {value.spec}"
    if isinstance(value, Value):
        return f"a tile {value.type}"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    return f"a {type(value).__name__}"


# ---- through the IR ----------------------------------------------------------------------------


def handed_on(emitter: Emitter, value: Any, types: Types) -> Iterator[Value]:
    """The leaves that are handed on, as values of their types."""
    for leaf, type_ in zip(taken_apart(value).leaves, types, strict=True):
        if type_ is None:
            continue
        if isinstance(leaf, Value):
            yield leaf
        else:
            is_handle = isinstance(leaf, _HANDLES)
            yield leaf.value if is_handle else as_value(emitter, leaf, type_)


def arrived(
    emitter: Emitter, like: Any, types: Types, values: Iterator[Value], title: str = ""
) -> Any:
    """A value put together again of what was handed on; the rest is as it is in `like`."""
    tree = taken_apart(like)
    leaves: list[Any] = []
    for leaf, type_ in zip(tree.leaves, types, strict=True):
        if type_ is None:
            leaves.append(leaf)
            continue
        value = next(values)
        value.name = title or value.name
        if isinstance(leaf, Value):
            leaves.append(value)
        else:
            is_handle = isinstance(leaf, _HANDLES)
            leaves.append(leaf.renamed(value) if is_handle else Number(emitter, value))
    return tree.build(leaves)
