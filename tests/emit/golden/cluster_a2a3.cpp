// Written by ptokit for a2a3, from kernels.py; numbers are lines there.
#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void cluster(
    __gm__ uint64_t *ffts, __gm__ float *ring, __gm__ half *weights)
{
    using There = TPipe<0, Direction::DIR_C2V, 8192, 2>;
    using Back = TPipe<2, Direction::DIR_V2C, 4096, 4, 3>;
    using Scores = TileAcc<float, 32, 64>;
    using Weights = Tile<TileType::Mat, half, 32, 64, BLayout::ColMajor, 32, 64, SLayout::RowMajor>;
    using HalfRows = Tile<TileType::Vec, float, 16, 64>;
    using HalfColumns = Tile<TileType::Vec, half, 32, 32>;

    set_ffts_base_addr((uint64_t)ffts);
    // 97: there = TPipe[0, Direction.DIR_C2V, 8192, 2](ptr(ring, get_block_idx() * 4096), 0x8000, 0)
    There there((__gm__ void *)(ring + get_block_idx() * 4096), 0x8000, 0x0);
    // 98: back = TPipe[2, Direction.DIR_V2C, 4096, 4, 3](weights, 0, 0x4000)
    Back back((__gm__ void *)weights, 0x0, 0x4000);
#if defined(__DAV_CUBE__)
    // 100: acc, popped = Scores(), Weights()
    Scores acc;
    TASSIGN(acc, 0x400);
    Weights popped;
    // 102: for _ in range(3):
    for (int64_t i = 0; i < 3; ++i) {
        // 103: TPUSH[UP](there, acc)
        TPUSH<There, Scores, TileSplitAxis::TILE_UP_DOWN>(there, acc);
        // 104: TPOP[LEFT](back, popped)
        TPOP<Back, Weights, TileSplitAxis::TILE_LEFT_RIGHT>(back, popped);
        // 105: TFREE[LEFT](back)
        TFREE<Back, TileSplitAxis::TILE_LEFT_RIGHT>(back);
    }
#endif
#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    // 107: rows, columns = HalfRows(), HalfColumns()
    HalfRows rows;
    HalfColumns columns;
    TASSIGN(columns, 0x0);
    // 109: for _ in range(3):
    for (int64_t i = 0; i < 3; ++i) {
        // 110: TPOP[UP](there, rows)
        TPOP<There, HalfRows, TileSplitAxis::TILE_UP_DOWN>(there, rows);
        // 111: TFREE[UP](there)
        TFREE<There, TileSplitAxis::TILE_UP_DOWN>(there);
        // 112: TPUSH[LEFT](back, columns)
        TPUSH<Back, HalfColumns, TileSplitAxis::TILE_LEFT_RIGHT>(back, columns);
    }
#endif
}

extern "C" void launch_cluster(uint32_t blocks, void *stream, void *ffts, void *ring, void *weights)
{
    cluster<<<blocks, nullptr, stream>>>(
        (__gm__ uint64_t *)ffts, (__gm__ float *)ring, (__gm__ half *)weights);
}
