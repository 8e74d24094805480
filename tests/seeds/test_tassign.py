"""The TASSIGN page, point by point: each test quotes what it proves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptokit import *
from ptokit.from_text import loads
from ptokit.ir.parser import parse
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.asm import text_forms
from ptokit.isa.targets import TARGETS
from ptokit.machine.faults import OutOfBounds, Unbound
from tests.operands import instruction_in, printed

KIB = 1024
DEVICES = ("a2a3", "a5", "kirin9030", "kirinx90")
# TileType, memory, capacities in KB on A2A3, A5, Kirin9030 and KirinX90 (0: N/A), alignment.
TABLE = [
    ("Vec", "UB", (192, 256, 128, 128), 32),
    ("Mat", "L1", (512, 512, 512, 1024), 32),
    ("Left", "L0A", (64, 64, 32, 64), 32),
    ("Right", "L0B", (64, 64, 32, 64), 32),
    ("Acc", "L0C", (128, 256, 64, 128), 32),
    ("Bias", "Bias", (1, 4, 1, 1), 32),
    ("Scaling", "FBuffer", (2, 4, 7, 6), 32),
    ("ScaleLeft", "L0A", (0, 4, 0, 0), 32),
    ("ScaleRight", "L0B", (0, 4, 0, 0), 32),
]
SPACES = [
    pytest.param(target, TileType[name], capacity * KIB, align, id=f"{name}-{target}")
    for name, _, capacities, align in TABLE
    for target, capacity in zip(DEVICES, capacities, strict=True)
]
EXISTING = [space for space in SPACES if space.values[2]]
MISSING = [space for space in SPACES if not space.values[2]]

Vec16 = Tile[TileType.Vec, float32, 16, 16]


def tile_of(loc: TileType, nbytes: int) -> Tile:
    """A tile of so many bytes, a multiple of 32."""
    return Tile[loc, int8, nbytes // 32, 32]()


@contextmanager
def refused(code: str) -> Iterator[Any]:
    """The block is rejected, and this id is among the reasons."""
    with pytest.raises(PtoError) as caught:
        yield caught
    found = [d.code for d in caught.value.diagnostics]
    assert code in found, f"{code} expected, got {found}"


@pytest.fixture
def a2a3() -> Iterator[None]:
    with device("a2a3"):
        yield


# ---- introduction -------------------------------------------------------------------------------


def test_binds_a_tile_to_an_on_chip_address(a2a3: None) -> None:
    """'Bind a Tile object to an implementation-defined on-chip address (manual placement).'"""
    tile = Vec16()
    with pytest.raises(Unbound):
        TADD(tile, tile, tile)
    TASSIGN(tile, 0x1000)
    assert (tile.place, tile.address) == ("at UB 0x1000", 0x1000)


def test_no_mathematical_meaning(a2a3: None) -> None:
    """'Mathematical semantics: not applicable.' No element is read or written."""
    tile, other = Vec16(), Vec16()
    TASSIGN(tile, 0)
    tile.fill(7)
    before = tile.numpy()
    TASSIGN(other, 0)
    TASSIGN(tile, 0x400)
    with refused("poison-read"):  # nothing was copied to the new address
        tile.numpy()
    TASSIGN(tile, 0)
    assert np.array_equal(tile.numpy(), before)


# ---- assembly -----------------------------------------------------------------------------------


BUF = (
    "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=16, v_row=16, v_col=16, blayout=row_major, "
    "slayout=none_box, fractal=512, pad=0>"
)
SYNC = """\
.arg %tile : !pto.tile<16x16xf32>;
.const %addr = 4096 : index;
tassign %tile, %addr : !pto.tile<16x16xf32>, index;
"""
LEVEL_1 = """\
func.func @f(%tile: !pto.tile<16x16xf32>, %addr: i64) {
  pto.tassign %tile, %addr : !pto.tile<16x16xf32>, i64
  return
}
"""
LEVEL_2 = f"""\
func.func @f(%tile: {BUF}, %addr: i64) {{
  pto.tassign ins(%tile, %addr : {BUF}, i64)
  return
}}
"""


@pytest.mark.parametrize("text", [SYNC, LEVEL_1, LEVEL_2], ids=["sync", "level1", "level2"])
def test_assembly_forms(text: str) -> None:
    """'tassign %tile, %addr : !pto.tile<...>, index'; 'pto.tassign %tile, %addr : !pto.tile<...>,
    dtype'; 'pto.tassign ins(%tile, %addr : !pto.tile_buf<...>, dtype)': read, and printed back."""
    op = instruction_in(text)
    assert op.insn is TASSIGN.insn
    assert op.labels == ("obj", "addr")
    assert not op.results
    assert {line.strip() for line in text.splitlines()} <= set(printed(text))


@pytest.mark.parametrize(
    "text",
    [
        SYNC.replace("addr : !pto.tile<16x16xf32>", "addr : !pto.tile<...>"),
        LEVEL_1.replace("addr : !pto.tile<16x16xf32>, i64", "addr : !pto.tile<...>, dtype"),
        LEVEL_2.replace(f"addr : {BUF}, i64", "addr : !pto.tile_buf<...>, dtype"),
    ],
    ids=["sync", "level1", "level2"],
)
def test_types_may_be_left_out_as_on_the_page(text: str) -> None:
    """'!pto.tile<...>', 'dtype': the operands tell what stands there."""
    assert "..." in text
    assert not any("..." in line for line in printed(text))


def test_assembly_examples_with_their_comments() -> None:
    """'# Manual mode: bind the resources explicitly ...', and the optional bindings the comment
    shows, 'pto.tassign %arg0, @tile(0x1000)'."""
    text = """
    # Manual mode: bind the resources explicitly, then issue the instruction.
    # pto.tassign %arg0, @tile(0x3000)
    func.func @f(%arg0: !pto.tile<16x16xf32>, %arg1: !pto.tile<16x16xf32>) {
      pto.tassign %arg0, @tile(0x1000)
      pto.tassign %arg1, @tile(0x2000)  # bound elsewhere
      return
    }
    """
    first, second = (op for op in parse(text).walk() if op.insn is not None)
    assert [str(op.operand("addr").owner.attrs["value"]) for op in (first, second)] == [
        "4096 : index",
        "8192 : index",
    ]
    assert "pto.tassign %arg0, %addr : !pto.tile<16x16xf32>, index" in printed(text)


def test_the_documentation_shows_the_forms_of_the_page() -> None:
    forms = text_forms(INSTRUCTIONS["TASSIGN"])
    assert forms["sync"] == "tassign %obj, %addr : !pto.tile<...>, dtype"
    assert forms["l1"] == "pto.tassign %obj, %addr : !pto.tile<...>, dtype"
    assert forms["l2"] == "pto.tassign ins(%obj, %addr : !pto.tile_buf<...>, dtype)"


def test_lowering_places_the_tile() -> None:
    """'TASSIGN is usually introduced by bufferisation/lowering, when SSA tiles are mapped to
    physical storage': placement gives every tile of the text its address."""
    program = """
    func.func @f(%scalar: f32) {
      %a = pto.texpands %scalar : f32 -> !pto.tile<16x16xf32>
      %b = pto.tadd %a, %a : (!pto.tile<16x16xf32>, !pto.tile<16x16xf32>) -> !pto.tile<16x16xf32>
      return
    }
    """
    placed = str(loads(program).convert("l3"))
    assert placed.count("pto.alloc_tile addr = %") == placed.count("pto.alloc_tile") == 2


# ---- form 1: run-time address -------------------------------------------------------------------


def test_form_1_binds_to_an_address_known_at_run_time(a2a3: None) -> None:
    """'TASSIGN(T& obj, AddrType addr): binds obj to the on-chip address addr.'"""
    for address in (0, 0x40, int(np.int64(0x2000)), np.uint32(0x3000)):
        tile = Vec16()
        TASSIGN(tile, address)
        assert tile.address == int(address)


@pytest.mark.parametrize("address", [0x20001, 192 * KIB, 1 << 40])
def test_form_1_performs_no_compile_time_bounds_check(a2a3: None, address: int) -> None:
    """'No compile-time bounds check (the address value is not known at compile time).'"""
    TASSIGN(Tile[TileType.Vec, float32, 128, 128](), address)


def test_a_tile_bound_out_of_bounds_fails_when_it_is_used(a2a3: None) -> None:
    """Form 1 does not check; the simulator notices when the bytes are touched."""
    tile = Vec16()
    TASSIGN(tile, 192 * KIB - 512)
    with pytest.raises(OutOfBounds, match="lies inside UB"):
        TADD(tile, tile, tile)


# ---- form 2: compile-time address ---------------------------------------------------------------


def test_form_2_binds_to_a_template_address(a2a3: None) -> None:
    """'TASSIGN<Addr>(T& obj): binds obj to the on-chip address Addr.'"""
    tile = Vec16()
    TASSIGN[0x400](tile)
    assert tile.place == "at UB 0x400"


@pytest.mark.parametrize(("target", "loc", "capacity", "align"), MISSING)
def test_memory_space_must_exist(target: str, loc: TileType, capacity: int, align: int) -> None:
    """'Memory space exists | capacity > 0 | SA-0351 | not supported on this architecture.'"""
    with device(target), refused("SA-0351") as caught:
        TASSIGN[0](tile_of(loc, 32))
    (only,) = caught.value.diagnostics  # sizes and alignment say nothing about a missing memory
    assert only.target == target


@pytest.mark.parametrize(("target", "loc", "capacity", "align"), EXISTING)
def test_tile_must_fit(target: str, loc: TileType, capacity: int, align: int) -> None:
    """'Tile fits in memory | tile_size <= capacity | SA-0352', with the capacity of the table."""
    with device(target):
        TASSIGN[0](tile_of(loc, capacity))
        with refused("SA-0352") as caught:
            TASSIGN[0](tile_of(loc, capacity + 32))
    got = dict(caught.value.diagnostics[0].got)
    assert str(capacity) in got.values()
    assert str(capacity + 32) in got.values()


@pytest.mark.parametrize(("target", "loc", "capacity", "align"), EXISTING)
def test_address_must_not_be_out_of_bounds(
    target: str, loc: TileType, capacity: int, align: int
) -> None:
    """'Address in bounds | Addr + tile_size <= capacity | SA-0353', up to the last byte."""
    with device(target):
        TASSIGN[capacity - 64](tile_of(loc, 64))
        for address in (capacity - 32, capacity, 4 * capacity):
            with refused("SA-0353"):
                TASSIGN[address](tile_of(loc, 64))


@pytest.mark.parametrize(("target", "loc", "capacity", "align"), EXISTING)
def test_address_must_be_aligned(target: str, loc: TileType, capacity: int, align: int) -> None:
    """'Address aligned | Addr % alignment == 0 | SA-0354', 32 B in every space."""
    with device(target):
        TASSIGN[align](tile_of(loc, 64))
        for address in (1, align // 2, align + 4):
            with refused("SA-0354"):
                TASSIGN[address](tile_of(loc, 64))


def test_a_refused_tile_stays_where_it_was(a2a3: None) -> None:
    """The checks come before the binding."""
    tile = Vec16()
    TASSIGN[0x400](tile)
    with refused("SA-0354"):
        TASSIGN[0x401](tile)
    assert tile.address == 0x400


@pytest.mark.parametrize("code", ["SA-0351", "SA-0352", "SA-0353", "SA-0354"])
def test_the_repair_is_recipe_fix_a12(code: str) -> None:
    """'For repairs see ... (recipe FIX-A12).'"""
    bad: dict[str, tuple[int, Any]] = {
        "SA-0351": (0, lambda: tile_of(TileType.ScaleLeft, 32)),
        "SA-0352": (0, Tile[TileType.Vec, float32, 256, 256]),
        "SA-0353": (192 * KIB, Vec16),
        "SA-0354": (8, Vec16),
    }
    address, make = bad[code]
    with device("a2a3"), refused(code) as caught:
        TASSIGN[address](make())
    assert "FIX-A12" in caught.value.diagnostics[0].fix


# ---- spaces, capacities, alignment --------------------------------------------------------------


@pytest.mark.parametrize(("target", "loc", "capacity", "align"), SPACES)
def test_the_tile_type_fixes_space_capacity_and_alignment(
    target: str, loc: TileType, capacity: int, align: int
) -> None:
    """'Space, capacity and alignment follow from the TileType (the Loc argument)': 9 x 4 rows."""
    space = TARGETS[target].spaces[loc]
    name = next(memory for kind, memory, _, _ in TABLE if kind == loc.name)
    # Scales have memories of their own beside L0A and L0B.
    expected = f"{name}-scales" if loc.name.startswith("Scale") else name
    assert (space.memory, space.capacity, space.alignment) == (expected, capacity, align)


def test_conv_tiles_are_checked_by_their_buffer_size(a2a3: None) -> None:
    """'This overload is for Tile and ConvTile': a ConvTile counts BufferSize elements."""

    def conv(elements: int) -> ConvTile:
        shape = ConvTileShape[1, 1, 4, 4, 16]
        return ConvTile[TileType.Mat, half, elements, Layout.NC1HWC0, shape]()

    tile = conv(256 * KIB)  # half: 512 KB, all of L1
    TASSIGN[0](tile)
    assert tile.place == "at L1 0x0"
    with refused("SA-0352"):
        TASSIGN[0](conv(256 * KIB + 16))
    with refused("SA-0353"):
        TASSIGN[512 * KIB - 32](conv(256))


MACROS = {
    "Vec": "PTO_UBUF",
    "Mat": "PTO_CBUF",
    "Left": "PTO_L0A",
    "Right": "PTO_L0B",
    "Acc": "PTO_L0C",
    "Bias": "PTO_BIAS",
    "Scaling": "PTO_FBUF",
    "ScaleLeft": "PTO_SCALELEFT",
    "ScaleRight": "PTO_SCALERIGHT",
}


def test_capacity_can_be_overridden_by_a_compiler_flag() -> None:
    """'Capacities can be overridden with -D (e.g. -DPTO_UBUF_SIZE_BYTES=262144).'"""
    big = Tile[TileType.Vec, float32, 256, 256]
    with device("a2a3", defines={"PTO_UBUF_SIZE_BYTES": 262144}):
        TASSIGN[0](big())
    with device("a2a3"), refused("SA-0352"):
        TASSIGN[0](big())


@pytest.mark.parametrize(("name", "macro"), MACROS.items())
def test_every_space_has_a_size_macro(name: str, macro: str) -> None:
    """'Capacities can be overridden': each space under its own macro, also one that is N/A."""
    with device("a2a3", defines={f"{macro}_SIZE_BYTES": 64}):
        TASSIGN[32](tile_of(TileType[name], 32))
        with refused("SA-0353"):
            TASSIGN[64](tile_of(TileType[name], 32))
    with device("a5", defines={f"{macro}_SIZE_BYTES": 0}), refused("SA-0351"):
        TASSIGN[0](tile_of(TileType[name], 32))


def test_alignment_can_be_overridden_as_well() -> None:
    """The alignment column has its macros too: PTO_<SPACE>_ALIGN_BYTES."""
    with device("a2a3", defines={"PTO_UBUF_ALIGN_BYTES": 512}):
        TASSIGN[0x400](Vec16())
        with refused("SA-0354"):
            TASSIGN[0x420](Vec16())


# ---- note: GlobalTensor -------------------------------------------------------------------------


def test_form_2_is_not_for_global_tensors(a2a3: None) -> None:
    """'For GlobalTensor use TASSIGN(obj, pointer) (form 1).'"""
    tensor = GlobalTensor(np.zeros((16, 16), np.float32))
    with refused("SA-0053") as caught:
        TASSIGN[0x1000](tensor)
    assert "TASSIGN(tensor, array)" in caught.value.diagnostics[0].fix


# ---- constraints: tiles -------------------------------------------------------------------------


@pytest.mark.parametrize("address", [0.5, 4096.0, np.float32(64), np.zeros(4, np.float32)])
def test_manual_mode_wants_an_integer_address(a2a3: None, address: Any) -> None:
    """'In manual mode addr must be of integer type ...'"""
    with refused("SA-0218"):
        TASSIGN(Vec16(), address)


def test_the_address_becomes_the_storage_address_of_the_tile(a2a3: None) -> None:
    """'... and is reinterpreted as the storage address of the tile': same bytes, other types."""
    numbers, bits = Vec16(), Tile[TileType.Vec, int32, 16, 16]()
    TASSIGN(numbers, 0x800)
    TASSIGN(bits, 0x800)
    numbers.fill(1.0)
    assert (bits.numpy() == 0x3F80_0000).all()
    shifted = Tile[TileType.Vec, int32, 1, 16]()
    TASSIGN(shifted, 0x800 + 3 * 64)  # row 3
    shifted.fill(0)
    assert (numbers.numpy() == 0).all(axis=1).tolist() == [row == 3 for row in range(16)]


@pytest.mark.parametrize("address", [0x1000, 0x20001, 1 << 40, 0.5, np.zeros(4, np.float32)])
def test_auto_mode_is_a_no_op(address: Any) -> None:
    """'In auto mode (__PTO_AUTO__) TASSIGN(tile, addr) is a no-op.'"""
    with device("a2a3", mode="auto"):
        one, two = Vec16(), Vec16()
        TASSIGN(one, address)
        TASSIGN(two, address)
        one.fill(1)
        two.fill(2)
        assert (one.numpy() == 1).all()  # placed by the machine: not the same bytes


def test_auto_mode_ignores_the_template_address_too() -> None:
    """Placement belongs to the compiler: form 2 checks nothing in auto mode."""
    with device("a2a3", mode="auto"):
        TASSIGN[0x20001](Tile[TileType.Vec, float32, 128, 256]())


# ---- constraints: GlobalTensor ------------------------------------------------------------------

GT = GlobalTensor[float32, Shape[1, 1, 1, 16, 16], Stride[256, 256, 256, 16, 1]]


@pytest.mark.parametrize("mode", ["manual", "auto"])
def test_a_global_tensor_takes_a_pointer(mode: str) -> None:
    """'If obj is a GlobalTensor, addr must be a pointer': an array, or a pointer into one."""
    with device("a2a3", mode=mode):
        first, second = np.zeros(256, np.float32), np.arange(512, dtype=np.float32)
        tensor = GT(first)
        TASSIGN(tensor, second)
        assert np.array_equal(tensor.numpy().ravel(), second[:256])
        TASSIGN(tensor, ptr(second, 256))
        assert np.array_equal(tensor.numpy().ravel(), second[256:])
        assert [tensor.GetShape(i) for i in range(5)] == [1, 1, 1, 16, 16]  # unchanged


@pytest.mark.parametrize("mode", ["manual", "auto"])
@pytest.mark.parametrize("address", [0x1000, 0.5])
def test_a_global_tensor_refuses_a_number(mode: str, address: float) -> None:
    """'addr must be of pointer type' (SA-0053), in both modes."""
    with device("a2a3", mode=mode), refused("SA-0053"):
        TASSIGN(GT(np.zeros(256, np.float32)), address)


@pytest.mark.parametrize("element", [np.float16, np.int32, np.float64, ml_dtypes.bfloat16])
def test_the_pointer_must_have_the_tensors_element_type(a2a3: None, element: Any) -> None:
    """'The pointee type must match GlobalTensor::DType' (SA-0054)."""
    tensor = GT(np.zeros(256, np.float32))
    with refused("SA-0054"):
        TASSIGN(tensor, np.zeros(256, element))


def test_types_numpy_cannot_name_are_bytes(a2a3: None) -> None:
    """A hifloat8 tensor points at an array of bytes; NumPy has no other name for it."""
    shape, stride = Shape[1, 1, 1, 4, 32], Stride[128, 128, 128, 32, 1]
    tensor = GlobalTensor[hifloat8, shape, stride](np.zeros(128, np.uint8))
    TASSIGN(tensor, np.full(128, 8, np.uint8))
    assert (tensor.numpy() == 8).all()
    with refused("SA-0054"):
        TASSIGN(tensor, np.zeros(128, np.int8))


@pytest.mark.parametrize("thing", ["tile", None, 5, object()])
def test_only_tiles_and_global_tensors_are_bound(a2a3: None, thing: Any) -> None:
    """obj is a Tile, a ConvTile or a GlobalTensor (SA-0089)."""
    with refused("SA-0089"):
        TASSIGN(thing, 0x1000)


# ---- examples -----------------------------------------------------------------------------------


def add_and_check(a: Tile, b: Tile, c: Tile) -> None:
    a.fill(1.5)
    b.fill(2)
    TADD(c, a, b)
    assert (c.numpy() == 3.5).all()


def test_example_runtime(a2a3: None) -> None:
    """Example 'run-time addresses': 0x1000, 0x2000, 0x3000, then TADD(c, a, b)."""
    a, b, c = Vec16(), Vec16(), Vec16()
    TASSIGN(a, 0x1000)
    TASSIGN(b, 0x2000)
    TASSIGN(c, 0x3000)
    add_and_check(a, b, c)


@pytest.mark.parametrize("target", DEVICES)
def test_example_checked(target: str) -> None:
    """Example 'compile-time addresses': 0x0000, 0x0400 and 0x0800 + 1024 <= 192KB."""
    with device(target):
        a, b, c = Vec16(), Vec16(), Vec16()
        assert a.spec.nbytes == 1024
        TASSIGN[0x0000](a)
        TASSIGN[0x0400](b)
        TASSIGN[0x0800](c)
        add_and_check(a, b, c)


def test_example_oob_is_refused_on_a2a3(a2a3: None) -> None:
    """Example 'example_oob': 256*256*4 = 256KB > UB capacity (192KB on A2A3) triggers SA-0352."""
    big = Tile[TileType.Vec, float32, 256, 256]()
    assert big.spec.nbytes == 256 * KIB
    with refused("SA-0352") as caught:
        TASSIGN[0x0](big)
    assert [d.code for d in caught.value.diagnostics] == ["SA-0352"]


def test_example_oob_is_legal_where_ub_has_256_kb() -> None:
    """The same tile on A5, whose UB holds 256 KB."""
    with device("a5"):
        TASSIGN[0x0](Tile[TileType.Vec, float32, 256, 256]())


def test_example_oob_addr_is_refused(a2a3: None) -> None:
    """Example 'example_oob_addr': 0x20001 + 64KB > 192KB triggers SA-0353."""
    tile = Tile[TileType.Vec, float32, 128, 128]()
    assert tile.spec.nbytes == 64 * KIB
    with refused("SA-0353"):
        TASSIGN[0x20001](tile)
    TASSIGN[0x20000](tile)  # one byte less fits exactly


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirinx90"])
def test_example_pingpong(target: str) -> None:
    """Example 'ping-pong L0 buffers': L0A and L0B are different memories, numbers may repeat."""
    with device(target):
        a0, a1 = TileLeft[half, 64, 128](), TileLeft[half, 64, 128]()
        b0, b1 = TileRight[half, 128, 64](), TileRight[half, 128, 64]()
        TASSIGN[0x0000](a0)
        TASSIGN[0x8000](a1)
        TASSIGN[0x0000](b0)
        TASSIGN[0x8000](b1)
        for value, tile in enumerate((a0, a1, b0, b1)):
            tile.fill(value)
        assert [tile.numpy()[0, 0] for tile in (a0, a1, b0, b1)] == [0, 1, 2, 3]


def test_example_pingpong_does_not_fit_the_smaller_l0_of_kirin9030() -> None:
    """The pong buffers end at 0xC000; Kirin9030 has 32 KB of L0A (table)."""
    with device("kirin9030"):
        TASSIGN[0x0000](TileLeft[half, 64, 128]())
        with refused("SA-0353"):
            TASSIGN[0x8000](TileLeft[half, 64, 128]())
