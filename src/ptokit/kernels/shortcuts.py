"""Launches like one that was repeated: recognised by their arguments, without asking all again.

What decides about a launch - the program it is specialised for, its verdict, what can be repeated -
follows from a few facts that are quickly compared. Most launches in a loop differ in nothing but
what their arrays hold.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from ptokit.base.addresses import address_of
from ptokit.base.diagnostics import Diagnostic
from ptokit.base.namedtuple import NamedTuple
from ptokit.frontend.launch import Schedule
from ptokit.isa.targets import Target
from ptokit.machine.ranks import here

USUAL = Schedule()
_MOST = 256


class Shortcut(NamedTuple):
    """What is known of a launch."""

    question: Hashable  # under which it is repeated
    threads: int
    target: Target
    mode: str
    path: str
    found: tuple[Diagnostic, ...]


class Shortcuts:
    """What is known of launches of a kernel, by all that tells them apart."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Shortcut] = {}

    def get(self, key: Hashable | None) -> Shortcut | None:
        return None if key is None or here() is not None else self._known.get(key)

    def keep(self, key: Hashable, found: Shortcut) -> None:
        """Remember a launch that was repeated; who asks ever anew is not helped."""
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[key] = found

    def clear(self) -> None:
        self._known.clear()


def key_of(
    args: tuple[Any, ...],
    consts: Mapping[str, Any],
    lowering: Mapping[str, Any],
    schedule: Schedule,
    options: tuple[Hashable, ...],
) -> Hashable | None:
    """What tells a launch from others; None where that takes a closer look.

    Arrays are whole and apart from each other, numbers are Python's.
    """
    kinds: list[Hashable] = []
    spans: list[tuple[int, int]] = []
    for value in args:
        if value.__class__ is np.ndarray:
            flags = value.flags
            if not (flags.c_contiguous and flags.aligned and value.ndim):
                return None
            kinds.append((value.dtype, value.shape, flags.writeable))
            begin = address_of(value)
            spans.append((begin, begin + value.nbytes))
        elif value.__class__ in (int, bool, float):
            kinds.append(_constant(value))
        else:
            return None
    if (schedule is not USUAL and schedule != USUAL) or _overlap(spans):
        return None
    named = tuple((name, _constant(value)) for name, value in consts.items())
    key = (options, tuple(kinds), named, tuple(lowering.values()))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _constant(value: Any) -> Hashable:
    """A value as what tells it from others: 1, 1.0 and True are equal, as are 0.0 and -0.0."""
    if isinstance(value, float | np.floating):
        return value.__class__, repr(value)
    if isinstance(value, tuple):
        return value.__class__, *map(_constant, value)  # type: ignore[arg-type]
    return value.__class__, value


def _overlap(spans: Iterable[tuple[int, int]]) -> bool:
    last = 0
    for begin, end in sorted(spans):
        if begin < last:
            return True
        last = end
    return False
