// Instructions below tiles: copies that are given in bursts are loads, stores and moves of tiles of
// bytes. They are recorded as those are, on the same pipes. What has no such form is refused by name
// where a kernel that is compiled calls it.
#pragma once
#include "micro.hpp"

namespace ptokit {
struct Bursts {
    int64_t count, length, step;  // in bytes
    // Lengths and gaps in blocks of 32 bytes.
    static Bursts blocks(int64_t count, int64_t length, int64_t gap) { return {count, 32 * length, 32 * (length + gap)}; }
    // Lengths and the distance between starts in bytes; a single burst has none.
    static Bursts bytes(int64_t count, int64_t length, int64_t step) { return {count, length, step ? step : length}; }
};

// Tile types that only a running kernel knows, one object each, kept for good.
inline const TileType_* known_type(const TileType_& wanted)
{
    struct Known {
        TileType_ type;
        Known* next;
    };
    static Known* all = nullptr;
    for (Known* each = all; each; each = each->next)
        if (!std::memcmp(&each->type, &wanted, sizeof(wanted))) return &each->type;
    all = new Known{wanted, all};
    return &all->type;
}

// Bursts in the memory of a core as a tile, rows of which they are.
template <typename T = uint8_t> TileBase local_bursts(pto::TileType loc, uint64_t address, Bursts b)
{
    constexpr int64_t size = sizeof(T);
    int64_t step = b.count > 1 ? b.step : (b.length + 31) / 32 * 32;
    TileBase tile;
    tile.address = address, tile.is_bound = true;
    tile.rows = b.count, tile.cols = b.length / size;
    tile.type = known_type({(int64_t)loc, element<T>(), b.count, step / size, 0, -1, -1, 0, 512, 0, 0});
    return tile;
}
inline TensorBase global_bursts(const volatile void* pointer, Bursts b)
{
    static constexpr TensorType type{element<uint8_t>(), (int64_t)pto::Layout::ND, {1, 1, 1, -1, -1}, {-1, -1, -1, -1, 1}};
    int64_t all = b.count * b.step;
    int64_t sizes[] = {1, 1, 1, b.count, b.length}, strides[] = {all, all, all, b.step, 1};
    return {type, const_cast<const void*>(pointer), sizes, strides};
}
template <int64_t Code> void copy(const void* pc, const auto& to, const auto& from) { call<Code, false, Types<>>(pc, to, from); }

// The mask of the vector unit, as far as filling memory asks for it: a count of elements.
struct VectorMask {
    bool counts = false;
    uint64_t high = ~0ull, low = ~0ull;
};
inline VectorMask vector_mask;
}  // namespace ptokit

inline void set_mask_norm() { ptokit::vector_mask.counts = false; }
inline void set_mask_count() { ptokit::vector_mask.counts = true; }
template <typename A, typename B> void set_vector_mask(A high, B low) { ptokit::vector_mask.high = (uint64_t)high, ptokit::vector_mask.low = (uint64_t)low; }

template <typename T> T&& __cce_get_tile_ptr(T&& pointer) { return static_cast<T&&>(pointer); }
template <typename T> using PtokitUb = ptokit::Local<pto::TileType::Vec, T>;
template <typename T> using PtokitL1 = ptokit::Local<pto::TileType::Mat, T>;

// ---- bursts of whole blocks, with gaps between them
#define PTOKIT_FROM_GM(NAME, MEMORY) \
    template <typename D, typename S, typename... Rest> \
    __attribute__((noinline)) void NAME(MEMORY<D> dst, S* src, int64_t, int64_t count, int64_t length, int64_t src_gap, int64_t dst_gap, Rest...) \
    { \
        using namespace ptokit; \
        copy<CODE_TLOAD>(__builtin_return_address(0), local_bursts(dst.loc, dst.address(), Bursts::blocks(count, length, dst_gap)), \
            global_bursts(src, Bursts::blocks(count, length, src_gap))); \
    }
#define PTOKIT_TO_GM(NAME, MEMORY) \
    template <typename D, typename S, typename... Rest> \
    __attribute__((noinline)) void NAME(D* dst, MEMORY<S> src, int64_t, int64_t count, int64_t length, int64_t src_gap, int64_t dst_gap, Rest...) \
    { \
        using namespace ptokit; \
        copy<CODE_TSTORE>(__builtin_return_address(0), global_bursts(dst, Bursts::blocks(count, length, dst_gap)), \
            local_bursts(src.loc, src.address(), Bursts::blocks(count, length, src_gap))); \
    }
PTOKIT_FROM_GM(copy_gm_to_ubuf, PtokitUb)
PTOKIT_FROM_GM(copy_gm_to_cbuf, PtokitL1)
PTOKIT_TO_GM(copy_ubuf_to_gm, PtokitUb)
PTOKIT_TO_GM(copy_cbuf_to_gm, PtokitL1)
#undef PTOKIT_FROM_GM
#undef PTOKIT_TO_GM

template <typename D, typename S, typename... Rest>
__attribute__((noinline)) void copy_ubuf_to_cbuf(PtokitL1<D> dst, PtokitUb<S> src, int64_t, int64_t count, int64_t length, int64_t src_gap, int64_t dst_gap, Rest...)
{
    using namespace ptokit;
    copy<CODE_TMOV>(__builtin_return_address(0), local_bursts(dst.loc, dst.address(), Bursts::blocks(count, length, dst_gap)),
        local_bursts(src.loc, src.address(), Bursts::blocks(count, length, src_gap)));
}
template <typename D, typename S, typename... Rest>
__attribute__((noinline)) void copy_cbuf_to_ubuf(PtokitUb<D> dst, PtokitL1<S> src, int64_t core, int64_t count, int64_t length, int64_t src_gap, int64_t dst_gap, Rest...)
{
    using namespace ptokit;
    const void* pc = __builtin_return_address(0);
    TileBase to = local_bursts(dst.loc, dst.address(), Bursts::blocks(count, length, dst_gap));
    TileBase from = local_bursts(src.loc, src.address(), Bursts::blocks(count, length, src_gap));
    if (core) call<CODE_copy_cbuf_to_ubuf, false, Types<>, 1>(pc, to, from);
    else call<CODE_copy_cbuf_to_ubuf, false, Types<>, 0>(pc, to, from);
}
template <typename D, typename S, typename... Rest>
__attribute__((noinline)) void copy_ubuf_to_ubuf(PtokitUb<D> dst, PtokitUb<S> src, int64_t, int64_t count, int64_t length, int64_t src_gap, int64_t dst_gap, Rest...)
{
    using namespace ptokit;
    copy<CODE_TMOV>(__builtin_return_address(0), local_bursts(dst.loc, dst.address(), Bursts::blocks(count, length, dst_gap)),
        local_bursts(src.loc, src.address(), Bursts::blocks(count, length, src_gap)));
}

// ---- bursts of bytes, with the distance between their starts
#define PTOKIT_FROM_GM(NAME, MEMORY) \
    template <typename D, typename S> \
    __attribute__((noinline)) void NAME(MEMORY<D> dst, S* src, int64_t, int64_t count, int64_t length, int64_t, int64_t, int64_t, int64_t, \
        int64_t src_step, int64_t dst_step) \
    { \
        using namespace ptokit; \
        copy<CODE_TLOAD>(__builtin_return_address(0), local_bursts(dst.loc, dst.address(), Bursts::bytes(count, length, dst_step)), \
            global_bursts(src, Bursts::bytes(count, length, src_step))); \
    }
PTOKIT_FROM_GM(copy_gm_to_ubuf_align_v2, PtokitUb)
PTOKIT_FROM_GM(copy_gm_to_cbuf_align_v2, PtokitL1)
PTOKIT_FROM_GM(pto_copy_gm_to_ubuf_align_v2, PtokitUb)
#undef PTOKIT_FROM_GM
template <typename D, typename S>
__attribute__((noinline)) void copy_ubuf_to_gm_align_v2(D* dst, PtokitUb<S> src, int64_t, int64_t count, int64_t length, int64_t, int64_t dst_step, int64_t src_step)
{
    using namespace ptokit;
    copy<CODE_TSTORE>(__builtin_return_address(0), global_bursts(dst, Bursts::bytes(count, length, dst_step)),
        local_bursts(src.loc, src.address(), Bursts::bytes(count, length, src_step)));
}

// ---- an accumulator, with the conversion that the types ask for
inline void set_nd_para(uint64_t config) { ptokit::asserted((config & 0xFFFF) == 1, "set_nd_para is for one matrix at a time"); }
template <typename D, typename S>
__attribute__((noinline)) void copy_matrix_cc_to_gm(D* dst, ptokit::Local<pto::TileType::Acc, S> src, int64_t, int64_t cols, int64_t rows, int64_t dst_step,
    int64_t src_rows, int64_t unit_flag, int64_t quant, int64_t relu, bool channel_split, bool is_nd)
{
    using namespace ptokit;
    asserted(unit_flag == 0 && quant == NoQuant && relu == 0 && !channel_split && is_nd,
        "copy_matrix_cc_to_gm is simulated for plain rows: no unit flag, quantisation, relu or channel split");
    static constexpr TensorType type{element<D>(), (int64_t)pto::Layout::ND, {1, 1, 1, -1, -1}, {-1, -1, -1, -1, 1}};
    int64_t all = rows * dst_step;
    int64_t sizes[] = {1, 1, 1, rows, cols}, strides[] = {all, all, all, dst_step, 1};
    TensorBase view(type, (const void*)dst, sizes, strides);
    TileBase tile;
    tile.address = src.address(), tile.is_bound = true, tile.rows = rows, tile.cols = cols;
    tile.type = known_type({(int64_t)pto::TileType::Acc, element<S>(), (src_rows + 15) / 16 * 16, (cols + 15) / 16 * 16, (int64_t)pto::BLayout::ColMajor, -1, -1,
        (int64_t)pto::SLayout::RowMajor, 1024, 0, 0});
    copy<CODE_TSTORE>(__builtin_return_address(0), view, tile);
}

// ---- fills
template <typename T, typename V> __attribute__((noinline)) void create_cbuf_matrix(PtokitL1<T> dst, int64_t config, V value)
{
    using namespace ptokit;
    using E = std::conditional_t<sizeof(V) == 4 && !std::is_same_v<T, uint16_t>, uint32_t, uint16_t>;
    Bursts bursts = Bursts::blocks(config & 0x7FFF, config >> 16 & 0x7FFF, config >> 32 & 0x7FFF);
    call<CODE_TEXPANDS, false, Types<>>(__builtin_return_address(0), local_bursts<E>(dst.loc, dst.address(), bursts), (int64_t)(E)value);
}
template <typename T, typename V>
__attribute__((noinline)) void vector_dup(PtokitUb<T> dst, V value, int64_t repeat, int64_t block_step, int64_t, int64_t repeat_step, int64_t)
{
    using namespace ptokit;
    const void* pc = __builtin_return_address(0);
    asserted(block_step == 1 && repeat_step == 8 && (vector_mask.counts || !(uint64_t)(vector_mask.low + 1)),
        "vector_dup fills a run of elements: blocks side by side, no mask but a count");
    int64_t count = vector_mask.counts ? (int64_t)vector_mask.low : repeat * 256 / (int64_t)sizeof(T);
    TileBase tile = local_bursts<T>(dst.loc, dst.address(), Bursts::bytes(1, count * sizeof(T), 0));
    if constexpr (std::is_integral_v<T>) call<CODE_TEXPANDS, false, Types<>>(pc, tile, (int64_t)(T)value);
    else call<CODE_TEXPANDS, false, Types<>>(pc, tile, (float)value);
}

// ---- elements of global memory past the data cache
template <typename T> __attribute__((noinline)) T ld_dev(T* pointer, int64_t offset)
{
    const void* pc = __builtin_return_address(0);
    using U = std::remove_cv_t<T>;
    ptokit::call<ptokit::CODE_dcci, false, ptokit::Types<>>(pc, (U*)pointer + offset, (int64_t)SINGLE_CACHE_LINE);
    return ptokit::value_of<U>(ptokit::call<ptokit::CODE_load_scalar, true, ptokit::Types<>>(pc, (U*)pointer, offset));
}
template <typename V, typename T> __attribute__((noinline)) void st_dev(V value, T* pointer, int64_t offset)
{
    const void* pc = __builtin_return_address(0);
    using U = std::remove_cv_t<T>;
    if (pointer && (int64_t)(pointer + offset) == ptokit::query(4)) {  // where flags between cores lie
        ptokit::call<ptokit::CODE_ffts_cross_core_sync, false, ptokit::Types<>>(pc, PIPE_S, (int64_t)value);
        return;
    }
    ptokit::call<ptokit::CODE_store_scalar, false, ptokit::Types<>>(pc, (U*)pointer, offset, (U)value);
    ptokit::call<ptokit::CODE_dcci, false, ptokit::Types<>>(pc, (U*)pointer + offset, (int64_t)SINGLE_CACHE_LINE);
    ptokit::call<ptokit::CODE_dsb, false, ptokit::Types<>>(pc, (int64_t)DSB_DDR);
}

// ---- the matrix unit: an operand is a tile whose boxes lie as they do for it
namespace ptokit {
constexpr int64_t whole(int64_t n, int64_t by) { return (n + by - 1) / by * by; }
template <typename T> TileBase boxes(pto::TileType loc, uint64_t address, int64_t rows, int64_t cols, pto::BLayout outer, pto::SLayout inner, int64_t box)
{
    int64_t step = box == 512 ? 64 : box == 32 ? 2 : 16;  // across the lines of a box
    bool in_rows = inner == pto::SLayout::RowMajor;
    TileBase found;
    found.address = address, found.is_bound = true, found.rows = rows, found.cols = cols;
    found.type = known_type({(int64_t)loc, element<T>(), whole(rows, in_rows ? 16 : step), whole(cols, in_rows ? step : 16), (int64_t)outer, -1, -1,
        (int64_t)inner, box, 0, 0});
    return found;
}
template <typename T> TileBase left_boxes(uint64_t at, int64_t rows, int64_t cols)
{
#ifdef PTOKIT_LEFT_IS_NZ
    return boxes<T>(pto::TileType::Left, at, rows, cols, pto::BLayout::ColMajor, pto::SLayout::RowMajor, 512);
#else
    return boxes<T>(pto::TileType::Left, at, rows, cols, pto::BLayout::RowMajor, pto::SLayout::RowMajor, 512);
#endif
}
template <typename T> TileBase right_boxes(uint64_t at, int64_t rows, int64_t cols)
{
    return boxes<T>(pto::TileType::Right, at, rows, cols, pto::BLayout::RowMajor, pto::SLayout::ColMajor, 512);
}
template <typename T> TileBase sum_boxes(uint64_t at, int64_t rows, int64_t cols)
{
    return boxes<T>(pto::TileType::Acc, at, rows, cols, pto::BLayout::ColMajor, pto::SLayout::RowMajor, 1024);
}
inline TileBase scale_boxes(pto::TileType loc, uint64_t at, int64_t rows, int64_t cols, bool is_left)
{
    if (is_left) return boxes<float8_e8m0_t>(loc, at, rows, cols, pto::BLayout::RowMajor, pto::SLayout::RowMajor, 32);
    return boxes<float8_e8m0_t>(loc, at, rows, cols, pto::BLayout::ColMajor, pto::SLayout::ColMajor, 32);
}
template <pto::TileType Loc> void move_scales(const void* pc, uint64_t to, uint64_t from, int64_t rows, int64_t cols)
{
    constexpr bool is_left = Loc == pto::TileType::ScaleLeft;
    copy<CODE_TMOV>(pc, scale_boxes(Loc, to, rows, cols, is_left), scale_boxes(pto::TileType::Mat, from, rows, cols, is_left));
}
}  // namespace ptokit
// A product; scales lie where the addresses of the operands, in boxes, say.
template <typename C, typename A, typename B>
__attribute__((noinline)) void mad_mx(ptokit::Local<pto::TileType::Acc, C> c, ptokit::Local<pto::TileType::Left, A> a, ptokit::Local<pto::TileType::Right, B> b,
    int64_t m, int64_t k, int64_t n, int64_t, bool is_vector, bool has_bias, bool begins)
{
    using namespace ptokit;
    using enum pto::TileType;
    const void* pc = __builtin_return_address(0);
    PTO_ASSERT(!is_vector && !has_bias, "mad_mx: with a bias, or for one row, it is not simulated");
    auto sum = sum_boxes<C>(c.address(), m, n);
    auto left = left_boxes<A>(a.address(), m, k);
    auto right = right_boxes<B>(b.address(), k, n);
    auto scales = scale_boxes(ScaleLeft, a.address() / 16, m, k / 32, true), others = scale_boxes(ScaleRight, b.address() / 16, k / 32, n, false);
    if (begins) call<CODE_TMATMUL_MX, false, Types<>>(pc, sum, left, scales, right, others);
    else call<CODE_TMATMUL_MX, false, Types<>>(pc, sum, sum, left, scales, right, others);
}
// Scales of block-scaled products: boxes of 16 x 2, all of a matrix, moved to beside its operand.
#define PTOKIT_SCALES(NAME, LOC, ROWS, COLS) \
    template <typename S> __attribute__((noinline)) void NAME( \
        uint64_t dst, PtokitL1<S> src, int64_t x, int64_t y, int64_t pairs, int64_t lines, int64_t src_step, int64_t dst_step) \
    { \
        PTO_ASSERT(x == 0 && y == 0 && src_step == lines && dst_step == lines, #NAME ": only a whole matrix is moved here"); \
        ptokit::move_scales<pto::TileType::LOC>(__builtin_return_address(0), dst, src.address(), ROWS, COLS); \
    }
PTOKIT_SCALES(load_cbuf_to_ca_mx, ScaleLeft, 16 * lines, 2 * pairs)
PTOKIT_SCALES(load_cbuf_to_cb_mx, ScaleRight, 2 * pairs, 16 * lines)
#undef PTOKIT_SCALES

// ---- refused by name, where a call is compiled
#define PTOKIT_REFUSED(NAME, WHY) \
    template <typename... A> __attribute__((noinline, error(#NAME ": " WHY))) int64_t NAME(const A&...);
#define PTOKIT_RAW(NAME) PTOKIT_REFUSED(NAME, "this intrinsic is not simulated; write the instruction on tiles")
PTOKIT_RAW(mad) PTOKIT_RAW(load_cbuf_to_ca) PTOKIT_RAW(load_cbuf_to_cb)
PTOKIT_RAW(copy_matrix_cc_to_cbuf) PTOKIT_RAW(copy_matrix_cc_to_ub) PTOKIT_RAW(copy_gm_to_ubuf_align_b8)
PTOKIT_RAW(copy_ubuf_to_gm_align_b8) PTOKIT_RAW(set_quant_pre) PTOKIT_RAW(set_fpc)
PTOKIT_RAW(copy_sram_to_neighbor_sram) PTOKIT_RAW(copy_neighbor_sram_to_sram) PTOKIT_RAW(get_neighbor_sram_addr)
PTOKIT_RAW(vlds) PTOKIT_RAW(vsts) PTOKIT_RAW(vdup) PTOKIT_RAW(vldas) PTOKIT_RAW(vldus) PTOKIT_RAW(vstus) PTOKIT_RAW(vstar) PTOKIT_RAW(vstur)
PTOKIT_RAW(vcvt) PTOKIT_RAW(vadd) PTOKIT_RAW(vadds) PTOKIT_RAW(vsub) PTOKIT_RAW(vmul) PTOKIT_RAW(vmuls) PTOKIT_RAW(vdiv) PTOKIT_RAW(vexp)
PTOKIT_RAW(vci) PTOKIT_RAW(vsqz) PTOKIT_RAW(__sync_workitems)
#undef PTOKIT_RAW
