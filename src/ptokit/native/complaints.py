"""What a compiler says, as diagnostics at the lines of the source.

An assertion of our header is told under the id of its rule, and at the line of the kernel that
broke it, not of the header.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.diagnostics import Diagnostic
from ptokit.base.location import Location
from ptokit.base.patterns import regex
from ptokit.native.headers import is_ours

_LINE = regex(
    r"^(?P<file>[^\n:]+):(?P<line>\d+)(?::(?P<col>\d+))?: +(?:(?:fatal )?(?P<kind>error|note): )?"
    r"(?P<text>.*)$"
)
_ASSERTED = regex(
    r"static assertion failed.*?: \"?(?P<id>(?:SA|PA)-\d+|\w+\.\w+): (?P<rule>[^\"]*)"
)
_REFUSED = regex(r"call to .* declared with .?(attribute error|error. attribute): ")
# What led to the next error, and to the last one.
_BEFORE = regex(r"required from|in .constexpr. expansion")
_BEHIND = regex(r"requested here|in call to|in expansion of macro|expanded from")


def complaints(text: str) -> Iterator[Diagnostic]:
    """The errors that a compiler has printed, in order."""
    led: Location | None = None
    waiting: Diagnostic | None = None  # an error of the header, until the user's line turns up
    for match in filter(None, map(_LINE.match, text.splitlines())):
        at = Location(match["file"], int(match["line"]), int(match["col"] or 0))
        ours = is_ours(match["file"])
        if match["kind"] == "error":
            if waiting is not None:
                yield waiting
            found = _told(match["text"], led if ours and led is not None else at)
            waiting = found if ours and led is None else None
            if waiting is None:
                yield found
            led = None
        elif waiting is not None and not ours and _BEHIND.search(match["text"]):
            yield _told(waiting.message, at, waiting.code)
            waiting = None
        elif not ours and _BEFORE.search(match["text"]):
            led = at
    if waiting is not None:
        yield waiting


def _told(text: str, at: Location, code: str = "cpp") -> Diagnostic:
    asserted = _ASSERTED.search(text)
    if asserted is not None:
        return Diagnostic(asserted["id"], asserted["rule"], at)
    return Diagnostic(code, _REFUSED.sub("", text), at)
