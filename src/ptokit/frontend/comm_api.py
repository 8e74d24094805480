"""The instructions between devices; `comm_api.pyi` holds the signatures that editors show."""

from __future__ import annotations

from ptokit.frontend.instruction import namespace

__all__ = list(namespace("comm"))  # pyright: ignore[reportUnsupportedDunderAll]
globals().update(namespace("comm"))
