"""What is kept for the next process: compiled code, and where definitions stand."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "PTOKIT_CACHE"
_DIGEST = 32  # bytes of the checksum in front of what is kept


def cache_folder() -> Path:
    """$PTOKIT_CACHE, or a folder below the user's cache; without a home below the temporary one."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given)
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # nobody's
        from tempfile import gettempdir

        home = gettempdir()
    return Path(home) / "ptokit"


class Kept:
    """Files of the cache. They appear complete or not at all; a damaged one is not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> bytes | None:
        """What was written under a name, unless it is missing or does not fit its checksum."""
        try:
            content = (self._folder / name).read_bytes()
        except OSError:
            return None
        rest = content[_DIGEST:]
        return rest if _checksum(name, rest) == content[:_DIGEST] else None

    def write(self, name: str, content: bytes) -> None:
        """A cache that cannot be written is no cache; nothing else depends on it."""
        from tempfile import mkstemp  # most processes only read

        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, made = mkstemp(dir=self._folder)
            with os.fdopen(handle, "wb") as file:
                file.write(_checksum(name, content) + content)
            os.replace(made, self._folder / name)
        except OSError:
            return


def _checksum(name: str, content: bytes) -> bytes:
    """Of a file and its name: one that was copied to another name fits as little as a torn one."""
    from hashlib import sha256  # with which a library comes

    return sha256(name.encode() + b"\0" + content).digest()
