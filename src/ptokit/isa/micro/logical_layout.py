"""Where a compiler has settled how vectors lie in registers: layouts change, registers meet them.

To change a layout changes nothing of what a vector holds. `unpack` and `pack` go between vectors
and the registers of the device; the places of a register that no lane has are undefined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.isa.micro.footprints import ABSENT, REGISTER
from ptokit.isa.micro.layouts import Layout
from ptokit.isa.micro.logical import ONE_TYPE, logical
from ptokit.isa.micro.spec import Flow, Law, Vector


def _same(a: Array) -> Array:
    return a


def _lies(kind: str, layout: str, lanes: int = 64) -> str:
    return f"!pto.vmi.{kind.format(lanes)}, #pto.vmi.layout<{layout}>>"


_MASK, _VECTOR = "mask<{}xb32", "vreg<{}xf32"
_BOTH = Law("a and dst have layouts", lambda a, dst: bool(a.layout and dst.layout))
_ALIKE = Law(
    "a and dst have layouts, or neither has", lambda a, dst: bool(a.layout) == bool(dst.layout)
)
_WIDTHS = Law(
    "a and dst are masks of lanes of some width",
    lambda a, dst: "pred" not in (a.spelled, dst.spelled),
)
logical(
    "a:V -> dst:V",
    name="vmi.ensure_layout",
    example=lambda T, U: {
        "a": _lies(_VECTOR, "contiguous"),
        "dst": _lies(_VECTOR, "deinterleaved = 2"),
    },
    laws=[_BOTH],
    flow=Flow.BYTES,
    doc="Change the layout of a vector, and nothing of what it holds.",
)(_same)
logical(
    "a:N -> dst:N",
    name="vmi.ensure_mask_layout",
    example=lambda T, U: {
        "a": _lies(_MASK, "contiguous"),
        "dst": _lies(_MASK, "deinterleaved = 2"),
    },
    laws=[ONE_TYPE, _BOTH, Law("both have as many lanes", lambda a, dst: a.lanes == dst.lanes)],
    doc="Change the layout of a mask, and nothing of what it holds.",
)(_same)
logical(
    "a:N -> dst:N",
    name="vmi.ensure_mask_granularity",
    example=lambda T, U: {"a": "!pto.vmi.mask<64xb32>", "dst": "!pto.vmi.mask<64xb16>"},
    laws=[_WIDTHS, _ALIKE, Law("both have as many lanes", lambda a, dst: a.lanes == dst.lanes)],
    doc="Make a mask that of lanes of another width; it stays active where it was.",
)(_same)


def _lane_bytes(vector: Vector) -> int:
    """The bytes of a lane, of a mask those that a bit stands for in its registers."""
    if vector.kind is not None:
        return vector.kind.itemsize
    return int(vector.spelled[1:]) // 8 * Layout.parse(vector.layout).lane_stride


def places(vector: Vector) -> tuple[Array, Array, int]:
    """The register of each lane, its number there, and the bytes of a lane there."""
    layout, size = Layout.parse(vector.layout), _lane_bytes(vector)
    if vector.kind is None:
        layout = layout.of_masks
    return *layout.places(vector.lanes, size), size


def _fits(a: Vector, parts: Sequence[Vector]) -> bool:
    if not a.layout or a.spelled == "pred" or _lane_bytes(a) not in (1, 2, 4):
        return False
    registers, _, size = places(a)
    names = {part.spelled for part in parts}
    return len(parts) == int(registers.max()) + 1 and names == (
        {a.spelled} if a.kind is not None else {f"b{8 * size}"}
    )


def _three(T: DType, U: DType) -> dict[str, str]:
    return {"a": _lies(_VECTOR, "contiguous", 192)}


_PARTS = Law("there are as many registers of its type as the layout of the vector takes", _fits)


def bytes_of(vector: Vector) -> Array:
    """The byte of the registers, one after the other, that each byte or bit of a vector is."""
    registers, numbers, size = places(vector)
    starts = registers * REGISTER + numbers * size
    if vector.kind is None:
        return starts
    return (starts[:, None] + np.arange(size)).reshape(-1)


@logical("a:E -> parts*:P", name="vmi.unpack", laws=[_PARTS], is_generic=True, example=_three)
def unpack(unit: Any, a: Any, vector: Vector) -> tuple[Any, ...]:
    """Look at the registers over which a vector or a mask is spread."""
    table = bytes_of(vector)
    count = int(places(vector)[0].max()) + 1
    back = np.full(count * REGISTER, ABSENT, np.intp)
    back[table] = np.arange(table.size)
    return tuple(unit.chosen([a], part) for part in back.reshape(count, -1))


@logical("parts*:P -> a:E", name="vmi.pack", laws=[_PARTS], is_generic=True, example=_three)
def pack(unit: Any, parts: Sequence[Any], vector: Vector) -> Any:
    """Look at registers as the vector or mask that is spread over them."""
    return unit.chosen(parts, bytes_of(vector))
