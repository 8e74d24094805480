"""What a function says of its own order: how it ends, and which arrays are apart."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from ptokit.base.diagnostics import Diagnostic
from ptokit.ir.attributes import ArrayAttr, IntAttr, StringAttr
from ptokit.ir.core import Function, Value
from ptokit.ir.types import I64, PtrType, ViewType

_TAIL, _APART = "pto.auto_sync_tail_hint", "pto.noalias_pairs"


class Tail(Enum):
    """What ends a function whose pipes are ordered by the tool."""

    BARRIER = "barrier-all"
    STORES = "mte3-to-s-event0"  # the scalar unit waits for stores, and for nothing else


def tail_of(function: Function) -> Tail:
    """What the function asks for; check_function says where there is no such thing."""
    given = function.attrs.get(_TAIL)
    word = given.value if isinstance(given, StringAttr) else ""
    spelled = word.lower().replace("_", "-").removeprefix("setwait-")
    return Tail.STORES if spelled == Tail.STORES.value else Tail.BARRIER


def promised(function: Function) -> dict[Value, frozenset[Value]]:
    """The arrays that each array is promised not to overlap: pairwise, both ways, no further."""
    apart: dict[Value, frozenset[Value]] = {}
    for first, second in _pairs(function):
        one, other = function.params[first], function.params[second]
        apart[one] = apart.get(one, frozenset()) | {other}
        apart[other] = apart.get(other, frozenset()) | {one}
    return apart


def _pairs(function: Function) -> list[tuple[int, int]]:
    given = function.attrs.get(_APART)
    items = given.items if isinstance(given, ArrayAttr) else ()
    numbers = [item.value for item in items if isinstance(item, IntAttr)]
    return list(zip(numbers[::2], numbers[1::2], strict=False))


def check_function(function: Function) -> Iterator[Diagnostic]:
    """What is wrong with these attributes."""
    hint = function.attrs.get(_TAIL)
    if hint is not None:
        word = hint.value if isinstance(hint, StringAttr) else ""
        spelled = word.lower().replace("_", "-").removeprefix("setwait-")
        if spelled not in ("default", *(tail.value for tail in Tail)):
            fix = " or ".join(f'"{tail.value}"' for tail in Tail)
            yield _complaint(function, _TAIL, "the hint names no way to end", f"write {fix}")
    given = function.attrs.get(_APART)
    if given is None:
        return
    if not isinstance(given, ArrayAttr) or given.element != I64:
        yield _complaint(function, _APART, "the pairs are an array of i64", _EXAMPLE)
        return
    if len(given.items) % 2:
        yield _complaint(function, _APART, "the pairs have an even number of indices", _EXAMPLE)
        return
    seen: set[frozenset[int]] = set()
    for pair in _pairs(function):
        why = _wrong(function, pair, seen)
        if why:
            yield _complaint(function, _APART, f"the pair {pair} {why}", _EXAMPLE)
        seen.add(frozenset(pair))


_EXAMPLE = "name two different parameters that point to global memory: array<i64: 0, 1>"


def _wrong(function: Function, pair: tuple[int, int], seen: set[frozenset[int]]) -> str:
    params = function.params
    if not all(0 <= index < len(params) for index in pair):
        return f"names an argument outside 0..{len(params) - 1}"
    if pair[0] == pair[1]:
        return "names an argument and itself"
    if frozenset(pair) in seen:
        return "is repeated"
    if not all(isinstance(params[index].type, PtrType | ViewType) for index in pair):
        return "must name pointers to or views of global memory"
    return ""


def _complaint(function: Function, key: str, what: str, fix: str) -> Diagnostic:
    return Diagnostic(
        "function-attribute", what, function.location, ((key, str(function.attrs[key])),), fix
    )
