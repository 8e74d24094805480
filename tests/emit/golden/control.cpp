// Written by ptokit for a2a3, from kernels.py; numbers are lines there.
#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void control(
    __gm__ float *x, __gm__ float *y, __gm__ float *z, int64_t n)
{
    using Block = Tile<TileType::Vec, float, 16, 64>;
    using GlobalX = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>>;
    using GlobalZ = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>>;

    // 31: a, b = Block(), Block()
    Block a, b;
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x1000);
    // 35: for i in range(n):
    int64_t first = 1;
    int64_t a_1_address = 0x0;
    int64_t b_1_address = 0x1000;
    int64_t second = 2;
    for (int64_t i = 0; i < n; ++i) {
        Block a_1;
        TASSIGN(a_1, a_1_address);
        Block b_1;
        TASSIGN(b_1, b_1_address);
        // 36: row = min(i, 3) * 16
        const int64_t row = (i < 3 ? i : 3) * 16;
        // 37: TLOAD(a, GlobalTensor(x)[row : row + 16, :])
        GlobalX x_part(x + row * 64);
        TLOAD(a_1, x_part);
        // 38: if first > 5:
        int64_t first_1;
        if (first > 5) {
            // 39: TADDS(b, a, 1.0)
            TADDS(b_1, a_1, 1.0f);
            first_1 = first;
        } else {
            first_1 = first + i;
        }
        const auto a_1_address_before = a_1_address;
        first = second;
        a_1_address = b_1_address;
        b_1_address = a_1_address_before;
        second = first_1;
    }
    Block a_2;
    TASSIGN(a_2, a_1_address);
    // 44: while second < 9:
    int64_t second_1 = second;
    while (second_1 < 9) {
        second_1 = second_1 * 2;
    }
    // 46: TMULS(a, a, second)
    TMULS(a_2, a_2, second_1);
    pipe_barrier(PIPE_ALL);
    // 48: TSTORE(GlobalTensor(z), a)
    GlobalZ z_view(z);
    TSTORE(z_view, a_2);
}

extern "C" void launch_control(uint32_t blocks, void *stream, void *x, void *y, void *z, int64_t n)
{
    control<<<blocks, nullptr, stream>>>((__gm__ float *)x, (__gm__ float *)y, (__gm__ float *)z, n);
}
