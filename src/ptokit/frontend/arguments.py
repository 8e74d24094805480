"""Arguments in brackets and parentheses, and what to say when they are not what they should be."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from enum import IntEnum
from typing import Any, TypeVar, cast

import numpy as np

from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.spelling import nearest
from ptokit.frontend.trees import is_record, taken_apart
from ptokit.isa.verify import shown
from ptokit.machine.foreign import as_number, carries_array
from ptokit.machine.gm import Argument, Roomy, as_array
from ptokit.machine.objects import ConvObject, TileObject

E = TypeVar("E", bound=IntEnum)


def class_name(self: type) -> str:
    """How the types show that are formed with brackets: as they are written."""
    return self.__name__


def arguments(given: Any) -> tuple[Any, ...]:
    return given if isinstance(given, tuple) else (given,)


def index(value: Any) -> int:
    """A whole number as a template argument holds it."""
    found = operator.index(value)
    if not -(1 << 63) <= found < 1 << 64:
        raise ValueError("a number has at most 64 bits")
    return found


def completed(
    what: str, given: Any, least: int, defaults: tuple[Any, ...], rule: str, fix: str
) -> tuple[Any, ...]:
    """Arguments in brackets, at least so many, and the defaults of those left out."""
    args = arguments(given)
    if not least <= len(args) <= least + len(defaults):
        raise fail(f"{what}.arguments", rule, got=[("arguments", list(args))], fix=fix)
    return args + defaults[len(args) - least :]


def positional(kind: type, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arguments of a type with those given by name in their places."""
    names = _names(kind)
    if not set(named) <= set(names[len(args) :]):
        raise no_such_argument(kind, named)
    found = [*args, *(named.get(name) for name in names[len(args) :])]
    while found and found[-1] is None:
        found.pop()
    return tuple(found)


def no_such_argument(kind: type, named: Mapping[str, Any]) -> PtoError:
    """The error of making something with arguments under names that it does not have."""
    what, names = kind.__name__.partition("[")[0], _names(kind)
    return unknown_names(what, named, names, f"{what}({', '.join(names)})")


def _names(kind: type) -> list[str]:
    parameters = inspect.signature(kind.__init__).parameters.values()
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD][1:]


def unknown_names(what: str, named: Mapping[str, Any], names: Iterable[str], fix: str) -> PtoError:
    """The error of arguments under names that are not those of the page."""
    names = list(names)
    wrong = [name for name in named if name not in names]
    near = [match for name in wrong for match in nearest(name, names, 1)]
    meant = f"; did you mean {' and '.join(near)}?" if near else ""
    rule = f"takes no argument named {' or '.join(wrong)}{meant}"
    return fail(
        f"{what}.arguments",
        f"{what} {rule if wrong else 'does not take these arguments together'}",
        got=[("names", ", ".join(named))],
        fix=fix,
    )


class template:  # noqa: N801 - reads as a word in a with statement
    """Turns a wrong number or kind of arguments into a sentence with the pattern.

    `kind` is what they are: template arguments, in brackets, unless it says otherwise.
    """

    def __init__(
        self, what: str, pattern: str, given: Any, kind: str = "template arguments"
    ) -> None:
        self._what = what
        self._pattern = pattern
        self._given = arguments(given)
        self._kind = kind

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, TypeError | ValueError | AttributeError):
            return
        reason = str(error)
        if "unpack" in reason or "positional argument" in reason:
            reason = "their number is wrong"
        raise fail(
            f"{self._what}.arguments",
            f"{self._what} does not take these {self._kind}: {reason}",
            got=[("arguments", ", ".join(map(shown, self._given)))],
            fix=self._pattern,
        ) from None


_NO_NUMBERS = "mMcSU"  # kinds of NumPy's: spans of time, dates, complex numbers, texts


def check_argument(name: str, value: Any) -> None:
    """Refuse what no kernel can be given, whatever path it takes."""
    if isinstance(value, list | dict | set):
        kind, size = type(value).__name__, len(cast("Any", value))
        raise fail(
            "argument-type",
            f"{name} is a {kind}: kernels take arrays, numbers and what is fixed, such as tuples",
            got=[(name, f"{kind} of {size}")],
            fix=f"np.array({name}, np.float32) for global memory, tuple({name}) for constants",
        )
    if isinstance(value, tuple):
        for index, each in enumerate(cast("tuple[Any, ...]", value)):
            check_argument(f"{name}[{index}]", each)
    elif is_record(value):
        for field in fields(value):
            check_argument(f"{name}.{field.name}", getattr(value, field.name))
    elif isinstance(value, np.generic) and value.dtype.kind in _NO_NUMBERS:
        raise fail(
            "argument-type",
            f"{name} is a {type(value).__name__} of NumPy, which no kernel computes with",
            got=[(name, value)],
            fix=f"pass a number: float(...) or int(...) of what {name} stands for",
        )
    elif not isinstance(value, np.generic) and carries_array(value):
        as_array(value, name)
    elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise fail(
            "argument-range",
            f"{name} is a number of at most 64 bits",
            got=[(name, f"a number of {value.bit_length()} bits")],
            fix="numbers of a kernel are those of a device",
        )


def admitted(name: str, value: Any) -> Any:
    """An argument as a launch keeps it: arrays without dimensions are the numbers they hold."""
    tree = taken_apart(value, is_record)
    numbers = [as_number(leaf, name) for leaf in tree.leaves]
    if any(a is not b for a, b in zip(numbers, tree.leaves, strict=True)):
        value = tree.build(numbers)
    check_argument(name, value)
    return value


def leaves_of(name: str, value: Any) -> list[tuple[str, Any]]:
    """An argument taken apart: every number, array and constant in it, with a name of its own."""
    tree = taken_apart(value, is_record)
    if tree.shape == "leaf":
        return [(name, value)]
    return [(f"{name}_{place}", leaf) for place, leaf in enumerate(tree.leaves)]


def is_parameter(leaf: Any) -> bool:
    """Whether a kernel takes a value when it runs; others are fixed when it is lowered."""
    numbers_and_tiles = int | float | np.generic | TileObject | ConvObject
    return isinstance(leaf, numbers_and_tiles) or carries_array(leaf)


def outlined(value: Any) -> Any:
    """An argument of the same kind without its contents: what a kernel is lowered for."""
    tree = taken_apart(value, is_record)
    return tree.build([_outline(leaf) for leaf in tree.leaves])


def _outline(leaf: Any) -> Any:
    leaf = as_number(leaf, "an argument")
    if isinstance(leaf, np.generic) or not carries_array(leaf):
        return leaf
    array = as_array(leaf)
    return np.empty(array.shape, array.dtype)


def as_passed(value: Any) -> Any:
    """An argument as a kernel sees it that runs as it stands: an f32, a number of 64 bits, an array
    that is sliced as strictly as on the other path."""
    tree = taken_apart(value, is_record)
    return tree.build([_as_seen(leaf) for leaf in tree.leaves])


def _as_seen(value: Any) -> Any:
    """Arithmetic with NumPy's numbers would round or wrap as their own types do."""
    if isinstance(value, float | np.floating):
        return np.float32(value)
    if isinstance(value, np.generic):
        is_whole = isinstance(value, np.integer) and value.dtype.kind in "iu"  # and no time span
        return int(value) if is_whole else value
    if isinstance(value, Roomy) or not carries_array(value):
        return value
    return as_array(value).view(Argument)


def choice(kind: type[E], value: Any) -> E:
    """The member of an enumeration; another enumeration's member is never meant."""
    if isinstance(value, IntEnum) and not isinstance(value, kind):
        raise ValueError(f"{shown(value)} is not a {kind.__name__}")
    if isinstance(value, str) and value in kind.__members__:
        raise ValueError(f"write {kind.__name__}.{value}, not {value!r}")
    return kind(value)
