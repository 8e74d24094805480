# The instructions as editors see them (between devices): names, signatures, documentation.
# Generated from the instruction table by tools/gen.py; do not edit.
# pyright: reportIncompatibleMethodOverride=false

from typing import Any, overload

from ptokit.frontend.instruction import Instruction, RecordEvent, Waitable
from ptokit.frontend.tensor_types import GlobalTensor
from ptokit.frontend.types import Tile
from ptokit.machine.asynchronous import AsyncEvent, AsyncSession

Wait = RecordEvent | Waitable

class _TBROADCAST(Instruction):
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        srcGlobalData: GlobalTensor,
        stagingTileData: Tile,
        *events: Wait,
        engine: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        srcGlobalData: GlobalTensor,
        stagingTileData: Tile,
        pongTile: Tile,
        *events: Wait,
        engine: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        srcGlobalData: GlobalTensor,
        stagingTileData: Tile,
        trigger: Any,
        *events: Wait,
        engine: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        srcGlobalData: GlobalTensor,
        stagingTileData: Tile,
        pongTile: Tile,
        trigger: Any,
        *events: Wait,
        engine: Any = ...,
    ) -> RecordEvent: ...

TBROADCAST: _TBROADCAST
"""Write a tensor of the root into the buffer of every member, itself included.

Only the root executes it. Each chunk is loaded once and stored to the members in the order of
the group. The source may be the root's own buffer. Nobody is told: follow it with TNOTIFY."""

class _TGATHER(Instruction):
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        dstGlobalData: GlobalTensor,
        stagingTileData: Tile,
        *events: Wait,
        engine: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        dstGlobalData: GlobalTensor,
        stagingTileData: Tile,
        pongTile: Tile,
        *events: Wait,
        engine: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        dstGlobalData: GlobalTensor,
        stagingTileData: Tile,
        trigger: Any,
        *events: Wait,
        engine: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        dstGlobalData: GlobalTensor,
        stagingTileData: Tile,
        pongTile: Tile,
        trigger: Any,
        *events: Wait,
        engine: Any = ...,
    ) -> RecordEvent: ...

TGATHER: _TGATHER
"""Read the buffer of every member and stack them along the rows of a local tensor.

Only the root executes it. The buffer of member r lands in rows r*H up to (r+1)*H of dimension
3; rows from N*H on are untouched. Not the gather of elements inside a tile, which is TGATHER
without `comm`."""

class _TGET(Instruction):
    @overload
    def __call__(
        self,
        dstGlobalData: GlobalTensor,
        srcGlobalData: GlobalTensor,
        stagingTileData: Tile,
        *events: Wait,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dstGlobalData: GlobalTensor,
        srcGlobalData: GlobalTensor,
        stagingTileData: Tile,
        pongTile: Tile,
        *events: Wait,
    ) -> RecordEvent: ...

TGET: _TGET
"""Copy a tensor from the memory of another device into local memory.

As TPUT, in the other direction and without atomic addition: chunk by chunk through the staging
tile, or in turns through two of them."""

class _TGET_ASYNC(Instruction):
    @overload
    def __call__(
        self,
        dstGlobalData: GlobalTensor,
        srcGlobalData: GlobalTensor,
        session: AsyncSession,
        *events: Wait,
        engine: Any = ...,
    ) -> AsyncEvent: ...
    @overload
    def __call__(
        self,
        dstGlobalData: GlobalTensor,
        srcGlobalData: GlobalTensor,
        session: AsyncSession,
        peer: int,
        *events: Wait,
        engine: Any = ...,
    ) -> AsyncEvent: ...

TGET_ASYNC: _TGET_ASYNC
"""Start a copy of a flat range from the memory of another device and return its AsyncEvent.

As TPUT_ASYNC, in the other direction; A5 reads by SDMA like A2/A3."""

class _TNOTIFY(Instruction):
    def __call__(
        self, dstSignalData: GlobalTensor, value: int, *events: Wait, op: Any = ...
    ) -> RecordEvent: ...

TNOTIFY: _TNOTIFY
"""Set a signal, usually of another device, or add to it atomically.

One 32-bit word is written, whatever the shape; sums wrap around. The scalar unit does it at
once and only afterwards waits for all pipes: data the signal announces must be stored before,
Event[Op.TSTORE_VEC, Op.SCALAR] sees to that. Give signals that different devices Set a cache
line of 64 bytes each."""

class _TPUT(Instruction):
    @overload
    def __call__(
        self,
        dstGlobalData: GlobalTensor,
        srcGlobalData: GlobalTensor,
        stagingTileData: Tile,
        *events: Wait,
        atomicType: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dstGlobalData: GlobalTensor,
        srcGlobalData: GlobalTensor,
        stagingTileData: Tile,
        pongTile: Tile,
        *events: Wait,
        atomicType: Any = ...,
    ) -> RecordEvent: ...

TPUT: _TPUT
"""Copy a local tensor into the memory of another device.

Chunk by chunk: TLOAD into the staging tile, TSTORE out of it, with event ids 0 (and 1, for a
second tile) between MTE2 and MTE3 in both directions; the caller has none of these raised.
AtomicType.AtomicAdd, in brackets or after the tiles, adds to what is there. A tensor that fits
the valid region of the tile goes at once; otherwise DYNAMIC valid sizes of the tile are left
at those of the last chunk. The tiles hold garbage afterwards. When the call returns the stores
are issued, not complete: order a TNOTIFY after them with Event[Op.TSTORE_VEC, Op.SCALAR]."""

class _TPUT_ASYNC(Instruction):
    @overload
    def __call__(
        self,
        dstGlobalData: GlobalTensor,
        srcGlobalData: GlobalTensor,
        session: AsyncSession,
        *events: Wait,
        engine: Any = ...,
    ) -> AsyncEvent: ...
    @overload
    def __call__(
        self,
        dstGlobalData: GlobalTensor,
        srcGlobalData: GlobalTensor,
        session: AsyncSession,
        peer: int,
        *events: Wait,
        engine: Any = ...,
    ) -> AsyncEvent: ...

TPUT_ASYNC: _TPUT_ASYNC
"""Start a copy of a flat range to the memory of another device and return its AsyncEvent.

`event.Wait(session)` waits for it; until then do not touch the destination, nor write the
source. Completion of an SDMA event implies that of all earlier ones of its session. On A5 the
SDMA engine cannot write outwards: the core copies through the scratch tile of the session, and
the event has nothing to wait for. The scratch tile holds garbage afterwards."""

class _TREDUCE(Instruction):
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        dstGlobalData: GlobalTensor,
        accTileData: Tile,
        recvTileData: Tile,
        *events: Wait,
        engine: Any = ...,
        op: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        dstGlobalData: GlobalTensor,
        accTileData: Tile,
        pingTileData: Tile,
        pongTileData: Tile,
        *events: Wait,
        engine: Any = ...,
        op: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        dstGlobalData: GlobalTensor,
        accTileData: Tile,
        recvTileData: Tile,
        trigger: Any,
        *events: Wait,
        engine: Any = ...,
        op: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        dstGlobalData: GlobalTensor,
        accTileData: Tile,
        pingTileData: Tile,
        pongTileData: Tile,
        trigger: Any,
        *events: Wait,
        engine: Any = ...,
        op: Any = ...,
    ) -> RecordEvent: ...

TREDUCE: _TREDUCE
"""Combine the buffers of all members element by element and store the result at the root.

Only the root executes it. For each chunk the root's buffer is loaded into the accumulator, the
others follow in ascending order and are combined with TADD, TMAX or TMIN in the element type:
no wider accumulator. The destination may be the root's own buffer. With two receiving tiles
the load of the next buffer overlaps the combination of the current one; results are the same."""

class _TSCATTER(Instruction):
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        srcGlobalData: GlobalTensor,
        stagingTileData: Tile,
        *events: Wait,
        engine: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        srcGlobalData: GlobalTensor,
        stagingTileData: Tile,
        pongTile: Tile,
        *events: Wait,
        engine: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        srcGlobalData: GlobalTensor,
        stagingTileData: Tile,
        trigger: Any,
        *events: Wait,
        engine: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        parallelGroup: Any,
        srcGlobalData: GlobalTensor,
        stagingTileData: Tile,
        pongTile: Tile,
        trigger: Any,
        *events: Wait,
        engine: Any = ...,
    ) -> RecordEvent: ...

TSCATTER: _TSCATTER
"""Split a local tensor along its rows and write slice r into the buffer of member r.

Only the root executes it. Rows r*H up to (r+1)*H of dimension 3 go to member r; rows from N*H
on are not read. Not the scatter of elements inside a tile, which is TSCATTER without `comm`."""

class _TTEST(Instruction):
    def __call__(
        self, signalData: GlobalTensor, cmpValue: int, *events: Wait, cmp: Any = ...
    ) -> bool: ...

TTEST: _TTEST
"""Whether every element of a signal region satisfies a comparison now.

As TWAIT, but it looks once. A test that fails lets the other ranks of a running World go on,
so a loop around it sees their signals."""

class _TWAIT(Instruction):
    def __call__(
        self, signalData: GlobalTensor, cmpValue: int, *events: Wait, cmp: Any = ...
    ) -> RecordEvent: ...

TWAIT: _TWAIT
"""Wait until every element of a signal region satisfies a comparison.

The comparison is signed: element cmp cmpValue. The signal is looked at, not consumed: use
growing counters, or set it back before its next use. An empty region is satisfied at once.
Other ranks of a running World go on in the meantime; when nothing can change the signal any
more, that is an error."""

__all__ = [
    "TBROADCAST",
    "TGATHER",
    "TGET",
    "TGET_ASYNC",
    "TNOTIFY",
    "TPUT",
    "TPUT_ASYNC",
    "TREDUCE",
    "TSCATTER",
    "TTEST",
    "TWAIT",
]
