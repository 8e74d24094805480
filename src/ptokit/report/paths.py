"""What each instruction can do on each path, and why not where it cannot.

A gap is a fact of the language, told from the record: every reason below says what the text has no
form for. The page of all gaps is generated; a test runs the example of every instruction on every
path, and fails for a listed gap that works.
"""

from __future__ import annotations

from collections.abc import Iterable

from ptokit.isa.asm import outputs
from ptokit.isa.spec import TARGETS, Insn, View

PATHS = {
    "eager": "called from Python",
    "lowered": "in a kernel that is lowered",
    "l1": "Level 1",
    "l2": "Level 2",
    "l3": "Level 3",
    "sync": "assembly lines",
    "cpp": "PTO C++",
}
_VALUES = ("l1", "sync")  # where tiles are values


def gap(insn: Insn, path: str) -> str:
    """Why an instruction cannot take a path; nothing when it can."""
    if insn.targets.isdisjoint(TARGETS):
        return "no supported device has it"
    is_derived = insn.asm is not None and not insn.asm.syntax
    if path in _VALUES and is_derived and _reads_its_result(insn):
        return "it reads its destination, and a tile that is a result starts empty"
    if path == "sync" and _needs_an_object(insn):
        return "an operation makes what it needs; lines are arguments, constants and instructions"
    return ""


def _reads_its_result(insn: Insn) -> bool:
    made = [o for o in outputs(insn) if "global" not in o.kinds]
    return any(o.role == "inout" and o.view is not View.OBJECT for o in made)


def _needs_an_object(insn: Insn) -> bool:
    """Whether it works on a FIFO, a group, a session, or a convolution tile with parameters."""
    kinds = {kind for operand in insn.operands for kind in operand.kinds}
    made = {"fifo", "async_session", "prefetch_async_context"}
    listed = any("..." in line for line in (insn.asm.syntax.values() if insn.asm else ()))
    return bool(kinds & made) or (listed and bool(insn.operands)) or ".Set" in insn.setup


def paths_page(insns: Iterable[Insn]) -> str:
    """The list of all gaps, by reason."""
    found: dict[str, dict[str, list[str]]] = {}
    every = list(insns)
    for insn in every:
        for path in PATHS:
            reason = gap(insn, path)
            if reason:
                found.setdefault(reason, {}).setdefault(insn.name, []).append(path)
    lines = [
        "# Paths",
        "",
        f"{len(every)} instructions on {len(PATHS)} paths: "
        + ", ".join(f"{what} (`{path}`)" for path, what in PATHS.items())
        + ". The example of its page runs on each, to the same bytes, except for:",
        "",
    ]
    for reason, names in sorted(found.items()):
        lines += [
            f"## {reason[0].upper()}{reason[1:]}",
            "",
            "| instruction | not on |",
            "|---|---|",
        ]
        lines += [f"| {name} | {', '.join(paths)} |" for name, paths in sorted(names.items())]
        lines.append("")
    return "\n".join(lines)
