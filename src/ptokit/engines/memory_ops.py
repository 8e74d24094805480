"""Executing pointers, views, tile handles, queries and debugging aids."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ptokit.base.diagnostics import NotSupported, PtoError, fail
from ptokit.base.dtypes import i8
from ptokit.base.enums import Layout
from ptokit.base.tiles import DYNAMIC
from ptokit.engines.steps import Frame, Handler, Prepare, Step, arithmetic
from ptokit.engines.values import (
    COUNTS,
    Form,
    SlotView,
    View,
    counts_of,
    dense,
    element_of,
    layout_of,
)
from ptokit.ir.attributes import ArrayAttr, DenseAttr, EnumAttr, IntAttr, StringAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects import Definition, arith, func, memory, system
from ptokit.ir.types import ConvTileType, MultiTileType, TileBufType
from ptokit.machine.faults import OutOfBounds
from ptokit.machine.machine import Machine
from ptokit.machine.objects import Pointer, TileObject
from ptokit.machine.registers import LocalPointer

if TYPE_CHECKING:
    from ptokit.engines.interpreter import Interpreter


# ---- pointers ----------------------------------------------------------------------------------


def _addptr(run: Interpreter, op: Op, frame: Frame) -> None:
    frame[op.result] = frame[op.operands[0]] + frame[op.operands[1]]


_SPAN = 1 << 40  # addresses between two arrays: the same in every run, wherever they really lie


def _ptrtoint(run: Interpreter, op: Op, frame: Frame) -> None:
    pointer: Pointer = frame[op.operands[0]]
    at = pointer.buffer.base + pointer.offset
    for number, array in enumerate(run.arrays, 1):
        if array.base <= at <= array.base + array.data.size:
            frame[op.result] = number * _SPAN + at - array.base
            return
    raise _nowhere(op, repr(pointer))


def _inttoptr(run: Interpreter, op: Op, frame: Frame) -> None:
    address: int = frame[op.operands[0]]
    number, offset = divmod(address, _SPAN)
    if not 1 <= number <= len(run.arrays):
        raise _nowhere(op, hex(address))
    element = element_of(op.result.type, op.location)
    frame[op.result] = Pointer(run.arrays[number - 1], element, offset)


def _nowhere(op: Op, got: str) -> PtoError:
    return fail(
        "int-address",
        f"{op.name}: no array that the kernel was given lies there",
        got=[("address", got)],
        fix="take the address of an argument: pto.ptrtoint %pointer",
        site=op.location,
    )


# ---- views -------------------------------------------------------------------------------------


def _form(op: Op, frame: Frame) -> Form:
    """Shape, strides and layout that an operation gives a view."""
    shape, stride = (tuple(frame[v] for v in op.group(n)) for n in ("shape", "strides"))
    if min(*shape, *stride, 0) < 0:
        raise fail(
            "view-size",
            f"{op.name}: the sizes and strides of a view are not negative",
            got=[("shape", shape), ("strides", stride)],
            fix="a view goes forwards through memory: begin at its first element",
            site=op.location,
        )
    given = op.attrs.get("layout")
    known = isinstance(given, EnumAttr)
    layout = Layout[given.value.upper()] if known else layout_of(shape, stride)
    return Form(element_of(op.result.type, op.location), shape, stride, layout, known)


def _tensor_view(op: Op) -> Step:
    memory_, result = op.operands[0], op.result
    sizes = (*op.group("shape"), *op.group("strides"))
    last: tuple[tuple[Any, ...], Form | None] = ((), None)  # the form, and the numbers it is of

    def step(run: Interpreter, frame: Frame) -> None:
        nonlocal last
        numbers = tuple([frame[v] for v in sizes])
        known, form = last
        if form is None or known != numbers:
            form = _form(op, frame)
            last = numbers, form
        at = frame[memory_]
        frame[result] = View(at.pointer if isinstance(at, View) else at, form)

    return step


def _declare_view(run: Interpreter, op: Op, frame: Frame) -> None:
    """A view without memory is an object: a FIFO points it at its slots."""
    frame[op.result] = SlotView(_form(op, frame), op.location)


def _partition(op: Op) -> Step:
    source, result = op.operands[0], op.result
    offsets, sizes = op.group("offsets"), op.group("sizes")
    # The form of the view and of its window at the last run: a loop takes windows of one form.
    last: tuple[Form | None, Form] = (None, Form(i8, (), ()))

    def step(run: Interpreter, frame: Frame) -> None:
        nonlocal last
        view: View | SlotView = frame[source]
        extents = tuple([frame[v] for v in sizes])
        before, after = last
        if view.form is not before or after.shape != extents:
            if not len(offsets) == len(sizes) == len(view.form.shape):
                raise fail(
                    "view-rank",
                    f"{op.name}: as many offsets and sizes as the view has dimensions",
                    got=[
                        ("offsets", len(offsets)),
                        ("sizes", len(sizes)),
                        ("dimensions", len(view.form.shape)),
                    ],
                    site=op.location,
                )
            after = view.form.sized(extents)
            last = view.form, after
        starts = [frame[v] for v in offsets]
        for start, size, extent in zip(starts, extents, view.form.shape, strict=True):
            if start < 0 or size < 0 or start + size > extent:
                raise _outside(op, starts, extents, view.form.shape)
        frame[result] = view.part(starts, after)

    return step


def _outside(
    op: Op, starts: Sequence[int], sizes: Sequence[int], extents: Sequence[int]
) -> PtoError:
    """A part of a view that is not in it: its elements would be others than the program thinks."""
    return fail(
        "slice-range",
        f"{op.name}: a part lies inside its view",
        got=[("from", tuple(starts)), ("sizes", tuple(sizes)), ("view", tuple(extents))],
        fix="0 <= offset, and offset + size at most the size of the view, in every dimension",
        site=op.location,
    )


def _dimension(run: Interpreter, op: Op, frame: Frame) -> None:
    view: View | SlotView = frame[op.operands[0]]
    index = frame[op.operands[1]]
    shape = view.form.stride if memory.VIEW_STRIDE.matches(op) else view.form.shape
    if not 0 <= index < len(shape):
        raise fail(
            "view-rank",
            f"{op.name}: the view has {len(shape)} dimensions",
            got=[("dimension", index)],
            site=op.location,
        )
    frame[op.result] = shape[index]


# ---- tiles -------------------------------------------------------------------------------------


def _optional(op: Op, frame: Frame, label: str) -> Any:
    value = op.operand(label)
    return None if value is None else frame[value]


def _alloc(run: Interpreter, op: Op, frame: Frame) -> None:
    made, address = op.result, _optional(op, frame, "addr")
    if isinstance(made.type, ConvTileType):
        frame[made] = run.buffer(made, address)
        return
    if not isinstance(made.type, TileBufType):
        raise _lowered(op)
    rows, cols = _optional(op, frame, "valid_row"), _optional(op, frame, "valid_col")
    _check_valid(op, run, made, rows, cols)
    frame[made] = run.tile(made, (rows, cols), address)


def _alloc_tiles(run: Interpreter, op: Op, frame: Frame) -> None:
    type_, address = op.result.type, _optional(op, frame, "addr")
    assert isinstance(type_, MultiTileType)
    rows, cols = _optional(op, frame, "valid_row"), _optional(op, frame, "valid_col")
    one = Value(op.result.name, TileBufType(type_.spec), op, op.location)
    _check_valid(op, run, one, rows, cols)
    frame[op.result] = [
        run.tile(one, (rows, cols), None if address is None else address + slot * type_.stride)
        for slot in range(type_.count)
    ]


def _get_tile(run: Interpreter, op: Op, frame: Frame) -> None:
    tiles, slot = frame[op.operands[0]], frame[op.operands[1]]
    if not 0 <= slot < len(tiles):
        raise fail(
            "tile-slot",
            f"{op.name}: the index lies in 0..{len(tiles) - 1}",
            got=[("index", slot)],
            fix="nothing is taken modulo the number of tiles: write i % n",
            site=op.location,
        )
    frame[op.result] = tiles[slot]


def _check_valid(
    op: Op, run: Interpreter, value: Value, rows: int | None, cols: int | None
) -> None:
    spec = run.spec(value)
    for what, given, most in (("rows", rows, spec.rows), ("columns", cols, spec.cols)):
        if given is not None and not 0 <= given <= most:
            raise fail(
                "valid-capacity",
                f"{op.name}: valid {what} lie between 0 and the capacity of the tile",
                got=[(f"valid {what}", given), ("capacity", most)],
                site=op.location,
            )


def _declare(run: Interpreter, op: Op, frame: Frame) -> None:
    if not isinstance(op.result.type, TileBufType):
        raise _lowered(op)
    spec = run.spec(op.result)
    rows = spec.rows if spec.valid_row == DYNAMIC else spec.valid_row
    cols = spec.cols if spec.valid_col == DYNAMIC else spec.valid_col
    frame[op.result] = TileObject(spec, rows, cols)


def _set_valid(run: Interpreter, op: Op, frame: Frame) -> None:
    tile: TileObject = frame[op.operands[0]]
    rows, cols = frame[op.operands[1]], frame[op.operands[2]]
    _check_valid(op, run, op.operands[0], rows, cols)
    tile.vr, tile.vc = rows, cols
    tile.refresh()


def _get_valid(run: Interpreter, op: Op, frame: Frame) -> None:
    tile: TileObject = frame[op.operands[0]]
    frame.update(zip(op.results, (tile.vr, tile.vc), strict=True))


def _valid_size(run: Interpreter, op: Op, frame: Frame) -> None:
    tile: TileObject = frame[op.operands[0]]
    frame[op.result] = tile.vr if memory.VALID_ROWS.matches(op) else tile.vc


def _tile_address(run: Interpreter, op: Op, frame: Frame) -> None:
    tile: TileObject = frame[op.operands[0]]
    run.machine.place(tile)
    assert tile.storage is not None
    element = element_of(op.result.type, op.location)
    frame[op.result] = LocalPointer(tile.storage, element, tile.address)


def _view_address(run: Interpreter, op: Op, frame: Frame) -> None:
    view: View | SlotView = frame[op.operands[0]]
    frame[op.result] = view.pointer if isinstance(view, View) else view.data()


def _bitcast(run: Interpreter, op: Op, frame: Frame) -> None:
    source: TileObject = frame[op.operands[0]]
    spec = run.spec(op.result)
    rows = spec.rows if spec.valid_row == DYNAMIC else spec.valid_row
    cols = spec.cols if spec.valid_col == DYNAMIC else spec.valid_col
    made = TileObject(spec, rows, cols)
    run.machine.place(source)
    made.share(source)
    frame[op.result] = made


def _window(run: Interpreter, op: Op, frame: Frame) -> None:
    """An alias of a part of a tile."""
    source: TileObject = frame[op.operands[0]]
    row, col = (frame[v] for v in op.group("offsets"))
    spec, whole, parent = run.spec(op.result), run.spec(op.operands[0]), source.spec
    if not (0 <= row <= whole.rows - spec.rows and 0 <= col <= whole.cols - spec.cols):
        raise fail(
            "window-bounds",
            f"{op.name}: the window lies inside the tile",
            got=[("tile", whole), ("window", spec), ("offsets", (row, col))],
            site=op.location,
            kind=OutOfBounds,
        )
    given = [frame[v] for v in op.group("valid")]
    if given:
        _check_valid(op, run, op.result, *given)
    else:  # of what the type leaves open, as much as is valid in the tile
        covered = (min(spec.rows, source.vr - row), min(spec.cols, source.vc - col))
        given = [max(0, n) for n in covered]
    rows = given[0] if spec.valid_row == DYNAMIC else spec.valid_row
    cols = given[1] if spec.valid_col == DYNAMIC else spec.valid_col
    made = TileObject(memory.window(spec, parent), rows, cols)
    run.machine.place(source)
    offset = int(parent.axis_map(source.vr, source.vc).offsets[row, col]) * parent.itemsize
    made.share(source, offset)
    frame[op.result] = made


def _lowered(op: Op) -> Exception:
    return fail(
        "not-supported",
        f"{op.name} on memrefs is an intermediate form of another compiler",
        fix="run the program before lowering, with !pto.tile_buf types",
        site=op.location,
        kind=NotSupported,
    )


def _refuse_lowered(run: Interpreter, op: Op, frame: Frame) -> None:
    raise _lowered(op)


# ---- queries and debugging ---------------------------------------------------------------------


def _query(answer: Callable[[Machine], int]) -> Handler:
    def handler(run: Interpreter, op: Op, frame: Frame) -> None:
        frame[op.result] = answer(run.machine)

    return handler


def _print(run: Interpreter, op: Op, frame: Frame) -> None:
    text = op.attrs["format"]
    assert isinstance(text, StringAttr)
    value = frame[op.operands[0]]
    # C's length modifiers mean nothing here.
    print(re.sub(r"%([-+ #0-9.]*)(?:hh|h|ll|l|z|j)?([diufeEgGxX])", r"%\1\2", text.value) % value)


def _trap(run: Interpreter, op: Op, frame: Frame) -> None:
    raise fail("trap", "the program stopped itself", site=op.location)


def _dense(run: Interpreter, op: Op, frame: Frame) -> None:
    """`memref.reinterpret_cast`: another shape for the same memory."""
    source = frame[op.operands[0]]
    if not isinstance(source, View):
        raise _lowered(op)
    lists: dict[str, list[int]] = {}
    for label in ("offsets", "sizes", "strides"):
        static, values = op.attrs[f"static_{label}"], iter(op.group(label))
        assert isinstance(static, ArrayAttr)
        lists[label] = [
            frame[next(values)] if n.value == -(1 << 63) else n.value
            for n in static.items
            if isinstance(n, IntAttr)
        ]
    moved: Pointer = source.pointer + sum(lists["offsets"])
    shape, stride = tuple(lists["sizes"]), tuple(lists["strides"])
    frame[op.result] = View(moved, Form(source.form.dtype, shape, stride or dense(shape)))


def _constant(op: Op) -> Step:
    """Four constant counts are a list of executed records; other constants are numbers."""
    value = op.attrs["value"]
    if not isinstance(value, DenseAttr) or str(value.type) != COUNTS:
        return arithmetic(op)
    counts = [int(n) for n in value.numbers]

    def step(run: Interpreter, frame: Frame) -> None:
        frame[op.result] = counts_of(counts)

    return step


PREPARED: dict[Definition, Prepare] = {
    arith.CONSTANT: _constant,
    memory.MAKE_VIEW: _tensor_view,
    memory.PARTITION: _partition,
}
HANDLERS: dict[Definition, Handler] = {
    memory.ADDPTR: _addptr,
    memory.PTR_TO_INT: _ptrtoint,
    memory.INT_TO_PTR: _inttoptr,
    memory.DECLARE_VIEW: _declare_view,
    memory.VIEW_DIM: _dimension,
    memory.VIEW_STRIDE: _dimension,
    memory.VIEW_ADDR: _view_address,
    memory.ALLOC: _alloc,
    memory.ALLOC_TILES: _alloc_tiles,
    memory.GET_TILE: _get_tile,
    memory.DECLARE_TILE: _declare,
    memory.SET_VALID: _set_valid,
    memory.GET_VALID: _get_valid,
    memory.VALID_ROWS: _valid_size,
    memory.VALID_COLS: _valid_size,
    memory.TILE_ADDR: _tile_address,
    memory.BITCAST: _bitcast,
    memory.SUBSET: _window,
    memory.SUBVIEW: _window,
    memory.BIND_TILE: _refuse_lowered,
    memory.POINTER_CAST: _refuse_lowered,
    memory.DECLARE_MEMREF: _refuse_lowered,
    func.MEMREF_ALLOC: _refuse_lowered,
    func.REINTERPRET: _dense,
    system.BLOCK_IDX: _query(lambda machine: machine.core.block),
    system.BLOCK_NUM: _query(lambda machine: machine.blocks),
    system.SUBBLOCK_IDX: _query(lambda machine: machine.core.subblock),
    system.SUBBLOCK_NUM: _query(lambda machine: machine.subblocks),
    system.PRINT: _print,
    system.TRAP: _trap,
}
