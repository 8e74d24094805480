#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void product(__gm__ half *a, __gm__ half *b, __gm__ float *c)
{
    using Tile0 = Tile<TileType::Mat, half, 64, 64, BLayout::ColMajor, 64, 64, SLayout::RowMajor>;
    using Tile1 = Tile<TileType::Left, half, 64, 64, BLayout::ColMajor, 64, 64, SLayout::RowMajor>;
    using Tile2 = Tile<TileType::Right, half, 64, 64, BLayout::RowMajor, 64, 64, SLayout::ColMajor>;
    using Tile3 = Tile<TileType::Acc, float, 64, 64, BLayout::ColMajor, 64, 64, SLayout::RowMajor, 1024>;
    Tile0 left_l1;
    TASSIGN(left_l1, 0x0);
    Tile0 right_l1;
    TASSIGN(right_l1, 0x2000);
    Tile1 left;
    TASSIGN(left, 0x0);
    Tile2 right;
    TASSIGN(right, 0x0);
    Tile3 acc;
    TASSIGN(acc, 0x0);
    GlobalTensor<half, Shape<1, 1, 1, 64, 64>, Stride<1, 1, 1, 64, 1>, Layout::ND> part(a);
    TLOAD(left_l1, part);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    GlobalTensor<half, Shape<1, 1, 1, 64, 64>, Stride<1, 1, 1, 64, 1>, Layout::ND> part_1(b);
    TLOAD(right_l1, part_1);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(left, left_l1);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1);
    TMOV(right, right_l1);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(acc, left, right);
    TMATMUL_ACC(acc, acc, left, right);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    GlobalTensor<float, Shape<1, 1, 1, 64, 64>, Stride<1, 1, 1, 64, 1>, Layout::ND> part_2(c);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE<Tile3, decltype(part_2), AtomicType::AtomicNone, ReluPreMode::NormalRelu>(part_2, acc);
    pipe_barrier(PIPE_ALL);
}
