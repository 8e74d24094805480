// Written by ptokit for a5, from kernels.py; numbers are lines there.
#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void product(__gm__ half *a, __gm__ half *b, __gm__ float *c)
{
    using L1 = Tile<TileType::Mat, half, 64, 64, BLayout::ColMajor, 64, 64, SLayout::RowMajor>;
    using Left64x64 = TileLeft<half, 64, 64>;
    using Right64x64 = TileRight<half, 64, 64>;
    using Acc64x64 = TileAcc<float, 64, 64>;
    using GlobalA = GlobalTensor<half, Shape<1, 1, 1, 64, 64>, Stride<1, 1, 1, 64, 1>>;
    using GlobalB = GlobalTensor<half, Shape<1, 1, 1, 64, 64>, Stride<1, 1, 1, 64, 1>>;
    using GlobalC = GlobalTensor<float, Shape<1, 1, 1, 64, 64>, Stride<1, 1, 1, 64, 1>>;

    // 73: left_l1, right_l1 = L1(), L1()
    L1 left_l1, right_l1;
    TASSIGN(left_l1, 0x0);
    TASSIGN(right_l1, 0x2000);
    // 75: TileLeft[half, 64, 64](),
    Left64x64 left;
    TASSIGN(left, 0x0);
    // 76: TileRight[half, 64, 64](),
    Right64x64 right;
    TASSIGN(right, 0x0);
    // 77: TileAcc[float32, 64, 64](),
    Acc64x64 acc;
    TASSIGN(acc, 0x0);
    // 79: TLOAD(left_l1, GlobalTensor(a))
    GlobalA a_view(a);
    TLOAD(left_l1, a_view);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    // 80: TLOAD(right_l1, GlobalTensor(b))
    GlobalB b_view(b);
    TLOAD(right_l1, b_view);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(left, left_l1);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1);
    TMOV(right, right_l1);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(acc, left, right);
    // 84: TMATMUL_ACC(acc, left, right)
    TMATMUL_ACC(acc, acc, left, right);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    // 85: TSTORE[AtomicType.AtomicNone, ReluPreMode.NormalRelu](GlobalTensor(c), acc)
    GlobalC c_view(c);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE<Acc64x64, GlobalC, AtomicType::AtomicNone, ReluPreMode::NormalRelu>(c_view, acc);
    pipe_barrier(PIPE_ALL);
}

extern "C" void launch_product(uint32_t blocks, void *stream, void *a, void *b, void *c)
{
    product<<<blocks, nullptr, stream>>>((__gm__ half *)a, (__gm__ half *)b, (__gm__ float *)c);
}
