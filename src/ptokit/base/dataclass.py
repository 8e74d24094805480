"""`dataclass`, whose methods are made when the first of them is wanted.

Python's decorator compiles five or six functions for every class. Most commands use few of some
three hundred classes, so that this was a third of their start. Here a class keeps a placeholder for
each of these attributes; whichever is asked for first, all of them are made, by Python's decorator.
"""

from __future__ import annotations

import dataclasses
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, **options):
        """As `dataclasses.dataclass`; a class with slots, or in order, is made at once."""
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        if not options.keys() <= {"eq", "frozen", "repr"}:
            return dataclasses.dataclass(cls, **options)
        for name in _attributes(**options):
            if name not in cls.__dict__:
                setattr(cls, name, _Placeholder(cls, name, options))
        return cls


def _attributes(eq: bool = True, repr: bool = True, frozen: bool = False) -> list[str]:
    """What can be asked of a class or of an instance, and shows that the class is a dataclass.

    Nothing can be assigned before there is an instance, so that `frozen` needs no placeholder.
    """
    names = ["__dataclass_fields__", "__dataclass_params__", "__match_args__", "__init__"]
    return names + ["__repr__"] * repr + ["__eq__", "__hash__"] * eq


class _Placeholder:
    """An attribute that is not made yet."""

    def __init__(self, owner: type, name: str, options: dict[str, bool]) -> None:
        self._owner, self._name, self._options = owner, name, options

    def __get__(self, instance: Any, kind: type) -> Any:
        with _LOCK:  # the first to come makes them, others find them made
            if isinstance(vars(self._owner)[self._name], _Placeholder):
                _make(self._owner, self._options)
        found = vars(self._owner)[self._name]
        bind = getattr(type(found), "__get__", None)
        return found if bind is None else bind(found, instance, kind)


_LOCK = RLock()
_OF_A_CLASS = {"__dict__", "__weakref__", "_abc_impl", "__abstractmethods__"}  # each has its own


def _make(owner: type, options: dict[str, bool]) -> None:
    """Give a class what the decorator makes of a twin.

    Threads may use the class meanwhile: no attribute is missing for a moment, and `__init__`, with
    which all begins, is the last to change.
    """
    written = {n: v for n, v in vars(owner).items() if not isinstance(v, _Placeholder)}
    body = {name: value for name, value in written.items() if name not in _OF_A_CLASS}
    twin = type(owner)(owner.__name__, owner.__bases__, body)
    made = dict(vars(dataclasses.dataclass(twin, **options)))  # type: ignore[call-overload]
    for name in body.keys() - made.keys():  # the default of a field that is made for each instance
        delattr(owner, name)
    if options.get("frozen"):  # these two speak of their class
        made["__setattr__"], made["__delattr__"] = _frozen(owner, {*made["__dataclass_fields__"]})
    for name in sorted(made.keys() - _OF_A_CLASS, key=lambda name: name == "__init__"):
        if name not in written or written[name] is not made[name]:
            setattr(owner, name, made[name])


def _frozen(owner: Any, fields: set[str]) -> tuple[Any, Any]:
    """How instances refuse that a field is assigned or deleted; subclasses may have others."""

    def assign(self: Any, name: str, value: Any) -> None:
        if type(self) is owner or name in fields:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(owner, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is owner or name in fields:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(owner, self).__delattr__(name)

    return assign, delete
