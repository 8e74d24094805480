"""The one shape of an error message, and the three kinds of error.

A diagnostic says where, which rule, what the values were and how to mend it. There are three kinds
of failure, and a reader always knows whose fault it is:

* `ProgramError` - the user's program breaks a rule (exit code 1);
* `NotSupported` - the program may be right, but ptokit cannot do this yet (exit code 1);
* `InternalError` - a bug in ptokit (exit code 3).

A wrong call of the command line itself is a `UsageError` (exit code 2).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.evidence import Evidence, Finding, causes
from ptokit.base.location import Location, Site, user_site


@dataclass(frozen=True)
class Note:
    """An additional remark of a diagnostic, with a place of its own where it has one."""

    text: str
    location: Location | None = None


@dataclass(frozen=True)
class Diagnostic:
    """One complaint about a program."""

    code: str  # stable: the assertion id of the rule where it has one
    message: str  # what the rule demands, and of whom
    location: Location | None = None
    got: tuple[tuple[str, str], ...] = ()  # the values that broke it, as (path, value)
    fix: str = ""
    target: str = ""
    severity: str = "error"  # or "warning"
    notes: tuple[Note, ...] = ()
    is_allowable: bool = False  # an error that may be silenced: a program can go on without
    evidence: Evidence | None = None  # of a race

    def render(self) -> str:
        """Format for people: position, rule, source line with a caret, values and fix."""
        where = f"{self.location}: " if self.location else ""
        on = f" [{self.target}]" if self.target else ""
        lines = [f"{where}{self.severity}[{self.code}]{on}: {self.message}"]
        if self.location:
            lines += _excerpt(self.location)
        if self.got:
            lines.append("  got: " + ", ".join(f"{path} = {value}" for path, value in self.got))
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        for note in self.notes:
            place = f"{note.location}: " if note.location else ""
            lines.append(f"  note: {place}{note.text}")
            if note.location:
                lines += _excerpt(note.location)
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for tools (`--json`)."""
        data = asdict(self)
        data["location"] = _plain(self.location)
        data["got"] = dict(self.got)
        data["notes"] = [{"text": n.text, "location": _plain(n.location)} for n in self.notes]
        if self.evidence is not None:
            for name in ("earlier", "later"):
                data["evidence"][name]["location"] = _plain(getattr(self.evidence, name).location)
        return data


def _plain(at: Location | None) -> dict[str, Any] | None:
    if at is None:
        return None
    plain: dict[str, Any] = {"file": at.file, "line": at.line, "col": at.col}
    if at.end_col:
        plain["end_col"] = at.end_col
    if at.callers:
        plain["callers"] = [_plain(caller) for caller in at.callers]
    return plain if at.origin is None else {**plain, "origin": _plain(at.origin)}


def _excerpt(location: Location) -> list[str]:
    text = location.text
    if not text.strip():
        return []
    number = f"{location.line:>5} | "
    width = max(1, (location.end_col or location.col + 1) - location.col)
    text, col = _window(text, location.col)
    lines = [number + text]
    if col:
        lead = "".join("\t" if c == "\t" else " " for c in text[: col - 1])
        lines.append(" " * (len(number) - 2) + "| " + lead + "^" * min(width, len(text) - col + 2))
    for caller in location.callers:
        lines.append(f"  called from {caller}")
        lines += _excerpt(caller)
    if location.origin is not None:
        lines.append(f"  made from {location.origin}")
        lines += _excerpt(location.origin)
    return lines


def _window(text: str, col: int) -> tuple[str, int]:
    """The part of a long line around a column, and where the column is in it."""
    if len(text) <= _WIDEST:
        return text, col
    first = max(0, min(col - _WIDEST // 4, len(text) - _WIDEST))
    last = first + _WIDEST
    before, behind = "..." * (first > 0), "..." * (last < len(text))
    return before + text[first:last] + behind, col and col - first + len(before)


_WIDEST = 240  # characters of a line that a message shows


class PtoWarning(UserWarning):
    """A finding that does not stop a program, as Python's `warnings` shows it."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        text = replace(diagnostic, location=None).render()
        super().__init__(text.removeprefix(diagnostic.severity))


class ToolWarning(PtoWarning):
    """Something about the tools at hand, not about the program: commands show it, too."""


_shown: dict[str, dict[Any, Any]] = {}  # what `warnings` remembers, per file


def tell(found: Diagnostic, category: type[PtoWarning] = PtoWarning) -> None:
    """Show a warning at its line, through Python's `warnings`: once per line by default."""
    file, line = (found.location.file, found.location.line) if found.location else ("<ptokit>", 0)
    registry = _shown.setdefault(file, {})
    warnings.warn_explicit(category(found), None, file, line, registry=registry)


class Warnings:
    """The warnings of a run: each code once per line."""

    def __init__(self, tell: Callable[[Diagnostic], None] | None = None) -> None:
        self._tell = tell
        self._found: dict[tuple[Any, ...], Diagnostic] = {}

    def add(self, found: Diagnostic) -> None:
        """Keep a warning, and tell of it the first time."""
        if not self.has(found.code, found.location):
            self._found[_once(found.code, found.location)] = found
            if self._tell is not None:
                self._tell(found)

    def has(self, code: str, at: Location | None) -> bool:
        """Whether a code was reported at a line."""
        return _once(code, at) in self._found

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)


def unrepeated(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Findings of several runs together: all errors, and each warning once per line."""
    seen = Warnings()
    kept: list[Diagnostic] = []
    for each in found:
        if each.severity != "warning" or not seen.has(each.code, each.location):
            kept.append(each)
        if each.severity == "warning":
            seen.add(each)
    return kept


def with_doubts(
    errors: Iterable[Diagnostic], doubts: Iterable[Diagnostic]
) -> tuple[Diagnostic, ...]:
    """Errors, each with what else is said of its lines: it may be the reason."""
    doubted = [(d, _line(d.location)) for d in doubts if d.location]
    found: list[Diagnostic] = []
    for each in errors:
        lines = _lines(each)
        more = (Note(f"{d.message}; {d.fix}", d.location) for d, line in doubted if line in lines)
        found.append(replace(each, notes=tuple(dict.fromkeys((*each.notes, *more)))))
    return tuple(found)


def _lines(found: Diagnostic) -> set[tuple[str, int]]:
    """The lines that a finding speaks of."""
    return {_line(at) for at in (found.location, *(n.location for n in found.notes)) if at}


def _line(at: Location) -> tuple[str, int]:
    return at.file, at.line


def _once(code: str, at: Location | None) -> tuple[Any, ...]:
    return (code, at.file, at.line) if at else (code,)


_MOST_CAUSES = 10


def rendered(found: Sequence[Diagnostic]) -> str:
    """What people read: one complaint per cause, and of races ten causes at most."""
    groups = causes(found)
    is_cut = len(groups) > _MOST_CAUSES and any(each.evidence for each in groups)
    lines: list[str] = []
    for group in groups[:_MOST_CAUSES] if is_cut else groups:
        lines.append(group.first.render())
        if group.others:
            places = dict.fromkeys(f"line {d.location.line}" for d in group.others if d.location)
            lines.append(f"  and {len(group.others)} more with this cause: {', '.join(places)}")
    if is_cut:
        more = len(groups) - _MOST_CAUSES
        lines.append(f"{more} more causes: `findings` and --json have them all")
    return "\n".join(lines)


class PtoError(Exception):
    """Base of every error ptokit raises on purpose; holds all diagnostics found at once."""

    exit_code = 1

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        self.warnings: tuple[Diagnostic, ...] = ()  # of lines that no error speaks of
        super().__init__("\n".join(d.render() for d in self.diagnostics))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.diagnostics,), {"warnings": self.warnings}

    def __str__(self) -> str:
        # The leading line break keeps the position at the start of a line under a traceback.
        more = "".join(f"\n{each.render()}" for each in self.warnings)
        return f"\n{rendered(self.diagnostics)}{more}"

    def doubted(self, doubts: Iterable[Diagnostic]) -> None:
        """Take warnings along: as notes of the errors at their lines, or else as they are."""
        doubts = tuple(doubts)
        self.diagnostics = with_doubts(self.diagnostics, doubts)
        places = [
            at for d in self.diagnostics for at in (d.location, *(n.location for n in d.notes))
        ]
        told = {_line(at) for at in places if at}
        others = [d for d in doubts if d.location and _line(d.location) not in told]
        self.warnings = tuple(unrepeated((*self.warnings, *others)))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The diagnostics, grouped by what would mend them."""
        return causes(self.diagnostics)

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of all diagnostics, in order."""
        return tuple(d.code for d in self.diagnostics)


class ProgramError(PtoError):
    """The user's program breaks a rule."""


class NotSupported(PtoError):  # noqa: N818 - reads as the sentence it is
    """The program asks for something ptokit does not do yet."""


class InternalError(PtoError):
    """A bug in ptokit itself; please report it."""

    exit_code = 3


class UsageError(PtoError):
    """The command line was called wrongly."""

    exit_code = 2


_MOST_BITS = 128  # of an integer that is shown by its digits: Python prints no more than 4300
_MOST_SHOWN = 400  # characters of a value


def brief(value: object) -> str:
    """A value as a message shows it: whatever it is, of a length that people read."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = " ".join(_written(value).split("\n"))
    except Exception:  # what holds such an integer, or an object of a class that cannot be shown
        text = f"a {type(value).__name__}"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]} ..."


def _written(value: object) -> str:
    """A value as a program has it: an index as it stands in brackets, anything else as it is."""
    if isinstance(value, slice):
        ends = [value.start, value.stop] + [value.step] * (value.step is not None)
        return ":".join("" if end is None else str(end) for end in ends)
    if isinstance(value, tuple) and any(isinstance(each, slice) for each in value):
        return ", ".join(map(_written, value))
    return str(value)


def where(site: Site | Location | None) -> Location:
    """Return the location of a site, or of the user's current line when none is given."""
    if isinstance(site, Location):
        return site
    return (site or user_site()).location


def fail(
    code: str,
    message: str,
    *,
    got: Iterable[tuple[str, object]] = (),
    fix: str = "",
    site: Site | Location | None = None,
    target: str = "",
    notes: Iterable[Note] = (),
    kind: type[PtoError] = ProgramError,
) -> PtoError:
    """Build (not raise) an error with a single diagnostic at the user's line."""
    values = tuple((path, brief(value)) for path, value in got)
    return kind([Diagnostic(code, message, where(site), values, fix, target, notes=tuple(notes))])


usage_error = partial(fail, kind=UsageError)
