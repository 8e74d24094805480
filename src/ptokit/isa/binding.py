"""Binding and views: giving tiles their place. No data moves."""

from __future__ import annotations

from typing import Any

from ptokit.isa.spec import Asm, Attr, Operand, View, insn, rule


def _checked(o: Any) -> bool:
    """Whether the compile-time checks apply: the bracket form, on a tile, placed by hand."""
    return o.attrs["Addr"] is not None and o.mode == "manual"


def _space(o: Any) -> Any:
    return o.target.spaces[o.obj.loc]


@insn(
    Operand("obj", "inout", kinds=("tile", "conv", "global"), view=View.OBJECT),
    Operand("addr", "in", kinds=("scalar", "pointer"), view=View.OBJECT, optional=True),
    attrs=[Attr("Addr", int, None, "byte address known at compile time, checked statically")],
    pipe=None,
    forms=["obj addr", "obj"],
    rules=[
        rule(
            "tile-address",
            "a tile takes its address once, in brackets or as an operand",
            lambda o: o.obj.kind == "global" or (o.addr is None) != (o.attrs["Addr"] is None),
            fix="TASSIGN(tile, address) or TASSIGN[address](tile)",
        ),
        rule(
            "SA-0218",
            "the address of a tile is an integer",
            lambda o: (
                o.obj.kind == "global"
                or o.mode == "auto"
                or o.addr is None
                or (o.addr.kind == "scalar" and isinstance(o.addr.value, int))
            ),
            fix="give the byte offset inside the tile's memory space as an int",
        ),
        rule(
            "SA-0053",
            "a GlobalTensor is bound to a pointer",
            lambda o: o.obj.kind != "global" or (o.addr is not None and o.addr.kind == "object"),
            fix="TASSIGN(tensor, array) or TASSIGN(tensor, ptr(array, offset))",
        ),
        rule(
            "SA-0351",
            "the target has this memory space (capacity > 0)",
            lambda o: not _checked(o) or _space(o).capacity > 0,
        ),
        rule(
            "SA-0352",
            "the tile fits into its memory space (tile_size <= capacity)",
            lambda o: (
                not _checked(o) or not _space(o).capacity or o.obj.nbytes <= _space(o).capacity
            ),
        ),
        rule(
            "SA-0353",
            "the tile ends inside its memory space (Addr + tile_size <= capacity)",
            lambda o: (
                not _checked(o)
                or not 0 < o.obj.nbytes <= _space(o).capacity
                or 0 <= o.attrs["Addr"] <= _space(o).capacity - o.obj.nbytes
            ),
        ),
        rule(
            "SA-0354",
            "the address has the alignment of the memory space (Addr % alignment == 0)",
            lambda o: (
                not _checked(o)
                or not _space(o).capacity
                or o.attrs["Addr"] % _space(o).alignment == 0
            ),
        ),
    ],
    asm=Asm(ins=("obj", "addr"), outs=()),
)
def TASSIGN(obj: Any, addr: Any, Addr: int | None, ctx: Any) -> None:
    """Bind a tile to an on-chip address, or a GlobalTensor to a pointer. No data moves.

    `TASSIGN(tile, address)` takes an address known at run time and is not checked;
    `TASSIGN[address](tile)` takes it at compile time and checks that the memory space exists on
    the target, that the tile fits, that it ends inside the space, and the alignment. In auto mode
    placement belongs to the compiler and binding a tile does nothing.
    """
    if hasattr(obj, "point_to"):
        obj.point_to(addr)
    elif ctx.mode == "manual":
        obj.bind(ctx.core.memory(obj.spec.loc), addr if Addr is None else Addr)
