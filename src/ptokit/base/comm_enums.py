"""Enumerations of the instructions between devices, with their numbers in the instruction set."""

from __future__ import annotations

from ptokit.base.enums import Choice


class CommChoice(Choice):
    """The base of the enumerations that C++ has in namespace `comm`."""

    @property
    def namespace(self) -> str:
        return "comm::"


class NotifyOp(CommChoice):
    """What TNOTIFY does to the signal."""

    AtomicAdd = 0
    Set = 1


class WaitCmp(CommChoice):
    """How TWAIT and TTEST compare a signal; the numbers are not those of CmpMode."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


class ReduceOp(CommChoice):
    """How TREDUCE combines the buffers of the members."""

    Sum = 0
    Max = 1
    Min = 2


class DmaEngine(CommChoice):
    """Which engine carries out an asynchronous transfer."""

    SDMA = 0
    URMA = 1
    RDMA = 2


class CollEngine(CommChoice):
    """Who moves the data of a collective: the vector core, or the collective unit of A5."""

    AIV = 0
    CCU = 1


class CcuInputSource(CommChoice):
    """Where the collective unit finds its input: placed by the host, or stored by the kernel."""

    HostManaged = 0
    AivStored = 1


class RdmaBackend(CommChoice):
    """The network card behind the RDMA engine."""

    NONE = 0
    HNS_1825 = 1


__all__ = [
    "CcuInputSource",
    "CollEngine",
    "DmaEngine",
    "NotifyOp",
    "RdmaBackend",
    "ReduceOp",
    "WaitCmp",
]
