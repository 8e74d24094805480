"""What TLOAD and TSTORE share: the view in global memory must fit the tile that it meets.

The rules are stated over a pair of operands - a tile, a GlobalTensor - whichever of the two is the
destination. Two generations of devices check differently: A2A3 and KirinX90 demand at run time that
the sizes agree, A5 and Kirin9030 mostly at compile time.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ptokit.base.enums import Layout, TileType
from ptokit.base.layout import Array, AxisMap
from ptokit.base.tensors import ROW_AND_COLUMN_AXES
from ptokit.isa.bursts import in_block, matrix_of, moved
from ptokit.isa.devices import NEW, OLD
from ptokit.isa.rules import Predicate, Words, behind, both, must, on_devices, when, where
from ptokit.isa.spec import Rule, Types, rule, types

FIX_VIEW = "make the GlobalTensor describe exactly the valid region of the tile"


BY_VIEW = "the number of lines and their distance come from the view, their length from the tile"


def pairs(tile: str, view: str, listed: str) -> Predicate:
    """Whether view and tile are arranged as one of "ND-ND DN-ZN ..." (view first)."""
    allowed = listed.split()

    def holds(o: Any) -> bool:
        return f"{o[view].layout.name}-{o[tile].layout}" in allowed

    return holds


def arranged(view: str, *layouts: Layout) -> Predicate:
    """Whether the view has one of these layouts."""
    return lambda o: o[view].layout in layouts


def moved_types(tile: str, a5: str, old: str, new: str) -> Types:
    """The element types that move, and the ids under which the two generations report others."""
    common = "i8 u8 i16 u16 i32 u32 i64 u64 f16 f32"
    return types(
        tile,
        a2a3=common + " bf16",
        a5=f"{common} bf16 {a5} f8e4m3 f8e5m2 f8e8m0 hif8 f4e2m1x2 f4e1m2x2",
        kirin=common,
        ids={target: id for id, on in ((old, OLD), (new, NEW)) for target in on.split()},
    )


def is_tile(name: str, *spaces: TileType) -> Predicate:
    """Whether the operand is a tile, not one of a convolution, in one of the spaces."""
    return lambda o: o[name].kind == "tile" and (not spaces or o[name].loc in spaces)


def same_bits(tile: str, view: str, id: str, applies: Predicate | None = None) -> Rule:
    """Elements are moved bit by bit: both sides have one width."""
    return must(id, applies=applies)(
        f"elements of {tile} and {view} have the same size",
        lambda o: (o[tile].itemsize, o[tile].dtype.bits) == (o[view].itemsize, o[view].dtype.bits),
        "use element types of equal width on both sides",
    )


def positive_sizes(tile: str, view: str, on: str) -> Rule:
    """Nothing is empty."""
    return must("PA-0034", on)(
        f"every size of {view} and the valid rows and columns of {tile} are greater than 0",
        lambda o: (
            min(o[view].shape) > 0
            and (o[tile].kind == "conv" or (o[tile].vr > 0 and o[tile].vc > 0))
        ),
        "skip the transfer when there is nothing to move",
        on_devices(
            "no burst is issued where its length or a size of the view is 0; an ND transfer with "
            "no valid rows still moves the rows of the view"
        ),
    )


def unit_stride(view: str, on: str) -> Rule:
    """The hardware never reads the innermost stride: it takes it as 1."""

    def holds(o: Any) -> bool:
        axis = 3 if o[view].layout == Layout.DN else 4
        implied = o[view].layout == Layout.NDC1HWC0  # its innermost axis is not among the five
        return implied or o[view].shape[axis] == 1 or o[view].stride[axis] == 1

    return must("unit-stride", on)(
        f"the innermost stride of {view} (dimension 3 of a DN view, otherwise 4) is 1",
        holds,
        "the hardware takes this stride as 1; lay the view so that neighbours lie together, or "
        "declare it as Layout.DN",
    )


def known_arrangement(tile: str, view: str) -> Rule:
    """The layout is one in which a matrix can be found."""
    return must("view-layout")(
        f"the layout of {view} describes a matrix (ND, DN, NZ, an MX or a convolution layout)",
        lambda o: o[tile].kind == "conv" or o[view].layout in ROW_AND_COLUMN_AXES,
        "declare the GlobalTensor with one of these layouts",
    )


# Layout, what is compared, dimensions of the view whose product it is, id, and what happens where
# they differ: on devices that count the gaps between bursts, and on those that do not.
_SIZES = (
    (
        *(Layout.ND, "columns", (4,), "PA-0044"),
        "every row moves the valid columns, at a distance of stride 3 - S4 + valid columns",
        "every row moves the valid columns",
    ),
    (
        *(Layout.ND, "rows", (0, 1, 2, 3), "PA-0045"),
        "all rows of the view move, also past the tile",
        "all rows of the view move, also past the tile",
    ),
    (
        *(Layout.DN, "rows", (3,), "PA-0043"),
        "every column moves the valid rows, at a distance of stride 4 - S3 + valid rows",
        "every column moves the valid rows",
    ),
    (
        *(Layout.DN, "columns", (0, 1, 2, 4), "PA-0046"),
        "all columns of the view move, also past the tile",
        "all columns of the view move, also past the tile",
    ),
    (
        *(Layout.NZ, "rows", (2, 3), "PA-0047"),
        "every column of boxes moves the valid rows",
        "every column of boxes moves the valid rows",
    ),
    (
        *(Layout.NZ, "columns", (0, 1, 4), "PA-0042"),
        "all columns of boxes of the view move, also past the tile",
        "all columns of boxes of the view move, also past the tile",
    ),
)


def by_bursts(tile: str, view: str, words: str) -> Words:
    """What a transfer of other sizes does, unless it leaves a tile that a compiler has placed."""

    def fits(o: Any) -> bool:
        here = moved(o, tile, view).tile
        if isinstance(here, AxisMap):
            return here.span <= o[tile].numel
        return here[0] <= o[tile].rows and here[1] <= o[tile].cols

    return behind(words, fits)


def equal_sizes(tile: str, view: str, applies: Predicate, on: str) -> list[Rule]:
    """Assertions on the sizes of ND, DN and NZ views, on targets of one generation."""

    def equal(
        layout: Layout, what: str, dims: tuple[int, ...], id: str, old: str, new: str
    ) -> list[Rule]:
        size = "*".join(f"S{d}" for d in dims) + ("" if len(dims) > 2 else f" of {view}")

        def holds(o: Any) -> bool:
            valid = o[tile].vr if what == "rows" else o[tile].vc
            return valid == prod(o[view].shape[d] for d in dims)

        text = f"valid {what} of {tile} == {size}"
        return where(both(applies, arranged(view, layout)), on, f"{layout.name}: ")(
            rule(
                id,
                text,
                holds,
                fix=FIX_VIEW,
                otherwise=by_bursts(tile, view, old if on == OLD else new),
            )
        )

    return [each for row in _SIZES for each in equal(*row)]


def checked_sizes(tile: str, view: str, applies: Predicate, on: str) -> list[Rule]:
    """Run-time size checks of ND, DN and NZ views."""

    def below_4096(id: str, applies: Predicate, dim: int) -> Rule:
        text = f"dimension {dim} of {view} is less than 4096"
        return rule(
            id,
            text,
            when(applies, lambda o: o[view].shape[dim] < 4096),
            on,
            "move fewer lines at a time",
            unknown="the number of bursts has 12 bits: what is moved beyond is undefined",
        )

    nz = both(applies, arranged(view, Layout.NZ))
    return [
        *equal_sizes(tile, view, applies, on),
        below_4096("nd-rows", both(applies, pairs(tile, view, "ND-ND")), 3),
        below_4096("dn-columns", both(applies, pairs(tile, view, "DN-DN")), 4),
        below_4096("nz-blocks", nz, 1),
        must("SA-0350", on, nz)(
            f"NZ: dimensions 3 and 4 of {view} are 16 and 32/sizeof, statically",
            lambda o: o[view].static_shape[3:] == (16, 32 // o.dst.itemsize),
            FIX_VIEW,
        ),
    ]


def whole_blocks(id: str, what: str, layout: Layout, tile: str, view: str) -> Rule:
    """Lines of a Mat tile are whole blocks: the transfer counts in these."""
    dim, line = (3, "columns") if layout == Layout.DN else (4, "rows")
    return must(id)(
        f"a Mat tile {what} {line} of whole 32-byte blocks (S{dim} * sizeof % 32 == 0)",
        lambda o: o[view].shape[dim] * o[view].itemsize % 32 == 0,
        "move more of each line, or use a Vec or a boxed tile",
        on_devices("lengths and gaps are cut down to whole blocks, each by itself", "a2a3"),
    )


def view_rows_cols(o: Any, view: str) -> tuple[int, int]:
    """Rows and columns of the matrix a view describes."""
    matrix = matrix_of(o[view])
    return matrix.rows, matrix.cols


def same_extent(
    tile: str, view: str, applies: Predicate, id: str, on: str, otherwise: str = ""
) -> Rule:
    """The view describes as many rows and columns as the tile has valid ones."""

    def holds(o: Any) -> bool:
        if o[view].layout not in ROW_AND_COLUMN_AXES:
            return True
        return view_rows_cols(o, view) == (o[tile].vr, o[tile].vc)

    return must(id, on)(
        f"{view} describes exactly the valid rows and columns of {tile}",
        when(applies, holds),
        FIX_VIEW,
        by_bursts(tile, view, otherwise) if otherwise else "",
    )


def c0_of(o: Any, tile: str) -> int:
    """Elements of a 32-byte block of a tile."""
    return in_block(o[tile])


def as_bits_of(values: Array, like: Array) -> Array:
    """The same bits, read as the element type of another array of that width."""
    return values if values.dtype == like.dtype else values.view(like.dtype)


def atomic_add(dst: Array, values: Array) -> None:
    """Add to memory in the arithmetic of the destination type: integers wrap, floats round once."""
    with np.errstate(all="ignore"):
        np.add(dst, values, out=dst)
