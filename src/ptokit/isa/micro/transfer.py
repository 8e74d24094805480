"""Transfers between memories, in bursts: what a tile load or store is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from ptokit.base.convert import element
from ptokit.isa.effects import Pipe
from ptokit.isa.micro.control import atomic_mode
from ptokit.isa.micro.spec import micro

_LOOPS = "loop1?*:int loop2?*:int loop3?*:int"
_LOOP_TEXT = "".join(f"[? loop(%loop{n}...)?]" for n in (1, 2, 3))
_LOOP_TYPES = "".join(f"[?, loop T(loop{n}...)?]" for n in (1, 2, 3))
_BLOCK = 32


def bursts(nburst: Sequence[int], *loops: Sequence[int] | None) -> Iterator[tuple[int, int]]:
    """Where each burst begins, in bytes past the source and the destination.

    `nburst` and every loop are a count and two strides, from start to start; the last loop is the
    outermost.
    """
    levels = [nburst, *(loop for loop in loops if loop)]
    for turns in product(*(range(count) for count, _, _ in reversed(levels))):
        steps = list(zip(reversed(turns), levels, strict=True))
        yield (
            sum(turn * level[1] for turn, level in steps),
            sum(turn * level[2] for turn, level in steps),
        )


def copy_units(src: Any, dst: Any, size: int, len: int, nburst: Sequence[int], unit: Any) -> None:
    """Copy bursts of so many units of `size` bytes.

    `nburst` is how many bursts there are, and the units between one and the next on both sides.
    """
    count, *gaps = nburst
    for here, there in bursts((count, *((len + gap) * size for gap in gaps))):
        unit.write(dst, dst.offset + there, *unit.read(src, src.offset + here, len * size))


@micro(
    f"src:gm dst:ub l2:int len:int nburst*:int {_LOOPS} pad?*:num",
    is_inside=False,
    pipe=Pipe.MTE2,
    syntax=f"%src, %dst, %l2, %len nburst(%nburst...){_LOOP_TEXT}[? pad(%pad...)?] {{}} : "
    f"T(src), T(dst), T(l2), T(len), T(nburst...){_LOOP_TYPES}[?, pad T(pad...)?]",
    cpp="copy_gm_to_ubuf_align_v2({dst}, {src}, 0, {nburst[0]}, {len}, 0, 0, false, {l2}, "
    "{nburst[1]}, {nburst[2]})",
)
def mte_gm_ub(
    src: Any,
    dst: Any,
    len: int,
    nburst: Sequence[int],
    loop1: Sequence[int] | None,
    loop2: Sequence[int] | None,
    loop3: Sequence[int] | None,
    pad: Sequence[Any] | None,
    unit: Any,
) -> None:
    """Copy bursts of bytes from global memory to the unified buffer.

    `nburst` is how many bursts there are, and the bytes from one to the next on both sides; loops
    around them, the last one outermost, have the same three numbers. `pad` puts elements of a value
    in front of each burst and behind it, and fills up its last block of 32 bytes.
    """
    before = behind = 0
    value = np.zeros(0, np.uint8)
    if pad:
        kind = dst.dtype
        value = np.frombuffer(element(pad[0], kind).tobytes(), np.uint8)
        before, behind = (n * kind.itemsize for n in ([*pad[1:], 0, 0])[:2])
    for here, there in bursts(nburst, loop1, loop2, loop3):
        data, poison = unit.read(src, src.offset + here, len)
        if pad:
            total = before + len + behind
            total += -total % _BLOCK
            filled = np.resize(value, total)
            filled[before : before + len] = data
            data = filled
        unit.write(dst, dst.offset + there, data, poison)


@micro(
    f"src:ub dst:gm len:int nburst*:int {_LOOPS} l2?:int",
    is_inside=False,
    pipe=Pipe.MTE3,
    uses="ATOMIC ATOMIC_TYPE",
    syntax=f"%src, %dst, %len nburst(%nburst...){_LOOP_TEXT}[? l2_cache_ctl(%l2)?] {{}} : "
    f"T(src), T(dst), T(len), T(nburst...){_LOOP_TYPES}[?, T(l2)?]",
    cpp="copy_ubuf_to_gm_align_v2({dst}, {src}, 0, {nburst[0]}, {len}, 0, {nburst[2]}, "
    "{nburst[1]})",
)
def mte_ub_gm(
    src: Any,
    dst: Any,
    len: int,
    nburst: Sequence[int],
    loop1: Sequence[int] | None,
    loop2: Sequence[int] | None,
    loop3: Sequence[int] | None,
    unit: Any,
) -> None:
    """Copy bursts of bytes from the unified buffer to global memory.

    Where pto.set_atomic_add or its sisters came before, they change what is there in place.
    """
    mode = atomic_mode(unit)
    for here, there in bursts(nburst, loop1, loop2, loop3):
        unit.write(dst, dst.offset + there, *unit.read(src, src.offset + here, len), mode)
