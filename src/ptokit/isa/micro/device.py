"""Single elements of global memory, past the data cache of the scalar unit."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.convert import element, number
from ptokit.isa.effects import Pipe
from ptokit.isa.micro.spec import Law, micro

_ONE_TYPE = Law(
    "value has the type of what ptr points at",
    lambda ptr, value: ptr.spelled == value.spelled or ptr.bits == value.bits > 0,
    "change the type of the pointer with pto.castptr, or that of the number",
)


@micro(
    "ptr:gm offset:index -> value:num",
    is_inside=False,
    pipe=Pipe.S,
    laws=[_ONE_TYPE],
    syntax="%ptr[%offset] {} : T(ptr) -> T(value)",
)
def ld_dev(ptr: Any, offset: int, unit: Any) -> Any:
    """Read an element of global memory as it is there, whatever the data cache holds."""
    kind = ptr.dtype
    data, _ = unit.read(ptr, ptr.offset + offset * kind.itemsize, kind.itemsize)
    return number(data.view(kind.np)[0], kind)


@micro(
    "value:num ptr:gm offset:index",
    is_inside=False,
    pipe=Pipe.S,
    laws=[_ONE_TYPE],
    syntax="%value, %ptr[%offset] {} : T(ptr), T(value)",
)
def st_dev(value: Any, ptr: Any, offset: int, unit: Any) -> None:
    """Write an element of global memory at once: other cores need no pto.dcci to see it."""
    kind = ptr.dtype
    data = np.frombuffer(element(value, kind).tobytes(), np.uint8)
    unit.write(ptr, ptr.offset + offset * kind.itemsize, data, None)
