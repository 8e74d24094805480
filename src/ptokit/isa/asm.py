"""The text forms of an instruction, derived from its record.

Everything here follows from operand roles and the record's `Asm`: destinations become results (sync
form, Level 1) or `outs` (Level 2), sources become operands or `ins`. Parser, printer and the
documentation ask this module; none of them knows an instruction.
"""

from __future__ import annotations

from ptokit.isa.spec import Insn, Operand

FORMS = ("sync", "l1", "l2")

_TYPES = {
    "tile": "!pto.tile<...>",
    "conv": "!pto.tile<...>",
    "global": "!pto.partition_tensor_view<...>",
}


def mnemonic(insn: Insn) -> str:
    """The name in text, without the `pto.` prefix."""
    assert insn.asm is not None
    return insn.asm.name or insn.name.lower()


def inputs(insn: Insn, form: str = "l2") -> list[Operand]:
    """Operands read by the text op, in their written order."""
    asm = insn.asm
    assert asm is not None
    if asm.ins is not None:
        chosen = [insn.operand(name) for name in asm.ins]
        return [o for o in chosen if o.role != "tmp" or form in asm.tmp]
    return [o for o in insn.operands if o.role == "in" or (o.role == "tmp" and form in asm.tmp)]


def outputs(insn: Insn) -> list[Operand]:
    """Operands written by the text op, in their written order."""
    asm = insn.asm
    assert asm is not None
    if asm.outs is not None:
        return [insn.operand(name) for name in asm.outs]
    return [o for o in insn.operands if o.role in ("out", "inout")]


def text_forms(insn: Insn) -> dict[str, str]:
    """The pattern of each form the instruction has, as its page shows it."""
    if insn.asm is None:
        return {}
    written = {"sync": _sync, "l1": _level1, "l2": _level2}
    return {form: written[form](insn) for form in FORMS if form in insn.asm.forms}


def _sync(insn: Insn) -> str:
    return _ssa(insn, "sync", mnemonic(insn))


def _level1(insn: Insn) -> str:
    return _ssa(insn, "l1", "pto." + mnemonic(insn))


def _ssa(insn: Insn, form: str, name: str) -> str:
    needed = [o for o in inputs(insn, form) if not o.optional]
    results = [o for o in outputs(insn) if "global" not in o.kinds and not o.optional]
    stored = [o for o in outputs(insn) if "global" in o.kinds]
    operands = needed + stored
    left = ", ".join(f"%{o.name}" for o in results)
    args = ", ".join(f"%{o.name}" for o in operands)
    kinds = [_type(o, "tile") for o in operands]
    source = kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"
    target = ", ".join(_type(o, "tile") for o in results) or "()"
    lead = f"{left} = " if left else ""
    return f"{lead}{name} {args} : {source} -> {target}"


def _level2(insn: Insn) -> str:
    ins, outs = ([o for o in side if not o.optional] for side in (inputs(insn), outputs(insn)))
    parts = [f"pto.{mnemonic(insn)}"]
    for word, side in (("ins", ins), ("outs", outs)):
        if side:
            names = ", ".join(f"%{o.name}" for o in side)
            parts.append(f"{word}({names} : {', '.join(_type(o, 'tile_buf') for o in side)})")
    return " ".join(parts)


def _type(operand: Operand, tile: str) -> str:
    kind = operand.kinds[0]
    return (
        "dtype"
        if kind == "scalar"
        else _TYPES.get(kind, "...").replace("!pto.tile<", f"!pto.{tile}<")
    )
