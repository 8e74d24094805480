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
    for place, each in enumerate((block, codes, scale, offset, count, pairs, part)):
        TASSIGN(each, place * 0x1000)
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


Scores = TileAcc[float32, 32, 64]
HalfRows, HalfColumns = Tile[TileType.Vec, float32, 16, 64], Tile[TileType.Vec, half, 32, 32]
Weights = Tile[TileType.Mat, half, 32, 64, BLayout.ColMajor, 32, 64, SLayout.RowMajor]
UP, LEFT = TileSplitAxis.TILE_UP_DOWN, TileSplitAxis.TILE_LEFT_RIGHT


@kernel(core="mix")
def cluster(ring, weights):
    """FIFOs both ways: rows go out, columns come back. The first ring begins somewhere inside."""
    there = TPipe[0, Direction.DIR_C2V, 8192, 2](ptr(ring, get_block_idx() * 4096), 0x8000, 0)
    back = TPipe[2, Direction.DIR_V2C, 4096, 4, 3](weights, 0, 0x4000)
    with cube_section():
        acc, popped = Scores(), Weights()
        TASSIGN(acc, 0x400)
        for _ in range(3):
            TPUSH[UP](there, acc)
            TPOP[LEFT](back, popped)
            TFREE[LEFT](back)
    with vector_section():
        rows, columns = HalfRows(), HalfColumns()
        TASSIGN(columns, 0)
        for _ in range(3):
            TPOP[UP](there, rows)
            TFREE[UP](there)
            TPUSH[LEFT](back, columns)


@kernel(core="mix")
def one_vector_core(ring, signals):
    """Entries that are not divided; one pipe for both directions; the base of the signals."""
    set_ffts_base_addr(signals)
    pipe = TPipe[4, Direction.DIR_BOTH, 8192, 2](ring, 0, 0)
    with cube_section():
        acc, popped = Scores(), Weights()
        TASSIGN(acc, 0)
        TPUSH(pipe, acc)
        TPOP(pipe, popped)
        TFREE(pipe)
    with vector_section():
        whole, answer = Tile[TileType.Vec, float32, 32, 64](), Tile[TileType.Vec, half, 32, 64]()
        TASSIGN(answer, 0x8000)
        TPOP(pipe, whole)
        TFREE(pipe)
        TPUSH(pipe, answer)


@kernel(core="mix")
def slots(ring, *, way):
    """Slots in hand: views without memory, which TALLOC and TPOP point at them."""
    pipe = TPipe[0, way, 8192, 2](ring, 0, 0)
    with cube_section():
        acc = Scores()
        TASSIGN(acc, 0)
        slot = GlobalTensor[float32, Shape[1, 1, 1, 32, 64], Stride[1, 1, 1, 64, 1]]()
        TALLOC[LEFT](pipe, slot)
        TSTORE(slot, acc)
        TPUSH[LEFT](pipe, slot)
    with vector_section():
        columns = Tile[TileType.Vec, float32, 32, 32]()
        TASSIGN(columns, 0)
        part = GlobalTensor[float32, Shape[1, 1, 1, 32, 32], Stride[1, 1, 1, 64, 1]]()
        TPOP[LEFT](pipe, part)
        TLOAD(columns, part)
        TFREE[LEFT](pipe, part)


@kernel(core="mix")
def through_memory(ring):
    """A5 through global memory: a direction with a name of its own, and no TFREE."""
    pipe = TPipe[0, Direction.DIR_C2V_GM, 8192, 8, 2, True](ring, 0, 0)
    with cube_section():
        acc = Scores()
        TASSIGN(acc, 0)
        TPUSH(pipe, acc)
    with vector_section():
        whole = Tile[TileType.Vec, float32, 32, 64]()
        if get_subblockid() == 0:
            TPOP(pipe, whole)


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
