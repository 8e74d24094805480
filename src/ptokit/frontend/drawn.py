"""Numbers for arrays that nobody gave, the same each time.

A process that checks a small kernel wants a few thousand of them: loading NumPy's generators takes
longer than all that is computed with them.
"""

from __future__ import annotations

from math import prod, tau

import numpy as np

from ptokit.base.layout import Array


class Drawn:
    """Draws as a generator of NumPy's does."""

    def __init__(self) -> None:
        self._count = 0

    def standard_normal(self, shape: tuple[int, ...]) -> Array:
        radius, angle = (self._bits(shape) >> np.uint64(11) for _ in range(2))
        length = np.sqrt(-2 * np.log((radius + np.uint64(1)) * 2.0**-53))  # of (0, 1]
        return length * np.cos(tau * 2.0**-53 * angle)

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> Array:
        below = self._bits(shape) % np.uint64(high - low)
        return below.astype(np.int64) + low

    def _bits(self, shape: tuple[int, ...]) -> Array:
        """The next numbers of 64 bits: counted, and mixed until no bit tells of the next."""
        count = prod(shape)
        found = np.arange(self._count + 1, self._count + count + 1, dtype=np.uint64)
        self._count += count
        found *= np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            found ^= found >> np.uint64(shift)
            found *= np.uint64(factor)
        return (found ^ (found >> np.uint64(31))).reshape(shape)
