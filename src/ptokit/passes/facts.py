"""What is known about the values of a program before it runs.

Constants are folded through `arith`; views, partitions and handles give the facts of operands in
the same shape the simulator gives them, so that the same rules apply to both.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field, replace
from math import prod
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import BLayout, CompactMode, Layout, SLayout
from ptokit.base.tensors import GlobalSpec, in_boxes, strides_in_use
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.ir.arithmetic import Number, Undefined
from ptokit.ir.attributes import EnumAttr, OpaqueAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects import Definition, arith, definition_of, memory
from ptokit.ir.evaluate import evaluate
from ptokit.ir.instructions import group_operands, root_of, run_time_operands
from ptokit.ir.types import (
    BLAYOUTS,
    COMPACTS,
    LOCATIONS,
    PADS,
    SLAYOUTS,
    ConvTileType,
    MultiTileType,
    ScalarType,
    ShapedType,
    TileBufType,
    ViewType,
    is_column,
    is_column_tile,
    on_target,
)
from ptokit.ir.typetext import is_local
from ptokit.isa.facts import Facts, GlobalFacts, ObjectFacts, ScalarFacts, TileFacts, Unknown
from ptokit.isa.groups import ViewGroup
from ptokit.isa.targets import Target
from ptokit.passes.conv_facts import KnownConvs


class _Opaque:
    """An object of which nothing is known until the program runs."""

    def __getattr__(self, name: str) -> Any:
        raise Unknown


_OPAQUE = _Opaque()


@dataclass(frozen=True)
class View:
    """A view of global memory: sizes and strides, DYNAMIC where unknown."""

    dtype: DType
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    layout: Layout | None = None
    is_given: bool = True  # the layout was written; else it follows from the strides


@dataclass
class Known:
    """The knowledge about one function on one target; `see` is called in program order."""

    target: Target
    numbers: dict[Value, Number] = field(default_factory=dict[Value, Number])
    _views: dict[Value, View] = field(default_factory=dict[Value, View])
    _tiles: dict[Value, TileFacts] = field(default_factory=dict[Value, TileFacts])
    _convs: KnownConvs = field(default_factory=KnownConvs)

    def see(self, op: Op) -> None:
        """Take an operation into account."""
        self._convs.see(op, self.numbers)
        learn = _LEARN.get(definition_of(op))
        if learn is not None:
            learn(self, op)

    def number(self, value: Value | None) -> int | None:
        """The integer a value is known to be."""
        found = None if value is None else self.numbers.get(value)
        return int(found) if found is not None else None

    def facts(self, value: Value | None, in_columns: bool = False) -> Facts | None:
        """The facts of an operand; `in_columns` says that it is moved from or to a column tile."""
        if value is None:
            return None
        type_ = value.type
        if isinstance(type_, TileBufType):
            found = self._tiles.get(value)
            if found is None:
                found = TileFacts(on_target(type_.spec, self.target.left_layout))
                self._tiles[value] = found
            return found
        if isinstance(type_, ConvTileType):
            return self._convs.facts(value, type_.spec)
        if isinstance(type_, ScalarType):
            return ScalarFacts(type_.dtype, self.numbers.get(value))
        if isinstance(type_, ShapedType) and type_.kind == "memref" and is_local(type_):
            spec = on_target(memref_tile(type_), self.target.left_layout)
            return self._tiles.get(value) or TileFacts(spec)
        if isinstance(type_, ViewType) or (
            isinstance(type_, ShapedType) and type_.kind == "memref"
        ):
            view = self.view(value)
            if in_columns and not view.is_given and is_column(view.shape, view.stride):
                view = replace(view, layout=Layout.DN)
            return global_facts(view)
        return ObjectFacts(_OPAQUE)

    def operands(self, op: Op) -> list[Facts | None]:
        """The facts of an instruction's operands, in the order of its record."""
        values = run_time_operands(op)
        in_columns = any(is_column_tile(value.type) for value in values if value is not None)
        return [
            self._group(members, root_of(op)) if members else self.facts(value, in_columns)
            for value, members in zip(values, group_operands(op), strict=True)
        ]

    def _group(self, members: list[Value], root: int) -> Facts:
        return ObjectFacts(ViewGroup(tuple(map(self.facts, members)), root))

    def view(self, value: Value) -> View:
        """What is known about a view."""
        found = self._views.get(value)
        if found is not None:
            return found
        type_ = value.type
        assert isinstance(type_, ViewType | ShapedType)
        element = type_.element.dtype or dtype("i8")
        stride = (DYNAMIC,) * len(type_.shape)
        if isinstance(type_, ShapedType):
            stride = memref_strides(type_)
        return View(element, type_.shape, stride)

    # ---- operations --------------------------------------------------------------------------

    def _fold(self, op: Op) -> None:
        args = [self.numbers.get(v) for v in op.operands]
        if any(a is None for a in args):
            return
        try:
            found = evaluate(op, [a for a in args if a is not None])
        except Undefined:
            return  # the program may never get there; running it will tell
        if found is not None:
            self.numbers.update(zip(op.results, found, strict=True))

    def _sizes(self, values: list[Value]) -> tuple[int, ...]:
        return tuple(self._size(v) for v in values)

    def _size(self, value: Value) -> int:
        known = self.number(value)
        return DYNAMIC if known is None else known

    def _tensor_view(self, op: Op) -> None:
        type_ = op.result.type
        assert isinstance(type_, ViewType | ShapedType)
        shape = _merge(type_.shape, self._sizes(op.group("shape")))
        stride = self._sizes(op.group("strides"))
        given = op.attrs.get("layout")
        layout = Layout[given.value.upper()] if isinstance(given, EnumAttr) else None
        element = type_.element.dtype or dtype("i8")
        found = inferred_layout(shape, stride) if layout is None else layout
        self._views[op.result] = View(element, shape, stride, found, layout is not None)

    def _partition(self, op: Op) -> None:
        type_ = op.result.type
        assert isinstance(type_, ViewType | ShapedType)
        source = self.view(op.operands[0])
        sizes = self._sizes(op.group("sizes"))
        shape = _merge(type_.shape, sizes) if len(type_.shape) == len(sizes) else sizes
        part = replace(source, shape=shape)
        if len(shape) != len(source.stride):
            part = View(source.dtype, shape, (DYNAMIC,) * len(shape), source.layout)
        self._views[op.result] = part

    def _allocated(self, op: Op) -> None:
        type_ = op.result.type
        if isinstance(type_, ShapedType):
            self._tiles[op.result] = TileFacts(memref_tile(type_))
        if not isinstance(type_, TileBufType):
            return
        spec = on_target(type_.spec, self.target.left_layout)
        valid = (
            None if spec.valid_row != DYNAMIC else self.number(op.operand("valid_row")),
            None if spec.valid_col != DYNAMIC else self.number(op.operand("valid_col")),
        )
        self._tiles[op.result] = TileFacts(spec, valid, self.number(op.operand("addr")))

    def _got(self, op: Op) -> None:
        """A tile of several: its place is known when its number is."""
        tiles, slot = op.operands[0], self.number(op.operands[1])
        made, owner = tiles.type, tiles.owner
        assert isinstance(made, MultiTileType)
        spec = on_target(made.spec, self.target.left_layout)
        base = self.number(owner.operand("addr")) if isinstance(owner, Op) else None
        at = None if base is None or slot is None else base + slot * made.stride
        self._tiles[op.result] = TileFacts(spec, address=at)

    def _bound(self, op: Op) -> None:
        type_ = op.result.type
        assert isinstance(type_, ShapedType)
        config = op.attrs.get("config")
        text = config.text if isinstance(config, OpaqueAttr) else ""
        spec = on_target(memref_tile(type_, text), self.target.left_layout)
        self._tiles[op.result] = TileFacts(spec)

    def _window(self, op: Op) -> None:
        parent, type_ = self.facts(op.operands[0]), op.result.type
        assert isinstance(parent, TileFacts)
        assert isinstance(type_, TileBufType)
        spec = on_target(type_.spec, self.target.left_layout)
        offsets = [self.number(v) for v in op.group("offsets")]
        rows, cols = [self.number(v) for v in op.group("valid")] or (None, None)
        address = None
        if parent.address is not None and None not in offsets:
            row, col = (n or 0 for n in offsets)
            if 0 <= row < parent.rows and 0 <= col < parent.cols:
                whole = parent.spec.axis_map(parent.rows, parent.cols)
                if 0 not in whole.shape:  # as of a tile smaller than its boxes
                    address = parent.address + whole.offset(row, col) * parent.spec.itemsize
        shape = memory.window(spec, parent.spec)
        self._tiles[op.result] = TileFacts(shape, (rows, cols), address)

    def _forget_valid(self, op: Op) -> None:
        """A run-time change of the valid region: from here on it is not known."""
        value = op.operands[0]
        facts = self._tiles.get(value)
        if facts is not None and facts.spec.has_dynamic_valid:
            self._tiles[value] = replace(facts, valid=(None, None))


_LEARN: dict[Definition | None, Callable[[Known, Op], None]] = {
    **dict.fromkeys(arith.DEFINITIONS, Known._fold),
    memory.MAKE_VIEW: Known._tensor_view,
    memory.DECLARE_VIEW: Known._tensor_view,
    memory.PARTITION: Known._partition,
    memory.ALLOC: Known._allocated,
    memory.GET_TILE: Known._got,
    memory.BIND_TILE: Known._bound,
    memory.POINTER_CAST: Known._bound,
    memory.SUBSET: Known._window,
    memory.SUBVIEW: Known._window,
    memory.SET_VALID: Known._forget_valid,
}


def _merge(shape: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes from the type where it has them, from constants otherwise."""
    if len(shape) != len(sizes):
        return shape
    return tuple(s if s != DYNAMIC else n for s, n in zip(shape, sizes, strict=True))


def inferred_layout(shape: tuple[int, ...], stride: tuple[int, ...]) -> Layout:
    """Column-major when the rows are adjacent and the columns are not, else row-major."""
    if len(stride) >= 2 and stride[-2] == 1 and stride[-1] not in (1, DYNAMIC):
        return Layout.DN
    return Layout.ND


def global_facts(view: View) -> GlobalFacts:
    """The five-dimensional tensor a view is; missing leading dimensions are 1."""
    layout = view.layout or Layout.ND
    shape, stride = in_boxes(view.dtype, view.shape, view.stride, layout)
    missing = 5 - len(shape)
    if missing > 0:
        known = DYNAMIC not in shape and DYNAMIC not in stride and bool(stride)
        whole = max(n * s for n, s in zip(shape, stride, strict=True)) if known else DYNAMIC
        shape, stride = (1,) * missing + shape, (whole,) * missing + stride
    stride = strides_in_use(shape[-5:], stride[-5:])
    return GlobalFacts(GlobalSpec.of(view.dtype, shape[-5:], stride, layout))


# ---- memrefs -----------------------------------------------------------------------------------


def memref_strides(type_: ShapedType) -> tuple[int, ...]:
    """The strides of a memref, DYNAMIC where its layout leaves them open."""
    match = re.search(r"strided<\[([^\]]*)\]", type_.layout)
    if match:
        return tuple(DYNAMIC if "?" in n else int(n) for n in match.group(1).split(","))
    strides: list[int] = []
    step = 1
    for extent in reversed(type_.shape):
        strides.append(step)
        step = DYNAMIC if DYNAMIC in (step, extent) else step * extent
    return tuple(reversed(strides))


_USUAL = {
    "mat": "col_major row_major 512",
    "left": "row_major row_major 512",
    "right": "row_major col_major 512",
    "acc": "col_major row_major 1024",
}


def memref_tile(type_: ShapedType, config: str = "") -> TileSpec:
    """The tile a local memref stands for; `config` is the text of its tile_buf_config."""
    rows, cols = 1, 1
    if type_.shape and DYNAMIC not in type_.shape:
        rows, cols = prod(type_.shape[:-1]), type_.shape[-1]
    element = type_.element.dtype or dtype("i8")
    words: dict[str, str] = dict(re.findall(r"(\w+)\s*=\s*(?:#pto\.\w+<)?(\w+)", config))
    if not words:  # then the memory tells: its tiles have one usual layout
        usual = _USUAL.get(type_.space, "") if rows % 16 == 0 else ""
        words = dict(zip(("blayout", "slayout", "s_fractal_size"), usual.split(), strict=False))
    return TileSpec.of(
        LOCATIONS.get(type_.space, LOCATIONS["vec"]),
        element,
        rows,
        cols,
        BLAYOUTS.get(words.get("blayout", ""), BLayout.RowMajor),
        None,
        None,
        SLAYOUTS.get(words.get("slayout", ""), SLayout.NoneBox),
        int(words.get("s_fractal_size", "512")),
        PADS.get(words.get("pad", ""), 0),
        COMPACTS.get(words.get("compact", ""), CompactMode.Null),
    )
