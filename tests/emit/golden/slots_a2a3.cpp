#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void slots(__gm__ uint64_t *ffts, __gm__ float *ring)
{
    using Tile0 = Tile<TileType::Acc, float, 32, 64, BLayout::ColMajor, 32, 64, SLayout::RowMajor, 1024>;
    using Tile1 = Tile<TileType::Vec, float, 32, 32>;
    using Pipe0 = TPipe<0, Direction::DIR_C2V, 8192, 2>;
    set_ffts_base_addr((uint64_t)ffts);
    Pipe0 pipe((__gm__ void *)ring, 0x0, 0x0);
#if defined(__DAV_CUBE__)
    Tile0 acc;
    TASSIGN(acc, 0x0);
    GlobalTensor<float, Shape<1, 1, 1, 32, 64>, Stride<1, 1, 1, 64, 1>, Layout::ND> slot(nullptr);
    TALLOC<Pipe0, decltype(slot), TileSplitAxis::TILE_LEFT_RIGHT>(pipe, slot);
    TSTORE(slot, acc);
    TPUSH<Pipe0, decltype(slot), TileSplitAxis::TILE_LEFT_RIGHT>(pipe, slot);
#endif
#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    Tile1 columns;
    TASSIGN(columns, 0x0);
    GlobalTensor<float, Shape<1, 1, 1, 32, 32>, Stride<1, 1, 1, 64, 1>, Layout::ND> part(nullptr);
    TPOP<Pipe0, decltype(part), TileSplitAxis::TILE_LEFT_RIGHT>(pipe, part);
    TLOAD(columns, part);
    TFREE<Pipe0, decltype(part), TileSplitAxis::TILE_LEFT_RIGHT>(pipe, part);
#endif
}
