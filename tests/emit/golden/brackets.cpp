// Written by ptokit for a5, from kernels.py; numbers are lines there.
#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void brackets(
    __gm__ float *x, __gm__ float *y, __gm__ float *z, int64_t n)
{
    using Block = Tile<TileType::Vec, float, 16, 64>;
    using Codes = Tile<TileType::Vec, uint8_t, 16, 64>;
    using Column = Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor>;
    using Row = Tile<TileType::Vec, uint32_t, 1, 64>;
    using Pairs = Tile<TileType::Vec, uint32_t, 1, 128>;
    using Part = Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, DYNAMIC>;
    using GlobalX = GlobalTensor<float, Shape<1, 1, 1, DYNAMIC, 64>, Stride<1, 1, 1, 64, 1>>;
    using GlobalZ = GlobalTensor<float, Shape<1, 1, 1, DYNAMIC, 64>, Stride<1, 1, 1, 64, 1>>;

    // 54: block, codes, scale, offset = Block(), Codes(), Column(), Column()
    Block block;
    TASSIGN(block, 0x0);
    Codes codes;
    TASSIGN(codes, 0x1000);
    Column scale, offset;
    TASSIGN(scale, 0x2000);
    TASSIGN(offset, 0x3000);
    // 55: count, pairs = Row(), Pairs()
    Row count;
    TASSIGN(count, 0x4000);
    Pairs pairs;
    TASSIGN(pairs, 0x5000);
    // 57: part = Part(n)
    Part each(n);
    TASSIGN(each, 0x6000);
    // 60: TLOAD(part, GlobalTensor(x)[0:n, :])
    GlobalX x_part(x, GlobalX::Shape(n));
    TLOAD(each, x_part);
    TEXP(block, block);
    TDIV<DivAlgorithm::HIGH_PRECISION>(block, block, block);
    // 63: TQUANT[QuantType.INT8_ASYM](codes, block, scale, offset)
    TQUANT<QuantType::INT8_ASYM>(codes, block, scale, &offset);
    // 64: TCI(count, 7)
    TCI<Row, uint32_t, false>(count, 7);
    // 65: TGATHER[MaskPattern.P1010](count, pairs)
    TGATHER<Row, Pairs, MaskPattern::P1010, GatherAxis::GATHER_ROW>(count, pairs);
    // 66: TCVT(part, part, RoundMode.CAST_FLOOR)
    TCVT(each, each, RoundMode::CAST_FLOOR, SaturationMode::ON);
    // 67: TSTORE[AtomicType.AtomicAdd](GlobalTensor(z)[0:n, :], part)
    GlobalZ z_part(z, GlobalZ::Shape(n));
    TSTORE<Part, GlobalZ, AtomicType::AtomicAdd>(z_part, each);
}

extern "C" void launch_brackets(uint32_t blocks, void *stream, void *x, void *y, void *z, int64_t n)
{
    brackets<<<blocks, nullptr, stream>>>(
        (__gm__ float *)x, (__gm__ float *)y, (__gm__ float *)z, n);
}
