// What the programs of tests/frontend/constructs.py and random kernels need of the instruction set,
// on the host: tiles over one memory, transfers, and a few vector instructions, one after the other.
// Flags do nothing.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>

#define __global__
#define AICORE
#define __gm__

namespace pto {

enum class TileType { Vec };
enum class BLayout { RowMajor, ColMajor };
enum class Layout { ND, DN };
enum class RoundMode { CAST_RINT, CAST_CEIL };
enum class SaturationMode { ON, OFF };
enum { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX, PIPE_ALL };
enum { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

inline unsigned char UB[192 * 1024];

inline void set_flag(int, int, int) {}
inline void wait_flag(int, int, int) {}
inline void pipe_barrier(int) {}
inline void dsb(int) {}
inline void dcci(const void *, int) {}
inline void trap() { std::abort(); }
inline int64_t get_block_idx() { return 0; }

template <typename T> T load_scalar(const T *at, int64_t offset) { return at[offset]; }
template <typename T> void store_scalar(T *at, int64_t offset, T value) { at[offset] = value; }

// Five sizes, those given as -1 by the constructor.
template <int... N> struct Sizes {
    int64_t at[5] = {N...};
    template <typename... A> explicit Sizes(A... given)
    {
        int64_t values[] = {0, static_cast<int64_t>(given)...};
        int next = 1;
        for (int64_t &size : at) {
            if (size == -1 && next <= static_cast<int>(sizeof...(A))) size = values[next++];
        }
    }
};
template <int... N> struct Shape : Sizes<N...> { using Sizes<N...>::Sizes; };
template <int... N> struct Stride : Sizes<N...> { using Sizes<N...>::Sizes; };

template <typename T, typename S, typename D, Layout L> struct GlobalTensor {
    T *memory;
    S shape;
    D stride;
    explicit GlobalTensor(T *at, S sizes = S(), D steps = D()) : memory(at), shape(sizes), stride(steps) {}
    T &operator()(int64_t r, int64_t c) { return memory[r * stride.at[3] + c * stride.at[4]]; }
};

template <TileType Loc, typename T, int R, int C, BLayout B = BLayout::RowMajor, int VR = R, int VC = C>
struct Tile {
    using DType = T;
    T *data = nullptr;
    int64_t rows = VR, cols = VC;
    Tile() = default;
    explicit Tile(int64_t size) { (VR < 0 ? rows : cols) = size; }
    Tile(int64_t r, int64_t c) : rows(r), cols(c) {}
    T &operator()(int64_t r, int64_t c) { return data[B == BLayout::RowMajor ? r * C + c : c * R + r]; }
    T GetValue(int64_t offset) { return data[offset]; }
    void SetValue(int64_t offset, T value) { data[offset] = value; }
    int64_t GetValidRow() { return rows; }
    int64_t GetValidCol() { return cols; }
    void SetValidRow(int64_t r) { rows = r; }
    void SetValidCol(int64_t c) { cols = c; }
};

template <typename T> void TASSIGN(T &tile, int64_t address)
{
    tile.data = reinterpret_cast<typename T::DType *>(UB + address);
}

template <typename D, typename S> void TRESHAPE(D &dst, S &src)
{
    dst.data = reinterpret_cast<typename D::DType *>(src.data);
}
template <typename D, typename S> void TSUBVIEW(D &dst, S &src, int64_t row, int64_t col)
{
    dst.data = &src(row, col);
}

template <typename T, typename F> void each(T &tile, F act)
{
    for (int64_t r = 0; r < tile.rows; ++r)
        for (int64_t c = 0; c < tile.cols; ++c) act(r, c);
}

template <typename T, typename G> void TLOAD(T &dst, G &src)
{
    each(dst, [&](int64_t r, int64_t c) { dst(r, c) = src(r, c); });
}
template <typename G, typename T> void TSTORE(G &dst, T &src)
{
    each(src, [&](int64_t r, int64_t c) { dst(r, c) = src(r, c); });
}
template <typename T> void TEXPANDS(T &dst, typename T::DType scalar)
{
    each(dst, [&](int64_t r, int64_t c) { dst(r, c) = scalar; });
}
#define BINARY(NAME, EXPRESSION)                                                         \
    template <typename T> void NAME(T &dst, T &first, T &second)                         \
    {                                                                                    \
        each(dst, [&](int64_t r, int64_t c) {                                            \
            const auto a = first(r, c), b = second(r, c);                                \
            dst(r, c) = EXPRESSION;                                                      \
        });                                                                              \
    }                                                                                    \
    template <typename T> void NAME##S(T &dst, T &first, typename T::DType b)            \
    {                                                                                    \
        each(dst, [&](int64_t r, int64_t c) {                                            \
            const auto a = first(r, c);                                                  \
            dst(r, c) = EXPRESSION;                                                      \
        });                                                                              \
    }
BINARY(TADD, a + b)
BINARY(TSUB, a - b)
BINARY(TMUL, a * b)
BINARY(TMAX, a > b ? a : b)
BINARY(TMIN, a < b ? a : b)
#undef BINARY

template <typename D, typename S, typename W> void TROWMAX(D &dst, S &src, W &)
{
    each(src, [&](int64_t r, int64_t c) {
        if (c == 0 || dst(r, 0) < src(r, c)) dst(r, 0) = src(r, c);
    });
}
template <typename D, typename S, typename R> void TROWEXPANDSUB(D &dst, S &src, R &row)
{
    each(dst, [&](int64_t r, int64_t c) { dst(r, c) = src(r, c) - row(r, 0); });
}
template <typename T> void TNEG(T &dst, T &src)
{
    each(dst, [&](int64_t r, int64_t c) { dst(r, c) = -src(r, c); });
}
template <typename T> void TMOV(T &dst, T &src)
{
    each(dst, [&](int64_t r, int64_t c) { dst(r, c) = src(r, c); });
}
template <typename D, typename S> void TCVT(D &dst, S &src, RoundMode mode, SaturationMode)
{
    each(dst, [&](int64_t r, int64_t c) {
        const double value = src(r, c);
        dst(r, c) = mode == RoundMode::CAST_CEIL ? std::ceil(value) : std::nearbyint(value);
    });
}

}  // namespace pto
