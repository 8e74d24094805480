"""Micro-operations for whoever runs them: what their types and words say, where operands are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import TileType
from ptokit.ir.attributes import Attribute, DenseAttr, IntAttr, StringAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects import definition_of
from ptokit.ir.types import (
    REGISTER_PAIRS,
    SINGLES_OF,
    LogicalMaskType,
    LogicalType,
    MaskType,
    PtrType,
    RegisterType,
    ScalarType,
    Type,
)
from ptokit.isa.micro import Micro
from ptokit.isa.micro.typed import Typed

SPACES = {  # how pointers name memories
    "ub": TileType.Vec,
    "l1": TileType.Mat,
    "l0a": TileType.Left,
    "l0b": TileType.Right,
    "l0c": TileType.Acc,
    "bt": TileType.Bias,
    "fb": TileType.Scaling,
}

Values = Mapping[Value, Any]
Fetch = Callable[[Values], list[Any]]


def element_of(type_: ScalarType) -> DType:
    """The element type behind a scalar type; pairs of 4-bit floats are those of their codes."""
    if type_.name in REGISTER_PAIRS:  # whoever converts them knows what they are pairs of
        return dtype(f"u{type_.bits}")
    return dtype(SINGLES_OF.get(type_.name, type_.name))


def _lanes(type_: Type) -> int:
    return type_.lanes if isinstance(type_, LogicalType | LogicalMaskType) else 0


def _said(attr: Attribute) -> Any:
    """What an attribute says: a word, a number, numbers, or that it is there."""
    if isinstance(attr, DenseAttr):
        return attr.numbers
    return attr.value if isinstance(attr, StringAttr | IntAttr) else str(attr)


def record_of(op: Op) -> Micro:
    """The record of a micro-operation."""
    definition = definition_of(op)
    assert definition is not None
    assert definition.micro is not None
    return definition.micro


def typed(op: Op) -> Typed:
    """An operation as the machine takes it: the record, with what types and words say."""
    kinds: dict[str, DType] = {}
    sizes: dict[str, int] = {}
    lanes: dict[str, int] = {}
    labelled = (
        *zip(op.labels, op.operands, strict=True),
        *zip(op.result_labels, op.results, strict=True),
    )
    for label, value in labelled:
        lanes[label] = _lanes(value.type)
        if isinstance(value.type, RegisterType | PtrType | LogicalType):
            kinds[label] = element_of(value.type.element)
        elif isinstance(value.type, MaskType):
            sizes[label] = value.type.lane_bytes
    words = {key: _said(attr) for key, attr in op.attrs.items()}
    return Typed(record_of(op), kinds, sizes, lanes, words, len(op.results))


def arguments(op: Op) -> Fetch:
    """How the operands of a record are fetched: one by one, as lists, or left out."""
    slots = record_of(op).operands
    if not any(slot.is_list or slot.is_optional for slot in slots):
        values = tuple(op.operands)
        return lambda frame: [frame[v] for v in values]
    groups = [(slot.is_list, op.group(slot.name)) for slot in slots]

    def fetch(frame: Values) -> list[Any]:
        return [
            [frame[v] for v in group] if is_list else frame[group[0]] if group else None
            for is_list, group in groups
        ]

    return fetch
