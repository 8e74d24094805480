// Written by ptokit for a2a3, from kernels.py; numbers are lines there.
#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void add(__gm__ float *x, __gm__ float *y, __gm__ float *z)
{
    using Block = Tile<TileType::Vec, float, 16, 64>;
    using GlobalX = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>>;
    using GlobalY = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>>;
    using GlobalZ = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>>;

    // 16: a, b = Block(), Block()
    Block a, b;
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x1000);
    // 19: TLOAD(a, GlobalTensor(x))
    GlobalX x_view(x);
    TLOAD(a, x_view);
    // 20: TLOAD(b, GlobalTensor(y))
    GlobalY y_view(y);
    TLOAD(b, y_view);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADD(a, a, b);
    pipe_barrier(PIPE_ALL);
    // 25: TSTORE(GlobalTensor(z), a)
    GlobalZ z_view(z);
    TSTORE(z_view, a);
}

extern "C" void launch_add(uint32_t blocks, void *stream, void *x, void *y, void *z)
{
    add<<<blocks, nullptr, stream>>>((__gm__ float *)x, (__gm__ float *)y, (__gm__ float *)z);
}
