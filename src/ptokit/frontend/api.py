"""Every instruction under its own name, with the enumerations declared beside them.

`api.pyi` holds the signatures that editors show.
"""

from __future__ import annotations

from ptokit.frontend.instruction import namespace, own_enumerations

_found = {**namespace(), **own_enumerations()}
__all__ = [*_found]  # pyright: ignore[reportUnsupportedDunderAll]
globals().update(_found)
