"""Source locations: where in the user's file something was written.

Every instruction issued, every IR op and every diagnostic carries one. On the hot path of the
simulator a location is only a code object and an instruction offset (`Site`); file, line, column
and the source text are worked out when somebody looks.
"""

from __future__ import annotations

import linecache
import os
import sys
from contextvars import ContextVar
from functools import cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.generated import MARK

_PACKAGE = str(Path(__file__).resolve().parent.parent)


@dataclass(frozen=True)
class Location:
    """A span on one line of a file. Lines and columns count from 1; 0 means unknown, or all."""

    file: str
    line: int
    col: int = 0
    end_col: int = 0
    source: str | None = None  # the text of the line, when it is not to be read from `file`
    callers: tuple[Location, ...] = ()  # the calls that lead there, where the line is a helper's
    origin: Location | None = None  # the line that a line of a text was made from, where it says so

    @property
    def text(self) -> str:
        """The source line, without its line break; empty when it cannot be found."""
        if self.source is not None:
            return self.source
        return linecache.getline(self.file, self.line).rstrip("\n")

    @property
    def brief(self) -> str:
        """File and line without the folder."""
        return f"{Path(readable(self.file)).name}:{self.line}"

    def __str__(self) -> str:
        known = (readable(self.file), self.line, self.col)[: 1 + bool(self.line) + bool(self.col)]
        return ":".join(map(str, known))


def readable(file: str) -> str:
    """A file under the name that people know it by: a cell of a notebook is `In[3]`."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = named(file) if named is not None else None
    return found[1] if found else file


@dataclass(slots=True, eq=False)
class Site:
    """A point in running Python code; cheap to make, resolved on demand."""

    code: CodeType
    lasti: int

    @property
    def location(self) -> Location:
        return _resolve(self.code, self.lasti)


# Where a program that is no Python code stands; each core of a launch has its own.
foreign_site: ContextVar[Any] = ContextVar("ptokit_foreign_site", default=None)


def _resolve(code: CodeType, lasti: int) -> Location:
    # Not cached: equal code objects of two files would share an entry.
    line, end_line, col, end_col = next(islice(code.co_positions(), lasti // 2, None))
    if line is None or col is None:
        return Location(code.co_filename, line or code.co_firstlineno)
    return python_span(code.co_filename, line, col, end_col if end_line == line else None)


def python_span(file: str, line: int, start: int, end: int | None) -> Location:
    """A span whose columns are those of Python's trees and code: bytes, which count from 0."""
    text = linecache.getline(file, line)
    if not text.isascii():
        raw = text.encode()
        start = len(raw[:start].decode(errors="ignore"))
        end = None if end is None else len(raw[:end].decode(errors="ignore"))
    return Location(file, line, start + 1, end + 1 if end else 0)


def is_ours(frame: FrameType) -> bool:
    """Whether the frame runs code of this package (and so is never the user's line).

    The kernels of the demo are in the package but stand for a user's file.
    """
    name = frame.f_code.co_filename
    return name.startswith((_PACKAGE, MARK)) and not name.endswith("demo_kernels.py")


@cache
def is_users_file(name: str) -> bool:
    """Whether a file is not one of Python's library, of an installed package or of this one."""
    path = Path(name).resolve()
    homes = tuple(str(Path(home).resolve()) for home in (os.path.dirname(os.__file__), _PACKAGE))
    installed = {"site-packages", "dist-packages"}.isdisjoint(path.parts)
    return installed and not str(path).startswith(homes)


def user_frame(start: FrameType | None = None) -> FrameType:
    """Return the innermost frame that is not ours: the line to blame."""
    frame = start or sys._getframe(1)
    while is_ours(frame) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def user_site() -> Site:
    """Return the innermost point of user code."""
    elsewhere = foreign_site.get()
    if elsewhere is not None:
        return elsewhere
    frame = user_frame(sys._getframe(1))
    return Site(frame.f_code, frame.f_lasti)
