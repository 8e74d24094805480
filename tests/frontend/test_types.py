"""Tile, ConvTile and GlobalTensor types: static rules where the type is formed, views, slices."""

from __future__ import annotations

from array import array
from ctypes import c_uint8

import numpy as np
import pytest

from ptokit import *
from ptokit.machine.faults import OutOfBounds, Unbound

V = TileType.Vec


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("SA-0065", (V, float32, 0, 16)),
        ("SA-0065", (V, float32, 16, 16, BLayout.RowMajor, 17, 16)),
        ("SA-0006", (V, float32, 16, 15)),
        ("SA-0006", (V, float32, 15, 16, BLayout.ColMajor)),
        ("SA-0095", (V, float32, 16, 16, BLayout.ColMajor, 16, 16, SLayout.RowMajor, 256)),
        ("SA-0097", (TileType.Mat, half, 16, 16, BLayout.ColMajor, 16, 16, SLayout.RowMajor, 1024)),
        ("SA-0067", (TileType.Mat, half, 24, 16, BLayout.ColMajor, 24, 16, SLayout.RowMajor)),
        ("SA-0066", (TileType.Mat, half, 16, 24, BLayout.ColMajor, 16, 24, SLayout.RowMajor)),
    ],
)
def test_static_rules_are_checked_when_the_type_is_formed(code: str, arguments: tuple) -> None:
    with pytest.raises(ProgramError) as caught:
        Tile[arguments]
    assert caught.value.codes == (code,)
    assert "test_types.py" in str(caught.value)


def test_static_members_follow_the_parameters() -> None:
    TileT = Tile[V, half, 16, 32, BLayout.RowMajor, 13, DYNAMIC]
    assert (TileT.Rows, TileT.Cols, TileT.ValidRow, TileT.ValidCol) == (16, 32, 13, DYNAMIC)
    assert (TileT.DType, TileT.Loc, TileT.isRowMajor) == (half, V, True)
    assert (TileT.RowStride, TileT.ColStride, TileT.Numel) == (32, 1, 512)


def test_one_type_per_set_of_parameters() -> None:
    assert Tile[V, float32, 16, 16] is Tile[V, "float", 16, 16, BLayout.RowMajor, 16, 16]


def test_dynamic_valid_sizes_are_constructor_arguments() -> None:
    TileT = Tile[V, float32, 16, 16, BLayout.RowMajor, DYNAMIC, DYNAMIC]
    tile = TileT(5, 7)
    assert (tile.GetValidRow(), tile.GetValidCol()) == (5, 7)
    tile.SetValidRow(9)
    assert (tile.GetValidRow(), tile.GetValidCol()) == (9, 7)
    for wrong in [(), (5,), (5, 7, 9)]:
        with pytest.raises(ProgramError, match="one argument per DYNAMIC valid size"):
            TileT(*wrong)
    with pytest.raises(ProgramError, match="capacity"):
        tile.SetValidCol(17)
    with pytest.raises(ProgramError, match="fixed at 16 by its type"):
        Tile[V, float32, 16, 16]().SetValidRow(3)


@pytest.mark.parametrize(
    ("target", "layout"), [("a2a3", "ZZ"), ("a5", "NZ"), ("kirin9030", "NZ"), ("kirinx90", "ZZ")]
)
def test_aliases_take_their_layout_from_the_target(target: str, layout: str) -> None:
    with device(target):
        assert TileLeft[half, 32, 64]().spec.layout == layout
        assert TileRight[half, 64, 32]().spec.layout == "ZN"
        acc = TileAcc[float32, 32, 32]().spec
        assert (acc.layout, acc.fractal) == ("NZ", 1024)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_shape_takes_as_many_values_as_it_has_dynamic_dimensions(count: int) -> None:
    dims = [DYNAMIC] * 5
    dims[0] = 2
    if count == 4:
        dims[1] = 2  # three DYNAMIC dimensions for four values
    with pytest.raises(ProgramError) as caught:
        Shape[tuple(dims)](*range(1, count + 1)) if count != 4 else Shape[tuple(dims)](1, 2, 3, 4)
    assert caught.value.codes == (f"SA-000{count}",)
    assert Shape[1, 1, 1, DYNAMIC, DYNAMIC](3, 4).values == (1, 1, 1, 3, 4)
    assert Shape[1, 1, 1, DYNAMIC, 4]().values == (1, 1, 1, 1, 4)


def test_nz_helpers_check_their_multiples() -> None:
    with pytest.raises(ProgramError) as caught:
        BaseShape2D[half, 17, 24, Layout.NZ]
    assert caught.value.codes == ("SA-0093", "SA-0007")


GT = GlobalTensor[float32, Shape[1, 1, 1, 4, 6], Stride[24, 24, 24, 6, 1]]


def test_a_global_tensor_shares_the_array() -> None:
    x = np.zeros((4, 6), np.float32)
    g = GT(x)
    x[2, 3] = 7
    assert g.numpy()[0, 0, 0, 2, 3] == 7
    g.numpy()[0, 0, 0, 0, 0] = 5
    assert x[0, 0] == 5


def test_the_pointer_must_have_the_element_type() -> None:
    with pytest.raises(ProgramError) as caught:
        GT(np.zeros((4, 6), np.float64).astype(np.int32))
    assert caught.value.codes == ("SA-0054",)


def test_buffers_and_dlpack_are_arrays_too() -> None:
    raw = bytearray(16)
    g = GlobalTensor[uint8, Shape[1, 1, 1, 1, 16], Stride[16, 16, 16, 16, 1]](raw)
    g.numpy()[...] = 3
    assert raw == bytearray([3] * 16)
    for numbers in (array("B", range(16)), (c_uint8 * 16)(*range(16)), bytes(range(16))):
        view = GlobalTensor[uint8, Shape[1, 1, 1, 1, 16], Stride[16, 16, 16, 16, 1]](numbers)
        assert view.numpy().ravel().tolist() == list(range(16))
    with pytest.raises(ProgramError, match="given as an array or a pointer"):
        GlobalTensor([1.0, 2.0])

    class Exporter:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __dlpack__(self, **kwargs: object) -> object:
            return self.array.__dlpack__(**kwargs)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    x = np.arange(24, dtype=np.float32)
    assert GT(Exporter(x)).numpy()[0, 0, 0, 1, 0] == 6


def test_slices_move_the_pointer_and_keep_the_strides() -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    part = GT(x)[1:3, 2:5]
    assert np.array_equal(part.numpy()[0, 0, 0], x[1:3, 2:5])
    with pytest.raises(ProgramError, match="lies inside the view"):
        GT(x)[1:5, 0:2]


def test_a_strided_array_is_taken_as_it_is() -> None:
    x = np.arange(48, dtype=np.float32).reshape(4, 12)
    g = GlobalTensor(x[1:, 2:8])
    assert np.array_equal(g.numpy()[0, 0, 0], x[1:, 2:8])


def test_pointer_arithmetic_counts_elements() -> None:
    x = np.arange(48, dtype=np.float32)
    g = GT(ptr(x) + 24)
    assert g.numpy()[0, 0, 0, 0, 0] == 24


def test_access_outside_the_array_is_an_error_that_says_where() -> None:
    x = np.zeros(20, np.float32)
    with device("a2a3", mode="auto"), pytest.raises(OutOfBounds) as caught:
        TLOAD(Tile[V, float32, 4, 8, BLayout.RowMajor, 4, 6](), GT(x))
    text = str(caught.value)
    assert "last element = 23" in text
    assert "array elements = 20" in text
    assert "test_types.py" in text
    with pytest.raises(OutOfBounds, match="array elements = 20"):
        GT(x).numpy()


def test_an_unbound_tile_cannot_be_used_in_manual_mode() -> None:
    with device("a2a3"), pytest.raises(Unbound, match="TASSIGN"):
        TLOAD(Tile[V, float32, 4, 8, BLayout.RowMajor, 4, 6](), GT(np.zeros(24, np.float32)))


def test_conv_tile_shape() -> None:
    ConvT = ConvTile[TileType.Mat, half, 4096, Layout.NC1HWC0, ConvTileShape[1, DYNAMIC, 4, 4, 16]]
    tile = ConvT()
    tile.SetDynamicShape(3)
    assert tile.shape == (1, 3, 4, 4, 16)
    assert (tile.GetShape(1), tile.GetShape(5)) == (3, -1)
    with pytest.raises(ProgramError, match="one value per DYNAMIC dimension"):
        tile.SetDynamicShape(3, 4)
