// What a host prepares for engines beside the cores. They need nothing here: a workspace is memory.
#pragma once
#include <acl/acl.h>
#include <pto/pto-inst.hpp>

namespace pto::comm::sdma {
class SdmaWorkspaceManager {
    void* at_ = nullptr;
public:
    SdmaWorkspaceManager() = default;
    SdmaWorkspaceManager(const SdmaWorkspaceManager&) = delete;
    ~SdmaWorkspaceManager() { Finalize(); }
    bool Init() { return at_ || aclrtMalloc(&at_, 1 << 16, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS; }
    void* GetWorkspaceAddr() const { return at_; }
    void Finalize()
    {
        if (at_) aclrtFree(at_);
        at_ = nullptr;
    }
};
}  // namespace pto::comm::sdma
