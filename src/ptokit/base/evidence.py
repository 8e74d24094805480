"""The evidence of a race, as data: two accesses, the bytes they share, the order that is missing.

`causes` puts findings together that one edge would mend: those of the same pipes whose stretches of
lines, from the earlier access to the later one, have a line in common.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ptokit.base.dataclass import dataclass
from ptokit.base.location import Location

if TYPE_CHECKING:
    from ptokit.base.diagnostics import Diagnostic

# What is missing between accesses of different cores.
BETWEEN_CORES, BETWEEN_BLOCKS, BETWEEN_RANKS = "between cores", "between blocks", "between ranks"


@dataclass(frozen=True)
class Part:
    """Elements of a tile or view: rows and columns from the first to behind the last."""

    rows: tuple[int, int]
    cols: tuple[int, int]

    def __str__(self) -> str:
        return f"[{self.rows[0]}:{self.rows[1]}, {self.cols[0]}:{self.cols[1]}]"


@dataclass(frozen=True)
class Accessed:
    """One of the two accesses."""

    instruction: str
    operand: str
    does: str  # "reads" or "writes"
    pipe: str
    core: str
    location: Location | None = None
    part: Part | None = None  # the elements that both touch, as this operand counts them


@dataclass(frozen=True)
class Evidence:
    """Why two accesses are a race."""

    earlier: Accessed
    later: Accessed
    memory: str
    span: tuple[int, int]  # bytes of the memory, the first stretch they share
    edge: str  # what would order them: "MTE2->V", "barrier V", "between cores", "between ranks" ...
    schedule: str = "in order"  # of the run that showed it
    changes: str = ""  # the values that it gets wrong there, where somebody looked for them
    # Ids that the program uses for no flag: between the two pipes, or the two cores of a cluster;
    # None: of other accesses.
    free: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Finding:
    """Complaints with one cause; the first speaks for all."""

    first: Diagnostic
    others: tuple[Diagnostic, ...] = ()

    @property
    def code(self) -> str:
        return self.first.code

    @property
    def severity(self) -> str:
        """The worst of its complaints."""
        all_of_them = (self.first, *self.others)
        return "error" if any(d.severity == "error" for d in all_of_them) else "warning"

    @property
    def evidence(self) -> Evidence | None:
        return self.first.evidence


def causes(found: Iterable[Diagnostic]) -> tuple[Finding, ...]:
    """Complaints grouped by what would mend them, in the order of their first ones."""
    groups: list[tuple[object, tuple[int, int], Finding]] = []
    for each in found:
        key, span = _cause(each)
        for index, (other, (low, high), finding) in enumerate(groups):
            if key is not None and key == other and low <= span[1] and span[0] <= high:
                common = max(low, span[0]), min(high, span[1])  # where one edge mends them all
                groups[index] = key, common, replace(finding, others=(*finding.others, each))
                break
        else:
            groups.append((key, span, Finding(each)))
    return tuple(finding for _, _, finding in groups)


def _cause(found: Diagnostic) -> tuple[object, tuple[int, int]]:
    """What is missing, and between which lines; None: a complaint that stands for itself."""
    evidence = found.evidence
    if evidence is None or evidence.earlier.location is None or evidence.later.location is None:
        return None, (0, 0)
    first, last = evidence.earlier.location, evidence.later.location
    goes_round = last.line < first.line  # by way of a loop
    span = (last.line, first.line) if goes_round else (first.line, last.line)
    core = evidence.later.core, evidence.earlier.core
    return (found.code, evidence.edge, goes_round, first.file, last.file, core), span
