"""The accessors of a ConvTile for the image-to-column instructions, as the pages name them.

A convolution tile carries the feature map's size, the filter, strides, dilation and padding with
it; SETFMATRIX, SET_IMG2COL_RPT, SET_IMG2COL_PADDING and TIMG2COL take them from there. The methods
are made from the table of parameters; editors read their signatures in the stub file.
"""

from __future__ import annotations

from typing import Any

from ptokit.base.convs import CONV_PARAMETERS, ConvParameter
from ptokit.base.entry import public
from ptokit.frontend.arguments import template
from ptokit.machine.objects import ConvObject


class ConvParameters(ConvObject):
    """Getters and setters of the parameters; each checks the width of its register field."""


def _add_accessors(parameter: ConvParameter) -> None:
    def setter(self: ConvParameters, value: Any) -> None:
        name = f"Set{parameter.accessor}"
        with template(name, f"tile.{name}(number)", value, "arguments"):
            self.configure(parameter, tuple(value) if parameter.entries else value)

    def getter(self: ConvParameters) -> Any:
        return self.parameters[parameter.name]

    for verb, method in (("Set", setter), ("Get", getter)):
        method.__name__ = verb + parameter.accessor
        method.__qualname__ = f"ConvParameters.{method.__name__}"
        method.__doc__ = f"{verb} {parameter.about}."
        setattr(ConvParameters, method.__name__, method)


for _parameter in CONV_PARAMETERS.values():
    _add_accessors(_parameter)
public(ConvParameters)
