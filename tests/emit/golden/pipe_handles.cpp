#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

AICORE void push(__gm__ float *slots, int32_t near)
{
    using Tile0 = Tile<TileType::Acc, float, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor, 1024>;
    using Pipe0 = TPipe<6, Direction::DIR_C2V, 1024, 8, 8>;
#if defined(__DAV_CUBE__)
    Pipe0 p((__gm__ void *)slots, near, near);
    Tile0 acc;
    TASSIGN(acc, 0x0);
    TPUSH<Pipe0, Tile0, TileSplitAxis::TILE_UP_DOWN>(p, acc);
#endif
}

AICORE void pop(__gm__ float *slots, int32_t near)
{
    using Tile0 = Tile<TileType::Vec, float, 8, 16>;
    using Tile1 = Tile<TileType::Vec, float, 8, 16, BLayout::RowMajor, -1, -1>;
    using Pipe0 = TPipe<6, Direction::DIR_C2V, 1024, 8, 8>;
#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    Pipe0 p((__gm__ void *)slots, near, near);
    Tile0 first;
    Tile1 second(8, 16);
    TPOP<Pipe0, Tile0, TileSplitAxis::TILE_UP_DOWN>(p, first);
    TPOP<Pipe0, Tile1, TileSplitAxis::TILE_UP_DOWN>(p, second);
    TFREE<Pipe0, TileSplitAxis::TILE_UP_DOWN>(p);
    TFREE<Pipe0, TileSplitAxis::TILE_UP_DOWN>(p);
#endif
}
