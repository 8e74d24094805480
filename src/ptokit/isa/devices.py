"""The names of the devices, alone and in the groups in which rules speak of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TARGETS = ("a2a3", "a5", "kirin9030", "kirinx90")  # the devices; `cpu` is the permissive profile
DEVICES = " ".join(TARGETS)
A5_FAMILY = "a5 kirin9030 kirinx90"  # vector instructions over registers, not over memory
KIRIN = "kirin9030 kirinx90"
# Two generations of the memory side: sizes are checked when an instruction runs, or is compiled.
OLD = "a2a3 kirinx90"
NEW = "a5 kirin9030"


def on(targets: str) -> Callable[[Any], bool]:
    """Whether a call runs on one of these targets: `lost=on("a2a3")`."""
    listed = frozenset(targets.split())
    return lambda o: o.target.name in listed
