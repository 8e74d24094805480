"""Which name and which template arguments a C++ call has; the records say how (see `Cpp`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptokit.isa import INSTRUCTIONS
from ptokit.isa.spec import Insn, Operand, Pipe


def name_of(insn: Insn, present: set[str], given: Mapping[str, Any]) -> str:
    """The C++ function: a transfer with a table of scales has a name of its own."""
    with_scales = _with_scales(insn, present, given)
    name = with_scales.name if with_scales else insn.overload_of or insn.name
    return name.replace(".", "::")


def number_text(operand: Operand, number: float, declared: str) -> str:
    """A number that is not data: the name of a pipe or event, or the number itself."""
    if "pipe" in operand.kinds:
        return f"PIPE_{Pipe(int(number)).name}"
    return f"EVENT_ID{number}" if declared == "event" else str(number)


def brackets(insn: Insn, present: set[str], given: Mapping[str, Any]) -> list[str] | None:
    """The words in the angle brackets; None when C++ has no way to say it.

    `given` holds the template arguments that differ from their default.
    """
    for operand, attr in insn.cpp.asks_for.items():
        if operand in present and attr not in given:
            return None
    own = [a.name for a in insn.attrs if not a.argument]
    chosen = {name for name in own if name in given}
    patterns = (_with_scales(insn, present, given) or insn).cpp.brackets
    if patterns is None:
        last = max((i for i, n in enumerate(own) if n in chosen), default=-1)
        return [f"@{n}" for n in own[: last + 1]]
    first = [f"@{name}" for name in chosen & {insn.cpp.first}]
    values = {a.name: given.get(a.name, a.default) for a in insn.attrs}
    for pattern in patterns:
        words = pattern.split()
        shown = {w[1:] for w in words if w.startswith("@")}
        types = {w.partition(".")[0] for w in words if not w.startswith("@")}
        said = all(values[name] is not None for name in shown)
        if types <= present and chosen - {insn.cpp.first} <= shown and said:
            return first + words
    return None


def _with_scales(insn: Insn, present: set[str], given: Mapping[str, Any]) -> Insn | None:
    if "fp" not in present or given.get("accToVecMode") is not None:
        return None
    return INSTRUCTIONS.get(f"{insn.name}_FP")
