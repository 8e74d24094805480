"""Matrix products in C++: modes of the matrix unit that methods of tiles set."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.native.support import needs_compiler, source

pytestmark = needs_compiler

PRODUCT = """
extern "C" __global__ AICORE void product(
    __gm__ float* out, __gm__ float* a, __gm__ float* b, int reduced)
{
    using View = GlobalTensor<float, Shape<1, 1, 1, 16, 16>, Stride<1, 1, 1, 16, 1>>;
    using Mat = Tile<TileType::Mat, float, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor>;
    Mat ma, mb;
    TileLeft<float, 16, 16> left;
    TileRight<float, 16, 16> right;
    TileAcc<float, 16, 16> acc;
    TASSIGN(ma, 0); TASSIGN(mb, 0x1000);
    TASSIGN(left, 0); TASSIGN(right, 0); TASSIGN(acc, 0);
    View ga(a), gb(b), go(out);
    TLOAD(ma, ga);
    TLOAD(mb, gb);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_MTE1>();
    TMOV(left, ma);
    TMOV(right, mb);
    if (reduced) left.SetMadTF32Mode(RoundMode::CAST_RINT);
    PtoSetWaitFlag<PIPE_MTE1, PIPE_M>();
    TMATMUL(acc, left, right);
    PtoSetWaitFlag<PIPE_M, PIPE_FIX>();
    TSTORE(go, acc);
    PtoSetWaitFlag<PIPE_M, PIPE_S>();
    if (reduced == 1) left.ResetMadMode();
}
"""


@pytest.mark.parametrize(("target", "bits"), [("a2a3", 11), ("a5", 10)])
def test_a_tile_switches_the_reduced_products_on(tmp_path: Path, target: str, bits: int) -> None:
    kernel = source(tmp_path, PRODUCT, target=target, core="cube").product[1]
    kept, lost = 1 + 2.0**-bits, 1 + 2.0 ** -(bits + 2)
    a, one = np.zeros((2, 16, 16), np.float32)
    np.fill_diagonal(one, 1)
    a[0, :2] = kept, lost
    for reduced, wanted in ((0, [kept, lost]), (1, [kept, 1.0])):
        out = np.zeros_like(a)
        kernel(out, a, one, reduced)
        assert out[0, :2].tolist() == wanted


SCALED = """
using Scale = float8_e8m0_t;
template <typename T, int R, int C, BLayout B, SLayout S, int F>
using L1 = Tile<TileType::Mat, T, R, C, B, R, C, S, F>;
extern "C" __global__ AICORE void scaled(
    __gm__ float* out, __gm__ float8_e4m3_t* a, __gm__ Scale* sa, __gm__ float8_e4m3_t* b,
    __gm__ Scale* sb, int raw, int twice)
{
    using E = float8_e4m3_t;
    using View = GlobalTensor<E, Shape<1, 1, 1, 64, 64>, Stride<1, 1, 1, 64, 1>>;
    using Out = GlobalTensor<float, Shape<1, 1, 1, 64, 64>, Stride<1, 1, 1, 64, 1>>;
    GlobalTensor<Scale, Shape<1, 1, 64, 1, 2>, Stride<1, 1, 2, 2, 1>, Layout::MX_A_ND> gsa(sa);
    GlobalTensor<Scale, Shape<1, 1, 64, 1, 2>, Stride<1, 1, 2, 2, 1>, Layout::MX_B_DN> gsb(sb);
    L1<E, 64, 64, BLayout::ColMajor, SLayout::RowMajor, 512> ma, mb;
    L1<Scale, 64, 2, BLayout::RowMajor, SLayout::RowMajor, 32> msa;
    L1<Scale, 2, 64, BLayout::ColMajor, SLayout::ColMajor, 32> msb;
    TASSIGN(ma, 0); TASSIGN(mb, 0x1000); TASSIGN(msa, 0x2000); TASSIGN(msb, 0x2100);
    TileLeft<E, 64, 64> left; TileRight<E, 64, 64> right; TileAcc<float, 64, 64> sum;
    TileLeftScale<Scale, 64, 2> ls; TileRightScale<Scale, 2, 64> rs;
    TASSIGN(left, 0x1000); TASSIGN(right, 0x1000); TASSIGN(sum, 0);
    TASSIGN(ls, 0x100); TASSIGN(rs, 0x100);
    View ga(a), gb(b); Out go(out);
    TLOAD(ma, ga); TLOAD(mb, gb); TLOAD(msa, gsa); TLOAD(msb, gsb);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_MTE1>();
    TMOV(left, ma); TMOV(right, mb);
    if (raw) {
        __ca__ E* to = left.data();
        auto sa1 = (__cbuf__ void*)msa.data(), sb1 = (__cbuf__ void*)msb.data();
        load_cbuf_to_ca_mx(reinterpret_cast<uintptr_t>(to) / 16, sa1, 0, 0, 1, 4, 4, 4);
        load_cbuf_to_cb_mx((uint64_t)right.data() / 16, sb1, 0, 0, 1, 4, 4, 4);
    } else {
        TMOV(ls, msa); TMOV(rs, msb);
    }
    PtoSetWaitFlag<PIPE_MTE1, PIPE_M>();
    for (int i = 0; i <= twice; i++) {
        if (raw) mad_mx(sum.data(), left.data(), right.data(), 64, 64, 64, 0, false, false, i == 0);
        else if (i == 0) TMATMUL_MX(sum, left, ls, right, rs);
        else TMATMUL_MX(sum, sum, left, ls, right, rs);
        pipe_barrier(PIPE_M);
    }
    PtoSetWaitFlag<PIPE_M, PIPE_FIX>();
    TSTORE(go, sum);
}
"""


@pytest.mark.parametrize("twice", [0, 1])
def test_scaled_products_of_the_matrix_unit_are_those_of_tiles(tmp_path: Path, twice: int) -> None:
    program = source(tmp_path, SCALED, target="a5")
    rng = np.random.default_rng(5)
    a, b = (rng.integers(0x30, 0x48, (64, 64), np.uint8) for _ in range(2))
    sa, sb = (rng.integers(126, 130, (64, 2), np.uint8) for _ in range(2))
    kinds = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
    given = [each.view(kind) for each, kind in zip((a, sa, b, sb), kinds * 2, strict=True)]
    outs = [np.zeros((64, 64), np.float32) for _ in range(2)]
    for raw, out in enumerate(outs):
        assert not program.scaled[1](out, *given, raw, twice).warnings
    assert outs[0].any()
    assert np.array_equal(outs[0], outs[1])
