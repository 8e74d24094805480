"""Block-scaled matrices (MX): elements of few bits, and a power of two for every 32 along K."""

from __future__ import annotations

from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.dtypes import DType
from ptokit.base.entry import public
from ptokit.base.enums import BLayout, Layout, SLayout, TileType
from ptokit.base.tiles import TileSpec
from ptokit.frontend.api import TGET_SCALE_ADDR, TLOAD, TMOV
from ptokit.frontend.trees import Opened
from ptokit.frontend.types import TileLeftScale, TileRightScale
from ptokit.isa.matrix_mx import BLOCK
from ptokit.values.matrix import InL1, known_sizes, stage
from ptokit.values.memory import arranged, sizes_of, view_of
from ptokit.values.tiles import beside_cube, made
from ptokit.values.value import Value

_BOX_BYTES = 32  # of scales: 16 rows or columns of a pair


@public
def scaled(part: Any, scales: Any) -> Scaled:
    """A matrix with its scales, for `dot`, in L1.

    Of the first matrix of a product, rows x K, there is one scale for every 32 of a row, of the
    second one, K x columns, for every 32 of a column: `scaled(a[:, k : k + 64], sa[:, s : s + 2])`
    and `scaled(b[k : k + 64, :], sb[:, s : s + 2].T)` for arrays of scales [rows, K / 32] and
    [columns, K / 32].
    """
    view = view_of(scales)
    sizes = known_sizes(sizes_of(view))
    data = stage(part)
    is_left = sizes == (data.shape[0], data.shape[1] // BLOCK)
    lines, count = sizes if is_left else sizes[::-1]
    _, _, _, down, right = (view.GetStride(axis) for axis in range(5))
    along, step = (right, down) if is_left else (down, right)
    fits = is_left or sizes == (data.shape[0] // BLOCK, data.shape[1])
    if not fits or along != 1 or count % 2:
        raise _unfit(data, sizes)
    layout = Layout.MX_A_ND if is_left else Layout.MX_B_DN
    # Scales travel in pairs: the last dimension of a view is 2.
    pairs = arranged(view, (1, 1, lines, count // 2, 2), (1, 1, step, 2, 1), layout)
    outer, inner = (BLayout.RowMajor, SLayout.RowMajor) if is_left else (
        BLayout.ColMajor, SLayout.ColMajor)  # fmt: skip
    kind = view.spec.dtype
    tile = made(TileSpec.of(TileType.Mat, kind, *sizes, outer, *sizes, inner, _BOX_BYTES), sizes)
    TLOAD(tile, pairs)
    return Scaled(data, Value(tile), is_left)


@dataclass(frozen=True, eq=False)
class Scaled(Opened):
    """A matrix with its scales, both in L1; one of the two factors of a product."""

    data: Value
    scales: Value
    is_left: bool

    @property
    def dtype(self) -> DType:
        return self.data.dtype

    @property
    def shape(self) -> tuple[int, int]:
        return known_sizes(self.data.shape)

    @property
    def is_scaled(self) -> bool:
        return True

    def beside(self, place: TileType) -> tuple[Any, ...]:
        """The matrix and its scales, which the cube looks for beside it."""
        if self.is_left != (place == TileType.Left):
            raise _unfit(self.data, self.scales.shape)
        (near,) = InL1(self.data).beside(place)
        kind = TileLeftScale if self.is_left else TileRightScale
        scales = beside_cube(kind[self.scales.dtype, *self.scales.shape])
        TGET_SCALE_ADDR(scales, near)
        TMOV(scales, self.scales.tile)
        return near, scales


def _unfit(data: Value, scales: tuple[Any, Any]) -> PtoError:
    return fail(
        "value-shape",
        f"a scale for every {BLOCK} along K, an even number of them one after the other",
        got=[("matrix", f"{data.shape}"), ("scales", f"{scales}")],
        fix="first matrix: scaled(a[:, k : k + 64], sa[:, k // 32 : k // 32 + 2]); second: "
        "scaled(b[k : k + 64, :], sb[:, k // 32 : k // 32 + 2].T)",
    )
