"""Scalar arithmetic as C++ expressions."""

from __future__ import annotations

import math

from ptokit.ir.attributes import Attribute, BoolAttr, FloatAttr
from ptokit.ir.dialects.arith import predicates
from ptokit.ir.types import F64, OpaqueType, ScalarType, Type

INFIX = {
    "addi": "+", "subi": "-", "muli": "*", "divsi": "/", "remsi": "%", "andi": "&", "ori": "|",
    "xori": "^", "shli": "<<", "shrsi": ">>", "divui": "/", "remui": "%",
    "addf": "+", "subf": "-", "mulf": "*", "divf": "/",
}  # fmt: skip
FUNCTIONS = {
    "floordivsi": "({0} / {1} - (({0} % {1} != 0) && (({0} < 0) != ({1} < 0))))",
    "ceildivsi": "({0} / {1} + (({0} % {1} != 0) && (({0} < 0) == ({1} < 0))))",
    "maxsi": "({0} > {1} ? {0} : {1})",
    "minsi": "({0} < {1} ? {0} : {1})",
    "maximumf": "({0} > {1} ? {0} : {1})",
    "minimumf": "({0} < {1} ? {0} : {1})",
    "negf": "-{0}",
}
CASTS = (
    "index_cast", "index_castui", "extf", "truncf", "extsi", "extui", "trunci", "sitofp", "uitofp",
    "fptosi", "fptoui", "unrealized_conversion_cast",
)  # fmt: skip
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def scalar_type(kind: ScalarType) -> str:
    """The C++ type of a number; an index is 64 bits wide."""
    if kind.name == "index":
        return "int64_t"
    if kind.name == "i1":
        return "bool"
    if kind.name == "f64":
        return "double"
    return kind.dtype.cpp if kind.dtype is not None else "int64_t"


def value_type(kind: Type) -> str:
    """The C++ type of what a variable can hold: a number or an event; else nothing."""
    if isinstance(kind, ScalarType):
        return scalar_type(kind)
    return "comm::AsyncEvent" if kind == OpaqueType("async_event") else ""


def comparison(name: str, number: int, left: str, right: str) -> str:
    """A comparison by the number of its predicate."""
    word = predicates(name)[number]
    return f"{left} {_COMPARE[word[-2:]]} {right}"


def literal(value: Attribute) -> str:
    """A constant that is not an integer."""
    if isinstance(value, BoolAttr):
        return "true" if value.value else "false"
    assert isinstance(value, FloatAttr)
    number = value.value
    if math.isnan(number):
        return '__builtin_nanf("")'
    if math.isinf(number):
        return "__builtin_inff()" if number > 0 else "-__builtin_inff()"
    return f"{number!r}" if value.type == F64 else f"{number!r}f"
