"""`supports`: may I use this instruction there, with these element types - and if not, why?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError, usage_error
from ptokit.base.dtypes import ALL, DType
from ptokit.base.dtypes import dtype as find_dtype
from ptokit.base.entry import public
from ptokit.base.spelling import meant
from ptokit.frontend.arguments import template
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.rules import listed as joined
from ptokit.isa.samples import sample
from ptokit.isa.spec import Insn
from ptokit.isa.targets import Target
from ptokit.isa.targets import target as find_target
from ptokit.isa.verify import verify


@dataclass(frozen=True)
class Answer:
    """Yes, or no with the reason; usable as a truth value."""

    yes: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.yes

    def __repr__(self) -> str:
        return "yes" if self.yes else f"no: {self.reason}"


def instruction(name: str) -> Insn:
    """The instruction of a name, however it is capitalised."""
    found = INSTRUCTIONS.get(name) or INSTRUCTIONS.get(name.upper())
    if found is None:
        raise usage_error(
            "unknown-instruction",
            f"there is no instruction {name!r}",
            fix=meant(name, INSTRUCTIONS, 3) or "`ptokit isa` lists all of them",
        )
    return found


@public
def supports(
    name: str, *, target: str | Target = "a2a3", dtype: str | DType | None = None
) -> Answer:
    """Whether an instruction exists on a target, and takes tiles of an element type there."""
    insn = instruction(name)
    device = find_target(target)
    if device.name not in insn.targets:
        have = sorted(insn.targets - {"cpu"})
        where = f"it exists on {', '.join(have)}" if have else "no supported device has it"
        return Answer(False, f"{insn.name} does not exist on {device.name}; {where}")
    if dtype is None:
        return Answer(True)
    with template("supports", 'supports("TADD", target="a5", dtype="bf16")', dtype, "arguments"):
        kind = find_dtype(dtype)
    if kind not in device.dtypes:
        return Answer(False, f"{device.name} has no element type {kind.name}")
    listed = insn.types[0].allowed.get(device.name) if insn.types else None
    if listed is None:  # rules decide; the permissive profile has none about element types
        return _tried(insn, device, kind) if device.is_device else Answer(True)
    if any(kind in combo for combo in listed):
        return Answer(True)
    legal = " ".join(t.name for t in ALL if any(t in combo for combo in listed))
    names = joined(insn.types[0].of)
    return Answer(False, f"{insn.name} on {device.name} takes only {legal} as {names}")


def _tried(insn: Insn, device: Target, kind: DType) -> Answer:
    """Whether a sample call of the record may have an element type."""
    reasons: list[str] = []
    moved = [o for o in insn.operands if {"tile", "global"} & set(o.kinds)]
    if not moved or any(o.is_object for o in insn.operands):
        return Answer(True)  # no element types, or those of what a pipe was made for
    for example in (insn.example, *insn.more_examples):
        if device.name not in example.get("on", device.name).split():
            continue
        for retyped in _retyped(example, kind):
            try:
                facts = sample(insn, device, {moved[0].name: kind}, retyped).facts()
            except PtoError:
                continue  # a tile of these sizes cannot have the type
            found = verify(insn, facts, advise=False)
            if not found:
                return Answer(True)
            reasons.append(found[0].message)
    return Answer(False, reasons[0] if reasons else f"{insn.name} does not take {kind.name}")


def _retyped(example: Mapping[str, str], kind: DType) -> Iterator[dict[str, str]]:
    """The example with one of its element types replaced, for each that data may have."""
    data = [text for text in example.values() if not text.startswith("Scaling")]
    words = {word for text in data for word in text.split()}
    known = [t.name for t in ALL if t.name in words]
    for name in known or [kind.name]:
        yield {
            key: " ".join(kind.name if word == name else word for word in text.split())
            for key, text in example.items()
        }
