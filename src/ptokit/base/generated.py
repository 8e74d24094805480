"""Python that is made while we run: its file has a name by which no line of it is a user's."""

from __future__ import annotations

from typing import Any

MARK = "<ptokit "


def define(source: str, what: str, names: dict[str, Any], space: dict[str, Any]) -> None:
    """Run definitions that see these names, and put what they define into that space."""
    exec(compile(source, f"{MARK}{what}>", "exec", dont_inherit=True), names, space)
