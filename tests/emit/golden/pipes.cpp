// Written by ptokit for a5.
#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

AICORE void cube(__gm__ float *x);
AICORE void vector(__gm__ float *z);

extern "C" __global__ AICORE void both(__gm__ float *x, __gm__ float *z)
{
    cube(x);
    vector(z);
}

AICORE void cube(__gm__ float *x)
{
    constexpr int64_t r = 16;
    using Pipe = TPipe<0, Direction::DIR_C2V, 1024, 8, 8, true>;
    using GlobalX = GlobalTensor<float, Shape<1, 1, 1, r, r>, Stride<1, 1, 1, r, 1>>;
    using Mat = Tile<TileType::Mat, float, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor>;
    using Left = TileLeft<float, 16, 16>;
    using Right = TileRight<float, 16, 16>;
    using Acc = TileAcc<float, 16, 16>;

#if defined(__DAV_CUBE__)
    Pipe pipe(nullptr, 0x400, 0x400);
    GlobalX p(x);
    Mat m, n;
    TASSIGN(m, 0x0);
    TASSIGN(n, 0x400);
    Left l;
    TASSIGN(l, 0x0);
    Right rt;
    TASSIGN(rt, 0x0);
    Acc acc;
    TASSIGN(acc, 0x0);
    TLOAD(m, p);
    TLOAD(n, p);
    pipe_barrier(PIPE_ALL);
    TMOV(l, m);
    TMOV(rt, n);
    pipe_barrier(PIPE_ALL);
    TMATMUL(acc, l, rt);
    pipe_barrier(PIPE_ALL);
    TPUSH<Pipe, Acc, TileSplitAxis::TILE_NO_SPLIT>(pipe, acc);
#endif
}

AICORE void vector(__gm__ float *z)
{
    constexpr int64_t r = 16;
    constexpr float one = 1.0f;
    using Pipe = TPipe<0, Direction::DIR_C2V, 1024, 8, 8, true>;
    using GlobalZ = GlobalTensor<float, Shape<1, 1, 1, r, r>, Stride<1, 1, 1, r, 1>>;
    using Vec = Tile<TileType::Vec, float, 16, 16>;
    using Entry = Tile<TileType::Vec, float, 16, 16, BLayout::RowMajor, DYNAMIC, DYNAMIC>;

#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    if (get_subblockid() == 0) {
        Pipe pipe(nullptr, 0x400, 0x400);
        GlobalZ p(z);
        Vec sum;
        TASSIGN(sum, 0x0);
        Entry t(16, 16);
        t.SetValidRow(r);
        t.SetValidCol(r);
        TPOP<Pipe, Entry, TileSplitAxis::TILE_NO_SPLIT>(pipe, t);
        TADDS(sum, t, one);
        TFREE<Pipe, TileSplitAxis::TILE_NO_SPLIT>(pipe);
        pipe_barrier(PIPE_ALL);
        TSTORE(p, sum);
    }
#endif
}

extern "C" void launch_both(uint32_t blocks, void *stream, void *x, void *z)
{
    both<<<blocks, nullptr, stream>>>((__gm__ float *)x, (__gm__ float *)z);
}
