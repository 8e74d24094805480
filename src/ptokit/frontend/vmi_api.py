"""Every operation on logical vectors; `vmi_api.pyi` holds what editors show."""

from __future__ import annotations

from ptokit.frontend.logical_operations import logical_operations
from ptokit.isa.micro import MICRO

_found = dict(logical_operations(MICRO))
__all__ = [*_found]  # pyright: ignore[reportUnsupportedDunderAll]
globals().update(_found)
