"""The TTRANS page, point by point: each test quotes what it proves."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.dtypes import ALL, dtype
from ptokit.from_text import loads
from tests.operands import bits, codes, flood, instruction_in, make, noise, printed, whole

NINE = "u32 i32 f32 u16 i16 f16 bf16 u8 i8".split()  # noqa: SIM905 - as on the page
TARGETS = ("a2a3", "a5")
ROOMY = "Vec u8 1x32768"  # a tmp that is large enough for everything here


def transpose(target: str, dst: str, src: str, tmp: str) -> tuple[Any, Any, Any]:
    """Fill the source with noise and run; the other bytes are 0x5A before."""
    with device(target, mode="auto"):
        tiles = make(dst), make(src), make(tmp)
        for each in tiles:
            flood(each)
        tiles[1].fill(noise(tiles[1].spec.dtype, tiles[1].numpy().shape))
        TTRANS(*tiles)
        return tiles


def found(target: str, dst: str, src: str, tmp: str = "Vec f32 64x64") -> set[str]:
    return codes("TTRANS", target, dst, src, tmp)


def step(kind: str) -> int:
    """'RowStride: 32 for b8 types, 16 for b16 and b32 types.'"""
    return 32 if dtype(kind).itemsize == 1 else 16


# ---- summary and meaning -----------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_transposes_with_a_temporary_tile(target: str) -> None:
    """'Transpose with an implementation-defined temporary Tile.'"""
    dst, src, _ = transpose(target, "Vec f32 64x32", "Vec f32 32x64", "Vec f32 64x32")
    assert (bits(dst.numpy()) == bits(src.numpy()).T).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", NINE)
def test_element_i_j_becomes_element_j_i(target: str, kind: str) -> None:
    """'For 2-D tiles, over the valid transposition domain: dst[i, j] = src[j, i].'"""
    dst, src, _ = transpose(target, f"Vec {kind} 64x32", f"Vec {kind} 32x64", f"Vec {kind} 64x32")
    for i, j in ((0, 0), (63, 0), (0, 31), (17, 5)):
        assert bits(dst.numpy())[i, j] == bits(src.numpy())[j, i]


def test_the_domain_depends_on_the_target() -> None:
    """'The exact shape, layout and domain depend on the target (see constraints).'"""
    written = {}
    for target in TARGETS:
        with device(target, mode="auto"):
            dst, src = make("Vec i32 64x16 valid 50x13"), make("Vec i32 16x64 valid 13x50")
            flood(dst)
            flood(src, 0)
            TTRANS(dst, src, make("Vec i32 64x16"))
            written[target] = int((whole(dst).read() == 0).sum())
    assert written == {"a2a3": 13 * 50, "a5": 16 * 64}


# ---- assembly ----------------------------------------------------------------------------------

SYNC = """\
.arg %src : !pto.tile<16x16xf32>;
%dst = ttrans %src : !pto.tile<16x16xf32> -> !pto.tile<16x16xf32>;
"""
LEVEL_1 = """\
func.func @f(%src: !pto.tile<16x16xf32>) {
  %dst = pto.ttrans %src : !pto.tile<16x16xf32> -> !pto.tile<16x16xf32>
  return
}
"""
BUF = (
    "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=16, v_row=16, v_col=16, blayout=row_major, "
    "slayout=none_box, fractal=512, pad=0>"
)
LEVEL_2 = f"""\
func.func @f(%src: {BUF}, %dst: {BUF}) {{
  pto.ttrans ins(%src : {BUF}) outs(%dst : {BUF})
  return
}}
"""


@pytest.mark.parametrize("text", [SYNC, LEVEL_1, LEVEL_2], ids=["sync", "level1", "level2"])
def test_assembly_forms(text: str) -> None:
    """'%dst = ttrans %src : ...', '%dst = pto.ttrans %src : ...' and 'pto.ttrans ins(%src : ...)
    outs(%dst : ...)'; 'lowering may introduce an internal temporary tile'."""
    assert instruction_in(text).insn is TTRANS.insn
    assert {line.strip() for line in text.splitlines()} <= set(printed(text))


@pytest.mark.parametrize("text", [SYNC, LEVEL_1], ids=["sync", "level1"])
def test_assembly_examples(text: str) -> None:
    """'# Manual mode: ...', then '%dst = ttrans %src : !pto.tile<...> -> !pto.tile<...>' as it
    stands: the types the page leaves out are that of the source."""
    kind = "!pto.tile<16x16xf32>"
    elided = text.replace(f"{kind} -> {kind}", "!pto.tile<...> -> !pto.tile<...>  # as it stands")
    assert elided != text
    assert printed(elided) == printed(text)


def test_lowering_introduces_the_temporary_tile() -> None:
    """'Lowering may introduce an internal temporary tile': Level 1 has none, Level 2 gets one of
    the size the formula asks for."""
    level_2 = str(loads(LEVEL_1).convert("l2"))
    assert "pto.ttrans ins(%src, %tmp : " in level_2
    (made,) = [line for line in level_2.splitlines() if "%tmp = pto.alloc_tile" in line]
    assert "dtype=f32, rows=16, cols=16" in made


# ---- C++ interface -----------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "kirinx90", "cpu"])
def test_interface_needs_tmp(target: str) -> None:
    """'RecordEvent TTRANS(TileDataDst &dst, TileDataSrc &src, TileDataTmp &tmp, WaitEvents &...)':
    'the C++ interface needs the operand tmp explicitly'."""
    with device(target, mode="auto"):
        dst, src, tmp = (make("Vec f32 16x16") for _ in range(3))
        TEXPANDS(src, 1.0)
        with pytest.raises(ProgramError, match="no form of TTRANS"):
            TTRANS(dst, src)
        event = Event[Op.TTRANS, Op.TSTORE_VEC](TTRANS(dst, src, tmp))
        TSTORE(make("GM f32 16x16"), dst, event)


# ---- constraints -------------------------------------------------------------------------------


@pytest.mark.parametrize(("target", "code"), [("a2a3", "SA-0342"), ("a5", "SA-0345")])
def test_element_sizes_match(target: str, code: str) -> None:
    """A2A3 and A5: 'sizeof(TileDataSrc::DType) == sizeof(TileDataDst::DType)' - the size only."""
    assert code in found(target, "Vec f16 32x32", "Vec f32 32x32")
    assert not found(target, "Vec i32 32x32", "Vec f32 32x32")


def test_a2a3_source_is_row_major() -> None:
    """A2A3: 'The source layout is row-major (TileDataSrc::isRowMajor).'"""
    assert "SA-0347" in found("a2a3", "Vec f32 32x32", "Vec f32 32x32 DN")
    assert not found("a2a3", "Vec f32 32x32", "Vec f32 32x32")


def refused_types(kind: str) -> set[str]:
    """The page lists nine types; the assertion is about their size."""
    listed = set() if kind in NINE else {"TTRANS.dtype"}
    return listed | ({"SA-0346"} if dtype(kind).itemsize > 4 else set())


@pytest.mark.parametrize("kind", [t.name for t in ALL])
@pytest.mark.parametrize("target", TARGETS)
def test_element_types_by_width(target: str, kind: str) -> None:
    """A2A3 and A5: 'The element size is 1, 2 or 4 bytes'; '4 bytes: uint32_t, int32_t, float; 2
    bytes: uint16_t, int16_t, half, bfloat16_t; 1 byte: uint8_t, int8_t.'"""
    got = found(target, f"Vec {kind} 64x64", f"Vec {kind} 64x64", ROOMY)
    assert got == refused_types(kind)


@pytest.mark.parametrize("valid", [(1, 1), (13, 50), (16, 64)])
def test_a2a3_size_is_the_valid_region_of_the_source(valid: tuple[int, int]) -> None:
    """A2A3: 'The transposition size is taken from src.GetValidRow() / src.GetValidCol().'"""
    rows, cols = valid
    shapes = "Vec f32 64x16", f"Vec f32 16x64 valid {rows}x{cols}", "Vec f32 64x16"
    dst, src, _ = transpose("a2a3", *shapes)
    everything = bits(whole(dst).read())
    assert (everything[:cols, :rows] == bits(src.numpy()).T).all()
    assert (everything[cols:] == 0x5A5A5A5A).all()
    assert (everything[:, -(-rows // 8) * 8 :] == 0x5A5A5A5A).all()


@pytest.mark.parametrize(("stride", "fast"), [(16, True), (24, False)])
def test_a2a3_fast_path_leaves_the_rest_of_a_block_open(stride: int, fast: bool) -> None:
    """Rows of dst are written in whole 32-byte blocks, 8 elements, where tmp is used."""
    shapes = f"Vec f32 64x{stride}", "Vec f32 16x64 valid 13x50", "Vec f32 64x16"
    dst, *_ = transpose("a2a3", *shapes)
    defined = whole(dst).defined()
    assert defined[:50, :13].all()
    assert defined[:50, 13:16].any() == (not fast)
    assert defined[:, 16:].all()
    assert defined[50:].all()


def test_a5_lines_are_whole_32_byte_blocks() -> None:
    """A5: 'A 32-byte alignment is enforced for the major dimension of input and output (row-major
    checks Cols * sizeof(T) % 32 == 0, column-major checks Rows * sizeof(T) % 32 == 0).'"""
    assert "SA-0343" in found("a5", "Vec f32 16x16", "Vec f32 16x12")
    assert "SA-0344" in found("a5", "Vec f32 16x12", "Vec f32 8x16")
    assert "SA-0343" in found("a5", "Vec f32 16x16 DN", "Vec f32 12x16 DN")
    assert "SA-0344" in found("a5", "Vec f32 12x16 DN", "Vec f32 16x8 DN")
    assert not found("a5", "Vec f32 16x12 DN", "Vec f32 8x16")
    assert not found("a5", "Vec f32 16x32 DN", "Vec f32 32x16 DN")


def test_a5_column_major_tiles_are_transposed_alike() -> None:
    dst, src, _ = transpose("a5", "Vec f32 16x32 DN", "Vec f32 32x16 DN", "Vec f32 32x32")
    assert (bits(dst.numpy()) == bits(src.numpy()).T).all()


def test_a5_works_on_the_static_shape() -> None:
    """A5: 'The implementation works on the static tile shape (TileDataSrc::Rows/Cols) and does not
    consult GetValidRow/GetValidCol.'"""
    with device("a5", mode="auto"):
        src, dst = make("Vec f32 16x64"), make("Vec f32 64x16 valid 50x13")
        values = noise(float32, (16, 64))
        src.fill(values)
        small = make("Vec f32 16x64 valid 13x50")
        small.share(src)
        TTRANS(dst, small, make("Vec f32 64x16"))
        assert (bits(whole(dst).read()) == bits(values).T).all()


def test_a5_elements_outside_the_valid_region_may_be_undefined() -> None:
    """What was never written moves as such: only reading it later is an error."""
    with device("a5", mode="auto"):
        src, dst = make("Vec f32 16x64 valid 13x50"), make("Vec f32 64x16 valid 50x13")
        src.fill(noise(float32, (13, 50)))
        TTRANS(dst, src, make("Vec f32 64x16"))
        defined = whole(dst).defined()
        assert defined[:50, :13].all()
        assert not defined[50:].any()
        assert not defined[:, 13:].any()


# ---- the temporary tile ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NINE)
def test_basic_parameters(kind: str) -> None:
    """'RowStride: 32 for b8, 16 for b16/b32', 'b8 is uint8_t/int8_t, b16 uint16_t/int16_t/half/
    bfloat16_t, b32 uint32_t/int32_t/float': one valid row takes a whole RowStride of tmp."""
    size = dtype(kind).itemsize
    with device("a2a3", mode="auto"):
        src = make(f"Vec {kind} 64x64 valid 1x64")
        assert TTRANS.tmp_bytes(make(f"Vec {kind} 64x64"), src) == 64 * step(kind) * size


@pytest.mark.parametrize("kind", ["u8", "f16", "f32"])
def test_elem_per_block(kind: str) -> None:
    """'ElemPerBlock: 32 / sizeof(T), the number of elements of a 32-byte block': the source stride
    must be a multiple of it."""
    block = 32 // dtype(kind).itemsize
    with device("a2a3", mode="auto"):
        dst = make(f"Vec {kind} {2 * block}x64")
        assert TTRANS.tmp_bytes(dst, make(f"Vec {kind} 16x{2 * block}")) > 0
        assert TTRANS.tmp_bytes(dst, make(f"Vec {kind} {2 * block}x16 DN")) == 0  # its stride is 1


@pytest.mark.parametrize(
    ("kind", "dst_stride"),
    [("i8", 32), ("i8", 64), ("i16", 16), ("i16", 48)] + [("i32", n) for n in (8, 16, 24, 32)],
)
@pytest.mark.parametrize("src_blocks", [1, 2, 255, 256])
def test_alignment_condition(kind: str, dst_stride: int, src_blocks: int) -> None:
    """'When the strides are aligned (dstStride % RowStride == 0, srcStride % ElemPerBlock == 0,
    srcStride / ElemPerBlock <= 255) tmp is used for a fast transposition; otherwise a scalar copy
    is used and no tmp is needed.'"""
    size = dtype(kind).itemsize
    cols = src_blocks * 32 // size
    dst, src = f"Vec {kind} {cols}x{dst_stride}", f"Vec {kind} 8x{cols}"
    fast = dst_stride % step(kind) == 0 and src_blocks <= 255
    with device("cpu", mode="auto"):
        needed = TTRANS.tmp_bytes(make(dst), make(src))
    assert needed == (cols * step(kind) * size if fast else 0)
    tiny = "Vec u8 1x32"  # too small for anything
    assert ("TTRANS.tmp-size" in found("a2a3", dst, src, tiny)) == fast


@pytest.mark.parametrize("kind", ["u8", "f16", "f32"])
@pytest.mark.parametrize(("h", "w"), [(1, 32), (16, 64), (17, 50), (40, 7)])
def test_size_of_tmp_for_matrices(kind: str, h: int, w: int) -> None:
    """'[H, W] -> [W, H]: tmpSize = W * ceil(H / RowStride) * RowStride * sizeof(DType), where W is
    the columns (validCol) and H the rows (validRow); only needed when the strides are aligned.'"""
    size = dtype(kind).itemsize
    src, dst = f"Vec {kind} 64x64 valid {h}x{w}", f"Vec {kind} 64x64 valid {w}x{h}"
    expected = w * ceil(h / step(kind)) * step(kind) * size
    with device("a2a3", mode="auto"):
        assert TTRANS.tmp_bytes(make(dst), make(src)) == expected
        assert TTRANS.tmp_bytes(type(make(dst)), type(make(src))) == expected
    enough = round_up(expected, 32)
    assert not found("a2a3", dst, src, f"Vec u8 1x{enough}")
    if expected > 32:
        smaller = round_up(expected, 32) - 32
        assert found("a2a3", dst, src, f"Vec u8 1x{smaller}") == {"TTRANS.tmp-size"}


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "kirinx90"])
def test_a_tmp_that_is_too_small_is_refused_on_every_device(target: str) -> None:
    """'The C++ API needs tmp, of the size given by the formulas below.'"""
    tiles = "Vec f32 32x32", "Vec f32 32x32"
    assert not found(target, *tiles, "Vec f32 32x32")
    assert found(target, *tiles, "Vec f32 31x32") == {"TTRANS.tmp-size"}


def round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def test_tmp_is_lost_only_where_it_is_used() -> None:
    for stride, used in ((16, True), (8, False)):
        dst, src = f"Vec f32 64x{stride} valid 64x8", "Vec f32 8x64"
        _, _, tmp = transpose("a2a3", dst, src, "Vec f32 64x16")
        assert whole(tmp).is_defined() == (not used)


def test_tmp_stride_is_aligned_to_the_row_stride() -> None:
    """'tmpStride is aligned to RowStride': 17 rows take as much as 32."""
    with device("a2a3", mode="auto"):
        dst = make("Vec f16 64x32")
        sizes = {
            h: TTRANS.tmp_bytes(dst, make(f"Vec f16 32x64 valid {h}x64")) for h in (16, 17, 32)
        }
    assert sizes[16] * 2 == sizes[17] == sizes[32]


MAPS = [  # element type, N, C, H, W, C0
    ("f16", 2, 20, 4, 8, 16),
    ("u8", 1, 40, 4, 8, 32),
    ("f32", 1, 12, 2, 8, 8),
    ("f16", 1, 8, 4, 8, 4),
]


def conv(kind: str, layout: str, *shape: int) -> str:
    return f"Conv Vec {kind} {layout} {'x'.join(map(str, shape))}"


def sizes_of(dst: str, src: str) -> int:
    with device("a2a3", mode="auto"):
        return TTRANS.tmp_bytes(make(dst), make(src))


@pytest.mark.parametrize(("kind", "n", "c", "h", "w", "c0"), MAPS)
@pytest.mark.parametrize("groups", [(), (3,)], ids=["", "grouped"])
def test_size_of_tmp_for_feature_maps(
    groups: tuple[int, ...], kind: str, n: int, c: int, h: int, w: int, c0: int
) -> None:
    """'Forward [N, C, H, W] -> [N, C1, H, W, C0]: tmpSize = H * W * ceil(C0 / RowStride) *
    RowStride * sizeof(DType)', C0 rows and H*W columns. 'Backward: C0 * ceil(H * W / RowStride) *
    RowStride * sizeof(DType)', H*W rows and C0 columns. The same for GNCHW <-> GNC1HWC0."""
    rs, size, g = step(kind), dtype(kind).itemsize, "G" if groups else ""
    joined = conv(kind, g + "NCHW", *groups, n, c, h, w)
    split = conv(kind, g + "NC1HWC0", *groups, n, ceil(c / c0), h, w, c0)
    assert sizes_of(split, joined) == h * w * ceil(c0 / rs) * rs * size
    assert sizes_of(joined, split) == c0 * ceil(h * w / rs) * rs * size


@pytest.mark.parametrize("groups", [(), (2,)], ids=["", "grouped"])
def test_weights_need_no_tmp(groups: tuple[int, ...]) -> None:
    """'NC1HWC0 -> FRACTAL_Z and GNC1HWC0 -> FRACTAL_Z need no tmp space; they rearrange memory
    directly.'"""
    g, count = ("G", 2) if groups else ("", 1)
    src = conv("f16", g + "NC1HWC0", *groups, 20, 2, 2, 3, 16)
    dst = conv("f16", "FRACTAL_Z", count * 2 * 2 * 3, 2, 16, 16)
    assert sizes_of(dst, src) == 0
    assert not found("a2a3", dst, src, "Vec u8 1x32")


@pytest.mark.parametrize(
    ("kind", "n", "c", "d", "h", "w"),
    [("f16", 18, 20, 2, 2, 2), ("f32", 1, 5, 1, 3, 3), ("u8", 4, 40, 2, 1, 2)],
)
def test_size_of_tmp_for_3d_weights(kind: str, n: int, c: int, d: int, h: int, w: int) -> None:
    """'NCDHW -> FRACTAL_Z_3D: tmpSize = (N*C1*C0*H*W + max(N*C1*C0*H*W, H*W*ceil(C0/RowStride)*
    RowStride)) * sizeof(DType), C1 = (C + C0 - 1) / C0, N1 = (N + N0 - 1) / N0': a first plane, and
    a second one that serves either as a plane or as the tmp of a transposition."""
    rs, size = step(kind), dtype(kind).itemsize
    c0 = 32 // size
    c1, n1 = (c + c0 - 1) // c0, (n + 15) // 16
    plane = n * c1 * c0 * h * w
    expected = (plane + max(plane, h * w * ceil(c0 / rs) * rs)) * size
    src = conv(kind, "NCDHW", n, c, d, h, w)
    dst = conv(kind, "FRACTAL_Z_3D", d * c1 * h * w, n1, 16, c0)
    assert sizes_of(dst, src) == expected
    assert not found("a2a3", dst, src, f"Vec u8 1x{round_up(expected, 32)}")
    small = found("a2a3", dst, src, f"Vec u8 1x{round_up(expected, 32) - 32}")
    assert small == {"TTRANS.tmp-size"}


# ---- convolution tiles -------------------------------------------------------------------------

NCHW = "Conv Vec {} NCHW 2x32x4x8"
NC1HWC0 = "Conv Vec {} NC1HWC0 2x{}x4x8x{}"


@pytest.mark.parametrize("target", TARGETS)
def test_convolution_tiles_are_in_vec(target: str) -> None:
    """'Format conversion of ConvTiles on TileType::Vec is supported.'"""
    src, dst = NCHW.format("f16"), NC1HWC0.format("f16", 2, 16)
    assert not found(target, dst, src, ROOMY)
    mat = found(target, dst.replace("Vec", "Mat"), src.replace("Vec", "Mat"), ROOMY)
    assert mat == {"TTRANS.conv-location"}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", [t.name for t in ALL])
def test_element_types_of_convolution_tiles(target: str, kind: str) -> None:
    """'The element size is 1, 2 or 4 bytes. Element types are uint32_t, int32_t, float, uint16_t,
    int16_t, half, bfloat16_t, uint8_t, int8_t.'"""
    c0 = 32 // dtype(kind).itemsize
    src, dst = NCHW.format(kind), NC1HWC0.format(kind, 32 // c0, c0)
    assert found(target, dst, src, ROOMY) == refused_types(kind)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("c", [15, 16, 17, 32])
@pytest.mark.parametrize("c1", [1, 2, 3])
def test_c1_follows_from_c(target: str, c: int, c1: int) -> None:
    """'NCHW to NC1HWC0, where C1 == (C + C0 - 1) / C0.'"""
    got = found(
        target, f"Conv Vec f16 NC1HWC0 2x{c1}x4x8x16", f"Conv Vec f16 NCHW 2x{c}x4x8", ROOMY
    )
    assert got == (set() if c1 == (c + 15) // 16 else {"TTRANS.conv-shape"})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("h", "w", "aligned"), [(4, 8, True), (4, 4, True), (3, 4, False)])
def test_planes_are_aligned(target: str, h: int, w: int, aligned: bool) -> None:
    """'HW meets the alignment, H*W*sizeof(T) % 32 == 0' (the page prints '== 0')."""
    got = found(
        target, f"Conv Vec f16 NC1HWC0 1x1x{h}x{w}x16", f"Conv Vec f16 NCHW 1x16x{h}x{w}", ROOMY
    )
    assert got == (set() if aligned else {"TTRANS.conv-plane"})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["u8", "f16", "f32"])
@pytest.mark.parametrize("c0", [4, 8, 16, 32])
def test_c0_fills_a_block_or_is_4(target: str, kind: str, c0: int) -> None:
    """'C0 corresponds to c0_size: C0 * sizeof(T) == 32. C0 may also be 4.'"""
    got = found(target, NC1HWC0.format(kind, 32 // c0, c0), NCHW.format(kind), ROOMY)
    good = c0 == 4 or c0 * dtype(kind).itemsize == 32
    assert got == (set() if good else {"TTRANS.conv-block"})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("n1", "n0", "rules"),
    [(2, 16, ""), (1, 16, "shape"), (1, 32, "filters"), (2, 32, "shape filters")],
)
def test_n1_and_n0_of_weights(target: str, n1: int, n0: int, rules: str) -> None:
    """'NC1HWC0 to FRACTAL_Z, where N1 == (N + N0 - 1) / N0. N0 is 16.'"""
    got = found(
        target, f"Conv Vec f16 FRACTAL_Z 12x{n1}x{n0}x16", "Conv Vec f16 NC1HWC0 20x2x2x3x16", ROOMY
    )
    assert got == {f"TTRANS.conv-{rule}" for rule in rules.split()}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("shape", "rules"),
    [
        ("16x2x16x16", ""),
        ("8x2x16x16", "shape"),
        ("16x1x16x16", "shape"),
        ("16x2x8x16", "shape filters"),
        ("16x3x8x16", "filters"),
    ],
)
def test_shape_of_3d_weights(target: str, shape: str, rules: str) -> None:
    """'NCDHW to FRACTAL_Z_3D, target shape [D * C1 * H * W, N1, N0, C0], where C1 == (C + C0 - 1) /
    C0, N1 == (N + N0 - 1) / N0, N0 is 16.'"""
    got = found(
        target, f"Conv Vec f16 FRACTAL_Z_3D {shape}", "Conv Vec f16 NCDHW 18x20x2x2x2", ROOMY
    )
    assert got == {f"TTRANS.conv-{rule}" for rule in rules.split()}


@pytest.mark.parametrize(
    ("kind", "c0", "target"),
    [("f4e2m1x2", 64, "cpu"), ("u8", 32, "a2a3"), ("f16", 16, "a2a3"), ("f32", 8, "a2a3")],
)
def test_c0_of_3d_weights_depends_on_the_element_width(kind: str, c0: int, target: str) -> None:
    """'C0 depends on the element width: 64 for 4-bit data, 32 for 8-bit, 16 for 16-bit, 8 for
    32-bit.'"""
    for width in (8, 16, 32, 64):
        got = found(
            target,
            f"Conv Vec {kind} FRACTAL_Z_3D {4 * ceil(20 / width)}x1x16x{width}",
            f"Conv Vec {kind} NCDHW 4x20x1x2x2",
            ROOMY,
        )
        assert got == (set() if width == c0 else {"TTRANS.conv-block-3d"})


def element_of(pair: str, src: Any, d: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """The element of the source that belongs at position `d` of the destination, or None: written
    down once more, element by element."""
    if pair == "NCHW-NC1HWC0":
        n, c1, h, w, c0 = d
        at = (n, c1 * shape[4] + c0, h, w)
    elif pair == "GNCHW-GNC1HWC0":
        g, n, c1, h, w, c0 = d
        at = (g, n, c1 * shape[5] + c0, h, w)
    elif pair == "NC1HWC0-NCHW":
        n, c, h, w = d
        at = (n, c // src.shape[4], h, w, c % src.shape[4])
    elif pair == "GNC1HWC0-GNCHW":
        g, n, c, h, w = d
        at = (g, n, c // src.shape[5], h, w, c % src.shape[5])
    elif pair == "NC1HWC0-FRACTAL_Z":
        k, n1, n0, c0 = d
        _, c1s, hs, ws, _ = src.shape
        at = (n1 * 16 + n0, k // (hs * ws) % c1s, k // ws % hs, k % ws, c0)
    elif pair == "GNC1HWC0-FRACTAL_Z":
        k, n1, n0, c0 = d
        _, _, c1s, hs, ws, _ = src.shape
        at = (k // (c1s * hs * ws), n1 * 16 + n0, k // (hs * ws) % c1s, k // ws % hs, k % ws, c0)
    else:
        k, n1, n0, c0 = d
        _, cs, _, hs, ws = src.shape
        c1s = ceil(cs / shape[3])
        c1 = k // (hs * ws) % c1s
        at = (n1 * 16 + n0, c1 * shape[3] + c0, k // (c1s * hs * ws), k // ws % hs, k % ws)
    inside = all(i < n for i, n in zip(at, src.shape, strict=True))
    return src[at] if inside else None


SEVEN = [
    ("NCHW-NC1HWC0", (2, 20, 4, 8), (2, 2, 4, 8, 16)),
    ("NC1HWC0-NCHW", (2, 2, 4, 8, 16), (2, 20, 4, 8)),
    ("GNCHW-GNC1HWC0", (2, 2, 20, 4, 4), (2, 2, 2, 4, 4, 16)),
    ("GNC1HWC0-GNCHW", (2, 2, 2, 4, 4, 16), (2, 2, 32, 4, 4)),
    ("NC1HWC0-FRACTAL_Z", (20, 2, 2, 3, 16), (12, 2, 16, 16)),
    ("GNC1HWC0-FRACTAL_Z", (2, 18, 1, 2, 3, 16), (12, 2, 16, 16)),
    ("NCDHW-FRACTAL_Z_3D", (18, 20, 2, 2, 2), (16, 2, 16, 16)),
]


@pytest.mark.parametrize("target", [*TARGETS, "kirin9030", "kirinx90", "cpu"])
@pytest.mark.parametrize(("pair", "source", "result"), SEVEN, ids=[s[0] for s in SEVEN])
def test_the_seven_conversions(
    target: str, pair: str, source: tuple[int, ...], result: tuple[int, ...]
) -> None:
    """'[N, C, H, W] -> [N, C1, H, W, C0]' and back, '[G, N, C, H, W] -> [G, N, C1, H, W, C0]' and
    back, 'NC1HWC0 -> FRACTAL_Z', 'GNC1HWC0 -> FRACTAL_Z' and '[N, C, D, H, W] -> [D, C1, H, W, N1,
    N0, C0]': each element lands where its indices say."""
    before, after = pair.split("-")
    src, dst = conv("f16", before, *source), conv("f16", after, *result)
    with device(target, mode="auto", defines={"PTO_UBUF_SIZE_BYTES": 262144}):
        tiles = make(dst), make(src), make(ROOMY)
        flood(tiles[0])
        tiles[1].fill(noise(float16, source))
        TTRANS(*tiles)
        values, got = bits(tiles[1].numpy()), bits(tiles[0].numpy())
    keeps = target == "cpu" or pair == "NC1HWC0-FRACTAL_Z"
    missing = 0x5A5A if keeps else 0  # channels beyond C, filters beyond N
    for position in np.ndindex(result):
        expected = element_of(pair, values, position, result)
        assert got[position] == (missing if expected is None else expected)


# ---- examples ----------------------------------------------------------------------------------


def test_example_auto() -> None:
    """The page's `example_auto`."""
    with device("a2a3", mode="auto"):
        SrcT = Tile[TileType.Vec, float32, 16, 16]
        DstT = Tile[TileType.Vec, float32, 16, 16]
        TmpT = Tile[TileType.Vec, float32, 16, 16]
        src, dst, tmp = SrcT(), DstT(), TmpT()
        values = noise(float32, (16, 16))
        src.fill(values)
        TTRANS(dst, src, tmp)
        assert (bits(dst.numpy()) == bits(values).T).all()
        assert TTRANS.tmp_bytes(DstT, SrcT) == 16 * 16 * 4  # just what the example provides


def test_example_manual() -> None:
    """The page's `example_manual`: src at 0x1000, dst at 0x2000, tmp at 0x3000."""
    with device("a2a3", mode="manual"):
        SrcT = Tile[TileType.Vec, float32, 16, 16]
        DstT = Tile[TileType.Vec, float32, 16, 16]
        TmpT = Tile[TileType.Vec, float32, 16, 16]
        src, dst, tmp = SrcT(), DstT(), TmpT()
        TASSIGN(src, 0x1000)
        TASSIGN(dst, 0x2000)
        TASSIGN(tmp, 0x3000)
        values = noise(float32, (16, 16))
        src.fill(values)
        TTRANS(dst, src, tmp)
        assert (bits(dst.numpy()) == bits(values).T).all()


def test_manual_tiles_do_not_overlap() -> None:
    with device("a2a3", mode="manual"):
        kind = Tile[TileType.Vec, float32, 16, 16]
        src, dst, tmp = kind(), kind(), kind()
        for tile, at in ((src, 0x1000), (dst, 0x1200), (tmp, 0x3000)):
            TASSIGN(tile, at)
        src.fill(0)
        with pytest.raises(ProgramError, match="do not overlap"):
            TTRANS(dst, src, tmp)
