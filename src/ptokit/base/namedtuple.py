"""`NamedTuple`, in a tenth of the time: Python's compiles each annotation and each constructor."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ptokit.base.generated import PLACES, method

__all__ = ["NamedTuple"]


class _Named(tuple[Any, ...]):
    """What all of them can do."""

    __slots__ = ()
    if TYPE_CHECKING:
        _fields: tuple[str, ...]

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Any:
        return cls(*values)

    def _replace(self, **changed: Any) -> Any:
        made = self._make(map(changed.pop, self._fields, self))
        if changed:
            _MODEL(0)._replace(**changed)  # it is refused as this version of Python does
        return made

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        shown = ", ".join([f"{n}={v!r}" for n, v in zip(self._fields, self, strict=True)])
        return f"{self.__class__.__name__}({shown})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


_MODEL = namedtuple("_MODEL", "field")  # pyright: ignore[reportUntypedNamedTuple]
_Getter: Any = type(vars(_MODEL)["field"])


class _Made(type):
    """Makes a class of tuples of the body of a class."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
        fields = tuple(body.get("__annotations__", ()))
        defaults = {each: body.pop(each) for each in fields if each in body}
        made: dict[str, Any] = {each: _Getter(n, "") for n, each in enumerate(fields)}
        made |= {"__slots__": (), "_fields": fields, "_field_defaults": defaults}
        made |= {"__match_args__": fields, "__new__": _constructor(fields, defaults, body)}
        return type(name, (_Named, *bases[1:]), made | body)


def _constructor(fields: tuple[str, ...], defaults: dict[str, Any], body: dict[str, Any]) -> Any:
    if fields[len(fields) - len(defaults) :] != tuple(defaults):
        raise TypeError(f"{body['__qualname__']}: a field without a default follows one with it")
    places = PLACES[: len(fields)]
    line = f"return _new(_cls, ({''.join(f'{place}, ' for place in places)}))"
    known = {"_new": tuple.__new__}
    where = body["__qualname__"], body["__module__"], "__new__"
    made = method(*where, ["_cls", *places], [line], fields, known)
    made.__defaults__ = tuple(defaults.values())
    made.__annotations__ = body.get("__annotations__", {})
    return made


if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class _Base:
        """In place of `NamedTuple` among the bases of a class that is being made."""

        def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type]:
            return (type.__new__(_Made, "_Base", (), {}),)

    NamedTuple = _Base()
