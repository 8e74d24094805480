"""Well-known loops that a body amounts to for some operands, said beside it in its record.

A body is NumPy code, which no compiler reads. Where it does for these operands what one of the
loops below does, its record says so (`insn(..., idiom=...)`), and whoever compiles instructions
takes the loop instead. The body stays the definition: both must leave the same bytes, up to the
freedom that the record states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType, u8, u16, u32, u64
from ptokit.isa.expr import Arg, Expr

_BITS: dict[int, DType] = {8: u8, 16: u16, 32: u32, 64: u64}


@dataclass(frozen=True)
class Elementwise:
    """`to` becomes the expression, element by element.

    Sources have the shape of the result, or are larger: `at` is the first row and column of theirs.
    Those of `per_row` hold one element for each row, one after the other.
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

    `start` is `to` itself, or a row that every row starts from. Where there are scales, of both
    factors, each is for 32 elements along k, and sums are those of doubles, rounded once.
    """

    to: str
    left: str
    right: str
    start: str | None = None
    scales: tuple[str, str] | None = None


@dataclass(frozen=True)
class Moves:
    """Every byte that is written is one that is read, or the same whatever is read.

    Which one follows from types, numbers and registers.
    """


@dataclass(frozen=True)
class Sort:
    """`to` becomes, row by row, records of a value and its index, every `run` of them in descending
    order (`isa/sort_records.py`). `indices` has one row for all, or one for each."""

    to: str
    values: str
    indices: str
    run: int


@dataclass(frozen=True)
class Merge:
    """`to` becomes the records of some lists, the greatest head first, of equal ones that of the
    first list. With `block`, every `ways` neighbouring blocks of so many records are lists."""

    to: str
    lists: tuple[str, ...]
    block: int | None = None
    ways: int = 4


@dataclass(frozen=True)
class Lookup:
    """Each index names an entry of `table`; those go to `tile` in the order of the indices, or, for
    a scatter, the other way round, the last of several for one entry last.

    An index beyond the table is one for the last entry (Clamp), for that modulo the entries (Wrap),
    for zeros (Zero), for none (Skip); otherwise what it means is left to the body.
    """

    tile: str
    table: str
    index: str
    size: int  # bytes of an entry
    step: int | None  # bytes from one entry to the next; None: they are the rows of the table
    entries: int
    scatters: bool = False
    clears: bool = False  # first the table becomes zero
    is_unsigned: bool = False  # whatever the type of the indices
    aligned: int = 1  # what an index has to be a multiple of
    beyond: str = ""
    per_row: bool = False  # an index for each row of the tile


MOVES = Moves()
Idiom = Elementwise | Product | Moves | Sort | Merge | Lookup | tuple[Elementwise, ...]
Find = Callable[[Any], Idiom | None]


def copy(
    to: str, source: DType, name: str = "src", at: tuple[int, int] | None = None
) -> Elementwise | None:
    """The bits of `source` elements, as they are."""
    kind = None if source.is_packed else _BITS.get(source.bits)
    return None if kind is None else Elementwise(to, Arg(kind, name), at)
