"""Single elements of a tile, read and written by the scalar unit."""

from __future__ import annotations

from typing import Any

from ptokit.base.convert import element, number
from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.isa.facts import Ops
from ptokit.isa.idioms import MOVES
from ptokit.isa.language import typed
from ptokit.isa.rules import Told, located, must
from ptokit.isa.scalars import element_of, signed
from ptokit.isa.spec import Asm, Cpp, Pipe, Rule, insn, out, scalar, src


def _at(o: Any) -> slice:
    return slice(int(o.offset.value), int(o.offset.value) + 1)


def _scalar_access(tile: str) -> list[Rule]:
    return [
        located("Vec", tile),
        must("offset")(
            f"offset lies in 0 .. Rows * Cols - 1 of {tile}",
            lambda o: 0 <= o.offset.value < o[tile].numel,
            otherwise=Told(
                "the element that lies there is meant, whatever it belongs to",
                lambda o: o.target.is_device and o.mode != "auto" and o.offset.value >= 0,
            ),
        ),
    ]


@insn(
    src("src", view=_at),
    scalar("offset", signed(64), note="element offset in memory order"),
    pipe=Pipe.S,
    ops={"SCALAR": Pipe.S},
    rules=typed(*_scalar_access("src"), of={"location": lambda o: o.src.loc is TileType.Vec}),
    asm=Asm(name="tgetval", forms=frozenset({"l2"})),
    returns="src",
    cpp=Cpp(method="GetValue"),
)
def GETVAL(src: Array, offset: int, ops: Ops) -> float:
    """Read one element in the scalar unit and return it as a Python number.

    `tile.GetValue(offset)` is the usual spelling. The offset counts elements in memory order from
    the base of the tile, whatever its layout and valid region. The read happens on pipe S: wait for
    the producer first (V to S, MTE2 to S).
    """
    return number(src[0], ops.src.dtype)


@insn(
    out("dst", view=_at),
    scalar("offset", signed(64), note="element offset in memory order"),
    scalar("val", element_of("dst")),
    pipe=Pipe.S,
    ops={"SCALAR": Pipe.S},
    rules=_scalar_access("dst"),
    asm=Asm(
        name="tsetval",
        ins=("offset", "val"),
        forms=frozenset({"l2"}),
        order=("dst", "offset", "val"),
    ),
    cpp=Cpp(method="SetValue"),
    idiom=lambda o: MOVES,
)
def SETVAL(dst: Array, offset: int, val: float, ops: Ops) -> None:
    """Write one element in the scalar unit; all others keep their value.

    `tile.SetValue(offset, value)` is the usual spelling. The offset counts elements in memory
    order. The write happens on pipe S: order it against the other pipes on both sides.
    """
    dst[0] = element(val, ops.dst.dtype)
