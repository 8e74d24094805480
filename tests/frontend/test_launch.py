"""Ways to launch: schedules, exploration, processes."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

from ptokit import *

Block = Tile[TileType.Vec, float32, 8, 32]


@kernel(mode="manual")
def scale_block(x, y):
    """Each block scales its own rows."""
    row = get_block_idx() * 8
    t = Block()
    TASSIGN[0x0](t)
    e = Event[Op.TLOAD, Op.TMULS](TLOAD(t, GlobalTensor(x)[row : row + 8, :]))
    e2 = Event[Op.TMULS, Op.TSTORE_VEC](TMULS(t, t, 2.0, e))
    TSTORE(GlobalTensor(y)[row : row + 8, :], t, e2)


@kernel(mode="manual")
def same_rows(x, y):
    """All blocks write the same rows, each its own number."""
    t = Block()
    TASSIGN[0x0](t)
    TEXPANDS(t, float(get_block_idx() + 1))
    e = Event[Op.TEXPANDS, Op.TSTORE_VEC]()
    e.Record()
    TSTORE(GlobalTensor(y)[0:8, :], t, e)


@kernel(mode="manual")
def racy(x, y):
    """The store does not wait for the vector unit."""
    t = Block()
    TASSIGN[0x0](t)
    e = Event[Op.TLOAD, Op.TMULS](TLOAD(t, GlobalTensor(x)[0:8, :]))
    TMULS(t, t, 2.0, e)
    TSTORE(GlobalTensor(y)[0:8, :], t)


def arrays(blocks: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((8 * blocks, 32)).astype(np.float32)
    return x, np.zeros_like(x)


@pytest.mark.parametrize("jobs", [1, 2, 3, 5])
@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_blocks_in_threads_give_the_same_arrays(jobs: int, path: str) -> None:
    for _ in range(3):
        x, y = arrays(5)
        scale_block[5](x, y, jobs=jobs, path=path)
        assert np.array_equal(y, x * 2)


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_blocks_that_write_the_same_bytes_keep_their_order(path: str) -> None:
    for _ in range(3):
        x, y = arrays(2)
        same_rows[2](x, y, jobs=2, check=False, path=path)
        assert (y[:8] == 2).all()


def test_an_error_has_its_line_with_any_number_of_jobs() -> None:
    x, y = arrays(4)
    with pytest.raises(ProgramError) as caught:
        racy[4](x, y, jobs=2)
    assert caught.value.codes[0] in ("E6", "E7")
    assert "TSTORE(GlobalTensor(y)[0:8, :], t)" in str(caught.value)


def test_the_same_seed_gives_the_same_run() -> None:
    results = []
    for _ in range(2):
        x, y = arrays(4)
        same_rows[4](x, y, seed=11, check=False)
        results.append(y)
    assert np.array_equal(*results)


def test_exploration_passes_a_right_kernel_and_keeps_its_result() -> None:
    x, y = arrays(3)
    scale_block[3](x, y, check="explore")
    assert np.array_equal(y, x * 2)


def test_exploration_finds_what_one_schedule_hides() -> None:
    x, y = arrays(1)
    racy[1](x, y, check=False)
    assert np.array_equal(y, x * 2), "in order the mistake does not show"
    from ptokit.frontend.launch import explore

    def body() -> None:
        racy.function(x, y)

    (found,) = explore({"mix": body}, [x, y])
    assert found.code == "schedule-dependent"
    assert "late" in dict(found.got)["schedule"]


def test_options_are_checked() -> None:
    x, y = arrays(1)
    with pytest.raises(PtoError, match='check is True, False, "full" or'):
        scale_block[1](x, y, check="everything")
    with pytest.raises(PtoError, match="jobs is a positive number"):
        scale_block[1](x, y, jobs=0)


@kernel(mode="auto")
def one_block(x: Any, y: Any, block: int, column: int) -> None:
    tile = Tile[TileType.Vec, float32, 8, 32]()
    TLOAD(tile, GlobalTensor(x)[block * 8 : block * 8 + 8, column : column + 32])
    TSTORE(GlobalTensor(y), tile)


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize(
    ("block", "column", "is_inside"),
    [(1, 32, True), (2, 0, False), (0, 33, False), (-1, 0, False)],
)
def test_a_part_of_a_view_lies_inside_it(
    path: str, block: int, column: int, is_inside: bool
) -> None:
    """Also where its elements would be others of the same array."""
    x, y = np.arange(1024, dtype=np.float32).reshape(16, 64), np.zeros((8, 32), np.float32)
    if is_inside:
        one_block[1](x, y, block, column, path=path)
        assert np.array_equal(y, x[block * 8 :, column:])
        return
    with pytest.raises(ProgramError) as caught:
        one_block[1](x, y, block, column, path=path)
    assert caught.value.codes == ("slice-range",)
    assert "TLOAD" in caught.value.diagnostics[0].location.text


@kernel(mode="manual")
def divides(x, y):
    1 // (get_block_idx() - get_block_idx())


def test_an_error_of_the_kernel_itself_shows_its_line() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        divides[2](*arrays(2))
    shown = "".join(traceback.format_exception(caught.value))
    assert "1 // (get_block_idx() - get_block_idx())" in shown


@kernel(mode="auto")
def computes(y, n):
    t = Tile[TileType.Vec, float32, 16, 16]()
    TEXPANDS(t, n * n * n)
    TSTORE(GlobalTensor(y), t)


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize(
    "number",
    [np.int8(100), np.uint8(200), np.int32(1000), np.float16(0.1), np.float64(0.1), np.bool_(True)],
    ids=lambda n: type(n).__name__,
)
def test_numbers_of_numpy_are_numbers_of_the_kernel(path: str, number: np.generic) -> None:
    """They neither wrap nor round as their own types do."""
    y = np.zeros((16, 16), np.float32)
    computes[1](y, number, path=path)
    n = np.float32(number) if isinstance(number, np.floating) else int(number)
    assert (y == np.float32(n * n * n)).all()


def test_a_number_of_more_than_64_bits_is_an_error_where_it_is_made(engine: str) -> None:
    y = np.zeros((16, 16), np.float32)
    computes[1](y, 2_000_000, path="lowered", engine=engine)
    with pytest.raises(ProgramError, match="the result has more than 64 bits") as caught:
        computes[1](y, 3_000_000, path="lowered", engine=engine)
    assert "n * n * n" in caught.value.diagnostics[0].location.text


@kernel(mode="auto")
def chooses(y, n):
    t = Tile[TileType.Vec, float32, 16, 16]()
    small = n * n * n if n < 1000 else 0
    TEXPANDS(t, small)
    TSTORE(GlobalTensor(y), t)


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_what_is_not_chosen_is_not_computed(path: str) -> None:
    y = np.ones((16, 16), np.float32)
    chooses[1](y, 3_000_000, path=path)
    assert (y == 0).all()


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_a_span_of_time_is_no_number(path: str) -> None:
    with pytest.raises(PtoError):
        computes[1](np.zeros((16, 16), np.float32), np.timedelta64(3, "s"), path=path)
