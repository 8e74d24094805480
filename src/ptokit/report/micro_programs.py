"""Programs for operations that make sense only with others: streams, transfers, products.

Each asserts what it has done; a page shows the first one that has its operation.
"""

from __future__ import annotations

import re

_HEAD = """\
import numpy as np

from ptokit import *
from ptokit.micro import *

"""
_STREAMS = """\
with device("a5"):
    at, back = castptr(4, f32, "ub"), castptr(4096, f32, "ub")
    with vecscope():
        mask = pset_b32("PAT_ALL")
        state, end = vstus_post(init_align(), 5, vci[f32](1.0), at)
        state, end = vstus_post(state, 60, vci[f32](6.0), end)
        vstas(state, end, 0)
        mem_bar("VST_VLD")
        seen, state = vldus(at, vldas(at))
        vsts(seen, back, 0, mask)
    pipe_barrier(PIPE_ALL)
    out = np.zeros(64, np.float32)
    mte_ub_gm(back, out, 256, (1, 256, 256))
    assert out.tolist() == list(range(1, 65))
"""

_SQUEEZED = """\
with device("a5"):
    at, count = castptr(0, f32, "ub"), castptr(4096, u32, "ub")
    with vecscope():
        sprclr("AR")
        fourth = pset_b32("PAT_M4")
        kept = vsqz(vci[f32](0.0), fourth)
        state = vstur(init_align(), kept, at, "POST_UPDATE")
        state = vstur(state, kept, at, "POST_UPDATE")
        vstar(state, at)
        sprsti(count, 0, "AR")
        sprsts(count, 8, "AR")
    pipe_barrier(PIPE_ALL)
    out, words = np.zeros(32, np.float32), np.zeros(3, np.uint32)
    mte_ub_gm(count, words, 4, (1, 4, 4))
    assert words[0] == 128
    mte_ub_gm(at, out, 128, (1, 128, 128))
    assert out.tolist() == [*range(0, 64, 4)] * 2
"""

_MASKS = """\
with device("a5"):
    at = castptr(0, u32, "ub")
    with vecscope():
        state, end = pstu(init_align(), pset_b32("PAT_VL4"), at)
        vstas(state, end, 0)
    pipe_barrier(PIPE_ALL)
    out = np.zeros(8, np.uint8)
    mte_ub_gm(castptr(at, u8), out, 8, (1, 8, 8))
    assert out.tolist() == [15, 0, 0, 0, 0, 0, 0, 0]
"""

_TRANSFERS = """\
x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
with device("a5"):
    a, b = castptr(0, f32, "ub"), castptr(1024, f32, "ub")
    mte_gm_ub(x, a, 0, 32, (2, 32, 32))
    pipe_barrier(PIPE_ALL)
    mte_ub_ub(a, b, 1, (2, 0, 0))
    pipe_barrier(PIPE_ALL)
    mte_ub_gm(b, out, 32, (2, 32, 32))
    assert (out == x).all()
"""

_RAW = """\
x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
with device("a5"):
    a = castptr(0, f32, "ub")
    set_mov_pad_val(0)
    set_loop_size_outtoub(2, 1)
    set_loop1_stride_outtoub(32, 32)
    set_loop2_stride_outtoub(0, 0)
    copy_gm_to_ubuf(x, a, 0, 1, 32, 0, 0, 0, 0, 32, 32)
    pipe_barrier(PIPE_ALL)
    set_loop_size_ubtoout(1, 1)
    set_loop1_stride_ubtoout(0, 0)
    set_loop2_stride_ubtoout(0, 0)
    copy_ubuf_to_gm(a, out, 0, 2, 32, 0, 32, 32)
    assert (out == x).all()
"""

_ATOMICS = """\
x = np.ones(8, np.float32)
with device("a5"):
    a = castptr(0, f32, "ub")
    mte_gm_ub(x, a, 0, 32, (1, 32, 32))
    pipe_barrier(PIPE_ALL)
    for kind in (set_atomic_s8, set_atomic_s16, set_atomic_s32, set_atomic_f16, set_atomic_bf16):
        kind()  # each replaces the one before
    for kind in (set_atomic_add, set_atomic_max, set_atomic_min):
        set_atomic_f32()
        kind()
        pipe_barrier(PIPE_ALL)
        mte_ub_gm(a, x, 32, (1, 32, 32))
        pipe_barrier(PIPE_ALL)
    set_atomic_none()
    assert x.tolist() == [1.0] * 8
"""

_CONTROL = """\
with device("a5"):
    set_ctrl(sbitset1(sbitset0(12, 2), 1))
    assert get_ctrl() == 10
"""

_DEVICE = """\
x = np.arange(8, dtype=np.int32)
with device("a5"):
    st_dev(ld_dev(x, 3) + 4, x, 0)
    assert x[0] == 7
"""

_NEAR = """\
x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
with device("a5"):
    a, b, c = castptr(0, f32, "ub"), castptr(0, f32, "l1"), castptr(1024, f32, "ub")
    mte_gm_ub(x, a, 0, 64, (1, 64, 64))
    pipe_barrier(PIPE_ALL)
    mte_ub_l1(a, b, 1, (2, 0, 0))
    pipe_barrier(PIPE_ALL)
    copy_ubuf_to_cbuf(a, b, 0, 2, 1, 0, 0)
    pipe_barrier(PIPE_ALL)
    mte_l1_ub(b, c, 1, (2, 0, 0))
    pipe_barrier(PIPE_ALL)
    copy_cbuf_to_ubuf(b, c, 0, 2, 1, 0, 0)
    pipe_barrier(PIPE_ALL)
    mte_ub_gm(c, out, 64, (1, 64, 64))
    assert (out == x).all()
"""

_PRODUCT = """\
a = (np.arange(256).reshape(16, 16) % 7).astype(np.float16)
b = (np.arange(256).reshape(16, 16) % 5).astype(np.float16)
bias, out = np.full(16, 3, np.float32), np.zeros((16, 16), np.float32)
with device("a5"):
    left, right, at = (castptr(n, f16, "l1") for n in (0, 4096, 8192))
    at = castptr(at, f32)
    mte_gm_l1_frac(a, left, 16, 16, 32, None, 1, 1, 16, 0, 0, 0, "nd2nz")
    mte_gm_l1_frac(b, right, 16, 16, 32, None, 1, 1, 16, 0, 0, 0, "nd2nz")
    mte_gm_l1(bias, at, 64, (1, 64, 64))
    pipe_barrier(PIPE_ALL)
    l0a, l0b = castptr(0, f16, "l0a"), castptr(0, f16, "l0b")
    l0c, table = castptr(0, f32, "l0c"), castptr(0, f32, "bt")
    mte_l1_l0a(left, l0a, 16, 16)
    mte_l1_l0b(right, l0b, 16, 16, transpose=True)
    mte_l1_bt(at, table, 2, (1, 0, 0))
    pipe_barrier(PIPE_ALL)
    mad(l0a, l0b, l0c, 16, 16, 16)
    pipe_barrier(PIPE_ALL)
    mad_acc(l0a, l0b, l0c, 16, 16, 16)
    pipe_barrier(PIPE_ALL)
    mte_l0c_gm(l0c, out, 16, 16, 16, 16, 0, 0, "nz2nd")
    pipe_barrier(PIPE_ALL)
    assert (out == 2 * (a.astype(np.float32) @ b)).all()
    mad_bias(l0a, l0b, l0c, table, 16, 16, 16)
    pipe_barrier(PIPE_ALL)
    mte_l0c_gm(l0c, out, 16, 16, 16, 16, 0, 0, "nz2nd")
    assert (out == a.astype(np.float32) @ b + 3).all()
"""

_BOXES = """\
a = (np.arange(256).reshape(16, 16) % 7).astype(np.float16)
b = (np.arange(256).reshape(16, 16) % 5).astype(np.float16)
out = np.zeros((16, 16), np.float32)
with device("a5"):
    left, right = castptr(0, f16, "l1"), castptr(4096, f16, "l1")
    mte_gm_l1_frac(a, left, 16, 16, 32, None, 1, 1, 16, 0, 0, 0, "nd2nz")
    mte_gm_l1_frac(b, right, 16, 16, 32, None, 1, 1, 16, 0, 0, 0, "nd2nz")
    pipe_barrier(PIPE_ALL)
    l0a, l0b, l0c = castptr(0, f16, "l0a"), castptr(0, f16, "l0b"), castptr(0, f32, "l0c")
    pairs = (load_cbuf_to_ca, load_cbuf_to_cb), (load_cbuf_to_ca_s4, load_cbuf_to_cb_s4)
    for load_a, load_b in pairs:
        more = [] if load_a is load_cbuf_to_ca else [0]  # whether to transpose
        load_a(left, l0a, 0, 0, 1, 1, 1, 1, *more)
        load_b(right, l0b, 0, 0, 1, 1, 1, 1, *more)
        pipe_barrier(PIPE_ALL)
        mad(l0a, l0b, l0c, 16, 16, 16)
        pipe_barrier(PIPE_ALL)
        # The right operand holds its columns one behind the other.
        ub, l1 = castptr(0, f32, "ub"), castptr(8192, f32, "l1")
        mte_l0c_ub(l0c, ub, 16, 16, 16, 16, 0, layout="nz2nd")
        mte_l0c_l1(l0c, l1, 16, 16, 16, 16, layout="nz2nd")
        pipe_barrier(PIPE_ALL)
        mte_ub_gm(ub, out, 1024, (1, 1024, 1024))
        pipe_barrier(PIPE_ALL)
        assert (out == a.astype(np.float32) @ b.T).all()
"""

_SORTED = """\
x, order = np.float32(np.arange(32) * 7 % 32), np.arange(32, dtype=np.uint32)
pairs = np.zeros((32, 2), np.float32)
with device("a5"):
    src, index, dst = castptr(0, f32, "ub"), castptr(1024, u32, "ub"), castptr(2048, f32, "ub")
    mte_gm_ub(x, src, 0, 128, (1, 128, 128))
    mte_gm_ub(order, index, 0, 128, (1, 128, 128))
    pipe_barrier(PIPE_ALL)
    vbitsort(dst, src, index, 1)
    pipe_barrier(PIPE_ALL)
    mte_ub_gm(dst, pairs, 256, (1, 256, 256))
    assert (pairs[:, 0] == np.arange(31, -1, -1)).all()
"""

PROGRAMS = tuple(
    _HEAD + each
    for each in (
        _STREAMS,
        _SQUEEZED,
        _MASKS,
        _TRANSFERS,
        _RAW,
        _ATOMICS,
        _CONTROL,
        _DEVICE,
        _NEAR,
        _PRODUCT,
        _BOXES,
        _SORTED,
    )
)


def program_with(name: str) -> list[str]:
    """The lines of a program in which an operation occurs; none where there is none."""
    named = re.compile(rf"\b{name}(_post)?\b")
    found = next((each for each in PROGRAMS if named.search(each)), "")
    return found.splitlines()
