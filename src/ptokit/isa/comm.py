"""Copies and collectives between devices, through a staging tile of the vector core.

A remote buffer is an ordinary GlobalTensor: the address decides on which device it lies, and no
instruction names a rank. Nothing here shakes hands: signals (TNOTIFY, TWAIT, TTEST) tell the other
side that data has arrived.
"""

from __future__ import annotations

from typing import Any

from ptokit.base.comm_enums import CollEngine
from ptokit.base.enums import AtomicType
from ptokit.isa.comm_ccu import broadcast, gather, ring, scatter
from ptokit.isa.comm_rules import (
    CCU,
    DEVICES,
    ENGINE,
    PIPES,
    chunk_rules,
    chunks,
    covers,
    engine_rules,
    group,
    group_rules,
    moved_types,
    only_root,
    same_layout,
    same_type,
    stacked,
    staging,
    tensor,
    twin_rules,
)
from ptokit.isa.rules import in_types
from ptokit.isa.spec import Attr, Rule, insn, rule

_ATOMIC_TYPES = "f16 f32 i16 i32 i8 bf16"
_CHUNK = "Vec tile; its valid region is the size of a chunk"
_PONG = "second tile, to overlap loads and stores"
_GROUP = "Group 3 {T} 16x64"


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


def _copy(dst: Any, src: Any, ctx: Any, atomic: AtomicType = AtomicType.AtomicNone) -> None:
    tile = ctx.ops.stagingTileData
    with ctx.staging("stagingTileData", "pongTile") as stage:
        stage.apart("dstGlobalData", dst, "srcGlobalData", src)
        parts = list(chunks(src.shape, tile.vr, tile.vc))
        for part in parts:
            stage.move(stage.part(src, part), [stage.part(dst, part)], atomic)
        if len(parts) > 1:
            stage.slid()


@insn(
    tensor("dstGlobalData", "out", "remote"),
    tensor("srcGlobalData", "in", "local; its extents define the transfer"),
    staging("stagingTileData", _CHUNK),
    staging("pongTile", _PONG, optional=True),
    name="comm.TPUT",
    attrs=[Attr("atomicType", AtomicType, AtomicType.AtomicNone, "add to what is there")],
    pipe=None,
    ops=PIPES,
    types=moved_types("srcGlobalData"),
    rules=[
        _copy_rules("TPUT"),
        rule(
            "TPUT-6",
            f"AtomicAdd works on {_ATOMIC_TYPES}",
            lambda o: (
                o.attrs["atomicType"] != AtomicType.AtomicAdd
                or in_types("dstGlobalData", _ATOMIC_TYPES)(o)
            ),
            DEVICES,
        ),
    ],
    asm=None,
    more_examples=[
        {"stagingTileData": "Vec f32 4x32", "pongTile": "Vec f32 4x32"},
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
    ctx: Any,
) -> None:
    """Copy a local tensor into the memory of another device.

    Chunk by chunk: TLOAD into the staging tile, TSTORE out of it, with event ids 0 (and 1, for a
    second tile) between MTE2 and MTE3 in both directions; the caller has none of these raised.
    AtomicType.AtomicAdd, in brackets or behind the tiles, adds to what is there. A tensor that fits
    the valid region of the tile goes at once; otherwise DYNAMIC valid sizes of the tile are left
    at those of the last chunk. The tiles hold garbage afterwards. When the call returns the stores
    are issued, not complete: order a TNOTIFY behind them with Event[Op.TSTORE_VEC, Op.SCALAR].
    """
    _copy(dstGlobalData, srcGlobalData, ctx, atomicType)


@insn(
    tensor("dstGlobalData", "out", "local"),
    tensor("srcGlobalData", "in", "remote; its extents define the transfer"),
    staging("stagingTileData", _CHUNK),
    staging("pongTile", _PONG, optional=True),
    name="comm.TGET",
    pipe=None,
    ops=PIPES,
    types=moved_types("srcGlobalData"),
    rules=_copy_rules("TGET"),
    asm=None,
    more_examples=[{"stagingTileData": "Vec f32 4x32", "pongTile": "Vec f32 4x32"}],
)
def TGET(
    dstGlobalData: Any, srcGlobalData: Any, stagingTileData: Any, pongTile: Any, ctx: Any
) -> None:
    """Copy a tensor from the memory of another device into local memory.

    As TPUT, in the other direction and without atomic addition: chunk by chunk through the staging
    tile, or in turns through two of them.
    """
    _copy(dstGlobalData, srcGlobalData, ctx)


# ---- collectives ---------------------------------------------------------------------------------


def _member(o: Any) -> tuple[int, ...]:
    return o.parallelGroup.shape


def _stack(o: Any) -> tuple[int, ...]:
    return stacked(o.parallelGroup.shape, o.parallelGroup.nranks)


def _collective_rules(id: str, other: str, drives: Any) -> list[Rule]:
    return [
        same_type("parallelGroup", other, "stagingTileData", id=f"{id}-1"),
        same_layout(other, "parallelGroup", f"{id}-2"),
        *group_rules(),
        *chunk_rules(drives, other, "stagingTileData", "pongTile"),
        *twin_rules("stagingTileData", "pongTile"),
        *engine_rules(f"{id}-E"),
    ]


_FORMS = [
    "parallelGroup {0} stagingTileData",
    "parallelGroup {0} stagingTileData pongTile",
    "parallelGroup {0} stagingTileData trigger",
    "parallelGroup {0} stagingTileData pongTile trigger",
]


def _forms(other: str) -> list[str]:
    return [form.format(other) for form in _FORMS]


@insn(
    group("out", "the buffers of the members, the root's own among them"),
    tensor("srcGlobalData", "in", "local to the root; its extents drive the loop"),
    staging("stagingTileData", _CHUNK),
    staging("pongTile", _PONG, optional=True),
    CCU,
    name="comm.TBROADCAST",
    attrs=[ENGINE],
    pipe=None,
    ops=PIPES,
    types=moved_types("srcGlobalData"),
    rules=[
        _collective_rules("TB", "srcGlobalData", _src),
        rule(
            "extents",
            "the buffers of the members cover srcGlobalData",
            lambda o: all(have >= need for have, need in zip(_member(o), _src(o), strict=True)),
            fix="give the members buffers of the extents of the source",
        ),
    ],
    forms=_forms("srcGlobalData"),
    asm=None,
    example={"parallelGroup": _GROUP},
    more_examples=[
        {
            "parallelGroup": "Group 2 f32 16x64",
            "stagingTileData": "Vec f32 4x32",
            "pongTile": "Vec f32 4x32",
        }
    ],
)
def TBROADCAST(
    parallelGroup: Any,
    srcGlobalData: Any,
    stagingTileData: Any,
    pongTile: Any,
    trigger: Any,
    engine: CollEngine,
    ctx: Any,
) -> None:
    """Write a tensor of the root into the buffer of every member, itself included.

    Only the root executes it. Each chunk is loaded once and stored to the members in the order of
    the group. The source may be the root's own buffer. Nobody is told: follow it with TNOTIFY.
    """
    if engine == CollEngine.CCU:
        ring(parallelGroup, trigger, srcGlobalData, ctx, "stagingTileData", broadcast)
        return
    only_root(parallelGroup, ctx, "TB-R")
    tile = ctx.ops.stagingTileData
    with ctx.staging("stagingTileData", "pongTile") as stage:
        for index, member in enumerate(parallelGroup):
            if index != parallelGroup.rootIdx or not ctx.same_view(member, srcGlobalData):
                stage.apart(f"parallelGroup[{index}]", member, "srcGlobalData", srcGlobalData)
        parts = list(chunks(srcGlobalData.shape, tile.vr, tile.vc))
        for part in parts:
            targets = [stage.part(member, part) for member in parallelGroup]
            stage.move(stage.part(srcGlobalData, part), targets)
        if len(parts) > 1:
            stage.slid()


@insn(
    group("in", "the buffers of the members; their extents (D0, D1, D2, H, W) drive the loop"),
    tensor("dstGlobalData", "out", "local to the root, at least (D0, D1, D2, N*H, W)"),
    staging("stagingTileData", _CHUNK),
    staging("pongTile", _PONG, optional=True),
    CCU,
    name="comm.TGATHER",
    attrs=[ENGINE],
    pipe=None,
    ops=PIPES,
    types=moved_types("dstGlobalData"),
    rules=[
        _collective_rules("TGA", "dstGlobalData", _member),
        covers("dstGlobalData", _stack, "TGA-3", "dstGlobalData has room for N*H rows"),
    ],
    forms=_forms("dstGlobalData"),
    asm=None,
    example={"parallelGroup": _GROUP, "dstGlobalData": "GM {T} 48x64"},
    more_examples=[
        {
            "parallelGroup": "Group 2 f32 16x64",
            "dstGlobalData": "GM f32 32x64",
            "stagingTileData": "Vec f32 4x32",
            "pongTile": "Vec f32 4x32",
        }
    ],
)
def TGATHER(
    parallelGroup: Any,
    dstGlobalData: Any,
    stagingTileData: Any,
    pongTile: Any,
    trigger: Any,
    engine: CollEngine,
    ctx: Any,
) -> None:
    """Read the buffer of every member and stack them along the rows of a local tensor.

    Only the root executes it. The buffer of member r lands in rows r*H up to (r+1)*H of dimension
    3; rows from N*H on are untouched. Not the gather of elements inside a tile, which is TGATHER
    without `comm`.
    """
    if engine == CollEngine.CCU:
        ring(parallelGroup, trigger, dstGlobalData, ctx, "stagingTileData", gather)
        return
    only_root(parallelGroup, ctx, "TGA-R")
    tile = ctx.ops.stagingTileData
    shape = parallelGroup.shape
    with ctx.staging("stagingTileData", "pongTile") as stage:
        for index, member in enumerate(parallelGroup):
            stage.apart("dstGlobalData", dstGlobalData, f"parallelGroup[{index}]", member)
        parts = list(chunks(shape, tile.vr, tile.vc))
        for index, member in enumerate(parallelGroup):
            for part in parts:
                row = stage.part(dstGlobalData, part.below(index * shape[3]))
                stage.move(stage.part(member, part), [row])
        if len(parts) > 1:
            stage.slid()


@insn(
    group("out", "the buffers of the members; their extents (D0, D1, D2, H, W) drive the loop"),
    tensor("srcGlobalData", "in", "local to the root, at least (D0, D1, D2, N*H, W)"),
    staging("stagingTileData", _CHUNK),
    staging("pongTile", _PONG, optional=True),
    CCU,
    name="comm.TSCATTER",
    attrs=[ENGINE],
    pipe=None,
    ops=PIPES,
    types=moved_types("srcGlobalData"),
    rules=[
        _collective_rules("TSC", "srcGlobalData", _member),
        covers("srcGlobalData", _stack, "TSC-3", "srcGlobalData has N*H rows"),
    ],
    forms=_forms("srcGlobalData"),
    asm=None,
    example={"parallelGroup": _GROUP, "srcGlobalData": "GM {T} 48x64"},
    more_examples=[
        {
            "parallelGroup": "Group 2 f32 16x64",
            "srcGlobalData": "GM f32 32x64",
            "stagingTileData": "Vec f32 4x32",
            "pongTile": "Vec f32 4x32",
        }
    ],
)
def TSCATTER(
    parallelGroup: Any,
    srcGlobalData: Any,
    stagingTileData: Any,
    pongTile: Any,
    trigger: Any,
    engine: CollEngine,
    ctx: Any,
) -> None:
    """Split a local tensor along its rows and write slice r into the buffer of member r.

    Only the root executes it. Rows r*H up to (r+1)*H of dimension 3 go to member r; rows from N*H
    on are not read. Not the scatter of elements inside a tile, which is TSCATTER without `comm`.
    """
    if engine == CollEngine.CCU:
        ring(parallelGroup, trigger, srcGlobalData, ctx, "stagingTileData", scatter)
        return
    only_root(parallelGroup, ctx, "TSC-R")
    tile = ctx.ops.stagingTileData
    shape = parallelGroup.shape
    with ctx.staging("stagingTileData", "pongTile") as stage:
        for index, member in enumerate(parallelGroup):
            stage.apart("srcGlobalData", srcGlobalData, f"parallelGroup[{index}]", member)
        parts = list(chunks(shape, tile.vr, tile.vc))
        for index, member in enumerate(parallelGroup):
            for part in parts:
                row = stage.part(srcGlobalData, part.below(index * shape[3]))
                stage.move(row, [stage.part(member, part)])
        if len(parts) > 1:
            stage.slid()
