"""Asynchronous transfers: a DMA engine outside the core copies flat ranges of global memory.

A call posts the transfer and returns an AsyncEvent; `event.Wait(session)` waits for it. The
session, built once with BuildAsyncSession, is the channel to the engine.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ptokit.base.comm_enums import DmaEngine
from ptokit.isa.comm_rules import same_layout, same_type, tensor
from ptokit.isa.costs import COMMUNICATION
from ptokit.isa.devices import on
from ptokit.isa.facts import Ops
from ptokit.isa.rules import must
from ptokit.isa.scalars import unsigned
from ptokit.isa.services import Refused, World
from ptokit.isa.spec import Asm, Attr, Insn, View, insn, rule, scalar, thing

_URMA_MOST = 1 << 28  # bytes of one work request
_CORE_PUTS = on("a5")  # cannot write outwards by SDMA: the core copies through the scratch
_FLAT = "GM f32 1x64"


def _nbytes(view: Any) -> int:
    bits = view.dtype.bits if view.dtype.is_packed else 8 * view.itemsize
    return prod(view.shape) * bits // 8


def _is_flat(view: Any) -> bool:
    d, s = view.shape, view.stride
    dense = s[4] == 1 and s[3] == d[4] and all(s[i] == d[i + 1] * s[i + 1] for i in range(3))
    return dense and d[:4] == (1, 1, 1, 1)


_RULES = [
    same_type("dstGlobalData", "srcGlobalData", id="AS-1"),
    same_layout("dstGlobalData", "srcGlobalData", "AS-2"),
    *(
        must("AS-3", "a2a3 a5")(
            f"{name} is flat: one row of neighbouring elements, every stride that of a dense "
            "tensor",
            lambda o, name=name: _is_flat(o[name]),
            "post the rows one by one, or copy with TPUT or TGET",
        )
        for name in ("srcGlobalData", "dstGlobalData")
    ),
    must("AS-4")(
        "dstGlobalData has at least as many elements as srcGlobalData",
        lambda o: prod(o.dstGlobalData.shape) >= prod(o.srcGlobalData.shape),
    ),
    must("AS-10")(
        "URMA moves more than 0 and at most 268435456 bytes",
        lambda o: o.attrs["engine"] != DmaEngine.URMA or 0 < _nbytes(o.srcGlobalData) <= _URMA_MOST,
        "post the range in pieces",
    ),
    must("AS-A", "a2a3")("the only engine is SDMA", lambda o: o.attrs["engine"] == DmaEngine.SDMA),
    rule("peer", "the engine takes no peer", lambda o: o.peer is None, "a2a3"),
    must("AS-C", "a5")(
        "RDMA is reserved: its device code is not public",
        lambda o: o.attrs["engine"] != DmaEngine.RDMA,
        "use SDMA or URMA",
    ),
]


def _text(name: str) -> Asm:
    """`%event = pto.comm.tput_async(%dst, %src, %session : T, T, T) -> !pto.async_event`."""
    shown = ("dstGlobalData", "srcGlobalData", "session")
    operands, types = (", ".join(f"{o}{n}{c}" for n in shown) for o, c in (("%", ""), ("T(", ")")))
    own = name.lower()
    syntax = {own: f"({operands} : {types}) {{}} -> T(result)"}
    return Asm(syntax=syntax, aliases=(own.removeprefix("comm."),), extents="flat")


def _transfer(name: str, dst: str, src: str, doc: str) -> Insn:
    """Define one direction; `dst` and `src` say on which device the ranges lie."""
    puts = dst == "remote"

    def body(
        dstGlobalData: Any,
        srcGlobalData: Any,
        session: Any,
        peer: int | None,
        engine: DmaEngine,
        ops: Ops,
        world: World,
    ) -> Any:
        if not ops.target.is_device:  # at once, strides and all
            source, target = world.view("srcGlobalData"), world.view("dstGlobalData")
            target[tuple(slice(0, n) for n in source.shape)] = source
            return session.done(engine)
        _check_session(session, peer, engine, world)
        by_core = puts and _CORE_PUTS(ops) and engine == DmaEngine.SDMA
        nbytes = _nbytes(ops.srcGlobalData)
        skip = session.commBlockOffset if engine == DmaEngine.SDMA and not by_core else 0
        source = world.raw("srcGlobalData", nbytes, skip)
        target = world.raw("dstGlobalData", nbytes, skip)
        if nbytes and np.shares_memory(source, target):
            raise Refused("overlap", "source and destination of a transfer share no memory")
        world.pause()
        if by_core:
            world.copy_through(session, nbytes)
            return session.done(engine)
        return world.post(session, nbytes, skip, session.destRankId if peer is None else peer)

    return insn(
        tensor("dstGlobalData", "out", dst),
        tensor("srcGlobalData", "in", src),
        thing(
            "session",
            kind="async_session",
            refused=f"{name}.session",
            lost=lambda o: o.target.is_device and o.attrs["engine"] == DmaEngine.SDMA,
            note="AsyncSession, whose scratch is overwritten",
        ),
        scalar("peer", unsigned(32), view=View.OBJECT, optional=True, note="rank; URMA on A5"),
        name=name,
        attrs=[Attr("engine", DmaEngine, DmaEngine.SDMA, "the engine that copies")],
        pipe=None,
        targets="a2a3 a5",
        rules=_RULES,
        asm=_text(name),
        returns="async_event",
        example={"dstGlobalData": _FLAT, "srcGlobalData": _FLAT, "session": "new AsyncSession"},
        setup="scratch = Tile[TileType.Vec, u8, 1, 256](); "
        "BuildAsyncSession(scratch, np.zeros(1 << 16, np.uint8), session)",
        cost=COMMUNICATION,
        doc=doc,
    )(body)


def _check_session(session: Any, peer: int | None, engine: DmaEngine, world: World) -> None:
    if not session.valid:
        raise Refused(
            "session-valid",
            "the session was built",
            fix="BuildAsyncSession(scratch, workspace, session), and look at what it returns",
        )
    if session.engine != engine:
        raise Refused(
            "AS-6",
            "the session was built for the engine of the call",
            got=[("session", session.engine.name), ("engine", engine.name)],
            fix=f"BuildAsyncSession[DmaEngine.{engine.name}](...)",
        )
    number = session.destRankId if peer is None else peer
    if engine == DmaEngine.URMA and world.rank_count is not None and number >= world.rank_count:
        raise Refused(
            "AS-11",
            "the peer is a rank of the world",
            got=[("peer", number), ("ranks", world.rank_count)],
        )


_transfer(
    "comm.TPUT_ASYNC",
    "remote",
    "local",
    """Start a copy of a flat range to the memory of another device and return its AsyncEvent.

    `event.Wait(session)` waits for it; until then do not touch the destination, nor write the
    source. Completion of an SDMA event implies that of all earlier ones of its session. On A5 the
    SDMA engine cannot write outwards: the core copies through the scratch tile of the session, and
    the event has nothing to wait for. The scratch tile holds garbage afterwards.
    """,
)
_transfer(
    "comm.TGET_ASYNC",
    "local",
    "remote",
    """Start a copy of a flat range from the memory of another device and return its AsyncEvent.

    As TPUT_ASYNC, in the other direction; A5 reads by SDMA like A2/A3.
    """,
)
