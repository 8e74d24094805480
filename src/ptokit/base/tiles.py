"""Tile types: what `Tile<...>` says about a window of on-chip memory.

A `TileSpec` is a value: two tiles have the same type exactly when their specs are the same object
(`TileSpec.of` interns), which lets the simulator key its calls by identity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache, cached_property, lru_cache
from typing import Any, cast

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.enums import BLayout, CompactMode, PadValue, SLayout, TileType
from ptokit.base.layout import AxisMap, dense_strides

DYNAMIC = -1  # a size that is known only when the kernel runs

BLOCK_BYTES = 32  # the unit of every on-chip transfer
BOX_BYTES = (512, 1024, 32)  # legal fractal sizes: operand boxes, accumulator boxes, MX scale boxes

LAYOUT_NAMES = {
    (BLayout.RowMajor, SLayout.NoneBox): "ND",
    (BLayout.ColMajor, SLayout.NoneBox): "DN",
    (BLayout.ColMajor, SLayout.RowMajor): "NZ",
    (BLayout.RowMajor, SLayout.RowMajor): "ZZ",
    (BLayout.RowMajor, SLayout.ColMajor): "ZN",
    (BLayout.ColMajor, SLayout.ColMajor): "NN",
}


class Interned:
    """A type that is a value: `of` gives the one object with these fields, also after pickling."""

    def __reduce__(self) -> tuple[object, ...]:
        named = fields(cast("Any", self))
        return interned, (type(self), *(getattr(self, field.name) for field in named))


@cache
def interned(kind: type[Any], *values: Any) -> Any:
    """The one object of a type with these fields."""
    return kind(*values)


@dataclass(frozen=True)
class Violation:
    """A static rule of a type that does not hold: assertion id, the rule, the values."""

    code: str
    rule: str
    got: tuple[tuple[str, object], ...]


@dataclass(frozen=True, eq=False)
class TileSpec(Interned):
    """The eleven template parameters of a tile, and everything that follows from them."""

    loc: TileType
    dtype: DType
    rows: int
    cols: int
    blayout: BLayout
    valid_row: int
    valid_col: int
    slayout: SLayout
    fractal: int
    pad: int
    compact: CompactMode

    @staticmethod
    def of(
        loc: TileType,
        dtype: DType,
        rows: int,
        cols: int,
        blayout: BLayout = BLayout.RowMajor,
        valid_row: int | None = None,
        valid_col: int | None = None,
        slayout: SLayout = SLayout.NoneBox,
        fractal: int = 512,
        pad: int = PadValue.Null,
        compact: CompactMode = CompactMode.Null,
    ) -> TileSpec:
        """Return the one spec with these parameters; the valid region defaults to the tile."""
        vr = rows if valid_row is None else valid_row
        vc = cols if valid_col is None else valid_col
        pad = PadValue(pad) if pad <= PadValue.Min else pad
        sizes = rows, cols, blayout, vr, vc
        return interned(TileSpec, loc, dtype, *sizes, slayout, fractal, pad, compact)

    def but(self, **changed: Any) -> TileSpec:
        """The same type with some parameters changed."""
        return TileSpec.of(
            **{each.name: getattr(self, each.name) for each in fields(self)} | changed
        )

    # ---- what the parameters mean -----------------------------------------------------------

    @cached_property
    def layout(self) -> str:
        """ND, DN, NZ, ZN, ZZ or NN."""
        return LAYOUT_NAMES[self.blayout, self.slayout]

    @cached_property
    def is_boxed(self) -> bool:
        return self.slayout != SLayout.NoneBox

    @cached_property
    def is_row_major(self) -> bool:
        return self.blayout == BLayout.RowMajor

    @cached_property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @cached_property
    def inner(self) -> tuple[int, int]:
        """Rows and columns of one box; (1, 1) for plain tiles."""
        if not self.is_boxed:
            return (1, 1)
        if self.fractal == 1024:
            return (16, 16)
        short = 2 if self.fractal == 32 else BLOCK_BYTES // self.itemsize
        return (16, short) if self.slayout == SLayout.RowMajor else (short, 16)

    @cached_property
    def box(self) -> tuple[int, int]:
        """Rows and columns of one box in memory: that of an accumulator is the cube's own."""
        rows, cols = (16, 16) if self._is_result else self.inner
        if self.is_boxed and self.dtype.is_packed:  # a line of a box has 32 bytes
            wide = (rows, 2 * cols) if self.slayout == SLayout.RowMajor else (2 * rows, cols)
            if self.rows % wide[0] == 0 == self.cols % wide[1]:
                return wide
        return rows, cols

    @cached_property
    def _is_result(self) -> bool:
        """Whether the cube lays it out: in boxes of 16 rows, of which it fills the first ones."""
        is_acc = self.loc == TileType.Acc and self.layout == "NZ" and self.itemsize == 4
        return is_acc and self.cols % 16 == 0

    @cached_property
    def row_stride(self) -> int:
        """Plain 2-D row stride in elements, also for boxed tiles."""
        return self.cols if self.is_row_major else 1

    @cached_property
    def col_stride(self) -> int:
        return 1 if self.is_row_major else self.rows

    @cached_property
    def numel(self) -> int:
        return self.rows * self.cols

    @cached_property
    def nbytes(self) -> int:
        """Bytes reserved: one storage item per element (4-bit types are not halved)."""
        rows = -(-self.rows // 16) * 16 if self._is_result else self.rows
        return rows * self.cols * self.itemsize

    @property
    def has_dynamic_valid(self) -> bool:
        return DYNAMIC in (self.valid_row, self.valid_col)

    def axis_map(self, valid_row: int, valid_col: int) -> AxisMap:
        """The address map. The valid sizes matter only for the compact modes."""
        rows, cols, pitch = self.rows, self.cols, 0
        inner_rows, inner_cols = self.box
        if self.compact == CompactMode.Normal and self.is_boxed:
            rows = -(-valid_row // inner_rows) * inner_rows
            cols = -(-valid_col // inner_cols) * inner_cols
        elif self.compact == CompactMode.RowPlusOne and self.layout == "NZ":
            pitch = (-(-valid_row // 16) * 16 + 1) * inner_cols
        elif self._is_result:
            pitch = -(-rows // 16) * 16 * inner_cols
        return _axis_map(self.layout, rows, cols, inner_rows, inner_cols, pitch)

    # ---- static checks ----------------------------------------------------------------------

    def violations(self) -> Iterator[Violation]:
        """Yield every static rule of the tile type that does not hold."""
        size = (("Rows", self.rows), ("Cols", self.cols))
        valid = (("ValidRow", self.valid_row), ("ValidCol", self.valid_col))
        if (
            min(self.rows, self.cols) <= 0
            or self.valid_row > self.rows
            or self.valid_col > self.cols
        ):
            yield Violation(
                "SA-0065",
                "Rows and Cols are positive, static valid sizes fit in them",
                size + valid,
            )
            return
        if self.fractal not in BOX_BYTES:
            yield Violation(
                "SA-0095",
                "the fractal size is 512, 1024 or 32 bytes",
                (("SFractalSize", self.fractal),),
            )
            return
        if not self.is_boxed:
            yield from self._unboxed_violations()
            return
        if self.fractal == 1024 and self.itemsize != 4 and self.loc != TileType.Acc:
            yield Violation(
                "SA-0097",
                "a 1024-byte fractal holds 4-byte elements",
                (("sizeof(DType)", self.itemsize),),
            )
        inner_rows, inner_cols = self.inner
        free_rows = self.loc == TileType.Vec or self.fractal == 32 or self.rows == 1
        if self.rows % inner_rows and not free_rows:
            yield Violation(
                "SA-0067",
                "Rows of a boxed tile are a multiple of the box height",
                (("Rows", self.rows), ("box height", inner_rows)),
            )
        if self.cols % inner_cols:
            yield Violation(
                "SA-0066",
                "Cols of a boxed tile are a multiple of the box width",
                (("Cols", self.cols), ("box width", inner_cols)),
            )

    def _unboxed_violations(self) -> Iterator[Violation]:
        name, line = ("Cols", self.cols) if self.is_row_major else ("Rows", self.rows)
        if line * self.itemsize % BLOCK_BYTES:
            order = "row-major" if self.is_row_major else "column-major"
            yield Violation(
                "SA-0006",
                f"{name} * sizeof(DType) of a {order} tile is a multiple of 32 bytes",
                ((name, line), ("sizeof(DType)", self.itemsize)),
            )

    def __str__(self) -> str:
        parts = [self.loc.name, self.dtype.name, f"{self.rows}x{self.cols}"]
        if (self.valid_row, self.valid_col) != (self.rows, self.cols):
            valid = ("?" if v == DYNAMIC else str(v) for v in (self.valid_row, self.valid_col))
            parts.append("valid " + "x".join(valid))
        if self.layout != "ND":
            parts.append(self.layout if self.fractal == 512 else f"{self.layout}/{self.fractal}")
        if self.pad != PadValue.Null:
            parts.append(f"pad {PadValue(self.pad).name if self.pad <= 3 else hex(self.pad)}")
        if self.compact != CompactMode.Null:
            parts.append(f"compact {self.compact.name}")
        return " ".join(parts)

    __repr__ = __str__


@lru_cache(maxsize=4096)
def _axis_map(
    layout: str, rows: int, cols: int, inner_rows: int, inner_cols: int, pitch: int
) -> AxisMap:
    """Build the map of one layout; `pitch` overrides the distance of NZ column blocks.

    NZ and ZN need only three axes: inside a column (row) of boxes the rows (columns) continue
    across box borders.
    """
    if rows == 1:
        inner_rows = 1  # a single-row boxed tile is a plain vector
    if layout == "ND":
        return AxisMap((rows, cols), (cols, 1), (0,), (1,))
    if layout == "DN":
        return AxisMap((rows, cols), (1, rows), (0,), (1,))
    if layout == "NZ":
        shape = (cols // inner_cols, rows, inner_cols)
        return AxisMap(shape, (pitch or rows * inner_cols, inner_cols, 1), (1,), (0, 2))
    if layout == "ZN":
        shape = (rows // inner_rows, cols, inner_rows)
        return AxisMap(shape, dense_strides(shape), (0, 2), (1,))
    if layout == "ZZ":
        shape = (rows // inner_rows, cols // inner_cols, inner_rows, inner_cols)
        return AxisMap(shape, dense_strides(shape), (0, 2), (1, 3))
    shape = (cols // inner_cols, rows // inner_rows, inner_cols, inner_rows)  # NN
    return AxisMap(shape, dense_strides(shape), (1, 3), (0, 2))
