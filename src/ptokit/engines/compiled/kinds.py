"""Elements as the compiler knows them: of which of its types they are, in memory and on the way."""

from __future__ import annotations

from ptokit.base import dtypes as dt
from ptokit.base.dtypes import DType
from ptokit.engines.compiled.host import Unsupported
from ptokit.isa.expr import BOOL, F64, Expr, walk

FLOATS = {dt.f32: "float", dt.f16: "half", F64: "double"}


def stored(kind: DType) -> str:
    """The type of an element as it lies in memory."""
    if kind in FLOATS:
        return FLOATS[kind]
    if travels(kind):
        return f"i{kind.bits}"
    if kind.is_integer and not kind.is_packed and kind is not BOOL:
        return f"i{kind.bits}"
    raise Unsupported(f"elements of {kind.name}")


def travels(kind: DType) -> bool:
    """Whether a type is computed as f32."""
    return kind is dt.bf16 or (kind.is_float and kind.bits == 8 and not kind.is_packed)


def widest(expr: Expr, *kinds: DType) -> int:
    """Bytes of the widest element that an expression works with."""
    sizes = [node.kind.itemsize for node in walk(expr) if node.kind is not BOOL]
    return max([*sizes, *(kind.itemsize for kind in kinds), 2 if not sizes else 0])
