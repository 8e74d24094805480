// Events and FIFOs: objects that the simulator keeps, known here by a number.
#pragma once
#include "conv.hpp"

namespace ptokit {
inline int64_t last_handle = 0;
struct EventBase {
    int64_t handle = 0;
};
struct FifoBase {
    int64_t handle = 0;
};
}  // namespace ptokit

namespace pto {
struct RecordEvent {};

template <Op Src, Op Dst, bool AutoToken = true, int EventID = 0> struct Event : ptokit::EventBase {
    static constexpr Op srcOp = Src, dstOp = Dst;
    __attribute__((noinline)) Event() { open(__builtin_return_address(0)); }
    __attribute__((noinline)) Event(RecordEvent)
    {
        open(__builtin_return_address(0));
        tell(ptokit::EVENT_RECORD, __builtin_return_address(0));
    }
    __attribute__((noinline)) Event& operator=(RecordEvent)
    {
        tell(ptokit::EVENT_RECORD, __builtin_return_address(0));
        return *this;
    }
    template <int Flag = 0xFF> __attribute__((noinline)) void Record(RecordEvent = {}) { tell(ptokit::EVENT_RECORD, __builtin_return_address(0), Flag); }
    template <int Flag = 0xFF> __attribute__((noinline)) void Init(RecordEvent = {}) { tell(ptokit::EVENT_RECORD, __builtin_return_address(0), Flag); }
    template <int Flag = 0xFF> __attribute__((noinline)) void Wait() { tell(ptokit::EVENT_WAIT, __builtin_return_address(0), Flag); }
private:
    void open(const void* pc)
    {
        handle = ++ptokit::last_handle;
        ptokit::Record r(ptokit::EVENT_NEW, pc);
        r.put({handle, (int64_t)Src, (int64_t)Dst, AutoToken, EventID});
        r.end();
    }
    void tell(int64_t what, const void* pc, int64_t flag = 0xFF)
    {
        ptokit::Record r(what, pc);
        r.put({handle, flag});
        r.end();
    }
};

template <int FlagID, auto Dir, uint32_t SlotSize_, uint32_t SlotNum_, uint32_t LocalSlotNum_ = 2, bool IsNoSplit = false, bool UnitFlag = false>
struct TPipe : ptokit::FifoBase {
    static constexpr uint32_t SlotSize = SlotSize_, SlotNum = SlotNum_;
    struct RingFiFo {
        static constexpr uint32_t SLOT_SIZE = SlotSize_, SLOT_NUM = SlotNum_, LOCAL_SLOT_NUM = LocalSlotNum_;
    };
    struct Consumer {};
    struct Producer {};
    template <typename P, typename A = uint32_t, typename B = uint32_t> __attribute__((noinline)) TPipe(P slots, A c2v = 0, B v2c = 0)
    {
        handle = ++ptokit::last_handle;
        ptokit::Record r(ptokit::FIFO_NEW, __builtin_return_address(0));
        r.put({handle, FlagID, (int64_t)Dir, SlotSize_, SlotNum_, LocalSlotNum_, IsNoSplit, UnitFlag, (int64_t)slots, (int64_t)c2v, (int64_t)v2c});
        r.end();
    }
};
}  // namespace pto
