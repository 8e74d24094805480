// Written by ptokit for a5, from kernels.py; numbers are lines there.
#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void convolution(
    __gm__ half *x, __gm__ float *y, int64_t height, float pad)
{
    using Conv =
        ConvTile<TileType::Mat, half, 1024, Layout::NC1HWC0, ConvTileShape<1, 2, -1, 8, 16>>;
    using Left16x128 = TileLeft<half, 16, 128>;
    using GlobalX =
        GlobalTensor<half, Shape<1, 2, DYNAMIC, 8, 16>, Stride<1024, 512, 128, 16, 1>, Layout::NC1HWC0>;

    // 174: fmap = ConvTile[TileType.Mat, half, 1024, Layout.NC1HWC0, tile](height)
    Conv fmap;
    TASSIGN(fmap, 0x0);
    fmap.SetDynamicShape(static_cast<int64_t>(height));
    // 175: left = TileLeft[half, 16, 128]()
    Left16x128 left;
    TASSIGN(left, 0x0);
    // 176: TLOAD(fmap, view(x, shape(height)))
    GlobalX x_view(x, GlobalX::Shape(height));
    TLOAD(fmap, x_view);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    // 177: fmap.SetFmapH(fmap.GetShape(2))
    fmap.SetFmapH(height);
    fmap.SetFmapW(8);
    fmap.SetFilterH(2);
    fmap.SetFilterW(2);
    fmap.SetChannelSize(32);
    // 182: fmap.SetPadListArray([1, 1, 1, 1])
    fmap.SetPadList(0, 1);
    fmap.SetPadList(1, 1);
    fmap.SetPadList(2, 1);
    fmap.SetPadList(3, 1);
    // 183: fmap.SetPadValue(pad)
    fmap.SetPadValue(static_cast<half>(pad));
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    set_flag(PIPE_MTE1, PIPE_S, EVENT_ID0);
    // 184: for i in range(2):
    for (int64_t i = 0; i < 2; ++i) {
        // 185: fmap.SetPadValue(fmap.GetPadValue() + 1.0)
        const float v = fmap.GetPadValue();
        fmap.SetPadValue(static_cast<half>(v + 1.0f));
        // 186: SETFMATRIX[SetFmatrixMode.FMATRIX_B_MANUAL](fmap)
        wait_flag(PIPE_MTE1, PIPE_S, EVENT_ID0);
        SETFMATRIX<Conv, SetFmatrixMode::FMATRIX_B_MANUAL>(fmap);
        // 187: SET_IMG2COL_PADDING[SetFmatrixMode.FMATRIX_B_MANUAL](fmap)
        SET_IMG2COL_PADDING<Conv, SetFmatrixMode::FMATRIX_B_MANUAL>(fmap);
        set_flag(PIPE_S, PIPE_MTE1, EVENT_ID0);
        // 188: TIMG2COL[SetFmatrixMode.FMATRIX_B_MANUAL](left, fmap, i * 16)
        wait_flag(PIPE_S, PIPE_MTE1, EVENT_ID0);
        TIMG2COL<Left16x128, Conv, SetFmatrixMode::FMATRIX_B_MANUAL>(left, fmap, i * 16);
        set_flag(PIPE_MTE1, PIPE_S, EVENT_ID0);
    }
    wait_flag(PIPE_MTE1, PIPE_S, EVENT_ID0);
    pipe_barrier(PIPE_ALL);
}

extern "C" void launch_convolution(
    uint32_t blocks, void *stream, void *x, void *y, int64_t height, float pad)
{
    convolution<<<blocks, nullptr, stream>>>((__gm__ half *)x, (__gm__ float *)y, height, pad);
}
