"""ptokit: tile programming for NPUs in Python.

`from ptokit import *` gives a kernel author everything the PTO pages speak of: tile and tensor
types, element types, enumerations, and every instruction under its own name.

The names load when one of them is first used (`names.py`): `import ptokit` alone is quick, and so
is a command that needs no table of instructions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptokit.names import *


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name != "__all__":  # Python asks modules for many of these
        raise AttributeError(f"module 'ptokit' has no attribute {name!r}")
    from ptokit.base.starting import uncollected

    with uncollected():
        names = import_module("ptokit.names")
    space = globals()
    space.update(names.LOADED, __all__=names.__all__)
    space[name] = value = names.__all__ if name == "__all__" else names.found(name, space)
    return value


def __dir__() -> list[str]:
    return [*globals(), *import_module("ptokit.names").__all__]
