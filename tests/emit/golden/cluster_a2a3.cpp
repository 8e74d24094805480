#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void cluster(__gm__ uint64_t *ffts, __gm__ float *ring, __gm__ half *weights)
{
    using Tile0 = Tile<TileType::Acc, float, 32, 64, BLayout::ColMajor, 32, 64, SLayout::RowMajor, 1024>;
    using Tile1 = Tile<TileType::Mat, half, 32, 64, BLayout::ColMajor, 32, 64, SLayout::RowMajor>;
    using Tile2 = Tile<TileType::Vec, float, 16, 64>;
    using Tile3 = Tile<TileType::Vec, half, 32, 32>;
    using Pipe0 = TPipe<0, Direction::DIR_C2V, 8192, 2>;
    using Pipe1 = TPipe<2, Direction::DIR_V2C, 4096, 4, 3>;
    set_ffts_base_addr((uint64_t)ffts);
    const int64_t block_idx = get_block_idx();
    const int64_t v = static_cast<int64_t>(block_idx);
    const int64_t v_1 = v * 4096;
    __gm__ float *v_2 = ring + v_1;
    Pipe0 pipe((__gm__ void *)v_2, 0x8000, 0x0);
    Pipe1 pipe_1((__gm__ void *)weights, 0x0, 0x4000);
#if defined(__DAV_CUBE__)
    Tile0 acc;
    TASSIGN(acc, 0x400);
    Tile1 popped;
    for (int64_t v_3 = 0; v_3 < 3; ++v_3) {
        TPUSH<Pipe0, Tile0, TileSplitAxis::TILE_UP_DOWN>(pipe, acc);
        TPOP<Pipe1, Tile1, TileSplitAxis::TILE_LEFT_RIGHT>(pipe_1, popped);
        TFREE<Pipe1, TileSplitAxis::TILE_LEFT_RIGHT>(pipe_1);
    }
#endif
#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    Tile2 rows;
    Tile3 columns;
    TASSIGN(columns, 0x0);
    for (int64_t v_4 = 0; v_4 < 3; ++v_4) {
        TPOP<Pipe0, Tile2, TileSplitAxis::TILE_UP_DOWN>(pipe, rows);
        TFREE<Pipe0, TileSplitAxis::TILE_UP_DOWN>(pipe);
        TPUSH<Pipe1, Tile3, TileSplitAxis::TILE_LEFT_RIGHT>(pipe_1, columns);
    }
#endif
}
