#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void brackets(__gm__ float *x, __gm__ float *y, __gm__ float *z, int64_t n)
{
    using Tile0 = Tile<TileType::Vec, float, 16, 64>;
    using Tile1 = Tile<TileType::Vec, uint8_t, 16, 64>;
    using Tile2 = Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor>;
    using Tile3 = Tile<TileType::Vec, uint32_t, 1, 64>;
    using Tile4 = Tile<TileType::Vec, uint32_t, 1, 128>;
    using Tile5 = Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, -1>;
    Tile0 block;
    TASSIGN(block, 0x0);
    Tile1 codes;
    TASSIGN(codes, 0x1000);
    Tile2 scale;
    TASSIGN(scale, 0x2000);
    Tile2 offset;
    TASSIGN(offset, 0x3000);
    Tile3 count;
    TASSIGN(count, 0x4000);
    Tile4 pairs;
    TASSIGN(pairs, 0x5000);
    Tile5 each(n);
    TASSIGN(each, 0x6000);
    GlobalTensor<float, Shape<1, 1, 1, -1, 64>, Stride<1, 1, 1, 64, 1>, Layout::ND> part(x, Shape<1, 1, 1, -1, 64>(n), Stride<1, 1, 1, 64, 1>());
    TLOAD(each, part);
    TEXP(block, block);
    TDIV<DivAlgorithm::HIGH_PRECISION>(block, block, block);
    TQUANT<QuantType::INT8_ASYM>(codes, block, scale, &offset);
    TCI<Tile3, uint32_t, false>(count, 7);
    TGATHER<Tile3, Tile4, MaskPattern::P1010, GatherAxis::GATHER_ROW>(count, pairs);
    TCVT(each, each, RoundMode::CAST_FLOOR, SaturationMode::ON);
    GlobalTensor<float, Shape<1, 1, 1, -1, 64>, Stride<1, 1, 1, 64, 1>, Layout::ND> part_1(z, Shape<1, 1, 1, -1, 64>(n), Stride<1, 1, 1, 64, 1>());
    TSTORE<Tile5, decltype(part_1), AtomicType::AtomicAdd>(part_1, each);
}
