// Stands in for the device runtime in host programs of other tools: memory is that of the process,
// and a launch calls back into whoever loaded the program. Only what tests of single kernels use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

using aclError = int;
using aclrtStream = void *;
using aclFloat16 = uint16_t;
constexpr aclError ACL_SUCCESS = 0;
constexpr aclError ACL_ERROR_NONE = 0;
enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST,
    ACL_MEMCPY_HOST_TO_DEVICE,
    ACL_MEMCPY_DEVICE_TO_HOST,
    ACL_MEMCPY_DEVICE_TO_DEVICE
};
enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_NORMAL_ONLY };

namespace standin {

struct Argument {
    const void *value;
    uint64_t size;      // of a number; of a pointer the bytes from there to the end of its memory
    int32_t is_pointer;
};
using Launched = void (*)(const char *kernel, int32_t blocks, int32_t count, const Argument *);

inline Launched launched = nullptr;
inline std::map<char *, size_t> memory;

inline size_t extent(const void *pointer) {
    char *at = static_cast<char *>(const_cast<void *>(pointer));
    auto above = memory.upper_bound(at);
    if (above == memory.begin())
        return 0;
    --above;
    char *end = above->first + above->second;
    return at < end ? static_cast<size_t>(end - at) : 0;
}

template <class T> Argument argument(const T &number) { return {&number, sizeof(T), 0}; }
template <class T> Argument argument(T *const &pointer) { return {pointer, extent(pointer), 1}; }

template <class... T> void launch(const char *kernel, int blocks, const T &...values) {
    const Argument list[] = {argument(values)...};
    launched(kernel, blocks, static_cast<int32_t>(sizeof...(T)), list);
}

inline void *allocate(size_t size) {
    char *made = static_cast<char *>(std::calloc(size ? size : 1, 1));
    memory[made] = size;
    return made;
}

inline aclError release(void *pointer) {
    memory.erase(static_cast<char *>(pointer));
    std::free(pointer);
    return 0;
}

} // namespace standin

#define STANDIN_LAUNCH(kernel, blocks, ...) standin::launch(#kernel, blocks, __VA_ARGS__)

extern "C" inline __attribute__((used)) void standin_connect(standin::Launched callback) {
    standin::launched = callback;
}

inline aclError aclInit(const char *) { return 0; }
inline aclError aclFinalize() { return 0; }
inline aclError aclrtSetDevice(int) { return 0; }
inline aclError aclrtResetDevice(int) { return 0; }
inline aclError aclrtCreateStream(aclrtStream *stream) { return *stream = nullptr, 0; }
inline aclError aclrtDestroyStream(aclrtStream) { return 0; }
inline aclError aclrtSynchronizeStream(aclrtStream) { return 0; }
inline const char *aclGetRecentErrMsg() { return ""; }

// Device memory comes in pages, and some tests store behind what they ask for.
inline aclError aclrtMalloc(void **made, size_t size, aclrtMemMallocPolicy) {
    constexpr size_t page = 1 << 16;
    return *made = standin::allocate((size + page - 1) / page * page), 0;
}
inline aclError aclrtMallocHost(void **made, size_t size) {
    return *made = standin::allocate(size), 0;
}
inline aclError aclrtFree(void *pointer) { return standin::release(pointer); }
inline aclError aclrtFreeHost(void *pointer) { return standin::release(pointer); }
inline aclError aclrtMemcpy(void *to, size_t, const void *from, size_t size, aclrtMemcpyKind) {
    return std::memcpy(to, from, size), 0;
}
inline aclError aclrtMemset(void *to, size_t, int byte, size_t size) {
    return std::memset(to, byte, size), 0;
}
inline aclFloat16 aclFloatToFloat16(float value) {
    _Float16 half = static_cast<_Float16>(value);
    aclFloat16 bits;
    return std::memcpy(&bits, &half, sizeof bits), bits;
}
inline float aclFloat16ToFloat(aclFloat16 bits) {
    _Float16 half;
    return std::memcpy(&half, &bits, sizeof bits), static_cast<float>(half);
}
