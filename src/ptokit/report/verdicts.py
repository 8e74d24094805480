"""The verdict of every target on one kernel, as a table."""

from __future__ import annotations

from dataclasses import dataclass

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
            errors = sum(d.severity == "error" for d in diagnostics)
            warnings = len(diagnostics) - errors
            verdict = f"{errors} errors" if errors else "ok"
            verdict += f", {warnings} warnings" if warnings else ""
            codes = ", ".join(dict.fromkeys(d.code for d in diagnostics))
            lines.append(f"  {name:<10} {verdict:<18} {codes}".rstrip())
        return "\n".join(lines)

    __repr__ = __str__
