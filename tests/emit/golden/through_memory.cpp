// Written by ptokit for a5, from kernels.py; numbers are lines there.
#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void through_memory(__gm__ float *ring)
{
    using Pipe = TPipe<0, Direction::DIR_C2V_GM, 8192, 8, 2, true>;
    using Scores = TileAcc<float, 32, 64>;
    using Vec32x64 = Tile<TileType::Vec, float, 32, 64>;

    // 157: pipe = TPipe[0, Direction.DIR_C2V_GM, 8192, 8, 2, True](ring, 0, 0)
    Pipe pipe((__gm__ void *)ring, 0x0, 0x0);
#if defined(__DAV_CUBE__)
    // 159: acc = Scores()
    Scores acc;
    TASSIGN(acc, 0x0);
    // 161: TPUSH(pipe, acc)
    TPUSH<Pipe, Scores, TileSplitAxis::TILE_NO_SPLIT>(pipe, acc);
#endif
#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    // 163: whole = Tile[TileType.Vec, float32, 32, 64]()
    Vec32x64 whole;
    // 164: if get_subblockid() == 0:
    if (get_subblockid() == 0) {
        // 165: TPOP(pipe, whole)
        TPOP<Pipe, Vec32x64, TileSplitAxis::TILE_NO_SPLIT>(pipe, whole);
    }
#endif
}

extern "C" void launch_through_memory(uint32_t blocks, void *stream, void *ring)
{
    through_memory<<<blocks, nullptr, stream>>>((__gm__ float *)ring);
}
