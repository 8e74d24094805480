// Convolution tiles: up to six named dimensions, and the parameters of image-to-column instructions.
#pragma once
#include "tensor.hpp"

namespace ptokit {
struct ConvType {
    int64_t loc, element, size, layout, rank, shape[6];
};
struct ConvBase {
    uint64_t address = 0;
    bool is_bound = false;
    const ConvType* type = nullptr;
};
template <int... N> constexpr int64_t nth(int index)
{
    int64_t all[] = {N..., 0};
    return index < (int)sizeof...(N) ? all[index] : 0;
}
}  // namespace ptokit

namespace pto {
template <int... N> struct ConvTileShape {
    static constexpr int rank = sizeof...(N), totalDimCount = rank, dynamicDimCount = (0 + ... + (N < 0));
    static constexpr int64_t staticShape[6] = {ptokit::nth<N...>(0), ptokit::nth<N...>(1), ptokit::nth<N...>(2), ptokit::nth<N...>(3),
        ptokit::nth<N...>(4), ptokit::nth<N...>(5)};
    int64_t shape[6] = {1, 1, 1, 1, 1, 1};
    ConvTileShape()
    {
        for (int i = 0; i < rank; i++) shape[i] = staticShape[i] < 0 ? 1 : staticShape[i];
    }
    template <typename... A, typename = std::enable_if_t<(sizeof...(A) > 0)>> ConvTileShape(A... given) : ConvTileShape()
    {
        int64_t all[] = {(int64_t)given...};
        for (int i = 0, next = 0; i < rank; i++)
            if (staticShape[i] < 0 && next < (int)sizeof...(A)) shape[i] = all[next++];
    }
};

template <TileType Loc_, typename Element_, int BufferSize_, Layout Layout_, typename Shape_> struct ConvTile : ptokit::ConvBase {
    using DType = Element_;
    using TileDType = ptokit::Local<Loc_, Element_>;
    using ShapeType = Shape_;
    static constexpr TileType Loc = Loc_;
    static constexpr int bufferSize = BufferSize_, totalDimCount = Shape_::rank, dynamicDimCount = Shape_::dynamicDimCount;
    static constexpr Layout layout = Layout_;
    static constexpr int64_t staticShape[6] = {Shape_::staticShape[0], Shape_::staticShape[1], Shape_::staticShape[2],
        Shape_::staticShape[3], Shape_::staticShape[4], Shape_::staticShape[5]};
    static constexpr ptokit::ConvType TYPE{(int64_t)Loc_, ptokit::element<Element_>(), BufferSize_, (int64_t)Layout_, Shape_::rank,
        {staticShape[0], staticShape[1], staticShape[2], staticShape[3], staticShape[4], staticShape[5]}};
    int64_t shape[6];
    PTOKIT_CONV_PARAMETERS
    ConvTile()
    {
        type = &TYPE;
        for (int i = 0; i < 6; i++) shape[i] = staticShape[i] < 0 ? 1 : staticShape[i];
    }
    template <typename... A, typename = std::enable_if_t<(sizeof...(A) > 0)>> explicit ConvTile(A... given) : ConvTile()
    {
        SetDynamicShape(given...);
    }
    template <typename... A> void SetDynamicShape(A... given)
    {
        int64_t all[] = {(int64_t)given...};
        for (int i = 0, next = 0; i < 6; i++)
            if (staticShape[i] < 0) shape[i] = all[next++];
    }
    int64_t GetShape(int dim) const { return dim < 0 || dim >= totalDimCount ? -1 : shape[dim]; }
    TileDType data() const { return address; }
};
template <typename T> struct is_conv_tile : std::is_base_of<ptokit::ConvBase, std::remove_cv_t<T>> {};
template <typename T> inline constexpr bool is_conv_tile_v = is_conv_tile<T>::value;
}  // namespace pto
