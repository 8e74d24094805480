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
    for is_raw in (True, False):
        if is_raw:
            load_cbuf_to_ca(left, l0a, 0, 0, 1, 1, 1, 1)
            load_cbuf_to_cb(right, l0b, 0, 0, 1, 1, 1, 1)
        else:  # the same bytes, as pairs of 4-bit floats, and not transposed
            pair = float4_e2m1x2_t
            load_cbuf_to_ca_s4(castptr(left, pair), castptr(l0a, pair), 0, 0, 1, 1, 1, 1, 0)
            load_cbuf_to_cb_s4(castptr(right, pair), castptr(l0b, pair), 0, 0, 1, 1, 1, 1, 0)
        pipe_barrier(PIPE_ALL)
        mad(l0a, l0b, l0c, 16, 16, 16)
        pipe_barrier(PIPE_ALL)
        # The right operand holds its columns one after the other.
        ub, l1 = castptr(0, f32, "ub"), castptr(8192, f32, "l1")
        mte_l0c_ub(l0c, ub, 16, 16, 16, 16, 0, layout="nz2nd")
        mte_l0c_l1(l0c, l1, 16, 16, 16, 16, layout="nz2nd")
        pipe_barrier(PIPE_ALL)
        mte_ub_gm(ub, out, 1024, (1, 1024, 1024))
        pipe_barrier(PIPE_ALL)
        assert (out == a.astype(np.float32) @ b.T).all()
"""

_SCALED = """\
ones, twos = np.full((16, 64), 0x38, np.uint8), np.full(32, 128, np.uint8)  # as codes
bias, out = np.full(16, 3, np.float32), np.zeros((16, 16), np.float32)
with device("a5"):
    f8 = float8_e4m3_t
    boxes, scales, row = (castptr(n, f8, "l1") for n in (0, 4096, 8192))
    mte_gm_l1_frac(castptr(ones, f8), boxes, 16, 64, 64, None, 1, 1, 16, 0, 0, 0, "nd2nz")
    mte_gm_l1(castptr(twos, f8), scales, 32, (1, 32, 32))
    mte_gm_l1(bias, castptr(row, f32), 64, (1, 64, 64))
    pipe_barrier(PIPE_ALL)
    l0a, l0b = castptr(0, f8, "l0a"), castptr(0, f8, "l0b")
    l0c, table = castptr(0, f32, "l0c"), castptr(0, f32, "bt")
    mte_l1_l0a(boxes, l0a, 16, 64)
    mte_l1_l0b(boxes, l0b, 64, 16)
    mte_l1_l0a_mx(scales, l0a, 16, 64)  # one for each 32 elements
    mte_l1_l0b_mx(scales, l0b, 64, 16)
    mte_l1_bt(castptr(row, f32), table, 2, (1, 0, 0))
    pipe_barrier(PIPE_ALL)
    mad_mx(l0a, l0b, l0c, 16, 16, 64)
    pipe_barrier(PIPE_ALL)
    mad_mx_acc(l0a, l0b, l0c, 16, 16, 64)
    pipe_barrier(PIPE_ALL)
    mte_l0c_gm(l0c, out, 16, 16, 16, 16, 0, 0, "nz2nd")
    pipe_barrier(PIPE_ALL)
    assert (out == 2 * 64 * (1 * 2) * (1 * 2)).all()
    mad_mx_bias(l0a, l0b, l0c, table, 16, 16, 64)
    pipe_barrier(PIPE_ALL)
    mte_l0c_gm(l0c, out, 16, 16, 16, 16, 0, 0, "nz2nd")
    assert (out == 64 * 4 + 3).all()
"""

_PARAMETERS = """\
a, b = -np.eye(16, dtype=np.float16), np.ones((16, 16), np.float16)
scales = np.full(16, 2, np.float32).view(np.uint32).astype(np.uint64)
factors, out = np.arange(16, dtype=np.float32), np.zeros((16, 16), np.float32)
with device("a5"):
    left, right = castptr(0, f16, "l1"), castptr(4096, f16, "l1")
    words, alphas = castptr(8192, u64, "l1"), castptr(12288, f32, "l1")
    mte_gm_l1_frac(a, left, 16, 16, 32, None, 1, 1, 16, 0, 0, 0, "nd2nz")
    mte_gm_l1_frac(b, right, 16, 16, 32, None, 1, 1, 16, 0, 0, 0, "nd2nz")
    mte_gm_l1(scales, words, 128, (1, 128, 128))
    mte_gm_l1(factors, alphas, 64, (1, 64, 64))
    pipe_barrier(PIPE_ALL)
    l0a, l0b, l0c = castptr(0, f16, "l0a"), castptr(0, f16, "l0b"), castptr(0, f32, "l0c")
    first, second = castptr(0, f32, "fb"), castptr(65536, f32, "fb")  # its two tables
    mte_l1_l0a(left, l0a, 16, 16)
    mte_l1_l0b(right, l0b, 16, 16, transpose=True)
    mte_l1_fb(words, first, 2, (1, 0, 0))
    copy_cbuf_to_fbuf(alphas, second, 1, 1, 0, 0)
    pipe_barrier(PIPE_ALL)
    mad(l0a, l0b, l0c, 16, 16, 16)
    pipe_barrier(PIPE_ALL)
    how = {"quant_mode": "qf322f32_pre_vec", "relu_mode": "vector_relu", "layout": "nz2nd"}
    mte_l0c_gm(l0c, out, 16, 16, 16, 16, 0, 0, quant=first, relu=second, **how)
    assert (out == -1 * 2 * factors).all()
"""

_UNKNOWN = """\
x = np.zeros(64, np.float32)
with device("a5"):
    try:
        copy_gm_to_cbuf(x, castptr(0, f32, "l1"), 0, 1, 8, 0)
    except PtoError as error:  # a program with it is read and checked
        assert "told nowhere" in str(error)
    else:
        assert False
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

_MERGED = """\
first, second = np.float32([[7, 0], [3, 1]]), np.float32([[5, 2], [4, 3]])  # scores and indices
merged = np.zeros((4, 2), np.float32)
with device("a5"):
    a, b, dst = (castptr(n, f32, "ub") for n in (0, 1024, 2048))
    mte_gm_ub(first, a, 0, 16, (1, 16, 16))
    mte_gm_ub(second, b, 0, 16, (1, 16, 16))
    pipe_barrier(PIPE_ALL)
    vmrgsort4(dst, a, b, a, b, 2 | 2 << 16, 0b0011 << 8)  # two lists of two records
    pipe_barrier(PIPE_ALL)
    assert get_vms4_sr() == (2, 2, 0, 0)
    mte_ub_gm(dst, merged, 32, (1, 32, 32))
    assert merged[:, 0].tolist() == [7, 5, 4, 3]
    assert merged[:, 1].tolist() == [0, 2, 3, 1]
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
        _SCALED,
        _PARAMETERS,
        _UNKNOWN,
        _SORTED,
        _MERGED,
    )
)


def program_with(name: str) -> list[str]:
    """The lines of a program in which an operation occurs; none where there is none."""
    named = re.compile(rf"\b{name}(_post)?\b")
    found = next((each for each in PROGRAMS if named.search(each)), "")
    return found.splitlines()
