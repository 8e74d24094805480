"""The TLOAD page, point by point: each test quotes what it proves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.dtypes import ALL, dtype
from tests.operands import bits, codes, flood, instruction_in, make, noise, printed, whole

ELEVEN = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32"]
A5_TYPES = [*ELEVEN, *["i4", "f8e4m3", "f8e5m2", "f8e8m0", "hif8", "f4e2m1x2", "f4e1m2x2"]]


def lines(kind: str) -> int:
    """Elements of a 32-byte block."""
    return 32 // dtype(kind).itemsize


def load(target: str, tile: str, view: str) -> tuple[Any, Any]:
    """Load on a fresh machine; return tile and tensor."""
    with device(target, mode="auto"):
        dst, src = make(tile), make(view)
        TLOAD(dst, src)
        return dst, src


def assert_loaded(dst: Any, matrix: Any) -> None:
    valid = whole(dst).read()[: dst.vr, : dst.vc]
    assert (bits(valid) == bits(matrix)).all()


# ---- summary and meaning -----------------------------------------------------------------------


def test_loads_from_a_global_tensor_into_a_tile() -> None:
    """'Load data from a GlobalTensor (GM) into a Tile.'"""
    dst, src = load("a2a3", "Vec f32 16x64", "GM f32 16x64")
    assert_loaded(dst, src.numpy()[0, 0, 0])


@pytest.mark.parametrize(("r0", "c0"), [(0, 0), (3, 0), (0, 5), (7, 11)])
def test_two_dimensional_view_with_a_base_offset(r0: int, c0: int) -> None:
    """'Conceptually (2-D view with a base offset): dst[i, j] = src[r0 + i, c0 + j].'"""
    memory = noise(float32, (32, 64))
    with device("a2a3", mode="auto"):
        dst = make("Vec f32 16x32")
        TLOAD(dst, GlobalTensor(memory)[r0 : r0 + 16, c0 : c0 + 32])
        for i in (0, 1, 15):
            for j in (0, 1, 31):
                assert bits(dst.numpy())[i, j] == bits(memory)[r0 + i, c0 + j]


def test_meaning_depends_on_the_shape_and_stride_of_the_tensor() -> None:
    """'The notation depends on shape and stride of the GlobalTensor ...'"""
    memory = noise(float16, (5000,))
    shape, stride = (2, 3, 2, 4, 24), (1024, 336, 160, 40, 1)
    with device("a2a3", mode="auto"):
        dst = make("Vec f16 48x32 valid 48x24")
        TLOAD(dst, GlobalTensor[float16, Shape[shape], Stride[stride]](memory))
        rows = [
            memory[a * 1024 + b * 336 + c * 160 + d * 40 :][:24]
            for a in range(2)
            for b in range(3)
            for c in range(2)
            for d in range(4)
        ]
        assert_loaded(dst, np.stack(rows))


def test_meaning_depends_on_the_layout_of_the_tile() -> None:
    """'... and on the layout of the Tile': the same matrix, three arrangements in memory."""
    nd, source = load("a2a3", "Mat f16 32x64", "GM f16 32x64")
    matrix = source.numpy()[0, 0, 0]
    nz = with_same(matrix, "Mat f16 32x64 NZ")
    assert (bits(raw(nd)) == bits(matrix).reshape(-1)).all()
    boxes = matrix.reshape(32, 4, 16).transpose(1, 0, 2)
    assert (bits(raw(nz)) == bits(boxes).reshape(-1)).all()


def raw(tile: Any) -> Any:
    start = tile.address
    return tile.storage.data[start : start + tile.spec.nbytes].view(tile.spec.dtype.np)


def with_same(matrix: Any, tile: str) -> Any:
    with device("a2a3", mode="auto"):
        dst = make(tile)
        TLOAD(dst, GlobalTensor(np.ascontiguousarray(matrix)))
        return dst


# ---- assembly ----------------------------------------------------------------------------------

MEM = "!pto.partition_tensor_view<16x16xf32>"
BUF = (
    "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=16, v_row=16, v_col=16, blayout=row_major, "
    "slayout=none_box, fractal=512, pad=0>"
)
SYNC = """\
.arg %sv : !pto.memref<16x16xf32>;
.const %c0 = 0 : index;
%t0 = tload %sv[%c0, %c0] : (!pto.memref<16x16xf32>, index, index) -> !pto.tile<16x16xf32>;
"""
LEVEL_1 = f"""\
func.func @f(%mem: {MEM}) {{
  %dst = pto.tload %mem : {MEM} -> !pto.tile<mat, f32, 16, 16, col_major, row_major, 512, null>
  return
}}
"""
LEVEL_2 = f"""\
func.func @f(%mem: {MEM}, %dst: {BUF}) {{
  pto.tload ins(%mem : {MEM}) outs(%dst : {BUF})
  return
}}
"""


@pytest.mark.parametrize("text", [SYNC, LEVEL_1, LEVEL_2], ids=["sync", "level1", "level2"])
def test_assembly_forms(text: str) -> None:
    """'%t0 = tload %sv[%c0, %c0] : ...', '%dst = pto.tload %mem : ... -> ...' and
    'pto.tload ins(%mem : ...) outs(%dst : ...)' are the three written forms."""
    assert instruction_in(text).insn is TLOAD.insn
    assert {line.strip() for line in text.splitlines()} <= set(printed(text))


def test_assembly_examples() -> None:
    """'# Manual mode: ...', '%dst = pto.tload %mem : !pto.partition_tensor_view<MxNxdtype> ->' with
    the tile type on the next line; 'pto.tload ins(...) outs(%dst : !pto.tile_buf<...>)'."""
    broken = LEVEL_1.replace("-> !pto", "->\n!pto").replace("  %dst", "  # Manual mode\n  %dst")
    assert printed(broken) == printed(LEVEL_1)
    elided = LEVEL_2.replace(f"outs(%dst : {BUF})", "outs(%dst : !pto.tile_buf<...>)")
    assert printed(elided) == printed(LEVEL_2)
    elided = SYNC.replace("(!pto.memref<16x16xf32>, index", "(!pto.memref<...>, index")
    assert printed(elided) == printed(SYNC)


# ---- C++ interface -----------------------------------------------------------------------------


def test_interface_takes_destination_first_and_returns_an_event() -> None:
    """'RecordEvent TLOAD(TileData &dst, GlobalData &src, WaitEvents &... events)'."""
    with device("a2a3", mode="auto"):
        dst, src = make("Vec f32 16x16"), make("GM f32 16x16")
        event = Event[Op.TLOAD, Op.TADD](TLOAD(dst, src))
        TLOAD(dst, src, event)
        with pytest.raises(ProgramError):
            TLOAD(src, dst)


def test_type_arguments_may_be_written_out() -> None:
    """'template <typename TileData, typename GlobalData, typename... WaitEvents>'."""
    with device("a2a3", mode="auto"):
        dst, src = make("Vec f32 16x16"), make("GM f32 16x16")
        TLOAD[type(dst), type(src)](dst, src)
        with pytest.raises(ProgramError, match="type argument"):
            TLOAD[type(make("Vec f16 16x16"))](dst, src)


# ---- constraints of A2A3 -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [t.name for t in ALL])
def test_a2a3_element_types(kind: str) -> None:
    """A2A3: 'TileData::DType is one of int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t,
    int64_t, uint64_t, half, bfloat16_t, float.'"""
    found = codes("TLOAD", "a2a3", f"Vec {kind} 16x64", f"GM {kind} 16x64")
    assert found == (set() if kind in ELEVEN else {"SA-0010"})


@pytest.mark.parametrize("kind", ELEVEN)
def test_a2a3_loads_every_element_type_bit_by_bit(kind: str) -> None:
    dst, src = load("a2a3", f"Vec {kind} 16x64", f"GM {kind} 16x64")
    assert_loaded(dst, src.numpy()[0, 0, 0])


@pytest.mark.parametrize("loc", TileType.__members__)
def test_a2a3_destination_is_vec_or_mat(loc: str) -> None:
    """A2A3: 'The destination tile location is TileType::Vec or TileType::Mat.'"""
    found = codes("TLOAD", "a2a3", f"{loc} f16 32x64 ND", "GM f16 32x64")
    assert ("SA-0032" in found) == (loc not in ("Vec", "Mat"))


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "kirinx90", "cpu"])
def test_element_sizes_match(target: str) -> None:
    """'sizeof(TileData::DType) == sizeof(GlobalData::DType)' - the size, not the type."""
    assert not codes("TLOAD", target, "Vec i32 16x64", "GM f32 16x64")
    assert "TLOAD.same-element-size" in codes("TLOAD", target, "Vec f16 16x64", "GM f32 16x64")


def test_elements_of_equal_size_are_reinterpreted() -> None:
    dst, src = load("a2a3", "Vec i32 16x64", "GM f32 16x64")
    assert (dst.numpy() == src.numpy()[0, 0, 0].view(np.int32)).all()


@pytest.mark.parametrize("dim", range(5))
def test_a2a3_shapes_are_positive_at_run_time(dim: int) -> None:
    """A2A3: 'At run time all src.GetShape(dim) and dst.GetValidRow()/GetValidCol() are > 0.'"""
    shape = [1, 1, 1, 16, 64]
    shape[dim] = 0
    view = "GM f32 " + "x".join(map(str, shape))
    assert "PA-0034" in codes("TLOAD", "a2a3", "Vec f32 16x64", view)


@pytest.mark.parametrize("valid", [(0, 64), (16, 0)])
def test_a2a3_valid_sizes_are_positive_at_run_time(valid: tuple[int, int]) -> None:
    kind = Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, DYNAMIC, DYNAMIC]
    with device("a2a3", mode="auto"):
        dst = kind(*valid)
        with pytest.raises(ProgramError) as error:
            TLOAD(dst, make("GM f32 16x64"))
        assert "PA-0034" in error.value.codes


LAYOUTS = ("ND", "DN", "NZ", "ZN", "ZZ", "NN")
VEC_PAIRS = {("ND", "ND"), ("DN", "DN"), ("NZ", "NZ")}
A2A3_MAT_PAIRS = VEC_PAIRS | {("ND", "NZ"), ("DN", "ZN")}
A5_MAT_PAIRS = A2A3_MAT_PAIRS | {("DN", "NZ")}


@pytest.mark.parametrize("tile", LAYOUTS)
@pytest.mark.parametrize("view", ["ND", "DN", "NZ"])
@pytest.mark.parametrize(
    ("target", "loc", "pairs", "code"),
    [
        ("a2a3", "Vec", VEC_PAIRS, "SA-0235"),
        ("a2a3", "Mat", A2A3_MAT_PAIRS, "SA-0234"),
        ("a5", "Vec", VEC_PAIRS, "SA-0104"),
        ("a5", "Mat", A5_MAT_PAIRS, "SA-0082"),
    ],
)
def test_layout_pairs(
    target: str, loc: str, pairs: set[tuple[str, str]], code: str, view: str, tile: str
) -> None:
    """A2A3: 'Vec loads support only matching layouts: ND->ND, DN->DN, NZ->NZ.' 'Mat loads support
    ND->ND, DN->DN, NZ->NZ, and ND->NZ and DN->ZN.' A5: 'Vec loads need one of these pairs: ND with
    row-major + NoneBox, DN with column-major + NoneBox, NZ with SLayout::RowMajor'; 'Mat loads are
    further restricted by TLoadCubeCheck (only certain ND/DN/NZ conversions ...)'."""
    found = codes("TLOAD", target, f"{loc} f16 32x64 {tile}", f"GM f16 32x64 {view}")
    if (view, tile) in pairs:
        assert not found
    else:
        assert code in found


@pytest.mark.parametrize(("view", "tile"), sorted(A2A3_MAT_PAIRS))
@pytest.mark.parametrize("kind", ["i8", "bf16", "f32"])
def test_every_pair_loads_the_same_matrix(view: str, tile: str, kind: str) -> None:
    """Whatever the two arrangements, element (i, j) of the view becomes element (i, j)."""
    dst, src = load("a2a3", f"Mat {kind} 32x64 {tile}", f"GM {kind} 32x64 {view}")
    assert_loaded(dst, matrix_of(src, view))


def matrix_of(src: Any, layout: str) -> Any:
    """The logical matrix of a view, by the definition of its layout."""
    five = src.numpy()
    if layout == "NZ":
        return five.transpose(2, 3, 0, 1, 4).reshape(five.shape[2] * 16, -1)
    return five[0, 0, 0]


@pytest.mark.parametrize(
    ("tile", "view"), [("NZ", "ND"), ("ZN", "DN")], ids=["ND to NZ", "DN to ZN"]
)
def test_a2a3_box_conversion_takes_one_matrix_into_512_byte_boxes(tile: str, view: str) -> None:
    """A2A3: 'For ND->NZ or DN->ZN: GlobalData::staticShape[0..2] == 1 and
    TileData::SFractalSize == 512.'"""
    shape_code = {"NZ": "SA-0057", "ZN": "SA-0056"}[tile]
    for dim in range(3):
        for size in ("2", "?"):  # not 1, and not known when compiling
            sizes = ["1", "1", "1", "32", "64"]
            sizes[dim] = size
            found = codes(
                "TLOAD", "a2a3", f"Mat f32 32x64 {tile}", f"GM f32 {'x'.join(sizes)} {view}"
            )
            assert shape_code in found
    assert "SA-0220" in codes("TLOAD", "a2a3", f"Mat f32 32x64 {tile}/1024", f"GM f32 32x64 {view}")
    assert not codes("TLOAD", "a2a3", f"Mat f32 32x64 {tile}", f"GM f32 32x64 {view}")


@pytest.mark.parametrize("kind", ["i64", "u64"])
@pytest.mark.parametrize(
    ("tile", "view", "legal"),
    [
        ("Vec {} 16x16", "ND", True),
        ("Vec {} 16x16 DN", "DN", True),
        ("Mat {} 16x16", "ND", True),
        ("Mat {} 16x16 DN", "DN", True),
        ("Vec {} 16x16 NZ", "NZ", False),
        ("Mat {} 16x16 NZ", "ND", False),
        ("Mat {} 16x16 ZN", "DN", False),
    ],
)
def test_a2a3_eight_byte_elements(kind: str, tile: str, view: str, legal: bool) -> None:
    """A2A3: 'For int64_t/uint64_t only ND->ND or DN->DN is supported.'"""
    found = codes("TLOAD", "a2a3", tile.format(kind), f"GM {kind} 16x16 {view}")
    assert found == set() if legal else "SA-0233" in found


# ---- constraints of A5 -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", A5_TYPES)
def test_a5_element_sizes(kind: str) -> None:
    """A5: 'sizeof(TileData::DType) is 1, 2, 4 or 8 bytes and matches sizeof(GlobalData::DType).'"""
    assert dtype(kind).itemsize in (1, 2, 4, 8)
    assert not codes("TLOAD", "a5", f"Vec {kind} 16x64", f"GM {kind} 16x64")


@pytest.mark.parametrize("kind", ["i64", "u64", "f32"])
@pytest.mark.parametrize("pad", ["Null", "Zero", "Max", "Min"])
def test_a5_padding_of_eight_byte_elements(kind: str, pad: str) -> None:
    """A5: 'For int64_t/uint64_t, TileData::PadVal is PadValue::Null or PadValue::Zero.'"""
    found = codes("TLOAD", "a5", f"Vec {kind} 16x16 pad {pad}", f"GM {kind} 16x16")
    bad = kind != "f32" and pad in ("Max", "Min")
    assert found == ({"SA-0223"} if bad else set())


@pytest.mark.parametrize(
    ("valid", "shape", "code"),
    [
        ("13x50", "1x1x1x13x50", None),
        ("13x50", "1x1x1x13x48", "SA-0108"),
        ("13x50", "1x1x1x12x50", "SA-0109"),
        ("12x50", "1x2x3x2x50", None),
        ("12x50", "2x2x3x2x50", "SA-0109"),
    ],
)
def test_a5_static_sizes_agree(valid: str, shape: str, code: str | None) -> None:
    """A5: 'For row-major ND->ND with shapes known at compile time, TileData::ValidCol equals
    GlobalData::staticShape[4] and TileData::ValidRow equals the product of staticShape[0..3].'"""
    found = codes("TLOAD", "a5", f"Vec f32 16x64 valid {valid}", f"GM f32 {shape}")
    assert found == ({code} if code else set())


def test_a5_sizes_known_only_at_run_time_follow_the_tile() -> None:
    """'The implementation uses dst.GetValidRow() / dst.GetValidCol() as the transfer size': here
    they lie past the array."""
    kind = Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, DYNAMIC, DYNAMIC]
    with device("a5", mode="auto"):
        TLOAD(kind(13, 50), make("GM f32 13x50"))
        with pytest.raises(ProgramError, match="the view src lies inside its array"):
            TLOAD(kind(13, 50), make("GM f32 13x48"))


@pytest.mark.parametrize(
    ("tile", "view", "code"),
    [
        ("Mat u8 16400x32", "GM u8 16400x32", "SA-0224"),
        ("Mat u8 1024x544", "GM u8 1024x544", "SA-0222"),
        ("Mat f32 32x64 NZ/1024", "GM f32 32x64", "SA-0221"),
        ("Mat i64 16x16 NZ", "GM i64 16x16", "SA-0041"),
        ("Mat f16 32x64 NZ", "GM f16 1x1x2x16x64", "SA-0055"),
        ("Mat f4e2m1x2 64x64 NZ", "GM f4e2m1x2 64x64 DN", "SA-0021"),
    ],
)
def test_a5_mat_loads_pass_the_cube_check(tile: str, view: str, code: str) -> None:
    """A5: 'Mat loads are further restricted by TLoadCubeCheck (for example, only certain ND/DN/NZ
    conversions, and L1 size limits).'"""
    assert code in codes("TLOAD", "a5", tile, view)


MX = [
    ("MX_A_ZZ", "32x4 ZZ/32", "32x4"),
    ("MX_A_ND", "32x4 ZZ/32", "32x4"),
    ("MX_A_DN", "32x4 ZZ/32", "32x4"),
    ("MX_B_NN", "4x32 NN/32", "4x32"),
    ("MX_B_ND", "4x32 NN/32", "4x32"),
    ("MX_B_DN", "4x32 NN/32", "4x32"),
]


@pytest.mark.parametrize(("layout", "tile", "size"), MX)
def test_a5_mx_scales(layout: str, tile: str, size: str) -> None:
    """A5: 'Mat loads also handle MX formats: MX_A_ZZ/MX_A_ND/MX_A_DN to ZZ (for scale A) and
    MX_B_NN/MX_B_ND/MX_B_DN to NN (for scale B).' (The page once writes MX_ADN for MX_A_DN.)"""
    dst, src = load("a5", f"Mat f8e8m0 {tile}", f"GM f8e8m0 {size} {layout}")
    five = src.numpy()
    found = whole(dst).read()
    for r in range(dst.vr):
        for c in range(dst.vc):
            i = {
                "MX_A_ZZ": (0, r // 16, c // 2, r % 16, c % 2),
                "MX_A_ND": (0, 0, r, c // 2, c % 2),
                "MX_A_DN": (0, 0, c // 2, r, c % 2),
                "MX_B_NN": (0, c // 16, r // 2, c % 16, r % 2),
                "MX_B_ND": (0, 0, r // 2, c, r % 2),
                "MX_B_DN": (0, 0, c, r // 2, r % 2),
            }[layout]
            assert bits(found)[r, c] == bits(five)[i]


@pytest.mark.parametrize(("layout", "tile", "size"), MX)
def test_a5_mx_scales_go_to_their_own_boxes(layout: str, tile: str, size: str) -> None:
    other = tile.replace("ZZ", "NN") if "ZZ" in tile else tile.replace("NN", "ZZ")
    assert "TLOAD.mx-tile" in codes(
        "TLOAD", "a5", f"Mat f8e8m0 {other}", f"GM f8e8m0 {size} {layout}"
    )
    assert "TLOAD.mx-target" in codes(
        "TLOAD", "a2a3", f"Mat f8e8m0 {tile}", f"GM f8e8m0 {size} {layout}"
    )


@pytest.mark.parametrize(("layout", "tile"), [("MX_A_ZZ", "32x4 ZZ/32"), ("MX_B_NN", "4x32 NN/32")])
@pytest.mark.parametrize("last", [(16, 2), (8, 2), (16, 4), ("?", 2), (16, "?")])
def test_a5_mx_boxes_are_16_by_2(layout: str, tile: str, last: tuple[Any, Any]) -> None:
    """A5: 'For MX_A_ZZ/MX_B_NN, GlobalData::staticShape[3] == 16 and staticShape[4] == 2.'"""
    shape = f"1x2x2x{last[0]}x{last[1]}"
    found = codes("TLOAD", "a5", f"Mat f8e8m0 {tile}", f"GM f8e8m0 {shape} {layout}")
    assert bool({"TLOAD.mx-box", "TLOAD.mx-open"} & set(found)) == (last != (16, 2))


@pytest.mark.parametrize(("layout", "tile", "size"), [m for m in MX if m[0][-2:] in ("ND", "DN")])
@pytest.mark.parametrize(("dim", "value"), [(0, "2"), (1, "2"), (4, "4"), (0, "?"), (4, "?")])
def test_a5_mx_plain_views_are_pairs(
    layout: str, tile: str, size: str, dim: int, value: str
) -> None:
    """A5: 'For MX_A_ND/MX_A_DN/MX_B_ND/MX_B_DN, staticShape[0] == 1, staticShape[1] == 1 and
    staticShape[4] == 2.'"""
    good = {"MX_A_ND": "1x1x32x2x2", "MX_A_DN": "1x1x2x32x2", "MX_B_ND": "1x1x2x32x2"}
    shape = good.get(layout, "1x1x32x2x2").split("x")
    legal = codes("TLOAD", "a5", f"Mat f8e8m0 {tile}", f"GM f8e8m0 {'x'.join(shape)} {layout}")
    assert not legal
    shape[dim] = value
    found = codes("TLOAD", "a5", f"Mat f8e8m0 {tile}", f"GM f8e8m0 {'x'.join(shape)} {layout}")
    assert {"TLOAD.mx-pairs", "TLOAD.mx-open"} & set(found)


@pytest.mark.parametrize("cols", [2, 3, 4])
def test_a5_scale_a_has_even_valid_columns(cols: int) -> None:
    """A5: 'For scale A, dst.GetValidCol() % 2 == 0.'"""
    found = codes(
        "TLOAD", "a5", f"Mat f8e8m0 32x4 ZZ/32 valid 32x{cols}", "GM f8e8m0 1x2x2x16x2 MX_A_ZZ"
    )
    assert ("TLOAD.mx-even" in found) == (cols % 2 == 1)


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_a5_scale_b_has_even_valid_rows(rows: int) -> None:
    """A5: 'For scale B, dst.GetValidRow() % 2 == 0.'"""
    found = codes(
        "TLOAD", "a5", f"Mat f8e8m0 4x32 NN/32 valid {rows}x32", "GM f8e8m0 1x2x2x16x2 MX_B_NN"
    )
    assert ("TLOAD.mx-even" in found) == (rows % 2 == 1)


# ---- the valid region --------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("valid", [(1, 8), (5, 24), (16, 64)])
def test_transfer_has_the_size_of_the_valid_region(target: str, valid: tuple[int, int]) -> None:
    """'The implementation uses dst.GetValidRow() / dst.GetValidCol() as the transfer size.'"""
    rows, cols = valid
    with device(target, mode="auto"):
        dst = make(f"Vec f32 16x64 valid {rows}x{cols}")
        flood(dst)
        src = make(f"GM f32 {rows}x{cols}")
        TLOAD(dst, src)
        assert_loaded(dst, src.numpy()[0, 0, 0])
        everything = whole(dst).read().view(np.uint32)
        assert (everything[rows:] == 0x5A5A5A5A).all()
        assert (everything[:, cols:] == 0x5A5A5A5A).all()


@pytest.mark.parametrize(
    ("tile", "view"),
    [
        ("Vec f32 16x64 valid 13x50", "GM f32 13x48"),
        ("Vec f32 16x64 valid 13x50", "GM f32 12x50"),
        ("Vec f32 64x16 DN valid 50x13", "GM f32 50x12 DN"),
    ],
)
def test_a_view_of_another_size_is_refused(tile: str, view: str) -> None:
    for target in ("a2a3", "a5", "kirin9030", "kirinx90", "cpu"):
        assert codes("TLOAD", target, tile, view)


# ---- examples ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [float32, float16, int32])
def test_example_auto(kind: Any) -> None:
    """The page's `example_auto`: no address, the compiler places the tile."""
    memory = noise(kind, (16, 16))
    TileT = Tile[TileType.Vec, kind, 16, 16]
    GShape = Shape[1, 1, 1, 16, 16]
    GStride = BaseShape2D[kind, 16, 16, Layout.ND]
    GTensor = GlobalTensor[kind, GShape, GStride, Layout.ND]
    with device("a2a3", mode="auto"):
        gin = GTensor(memory)
        t = TileT()
        TLOAD(t, gin)
        assert (bits(t.numpy()) == bits(memory)).all()


@pytest.mark.parametrize("kind", [float32, float16, int32])
def test_example_manual(kind: Any) -> None:
    """The page's `example_manual`: the tile is bound to 0x1000 first."""
    memory = noise(kind, (16, 16))
    TileT = Tile[TileType.Vec, kind, 16, 16]
    GShape = Shape[1, 1, 1, 16, 16]
    GStride = BaseShape2D[kind, 16, 16, Layout.ND]
    GTensor = GlobalTensor[kind, GShape, GStride, Layout.ND]
    with device("a2a3", mode="manual") as machine:
        gin = GTensor(memory)
        t = TileT()
        TASSIGN(t, 0x1000)
        TLOAD(t, gin)
        at = machine.core.memory(TileType.Vec).data[0x1000 : 0x1000 + memory.nbytes]
        assert (at == memory.reshape(-1).view(np.uint8)).all()


def test_manual_mode_binds_resources_first() -> None:
    """'Manual mode: bind the resources explicitly, then issue the instruction.'"""
    with device("a2a3", mode="manual"), pytest.raises(ProgramError, match="has no address"):
        TLOAD(Tile[TileType.Vec, float32, 16, 16](), make("GM f32 16x16"))
