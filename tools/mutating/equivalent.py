"""Changes that change nothing a program could see: the key of the change, and the reason."""

from __future__ import annotations

EQUIVALENT: dict[str, str] = {}
