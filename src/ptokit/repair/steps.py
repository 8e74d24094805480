"""Lines to insert, to replace or to take out, that belong together."""

from __future__ import annotations

from functools import lru_cache

from ptokit.base.dataclass import dataclass
from ptokit.repair.outline import Outline, Statement
from ptokit.repair.spelling import PythonSpelling, Spelling, TextSpelling


@dataclass(frozen=True)
class Step:
    """A line to insert before or behind a statement, or to put in its place, or none."""

    code: str
    at: Statement
    behind: bool = False
    why: str = ""  # "prime", "drain"
    instead: bool = False

    @property
    def line(self) -> int:
        """The line before which it is inserted."""
        return self.at.last + 1 if self.behind else self.at.first

    def __str__(self) -> str:
        place = f"after line {self.at.last}" if self.behind else f"before line {self.at.first}"
        if self.instead:
            place = f"instead of line {self.at.first}"
            if not self.code:
                return f"without line {self.at.first}"
        return f"{f'{self.why}: ' if self.why else ''}{self.code} {place}"


@dataclass(frozen=True)
class Remedy:
    """Lines that belong together."""

    steps: tuple[Step, ...]

    @property
    def is_bold(self) -> bool:
        """Whether it changes what the author wrote: a guess among several."""
        return any(step.instead for step in self.steps)

    def __str__(self) -> str:
        return "; ".join(map(str, self.steps))

    def applied(self, program: Outline) -> str:
        """The text of the program with the lines in place."""
        lines = program.text.splitlines(keepends=True)
        inserted: dict[int, list[str]] = {}
        replaced = {step.at.first: step.at.last for step in self.steps if step.instead}
        for step in self.steps:
            code = f"{step.at.block.indent}{step.code}\n" if step.code else ""
            inserted.setdefault(step.line, []).append(code)
        heading = spelling_of(program).heading(" ".join(step.code for step in self.steps))
        if heading is not None:
            inserted.setdefault(heading[0] + 1, []).append(f"{heading[1]}\n")
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        for line in sorted(inserted, reverse=True):
            lines[line - 1 : replaced.get(line, line - 1)] = inserted[line]
        return "".join(lines)


@lru_cache(maxsize=8)
def spelling_of(program: Outline) -> Spelling:
    """How flags are written in a program."""
    return PythonSpelling(program.text) if program.is_python else TextSpelling()
