#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void add(__gm__ float *x, __gm__ float *y, __gm__ float *z)
{
    using Tile0 = Tile<TileType::Vec, float, 16, 64>;
    Tile0 a;
    TASSIGN(a, 0x0);
    Tile0 b;
    TASSIGN(b, 0x1000);
    GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>, Layout::ND> part(x);
    TLOAD(a, part);
    GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>, Layout::ND> part_1(y);
    TLOAD(b, part_1);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADD(a, a, b);
    pipe_barrier(PIPE_ALL);
    GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>, Layout::ND> part_2(z);
    TSTORE(part_2, a);
}
