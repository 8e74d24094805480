"""The MX forms of TLOAD on A5: scale factors of the matmul operands into Zz and Nn tiles."""

from __future__ import annotations

from typing import Any

from ptokit.base.enums import Layout, TileType
from ptokit.isa.memory import FIX_VIEW, arranged, round_up, view_rows_cols
from ptokit.isa.rules import KIRIN, NEW, both, need
from ptokit.isa.spec import rule

SCALES_A = (Layout.MX_A_ZZ, Layout.MX_A_ND, Layout.MX_A_DN)
SCALES_B = (Layout.MX_B_NN, Layout.MX_B_ND, Layout.MX_B_DN)
MX = SCALES_A + SCALES_B
HIF4 = (Layout.HIF4_A_ZZ, Layout.HIF4_B_NN)

_scales, _scales_a = arranged("src", *MX), arranged("src", *SCALES_A)
_boxed = arranged("src", Layout.MX_A_ZZ, Layout.MX_B_NN)


def _into_tile(o: Any) -> bool:
    return o.dst.kind == "tile" and _scales(o)


def one_row_of_scales(o: Any) -> bool:
    """A plain row of scales that goes to a Zz tile of one row."""
    return (
        o.dst.kind == "tile"
        and o.src.layout == Layout.ND
        and o.dst.layout == "ZZ"
        and o.dst.rows == 1
    )


def _fits(o: Any) -> bool:
    """Whether the view holds just the valid scales, in whole boxes, and these lie in the tile."""
    rows, cols = view_rows_cols(o, "src")
    valid_rows, valid_cols = o.dst.vr, o.dst.vc
    if o.src.layout == Layout.MX_A_ZZ:
        valid_rows = round_up(valid_rows, 16)
    elif o.src.layout == Layout.MX_B_NN:
        valid_cols = round_up(valid_cols, 16)
    return (rows, cols) == (valid_rows, valid_cols) and rows <= o.dst.rows and cols <= o.dst.cols


MX_RULES = [
    rule(
        "mx-target",
        "the target has MX scales; HIF4 scale views exist on no supported device",
        lambda o: not arranged("src", *HIF4)(o),
        "a5",
    ),
    rule(
        "mx-target",
        "the target has MX scales; HIF4 scale views exist on no supported device",
        lambda o: not arranged("src", *MX, *HIF4)(o),
        "a2a3 " + KIRIN,
    ),
    need(
        "mx-dtype",
        "a5",
        "MX scales are f8e8m0 in the tile and in the view",
        _scales,
        lambda o: o.dst.dtype.name == o.src.dtype.name == "f8e8m0",
    ),
    need(
        "mx-tile",
        "a5",
        "scales of A (MX_A_*) go to a Zz Mat tile, scales of B (MX_B_*) to an Nn Mat tile",
        _into_tile,
        lambda o: o.dst.loc == TileType.Mat and o.dst.layout == ("ZZ" if _scales_a(o) else "NN"),
    ),
    need(
        "mx-fractal",
        "a5",
        "a tile of MX scales has boxes of 32 bytes (SFractalSize)",
        _into_tile,
        lambda o: o.dst.fractal == 32,
    ),
    need(
        "mx-box",
        "a5",
        "MX_A_ZZ, MX_B_NN: dimensions 3 and 4 of src are 16 and 2, statically",
        _boxed,
        lambda o: o.src.static_shape[3:] == (16, 2),
    ),
    need(
        "mx-pairs",
        "a5",
        "MX_A_ND, MX_A_DN, MX_B_ND, MX_B_DN: dimensions 0, 1, 4 of src are 1, 1, 2, statically",
        both(_scales, lambda o: not _boxed(o)),
        lambda o: o.src.static_shape[:2] == (1, 1) and o.src.static_shape[4] == 2,
    ),
    need(
        "mx-even",
        "a5",
        "scales come in pairs along K: valid columns of A, valid rows of B are even",
        _into_tile,
        lambda o: (o.dst.vc if _scales_a(o) else o.dst.vr) % 2 == 0,
    ),
    need(
        "mx-size",
        "a5",
        "the view describes the valid scales (ZZ and NN: in whole boxes), which lie in the tile",
        _into_tile,
        _fits,
        FIX_VIEW,
    ),
    need(
        "scale-row",
        NEW,
        "one row of scales is loaded from an ND view of static shape (1, 1, 1, 1, k)",
        one_row_of_scales,
        lambda o: o.src.static_shape[:4] == (1, 1, 1, 1),
    ),
]

MX_EXAMPLES = [
    {"dst": f"Mat f8e8m0 {tile}", "src": f"GM f8e8m0 {view}", "on": "a5"}
    for tile, view in (
        ("32x4 ZZ/32", "32x4 MX_A_ZZ"),
        ("32x4 ZZ/32", "32x4 MX_A_ND"),
        ("4x32 NN/32", "4x32 MX_B_NN"),
        ("4x32 NN/32", "4x32 MX_B_DN"),
        ("1x32 ZZ/32", "1x32 ND"),
    )
]
