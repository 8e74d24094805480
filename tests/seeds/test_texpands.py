"""The TEXPANDS page, point by point: each test quotes what it proves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.dtypes import ALL, dtype
from tests.operands import codes, flood, instruction_in, make, printed, whole

A2A3_VEC = "i32 i16 f16 f32"
A2A3_MAT = "i8 u8 i16 u16 i32 u32 f16 bf16 f32"
A5_BOTH = "u8 i8 u16 i16 u32 i32 f16 f32"


def expand(target: str, tile: str, scalar: float) -> Any:
    """Fill a tile whose bytes were all 0x5A."""
    with device(target, mode="auto"):
        dst = make(tile)
        flood(dst)
        TEXPANDS(dst, scalar)
        return dst


def legal(target: str, tile: str) -> bool:
    return not codes("TEXPANDS", target, tile, "1")


# ---- summary and meaning -----------------------------------------------------------------------


def test_broadcasts_a_scalar_into_the_destination() -> None:
    """'Broadcast a scalar into the destination Tile.'"""
    assert (expand("a2a3", "Vec f32 16x64", 2.5).numpy() == 2.5).all()


def test_each_element_of_the_valid_region_is_the_scalar() -> None:
    """'For each element (i, j) in the valid region: dst[i, j] = scalar.'"""
    dst = expand("a2a3", "Vec i32 16x64 valid 13x50", -7)
    everything = whole(dst).read()
    inside = np.zeros((16, 64), bool)
    inside[:13, :50] = True
    assert (everything[inside] == -7).all()
    assert (everything[~inside] == 0x5A5A5A5A).all()


# ---- assembly ----------------------------------------------------------------------------------

BUF = (
    "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=16, v_row=16, v_col=16, blayout=row_major, "
    "slayout=none_box, fractal=512, pad=0>"
)
SYNC = """\
.const %scalar = 0.0 : f32;
%dst = texpands %scalar : f32, !pto.tile<16x16xf32>;
"""
LEVEL_1 = """\
func.func @f(%scalar: f32) {
  %dst = pto.texpands %scalar : f32 -> !pto.tile<16x16xf32>
  return
}
"""
LEVEL_2 = f"""\
func.func @f(%scalar: f32, %dst: {BUF}) {{
  pto.texpands ins(%scalar : f32) outs(%dst : {BUF})
  return
}}
"""


@pytest.mark.parametrize("text", [SYNC, LEVEL_1, LEVEL_2], ids=["sync", "level1", "level2"])
def test_assembly_forms(text: str) -> None:
    """'%dst = texpands %scalar : f32, !pto.tile<...>', '%dst = pto.texpands %scalar : dtype ->
    !pto.tile<...>' and 'pto.texpands ins(%scalar : dtype) outs(%dst : !pto.tile_buf<...>)'."""
    assert instruction_in(text).insn is TEXPANDS.insn
    assert {line.strip() for line in text.splitlines()} <= set(printed(text))


def test_assembly_examples() -> None:
    """'# Auto mode: ...', then '%dst = pto.texpands %scalar : dtype -> !pto.tile<...>': the types
    the page leaves out are those of the values; a result must say its own."""
    text = LEVEL_1.replace("  %dst", "  # Auto mode: the compiler places the tile.\n  %dst")
    assert printed(text.replace("%scalar : f32 ->", "%scalar : dtype ->")) == printed(LEVEL_1)
    elided = LEVEL_2.replace(
        f"(%scalar : f32) outs(%dst : {BUF})", "(%scalar : dtype) outs(%dst : !pto.tile_buf<...>)"
    )
    assert printed(elided) == printed(LEVEL_2)


# ---- C++ interface -----------------------------------------------------------------------------


def test_interface() -> None:
    """'RecordEvent TEXPANDS(TileData &dst, typename TileData::DType scalar, WaitEvents &...)'."""
    with device("a2a3", mode="auto"):
        dst = make("Vec f32 16x16")
        event = Event[Op.TEXPANDS, Op.TSTORE_VEC](TEXPANDS(dst, 1))
        TSTORE(make("GM f32 16x16"), dst, event)
        with pytest.raises(ProgramError):
            TEXPANDS(1.0, dst)


@pytest.mark.parametrize(
    ("kind", "scalar", "stored"),
    [("f16", 1 / 3, np.float16(1 / 3)), ("i16", 3.9, 3), ("i32", -1, -1), ("f32", 7, 7.0)],
)
def test_the_scalar_has_the_element_type(kind: str, scalar: float, stored: Any) -> None:
    """'typename TileData::DType scalar': the argument is converted as C++ converts it."""
    assert (expand("a2a3", f"Vec {kind} 16x64", scalar).numpy() == stored).all()


# ---- constraints of A2A3 -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [t.name for t in ALL])
@pytest.mark.parametrize(
    ("target", "loc", "kinds"),
    [
        ("a2a3", "Vec", A2A3_VEC),
        ("a2a3", "Mat", A2A3_MAT),
        ("a5", "Vec", A5_BOTH),
        ("a5", "Mat", A5_BOTH),
    ],
)
def test_element_types(target: str, loc: str, kinds: str, kind: str) -> None:
    """A2A3, Vec: 'int32_t, int16_t, half, float.' A2A3, Mat: 'int8_t, uint8_t, int16_t, uint16_t,
    int32_t, uint32_t, half, bfloat16_t, float.' A5, Vec and Mat: 'uint8_t, int8_t, uint16_t,
    int16_t, uint32_t, int32_t, half, float.'"""
    assert legal(target, f"{loc} {kind} 16x64") == (kind in kinds.split())


@pytest.mark.parametrize(
    ("target", "loc", "kind"),
    [("a2a3", "Vec", k) for k in A2A3_VEC.split()]
    + [("a2a3", "Mat", k) for k in A2A3_MAT.split()]
    + [("a5", loc, k) for loc in ("Vec", "Mat") for k in A5_BOTH.split()],
)
def test_every_listed_type_is_filled(target: str, loc: str, kind: str) -> None:
    assert (expand(target, f"{loc} {kind} 16x64", 3).numpy() == dtype(kind).np.type(3)).all()


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_vec_tiles_are_row_major(target: str) -> None:
    """A2A3 and A5, Vec: 'The tile layout is row-major (TileData::isRowMajor).'"""
    assert legal(target, "Vec f32 64x16")
    assert "TEXPANDS.row-major" in codes("TEXPANDS", target, "Vec f32 64x16 DN", "1")


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize(("valid", "code"), [("17x64", "SA-0084"), ("16x65", "SA-0083")])
def test_static_valid_sizes_lie_in_the_tile(target: str, valid: str, code: str) -> None:
    """A2A3 and A5, Vec: 'Static bounds: ValidRow <= Rows and ValidCol <= Cols.'"""
    assert code in codes("TEXPANDS", target, f"Vec f32 16x64 valid {valid}", "1")
    assert legal(target, "Vec f32 16x64 valid 16x64")


@pytest.mark.parametrize(
    ("tile", "blocks"),
    [
        ("u8 1x32", 1),
        ("u8 32767x32", 32767),
        ("u8 32768x32", 32768),
        ("f32 4096x64", 32768),
        ("f32 4095x64", 32760),
        ("u8 1x16", 0),
    ],
)
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_mat_tiles_have_1_to_32767_blocks(target: str, tile: str, blocks: int) -> None:
    """A2A3, Mat: 'TileData::Rows * TileData::Cols * sizeof(T) / 32 is in [1, 32767].'"""
    found = codes("TEXPANDS", target, f"Mat {tile}", "1")
    assert found == (set() if 1 <= blocks <= 32767 else {"TEXPANDS.mat-size"})


# ---- convolution tiles -------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["NC1HWC0", "FRACTAL_Z"])
@pytest.mark.parametrize(
    ("shape", "good"),
    [
        ("1x1x1x1x16", True),
        ("1x7x31x151x16", True),
        ("1x1x1x32767x16", True),
        ("1x1x1x32768x16", False),
        ("8x16x16x16x16", False),
        ("0x1x1x1x16", False),
    ],
)
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_five_dimensional_tiles(target: str, layout: str, shape: str, good: bool) -> None:
    """A5: 'For layout NC1HWC0 or FRACTAL_Z: shape0 * shape1 * shape2 * shape3 is in [1, 32767].'"""
    found = codes("TEXPANDS", target, f"Conv Mat f16 {layout} {shape}", "1")
    assert found == (set() if good else {"TEXPANDS.conv-size"})


@pytest.mark.parametrize("layout", ["NDC1HWC0", "FRACTAL_Z_3D"])
@pytest.mark.parametrize(
    ("shape", "good"),
    [
        ("1x1x1x1x1x16", True),
        ("1x1x7x31x151x16", True),
        ("2x1x1x1x16384x16", False),
        ("1x8x16x16x16x16", False),
    ],
)
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_six_dimensional_tiles(target: str, layout: str, shape: str, good: bool) -> None:
    """A5: 'For layout NDC1HWC0 or FRACTAL_Z_3D: shape0 * shape1 * shape2 * shape3 * shape4 is in
    [1, 32767].'"""
    found = codes("TEXPANDS", target, f"Conv Mat f16 {layout} {shape}", "1")
    assert found == (set() if good else {"TEXPANDS.conv-size"})


# ---- the region that is filled -----------------------------------------------------------------


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("valid", [(1, 1), (5, 24), (16, 64)])
def test_vec_tiles_are_filled_over_the_valid_region(target: str, valid: tuple[int, int]) -> None:
    """Vec: 'The operation fills dst over dst.GetValidRow() / dst.GetValidCol().'"""
    kind = Tile[TileType.Vec, int32, 16, 64, BLayout.RowMajor, DYNAMIC, DYNAMIC]
    with device(target, mode="auto") as machine:
        dst = kind(*valid)
        machine.place(dst)
        flood(dst)
        TEXPANDS(dst, 9)
        assert (whole(dst).read() == 9).sum() == valid[0] * valid[1]
        assert (dst.numpy() == 9).all()


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("layout", ["ND", "NZ", "ZN"])
def test_mat_tiles_are_filled_as_a_whole(target: str, layout: str) -> None:
    """Mat, Tile: 'The operation fills dst over TileData::Rows / TileData::Cols.'"""
    dst = expand(target, f"Mat f16 32x64 {layout} valid 5x16", 1.5)
    assert (whole(dst).read() == 1.5).all()


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize(
    "tile",
    [
        "Conv Mat f16 NC1HWC0 2x2x3x4x16",
        "Conv Mat f16 FRACTAL_Z 2x3x4x16x16",
        "Conv Mat i8 NDC1HWC0 1x2x2x3x4x32",
        "Conv Mat f32 FRACTAL_Z_3D 1x2x2x3x16x8",
    ],
)
def test_convolution_tiles_are_filled_over_their_shape(target: str, tile: str) -> None:
    """Mat, convTile: 'The operation fills dst within the shape of ConvTileData.'"""
    dst = expand(target, tile, 3)
    assert dst.numpy().shape == dst.shape
    assert (dst.numpy() == 3).all()


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_the_buffer_of_a_convolution_tile_beyond_its_shape_stays(target: str) -> None:
    """'Within the shape': a buffer of 4096 elements, of which the shape in force takes 512."""
    Features = ConvTileShape[1, DYNAMIC, 4, 4, 16]
    with device(target, mode="auto") as machine:
        dst = ConvTile[TileType.Mat, half, 4096, Layout.NC1HWC0, Features](2)
        machine.place(dst)
        flood(dst)
        TEXPANDS(dst, 1.0)
        elements = dst.storage.data[dst.address :][: 2 * 4096].view(np.float16)
        assert (elements[:512] == 1).all()
        assert (elements[512:].view(np.uint16) == 0x5A5A).all()


# ---- examples ----------------------------------------------------------------------------------


def test_example_auto() -> None:
    """The page's `example_auto`."""
    with device("a2a3", mode="auto"):
        TileT = Tile[TileType.Vec, float32, 16, 16]
        dst = TileT()
        TEXPANDS(dst, 0.0)
        assert (dst.numpy() == 0).all()


def test_example_manual() -> None:
    """The page's `example_manual`: dst is bound to 0x1000 first."""
    with device("a2a3", mode="manual") as machine:
        TileT = Tile[TileType.Vec, float32, 16, 16]
        dst = TileT()
        TASSIGN(dst, 0x1000)
        TEXPANDS(dst, 0.0)
        memory = machine.core.memory(TileType.Vec)
        assert memory.shadow[0x1000:0x1400].all()
        assert not memory.shadow[:0x1000].any()
        assert not memory.shadow[0x1400:].any()


def test_manual_mode_binds_resources_first() -> None:
    """'Manual mode: bind the resources explicitly, then issue the instruction.'"""
    with device("a2a3", mode="manual"), pytest.raises(ProgramError, match="has no address"):
        TEXPANDS(Tile[TileType.Vec, float32, 16, 16](), 0.0)
