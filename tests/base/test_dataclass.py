"""Dataclasses whose methods are made late are those of Python."""

from __future__ import annotations

import dataclasses
import pickle
import threading
from abc import ABC, abstractmethod
from dataclasses import field
from typing import Any

import pytest

from ptokit.base.dataclass import dataclass


@dataclass(frozen=True)
class Point:
    x: int
    marks: list[str] = field(default_factory=list[str], compare=False)


@dataclass(frozen=True)
class Named(Point):
    name: str = "p"


class Plain(Named):
    pass


@dataclass
class Counter(ABC):
    count: int = 1
    seen: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        self.count += 1

    @abstractmethod
    def step(self) -> int: ...


@dataclass
class Steps(Counter):
    by: int = 2

    def step(self) -> int:
        self.count += self.by
        return self.count

    def __repr__(self) -> str:
        return "steps"


def test_methods() -> None:
    made = Named(1, name="a")
    assert made == Named(1, ["other"], "a") != Named(2, name="a")
    assert hash(made) == hash(Named(1, ["other"], "a"))
    assert repr(made) == "Named(x=1, marks=[], name='a')"
    assert dataclasses.replace(made, x=5) == Named(5, name="a")
    assert [f.name for f in dataclasses.fields(Point)] == ["x", "marks"]
    assert Named.__match_args__ == ("x", "marks", "name")
    assert Named.name == "p"
    assert not hasattr(Point, "marks")
    assert Plain(3) == Plain(3) != Named(3)
    assert pickle.loads(pickle.dumps(made)) == made


def test_frozen() -> None:
    made: Any = Plain(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        made.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'name'"):
        del made.name
    made.other = 1  # of a subclass that says nothing of fields
    with pytest.raises(dataclasses.FrozenInstanceError):
        Named(1).other = 1  # type: ignore[attr-defined]


def test_written_methods_stay() -> None:
    made = Steps(3)
    assert (made.step(), repr(made), made.seen) == (6, "steps", [])
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)
    with pytest.raises(TypeError, match="abstract"):
        Counter()  # type: ignore[abstract]


def test_threads_find_whole_classes() -> None:
    """The first use by many at once: nobody meets a class that is half made."""
    for _ in range(50):

        @dataclass(frozen=True)
        class Fresh:
            a: int
            b: int = 2

        start, made = threading.Barrier(4), list[Any]()

        def use(kind: type[Any] = Fresh, at: threading.Barrier = start) -> None:
            at.wait()
            made.append(kind(1))  # noqa: B023

        threads = [threading.Thread(target=use) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert made == [Fresh(1)] * 4
