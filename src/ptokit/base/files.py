"""What is written for the user: arrays, reports, texts.

An output is written beside its place and renamed when it is complete: whoever stops it, or
has no room left, still has the old file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from ptokit.base.diagnostics import PtoError, usage_error

Fill = Callable[[BinaryIO], object]  # writes the contents of a file


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, or leave the old one."""
    if not isinstance(path, str | os.PathLike):
        raise usage_error("file", "a file has a name", got=[("path", path)], fix='"report.html"')
    write({Path(path): lambda file: file.write(text.encode("utf-8"))})


def write(files: Mapping[Path, Fill]) -> None:
    """Write several files: all of them, or none."""
    ready: list[tuple[Path, Path]] = []
    try:
        for path, fill in files.items():
            place = Path(os.path.realpath(path))  # a link stays one
            if place.exists() and not place.is_file():
                _fill(place, "wb", path, fill)  # a device, which nothing can replace
                continue
            beside = place.with_name(f".{place.name}.{os.getpid()}")
            ready.append((beside, place))
            _fill(beside, "xb", path, fill)
            if place.exists():
                beside.chmod(stat.S_IMODE(place.stat().st_mode))
        while ready:
            os.replace(*ready[0])
            del ready[0]
    finally:
        for beside, _ in ready:
            with suppress(OSError):
                beside.unlink()


def _fill(place: Path, mode: str, path: Path, fill: Fill) -> None:
    try:
        with open(place, mode) as file:
            fill(cast("BinaryIO", file))
    except OSError as error:
        raise _cannot("write", path, error) from None


def make_folder(path: Path) -> None:
    """A folder for what is to be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot("make the folder", path, error) from None


def _cannot(what: str, path: Path, error: OSError) -> PtoError:
    reason = error.strerror or str(error)
    missing = isinstance(error, FileNotFoundError)
    fix = f"mkdir -p {path.parent}" if missing else "choose another place for it"
    return usage_error("file", f"cannot {what} {path}: {reason}", fix=fix)
