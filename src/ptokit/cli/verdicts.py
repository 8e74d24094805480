"""What commands say of the kernels of a file, and by which rules."""

from __future__ import annotations

from typing import TypedDict

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic
from ptokit.base.location import Location


class Rules(TypedDict):
    """Which broken rules are errors, as every door takes it."""

    rules: str | None
    allow: tuple[str, ...]


@dataclass(frozen=True)
class Checked:
    """A kernel that was checked for one target."""

    kernel: str
    target: str
    errors: int


def no_kernel(name: str, fix: str) -> Diagnostic:
    """A file in which there is nothing to check."""
    at = Location(name, 0)
    return Diagnostic("check.no-kernel", "there is no kernel in this file", at, fix=fix)
