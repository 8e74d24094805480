"""Every instruction under its own name, with the enumerations declared beside them.

`api.pyi` holds the signatures that editors show.
"""

from __future__ import annotations

from ptokit.frontend.instruction import namespace, own_enumerations

__all__ = [*namespace(), *own_enumerations()]  # pyright: ignore[reportUnsupportedDunderAll]
globals().update(namespace(), **own_enumerations())
