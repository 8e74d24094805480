// Written by ptokit for a2a3, from kernels.py; numbers are lines there.
#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void one_vector_core(__gm__ half *ring, int64_t signals)
{
    using Pipe = TPipe<4, Direction::DIR_BOTH, 8192, 2, 2, true>;
    using Scores = TileAcc<float, 32, 64>;
    using Weights = Tile<TileType::Mat, half, 32, 64, BLayout::ColMajor, 32, 64, SLayout::RowMajor>;
    using Vec32x64 = Tile<TileType::Vec, float, 32, 64>;
    using Vec32x64_f16 = Tile<TileType::Vec, half, 32, 64>;

    // 118: set_ffts_base_addr(signals)
    set_ffts_base_addr((uint64_t)signals);
    // 119: pipe = TPipe[4, Direction.DIR_BOTH, 8192, 2](ring, 0, 0)
    Pipe pipe((__gm__ void *)ring, 0x0, 0x0);
#if defined(__DAV_CUBE__)
    // 121: acc, popped = Scores(), Weights()
    Scores acc;
    TASSIGN(acc, 0x0);
    Weights popped;
    // 123: TPUSH(pipe, acc)
    TPUSH<Pipe, Scores, TileSplitAxis::TILE_NO_SPLIT>(pipe, acc);
    // 124: TPOP(pipe, popped)
    TPOP<Pipe, Weights, TileSplitAxis::TILE_NO_SPLIT>(pipe, popped);
    // 125: TFREE(pipe)
    TFREE<Pipe, TileSplitAxis::TILE_NO_SPLIT>(pipe);
#endif
#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    // 127: whole, answer = Tile[TileType.Vec, float32, 32, 64](), Tile[TileType.Vec, half, 32, 64]()
    Vec32x64 whole;
    Vec32x64_f16 answer;
    TASSIGN(answer, 0x8000);
    // 129: TPOP(pipe, whole)
    TPOP<Pipe, Vec32x64, TileSplitAxis::TILE_NO_SPLIT>(pipe, whole);
    // 130: TFREE(pipe)
    TFREE<Pipe, TileSplitAxis::TILE_NO_SPLIT>(pipe);
    // 131: TPUSH(pipe, answer)
    TPUSH<Pipe, Vec32x64_f16, TileSplitAxis::TILE_NO_SPLIT>(pipe, answer);
#endif
}

extern "C" void launch_one_vector_core(uint32_t blocks, void *stream, void *ring, int64_t signals)
{
    one_vector_core<<<blocks, nullptr, stream>>>((__gm__ half *)ring, signals);
}
