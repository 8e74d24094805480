"""Convolution as a matrix product: the feature map is unrolled on its way from L1 to L0A.

A feature map lies in L1 as NC1HWC0: channels in groups of C0 = 16, so that a pixel of a group is
one 32-byte block. TIMG2COL makes rows of a matrix from it: row = output position, column = (group,
filter row, filter column, channel of the group). With the weights as a matrix of the same order,
TMATMUL does the rest. Where the filter leaves the map, the engine puts the pad value.

Teaches: ConvTile and its parameters, SETFMATRIX and its relatives, posM and posK, and how a
convolution is tiled along output positions and along the unrolled columns.
"""

import numpy as np
from harness import Case, main

from ptokit import *

C1, H, W, C0, OUT = 2, 16, 16, 16, 32  # 32 channels in, 32 out
FILTER, PAD = 3, 1
COLUMNS = C1 * FILTER * FILTER * C0  # of the unrolled matrix
TM, TK = 64, 96  # a tile: 64 output positions, 96 unrolled columns

FmapShape, FmapStride = Shape[1, C1, H, W, C0], Stride[C1 * H * W * C0, H * W * C0, W * C0, C0, 1]
FmapTile = ConvTileShape[1, C1, H, W, C0]
Fmap = ConvTile[TileType.Mat, half, C1 * H * W * C0, Layout.NC1HWC0, FmapTile]
Weights = Tile[TileType.Mat, half, TK, OUT, BLayout.ColMajor, TK, OUT, SLayout.RowMajor]


def configure(fmap, stride):
    """What the image-to-column engine must know; MANUAL mode reads it from registers."""
    fmap.SetFmapH(H)
    fmap.SetFmapW(W)
    fmap.SetFilterH(FILTER)
    fmap.SetFilterW(FILTER)
    fmap.SetStrideH(stride)
    fmap.SetStrideW(stride)
    fmap.SetDilationH(1)
    fmap.SetDilationW(1)
    fmap.SetPadListArray([PAD, PAD, PAD, PAD])  # left, right, top, bottom
    fmap.SetPadValue(0)
    fmap.SetChannelSize(C1 * C0)
    fmap.SetRepeatTime(1)
    SETFMATRIX(fmap)  # size and padding
    SET_IMG2COL_RPT(fmap)  # repeats
    SET_IMG2COL_PADDING(fmap)  # the pad value


@kernel(mode="auto")
def conv(x, weights, y, *, stride):
    gw, gy = GlobalTensor(weights), GlobalTensor(y)
    fmap, w_l1 = Fmap(), Weights()
    left, right = TileLeft[half, TM, TK](), TileRight[half, TK, OUT]()
    acc = TileAcc[float32, TM, OUT]()
    TLOAD(fmap, GlobalTensor[half, FmapShape, FmapStride, Layout.NC1HWC0](x))
    configure(fmap, stride)
    for m in range(0, y.shape[0], TM):
        for k in range(0, COLUMNS, TK):
            TIMG2COL(left, fmap, m, k)  # rows m.., columns k.. of the unrolled matrix
            TLOAD(w_l1, gw[k : k + TK, :])
            TMOV(right, w_l1)
            if k == 0:
                TMATMUL(acc, left, right)
            else:
                TMATMUL_ACC(acc, left, right)
        TSTORE(gy[m : m + TM, :], acc)


def inputs_for(stride):
    def inputs(rng):
        x = rng.integers(-3, 4, (1, C1, H, W, C0)).astype(np.float16)
        weights = rng.integers(-3, 4, (COLUMNS, OUT)).astype(np.float16)
        positions = (H // stride) * (W // stride)
        return x, weights, np.zeros((positions, OUT), np.float32)

    return inputs


def expected_for(stride):
    def expected(x, weights, y):
        padded = np.pad(x[0].astype(np.float64), ((0, 0), (PAD, PAD), (PAD, PAD), (0, 0)))
        w = weights.astype(np.float64).reshape(C1, FILTER, FILTER, C0, OUT)
        total = np.zeros((H // stride, W // stride, OUT))
        for i in range(FILTER):
            for j in range(FILTER):
                part = padded[:, i : i + H : stride, j : j + W : stride]
                total += np.einsum("ghwc,gco->hwo", part, w[:, i, j])
        return (total.reshape(-1, OUT),)

    return expected


CASES = [
    Case(f"convolution, stride {stride}", conv, inputs_for(stride), expected_for(stride),
         targets=("a2a3", "a5"), consts={"stride": stride})
    for stride in (1, 2)
]  # fmt: skip

if __name__ == "__main__":
    main(CASES)
