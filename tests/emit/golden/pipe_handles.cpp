// Written by ptokit for a2a3.
#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

AICORE void push(__gm__ float *slots, int32_t near)
{
    using P = TPipe<6, Direction::DIR_C2V, 1024, 8, 8>;
    using Acc = TileAcc<float, 16, 16>;

#if defined(__DAV_CUBE__)
    P p((__gm__ void *)slots, near, near);
    Acc acc;
    TASSIGN(acc, 0x0);
    TPUSH<P, Acc, TileSplitAxis::TILE_UP_DOWN>(p, acc);
#endif
}

AICORE void pop(__gm__ float *slots, int32_t near)
{
    using P = TPipe<6, Direction::DIR_C2V, 1024, 8, 8>;
    using Vec = Tile<TileType::Vec, float, 8, 16>;
    using Vec8x16 = Tile<TileType::Vec, float, 8, 16, BLayout::RowMajor, DYNAMIC, DYNAMIC>;

#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    P p((__gm__ void *)slots, near, near);
    Vec first;
    Vec8x16 second(8, 16);
    TPOP<P, Vec, TileSplitAxis::TILE_UP_DOWN>(p, first);
    TPOP<P, Vec8x16, TileSplitAxis::TILE_UP_DOWN>(p, second);
    TFREE<P, TileSplitAxis::TILE_UP_DOWN>(p);
    TFREE<P, TileSplitAxis::TILE_UP_DOWN>(p);
#endif
}
