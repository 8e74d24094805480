"""The text forms of an instruction, derived from its record.

Everything here follows from operand roles and the record's `Asm`: destinations become results (sync
form, Level 1) or `outs` (Level 2), sources become operands or `ins`. Parser, printer and the
documentation ask this module; none of them knows an instruction.
"""

from __future__ import annotations

import re
from enum import IntEnum

from ptokit.isa.spec import Asm, Insn, Operand

FORMS = ("sync", "l1", "l2")

_TYPES = {
    "tile": "!pto.tile<...>",
    "conv": "!pto.conv_tile<...>",
    "global": "!pto.partition_tensor_view<...>",
}

_PLACED = ("!pto.memref<...>", "index", "index")


def _asm(insn: Insn) -> Asm:
    assert insn.asm is not None, f"{insn.name} has no text form"
    return insn.asm


def mnemonic(insn: Insn) -> str:
    """The name in text, without the `pto.` prefix."""
    return _asm(insn).name or insn.name.lower()


def inputs(insn: Insn, form: str = "l2") -> list[Operand]:
    """Operands read by the text op, in their written order."""
    asm = _asm(insn)
    if asm.ins is not None:
        chosen = [insn.operand(name) for name in asm.ins]
        return [o for o in chosen if o.role != "tmp" or form in asm.tmp]
    return [o for o in insn.operands if o.role == "in" or (o.role == "tmp" and form in asm.tmp)]


def outputs(insn: Insn, form: str = "l2") -> list[Operand]:
    """Operands written by the text op, in their written order."""
    asm = _asm(insn)
    if asm.outs is not None:
        chosen = [insn.operand(name) for name in asm.outs]
        return [o for o in chosen if o.role != "tmp" or form in asm.tmp]
    return [o for o in insn.operands if o.role in ("out", "inout")]


def text_forms(insn: Insn) -> dict[str, str]:
    """The pattern of each form the instruction has, as its page shows it: a line per overload."""
    if insn.asm is None:
        return {}
    if insn.asm.syntax:
        lines = [f"pto.{name}{_shown(insn, line)}" for name, line in insn.asm.syntax.items()]
        return {"l2": "\n".join(("%result = " if insn.returns else "") + line for line in lines)}
    # Overloads that leave an operand to its default, or to a template argument, are C++ only.
    needed = {o.name for o in insn.operands if not o.optional}
    overloads = [names for names in insn.forms if needed <= set(names)]
    return {
        form: "\n".join(dict.fromkeys(_line(insn, names, form) for names in overloads))
        for form in FORMS
        if form in insn.asm.forms
    }


def _shown(insn: Insn, syntax: str) -> str:
    """A syntax as a page shows it: optional parts in brackets, types and attributes elided."""
    line = re.sub(r" ?\{\}$| ?\{\}(?= )", "", syntax).replace("[?", "[").replace("?]", "]")
    line = re.sub(
        r"\{([^}]+)\}", lambda m: "{" + re.sub(r"(\w+)\??", r"\1 = ...", m[1]) + "}", line
    )
    line = re.sub(r"@(\w+)", lambda m: "<PIPE_...>" if _is_pipe(insn, m[1]) else f"<{m[1]}>", line)
    line = re.sub(r"T\((\w+)[^)]*\)", lambda m: _type_named(insn, m[1]), line)
    return line if line[:1] in ("(", "[", "") else f" {line}"


def _is_pipe(insn: Insn, key: str) -> bool:
    return any(o.name == key and "pipe" in o.kinds for o in insn.operands)


def _type_named(insn: Insn, name: str) -> str:
    found = [o for o in insn.operands if o.name == name]
    return _type(found[0], "tile_buf") if found else "dtype"


def _line(insn: Insn, names: tuple[str, ...], form: str) -> str:
    name = mnemonic(insn) + "".join(s for o, s in _asm(insn).suffixes.items() if o in names)
    if form == "l2":
        return _level2(insn, names, f"pto.{name}")
    return _ssa(insn, names, form, name if form == "sync" else f"pto.{name}")


def _ssa(insn: Insn, names: tuple[str, ...], form: str, name: str) -> str:
    given = [o for o in inputs(insn, form) if o.name in names]
    outs = [o for o in outputs(insn, form) if o.name in names]
    results = [o for o in outs if "global" not in o.kinds]
    operands = given + [o for o in outs if "global" in o.kinds]
    left = ", ".join(f"%{o.name}" for o in results)
    placed = _asm(insn).indexed if form == "sync" else ""
    written = [f"%{o.name}[%row, %col]" if o.name == placed else f"%{o.name}" for o in operands]
    args = ", ".join(written) + _attributes(insn, names)
    line = f"{left} = {name} {args}" if left else f"{name} {args}".rstrip()
    kinds = [
        kind for o in operands for kind in (_PLACED if o.name == placed else (_type(o, "tile"),))
    ]
    types = [_type(o, "tile") for o in results]
    if form in _asm(insn).plain:
        return f"{line} : {', '.join(kinds + types)}"
    return f"{line} : {_listed(kinds)} -> {_listed(types)}"


def _listed(types: list[str]) -> str:
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


def _level2(insn: Insn, names: tuple[str, ...], name: str) -> str:
    ins, outs = ([o for o in side if o.name in names] for side in (inputs(insn), outputs(insn)))
    parts = [name]
    for word, side in (("ins", ins), ("outs", outs)):
        if side:
            words = _asm(insn).clauses if word == "ins" else {}
            plain = [o for o in side if o.name not in words]
            said = [f" {words[o.name]} %{o.name} : {_type(o, 'tile_buf')}" for o in side
                    if o.name in words]  # fmt: skip
            listed = ", ".join(f"%{o.name}" for o in plain)
            inside = _attributes(insn, names, "ins own") if word == "ins" else ""
            types = ", ".join(_type(o, "tile_buf") for o in plain)
            if word == "ins" and not any(insn.operand(n).optional for n in names):
                inside, types = inside + _own_attribute(insn), types + _word(insn)
            parts.append(f"{word}({listed}{inside} : {types}{''.join(said)})")
    return " ".join(parts) + _attributes(insn, names, "outs")


def _attributes(insn: Insn, names: tuple[str, ...], places: str = "ins own outs") -> str:
    """The attributes a line shows, of those that the record gives one of these places."""
    asm = _asm(insn)
    shown = [
        (asm.attrs.get(a.name, a.name).split()[0], a.default)
        for a in insn.attrs
        if asm.place.get(a.name) in places.split() and a.default is not None
        if a.name not in asm.beside or asm.beside[a.name] in names
    ]
    return f" {{{', '.join(f'{key} = {_elided(value)}' for key, value in shown)}}}" * bool(shown)


def _own_attribute(insn: Insn) -> str:
    """The attribute that stands alone behind a comma, where no further operand says more."""
    asm = _asm(insn)
    chosen = next((a for a in insn.attrs if asm.place.get(a.name) == "own,"), None)
    return f", {{{chosen.name} = {_elided(chosen.default)}}}" if chosen else ""


def _word(insn: Insn) -> str:
    return "".join(f', "{words[0]}"' for words in _asm(insn).words.values())


def _elided(value: object) -> str:
    """A value of an attribute; which member of an enumeration stays open, as types do."""
    if isinstance(value, bool):
        return str(value).lower()
    return "#pto<...>" if isinstance(value, IntEnum) else f"{value} : i32"


def _type(operand: Operand, tile: str) -> str:
    kind = operand.kinds[0]
    return "dtype" if kind == "scalar" else _TYPES.get(kind, "...").replace("tile<", f"{tile}<")
