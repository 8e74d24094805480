"""Raw transfers: what the mte forms are made of, with loops in registers of their own.

The registers keep their values from one transfer to the next, and have none at first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptokit.base.diagnostics import NotSupported, fail
from ptokit.isa.effects import Pipe
from ptokit.isa.micro.spec import micro
from ptokit.isa.micro.transfer import bursts, copy_units

_WAYS = {"outtoub": Pipe.MTE2, "ubtoout": Pipe.MTE3}
_REGISTERS = {
    "loop_size": "Set how often the two loops around raw transfers run: the inner, the outer.",
    "loop1_stride": "Set the bytes from one turn of the inner loop to the next: source, then "
    "destination.",
    "loop2_stride": "Set the bytes from one turn of the outer loop to the next: source, then "
    "destination.",
}


def _setter(register: str) -> Any:
    def body(first: int, second: int, unit: Any) -> None:
        unit.set_hidden(register, (first, second))

    return body


for _way, _pipe in _WAYS.items():
    for _name, _doc in _REGISTERS.items():
        micro(
            "first:int second:int",
            name=f"set_{_name}_{_way}",
            is_inside=False,
            pipe=_pipe,  # it is read on that pipe, so it is set in its order
            sets=f"{_name}_{_way}",
            doc=_doc,
        )(_setter(f"{_name}_{_way}"))


def _turns(unit: Any, way: str, nburst: tuple[int, int, int]) -> Iterator[tuple[int, int]]:
    """The bursts of a raw transfer; strides count where their loop runs more than once."""
    sizes = unit.hidden(f"loop_size_{way}")
    loops = [
        (size, *(unit.hidden(f"loop{n}_stride_{way}") if size > 1 else (0, 0)))
        for n, size in enumerate(sizes, 1)
    ]
    return bursts(nburst, *loops)


@micro("value:int", is_inside=False, pipe=Pipe.MTE2, sets="pad")
def set_mov_pad_val(value: int, unit: Any) -> None:
    """Set what raw transfers from global memory pad with."""
    unit.set_hidden("pad", value)


_USED = {way: " ".join(f"{name}_{way}" for name in _REGISTERS) for way in _WAYS}


@micro(
    "src:gm dst:ub sid:int n:int len:int left:int right:int select:int l2:int src_stride:int "
    "dst_stride:int",
    is_inside=False,
    pipe=Pipe.MTE2,
    uses=_USED["outtoub"],
)
def copy_gm_to_ubuf(
    src: Any,
    dst: Any,
    n: int,
    len: int,
    left: int,
    right: int,
    src_stride: int,
    dst_stride: int,
    unit: Any,
) -> None:
    """Copy bursts from global memory to the unified buffer, with the loops of the registers."""
    if left or right:
        raise fail(
            "micro-type",
            "padding of raw transfers is not supported",
            got=[("left", left), ("right", right)],
            fix="use pto.mte_gm_ub with pad(...)",
            site=unit.place,
            kind=NotSupported,
        )
    for here, there in _turns(unit, "outtoub", (n, src_stride, dst_stride)):
        unit.write(dst, dst.offset + there, *unit.read(src, src.offset + here, len))


@micro(
    "src:ub dst:gm sid:int n:int len:int l2:int dst_stride:int src_stride:int",
    is_inside=False,
    pipe=Pipe.MTE3,
    uses=_USED["ubtoout"],
)
def copy_ubuf_to_gm(
    src: Any, dst: Any, n: int, len: int, dst_stride: int, src_stride: int, unit: Any
) -> None:
    """Copy bursts from the unified buffer to global memory, with the loops of the registers."""
    for here, there in _turns(unit, "ubtoout", (n, src_stride, dst_stride)):
        unit.write(dst, dst.offset + there, *unit.read(src, src.offset + here, len))


_BLOCK = 32


_BURST = "%src, %dst, %len nburst(%nburst...) {} : T(src), T(dst), T(len), T(nburst...)"


@micro("src:ub dst:ub len:int nburst*:int", is_inside=False, pipe=Pipe.V, syntax=_BURST)
def mte_ub_ub(src: Any, dst: Any, len: int, nburst: Any, unit: Any) -> None:
    """Copy bursts of blocks of 32 bytes inside the unified buffer.

    `nburst` is how many bursts there are, and the blocks between one and the next on both sides.
    """
    copy_units(src, dst, _BLOCK, len, nburst, unit)
