"""Pointers, views of global memory and tile handles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.ir.attributes import ArrayAttr, IntAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects.arith import CONSTANT
from ptokit.ir.dialects.definition import define, definitions_in
from ptokit.ir.format import Draft
from ptokit.ir.reader import Head, Reader
from ptokit.ir.types import ElidedType, TileBufType, Type, ViewType


def _partition_type(reader: Reader, head: Head, draft: Draft) -> Type:
    """A part of a view: as large as the sizes that are constants, open where they are not."""
    source = draft.operands[0].type
    if not isinstance(source, ViewType):
        return ElidedType("<unknown>")
    operands = zip(draft.operands, draft.labels, strict=True)
    sizes = [constant(v) for v, label in operands if label == "sizes"]
    shape = tuple(DYNAMIC if size is None else size for size in sizes)
    return ViewType("partition_tensor_view", shape, source.element)


def _subset_type(reader: Reader, head: Head, draft: Draft) -> Type:
    """A window whose valid sizes are those of its parent, as far as it covers them."""

    def covered(parent: TileSpec, sizes: list[int]) -> Iterator[int]:
        offsets = (constant(v) for v in draft.operands[1:])
        whole = (parent.valid_row, parent.valid_col)
        for size, valid, offset in zip(sizes, whole, offsets, strict=True):
            if valid == DYNAMIC or offset is None:
                yield DYNAMIC
            else:
                yield max(0, min(size, valid - offset))

    return _window_type(reader, head, draft, covered)


def _subview_type(reader: Reader, head: Head, draft: Draft) -> Type:
    """A window whose valid sizes are given, or all of it."""
    given = [constant(v) for v, n in zip(draft.operands, draft.labels, strict=True) if n == "valid"]
    parent = draft.operands[0].type
    units = parent.elements if isinstance(parent, TileBufType) else (1, 1)

    def stated(parent: TileSpec, sizes: list[int]) -> Iterator[int]:
        if not given:
            yield from sizes
        for size, valid, unit in zip(sizes, given, units, strict=False):
            yield DYNAMIC if valid is None else min(size, valid * unit)

    return _window_type(reader, head, draft, stated)


def _window_type(
    reader: Reader,
    head: Head,
    draft: Draft,
    valid_sizes: Callable[[TileSpec, list[int]], Iterator[int]],
) -> Type:
    """The parent's type in the shape of `sizes`."""
    parent = draft.operands[0].type
    sizes = draft.attrs["sizes"]
    if not isinstance(parent, TileBufType) or not isinstance(sizes, ArrayAttr):
        return ElidedType("<unknown>")
    extents = [i.value for i in sizes.items if isinstance(i, IntAttr)]
    counts = [draft.labels.count(label) for label in ("offsets", "valid")]
    if len(extents) != 2 or min(extents) <= 0 or counts not in ([2, 0], [2, 2]):
        raise reader.fail(
            "a window has two offsets and two positive sizes", "operand-count", head.location
        )
    extents = [size * unit for size, unit in zip(extents, parent.elements, strict=True)]
    rows, cols = valid_sizes(parent.spec, extents)
    shape = {"rows": extents[0], "cols": extents[1], "valid_row": rows, "valid_col": cols}
    return replace(parent, spec=parent.spec.but(**shape))


def window(spec: TileSpec, parent: TileSpec) -> TileSpec:
    """The tile that a window is: it steps through memory as its parent does.

    Where that is not how a tile of its own shape would, it has the shape of the parent, of which
    its valid region is a part.
    """
    pitches = (each.cols if each.is_row_major else each.rows for each in (spec, parent))
    if len(set(pitches)) == 1:
        return spec
    return parent.but(valid_row=spec.valid_row, valid_col=spec.valid_col)


def constant(value: Value) -> int | None:
    """The integer a value is known to be, when it comes straight from a constant."""
    owner = value.owner
    if isinstance(owner, Op) and CONSTANT.matches(owner):
        attr = owner.attrs["value"]
        return attr.value if isinstance(attr, IntAttr) else None
    return None


# ---- pointers
ADDPTR = define(
    "pto.addptr",
    "ptr:P offset:index -> result:P",
    "%ptr, %offset {} : T(ptr) -> T(result)",
    pure=True,
    renames="ptr",
)
PTR_TO_INT = define(
    "pto.ptrtoint",
    "ptr:gm -> result:i64",
    "%ptr {} : T(ptr) -> T(result)",
    pure=True,
    renames="ptr",  # who makes a pointer of the number means the same memory
)
INT_TO_PTR = define(
    "pto.inttoptr",
    "address:i64 -> result:gm",
    "%address {} : T(address) -> T(result)",
    pure=True,
    renames="address",
)
# ---- views
MAKE_VIEW = define(
    "pto.make_tensor_view",
    "ptr:gm shape*:index strides*:index -> result:view",
    "%ptr, shape = [%shape...],? strides = [%strides...] {} : T(result)",
    "layout:layout",
    pure=True,
    renames="ptr",
)
PARTITION = define(
    "pto.partition_view",
    "source:view offsets*:index sizes*:index -> result:part",
    "%source, offsets = [%offsets...], sizes = [%sizes...] {} : T(source) [?-> T(result)?]",
    infer=_partition_type,
    pure=True,
    renames="source",
)
DECLARE_VIEW = define(
    "pto.declare_view",
    "shape*:index strides*:index -> result:part",
    "shape = [%shape...], strides = [%strides...] {} : T(result)",
    "layout:layout",
)
VIEW_DIM = define(
    "pto.get_tensor_view_dim",
    "tensor_view:view dim_index:index -> result:index",
    "%tensor_view, %dim_index : T(tensor_view) -> T(result) {}",
    pure=True,
)
VIEW_STRIDE = define(
    "pto.get_tensor_view_stride",
    "tensor_view:view dim_index:index -> result:index",
    "%tensor_view, %dim_index : T(tensor_view) -> T(result) {}",
    pure=True,
)
VIEW_ADDR = define(
    "pto.tensor_view_addr",
    "source:view -> result:ptr",
    "%source {} : T(source) -> T(result)",
    pure=True,
    renames="source",
)
# ---- tile handles
ALLOC = define(
    "pto.alloc_tile",
    "addr?:i64 valid_row?:index valid_col?:index -> result:buffer",
    "[?addr = %addr?] [?valid_row = %valid_row?] [?valid_col = %valid_col?] {} : T(result)",
    allocates=True,
)
ALLOC_TILES = define(
    "pto.alloc_multi_tile",
    "addr?:i64 valid_row?:index valid_col?:index -> result:tiles",
    "[?addr = %addr?] [?valid_row = %valid_row?] [?valid_col = %valid_col?] {} : T(result)",
    allocates=True,
)
GET_TILE = define(
    "pto.multi_tile_get",
    "source:tiles slot:index -> result:tile",
    "%source[%slot] {} : T(source) -> T(result)",
    pure=True,
    renames="source",
)
DECLARE_TILE = define("pto.declare_tile", "-> tile:data", "{} -> T(tile)")
DECLARE_MEMREF = define("pto.declare_tile_memref", "-> result:memref", "{} -> T(result)")
SUBSET = define(
    "pto.subset",
    "source:tile offsets*:index -> result:tile",
    "%source[%offsets...] sizes @sizes {} : T(source)",
    infer=_subset_type,
    pure=True,
    renames="source",
)
SUBVIEW = define(
    "pto.subview",
    "source:tile offsets*:index valid*2:index -> result:tile",
    "%source[%offsets...] sizes @sizes [?valid [%valid...]?] {} : T(source) [?-> T(result)?]",
    infer=_subview_type,
    pure=True,
    renames="source",
)
SET_VALID = define(
    "pto.set_validshape",
    "source:tile valid_row:index valid_col:index",
    "%source, %valid_row, %valid_col {} : T(source)",
)
GET_VALID = define(
    "pto.get_validshape",
    "source:tile -> valid_row:index valid_col:index",
    "%source {} : T(source)",
)
VALID_ROWS = define(
    "pto.tile_valid_rows", "source:tile -> result:index", "%source {} : T(source) -> T(result)"
)
VALID_COLS = define(
    "pto.tile_valid_cols", "source:tile -> result:index", "%source {} : T(source) -> T(result)"
)
TILE_ADDR = define(  # for micro-instructions: nothing here goes through a pointer into a tile
    "pto.tile_buf_addr",
    "source:tile -> result:ptr",
    "%source {} : T(source) -> T(result)",
    renames="source",
)
BITCAST = define(
    "pto.bitcast",
    "src:tile -> result:tile",
    "%src {} : T(src) -> T(result)",
    pure=True,
    renames="src",
)
BIND_TILE = define(
    "pto.bind_tile",
    "source:memref valid_row?:index valid_col?:index -> result:memref",
    "%source[?, %valid_row, %valid_col?] {} : T(source) -> T(result)",
    renames="source",
)
POINTER_CAST = define(
    "pto.pointer_cast",
    "addrs*:i64 valid_row?:index valid_col?:index -> result:memref",
    "(%addrs...) [?%valid_row, %valid_col?] {} : T(result)",
)


DEFINITIONS = definitions_in(globals())
