"""Run on every target: pytest --pto-targets=all --pto-paths=eager,lowered."""

import numpy as np
from rowkernels import scaled_softmax, softmax

from ptokit.testing import assert_tile_equal


def reference(x):
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_softmax(pto):
    x, y = pto.random((64, 128)), pto.zeros((64, 128))
    pto.run(softmax[1], x, y)
    assert_tile_equal(y, reference(x), rtol=1e-6)


def test_scaled_softmax(pto):
    x, y = pto.random((16, 128)), pto.zeros((16, 128))
    pto.run(scaled_softmax[1], x, y, 0.5)
    assert_tile_equal(y, reference(x * np.float32(0.5)), rtol=1e-6)
