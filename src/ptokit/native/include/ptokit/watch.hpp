// Global memory that a kernel reads and writes through plain pointers, `x[i]`.
//
// Kernels are compiled with the hooks of a thread sanitiser, which are ours: each load and store of
// memory that is no local variable calls one with its address. Those of the launch's arrays become
// scalar instructions, at the line of the access; all others cost a comparison.
#pragma once
#include "instructions.hpp"

namespace ptokit {
// The arrays, in order, from `low` to `high`; the simulator puts them here.
struct Watched {
    uint64_t low, high;
    const uint64_t* spans;  // first and last byte + 1 of each
    int64_t count;
};
extern "C" __attribute__((visibility("default"), weak)) Watched ptokit_watched = {1, 0, nullptr, 0};

// The value of a store is not there when its hook is called: it is filled in when the record is carried out.
__attribute__((noinline)) inline void touched(uint64_t at, int64_t size, bool writes, const void* pc)
{
    int64_t type = size == 1 ? element<int8_t>() : size == 2 ? element<int16_t>() : size == 4 ? element<int32_t>() : element<int64_t>();
    if (writes) ptokit_ring->carry_out();  // what comes before it in the kernel does so in memory
    Record r(writes ? CODE_store_scalar : CODE_load_scalar, pc);
    r.put({0, writes ? 3 : 2, POINTER, (int64_t)at, type, INTEGER, 0});
    if (!writes) {
        r.ask();
        return;
    }
    r.put({INTEGER, 0});
    late_value = {(const void*)at, size, ptokit_ring->count - 1};
    r.end();
}
#define PTOKIT_UNWATCHED __attribute__((no_sanitize("thread"), visibility("hidden"), weak))
PTOKIT_UNWATCHED void watch(const volatile void* pointer, uint64_t size, bool writes, const void* pc)
{
    uint64_t at = (uint64_t)pointer;
    const Watched& w = ptokit_watched;
    if (at < w.low || at >= w.high) return;
    int64_t n = 0;  // memory between the arrays has hooks as well, and is that of the functions here
    while (n < w.count && at >= w.spans[2 * n + 1]) n++;
    if (n == w.count || at < w.spans[2 * n]) return;
    while (size) {  // in the pieces that scalar instructions have
        uint64_t step = size >= 8 && at % 8 == 0 ? 8 : size >= 4 && at % 4 == 0 ? 4 : size >= 2 && at % 2 == 0 ? 2 : 1;
        try {
            touched(at, (int64_t)step, writes, pc);
        } catch (Stopped&) {  // compilers take hooks for functions that do not throw
            is_stopping = true;
            return;
        }
        at += step, size -= step;
    }
}
}  // namespace ptokit

#define PTOKIT_HOOK(NAME, SIZE, WRITES) \
    extern "C" PTOKIT_UNWATCHED void __tsan_##NAME(void* at) { ::ptokit::watch(at, SIZE, WRITES, __builtin_return_address(0)); }
#define PTOKIT_HOOKS(SIZE) \
    PTOKIT_HOOK(read##SIZE, SIZE, false) PTOKIT_HOOK(write##SIZE, SIZE, true) \
    PTOKIT_HOOK(volatile_read##SIZE, SIZE, false) PTOKIT_HOOK(volatile_write##SIZE, SIZE, true) \
    PTOKIT_HOOK(unaligned_read##SIZE, SIZE, false) PTOKIT_HOOK(unaligned_write##SIZE, SIZE, true) \
    extern "C" PTOKIT_UNWATCHED void __tsan_read_write##SIZE(void* at) \
    { \
        ::ptokit::watch(at, SIZE, false, __builtin_return_address(0)); \
        ::ptokit::watch(at, SIZE, true, __builtin_return_address(0)); \
    }
PTOKIT_HOOKS(1) PTOKIT_HOOKS(2) PTOKIT_HOOKS(4) PTOKIT_HOOKS(8) PTOKIT_HOOKS(16)
#undef PTOKIT_HOOKS
#undef PTOKIT_HOOK
extern "C" {
PTOKIT_UNWATCHED void __tsan_init() {}
PTOKIT_UNWATCHED void __tsan_func_entry(void*) {}
PTOKIT_UNWATCHED void __tsan_func_exit() {}
PTOKIT_UNWATCHED void __tsan_vptr_update(void**, void*) {}
PTOKIT_UNWATCHED void __tsan_vptr_read(void**) {}
PTOKIT_UNWATCHED void __tsan_read_range(void* at, unsigned long size) { ::ptokit::watch(at, size, false, __builtin_return_address(0)); }
PTOKIT_UNWATCHED void __tsan_write_range(void* at, unsigned long size) { ::ptokit::watch(at, size, true, __builtin_return_address(0)); }
PTOKIT_UNWATCHED void* __tsan_memcpy(void* to, const void* from, unsigned long size) { return __builtin_memcpy(to, from, size); }
PTOKIT_UNWATCHED void* __tsan_memmove(void* to, const void* from, unsigned long size) { return __builtin_memmove(to, from, size); }
PTOKIT_UNWATCHED void* __tsan_memset(void* to, int value, unsigned long size) { return __builtin_memset(to, value, size); }
}
#undef PTOKIT_UNWATCHED
