"""The accessors of a ConvTile for the image-to-column instructions, as the pages name them.

A convolution tile carries the feature map's size, the filter, strides, dilation and padding with
it; SETFMATRIX, SET_IMG2COL_RPT, SET_IMG2COL_PADDING and TIMG2COL take them from there.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptokit.base.diagnostics import fail
from ptokit.base.entry import public
from ptokit.frontend.arguments import template
from ptokit.machine.objects import ConvObject


@public
class ConvParameters(ConvObject):
    """Getters and setters of the parameters; each checks the width of its register field."""

    def SetPadListArray(self, pads: Sequence[int]) -> None:
        """Set how far to pad: left, right, top, bottom."""
        if len(pads) != 4:
            raise fail(
                "conv-parameter",
                "padList has four entries: left, right, top, bottom",
                got=[("padList", tuple(pads))],
            )
        self.configure("padList", tuple(pads))

    def GetPadListArray(self) -> tuple[int, int, int, int]:
        """Padding left, right, top and bottom."""
        return self.parameters["padList"]

    def SetPadValue(self, value: float) -> None:
        """Set the element that stands outside the feature map."""
        with template("SetPadValue", "tile.SetPadValue(number)", value, "arguments"):
            number = float(value) if self.spec.dtype.is_float else int(value)
        self.configure("padValue", number)

    def GetPadValue(self) -> float:
        """The element that stands outside the feature map."""
        return self.parameters["padValue"]

    def SetTranspose(self, transpose: bool) -> None:
        """Ask the engine to transpose what it writes."""
        self.configure("transpose", bool(transpose))

    def GetTranspose(self) -> bool:
        """Whether the engine transposes what it writes."""
        return self.parameters["transpose"]

    def SetFmapH(self, value: int) -> None:
        """Set the height of the feature map."""
        self.configure("fmapH", value)

    def GetFmapH(self) -> int:
        """The height of the feature map."""
        return self.parameters["fmapH"]

    def SetFmapW(self, value: int) -> None:
        """Set the width of the feature map."""
        self.configure("fmapW", value)

    def GetFmapW(self) -> int:
        """The width of the feature map."""
        return self.parameters["fmapW"]

    def SetFilterH(self, value: int) -> None:
        """Set the height of the filter."""
        self.configure("filterH", value)

    def GetFilterH(self) -> int:
        """The height of the filter."""
        return self.parameters["filterH"]

    def SetFilterW(self, value: int) -> None:
        """Set the width of the filter."""
        self.configure("filterW", value)

    def GetFilterW(self) -> int:
        """The width of the filter."""
        return self.parameters["filterW"]

    def SetDilationH(self, value: int) -> None:
        """Set the distance of filter rows on the feature map."""
        self.configure("dilationH", value)

    def GetDilationH(self) -> int:
        """The distance of filter rows on the feature map."""
        return self.parameters["dilationH"]

    def SetDilationW(self, value: int) -> None:
        """Set the distance of filter columns on the feature map."""
        self.configure("dilationW", value)

    def GetDilationW(self) -> int:
        """The distance of filter columns on the feature map."""
        return self.parameters["dilationW"]

    def SetStrideH(self, value: int) -> None:
        """Set the step of the filter down the feature map."""
        self.configure("strideH", value)

    def GetStrideH(self) -> int:
        """The step of the filter down the feature map."""
        return self.parameters["strideH"]

    def SetStrideW(self, value: int) -> None:
        """Set the step of the filter along the feature map."""
        self.configure("strideW", value)

    def GetStrideW(self) -> int:
        """The step of the filter along the feature map."""
        return self.parameters["strideW"]

    def SetChannelSize(self, value: int) -> None:
        """Set the number of channels, C1 * C0."""
        self.configure("channelSize", value)

    def GetChannelSize(self) -> int:
        """The number of channels, C1 * C0."""
        return self.parameters["channelSize"]

    def SetRepeatStride(self, value: int) -> None:
        """Set the distance of repeats."""
        self.configure("repeatStride", value)

    def GetRepeatStride(self) -> int:
        """The distance of repeats."""
        return self.parameters["repeatStride"]

    def SetRepeatTime(self, value: int) -> None:
        """Set the number of repeats."""
        self.configure("repeatTime", value)

    def GetRepeatTime(self) -> int:
        """The number of repeats."""
        return self.parameters["repeatTime"]

    def SetRepeatMode(self, value: int) -> None:
        """Set the direction of repeats."""
        self.configure("repeatMode", value)

    def GetRepeatMode(self) -> int:
        """The direction of repeats."""
        return self.parameters["repeatMode"]

    def SetDstStride(self, value: int) -> None:
        """Set the distance of repeats in the destination (not on A2/A3)."""
        self.configure("dstStride", value)

    def GetDstStride(self) -> int:
        """The distance of repeats in the destination (not on A2/A3)."""
        return self.parameters["dstStride"]

    def SetDstMposition(self, value: int) -> None:
        """Set the first destination row (not on A2/A3)."""
        self.configure("dstMposition", value)

    def GetDstMposition(self) -> int:
        """The first destination row (not on A2/A3)."""
        return self.parameters["dstMposition"]
