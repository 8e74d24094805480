"""Tile, ConvTile and GlobalTensor as the pages write them, with brackets for template arguments.

`Tile[TileType.Vec, float32, 16, 16]` forms a type - its static rules are checked right there - and
calling the type makes a tile. `TileLeft`, `TileRight` and `TileAcc` leave the layout to the target
in force when the tile is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, ClassVar, cast

import numpy as np

from ptokit.base.diagnostics import Diagnostic, ProgramError, fail, where
from ptokit.base.dtypes import DType, dtype
from ptokit.base.entry import public
from ptokit.base.enums import BLayout, CompactMode, SLayout, TileType
from ptokit.base.layout import Array
from ptokit.base.tiles import DYNAMIC, TileSpec, Violation
from ptokit.frontend.advice import NotANumber
from ptokit.frontend.arguments import (
    arguments,
    choice,
    class_name,
    index,
    no_such_argument,
    template,
)
from ptokit.frontend.instruction import Instruction
from ptokit.frontend.session import current
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.named_tiles import NAMED_TILES, NamedTile
from ptokit.isa.targets import Target
from ptokit.isa.verify import joined_advice, recipe
from ptokit.machine.access import Access
from ptokit.machine.calls import tile_access
from ptokit.machine.faults import never_written
from ptokit.machine.objects import ConvObject, TileObject

__all__ = [
    "Tile", "TileAcc", "TileAccCompact", "TileLeft", "TileLeftCompact", "TileLeftScale",
    "TileLeftScaleCompact", "TileRight", "TileRightCompact", "TileRightScale",
    "TileRightScaleCompact",
]  # fmt: skip


def reject(violations: Iterable[Violation], what: str, spec: TileSpec | None = None) -> None:
    """Raise one error with every static rule that does not hold; of a tile, with sizes that do."""
    found: list[Diagnostic] = []
    for v in violations:
        from ptokit.isa.remedies import size_remedy  # for what is refused

        advice = joined_advice(recipe(v.code), size_remedy(spec, v) if spec else "")
        got = tuple((name, str(value)) for name, value in v.got)
        found.append(Diagnostic(v.code, f"{what}: {v.rule}", where(None), got, advice))
    if found:
        raise ProgramError(found)


def contents(tile: TileObject | ConvObject) -> Access:
    """All that a tile holds, once it has a place."""
    current().place(tile)
    return tile_access(tile)


def broadcast(values: Any, element: DType, shape: tuple[int, ...]) -> Array:
    """Values for a tile, in its element type and shape."""
    try:
        return np.broadcast_to(np.asarray(values, element.np), shape)
    except (ValueError, TypeError, OverflowError) as error:
        found = values.shape if isinstance(values, np.ndarray) else values
        raise fail(
            "fill-shape",
            f"the values are {element.name}, in the shape of the valid region or one for all",
            got=[("values", found), ("valid region", shape)],
            fix="shape the array like the tile, and convert it to its element type",
        ) from error


# ---- tiles -------------------------------------------------------------------------------------


_PATTERN = (
    "Tile[Loc, DType, Rows, Cols, BLayout, ValidRow, ValidCol, SLayout, SFractalSize, PadValue, "
    "CompactMode]"
)


@public
class TileMeta(type):
    """Gives tile classes their brackets and their static members."""

    spec_for: Callable[[Target], TileSpec] | None = None
    __repr__ = class_name

    def __getitem__(cls, given: Any) -> type[Tile]:
        with template("Tile", _PATTERN, given):
            args = arguments(given)
            read = (of(arg) for of, arg in zip(_READ, args, strict=False))
            spec = TileSpec.of(*read, *args[len(_READ) :])
        reject(spec.violations(), f"Tile[{spec}]", spec)
        return tile_class(spec)

    def __getattr__(cls, name: str) -> Any:
        reader = _STATIC.get(name)
        if reader is None or cls.spec_for is None:
            raise AttributeError(f"{cls.__name__} has no attribute {name}")
        return reader(cls.spec_for(current().target))


_STATIC: dict[str, Callable[[TileSpec], Any]] = {
    "Loc": lambda s: s.loc,
    "DType": lambda s: s.dtype,
    "Rows": lambda s: s.rows,
    "Cols": lambda s: s.cols,
    "ValidRow": lambda s: s.valid_row,
    "ValidCol": lambda s: s.valid_col,
    "RowStride": lambda s: s.row_stride,
    "ColStride": lambda s: s.col_stride,
    "Numel": lambda s: s.numel,
    "BFractal": lambda s: s.blayout,
    "SFractal": lambda s: s.slayout,
    "SFractalSize": lambda s: s.fractal,
    "PadVal": lambda s: s.pad,
    "Compact": lambda s: s.compact,
    "isRowMajor": lambda s: s.is_row_major,
    "InnerRows": lambda s: s.inner[0],
    "InnerCols": lambda s: s.inner[1],
}


@public
class Tile(NotANumber, TileObject, metaclass=TileMeta):
    """A two-dimensional tile of on-chip memory; write `Tile[...]` to form its type."""

    __slots__ = ()
    spec_for: ClassVar[Callable[[Target], TileSpec] | None] = None

    def __init__(self, *valid: int, **unknown: Any) -> None:
        if unknown:
            raise no_such_argument(type(self), unknown)
        if self.spec_for is None:
            raise fail(
                "tile-type",
                "Tile is not a type yet",
                fix="form one first: TileT = Tile[TileType.Vec, float32, 16, 16]",
            )
        spec = type(self).spec_for(current().target)  # type: ignore[misc]
        super().__init__(spec, *_valid_sizes(spec, valid))

    @classmethod
    def of(cls, spec: TileSpec) -> Tile:
        """Make a tile of a given spec; dynamic valid sizes start at the capacity."""
        return tile_class(spec)(
            *(n for v, n in ((spec.valid_row, spec.rows), (spec.valid_col, spec.cols)) if v < 0)
        )

    def numpy(self) -> Array:
        """The valid region as an array; poisoned elements make it an error."""
        access = contents(self)
        if not access.is_defined():
            row, col = access.first_poison()
            what = f"element [{row}, {col}] of this tile was never written"
            fix = "load or compute it first; an instruction writes only the valid region of dst"
            raise never_written(self, what, fix)
        return access.read().copy()

    def fill(self, values: Any) -> None:
        """Write the valid region from an array (for set-up and tests, not an instruction)."""
        access = contents(self)
        access.write(broadcast(values, self.spec.dtype, access.shape))
        access.mark_defined()

    def _repr_html_(self) -> str:
        from ptokit.pictures.layouts import tile_layout
        from ptokit.pictures.notebook import beside, card
        from ptokit.pictures.values import values_svg

        spec, pictures = self.spec, list[str]()
        if self.storage is not None:
            access = tile_access(self)
            pictures.append(values_svg(access.read(), access.defined(), (spec.rows, spec.cols)))
        pictures.append(tile_layout(spec, spec.layout, (self.vr, self.vc)))
        return card(str(self), beside(*pictures), note=f"{spec.nbytes} bytes")

    def GetValue(self, offset: int) -> int | float:
        """Read the element at an offset in memory order, in the scalar unit (see GETVAL)."""
        return cast("Any", Instruction(INSTRUCTIONS["GETVAL"])(self, offset))

    def SetValue(self, offset: int, value: float) -> None:
        """Write the element at an offset in memory order, in the scalar unit (see SETVAL)."""
        Instruction(INSTRUCTIONS["SETVAL"])(self, offset, value)


def _valid(size: int | None) -> int | None:
    return None if size is None else index(size)


# How each template argument of a tile is read, in order.
_READ: tuple[Callable[[Any], Any], ...] = (
    *(partial(choice, TileType), dtype, index, index, partial(choice, BLayout), _valid, _valid),
    *(partial(choice, SLayout), index, index, partial(choice, CompactMode)),
)


def _valid_sizes(spec: TileSpec, given: tuple[int, ...]) -> tuple[int, int]:
    static = (spec.valid_row, spec.valid_col)
    wanted = static.count(DYNAMIC)
    if len(given) != wanted:
        raise fail(
            "tile-constructor",
            "a tile is made with one argument per DYNAMIC valid size",
            got=[("arguments", given), ("DYNAMIC sizes", wanted), ("tile", spec)],
            fix="declare ValidRow or ValidCol DYNAMIC to give them here, TileT(rows, cols)",
        )
    rows, cols = static
    if given:
        with template("Tile", "TileT(rows, cols)", given, "arguments"):
            values = iter([index(size) for size in given])
        rows, cols = (next(values) if size == DYNAMIC else size for size in static)
    if not (0 <= rows <= spec.rows and 0 <= cols <= spec.cols):
        raise fail(
            "valid-capacity",
            "the valid region lies inside the tile",
            got=[("valid", f"{rows}x{cols}"), ("tile", spec)],
            fix=f"at most {spec.rows} rows and {spec.cols} columns, or declare a larger tile",
        )
    return rows, cols


@cache
def tile_class(spec: TileSpec) -> type[Tile]:
    members: dict[str, Any] = {"__slots__": (), "spec_for": staticmethod(lambda _: spec)}
    members["made_by"] = tile_class, (spec,)
    return TileMeta(f"Tile[{spec}]", (Tile,), members)  # type: ignore[return-value]


@public
class _Alias:
    """A tile type whose layout the target decides: `TileLeft[half, 64, 128]`."""

    def __init__(self, tile: NamedTile) -> None:
        self.__name__ = tile.name
        self._tile = tile

    def __getitem__(self, given: Any) -> type[Tile]:
        pattern = f"{self.__name__}[DType, Rows, Cols, ValidRow, ValidCol]"
        with template(self.__name__, pattern, given):
            element, rows, cols, *valid = arguments(given)
            parameters = dtype(element), index(rows), index(cols), tuple(map(_valid, valid))
        return self._class(*parameters)

    @cache  # noqa: B019 - the aliases live as long as the module
    def _class(
        self, element: DType, rows: int, cols: int, valid: tuple[int | None, ...]
    ) -> type[Tile]:
        def spec_for(target: Target) -> TileSpec:
            return self._tile.spec(target, element, rows, cols, *valid)

        name = f"{self.__name__}[{element.name}, {rows}, {cols}]"
        made = spec_for(current().target)
        reject(made.violations(), name, made)
        members: dict[str, Any] = {"__slots__": (), "spec_for": staticmethod(spec_for)}
        members["made_by"] = _of_alias, (self.__name__, element, rows, cols, valid)
        return TileMeta(name, (Tile,), members)  # type: ignore[return-value]

    def __repr__(self) -> str:
        return self.__name__


def _of_alias(name: str, *parameters: Any) -> type[Tile]:
    """The class that an alias makes of its parameters."""
    return globals()[name]._class(*parameters)


TileLeft = _Alias(NAMED_TILES["TileLeft"])
TileRight = _Alias(NAMED_TILES["TileRight"])
TileAcc = _Alias(NAMED_TILES["TileAcc"])
TileLeftScale = _Alias(NAMED_TILES["TileLeftScale"])
TileRightScale = _Alias(NAMED_TILES["TileRightScale"])
TileLeftCompact = _Alias(NAMED_TILES["TileLeftCompact"])
TileRightCompact = _Alias(NAMED_TILES["TileRightCompact"])
TileAccCompact = _Alias(NAMED_TILES["TileAccCompact"])
TileLeftScaleCompact = _Alias(NAMED_TILES["TileLeftScaleCompact"])
TileRightScaleCompact = _Alias(NAMED_TILES["TileRightScaleCompact"])
