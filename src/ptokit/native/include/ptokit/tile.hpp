// Tiles: a type with eleven parameters, and at run time an address and a valid region.
#pragma once
#include "enums.hpp"

namespace pto {
constexpr int DYNAMIC = -1;
}

namespace ptokit {
struct TileType_ {
    int64_t loc, element, rows, cols, blayout, valid_row, valid_col, slayout, fractal, pad, compact;
};
struct TileBase {
    static constexpr int64_t UNBOUND = -1;
    uint64_t address = 0;
    bool is_bound = false;
    int64_t rows = 0, cols = 0;  // valid
    const TileType_* type = nullptr;
    TileBase() = default;
    PTOKIT_SHARED TileBase(const TileType_& of, int64_t row, int64_t col) : rows(row), cols(col), type(&of) {}
    TileBase(const TileBase&) = default;
    // A tile that was never given an address has none to give: what the other had stays.
    TileBase& operator=(const TileBase& other)
    {
        if (other.is_bound) address = other.address, is_bound = true;
        rows = other.rows, cols = other.cols, type = other.type;
        return *this;
    }
};
int64_t read_element(const TileBase& tile, int64_t index, const void* pc);
void reduce_products(bool on, pto::RoundMode mode, const void* pc);
template <typename T> T value_of(int64_t word);
void write_element(const TileBase& tile, int64_t index, double real, int64_t whole, bool is_real, const void* pc);

// An element that is read and written by the scalar unit.
template <typename T> class Element {
    TileBase tile_;
    int64_t index_;
public:
    Element(const TileBase& tile, int64_t index) : tile_(tile), index_(index) {}
    __attribute__((noinline)) operator T() const { return read(__builtin_return_address(0)); }
    template <typename V> __attribute__((noinline)) Element& operator=(const V& value)
    {
        write((T)value, __builtin_return_address(0));
        return *this;
    }
    __attribute__((noinline)) Element& operator=(const Element& other)
    {
        const void* pc = __builtin_return_address(0);
        write(other.read(pc), pc);
        return *this;
    }
#define PTOKIT_CHANGE(SIGN) \
    template <typename V> __attribute__((noinline)) Element& operator SIGN##=(const V& value) \
    { \
        const void* pc = __builtin_return_address(0); \
        write((T)(read(pc) SIGN value), pc); \
        return *this; \
    }
    PTOKIT_CHANGE(+) PTOKIT_CHANGE(-) PTOKIT_CHANGE(*) PTOKIT_CHANGE(/) PTOKIT_CHANGE(|) PTOKIT_CHANGE(&) PTOKIT_CHANGE(^)
#undef PTOKIT_CHANGE
private:
    PTOKIT_INLINE T read(const void* pc) const { return value_of<T>(read_element(tile_, index_, pc)); }
    PTOKIT_INLINE void write(T value, const void* pc)
    {
        if constexpr (std::is_integral_v<T>) write_element(tile_, index_, 0, (int64_t)value, false, pc);
        else if constexpr (std::is_convertible_v<T, float>) write_element(tile_, index_, (double)(float)value, 0, true, pc);
        else write_element(tile_, index_, 0, value.bits, false, pc);
    }
};

// A pointer into the memory of a core, `__ubuf__ T*` and its kin: an address with a type, never
// memory of the host. What it points to is one block of 32 bytes of that memory, whose elements
// the scalar unit reads and writes.
struct LocalBase {};
template <pto::TileType Loc, typename T> class Local : public LocalBase {
    using Plain = std::remove_cv_t<T>;
    uint64_t address_ = 0;
public:
    using Pointee = T;
    static constexpr pto::TileType loc = Loc;
    Local() = default;
    Local(std::nullptr_t) {}
    template <typename N, typename = std::enable_if_t<std::is_integral_v<N>>> Local(N address) : address_((uint64_t)address) {}
    template <typename U> Local(const Local<Loc, U>& other) : address_(other.address()) {}
    template <pto::TileType L, typename U> explicit Local(const Local<L, U>& other) : address_(other.address()) {}
    template <typename U> explicit Local(U* pointer) : address_((uint64_t)pointer) {}
    uint64_t address() const { return address_; }
    Local operator+(int64_t n) const { return address_ + n * step(); }
    Local operator-(int64_t n) const { return address_ - n * step(); }
    int64_t operator-(Local other) const { return (int64_t)(address_ - other.address_) / step(); }
    Local& operator+=(int64_t n) { return *this = *this + n; }
    Local& operator-=(int64_t n) { return *this = *this - n; }
    Local& operator++() { return *this += 1; }
    Local operator++(int) { Local old = *this; *this += 1; return old; }
    auto operator<=>(const Local&) const = default;
    auto operator[](int64_t index) const { return at((int64_t)address_ + index * step()); }
    auto operator*() const { return at((int64_t)address_); }
    explicit operator bool() const { return address_ != 0; }
    template <typename N, typename = std::enable_if_t<std::is_integral_v<N> && !std::is_same_v<N, bool>>> explicit operator N() const { return (N)address_; }
    template <typename P> explicit operator P*() const { return (P*)address_; }
private:
    static constexpr int64_t step()
    {
        if constexpr (std::is_void_v<T>) return 1;
        else return sizeof(T);
    }
    static Element<Plain> at(int64_t address)
    {
        static constexpr int64_t count = 32 / sizeof(Plain);
        static constexpr TileType_ type{(int64_t)Loc, element<Plain>(), 1, count, 0, 1, count, 0, 512, 0, 0};
        TileBase block;
        block.address = address & ~31, block.is_bound = true;
        block.rows = 1, block.cols = count, block.type = &type;
        return {block, (address & 31) / (int64_t)sizeof(Plain)};
    }
};
template <pto::TileType L, typename T> Local<L, T> operator+(int64_t n, Local<L, T> at) { return at + n; }

// What `tile.data()` gives: a pointer that knows the tile whose elements it leads to.
template <pto::TileType Loc, typename T> class TilePointer : public Local<Loc, T> {
    TileBase tile_;
    int64_t offset_ = 0;
public:
    explicit TilePointer(const TileBase& tile, int64_t offset = 0)
        : Local<Loc, T>(tile.address + offset * (int64_t)sizeof(T)), tile_(tile), offset_(offset) {}
    Element<T> operator[](int64_t index) const { return {tile_, offset_ + index}; }
    Element<T> operator*() const { return {tile_, offset_}; }
    TilePointer operator+(int64_t n) const { return TilePointer(tile_, offset_ + n); }
    TilePointer operator-(int64_t n) const { return TilePointer(tile_, offset_ - n); }
};
}  // namespace ptokit

namespace pto {
template <TileType Loc_, typename Element_, int Rows_, int Cols_, BLayout BFractal_ = BLayout::RowMajor, int RowValid_ = Rows_,
    int ColValid_ = Cols_, SLayout SFractal_ = SLayout::NoneBox, int SFractalSize_ = 512, PadValue PadVal_ = PadValue::Null,
    CompactMode Compact_ = CompactMode::Null>
struct Tile : ptokit::TileBase {
    using DType = Element_;
    using TileDType = ptokit::Local<Loc_, Element_>;
    static constexpr TileType Loc = Loc_;
    static constexpr int Rows = Rows_, Cols = Cols_, ValidRow = RowValid_, ValidCol = ColValid_, SFractalSize = SFractalSize_;
    static constexpr BLayout BFractal = BFractal_;
    static constexpr SLayout SFractal = SFractal_;
    static constexpr PadValue PadVal = PadVal_;
    static constexpr CompactMode Compact = Compact_;
    static constexpr bool isRowMajor = BFractal == BLayout::RowMajor, isBoxedLayout = SFractal != SLayout::NoneBox;
    static constexpr bool isInnerRowMajor = SFractal == SLayout::RowMajor, isInnerColMajor = SFractal == SLayout::ColMajor;
    static constexpr int Long = SFractalSize == 1024 ? 16 : SFractalSize / 16 / (int)sizeof(DType);  // of an inner box
    static constexpr int InnerRows = !isBoxedLayout ? 1 : isInnerRowMajor ? 16 : Long;
    static constexpr int InnerCols = !isBoxedLayout ? 1 : isInnerRowMajor ? Long : 16;
    static constexpr int InnerNumel = InnerRows * InnerCols, Numel = Rows * Cols;
    static constexpr int RowStride = isRowMajor ? Cols : 1, ColStride = isRowMajor ? 1 : Rows;
    static_assert(Rows > 0 && Cols > 0 && ValidRow <= Rows && ValidCol <= Cols, "SA-0065: Rows and Cols are positive, static valid sizes fit in them");
    static_assert(SFractalSize == 512 || SFractalSize == 1024 || SFractalSize == 32, "SA-0095: the fractal size is 512, 1024 or 32 bytes");
    static_assert(InnerRows != 0 && InnerCols != 0, "SA-0094: a box has rows and columns");
    static_assert(!isBoxedLayout || Loc == TileType::Vec || SFractalSize == 32 || Rows == 1 || Rows % (InnerRows ? InnerRows : 1) == 0,
        "SA-0067: Rows of a boxed tile are a multiple of the box height");
    static_assert(!isBoxedLayout || Cols % (InnerCols ? InnerCols : 1) == 0, "SA-0066: Cols of a boxed tile are a multiple of the box width");
    static_assert(isBoxedLayout || (isRowMajor ? Cols : Rows) * (int)sizeof(DType) % 32 == 0,
        "SA-0006: a row of a row-major tile, a column of a column-major one, is a multiple of 32 bytes");
    static constexpr ptokit::TileType_ TYPE{(int64_t)Loc_, ptokit::element<Element_>(), Rows_, Cols_, (int64_t)BFractal_, RowValid_,
        ColValid_, (int64_t)SFractal_, SFractalSize_, (int64_t)PadVal_, (int64_t)Compact_};

    PTOKIT_INLINE Tile() : TileBase(TYPE, RowValid_ < 0 ? Rows_ : RowValid_, ColValid_ < 0 ? Cols_ : ColValid_) {}
    template <typename N, typename = std::enable_if_t<std::is_integral_v<N>>> explicit Tile(N valid) : Tile()
    {
        (RowValid_ < 0 ? rows : cols) = valid;
    }
    template <typename R, typename C> Tile(R row, C col) : Tile()
    {
        if (RowValid_ < 0) rows = (int64_t)row;
        if (ColValid_ < 0) cols = (int64_t)col;
    }
    // An lvalue, as kernels bind references to it: it is made anew whenever it is asked for.
    ptokit::TilePointer<Loc_, DType>& data() { return *new (pointer_) ptokit::TilePointer<Loc_, DType>(*this); }
    ptokit::TilePointer<Loc_, DType> data() const { return ptokit::TilePointer<Loc_, DType>(*this); }
    int GetValidRow() const { return (int)rows; }
    int GetValidCol() const { return (int)cols; }
    template <typename R> void SetValidRow(R row) { rows = row; }
    template <typename C> void SetValidCol(C col) { cols = col; }
    template <typename R, typename C> void SetValidShape(R row, C col) { rows = row, cols = col; }
    __attribute__((noinline)) DType GetValue(uint32_t index) const { return ptokit::Element<DType>(*this, index); }
    template <typename V> __attribute__((noinline)) void SetValue(uint32_t index, V value)
    {
        ptokit::Element<DType>(*this, index) = value;
    }
    bool isKAligned = false;
    void SetKAligned(bool on) { isKAligned = on; }
    bool GetKAligned() const { return isKAligned; }
    // A mode of the matrix unit, not of this tile.
    __attribute__((noinline)) void SetMadTF32Mode(RoundMode mode = RoundMode::CAST_ROUND) { ptokit::reduce_products(true, mode, __builtin_return_address(0)); }
    __attribute__((noinline)) void ResetMadMode() { ptokit::reduce_products(false, RoundMode::CAST_ROUND, __builtin_return_address(0)); }
private:
    alignas(ptokit::TilePointer<Loc_, DType>) char pointer_[sizeof(ptokit::TilePointer<Loc_, DType>)];
};
template <typename T> struct is_tile : std::is_base_of<ptokit::TileBase, std::remove_cv_t<T>> {};
template <typename T> inline constexpr bool is_tile_v = is_tile<T>::value;
template <typename T> inline constexpr bool is_tile_data_v = is_tile<T>::value;

#define PTOKIT_TILE(NAME, LOC, B, S, FRACTAL, COMPACT) \
    template <typename E, int R, int C, int VR = R, int VC = C> \
    using NAME = Tile<TileType::LOC, E, R, C, BLayout::B, VR, VC, SLayout::S, FRACTAL, PadValue::Null, CompactMode::COMPACT>;
#ifdef PTOKIT_LEFT_IS_NZ
#define PTOKIT_LEFT ColMajor
#else
#define PTOKIT_LEFT RowMajor
#endif
PTOKIT_TILE(TileLeft, Left, PTOKIT_LEFT, RowMajor, 512, Null)
PTOKIT_TILE(TileRight, Right, RowMajor, ColMajor, 512, Null)
PTOKIT_TILE(TileAcc, Acc, ColMajor, RowMajor, 1024, Null)
PTOKIT_TILE(TileLeftScale, ScaleLeft, RowMajor, RowMajor, 32, Null)
PTOKIT_TILE(TileRightScale, ScaleRight, ColMajor, ColMajor, 32, Null)
PTOKIT_TILE(TileLeftCompact, Left, PTOKIT_LEFT, RowMajor, 512, Normal)
PTOKIT_TILE(TileRightCompact, Right, RowMajor, ColMajor, 512, Normal)
PTOKIT_TILE(TileAccCompact, Acc, ColMajor, RowMajor, 1024, Normal)
PTOKIT_TILE(TileLeftScaleCompact, ScaleLeft, RowMajor, RowMajor, 32, Normal)
PTOKIT_TILE(TileRightScaleCompact, ScaleRight, ColMajor, ColMajor, 32, Normal)
#undef PTOKIT_TILE
}  // namespace pto
