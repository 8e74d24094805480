"""Logical vectors: what code generators write, vectors of any number of lanes without a layout.

A lane stays in its place whatever its width becomes, so the body of an operation on registers that
works lane by lane is that of its sister here. Reductions and broadcasts go by groups of lanes, and
transfers by rows a stride apart. A compiler spreads such vectors over registers; what they hold
does not depend on how.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptokit.base.convert import convert, element, pack4, unpack4
from ptokit.base.dtypes import DType, bf16
from ptokit.base.layout import Array
from ptokit.isa.expr import Expr, apply
from ptokit.isa.freedom import unspecified
from ptokit.isa.micro.convert import ROUNDINGS, changed
from ptokit.isa.micro.footprints import ABSENT, BLOCK, Footprint
from ptokit.isa.micro.spec import MICRO, Flow, Masking, Micro, Word, micro

PMODE = Word(
    "pmode", ("zero", "merge"), "zero", "what an inactive lane is: 0, or the first operand"
)
_GROUP = Word("group", (), "0", "in how many groups the lanes are")
_TEXT = "[?, %mask?] {}"


# ---- lane by lane ------------------------------------------------------------------------------


def _define(record: Micro) -> None:
    """The sister of an operation on registers whose lanes do not depend on each other."""
    operands = [slot for slot in record.operands if slot.name != "mask"]
    given = " ".join(f"{slot.name}:{slot.kind}" for slot in operands)
    made = " ".join(f"{slot.name}:{slot.kind}" for slot in record.results)
    before = ", ".join(f"%{slot.name}" for slot in operands)
    types = ", ".join(f"T({slot.name})" for slot in operands)
    behind = ", ".join(f"T({slot.name})" for slot in record.results)
    micro(
        f"{given} mask?:M -> {made}",
        name=f"vmi.{record.name}",
        words=[PMODE],
        masking=Masking.ZERO,
        syntax=f"{before}{_TEXT} : {types}[?, T(mask)?] -> {behind}",
        freedom=record.freedom,
        is_lanewise=record.is_lanewise,
        is_logical=True,
        doc=f"{record.doc.partition(chr(10))[0]} Here of logical vectors, lane by lane.",
    )(record.body)


def _is_plain(record: Micro) -> bool:
    """Whether it makes registers of registers and numbers, each lane by itself."""
    slots = (*record.operands, *record.results)
    return (
        record.masking is Masking.ZERO
        and record.flow is Flow.LANES
        and record.lost is None
        and record.footprint is None
        and not record.words
        and all(slot.kind in ("V", "W", "S", "int") or slot.name == "mask" for slot in slots)
        and not {"T", "U", "mask"} & set(record.parameters)
    )


for _record in [record for record in MICRO.values() if _is_plain(record)]:
    _define(_record)


@micro(
    "a:V b:V mask:M -> dst:M",
    name="vmi.vcmp",
    words=[Word("cmp", ("eq", "ne", "lt", "le", "gt", "ge"))],
    syntax="%a, %b, %mask {} : T(a), T(b), T(mask) -> T(dst)",
    is_lanewise=True,
    is_logical=True,
)
def vcmp(a: Expr, b: Expr, cmp: str) -> Expr:
    """Compare two vectors: a bit is set where the mask is and the comparison holds."""
    return apply(cmp, a, b)


@micro("select:M a:V b:V -> dst:V", name="vmi.vsel", flow=Flow.BYTES, is_logical=True)
def vsel(select: Array, a: Array, b: Array) -> Array:
    """Take the lanes of one vector where the mask is set, those of another elsewhere."""
    return np.where(select, a, b)


# ---- masks -------------------------------------------------------------------------------------


@micro("n:index -> dst:M", name="vmi.create_mask", is_logical=True)
def create_mask(n: int, lanes: int) -> Array:
    """Activate the first lanes, as many as a number says."""
    return np.arange(lanes) < n


@micro(
    "n:index -> dst:M",
    name="vmi.create_group_mask",
    words=[Word("num_groups", (), "0"), Word("group_size", (), "0")],
    is_logical=True,
)
def create_group_mask(n: int, group_size: Any, lanes: int) -> Array:
    """Activate the first lanes of every group, as many as a number says."""
    return np.arange(lanes) % (int(group_size) or lanes) < n


@micro(
    "-> dst:M", name="vmi.pset", words=[Word("pattern", ("PAT_ALL", "PAT_ALLF"))], is_logical=True
)
def pset(pattern: str, lanes: int) -> Array:
    """Activate every lane, or none."""
    return np.full(lanes, pattern == "PAT_ALL")


@micro(
    "-> dst:M",
    name="vmi.constant_mask",
    words=[Word("value")],
    syntax="{} : T(dst)",
    is_logical=True,
)
def constant_mask(value: Sequence[float], lanes: int) -> Array:
    """Activate the lanes that are listed as true."""
    return np.resize(np.array(value, np.bool_), lanes)


# ---- numbers, places, bits ---------------------------------------------------------------------


@micro("a:L -> dst:V", name="vmi.vbrc", words=[_GROUP], flow=Flow.BYTES, is_logical=True)
def vbrc(a: Any, lanes: int, U: DType) -> Array:
    """Make all lanes a number, or the lanes of each group the lane of its number."""
    if np.ndim(a) == 0:
        return np.full(lanes, element(a, U))
    return np.repeat(a, lanes // a.size)


@micro(
    "a:V -> dst:V",
    name="vmi.group_broadcast",
    words=[Word("num_groups", (), "0")],
    flow=Flow.BYTES,
    is_logical=True,
)
def group_broadcast(a: Array, lanes: int) -> Array:
    """Make the lanes of each group the lane of its number."""
    return np.repeat(a, lanes // a.size)


@micro(
    "s:S -> dst:V",
    name="vmi.vci",
    words=[Word("order", ("ASC", "DESC"), "ASC")],
    is_logical=True,
)
def vci(s: Any, order: str, lanes: int, U: DType) -> Array:
    """Count from a number on, upwards or downwards."""
    steps = np.arange(lanes) * (1 if order == "ASC" else -1)
    return (steps + s).astype(U.np)


@micro("a:V -> dst:W", name="vmi.vinterpret_cast", flow=Flow.BYTES, is_logical=True)
def vinterpret_cast(a: Array, U: DType) -> Array:
    """Look at the same bits as lanes of another type."""
    return np.ascontiguousarray(a).view(U.np)


_PAIR: dict[str, Any] = {
    "signature": "a:V b:V mask?:M -> low:V high:V",
    "syntax": "%a, %b[?, %mask?] {} : T(a), T(b)[?, T(mask)?] -> T(low), T(high)",
    "masking": Masking.ZERO,
    "flow": Flow.BYTES,
    "is_logical": True,
}


@micro(name="vmi.vintlv", **_PAIR)
def vintlv(a: Array, b: Array) -> tuple[Array, Array]:
    """Take the lanes of two vectors in turn: the first half of them, and the second."""
    both = np.stack([a, b], axis=1).reshape(2, -1)
    return both[0], both[1]


@micro(name="vmi.vdintlv", **_PAIR)
def vdintlv(a: Array, b: Array) -> tuple[Array, Array]:
    """Divide the lanes of two vectors, one behind the other, into even and odd ones."""
    both = np.concatenate([a, b])
    return both[::2].copy(), both[1::2].copy()


# ---- reductions --------------------------------------------------------------------------------


def _grouped(a: Array, mask: Array | None, lanes: int, neutral: Any) -> Array:
    """A row for each group, with a neutral element in the place of inactive lanes."""
    wide = a.astype(np.float64 if a.dtype.kind not in "iu" else np.int64)
    return (wide if mask is None else np.where(mask, wide, neutral)).reshape(lanes, -1)


_REDUCES: dict[str, Any] = {
    "signature": "a:V mask?:M -> dst:W",
    "syntax": "%a[?, %mask?] {} : T(a)[?, T(mask)?] -> T(dst)",
    "masking": Masking.NEUTRAL,
    "flow": Flow.ALL,
    "is_logical": True,
}
_ORDER = unspecified("the order of sums", "In wide arithmetic here, rounded once.")


@micro(name="vmi.vcadd", words=[_GROUP, Word("reassoc", (), "")], freedom=_ORDER, **_REDUCES)
def vcadd(a: Array, mask: Array | None, lanes: int) -> Array:
    """Add the active lanes of each group; the result has a lane for each."""
    return _grouped(a, mask, lanes, 0).sum(axis=1)


@micro(
    name="vmi.group_reduce_addi",
    words=[Word("num_groups", (), "0"), Word("reassoc", (), "")],
    **_REDUCES,
)
def group_reduce_addi(a: Array, mask: Array | None, lanes: int) -> Array:
    """Add the active integers of each group; the result has a lane for each."""
    return _grouped(a, mask, lanes, 0).sum(axis=1)


def _lowest(kind: DType) -> Any:
    return -np.inf if kind.is_float else np.iinfo(kind.np).min


def _highest(kind: DType) -> Any:
    return np.inf if kind.is_float else np.iinfo(kind.np).max


@micro(name="vmi.vcmax", words=[_GROUP], **_REDUCES)
def vcmax(a: Array, mask: Array | None, lanes: int, T: DType) -> Array:
    """Take the greatest active lane of each group; the result has a lane for each."""
    return _grouped(a, mask, lanes, _lowest(T)).max(axis=1)


@micro(name="vmi.vcmin", words=[_GROUP], **_REDUCES)
def vcmin(a: Array, mask: Array | None, lanes: int, T: DType) -> Array:
    """Take the least active lane of each group; the result has a lane for each."""
    return _grouped(a, mask, lanes, _highest(T)).min(axis=1)


def _histogram(values: Array, mask: Array) -> Array:
    return np.bincount(values[mask], minlength=256)


@micro("a:V values:W mask:M -> dst:V", name="vmi.vdhist", masking=Masking.NEUTRAL, flow=Flow.ALL,
       is_logical=True)  # fmt: skip
def vdhist(a: Array, values: Array, mask: Array) -> Array:
    """Add to each of 256 counts how many active bytes have its number."""
    return a.astype(np.int64) + _histogram(values, mask)


@micro("a:V values:W mask:M -> dst:V", name="vmi.vchist", masking=Masking.NEUTRAL, flow=Flow.ALL,
       is_logical=True)  # fmt: skip
def vchist(a: Array, values: Array, mask: Array) -> Array:
    """Add to each of 256 counts how many active bytes are not above its number."""
    return a.astype(np.int64) + np.cumsum(_histogram(values, mask))


# ---- conversions -------------------------------------------------------------------------------

_CONVERTS: dict[str, Any] = {
    "signature": "a:V mask?:M -> dst:W",
    "syntax": f"%a{_TEXT} : T(a)[?, T(mask)?] -> T(dst)",
    "words": [
        Word("rounding", tuple(ROUNDINGS), "R", "how it rounds"),
        Word("saturate", ("SAT", "NOSAT"), "", "what becomes of values beyond the range"),
    ],
    "masking": Masking.ZERO,
    "is_logical": True,
}


def _convert(a: Array, rounding: str, saturate: str, T: DType, U: DType) -> Array:
    if T.is_packed:  # a lane is two values, and becomes a pair of bf16
        return convert(unpack4(a), T, bf16).view(U.np)
    if U.is_packed:
        return pack4(changed(a.view(bf16.np), bf16, U, rounding, saturate))
    return changed(a, T, U, rounding, saturate)


for _name, _what in {
    "vcvt": "Convert the element type; every lane stays in its place.",
    "extsi": "Widen integers with their sign.",
    "extui": "Widen integers with zeros.",
    "trunci": "Narrow integers.",
    "fptoui": "Convert floats to integers without a sign.",
}.items():
    micro(name=f"vmi.{_name}", doc=_what, **_CONVERTS)(_convert)


# ---- memory ------------------------------------------------------------------------------------


def rows(
    lanes: int, size: int, memory_size: int, stride: Sequence[int], group: int, dist_mode: str
) -> Array | None:
    """Where each byte of a vector lies behind its base; None: side by side.

    Groups lie a stride of elements apart. Without groups a stride counts blocks of 32 bytes, from
    one block to the next; a second one moves all of them. Elements that are narrower in memory are
    the low bytes of their lanes.
    """
    number = np.arange(lanes)
    if group:
        per_row = lanes // group
        starts = (number // per_row * stride[0] + number % per_row) * memory_size
    elif dist_mode == "brc":
        starts = number * 0
    elif stride:
        per_block = BLOCK // memory_size
        starts = number // per_block * stride[0] * BLOCK + number % per_block * memory_size
        starts += (stride[1] if len(stride) > 1 else 0) * BLOCK
    elif size == memory_size:
        return None
    else:
        starts = number * memory_size
    table = np.full((lanes, size), ABSENT, np.int64)
    kept = min(size, memory_size)
    table[:, :kept] = starts[:, None] + np.arange(kept)
    return table.reshape(-1)


_MODES = Word("dist_mode", ("norm", "brc", "unpack", "pack"), "norm", "how memory meets lanes")


def load_body() -> None:
    """Load a vector: side by side, in groups a stride of elements apart, or in blocks.

    `dist_mode` "brc" makes all lanes one element, "unpack" puts elements into wider lanes.
    """


def store_body() -> None:
    """Store the active lanes: side by side, in groups a stride of elements apart, or in blocks."""


for _name in ("vload", "load"):
    micro(
        "base:ub offset:index stride?*:int -> dst:V",
        name=f"vmi.{_name}",
        words=[_GROUP, _MODES],
        footprint=Footprint(offset="offset", places=rows),
        syntax="%base[%offset][?, %stride...?] {} : T(base) -> T(dst)",
        is_logical=True,
    )(load_body)
for _name in ("vstore", "store"):
    micro(
        "src:V base:ub offset:index stride?*:int mask?:M",
        name=f"vmi.{_name}",
        words=[_GROUP, _MODES, PMODE],
        masking=Masking.WRITE,
        footprint=Footprint(writes=True, offset="offset", places=rows),
        syntax="%src, %base[%offset][?, %stride|mask...?] {} : T(src), T(base)[?, T(mask)?]",
        is_logical=True,
    )(store_body)


@micro(
    "base:ub index:X mask:M -> dst:V",
    name="vmi.vgather",
    footprint=Footprint(),
    is_logical=True,
)
def vgather() -> None:
    """Gather elements by indices without sign; an inactive lane makes no access, and is 0."""
