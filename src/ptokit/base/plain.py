"""Dataclasses as plain data for JSON, and back."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints


def plain(value: Any) -> Any:
    """A value as data: what is no number, word, list or table becomes one."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def typed(kind: Any, data: Any) -> Any:
    """The value of a type that `plain` has made this data of."""
    inner = get_args(kind)
    origin = get_origin(kind) or kind
    if origin in (types.UnionType, Union):
        return _one_of(inner, data)
    if origin in (list, Sequence):
        return [typed(inner[0], each) for each in data]
    if origin is tuple:
        kinds = [inner[0]] * len(data) if inner[1:] == (...,) else inner
        return tuple(typed(k, each) for k, each in zip(kinds, data, strict=True))
    if origin in (dict, Mapping) and inner:
        return {name: typed(inner[1], each) for name, each in data.items()}
    if is_dataclass(origin):
        kinds = _kinds(kind)
        return kind(**{name: typed(kinds[name], each) for name, each in data.items()})
    if isinstance(origin, type) and issubclass(origin, Enum | Path):
        return kind(data)
    return data


def _one_of(kinds: tuple[Any, ...], data: Any) -> Any:
    """Of the types of a union: none, or the one that is not none."""
    if data is None:
        return None
    (kind,) = (each for each in kinds if each is not type(None))
    return typed(kind, data)


@cache
def _kinds(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
