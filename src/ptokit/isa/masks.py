"""Packed predicate masks: what TCMP and TCMPS write, and TSEL and TSELS read.

A mask holds one bit per element, 1 for true. Row i of the mask starts at row i of the mask tile,
and element j of that row is bit j % 8, counted from the lowest, of byte j // 8. The element type of
the mask tile decides how wide its rows are, never the order of the bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.layout import Array
from ptokit.isa.spec import Extent, Rule, rule


def mask_extent(mask: Any, rows: int, cols: int) -> Extent:
    """The part of a mask tile, given by its facts, that holds rows x cols bits."""
    return rows, -(-cols // (8 * mask.itemsize))


def pack_mask(bits: Array, mask: Array) -> None:
    """Write a boolean matrix into the rows of a mask tile; what is left of `mask` becomes 0.

    `mask` is a matrix of the tile's elements, of any integer type, wide enough for the bits.
    """
    packed = np.packbits(bits, axis=1, bitorder="little")
    into = mask.view(np.uint8)
    into[...] = 0
    into[: packed.shape[0], : packed.shape[1]] = packed


def unpack_mask(mask: Array, cols: int) -> Array:
    """Read the first `cols` bits of every row of a mask tile as a boolean matrix."""
    return np.unpackbits(mask.view(np.uint8), axis=1, count=cols, bitorder="little").view(np.bool_)


def is_mask(name: str, on: str | None = None) -> list[Rule]:
    """The rules every packed mask obeys: a plain row-major tile of integers."""
    return [
        rule(
            "mask-layout",
            f"{name} is a packed mask: row-major, without an inner box",
            lambda o: o[name].layout == "ND",
            on,
            "declare the mask tile with BLayout.RowMajor and SLayout.NoneBox",
        ),
        rule(
            "mask-type",
            f"{name} is a packed mask: its elements are integers",
            lambda o: o[name].dtype.is_integer,
            on,
            "declare the mask tile with uint8_t elements",
        ),
    ]


def mask_fits(name: str, of: str, on: str | None = None) -> Rule:
    """The rows of the mask hold one bit per valid column of `of`."""
    return rule(
        "mask-width",
        f"a row of {name} holds one bit per valid column of {of}",
        lambda o: 8 * o[name].cols * o[name].itemsize >= o[of].vc,
        on,
        "give the mask tile more columns",
    )
