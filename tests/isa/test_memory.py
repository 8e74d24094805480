"""Loads and stores against their definitions: which bytes move, which change beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import *
from ptokit.base.dtypes import dtype
from ptokit.base.tensors import GlobalSpec
from ptokit.machine.faults import OutOfBounds, PoisonRead
from tests.operands import bits, codes, flood, make, noise, tensor, whole
from tests.support import listen

FLOOD = 0x5A
ADD, RELU = AtomicType.AtomicAdd, ReluPreMode.NormalRelu
KINDS = ["i8", "u16", "f16", "bf16", "f32", "i64"]


def c0(kind: str) -> int:
    return 32 // dtype(kind).itemsize


def flooded(kind: str) -> int:
    return int.from_bytes(bytes([FLOOD]) * dtype(kind).itemsize, "little")


def up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


# ---- any view into any tile --------------------------------------------------------------------


@st.composite
def transfers(draw: Any) -> tuple[str, str, Any]:
    """A tile, the layout of its view, and a view of its valid region with gaps in it."""
    kind = draw(st.sampled_from(KINDS[:-1]))
    pair = draw(st.sampled_from(["ND-ND", "DN-DN", "NZ-NZ"]))
    view = pair.split("-")[0]
    block = c0(kind)
    if view == "NZ":
        rows, cols = 16 * draw(st.integers(1, 3)), block * draw(st.integers(1, 3))
        gap = draw(st.integers(0, 40))
        shape = (1, cols // block, rows // 16, 16, block)
        stride = (0, rows * block + gap, 16 * block, block, 1)
        text = f"Vec {kind} {rows}x{cols} NZ"
    else:
        outer = draw(st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(1, 2)))
        inner, line = draw(st.integers(1, 5)), draw(st.integers(1, 40))
        gaps = [draw(st.integers(0, 9)) for _ in range(4)]
        steps = [line + gaps[0]]
        for extent, gap in zip((inner, *reversed(outer[1:])), gaps[1:], strict=False):
            steps.append(steps[-1] * extent + gap)
        count = inner * outer[0] * outer[1] * outer[2]
        if view == "ND":
            shape, stride = (*outer, inner, line), (*reversed(steps[1:]), steps[0], 1)
            text = f"Vec {kind} {count + 2}x{up(line, block)} ND valid {count}x{line}"
        else:
            shape, stride = (*outer, line, inner), (*reversed(steps[1:]), 1, steps[0])
            text = f"Vec {kind} {up(line, block)}x{count + 2} DN valid {line}x{count}"
    return text, view, GlobalSpec.of(dtype(kind), shape, stride, Layout[view])


def address_of(spec: GlobalSpec, row: int, col: int) -> int:
    """Offset of a logical element: the definition of the three plain layouts, index by index."""
    s = spec.shape
    if spec.layout == Layout.ND:
        i = (row // (s[1] * s[2] * s[3]), row // (s[2] * s[3]) % s[1], row // s[3] % s[2])
        i = (*i, row % s[3], col)
    elif spec.layout == Layout.DN:
        i = (col // (s[1] * s[2] * s[4]), col // (s[2] * s[4]) % s[1], col // s[4] % s[2])
        i = (*i, row, col % s[4])
    else:
        block = col // s[4]
        i = (block // s[1], block % s[1], row // s[3], row % s[3], col % s[4])
    return sum(a * b for a, b in zip(i, spec.stride, strict=True))


@settings(max_examples=60, deadline=None)
@given(transfers(), st.sampled_from(["a2a3", "a5", "kirinx90", "cpu"]))
def test_load_and_store_move_every_element_to_its_place(
    transfer: tuple[str, str, GlobalSpec], target: str
) -> None:
    text, _, spec = transfer
    if spec.dtype is bfloat16 and target == "kirinx90":
        return
    with device(target, mode="auto"):
        tile, source, result = make(text), tensor(spec), tensor(spec)
        memory = bits(source.data().buffer.owner)
        before = bits(result.data().buffer.owner).copy()
        TLOAD(tile, source)
        values = bits(tile.numpy())
        TSTORE(result, tile)
        after = bits(result.data().buffer.owner)
        touched = set()
        for r in range(tile.vr):
            for c in range(tile.vc):
                at = address_of(spec, r, c)
                assert values[r, c] == memory[at] == after[at]
                touched.add(at)
        others = [k for k in range(after.size) if k not in touched]
        assert (after[others] == before[others]).all()


# ---- what lies beside the valid region ---------------------------------------------------------

PADS = {"Zero": 0.0, "Max": np.inf, "Min": -np.inf}


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("layout", ["ND", "DN"])
@pytest.mark.parametrize("pad", ["Null", "Zero", "Max", "Min"])
@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_vec_tail_of_a_line(target: str, layout: str, pad: str, kind: str) -> None:
    """The rest of the last 32-byte block: the pad value, or unspecified for Null."""
    line, end = 20 if kind == "f16" else 18, 32 if kind == "f16" else 24
    size = f"5x{line}" if layout == "ND" else f"{line}x5"
    with device(target, mode="auto"):
        room = "8x64" if layout == "ND" else "64x8"
        tile = make(f"Vec {kind} {room} {layout} valid {size} pad {pad}")
        flood(tile)
        TLOAD(tile, make(f"GM {kind} {size} {layout}"))
        values, defined = whole(tile).read(), whole(tile).defined()
        if layout == "DN":
            values, defined = values.T, defined.T
        tail = slice(line, end)
        assert defined[:5, :line].all()
        if pad == "Null":
            assert not defined[:5, tail].any()
        else:
            assert (values[:5, tail] == PADS[pad]).all()
        assert (bits(values)[:5, end:] == flooded(kind)).all()
        assert (bits(values)[5:] == flooded(kind)).all()
        assert defined[5:].all()
        assert defined[:, end:].all()


def test_integer_pads_are_the_extremes_of_the_type() -> None:
    for pad, value in (("Max", 127), ("Min", -128), ("Zero", 0)):
        with device("a2a3", mode="auto"):
            tile = make(f"Vec i8 2x32 valid 2x5 pad {pad}")
            TLOAD(tile, make("GM i8 2x5"))
            assert (whole(tile).read()[:, 5:] == value).all()


def test_reading_the_unspecified_tail_is_an_error() -> None:
    with device("a2a3", mode="auto"):
        tile, wider = make("Vec f32 4x16 valid 4x10"), make("Vec f32 4x16 valid 4x12")
        flood(tile)
        wider.share(tile)
        TLOAD(tile, make("GM f32 4x10"))
        with pytest.raises(PoisonRead, match=r"src\[0, 10\]"):
            TSTORE(make("GM f32 4x12"), wider)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize(("view", "tile"), [("ND", "NZ"), ("DN", "ZN")])
@pytest.mark.parametrize("kind", ["i8", "f16", "f32"])
def test_the_box_engine_writes_zeros_to_the_end_of_the_block(
    target: str, view: str, tile: str, kind: str
) -> None:
    with device(target, mode="auto"):
        box = make(f"Mat {kind} 64x64 {tile} valid 20x20 pad Max")
        flood(box)
        TLOAD(box, make(f"GM {kind} 20x20 {view}"))
        values = bits(whole(box).read())
        if tile == "ZN":
            values = values.T
        end = up(20, c0(kind))
        assert (values[:20, 20:end] == 0).all()
        assert (values[:20, end:] == flooded(kind)).all()
        assert (values[20:] == flooded(kind)).all()


@pytest.mark.parametrize(("pad", "value"), [("Null", 0), ("Zero", 0), ("Max", np.inf)])
def test_a5_pads_unboxed_mat_tiles(pad: str, value: float) -> None:
    with device("a5", mode="auto"):
        tile = make(f"Mat f16 4x32 valid 4x20 pad {pad}")
        flood(tile)
        TLOAD(tile, make("GM f16 4x20"))
        assert (whole(tile).read()[:, 20:] == value).all()


def test_a2a3_mat_rows_are_whole_blocks_unless_there_is_one() -> None:
    assert codes("TLOAD", "a2a3", "Mat f16 4x32 valid 4x20", "GM f16 4x20") == {"PA-0029"}
    assert codes("TLOAD", "a2a3", "Mat f16 32x4 DN valid 20x4", "GM f16 20x4 DN") == {"PA-0028"}
    with device("a2a3", mode="auto"):
        tile = make("Mat f16 1x64 valid 1x20 pad Max")
        flood(tile)
        TLOAD(tile, make("GM f16 1x20"))
        values = bits(whole(tile).read())[0]
        assert (values[20:32] == 0).all()  # loaded by the box engine
        assert (values[32:] == flooded("f16")).all()


def test_kirinx90_leaves_the_tail_of_mat_rows_open() -> None:
    with device("kirinx90", mode="auto"):
        tile = make("Mat f16 4x32 valid 4x20")
        flood(tile)
        TLOAD(tile, make("GM f16 4x20"))
        assert not whole(tile).defined()[:, 20:].any()


def test_the_permissive_profile_sets_the_whole_tile_first() -> None:
    with device("cpu", mode="auto"):
        for kind in ("Vec f16 32x64 ND", "Vec f16 32x64 NZ", "Mat f16 32x64 NZ"):
            tile = make(f"{kind} valid 20x20 pad Max")
            source = make("GM f16 20x20")
            TLOAD(tile, source)
            values = whole(tile).read().copy()
            assert (bits(values[:20, :20]) == bits(source.numpy()[0, 0, 0])).all()
            values[:20, :20] = np.inf
            assert np.isinf(values).all()


def test_one_row_of_scales_is_padded_to_32_bytes() -> None:
    with device("a5", mode="auto"):
        tile = make("Mat f8e8m0 1x64 ZZ/32 valid 1x20")
        flood(tile)
        TLOAD(tile, make("GM f8e8m0 1x20"))
        values = bits(whole(tile).read())[0]
        assert (values[20:32] == 0).all()
        assert (values[32:] == FLOOD).all()


@pytest.mark.parametrize("name", ["MX_A_ND", "MX_A_DN", "MX_B_ND", "MX_B_DN"])
def test_mx_views_of_open_sizes_go_by_their_strides(name: str) -> None:
    """The rows and columns a program gives such a view are not looked at."""
    lines, scales, pitch, layout = 20, 4, 96, Layout[name]
    is_a, is_inner = "_A_" in name, name in ("MX_A_ND", "MX_B_DN")
    source = noise(dtype("f8e8m0"), (2 * pitch * lines,))
    Open = Shape[1, 1, 1, -1, -1]
    kind = GlobalTensor[dtype("f8e8m0"), Open, Stride[1, 1, pitch, 2, 1], layout]
    line, k = np.mgrid[:lines, :scales]
    taken = source[line * pitch + k if is_inner else k // 2 * pitch + line * 2 + k % 2]
    with device("a5", mode="auto", rules="release"):
        rows, cols = (lines, scales) if is_a else (scales, lines)
        size = "32x4 ZZ/32" if is_a else "4x32 NN/32"
        tile = make(f"Mat f8e8m0 {size} valid {rows}x{cols}")
        with pytest.warns(PtoWarning, match=r"TLOAD\.mx-size"):
            TLOAD(tile, kind(ptr(source), Open(3, 6)))
        assert np.array_equal(bits(tile.numpy()), bits(taken if is_a else taken.T))
    # The page asks for static sizes: only what the device does is as open as its header.
    with device("a5", mode="auto"), pytest.raises(ProgramError, match="mx-open"):
        TLOAD(tile, kind(ptr(source), Open(3, 6)))


def test_mx_boxes_may_hold_more_rows_than_are_valid() -> None:
    with device("a5", mode="auto"):
        tile, source = make("Mat f8e8m0 32x4 ZZ/32 valid 20x4"), make("GM f8e8m0 32x4 MX_A_ZZ")
        TLOAD(tile, source)
        assert whole(tile).is_defined()
        assert codes("TLOAD", "a5", "Mat f8e8m0 16x4 ZZ/32", "GM f8e8m0 32x4 MX_A_ZZ")


# ---- other rules of loads ----------------------------------------------------------------------


def test_the_innermost_stride_is_one() -> None:
    with device("a2a3", mode="auto"):
        columns = noise(float32, (16, 32))[:, ::2]
        with pytest.raises(ProgramError) as error:
            TLOAD(make("Vec f32 16x16"), GlobalTensor(columns))
        assert error.value.codes == ("TLOAD.unit-stride",)
    with device("cpu", mode="auto"):
        tile = make("Vec f32 16x16")
        TLOAD(tile, GlobalTensor(columns))
        assert (bits(tile.numpy()) == bits(columns)).all()


def test_tiles_start_at_32_bytes() -> None:
    with device("a2a3", mode="manual"):
        tile = Tile[TileType.Vec, float32, 16, 16]()
        TASSIGN(tile, 0x1010)
        with pytest.raises(ProgramError, match="multiple of 32 bytes"):
            TLOAD(tile, make("GM f32 16x16"))


@pytest.mark.parametrize("layout", ["SCALE", "HIF4_A_ZZ"])
def test_layouts_that_cannot_be_loaded_are_refused_everywhere(layout: str) -> None:
    for target in ("a2a3", "a5", "cpu"):
        assert codes("TLOAD", target, "Mat u8 16x16", f"GM u8 1x1x4x16x4 {layout}")


def test_four_bit_elements() -> None:
    with device("a5", mode="auto"):
        tile, source = make("Vec f4e2m1x2 4x64"), make("GM f4e2m1x2 4x64")
        back = make("GM f4e2m1x2 4x64")
        TLOAD(tile, source)
        TSTORE(back, tile)
        packed = source.data().buffer.data[: 4 * 32]
        assert (back.data().buffer.data[: 4 * 32] == packed).all()
        assert (tile.numpy().reshape(-1)[::2] == packed & 15).all()


# ---- global memory -----------------------------------------------------------------------------


def test_views_stay_inside_their_array() -> None:
    kind = GlobalTensor[float32, Shape[1, 1, 1, 16, 16], Stride[1, 1, 1, 16, 1]]
    with device("a2a3", mode="auto"):
        tile = make("Vec f32 16x16")
        memory = noise(float32, (300,))
        TLOAD(tile, kind(ptr(memory, 44)))
        for start in (45, -1):
            with pytest.raises(OutOfBounds) as error:
                TLOAD(tile, kind(ptr(memory, start)))
            assert "array elements" in str(error.value)


def test_read_only_arrays_are_not_written() -> None:
    memory = noise(float32, (16, 16))
    memory.flags.writeable = False
    with device("a2a3", mode="auto"):
        tile = make("Vec f32 16x16")
        TLOAD(tile, GlobalTensor(memory))
        with pytest.raises(ProgramError, match="read-only"):
            TSTORE(GlobalTensor(memory), tile)


def test_records_name_the_bytes_of_global_memory() -> None:
    memory = noise(float32, (16, 32))
    with device("a2a3", mode="auto") as machine:
        events = listen(machine)
        tile = make("Vec f32 16x16 valid 2x10")
        TLOAD(tile, GlobalTensor(memory)[3:5, 4:14])
        base = memory.__array_interface__["data"][0]
        (access,) = [a for a in events[-1].accesses if a.memory == "GM"]
        rows = [(base + (r * 32 + 4) * 4, base + (r * 32 + 14) * 4) for r in (3, 4)]
        assert access.ranges == tuple(rows)
        assert not access.writes
        writes = [a.ranges for a in events[-1].accesses if a.writes]
        # The valid part of both rows, and the rest of their last block.
        assert writes == [((0, 40), (64, 104)), ((40, 64), (104, 128))]


# ---- accumulators ------------------------------------------------------------------------------


def accumulator(text: str) -> Any:
    tile = make(text)
    if tile.spec.dtype.is_integer:
        values = np.random.default_rng(1).integers(-200, 200, (tile.vr, tile.vc))
    else:
        values = np.random.default_rng(1).normal(0, 100, (tile.vr, tile.vc))
    tile.fill(values.astype(tile.spec.dtype.np))
    return tile


def word(scale: float, offset: int = 0, signed: bool = True) -> int:
    pattern = int(np.float32(scale).view(np.uint32))
    return pattern | (offset & 0x1FF) << 37 | int(signed) << 46


ACC = {  # view -> element (row, column) of a 32 x 32 accumulator, by the definition of the layout
    "1x1x1x32x32 ND": lambda v, r, c: v[0, 0, 0, r, c],
    "1x2x2x16x16 NZ": lambda v, r, c: v[0, c // 16, r // 16, r % 16, c % 16],
    "1x2x4x8x16 NC1HWC0": lambda v, r, c: v[0, c // 16, r // 8, r % 8, c % 16],
    "1x1x4x8x32 NHWC": lambda v, r, c: v[0, 0, r // 8, r % 8, c],
    "1x1x32x4x8 NCHW": lambda v, r, c: v[0, 0, c, r // 8, r % 8],
    "1x32x3x4x8 NCDHW": lambda v, r, c: v[0, c, 0, r // 8, r % 8],
}
ON = {"NC1HWC0": ["a2a3"], "NHWC": ["a5"], "NCHW": ["a5"], "NCDHW": ["a5"]}


@pytest.mark.parametrize(
    ("view", "target"),
    [(v, t) for v in ACC for t in ON.get(v.split()[1], ["a2a3", "a5"])],
)
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_accumulators_reach_every_layout(view: str, target: str, kind: str) -> None:
    with device(target, mode="auto"):
        acc, result = accumulator("Acc f32 32x32"), make(f"GM {kind} {view}")
        TSTORE(result, acc)
        expected = acc.numpy().astype(dtype(kind).np)
        for r in range(32):
            for c in range(32):
                assert ACC[view](result.numpy(), r, c) == expected[r, c]


def test_an_ncdhw_view_takes_one_plane() -> None:
    with device("a5", mode="auto"):
        result = make("GM f32 1x32x3x4x8 NCDHW")
        before = result.numpy().copy()
        TSTORE(result, accumulator("Acc f32 32x32"))
        assert (bits(result.numpy()[:, :, 1:]) == bits(before[:, :, 1:])).all()


def test_split_channels_with_a_depth() -> None:
    shape, stride = (1, 2, 1, 4, 8), (1024, 512, 512, 128, 16)  # N D C1 H W, C0 = 16
    spec = GlobalSpec.of(dtype("f16"), shape, stride, Layout.NDC1HWC0)
    with device("a2a3", mode="auto"):
        acc, result = accumulator("Acc f32 32x32"), tensor(spec)
        TSTORE(result, acc)
        memory = result.data().buffer.owner[:1024].reshape(2, 4, 8, 16)
        expected = acc.numpy().astype(np.float16)
        for r in range(32):
            for c in range(32):
                assert memory[c // 16, r // 8, r % 8, c % 16] == expected[r, c]


def test_f32_channel_split_into_halves_of_eight() -> None:
    with device("a2a3", mode="auto"):
        acc, result = accumulator("Acc f32 32x32"), make("GM f32 1x4x2x16x8 NZ")
        TSTORE(result, acc)
        boxes = result.numpy()[0].transpose(1, 2, 0, 3).reshape(32, 32)
        assert (boxes == acc.numpy()).all()


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_quantised_store(target: str) -> None:
    with device(target, mode="auto"):
        acc, result = accumulator("Acc i32 32x32"), make("GM i8 32x32")
        TSTORE[AtomicType.AtomicNone, RELU](result, acc, word(0.25, 3))
        scaled = np.clip(np.rint(acc.numpy() * 0.25), -256, 255) + 3
        expected = np.maximum(np.clip(scaled, -128, 127), 0)
        assert (result.numpy()[0, 0, 0] == expected).all()


def test_quantised_store_with_a_word_per_column() -> None:
    with device("a2a3", mode="auto"):
        acc, result = accumulator("Acc i32 32x32"), make("GM f16 32x32")
        words = make("Scaling u64 1x32")
        scales = 2.0 ** -(np.arange(32) % 5)
        words.fill(np.array([[word(s) for s in scales]], np.uint64))
        TSTORE_FP(result, acc, words)
        assert (result.numpy()[0, 0, 0] == (acc.numpy() * scales).astype(np.float16)).all()


@pytest.mark.parametrize("kind", ["f16", "f32", "i16", "i32", "i8", "bf16"])
def test_atomic_add(kind: str) -> None:
    np_kind = dtype(kind).np
    values = (np.arange(512).reshape(16, 32) % 100).astype(np_kind)
    memory = (np.arange(512)[::-1].reshape(16, 32) % 90).astype(np_kind)
    expected = memory + values
    with device("a2a3", mode="auto"):
        tile = make(f"Vec {kind} 16x32")
        tile.fill(values)
        TSTORE[ADD](GlobalTensor(memory), tile)
        assert (bits(memory) == bits(expected)).all()


def test_atomic_add_rounds_in_the_type_of_the_view() -> None:
    memory = np.full((16, 32), 2048, np.float16)
    with device("a5", mode="auto"):
        acc = make("Acc f32 16x32")
        acc.fill(1.0)
        TSTORE[ADD](GlobalTensor(memory), acc)
        assert (memory == 2048).all()  # 2049 is not an f16
        huge = make("Vec f16 16x32")
        huge.fill(65504.0)
        TSTORE[ADD](GlobalTensor(np.full((16, 32), 65504, np.float16)), huge)


@pytest.mark.parametrize("target", ["kirin9030", "kirinx90"])
def test_kirin_has_no_atomic_stores(target: str) -> None:
    assert codes("TSTORE", target, "GM f32 16x64", "Vec f32 16x64", atomicType=ADD) == {
        "TSTORE.atomic-target"
    }


@pytest.mark.parametrize(
    ("target", "view", "tile", "code"),
    [
        ("a2a3", "GM f32 1x1x4x8x32 NHWC", "Acc f32 32x32", "TSTORE.acc-layout"),
        ("a5", "GM f16 1x2x4x8x16 NC1HWC0", "Acc f32 32x32", "SA-0337"),
        ("a5", "GM f16 32x64", "Mat f16 32x64", "SA-0100"),
        ("a2a3", "GM f16 32x64", "Left f16 32x64", "SA-0101"),
        ("a2a3", "GM f32 1x1x2x16x32", "Acc f32 32x32", "PA-0023"),
        ("a2a3", "GM f32 16x32", "Acc f32 32x32", "PA-0048"),
        ("a2a3", "GM f16 16x64 DN", "Vec f16 16x64", "SA-0105"),
        ("a2a3", "GM i64 32x32 NZ", "Vec i64 32x32 NZ", "SA-0338"),
        ("a2a3", "GM u8 16x64", "Vec f16 16x64", "SA-0099"),
        ("a5", "GM i4 16x64", "Vec i4 16x64", "SA-0125"),
        ("a2a3", "GM u16 16x64", "Vec u16 16x64", "SA-0026"),
    ],
)
def test_stores_that_are_refused(target: str, view: str, tile: str, code: str) -> None:
    atomic = ADD if code == "SA-0026" else AtomicType.AtomicNone
    assert code in codes("TSTORE", target, view, tile, atomicType=atomic)


def test_one_row_is_stored_to_any_layout() -> None:
    with device("a2a3", mode="auto"):
        row, result = make("Vec f32 1x64"), make("GM f32 1x1x1x1x64 DN")
        row.fill(noise(float32, (1, 64)))
        TSTORE(result, row)
        assert (bits(result.numpy()[0, 0, 0]) == bits(row.numpy())).all()


# ---- prefetches --------------------------------------------------------------------------------


def test_prefetch_leaves_its_scratch_tile_undefined() -> None:
    with device("a2a3", mode="auto"):
        scratch, source = make("Vec f32 8x32"), make("GM f32 64x64")
        flood(scratch)
        TPREFETCH(scratch, source)
        assert not whole(scratch).defined().any()


def test_prefetch_on_the_permissive_profile_keeps_the_first_elements() -> None:
    with device("cpu", mode="auto"):
        scratch, source = make("Vec f32 8x32"), make("GM f32 64x64")
        TPREFETCH(scratch, source)
        first = source.numpy().reshape(-1)[:256].reshape(8, 32)
        assert (bits(scratch.numpy()) == bits(first)).all()


def test_asynchronous_prefetch_returns_an_event() -> None:
    with device("a2a3", mode="manual") as machine:
        source, context = make("GM f32 16x64"), PrefetchAsyncContext(np.zeros(1024, np.uint8))
        tile = make("Vec f32 16x16", at=0)
        flood(tile)
        event = TPREFETCH_ASYNC(source, context)
        assert event.valid()
        assert event.Wait(context.GetSession())
        memory = machine.core.memory(TileType.Vec)
        assert not memory.shadow[:256].any()  # the session's scratch
        assert memory.shadow[256:1024].all()
        shared = PrefetchAsyncContext(None, context.GetSession())
        assert TPREFETCH_ASYNC(source, shared).handle == event.handle + 1
        assert not TPREFETCH_ASYNC(source, PrefetchAsyncContext()).valid()


def test_asynchronous_prefetch_names_an_operand_that_is_no_context() -> None:
    class Other:
        key = "other"

    with device("a2a3", mode="auto"), pytest.raises(ProgramError, match="PrefetchAsyncContext"):
        TPREFETCH_ASYNC(make("GM f32 16x64"), Other())


def test_asynchronous_prefetch_takes_a_contiguous_range() -> None:
    """As many elements as the view has, from its start on, whatever its strides are."""
    rows = GlobalTensor(noise(float32, (16, 64)))[:, 0:32]
    strict = device("a5", mode="auto", rules="strict")
    with strict, pytest.raises(ProgramError, match="contiguous"):
        TPREFETCH_ASYNC(rows, PrefetchAsyncContext(np.zeros(1 << 16, np.uint8)))
    with device("a5", mode="auto") as machine:
        seen = listen(machine)
        TPREFETCH_ASYNC(rows, PrefetchAsyncContext(np.zeros(1 << 16, np.uint8)))
        assert [w.code for w in machine.warnings] == ["TPREFETCH_ASYNC.contiguous"]
        (view,) = [a for event in seen for a in event.accesses if a.operand == "src"]
        assert sum(stop - start for start, stop in view.ranges) == 16 * 32 * 4
