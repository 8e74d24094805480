"""Copies and collectives between devices, through a staging tile of the vector core.

A remote buffer is an ordinary GlobalTensor: the address decides on which device it lies, and no
instruction names a rank. Nothing here shakes hands: signals (TNOTIFY, TWAIT, TTEST) tell the other
side that data has arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ptokit.base.comm_enums import CollEngine
from ptokit.base.enums import AtomicType
from ptokit.isa.comm_ccu import BROADCAST, GATHER, SCATTER, Job, ring
from ptokit.isa.comm_rules import (
    CCU,
    DEVICES,
    ENGINE,
    PIPES,
    Chunk,
    ShapeOf,
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
    stacked,
    staged_text,
    staging,
    tensor,
    twin_rules,
)
from ptokit.isa.costs import COMMUNICATION
from ptokit.isa.facts import Ops
from ptokit.isa.rules import in_types, must
from ptokit.isa.services import World
from ptokit.isa.spec import Attr, Insn, Operand, Rule, insn

_ATOMIC_TYPES = "f16 f32 i16 i32 i8 bf16"
_TILES = (
    staging("stagingTileData", "Vec tile; its valid region is the size of a chunk"),
    staging("pongTile", "second tile, to overlap loads and stores", optional=True),
)
_TILE_NAMES = tuple(tile.name for tile in _TILES)
_TWO_TILES = dict.fromkeys(_TILE_NAMES, "Vec f32 4x32")
_through_tiles = partial(insn, pipe=None, ops=PIPES, cost=COMMUNICATION)


# ---- from one device to another ------------------------------------------------------------------


def _src(o: Any) -> tuple[int, ...]:
    return o.srcGlobalData.shape


def _copying(
    name: str, dst: str, src: str, *rules: Rule, **more: Any
) -> Callable[[Callable[..., None]], Insn]:
    """A copy of a whole tensor; `dst` and `src` say on which device the two lie."""
    tensors = ("dstGlobalData", "srcGlobalData")
    return _through_tiles(
        tensor(tensors[0], "out", dst),
        tensor(tensors[1], "in", f"{src}; its extents define the transfer"),
        *_TILES,
        name=f"comm.{name}",
        asm=staged_text(f"comm.{name}", " ".join(tensors), "buf", *_TILE_NAMES),
        types=moved_types("srcGlobalData"),
        rules=[
            same_type(*tensors, "stagingTileData", id=f"{name}-1"),
            same_layout(*tensors, f"{name}-2"),
            *chunk_rules(_src, "srcGlobalData", *_TILE_NAMES),
            covers("dstGlobalData", _src, f"{name}-4", "dstGlobalData covers srcGlobalData"),
            *twin_rules(*_TILE_NAMES),
            *rules,
        ],
        **more,
    )


def _copy(
    operands: Any, ops: Ops, world: World, atomic: AtomicType = AtomicType.AtomicNone
) -> None:
    dst, src, *_ = operands
    with world.staging(*_TILE_NAMES) as stage:
        stage.apart("dstGlobalData", dst, "srcGlobalData", src)
        parts = list(chunks(src.shape, ops.stagingTileData.vr, ops.stagingTileData.vc))
        for part in parts:
            stage.move(stage.part(src, part), [stage.part(dst, part)], atomic)
        if len(parts) > 1:
            stage.slid()


@_copying(
    "TPUT",
    "remote",
    "local",
    must("TPUT-6", DEVICES, lambda o: o.attrs["atomicType"] == AtomicType.AtomicAdd)(
        f"AtomicAdd works on {_ATOMIC_TYPES}", in_types("dstGlobalData", _ATOMIC_TYPES)
    ),
    attrs=[Attr("atomicType", AtomicType, AtomicType.AtomicNone, "add to what is there")],
    more_examples=[
        _TWO_TILES,
        {
            **dict.fromkeys(("dstGlobalData", "srcGlobalData"), "GM f16 2x1x3x10x40"),
            "stagingTileData": "Vec f16 4x32 valid ?x?",
        },
    ],
)
def TPUT(*operands: Any, atomicType: AtomicType, ops: Ops, world: World) -> None:
    """Copy a local tensor into the memory of another device.

    Chunk by chunk: TLOAD into the staging tile, TSTORE out of it, with event ids 0 (and 1, for a
    second tile) between MTE2 and MTE3 in both directions; the caller has none of these raised.
    AtomicType.AtomicAdd, in brackets or after the tiles, adds to what is there. A tensor that fits
    the valid region of the tile goes at once; otherwise DYNAMIC valid sizes of the tile are left
    at those of the last chunk. The tiles hold garbage afterwards. When the call returns the stores
    are issued, not complete: order a TNOTIFY after them with Event[Op.TSTORE_VEC, Op.SCALAR].
    """
    _copy(operands, ops, world, atomicType)


@_copying("TGET", "local", "remote", more_examples=[_TWO_TILES])
def TGET(*operands: Any, ops: Ops, world: World) -> None:
    """Copy a tensor from the memory of another device into local memory.

    As TPUT, in the other direction and without atomic addition: chunk by chunk through the staging
    tile, or in turns through two of them.
    """
    _copy(operands, ops, world)


# ---- collectives ---------------------------------------------------------------------------------

Move = Callable[[Any, list[Chunk], Any, Any], None]  # staging tiles, chunks, members, own tensor


def _member(o: Any) -> tuple[int, ...]:
    return o.parallelGroup.shape


def _stack(o: Any) -> tuple[int, ...]:
    return stacked(o.parallelGroup.shape, o.parallelGroup.nranks)


def _collective(
    id: str, job: Job, members: Operand, own: Operand, drives: ShapeOf, covered: Rule
) -> Callable[[Move], Insn]:
    """A collective that moves data between members and the root's `own` tensor.

    `drives` gives the extents that are divided into chunks. The function moves them, on the root;
    with the collective unit the job does.
    """
    stacks = drives is _member  # the root's tensor has the rows of all members
    forms = ("", " pongTile", " trigger", " pongTile trigger")
    name = f"comm.{job.name}"

    def define(move: Move) -> Insn:
        def body(*operands: Any, engine: CollEngine, ops: Ops, world: World) -> None:
            group, mine, *_, trigger = operands
            if engine == CollEngine.CCU:
                ring(job, group, trigger, mine, ops, world)
                return
            only_root(group, world, f"{id}-R")
            tile = ops.stagingTileData
            with world.staging(*_TILE_NAMES) as stage:
                for index, member in enumerate(group):
                    # The source of a broadcast may be the root's own buffer.
                    is_root = not stacks and index == group.rootIdx
                    if not (is_root and world.same_view(member, mine)):
                        stage.apart(own.name, mine, f"parallelGroup[{index}]", member)
                parts = list(chunks(drives(ops), tile.vr, tile.vc))
                move(stage, parts, group, mine)
                if len(parts) > 1:
                    stage.slid()

        return _through_tiles(
            members,
            own,
            *_TILES,
            CCU,
            name=name,
            doc=move.__doc__ or "",
            attrs=[ENGINE],
            asm=collective_text(name, own.name),
            types=moved_types(own.name),
            rules=[
                same_type("parallelGroup", own.name, "stagingTileData", id=f"{id}-1"),
                same_layout(own.name, "parallelGroup", f"{id}-2"),
                *group_rules(),
                *chunk_rules(drives, own.name, *_TILE_NAMES),
                *twin_rules(*_TILE_NAMES),
                *engine_rules(f"{id}-E"),
                covered,
            ],
            forms=[f"parallelGroup {own.name} stagingTileData{last}" for last in forms],
            example={"parallelGroup": "Group 3 {T} 16x64"}
            | ({own.name: "GM {T} 48x64"} if stacks else {}),
            more_examples=[
                {"parallelGroup": "Group 2 f32 16x64", **_TWO_TILES}
                | ({own.name: "GM f32 32x64"} if stacks else {})
            ],
        )(body)

    return define


@_collective(
    "TB",
    BROADCAST,
    group("out", "the buffers of the members, the root's own among them"),
    tensor("srcGlobalData", "in", "local to the root; its extents drive the loop"),
    _src,
    must("extents")(
        "the buffers of the members cover srcGlobalData",
        lambda o: all(have >= need for have, need in zip(_member(o), _src(o), strict=True)),
        "give the members buffers of the extents of the source",
    ),
)
def TBROADCAST(stage: Any, parts: list[Chunk], members: Any, src: Any) -> None:
    """Write a tensor of the root into the buffer of every member, itself included.

    Only the root executes it. Each chunk is loaded once and stored to the members in the order of
    the group. The source may be the root's own buffer. Nobody is told: follow it with TNOTIFY.
    """
    for part in parts:
        stage.move(stage.part(src, part), [stage.part(member, part) for member in members])


@_collective(
    "TGA",
    GATHER,
    group("in", "the buffers of the members; their extents (D0, D1, D2, H, W) drive the loop"),
    tensor("dstGlobalData", "out", "local to the root, at least (D0, D1, D2, N*H, W)"),
    _member,
    covers("dstGlobalData", _stack, "TGA-3", "dstGlobalData has room for N*H rows"),
)
def TGATHER(stage: Any, parts: list[Chunk], members: Any, dst: Any) -> None:
    """Read the buffer of every member and stack them along the rows of a local tensor.

    Only the root executes it. The buffer of member r lands in rows r*H up to (r+1)*H of dimension
    3; rows from N*H on are untouched. Not the gather of elements inside a tile, which is TGATHER
    without `comm`.
    """
    for index, member in enumerate(members):
        for part in parts:
            row = part.below(index * members.shape[3])
            stage.move(stage.part(member, part), [stage.part(dst, row)])


@_collective(
    "TSC",
    SCATTER,
    group("out", "the buffers of the members; their extents (D0, D1, D2, H, W) drive the loop"),
    tensor("srcGlobalData", "in", "local to the root, at least (D0, D1, D2, N*H, W)"),
    _member,
    covers("srcGlobalData", _stack, "TSC-3", "srcGlobalData has N*H rows"),
)
def TSCATTER(stage: Any, parts: list[Chunk], members: Any, src: Any) -> None:
    """Split a local tensor along its rows and write slice r into the buffer of member r.

    Only the root executes it. Rows r*H up to (r+1)*H of dimension 3 go to member r; rows from N*H
    on are not read. Not the scatter of elements inside a tile, which is TSCATTER without `comm`.
    """
    for index, member in enumerate(members):
        for part in parts:
            row = part.below(index * members.shape[3])
            stage.move(stage.part(src, row), [stage.part(member, part)])
