"""`dataclass`, whose methods are made when they are wanted, each by itself.

Python's decorator compiles five or six functions for every class. Most commands use few of some
three hundred classes, and of most of those only the constructor: making all was a third of their
start. Here a class keeps a placeholder for each of these attributes. What the fields are is found
out when the first of them is asked for; each method is made when it is called, of code that all
classes with as many fields share (`generated.py`).
"""

from __future__ import annotations

import dataclasses
import inspect
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, Field
from functools import cache
from threading import RLock
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any

from ptokit.base.generated import PLACES, method

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, **options):
        """As `dataclasses.dataclass`; a class in order, say, is made at once."""
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        if not options.keys() <= {"eq", "frozen", "repr", "slots"}:
            return dataclasses.dataclass(cls, **options)
        has_slots = options.pop("slots", False)
        if has_slots and any(map(_is_special, _annotations(cls).values())):
            return dataclasses.dataclass(cls, slots=True, **options)
        options = {"eq": True, "repr": True, "frozen": False, **options}
        if has_slots:
            return _slotted(cls, options)
        _prepare(cls, options, _OF_FIELDS)
        return cls


def _prepare(owner: Any, options: dict[str, bool], of_fields: Iterable[str]) -> None:
    """Give a class placeholders for all that can be asked of it or of an instance."""
    own = vars(owner)
    eq, repr, frozen = options["eq"], options["repr"], options["frozen"]
    names = ["__init__"] + ["__repr__"] * repr + ["__eq__"] * eq
    # Python itself writes down that what has an `__eq__` and nothing else has no hash.
    has_hash = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
    if eq and not has_hash:
        owner.__hash__ = _Placeholder(owner, "__hash__", options) if frozen else None
    for name in (*of_fields, *(name for name in names if name not in own)):
        setattr(owner, name, _Placeholder(owner, name, options))
    if frozen:
        owner.__setattr__, owner.__delattr__ = _frozen(owner)


def _slotted(cls: type, options: dict[str, bool]) -> type:
    """A class like this one whose instances have a slot for each field, and nothing else."""
    options = {**options, "slots": True}
    _tell_fields(cls, options)  # while defaults are attributes of the class
    names = [each.name for each in _fields(cls)]
    inherited = {each for base in cls.__mro__[1:] for each in getattr(base, "__slots__", ())}
    body = {n: v for n, v in vars(cls).items() if n not in (*_OF_A_CLASS, *names)}
    body["__slots__"] = tuple(name for name in names if name not in inherited)
    if options["frozen"]:
        body = {"__getstate__": _state, "__setstate__": _set_state, **body}
    made: type = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    _prepare(made, options, ())
    return made


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in _fields(self)]


def _set_state(self: Any, state: Iterable[Any]) -> None:
    for each, value in zip(_fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)  # a frozen one has no other way


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
    """Give a class what Python's decorator would find out of its annotations.

    Threads may use the class meanwhile: no attribute is missing for a moment.
    """
    annotations = _annotations(owner)
    bases = [b for b in owner.__mro__[:0:-1] if "__dataclass_fields__" in vars(b)]
    frozen = {base.__dataclass_params__.frozen for base in bases}  # type: ignore[attr-defined]
    if frozen - {options["frozen"]} or any(map(_is_special, annotations.values())):
        _tell_special_fields(owner, options)
        return
    found: dict[str, Field[Any]] = {}
    for base in bases:
        found |= base.__dataclass_fields__  # type: ignore[attr-defined]
    for name, kind in annotations.items():
        given: Any = getattr(owner, name, MISSING)
        made: Any = given if isinstance(given, Field) else dataclasses.field(default=given)
        made.name, made.type, made._field_type = name, kind, _OF_A_FIELD
        if made.kw_only is MISSING:
            made.kw_only = False
        if made.default.__class__.__hash__ is None:
            raise ValueError(f"{owner.__qualname__}.{name}: all instances would share the default")
        if given is made and made.default is MISSING:
            delattr(owner, name)
        elif given is made:
            setattr(owner, name, made.default)
        found[name] = made
    told: Any = owner
    told.__match_args__ = tuple([each.name for each in found.values() if each.init])
    told.__dataclass_params__ = _parameters(**options)
    told.__dataclass_fields__ = found  # last: by this others see that all is there


@dataclasses.dataclass(repr=False, eq=False)
class _Model:
    """Made by Python, for what it says of every class."""

    field: int


@cache
def _parameters(**options: bool) -> Any:
    """What is told of the options of a class; all that are decorated alike share it."""
    made = copy(_Model.__dataclass_params__)  # type: ignore[attr-defined]
    for name in made.__slots__ & options.keys():  # older versions of Python do not tell of slots
        setattr(made, name, options[name])
    return made


def _annotations(owner: type) -> dict[str, Any]:
    return vars(owner).get("__annotations__") or inspect.get_annotations(owner)


_OF_A_FIELD: Any = dataclasses.fields(_Model)[0]._field_type  # type: ignore[attr-defined]


def _is_special(annotation: Any) -> bool:
    """Whether it may be something else than the type of a field: ClassVar, InitVar, KW_ONLY."""
    text = annotation if isinstance(annotation, str) else repr(annotation)
    return "Var" in text or "KW_ONLY" in text


def _tell_special_fields(owner: type, options: dict[str, bool]) -> None:
    """As Python's decorator tells them of a twin, for which it makes no method."""
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
    known: dict[str, Any] = {"_set": object.__setattr__, "_FACTORY": _FACTORY}
    parameters, lines, defaults = ["self"], list[str](), list[Any]()
    is_frozen = owner.__dataclass_params__.frozen  # type: ignore[attr-defined]
    has_slots = "__slots__" in vars(owner)
    for name, each in zip(PLACES, fields, strict=False):
        value = name
        if each.default_factory is not MISSING:
            known[f"_made{name}"] = each.default_factory
            value = f"_made{name}()"
            if each.init:
                value = f"{value} if {name} is _FACTORY else {name}"
        elif not each.init and (not has_slots or each.default is MISSING):
            continue  # its default is an attribute of the class
        elif not each.init:
            known[f"_made{name}"] = each.default
            value = f"_made{name}"
        if each.init:
            default = each.default if each.default_factory is MISSING else _FACTORY
            if default is not MISSING:
                defaults.append(default)
            elif defaults:
                at = f"{owner.__qualname__}.{each.name}"
                raise TypeError(f"{at}: non-default argument follows default argument")
            parameters.append(name)
        lines.append(f"_set(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(owner, "__post_init__"):
        lines.append("self.__post_init__()")
    names = [each.name for each in fields]
    made = _method(owner, "__init__", parameters, lines or ["pass"], names, known)
    made.__defaults__ = tuple(defaults)
    made.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
    return made


def _repr(owner: type) -> Callable[..., Any]:
    names = [each.name for each in _fields(owner) if each.repr]
    shown = ", ".join(f"{name}={{self.{name}!r}}" for name in names)
    line = f'return f"{{self.__class__.__qualname__}}({shown})"'
    return reprlib.recursive_repr()(_method(owner, "__repr__", ["self"], [line]))


def _eq(owner: type) -> Callable[..., Any]:
    names = [each.name for each in _fields(owner) if each.compare]
    line = f"return {_values('self', names)} == {_values('other', names)}"
    lines = ["if other.__class__ is self.__class__:", f"    {line}", "return NotImplemented"]
    return _method(owner, "__eq__", ["self", "other"], lines, names)


def _hash(owner: type) -> Callable[..., Any]:
    hashed = [f.name for f in _fields(owner) if (f.compare if f.hash is None else f.hash)]
    line = f"return hash({_values('self', hashed)})"
    return _method(owner, "__hash__", ["self"], [line], hashed)


_METHODS = {"__init__": _init, "__repr__": _repr, "__eq__": _eq, "__hash__": _hash}


def _fields(owner: Any) -> Iterator[Field[Any]]:
    yield from dataclasses.fields(owner)


def _values(of: str, names: Sequence[str]) -> str:
    return f"({''.join(f'{of}.{place}, ' for place in PLACES[: len(names)])})"


def _method(
    owner: type,
    name: str,
    parameters: Iterable[str],
    lines: Iterable[str],
    names: Iterable[str] = (),
    known: Mapping[str, Any] = MappingProxyType({}),
) -> FunctionType:
    return method(owner.__qualname__, owner.__module__, name, parameters, lines, names, known)


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
