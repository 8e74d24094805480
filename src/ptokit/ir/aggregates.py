"""The element of an array or struct that an operation names."""

from __future__ import annotations

from collections.abc import Iterable

from ptokit.ir.attributes import ArrayAttr, IntAttr
from ptokit.ir.core import Op
from ptokit.ir.types import LocalArrayType, ScalarType, StructType, Type


def path_of(op: Op) -> tuple[int, ...]:
    """The constant path of an access to a struct."""
    path = op.attrs["path"]
    assert isinstance(path, ArrayAttr)
    return tuple(n.value for n in path.items if isinstance(n, IntAttr))


def field_at(type_: Type, path: Iterable[int]) -> Type | None:
    """What lies at the end of a path through nested structs; None: nothing does."""
    for index in path:
        if not isinstance(type_, StructType) or not 0 <= index < len(type_.fields):
            return None
        type_ = type_.fields[index]
    return type_


def element_of(op: Op) -> Type | None:
    """The type of the element that an operation reads or writes; None: there is no such one."""
    type_ = op.operands[0].type
    if isinstance(type_, LocalArrayType):
        is_whole = len(op.group("indices")) == len(type_.shape)
        return type_.element if is_whole else None
    found = field_at(type_, path_of(op))
    return found if isinstance(found, ScalarType) else None
