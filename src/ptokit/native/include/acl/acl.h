// The host API. The device is this process: its memory is memory of the host that the simulator is
// told of, streams carry out at once, and a launch that fails is told by the next synchronisation.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ptokit/record.hpp>

typedef int aclError;
typedef void* aclrtStream;
typedef void* aclrtContext;
typedef void* aclrtEvent;
typedef uint16_t aclFloat16;

enum : int {
    ACL_SUCCESS = 0,
    ACL_ERROR_NONE = 0,
    ACL_ERROR_INVALID_PARAM = 100000,
    ACL_ERROR_BAD_ALLOC = 200000,
    ACL_ERROR_RT_PARAM_INVALID = 107000,
    ACL_ERROR_RT_MEMORY_ALLOCATION = 207001,
    ACL_ERROR_RT_AICORE_EXCEPTION = 507015,
};
enum aclrtMemMallocPolicy {
    ACL_MEM_MALLOC_HUGE_FIRST,
    ACL_MEM_MALLOC_HUGE_ONLY,
    ACL_MEM_MALLOC_NORMAL_ONLY,
    ACL_MEM_MALLOC_HUGE_FIRST_P2P,
    ACL_MEM_MALLOC_HUGE_ONLY_P2P,
    ACL_MEM_MALLOC_NORMAL_ONLY_P2P,
    ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x100,
    ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000,
};
enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST,
    ACL_MEMCPY_HOST_TO_DEVICE,
    ACL_MEMCPY_DEVICE_TO_HOST,
    ACL_MEMCPY_DEVICE_TO_DEVICE,
    ACL_MEMCPY_DEFAULT,
};
enum aclrtCmoType { ACL_RT_CMO_TYPE_PREFETCH, ACL_RT_CMO_TYPE_WRITEBACK, ACL_RT_CMO_TYPE_INVALID, ACL_RT_CMO_TYPE_FLUSH };
enum aclrtDevAttr { ACL_DEV_ATTR_AICPU_CORE_NUM = 1, ACL_DEV_ATTR_AICORE_CORE_NUM = 101, ACL_DEV_ATTR_VECTOR_CORE_NUM = 201 };
struct aclrtMallocConfig {
    void* attrs;
    size_t numAttrs;
};

namespace ptokit {
constexpr size_t DEVICE_ALIGNMENT = 512;  // of what the device allocates
#ifdef REGISTER_BASE
constexpr int64_t CUBE_CORES = 32;
#else
constexpr int64_t CUBE_CORES = 24;
#endif

__attribute__((noinline)) inline aclError allocate(void** at, size_t size, const void* pc)
{
    if (at == nullptr || size == 0) return ACL_ERROR_RT_PARAM_INVALID;
    size_t whole = (size + DEVICE_ALIGNMENT - 1) / DEVICE_ALIGNMENT * DEVICE_ALIGNMENT;
    *at = whole < size ? nullptr : std::aligned_alloc(DEVICE_ALIGNMENT, whole);
    if (*at == nullptr) return ACL_ERROR_RT_MEMORY_ALLOCATION;
    std::memset(*at, 0, whole);
    Record r(ALLOCATE, pc);
    r.put({(int64_t)*at, (int64_t)size});
    r.ask();
    return ACL_SUCCESS;
}
inline aclError copy(void* to, size_t room, const void* from, size_t size)
{
    if ((size != 0 && (to == nullptr || from == nullptr)) || size > room) return ACL_ERROR_INVALID_PARAM;
    std::memmove(to, from, size);
    return ACL_SUCCESS;
}
inline aclError fill(void* to, size_t room, int32_t value, size_t size)
{
    if ((size != 0 && to == nullptr) || size > room) return ACL_ERROR_INVALID_PARAM;
    std::memset(to, value, size);
    return ACL_SUCCESS;
}
// What the last launch came to; whoever synchronises is told, once.
inline aclError synchronised()
{
    bool failed = ptokit_trace->failed;
    ptokit_trace->failed = 0;
    return failed ? ACL_ERROR_RT_AICORE_EXCEPTION : ACL_SUCCESS;
}
struct Moment {
    std::chrono::steady_clock::time_point at;
};
struct Stream {};
}  // namespace ptokit

// ---- the device ---------------------------------------------------------------------------------
inline aclError aclInit(const char* = nullptr) { return ACL_SUCCESS; }
inline aclError aclFinalize() { return ACL_SUCCESS; }
inline aclError aclrtSetDevice(int32_t device) { return device < 0 ? ACL_ERROR_INVALID_PARAM : ACL_SUCCESS; }
inline aclError aclrtResetDevice(int32_t) { return ACL_SUCCESS; }
inline aclError aclrtGetDevice(int32_t* device) { return *device = 0, ACL_SUCCESS; }
inline aclError aclrtGetDeviceCount(uint32_t* count) { return *count = 1, ACL_SUCCESS; }
inline aclError aclrtGetDeviceInfo(uint32_t, aclrtDevAttr what, int64_t* value)
{
    *value = what == ACL_DEV_ATTR_VECTOR_CORE_NUM ? 2 * ptokit::CUBE_CORES : ptokit::CUBE_CORES;
    return ACL_SUCCESS;
}
inline const char* aclrtGetSocName() { return "ptokit"; }
inline aclError aclrtCreateContext(aclrtContext* context, int32_t) { return *context = nullptr, ACL_SUCCESS; }
inline aclError aclrtDestroyContext(aclrtContext) { return ACL_SUCCESS; }
inline aclError aclrtSetCurrentContext(aclrtContext) { return ACL_SUCCESS; }

// ---- memory -------------------------------------------------------------------------------------
__attribute__((noinline)) inline aclError aclrtMalloc(void** at, size_t size, aclrtMemMallocPolicy)
{
    return ptokit::allocate(at, size, __builtin_return_address(0));
}
__attribute__((noinline)) inline aclError aclrtMallocAlign32(void** at, size_t size, aclrtMemMallocPolicy)
{
    return ptokit::allocate(at, size, __builtin_return_address(0));
}
__attribute__((noinline)) inline aclError aclrtMallocWithCfg(void** at, size_t size, aclrtMemMallocPolicy, aclrtMallocConfig*)
{
    return ptokit::allocate(at, size, __builtin_return_address(0));
}
__attribute__((noinline)) inline aclError aclrtFree(void* at)
{
    if (at == nullptr) return ACL_ERROR_RT_PARAM_INVALID;
    ptokit::Record r(ptokit::RELEASE, __builtin_return_address(0));
    r.put((int64_t)at);
    if (r.ask() == 0) return ACL_ERROR_RT_PARAM_INVALID;
    std::free(at);
    return ACL_SUCCESS;
}
inline aclError aclrtMallocHost(void** at, size_t size)
{
    *at = std::calloc(size ? size : 1, 1);
    return *at ? ACL_SUCCESS : ACL_ERROR_RT_MEMORY_ALLOCATION;
}
inline aclError aclrtFreeHost(void* at) { return std::free(at), ACL_SUCCESS; }
inline aclError aclrtMemcpy(void* to, size_t room, const void* from, size_t size, aclrtMemcpyKind) { return ptokit::copy(to, room, from, size); }
inline aclError aclrtMemcpyAsync(void* to, size_t room, const void* from, size_t size, aclrtMemcpyKind, aclrtStream)
{
    return ptokit::copy(to, room, from, size);
}
inline aclError aclrtMemset(void* to, size_t room, int32_t value, size_t size) { return ptokit::fill(to, room, value, size); }
inline aclError aclrtMemsetAsync(void* to, size_t room, int32_t value, size_t size, aclrtStream) { return ptokit::fill(to, room, value, size); }
inline aclError aclrtCmoAsync(void*, size_t, aclrtCmoType, aclrtStream) { return ACL_SUCCESS; }

// ---- streams and events -------------------------------------------------------------------------
inline aclError aclrtCreateStream(aclrtStream* stream) { return *stream = new ptokit::Stream, ACL_SUCCESS; }
inline aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t, uint32_t) { return aclrtCreateStream(stream); }
inline aclError aclrtDestroyStream(aclrtStream stream) { return delete (ptokit::Stream*)stream, ACL_SUCCESS; }
inline aclError aclrtSynchronizeStream(aclrtStream) { return ptokit::synchronised(); }
inline aclError aclrtSynchronizeStreamWithTimeout(aclrtStream, int32_t) { return ptokit::synchronised(); }
inline aclError aclrtSynchronizeDevice() { return ptokit::synchronised(); }
inline aclError aclrtCreateEvent(aclrtEvent* event) { return *event = new ptokit::Moment, ACL_SUCCESS; }
inline aclError aclrtDestroyEvent(aclrtEvent event) { return delete (ptokit::Moment*)event, ACL_SUCCESS; }
inline aclError aclrtRecordEvent(aclrtEvent event, aclrtStream)
{
    ((ptokit::Moment*)event)->at = std::chrono::steady_clock::now();
    return ACL_SUCCESS;
}
inline aclError aclrtSynchronizeEvent(aclrtEvent) { return ptokit::synchronised(); }
inline aclError aclrtStreamWaitEvent(aclrtStream, aclrtEvent) { return ACL_SUCCESS; }
inline aclError aclrtEventElapsedTime(float* milliseconds, aclrtEvent from, aclrtEvent to)
{
    using Milliseconds = std::chrono::duration<float, std::milli>;
    *milliseconds = Milliseconds(((ptokit::Moment*)to)->at - ((ptokit::Moment*)from)->at).count();
    return ACL_SUCCESS;
}

// ---- messages and numbers -----------------------------------------------------------------------
inline const char* aclGetRecentErrMsg() { return ptokit::ptokit_trace->failed ? "a launch has failed: the simulator has said why" : ""; }
inline float aclFloat16ToFloat(aclFloat16 value) { return (float)__builtin_bit_cast(_Float16, value); }
inline aclFloat16 aclFloatToFloat16(float value) { return __builtin_bit_cast(aclFloat16, (_Float16)value); }
