"""The instructions as Python sees them (between devices): names, signatures, documentation.

Generated from the instruction table by tools/gen.py; do not edit.
"""

# Each class narrows the general call of Instruction to its own operands, for editors only.
# pyright: reportIncompatibleMethodOverride=false, reportNoOverloadImplementation=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from ptokit.frontend.instruction import Instruction
from ptokit.isa import INSTRUCTIONS

if TYPE_CHECKING:
    from ptokit.frontend.instruction import RecordEvent, Waitable
    from ptokit.frontend.tensor_types import GlobalTensor
    from ptokit.frontend.types import Tile

    Wait = RecordEvent | Waitable


class _TPUT(Instruction):
    """Copy a local tensor into the memory of another device."""

    if TYPE_CHECKING:

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


TPUT = _TPUT(INSTRUCTIONS["comm.TPUT"])


class _TGET(Instruction):
    """Copy a tensor from the memory of another device into local memory."""

    if TYPE_CHECKING:

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


TGET = _TGET(INSTRUCTIONS["comm.TGET"])


class _TBROADCAST(Instruction):
    """Write a tensor of the root into the buffer of every member, itself included."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self,
            parallelGroup: Any,
            srcGlobalData: GlobalTensor,
            stagingTileData: Tile,
            *events: Wait,
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self,
            parallelGroup: Any,
            srcGlobalData: GlobalTensor,
            stagingTileData: Tile,
            pongTile: Tile,
            *events: Wait,
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self,
            parallelGroup: Any,
            srcGlobalData: GlobalTensor,
            stagingTileData: Tile,
            trigger: Any,
            *events: Wait,
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
        ) -> RecordEvent: ...


TBROADCAST = _TBROADCAST(INSTRUCTIONS["comm.TBROADCAST"])


class _TGATHER(Instruction):
    """Read the buffer of every member and stack them along the rows of a local tensor."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self,
            parallelGroup: Any,
            dstGlobalData: GlobalTensor,
            stagingTileData: Tile,
            *events: Wait,
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self,
            parallelGroup: Any,
            dstGlobalData: GlobalTensor,
            stagingTileData: Tile,
            pongTile: Tile,
            *events: Wait,
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self,
            parallelGroup: Any,
            dstGlobalData: GlobalTensor,
            stagingTileData: Tile,
            trigger: Any,
            *events: Wait,
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
        ) -> RecordEvent: ...


TGATHER = _TGATHER(INSTRUCTIONS["comm.TGATHER"])


class _TSCATTER(Instruction):
    """Split a local tensor along its rows and write slice r into the buffer of member r."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self,
            parallelGroup: Any,
            srcGlobalData: GlobalTensor,
            stagingTileData: Tile,
            *events: Wait,
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self,
            parallelGroup: Any,
            srcGlobalData: GlobalTensor,
            stagingTileData: Tile,
            pongTile: Tile,
            *events: Wait,
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self,
            parallelGroup: Any,
            srcGlobalData: GlobalTensor,
            stagingTileData: Tile,
            trigger: Any,
            *events: Wait,
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
        ) -> RecordEvent: ...


TSCATTER = _TSCATTER(INSTRUCTIONS["comm.TSCATTER"])


class _TPUT_ASYNC(Instruction):
    """Start a copy of a flat range to the memory of another device and return its AsyncEvent."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self,
            dstGlobalData: GlobalTensor,
            srcGlobalData: GlobalTensor,
            session: Any,
            *events: Wait,
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self,
            dstGlobalData: GlobalTensor,
            srcGlobalData: GlobalTensor,
            session: Any,
            peer: float,
            *events: Wait,
        ) -> RecordEvent: ...


TPUT_ASYNC = _TPUT_ASYNC(INSTRUCTIONS["comm.TPUT_ASYNC"])


class _TGET_ASYNC(Instruction):
    """Start a copy of a flat range from the memory of another device and return its AsyncEvent."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self,
            dstGlobalData: GlobalTensor,
            srcGlobalData: GlobalTensor,
            session: Any,
            *events: Wait,
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self,
            dstGlobalData: GlobalTensor,
            srcGlobalData: GlobalTensor,
            session: Any,
            peer: float,
            *events: Wait,
        ) -> RecordEvent: ...


TGET_ASYNC = _TGET_ASYNC(INSTRUCTIONS["comm.TGET_ASYNC"])


class _TREDUCE(Instruction):
    """Combine the buffers of all members element by element and store the result at the root."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self,
            parallelGroup: Any,
            dstGlobalData: GlobalTensor,
            accTileData: Tile,
            recvTileData: Tile,
            *events: Wait,
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
        ) -> RecordEvent: ...


TREDUCE = _TREDUCE(INSTRUCTIONS["comm.TREDUCE"])


class _TNOTIFY(Instruction):
    """Set a signal, usually of another device, or add to it atomically."""

    if TYPE_CHECKING:

        def __call__(
            self, dstSignalData: GlobalTensor, value: float, *events: Wait
        ) -> RecordEvent: ...


TNOTIFY = _TNOTIFY(INSTRUCTIONS["comm.TNOTIFY"])


class _TWAIT(Instruction):
    """Wait until every element of a signal region satisfies a comparison."""

    if TYPE_CHECKING:

        def __call__(
            self, signalData: GlobalTensor, cmpValue: float, *events: Wait
        ) -> RecordEvent: ...


TWAIT = _TWAIT(INSTRUCTIONS["comm.TWAIT"])


class _TTEST(Instruction):
    """Whether every element of a signal region satisfies a comparison now."""

    if TYPE_CHECKING:

        def __call__(self, signalData: GlobalTensor, cmpValue: float, *events: Wait) -> Any: ...


TTEST = _TTEST(INSTRUCTIONS["comm.TTEST"])


__all__ = [
    "TPUT",
    "TGET",
    "TBROADCAST",
    "TGATHER",
    "TSCATTER",
    "TPUT_ASYNC",
    "TGET_ASYNC",
    "TREDUCE",
    "TNOTIFY",
    "TWAIT",
    "TTEST",
]
