"""torch, for those who have it: nothing here needs it but programs that do."""

from __future__ import annotations

import importlib
from typing import Any

from ptokit.base.diagnostics import usage_error


def torch(part: str = "") -> Any:
    """The package, or a module of it."""
    try:
        return importlib.import_module(f"torch{part}")
    except ImportError:
        raise usage_error(
            "arguments",
            "the program works on tensors of torch, which is not installed",
            fix="pip install torch",
        ) from None
