"""Every construct of the language page: equal bytes on every path, or refused at its line."""

from __future__ import annotations

import inspect
import linecache

import numpy as np
import pytest

from ptokit import PtoError, loads
from tests.frontend.constructs import COLS, CONSTRUCTS, ROWS, Construct

X = (np.arange(ROWS * COLS, dtype=np.float32).reshape(ROWS, COLS) * 7 % 23) / 4


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
