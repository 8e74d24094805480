"""FIFOs in lowered kernels: the operations of the text, the same bytes, and what has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.from_text import loads
from ptokit.ir.parser import parse
from ptokit.ir.printer import print_module
from ptokit.ir.rewrite import same_module

UP = TileSplitAxis.TILE_UP_DOWN
V2C, V2C_GM = Direction.DIR_V2C, Direction.DIR_V2C_GM
Half = Tile[TileType.Vec, half, 16, 32]
Whole = Tile[TileType.Mat, half, 32, 32, BLayout.ColMajor, 32, 32, SLayout.RowMajor]


Matrix = Tile[TileType.Mat, float32, 32, 32, BLayout.ColMajor, 32, 32, SLayout.RowMajor]


def at(tile: Any, address: int) -> Any:
    TASSIGN(tile, address)
    return tile  # from a helper that is called inside a section


@kernel(core="mix")
def square(x: Any, ring: Any, y: Any, *, way: Any) -> None:
    """y = x x; the halves of x come from the vector cores."""
    pipe = TPipe[2, way, 2048, 2](ring, 0, 0)
    with vector_section():
        tile = at(Half(), 0)
        first = get_subblockid() * 16
        TLOAD(tile, GlobalTensor(x)[first : first + 16, :])
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
        TPUSH[UP](pipe, tile)
    with cube_section():
        whole = Whole()
        left, right, acc = [
            at(kind(), 0)
            for kind in (TileLeft[half, 32, 32], TileRight[half, 32, 32], TileAcc[float32, 32, 32])
        ]
        TPOP[UP](pipe, whole)
        PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
        TMOV(left, whole)
        TMOV(right, whole)
        if way == V2C:
            TFREE[UP](pipe)
        PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
        TMATMUL(acc, left, right)
        PtoSetWaitFlag[PIPE_M, PIPE_FIX]()
        TSTORE(GlobalTensor(y), acc)


Slot = GlobalTensor[half, Shape[1, 1, 1, 16, 32], Stride[1, 1, 1, 32, 1]]
Entry = GlobalTensor[half, Shape[1, 1, 1, 32, 32], Stride[1, 1, 1, 32, 1]]


@kernel(core="mix")
def through_slots(x: Any, ring: Any, y: Any, *, way: Any) -> None:
    """y = x, twice as many entries as slots, with the slots in hand."""
    pipe = TPipe[2, way, 2048, 2](ring, 0, 0)
    with vector_section():
        tile, slot = at(Half(), 0), Slot()
        first = get_subblockid() * 16
        for i in range(4):
            TLOAD(tile, GlobalTensor(x)[i * 32 + first : i * 32 + first + 16, :])
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
            TALLOC[UP](pipe, slot)
            TSTORE(slot, tile)
            TPUSH[UP](pipe, slot)
            PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()
    with cube_section():
        left, right, acc = [
            at(kind(), 0)
            for kind in (TileLeft[half, 32, 32], TileRight[half, 32, 32], TileAcc[float32, 32, 32])
        ]
        whole, one = at(Whole(), 0), at(Whole(), 0x1000)
        entry = Entry()
        TLOAD(one, GlobalTensor(x)[128:160, :])
        for i in range(4):
            TPOP[UP](pipe, entry)
            TLOAD(whole, entry)
            TFREE[UP](pipe, entry)
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
            TMOV(left, whole)
            TMOV(right, one)
            PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
            PtoSetWaitFlag[PIPE_MTE1, PIPE_MTE2]()
            TMATMUL(acc, left, right)
            PtoSetWaitFlag[PIPE_M, PIPE_FIX]()
            PtoSetWaitFlag[PIPE_M, PIPE_MTE1]()
            TSTORE(GlobalTensor(y)[i * 32 : i * 32 + 32, :], acc)
            PtoSetWaitFlag[PIPE_FIX, PIPE_M]()


@kernel(core="mix")
def with_memory(ring: Any) -> None:
    pipe = TPipe[0, V2C, 2048, 2](ring, 0, 0)
    with vector_section():
        slot = GlobalTensor(ring)
        TALLOC[UP](pipe, slot)


@kernel(core="mix")
def with_part_of_a_slot(ring: Any) -> None:
    with vector_section():
        Slot()[0:8, :]


@kernel(core="mix")
def with_sizes_of_run_time(ring: Any) -> None:
    GlobalTensor[half, Shape[1, 1, 1, DYNAMIC, 32], Stride[1, 1, 1, 32, 1]]()


@kernel(core="mix")
def too_early(ring: Any) -> None:
    with vector_section():
        tile, slot = at(Half(), 0), Slot()
        TLOAD(tile, slot)


@kernel(core="mix")
def with_unit_flags(ring: Any) -> None:
    TPipe[0, V2C, 2048, 2, 2, False, True](ring, 0, 0)


def arrays() -> tuple[Any, Any, Any]:
    x = np.random.default_rng(0).integers(-3, 4, (32, 32)).astype(np.float16)
    return x, np.zeros((2, 32, 32), np.float16), np.zeros((32, 32), np.float32)


WAYS = [("a2a3", V2C), ("a5", V2C), ("a5", V2C_GM)]


@pytest.mark.parametrize(("target", "way"), WAYS)
@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_both_paths(target: str, way: Any, path: str, seed: int | None) -> None:
    x, ring, y = arrays()
    square[1](x, ring, y, target=target, path=path, seed=seed, way=way)
    assert np.array_equal(y, x.astype("f4") @ x.astype("f4"))


SLOT_WAYS = [("a2a3", V2C), ("a5", V2C_GM)]


def slot_arrays() -> tuple[Any, Any, Any]:
    x = np.random.default_rng(0).integers(-3, 4, (160, 32)).astype(np.float16)
    x[128:] = np.eye(32)
    return x, np.zeros((2, 32, 32), np.float16), np.zeros((128, 32), np.float32)


@pytest.mark.parametrize(("target", "way"), SLOT_WAYS)
@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_slots_in_hand(target: str, way: Any, path: str, seed: int | None) -> None:
    x, ring, y = slot_arrays()
    through_slots[1](x, ring, y, target=target, path=path, seed=seed, way=way)
    assert np.array_equal(y, x[:128].astype("f4"))


@pytest.mark.parametrize(("target", "way"), SLOT_WAYS)
def test_text_of_slots(target: str, way: Any) -> None:
    module = through_slots.lower(*slot_arrays(), target=target, way=way)
    text = print_module(module)
    view = "!pto.partition_tensor_view<16x32xf16>"
    assert f"pto.talloc(%slot, %pipe : {view}, !pto.pipe) {{split = 1}}" in text
    assert f"pto.tpush(%slot, %pipe : {view}, !pto.pipe) {{split = 1}}" in text
    whole = "!pto.partition_tensor_view<32x32xf16>"
    assert f"pto.tfree(%entry, %pipe : {whole}, !pto.pipe) {{split = 1}}" in text
    assert same_module(parse(text, "kernel.pto"), module)


def test_a_slot_used_before_it_is_allocated() -> None:
    with pytest.raises(PtoError, match="used before it points at a slot") as caught:
        too_early[1](np.zeros((32, 32), np.float16), target="a2a3", path="lowered")
    assert caught.value.diagnostics[0].location is not None
    assert caught.value.diagnostics[0].location.file.endswith("test_fifos.py")


@pytest.mark.parametrize(("target", "way"), WAYS)
def test_text(target: str, way: Any) -> None:
    """Rings in the consumer's memory need no global memory, and have an operation of their own."""
    module = square.lower(*arrays(), target=target, way=way)
    text = print_module(module)
    opening = "pto.initialize_l2l_pipe" if way == V2C and target == "a5" else "l2g2l_pipe"
    assert opening in text
    assert "flag_base = 2" in text
    assert text.count("{split = 1}") == (3 if way == V2C else 2)
    assert same_module(parse(text, "kernel.pto"), module)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (with_memory, "TALLOC of a GlobalTensor that has memory of its own cannot be lowered"),
        (with_part_of_a_slot, "a slot of a FIFO is moved as a whole"),
        (with_sizes_of_run_time, "sizes and strides known at compile time"),
    ],
)
def test_what_the_text_has_no_operation_for(wrong: Kernel, message: str) -> None:
    with pytest.raises(PtoError, match=message) as caught:
        wrong.lower(np.zeros((32, 32), np.float16))
    assert caught.value.diagnostics[0].code.startswith("lower.")


@kernel(mode="auto", core="mix")
def keeping_two(x: Any, y: Any, ring: Any, *, slots: int, local: int) -> None:
    """y is the first entry, used when the second one was popped as well."""
    pipe = TPipe[0, V2C, 4096, slots, local](ring, 0, 0x8000)
    with vector_section():
        tile, first = Tile[TileType.Vec, float32, 16, 32](), get_subblockid() * 16
        for i in range(2):
            TLOAD(tile, GlobalTensor(x)[first : first + 16, :])
            TADDS(tile, tile, i * 1.0)
            TPUSH[UP](pipe, tile)
    with cube_section():
        left, right = TileLeft[float32, 32, 32](), TileRight[float32, 32, 32]()
        acc, a, b = TileAcc[float32, 32, 32](), Matrix(), Matrix()
        TPOP[UP](pipe, a)
        TFREE[UP](pipe)
        TPOP[UP](pipe, b)
        TFREE[UP](pipe)
        TMOV(left, a)
        TMOV(right, b)
        TMATMUL(acc, left, right)
        TSTORE(GlobalTensor(y), acc)


@pytest.mark.parametrize(("slots", "local"), [(1, 1), (1, 2), (2, 2), (2, 3), (4, 1)])
def test_texts_have_no_more_copies_than_slots(slots: int, local: int) -> None:
    x = np.eye(32, dtype=np.float32)
    kept = x if local > 1 else x + 1  # a single copy is overwritten by the second pop
    for path in ("eager", "lowered"):
        y, ring = np.zeros((32, 32), np.float32), np.zeros(16384, np.uint8)
        keeping_two[1](x, y, ring, slots=slots, local=local, path=path)
        assert (y == kept @ (x + 1)).all()
    keeping_two.cpp(x, y, ring, slots=slots, local=local)
    for form in ("l2", "l3"):
        if local <= slots:
            text = keeping_two.text(x, y, ring, slots=slots, local=local, form=form)
            assert loads(text).check() == []
            continue
        with pytest.raises(PtoError, match="at most as many local slots as slots") as caught:
            keeping_two.text(x, y, ring, slots=slots, local=local, form=form)
        assert caught.value.codes == ("convert-level",)
        assert "pipe = TPipe" in str(caught.value)


def test_the_permissive_profile_keeps_popped_tiles() -> None:
    x, y = np.eye(32, dtype=np.float32), np.zeros((32, 32), np.float32)
    keeping_two[1](x, y, np.zeros(16384, np.uint8), slots=2, local=1, target="cpu", allow=["E10"])
    assert (y == x + 1).all()


def test_unit_flags_are_part_of_the_pipe() -> None:
    module = with_unit_flags.lower(np.zeros((32, 32), np.float16))
    text = print_module(module)
    assert "unit_flag = true" in text
    assert same_module(parse(text, "kernel.pto"), module)


CONVERSION = FixpipeParams(QuantPre=QuantMode_t.F322F16, ReluMode=ReluPreMode.NormalRelu)


@kernel(core="mix", target="a5")
def converted(x: Any, y: Any, z: Any) -> None:
    pipe = TPipe[0, Direction.DIR_C2V, 4096, 2](None, 0, 0)
    with cube_section():
        a, b = (
            Tile[TileType.Mat, f16, 16, 16, BLayout.ColMajor, 16, 16, SLayout.RowMajor](),
            Tile[TileType.Mat, f16, 16, 16, BLayout.ColMajor, 16, 16, SLayout.RowMajor](),
        )
        left, right, acc = TileLeft[f16, 16, 16](), TileRight[f16, 16, 16](), TileAcc[f32, 16, 16]()
        TASSIGN[0](a)
        TASSIGN[4096](b)
        TASSIGN[0](left)
        TASSIGN[0](right)
        TASSIGN[0](acc)
        TLOAD(a, GlobalTensor[f16, Shape[1, 1, 1, 16, 16], Stride[256, 256, 256, 16, 1]](x))
        TLOAD(b, GlobalTensor[f16, Shape[1, 1, 1, 16, 16], Stride[256, 256, 256, 16, 1]](y))
        pipe_barrier(PIPE_ALL)
        TMOV(left, a)
        TMOV(right, b)
        pipe_barrier(PIPE_ALL)
        TMATMUL(acc, left, right)
        pipe_barrier(PIPE_ALL)
        TPUSH[CONVERSION](pipe, acc)
    with vector_section():
        part = get_subblockid()
        t = Tile[TileType.Vec, f16, 16, 16]()
        TASSIGN[0](t)
        if part == 0:
            TPOP(pipe, t)
            pipe_barrier(PIPE_ALL)
            TSTORE(GlobalTensor[f16, Shape[1, 1, 1, 16, 16], Stride[256, 256, 256, 16, 1]](z), t)
            pipe_barrier(PIPE_ALL)
            TFREE(pipe)


def test_a_conversion_on_the_way_is_part_of_the_push() -> None:
    arrays = [np.arange(256, dtype=np.float16).reshape(16, 16) / 64 - 2 for _ in range(2)]
    found = []
    for path in ("eager", "lowered"):
        z = np.zeros((16, 16), np.float16)
        converted[1](*arrays, z, path=path)
        found.append(z)
    assert np.array_equal(found[0], found[1])
    assert found[0].any()
    module = converted.lower(*arrays, found[0])
    assert "config = {QuantPre = #pto<quant_mode_t F322F16>" in print_module(module)
    assert same_module(parse(print_module(module), "kernel.pto"), module)
    text = converted.cpp(*arrays, found[0])
    name = "FixpipeParams<LayoutMode_t::NZ2ND, QuantMode_t::F322F16, ReluPreMode::NormalRelu>"
    assert f", {name}>(pipe, acc);" in text


ROWS, COLUMNS, BOXES = BLayout.RowMajor, BLayout.ColMajor, SLayout.RowMajor
ARRANGED: dict[LayoutMode_t, tuple[Any, Any]] = {
    LayoutMode_t.NZ2ND: (
        Tile[TileType.Vec, float32, 16, 32],
        GlobalTensor[float32, Shape[1, 1, 1, 16, 32], Stride[1, 1, 1, 32, 1]],
    ),
    LayoutMode_t.NZ2DN: (
        Tile[TileType.Vec, float32, 16, 32, COLUMNS],
        GlobalTensor[float32, Shape[1, 1, 1, 16, 32], Stride[1, 1, 1, 1, 16], Layout.DN],
    ),
    LayoutMode_t.NZ2NZ: (
        Tile[TileType.Vec, float32, 16, 32, COLUMNS, 16, 32, BOXES],
        GlobalTensor[float32, Shape[1, 4, 1, 16, 8], Stride[512, 128, 128, 8, 1], Layout.NZ],
    ),
}


@kernel(core="mix", target="a2a3")
def arranged(ring: Any, y: Any, *, mode: LayoutMode_t) -> None:
    """The consumer looks at the slot through a view of its own."""
    pipe = TPipe[0, Direction.DIR_C2V, 2048, 2](ring, 0, 0)
    with cube_section():
        acc = TileAcc[float32, 16, 32]()
        TASSIGN[0](acc)
        acc.fill(np.arange(512).reshape(16, 32))
        TPUSH[FixpipeParams(LayoutMode=mode)](pipe, acc)
    with vector_section():
        kind, view = ARRANGED[mode]
        entry, tile = view(), kind()
        TASSIGN[0](tile)
        TPOP(pipe, entry)
        TLOAD(tile, entry)
        pipe_barrier(PIPE_ALL)
        y[get_subblockid()] = tile.numpy()
        TFREE(pipe, entry)


@pytest.mark.parametrize("mode", ARRANGED)
def test_an_entry_in_global_memory_is_arranged_as_the_conversion_says(mode: LayoutMode_t) -> None:
    y = np.zeros((2, 16, 32), np.float32)
    arranged[1](np.zeros(4096, np.uint8), y, mode=mode)
    assert np.array_equal(y, [np.arange(512).reshape(16, 32)] * 2)
