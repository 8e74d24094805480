"""Handles of asynchronous transfers: what TPUT_ASYNC, TGET_ASYNC and TPREFETCH_ASYNC take and give.

The DMA engine is outside the core. Here a transfer is complete when the call returns, so waiting
for one never blocks; the handles exist so that kernels read as on the device, with the numbers a
device would give them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from ptokit.base.comm_enums import DmaEngine, RdmaBackend
from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import u8
from ptokit.base.entry import public
from ptokit.base.enums import TileType
from ptokit.frontend.arguments import template
from ptokit.frontend.session import current
from ptokit.frontend.types import Tile
from ptokit.machine.objects import TileObject

QUEUES = 48  # channels of the SDMA engine
_WORKSPACE = 40960  # bytes of global memory a session needs
_PREFETCH_BLOCK = 1 << 26
_AUTO = 0xFFFFFFFF  # the channel group of the block


@dataclass(frozen=True)
class SdmaBaseConfig:
    """How a transfer is divided: bytes per entry, an offset to both addresses, queues per core."""

    block_bytes: int = 1 << 20
    comm_block_offset: int = 0
    queue_num: int = 1


class AsyncSession:
    """A channel to a DMA engine; BuildAsyncSession makes it valid."""

    key = "AsyncSession"  # calls do not depend on which session it is

    def __init__(self) -> None:
        self.engine = DmaEngine.SDMA
        self.valid = False
        self.tmpBufAddr = 0  # scratch in UB, and its bytes
        self.tmpBufSize = 0
        self.syncId = 0
        self.channelGroupIdx = _AUTO
        self.blockBytes = 1 << 20
        self.commBlockOffset = 0
        self.queueNum = 1
        self.destRankId = 0  # the peer of URMA when a call names none
        self.qpIdx = 0
        self.rdmaBackend = RdmaBackend.NONE
        self.myPe = 0
        self.nextPostId = 0
        self.usedQueueCount = 0
        self._heads: dict[int, int] = {}  # of the send queues, per peer

    def post(self, nbytes: int, peer: int = 0, block_bytes: int = 0) -> AsyncEvent:
        """Note a transfer and return its event; nothing to move gives an event without handle."""
        if not self.valid or not nbytes:
            return AsyncEvent(0, self.engine)
        if self.engine == DmaEngine.URMA:
            self._heads[peer] = head = self._heads.get(peer, 0) + 1
            return AsyncEvent(peer << 32 | head, self.engine)
        entries = -(-nbytes // (block_bytes or self.blockBytes))
        self.usedQueueCount = max(self.usedQueueCount, min(entries, self.queueNum))
        self.nextPostId += 1
        return AsyncEvent(self.usedQueueCount << 58 | self.nextPostId, self.engine)

    def done(self, engine: DmaEngine) -> AsyncEvent:
        """The event of a transfer that was made without the engine."""
        return AsyncEvent(0, engine)

    def knows(self, handle: int) -> bool:
        """Whether the event came from this session."""
        if self.engine == DmaEngine.URMA:
            return (handle & 0xFFFFFFFF) <= self._heads.get(handle >> 32, 0)
        return (handle & (1 << 58) - 1) <= self.nextPostId


@public
@dataclass(eq=False, repr=False)
class AsyncEvent:
    """The completion of one transfer. A handle of 0 means that nothing is pending."""

    handle: int = 0
    engine: DmaEngine = DmaEngine.SDMA

    def valid(self) -> bool:
        """Whether a transfer is behind the event."""
        return self.handle != 0

    def Wait(self, session: AsyncSession) -> bool:
        """Wait for the transfer; False when the session does not know it."""
        return self.handle == 0 or session.knows(self.handle)

    def Test(self, session: AsyncSession) -> bool:
        """Whether the transfer is complete."""
        return self.Wait(session)

    def __repr__(self) -> str:
        return f"<async event {self.handle:#x}>"


@public
class PrefetchAsyncContext:
    """Workspace and session of TPREFETCH_ASYNC; a session of its own unless one is given."""

    key = "PrefetchAsyncContext"  # calls do not depend on which context it is

    def __init__(self, workspace: Any = None, session: AsyncSession | None = None) -> None:
        self.workspace = workspace
        self.session = AsyncSession()
        self.externalSession = session

    def GetSession(self) -> AsyncSession:
        """The session to wait on: the given one, else the context's own."""
        return self.externalSession or self.session

    def post(self, nbytes: int) -> AsyncEvent:
        """Hand a transfer to the engine. Without a workspace no session can be built."""
        session = self.GetSession()
        if not session.valid:
            session.valid = self.workspace is not None
        if session.engine != DmaEngine.SDMA:
            return AsyncEvent()
        return session.post(nbytes, block_bytes=_PREFETCH_BLOCK)


@public
class _BuildSession:
    """`BuildAsyncSession(...)`, or with the engine in brackets; True when the session is usable."""

    def __init__(self, engine: DmaEngine) -> None:
        self._engine = engine

    def __getitem__(self, engine: DmaEngine) -> _BuildSession:
        return _BuildSession(engine)

    def __call__(self, *args: Any, **more: Any) -> bool:
        """SDMA: (scratch, workspace, session, syncId, baseConfig, channelGroupIdx).

        URMA: (workspace, session) or (workspace, destRankId, session).
        """
        if self._engine in _BUILD:
            build, pattern = _BUILD[self._engine]
            with template("BuildAsyncSession", pattern, (*args, *more.values()), "arguments"):
                signature(build).bind(*args, **more)
            return build(*args, **more)
        raise fail(
            "BuildAsyncSession.RDMA",
            "RDMA is reserved: its device code is not public",
            fix="use DmaEngine.SDMA or DmaEngine.URMA",
        )

    def __repr__(self) -> str:
        return f"BuildAsyncSession[DmaEngine.{self._engine.name}]"


BuildAsyncSession = _BuildSession(DmaEngine.SDMA)


@public
def async_session(engine: DmaEngine = DmaEngine.SDMA, address: int = 0) -> AsyncSession:
    """A session ready for use, with a workspace and 256 bytes of scratch at an address of UB."""
    session, workspace = AsyncSession(), np.zeros(_WORKSPACE, np.uint8)
    if engine == DmaEngine.SDMA:
        scratch, machine = Tile[TileType.Vec, u8, 1, 256](), current()
        if machine.mode == "manual":
            scratch.bind(machine.core.memory(TileType.Vec), address)
        BuildAsyncSession(scratch, workspace, session)
    else:
        BuildAsyncSession[engine](workspace, session)
    return session


def _build_sdma(
    scratch: Any,
    workspace: Any,
    session: AsyncSession,
    syncId: int = 0,
    baseConfig: SdmaBaseConfig | None = None,
    channelGroupIdx: int = _AUTO,
) -> bool:
    if not isinstance(scratch, TileObject) or scratch.spec.loc != TileType.Vec:
        raise fail(
            "BuildAsyncSession.BS-1",
            "the scratch is a Vec tile",
            got=[("scratch", scratch)],
            fix="Tile[TileType.Vec, uint8, 1, 256]()",
        )
    machine = current()
    machine.place(scratch)
    config = baseConfig or SdmaBaseConfig()
    group = machine.core.block if channelGroupIdx == _AUTO else channelGroupIdx
    session.valid = (
        scratch.storage is not None
        and scratch.spec.nbytes >= 8
        and 0 <= syncId <= 7
        and 1 <= config.queue_num <= QUEUES
        and group < QUEUES // config.queue_num
        and workspace is not None
    )
    session.engine = DmaEngine.SDMA
    session.tmpBufAddr, session.tmpBufSize = scratch.address, scratch.spec.nbytes
    session.syncId, session.channelGroupIdx = syncId, group
    session.blockBytes, session.queueNum = config.block_bytes, config.queue_num
    session.commBlockOffset = config.comm_block_offset
    session.nextPostId = session.usedQueueCount = 0
    return session.valid


def _build_urma(workspace: Any, session_or_rank: Any, *last: Any) -> bool:
    here = current().target
    if not here.has_urma:
        raise fail("BuildAsyncSession.BS-7", "only A5 has the URMA engine", target=here.name)
    *peer, session = (session_or_rank, *last)
    session.engine = DmaEngine.URMA
    session.destRankId = int(peer[0]) if peer else 0
    session.valid = workspace is not None
    return session.valid


_BUILD: dict[DmaEngine, tuple[Callable[..., bool], str]] = {
    DmaEngine.SDMA: (
        _build_sdma,
        "BuildAsyncSession(scratch, workspace, session, syncId, baseConfig, channelGroupIdx)",
    ),
    DmaEngine.URMA: (
        _build_urma,
        "BuildAsyncSession[DmaEngine.URMA](workspace, session) or (workspace, destRankId, session)",
    ),
}


__all__ = [
    "AsyncEvent",
    "AsyncSession",
    "BuildAsyncSession",
    "PrefetchAsyncContext",
    "SdmaBaseConfig",
    "async_session",
]
