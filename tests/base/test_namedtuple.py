"""Named tuples that are made quickly are those of Python."""

from __future__ import annotations

import inspect
import pickle
import typing
from collections.abc import Callable
from typing import Any

import pytest

from ptokit.base import namedtuple


class Ours(namedtuple.NamedTuple):
    """A point."""

    x: int
    name: str = "p"

    @property
    def twice(self) -> int:
        return 2 * self.x


class Pythons(typing.NamedTuple):
    """A point."""

    x: int
    name: str = "p"

    @property
    def twice(self) -> int:
        return 2 * self.x


class Empty(namedtuple.NamedTuple):
    pass


def answer(ask: Callable[[], Any]) -> str:
    try:
        return str(ask())
    except (TypeError, ValueError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"


def described(kind: Any) -> dict[str, str]:
    """All that can be asked of a class and of its instances."""
    one = kind(3)
    asked: dict[str, Callable[[], Any]] = {
        "shown": lambda: one,
        "named": lambda: kind(name="q", x=4),
        "parts": lambda: (one.x, one.name, one.twice, one[1], [*one], len(one)),
        "fields": lambda: (kind._fields, kind._field_defaults, kind.__match_args__),
        "annotations": lambda: typing.get_type_hints(kind),
        "signature": lambda: [
            (each.name, each.kind, each.default)
            for each in inspect.signature(kind).parameters.values()
        ],
        "replaced": lambda: one._replace(x=5),
        "replaced wrongly": lambda: one._replace(y=5),
        "as a dict": lambda: one._asdict(),
        "made": lambda: kind._make([1, "a"]),
        "alike": lambda: (one == (3, "p"), one == kind(4), hash(one) == hash((3, "p"))),
        "missing": lambda: kind(),
        "too many": lambda: kind(1, 2, 3),
        "unknown": lambda: kind(1, other=2),
        "assigned": lambda: setattr(one, "x", 4),
        "new": lambda: setattr(one, "other", 4),
        "doc": lambda: kind.__doc__,
        "sizes": lambda: (kind.__slots__, issubclass(kind, tuple)),
    }
    return {name: answer(ask).replace(kind.__name__, "Named") for name, ask in asked.items()}


def test_as_python_makes_them() -> None:
    assert described(Ours) == described(Pythons)


def test_they_can_be_sent() -> None:
    assert pickle.loads(pickle.dumps(Ours(3, "a"))) == Ours(3, "a")
    assert type(pickle.loads(pickle.dumps(Ours(3)))) is Ours
    assert Empty() == ()
    assert repr(Empty()) == "Empty()"


def test_patterns() -> None:
    match Ours(1, "b"):
        case Ours(x, name="b"):
            assert x == 1
        case _:
            raise AssertionError


def test_defaults_come_last() -> None:
    with pytest.raises(TypeError, match=r"Wrong: a field without a default"):

        class Wrong(namedtuple.NamedTuple):
            x: int = 1
            y: int  # type: ignore[misc]
