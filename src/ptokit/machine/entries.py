"""Entries of a FIFO: the bytes of one slot, and the part of them each core writes or reads.

Through global memory an entry is a row-major matrix of the valid region. Straight into the
consumer's memory it is what the consumer's tile expects: rows in UB, 16-row boxes in L1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.dtypes import DType
from ptokit.base.enums import (
    AtomicType,
    BLayout,
    Layout,
    LayoutMode_t,
    ReluPreMode,
    SLayout,
    STPhase,
    TileSplitAxis,
    TileType,
)
from ptokit.base.layout import Array
from ptokit.base.tensors import GlobalSpec
from ptokit.base.tiles import TileSpec
from ptokit.isa.fifos import FixpipeParams
from ptokit.isa.fixpipe import convert_out
from ptokit.isa.spec import Pipe, View
from ptokit.machine.cluster import SUBBLOCKS, cluster_of
from ptokit.machine.gm import GmAccess, GmWindow
from ptokit.machine.memory import Storage
from ptokit.machine.moves import Move
from ptokit.machine.objects import GlobalObject, Pointer, TileObject
from ptokit.machine.window import Window

if TYPE_CHECKING:
    from ptokit.machine.fifo import End

_NO, _UP, _LEFT, _UP_ODD, _LEFT_ODD = TileSplitAxis
Target = tuple[str, Window | GmWindow, tuple[slice, slice]]


def entry_move(
    end: End, tile: TileObject, split: TileSplitAxis, config: FixpipeParams | None, pipe: Pipe
) -> Move:
    """The transfer between a tile and the current slot; made once per tile, slot and half."""
    slot = end.state.tileIndex % end.pipe.spec.SlotNum
    where = (end.role, slot, end.state.entryOffset, id(cluster_of(end.ctx.core)))
    key = (tile.key, where, split, config, end.ctx.plan.insn, _words(end, config))
    found = end.pipe.moves.get(key)
    if found is None:
        if tile.storage is None:
            raise end.ctx.fail(
                "unbound-tile",
                "the tile has no address",
                got=[("tile", tile)],
                fix="bind it first: TASSIGN(tile, address), or use mode='auto'",
            )
        if pipe is Pipe.MTE2:
            found = _pop(end, tile, split, pipe)
        else:
            found = _push(end, tile, split, config, pipe)
        end.pipe.moves[key] = found
    return found


def push_view(end: End, tile: TileObject, spec: GlobalSpec, pipe: Pipe) -> Move:
    """A push into a slot that is arranged as `spec` says."""
    whole = (slice(0, tile.vr), slice(0, tile.vc))
    return _move(end, pipe, ("tile", local_bytes(tile)), [("slot", _view(end, spec), whole)])


def local_bytes(tile: TileObject) -> Window:
    """The valid region of a tile."""
    assert tile.storage is not None
    return _window(tile.storage, tile.address, tile.spec, (tile.vr, tile.vc), "tile")


def _words(end: End, config: FixpipeParams | None) -> Any:
    """The quantisation word in force, on which a conversion depends."""
    return end.ctx.registers.get("QUANT_PRE") if config is not None else None


def _pop(end: End, tile: TileObject, split: TileSplitAxis, pipe: Pipe) -> Move:
    rows, cols = tile.vr, tile.vc
    offset, pitch = half(split, end.sub if end.role != "cube" else 0, rows, cols)
    if end.role == "cube":
        offset, pitch = 0, cols
    window = _slot(end, tile.spec.dtype, (rows, cols), (pitch, 1), offset)
    target = ("tile", local_bytes(tile), (slice(0, rows), slice(0, cols)))
    return _move(end, pipe, ("slot", window), [target])


def _push(
    end: End, tile: TileObject, split: TileSplitAxis, config: FixpipeParams | None, pipe: Pipe
) -> Move:
    rows, cols = tile.vr, tile.vc
    whole = (slice(0, rows), slice(0, cols))
    source = ("tile", local_bytes(tile))
    if end.pipe.direct:
        targets = _to_vector(end, tile, split, config) if end.c2v else _to_cube(end, tile, split)
        return _move(end, pipe, source, targets, tile, config)
    if end.role == "cube":
        kind = tile.spec.dtype if config is None else config.result(tile.spec.dtype)
        mode = LayoutMode_t.NZ2ND if config is None else config.LayoutMode
        targets: list[Target] = [("slot", _arranged(end, kind, rows, cols, mode), whole)]
        return _move(end, pipe, source, targets, tile, config)
    offset, pitch = half(split, end.sub, rows, cols)
    window = _slot(end, tile.spec.dtype, (rows, cols), (pitch, 1), offset)
    return _move(end, pipe, source, [("slot", window, whole)])


def half(split: TileSplitAxis, sub: int, rows: int, cols: int) -> tuple[int, int]:
    """First element and row pitch of the part of a vector core that holds rows x cols."""
    if split == _UP:
        return sub * rows * cols, cols
    if split == _LEFT:
        return sub * cols, 2 * cols
    if split == _UP_ODD:  # core 1 has one row less than core 0
        return sub * (rows + sub) * cols, cols
    if split == _LEFT_ODD:
        return sub * (cols + sub), 2 * cols + 2 * sub - 1
    return 0, cols


# ---- rings in global memory --------------------------------------------------------------------


def _slot(
    end: End, kind: DType, shape: tuple[int, int], strides: tuple[int, int], offset: int = 0
) -> GmWindow:
    return _view(end, GlobalSpec.of(kind, (1, 1, 1, *shape), (1, 1, 1, *strides)), offset)


def _view(end: End, spec: GlobalSpec, offset: int = 0) -> GmWindow:
    """A view of the current slot, `offset` elements behind its start."""
    at = end.pipe.gm
    assert at is not None
    start = at.offset + end.slot() + end.state.entryOffset + offset * spec.itemsize
    tensor = GlobalObject(spec, Pointer(at.buffer, spec.dtype, start), spec.shape, spec.stride)
    insn = end.ctx.plan.insn
    return GmAccess(tensor, View.VALID, insn.operand("gmTensor"), insn).open(tensor, end.ctx.site)


def _arranged(end: End, kind: DType, rows: int, cols: int, mode: LayoutMode_t) -> GmWindow:
    """The whole slot in the arrangement a conversion asks for."""
    if mode == LayoutMode_t.NZ2ND:
        return _slot(end, kind, (rows, cols), (cols, 1))
    if mode == LayoutMode_t.NZ2DN:
        spec = GlobalSpec.of(kind, (1, 1, 1, rows, cols), (1, 1, 1, 1, rows), Layout.DN)
        return _view(end, spec)
    c0 = 32 // kind.itemsize
    shape = (1, -(-cols // c0), -(-rows // 16), 16, c0)
    stride = (1, shape[2] * 16 * c0, 16 * c0, c0, 1)
    return _view(end, GlobalSpec.of(kind, shape, stride, Layout.NZ))


# ---- rings in the consumer's memory (A5) -------------------------------------------------------


def _to_vector(
    end: End, tile: TileObject, split: TileSplitAxis, config: FixpipeParams | None
) -> list[Target]:
    """An accumulator into UB: all of it to one vector core, or half to each."""
    spec, rows, cols = tile.spec, tile.vr, tile.vc
    kind = spec.dtype if config is None else config.result(spec.dtype)
    address = end.pipe.c2v_consumer_buf + end.slot() + end.state.entryOffset
    cluster = cluster_of(end.ctx.core)
    if split == _NO:
        only = 0 if config is None else config.SubBlockId
        mode = LayoutMode_t.NZ2ND if config is None else config.LayoutMode
        shape = _vec_spec(kind, spec.rows, spec.cols, mode)
        window = _window(cluster.vector_memory(only), address, shape, (rows, cols), "slot")
        return [("slot", window, (slice(0, rows), slice(0, cols)))]
    up = split == _UP
    part = (rows // 2, cols) if up else (rows, cols // 2)
    size = (spec.rows // 2, spec.cols) if up else (spec.rows, spec.cols // 2)
    shape = _vec_spec(kind, *size, LayoutMode_t.NZ2ND)
    targets: list[Target] = []
    for sub in range(SUBBLOCKS):
        window = _window(cluster.vector_memory(sub), address, shape, part, "slot")
        first = sub * part[0] if up else 0, 0 if up else sub * part[1]
        area = slice(first[0], first[0] + part[0]), slice(first[1], first[1] + part[1])
        targets.append(("slot", window, area))
    return targets


def _vec_spec(kind: DType, rows: int, cols: int, mode: LayoutMode_t) -> TileSpec:
    if mode == LayoutMode_t.NZ2ND:
        return TileSpec.of(TileType.Vec, kind, rows, cols)
    if mode == LayoutMode_t.NZ2DN:
        return TileSpec.of(TileType.Vec, kind, rows, cols, BLayout.ColMajor)
    return _boxed(TileType.Vec, kind, rows, cols)


def _boxed(loc: TileType, kind: DType, rows: int, cols: int) -> TileSpec:
    return TileSpec.of(loc, kind, rows, cols, BLayout.ColMajor, None, None, SLayout.RowMajor)


def _to_cube(end: End, tile: TileObject, split: TileSplitAxis) -> list[Target]:
    """A vector tile into the L1 matrix that both vector cores fill."""
    spec, rows, cols = tile.spec, tile.vr, tile.vc
    up, left = split == _UP, split == _LEFT
    whole = _boxed(TileType.Mat, spec.dtype, spec.rows * (1 + up), spec.cols * (1 + left))
    address = end.pipe.v2c_consumer_buf + end.slot() + end.state.entryOffset
    first_row, first_col = rows * end.sub * up, cols * end.sub * left
    memory = cluster_of(end.ctx.core).cores["cube"].memory(TileType.Mat)
    window = Window(
        memory,
        address,
        whole.axis_map(whole.rows, whole.cols),
        spec.dtype,
        slice(first_row, first_row + rows),
        slice(first_col, first_col + cols),
        "slot",
    )
    return [("slot", window, (slice(0, rows), slice(0, cols)))]


# ---- helpers -----------------------------------------------------------------------------------


def _window(
    storage: Storage, address: int, spec: TileSpec, valid: tuple[int, int], label: str
) -> Window:
    rows, cols = slice(0, valid[0]), slice(0, valid[1])
    return Window(storage, address, spec.axis_map(*valid), spec.dtype, rows, cols, label)


def _move(
    end: End,
    pipe: Pipe,
    source: tuple[str, Window | GmWindow],
    targets: list[Target],
    tile: TileObject | None = None,
    config: FixpipeParams | None = None,
) -> Move:
    ctx = end.ctx
    convert = combine = None
    unit = end.pipe.spec.EN_UNIT_FLAG and end.role == "cube" and pipe is Pipe.FIX
    phase = int(STPhase.Final) if unit else 0
    if config is not None and tile is not None:
        convert = _conversion(end, tile, config)
        if config.AtomicT == AtomicType.AtomicAdd:
            combine = _add
    return Move(ctx.machine, ctx.plan.insn, pipe, ctx.ops, source, targets, convert, combine, phase)


def _add(there: Array, arriving: Array) -> Array:
    return (there + arriving).astype(there.dtype)


def _conversion(end: End, tile: TileObject, config: FixpipeParams) -> Any:
    """What the fix pipe does to the values, with the parameters set beforehand."""
    source = tile.spec.dtype
    result = config.result(source)
    registers, target = end.ctx.registers, end.ctx.target.name
    name = config.QuantPre.name
    scaled = name not in ("NoQuant", "F322F16", "F322BF16")
    relu = config.ReluMode == ReluPreMode.NormalRelu

    def convert(values: Array) -> Array:
        word: Any = None
        if scaled and name.startswith("V"):
            vector = registers["FPC_TILE"]
            word = local_bytes(vector).read().reshape(-1)[: values.shape[1]].astype(np.uint64)
        elif scaled:
            word = registers.get("QUANT_PRE", 0)
            if target == "cpu" and not word & 0xFFFF_FFFF:
                word |= 0x3F80_0000  # the public simulator reads an unset scale as 1.0
        return convert_out(values, source, result, word=word, relu=relu, target=target)

    return convert
