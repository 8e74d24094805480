"""Matrix products in C++: modes of the matrix unit that methods of tiles set."""

from __future__ import annotations

from pathlib import Path

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
