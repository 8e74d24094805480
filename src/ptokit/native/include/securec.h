// Copies and fills that know how much room there is.
#pragma once
#include <cstddef>
#include <cstring>

typedef int errno_t;
enum : int { EOK = 0, PTOKIT_NO_ROOM = 34 };
inline errno_t memset_s(void* to, size_t room, int value, size_t size)
{
    return to == nullptr || size > room ? PTOKIT_NO_ROOM : (std::memset(to, value, size), EOK);
}
inline errno_t memcpy_s(void* to, size_t room, const void* from, size_t size)
{
    return to == nullptr || from == nullptr || size > room ? PTOKIT_NO_ROOM : (std::memcpy(to, from, size), EOK);
}
inline errno_t memmove_s(void* to, size_t room, const void* from, size_t size)
{
    return to == nullptr || from == nullptr || size > room ? PTOKIT_NO_ROOM : (std::memmove(to, from, size), EOK);
}
