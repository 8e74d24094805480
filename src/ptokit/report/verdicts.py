"""The verdict of every target on one kernel, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic


@dataclass(frozen=True)
class Report:
    """The verdict of every target on one kernel."""

    kernel: str
    found: dict[str, tuple[Diagnostic, ...]]

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """All complaints of all targets."""
        return [d for found in self.found.values() for d in found]

    def __bool__(self) -> bool:
        return not any(d.severity == "error" for d in self.diagnostics)

    def __str__(self) -> str:
        lines = [f"{self.kernel}:"]
        for name, diagnostics in self.found.items():
            verdict, codes = _verdict(diagnostics)
            lines.append(f"  {name:<10} {verdict:<18} {codes}".rstrip())
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from ptokit.pictures.notebook import card

        return card(self.kernel, self.table())

    def table(self) -> str:
        """The verdicts as HTML, each with what was found behind it."""
        from ptokit.pictures.notebook import table

        rows = [[name, *_cells(found)] for name, found in self.found.items()]
        return table(["target", "verdict", "findings"], rows)


def _verdict(diagnostics: Sequence[Diagnostic]) -> tuple[str, str]:
    """How many of what, and their ids."""
    errors = sum(d.severity == "error" for d in diagnostics)
    warnings = len(diagnostics) - errors
    verdict = f"{errors} errors" if errors else "ok"
    verdict += f", {warnings} warnings" if warnings else ""
    return verdict, ", ".join(dict.fromkeys(d.code for d in diagnostics))


def _cells(diagnostics: Sequence[Diagnostic]) -> tuple[str, str]:
    from ptokit.pictures.notebook import plain, toned

    verdict, codes = _verdict(diagnostics)
    is_bad = any(d.severity == "error" for d in diagnostics)
    tone = "bad" if is_bad else "warn" if diagnostics else "good"
    said = "\n\n".join(d.render() for d in diagnostics)
    unfolds = f"<details><summary>{codes}</summary>{plain(said)}</details>" if said else ""
    return toned(verdict, tone), unfolds
