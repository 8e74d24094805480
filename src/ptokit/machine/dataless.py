"""Running a program for its order alone: calls are verified, queued and told of, not computed.

What binds names, loads registers or orders work is done as ever. What computes is not: memories
keep what they hold, and nobody asks whether it is defined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptokit.base.diagnostics import NotSupported, fail
from ptokit.isa.record import DATA
from ptokit.machine.calls import Call
from ptokit.machine.executor import FastExecutor, Place, named, order


class DatalessExecutor(FastExecutor):
    """Executes the order of calls and none of their arithmetic."""

    def execute(self, call: Call, operands: Sequence[Any], site: Place) -> Any:
        if call.effects is not None:
            return order(self.machine, call, operands, site)
        insn = call.insn
        if insn.pipe is None and not _touches(call):
            return super().execute(call, operands, site)
        if call.before:
            self.machine.sync.apply(call.before, site, named(call, operands))
        if insn.returns and _touches(call):
            raise fail(
                "timing.data",
                f"{insn.name} reads what the program has computed, and a run without data has "
                "computed nothing",
                fix="time it with data=True, on arguments that take the branches you ask about",
                site=site,
                kind=NotSupported,
            )
        return None


def _touches(call: Call) -> bool:
    """Whether a call moves or computes data, beside naming it."""
    return bool(call.accesses or call.global_patterns) and any(
        DATA.intersection(operand.kinds) and not operand.is_handle for operand in call.insn.operands
    )
