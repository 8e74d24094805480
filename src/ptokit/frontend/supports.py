"""`supports`: may I use this instruction there, with these element types - and if not, why?"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from ptokit.base.diagnostics import UsageError, fail
from ptokit.base.dtypes import DType
from ptokit.base.dtypes import dtype as find_dtype
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.targets import Target
from ptokit.isa.targets import target as find_target


@dataclass(frozen=True)
class Answer:
    """Yes, or no with the reason; usable as a truth value."""

    yes: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.yes

    def __repr__(self) -> str:
        return "yes" if self.yes else f"no: {self.reason}"


def supports(
    name: str, *, target: str | Target = "a2a3", dtype: str | DType | None = None
) -> Answer:
    """Whether an instruction exists on a target, and takes tiles of an element type there."""
    insn = INSTRUCTIONS.get(name.upper()) or INSTRUCTIONS.get(name)
    if insn is None:
        near = difflib.get_close_matches(name.upper(), INSTRUCTIONS, 1)
        raise fail(
            "unknown-instruction",
            f"there is no instruction {name!r}",
            fix=f"did you mean {near[0]}?" if near else "",
            kind=UsageError,
        )
    device = find_target(target)
    if device.name not in insn.targets:
        have = sorted(insn.targets - {"cpu"})
        where = f"it exists on {', '.join(have)}" if have else "no supported device has it"
        return Answer(False, f"{insn.name} does not exist on {device.name}; {where}")
    if dtype is None:
        return Answer(True)
    kind = find_dtype(dtype)
    if kind not in device.dtypes:
        return Answer(False, f"{device.name} has no element type {kind.name}")
    for group in insn.types:
        combos = group.allowed.get(device.name)
        if combos is not None and not any(kind in combo for combo in combos):
            legal = sorted({t.name for combo in combos for t in combo})
            names = ", ".join(group.of)
            return Answer(
                False, f"{names} of {insn.name} on {device.name} takes only {' '.join(legal)}"
            )
    return Answer(True)
