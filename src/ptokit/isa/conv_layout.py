"""Arrangements of feature maps and weights, as array code.

Channels are split into C1 groups of C0, so that the channels of one position fill a 32-byte block;
weights also collect 16 filters (N0) into a block. What is not there - channels beyond C, filters
beyond N - becomes zero.
"""

from __future__ import annotations

import numpy as np

from ptokit.base.enums import Layout
from ptokit.base.layout import Array

FILTERS = 16  # N0
WEIGHTS = (Layout.FRACTAL_Z, Layout.FRACTAL_Z_3D)


def split_channels(maps: Array, c1: int, c0: int) -> Array:
    """(N, C, plane...) as (N, C1, plane..., C0)."""
    count, channels, *plane = maps.shape
    padded = np.zeros((count, c1 * c0, *plane), maps.dtype)
    padded[:, :channels] = maps
    return np.moveaxis(padded.reshape(count, c1, c0, *plane), 2, -1)


def join_channels(split: Array, channels: int) -> Array:
    """(N, C1, plane..., C0) as (N, C, plane...)."""
    count, _, *plane, _ = split.shape
    return np.moveaxis(split, -1, 2).reshape(count, -1, *plane)[:, :channels]


def weight_blocks(split: Array, filters: int = FILTERS) -> Array:
    """(N, positions..., C0) as (positions, N1, filters, C0)."""
    count, c0 = split.shape[0], split.shape[-1]
    padded = np.zeros((-(-count // filters) * filters, *split.shape[1:]), split.dtype)
    padded[:count] = split
    return np.moveaxis(padded, 0, -2).reshape(-1, padded.shape[0] // filters, filters, c0)
