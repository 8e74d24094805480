"""Instruction pages: everything a record says, for the terminal and for `docs/isa/`."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from ptokit.base.patterns import regex
from ptokit.base.policy import DEFAULT
from ptokit.isa.asm import text_forms
from ptokit.isa.devices import TARGETS
from ptokit.isa.meaning import Meaning, kinds_of
from ptokit.isa.samples import samples
from ptokit.isa.spec import Insn, Operand, Pipe, Rule, Types
from ptokit.isa.targets import KIB
from ptokit.isa.targets import TARGETS as PROFILES
from ptokit.isa.verify import code_of
from ptokit.report.examples import asserted, example_sample, mistake, placed_by
from ptokit.report.words import Words

ENGLISH = Words()
FORM_TITLES = {"sync": "PTO-AS", "l1": "AS Level 1 (SSA)", "l2": "AS Level 2 (DPS)"}


def signature(insn: Insn) -> list[str]:
    """The Python forms, one per overload."""
    return [f"{call}, *events)" for call in _calls(insn, "[{}]")]


def cpp_signature(insn: Insn) -> list[str]:
    """The C++ forms: template arguments in angle brackets."""
    return [f"{call}, events...);".replace("comm.", "comm::") for call in _calls(insn, "<{}>")]


def _calls(insn: Insn, brackets: str) -> list[str]:
    """The overloads up to their last argument; modes that are arguments follow the operands."""
    template = ", ".join(a.name for a in insn.attrs if not a.argument)
    modes = tuple(a.name for a in insn.attrs if a.argument)
    head = insn.name + (brackets.format(template) if template else "")
    return [f"{head}({', '.join(form + modes)}" for form in insn.forms]


def kinds(operand: Operand) -> str:
    names = {"tile": "Tile", "conv": "ConvTile", "global": "GlobalTensor", "fifo": "TPipe"}
    return " / ".join(names.get(k, k) for k in operand.kinds)


def pipe_name(insn: Insn, say: Words = ENGLISH) -> str:
    """The pipe, or how it is chosen."""
    listed = ", ".join(f"{op}: {pipe.name}" for op, pipe in insn.ops.items())
    if isinstance(insn.pipe, Pipe):
        return insn.pipe.name
    if insn.pipe is None:
        words = "those of its parts" if listed else "none (no work is issued)"
    else:
        words = "by operand location"
    return say.aside(say(words), listed) if listed else say(words)


def type_rows(group: Types) -> list[tuple[str, str, str]]:
    """(target, element types, assertion id) per target; no types where it is not available."""
    rows: list[tuple[str, str, str]] = []
    for target in TARGETS:
        combos = group.allowed.get(target)
        if combos is None:
            rows.append((target, "", ""))
        else:
            listed = sorted(",".join(t.name for t in combo) for combo in combos)
            rows.append((target, " ".join(listed), group.ids.get(target, "")))
    return rows


def rule_targets(rule: Rule, say: Words = ENGLISH) -> str:
    """Where a rule holds."""
    if rule.targets is None:
        return say("all")
    return ", ".join(t for t in TARGETS if t in rule.targets) or say("the permissive profile")


def when_broken(insn: Insn, rule: Rule, say: Words = ENGLISH) -> str:
    """What comes of breaking a rule, and why: "error (a static assertion)", "warning (derived ...".

    Where targets differ, each is listed; behind it stands what then happens.
    """
    found: dict[str, list[str]] = {}
    on = [t for t in TARGETS if t in insn.targets and rule.binds(t)]
    origins = {target: insn.origin(rule, target) for target in on}
    for target, origin in origins.items():
        severity = DEFAULT.severity(origin, is_defined=bool(rule.otherwise))
        why = [origin.words or _INSISTED[origin.kind], "a page states it" * origin.seed]
        if origin.words and not rule.otherwise:
            why.append(rule.unknown or "the outcome is unknown")
        verdict = say.aside(say(severity), say.comma.join(map(say, filter(None, why))))
        found.setdefault(verdict, []).append(target)
    said = say.semicolon.join(
        verdict if len(found) == 1 else f"{', '.join(where)}{say.colon}{verdict}"
        for verdict, where in found.items()
    )
    then = rule.otherwise if any(origin.words for origin in origins.values()) else ""
    if not isinstance(then, str):  # a condition with words, or words made of the operands
        then = getattr(then, "words", "it depends on the operands")
    return f"{said}{say.colon}{say(then)}" if then else said


_INSISTED = {"static": "a static assertion", "runtime": "a limit of the hardware"}


def markdown(insn: Insn, lang: str = "en") -> str:
    """The page of one instruction."""
    return translated(insn, Words(lang))


def translated(insn: Insn, say: Words) -> str:
    """The page in the words of a language, which keep what they could not say."""
    lines = [f"# {insn.name}", "", prose(say.paragraphs(insn.doc)), ""]
    have = ", ".join(t for t in TARGETS if t in insn.targets) or say("no supported device")
    facts = {"Class": say(insn.cost.name), "Pipe": pipe_name(insn, say), "Available on": have}
    stop = ". " if say.lang == "en" else "。"
    line = stop.join(f"{say(title)}{say.colon}{fact}" for title, fact in facts.items())
    lines += [f"{line}{stop}".rstrip(), ""]
    lines += [f"## {say('Forms')}", "", "```python", *signature(insn), "```", ""]
    lines += ["```cpp", *cpp_signature(insn), "```", ""]
    lines += _text_forms(insn, say)
    lines += _operand_table(insn, say)
    if placed_by(insn):
        lines += _memories(say)
    if insn.types:
        lines += [f"## {say('Element types')}", ""]
        for group in insn.types:
            of = say("Of {a}:").format(a=say.listed(group.of))
            lines += [of, "", *_table(say, "target", "types", "id")]
            lines += [_row(t, listed or say("not available"), id) for t, listed, id in
                      type_rows(group)]  # fmt: skip
            lines.append("")
    if insn.rules:
        lines += [f"## {say('Rules')}", "", *_table(say, "id", "rule", "targets", "when broken")]
        for rule in insn.rules:
            where, broken = rule_targets(rule, say), when_broken(insn, rule, say)
            lines.append(_row(code_of(insn, rule), say(rule.text), where, broken))
        lines.append("")
    if insn.text_rules:
        lines += [say("In PTO text, whose verifier looks at types, these are errors:"), ""]
        lines += _table(say, "id", "rule", "targets")
        for rule in insn.text_rules:
            lines.append(_row(code_of(insn, rule), say(rule.text), rule_targets(rule, say)))
        lines.append("")
    lines += _meaning(insn, say)
    if insn.freedom:
        blank = " " * (say.lang == "en")
        lines += [f"## {say('Freedom')}", "", blank.join(say(f.text) for f in insn.freedom), ""]
    lines += _examples(insn, say)
    if say.missing:
        lines += [say("Sentences without a translation: {a}").format(a=len(say.missing)), ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(say: Words, *titles: str) -> list[str]:
    return [_row(*map(say, titles)), "|" + "---|" * len(titles)]


def _row(*cells: str) -> str:
    return f"| {' | '.join(map(cell, cells))} |"


def _text_forms(insn: Insn, say: Words) -> list[str]:
    forms = text_forms(insn)
    if not forms:
        return [say("No text form is defined for this instruction."), ""]
    lines = [f"{say(FORM_TITLES[f])}{say.colon.strip()}\n\n```\n{text}\n```\n"
             for f, text in forms.items()]  # fmt: skip
    if insn.asm is not None and not insn.asm.is_stable:
        stable = "The public assembly reference defines no stable spelling yet: prefer C++."
        lines += [say(stable), ""]
    return lines


def _memories(say: Words) -> list[str]:
    """The memories that tiles are given their places in, with their sizes."""
    lines = [f"## {say('Memory spaces')}", ""]
    lines += _table(say, "TileType", "memory", *TARGETS, "alignment")
    for kind in PROFILES[TARGETS[0]].spaces:
        spaces = [PROFILES[target].spaces[kind] for target in TARGETS]
        sizes = [f"{s.capacity // KIB} KB" if s.capacity else "N/A" for s in spaces]
        memory = spaces[0].memory.partition("-")[0]  # scales lie beside L0A, in a part of their own
        lines.append(_row(kind.name, memory, *sizes, f"{spaces[0].alignment} B"))
    return [*lines, ""]


def _examples(insn: Insn, say: Words) -> list[str]:
    shown = example_sample(insn)
    if shown is None:
        return []
    lines = [f"## {say('Example')}", "", "```python", *asserted(shown), "```", ""]
    wrong = mistake(shown)
    if wrong is not None:
        lines += [f"## {say('A mistake')}", "", f"```python raises={wrong.code}", *wrong.lines]
        lines += ["```", "", "```text", wrong.message, "```", ""]
    return lines


def _meaning(insn: Insn, say: Words) -> list[str]:
    """What is computed, as the record's expression says it; T is the element type."""
    if insn.means is None:
        return []
    found: dict[str, dict[str, list[str]]] = {}  # template arguments -> line -> element types
    plain: dict[str, str] = {}
    for kind, attrs, line in _readings(insn, insn.means):
        plain.setdefault(kind, line)
        if not attrs or line != plain[kind]:
            kinds = found.setdefault(attrs, {}).setdefault(line, [])
            kinds += [kind] if kind not in kinds else []
    lines = [f"## {say('Meaning')}", ""]
    for attrs, texts in found.items():
        for line, kinds in texts.items():
            words = [say.listed(kinds)] * (len(texts) > 1 or bool(attrs and kinds != [*plain]))
            label = say.comma.join(words + [attrs] * bool(attrs))
            lines.append(f"* {label}{say.colon}`{line}`" if label else f"* `{line}`")
    return [*lines, ""]


def _readings(insn: Insn, means: Meaning) -> Iterator[tuple[str, str, str]]:
    """(element types, a template argument that is not the default, meaning) of all samples."""
    tiles = [o.name for o in insn.operands if o.reads and o.name not in means.outs]
    choices: list[tuple[str, IntEnum]] = [
        (a.name, value)
        for a in insn.attrs
        if a.name in means.parameters and not a.argument
        for value in a.type.__members__.values()
    ]
    for target in (PROFILES[name] for name in TARGETS if name in insn.targets):
        for shown in samples(insn, target):
            kinds = kinds_of(shown.facts())
            read, into = (
                next((kind.name for n in names if (kind := kinds.get(n))), "")
                for names in (tiles, means.outs)
            )
            types = f"{read} -> {into}" if read and into != read else into
            yield types, "", means.line(kinds, shown.attrs)
            for name, value in choices:
                yield types, value.name, means.line(kinds, shown.attrs | {name: value})


def prose(text: str) -> str:
    """Plain sentences as Markdown: outside code spans `*` is a product and `<` no tag."""
    parts = text.split("`")
    parts[::2] = [_MARKUP.sub(r"\\\g<0>", part) for part in parts[::2]]
    return "`".join(parts)


def cell(text: str) -> str:
    """Plain sentences as one cell of a Markdown table."""
    return prose(text).replace("|", "\\|")


_MARKUP = regex(r"(?<=[\w)])\*(?=[\w(])|<(?=[A-Za-z/])")


def _operand_table(insn: Insn, say: Words) -> list[str]:
    lines = [f"## {say('Operands')}", ""]
    if insn.operands:
        lines += _table(say, "operand", "kind", "role", "note")
        for o in insn.operands:
            notes = ["optional" * o.optional, o.takes.note if o.takes else "", o.note]
            note = say.semicolon.join(say(each) for each in notes if each)
            lines.append(_row(o.name, kinds(o), o.role, note))
        lines.append("")
    if insn.attrs:
        lines += _table(say, "template argument", "type", "default", "note")
        for a in insn.attrs:
            default = str(getattr(a.default, "name", a.default))
            kind = f"`{a.type.__name__}`" if issubclass(a.type, IntEnum) else a.type.__name__
            lines.append(_row(a.name, kind, default, say(a.note)))
        lines.append("")
    return lines


def index(insns: list[Insn], lang: str = "en") -> str:
    """The table of contents, by class."""
    say = Words(lang)
    count = say("{a} instructions, by class.").format(a=len(insns))
    lines = [f"# {say('The instruction set')}", "", count, ""]
    classes: dict[str, list[Insn]] = {}
    for insn in sorted(insns, key=lambda each: each.name):
        classes.setdefault(insn.cost.name, []).append(insn)
    for name in sorted(classes):
        lines += [f"## {say(name)}", "", *_table(say, "instruction", "what it does", "devices")]
        for insn in classes[name]:
            have = ", ".join(t for t in TARGETS if t in insn.targets) or say("none")
            first = say(insn.doc.splitlines()[0])
            lines.append(_row(f"[{insn.name}]({insn.name}.md)", first, have))
        lines.append("")
    return "\n".join(lines)
