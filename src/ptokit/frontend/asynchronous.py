"""Building sessions for asynchronous transfers; what they are, `machine/asynchronous.py` says."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from ptokit.base.comm_enums import DmaEngine
from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import u8
from ptokit.base.entry import public
from ptokit.base.enums import TileType
from ptokit.base.tiles import Violation
from ptokit.frontend.arguments import choice, template
from ptokit.frontend.session import current
from ptokit.frontend.types import Tile
from ptokit.isa.sessions import OWN_GROUP, SCRATCH_BYTES, SdmaBaseConfig, scratch_faults
from ptokit.machine.asynchronous import AsyncEvent, AsyncSession, PrefetchAsyncContext
from ptokit.machine.objects import TileObject

_WORKSPACE = 40960  # bytes of global memory a session needs


@public
@dataclass(frozen=True)
class _BuildSession:
    """`BuildAsyncSession(...)`, or with the engine in brackets; True when the session is usable."""

    engine: DmaEngine

    def __getitem__(self, engine: DmaEngine) -> _BuildSession:
        with template("BuildAsyncSession", "BuildAsyncSession[DmaEngine.SDMA]", engine):
            return _BuildSession(choice(DmaEngine, engine))

    def __call__(self, *args: Any, **more: Any) -> bool:
        """SDMA: (scratch, workspace, session, syncId, baseConfig, channelGroupIdx).

        URMA: (workspace, session) or (workspace, destRankId, session).
        """
        if self.engine in _BUILD:
            build, pattern = _BUILD[self.engine]
            with template("BuildAsyncSession", pattern, (*args, *more.values()), "arguments"):
                signature(build).bind(*args, **more)
            return build(*args, **more)
        raise fail(
            "BuildAsyncSession.RDMA",
            "RDMA is reserved: its device code is not public",
            fix="use DmaEngine.SDMA or DmaEngine.URMA",
        )

    def __repr__(self) -> str:
        return f"BuildAsyncSession[DmaEngine.{self.engine.name}]"


BuildAsyncSession = _BuildSession(DmaEngine.SDMA)


@public
def async_session(engine: DmaEngine = DmaEngine.SDMA, address: int = 0) -> AsyncSession:
    """A session ready for use, with a workspace and 256 bytes of scratch at an address of UB."""
    session, workspace = AsyncSession(), np.zeros(_WORKSPACE, np.uint8)
    if engine == DmaEngine.SDMA:
        scratch, machine = Tile[TileType.Vec, u8, 1, SCRATCH_BYTES](), current()
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
    channelGroupIdx: int = OWN_GROUP,
) -> bool:
    check_scratch(scratch, isinstance(scratch, TileObject))
    config = baseConfig or SdmaBaseConfig()
    return session.build(current(), scratch, workspace, syncId, config, channelGroupIdx)


def check_scratch(scratch: Any, is_tile: bool) -> None:
    """Refuse a scratch that is no Vec tile."""
    rule = Violation("BS-1", "the scratch is a Vec tile", (("scratch", scratch),))
    for broken in scratch_faults(scratch.spec) if is_tile else [rule]:
        raise fail(
            f"BuildAsyncSession.{broken.code}",
            broken.rule,
            got=broken.got,
            fix=f"Tile[TileType.Vec, uint8, 1, {SCRATCH_BYTES}]()",
        )


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
