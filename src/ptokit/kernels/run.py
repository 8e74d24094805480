"""What a launch leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, PtoError
from ptokit.base.evidence import Finding, causes
from ptokit.isa.targets import Target
from ptokit.machine.machine import Machine

if TYPE_CHECKING:
    from ptokit.machine.recording import Recording
    from ptokit.report.page import Page
    from ptokit.timing.report import Timing


class Again(Protocol):
    """What can be asked of a launch that has ended, by having it run once more."""

    def timing(self) -> Timing:
        """How long it takes on the device."""
        ...

    def page(self, run: Run) -> Page:
        """All that is known of it, as a page."""
        ...


@dataclass(frozen=True)
class Run:
    """What a launch leaves behind."""

    kernel: str
    target: Target
    mode: str
    path: str
    blocks: int
    seconds: float
    machine: Machine  # of the last block
    events: Recording | None = None  # of every executed operation, when the launch was asked to
    warnings: tuple[Diagnostic, ...] = ()  # rules that were broken without stopping it
    chosen: Sequence[tuple[int, int]] = ()  # of `Schedule.choices`: what was chosen of how many
    timing: Timing | None = None  # how long it takes on the device, when the launch was asked to
    _again: Again | None = field(default=None, repr=False, compare=False)

    def report(self) -> Page:
        """The launch as a page: where the time goes on the device, and what was found.

        A notebook shows it; `run.report().write("k.html")` keeps it as one file.
        """
        assert self._again is not None
        return self._again.page(self)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The warnings, grouped by what would mend them; errors are raised, and have the same."""
        return causes(self.warnings)

    def __repr__(self) -> str:
        return (
            f"<{self.kernel} on {self.target.name}, {self.mode} mode, {self.path}: "
            f"{self.blocks} block{'s' if self.blocks > 1 else ''} in {self.seconds * 1e3:.1f} ms>"
        )

    def _repr_html_(self) -> str:
        from ptokit.pictures.notebook import beside, card, plain, toned

        note = repr(self).removeprefix(f"<{self.kernel} ").removesuffix(">")
        found = [each.first.render() for each in self.findings]
        said = plain("\n\n".join(found)) if found else toned("nothing was found", "good")
        try:
            timing = self.timing or (self._again.timing() if self._again else None)
        except PtoError:  # what it does depends on data, or times of its target are not known
            timing = None
        lanes = [beside(timing.svg())] if timing else []
        return card(self.kernel, *lanes, said, note=note)
