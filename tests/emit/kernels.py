"""Kernels whose C++ is compared with expected files; each shows one part of the emitter."""

from ptokit import *

Block = Tile[TileType.Vec, float32, 16, 64]
Row = Tile[TileType.Vec, uint32, 1, 64]
Pairs = Tile[TileType.Vec, uint32, 1, 128]
Codes = Tile[TileType.Vec, uint8, 16, 64]
Column = Tile[TileType.Vec, float32, 16, 1, BLayout.ColMajor]
L1 = Tile[TileType.Mat, half, 64, 64, BLayout.ColMajor, 64, 64, SLayout.RowMajor]


@kernel(mode="manual")
def add(x, y, z):
    """Tiles at addresses, views of arrays, flags."""
    a, b = Block(), Block()
    TASSIGN[0x0000](a)
    TASSIGN[0x1000](b)
    TLOAD(a, GlobalTensor(x))
    TLOAD(b, GlobalTensor(y))
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    TADD(a, a, b)
    pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(z), a)


@kernel(mode="manual")
def control(x, y, z, n):
    """Loops, branches, carried numbers and carried tile handles."""
    a, b = Block(), Block()
    TASSIGN[0x0000](a)
    TASSIGN[0x1000](b)
    first, second = 1, 2
    for i in range(n):
        row = min(i, 3) * 16
        TLOAD(a, GlobalTensor(x)[row : row + 16, :])
        if first > 5:
            TADDS(b, a, 1.0)
        else:
            first = first + i
        a, b = b, a
        first, second = second, first
    while second < 9:
        second = second * 2
    TMULS(a, a, second)
    pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(z), a)


@kernel(mode="manual")
def brackets(x, y, z, n):
    """Template arguments: in order, behind the types of operands, and always written."""
    block, codes, scale, offset = Block(), Codes(), Column(), Column()
    count, pairs = Row(), Pairs()
    Part = Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, DYNAMIC, 64]
    part = Part(n)
    TLOAD(part, GlobalTensor(x)[0:n, :])
    TEXP(block, block)
    TDIV[DivAlgorithm.HIGH_PRECISION](block, block, block)
    TQUANT[QuantType.INT8_ASYM](codes, block, scale, offset)
    TCI(count, 7)
    TGATHER[MaskPattern.P1010](count, pairs)
    TCVT(part, part, RoundMode.CAST_FLOOR)
    TSTORE[AtomicType.AtomicAdd](GlobalTensor(z)[0:n, :], part)


@kernel(mode="auto")
def product(a, b, c):
    """The cube: aliases of tile types, accumulation, a transfer with a relu."""
    left_l1, right_l1 = L1(), L1()
    left, right, acc = (
        TileLeft[half, 64, 64](),
        TileRight[half, 64, 64](),
        TileAcc[float32, 64, 64](),
    )
    TLOAD(left_l1, GlobalTensor(a))
    TLOAD(right_l1, GlobalTensor(b))
    TMOV(left, left_l1)
    TMOV(right, right_l1)
    TMATMUL(acc, left, right)
    TMATMUL_ACC(acc, left, right)
    TSTORE[AtomicType.AtomicNone, ReluPreMode.NormalRelu](GlobalTensor(c), acc)


@kernel(mode="auto")
def convolution(x, y, height, pad):
    """A convolution tile with run-time sizes: its parameters are methods, its modes brackets."""
    shape = Shape[1, 2, DYNAMIC, 8, 16]
    view = GlobalTensor[half, shape, Stride[1024, 512, 128, 16, 1], Layout.NC1HWC0]
    tile = ConvTileShape[1, 2, DYNAMIC, 8, 16]
    fmap = ConvTile[TileType.Mat, half, 1024, Layout.NC1HWC0, tile](height)
    left = TileLeft[half, 16, 128]()
    TLOAD(fmap, view(x, shape(height)))
    fmap.SetFmapH(fmap.GetShape(2))
    fmap.SetFmapW(8)
    fmap.SetFilterH(2)
    fmap.SetFilterW(2)
    fmap.SetChannelSize(32)
    fmap.SetPadListArray([1, 1, 1, 1])
    fmap.SetPadValue(pad)
    for i in range(2):
        fmap.SetPadValue(fmap.GetPadValue() + 1.0)
        SETFMATRIX[SetFmatrixMode.FMATRIX_B_MANUAL](fmap)
        SET_IMG2COL_PADDING[SetFmatrixMode.FMATRIX_B_MANUAL](fmap)
        TIMG2COL[SetFmatrixMode.FMATRIX_B_MANUAL](left, fmap, i * 16)
