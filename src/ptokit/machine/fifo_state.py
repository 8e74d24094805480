"""What each end of a FIFO remembers, under the names of the pages."""

from __future__ import annotations

from ptokit.base.dataclass import dataclass
from ptokit.base.enums import TileSplitAxis


@dataclass
class EndState:
    """What both sides of a pipe remember: the next entry, and where its slots begin."""

    tileIndex: int = 0
    subTileIndex: int = 0
    entryOffset: int = 0

    def getTileId(self) -> int:
        """The index of the next entry."""
        return self.tileIndex

    def getSubTileId(self) -> int:
        """The index of the part of the entry."""
        return self.subTileIndex

    def setTileId(self, tile: int, sub: int = 0) -> None:
        """Choose the next entry."""
        self.tileIndex, self.subTileIndex = tile, sub

    def setEntryOffset(self, offset: int) -> None:
        """Shift the slots by a number of bytes."""
        self.entryOffset = offset


@dataclass
class ProducerState(EndState):
    """What the producing side of a pipe remembers."""

    isAllocate: bool = True
    isRecord: bool = True
    waited: int = 0  # how often free space was waited for
    split: TileSplitAxis = TileSplitAxis.TILE_NO_SPLIT  # of the last entry

    def getAllocateStatus(self) -> bool:
        """Whether pushes wait for free space."""
        return self.isAllocate

    def getRecordStatus(self) -> bool:
        """Whether pushes tell the consumer."""
        return self.isRecord

    def setAllocateStatus(self, status: bool) -> None:
        """Switch waiting for free space."""
        self.isAllocate = status

    def setRecordStatus(self, status: bool) -> None:
        """Switch telling the consumer."""
        self.isRecord = status


@dataclass
class ConsumerState(EndState):
    """What the consuming side of a pipe remembers."""

    isWait: bool = True
    isFree: bool = True

    def getWaitStatus(self) -> bool:
        """Whether pops wait for the producer."""
        return self.isWait

    def getFreeStatus(self) -> bool:
        """Whether slots are given back."""
        return self.isFree

    def setWaitStatus(self, status: bool) -> None:
        """Switch waiting for the producer."""
        self.isWait = status

    def setFreeStatus(self, status: bool) -> None:
        """Switch giving slots back."""
        self.isFree = status
