"""Handles of asynchronous transfers: what TPREFETCH_ASYNC takes and returns.

The DMA engine is outside the core. Under eager execution a transfer is complete when the call
returns, so waiting for one never blocks; the handles exist so that kernels read as on the device.
"""

from __future__ import annotations

from typing import Any


class AsyncSession:
    """A channel to the DMA engine; built by the first transfer that uses it."""

    def __init__(self) -> None:
        self.valid = False
        self.posted = 0  # transfers so far, the source of handles


class AsyncEvent:
    """The completion of one transfer. A handle of 0 means that nothing is pending."""

    def __init__(self, handle: int = 0) -> None:
        self.handle = handle

    def valid(self) -> bool:
        """Whether a transfer is behind the event."""
        return self.handle != 0

    def Wait(self, session: AsyncSession) -> bool:
        """Wait for the transfer."""
        return True

    def Test(self, session: AsyncSession) -> bool:
        """Whether the transfer is complete."""
        return True

    def __repr__(self) -> str:
        return f"<async event {self.handle:#x}>"


class PrefetchAsyncContext:
    """Workspace and session of TPREFETCH_ASYNC; a session of its own unless one is given."""

    key = "PrefetchAsyncContext"  # plans do not depend on which context it is

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
        if not session.valid or not nbytes:
            return AsyncEvent()
        session.posted += 1
        return AsyncEvent(1 << 58 | session.posted)  # one queue, and the number of the post


__all__ = ["AsyncEvent", "AsyncSession", "PrefetchAsyncContext"]
