"""Every instruction under its own name; `api.pyi` holds the signatures that editors show."""

from __future__ import annotations

from ptokit.frontend.instruction import namespace

__all__ = list(namespace())  # pyright: ignore[reportUnsupportedDunderAll]
globals().update(namespace())
