// Views of global memory: five sizes, five strides and a pointer.
#pragma once
#include "tile.hpp"

namespace ptokit {
struct TensorType {
    int64_t element, layout, shape[5], stride[5];
};
struct TensorBase {
    const TensorType* type = nullptr;
    void* pointer = nullptr;
    int64_t sizes[5] = {1, 1, 1, 1, 1}, strides[5] = {1, 1, 1, 1, 1};
    TensorBase() = default;
    // What is not given is what the type says; a 1 where that leaves it to run time.
    PTOKIT_SHARED TensorBase(const TensorType& of, const void* to, const int64_t* shape, const int64_t* stride) : type(&of), pointer((void*)to)
    {
        for (int i = 0; i < 5; i++) {
            sizes[i] = shape ? shape[i] : of.shape[i] < 0 ? 1 : of.shape[i];
            strides[i] = stride ? stride[i] : of.stride[i] < 0 ? 1 : of.stride[i];
        }
    }
};

template <typename... A> using Numbers = std::enable_if_t<(sizeof...(A) > 0) && (std::is_convertible_v<A, int64_t> && ...)>;

// Five numbers, of which run time decides those that are DYNAMIC: all five are given, or those.
template <int64_t... N> struct Dims {
    static_assert(sizeof...(N) == 5, "a view has five dimensions");
    static constexpr int64_t fixed[5] = {N...};
    static constexpr int dynamic = (0 + ... + (N < 0));
    int64_t value[5] = {(N < 0 ? 1 : N)...};
    Dims() = default;
    template <typename... A, typename = Numbers<A...>> Dims(A... given)
    {
        static_assert(sizeof...(A) != 1 || dynamic == 1, "SA-0001: one value is for exactly one DYNAMIC dimension");
        static_assert(sizeof...(A) != 2 || dynamic == 2, "SA-0002: two values are for exactly two DYNAMIC dimensions");
        static_assert(sizeof...(A) != 3 || dynamic == 3, "SA-0003: three values are for exactly three DYNAMIC dimensions");
        static_assert(sizeof...(A) != 4 || dynamic == 4, "SA-0004: four values are for exactly four DYNAMIC dimensions");
        int64_t all[] = {(int64_t)given...};
        int next = 0;
        for (int i = 0; i < 5; i++)
            if (fixed[i] < 0) value[i] = sizeof...(A) == 5 ? all[i] : next < (int)sizeof...(A) ? all[next++] : 1;
    }
};

// A matrix in five dimensions: how many of what, by layout; the count of an unknown is unknown.
constexpr int64_t over(int64_t n, int64_t by) { return n < 0 ? -1 : n / by; }
constexpr int64_t times(int64_t a, int64_t b) { return a < 0 || b < 0 ? -1 : a * b; }
struct Five {
    int64_t value[5];
};
constexpr Five sizes_of(pto::Layout layout, int64_t block, int64_t r, int64_t c)
{
    using enum pto::Layout;
    switch (layout) {
        case NZ: return {{1, over(c, block), over(r, 16), 16, block}};
        case MX_A_ZZ: return {{1, over(r, 16), over(c, 2), 16, 2}};
        case MX_A_ND: return {{1, 1, r, over(c, 2), 2}};
        case MX_A_DN: return {{1, 1, over(c, 2), r, 2}};
        case MX_B_NN: return {{1, over(c, 16), over(r, 2), 16, 2}};
        case MX_B_ND: return {{1, 1, over(r, 2), c, 2}};
        case MX_B_DN: return {{1, 1, c, over(r, 2), 2}};
        default: return {{1, 1, 1, r, c}};
    }
}
constexpr Five strides_of(pto::Layout layout, int64_t block, int64_t r, int64_t c)
{
    using enum pto::Layout;
    int64_t all = times(r, c);
    switch (layout) {
        case NZ: return {{all, times(r, block), 16 * block, block, 1}};
        case DN: return {{all, all, all, 1, r}};
        case MX_A_ZZ: return {{all, times(c, 16), 32, 2, 1}};
        case MX_A_ND: return {{all, all, c, 2, 1}};
        case MX_A_DN: return {{all, all, times(r, 2), 2, 1}};
        case MX_B_NN: return {{all, times(r, 16), 32, 2, 1}};
        case MX_B_ND: return {{all, all, times(c, 2), 2, 1}};
        case MX_B_DN: return {{all, all, r, 2, 1}};
        default: return {{all, all, all, c, 1}};
    }
}
template <auto Of, typename T, int64_t R, int64_t C, pto::Layout L> struct Matrix {
    static constexpr Five five = Of(L, 32 / sizeof(T), R, C);
    using type = Dims<five.value[0], five.value[1], five.value[2], five.value[3], five.value[4]>;
};
template <auto Of, typename T, int64_t R, int64_t C, pto::Layout L> struct MatrixDims : Matrix<Of, T, R, C, L>::type {
    using Parent = typename Matrix<Of, T, R, C, L>::type;
    MatrixDims() = default;
    MatrixDims(int64_t rows, int64_t cols)
    {
        Five found = Of(L, 32 / sizeof(T), rows, cols);
        for (int i = 0; i < 5; i++) this->value[i] = found.value[i];
    }
    template <typename... A, typename = std::enable_if_t<(sizeof...(A) != 2 && sizeof...(A) > 0)>>
    MatrixDims(A... given) : Parent(given...) {}
};
}  // namespace ptokit

namespace pto {
template <int64_t N0 = -1, int64_t N1 = -1, int64_t N2 = -1, int64_t N3 = -1, int64_t N4 = -1>
struct Shape : ptokit::Dims<N0, N1, N2, N3, N4> {
    Shape() = default;
    template <typename... A, typename = ptokit::Numbers<A...>> Shape(A... given) : ptokit::Dims<N0, N1, N2, N3, N4>(given...) {}
    static constexpr const int64_t* staticShape = ptokit::Dims<N0, N1, N2, N3, N4>::fixed;
};
template <int64_t N0 = -1, int64_t N1 = -1, int64_t N2 = -1, int64_t N3 = -1, int64_t N4 = -1>
struct Stride : ptokit::Dims<N0, N1, N2, N3, N4> {
    Stride() = default;
    template <typename... A, typename = ptokit::Numbers<A...>> Stride(A... given) : ptokit::Dims<N0, N1, N2, N3, N4>(given...) {}
    static constexpr const int64_t* staticStride = ptokit::Dims<N0, N1, N2, N3, N4>::fixed;
};
// `Shape(1, 1, 1, rows, cols)`: all of it is known when it runs.
template <typename... N> Shape(N...) -> Shape<-1, -1, -1, -1, -1>;
template <typename... N> Stride(N...) -> Stride<-1, -1, -1, -1, -1>;
template <typename T, int64_t R = -1, int64_t C = -1, Layout L = Layout::ND>
using TileShape2D = ptokit::MatrixDims<ptokit::sizes_of, T, R, C, L>;
template <typename T, int64_t R = -1, int64_t C = -1, Layout L = Layout::ND>
using BaseShape2D = ptokit::MatrixDims<ptokit::strides_of, T, R, C, L>;

template <typename Element_, typename Shape_, typename Stride_, Layout Layout_ = Layout::ND>
struct GlobalTensor : ptokit::TensorBase {
    using DType = Element_;
    using RawDType = Element_;
    using Shape = Shape_;
    using Stride = Stride_;
    static constexpr Layout layout = Layout_;
    static constexpr int64_t staticShape[5] = {Shape_::fixed[0], Shape_::fixed[1], Shape_::fixed[2], Shape_::fixed[3], Shape_::fixed[4]};
    static constexpr int64_t staticStride[5] = {Stride_::fixed[0], Stride_::fixed[1], Stride_::fixed[2], Stride_::fixed[3], Stride_::fixed[4]};
    static constexpr ptokit::TensorType TYPE{ptokit::element<Element_>(), (int64_t)Layout_,
        {staticShape[0], staticShape[1], staticShape[2], staticShape[3], staticShape[4]},
        {staticStride[0], staticStride[1], staticStride[2], staticStride[3], staticStride[4]}};
    PTOKIT_INLINE GlobalTensor() : GlobalTensor(nullptr) {}
    template <typename P> PTOKIT_INLINE GlobalTensor(P* to) : TensorBase(TYPE, (const void*)to, nullptr, nullptr) {}
    template <typename P> PTOKIT_INLINE GlobalTensor(P* to, const Shape_& shape) : TensorBase(TYPE, (const void*)to, shape.value, nullptr) {}
    template <typename P> PTOKIT_INLINE GlobalTensor(P* to, const Shape_& shape, const Stride_& stride)
        : TensorBase(TYPE, (const void*)to, shape.value, stride.value) {}
    PTOKIT_INLINE GlobalTensor(std::nullptr_t) : TensorBase(TYPE, nullptr, nullptr, nullptr) {}
    PTOKIT_INLINE GlobalTensor(std::nullptr_t, const Shape_& shape, const Stride_& stride = {}) : TensorBase(TYPE, nullptr, shape.value, stride.value) {}
    DType* data() const { return (DType*)pointer; }
    void SetAddr(DType* to) { pointer = to; }
    int64_t GetShape(int dim) const { return sizes[dim]; }
    int64_t GetStride(int dim) const { return strides[dim]; }
    template <int Dim> static constexpr int64_t GetShape() { return of<Shape_, Dim>(); }
    template <int Dim> static constexpr int64_t GetStride() { return of<Stride_, Dim>(); }
    template <int... Dim, typename... N> void SetShape(N... given) { ((sizes[changed<Shape_, Dim>()] = given), ...); }
    template <int... Dim, typename... N> void SetStride(N... given) { ((strides[changed<Stride_, Dim>()] = given), ...); }
private:
    template <typename D, int Dim> static constexpr int64_t of()
    {
        static_assert(Dim >= 0 && Dim < 5, "SA-0086: a dimension is 0 to 4");
        static_assert(D::fixed[Dim] >= 0, "SA-0015: what run time decides is no constant: GetShape(dim), GetStride(dim)");
        return D::fixed[Dim];
    }
    template <typename D, int Dim> static constexpr int changed()
    {
        static_assert(Dim >= 0 && Dim < 5, "SA-0086: a dimension is 0 to 4");
        static_assert(D::fixed[Dim] < 0, "GlobalTensor.static: only what run time decides is set");
        return Dim;
    }
};
template <typename T> struct is_global : std::is_base_of<ptokit::TensorBase, std::remove_cv_t<T>> {};
}  // namespace pto
