#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void through_memory(__gm__ float *ring)
{
    using Tile0 = Tile<TileType::Acc, float, 32, 64, BLayout::ColMajor, 32, 64, SLayout::RowMajor, 1024>;
    using Tile1 = Tile<TileType::Vec, float, 32, 64>;
    using Pipe0 = TPipe<0, Direction::DIR_C2V_GM, 8192, 8, 2, true>;
    Pipe0 pipe((__gm__ void *)ring, 0x0, 0x0);
#if defined(__DAV_CUBE__)
    Tile0 acc;
    TASSIGN(acc, 0x0);
    TPUSH<Pipe0, Tile0, TileSplitAxis::TILE_NO_SPLIT>(pipe, acc);
#endif
#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    Tile1 whole;
    const int64_t subblock_idx = get_subblockid();
    const int64_t v = static_cast<int64_t>(subblock_idx);
    const bool v_1 = v == 0;
    if (v_1) {
        TPOP<Pipe0, Tile1, TileSplitAxis::TILE_NO_SPLIT>(pipe, whole);
    }
#endif
}
