"""Values put together of others: tuples and dataclasses, taken apart and put together again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass

_NO_RECORDS = {np.ndarray, int, float, bool}  # most arguments


@dataclass(frozen=True)
class Tree:
    """A value taken apart."""

    shape: Any  # equal for values that are put together alike
    leaves: tuple[Any, ...]
    build: Callable[[Sequence[Any]], Any]


def taken_apart(value: Any, is_open: Callable[[Any], bool] | None = None) -> Tree:
    """Tuples and dataclasses by element, anything else as one leaf.

    `is_open` says which dataclasses; those that cannot change unless told otherwise.
    """
    parts: list[Any] | None = None
    make: Callable[[list[Any]], Any] = tuple
    if isinstance(value, tuple):
        parts = list(value)
        if type(value) is not tuple:
            kind: Any = type(value)
            make = lambda each: kind(*each)  # noqa: E731
    elif (is_open or is_frozen)(value):
        names = [f.name for f in fields(value)]
        parts = [getattr(value, name) for name in names]
        make = lambda each: _remade(value, dict(zip(names, each, strict=True)))  # noqa: E731
    if parts is None:
        return Tree("leaf", (value,), lambda leaves: leaves[0])
    trees = [taken_apart(part, is_open) for part in parts]
    count = [len(tree.leaves) for tree in trees]

    def build(leaves: Sequence[Any]) -> Any:
        rest = iter(leaves)
        return make(
            [t.build([next(rest) for _ in range(n)]) for t, n in zip(trees, count, strict=True)]
        )

    return Tree(
        (type(value), *(tree.shape for tree in trees)),
        tuple(leaf for tree in trees for leaf in tree.leaves),
        build,
    )


def is_frozen(value: Any) -> bool:
    """Whether a value is a dataclass that cannot change."""
    return is_record(value) and type(value).__dataclass_params__.frozen  # type: ignore[attr-defined]


class Opened:
    """A dataclass of ours that kernels carry and choose by its fields, as they do the user's."""


def is_record(value: Any) -> bool:
    """Whether a value is a dataclass of the user's; element types and such are one value each."""
    if type(value) in _NO_RECORDS or not is_dataclass(value) or isinstance(value, type):
        return False
    return isinstance(value, Opened) or not type(value).__module__.startswith("ptokit.")


def _remade(value: Any, cells: dict[str, Any]) -> Any:
    made = object.__new__(type(value))
    for name, cell in cells.items():
        object.__setattr__(made, name, cell)
    return made
