#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void one_vector_core(__gm__ half *ring, int64_t signals)
{
    using Tile0 = Tile<TileType::Acc, float, 32, 64, BLayout::ColMajor, 32, 64, SLayout::RowMajor, 1024>;
    using Tile1 = Tile<TileType::Mat, half, 32, 64, BLayout::ColMajor, 32, 64, SLayout::RowMajor>;
    using Tile2 = Tile<TileType::Vec, float, 32, 64>;
    using Tile3 = Tile<TileType::Vec, half, 32, 64>;
    using Pipe0 = TPipe<4, Direction::DIR_BOTH, 8192, 2, 2, true>;
    set_ffts_base_addr((uint64_t)signals);
    Pipe0 pipe((__gm__ void *)ring, 0x0, 0x0);
#if defined(__DAV_CUBE__)
    Tile0 acc;
    TASSIGN(acc, 0x0);
    Tile1 popped;
    TPUSH<Pipe0, Tile0, TileSplitAxis::TILE_NO_SPLIT>(pipe, acc);
    TPOP<Pipe0, Tile1, TileSplitAxis::TILE_NO_SPLIT>(pipe, popped);
    TFREE<Pipe0, TileSplitAxis::TILE_NO_SPLIT>(pipe);
#endif
#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    Tile2 whole;
    Tile3 answer;
    TASSIGN(answer, 0x8000);
    TPOP<Pipe0, Tile2, TileSplitAxis::TILE_NO_SPLIT>(pipe, whole);
    TFREE<Pipe0, TileSplitAxis::TILE_NO_SPLIT>(pipe);
    TPUSH<Pipe0, Tile3, TileSplitAxis::TILE_NO_SPLIT>(pipe, answer);
#endif
}
