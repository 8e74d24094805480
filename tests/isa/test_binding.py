"""Views and fix-pipe parameters. TASSIGN has a page of its own: tests/seeds/test_tassign.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import *
from ptokit.frontend.session import current
from ptokit.isa.devices import TARGETS


@contextmanager
def refused(code: str) -> Iterator[None]:
    with pytest.raises(PtoError) as caught:
        yield
    assert code in [d.code for d in caught.value.diagnostics]


def bound(kind: Any, address: int = 0) -> Any:
    made = kind()
    TASSIGN(made, address)
    return made


# ---- TRESHAPE -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["manual", "auto"])
def test_treshape_shares_the_bytes(mode: str) -> None:
    with device("a2a3", mode=mode):
        src = bound(Tile[TileType.Vec, int32, 16, 64], 0x1000)
        src.fill(np.arange(1024).reshape(16, 64))
        dst = Tile[TileType.Vec, int16, 32, 64]()
        TRESHAPE(dst, src)
        assert np.array_equal(
            dst.numpy(), np.arange(1024, dtype=np.int32).view(np.int16).reshape(32, 64)
        )
        dst.fill(-1)
        assert (src.numpy() == -1).all()


def test_treshape_reinterprets_boxed_storage() -> None:
    """An NZ matrix read as ZN is its transpose: the boxes stay where they are."""
    with device("a5"):
        nz = (BLayout.ColMajor, 32, 64, SLayout.RowMajor)
        zn = (BLayout.RowMajor, 64, 32, SLayout.ColMajor)
        src = bound(Tile[TileType.Mat, half, 32, 64, *nz])
        src.fill(np.arange(2048).reshape(32, 64))
        dst = Tile[TileType.Mat, half, 64, 32, *zn]()
        TRESHAPE(dst, src)
        assert np.array_equal(dst.numpy(), src.numpy().T)


@pytest.mark.parametrize(
    ("dst", "code"),
    [
        (lambda: Tile[TileType.Mat, float32, 16, 64](), "SA-0303"),
        (lambda: Tile[TileType.Vec, float32, 16, 32](), "SA-0305"),
        (
            lambda: Tile[
                TileType.Vec, float32, 16, 64, BLayout.ColMajor, 16, 64, SLayout.RowMajor
            ](),
            "SA-0301",
        ),
        (
            lambda: ConvTile[
                TileType.Vec, float32, 1024, Layout.NC1HWC0, ConvTileShape[1, 1, 4, 32, 8]
            ](),
            "SA-0090",
        ),
        (lambda: GlobalTensor(np.zeros((16, 64), np.float32)), "SA-0090"),
    ],
)
def test_treshape_is_checked_in_manual_mode(dst: Any, code: str) -> None:
    with device("a2a3"):
        src = bound(Tile[TileType.Vec, float32, 16, 64])
        with refused(code):
            TRESHAPE(dst(), src)


def test_treshape_is_an_alias_directive_in_auto_mode() -> None:
    with device("a2a3", mode="auto"):
        src = Tile[TileType.Mat, float32, 16, 64]()
        src.fill(5)
        shape = ConvTileShape[1, 1, 4, 32, 8]
        conv = ConvTile[TileType.Mat, float32, 1024, Layout.NC1HWC0, shape]()
        TRESHAPE(conv, src)
        assert (conv.numpy() == 5).all()


def test_a_view_of_an_unbound_tile_is_refused() -> None:
    with device("a2a3"), refused("TRESHAPE.unbound-tile"):
        kind = Tile[TileType.Vec, float32, 16, 64]
        TRESHAPE(kind(), kind())


# ---- TSUBVIEW -----------------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_tsubview_is_a_window(data: st.DataObject) -> None:
    """Reads and writes through the window are those of the part of src."""
    by_rows = data.draw(st.booleans())
    row, col = data.draw(st.integers(0, 20)), data.draw(st.integers(0, 20))
    rows, cols = data.draw(st.integers(1, 32 - row)), data.draw(st.integers(1, 32 - col))
    order = BLayout.RowMajor if by_rows else BLayout.ColMajor
    with device("a5"):
        src = bound(Tile[TileType.Vec, float32, 32, 32, order], 0x400)
        src.fill(np.arange(1024).reshape(32, 32))
        dst = Tile[TileType.Vec, float32, 32, 32, order, rows, cols]()
        TSUBVIEW(dst, src, row, col)
        part = (slice(row, row + rows), slice(col, col + cols))
        expected = src.numpy()
        assert np.array_equal(dst.numpy(), expected[part])
        dst.fill(-1)
        expected[part] = -1
        assert np.array_equal(src.numpy(), expected)


def test_tsubview_takes_whole_columns_of_boxes() -> None:
    with device("a2a3"):
        boxed = (BLayout.ColMajor, DYNAMIC, DYNAMIC, SLayout.RowMajor)
        kind = Tile[TileType.Mat, half, 64, 64, *boxed]
        src, dst = kind(64, 64), kind(64, 32)
        TASSIGN(src, 0)
        src.fill(np.arange(4096).reshape(64, 64) % 997)
        TSUBVIEW(dst, src, 0, 16)
        assert np.array_equal(dst.numpy(), src.numpy()[:, 16:48])
        for row, col in ((16, 16), (0, 8)):  # plain strides lead elsewhere in a boxed tile
            with refused("TSUBVIEW.window"):
                TSUBVIEW(kind(16, 16), src, row, col)


def test_tsubview_needs_the_pitch_of_its_source() -> None:
    with device("a2a3"):
        src = bound(Tile[TileType.Vec, float32, 32, 32])
        src.fill(np.arange(1024).reshape(32, 32))
        narrow = Tile[TileType.Vec, float32, 32, 16]()
        with refused("TSUBVIEW.window"):
            TSUBVIEW(narrow, src, 0, 0)
        one_row = Tile[TileType.Vec, float32, 1, 16]()
        TSUBVIEW(one_row, src, 3, 8)
        assert np.array_equal(one_row.numpy()[0], np.arange(3 * 32 + 8, 3 * 32 + 24))


def test_tsubview_shows_the_first_bytes_as_another_type() -> None:
    """The same sizes of a smaller element: what it amounts to is known, elsewhere it is not."""
    with device("a5") as machine:
        src = bound(Tile[TileType.Vec, int8, 16, 64], 0x400)
        src.fill(np.arange(1024).reshape(16, 64) % 100)
        dst = Tile[TileType.Vec, float4_e2m1x2_t, 16, 64]()
        TSUBVIEW(dst, src, 0, 0)
        assert {d.code for d in machine.warnings} == {"TSUBVIEW.window"}
        assert (dst.storage, dst.address) == (src.storage, 0x400)
        with refused("TSUBVIEW.window"):
            TSUBVIEW(
                Tile[TileType.Vec, float4_e2m1x2_t, 16, 64, BLayout.RowMajor, 8, 64](), src, 1, 0
            )


@pytest.mark.parametrize(("row", "col"), [(20, 0), (0, 20), (-1, 0), (0, 40)])
def test_tsubview_stays_inside(row: int, col: int) -> None:
    with device("a2a3"):
        src = bound(Tile[TileType.Vec, float32, 32, 32])
        dst = Tile[TileType.Vec, float32, 32, 32, BLayout.RowMajor, 16, 16]()
        with refused("TSUBVIEW.inside"):
            TSUBVIEW(dst, src, row, col)


@pytest.mark.parametrize("at", [(0, 0), (0, 32), (8, 0), (8, 32)])
@pytest.mark.parametrize("mode", ["manual", "auto"])
def test_a_window_at_the_end_of_its_memory(at: tuple[int, int], mode: str) -> None:
    """The valid region of a window lies in its source; the rest of its type may lie anywhere."""
    row, col = at
    whole, window = (
        Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, *valid]
        for valid in ((16, 64), (8, 32))
    )
    with device("a2a3", mode=mode) as machine:
        src, dst = whole(), window()
        TASSIGN(src, machine.target.spaces[TileType.Vec].capacity - src.spec.nbytes)
        src.fill(np.arange(1024).reshape(16, 64))
        expected = src.numpy()
        TSUBVIEW(dst, src, row, col)
        part = expected[row : row + 8, col : col + 32]
        assert np.array_equal(dst.numpy(), part)
        TADDS(dst, dst, 0.5)
        part += 0.5
        y = np.zeros((8, 32), np.float32)
        pipe_barrier(PIPE_ALL)
        TSTORE(GlobalTensor(y), dst)
        assert np.array_equal(y, part)
        pipe_barrier(PIPE_ALL)
        TLOAD(dst, GlobalTensor(2 * y))
        part *= 2
        assert np.array_equal(src.numpy(), expected)
        dst.fill(-1)
        part[...] = -1
        assert np.array_equal(src.numpy(), expected)


# ---- TASSIGN ------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("address", [1, 31, 33, -16])
def test_a_tile_is_touched_at_an_aligned_address(target: str, address: int) -> None:
    """The form with an operand binds anywhere; the rule of the other form holds at the touch."""
    kind = Tile[TileType.Vec, float32, 16, 64]
    with device(target):
        tile, name = bound(kind, address), kind()
        TRESHAPE(name, tile)  # names share it without a touch
        with refused("SA-0354"):
            TEXPANDS(tile, 1.0)
        with refused("SA-0354"):
            TADDS(bound(kind, 0x4000), name, 1.0)
        TASSIGN(tile, 0x2000)
        TEXPANDS(tile, 1.0)
        assert (tile.numpy() == 1).all()


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_an_address_that_only_the_run_knows(path: str) -> None:
    @kernel
    def fill(at: int) -> None:
        tile = Tile[TileType.Vec, float32, 16, 64]()
        TASSIGN(tile, at)
        TEXPANDS(tile, 1.0)

    fill[1](64, path=path)
    with pytest.raises(PtoError) as caught:
        fill[1](31, path=path)
    (found,) = caught.value.diagnostics
    assert found.code == "SA-0354"
    assert "0x0 or 0x20" in found.fix
    assert found.location.file == __file__


# ---- TGET_SCALE_ADDR ----------------------------------------------------------------------------

LEFT, LEFT_SCALE = TileLeft[float8_e4m3, 32, 64], TileLeftScale[float8_e8m0, 32, 2]


def test_scale_addresses_are_a_sixteenth() -> None:
    with device("cpu"):
        data, scale = bound(LEFT, 0x4000), LEFT_SCALE()
        TGET_SCALE_ADDR(scale, data)
        assert scale.place == "at L0A-scales 0x400"


def test_scale_addresses_are_the_compilers_business_on_a5() -> None:
    with device("a5", mode="auto"):
        scale = LEFT_SCALE()
        TGET_SCALE_ADDR(scale, LEFT())
        scale.fill(1)
        with refused("TGET_SCALE_ADDR.scale-pair"):
            TGET_SCALE_ADDR(scale, TileRight[float8_e4m3, 64, 32]())
    with device("a5"), refused("TGET_SCALE_ADDR.auto-only"):
        TGET_SCALE_ADDR(LEFT_SCALE(), bound(LEFT))


@pytest.mark.parametrize("target", sorted(set(TARGETS) - {"a5"}))
def test_scale_addresses_exist_only_on_a5(target: str) -> None:
    with device(target, mode="auto"), refused("TGET_SCALE_ADDR.unavailable"):
        TGET_SCALE_ADDR(LEFT_SCALE(), LEFT())


# ---- SET_QUANT_* --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (float32, 0x3FC0_0000),
        (float16, 0x3FC0_0000),
        (uint8, 0x3FC0_0000),
        (int8, 0x3FC0_0000 | 1 << 46),
    ],
)
def test_set_quant_scalar_loads_the_word(kind: Any, word: int) -> None:
    with device("a2a3"):
        SET_QUANT_SCALAR[kind](1.5)
        assert current().core.registers["QUANT_PRE"] == word


def test_negative_scales_are_for_the_permissive_profile() -> None:
    with device("a5"), refused("SET_QUANT_SCALAR.scale-sign"):
        SET_QUANT_SCALAR(-1.5)
    with device("cpu"):
        SET_QUANT_SCALAR(-1.5)
        assert current().core.registers["QUANT_PRE"] == 0xBFC0_0000


def test_set_quant_vector_points_in_units_of_128_bytes() -> None:
    with device("a2a3", rules="strict"):
        tile = bound(Tile[TileType.Scaling, uint64, 1, 16], 0x180)
        SET_QUANT_VECTOR(tile)
        assert current().core.registers["FPC"] == 3 << 8
        assert current().core.registers["FPC_TILE"] is tile
        TASSIGN(tile, 0x1A0)
        with refused("SET_QUANT_VECTOR.fpc-alignment"):
            SET_QUANT_VECTOR(tile)
        with refused("SET_QUANT_VECTOR.location"):
            SET_QUANT_VECTOR(bound(Tile[TileType.Vec, uint64, 1, 16]))
