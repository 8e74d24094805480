"""Rules of views and tile handles: what must hold between an operation's operands and types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic
from ptokit.base.enums import CompactMode, Layout
from ptokit.base.tensors import ConvSpec
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.ir.attributes import ArrayAttr, Attribute, BoolAttr, EnumAttr, IntAttr
from ptokit.ir.core import Function, Module, Op, Value, complaint
from ptokit.ir.dialects import Definition, asynchronous, fifo, memory, scf
from ptokit.ir.dialects.asynchronous import config_of, group_of, sync_id
from ptokit.ir.entries import is_marked
from ptokit.ir.fifos import entry_of, is_slot
from ptokit.ir.types import (
    LOCATION_NAMES,
    MEMORY_NAMES,
    MOST_SLOTS,
    MultiTileType,
    PtrType,
    ScalarType,
    ShapedType,
    TileBufType,
    ViewType,
    bytes_of,
    on_target,
    same_type,
)
from ptokit.isa.facts import ConvFacts, TileFacts
from ptokit.isa.record import Insn
from ptokit.isa.sessions import OWN_GROUP, scratch_faults, session_faults
from ptokit.isa.targets import Target
from ptokit.isa.verify import joined_advice, recipe
from ptokit.passes.facts import Known, inferred_layout


@dataclass(frozen=True)
class Scene:
    """Where a check takes place."""

    module: Module
    function: Function
    known: Known
    target: Target
    level: int  # 0: none is asked for

    @property
    def is_planned(self) -> bool:
        """Whether the level leaves all addresses to the tool."""
        return self.level in (1, 2)


Check = Callable[[Op, Scene], Iterator[Diagnostic]]


# ---- tiles -------------------------------------------------------------------------------------


def tile_type(op: Op, spec: TileSpec | ConvSpec, scene: Scene) -> Iterator[Diagnostic]:
    """The static rules of a tile type, on the target's reading of it."""
    read = on_target(spec, scene.target.left_layout) if isinstance(spec, TileSpec) else spec
    for violation in read.violations():
        from ptokit.isa.remedies import size_remedy  # for what is refused

        got = dict(violation.got)
        nearest = size_remedy(read, violation) if isinstance(read, TileSpec) else ""
        fix = joined_advice(recipe(violation.code), nearest)
        yield complaint(op, violation.code, violation.rule, got, fix)


def check_alloc(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`alloc_tile`: type, valid sizes, address."""
    type_ = op.result.type
    if isinstance(type_, TileBufType):
        yield from _check_made(op, type_.spec, scene)


def _check_made(op: Op, spec: TileSpec, scene: Scene) -> Iterator[Diagnostic]:
    yield from tile_type(op, spec, scene)
    for label, key, static in (
        ("valid_row", "v_row", spec.valid_row),
        ("valid_col", "v_col", spec.valid_col),
    ):
        given = op.operand(label) is not None
        if given != (static == DYNAMIC):
            want = "needs" if static == DYNAMIC else "takes no"
            yield complaint(
                op,
                "valid-operand",
                f"a tile with {key}={'?' if static == DYNAMIC else static} {want} {label}",
                fix=f"write {label} = %value exactly when the type says {key}=?",
            )
    yield from _valid_in_capacity(op, spec, scene, op.operand("valid_row"), op.operand("valid_col"))
    yield from check_address(op, TileFacts(on_target(spec, scene.target.left_layout)), scene)


_PLANNED = "pto.multi_buffer_addrs"


def check_alloc_tiles(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`alloc_multi_tile`: as many tiles as there may be, each a legal one."""
    type_ = op.result.type
    assert isinstance(type_, MultiTileType)
    if not 2 <= type_.count <= MOST_SLOTS:
        yield complaint(
            op, "tile-count", f"count must be >= 2 and <= {MOST_SLOTS}", {"count": type_.count}
        )
    if type_.spec.compact is CompactMode.RowPlusOne:
        yield complaint(op, "tile-slot-type", "a slot has no row_plus_one compaction")
    if _PLANNED in op.attrs:
        text = f"the attribute {_PLANNED} is reserved for what a planner writes"
        yield complaint(op, "reserved-attribute", text, fix="leave it out")
    yield from _check_made(op, type_.spec, scene)
    address, space = scene.known.number(op.operand("addr")), scene.target.spaces[type_.spec.loc]
    if address is not None and address + bytes_of(type_) > space.capacity:
        end = f"0x{address + bytes_of(type_):x}"
        yield complaint(
            op,
            "tile-slots-end",
            "the last tile ends inside its memory space",
            {"end": end, "capacity": f"0x{space.capacity:x}"},
        )


def check_get_tile(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`multi_tile_get`: a slot that there is, of the type of the slots."""
    tiles, made = op.operands[0].type, op.result.type
    assert isinstance(tiles, MultiTileType)
    slot = scene.known.number(op.operands[1])
    if slot is not None and not 0 <= slot < tiles.count:
        yield complaint(
            op, "tile-slot", "the index is out of range", {"index": slot, "count": tiles.count}
        )
    if not same_type(made, TileBufType(tiles.spec)):
        yield complaint(
            op,
            "tile-slot-type",
            "the result has the type of a slot",
            {"result": made, "slot": TileBufType(tiles.spec)},
        )


def _valid_in_capacity(
    op: Op, spec: TileSpec, scene: Scene, rows: Value | None, cols: Value | None
) -> Iterator[Diagnostic]:
    for what, value, most in (("rows", rows, spec.rows), ("columns", cols, spec.cols)):
        number = scene.known.number(value)
        if number is not None and not 0 <= number <= most:
            yield complaint(
                op,
                "valid-capacity",
                f"valid {what} lie between 0 and the capacity of the tile",
                {f"valid {what}": number, "capacity": most},
            )


def check_address(op: Op, facts: TileFacts | ConvFacts, scene: Scene) -> Iterator[Diagnostic]:
    """A known address has the alignment of its memory; what is valid of the tile lies in it."""
    given = op.operand("addr")
    if scene.level == 3 and given is None:
        yield complaint(
            op, "level3-addr", "Level 3 requires 'addr' operand", fix="write addr = %address"
        )
    elif scene.is_planned and given is not None:
        yield complaint(
            op,
            "level-addr",
            f"Level {scene.level} takes no addr: tiles are placed for the program",
            fix="leave addr out, or ask for --pto-level=level3",
        )
    address = scene.known.number(given)
    if address is None:
        return
    space, end = scene.target.spaces[facts.spec.loc], address + _reach(facts.spec)
    values = {"address": hex(address), "end": hex(end), "capacity": hex(space.capacity)}
    if not space.capacity:
        yield complaint(
            op, "SA-0351", "the target has this memory space", values, recipe("SA-0351")
        )
    elif address < 0 or end > space.capacity:
        fix = "bind the tile to a lower address, or make it smaller"
        yield complaint(op, "memory-bounds", f"the tile lies inside {space.memory}", values, fix)
    elif address % space.alignment:
        values |= {"alignment": str(space.alignment)}
        text = "the address has the alignment of the memory space"
        yield complaint(op, "SA-0354", text, values, recipe("SA-0354"))


def _reach(spec: TileSpec | ConvSpec) -> int:
    """Bytes from the start of a tile to the end of what is valid in it, as far as that is known."""
    if isinstance(spec, ConvSpec):
        return spec.nbytes
    rows = spec.rows if spec.valid_row == DYNAMIC else spec.valid_row
    cols = spec.cols if spec.valid_col == DYNAMIC else spec.valid_col
    elements = spec.axis_map(rows, cols).covering(rows, cols).span
    return -(-elements // 2) if spec.dtype.is_packed else elements * spec.itemsize


def check_bound(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`tassign`: a level that leaves addresses to the program, and an address that may be one."""
    tile = op.operands[0].type
    if op.operand("addr") is None or not isinstance(tile, TileBufType):
        return
    if scene.is_planned:
        yield complaint(
            op,
            "level-addr",
            f"Level {scene.level} places the tiles itself and binds none while it runs",
            fix="give the tile no address, or ask for --pto-level=level3",
        )
    unplanned = replace(scene, level=0)
    yield from check_address(
        op, TileFacts(on_target(tile.spec, scene.target.left_layout)), unplanned
    )


def check_reserved(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`reserve_buffer`: who chooses its address is who chooses those of the tiles."""
    is_auto, has_base = op.attrs.get("autoAlloc") == BoolAttr(True), "base" in op.attrs
    wrong = ""
    if scene.level == 3 and (is_auto or not has_base):
        wrong = "Level 3 requires 'auto = false' and a base"
    elif scene.is_planned and not is_auto:
        wrong = f"an explicit base (auto = false) is not supported at Level {scene.level}"
    elif scene.is_planned and has_base:
        wrong = f"unexpected 'base': Level {scene.level} places what is reserved with auto = true"
    if wrong:
        fix = "auto = false, base = ..." if scene.level == 3 else "auto = true, and no base"
        yield complaint(op, "level-reserved", wrong, fix=f"write {fix}")


def check_loop(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`for`: a constant step leads to the end."""
    step = scene.known.number(op.operand("step"))
    if step is not None and step <= 0:
        yield complaint(op, "loop-step", "a constant step operand must be positive", {"step": step})


def check_declared(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """A tile that gets its storage later."""
    type_ = op.result.type
    if isinstance(type_, TileBufType):
        yield from tile_type(op, type_.spec, scene)


def check_valid_shape(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`set_validshape`: of a local tile; a size that its type fixes stays what it is."""
    tile, rows, cols = op.operands
    if not isinstance(tile.type, TileBufType):
        return
    spec = tile.type.spec
    fixed = (spec.valid_row, spec.valid_col)
    given = (scene.known.number(rows), scene.known.number(cols))
    if any(new != static != DYNAMIC for static, new in zip(fixed, given, strict=True)):
        yield complaint(
            op,
            "static-valid",
            "the tile declares the valid sizes dynamic that change",
            {"v_row": _shown(spec.valid_row), "v_col": _shown(spec.valid_col)},
            "write v_row=?, v_col=? in its type",
        )
    if tile in scene.function.params:
        yield complaint(op, "local-tile", "the tile is made in this function, not a parameter")
    yield from _valid_in_capacity(op, spec, scene, rows, cols)


def _shown(size: int) -> str:
    return "?" if size == DYNAMIC else str(size)


def check_window(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`subview` and `subset`: a part of a tile; of a boxed one it is cut at box borders."""
    parent, type_ = op.operands[0].type, op.result.type
    if not isinstance(parent, TileBufType) or not isinstance(type_, TileBufType):
        return
    if op.operands[0] in scene.function.params and is_marked(scene.function):
        text = "nobody says where the tile lies that a kernel is given: it has no windows"
        yield complaint(op, "window-tile", text, fix="make the tile in the kernel")
    spec = on_target(parent.spec, scene.target.left_layout)
    sizes = _numbers(op.attrs["sizes"])
    offsets = [scene.known.number(v) for v in op.group("offsets")]
    counts = (len(sizes), len(offsets), len(op.group("valid")))
    if counts not in ((2, 2, 0), (2, 2, 2)) or min(sizes) <= 0:
        yield complaint(op, "operand-count", "a window has two offsets and two positive sizes")
        return
    axes = zip(offsets, sizes, (spec.rows, spec.cols), spec.inner, strict=True)
    for axis, (offset, size, extent, box) in enumerate(axes):
        values = {"axis": axis, "offset": "?" if offset is None else offset, "size": size}
        if (offset is not None and offset < 0) or (offset or 0) + size > extent:
            text = "the window lies inside the tile"
            yield complaint(op, "window-bounds", text, values | {"extent": extent})
        if size % box or (offset or 0) % box:
            text = "offsets and sizes of a window in a boxed tile are multiples of its box"
            yield complaint(op, "window-box", text, values | {"box": box})
    shape = {"rows": sizes[0], "cols": sizes[1]}
    made = type_.spec
    if made != parent.spec.but(**shape, valid_row=made.valid_row, valid_col=made.valid_col):
        yield complaint(
            op,
            "window-type",
            "the type of a window is its tile's, in the shape of its sizes",
            {"tile": parent, "window": type_, "sizes": sizes},
            "leave the result type out",
        )
    elif memory.SUBVIEW.matches(op):
        yield from _stated_valid(op, made, sizes, scene)


def _stated_valid(op: Op, made: TileSpec, sizes: list[int], scene: Scene) -> Iterator[Diagnostic]:
    """The valid sizes of a window and those of its type say the same."""
    given = op.group("valid")
    declared = (made.valid_row, made.valid_col)
    if not given and DYNAMIC in declared:
        text = "a window with valid sizes that are not in its type is told them"
        yield complaint(op, "window-valid", text, fix="write valid [%rows, %cols]")
    for operand, size, fixed in zip(given, sizes, declared, strict=False):
        value = scene.known.number(operand)
        if value is not None and not 0 <= value <= size:
            text = "the valid sizes of a window lie between 0 and its sizes"
            yield complaint(op, "window-valid", text, {"valid": value, "size": size})
        elif fixed not in (DYNAMIC, value):
            text = "the valid sizes in the type of a window are those it is given"
            values = {"type": fixed, "valid": "?" if value is None else value}
            yield complaint(op, "window-valid", text, values, "leave the result type out")


def _numbers(attr: Attribute) -> list[int]:
    return (
        [i.value for i in attr.items if isinstance(i, IntAttr)]
        if (isinstance(attr, ArrayAttr))
        else []
    )


def check_bitcast(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`bitcast`: the same bytes under another element type."""
    source, result = op.operands[0].type, op.result.type
    if not isinstance(source, TileBufType) or not isinstance(result, TileBufType):
        return
    a, b = source.spec, result.spec
    if a.loc != b.loc or a.nbytes < b.nbytes:
        yield complaint(
            op,
            "same-storage",
            "both tiles lie in one memory, and the result in the bytes of its source",
            {"source": a, "result": b, "bytes": f"{a.nbytes} and {b.nbytes}"},
        )
    yield from tile_type(op, b, scene)


# ---- views -------------------------------------------------------------------------------------


def check_tensor_view(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`make_tensor_view` and `declare_view`: counts, element type, sizes and layout agree."""
    type_ = op.result.type
    assert isinstance(type_, ViewType | ShapedType)
    shape, strides = op.group("shape"), op.group("strides")
    if not len(shape) == len(strides) == len(type_.shape):
        yield complaint(
            op,
            "view-rank",
            "as many sizes and strides as the view has dimensions",
            {"shape": len(shape), "strides": len(strides), "rank": len(type_.shape)},
            _rank_advice(type_, len(shape)),
        )
        return
    at = op.operand("ptr")  # a declared view has none yet
    pointer = None if at is None else at.type
    if isinstance(pointer, PtrType | ShapedType) and pointer.element != type_.element:
        yield complaint(
            op,
            "view-element",
            "pointer and view have one element type",
            {"pointer": pointer.element, "view": type_.element},
        )
    if len(type_.shape) > 5:
        yield complaint(op, "tensor-rank", "global tensors have five dimensions")
    numbers = [scene.known.number(value) or 0 for value in (*shape, *strides)]
    if min(numbers, default=0) < 0:
        yield complaint(
            op,
            "view-size",
            "the sizes and strides of a view are not negative",
            {"shape": numbers[: len(shape)], "strides": numbers[len(shape) :]},
            "a view goes forwards through memory: begin at its first element",
        )
    yield from _static_sizes(op, type_.shape, shape, scene)
    yield from _layout(op, scene)


def _static_sizes(
    op: Op, static: tuple[int, ...], given: list[Value], scene: Scene
) -> Iterator[Diagnostic]:
    for axis, (size, value) in enumerate(zip(static, given, strict=False)):
        number = scene.known.number(value)
        if number is not None and size not in (DYNAMIC, number):
            yield complaint(
                op,
                "static-size",
                "a size in the type equals the operand it stands for",
                {"axis": axis, "type": size, "operand": number},
            )


def _layout(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    given = op.attrs.get("layout")
    view = scene.known.view(op.result)
    if not isinstance(given, EnumAttr) or given.value not in ("nd", "dn"):
        return
    if len(view.shape) < 2 or 1 in view.shape[-2:] or DYNAMIC in view.stride[-2:]:
        return  # either reading is right
    inferred = inferred_layout(view.shape, view.stride)
    if Layout[given.value.upper()] != inferred and 1 in view.stride[-2:]:
        yield complaint(
            op,
            "view-layout",
            "the layout agrees with the strides",
            {"layout": given.value, "strides": list(view.stride)},
            f"write {inferred.name.lower()}, or swap the strides",
        )


def check_partition(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`partition_view`: counts and sizes agree, and the part lies inside the view."""
    source, result = op.operands[0].type, op.result.type
    if not isinstance(source, ViewType | ShapedType) or not isinstance(
        result, ViewType | ShapedType
    ):
        return
    offsets, sizes = op.group("offsets"), op.group("sizes")
    rank = len(source.shape)
    # The result may have more or fewer leading dimensions of size 1 than the view.
    extra = result.shape[: max(0, len(result.shape) - rank)]
    lost = [scene.known.number(v) for v in sizes[: max(0, rank - len(result.shape))]]
    if not len(offsets) == len(sizes) == rank or {*extra, *lost} - {1, None}:
        yield complaint(
            op,
            "view-rank",
            "as many offsets and sizes as the view has dimensions",
            {"offsets": len(offsets), "sizes": len(sizes), "rank": rank}
            | {"result rank": len(result.shape)},
            _rank_advice(source, len(sizes)),
        )
        return
    if source.element != result.element:
        yield complaint(
            op,
            "view-element",
            "view and partition have one element type",
            {"view": source.element, "partition": result.element},
        )
    if len(result.shape) == rank:  # else the type is not held against the operands, which decide
        yield from _static_sizes(op, result.shape, sizes, scene)
    for axis, extent in enumerate(source.shape):
        start, size = scene.known.number(offsets[axis]), scene.known.number(sizes[axis])
        end = None if start is None or size is None else start + size
        if (start or 0) < 0 or (end is not None and extent != DYNAMIC and end > extent):
            yield complaint(
                op,
                "slice-range",
                "a part lies inside its view",
                {"dimension": axis, "offset": start, "size": size, "view": extent},
                "0 <= offset, and offset + size at most the size of the view",
            )


def _rank_advice(view: ViewType | ShapedType, dimensions: int) -> str:
    """Older files wrote the number of dimensions where the type lists them."""
    if view.shape != (dimensions,):
        return ""
    wanted = f"<{'?x' * dimensions}{view.element}>"
    return f"{view} is obsolete for a view of {dimensions} dimensions: write {wanted}"


def check_scalar_access(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`load_scalar`, `store_scalar`: the value has the pointer's element type."""
    pointer = op.operand("ptr")
    value = op.bound("value") or op.result
    assert pointer is not None
    if isinstance(pointer.type, PtrType | ShapedType) and pointer.type.element != value.type:
        yield complaint(
            op,
            "element-type",
            "the value has the element type of the pointer",
            {"value": value.type, "element": pointer.type.element},
        )


def check_made_pointer(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`inttoptr`: nobody knows which memory it points to, so only single elements go there."""
    made = op.result.type
    if isinstance(made, PtrType) and made.element.dtype is None:
        text = "a pointer points to elements that memory holds"
        yield complaint(op, "element-type", text, {"element": made.element})
    for user in scene.function.walk():
        if op.result in user.operands and not (user.insn and user.insn.accesses_element):
            yield complaint(
                user,
                "made-pointer",
                "the result of pto.inttoptr may only be used as the pointer operand of "
                "pto.load_scalar and pto.store_scalar",
                fix="make the view from a pointer that the kernel was given",
            )


def check_pointer(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """The address of a tile or view is one in its memory, of its elements."""
    source, made = op.operands[0].type, op.result.type
    assert isinstance(made, PtrType)
    if isinstance(source, TileBufType):
        kind = LOCATION_NAMES[source.spec.loc]
        space = next((word for word, loc in MEMORY_NAMES.items() if loc == kind), kind)
        wanted = PtrType(ScalarType(source.spec.dtype.mlir), space)
    elif isinstance(source, ViewType | ShapedType):
        wanted = PtrType(source.element)
    else:
        return
    if made.space != wanted.space or made.element.dtype is not wanted.element.dtype:
        text = "the address of a tile or view points into its memory, to its elements"
        yield complaint(op, "type-mismatch", text, {"result": made}, f"write {wanted}")


def check_session(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`build_async_session`: scratch, workspace and configuration of a session."""
    scratch, workspace = (v.type for v in op.operands)
    if isinstance(scratch, TileBufType):
        group = group_of(op)
        known = None if group == OWN_GROUP else group
        yield from (
            complaint(op, broken.code, broken.rule, dict(broken.got))
            for broken in (
                *scratch_faults(scratch.spec),
                *session_faults(scratch.spec, sync_id(op), config_of(op), known),
            )
        )
    yield from _bytes(op, workspace)


def check_context(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """`make_prefetch_async_context`: its workspace."""
    yield from _bytes(op, op.operands[0].type)


def _bytes(op: Op, workspace: Any) -> Iterator[Diagnostic]:
    if isinstance(workspace, PtrType | ShapedType) and workspace.element.name[-2:] != "i8":
        rule = "the workspace of a session has elements of 8 bits"
        yield complaint(op, "workspace", rule, {"workspace": workspace})


def check_entry(op: Op, scene: Scene) -> Iterator[Diagnostic]:
    """What goes through a FIFO: a tile, or a view that it may point at its slots."""
    entry = entry_of(op)
    if entry is not None and isinstance(entry.type, ViewType) and not is_slot(entry):
        yield complaint(
            op,
            "pipe-entry",
            "an entry is a tile, or a view without memory of its own",
            {"entry": entry.type},
            "make the view with pto.declare_view",
        )


def check_of_instruction(insn: Insn) -> Check | None:
    """What an instruction of a kind is checked for, beside its rules."""
    if insn.moves_entries:
        return check_entry
    return check_scalar_access if insn.accesses_element else None


CHECKS: dict[Definition, Check] = {
    fifo.RESERVE: check_reserved,
    scf.FOR: check_loop,
    memory.ALLOC: check_alloc,
    memory.ALLOC_TILES: check_alloc_tiles,
    memory.GET_TILE: check_get_tile,
    memory.DECLARE_TILE: check_declared,
    memory.SET_VALID: check_valid_shape,
    memory.SUBSET: check_window,
    memory.SUBVIEW: check_window,
    memory.BITCAST: check_bitcast,
    memory.MAKE_VIEW: check_tensor_view,
    memory.DECLARE_VIEW: check_tensor_view,
    memory.PARTITION: check_partition,
    memory.INT_TO_PTR: check_made_pointer,
    memory.TILE_ADDR: check_pointer,
    memory.VIEW_ADDR: check_pointer,
    asynchronous.BUILD: check_session,
    asynchronous.MAKE_CONTEXT: check_context,
}
