"""Convolutions as products: a feature map in L1, seen as the matrix that a filter makes of it."""

from __future__ import annotations

from math import prod
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import DType
from ptokit.base.entry import public
from ptokit.base.enums import Layout, SetFmatrixMode, TileType
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import BLOCK_BYTES
from ptokit.frontend.api import TIMG2COL, TLOAD
from ptokit.frontend.lowering.convs import make_conv_tile
from ptokit.frontend.lowering.numbers import Number
from ptokit.frontend.lowering.tracer import Tracer
from ptokit.frontend.session import current
from ptokit.frontend.tensor_types import conv_class
from ptokit.frontend.trees import Opened
from ptokit.machine.slices import window
from ptokit.values.matrix import known_sizes, near_tile
from ptokit.values.memory import arranged, view_of

Pair = int | tuple[int, int]


@public
def im2col(
    part: Any,
    kernel: Pair,
    stride: Pair = 1,
    padding: int | tuple[int, int, int, int] = 0,
    dilation: Pair = 1,
    pad_value: float = 0,
) -> Patches:
    """A feature map [1, C1, H, W, C0] as the left matrix of a product: a convolution.

    Row by row the positions of the output, column by column the elements under the filter, ordered
    C1, filter row, filter column, C0: `dot(im2col(x, 3)[m : m + 64, k : k + 96], w[k : k + 96])`.
    Sizes are one number, or (rows, columns); `padding` is one, or (left, right, top, bottom).
    """
    view = view_of(part)
    shape = tuple(view.GetShape(axis) for axis in range(5))
    steps = tuple(view.GetStride(axis) for axis in range(5))
    if not all(isinstance(n, int) for n in shape):
        raise fail(
            "value-shape",
            "the sizes of a feature map are known when the kernel is lowered",
            got=[("sizes", shape)],
            fix="give a part of one size: x[n : n + 1]",
        )
    sizes = [
        each if isinstance(each, tuple) else (each,) * 2 for each in (kernel, stride, dilation)
    ]
    pads = padding if isinstance(padding, tuple) else (padding,) * 4
    if [len(each) for each in (*sizes, pads)] != [2, 2, 2, 4] or min(map(min, sizes)) < 1:
        raise fail(
            "value-operand",
            "a filter, its stride and dilation are positive numbers, or (rows, columns)",
            got=[("filter", kernel), ("stride", stride), ("dilation", dilation), ("padding", pads)],
            fix="im2col(x, kernel=(3, 3), stride=1, padding=(1, 1, 1, 1))",
        )
    _, c1, height, width, c0 = shape
    left, right, top, bottom = pads
    room = (height + top + bottom, width + left + right)
    positions = [
        (size - apart * (taps - 1) - 1) // step + 1
        for size, taps, step, apart in zip(room, *sizes, strict=True)
    ]
    if min(positions) < 1 or c0 * view.spec.dtype.itemsize != BLOCK_BYTES:
        raise fail(
            "value-shape",
            "a feature map is [N, C1, H, W, C0], C0 channels of 32 bytes; the filter fits into it",
            got=[("map", shape), ("filter", sizes[0]), ("padding", pads)],
            fix="image.reshape(1, C1, C0, H, W).transpose(0, 1, 3, 4, 2).copy() of [C, H, W]",
        )
    tile = _made(ConvSpec.of(TileType.Mat, view.spec.dtype, prod(shape), Layout.NC1HWC0, shape))
    TLOAD(tile, arranged(view, shape, steps, Layout.NC1HWC0))
    for axis, size, taps, step, distance in zip("HW", (height, width), *sizes, strict=True):
        getattr(tile, f"SetFmap{axis}")(size)
        getattr(tile, f"SetFilter{axis}")(taps)
        getattr(tile, f"SetStride{axis}")(step)
        getattr(tile, f"SetDilation{axis}")(distance)
    tile.SetPadListArray(list(pads))
    tile.SetPadValue(pad_value)
    tile.SetChannelSize(c1 * c0)
    return Patches(tile, shape[0] * prod(positions), c1 * prod(sizes[0]) * c0)


def _made(spec: ConvSpec) -> Any:
    machine = current()
    if isinstance(machine, Tracer):
        return make_conv_tile(machine.emitter, spec, [])
    return conv_class(spec)()


@dataclass(frozen=True, eq=False)
class Patches(Opened):
    """The matrix that a filter makes of a feature map in L1, or a part of it: `p[m:n, k:l]`."""

    tile: Any
    rows: Any
    cols: Any
    first: tuple[Any, Any] = (0, 0)

    @property
    def dtype(self) -> DType:
        return self.tile.spec.dtype

    @property
    def shape(self) -> tuple[Any, Any]:
        return self.rows, self.cols

    @property
    def is_scaled(self) -> bool:
        return False

    @public
    def __getitem__(self, index: Any) -> Patches:
        """Rows and columns of it, sliced as an array is."""
        sizes = (1, 1, 1, self.rows, self.cols)
        spec = GlobalSpec.of(self.dtype, (1,) * 5, (1,) * 5, Layout.ND)
        start, shape = window(index, spec, sizes, 2, Number)
        first = tuple(a + b for a, b in zip(self.first, start[3:], strict=True))
        return Patches(self.tile, shape[3], shape[4], (first[0], first[1]))

    def beside(self, place: TileType) -> tuple[Any, ...]:
        """Unrolled on its way to L0A; the engine takes its parameters from the tile."""
        if place != TileType.Left:
            raise fail(
                "value-memory",
                "a feature map is unrolled on its way to the left side of a product",
                got=[("place", "second matrix")],
                fix="dot(im2col(x, 3)[m:n, k:l], weights[k:l, :])",
            )
        tile = near_tile(place, self.dtype, known_sizes(self.shape))
        TIMG2COL(tile, self.tile, *self.first, FmatrixMode=SetFmatrixMode.FMATRIX_A_AUTO)
        return (tile,)
