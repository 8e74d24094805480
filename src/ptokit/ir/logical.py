"""Types of logical vectors as the table of micro-operations sees them."""

from __future__ import annotations

from dataclasses import replace

from ptokit.base.dtypes import DType, dtype
from ptokit.base.patterns import regex
from ptokit.ir.attributes import ArrayAttr, Attribute, DenseAttr, IntAttr, StringAttr
from ptokit.ir.types import (
    REGISTER_PAIRS,
    SINGLES_OF,
    LogicalMaskType,
    LogicalType,
    MaskType,
    PtrType,
    RegisterType,
    ScalarType,
    ShapedType,
    Type,
)
from ptokit.isa.micro.spec import Vector

_SIGNLESS = regex(r"i(8|16|32)")


def element_of(type_: ScalarType) -> DType:
    """The element type behind a scalar type; pairs of floats are those of their codes."""
    if type_.name in REGISTER_PAIRS:  # whoever converts them knows what they are pairs of
        return dtype(f"u{type_.bits}")
    return dtype(SINGLES_OF.get(type_.name, type_.name))


def _logical_element(type_: ScalarType, signless: str) -> DType:
    """That of a lane of a logical vector, where integers may say nothing of their sign."""
    if _SIGNLESS.fullmatch(type_.name):
        return dtype(f"{signless}{type_.bits}")
    return element_of(type_)


def vector_of(type_: Type, signless: str = "u") -> Vector | None:
    """What laws see of a value; None of one that has no element type."""
    if isinstance(type_, LogicalMaskType):
        return Vector(type_.lanes, None, type_.width, type_.layout)
    if isinstance(type_, MaskType):
        return Vector(0, None, f"b{type_.bits}")
    if isinstance(type_, LogicalType):
        return _vector(type_.element, signless, type_.lanes, type_.layout)
    if isinstance(type_, RegisterType | PtrType):
        found = _vector(type_.element, signless)
        return replace(found, is_pointer=isinstance(type_, PtrType))
    return _vector(type_, signless) if isinstance(type_, ScalarType) else None


def _vector(element: ScalarType, signless: str, lanes: int = 0, layout: str = "") -> Vector:
    try:
        kind = _logical_element(element, signless)
    except ValueError:  # an index, or an element that no vector has
        kind = None
    return Vector(lanes, kind, element.name, layout)


def said(attr: Attribute) -> object:
    """What an attribute says: a word, a number, numbers, or that it is there."""
    if isinstance(attr, DenseAttr):
        return attr.numbers
    if isinstance(attr, ArrayAttr):
        return tuple(item.value for item in attr.items if isinstance(item, IntAttr))
    return attr.value if isinstance(attr, StringAttr | IntAttr) else str(attr)


def seen(attr: Attribute) -> object:
    """What laws see of an attribute: of listed elements, how many there are and of what type."""
    if not isinstance(attr, DenseAttr):
        return said(attr)
    kind = attr.type
    if isinstance(kind, ShapedType) and len(kind.shape) == 1:
        return Vector(kind.shape[0], None, str(kind.element))
    return None
