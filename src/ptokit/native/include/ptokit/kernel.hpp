// What kernels use beside instructions: addresses, elements, queries, small numbers and names.
#pragma once
#include <cstdio>
#include "watch.hpp"

namespace ptokit {
inline void reduce_products(bool on, pto::RoundMode mode, const void* pc)
{
    Record r(CODE_TSETTF32MODE, pc);
    r.put({2, 0, FLAG, on, ENUM, Enumeration<pto::RoundMode>::number, (int64_t)mode});
    r.end();
}
__attribute__((noinline)) inline int64_t read_element(const TileBase& tile, int64_t index, const void* pc)
{
    Record r(CODE_GETVAL, pc);
    r.put({0, 2});
    r.put({TILE, (int64_t)tile.type, tile.is_bound ? (int64_t)tile.address : TileBase::UNBOUND, tile.rows, tile.cols, 0});
    r.put({INTEGER, index});
    return r.ask();
}
__attribute__((noinline)) inline void write_element(const TileBase& tile, int64_t index, double real, int64_t whole, bool is_real, const void* pc)
{
    Record r(CODE_SETVAL, pc);
    r.put({0, 3});
    r.put({TILE, (int64_t)tile.type, tile.is_bound ? (int64_t)tile.address : TileBase::UNBOUND, tile.rows, tile.cols, 0});
    r.put({INTEGER, index});
    if (is_real) r.put(REAL), r.real(real);
    else r.put({INTEGER, whole});
    r.end();
}
// What a kernel takes: for each parameter its category, and the element it is or points to.
enum Category : int64_t { AN_ARRAY = 1, A_WHOLE, A_REAL, ANOTHER };
template <typename T> constexpr int64_t category()
{
    if constexpr (std::is_pointer_v<T>) return AN_ARRAY;
    else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) return A_WHOLE;
    else return std::is_convertible_v<T, float> && sizeof(T) <= 8 ? A_REAL : ANOTHER;
}
template <typename... P> int64_t signature(void (*)(P...), int64_t* kinds)
{
    int64_t all[] = {category<std::remove_cv_t<P>>()..., 0};
    int64_t elements[] = {element<std::remove_cv_t<std::remove_pointer_t<P>>>()..., 0};
    for (size_t i = 0; i < sizeof...(P); i++) kinds[2 * i] = all[i], kinds[2 * i + 1] = elements[i];
    return sizeof...(P);
}
// A value that comes back as a word: a whole number, or the bits of a real one.
template <typename T> T value_of(int64_t word)
{
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) return (T)word;
    else if constexpr (std::is_convertible_v<float, T>) {
        double real;
        std::memcpy(&real, &word, 8);
        return T((float)real);
    } else return T{(uint8_t)word};
}
template <typename A> uint64_t address_of(const A& given)
{
    if constexpr (std::is_pointer_v<A>) return (uint64_t)(uintptr_t)given;
    else if constexpr (requires { given.address(); }) return given.address();
    else return (uint64_t)given;
}
PTOKIT_SHARED inline void bind(TileBase& tile, uint64_t address, const void* pc)
{
    tile.is_bound = false;
    call<CODE_TASSIGN, false, Types<>>(pc, tile, address);
    tile.address = address, tile.is_bound = true;
}
}  // namespace ptokit

namespace pto {
template <typename T, typename A> __attribute__((noinline)) void TASSIGN(T& object, const A& to)
{
    if constexpr (std::is_base_of_v<ptokit::TensorBase, T>) object.pointer = (void*)to;
    else if constexpr (std::is_base_of_v<ptokit::TileBase, T>) ptokit::bind(object, ptokit::address_of(to), __builtin_return_address(0));
    else {
        object.is_bound = false;
        ptokit::call<ptokit::CODE_TASSIGN, false, ptokit::Types<>>(__builtin_return_address(0), object, ptokit::address_of(to));
        object.address = ptokit::address_of(to), object.is_bound = true;
    }
}
template <uint64_t Address, typename T> __attribute__((noinline)) void TASSIGN(T& object)
{
    object.is_bound = false;
    ptokit::call<ptokit::CODE_TASSIGN, false, ptokit::Types<>, Address>(__builtin_return_address(0), object);
    object.address = Address, object.is_bound = true;
}
template <typename... E> void TSYNC(E&... events) { (events.Wait(), ...); }
template <typename... E> void WaitAllEvents(E&... events) { (events.Wait(), ...); }
template <Op Of> __attribute__((noinline)) void TSYNC()
{
    ptokit::Record r(ptokit::OP_BARRIER, __builtin_return_address(0));
    r.put((int64_t)Of);
    r.end();
}
template <pipe_t Src, pipe_t Dst> __attribute__((noinline)) void PtoSetWaitFlag(event_t set = EVENT_ID0, event_t wait = EVENT_ID0)
{
    const void* pc = __builtin_return_address(0);
    ptokit::call<ptokit::CODE_set_flag, false, ptokit::Types<>>(pc, Src, Dst, set);
    ptokit::call<ptokit::CODE_wait_flag, false, ptokit::Types<>>(pc, Src, Dst, wait);
}

template <typename T> __attribute__((noinline)) T load_scalar(T* from, int64_t offset)
{
    return ptokit::value_of<std::remove_cv_t<T>>(
        ptokit::call<ptokit::CODE_load_scalar, true, ptokit::Types<>>(__builtin_return_address(0), from, offset));
}

struct MrgSortExecutedNumList {
    uint16_t mrgSortList0 = 0, mrgSortList1 = 0, mrgSortList2 = 0, mrgSortList3 = 0;
};
struct TileConfig {
    static constexpr int alignedSize = 32, fixedRowSize = 16, fixedColSize = 16, fractalABSize = 512, fractalCSize = 1024,
                         fractalMxSize = 32;
};
namespace GlobalTensorDim {
constexpr int DIM_0 = 0, DIM_1 = 1, DIM_2 = 2, DIM_3 = 3, DIM_4 = 4, TOTAL_DIM = 5;
}
using TRandomKey = uint32_t[2];
using TRandomCounter = uint32_t[4];
constexpr int C0_SIZE_BYTE = 32, BLOCK_BYTE_SIZE = 32, BLOCK_SIZE = 32, FRACTAL_NZ_ROW = 16, FRACTAL_ZZ_ROW = 16, CUBE_BLOCK_SIZE = 512;
constexpr int FIXP_BURST_UNIT_LEN = 64, BLOCK_LEN = 16, CCE_VL = 256, ACC_C0_SIZE = 16, MX_COL_LEN = 2, MX_ROW_LEN = 16, MX_BLOCK_SIZE = 32;
constexpr int REPEAT_BYTE = 256, REPEAT_MAX = 255, REPEAT_STRIDE_MAX = 255, HIF4_COL_LEN = 4, HIF4_ROW_LEN = 16, HIF4_BLOCK_SIZE = 64;
constexpr uint32_t SHIFT_BLOCK_LEN = 4, SHIFT_BLOCK_BYTE = 5, SHIFT_FRACTAL_BYTE = 9, B4_C0_SIZE = 64, TMP_UB_SIZE = 8 << 10, TMP_UB_OFFSET = 184 << 10;
constexpr uint64_t BLOCK_MAX_PER_REPEAT = 8, MASK_LEN = 64;
constexpr int SYNCALL_SOFT_WORKSPACE_INT32 = 16;

// How a tile lies: rows, columns, or boxes by the order outside and inside.
template <typename T> constexpr TileLayoutCustom GetTileLayoutCustom()
{
    using enum TileLayoutCustom;
    if constexpr (!T::isBoxedLayout) return T::isRowMajor ? ND : DN;
    else if constexpr (T::isRowMajor) return T::isInnerRowMajor ? ZZ : ZN;
    else return T::isInnerRowMajor ? NZ : NONE;
}
template <typename A, typename B> constexpr auto CeilDivision(A a, B b) { return b == 0 ? 0 : (a + b - 1) / b; }
template <typename A, typename B> constexpr auto CeilAlignment(A a, B b) { return CeilDivision(a, b) * b; }
template <typename P> uint64_t GetScaleAddr(const P& at) { return ptokit::address_of(at) >> 4; }
template <MaskPattern Pattern> constexpr int GetTimesByMask()
{
    if constexpr (Pattern == MaskPattern::P1111) return 1;
    else if constexpr (Pattern == MaskPattern::P0101 || Pattern == MaskPattern::P1010) return 2;
    else return 4;
}
}  // namespace pto

namespace ptokit {
// A padding value of one's own: its bits behind the marker bit.
constexpr pto::PadValue custom_pad(uint64_t bits) { return static_cast<pto::PadValue>((int64_t)((uint64_t)pto::PadValue::CustomBase | bits)); }
}
namespace pto {
constexpr PadValue PadValueCustom(float value) { return ptokit::custom_pad(__builtin_bit_cast(uint32_t, value)); }
constexpr PadValue PadValueCustom(half value) { return ptokit::custom_pad(__builtin_bit_cast(uint16_t, value)); }
constexpr PadValue PadValueCustom(bfloat16_t value) { return ptokit::custom_pad(value.bits); }
constexpr PadValue PadValueCustom(int32_t value) { return ptokit::custom_pad((uint32_t)value); }
constexpr PadValue PadValueCustom(uint32_t value) { return ptokit::custom_pad(value); }
constexpr PadValue PadValueCustom(int16_t value) { return ptokit::custom_pad((uint16_t)value); }
constexpr PadValue PadValueCustom(uint16_t value) { return ptokit::custom_pad(value); }
constexpr PadValue PadValueCustom(int8_t value) { return ptokit::custom_pad((uint8_t)value); }
constexpr PadValue PadValueCustom(uint8_t value) { return ptokit::custom_pad(value); }
constexpr PadValue PadValueCustom16(uint16_t value) { return ptokit::custom_pad(value); }
constexpr uint32_t getCustomPadBits(PadValue value) { return (uint32_t)(uint64_t)value; }

template <LayoutMode_t Mode = LayoutMode_t::NZ2ND, QuantMode_t Quant = QuantMode_t::NoQuant, ReluPreMode Relu = ReluPreMode::NoRelu,
    STPhase Phase = STPhase::Unspecified, uint8_t SubBlock = 0, AtomicType Atomic = AtomicType::AtomicNone,
    ClipReluMode_t Clip = ClipReluMode_t::NOCLIP_RELU, bool ChannelSplit = false>
struct FixpipeParams {
    static constexpr int64_t PTOKIT_VALUES[8] = {(int64_t)Mode, (int64_t)Quant, (int64_t)Relu, (int64_t)Phase, SubBlock,
        (int64_t)Atomic, (int64_t)Clip, ChannelSplit};
    static constexpr QuantMode_t QuantPre = Quant;
    static constexpr ReluPreMode ReluMode = Relu;
    static constexpr LayoutMode_t LayoutMode = Mode;
};
}  // namespace pto

// ---- queries ------------------------------------------------------------------------------------
inline int64_t get_block_idx() { return ptokit::query(0); }
inline int64_t get_block_num() { return ptokit::query(1); }
inline int64_t get_subblockid() { return ptokit::query(2); }
inline int64_t get_subblockdim() { return ptokit::query(3); }
inline int64_t get_coreid() { return ptokit::query(0); }
namespace ptokit {
struct BlockIndex {
    operator int64_t() const { return query(0); }
};
struct BlockCount {
    operator int64_t() const { return query(1); }
};
}  // namespace ptokit
static const ptokit::BlockIndex block_idx;
static const ptokit::BlockCount block_num;
inline uint16_t getFFTSMsg(int mode, int id, int base = 1) { return (uint16_t)(base | mode << 4 | id << 8); }
using pto::load_scalar;
__attribute__((noinline)) inline void trap()
{
    ptokit::Record r(ptokit::TRAP, __builtin_return_address(0));
    r.ask();
}
namespace cce {
// Printed where it stands among the instructions of the core.
template <typename... A> __attribute__((noinline)) void printf(const char* format, A... values)
{
    int size = std::snprintf(nullptr, 0, format, values...);
    if (size < 0) return;
    char* text = (char*)__builtin_alloca((size_t)size + 1);
    std::snprintf(text, (size_t)size + 1, format, values...);
    ptokit::Record r(ptokit::PRINTED, __builtin_return_address(0));
    r.put((int64_t)text);
    r.ask();
}
}  // namespace cce
// The clock stands still here, and code is where it is needed.
inline int64_t get_sys_cnt() { return 0; }
inline int64_t get_pc() { return 0; }
inline int64_t get_icache_prl_st() { return 0; }
template <typename... A> void preload(A...) {}
