"""Micro-operations for whoever runs them: what their types and words say, where operands are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ptokit.base.dtypes import DType
from ptokit.base.enums import TileType
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects import definition_of
from ptokit.ir.logical import element_of, said, vector_of
from ptokit.ir.types import MaskType, PtrType, RegisterType
from ptokit.isa.micro import Micro
from ptokit.isa.micro.spec import Vector
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
    vectors: dict[str, Vector] = {}
    record = record_of(op)
    labelled = (
        *zip(op.labels, op.operands, strict=True),
        *zip(op.result_labels, op.results, strict=True),
    )
    for label, value in labelled:
        if record.is_logical:
            vector = vector_of(value.type, record.signless)
            vectors |= {} if vector is None else {label: vector}
        elif isinstance(value.type, RegisterType | PtrType):
            kinds[label] = element_of(value.type.element)
        elif isinstance(value.type, MaskType):
            sizes[label] = value.type.lane_bytes
    words = {key: said(attr) for key, attr in op.attrs.items()}
    return Typed(record, kinds, sizes, vectors, words, len(op.results))


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
