"""Well-known loops that a body amounts to for some operands, said beside it in its record.

A body is NumPy code, which no compiler reads. Where it does for these operands what one of the
loops below does, its record says so (`insn(..., idiom=...)`), and whoever compiles instructions
takes the loop instead. The body stays the definition: both must leave the same bytes, up to the
freedom that the record states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ptokit.base.dtypes import DType, u8, u16, u32, u64
from ptokit.isa.expr import Arg, Expr

_BITS: dict[int, DType] = {8: u8, 16: u16, 32: u32, 64: u64}


@dataclass(frozen=True)
class Elementwise:
    """`to` becomes the expression, element by element.

    Sources have the shape of the result, or are larger: `at` is the first row and column of theirs.
    Those of `per_row` hold one element for each row, one behind the other.
    """

    to: str
    expr: Expr
    at: tuple[int, int] | None = None  # None: they have that shape, or it is another case
    per_row: frozenset[str] = frozenset()

    @property
    def is_copy(self) -> bool:
        """Whether elements stay what they are; in any other case, too, bytes are only moved."""
        return isinstance(self.expr, Arg)


@dataclass(frozen=True)
class Product:
    """`to` becomes `left` times `right`, added to `start` where there is one.

    `start` is `to` itself, or a row that every row starts from.
    """

    to: str
    left: str
    right: str
    start: str | None = None


@dataclass(frozen=True)
class Moves:
    """Every byte that is written is one that is read, or the same whatever is read.

    Which one follows from types, numbers and registers.
    """


MOVES = Moves()
Idiom = Elementwise | Product | Moves | tuple[Elementwise, ...]
Find = Callable[[Any], Idiom | None]


def copy(
    to: str, source: DType, name: str = "src", at: tuple[int, int] | None = None
) -> Elementwise | None:
    """The bits of `source` elements, as they are."""
    kind = None if source.is_packed else _BITS.get(source.bits)
    return None if kind is None else Elementwise(to, Arg(kind, name), at)
