"""Filling a tile with one scalar: vector tiles up to the valid region, cube tiles as a whole."""

from __future__ import annotations

from math import prod
from typing import Any

from ptokit.base.enums import Layout, TileType
from ptokit.isa.devices import A5_FAMILY, DEVICES
from ptokit.isa.expr import Expr
from ptokit.isa.meaning import Each
from ptokit.isa.rules import Told, in_types, located, must
from ptokit.isa.scalars import element_of
from ptokit.isa.spec import Asm, Extent, Pipe, View, insn, out, scalar, types
from ptokit.isa.targets import PerTarget

_MOST_BLOCKS = 32767  # repeat count of the fill engine, in 32-byte blocks
_FEATURES = {Layout.NC1HWC0: 5, Layout.FRACTAL_Z: 5, Layout.NDC1HWC0: 6, Layout.FRACTAL_Z_3D: 6}


def _vec(o: Any) -> bool:
    return o.dst.kind == "tile" and o.dst.loc == TileType.Vec


def _mat(o: Any) -> bool:
    return o.dst.kind == "tile" and o.dst.loc == TileType.Mat


def _conv(o: Any) -> bool:
    return o.dst.kind == "conv"


def _region(o: Any) -> View | Extent:
    """Devices fill cube tiles as a whole; the permissive profile only their valid region."""
    if not o.target.is_device:
        return View.VALID
    if o.dst.loc == TileType.Vec:
        return _in_pairs(o)
    blocks = 0 if o.dst.itemsize == 8 else _blocks(o)
    if blocks > _MOST_BLOCKS or not blocks:  # the count is cut to the bits of its field
        return slice(0, (blocks & _MOST_BLOCKS) * 32 // o.dst.itemsize)
    return View.WHOLE


_FILLS_PAIRS = PerTarget(False, a2a3=True)  # of bytes, so that an odd one has a neighbour


def _in_pairs(o: Any) -> Extent:
    rows, cols = o.dst.vr, o.dst.vc
    odd = 1 if _FILLS_PAIRS[o.target] and o.dst.itemsize == 1 and rows and cols else 0
    if o.dst.is_row_major:
        return rows, cols + odd * (cols % 2)
    return rows + odd * (rows % 2), cols


def _blocks(o: Any) -> int:
    """32-byte blocks of a Mat tile; of a convolution tile, one for each position."""
    if o.dst.kind == "conv":
        return prod(o.dst.shape[:-1])
    return o.dst.rows * o.dst.cols * o.dst.itemsize // 32


_PAGE = "u8 i8 u16 i16 u32 i32 f16 f32"  # what the page lists for A5
_WIDE = _PAGE + " bf16"
_FILLED = "they are filled all the same: bytes in pairs, 64-bit elements of a Mat tile not at all"
_IS_CUT = "the number of blocks is cut to 15 bits"


@insn(
    out("dst", kinds=("tile", "conv"), view=_region),
    scalar("scalar", element_of("dst")),
    means=Each(),
    pipe=lambda o: Pipe.MTE2 if o.dst.loc == TileType.Mat else Pipe.V,
    ops={"TEXPANDS": Pipe.V, "TEXPANDS_MAT": Pipe.MTE2},
    types=types(
        "dst",
        a2a3=_WIDE,
        a5=_PAGE,
        kirin=_PAGE,
        ids={"a2a3": "SA-0158", **dict.fromkeys(A5_FAMILY.split(), "page-types")},
        otherwise=_FILLED,
    ),
    rules=[
        located("Vec Mat", "dst"),
        must("page-types", "a2a3", _vec)(
            "elements of a Vec tile are i32, i16, f16 or f32",
            in_types("dst", "i32 i16 f16 f32"),
            "use one of these types, or fill a tile of equal width and TRESHAPE it",
            _FILLED,
        ),
        must("element-types", A5_FAMILY)(
            f"elements are {_WIDE}, i64 or u64", in_types("dst", _WIDE + " i64 u64")
        ),
        must("row-major", DEVICES, _vec)(
            "a Vec tile is row-major",
            lambda o: o.dst.is_row_major,
            "declare the tile with BLayout.RowMajor",
            Told(
                "the valid region is filled, column by column",
                lambda o: not o.dst.is_boxed and o.dst.itemsize < 8,
            ),
        ),
        must("SA-0084", None, _vec)(
            "ValidRow <= Rows of dst",
            lambda o: o.dst.valid_row <= o.dst.rows,
        ),
        must("SA-0083", None, _vec)(
            "ValidCol <= Cols of dst",
            lambda o: o.dst.valid_col <= o.dst.cols,
        ),
        must("mat-size", DEVICES, _mat)(
            "a Mat tile has 1 to 32767 blocks of 32 bytes (Rows * Cols * sizeof / 32)",
            lambda o: 1 <= _blocks(o) <= _MOST_BLOCKS,
            "fill a larger tile in parts",
            _IS_CUT,
        ),
        must("conv-layout", DEVICES, _conv)(
            "a convolution tile is a Mat tile NC1HWC0 or FRACTAL_Z of five dimensions, or NDC1HWC0 "
            "or FRACTAL_Z_3D of six",
            lambda o: o.dst.loc == TileType.Mat and len(o.dst.shape) == _FEATURES.get(o.dst.layout),
        ),
        must("conv-size", DEVICES, _conv)(
            "all dimensions but the last multiply to 1 to 32767 blocks",
            lambda o: 1 <= _blocks(o) <= _MOST_BLOCKS,
            "fill a larger tile in parts",
            _IS_CUT,
        ),
    ],
    asm=Asm(plain=frozenset({"sync"})),
    example={"dst": "Mat {T} 16x64"},
    more_examples=[
        {"dst": "Vec f32 16x64 valid 13x50"},
        {"dst": "Conv Mat f16 NC1HWC0 1x2x4x8x16"},
        {"dst": "Conv Mat f16 NDC1HWC0 1x2x2x4x8x16"},
    ],
)
def TEXPANDS(scalar: Expr) -> Expr:
    """Fill a tile with one scalar.

    A Vec tile is filled over its valid region (bytes in pairs on A2A3), a Mat tile over its whole
    capacity, a convolution tile over its shape; 64-bit elements of a Mat tile are not written. The
    scalar is converted to the element type of `dst` as C++ does it.
    """
    return scalar
