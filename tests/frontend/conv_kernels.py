"""Kernels with convolution tiles that show one thing each; tests run them on every path."""

from ptokit import *

CHANNELS = 32  # two groups of C0 = 16
Fmap = ConvTile[TileType.Mat, half, 1024, Layout.NC1HWC0, ConvTileShape[1, 2, 4, 8, 16]]
Sized = ConvTile[TileType.Mat, half, 1024, Layout.NC1HWC0,
                 ConvTileShape[1, 2, DYNAMIC, DYNAMIC, 16]]  # fmt: skip
FmapView = GlobalTensor[half, Shape[1, 2, 4, 8, 16], Stride[1024, 512, 128, 16, 1], Layout.NC1HWC0]
SizedShape = Shape[1, 2, DYNAMIC, DYNAMIC, 16]
SizedView = GlobalTensor[half, SizedShape, Stride[1024, 512, 128, 16, 1], Layout.NC1HWC0]
Weights = Tile[TileType.Mat, half, 128, 16, BLayout.ColMajor, 128, 16, SLayout.RowMajor]
Block = Tile[TileType.Vec, float16, 16, 64]


def multiply(y, fmap, w, row=0):
    """One tile of the product: 16 output positions from `row` on, 128 unrolled columns."""
    left, right, acc = (
        TileLeft[half, 16, 128](),
        TileRight[half, 128, 16](),
        TileAcc[float32, 16, 16](),
    )
    w_l1 = Weights()
    TIMG2COL(left, fmap, row)
    TLOAD(w_l1, GlobalTensor(w))
    TMOV(right, w_l1)
    TMATMUL(acc, left, right)
    TSTORE(y, acc)


def set_up(fmap, height, width, filter_h, filter_w, stride, dilation, pads, pad_value):
    fmap.SetFmapH(height)
    fmap.SetFmapW(width)
    fmap.SetFilterH(filter_h)
    fmap.SetFilterW(filter_w)
    fmap.SetStrideH(stride)
    fmap.SetStrideW(stride)
    fmap.SetDilationH(dilation)
    fmap.SetDilationW(dilation)
    fmap.SetPadListArray(pads)
    fmap.SetPadValue(pad_value)
    fmap.SetChannelSize(CHANNELS)


def load_registers(fmap):
    SETFMATRIX(fmap)
    SET_IMG2COL_RPT(fmap)
    SET_IMG2COL_PADDING(fmap)


@kernel(mode="auto")
def known_parameters(x, w, y, *, filters, stride, dilation, pads, pad_value):
    """Every parameter is known when it is lowered; one is set before the data is there."""
    fmap = Fmap()
    fmap.SetRepeatMode(1)
    TLOAD(fmap, FmapView(x))
    set_up(fmap, 4, 8, *filters, stride, dilation, pads, pad_value)
    load_registers(fmap)
    multiply(GlobalTensor(y), fmap, w)


@kernel(mode="auto")
def late_parameters(
    x, w, y, filter_h, filter_w, stride, dilation, left, right, top, bottom, pad_value
):
    """Every parameter is a number that the kernel is launched with."""
    fmap = Fmap()
    TLOAD(fmap, FmapView(x))
    pads = [left, right, top, bottom]
    set_up(fmap, 4, 8, filter_h, filter_w, stride, dilation, pads, pad_value)
    load_registers(fmap)
    multiply(GlobalTensor(y), fmap, w)


@kernel(mode="auto")
def automatic_registers(x, w, y, *, mode):
    """TIMG2COL loads the registers itself."""
    fmap = Fmap()
    TLOAD(fmap, FmapView(x))
    set_up(fmap, 4, 8, 2, 2, 1, 1, [0, 0, 0, 0], 0)
    left, right, acc = (
        TileLeft[half, 16, 128](),
        TileRight[half, 128, 16](),
        TileAcc[float32, 16, 16](),
    )
    w_l1 = Weights()
    TIMG2COL[mode](left, fmap)
    TLOAD(w_l1, GlobalTensor(w))
    TMOV(right, w_l1)
    TMATMUL(acc, left, right)
    TSTORE(GlobalTensor(y), acc)


@kernel(mode="auto")
def sizes_at_run_time(x, w, y, height, width):
    """The shape is decided by the launch, once by the constructor and once by SetDynamicShape."""
    first, fmap = Sized(1, 1), Sized(height, width)
    first.SetDynamicShape(height, width)
    TLOAD(fmap, SizedView(x, SizedShape(height, width)))
    set_up(fmap, first.GetShape(2), fmap.GetShape(3), 2, 2, 1, 1, [1, 1, 1, 1], 1.5)
    load_registers(fmap)
    multiply(GlobalTensor(y), fmap, w)


@kernel(mode="auto")
def changed_in_a_loop(x, w, y, n):
    """Parameters change from round to round, and getters see what is in force."""
    fmap = Fmap()
    TLOAD(fmap, FmapView(x))
    set_up(fmap, 4, 8, 2, 2, 1, 1, [1, 1, 1, 1], 0.5)
    for i in range(n):
        fmap.SetPadValue(fmap.GetPadValue() + 1.0)
        if i == 1:
            fmap.SetStrideW(2)
            fmap.SetFmapH(fmap.GetFmapH() - 1)
        load_registers(fmap)
        multiply(GlobalTensor(y)[i * 16 : i * 16 + 16, :], fmap, w)
    if fmap.GetStrideW() == 2:
        left, right, top, bottom = fmap.GetPadListArray()
        fmap.SetPadListArray([left + 1, right, top, bottom])
    load_registers(fmap)
    multiply(GlobalTensor(y)[n * 16 : n * 16 + 16, :], fmap, w)


@kernel(mode="auto")
def swapped_maps(x, w, y, n):
    """Handles of convolution tiles are carried by a loop and keep their parameters."""
    a, b = Fmap(), Fmap()
    TLOAD(a, FmapView(x))
    TLOAD(b, FmapView(x))
    set_up(a, 4, 8, 2, 2, 1, 1, [1, 1, 1, 1], 2.0)
    set_up(b, 4, 8, 2, 2, 2, 1, [3, 3, 3, 3], -1.0)
    for i in range(n):
        load_registers(a)
        multiply(GlobalTensor(y)[i * 16 : i * 16 + 16, :], a, w, i)
        a, b = b, a
    load_registers(a)
    multiply(GlobalTensor(y)[n * 16 : n * 16 + 16, :], a, w)


@kernel(mode="manual")
def bound_by_hand(x, w, y, *, address):
    """TASSIGN and flags by the author; registers change only when their reader is through."""
    fmap, w_l1 = Fmap(), Weights()
    left, right, acc = (
        TileLeft[half, 16, 128](),
        TileRight[half, 128, 16](),
        TileAcc[float32, 16, 16](),
    )
    TASSIGN[0x4000](fmap)
    TASSIGN(w_l1, address)
    TASSIGN[0](left)
    TASSIGN[0](right)
    TASSIGN[0](acc)
    TLOAD(fmap, FmapView(x))
    TLOAD(w_l1, GlobalTensor(w))
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0)
    set_up(fmap, 4, 8, 2, 2, 1, 1, [1, 0, 1, 0], 0.25)
    load_registers(fmap)
    TIMG2COL(left, fmap, 8, 0)
    fmap.SetFilterH(7)  # too late to matter
    TMOV(right, w_l1)
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0)
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0)
    TMATMUL(acc, left, right)
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0)
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0)
    TSTORE(GlobalTensor(y), acc)


@kernel(mode="manual")
def channels_split(x, y):
    """TTRANS of convolution tiles over the bytes of plain ones: NCHW to NC1HWC0."""
    plain, split = Tile[TileType.Vec, float16, 8, 64](), Tile[TileType.Vec, float16, 8, 64]()
    tmp = Tile[TileType.Vec, float16, 64, 64]()
    joined = ConvTile[TileType.Vec, float16, 512, Layout.NCHW, ConvTileShape[1, 16, 4, 8]]()
    grouped = ConvTile[TileType.Vec, float16, 512, Layout.NC1HWC0, ConvTileShape[1, 1, 4, 8, 16]]()
    TASSIGN[0](plain)
    TASSIGN[0](joined)
    TASSIGN[0x1000](split)
    TASSIGN[0x1000](grouped)
    TASSIGN[0x2000](tmp)
    TLOAD(plain, GlobalTensor(x))
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    TTRANS(grouped, joined, tmp)
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    TSTORE(GlobalTensor(y), split)


@kernel(mode="auto")
def reshaped(x, y):
    """The same without addresses: TRESHAPE lays convolution tiles over plain ones."""
    plain, split = Tile[TileType.Vec, float16, 8, 64](), Tile[TileType.Vec, float16, 8, 64]()
    tmp = Tile[TileType.Vec, float16, 64, 64]()
    joined = ConvTile[TileType.Vec, float16, 512, Layout.NCHW, ConvTileShape[1, 16, 4, 8]]()
    grouped = ConvTile[TileType.Vec, float16, 512, Layout.NC1HWC0, ConvTileShape[1, 1, 4, 8, 16]]()
    TLOAD(plain, GlobalTensor(x))
    TRESHAPE(joined, plain)
    TTRANS(grouped, joined, tmp)
    TRESHAPE(split, grouped)
    TSTORE(GlobalTensor(y), split)


@kernel(mode="auto")
def weights_in_blocks(x, w, y):
    """Weights as a FRACTAL_Z tile, moved to the right operand; a map filled by TEXPANDS."""
    blocks = ConvTile[TileType.Mat, half, 2048, Layout.FRACTAL_Z, ConvTileShape[8, 1, 16, 16]]()
    fmap = Fmap()
    left, right, acc = (
        TileLeft[half, 16, 128](),
        TileRight[half, 128, 16](),
        TileAcc[float32, 16, 16](),
    )
    shape, stride = Shape[1, 8, 1, 16, 16], Stride[2048, 256, 256, 16, 1]
    TLOAD(blocks, GlobalTensor[half, shape, stride, Layout.FRACTAL_Z](w))
    TEXPANDS(fmap, 3)
    set_up(fmap, 4, 8, 2, 2, 1, 1, [1, 1, 1, 1], 0.5)
    load_registers(fmap)
    TIMG2COL(left, fmap)
    TMOV(right, blocks)
    TMATMUL(acc, left, right)
    TSTORE(GlobalTensor(y), acc)


@kernel(mode="auto")
def all_accessors(x, w, y, first):
    """Every setter with a run-time value, every getter afterwards; the results are stored."""
    fmap, out = Fmap(), GlobalTensor(y)
    row = Tile[TileType.Vec, float32, 1, 8]()
    setters = [
        fmap.SetFmapH, fmap.SetFmapW, fmap.SetFilterH, fmap.SetFilterW,
        fmap.SetDilationH, fmap.SetDilationW, fmap.SetStrideH, fmap.SetStrideW,
        fmap.SetChannelSize, fmap.SetRepeatStride, fmap.SetRepeatTime, fmap.SetRepeatMode,
        fmap.SetDstStride, fmap.SetDstMposition, fmap.SetPadValue,
    ]  # fmt: skip
    getters = [
        fmap.GetFmapH, fmap.GetFmapW, fmap.GetFilterH, fmap.GetFilterW,
        fmap.GetDilationH, fmap.GetDilationW, fmap.GetStrideH, fmap.GetStrideW,
        fmap.GetChannelSize, fmap.GetRepeatStride, fmap.GetRepeatTime, fmap.GetRepeatMode,
        fmap.GetDstStride, fmap.GetDstMposition, fmap.GetPadValue,
    ]  # fmt: skip
    for n, setter in enumerate(setters):
        setter(first + n)
    fmap.SetTranspose(first > 3)
    fmap.SetPadListArray([first, first + 1, first + 2, first + 3])
    for _ in range(2):  # inside a loop getters read the tile
        for n, getter in enumerate(getters):
            TEXPANDS(row, float(getter()))
            TSTORE(out[n : n + 1, :], row)
        for n, pad in enumerate(fmap.GetPadListArray()):
            TEXPANDS(row, float(pad))
            TSTORE(out[16 + n : 17 + n, :], row)
        if fmap.GetTranspose():
            TEXPANDS(row, 1.0)
            TSTORE(out[20:21, :], row)


@kernel(mode="auto")
def two_large_maps(x, w, y):
    a = ConvTile[TileType.Mat, half, 200_000, Layout.NC1HWC0, ConvTileShape[1, 2, 4, 8, 16]]()
    b = ConvTile[TileType.Mat, half, 200_000, Layout.NC1HWC0, ConvTileShape[1, 2, 4, 8, 16]]()
    TLOAD(a, FmapView(x))
    TLOAD(b, FmapView(x))
    TLOAD(a, FmapView(x))


# ---- mistakes: the line that is to be blamed ends with the comment `# wrong` ---------------------


@kernel(mode="auto")
def parameter_too_wide(x, w, y):
    fmap = Fmap()
    fmap.SetFmapH(4)
    fmap.SetFmapW(1 << 16)  # wrong


@kernel(mode="auto")
def three_pads(x, w, y):
    fmap = Fmap()
    fmap.SetPadListArray([1, 1, 1])  # wrong


@kernel(mode="auto")
def negative_pad(x, w, y):
    fmap = Fmap()
    fmap.SetPadListArray([1, -1, 1, 1])  # wrong


@kernel(mode="auto")
def too_few_sizes(x, w, y):
    fmap = Sized()
    fmap.SetDynamicShape(4)  # wrong


@kernel(mode="auto")
def sizes_of_a_static_tile(x, w, y):
    Fmap(4, 8)  # wrong


@kernel(mode="auto")
def too_large_sizes(x, w, y):
    fmap = Sized(4, 8)
    fmap.SetDynamicShape(4, 9)  # wrong


@kernel(mode="auto")
def no_channels(x, w, y):
    fmap = Fmap()
    TLOAD(fmap, FmapView(x))
    fmap.SetFmapH(4)
    fmap.SetFmapW(8)
    load_registers(fmap)
    left = TileLeft[half, 16, 32]()
    TIMG2COL(left, fmap)  # wrong


@kernel(mode="auto")
def a_tile_instead(x, w, y):
    tile = Weights()
    SETFMATRIX(tile)  # wrong


@kernel(mode="auto")
def no_such_parameter(x, w, y):
    fmap = Fmap()
    fmap.SetFmapX(1)  # wrong


@kernel(mode="auto")
def outside_the_map(x, w, y):
    fmap = Fmap()
    TLOAD(fmap, FmapView(x))
    set_up(fmap, 4, 8, 2, 2, 1, 1, [0, 0, 0, 0], 0)
    load_registers(fmap)
    left = TileLeft[half, 32, 128]()
    TIMG2COL(left, fmap)  # wrong


MISTAKES = [
    (parameter_too_wide, "conv-parameter"),
    (three_pads, "conv-parameter"),
    (negative_pad, "conv-parameter"),
    (too_few_sizes, "conv-dynamic"),
    (sizes_of_a_static_tile, "conv-dynamic"),
    (too_large_sizes, "conv-size"),
    (no_channels, "TIMG2COL.channels"),
    (a_tile_instead, "SETFMATRIX.operands"),
    (outside_the_map, "TIMG2COL.unrolled-range"),
]
