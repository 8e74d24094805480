"""Entries of a FIFO: the bytes of one slot, and the part of them each core writes or reads.

Through global memory an entry is a row-major matrix of the valid region. Straight into the
consumer's memory it is what the consumer's tile expects: rows in UB, 16-row boxes in L1.

A slot is an operand like any other, a view of global memory or a tile in the consumer's memory.
The transfer inside a TPUSH or TPOP is a call of its own with a tile and one or two slots: it goes
to the queue of its pipe, is executed and leaves an event like any instruction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.convert import to_float32
from ptokit.base.dtypes import DType, i8
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
from ptokit.isa.facts import Ops
from ptokit.isa.fifos import FixpipeParams, half
from ptokit.isa.fixpipe import WORDS_STEP, convert_out
from ptokit.isa.idioms import Idiom, copy
from ptokit.isa.pipes import TPOP, TPUSH
from ptokit.isa.services import Beyond, Refused
from ptokit.isa.spec import Attr, Extent, Insn, Operand, Pipe, View, gm_in, out, src
from ptokit.machine.calls import part_of, tile_access
from ptokit.machine.cluster import SUBBLOCKS, cluster_of
from ptokit.machine.memory import Storage
from ptokit.machine.objects import GlobalObject, Pointer, TileObject

if TYPE_CHECKING:
    from ptokit.machine.fifo import End

_NO, _UP, _LEFT, *_ = TileSplitAxis
Transfer = tuple[Insn, tuple[Any, ...], tuple[Any, ...]]  # its record, operands and attributes


# ---- the records of transfers ------------------------------------------------------------------


def _pop(slot: Array, tile: Array) -> None:
    tile[...] = slot


def _push(
    tile: Array,
    *slots: Array,
    Split: TileSplitAxis,
    Config: FixpipeParams | None,
    ops: Ops,
    registers: dict[str, Any],
    beyond: Beyond,
) -> None:
    register = _parameters(Config)
    if register and register not in registers:
        _not_set(register, ops, beyond)
    values = tile if Config is None else _converted(tile, Config, ops, registers)
    parts = [values] if len(slots) == 1 else np.split(values, SUBBLOCKS, 0 if Split == _UP else 1)
    for slot, part in zip(slots, parts, strict=True):
        slot[...] = (slot + part).astype(slot.dtype) if _adds(Config) else part


def _pop_loop(o: Ops) -> Idiom | None:
    return copy("tile", o.tile.dtype, "slot")


def _push_loop(o: Ops) -> Idiom | None:
    """A copy, or one for each half, where nothing converts on the way."""
    if o.attrs["Config"] is not None:
        return None
    kind, at = o.tile.dtype, o.attrs["At"]
    slots = [name for name, _ in o if name != "tile"]
    if len(slots) == 1:
        return None if at is not None and o.slot.kind != "tile" else copy("slot", kind, "tile")
    is_upper = o.attrs["Split"] == _UP
    size = (o.tile.vr if is_upper else o.tile.vc) // len(slots)
    parts = (
        copy(name, kind, "tile", (n * size, 0) if is_upper else (0, n * size))
        for n, name in enumerate(slots)
    )
    found = tuple(part for part in parts if part is not None)
    return found if len(found) == len(slots) else None


def _adds(config: FixpipeParams | None) -> bool:
    return config is not None and config.AtomicT == AtomicType.AtomicAdd


def _parameters(config: FixpipeParams | None) -> str:
    return "" if config is None else config.register


def _not_set(register: str, ops: Ops, beyond: Beyond) -> None:
    """A conversion takes its scale from a register that nothing has set."""
    vector = register == "FPC"
    setter = "SET_QUANT_VECTOR(fpTile)" if vector else "SET_QUANT_SCALAR[OutType](scale)"
    error = Refused("register", f"{register} has been set", fix=f"call {setter} before")
    if vector:
        raise error  # it points to no words at all
    if ops.target.is_device:
        beyond.lead("tile", np.zeros(0, np.int64), error, "own", "it holds 0, its reset value")


def _converted(values: Array, config: FixpipeParams, ops: Ops, registers: dict[str, Any]) -> Array:
    """What the fix pipe does to the values, with the parameters set beforehand."""
    target, source = ops.target, ops.tile.dtype
    register, word = _parameters(config), None
    if register:
        if register == "FPC":
            tile, is_signed = registers["FPC_TILE"], config.result(source) is i8
            word: Any = _words(tile, words_behind(tile)[: values.shape[1]], is_signed)
        else:
            word = registers.get(register, 0)
            if not target.is_device and not word & 0xFFFF_FFFF:
                word |= 0x3F80_0000  # the public simulator reads an unset scale as 1.0
    relu = config.ReluMode == ReluPreMode.NormalRelu
    return convert_out(values, source, config.result(source), word=word, relu=relu, target=target)


def _words(tile: Any, values: Array, is_signed: bool) -> Array:
    """The words of columns; texts for A5 write the scales alone, as floats."""
    if not tile.spec.dtype.is_float:
        return values.astype(np.uint64)
    scales = to_float32(values, tile.spec.dtype).view(np.uint32).astype(np.uint64)
    return scales | np.uint64(is_signed << 46)


def words_behind(tile: Any) -> Array:
    """The words behind the register, which holds no more than multiples of their step."""
    access = tile_access(tile)
    start = access.offset - access.offset % WORDS_STEP
    return access.pattern.at(access.memory, start).read().reshape(-1)


def _area(o: Ops) -> View | Extent:
    """The part of a slot that is written: all of it, or what lies past a row and a column."""
    if o.attrs["At"] is None:
        return View.VALID
    row, col = o.attrs["At"]
    return slice(row, row + o.tile.vr), slice(col, col + o.tile.vc)


_ATTRS = (
    Attr("Split", TileSplitAxis),
    Attr("Config", FixpipeParams),
    Attr("At", tuple, None, "first row and column of a slot that several cores fill"),
    Attr("Phase", STPhase),
)


def _push_record(pipe: Pipe, slots: int, adds: bool, register: str) -> Insn:
    role = "inout" if adds else "out"
    names = [f"slot{n or ''}" for n in range(slots)]
    kinds = ("tile", "global")
    made = (Operand(name, role, kinds, _area, carries=adds) for name in names)
    record = part_of(TPUSH, pipe, (src("tile"), *made), _push, _ATTRS)
    return replace(record, uses=frozenset(register.split()), idiom=None if adds else _push_loop)


_POP = replace(
    part_of(TPOP, Pipe.MTE2, (gm_in("slot"), out("tile")), _pop, _ATTRS), idiom=_pop_loop
)
_PUSH = {  # the pipe, the number of slots, whether it adds to what is there, where scales come from
    (pipe, slots, adds, register): _push_record(pipe, slots, adds, register)
    for pipe in (Pipe.FIX, Pipe.MTE3)
    for slots in (1, SUBBLOCKS)
    for adds in (False, True)
    for register in ("", "QUANT_PRE", "FPC")
}
TRANSFERS = frozenset({_POP, *_PUSH.values()})


# ---- tiles and slots ---------------------------------------------------------------------------


def pop(end: End, tile: TileObject, split: TileSplitAxis) -> Transfer:
    """The entry of the current slot into a tile."""
    rows, cols = tile.vr, tile.vc
    offset, pitch = (0, cols) if end.role == "cube" else half(split, end.sub, rows, cols)
    slot = _slot(end, tile.spec.dtype, (rows, cols), (pitch, 1), offset)
    return _POP, (slot, tile), (split, None, None, STPhase.Unspecified)


def push(
    end: End, tile: TileObject, split: TileSplitAxis, config: FixpipeParams | None, pipe: Pipe
) -> Transfer:
    """A tile into the current slot, or into one slot of each vector core."""
    rows, cols = tile.vr, tile.vc
    kind = tile.spec.dtype if config is None else config.result(tile.spec.dtype)
    at = None
    if end.pipe.direct and end.c2v:
        slots = _in_vectors(end, tile, split, config, kind)
    elif end.pipe.direct:
        slot, at = _in_cube(end, tile, split)
        slots = [slot]
    elif end.role == "cube":
        slots = [_arranged(end, kind, rows, cols, _mode(config))]
    else:
        offset, pitch = half(split, end.sub, rows, cols)
        slots = [_slot(end, tile.spec.dtype, (rows, cols), (pitch, 1), offset)]
    return _pushed(end, tile, slots, (split, config, at), pipe)


def push_view(end: End, tile: TileObject, spec: GlobalSpec, pipe: Pipe) -> Transfer:
    """A tile into a slot that is arranged as `spec` says."""
    return _pushed(end, tile, [_view(end, spec)], (_NO, None, None), pipe)


def _pushed(
    end: End, tile: TileObject, slots: list[Any], attrs: tuple[Any, ...], pipe: Pipe
) -> Transfer:
    unit = end.pipe.spec.EN_UNIT_FLAG and end.role == "cube" and pipe is Pipe.FIX
    phase = STPhase.Final if unit else STPhase.Unspecified
    record = _PUSH[pipe, len(slots), _adds(attrs[1]), _parameters(attrs[1])]
    return record, (tile, *slots), (*attrs, phase)


def _mode(config: FixpipeParams | None) -> LayoutMode_t:
    return LayoutMode_t.NZ2ND if config is None else config.LayoutMode


# ---- rings in global memory --------------------------------------------------------------------


def _slot(
    end: End, kind: DType, shape: tuple[int, int], strides: tuple[int, int], offset: int = 0
) -> GlobalObject:
    return _view(end, GlobalSpec.of(kind, (1, 1, 1, *shape), (1, 1, 1, *strides)), offset)


def _view(end: End, spec: GlobalSpec, offset: int = 0) -> GlobalObject:
    """A view of the current slot, `offset` elements past its start."""
    at = end.pipe.gm
    assert at is not None
    start = at.offset + end.slot() + end.state.entryOffset + offset * spec.itemsize
    return GlobalObject(spec, Pointer(at.buffer, spec.dtype, start), spec.shape, spec.stride)


def _arranged(end: End, kind: DType, rows: int, cols: int, mode: LayoutMode_t) -> GlobalObject:
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


def _in_vectors(
    end: End, tile: TileObject, split: TileSplitAxis, config: FixpipeParams | None, kind: DType
) -> list[TileObject]:
    """Slots in UB for an accumulator: all of it goes to one vector core, or half to each."""
    spec, rows, cols = tile.spec, tile.vr, tile.vc
    address = end.pipe.c2v_consumer_buf + end.slot() + end.state.entryOffset
    cluster = cluster_of(end.core)
    if split == _NO:
        only = 0 if config is None else config.SubBlockId
        shape = _vec_spec(kind, spec.rows, spec.cols, _mode(config))
        return [_tile_slot(cluster.vector_memory(only), address, shape, rows, cols)]
    high, wide = (2, 1) if split == _UP else (1, 2)
    shape = _vec_spec(kind, spec.rows // high, spec.cols // wide, LayoutMode_t.NZ2ND)
    return [
        _tile_slot(cluster.vector_memory(sub), address, shape, rows // high, cols // wide)
        for sub in range(SUBBLOCKS)
    ]


def _vec_spec(kind: DType, rows: int, cols: int, mode: LayoutMode_t) -> TileSpec:
    if mode == LayoutMode_t.NZ2ND:
        return TileSpec.of(TileType.Vec, kind, rows, cols)
    if mode == LayoutMode_t.NZ2DN:
        return TileSpec.of(TileType.Vec, kind, rows, cols, BLayout.ColMajor)
    return _boxed(TileType.Vec, kind, rows, cols)


def _boxed(loc: TileType, kind: DType, rows: int, cols: int) -> TileSpec:
    return TileSpec.of(loc, kind, rows, cols, BLayout.ColMajor, None, None, SLayout.RowMajor)


def _in_cube(
    end: End, tile: TileObject, split: TileSplitAxis
) -> tuple[TileObject, tuple[int, int]]:
    """The L1 matrix that both vector cores fill, and where the part of this one begins."""
    spec, up, left = tile.spec, split == _UP, split == _LEFT
    twice = _boxed(TileType.Mat, spec.dtype, spec.rows * (1 + up), spec.cols * (1 + left))
    whole = end.consumed or twice
    address = end.pipe.v2c_consumer_buf + end.slot() + end.state.entryOffset
    memory = cluster_of(end.core).cores["cube"].memory(TileType.Mat)
    slot = _tile_slot(memory, address, whole, whole.rows, whole.cols)
    return slot, (tile.vr * end.sub * up, tile.vc * end.sub * left)


def _tile_slot(memory: Storage, address: int, spec: TileSpec, rows: int, cols: int) -> TileObject:
    slot = TileObject(spec, rows, cols)
    slot.bind(memory, address)
    slot.in_ring = True
    return slot
