"""Watching a program of one instruction stream for what a launch would find at its end."""

from __future__ import annotations

from ptokit.base.diagnostics import ProgramError
from ptokit.machine.aftermath import left_flags
from ptokit.machine.clocks import Clocks
from ptokit.machine.findings import Findings
from ptokit.machine.hazards import HazardLog
from ptokit.machine.machine import Machine


class Watch:
    """Looks for accesses of a machine that nothing orders, from now on."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.findings = Findings(machine.target.name, machine.policy)
        self.findings.cores[machine.core.number] = machine.core
        log = machine.sync.log = HazardLog(machine, Clocks(), self.findings)
        machine.subscribe(log.see, accesses_only=True)

    def raise_found(self) -> None:
        """At the end of the program, raise what was found; warnings join those of the machine."""
        left_flags(self.findings, self._machine.core)
        if self.findings.errors:
            raise ProgramError(self.findings.errors)
        for each in self.findings.diagnostics:
            self._machine.warnings.add(each)
