#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void convolution(__gm__ half *x, __gm__ float *y, int64_t height, float pad)
{
    using Tile0 = ConvTile<TileType::Mat, half, 1024, Layout::NC1HWC0, ConvTileShape<1, 2, -1, 8, 16>>;
    using Tile1 = Tile<TileType::Left, half, 16, 128, BLayout::ColMajor, 16, 128, SLayout::RowMajor>;
    Tile0 fmap;
    TASSIGN(fmap, 0x0);
    fmap.SetDynamicShape(static_cast<int64_t>(height));
    Tile1 left;
    TASSIGN(left, 0x0);
    GlobalTensor<half, Shape<1, 2, -1, 8, 16>, Stride<1024, 512, 128, 16, 1>, Layout::NC1HWC0> part(x, Shape<1, 2, -1, 8, 16>(height), Stride<1024, 512, 128, 16, 1>());
    TLOAD(fmap, part);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    fmap.SetFmapH(height);
    fmap.SetFmapW(8);
    fmap.SetFilterH(2);
    fmap.SetFilterW(2);
    fmap.SetChannelSize(32);
    fmap.SetPadList(0, 1);
    fmap.SetPadList(1, 1);
    fmap.SetPadList(2, 1);
    fmap.SetPadList(3, 1);
    fmap.SetPadValue(static_cast<half>(pad));
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    set_flag(PIPE_MTE1, PIPE_S, EVENT_ID0);
    for (int64_t i = 0; i < 2; ++i) {
        const float v = fmap.GetPadValue();
        const float cst = 1.0f;
        const float v_1 = v + cst;
        fmap.SetPadValue(static_cast<half>(v_1));
        wait_flag(PIPE_MTE1, PIPE_S, EVENT_ID0);
        SETFMATRIX<Tile0, SetFmatrixMode::FMATRIX_B_MANUAL>(fmap);
        SET_IMG2COL_PADDING<Tile0, SetFmatrixMode::FMATRIX_B_MANUAL>(fmap);
        set_flag(PIPE_S, PIPE_MTE1, EVENT_ID0);
        const int64_t v_2 = i * 16;
        wait_flag(PIPE_S, PIPE_MTE1, EVENT_ID0);
        TIMG2COL<Tile1, Tile0, SetFmatrixMode::FMATRIX_B_MANUAL>(left, fmap, v_2);
        set_flag(PIPE_MTE1, PIPE_S, EVENT_ID0);
    }
    wait_flag(PIPE_MTE1, PIPE_S, EVENT_ID0);
    pipe_barrier(PIPE_ALL);
}
