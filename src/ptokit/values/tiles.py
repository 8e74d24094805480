"""Tiles for values: which type a value of some sizes has, and how one is made on either path."""

from __future__ import annotations

from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import DType, dtype, u8
from ptokit.base.enums import BLayout, TileType
from ptokit.base.tiles import BLOCK_BYTES, DYNAMIC, TileSpec
from ptokit.frontend.lowering.calls import make_tile
from ptokit.frontend.lowering.tracer import Tracer
from ptokit.frontend.session import current
from ptokit.frontend.types import tile_class

Size = Any  # a whole number, or one that is known when the kernel runs


@dataclass(frozen=True, eq=False)
class Extent:
    """Rows and columns: at most so many, and so many in force."""

    rows: int
    cols: int
    valid: tuple[Size, Size]

    @property
    def sizes(self) -> tuple[int, int]:
        return self.rows, self.cols

    @property
    def column(self) -> Extent:
        """One element for every row."""
        return Extent(self.rows, 1, (self.valid[0], 1))

    @property
    def row(self) -> Extent:
        """One element for every column."""
        return Extent(1, self.cols, (1, self.valid[1]))

    @property
    def turned(self) -> Extent:
        """Rows as columns."""
        return Extent(self.cols, self.rows, self.valid[::-1])

    def met(self, other: Extent) -> Extent | None:
        """What both have in common; a single row or column repeats. None: nothing."""
        rows = _met(self.rows, other.rows, self.valid[0], other.valid[0])
        cols = _met(self.cols, other.cols, self.valid[1], other.valid[1])
        if rows is None or cols is None:
            return None
        return Extent(rows[0], cols[0], (rows[1], cols[1]))

    def __str__(self) -> str:
        return f"{self.rows}x{self.cols}"


def _met(a: int, b: int, mine: Size, theirs: Size) -> tuple[int, Size] | None:
    if b == 1 or a == b:
        return a, mine
    return (b, theirs) if a == 1 else None


def _declared(size: Size, most: int) -> int:
    return most if isinstance(size, int) and size == most else DYNAMIC


def vector_type(shape: Extent, element: DType) -> TileSpec:
    """A tile of the unified buffer: in rows, or as one column where there is one element a row."""
    line = BLOCK_BYTES // element.itemsize
    rows, cols = _declared(shape.valid[0], shape.rows), _declared(shape.valid[1], shape.cols)
    if shape.cols == 1 and shape.rows > 1:
        tall = _up(shape.rows, line)
        return TileSpec.of(TileType.Vec, element, tall, 1, BLayout.ColMajor, rows, cols)
    wide = _up(shape.cols, line)
    return TileSpec.of(TileType.Vec, element, shape.rows, wide, BLayout.RowMajor, rows, cols)


def mask_type(shape: Extent) -> TileSpec:
    """A tile with a bit per element: whole registers of bits a row, as comparisons store them."""
    width = 32 * -(-shape.cols // 256)
    rows = _declared(shape.valid[0], shape.rows)
    return TileSpec.of(TileType.Vec, u8, shape.rows, width, BLayout.RowMajor, rows, width)


def made(spec: TileSpec, valid: tuple[Size, Size]) -> Any:
    """A tile of a type; `valid` are the sizes that the type leaves open."""
    kind = tile_class(spec)
    pairs = zip((spec.valid_row, spec.valid_col), valid, strict=True)
    sizes = [size for declared, size in pairs if declared == DYNAMIC]
    machine = current()
    if isinstance(machine, Tracer):
        return make_tile(machine.emitter, kind, sizes)
    return kind(*sizes)


def two_sizes(shape: Any) -> tuple[int, int]:
    """Rows and columns that somebody gave."""
    if (
        isinstance(shape, tuple)
        and len(shape) == 2
        and all(isinstance(n, int) and n > 0 for n in shape)
    ):
        return shape
    raise fail(
        "value-shape",
        "a value has rows and columns, positive whole numbers that are known",
        got=[("shape", shape)],
        fix="(16, 64)",
    )


def element_of(given: Any) -> DType:
    """An element type that somebody named."""
    try:
        return dtype(given)
    except (TypeError, ValueError) as error:
        raise fail("value-operand", str(error), fix="float32, half, int32 ...") from None


def beside_cube(kind: Any) -> Any:
    """A tile of L0, laid out as the target has it."""
    return made(kind.spec_for(current().target), (0, 0))


def _up(size: int, line: int) -> int:
    return -(-size // line) * line
