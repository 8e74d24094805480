// Between devices: groups of their buffers, signals, and sessions with engines beside the core.
#pragma once
#include "order.hpp"

namespace ptokit {
struct GroupBase {};
struct SessionBase {
    int64_t number = 0;  // by which the simulator knows it; copies are the same session
    int64_t session() const { return number ? number : const_cast<SessionBase*>(this)->number = ++last_handle; }
};
struct ContextBase {};
}  // namespace ptokit

namespace pto::comm {
template <typename GlobalData> struct ParallelGroup : ptokit::GroupBase {
    using value_type = GlobalData;
    GlobalData* tensors = nullptr;
    int nranks = 0, rootIdx = -1;
    constexpr ParallelGroup() = default;
    constexpr ParallelGroup(GlobalData* all, int size, int root) : tensors(all), nranks(size), rootIdx(root) {}
    static constexpr ParallelGroup Create(GlobalData* all, int size, int root) { return ParallelGroup(all, size, root); }
    constexpr int GetRootIdx() const { return rootIdx; }
    constexpr int GetSize() const { return nranks; }
    constexpr bool empty() const { return nranks == 0; }
    constexpr GlobalData& operator[](int member) const { return tensors[member]; }
};

using Signal = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>>;
template <typename Element, typename Shape_, typename Stride_, Layout L = Layout::ND> using GlobalSignal = GlobalTensor<Element, Shape_, Stride_, L>;
template <int Rows, int Cols> struct Signal2D : GlobalTensor<int32_t, Shape<1, 1, 1, Rows, Cols>, Stride<1, 1, 1, DYNAMIC, 1>> {
    using Base = GlobalTensor<int32_t, Shape<1, 1, 1, Rows, Cols>, Stride<1, 1, 1, DYNAMIC, 1>>;
    Signal2D(int32_t* at, int stride = Cols) : Base(at, typename Base::Shape{}, typename Base::Stride(stride)) {}
};

struct CcuTriggerContext {
    uint64_t ckeSlotVA = 0;
    uint32_t mask = 0, selfIdx = 0;
    CcuInputSource inputSource = CcuInputSource::HostManaged;
};

namespace sdma {
constexpr uint32_t UB_ALIGN_SIZE = 256, kUbAlignSize = 256, kAutoChannelGroupIdx = UINT32_MAX;
constexpr uint64_t kDefaultSdmaBlockBytes = 1024 * 1024;
struct SdmaBaseConfig {
    uint64_t block_bytes = kDefaultSdmaBlockBytes, comm_block_offset = 0;
    uint32_t queue_num = 1;
};
}  // namespace sdma

struct AsyncSession : ptokit::SessionBase {
    DmaEngine engine = DmaEngine::SDMA;
    bool valid = false;
    uint32_t destRankId = 0;
};

// The completion of a transfer. Its number is what the simulator knows it by; 0: nothing is pending.
struct AsyncEvent {
    uint64_t handle = 0;
    DmaEngine engine = DmaEngine::SDMA;
    int64_t number = 0;
    constexpr AsyncEvent() = default;
    constexpr AsyncEvent(uint64_t h, DmaEngine e) : handle(h), engine(e) {}
    constexpr bool valid() const { return handle != 0; }
    __attribute__((noinline)) bool Wait(const AsyncSession& session) const { return ask(ptokit::TRANSFER_WAIT, session, __builtin_return_address(0)); }
    __attribute__((noinline)) bool Test(const AsyncSession& session) const { return ask(ptokit::TRANSFER_TEST, session, __builtin_return_address(0)); }
private:
    bool ask(int64_t what, const AsyncSession& session, const void* pc) const
    {
        ptokit::Record r(what, pc);
        r.put({number, session.session()});
        return r.ask() != 0;
    }
};

template <DmaEngine Engine = DmaEngine::SDMA, typename Scratch, typename P>
    requires(std::is_base_of_v<ptokit::TileBase, Scratch>)
__attribute__((noinline)) bool BuildAsyncSession(Scratch& scratch, P* workspace, AsyncSession& session, uint32_t syncId = 0,
    const sdma::SdmaBaseConfig& config = {}, uint32_t channelGroup = sdma::kAutoChannelGroupIdx)
{
    static_assert(Engine == DmaEngine::SDMA, "BuildAsyncSession.RDMA: a scratch tile is for SDMA");
    ptokit::Record r(ptokit::SESSION_SDMA, __builtin_return_address(0));
    r.put({session.session(), (int64_t)scratch.type, scratch.is_bound ? (int64_t)scratch.address : ptokit::TileBase::UNBOUND, scratch.rows, scratch.cols,
        (int64_t)workspace, syncId, (int64_t)config.block_bytes, (int64_t)config.comm_block_offset, config.queue_num, channelGroup});
    session.engine = Engine;
    return session.valid = r.ask() != 0;
}
template <DmaEngine Engine, typename P> __attribute__((noinline)) bool BuildAsyncSession(P* workspace, uint32_t destRankId, AsyncSession& session)
{
    static_assert(Engine == DmaEngine::URMA, "BuildAsyncSession.URMA: without a scratch tile it is for URMA");
    ptokit::Record r(ptokit::SESSION_URMA, __builtin_return_address(0));
    r.put({session.session(), (int64_t)workspace, destRankId});
    session.engine = Engine, session.destRankId = destRankId;
    return session.valid = r.ask() != 0;
}
template <DmaEngine Engine, typename P> bool BuildAsyncSession(P* workspace, AsyncSession& session) { return BuildAsyncSession<Engine>(workspace, 0, session); }
}  // namespace pto::comm

namespace pto {
struct PrefetchAsyncContext : ptokit::ContextBase {
    using ScratchTile = Tile<TileType::Vec, uint8_t, 1, comm::sdma::UB_ALIGN_SIZE>;
    uint8_t* workspace = nullptr;
    comm::AsyncSession session;
    comm::AsyncSession* externalSession = nullptr;
    ScratchTile scratchTile;
    PrefetchAsyncContext() = default;
    template <typename P> explicit PrefetchAsyncContext(P* at, comm::AsyncSession* given = nullptr) : workspace((uint8_t*)at), externalSession(given) {}
    comm::AsyncSession& GetSession() { return externalSession ? *externalSession : session; }
};
}  // namespace pto
