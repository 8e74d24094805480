"""The gate of global memory: what may become it, on every path, and what belongs to an array."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptokit import (
    DYNAMIC,
    TLOAD,
    TSTORE,
    GlobalTensor,
    ProgramError,
    PtoError,
    Shape,
    Stride,
    Tile,
    TileType,
    device,
    float32,
    kernel,
    loads,
    ptr,
)
from ptokit.machine.gm import GmBuffer
from ptokit.machine.objects import pointer

TileT = Tile[TileType.Vec, float32, 16, 64]
Dense = GlobalTensor[float32, Shape[1, 1, 1, 16, 64], Stride[1, 1, 1, 64, 1]]


@kernel(mode="auto")
def dense_copy(x: Any, y: Any) -> None:
    t = TileT()
    TLOAD(t, Dense(x))
    TSTORE(Dense(y), t)


TEXT = """
func.func @copy(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %vx = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
  %vy = pto.make_tensor_view %y, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
  %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x64xf32>
  %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x64xf32>
  %t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
  pto.tload ins(%px : !pto.partition_tensor_view<16x64xf32>) outs(%t : !pto.tile_buf<vec, 16x64xf32>)
  pto.tstore ins(%t : !pto.tile_buf<vec, 16x64xf32>) outs(%py : !pto.partition_tensor_view<16x64xf32>)
  return
}
"""  # noqa: E501


def by_hand(x: Any, y: Any) -> None:
    with device("a2a3", mode="auto"):
        dense_copy.source.function(x, y)  # type: ignore[attr-defined]


def by_pointer(x: Any, y: Any) -> None:
    by_hand(ptr(x), ptr(y))


# Every way on which an array becomes global memory.
DOORS: dict[str, Callable[[Any, Any], Any]] = {
    "eager": lambda x, y: dense_copy[1](x, y),
    "lowered": lambda x, y: dense_copy[1](x, y, path="lowered"),
    "reference": lambda x, y: dense_copy[1](x, y, engine="reference"),
    "lowered reference": lambda x, y: dense_copy[1](x, y, path="lowered", engine="reference"),
    "text": lambda x, y: loads(TEXT)["copy"][1](x, y),
    "text reference": lambda x, y: loads(TEXT)["copy"][1](x, y, engine="reference"),
    "a session": by_hand,
    "a pointer": by_pointer,
}
RECORD = np.dtype([("flag", "u1"), ("value", "<f4"), ("rest", "<u4")])


def packed() -> Any:
    return np.zeros((16, 64), RECORD)["value"]


def unaligned() -> Any:
    return np.zeros(4097, np.uint8)[1:].view("<f4").reshape(16, 64)


# What is refused whatever is done with it, and words of the message and of the fix.
HOSTILE: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a field of packed records": (packed, "no whole number of elements apart", "ascontiguous"),
    "unaligned": (unaligned, "multiple of its element size", ".copy()"),
    "backwards": (lambda: np.ones((16, 64), "f4")[::-1], "backwards", "ascontiguousarray"),
    "another machine's": (lambda: np.ones((16, 64), ">f4"), ">f4", "astype(np.float32)"),
    "objects": (lambda: np.ones((16, 64), object), "object", "astype"),
    "records": (lambda: np.ones((16, 64), RECORD), "element type", "astype"),
    "masked": (lambda: np.ma.masked_array(np.ones((16, 64), "f4"), True), "mask", ".filled(0)"),
}


def own() -> Any:
    return np.ones((16, 64), np.float32)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("place", [0, 1])
def test_arrays_that_cannot_be_global_memory(door: str, case: str, place: int) -> None:
    make, why, fix = HOSTILE[case]
    arrays = [own(), own()]
    arrays[place] = make()
    before = [np.array(np.asarray(a)) for a in arrays]
    with pytest.raises(ProgramError) as caught:
        DOORS[door](*arrays)
    found = caught.value.diagnostics[0]
    assert why in found.message
    assert fix in found.fix
    assert found.location is not None
    assert found.location.file in (__file__, "<text>")
    assert all(np.array_equal(np.asarray(a), b) for a, b in zip(arrays, before, strict=True))


# Views of larger arrays: what lies between their elements is not theirs.
def window() -> Any:
    return np.full((16, 256), 7, np.float32)[:, 64:128]


def every_other() -> Any:
    return np.full((16, 128), 7, np.float32)[:, ::2]


def field() -> Any:
    return np.zeros((16, 64), [("a", "<f4"), ("b", "<f4")])["a"]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("make", [window, every_other, field])
@pytest.mark.parametrize("place", [0, 1])
def test_a_dense_view_of_a_part_of_an_array(door: str, make: Callable[[], Any], place: int) -> None:
    arrays = [own(), own()]
    arrays[place] = make()
    around = arrays[place].base.copy()
    with pytest.raises(ProgramError) as caught:
        DOORS[door](*arrays)
    (found,) = caught.value.diagnostics
    assert found.code == "gm-bounds"
    assert "apart" in found.fix
    assert (arrays[place].base == around).all()


@pytest.mark.parametrize("by", ["fast", "reference"])
@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_a_view_with_the_strides_of_its_array(by: str, path: str) -> None:
    @kernel(mode="auto")
    def copy(x: Any, y: Any) -> None:
        for half in range(2):
            t = Tile[TileType.Vec, float32, 16, 32]()
            TLOAD(t, GlobalTensor(x)[:, half * 32 : half * 32 + 32])
            TSTORE(GlobalTensor(y)[:, half * 32 : half * 32 + 32], t)

    x, y = window(), window()
    x[...] = np.arange(1024).reshape(16, 64)
    copy[1](x, y, path=path, engine=by)
    assert (x == y).all()
    assert (y.base[:, :64] == 7).all()
    assert (y.base[:, 128:] == 7).all()


def test_the_memory_behind_a_view_is_shown_inside_its_array() -> None:
    assert GlobalTensor(window()).numpy().shape == (1, 1, 1, 16, 64)
    with pytest.raises(ProgramError, match="gm-bounds"):
        Dense(window()).numpy()


@given(st.data())
def test_a_buffer_holds_its_elements_and_nothing_else(data: st.DataObject) -> None:
    """Against one number per byte, for any forward strides: with gaps, overlaps, repetition."""
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    steps = data.draw(st.lists(st.integers(0, 9), min_size=len(shape), max_size=len(shape)))
    memory = np.zeros(128, np.int16)
    array = np.lib.stride_tricks.as_strided(memory, shape, [2 * s for s in steps])
    indices = np.indices(shape).reshape(len(shape), -1).T
    own = {2 * int(np.dot(index, steps)) + byte for index in indices for byte in (0, 1)}
    start = data.draw(st.integers(-4, 80))
    length = data.draw(st.integers(1, 8))
    asked = set(range(start, start + length))
    assert GmBuffer(array).holds(((0, length),), start) == (asked <= own)


class Liar:
    """An object of another library that fails when it is asked for its memory."""

    def __dlpack__(self, **_: Any) -> Any:
        raise RuntimeError("the tensor lives on another device")


def test_an_object_that_gives_no_array_says_why() -> None:
    with pytest.raises(PtoError, match="lives on another device"):
        pointer(Liar())


def test_a_subclass_of_arrays_is_its_elements() -> None:
    x, y = own().view(np.matrix), own() * 0
    dense_copy[1](x, y, engine="reference")
    assert (y == 1).all()


# ---- sizes and strides ---------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(1, 1, 1, -64, 1), (1, 1, 1, 16, -2), (-9, 1, 1, 1, 1)])
@pytest.mark.parametrize("kind", [Shape, Stride])
def test_only_minus_one_is_dynamic(kind: Any, sizes: tuple[int, ...]) -> None:
    with pytest.raises(ProgramError, match="view-size"):
        kind[sizes]
    some = tuple(-1 if n < 0 else n for n in sizes)
    assert kind[some](7).values == tuple(7 if n < 0 else n for n in sizes)
    with pytest.raises(ProgramError, match="view-size"):
        kind[some](min(sizes))
    with pytest.raises(ProgramError, match="view-size"):
        kind[some](*sizes)


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize("step", [-64, -1])
def test_a_stride_that_turns_out_negative(path: str, step: int) -> None:
    @kernel(mode="auto")
    def copy(x: Any, y: Any, step: int) -> None:
        Any5 = GlobalTensor[float32, Shape[1, 1, 1, 16, 64], Stride[1, 1, 1, DYNAMIC, 1]]
        t = TileT()
        TLOAD(t, Any5(x, None, Stride[1, 1, 1, DYNAMIC, 1](step)))
        TSTORE(Dense(y), t)

    x, y = own(), own() * 0
    with pytest.raises(ProgramError, match="view-size"):
        copy[1](x, y, step, path=path)
    assert (y == 0).all()


# ---- arguments that share memory -----------------------------------------------------------------


def told(door: str, x: Any, y: Any) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [found.message for found in DOORS[door](x, y).warnings]


LAUNCHES = [door for door in DOORS if not door.startswith("a ")]


@pytest.mark.parametrize("door", LAUNCHES)
def test_arguments_that_overlap_are_reported(door: str) -> None:
    z = np.arange(24 * 64, dtype=np.float32).reshape(24, 64)
    (found,) = told(door, z[:16], z[8:])
    assert "x and " in found
    assert "y share" in found


@pytest.mark.parametrize("door", LAUNCHES)
def test_arguments_that_do_not_overlap_or_are_not_written(door: str) -> None:
    z = np.ones((24, 64), np.float32)
    assert told(door, z[:16], z[8:]) == []  # what is written changes nothing
    assert told(door, z[:16], np.zeros((16, 64), np.float32)) == []
    assert told(door, z[8:], z[8:]) == []  # meant


def test_columns_lie_between_each_other_and_share_nothing() -> None:
    @kernel(mode="auto")
    def copy(x: Any, y: Any) -> None:
        t = TileT()
        TLOAD(t, GlobalTensor(x))
        TSTORE(GlobalTensor(y), t)

    z = np.arange(16 * 128, dtype=np.float32).reshape(16, 128)
    assert copy[1](z[:, :64], z[:, 64:]).warnings == ()
    assert (z[:, :64] == z[:, 64:]).all()
    z[...] = np.arange(16 * 128).reshape(16, 128)
    with pytest.warns(match="share"):
        copy[1](z[:, :64], z[:, 32:96])
    assert copy[1](z[:, :64], z[:, 48:112], allow=["argument-overlap"]).warnings == ()
