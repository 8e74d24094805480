"""Copies and collectives between devices, through a staging tile of the vector core.

A remote buffer is an ordinary GlobalTensor: the address decides on which device it lies, and no
instruction names a rank. Nothing here shakes hands: signals (TNOTIFY, TWAIT, TTEST) tell the other
side that data has arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

from ptokit.base.comm_enums import CollEngine
from ptokit.base.enums import AtomicType
from ptokit.isa.comm_ccu import BROADCAST, GATHER, SCATTER, ring
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
from ptokit.isa.spec import Asm, Attr, Insn, Operand, Rule, insn

_ATOMIC_TYPES = "f16 f32 i16 i32 i8 bf16"
_TILES = (
    staging("stagingTileData", "Vec tile; its valid region is the size of a chunk"),
    staging("pongTile", "second tile, to overlap loads and stores", optional=True),
)
_TWO_TILES = {"stagingTileData": "Vec f32 4x32", "pongTile": "Vec f32 4x32"}
_through_tiles = partial(insn, pipe=None, ops=PIPES, cost=COMMUNICATION)


def _moved_text(name: str) -> Asm:
    tiles = (tile.name for tile in _TILES)
    return staged_text(name, "dstGlobalData srcGlobalData", "buf", *tiles)


# ---- from one device to another ------------------------------------------------------------------


def _src(o: Any) -> tuple[int, ...]:
    return o.srcGlobalData.shape


def _copy_rules(name: str) -> list[Rule]:
    return [
        same_type("dstGlobalData", "srcGlobalData", "stagingTileData", id=f"{name}-1"),
        same_layout("dstGlobalData", "srcGlobalData", f"{name}-2"),
        *chunk_rules(_src, "srcGlobalData", "stagingTileData", "pongTile"),
        covers("dstGlobalData", _src, f"{name}-4", "dstGlobalData covers srcGlobalData"),
        *twin_rules("stagingTileData", "pongTile"),
    ]


def _copy(
    dst: Any, src: Any, ops: Ops, world: World, atomic: AtomicType = AtomicType.AtomicNone
) -> None:
    with world.staging("stagingTileData", "pongTile") as stage:
        stage.apart("dstGlobalData", dst, "srcGlobalData", src)
        parts = list(chunks(src.shape, ops.stagingTileData.vr, ops.stagingTileData.vc))
        for part in parts:
            stage.move(stage.part(src, part), [stage.part(dst, part)], atomic)
        if len(parts) > 1:
            stage.slid()


@_through_tiles(
    tensor("dstGlobalData", "out", "remote"),
    tensor("srcGlobalData", "in", "local; its extents define the transfer"),
    *_TILES,
    name="comm.TPUT",
    asm=_moved_text("comm.TPUT"),
    attrs=[Attr("atomicType", AtomicType, AtomicType.AtomicNone, "add to what is there")],
    types=moved_types("srcGlobalData"),
    rules=[
        _copy_rules("TPUT"),
        must("TPUT-6", DEVICES)(
            f"AtomicAdd works on {_ATOMIC_TYPES}",
            lambda o: (
                o.attrs["atomicType"] != AtomicType.AtomicAdd
                or in_types("dstGlobalData", _ATOMIC_TYPES)(o)
            ),
        ),
    ],
    more_examples=[
        _TWO_TILES,
        {
            "dstGlobalData": "GM f16 2x1x3x10x40",
            "srcGlobalData": "GM f16 2x1x3x10x40",
            "stagingTileData": "Vec f16 4x32 valid ?x?",
        },
    ],
)
def TPUT(
    dstGlobalData: Any,
    srcGlobalData: Any,
    stagingTileData: Any,
    pongTile: Any,
    atomicType: AtomicType,
    ops: Ops,
    world: World,
) -> None:
    """Copy a local tensor into the memory of another device.

    Chunk by chunk: TLOAD into the staging tile, TSTORE out of it, with event ids 0 (and 1, for a
    second tile) between MTE2 and MTE3 in both directions; the caller has none of these raised.
    AtomicType.AtomicAdd, in brackets or behind the tiles, adds to what is there. A tensor that fits
    the valid region of the tile goes at once; otherwise DYNAMIC valid sizes of the tile are left
    at those of the last chunk. The tiles hold garbage afterwards. When the call returns the stores
    are issued, not complete: order a TNOTIFY behind them with Event[Op.TSTORE_VEC, Op.SCALAR].
    """
    _copy(dstGlobalData, srcGlobalData, ops, world, atomicType)


@_through_tiles(
    tensor("dstGlobalData", "out", "local"),
    tensor("srcGlobalData", "in", "remote; its extents define the transfer"),
    *_TILES,
    name="comm.TGET",
    asm=_moved_text("comm.TGET"),
    types=moved_types("srcGlobalData"),
    rules=_copy_rules("TGET"),
    more_examples=[_TWO_TILES],
)
def TGET(
    dstGlobalData: Any,
    srcGlobalData: Any,
    stagingTileData: Any,
    pongTile: Any,
    ops: Ops,
    world: World,
) -> None:
    """Copy a tensor from the memory of another device into local memory.

    As TPUT, in the other direction and without atomic addition: chunk by chunk through the staging
    tile, or in turns through two of them.
    """
    _copy(dstGlobalData, srcGlobalData, ops, world)


# ---- collectives ---------------------------------------------------------------------------------


def _member(o: Any) -> tuple[int, ...]:
    return o.parallelGroup.shape


def _stack(o: Any) -> tuple[int, ...]:
    return stacked(o.parallelGroup.shape, o.parallelGroup.nranks)


def _collective(
    id: str, members: Operand, own: Operand, drives: ShapeOf, covered: Rule, **more: Any
) -> Callable[[Callable[..., None]], Insn]:
    """A collective that moves data between members and the root's `own` tensor.

    `drives` gives the extents that are divided into chunks.
    """
    stacks = drives is _member  # the root's tensor has the rows of all members
    forms = ("", " pongTile", " trigger", " pongTile trigger")
    return _through_tiles(
        members,
        own,
        *_TILES,
        CCU,
        attrs=[ENGINE],
        asm=collective_text(more["name"], own.name),
        types=moved_types(own.name),
        rules=[
            same_type("parallelGroup", own.name, "stagingTileData", id=f"{id}-1"),
            same_layout(own.name, "parallelGroup", f"{id}-2"),
            *group_rules(),
            *chunk_rules(drives, own.name, "stagingTileData", "pongTile"),
            *twin_rules("stagingTileData", "pongTile"),
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
        **more,
    )


@contextmanager
def _at_root(
    id: str, members: Any, name: str, own: Any, drives: ShapeOf, ops: Ops, world: World
) -> Generator[tuple[Any, list[Chunk]]]:
    """The staging tiles and the chunks of a collective that this rank, the root, executes."""
    only_root(members, world, id)
    tile = ops.stagingTileData
    with world.staging("stagingTileData", "pongTile") as stage:
        for index, member in enumerate(members):
            # The source of a broadcast may be the root's own buffer.
            is_own = drives is _src and index == members.rootIdx and world.same_view(member, own)
            if not is_own:
                stage.apart(name, own, f"parallelGroup[{index}]", member)
        parts = list(chunks(drives(ops), tile.vr, tile.vc))
        yield stage, parts
        if len(parts) > 1:
            stage.slid()


@_collective(
    "TB",
    group("out", "the buffers of the members, the root's own among them"),
    tensor("srcGlobalData", "in", "local to the root; its extents drive the loop"),
    _src,
    must("extents")(
        "the buffers of the members cover srcGlobalData",
        lambda o: all(have >= need for have, need in zip(_member(o), _src(o), strict=True)),
        "give the members buffers of the extents of the source",
    ),
    name="comm.TBROADCAST",
)
def TBROADCAST(
    parallelGroup: Any,
    srcGlobalData: Any,
    stagingTileData: Any,
    pongTile: Any,
    trigger: Any,
    engine: CollEngine,
    ops: Ops,
    world: World,
) -> None:
    """Write a tensor of the root into the buffer of every member, itself included.

    Only the root executes it. Each chunk is loaded once and stored to the members in the order of
    the group. The source may be the root's own buffer. Nobody is told: follow it with TNOTIFY.
    """
    if engine == CollEngine.CCU:
        ring(BROADCAST, parallelGroup, trigger, srcGlobalData, ops, world)
        return
    own = ("srcGlobalData", srcGlobalData)
    with _at_root("TB-R", parallelGroup, *own, _src, ops, world) as (stage, parts):
        for part in parts:
            targets = [stage.part(member, part) for member in parallelGroup]
            stage.move(stage.part(srcGlobalData, part), targets)


@_collective(
    "TGA",
    group("in", "the buffers of the members; their extents (D0, D1, D2, H, W) drive the loop"),
    tensor("dstGlobalData", "out", "local to the root, at least (D0, D1, D2, N*H, W)"),
    _member,
    covers("dstGlobalData", _stack, "TGA-3", "dstGlobalData has room for N*H rows"),
    name="comm.TGATHER",
)
def TGATHER(
    parallelGroup: Any,
    dstGlobalData: Any,
    stagingTileData: Any,
    pongTile: Any,
    trigger: Any,
    engine: CollEngine,
    ops: Ops,
    world: World,
) -> None:
    """Read the buffer of every member and stack them along the rows of a local tensor.

    Only the root executes it. The buffer of member r lands in rows r*H up to (r+1)*H of dimension
    3; rows from N*H on are untouched. Not the gather of elements inside a tile, which is TGATHER
    without `comm`.
    """
    if engine == CollEngine.CCU:
        ring(GATHER, parallelGroup, trigger, dstGlobalData, ops, world)
        return
    own = ("dstGlobalData", dstGlobalData)
    with _at_root("TGA-R", parallelGroup, *own, _member, ops, world) as (stage, parts):
        for index, member in enumerate(parallelGroup):
            for part in parts:
                row = part.below(index * parallelGroup.shape[3])
                stage.move(stage.part(member, part), [stage.part(dstGlobalData, row)])


@_collective(
    "TSC",
    group("out", "the buffers of the members; their extents (D0, D1, D2, H, W) drive the loop"),
    tensor("srcGlobalData", "in", "local to the root, at least (D0, D1, D2, N*H, W)"),
    _member,
    covers("srcGlobalData", _stack, "TSC-3", "srcGlobalData has N*H rows"),
    name="comm.TSCATTER",
)
def TSCATTER(
    parallelGroup: Any,
    srcGlobalData: Any,
    stagingTileData: Any,
    pongTile: Any,
    trigger: Any,
    engine: CollEngine,
    ops: Ops,
    world: World,
) -> None:
    """Split a local tensor along its rows and write slice r into the buffer of member r.

    Only the root executes it. Rows r*H up to (r+1)*H of dimension 3 go to member r; rows from N*H
    on are not read. Not the scatter of elements inside a tile, which is TSCATTER without `comm`.
    """
    if engine == CollEngine.CCU:
        ring(SCATTER, parallelGroup, trigger, srcGlobalData, ops, world)
        return
    own = ("srcGlobalData", srcGlobalData)
    with _at_root("TSC-R", parallelGroup, *own, _member, ops, world) as (stage, parts):
        for index, member in enumerate(parallelGroup):
            for part in parts:
                row = part.below(index * parallelGroup.shape[3])
                stage.move(stage.part(srcGlobalData, row), [stage.part(member, part)])
