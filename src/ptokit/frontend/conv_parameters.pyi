# The accessors of a ConvTile as editors see them.
# Generated from the table of parameters by tools/gen.py; do not edit.

from collections.abc import Sequence

from ptokit.machine.objects import ConvObject

class ConvParameters(ConvObject):
    def SetPadListArray(self, value: Sequence[int]) -> None:
        """Set how far to pad: left, right, top, bottom."""
    def GetPadListArray(self) -> tuple[int, ...]:
        """Get how far to pad: left, right, top, bottom."""
    def SetFmapH(self, value: int) -> None:
        """Set the height of the feature map."""
    def GetFmapH(self) -> int:
        """Get the height of the feature map."""
    def SetFmapW(self, value: int) -> None:
        """Set the width of the feature map."""
    def GetFmapW(self) -> int:
        """Get the width of the feature map."""
    def SetFilterH(self, value: int) -> None:
        """Set the height of the filter."""
    def GetFilterH(self) -> int:
        """Get the height of the filter."""
    def SetFilterW(self, value: int) -> None:
        """Set the width of the filter."""
    def GetFilterW(self) -> int:
        """Get the width of the filter."""
    def SetDilationH(self, value: int) -> None:
        """Set the distance of filter rows on the feature map."""
    def GetDilationH(self) -> int:
        """Get the distance of filter rows on the feature map."""
    def SetDilationW(self, value: int) -> None:
        """Set the distance of filter columns on the feature map."""
    def GetDilationW(self) -> int:
        """Get the distance of filter columns on the feature map."""
    def SetStrideH(self, value: int) -> None:
        """Set the step of the filter down the feature map."""
    def GetStrideH(self) -> int:
        """Get the step of the filter down the feature map."""
    def SetStrideW(self, value: int) -> None:
        """Set the step of the filter along the feature map."""
    def GetStrideW(self) -> int:
        """Get the step of the filter along the feature map."""
    def SetPadValue(self, value: float) -> None:
        """Set the element that stands outside the feature map."""
    def GetPadValue(self) -> float:
        """Get the element that stands outside the feature map."""
    def SetChannelSize(self, value: int) -> None:
        """Set the number of channels, C1 * C0."""
    def GetChannelSize(self) -> int:
        """Get the number of channels, C1 * C0."""
    def SetRepeatStride(self, value: int) -> None:
        """Set the distance of repeats."""
    def GetRepeatStride(self) -> int:
        """Get the distance of repeats."""
    def SetRepeatTime(self, value: int) -> None:
        """Set the number of repeats."""
    def GetRepeatTime(self) -> int:
        """Get the number of repeats."""
    def SetRepeatMode(self, value: int) -> None:
        """Set the direction of repeats."""
    def GetRepeatMode(self) -> int:
        """Get the direction of repeats."""
    def SetDstStride(self, value: int) -> None:
        """Set the distance of repeats in the destination (not on A2/A3)."""
    def GetDstStride(self) -> int:
        """Get the distance of repeats in the destination (not on A2/A3)."""
    def SetDstMposition(self, value: int) -> None:
        """Set the first destination row (not on A2/A3)."""
    def GetDstMposition(self) -> int:
        """Get the first destination row (not on A2/A3)."""
    def SetTranspose(self, value: bool) -> None:
        """Set whether the engine transposes what it writes."""
    def GetTranspose(self) -> bool:
        """Get whether the engine transposes what it writes."""
