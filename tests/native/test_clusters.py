"""Sources for clusters: one text, compiled for the cube core and for its vector cores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from tests.native.support import line_of, needs_compiler, source

pytestmark = needs_compiler

SHARED = """
using M = Tile<TileType::Mat, float, 16, 64>;
extern "C" __global__ AICORE void back(__gm__ float* out, __gm__ float* in)
{
    M l1; TASSIGN(l1, 0);
    T ub; TASSIGN(ub, 0);
    G g(in), h(out + get_subblockid() * 16 * 64);
    TEXPANDS(l1, 7.0f);  // no instruction of a vector core
    TLOAD(l1, g);  // nor is this
#if defined(__DAV_CUBE__)
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    copy_cbuf_to_ubuf((__ubuf__ void*)ub.data(), (__cbuf__ void*)l1.data(), 0, 16, 8, 0, 0);
    copy_cbuf_to_ubuf((__ubuf__ void*)ub.data(), (__cbuf__ void*)l1.data(), 1, 16, 8, 0, 0);
    set_intra_block(PIPE_MTE1, 0);
    set_intra_block(PIPE_MTE1, 16);
#endif
#if defined(__DAV_VEC__)
    wait_intra_block(PIPE_MTE3, 0);
#endif
    TSTORE(h, ub);  // and none of the cube core
}
"""


def test_transfers_of_the_other_kind_of_core_are_none(tmp_path: Path) -> None:
    program = source(tmp_path, SHARED, target="a5")
    x = np.random.default_rng(1).standard_normal((16, 64)).astype(np.float32)
    out = np.zeros((2, 16, 64), np.float32)
    run = program.back[1](out, x)
    assert np.array_equal(out, np.stack([x, x]))
    assert not run.warnings


def test_what_nobody_waits_for_races_with_the_other_core(tmp_path: Path) -> None:
    text = SHARED.replace("wait_intra_block(PIPE_MTE3, 0);", "")
    program = source(tmp_path, text, target="a5")
    with pytest.raises(PtoError) as raised:
        program.back[1](np.zeros((2, 16, 64), np.float32), np.ones((16, 64), np.float32))
    found = raised.value.diagnostics[0]
    assert found.location is not None
    assert found.location.line == line_of(text, "TSTORE(h, ub);")


COUNTING = """
AICORE inline int next() { static int count = 10; return ++count; }
extern "C" __global__ AICORE void counted(__gm__ int32_t* out)
{
    for (int i = 0; i < 4; i++) {
        out[16 * get_block_idx() + i] = next();  // other cores go on in between
    }
}
"""


def test_a_core_has_variables_of_its_own(tmp_path: Path) -> None:
    program = source(tmp_path, COUNTING)
    for _ in range(2):  # and a launch begins anew
        out = np.zeros((3, 16), np.int32)
        program.counted[3](out)
        assert (out[:, :4] == [11, 12, 13, 14]).all()
