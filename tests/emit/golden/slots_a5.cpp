// Written by ptokit for a5, from kernels.py; numbers are lines there.
#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void slots(__gm__ float *ring)
{
    using Pipe = TPipe<0, Direction::DIR_C2V_GM, 8192, 2>;
    using Scores = TileAcc<float, 32, 64>;
    using GlobalSlot = GlobalTensor<float, Shape<1, 1, 1, 32, 64>, Stride<1, 1, 1, 64, 1>>;
    using Vec32x32 = Tile<TileType::Vec, float, 32, 32>;
    using GlobalPart = GlobalTensor<float, Shape<1, 1, 1, 32, 32>, Stride<1, 1, 1, 64, 1>>;

    // 137: pipe = TPipe[0, way, 8192, 2](ring, 0, 0)
    Pipe pipe((__gm__ void *)ring, 0x0, 0x0);
#if defined(__DAV_CUBE__)
    // 139: acc = Scores()
    Scores acc;
    TASSIGN(acc, 0x0);
    // 141: slot = GlobalTensor[float32, Shape[1, 1, 1, 32, 64], Stride[1, 1, 1, 64, 1]]()
    GlobalSlot slot(nullptr);
    // 142: TALLOC[LEFT](pipe, slot)
    TALLOC<Pipe, GlobalSlot, TileSplitAxis::TILE_LEFT_RIGHT>(pipe, slot);
    TSTORE(slot, acc);
    // 144: TPUSH[LEFT](pipe, slot)
    TPUSH<Pipe, GlobalSlot, TileSplitAxis::TILE_LEFT_RIGHT>(pipe, slot);
#endif
#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    // 146: columns = Tile[TileType.Vec, float32, 32, 32]()
    Vec32x32 columns;
    TASSIGN(columns, 0x0);
    // 148: part = GlobalTensor[float32, Shape[1, 1, 1, 32, 32], Stride[1, 1, 1, 64, 1]]()
    GlobalPart part(nullptr);
    // 149: TPOP[LEFT](pipe, part)
    TPOP<Pipe, GlobalPart, TileSplitAxis::TILE_LEFT_RIGHT>(pipe, part);
    TLOAD(columns, part);
    // 151: TFREE[LEFT](pipe, part)
    TFREE<Pipe, GlobalPart, TileSplitAxis::TILE_LEFT_RIGHT>(pipe, part);
#endif
}

extern "C" void launch_slots(uint32_t blocks, void *stream, void *ring)
{
    slots<<<blocks, nullptr, stream>>>((__gm__ float *)ring);
}
