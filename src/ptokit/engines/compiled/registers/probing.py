"""Which byte of a result is which of the operands, found out by running a body.

A body that only moves bytes, or bits, is run over operands that hold the numbers of their places;
what comes out is the table of the moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ptokit.base.layout import Array
from ptokit.isa.micro.footprints import ABSENT
from ptokit.isa.micro.spec import Slot
from ptokit.isa.micro.typed import Typed
from ptokit.machine.memory import Storage
from ptokit.machine.micro_calls import call_of
from ptokit.machine.registers import LocalPointer, Mask, Register


class Nowhere:
    """The unit of a body that is run to see what it makes."""

    order, turn, registers = None, 0, dict[str, Any]()

    def after(self, *_: Any) -> int:
        return 0


class FewBytes(Nowhere):
    """A unit whose memory is a few bytes."""

    place = None

    def __init__(self, content: Array, nbytes: int) -> None:
        self.memory = np.zeros(nbytes, np.uint8)
        if content.size == 8 * nbytes:
            self.memory[:] = np.packbits(content, bitorder="little")

    def raw(self, *_: Any, **__: Any) -> Array:
        return self.memory

    def lost(self, *_: Any) -> None:
        """All is defined."""

    def mask(self, bits: Array, lost: None) -> Mask:
        return Mask(bits)


_STORAGE = Storage("nowhere", 0)


def placeholder(slot: Slot, given: Typed) -> Any:
    """What a body is handed that only moves bits: the place does not matter."""
    if slot.kind == "ub":
        return LocalPointer(_STORAGE, given.kinds[slot.name], 0)
    return None if slot.kind == "B" else 0


def tables_of(
    given: Typed, args: Sequence[Any], vectors: Sequence[tuple[int, int, bool]]
) -> list[Array] | None:
    """For each result of a body that moves bytes, whence each comes; None: it does more."""
    total = sum(nbytes for _, nbytes, _ in vectors)
    if not vectors or len({is_mask for _, _, is_mask in vectors}) > 1:
        return None
    is_mask, call = vectors[0][2], call_of(given)

    def run(content: Array) -> list[Array] | None:
        handed, first = list(args), 0
        for at, nbytes, _ in vectors:
            part = content[first : first + nbytes].copy()
            handed[at] = Mask(part.view(np.bool_)) if is_mask else Register(part)
            first += nbytes
        with np.errstate(all="ignore"):
            found = call(Nowhere(), *handed)
        made = found if isinstance(found, tuple) else (found,)
        if not all(isinstance(each, Mask if is_mask else Register) for each in made):
            return None
        return [
            np.ascontiguousarray(each.bits if is_mask else each.data).view(np.uint8).reshape(-1)
            for each in made
        ]

    return origins(run, total, 1 if is_mask else 8)


def origins(
    run: Callable[[Array], list[Array] | None], total: int, bits: int
) -> list[Array] | None:
    """For each result of what moves bytes, or bits, whence each comes; None: it does more.

    It is run over operands that hold the numbers of their places, digit by digit, and then over
    others to see whether it did nothing but move them.
    """
    numbers = np.arange(1, total + 1)  # 0 is what comes from nowhere
    tables: list[Array] = []
    for shift in range(0, int(total).bit_length(), bits):
        digits = (numbers >> shift & ((1 << bits) - 1)).astype(np.uint8)
        left = run(digits)
        if left is None:
            return None
        tables = tables or [np.zeros(each.size, np.int64) for each in left]
        for table, each in zip(tables, left, strict=True):
            table += each.astype(np.int64) << shift
    rng = np.random.default_rng(total)
    tables = [table - 1 for table in tables]  # 0, of nowhere, becomes ABSENT
    if any(table.max() >= total for table in tables):
        return None
    for _ in range(4):
        content = rng.integers(0, 1 << bits, total, dtype=np.uint8)
        left = run(content)
        assert left is not None
        for table, each in zip(tables, left, strict=True):
            if (np.where(table == ABSENT, 0, content[table]) != each).any():
                return None
    return tables
