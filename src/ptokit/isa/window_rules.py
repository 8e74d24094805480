"""The rules of windows in vector tiles: what TEXTRACT takes out and TINSERT puts in."""

from __future__ import annotations

from typing import Any

from ptokit.base.tiles import BLOCK_BYTES
from ptokit.isa.devices import DEVICES, OLD
from ptokit.isa.effects import Steps, steps
from ptokit.isa.rules import in_types, must, where
from ptokit.isa.spec import Rule
from ptokit.isa.transfer import c0, is_plain, path
from ptokit.isa.transfer_rules import holds_type, index

FP4 = "f4e2m1x2 f4e1m2x2"
VECTOR_TYPES = {
    "a2a3": "i8 u8 i16 u16 f16 bf16 f32 i32 u32",
    "a5": "f16 bf16 f32 i32 i8 hif8 f8e4m3 f8e5m2 f8e8m0 f4e2m1x2 f4e1m2x2",
    "kirin9030": "f16 f32 i32 i8",
    "kirinx90": "i8 u8 i16 u16 f16 f32 i32 u32",
}


def vector_types(on: str) -> list[Rule]:
    """The element types of windows in vector tiles."""
    return [
        holds_type("vector-dtype", VECTOR_TYPES[target], target, "of a vector tile")
        for target in on.split()
    ]


def window_rules(small: str, large: str) -> list[Rule]:
    """A window of one vector tile and the whole of another: TEXTRACT and TINSERT.

    `small` names the tile that gives the size of the window, `large` the one it lies in.
    """

    def plain(o: Any) -> bool:
        return is_plain(o[small])

    def is_single(o: Any) -> bool:
        """Whether one element is moved, which has a path of its own without alignment."""
        return (o[small].vr, o[small].vc) == (1, 1)

    def on_blocks(o: Any) -> bool:
        return index(o, "indexCol") * o[small].itemsize % BLOCK_BYTES == 0

    return [
        *vector_types(DEVICES),
        must("window-size", DEVICES)(
            f"{small} has at most the Rows and Cols of {large}",
            lambda o: (
                (not plain(o) or o[small].rows <= o[large].rows) and o[small].cols <= o[large].cols
            ),
        ),
        inside("window", small, large, DEVICES),
        *where(plain, OLD)(
            must("window-blocks")(
                "rows of both tiles are whole 32-byte blocks",
                lambda o: all(o[n].cols * o[n].itemsize % BLOCK_BYTES == 0 for n in (small, large)),
            ),
            must("even-bytes")(
                f"valid rows of {small} have an even number of bytes, unless one element moves",
                lambda o: is_single(o) or o[small].vc * o[small].itemsize % 2 == 0,
            ),
            must("window-corner")(
                "indexCol is a multiple of 32 bytes, unless one element moves",
                lambda o: is_single(o) or on_blocks(o),
            ),
        ),
        *where(lambda o: not plain(o), OLD)(
            must("box-sizes")(
                f"Rows of an NZ {small} are a multiple of 16 and Cols of 32 / sizeof",
                lambda o: o[small].rows % 16 == 0 and o[small].cols % c0(o[small]) == 0,
            ),
            must("box-corner")(
                "in NZ tiles indexRow is a multiple of 16 and indexCol of 32 / sizeof, unless one "
                "element moves",
                lambda o: (
                    is_single(o)
                    or (index(o, "indexRow") % 16 == 0 and index(o, "indexCol") % c0(o[small]) == 0)
                ),
            ),
        ),
        must("fp4-blocks", "a5", lambda o: in_types("dst", FP4)(o) and plain(o))(
            "4-bit types: rows, valid columns and indexCol are multiples of 32 elements",
            lambda o: (
                on_blocks(o)
                and not any(
                    size % BLOCK_BYTES for size in (o[small].cols, o[small].vc, o[large].cols)
                )
            ),
        ),
    ]


def one_element(small: str) -> Steps:
    """One element moves between vector tiles, which is work of the scalar unit."""
    return steps(
        "a2a3 a5",
        lambda o: path(o) == "Vec>Vec" and o[small].valid_row == o[small].valid_col == 1,
        start="V->S",
        end="S->V",
        complete=True,
    )


def inside(id: str, small: str, large: str, on: str | None = None) -> Rule:
    """The window lies in the tile."""
    return must(id, on)(
        f"the window, {small}'s valid size from (indexRow, indexCol) on, lies inside {large}",
        lambda o: (
            0 <= index(o, "indexRow") <= o[large].rows - o[small].vr
            and 0 <= index(o, "indexCol") <= o[large].cols - o[small].vc
        ),
    )
