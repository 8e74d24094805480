"""Watching a program of one instruction stream for what a launch would find at its end."""

from __future__ import annotations

from ptokit.base.diagnostics import ProgramError
from ptokit.isa.effects import Flag
from ptokit.machine.aftermath import left_flags
from ptokit.machine.clocks import Clocks, CoreClocks
from ptokit.machine.findings import Findings
from ptokit.machine.journal import Journal, PromptJournal
from ptokit.machine.machine import Machine
from ptokit.machine.ranks import here


class Watch:
    """Looks for accesses of a machine that nothing orders, from now on."""

    def __init__(self, machine: Machine) -> None:
        self._machine, core, rank = machine, machine.core, here()
        history = None if rank is None else rank.ranks.history
        target = machine.target
        self.findings = Findings(target.name, machine.policy, target.event_ids)
        if rank is not None and history is not None:
            core.number, core.rank = history.first_core(rank.number), rank.number
            self.findings.cores = history.cores
        self.findings.cores[core.number] = core
        kind = Clocks if machine.mode == "manual" else CoreClocks
        clocks = kind(None if history is None else history.clocks)
        kept = Journal if history is None else PromptJournal
        machine.journal = kept(machine, clocks, self.findings, history)
        machine.sync.journal = machine.journal

    def raise_found(self) -> None:
        """At the end of the program, raise what was found; warnings join those of the machine."""
        core = self._machine.core
        left_flags(self.findings, core)
        self.findings.flags.update(flag for flag in core.flags if isinstance(flag, Flag))
        found = self.findings.errors
        if found:
            self.findings.forget()  # a rank may run another program
            raise ProgramError(found)
        for each in self.findings.diagnostics:
            self._machine.warnings.add(each)
