"""Loads and stores of logical vectors: what they touch, their footprint, is their meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptokit.base.layout import Array
from ptokit.isa.freedom import unspecified
from ptokit.isa.micro import footprints as fp
from ptokit.isa.micro.footprints import ABSENT, BLOCK, Footprint
from ptokit.isa.micro.logical import GROUP, GROUPS, PMODE, ZEROES, logical
from ptokit.isa.micro.samples import vector
from ptokit.isa.micro.spec import Law, Masking, Vector, Word

# ---- where lanes lie ---------------------------------------------------------------------------


def _table(starts: Array, size: int, memory_size: int) -> Array:
    """The places of the bytes of lanes that start there; what memory lacks of a lane is absent."""
    table = np.full((starts.size, size), ABSENT, np.int64)
    kept = min(size, memory_size)
    table[:, :kept] = starts[:, None] + np.arange(kept)
    return table.reshape(-1)


def _by_blocks(lanes: int, memory_size: int, block_stride: int, repeat_stride: int) -> Array:
    number, per_block = np.arange(lanes), BLOCK // memory_size
    starts = number // per_block * block_stride * BLOCK + number % per_block * memory_size
    return starts + repeat_stride * BLOCK


def _by_rows(lanes: int, memory_size: int, stride: int, rows: int) -> Array:
    number, per_row = np.arange(lanes), lanes // rows
    return (number // per_row * stride + number % per_row) * memory_size


def spread(
    lanes: int, size: int, memory_size: int, stride: Sequence[int], group: int, dist_mode: str
) -> Array | None:
    """Where each byte of a vector lies past its base; None: side by side.

    Groups lie a stride of elements apart, with "brc" one element for each. Without groups a stride
    counts blocks of 32 bytes, from one block to the next; a second one moves all of them. Elements
    that are narrower in memory are the low bytes of their lanes; of two vectors the elements lie in
    turn.
    """
    if group and dist_mode == "brc":
        return repeated(lanes, size, memory_size, stride[0], group)
    if group:
        return rows(lanes, size, memory_size, stride[0], group)
    if dist_mode == "brc":
        return _table(np.zeros(lanes, np.int64), size, memory_size)
    if dist_mode == "dintlv":
        in_turn = np.arange(lanes).reshape(-1, 2).T.reshape(-1)
        return _table(in_turn * memory_size, size, memory_size)
    if stride:
        starts = _by_blocks(lanes, memory_size, stride[0], [*stride, 0][1])
        return _table(starts, size, memory_size)
    if size == memory_size:
        return None
    return _table(np.arange(lanes) * memory_size, size, memory_size)


def together(size: int) -> None:
    """Side by side."""


def in_turn(lanes: int, size: int, memory_size: int) -> Array:
    """The elements of two vectors in turn."""
    places = np.arange(lanes).reshape(-1, 2).T.reshape(-1)
    return _table(places * memory_size, size, memory_size)


def rows(lanes: int, size: int, memory_size: int, row_stride: int, num_groups: int) -> Array:
    """Groups a stride of elements apart; of single lanes these are slots."""
    return _table(_by_rows(lanes, memory_size, row_stride, num_groups), size, memory_size)


def repeated(lanes: int, size: int, memory_size: int, row_stride: int, num_groups: int) -> Array:
    """One element for each group, a stride apart."""
    groups = np.arange(lanes) // (lanes // num_groups)
    return _table(groups * row_stride * memory_size, size, memory_size)


def blocks(
    lanes: int, size: int, memory_size: int, block_stride: int, repeat_stride: int = 0
) -> Array:
    """Blocks of 32 bytes a stride of blocks apart, all of them moved by another."""
    return _table(_by_blocks(lanes, memory_size, block_stride, repeat_stride), size, memory_size)


def single_blocks(lanes: int, size: int, memory_size: int, block_stride: int) -> Array:
    """Blocks of 32 bytes a stride of blocks apart."""
    return blocks(lanes, size, memory_size, block_stride)


def squeezed(lanes: int, size: int, memory_size: int, mask: Array) -> Array:
    """Active lanes side by side; the others lie nowhere."""
    return _table((np.cumsum(mask) - mask) * memory_size, size, memory_size)


def elements(size: int, memory_size: int, index: Array) -> Array:
    """Elements by their number."""
    return fp.by_index(index, size, memory_size)


def bytes_(size: int, memory_size: int, index: Array) -> Array:
    """Elements by bytes past the base."""
    return _table(index.astype(np.int64), size, memory_size)


# ---- what holds of them ------------------------------------------------------------------------


def _alike(base: Vector, vector: Vector) -> bool:
    """Whether memory has the elements of a vector; those of 4-bit pairs are counted singly."""
    return base.spelled == vector.spelled or (base.is_packed and base.kind is vector.kind)


_LOADED = Law("memory has the element type of dst", lambda base, dst: _alike(base, dst))
_STORED = Law("memory has the element type of src", lambda base, src: _alike(base, src))


def _is_packed(base: Vector, src: Vector) -> bool:
    """Words of which groups store the lowest bytes."""
    return base.is_integer and base.bits == 8 and src.is_integer and src.bits == 32


_STORED_BY_ROWS = Law(
    "memory has the element type of src, or bytes of 32-bit integers",
    lambda base, src: _alike(base, src) or _is_packed(base, src),
)
_BY_INDEX = Law(
    "the indices are 16-bit or 32-bit integers without sign",
    lambda index: index.is_integer and not index.has_sign and index.bits in (16, 32),
    "look at them as such with pto.vmi.vinterpret_cast",
)
_NARROW_INDEX = Law(
    "16-bit indices are those of ui16 elements",
    lambda index, dst: index.bits == 32 or dst.spelled == "ui16",
)


def _are_rows(vector: Vector, num_groups: int) -> bool:
    return num_groups > 0 and vector.lanes % num_groups == 0


_ROWS = "the lanes are those of whole groups"
_LOADS_ROWS = Law(_ROWS, lambda dst, num_groups: _are_rows(dst, num_groups))
_STORES_ROWS = Law(_ROWS, lambda src, num_groups: _are_rows(src, num_groups))
_SLOTS = Law("dst has a lane for each group", lambda dst, num_groups: dst.lanes == num_groups)


def _is_one_mode(vector: Vector, stride: Sequence[Vector], group: int, dist_mode: str) -> bool:
    if group:
        is_rows = len(stride) == 1 and stride[0].spelled == "index"
        return group > 0 and is_rows and dist_mode in ("", "brc") and vector.lanes % group == 0
    return not (stride and dist_mode) and all(each.spelled == "i16" for each in stride)


_ONE_MODE = (
    "a pattern, groups with a stride (an index) that divide the lanes, or blocks with strides (i16)"
)
_TWO = "two vectors are meant by dist_mode dintlv, and nothing else"


# ---- loads -------------------------------------------------------------------------------------

_MODES = Word(
    "dist_mode",
    ("continuous", "unpack", "brc", "dintlv"),
    "",
    "how memory meets lanes: side by side, widened, one element for all, two vectors in turn",
)


@logical(
    "base:ub offset:index stride?*:int -> dst:V high?:V",
    name="vmi.vload",
    words=[GROUP, _MODES, PMODE],
    laws=[
        Law(
            "memory has the element type of dst, unless it is widened",
            lambda base, dst, dist_mode: _alike(base, dst) or dist_mode == "unpack",
        ),
        Law(
            _ONE_MODE,
            lambda dst, stride, group, dist_mode: _is_one_mode(dst, stride, group, dist_mode),
        ),
        Law(_TWO, lambda high, dist_mode: (high is not None) == (dist_mode == "dintlv")),
    ],
    footprint=Footprint(offset="offset", places=spread),
    syntax="%base[%offset][?, %stride...?] {} : T(base) -> T(dst)[?, T(high)?]",
)
def vload() -> None:
    """Load a vector: side by side, in groups a stride of elements apart, or in blocks.

    `dist_mode` "brc" makes all lanes one element, "unpack" puts elements into wider lanes, "dintlv"
    makes two vectors of elements in turn.
    """


_AT = "%base[%offset]"
_BLOCKS = Law(
    "strides of blocks are i16",
    lambda block_stride, repeat_stride: block_stride.spelled == repeat_stride.spelled == "i16",
)


@logical(
    "base:ub offset:index -> dst:V",
    name="vmi.load",
    laws=[_LOADED],
    footprint=Footprint(offset="offset", places=together),
    syntax=f"{_AT} {{}} : T(base) -> T(dst)",
)
def load() -> None:
    """Load a vector whose elements lie side by side."""


@logical(
    "base:ub offset:index -> dst:V high:V",
    name="vmi.deinterleave_load",
    laws=[_LOADED],
    footprint=Footprint(offset="offset", places=in_turn),
    syntax=f"{_AT} {{}} : T(base) -> T(dst), T(high)",
)
def deinterleave_load() -> None:
    """Load two vectors whose elements lie in turn."""


_ROW_LOAD: dict[str, Any] = {
    "signature": "base:ub offset:index row_stride:index -> dst:V",
    "words": [GROUPS],
    "syntax": f"{_AT}, %row_stride {{}} : T(base) -> T(dst)",
}


@logical(
    name="vmi.group_load",
    laws=[_LOADED, _LOADS_ROWS],
    footprint=Footprint(offset="offset", places=rows),
    **_ROW_LOAD,
)
def group_load() -> None:
    """Load groups of lanes that lie a stride of elements apart."""


@logical(
    name="vmi.group_slot_load",
    example=lambda T, U: {"dst": vector(8, T)},
    laws=[_LOADED, _SLOTS],
    footprint=Footprint(offset="offset", places=rows),
    **_ROW_LOAD,
)
def group_slot_load() -> None:
    """Load one element for each group, a stride of elements apart, side by side."""


@logical(
    name="vmi.group_broadcast_load",
    laws=[_LOADED, _LOADS_ROWS],
    footprint=Footprint(offset="offset", places=repeated),
    **_ROW_LOAD,
)
def group_broadcast_load() -> None:
    """Load one element for each group, a stride of elements apart, into all lanes of the group."""


@logical(
    "base:ub offset:index block_stride:int repeat_stride:int mask:M -> dst:V",
    name="vmi.stride_load",
    laws=[_LOADED, _BLOCKS],
    footprint=Footprint(offset="offset", places=blocks),
    syntax=f"{_AT}, %block_stride, %repeat_stride, %mask {{}} : "
    "T(base), T(block_stride), T(repeat_stride), T(mask) -> T(dst)",
)
def stride_load() -> None:
    """Load blocks of 32 bytes that lie a stride of blocks apart; inactive lanes are 0."""


_FILLED: dict[str, Any] = {
    "signature": "base:ub offset:index mask:M passthru:V -> dst:V",
    "laws": [_LOADED],
    "syntax": f"{_AT}, %mask, %passthru {{}} : T(base), T(mask), T(passthru) -> T(dst)",
}


@logical(name="vmi.masked_load", footprint=Footprint(offset="offset", places=together), **_FILLED)
def masked_load() -> None:
    """Load the active lanes, each from its place; the others are those of another vector."""


@logical(name="vmi.expand_load", footprint=Footprint(offset="offset", places=squeezed), **_FILLED)
def expand_load() -> None:
    """Load the active lanes from elements side by side; the others are those of another vector."""


_GATHER: dict[str, Any] = {
    "signature": "base:ub index:X mask:M -> dst:V",
    "words": [ZEROES],
    "masking": Masking.ZERO,
}


@logical(
    name="vmi.vgather",
    laws=[_LOADED, _BY_INDEX, _NARROW_INDEX],
    footprint=Footprint(places=elements),
    **_GATHER,
)
def vgather() -> None:
    """Gather elements by indices without sign; an inactive lane makes no access, and is 0."""


@logical(
    name="vmi.vgatherb",
    laws=[_LOADED, _BY_INDEX],
    footprint=Footprint(places=bytes_),
    freedom=unspecified("every lane", "No recorded run shows this operation."),
    **_GATHER,
)
def vgatherb() -> None:
    """Gather elements by bytes past the base; an inactive lane makes no access, and is 0."""


@logical(
    "base:ub index:X mask:M passthru:V -> dst:V",
    name="vmi.gather",
    laws=[_LOADED, _BY_INDEX, _NARROW_INDEX],
    footprint=Footprint(places=elements),
    syntax="%base[%index], %mask, %passthru {} : T(base), T(index), T(mask), T(passthru) -> T(dst)",
)
def gather() -> None:
    """Gather elements by indices without sign; inactive lanes are those of another vector."""


# ---- stores ------------------------------------------------------------------------------------

_ALWAYS_ZERO = Word("pmode", ("zero",), "zero", "what an inactive lane would write keeps its bytes")
_STORE_MODES = Word("dist_mode", ("continuous", "dintlv"), "", "side by side, or two in turn")


@logical(
    "src:V high?:V base:ub offset:index stride?*:int mask?:M",
    name="vmi.vstore",
    words=[GROUP, _STORE_MODES, _ALWAYS_ZERO],
    laws=[
        Law(
            "memory has the element type of src, or groups store bytes of 32-bit integers",
            lambda base, src, group: _alike(base, src) or (group > 0 and _is_packed(base, src)),
        ),
        Law(
            _ONE_MODE,
            lambda src, stride, group, dist_mode: _is_one_mode(src, stride, group, dist_mode),
        ),
        Law(_TWO, lambda high, dist_mode: (high is not None) == (dist_mode == "dintlv")),
        Law("groups are stored without a mask", lambda mask, group: group == 0 or mask is None),
    ],
    masking=Masking.WRITE,
    footprint=Footprint(writes=True, offset="offset", places=spread),
    syntax="%src, %high|base...[%offset][?, %stride|mask...?] {} : "
    "T(src)[?, T(high)?], T(base)[?, T(mask)?]",
)
def vstore() -> None:
    """Store the active lanes: side by side, in groups a stride of elements apart, or in blocks.

    `dist_mode` "dintlv" stores the lanes of two vectors in turn.
    """


@logical(
    "src:V base:ub offset:index",
    name="vmi.store",
    laws=[_STORED],
    footprint=Footprint(writes=True, offset="offset", places=together),
    syntax=f"%src, {_AT} {{}} : T(src), T(base)",
)
def store() -> None:
    """Store the lanes side by side."""


@logical(
    "src:V high:V base:ub offset:index",
    name="vmi.interleave_store",
    laws=[_STORED],
    footprint=Footprint(writes=True, offset="offset", places=in_turn),
    syntax=f"%src, %high, {_AT} {{}} : T(src), T(high), T(base)",
)
def interleave_store() -> None:
    """Store the lanes of two vectors in turn."""


@logical(
    "src:V base:ub offset:index row_stride:index",
    name="vmi.group_store",
    words=[GROUPS],
    laws=[_STORED_BY_ROWS, _STORES_ROWS],
    footprint=Footprint(writes=True, offset="offset", places=rows),
    syntax=f"%src, {_AT}, %row_stride {{}} : T(src), T(base)",
)
def group_store() -> None:
    """Store groups of lanes a stride of elements apart."""


_MASKED: dict[str, Any] = {
    "signature": "src:V base:ub offset:index mask:M",
    "laws": [_STORED],
    "masking": Masking.WRITE,
    "syntax": f"%src, {_AT}, %mask {{}} : T(src), T(base), T(mask)",
}


@logical(
    name="vmi.masked_store",
    footprint=Footprint(writes=True, offset="offset", places=together),
    **_MASKED,
)
def masked_store() -> None:
    """Store the active lanes, each in its place."""


@logical(
    name="vmi.compress_store",
    footprint=Footprint(writes=True, offset="offset", places=squeezed),
    **_MASKED,
)
def compress_store() -> None:
    """Store the active lanes side by side."""


@logical(
    "src:V base:ub offset:index block_stride:int repeat_stride:int mask:M",
    name="vmi.stride_store",
    laws=[_STORED, _BLOCKS],
    masking=Masking.WRITE,
    footprint=Footprint(writes=True, offset="offset", places=blocks),
    syntax=f"%src, {_AT}, %block_stride, %repeat_stride, %mask {{}} : "
    "T(src), T(base), T(block_stride), T(repeat_stride), T(mask)",
)
def stride_store() -> None:
    """Store active lanes in blocks of 32 bytes that lie a stride of blocks apart."""


@logical(
    "src:V base:ub offset:index block_stride:int mask:M",
    name="vmi.vsstb",
    words=[_ALWAYS_ZERO],
    laws=[
        _STORED,
        Law("the stride of blocks is an i16", lambda block_stride: block_stride.spelled == "i16"),
    ],
    masking=Masking.WRITE,
    footprint=Footprint(writes=True, offset="offset", places=single_blocks),
    syntax=f"%src, {_AT}, %block_stride, %mask {{}} : T(src), T(base), T(mask)",
)
def vsstb() -> None:
    """Store active lanes in blocks of 32 bytes that lie a stride of blocks apart."""


_SCATTER: dict[str, Any] = {
    "signature": "src:V base:ub index:X mask:M",
    "laws": [_STORED, _BY_INDEX],
    "masking": Masking.WRITE,
    "footprint": Footprint(writes=True, places=elements),
    "freedom": unspecified("two active lanes with one index", "Which of them stays is open."),
    "doc": "Scatter active lanes by indices without sign.",
}


def _scatter() -> None:
    """Nothing is computed."""


logical(name="vmi.vscatter", words=[_ALWAYS_ZERO], **_SCATTER)(_scatter)
logical(
    name="vmi.scatter",
    syntax="%src, %base[%index], %mask {} : T(src), T(base), T(index), T(mask)",
    **_SCATTER,
)(_scatter)
