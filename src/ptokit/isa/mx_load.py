"""The MX forms of TLOAD on A5: scale factors of the matmul operands into Zz and Nn tiles."""

from __future__ import annotations

from typing import Any

from ptokit.base.enums import Layout, TileType
from ptokit.isa.devices import KIRIN, NEW
from ptokit.isa.memory import FIX_VIEW, arranged, round_up, view_rows_cols
from ptokit.isa.rules import both, must

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
    must("mx-target", "a5")(
        "the target has MX scales; HIF4 scale views exist on no supported device",
        lambda o: not arranged("src", *HIF4)(o),
    ),
    must("mx-target", "a2a3 " + KIRIN)(
        "the target has MX scales; HIF4 scale views exist on no supported device",
        lambda o: not arranged("src", *MX, *HIF4)(o),
    ),
    must("mx-dtype", "a5", _scales)(
        "MX scales are f8e8m0 in the tile and in the view",
        lambda o: o.dst.dtype.name == o.src.dtype.name == "f8e8m0",
    ),
    must("mx-tile", "a5", _into_tile)(
        "scales of A (MX_A_*) go to a Zz Mat tile, scales of B (MX_B_*) to an Nn Mat tile",
        lambda o: o.dst.loc == TileType.Mat and o.dst.layout == ("ZZ" if _scales_a(o) else "NN"),
    ),
    must("mx-fractal", "a5", _into_tile)(
        "a tile of MX scales has boxes of 32 bytes (SFractalSize)", lambda o: o.dst.fractal == 32
    ),
    must("mx-box", "a5", _boxed)(
        "MX_A_ZZ, MX_B_NN: dimensions 3 and 4 of src are 16 and 2, statically",
        lambda o: o.src.static_shape[3:] == (16, 2),
    ),
    must("mx-pairs", "a5", both(_scales, lambda o: not _boxed(o)))(
        "MX_A_ND, MX_A_DN, MX_B_ND, MX_B_DN: dimensions 0, 1, 4 of src are 1, 1, 2, statically",
        lambda o: o.src.static_shape[:2] == (1, 1) and o.src.static_shape[4] == 2,
    ),
    must("mx-even", "a5", _into_tile)(
        "scales come in pairs along K: valid columns of A, valid rows of B are even",
        lambda o: (o.dst.vc if _scales_a(o) else o.dst.vr) % 2 == 0,
    ),
    must("mx-size", "a5", _into_tile)(
        "the view describes the valid scales (ZZ and NN: in whole boxes), which lie in the tile",
        _fits,
        FIX_VIEW,
    ),
    must("scale-row", NEW, one_row_of_scales)(
        "one row of scales is loaded from an ND view of static shape (1, 1, 1, 1, k)",
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
