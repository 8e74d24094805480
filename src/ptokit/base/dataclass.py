"""`dataclass`, whose methods are made when they are wanted, each by itself.

Python's decorator compiles five or six functions for every class. Most commands use few of some
three hundred classes, and of most of those only the constructor: making all was a third of their
start. Here a class keeps a placeholder for each of these attributes. What the fields are is told by
Python's decorator when the first of them is asked for; each method is compiled when it is called.
"""

from __future__ import annotations

import dataclasses
import reprlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field
from threading import RLock
from typing import TYPE_CHECKING, Any

from ptokit.base.generated import define

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, **options):
        """As `dataclasses.dataclass`; a class with slots, or in order, is made at once."""
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        if not options.keys() <= {"eq", "frozen", "repr"}:
            return dataclasses.dataclass(cls, **options)
        _prepare(cls, **options)
        return cls


def _prepare(owner: Any, eq: bool = True, repr: bool = True, frozen: bool = False) -> None:
    """Give a class placeholders for all that can be asked of it or of an instance."""
    own = vars(owner)
    options = {"eq": eq, "repr": repr, "frozen": frozen}
    names = ["__init__"] + ["__repr__"] * repr + ["__eq__"] * eq
    # Python itself writes down that what has an `__eq__` and nothing else has no hash.
    has_hash = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
    if eq and not has_hash:
        owner.__hash__ = _Placeholder(owner, "__hash__", options) if frozen else None
    for name in (*_OF_FIELDS, *(name for name in names if name not in own)):
        setattr(owner, name, _Placeholder(owner, name, options))
    if frozen:
        owner.__setattr__, owner.__delattr__ = _frozen(owner)


_OF_FIELDS = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")


class _Placeholder:
    """An attribute that is not made yet."""

    def __init__(self, owner: type, name: str, options: dict[str, bool]) -> None:
        self._owner, self._name, self._options = owner, name, options

    def __get__(self, instance: Any, kind: type) -> Any:
        with _LOCK:  # the first to come makes it, others find it made
            own = vars(self._owner)
            if isinstance(own["__dataclass_fields__"], _Placeholder):
                _tell_fields(self._owner, self._options)
            if own[self._name] is self:
                setattr(self._owner, self._name, _METHODS[self._name](self._owner))
        found = vars(self._owner)[self._name]
        bind = getattr(type(found), "__get__", None)
        return found if bind is None else bind(found, instance, kind)


_LOCK = RLock()
_OF_A_CLASS = {"__dict__", "__weakref__", "_abc_impl", "__abstractmethods__"}  # each has its own


def _tell_fields(owner: type, options: dict[str, bool]) -> None:
    """Give a class what the decorator finds out of a twin, for which it makes no method.

    Threads may use the class meanwhile: no attribute is missing for a moment.
    """
    given = {n: v for n, v in vars(owner).items() if not isinstance(v, _Placeholder)}
    kept_apart = {*_OF_A_CLASS, "__setattr__", "__delattr__"}
    body = {name: value for name, value in given.items() if name not in kept_apart}
    twin = type(owner)(owner.__name__, owner.__bases__, body)
    inherits = any(hasattr(base, "__dataclass_fields__") for base in owner.__bases__)
    frozen = inherits and options["frozen"]  # it sees to it that bases are frozen too
    made = dict(vars(dataclasses.dataclass(twin, init=False, repr=False, eq=False, frozen=frozen)))
    for name, chosen in {**options, "init": True}.items():
        setattr(made["__dataclass_params__"], name, chosen)
    for name in body.keys() - made.keys():  # the default of a field that is made for each instance
        delattr(owner, name)
    for name in made.keys() - kept_apart - _METHODS.keys() - {"__doc__"}:
        if name not in given or given[name] is not made[name]:
            setattr(owner, name, made[name])


# ---- methods ------------------------------------------------------------------------------------


class _Factory:
    """What stands in a signature for a value that is made for each instance."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _init(owner: type) -> Callable[..., Any]:
    fields = dataclasses.fields(owner)  # type: ignore[arg-type]
    known: dict[str, Any] = {"_FACTORY": _FACTORY}
    parameters, lines = ["self"], list[str]()
    is_frozen = owner.__dataclass_params__.frozen  # type: ignore[attr-defined]
    for each in fields:
        value = each.name
        if each.default_factory is not MISSING:
            known[f"_made_{each.name}"] = each.default_factory
            value = f"_made_{each.name}()"
            if each.init:
                parameters.append(f"{each.name}=_FACTORY")
                value = f"{value} if {each.name} is _FACTORY else {each.name}"
        elif each.init and each.default is not MISSING:
            known[f"_is_{each.name}"] = each.default
            parameters.append(f"{each.name}=_is_{each.name}")
        elif each.init:
            parameters.append(each.name)
        else:  # its default is an attribute of the class
            continue
        lines.append(f"_set(self, {each.name!r}, {value})" if is_frozen else
                     f"self.{each.name} = {value}")  # fmt: skip
    if hasattr(owner, "__post_init__"):
        lines.append("self.__post_init__()")
    known["_set"] = object.__setattr__
    made = _compiled(owner, "__init__", parameters, lines or ["pass"], known)
    made.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
    return made


def _repr(owner: type) -> Callable[..., Any]:
    shown = ", ".join(f"{f.name}={{self.{f.name}!r}}" for f in _fields(owner) if f.repr)
    line = f'return f"{{self.__class__.__qualname__}}({shown})"'
    return reprlib.recursive_repr()(_compiled(owner, "__repr__", ["self"], [line]))


def _eq(owner: type) -> Callable[..., Any]:
    compared = [f.name for f in _fields(owner) if f.compare]
    line = f"return {_values('self', compared)} == {_values('other', compared)}"
    lines = ["if other.__class__ is self.__class__:", f"    {line}", "return NotImplemented"]
    return _compiled(owner, "__eq__", ["self", "other"], lines)


def _hash(owner: type) -> Callable[..., Any]:
    hashed = [f.name for f in _fields(owner) if (f.compare if f.hash is None else f.hash)]
    return _compiled(owner, "__hash__", ["self"], [f"return hash({_values('self', hashed)})"])


_METHODS = {"__init__": _init, "__repr__": _repr, "__eq__": _eq, "__hash__": _hash}


def _fields(owner: Any) -> Iterator[Field[Any]]:
    yield from dataclasses.fields(owner)


def _values(of: str, names: Iterable[str]) -> str:
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


def _compiled(
    owner: type,
    name: str,
    parameters: Iterable[str],
    lines: Iterable[str],
    known: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """A method, which sees the names of the module of its class and those that are known."""
    body = "".join(f"\n  {line}" for line in lines)
    inner = f" def {name}({', '.join(parameters)}):{body}\n return {name}"
    source = f"def _make({', '.join(known or ())}):\n{inner}"
    space: dict[str, Any] = {}
    module = sys.modules.get(owner.__module__)
    names = {} if module is None else vars(module)
    define(source, f"dataclass {owner.__qualname__}", names, space)
    made = space["_make"](**known or {})
    made.__qualname__ = f"{owner.__qualname__}.{name}"
    return made


def _frozen(owner: Any) -> tuple[Any, Any]:
    """How instances refuse that a field is assigned or deleted; subclasses may have others."""

    def assign(self: Any, name: str, value: Any) -> None:
        if type(self) is owner or name in owner.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(owner, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is owner or name in owner.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(owner, self).__delattr__(name)

    return assign, delete
