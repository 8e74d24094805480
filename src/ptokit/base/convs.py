"""What a convolution tile carries for the image-to-column instructions: one table.

The pages spell a parameter `SetFmapH`/`GetFmapH`, the text `fmap_h`. The padding is a list of four
entries with one pair of accessors; in the text each entry is a field of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from operator import index
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.tiles import Violation


@dataclass(frozen=True)
class ConvParameter:
    """A parameter, by the name that rules and messages use."""

    name: str
    about: str
    bits: int = 0  # of its register field, an unsigned integer; 0: a truth value or an element
    initial: Any = 0
    entries: tuple[str, ...] = ()  # of a list: what stands where

    @property
    def accessor(self) -> str:
        """The name of its getter and setter, behind `Get` and `Set`."""
        return self.name[0].upper() + self.name[1:] + ("Array" if self.entries else "")

    @property
    def kind(self) -> str:
        """What gives it a value, in the words of signatures: index, i1 or num."""
        return "index" if self.bits else "i1" if isinstance(self.initial, bool) else "num"

    @property
    def fields(self) -> tuple[ConvField, ...]:
        """The numbers it consists of."""
        if self.entries:
            stem = self.name.removesuffix("List")
            return tuple(ConvField(f"{stem}_{e}", self, n) for n, e in enumerate(self.entries))
        return (ConvField(re.sub(r"(?=[A-Z])", "_", self.name).lower(), self),)

    def violations(self, value: Any) -> Iterator[Violation]:
        """Yield the rule that a value breaks which the register field cannot hold."""
        numbers = value if isinstance(value, tuple) else (value,)
        if self.entries and isinstance(value, tuple) and len(value) != len(self.entries):
            rule = f"{self.name} has four entries: {', '.join(self.entries)}"
            yield Violation("conv-parameter", rule, ((self.name, value),))
        elif self.bits and not all(
            hasattr(n, "__index__") and 0 <= index(n) < 1 << self.bits for n in numbers
        ):
            rule = f"{self.name} of a convolution tile is an unsigned integer of {self.bits} bits"
            yield Violation("conv-parameter", rule, ((self.name, value),))

    def converted(self, value: Any, element: DType) -> Any:
        """A value as a tile of this element type keeps it."""
        if isinstance(value, tuple):
            return tuple(self.converted(each, element) for each in value)
        if self.bits:
            return index(value)
        return bool(value) if self.kind == "i1" else (float if element.is_float else int)(value)


@dataclass(frozen=True)
class ConvField:
    """A number in the text: a parameter, or an entry of one."""

    name: str
    parameter: ConvParameter
    index: int | None = None

    @property
    def kind(self) -> str:
        return self.parameter.kind

    def of(self, parameters: Mapping[str, Any]) -> Any:
        """Its value among the parameters of a tile."""
        value = parameters[self.parameter.name]
        return value if self.index is None else value[self.index]

    def put(self, value: Any, parameters: dict[str, Any]) -> None:
        """Give it a value among the parameters of a tile."""
        if self.index is not None:
            entries = list(parameters[self.parameter.name])
            entries[self.index] = value
            value = tuple(entries)
        parameters[self.parameter.name] = value


# Of the size of a filter 9 bits count.
CONV_PARAMETERS = {
    parameter.name: parameter
    for parameter in (
        ConvParameter(
            *("padList", "how far to pad: left, right, top, bottom", 8, (0, 0, 0, 0)),
            ("left", "right", "top", "bottom"),
        ),
        ConvParameter("fmapH", "the height of the feature map", 16),
        ConvParameter("fmapW", "the width of the feature map", 16),
        ConvParameter("filterH", "the height of the filter", 16, 1),
        ConvParameter("filterW", "the width of the filter", 16, 1),
        ConvParameter("dilationH", "the distance of filter rows on the feature map", 8, 1),
        ConvParameter("dilationW", "the distance of filter columns on the feature map", 8, 1),
        ConvParameter("strideH", "the step of the filter down the feature map", 8, 1),
        ConvParameter("strideW", "the step of the filter along the feature map", 8, 1),
        ConvParameter("padValue", "the element that stands outside the feature map"),
        ConvParameter("channelSize", "the number of channels, C1 * C0", 16),
        ConvParameter("repeatStride", "the distance of repeats", 16),
        ConvParameter("repeatTime", "the number of repeats", 8, 1),
        ConvParameter("repeatMode", "the direction of repeats", 8),
        ConvParameter("dstStride", "the distance of repeats in the destination (not on A2/A3)", 16),
        ConvParameter("dstMposition", "the first destination row (not on A2/A3)", 16),
        ConvParameter("transpose", "whether the engine transposes what it writes", initial=False),
    )
}
CONV_FIELDS = {field.name: field for each in CONV_PARAMETERS.values() for field in each.fields}


def initial_parameters() -> dict[str, Any]:
    """The parameters of a tile that nobody has set."""
    return {name: parameter.initial for name, parameter in CONV_PARAMETERS.items()}
