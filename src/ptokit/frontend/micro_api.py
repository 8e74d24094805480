"""Every micro-operation under its own name; `micro_api.pyi` holds what editors show."""

from __future__ import annotations

from ptokit.frontend.micro_operations import operations
from ptokit.isa.micro import MICRO

_found = dict(operations(MICRO))
__all__ = [*_found]  # pyright: ignore[reportUnsupportedDunderAll]
globals().update(_found)
