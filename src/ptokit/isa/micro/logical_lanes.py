"""Logical vectors whose lanes are numbers, counted, repeated, or change places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptokit.base.convert import element
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.isa.freedom import unspecified
from ptokit.isa.micro.arithmetic import FLOATS, INTEGERS
from ptokit.isa.micro.layouts import Layout
from ptokit.isa.micro.logical import ANY, GROUP, GROUPS, ONE_TYPE, PMODE, logical
from ptokit.isa.micro.samples import signed, vector
from ptokit.isa.micro.spec import Flow, Law, Masking, Vector, Word

# ---- numbers -----------------------------------------------------------------------------------


def _repeated(a: Any, lanes: int, U: DType) -> Array:
    if np.ndim(a) == 0:
        return np.full(lanes, element(a, U))
    return np.repeat(a, lanes // a.size)


def _fits(a: Vector, dst: Vector) -> bool:
    """Of a number the bits decide: those of integers have no sign."""
    return a.spelled == dst.spelled or (
        not a.lanes and a.is_integer and dst.is_integer and a.bits == dst.bits
    )


_LIKE = Law("a has the element type of dst", _fits, "convert it first")
_PER_GROUP = Law(
    "a has a lane for each group, or one, and the lanes of dst are those of whole groups",
    lambda a, dst, group: (
        a.lanes in ((group,) if group else (0, 1)) and dst.lanes % (group or 1) == 0
    ),
)


@logical(
    "a:L -> dst:G",
    name="vmi.vbrc",
    example=lambda T, U: {"a": vector(1, T)},
    words=[GROUP],
    laws=[_LIKE, _PER_GROUP],
    flow=Flow.BYTES,
)
def vbrc(a: Any, lanes: int, U: DType) -> Array:
    """Make all lanes a number, or the lanes of each group the lane of its number."""
    return _repeated(a, lanes, U)


@logical(
    "a:L -> dst:G",
    name="vmi.broadcast",
    example=lambda T, U: {"a": signed(T)},
    laws=[_LIKE, Law("a is a number, or has one lane", lambda a: a.lanes < 2)],
    flow=Flow.BYTES,
)
def broadcast(a: Any, lanes: int, U: DType) -> Array:
    """Make all lanes a number, or the one lane of a vector."""
    return _repeated(a, lanes, U)


@logical(
    "a:V -> dst:G",
    name="vmi.group_broadcast",
    example=lambda T, U: {"a": vector(8, T)},
    words=[GROUPS],
    laws=[
        ONE_TYPE,
        Law(
            "a has a lane for each group, and the lanes of dst are those of whole groups",
            lambda a, dst, num_groups: (
                num_groups > 0 and a.lanes == num_groups and dst.lanes % num_groups == 0
            ),
        ),
    ],
    flow=Flow.BYTES,
)
def group_broadcast(a: Array, lanes: int) -> Array:
    """Make the lanes of each group the lane of its number."""
    return np.repeat(a, lanes // a.size)


@logical(
    "-> dst:V",
    name="vmi.constant",
    words=[Word("value", (), None, example="dense<1.5> : vector<64xf32>")],
    laws=[
        Law(
            "value lists elements of the type of dst for all lanes: dense<0> : vector<64xi32>",
            lambda dst, value: (
                isinstance(value, Vector)
                and value.spelled == dst.spelled
                and value.lanes == dst.lanes
            ),
        )
    ],
    syntax="{} : T(dst)",
    is_generic=True,
)
def constant(value: Sequence[float], lanes: int, U: DType) -> Array:
    """Make lanes of the numbers that are listed; one stands for all."""
    return np.resize(np.array([element(each, U) for each in value]), lanes)


_ORDER = Word("order", ("ASC", "DESC"), "ASC")
_COUNTED = f"{INTEGERS} {FLOATS}"


def _counted(s: Any, order: str, group: int, lanes: int, U: DType) -> Array:
    steps = np.arange(lanes) % (lanes // (group or 1)) * (1 if order == "ASC" else -1)
    if U.is_integer:
        return (int(s) + steps).astype(U.np)
    return (np.float32(s) + steps.astype(np.float32)).astype(U.np)


def _divides_registers(dst: Vector, group: int) -> bool:
    """Whether groups are parts of registers, or registers of groups."""
    if group < 0 or (group and dst.lanes % group):
        return False
    own, whole = dst.lanes // (group or dst.lanes), 256 * 8 // dst.bits
    return group < 2 or own % whole == 0 or whole % own == 0


_GROUPED = Law(
    "the groups have the same number of lanes, which divides those of a register or the reverse",
    _divides_registers,
)


@logical(
    "s:S -> dst:V",
    name="vmi.vci",
    words=[_ORDER, GROUP],
    types=_COUNTED,
    laws=[_GROUPED],
)
def vci(s: Any, order: str, group: int, lanes: int, U: DType) -> Array:
    """Count from a number on, upwards or downwards; with groups anew in each of them."""
    return _counted(s, order, group, lanes, U)


@logical("s:S -> dst:V", name="vmi.iota", words=[_ORDER], types=_COUNTED)
def iota(s: Any, order: str, lanes: int, U: DType) -> Array:
    """Count from a number on, upwards or downwards."""
    return _counted(s, order, 0, lanes, U)


@logical(
    "s:S -> dst:V",
    name="vmi.group_iota",
    words=[_ORDER, Word("group", (), None, "how many groups there are", "2 : i64")],
    types=_COUNTED,
    laws=[_GROUPED, Law("there are several groups", lambda group: group > 1)],
)
def group_iota(s: Any, order: str, group: int, lanes: int, U: DType) -> Array:
    """Count from a number on in every group, upwards or downwards."""
    return _counted(s, order, group, lanes, U)


# ---- bits --------------------------------------------------------------------------------------


def _same_bits(a: Array, U: DType) -> Array:
    return np.ascontiguousarray(a).view(U.np)


for _name in ("vinterpret_cast", "bitcast"):
    logical(
        "a:V -> dst:H",
        name=f"vmi.{_name}",
        laws=[
            Law(
                "a and dst have as many bits",
                lambda a, dst: a.lanes * a.bits == dst.lanes * dst.bits,
            )
        ],
        flow=Flow.BYTES,
        doc="Look at the same bits as lanes of another type.",
    )(_same_bits)


# ---- places ------------------------------------------------------------------------------------

_PAIR: dict[str, Any] = {
    "signature": "a:V b:V mask?:M -> low:V high:V",
    "syntax": "%a, %b[?, %mask?] {} : T(a), T(b)[?, T(mask)?] -> T(low), T(high)",
    "words": [PMODE],
    "masking": Masking.ZERO,
    "flow": Flow.BYTES,
}


@logical(name="vmi.vintlv", **_PAIR)
def vintlv(a: Array, b: Array) -> tuple[Array, Array]:
    """Take the lanes of two vectors in turn: the first half of them, and the second."""
    both = np.stack([a, b], axis=1).reshape(2, -1)
    return both[0], both[1]


@logical(name="vmi.vdintlv", **_PAIR)
def vdintlv(a: Array, b: Array) -> tuple[Array, Array]:
    """Divide the lanes of two vectors, one after the other, into even and odd ones."""
    both = np.concatenate([a, b])
    return both[::2].copy(), both[1::2].copy()


@logical(
    "a:V index:X -> dst:V",
    name="vmi.vselr",
    example=lambda T, U: {"index": f"!pto.vmi.vreg<64xui{T.bits}>"},
    types=ANY,
    laws=[
        Law(
            "the indices are integers as wide as the lanes",
            lambda a, index: index.is_integer and index.bits == a.bits,
            "look at them as such with pto.vmi.vinterpret_cast",
        ),
        Law(
            "a register holds all lanes: 64, of 16-bit lanes also 128, of bytes also 256",
            lambda a: a.lanes in (64, 128, 256) and a.lanes * a.bits <= 256 * 8,
        ),
    ],
    flow=Flow.BYTES,
    freedom=unspecified("an index past the last lane", "It is taken modulo the lanes here."),
)
def vselr(a: Array, index: Array) -> Array:
    """Permute lanes: each is the lane of the first vector that the index beside it names."""
    return a[index.view(f"u{index.itemsize}").astype(np.intp) % a.size]


@logical(
    "a:V -> dst:G",
    name="vmi.shuffle",
    words=[
        Word(
            "indices",
            (),
            None,
            "a lane of a for each of dst",
            "array<i64: " + ", ".join(str(n) for n in reversed(range(64))) + ">",
        )
    ],
    laws=[
        ONE_TYPE,
        Law("there is an index for each lane", lambda dst, indices: len(indices) == dst.lanes),
        Law(
            "every index is that of a lane",
            lambda a, indices: all(0 <= n < a.lanes for n in indices),
        ),
    ],
    flow=Flow.BYTES,
)
def shuffle(a: Array, indices: Sequence[int]) -> Array:
    """Take the lanes that are listed, in that order."""
    return a[np.array(indices, np.intp)]


def _whole_channels(a: Vector, channels: Sequence[Vector]) -> bool:
    return all(c.lanes * len(channels) == a.lanes and c.spelled == a.spelled for c in channels)


def _lie_apart(a: Vector, channels: Sequence[Vector]) -> bool:
    """Whether channels are contiguous, beside a vector that is, or is dealt out to as many."""
    layouts = {channel.layout for channel in channels}
    if not a.layout:
        return layouts == {""}
    own = Layout.parse(a.layout)
    dealt = own.kind == "contiguous" or (own.kind, own.factor) == ("deinterleaved", len(channels))
    return dealt and all(c and Layout.parse(c).kind == "contiguous" for c in layouts)


_CHANNELS: dict[str, Any] = {
    "example": lambda T, U: {"a": vector(192, T)},
    "laws": [
        Law("there are at least two channels", lambda channels: len(channels) > 1),
        Law("every channel has its part of the lanes of a, of its type", _whole_channels),
        Law(
            "channels with layouts are contiguous, the whole is too or is deinterleaved by their "
            "number",
            _lie_apart,
        ),
    ],
    "flow": Flow.BYTES,
    "is_generic": True,
}


@logical(
    "a:H -> channels*:H",
    name="vmi.channel_split",
    syntax="%a {} : T(a) -> T(channels...)",
    **_CHANNELS,
)
def channel_split(a: Array, made: int) -> tuple[Array, ...]:
    """Deal the lanes out to several vectors in turn."""
    return tuple(a[n::made].copy() for n in range(made))


@logical(
    "channels*:H -> a:H",
    name="vmi.channel_merge",
    syntax="%channels... {} : T(channels...) -> T(a)",
    **_CHANNELS,
)
def channel_merge(channels: Sequence[Array]) -> Array:
    """Take the lanes of several vectors in turn."""
    return np.stack(channels, axis=1).reshape(-1)
