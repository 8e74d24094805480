"""Repairing a program: try what may mend a finding, and keep what the check says is better."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from itertools import islice

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic
from ptokit.base.evidence import causes
from ptokit.base.location import readable
from ptokit.repair.outline import outline
from ptokit.repair.remedies import Remedy, remedies

_MOST_TRIALS = 500  # runs of the program
_MOST_TRIED = 16  # remedies of one finding


@dataclass(frozen=True)
class Trial:
    """What the check says of a text; its locations name the text as `file`."""

    file: str
    found: tuple[Diagnostic, ...]

    @property
    def badness(self) -> tuple[int, ...]:
        """What stops a program hides what comes behind it; warnings stop nobody."""
        errors = [each for each in self.found if each.severity == "error"]
        return sum(not e.is_allowable for e in errors), len(errors), len(self.found)


@dataclass(frozen=True)
class Repair:
    """A program before and after."""

    file: str
    before: str
    after: str
    remedies: tuple[Remedy, ...]  # in the order they were applied, lines counted as they then were
    found: tuple[Diagnostic, ...]  # what was wrong
    remaining: tuple[Diagnostic, ...]  # what still is

    @property
    def is_clean(self) -> bool:
        return not self.remaining

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        name = readable(self.file).lstrip("/")
        return "".join(
            difflib.unified_diff(
                self.before.splitlines(keepends=True),
                self.after.splitlines(keepends=True),
                f"a/{name}",
                f"b/{name}",
            )
        )

    def __str__(self) -> str:
        lines = [self.diff.rstrip("\n")] if self.diff else []
        if self.remaining:
            said = ", ".join(f"{each.code} at {each.location}" for each in self.remaining)
            lines.append(f"what remains: {said}")
        return "\n".join(lines) or "nothing to repair"


def repair(text: str, check: Callable[[str], Trial], file: str) -> Repair:
    """Mend a program as far as possible; what comes out is never worse than what went in.

    `check` runs a text with every checker on. `file` is where it comes from: Python, by its name,
    or else PTO text.
    """
    before = best = check(text)
    current, applied, trials = text, list[Remedy](), 1
    improved = True
    while improved and best.found and trials < _MOST_TRIALS:
        improved = False
        program = outline(current, file)
        if program is None:
            break
        for cause in causes(best.found):
            chosen: tuple[Trial, str, Remedy] | None = None
            for remedy in islice(remedies(program, cause.first, best.file), _MOST_TRIED):
                if chosen is not None and not remedy.is_bold:
                    break
                patched = remedy.applied(program)
                trial, trials = check(patched), trials + 1
                if trial.badness < (best if chosen is None else chosen[0]).badness:
                    chosen = trial, patched, remedy
                if chosen is not None and (not remedy.is_bold or not chosen[0].found):
                    break  # of guesses the best is taken, of what was derived the first
            if chosen is not None:
                best, current, remedy = chosen
                applied.append(remedy)
                improved = True
            if improved or trials >= _MOST_TRIALS:
                break
    return Repair(file, text, current, tuple(applied), before.found, best.found)
