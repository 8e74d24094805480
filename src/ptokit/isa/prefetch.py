"""Prefetches: reads whose only effect is a warmer cache."""

from __future__ import annotations

from typing import Any

from ptokit.base.layout import Array
from ptokit.isa.memory import known_arrangement
from ptokit.isa.rules import located
from ptokit.isa.spec import Pipe, View, gm_in, insn, out, rule


@insn(
    out(
        "dst",
        unspecified=lambda o: (
            (slice(0, o.dst.rows), slice(0, o.dst.cols)) if o.target.is_device else None
        ),
    ),
    gm_in("src", view=lambda o: View.VALID if o.target.is_device else View.STORAGE),
    pipe=Pipe.MTE2,
    targets="a2a3 a5",
    rules=[
        located("Vec", "dst"),
        known_arrangement("dst", "src"),
        rule(
            "same-dtype",
            "dst and src have the same element type",
            lambda o: o.dst.dtype == o.src.dtype,
            "cpu",
            "declare the scratch tile with the element type of the view",
        ),
    ],
)
def TPREFETCH(dst: Array, src: Array, ctx: Any) -> None:
    """Pull a region of global memory towards the core by reading it through a scratch Vec tile.

    Every slice of the view is read once, in pieces that fit into `dst`, each overwriting the last:
    afterwards the contents of `dst` are unspecified and only the cache is warmer. The instruction
    waits for no events. The permissive profile leaves the first elements of the view, in memory
    order, in the valid region of `dst`.
    """
    if not ctx.target.is_device:
        count = min(dst.size, src.size)
        flat = dst.reshape(-1)  # a copy, unless the rows of the tile follow each other
        flat[:count] = src[:count]
        dst[...] = flat.reshape(dst.shape)
