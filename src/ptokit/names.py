"""The public names: everything that `from ptokit import *` gives."""

from __future__ import annotations

from enum import EnumType as _EnumType
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ptokit.base import comm_enums as _comm_enums
from ptokit.base import dtypes as _dtypes
from ptokit.base import enums as _enums
from ptokit.base import precision as _precision
from ptokit.base.comm_enums import *
from ptokit.base.diagnostics import (
    InternalError,
    NotSupported,
    ProgramError,
    PtoError,
    PtoWarning,
)
from ptokit.base.dtypes import *
from ptokit.base.entry import hide_frames as _hide_frames
from ptokit.base.entry import public as _public
from ptokit.base.enums import *
from ptokit.base.precision import *
from ptokit.base.starting import late as _late
from ptokit.base.starting import uncollected as _uncollected
from ptokit.base.tiles import DYNAMIC
from ptokit.frontend import api as _api
from ptokit.frontend import asynchronous as _asynchronous
from ptokit.frontend import events as _events
from ptokit.frontend import pipes as _pipes
from ptokit.frontend import tensor_types as _tensor_types
from ptokit.frontend import types as _types
from ptokit.frontend.advice import meant as _meant
from ptokit.frontend.api import *
from ptokit.frontend.asynchronous import *
from ptokit.frontend.events import *
from ptokit.frontend.helpers import static_range
from ptokit.frontend.pipes import *
from ptokit.frontend.sections import cube_section, vector_section
from ptokit.frontend.session import device, reset
from ptokit.frontend.tensor_types import *
from ptokit.frontend.types import *
from ptokit.isa.sort_records import MrgSortExecutedNumList

if TYPE_CHECKING:
    from ptokit import comm
    from ptokit.folders.goldens import run_goldens
    from ptokit.folders.runs import run_folder
    from ptokit.from_cpp import cpp
    from ptokit.from_python import kernel
    from ptokit.from_text import load, load_parts, loads
    from ptokit.frontend.supports import supports
    from ptokit.ir.limits import TextLimits
    from ptokit.kernels import Kernel

# What needs IR, passes and engines loads when it is first used; functions not before the call, as
# `from ptokit import *` uses every name.
_LATE = {
    "Kernel": "ptokit.kernels",
    "cpp": "ptokit.from_cpp",
    "kernel": "ptokit.from_python",
    "load": "ptokit.from_text",
    "load_parts": "ptokit.from_text",
    "loads": "ptokit.from_text",
    "run_folder": "ptokit.folders.runs",
    "run_goldens": "ptokit.folders.goldens",
    "supports": "ptokit.frontend.supports",
    "TextLimits": "ptokit.ir.limits",
}


_CALLED = {"cpp", "load", "load_parts", "loads", "run_folder", "run_goldens", "supports"}


class Later:
    """A function that is imported when it is called, or looked at."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    @property
    def __wrapped__(self) -> Any:
        return getattr(import_module(_LATE[self.__name__]), self.__name__)

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self.__wrapped__.__doc__

    def __call__(self, *args: Any, **named: Any) -> Any:
        function = self.__wrapped__
        try:
            return function(*args, **named)
        except Exception as error:
            _hide_frames(error)
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        return Later, (self.__name__,)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


@_public
def found(name: str, known: dict[str, Any]) -> Any:
    """What a public name stands for; `known` are those that are loaded."""
    module = _LATE.get(name)
    if name in _CALLED:
        return Later(name)
    if module is not None:
        with _uncollected():
            return getattr(import_module(module), name)
    if name in known:
        return known[name]
    hint = "" if name.startswith("_") else _meant(name, known)
    raise AttributeError(f"module 'ptokit' has no attribute {name!r}{hint and '; ' + hint}")


_element_types = [n for n, v in vars(_dtypes).items() if isinstance(v, _dtypes.DType)]
_enumerations = [
    n
    for m in (_enums, _comm_enums, _precision)
    for n, v in vars(m).items()
    if isinstance(v, _EnumType) and v.__members__
]

__all__ = [
    "comm",
    "DYNAMIC",
    "DType",
    "dtype",
    "device",
    "reset",
    "supports",
    "cpp",
    "kernel",
    "Kernel",
    "load",
    "load_parts",
    "loads",
    "run_folder",
    "run_goldens",
    "TextLimits",
    "static_range",
    "cube_section",
    "vector_section",
    "PadCustom",
    "PadValueCustom",
    "PadValueCustom16",
    "MrgSortExecutedNumList",
    "PtoError",
    "PtoWarning",
    "ProgramError",
    "NotSupported",
    "InternalError",
]
__all__ += _element_types  # pyright: ignore[reportUnsupportedDunderAll]
__all__ += _enumerations  # pyright: ignore[reportUnsupportedDunderAll]
__all__ += _api.__all__
__all__ += _asynchronous.__all__
__all__ += _events.__all__
__all__ += _pipes.__all__
__all__ += _tensor_types.__all__
__all__ += _types.__all__

_late("ptokit.comm")  # few kernels talk to other devices
globals()["comm"] = import_module("ptokit.comm")
LOADED = {name: globals()[name] for name in __all__ if name not in _LATE}
