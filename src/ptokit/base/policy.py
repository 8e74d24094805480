"""How much a finding matters: what follows from where a rule comes from, and what was allowed.

A rule that no compiler or device enforces is no reason to stop: the program compiles, and something
happens. Where it is known what, a broken rule is a warning that says so; where nobody knows, it is
an error, whoever states the rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, Note
from ptokit.base.location import Location
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.patterns import regex

PROFILES = ("default", "strict", "release")

# Origins that nothing enforces -> what a message says of them.
UNENFORCED = {
    "debug": "an assertion of debug builds",
    "doc": "stated in the documentation only",
    "own": "derived by us",
}


class Origin(NamedTuple):
    """`static`, `debug`, `runtime`, `doc` or `own`; `seed`: a page of the language states it."""

    kind: str
    seed: bool = False

    def __str__(self) -> str:
        return f"{self.kind}, seed" if self.seed else self.kind

    @property
    def words(self) -> str:
        """What a message says of it; nothing where a compiler or the hardware insists."""
        return UNENFORCED.get(self.kind, "")


class Allowed(NamedTuple):
    """A finding that is silenced: a code, perhaps in one file or on one line of it only."""

    code: str
    file: str = ""
    line: int = 0

    @staticmethod
    def read(text: str) -> Allowed:
        """From "PA-0044", "E8@softmax.py" or "E8@softmax.py:41"."""
        code, _, place = text.partition("@")
        file, _, line = (
            place.rpartition(":") if place.rpartition(":")[2].isdigit() else (place, "", "")
        )
        return Allowed(code.strip(), file.strip(), int(line or 0))

    def matches(self, code: str, location: Location | None) -> bool:
        """Whether a finding is meant."""
        if code != self.code:
            return False
        if not self.file:
            return True
        if location is None or (self.line and location.line != self.line):
            return False
        wanted = PurePath(self.file).parts
        return PurePath(location.file).parts[-len(wanted) :] == wanted

    def __str__(self) -> str:
        place = f"@{self.file}" if self.file else ""
        return self.code + place + (f":{self.line}" if self.line else "")


_COMMENT = regex(r"(?:#|//)\s*ptokit:\s*allow\s+([\w.\-]+(?:\s*,\s*[\w.\-]+)*)")


def allowed_in(line: str) -> frozenset[str]:
    """The codes that a comment on a line of source allows: `# ptokit: allow PA-0044, E8`."""
    found = comment_that_allows(line)
    return frozenset(re.split(r"\s*,\s*", found[1])) if found else frozenset()


def comment_that_allows(line: str) -> re.Match[str] | None:
    """The comment on a line that names what is allowed there, up to the last code."""
    return _COMMENT.search(line)


@dataclass(frozen=True)
class Policy:
    """What is an error, what a warning, and what is silent.

    `default`: what the tool chain, the hardware or a page of the language states is an error.
    `strict`: every broken rule is. `release`: what the device does; only what a release build
    still enforces is an error.
    """

    profile: str = "default"
    allow: frozenset[Allowed] = frozenset()

    def severity(self, origin: Origin, *, is_defined: bool) -> str:
        """How much a broken rule matters; `is_defined`: it is known what then happens."""
        if not is_defined or self.profile == "strict" or not origin.words:
            return "error"
        return "error" if origin.seed and self.profile != "release" else "warning"

    @property
    def carries_poison(self) -> bool:
        """Whether bytes that nothing wrote may be read, and what is made of them is undefined."""
        return self.profile == "release"

    def allows(self, code: str, location: Location | None) -> bool:
        """Whether a finding is to be silent."""
        if any(each.matches(code, location) for each in self.allow):
            return True
        return location is not None and code in allowed_in(location.text)

    def judge(self, found: Iterable[Diagnostic]) -> list[Diagnostic]:
        """The findings that are not silent."""
        kept: list[Diagnostic] = []
        for each in found:
            if not self.allows(each.code, each.location):
                kept.append(each)
            elif each.severity == "error" and not each.is_allowable:
                kept.append(replace(each, notes=(*each.notes, _NOT_ALLOWED)))
        return kept


_NOT_ALLOWED = Note("allowing it does not help: it cannot be said how the program would go on")
DEFAULT = Policy()
