"""Dataclasses whose methods are made late are those of Python."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import field
from types import FunctionType
from typing import Any, ClassVar

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


def test_a_method_is_made_when_it_is_called() -> None:
    """One at a time: most classes are never compared or shown."""

    @dataclass(frozen=True)
    class Fresh:
        a: int

    def made() -> set[str]:
        return {name for name in METHODS if isinstance(vars(Fresh)[name], FunctionType)}

    assert made() == set()
    one = Fresh(1)
    assert made() == {"__init__"}
    assert one == Fresh(1)
    assert made() == {"__init__", "__eq__"}
    assert (repr(one)[-10:], hash(one)) == ("Fresh(a=1)", hash((1,)))
    assert made() == {*METHODS}


METHODS = ("__init__", "__repr__", "__eq__", "__hash__")


class _Ways:
    """Classes as they are written, before they are decorated."""

    class Empty:
        """Without fields."""

    class Values:
        a: int
        b: str = "x"
        c: list[int] = field(default_factory=list[int], repr=False)
        d: float = field(default=1.5, compare=False)
        e: int = field(default=2, init=False)
        f: list[int] = field(default_factory=list[int], init=False, hash=False)
        kind: ClassVar[str] = "values"

    class Plain:
        a: int
        b: str = "x"
        c: list[int] = field(default_factory=list[int], repr=False)
        d: float = field(default=1.5, compare=False)
        e: int = field(default=2, init=False)
        f: list[int] = field(default_factory=list[int], init=False, hash=False)

    class Prepared:
        a: int
        b: list[int] = field(default_factory=list[int])

        def __post_init__(self) -> None:
            self.b.append(self.a)

    class Equal:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

    class Hashed:
        a: int

        def __hash__(self) -> int:
            return 7

    class Constructed:
        a: int = 3

        def __init__(self) -> None:
            object.__setattr__(self, "a", 4)


def written(kind: type[Any]) -> Any:
    """A class of the same lines."""
    body = {k: v for k, v in vars(kind).items() if k not in ("__dict__", "__weakref__")}
    return type(kind.__name__, (), body)


def answer(ask: Callable[[], Any]) -> str:
    try:
        return str(ask())
    except (TypeError, AttributeError) as error:  # what is frozen raises a kind of the latter
        return repr(error)


def described(kind: Any, has_eq: bool, has_repr: bool) -> dict[str, str]:
    """All that can be asked of a class and of its instances."""
    given = () if kind.__name__ in ("Empty", "Constructed") else (5,)
    one, other = kind(*given), kind(*given)
    return {
        "fields": str(dataclasses.fields(kind)),
        "parameters": repr(kind.__dataclass_params__),
        "places": str(kind.__match_args__),
        "signature": str(inspect.signature(kind)),
        "annotations": str(inspect.get_annotations(kind.__init__)),
        "values": str([(f.name, getattr(one, f.name)) for f in dataclasses.fields(kind)]),
        "slots": str((getattr(kind, "__slots__", None), hasattr(one, "__dict__"))),
        "state": str(one.__reduce_ex__(4)[2]),
        "added": answer(lambda: setattr(kind(*given), "other", 8)),
        "of the class": str(vars(kind).get("e")).partition(" of ")[0],
        "too many": answer(lambda: kind(1, 2, 3, 4, 5, 6, 7)),
        "assigned": answer(lambda: setattr(one, "a", 8)),
        "deleted": answer(lambda: delattr(other, "a")),
        "shown": repr(kind(*given)) if has_repr else "",
        "alike": str((kind(*given) == kind(*given), kind(*given) == 3)) if has_eq else "",
        "hash": answer(lambda: hash(kind(*given))) if has_eq else "",
    }


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"frozen": True},
        {"eq": False},
        {"repr": False},
        {"frozen": True, "eq": False},
        {"slots": True},
        {"slots": True, "eq": False},
        {"slots": True, "frozen": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", [name for name in vars(_Ways) if not name.startswith("_")])
def test_as_python_makes_them(name: str, options: dict[str, bool]) -> None:
    asked = options.get("eq", True), options.get("repr", True)
    ours, pythons = (
        described(make(**options)(written(vars(_Ways)[name])), *asked)
        for make in (dataclass, dataclasses.dataclass)
    )
    if options.keys() >= {"slots", "frozen"}:  # where Python 3.11 stumbles over its own class
        for said in (ours, pythons):
            for asked_for in ("added", *(("assigned", "deleted") if name == "Empty" else ())):
                said.pop(asked_for)
    assert ours == pythons


@dataclass(slots=True, frozen=True)
class Slotted:
    x: int
    y: int = 2


def test_slots() -> None:
    made = Slotted(1)
    assert pickle.loads(pickle.dumps(made)) == made == dataclasses.replace(made)
    assert dataclasses.replace(made, y=3).y == 3

    @dataclass(slots=True, frozen=True)
    class More(Slotted):
        z: int = 3

    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'other'"):
        made.other = 1  # type: ignore[attr-defined]
    assert More.__slots__ == ("z",)
    assert (More(1), hash(More(1))) == (More(1, 2, 3), hash((1, 2, 3)))
    assert More.__qualname__.endswith("<locals>.More")


def test_defaults_that_instances_would_share_are_refused() -> None:
    @dataclass
    class Shared:
        a: list[int] = []  # noqa: RUF012

    with pytest.raises(ValueError, match=r"Shared\.a: all instances would share"):
        Shared()


def test_fields_without_a_default_come_first() -> None:
    @dataclass
    class Behind:
        a: int = 1
        b: int  # type: ignore[misc]

    with pytest.raises(TypeError, match=r"Behind\.b: non-default argument"):
        Behind(1, 2)


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
