"""Regular expressions that are compiled when they are first used: a process uses few of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    regex = re.compile
else:

    class _Regex:
        """As `re.compile` gives it, with what has been asked for as attributes of its own."""

        def __init__(self, text: str, flags: int = 0) -> None:
            self._written = text, flags

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            value = getattr(re.compile(*self._written), name)  # which `re` keeps for us
            setattr(self, name, value)
            return value

    regex = _Regex
