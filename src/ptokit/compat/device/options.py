"""What a device is asked for by way of the environment: programs start others, and these launch."""

from __future__ import annotations

import os

SLACK = "PTOKIT_SLACK"  # bytes past each tensor, for kernels that leave it
ALLOW = "PTOKIT_ALLOW"  # findings that launches are not stopped for: E6,E8


def slack() -> int:
    """Room behind each tensor."""
    given = os.environ.get(SLACK, "")
    return int(given) if given.isdecimal() else 0


def allowed() -> list[str]:
    """The ids of findings that are silenced."""
    return [each for each in os.environ.get(ALLOW, "").split(",") if each]
