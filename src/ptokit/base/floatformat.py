"""The floating-point formats bit by bit: what every code means and where a format ends.

Conversion needs three things of a format that neither NumPy nor ml_dtypes offers for all of them:
the exact value of each code, the spacing of its values, and which codes stand for infinity and
NaN. They are written down here once, as data, so that the rounding code knows no format by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class FloatFormat:
    """The encoding of one float type. Codes are magnitudes; ``sign_bit`` is or-ed in."""

    precision: int
    """Significand bits of the densest values, the hidden one included."""
    least_exponent: int
    """log2 of the smallest positive value, which is also the spacing of the subnormals."""
    max_finite: float
    max_code: int
    inf_code: int | None
    nan_code: int | None
    sign_bit: int
    """0 for the unsigned format (e8m0)."""
    has_negative_zero: bool = True
    values: NDArray[np.float32] | None = None
    """Value of every code, sign included, for formats of at most 8 bits; None for wider ones."""
    beyond_max: float = math.inf
    """The value that would follow max_finite if the format went on; only with ``values``."""

    @property
    def overflow_code(self) -> int:
        """What a value beyond the range becomes unless it is clamped: inf, else NaN, else max."""
        if self.inf_code is not None:
            return self.inf_code
        return self.max_code if self.nan_code is None else self.nan_code

    @cached_property
    def magnitude_codes(self) -> NDArray[np.uint8]:
        """The codes of the finite values >= 0 in ascending order of value.

        hif8 is why this is needed: its codes are not ordered by value. In every format an odd
        code has an odd position here, so "ties to even" may be decided by position.
        """
        assert self.values is not None
        positive = self.values[: self.sign_bit or None]
        order = np.argsort(positive, kind="stable")
        return order[np.isfinite(positive[order])].astype(np.uint8)

    @cached_property
    def ladder(self) -> NDArray[np.float64]:
        """Ascending magnitudes with the midpoint of each pair between them.

        Ends with the first value beyond the range, so that overflow is an ordinary position.
        """
        assert self.values is not None
        grid = np.append(self.values[self.magnitude_codes].astype(np.float64), self.beyond_max)
        rungs = np.empty(2 * grid.size - 1)
        rungs[0::2] = grid
        rungs[1::2] = (grid[:-1] + grid[1:]) / 2
        return rungs


def _binary_magnitudes(exponent_bits: int, mantissa_bits: int, bias: int) -> list[float]:
    """Decode sign-less codes of exponent and mantissa fields, giving no code a special meaning."""
    steps = 1 << mantissa_bits
    magnitudes: list[float] = []
    for code in range(1 << exponent_bits + mantissa_bits):
        exponent, mantissa = divmod(code, steps)
        significand = mantissa if exponent == 0 else steps + mantissa
        magnitudes.append(math.ldexp(significand, max(exponent, 1) - bias - mantissa_bits))
    return magnitudes


def _hif8_magnitude(code: int) -> float:
    """Decode the low seven bits of a hif8 code: a prefix tells how the rest is divided."""
    if code >> 3 == 0b0000:  # powers of two below the normal range
        return math.ldexp(1.0, code - 23) if code else 0.0
    if code >> 3 == 0b0001:
        exponent_bits, mantissa_bits = 0, 3
    elif code >> 4 == 0b001:
        exponent_bits, mantissa_bits = 1, 3
    else:
        exponent_bits, mantissa_bits = {0b01: (2, 3), 0b10: (3, 2), 0b11: (4, 1)}[code >> 5]
    mantissa = code & ((1 << mantissa_bits) - 1)
    exponent = 0
    if exponent_bits:
        # Sign and magnitude; the leading one of the magnitude is not stored.
        hidden = 1 << exponent_bits - 1
        field = code >> mantissa_bits & (2 * hidden - 1)
        magnitude = hidden | field & (hidden - 1)
        exponent = -magnitude if field & hidden else magnitude
    return math.ldexp(1 + mantissa / (1 << mantissa_bits), exponent)


def _signed(magnitudes: Sequence[float]) -> NDArray[np.float32]:
    return np.array([*magnitudes, *(-m for m in magnitudes)], np.float32)


@cache
def _formats() -> dict[DType, FloatFormat]:
    e4m3 = _signed(_binary_magnitudes(4, 3, bias=7))
    e4m3[[0x7F, 0xFF]] = np.nan, -np.nan
    e5m2 = _signed(_binary_magnitudes(5, 2, bias=15))
    e5m2[[0x7C, 0xFC]] = np.inf, -np.inf
    e5m2[0x7D:0x80], e5m2[0xFD:] = np.nan, -np.nan
    e8m0 = np.array([math.ldexp(1.0, code - 127) for code in range(0xFF)] + [np.nan], np.float32)
    hif8 = _signed([_hif8_magnitude(code) for code in range(0x80)])
    hif8[[0x6F, 0xEF]] = np.inf, -np.inf
    hif8[0x80] = np.nan  # where minus zero would be
    e2m1 = _signed(_binary_magnitudes(2, 1, bias=1))
    e1m2 = _signed(_binary_magnitudes(1, 2, bias=1))
    f32_max, bf16_max = float(dt.f32.max_value), float(dt.bf16.max_value)
    e1m2_format = FloatFormat(3, -2, 1.75, 0x7, None, None, 0x8, True, e1m2, 2.0)
    return {
        dt.f32: FloatFormat(24, -149, f32_max, 0x7F7F_FFFF, 0x7F80_0000, 0x7FC0_0000, 1 << 31),
        dt.bf16: FloatFormat(8, -133, bf16_max, 0x7F7F, 0x7F80, 0x7FC0, 1 << 15),
        dt.f16: FloatFormat(11, -24, 65504.0, 0x7BFF, 0x7C00, 0x7E00, 1 << 15),
        dt.f8e4m3: FloatFormat(4, -9, 448.0, 0x7E, None, 0x7F, 0x80, True, e4m3, 480.0),
        dt.f8e5m2: FloatFormat(3, -16, 57344.0, 0x7B, 0x7C, 0x7E, 0x80, True, e5m2, 65536.0),
        dt.f8e8m0: FloatFormat(1, -127, 2.0**127, 0xFE, None, 0xFF, 0, False, e8m0, 2.0**128),
        dt.hif8: FloatFormat(4, -22, 32768.0, 0x6E, 0x6F, 0x80, 0x80, False, hif8, 49152.0),
        dt.f4e2m1x2: FloatFormat(2, -1, 6.0, 0x7, None, None, 0x8, True, e2m1, 8.0),
        dt.f4e1m2x2: e1m2_format,
        dt.hif4x2: e1m2_format,
    }


def float_format(dtype: DType) -> FloatFormat:
    """Return the format of a float element type; KeyError for an integer one."""
    return _formats()[dtype]


@cache
def holds_every_value_of(dst: DType, src: DType) -> bool:
    """Whether each finite value of float type ``src`` exists in float type ``dst``."""
    narrow, wide = float_format(src), float_format(dst)
    if wide.values is not None:
        if narrow.values is None:
            return False
        finite = narrow.values[np.isfinite(narrow.values)]
        return bool(np.isin(finite, wide.values).all())
    return (
        wide.precision >= narrow.precision
        and wide.least_exponent <= narrow.least_exponent
        and wide.max_finite >= narrow.max_finite
    )
