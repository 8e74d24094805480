// The words of the device's compiler, and its element types.
#pragma once
#include "record.hpp"

#define __global__
#define __aicore__
#define AICORE
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __in__
#define __out__
#define __tf__
#define aicore maybe_unused
#define PTO_INST inline
#define PTO_INTERNAL inline
#define PTO_INLINE inline
#define OP_NAME(...)
#define OP_TYPE(...)
#define PTO_STATIC_ASSERT(...) static_assert(__VA_ARGS__)
#define PTO_ASSERT(condition, ...) ::ptokit::asserted((condition), #condition)
#define PTO_SYNCALL_AIV_KERNEL_META(...) static_assert(true)
#define PTO_SYNCALL_AIC_KERNEL_META(...) static_assert(true)
#define PTO_SYNCALL_MIX_AIC_KERNEL_META(...) static_assert(true)
#define PTO_DIV_ROUNDUP(a, b) (((a) + (b)-1) / (b))
#define PTO_CEIL(a, b) (PTO_DIV_ROUNDUP(a, b) * (b))

namespace ptokit {
__attribute__((noinline)) inline void asserted(bool holds, const char* condition)
{
    if (holds) return;
    Record r(ASSERTION, __builtin_return_address(0));
    r.put((int64_t)condition);
    r.ask();
}

// bfloat16 by its bits: not every compiler has it. Numbers are rounded to the nearest, ties to even.
struct BFloat16 {
    uint16_t bits = 0;
    BFloat16() = default;
    constexpr BFloat16(float value)
    {
        uint32_t wide = __builtin_bit_cast(uint32_t, value);
        bool is_nan = (wide & 0x7FFFFFFF) > 0x7F800000;
        bits = is_nan ? (wide >> 16) | 0x40 : (wide + 0x7FFF + ((wide >> 16) & 1)) >> 16;
    }
    constexpr operator float() const { return __builtin_bit_cast(float, (uint32_t)bits << 16); }
};
template <int Kind> struct Code {  // an element the host cannot compute with
    uint8_t bits = 0;
};
}  // namespace ptokit

using half = _Float16;
using float16_t = _Float16;
#ifdef __clang__
#define __fp16 _Float16  // a word of its own there, for a type that no function takes
#else
using __fp16 = _Float16;
#endif
using bfloat16_t = ::ptokit::BFloat16;
using float8_e4m3_t = ::ptokit::Code<0>;
using float8_e5m2_t = ::ptokit::Code<1>;
using float8_e8m0_t = ::ptokit::Code<2>;
using hifloat8_t = ::ptokit::Code<3>;
using float4_e2m1x2_t = ::ptokit::Code<4>;
using float4_e1m2x2_t = ::ptokit::Code<5>;
using hifloat4x2_t = ::ptokit::Code<6>;
using int4b_t = ::ptokit::Code<7>;

enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };
enum cache_line_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE = 1 };
enum dcci_dst_t { CACHELINE_ALL = 0, CACHELINE_UB = 1, CACHELINE_OUT = 2, CACHELINE_ATOMIC = 3 };
enum mem_dsb_t { DSB_ALL = 0, DSB_DDR = 1, DSB_UB = 2, DSB_SEQ = 3 };
