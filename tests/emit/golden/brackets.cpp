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
    Tile1 codes;
    Tile2 scale;
    Tile2 offset;
    Tile3 count;
    Tile4 pairs;
    Tile5 part(n);
    GlobalTensor<float, Shape<1, 1, 1, -1, 64>, Stride<1, 1, 1, 64, 1>, Layout::ND> part_1(x, Shape<1, 1, 1, -1, 64>(n), Stride<1, 1, 1, 64, 1>());
    TLOAD(part, part_1);
    TEXP(block, block);
    TDIV<DivAlgorithm::HIGH_PRECISION>(block, block, block);
    TQUANT<QuantType::INT8_ASYM>(codes, block, scale, &offset);
    TCI<Tile3, uint32_t, false>(count, 7);
    TGATHER<Tile3, Tile4, MaskPattern::P1010, GatherAxis::GATHER_ROW>(count, pairs);
    TCVT(part, part, RoundMode::CAST_FLOOR);
    GlobalTensor<float, Shape<1, 1, 1, -1, 64>, Stride<1, 1, 1, 64, 1>, Layout::ND> part_2(z, Shape<1, 1, 1, -1, 64>(n), Stride<1, 1, 1, 64, 1>());
    TSTORE<Tile5, decltype(part_2), AtomicType::AtomicAdd>(part_2, part);
}
