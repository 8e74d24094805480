// The lower half of the host API, as far as programs reach past acl.h.
#pragma once
#include <acl/acl.h>

typedef int rtError_t;
typedef void* rtStream_t;
enum : int { RT_ERROR_NONE = 0 };
enum rtMemType_t { RT_MEMORY_HBM = 2, RT_MEMORY_DDR = 4 };
enum rtMemcpyKind_t { RT_MEMCPY_HOST_TO_HOST, RT_MEMCPY_HOST_TO_DEVICE, RT_MEMCPY_DEVICE_TO_HOST, RT_MEMCPY_DEVICE_TO_DEVICE };

namespace ptokit {
inline uint64_t between_cores[64] = {};  // where kernels are told that flags between cores lie
}
inline rtError_t rtGetC2cCtrlAddr(uint64_t* address, uint32_t* length)
{
    *address = (uint64_t)ptokit::between_cores, *length = sizeof(ptokit::between_cores);
    return RT_ERROR_NONE;
}
inline rtError_t rtSetDevice(int32_t device) { return aclrtSetDevice(device); }
inline rtError_t rtDeviceReset(int32_t) { return RT_ERROR_NONE; }
inline rtError_t rtStreamCreate(rtStream_t* stream, int32_t) { return aclrtCreateStream(stream); }
inline rtError_t rtStreamDestroy(rtStream_t stream) { return aclrtDestroyStream(stream); }
inline rtError_t rtStreamSynchronize(rtStream_t stream) { return aclrtSynchronizeStream(stream); }
inline rtError_t rtGetAiCoreCount(uint32_t* count) { return *count = (uint32_t)ptokit::CUBE_CORES, RT_ERROR_NONE; }
__attribute__((noinline)) inline rtError_t rtMalloc(void** at, uint64_t size, rtMemType_t, uint16_t = 0)
{
    return ptokit::allocate(at, size, __builtin_return_address(0));
}
inline rtError_t rtFree(void* at) { return aclrtFree(at); }
inline rtError_t rtMallocHost(void** at, uint64_t size, uint16_t = 0) { return aclrtMallocHost(at, size); }
inline rtError_t rtFreeHost(void* at) { return aclrtFreeHost(at); }
inline rtError_t rtMemcpy(void* to, uint64_t room, const void* from, uint64_t size, rtMemcpyKind_t) { return ptokit::copy(to, room, from, size); }
