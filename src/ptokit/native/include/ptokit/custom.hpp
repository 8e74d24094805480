// What kernels use beside instructions to order the cores of a cluster, and to warm up caches.
#pragma once
#include "intrinsics.hpp"

namespace pto {
enum class SyncOpType : uint8_t { TSTORE_C2GM, TSTORE_V2GM, TMOV_C2UB, TINSERT_V2L1, TLOAD };
enum CVCommFftsEvent : uint16_t { CV_COMM_CTRL = 12, CV_COMM_RSVD_13, CV_COMM_RSVD_14, CV_COMM_RSVD_15 };
enum CVSyncMode : uint16_t { C_ALL_CORE_SYNC = 0, V_ALL_CORE_SYNC = 0, V_SUBCORES_SYNC = 1, CV_CORE_SYNC = 2 };
constexpr int kCvCommSlotBytes = 512, kCvMaxCores = 25;
inline uint16_t _getFFTSMsg(CVSyncMode mode, uint16_t flag, uint16_t base = 1) { return getFFTSMsg(mode, flag, base); }

// A pair of flags between the cube core and its vector cores: data is there, and its place is free.
template <SyncOpType Producer, SyncOpType Consumer> struct TSync_Custom {
    static_assert(Consumer == SyncOpType::TLOAD, "TSync_Custom: what consumes is a TLOAD");
    static constexpr bool is_c2v = Producer == SyncOpType::TSTORE_C2GM || Producer == SyncOpType::TMOV_C2UB;
    static constexpr bool is_v2c = !is_c2v, is_local = Producer == SyncOpType::TMOV_C2UB || Producer == SyncOpType::TINSERT_V2L1;
    uint16_t flag_id;
    void record() const { signal(is_c2v ? PIPE_FIX : PIPE_MTE3, flag_id, is_c2v); }
    void wait() const { await(is_local ? (is_c2v ? PIPE_V : PIPE_MTE1) : PIPE_MTE2, flag_id, is_v2c); }
    void allocate() const { await(is_c2v ? PIPE_FIX : PIPE_MTE3, flag_id + 1, is_c2v); }
    void free() const { signal(is_c2v ? (is_local ? PIPE_V : PIPE_MTE2) : PTOKIT_FREES, flag_id + 1, is_v2c); }
private:
    // The cube core has a flag for each of its vector cores, where they have flags of their own.
#ifdef PTOKIT_CORE_FLAGS
    static constexpr pipe_t PTOKIT_FREES = PIPE_MTE1;
    static void signal(pipe_t pipe, uint16_t flag, bool is_cube)
    {
        set_intra_block(pipe, flag);
        if (is_cube) set_intra_block(pipe, flag + 16);
    }
    static void await(pipe_t pipe, uint16_t flag, bool is_cube)
    {
        wait_intra_block(pipe, flag);
        if (is_cube) wait_intra_block(pipe, flag + 16);
    }
#else
    static constexpr pipe_t PTOKIT_FREES = PIPE_MTE2;
    static void signal(pipe_t pipe, uint16_t flag, bool) { ffts_cross_core_sync(pipe, _getFFTSMsg(CV_CORE_SYNC, flag)); }
    static void await(pipe_t, uint16_t flag, bool) { wait_flag_dev(flag); }
#endif
};

// The slot of a cluster in a table of all clusters. Clusters are their blocks here.
template <int SlotBytes = kCvCommSlotBytes, int MaxCores = kCvMaxCores> int TSYNC_CVID(int block, __gm__ uint8_t*) { return block; }

// Rows of a tile into the boxes of another: what TMOV does between two such tiles.
template <typename T, typename D, typename S, typename... N> void TMovToVecNd2Nz(typename D::TileDType dst, typename S::TileDType src, N...)
{
    D to;
    S from;
    TASSIGN(to, dst.address());
    TASSIGN(from, src.address());
    TMOV(to, from);
}

// Global memory is near.
template <bool UseSdma = true, int Cores = -1> void PTO_PREFETCH(__gm__ void*, uint64_t, void*) {}
}  // namespace pto
