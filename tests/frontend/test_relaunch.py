"""Launching again: what one launch leaves to the next saves time and tells nothing."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from ptokit import PtoError
from tests.frontend import kernels as k

X = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)


def run(n: int, x: np.ndarray = X, **how: object) -> np.ndarray:
    z = np.zeros_like(x)
    k.load_if[1](x, z, n, path="lowered", **how)  # type: ignore[arg-type]
    return z


def test_every_launch_sees_its_own_arrays() -> None:
    for factor in (1, 2, 3):
        np.testing.assert_array_equal(run(1, X * factor), X * factor)


def test_memory_is_undefined_again() -> None:
    """The bytes of the launch before are there; reading them is as wrong as the first time."""
    for n in (1, 0, 1, 0):
        if n:
            np.testing.assert_array_equal(run(n), X)
        else:
            with pytest.raises(PtoError) as refused:
                run(n)
            assert {d.code for d in refused.value.diagnostics} == {"poison-read"}


def test_targets_and_checks_may_change_in_between() -> None:
    for how in ({"target": "a5"}, {"target": "a2a3"}, {"check": False}, {"check": "explore"}, {}):
        np.testing.assert_array_equal(run(1, **how), X)


def test_no_array_is_kept_alive() -> None:
    class Watched(np.ndarray):
        """An array that can be referred to weakly."""

    x = X.copy().view(Watched)
    alive = weakref.ref(x)
    run(1, x)
    del x
    gc.collect()
    assert alive() is None


def test_records_of_an_earlier_run_stay_readable() -> None:
    z = np.zeros_like(X)
    first = k.load_if[1](X, z, 1, path="lowered", events=True)
    before = list(first.events or ())
    run(1)
    assert before
    assert list(first.events or ()) == before
