"""Pointers, views of global memory and tile handles."""

from __future__ import annotations

from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.ir.attributes import ArrayAttr, IntAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects.arith import CONSTANT
from ptokit.ir.dialects.definition import define, definitions_in
from ptokit.ir.format import Draft
from ptokit.ir.reader import Head, Reader
from ptokit.ir.types import ElidedType, TileBufType, Type


def _subset_type(reader: Reader, head: Head, draft: Draft) -> Type:
    """Shape as in `sizes`; valid sizes follow from the parent's where the offsets are constant."""
    parent = draft.operands[0].type
    sizes = draft.attrs["sizes"]
    if not isinstance(parent, TileBufType) or not isinstance(sizes, ArrayAttr):
        return ElidedType("<unknown>")
    extents = [i.value for i in sizes.items if isinstance(i, IntAttr)]
    if len(extents) != 2 or min(extents) <= 0 or len(draft.operands) != 3:
        raise reader.fail(
            "a subset has two offsets and two positive sizes", "operand-count", head.location
        )
    spec = parent.spec
    offsets = [constant(v) for v in draft.operands[1:]]
    valid = [
        DYNAMIC
        if parent_valid == DYNAMIC or offset is None
        else max(0, min(size, parent_valid - offset))
        for parent_valid, offset, size in zip(
            (spec.valid_row, spec.valid_col), offsets, extents, strict=True
        )
    ]
    return TileBufType(
        TileSpec.of(
            *(spec.loc, spec.dtype, extents[0], extents[1], spec.blayout, valid[0], valid[1]),
            *(spec.slayout, spec.fractal, spec.pad, spec.compact),
        )
    )


def window(spec: TileSpec, parent: TileSpec) -> TileSpec:
    """The tile that a window is: it steps through memory as its parent does."""
    if parent.is_boxed:
        return spec  # cut at whole lines of boxes, which lie one behind the other
    return spec.but(cols=parent.cols) if parent.is_row_major else spec.but(rows=parent.rows)


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
    "%source, offsets = [%offsets...], sizes = [%sizes...] {} : T(source) -> T(result)",
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
