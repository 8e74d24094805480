"""Every construct of the language page: equal bytes on every path, or refused at its line."""

from __future__ import annotations

import inspect
import linecache

import numpy as np
import pytest

from ptokit import Kernel, PtoError, loads
from tests.frontend import constructs as c
from tests.frontend.constructs import COLS, CONSTRUCTS, ROWS, Construct

X = ((np.arange(ROWS * COLS).reshape(ROWS, COLS) * 7 % 23) / 3.7).astype(np.float32)


def outcome(program: object, n: int, **options: object) -> np.ndarray:
    y = np.full((ROWS, COLS), -1, np.float32)
    program[1](X.copy(), y, n, **options)  # type: ignore[index]
    return y


RUNS = {name: each for name, each in CONSTRUCTS.items() if not each.refused}
REFUSED = {name: each for name, each in CONSTRUCTS.items() if each.refused}


@pytest.mark.parametrize("made", RUNS.values(), ids=RUNS)
def test_every_path_gives_the_same_bytes(made: Construct) -> None:
    text = loads(made.kernel.text(X, X.copy(), 1)).entry()
    for n in made.numbers:
        wanted = outcome(made.kernel, n)
        assert np.array_equal(wanted, outcome(made.kernel, n, path="lowered")), n
        assert np.array_equal(wanted, outcome(text, n)), n
        assert not np.array_equal(wanted, np.full_like(wanted, -1)) or n == 0


@pytest.mark.parametrize("made", REFUSED.values(), ids=REFUSED)
def test_what_is_not_lowered_is_refused_at_its_line(made: Construct) -> None:
    with pytest.raises(PtoError) as caught:
        made.kernel.lower(X, X.copy(), 1)
    found = caught.value.diagnostics[0]
    assert found.code == made.refused
    assert found.fix or found.got or made.refused in ("lower.gone", "lower.compare")
    lines, first = inspect.getsourcelines(made.kernel.function)
    marked = [first + i for i, line in enumerate(lines) if "# here" in line]
    assert found.location is not None
    if marked:
        assert found.location.line == marked[0], linecache.getline(
            found.location.file, found.location.line
        )
    if made.eager in ("", "-"):
        return
    with pytest.raises(PtoError) as caught:
        outcome(made.kernel, 1)
    assert caught.value.diagnostics[0].code == made.eager


@pytest.mark.parametrize("made", [m for m in REFUSED.values() if not m.eager], ids=lambda m: m.says)
def test_what_is_refused_when_lowered_runs_as_it_stands(made: Construct) -> None:
    outcome(made.kernel, 1)


# ---- arguments ---------------------------------------------------------------------------------


def both_paths(kernel: Kernel, given: object, n: object, grid: object = 1) -> np.ndarray:
    """What a kernel writes, the same as it stands, lowered, and on the reference engine."""
    results = []
    for options in ({}, {"path": "lowered"}, {"path": "lowered", "engine": "reference"}):
        y = np.full((ROWS, COLS), -1, np.float32)
        kernel[grid](given, y, n, **options)
        results.append(y)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])
    return results[0]


@pytest.mark.parametrize("rows", [0, 2, 5])
def test_dataclasses_and_tuples_are_arguments(rows: int) -> None:
    y = both_paths(c.of_a_dataclass, c.Problem(X, (rows, 9), 0.3, "long"), 1)
    scale = np.float32(0.3) * np.float32(3)
    assert np.array_equal(y[:rows], X[:rows] * scale)
    assert (y[7] == 4 + 9).all()
    assert np.array_equal(both_paths(c.of_a_tuple, (X, (rows, 2)), 1)[0], X[rows] + 2)


def test_numbers_of_an_argument_do_not_specialise_it_but_constants_do() -> None:
    first, second, other = (
        c.of_a_dataclass.lower(c.Problem(X, (rows, 9), 0.3, name), X, 1)
        for rows, name in ((1, "a"), (2, "a"), (2, "b"))
    )
    assert first is second is not other


def test_a_kernel_does_not_change_its_argument() -> None:
    with pytest.raises(PtoError, match="made outside the kernel"):
        c.changes_its_argument.lower(c.Problem(X, (1, 1), 0.3), X, 1)


@pytest.mark.parametrize("f", [0.1, 0.3, 1.7, -2.9])
def test_floats_are_f32_on_every_path(f: float) -> None:
    y = both_paths(c.of_floats, X, f)
    assert y[0, 0] == np.float32(f)
    assert y[1, 0] == np.float32(f) * np.float32(3) - np.float32(0.1)


@pytest.mark.parametrize("grid", [(2, 3), (2, 1, 3), 6, (6,)])
def test_grids_of_up_to_three_dimensions(grid: object) -> None:
    y = both_paths(c.of_a_grid, X, 2, grid)
    assert y[:6, 0].tolist() == [6, 7, 8, 16, 17, 18]


@pytest.mark.parametrize("grid", [0, (2, 0), (1, 1, 1, 1), "2", (2.0, 1), ()])
def test_other_grids_are_refused(grid: object) -> None:
    with pytest.raises(PtoError, match="the grid is"):
        c.of_a_grid[grid]


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_views_are_sliced_in_the_dimensions_of_their_array(path: str, n: int) -> None:
    planes = X.reshape(2, 4, COLS)
    y = np.zeros_like(planes)
    c.of_three_dimensions[1](planes, y, n, path=path)
    assert np.array_equal(y, planes[::-1])
    flat, row = X.reshape(-1), np.zeros(32, np.float32)
    c.of_one_dimension[1](flat, row, n, path=path)
    assert np.array_equal(row, np.tile(flat[n : n + 16], 2))


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_a_slice_outside_its_view_is_refused(path: str) -> None:
    with pytest.raises(PtoError) as caught:
        c.of_three_dimensions[1](X.reshape(2, 4, COLS), X.reshape(2, 4, COLS).copy(), 2, path=path)
    assert caught.value.diagnostics[0].code == "slice-range"
