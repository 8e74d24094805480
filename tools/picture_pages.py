"""The pictures of the primer on memory and layouts, drawn by the code that they explain."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np

from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import BLayout, Direction, Layout, TileType
from ptokit.base.tensors import global_axis_map, matrix_shape, matrix_stride
from ptokit.base.tiles import LAYOUT_NAMES, TileSpec
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.fifos import PipeSpec
from ptokit.isa.targets import TARGETS
from ptokit.pictures.layouts import layout_svg, tile_layout
from ptokit.report.fifo_svg import entries_svg, ring_svg
from ptokit.report.pipes_svg import pipes_svg

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/pictures"
F32, F16, SCALE = dtype("f32"), dtype("f16"), dtype("f8e8m0")
EXAMPLES, TIMED = ROOT / "examples", "softmax_manual"
RING = PipeSpec(0, Direction.DIR_C2V, 4096, 4)


def _tile(loc: TileType, layout: str, rows: int, cols: int) -> str:
    outer, inner = next(pair for pair, name in LAYOUT_NAMES.items() if name == layout)
    spec = TileSpec.of(loc, F32, rows, cols, outer, None, None, inner)
    return tile_layout(spec, f"{layout}: {spec}")


def _view(kind: DType, rows: int, cols: int, layout: Layout, unit: int) -> str:
    sizes = kind, rows, cols, layout
    of = global_axis_map(matrix_shape(*sizes), matrix_stride(*sizes), layout)
    return layout_svg(f"{layout.name}: {rows} x {cols} {kind.name} in memory", of, kind, unit)


def _timeline() -> str:
    """A kernel of the examples, as the model of the device times it."""
    sys.path.insert(0, str(EXAMPLES))
    case = next(c for c in import_module(TIMED).CASES if "a2a3" in c.targets)
    values = case.inputs(np.random.default_rng(7))
    return case.kernel.time(case.blocks, values, target="a2a3", **case.consts).svg()


def pages() -> dict[Path, str]:
    """Path -> contents of every picture."""
    partly = TileSpec.of(TileType.Vec, F16, 16, 64, BLayout.RowMajor, 13, 50)
    found = {
        "layout-nd": _tile(TileType.Vec, "ND", 8, 16),
        "layout-dn": _tile(TileType.Vec, "DN", 16, 8),
        "layout-nz": _tile(TileType.Mat, "NZ", 32, 16),
        "layout-zz": _tile(TileType.Left, "ZZ", 32, 16),
        "layout-zn": _tile(TileType.Right, "ZN", 16, 32),
        "layout-valid": tile_layout(partly, f"a tile of which a part is valid: {partly}"),
        "layout-mx_a_zz": _view(SCALE, 32, 8, Layout.MX_A_ZZ, 32),
        "layout-mx_b_nn": _view(SCALE, 8, 32, Layout.MX_B_NN, 32),
        "layout-gm_nz": _view(F16, 32, 32, Layout.NZ, 256),
        "fifo-ring": ring_svg(RING, 6, 3),
        "fifo-entries": entries_svg(RING),
    }
    if (EXAMPLES / f"{TIMED}.py").exists():
        found["pipes-timeline"] = _timeline()
    for name, target in TARGETS.items():
        if target.is_device:
            found[f"pipes-{name}"] = pipes_svg(target, INSTRUCTIONS.values())
    return {FOLDER / f"{name}.svg": f"{svg}\n" for name, svg in found.items()}


__all__ = ["FOLDER", "pages"]
