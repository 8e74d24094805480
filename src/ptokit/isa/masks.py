"""Packed masks: one bit per element, and the form of an instruction that writes one.

Row i of a mask starts so many bytes past row i - 1 as its tile says, and element j of that row is
bit j % 8, counted from the lowest, of byte j // 8. The element type of the tile decides how far its
rows lie apart, never the order of the bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.layout import Array
from ptokit.isa.arrays import Code, pack_mask
from ptokit.isa.costs import SELECTION, Cost
from ptokit.isa.expr import Arg, Expr, walk
from ptokit.isa.facts import Ops
from ptokit.isa.meaning import Body, Form, Kinds, Meaning
from ptokit.isa.services import Poison


@dataclass(frozen=True)
class Packed(Form):
    """Bit j of dst[i] = f(src0[i, j], ...), over the valid region of src0.

    More columns than these may be handed over: hardware compares whole registers, and what lies
    behind a row is compared as well. A byte that is made of undefined elements is undefined.
    """

    columns: Callable[[Ops], int]  # that must be defined
    inverts: Callable[[Ops], int]  # bytes of a row that are inverted, behind those that are stored
    places: Callable[[Ops], Array | None]  # where elements lie, if sources are handed over as lines
    streams: bool = False
    cost: Cost = SELECTION

    @property
    def services(self) -> frozenset[str]:
        return frozenset({"poison", "ops"})

    def symbols(self, kinds: Kinds, names: Sequence[str]) -> dict[str, Arg]:
        kind = kinds["src0"]
        assert kind is not None
        return {n: Arg(kind, n, kinds[n] is None) for n in names if n in kinds}

    def region(self, name: str, roles: Mapping[str, str]) -> None:
        return None

    def code(self, meaning: Meaning, ops: Ops, exprs: tuple[Expr, ...]) -> Body:
        answers = _function(meaning, exprs[0])
        tiles = [name for name in ("src0", "src1") if name in meaning.operands]

        def body(dst: Array, src0: Array, other: Any, poison: Poison, ops: Ops) -> None:
            columns, places = self.columns(ops), self.places(ops)
            missing = np.zeros((1, 1), np.bool_)
            for name in tiles:
                missing = missing | _undefined(name, columns, places, poison)
            if places is not None:
                src0, other = src0[places], other[places]
            stored = dst.shape[1] - self.inverts(ops)
            behind, left_open = ~dst[:, stored:], poison.undefined("dst")
            bits = answers(src0, other)
            pack_mask(bits, dst[:, :stored])
            dst[:, stored:] = behind
            where = np.zeros(dst.shape, np.bool_)
            if missing.any():
                bad = np.broadcast_to(missing, bits.shape)
                pack_mask(bad, packed := np.zeros(dst.shape, np.uint8))
                where = packed != 0
                where[:, : -(-columns // 8)] = False
            if left_open is not None:
                where[:, stored:] |= left_open[:, stored:]
            if where.any():
                poison.poison_where("dst", where)

        return body

    def reached(self, elements: Array, shape: tuple[int, int]) -> Array | None:
        """The bytes of a row are made of the elements of that row."""
        if len(elements) != shape[0]:
            return None
        return np.broadcast_to(elements.any(axis=1, keepdims=True), shape)

    def line(self, meaning: Meaning, texts: Sequence[str]) -> str:
        return f"bit j of dst[i] = {texts[0]}"


def _function(meaning: Meaning, expr: Expr) -> Callable[..., Array]:
    """The answers, of arrays and numbers."""
    code = Code(meaning.name, meaning.operands[1:])
    for arg in dict.fromkeys(node for node in walk(expr) if isinstance(node, Arg)):
        if arg.is_number:
            code.number(arg)
    code.counting(expr)
    return code.function(code.value(expr))


def _undefined(name: str, columns: int, places: Array | None, poison: Poison) -> Array:
    """Which elements of a source are undefined; those that count may not be."""
    if places is None:
        poison.demand(name, (slice(None), slice(0, columns)))
        missing = poison.undefined(name)
        return np.zeros((1, 1), np.bool_) if missing is None else missing
    missing = poison.undefined(name)
    if missing is None:
        return np.zeros((1, 1), np.bool_)
    needed = np.zeros(missing.size, np.bool_)
    needed[places[:, :columns]] = True
    poison.demand_where(name, needed)
    return missing.reshape(-1)[places]
