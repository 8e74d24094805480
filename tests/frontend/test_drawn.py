"""Numbers for arrays that nobody gave."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit.frontend.drawn import Drawn


def test_they_are_the_same_each_time_and_not_twice_in_a_row() -> None:
    one, other = Drawn(), Drawn()
    first = one.standard_normal((16, 64))
    assert first.shape == (16, 64)
    assert (first == other.standard_normal((16, 64))).all()
    assert not np.isin(one.standard_normal((16, 64)), first).any()


def test_they_are_normally_distributed() -> None:
    found = Drawn().standard_normal((200, 300))
    assert np.isfinite(found).all()
    assert abs(found.mean()) < 0.02
    assert found.std() == pytest.approx(1, abs=0.02)
    assert (found**4).mean() == pytest.approx(3, abs=0.15)
    assert abs(np.corrcoef(found[:, :-1].ravel(), found[:, 1:].ravel())[0, 1]) < 0.02


def test_integers_are_those_of_the_range() -> None:
    found = Drawn().integers(-2, 6, (50, 80))
    assert found.dtype == np.int64
    values, counts = np.unique(found, return_counts=True)
    assert values.tolist() == list(range(-2, 6))
    assert counts.min() > 400


@pytest.mark.parametrize("shape", [(), (0, 4), (1 << 18,), (512, 512)])
def test_any_shape(shape: tuple[int, ...]) -> None:
    found = Drawn().standard_normal(shape)
    assert found.shape == shape
    assert len(np.unique(found)) == found.size
