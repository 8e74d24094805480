// Events and FIFOs: objects that the simulator keeps, known here by a number.
#pragma once
#include "conv.hpp"

namespace ptokit {
// Handles begin where this lies: libraries of other cores have others.
__attribute__((visibility("hidden"))) inline int64_t last_handle = (int64_t)&last_handle;
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

}  // namespace pto

namespace ptokit {
// One end of a FIFO: its state is kept by the simulator, which is told of every change.
class FifoEnd {
    const FifoBase* pipe_;
    bool consumes_;
    int64_t tile_ = 0, part_ = 0;
public:
    FifoEnd(const FifoBase* pipe = nullptr, bool consumes = false) : pipe_(pipe), consumes_(consumes) {}
#define PTOKIT_ACT(NAME, WHAT) __attribute__((noinline)) void NAME() { tell(WHAT, 0, 0, __builtin_return_address(0)); }
#define PTOKIT_SET(NAME, WHAT) __attribute__((noinline)) void NAME(int64_t value) { tell(WHAT, value, 0, __builtin_return_address(0)); }
    PTOKIT_SET(setEntryOffset, END_OFFSET) PTOKIT_SET(setAllocateStatus, END_WAITS) PTOKIT_SET(setWaitStatus, END_WAITS)
    PTOKIT_SET(setRecordStatus, END_SIGNALS) PTOKIT_SET(setFreeStatus, END_SIGNALS)
    PTOKIT_ACT(allocate, END_WAIT) PTOKIT_ACT(wait, END_WAIT) PTOKIT_ACT(record, END_SIGNAL) PTOKIT_ACT(free, END_SIGNAL)
#undef PTOKIT_ACT
#undef PTOKIT_SET
    __attribute__((noinline)) void setTileId(int64_t tile, int64_t part = 0)
    {
        tile_ = tile, part_ = part;
        tell(END_ENTRY, tile, part, __builtin_return_address(0));
    }
    int64_t getTileId() const { return tile_; }
    int64_t getSubTileId() const { return part_; }
private:
    PTOKIT_INLINE void tell(int64_t what, int64_t value, int64_t more, const void* pc)
    {
        Record r(FIFO_END, pc);
        r.put({pipe_->handle, consumes_, what, value, more});
        r.end();
    }
};
// A FIFO lives as long as its object: at its end the producer takes back what was announced.
struct Fifo : FifoBase {
    FifoEnd prod{this, false}, cons{this, true};
    Fifo() { handle = ++last_handle; }
    Fifo(const Fifo&) = delete;
    __attribute__((noinline)) ~Fifo() noexcept(false)
    {
        if (std::uncaught_exceptions()) return;
        Record r(FIFO_CLOSE, __builtin_return_address(0));
        r.put(handle);
        r.end();
    }
};
}  // namespace ptokit

namespace pto {
template <int FlagID, auto Dir, uint32_t SlotSize_, uint32_t SlotNum_, uint32_t LocalSlotNum_ = 2, bool IsNoSplit = false, bool UnitFlag = false>
struct TPipe : ptokit::Fifo {
    static_assert(SlotNum_ >= 1, "TPipe.slots: SlotNum >= 1");
    static_assert(SlotSize_ >= 1 && LocalSlotNum_ >= 1, "TPipe.slots: SlotSize and LocalSlotNum are positive");
    static constexpr uint32_t SlotSize = SlotSize_, SlotNum = SlotNum_;
    static constexpr uint32_t SyncPeriod = SlotNum_ <= 2 ? SlotNum_ : SlotNum_ / 2;
    struct RingFiFo {
        static constexpr uint32_t SLOT_SIZE = SlotSize_, SLOT_NUM = SlotNum_, LOCAL_SLOT_NUM = LocalSlotNum_;
    };
    using Consumer = ptokit::FifoEnd;
    using Producer = ptokit::FifoEnd;
    static constexpr bool shouldWaitFree(uint32_t entry) { return entry >= SlotNum_ && entry % SyncPeriod == 0; }
    static constexpr bool shouldNotifyFree(uint32_t entry) { return (entry + 1) % SyncPeriod == 0; }
    // Notifications of free space that no push has waited for, after so many entries.
    static constexpr uint32_t countPendingFreeCredits(uint32_t entries)
    {
        uint32_t told = entries / SyncPeriod, taken = 0;
        for (uint32_t n = 0; n < entries; n++) taken += shouldWaitFree(n);
        return told > taken ? told - taken : 0;
    }
    template <typename P, typename A = uint32_t, typename B = uint32_t> __attribute__((noinline)) TPipe(P slots, A c2v = 0, B v2c = 0)
    {
        ptokit::Record r(ptokit::FIFO_NEW, __builtin_return_address(0));
        r.put({handle, FlagID, (int64_t)Dir, SlotSize_, SlotNum_, LocalSlotNum_, IsNoSplit, UnitFlag, (int64_t)slots, (int64_t)c2v, (int64_t)v2c});
        r.end();
    }
};

// The older FIFO: its slots are tiles, and its caller may choose the entry.
template <int FlagID, FIFOType Kind, int Depth, int Period, typename TileProd, typename TileCons, bool UnitFlag = false,
    uint32_t LocalDepth = 2, VecCubeRatio Ratio = VecCubeRatio::V2C1_VECS>
struct TMPipe : ptokit::Fifo {
    struct DataFiFo {
        static constexpr int fifoDepth = Depth, fifoPeriod = Period, localFiFoDepth = LocalDepth;
        static constexpr FIFOType fifoType = Kind;
    };
    using Consumer = ptokit::FifoEnd;
    using Producer = ptokit::FifoEnd;
    template <typename P, typename A = uint32_t> __attribute__((noinline)) TMPipe(P slots, A local = 0)
    {
        ptokit::Record r(ptokit::MFIFO_NEW, __builtin_return_address(0));
        r.put({handle, FlagID, (int64_t)Kind, Depth, (int64_t)&TileProd::TYPE, (int64_t)&TileCons::TYPE, UnitFlag, LocalDepth, (int64_t)Ratio,
            (int64_t)slots, (int64_t)local});
        r.end();
    }
};
}  // namespace pto
