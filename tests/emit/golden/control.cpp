#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void control(__gm__ float *x, __gm__ float *y, __gm__ float *z, int64_t n)
{
    using Tile0 = Tile<TileType::Vec, float, 16, 64>;
    Tile0 a;
    TASSIGN(a, 0x0);
    Tile0 b;
    TASSIGN(b, 0x1000);
    int64_t first = 1;
    int64_t a_1_address = 0x0;
    int64_t b_1_address = 0x1000;
    int64_t second = 2;
    for (int64_t i = 0; i < n; ++i) {
        Tile0 a_1;
        TASSIGN(a_1, a_1_address);
        Tile0 b_1;
        TASSIGN(b_1, b_1_address);
        const int64_t v = (i < 3 ? i : 3);
        const int64_t v_1 = v * 16;
        GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>, Layout::ND> part(x + v_1 * 64);
        TLOAD(a_1, part);
        const bool v_2 = first > 5;
        int64_t first_1;
        if (v_2) {
            const float cst = 1.0f;
            TADDS(b_1, a_1, cst);
            first_1 = first;
        } else {
            const int64_t v_3 = first + i;
            first_1 = v_3;
        }
        const auto a_1_address_before = a_1_address;
        first = second;
        a_1_address = b_1_address;
        b_1_address = a_1_address_before;
        second = first_1;
    }
    Tile0 a_2;
    TASSIGN(a_2, a_1_address);
    Tile0 b_2;
    TASSIGN(b_2, b_1_address);
    int64_t second_1 = second;
    while (true) {
        const bool v_4 = second_1 < 9;
        if (!(v_4)) break;
        const int64_t v_5 = second_1 * 2;
        second_1 = v_5;
    }
    TMULS(a_2, a_2, second_1);
    pipe_barrier(PIPE_ALL);
    GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>, Layout::ND> part_1(z);
    TSTORE(part_1, a_2);
}
