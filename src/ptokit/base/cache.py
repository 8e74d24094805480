"""Where what was compiled is kept for the next process."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

VARIABLE = "PTOKIT_CACHE"


def cache_folder() -> Path:
    """$PTOKIT_CACHE, or a folder below the user's cache; without a home below the temporary one."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given)
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # nobody's
        home = tempfile.gettempdir()
    return Path(home) / "ptokit"
