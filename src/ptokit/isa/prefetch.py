"""Prefetches: reads whose only effect is a warmer cache."""

from __future__ import annotations

from typing import Any

from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.isa.effects import InAuto, Scratch, steps
from ptokit.isa.facts import Ops
from ptokit.isa.language import in_text
from ptokit.isa.memory import known_arrangement
from ptokit.isa.rules import USED_AS_UB, located, must, or_else
from ptokit.isa.sessions import SCRATCH_BYTES
from ptokit.isa.spec import Asm, Pipe, View, gm_in, insn, out, thing
from ptokit.isa.targets import Target


@insn(
    out(
        "dst",
        unspecified=lambda o: (
            (slice(0, o.dst.rows), slice(0, o.dst.cols)) if o.target.is_device else None
        ),
        memory=TileType.Vec,
    ),
    gm_in("src", view=lambda o: View.VALID if o.target.is_device else View.STORAGE),
    pipe=Pipe.MTE2,
    targets="a2a3 a5",
    rules=[
        *or_else(USED_AS_UB, located("Vec", "dst")),
        known_arrangement("dst", "src"),
        must("same-dtype", "cpu")(
            "dst and src have the same element type",
            lambda o: o.dst.dtype == o.src.dtype,
            "declare the scratch tile with the element type of the view",
        ),
        in_text(
            "dtype",
            "floats of a byte or less do not exist on the target",
            lambda o: not (o.src.dtype.is_float and o.src.dtype.bits <= 8),
            "a2a3",
            "view the memory as i8",
        ),
    ],
)
def TPREFETCH(dst: Array, src: Array, target: Target) -> None:
    """Pull a region of global memory towards the core by reading it through a scratch Vec tile.

    Every slice of the view is read once, in pieces that fit into `dst`, each overwriting the last:
    afterwards the contents of `dst` are unspecified and only the cache is warmer. The instruction
    waits for no events. The permissive profile leaves the first elements of the view, in memory
    order, in the valid region of `dst`.
    """
    if not target.is_device:
        count = min(dst.size, src.size)
        flat = dst.reshape(-1)  # a copy, unless the rows of the tile follow each other
        flat[:count] = src[:count]
        dst[...] = flat.reshape(dst.shape)


def _is_dense(o: Any) -> bool:
    step = 1
    for extent, stride in zip(reversed(o.src.shape), reversed(o.src.stride), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


@insn(
    gm_in("src", view=View.STORAGE, is_handle=True),  # no result depends on its bytes
    thing(
        "context",
        kind="prefetch_async_context",
        refused="TPREFETCH_ASYNC.context",
        note="PrefetchAsyncContext: workspace and session",
    ),
    pipe=Pipe.S,
    targets="a2a3 a5",
    rules=[
        must("contiguous")(
            "src is one contiguous range",
            _is_dense,
            "prefetch the rows one by one, or with TPREFETCH",
            "as many elements as the view has are brought over from its start on",
        ),
    ],
    asm=Asm(
        syntax={"tprefetch_async": "(%src, %context : T(src), T(context)) {} -> T(result)"},
        extents="flat",
    ),
    returns="async_event",
    in_auto=InAuto.VANISHES,
    steps=[
        steps(
            "a2a3 a5",
            lambda o: o.context.externalSession is None,
            scratch=Scratch(TileType.Vec, 0, SCRATCH_BYTES, lambda o: SCRATCH_BYTES),
        )
    ],
    example={
        "src": "GM f32 1x64",
        "context": "new PrefetchAsyncContext(np.zeros(1 << 16, np.uint8))",
    },
)
def TPREFETCH_ASYNC(src: Array, context: Any, ops: Ops) -> Any:
    """Ask the DMA engine to bring a contiguous range of global memory into the L2 cache.

    Returns an AsyncEvent; `event.Wait(context.GetSession())` waits for it, and no result ever
    depends on it. A context with a session of its own uses the first 256 bytes of UB as scratch for
    each call: keep live data elsewhere. In auto mode and on the permissive profile nothing happens.
    """
    if not ops.target.is_device or ops.mode == "auto":
        return context.post(0)
    return context.post(src.nbytes)
