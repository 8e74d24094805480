"""Handles of asynchronous transfers: what TPUT_ASYNC, TGET_ASYNC and TPREFETCH_ASYNC take and give.

The DMA engine is outside the core, and copies when it likes: a transfer is complete when its event
has been waited for. Handles are numbered as a device would do it.
"""

from __future__ import annotations

from dataclasses import astuple
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from ptokit.base.comm_enums import DmaEngine, RdmaBackend
from ptokit.base.dataclass import dataclass
from ptokit.base.entry import public, public_record
from ptokit.base.layout import Array
from ptokit.base.location import Location, Site
from ptokit.isa.effects import Pipe
from ptokit.isa.sessions import OWN_GROUP, SdmaBaseConfig, session_faults
from ptokit.isa.spec import Insn, View, gm_in, gm_out, thing
from ptokit.machine.calls import part_of
from ptokit.machine.flags import Latch
from ptokit.machine.objects import TileObject
from ptokit.machine.queues import Why

if TYPE_CHECKING:
    from ptokit.isa.comm_ccu import Job
    from ptokit.machine.machine import Machine

_PREFETCH_BLOCK = 1 << 26
TO, FROM = "dstGlobalData", "srcGlobalData"
_TARGET, _SOURCE = gm_out(TO, view=View.STORAGE), gm_in(FROM, view=View.STORAGE)
_WAITS = "the event of an asynchronous transfer"


@public
class AsyncSession:
    """A channel to a DMA engine; BuildAsyncSession makes it valid."""

    operand_kind = "async_session"
    key = "AsyncSession"  # calls do not depend on which session it is

    def __init__(self) -> None:
        self.engine = DmaEngine.SDMA
        self.valid = False
        self.scratch: TileObject | None = None
        self.syncId = 0
        self.channelGroupIdx = OWN_GROUP
        self.blockBytes, self.commBlockOffset, self.queueNum = astuple(SdmaBaseConfig())
        self.destRankId = 0  # the peer of URMA when a call names none
        self.qpIdx = 0
        self.rdmaBackend = RdmaBackend.NONE
        self.myPe = 0
        self.nextPostId = 0
        self.usedQueueCount = 0
        self.last: Transfer | None = None  # posted; an event of SDMA implies all before it
        self._heads: dict[int, int] = {}  # of the send queues, per peer

    @property
    def tmpBufAddr(self) -> int:
        """Where the scratch lies in UB."""
        return self.scratch.address if self.scratch else 0

    @property
    def tmpBufSize(self) -> int:
        """The bytes of the scratch."""
        return self.scratch.spec.nbytes if self.scratch else 0

    def build(
        self,
        machine: Machine,
        scratch: TileObject,
        workspace: Any,
        sync_id: int,
        config: SdmaBaseConfig,
        group: int = OWN_GROUP,
    ) -> bool:
        """Open the channel on the SDMA engine; whether that went well."""
        machine.place(scratch)
        group = machine.core.block if group == OWN_GROUP else group
        faults = session_faults(scratch.spec, sync_id, config, group)
        has_memory = scratch.storage is not None and workspace is not None
        self.valid = has_memory and not any(faults)
        self.engine = DmaEngine.SDMA
        self.scratch, self.syncId, self.channelGroupIdx = scratch, sync_id, group
        self.blockBytes, self.commBlockOffset, self.queueNum = astuple(config)
        self.nextPostId = self.usedQueueCount = 0
        return self.valid

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
        return AsyncEvent(self.usedQueueCount << 58 | self.nextPostId, self.engine, self.last)

    def order_of(self, peer: int) -> int | None:
        """Transfers with the same answer complete in order: all of SDMA, those to one URMA peer."""
        return peer if self.engine == DmaEngine.URMA else None

    def done(self, engine: DmaEngine) -> AsyncEvent:
        """The event of a transfer that was made without the engine."""
        return AsyncEvent(0, engine)

    def knows(self, handle: int) -> bool:
        """Whether the event came from this session."""
        if self.engine == DmaEngine.URMA:
            return (handle & 0xFFFFFFFF) <= self._heads.get(handle >> 32, 0)
        return (handle & (1 << 58) - 1) <= self.nextPostId


# ---- what an engine does -------------------------------------------------------------------------


def _copy(dstGlobalData: Array, srcGlobalData: Array) -> None:
    dstGlobalData[...] = srcGlobalData


def _load(held: Held, srcGlobalData: Array) -> None:
    held.data = srcGlobalData.copy()


def _store(dstGlobalData: Array, held: Held) -> None:
    dstGlobalData[...] = held.data


class Held:
    """Bytes on their way through the scratch of a session."""

    key = operand_kind = "held"
    data: Array


@cache
def copy_of(insn: Insn) -> Insn:
    """The copy that an engine makes for an instruction."""
    return part_of(insn, Pipe.ALL, (_TARGET, _SOURCE), _copy)


@cache
def halves_of(insn: Insn) -> tuple[Insn, Insn]:
    """The same copy made by the core itself, on two of its pipes."""
    held = thing("held", kind="held")
    load = part_of(insn, Pipe.MTE2, (held, _SOURCE), _load)
    return load, part_of(insn, Pipe.MTE3, (_TARGET, held), _store)


@cache
def collective_of(insn: Insn, job: Job, many: int) -> Insn:
    """What the collective unit does for an instruction: the root's tensor, then the members."""
    root, other = (gm_out, gm_in) if job.collects else (gm_in, gm_out)
    members = (other(f"parallelGroup[{index}]", view=View.WHOLE) for index in range(many))

    def body(*arrays: Array) -> None:
        job.work(arrays[0], arrays[1:])

    own = root("dst" if job.collects else "src", view=View.WHOLE)
    return part_of(insn, Pipe.ALL, (own, *members), body)


@dataclass(frozen=True)
class Transfer:
    """What an engine was given to do."""

    machine: Machine
    over: Latch  # given when it is complete
    site: Site | Location

    def wait(self) -> None:
        """Hold the scalar unit until it is complete."""
        self.machine.sync.wait(Pipe.S, (self.over,), lambda: Why(_WAITS), self.site)

    def is_over(self) -> bool:
        """Whether it is complete; if not, others may go on before somebody asks again."""
        if self.over.ready:
            self.wait()
            return True
        self.machine.sync.look_again(f"a loop around Test, for {self.over.title}", self.site)
        return False


@public_record
@dataclass(eq=False, repr=False)
class AsyncEvent:
    """The completion of one transfer. A handle of 0 means that nothing is pending."""

    handle: int = 0
    engine: DmaEngine = DmaEngine.SDMA
    transfer: Transfer | None = None
    operand_kind: ClassVar[str] = "async_event"

    def valid(self) -> bool:
        """Whether a transfer is behind the event."""
        return self.handle != 0

    def Wait(self, session: AsyncSession) -> bool:
        """Wait for the transfer, and order it before all that follows.

        False when the session does not know it: nothing is waited for then.
        """
        if self.handle and not session.knows(self.handle):
            return False
        if self.transfer is not None:
            self.transfer.wait()
        return True

    def Test(self, session: AsyncSession) -> bool:
        """Whether the transfer is complete; one that is counts as waited for."""
        if self.handle and not session.knows(self.handle):
            return False
        return self.transfer is None or self.transfer.is_over()

    def __repr__(self) -> str:
        return f"<async event {self.handle:#x}>"


@public_record
class PrefetchAsyncContext:
    """Workspace and session of TPREFETCH_ASYNC; a session of its own unless one is given."""

    operand_kind = "prefetch_async_context"

    def __init__(self, workspace: Any = None, session: AsyncSession | None = None) -> None:
        self.workspace = workspace
        self.session = AsyncSession()
        self.externalSession = session

    @property
    def key(self) -> tuple[str, bool]:
        """Calls depend on whose session it is, and not on which context."""
        return "PrefetchAsyncContext", self.externalSession is None

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
