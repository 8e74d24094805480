"""TPRINT: look at a tile or a global tensor while the kernel runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ptokit.base.convert import number
from ptokit.base.dtypes import DType
from ptokit.base.enums import Layout, PrintFormat, TileType
from ptokit.base.layout import Array
from ptokit.isa.costs import SCALAR
from ptokit.isa.devices import on
from ptokit.isa.effects import Barrier
from ptokit.isa.facts import Ops
from ptokit.isa.rules import must
from ptokit.isa.services import Poison
from ptokit.isa.spec import Asm, Attr, Operand, Pipe, View, insn, types

_PRINTED = "f32 f16 i8 i16 i32 u8 u16 u32"
_FIELDS = {  # width and digits behind the point
    PrintFormat.Width8_Precision4: (8, 4),
    PrintFormat.Width8_Precision2: (8, 2),
    PrintFormat.Width10_Precision6: (10, 6),
}


def _text(code: Any, kind: DType, width: int, digits: int) -> str:
    value = number(code, kind)
    if isinstance(value, int):
        return f"{value:{width}d}"
    if math.isnan(value):
        return f"{'-nan' if math.copysign(1, value) < 0 else 'nan':>{width}}"
    return f"{value:{width}.{digits}f}"


def _matrix(
    values: Array, defined: Array | None, kind: DType, field: tuple[int, int], valid: Any = None
) -> Iterator[str]:
    """The lines of a matrix; a bar and a dashed line mark where a smaller valid region ends."""
    rows, cols = values.shape
    valid_rows, valid_cols = valid or (rows, cols)
    width, digits = field

    def line(cells: list[str]) -> str:
        if 0 < valid_cols < cols:
            cells[valid_cols - 1] += "|"
        return " ".join(cells)

    for r in range(rows):
        shown = [
            _text(values[r, c], kind, width, digits)
            if defined is None or defined[r, c]
            else f"{'?':>{width}}"
            for c in range(cols)
        ]
        yield line(shown)
        if r == valid_rows - 1 and 0 < valid_rows < rows:
            yield line(["-" * width] * cols)


def _type_name(kind: DType) -> str:
    return kind.name if kind.stores_codes else kind.np.name


def _tile_lines(o: Ops, values: Array, defined: Array, field: tuple[int, int]) -> Iterator[str]:
    tile = o.src
    if not o.target.is_device:
        yield f"TPRINT {tile.vr}x{tile.vc}"
        part = slice(0, tile.vr), slice(0, tile.vc)
        yield from _matrix(values[part], defined[part], tile.dtype, field)
        return
    yield (
        f"=== [TPRINT Tile] Data Type: {_type_name(tile.dtype)}, Layout: {tile.layout}, "
        f"TileType: {tile.loc.name} ==="
    )
    yield f"  Shape: [{tile.rows}, {tile.cols}], Valid Shape: [{tile.vr}, {tile.vc}]"
    yield from _matrix(values, defined, tile.dtype, field, (tile.vr, tile.vc))


def _global_lines(values: Array, tensor: Any, field: tuple[int, int]) -> Iterator[str]:
    name = _type_name(tensor.dtype)
    yield f"=== [TPRINT GlobalTensor] Data Type: {name}, Layout: {tensor.layout.name} ==="
    if values.ndim == 2:
        yield f"  Logical Shape: [{values.shape[0]}, {values.shape[1]}]"
        yield from _matrix(values, None, tensor.dtype, field)
        return
    yield f"  Shape: {list(values.shape)}"
    for batch in np.ndindex(*values.shape[:3]):
        yield f"  Batch {list(batch)}:"
        yield from _matrix(values[batch], None, tensor.dtype, field)


def _view(o: Any) -> View:
    if o.src.kind == "tile":
        return View.OBJECT  # undefined elements are shown, not refused
    return View.WHOLE if o.src.layout in (Layout.ND, Layout.DN) else View.VALID


_COPIES_MAT = on("a2a3")


def _source_is_reachable(o: Any) -> bool:
    """Whether the scalar unit can see the source, by itself or through a copy in tmp."""
    if o.src.kind == "global":
        return o.src.layout in (Layout.ND, Layout.DN, Layout.NZ) and o.tmp is None
    if o.tmp is None:
        return o.src.loc == TileType.Vec
    copied = (TileType.Vec, TileType.Acc, TileType.Mat)
    return o.src.loc in (copied if _COPIES_MAT(o) else copied[:2])


@insn(
    Operand("src", "in", kinds=("tile", "global"), view=_view),
    Operand("tmp", "tmp", kinds=("global",), view=View.STORAGE, optional=True),
    attrs=[Attr("Format", PrintFormat, PrintFormat.Width8_Precision4, "field width and digits")],
    pipe=Pipe.S,
    effects=lambda o: [Barrier(Pipe.ALL)],
    cost=SCALAR,
    types=types("src", a2a3=_PRINTED, a5=_PRINTED),
    rules=[
        must("source", "a2a3 a5")(
            "src is a Vec tile, an ND, DN or NZ GlobalTensor without tmp, or an Acc tile "
            "(on A2/A3 also a Mat tile) with tmp",
            _source_is_reachable,
            "pass a GlobalTensor as tmp, or move the tile to Vec first",
        ),
        must("tmp")(
            "tmp has the element type of src and room for Rows * Cols elements",
            lambda o: (
                o.tmp is None
                or o.src.kind != "tile"
                or (o.tmp.dtype is o.src.dtype and math.prod(o.tmp.shape) >= o.src.numel)
            ),
        ),
    ],
    asm=Asm(ins=("src", "tmp"), outs=(), attrs={"Format": "printFormat format"}),
    example={"src": "Vec {T} 16x64", "tmp": "GM {T} 16x64"},
)
def TPRINT(src: Any, tmp: Array | None, Format: PrintFormat, ops: Ops, poison: Poison) -> None:
    """Print a tile or a global tensor to standard output. A debugging aid: it orders all pipes.

    A tile is printed whole, in logical rows and columns whatever its layout: a title with element
    type, layout and tile type, a line with shape and valid shape, then the rows, with `|` after
    the last valid column and a dashed line below the last valid row. `?` stands for an element that
    nothing has written. A GlobalTensor is printed batch by batch, one in NZ layout as its logical
    matrix. Numbers are right-aligned, floats with a fixed number of digits: 8 wide with 4 or 2
    digits, or 10 wide with 6. A tile that the scalar unit cannot see (Acc, Mat) is copied to tmp
    first. The permissive profile prints `TPRINT rows x cols` and the valid region only. Devices
    need a debug build (`-D_DEBUG --cce-enable-print`).
    """
    field = _FIELDS[Format]
    if ops.src.kind == "global":
        print("\n".join(_global_lines(src, ops.src, field)))
        return
    values, defined = poison.peek("src")
    print("\n".join(_tile_lines(ops, values, defined, field)))
    if tmp is not None:
        tmp[: values.size] = values.reshape(-1)
