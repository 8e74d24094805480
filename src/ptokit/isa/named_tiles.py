"""Tile types that have a name of their own: the target decides their layout."""

from __future__ import annotations

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.enums import CompactMode, TileType
from ptokit.base.tiles import LAYOUT_NAMES, TileSpec
from ptokit.isa.targets import Target

_LAYOUTS = {name: pair for pair, name in LAYOUT_NAMES.items()}


@dataclass(frozen=True)
class NamedTile:
    """`TileLeft` and its kin: memory, order of the boxes (empty: that of L0A), bytes of a box."""

    name: str
    loc: TileType
    layout: str
    fractal: int = 512
    compact: CompactMode = CompactMode.Null

    def spec(
        self, target: Target, element: DType, rows: int, cols: int, *valid: int | None
    ) -> TileSpec:
        """The tile of these sizes on a target."""
        blayout, slayout = _LAYOUTS[self.layout or target.left_layout]
        valid_row, valid_col = (*valid, None, None)[:2]
        layout = blayout, valid_row, valid_col, slayout, self.fractal
        return TileSpec.of(self.loc, element, rows, cols, *layout, compact=self.compact)


_PLAIN = (
    NamedTile("TileLeft", TileType.Left, ""),
    NamedTile("TileRight", TileType.Right, "ZN"),
    NamedTile("TileAcc", TileType.Acc, "NZ", 1024),
    NamedTile("TileLeftScale", TileType.ScaleLeft, "ZZ", 32),
    NamedTile("TileRightScale", TileType.ScaleRight, "NN", 32),
)
NAMED_TILES = {
    tile.name: tile
    for tile in (
        *_PLAIN,
        *(
            NamedTile(f"{t.name}Compact", t.loc, t.layout, t.fractal, CompactMode.Normal)
            for t in _PLAIN
        ),
    )
}


def name_of(spec: TileSpec, target: Target) -> str:
    """The name of a tile type on a target; empty where it has none."""
    sizes = spec.dtype, spec.rows, spec.cols, spec.valid_row, spec.valid_col
    return next((n for n, t in NAMED_TILES.items() if t.spec(target, *sizes) == spec), "")
