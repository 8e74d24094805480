"""TREDUCE: the collective that computes."""

from __future__ import annotations

from typing import Any

from ptokit.base.comm_enums import CollEngine, ReduceOp
from ptokit.isa.comm_ccu import COMBINES, reduction, ring
from ptokit.isa.comm_rules import (
    CCU,
    ENGINE,
    chunk_rules,
    chunks,
    collective_text,
    covers,
    engine_rules,
    group,
    group_rules,
    moved_types,
    only_root,
    same_layout,
    same_type,
    staging,
    tensor,
)
from ptokit.isa.costs import COMMUNICATION
from ptokit.isa.facts import Ops
from ptokit.isa.freedom import reassociates
from ptokit.isa.rules import disjoint, must, same_valid
from ptokit.isa.services import World
from ptokit.isa.spec import Attr, Pipe, insn

_RECEIVING = ("recvTileData", "pingTileData", "pongTileData")
_ACC = 0  # the accumulator among the staging tiles; the receiving ones follow


def _member(o: Any) -> tuple[int, ...]:
    return o.parallelGroup.shape


@insn(
    group("in", "the buffers of the members; extents and strides of the root's drive the loop"),
    tensor("dstGlobalData", "out", "local to the root"),
    staging("accTileData", "accumulator, a Vec tile; its valid region is the size of a chunk"),
    staging("recvTileData", "receives the buffers of the others", optional=True),
    staging("pingTileData", "receives in turn with pongTileData", optional=True),
    staging("pongTileData", optional=True),
    CCU,
    name="comm.TREDUCE",
    attrs=[ENGINE, Attr("op", ReduceOp, None, "Sum, Max or Min", argument=True)],
    pipe=None,
    ops={"TLOAD": Pipe.MTE2, "TADD, TMAX, TMIN": Pipe.V, "TSTORE_VEC": Pipe.MTE3},
    types=moved_types("dstGlobalData", *(record.types[0] for record in COMBINES.values())),
    rules=[
        same_type("parallelGroup", "dstGlobalData", "accTileData", id="TR-1"),
        same_layout("dstGlobalData", "parallelGroup", "TR-2"),
        must("TR-4")(
            "op is ReduceOp.Sum, ReduceOp.Max or ReduceOp.Min",
            lambda o: o.attrs["op"] in tuple(ReduceOp),
            "TREDUCE(group, dst, acc, recv, ReduceOp.Sum)",
        ),
        must("TR-5")(
            "the receiving tiles have the type of accTileData",
            lambda o: all(o[n] is None or o[n].spec == o.accTileData.spec for n in _RECEIVING),
            "declare the tiles with one Tile[...] type",
        ),
        disjoint("accTileData", *_RECEIVING, id="TR-5"),
        same_valid("accTileData", *_RECEIVING, id="TR-5"),
        *group_rules(),
        *chunk_rules(_member, "parallelGroup", "accTileData", *_RECEIVING),
        covers("dstGlobalData", _member, "extents", "dstGlobalData covers the buffer of a member"),
        *engine_rules("TR-E"),
    ],
    forms=[
        f"parallelGroup dstGlobalData accTileData {tiles}{trigger}"
        for trigger in ("", " trigger")
        for tiles in ("recvTileData", "pingTileData pongTileData")
    ],
    asm=collective_text(
        "comm.TREDUCE", "dstGlobalData accTileData", "recvTileData|pingTileData", "pongTileData"
    ),
    cost=COMMUNICATION,
    example={"parallelGroup": "Group 3 {T} 16x64", "op": "Sum"},
    more_examples=[
        {
            "parallelGroup": "Group 4 f32 16x64",
            **dict.fromkeys(("accTileData", *_RECEIVING[1:]), "Vec f32 4x32"),
            "op": "Max",
        }
    ],
    freedom=reassociates(
        "The order is fixed - the root, then the others ascending - so results are the same on "
        "every run; the collective unit may choose another order, and the reference uses this one."
    ),
)
def TREDUCE(*operands: Any, engine: CollEngine, op: ReduceOp, ops: Ops, world: World) -> None:
    """Combine the buffers of all members element by element and store the result at the root.

    Only the root executes it. For each chunk the root's buffer is loaded into the accumulator, the
    others follow in ascending order and are combined with TADD, TMAX or TMIN in the element type:
    no wider accumulator. The destination may be the root's own buffer. With two receiving tiles
    the load of the next buffer overlaps the combination of the current one; results are the same.
    """
    members, dst, *_, trigger = operands
    if engine == CollEngine.CCU:
        ring(reduction(op, members.rootIdx), members, trigger, dst, ops, world)
        return
    only_root(members, world, "TR-R")
    tile = ops.accTileData
    root = members[members.rootIdx]
    others = [m for index, m in enumerate(members) if index != members.rootIdx]
    with world.staging("accTileData", *_RECEIVING) as stage:
        for member in others if world.same_view(dst, root) else [root, *others]:
            stage.apart("dstGlobalData", dst, "the buffer of a member", member)
        parts = list(chunks(root.shape, tile.vr, tile.vc))
        for part in parts:
            chunk = stage.part(root, part)
            _reduce(stage, chunk, [stage.part(m, part) for m in others], COMBINES[op].name)
            stage.store(_ACC, stage.part(dst, part))
            stage.order(Pipe.MTE3, Pipe.MTE2, 0)
        if len(parts) > 1:
            stage.slid()


def _reduce(stage: Any, chunk: Any, others: list[Any], combine: str) -> None:
    """Bring one chunk of all members together in the accumulator."""
    receivers = len(stage.tiles) - 1
    stage.load(_ACC, chunk)
    if not others:
        stage.order(Pipe.MTE2, Pipe.MTE3, 0)
        return
    stage.give(Pipe.MTE2, Pipe.V, 0)
    for turn, other in enumerate(others):
        tile = 1 + turn % receivers
        if receivers == 1:  # the one tile is free when it has been combined
            stage.take(Pipe.V, Pipe.MTE2, 0)
        stage.load(tile, other)
        stage.give(Pipe.MTE2, Pipe.V, tile)
        stage.take(Pipe.MTE2, Pipe.V, 0)
        stage.take(Pipe.MTE2, Pipe.V, tile)
        stage.combine(combine, _ACC, tile, chunk)
        # Raising the flag again takes the one before: MTE2 lags two combinations behind at most.
        stage.give(Pipe.V, Pipe.MTE2, 0)
    stage.order(Pipe.V, Pipe.MTE3, 0)
