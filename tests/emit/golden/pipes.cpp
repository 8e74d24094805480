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
    using Tile0 = Tile<TileType::Mat, float, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor>;
    using Tile1 = Tile<TileType::Left, float, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor>;
    using Tile2 = Tile<TileType::Right, float, 16, 16, BLayout::RowMajor, 16, 16, SLayout::ColMajor>;
    using Tile3 = Tile<TileType::Acc, float, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor, 1024>;
    using Pipe0 = TPipe<0, Direction::DIR_C2V, 1024, 8, 8, true>;
#if defined(__DAV_CUBE__)
    Pipe0 pipe(nullptr, 0x400, 0x400);
    GlobalTensor<float, Shape<1, 1, 1, 16, 16>, Stride<1, 1, 1, 16, 1>, Layout::ND> p(x);
    Tile0 m;
    TASSIGN(m, 0x0);
    Tile0 n;
    TASSIGN(n, 0x400);
    Tile1 l;
    TASSIGN(l, 0x0);
    Tile2 rt;
    TASSIGN(rt, 0x0);
    Tile3 acc;
    TASSIGN(acc, 0x0);
    TLOAD(m, p);
    TLOAD(n, p);
    pipe_barrier(PIPE_ALL);
    TMOV(l, m);
    TMOV(rt, n);
    pipe_barrier(PIPE_ALL);
    TMATMUL(acc, l, rt);
    pipe_barrier(PIPE_ALL);
    TPUSH<Pipe0, Tile3, TileSplitAxis::TILE_NO_SPLIT>(pipe, acc);
#endif
}

AICORE void vector(__gm__ float *z)
{
    using Tile0 = Tile<TileType::Vec, float, 16, 16>;
    using Tile1 = Tile<TileType::Vec, float, 16, 16, BLayout::RowMajor, -1, -1>;
    using Pipe0 = TPipe<0, Direction::DIR_C2V, 1024, 8, 8, true>;
#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    if (get_subblockid() == 0) {
        const float one = 1.0f;
        Pipe0 pipe(nullptr, 0x400, 0x400);
        GlobalTensor<float, Shape<1, 1, 1, 16, 16>, Stride<1, 1, 1, 16, 1>, Layout::ND> p(z);
        Tile0 sum;
        TASSIGN(sum, 0x0);
        Tile1 t(16, 16);
        t.SetValidRow(16);
        t.SetValidCol(16);
        TPOP<Pipe0, Tile1, TileSplitAxis::TILE_NO_SPLIT>(pipe, t);
        TADDS(sum, t, one);
        TFREE<Pipe0, TileSplitAxis::TILE_NO_SPLIT>(pipe);
        pipe_barrier(PIPE_ALL);
        TSTORE(p, sum);
    }
#endif
}
