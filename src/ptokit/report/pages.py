"""Instruction pages: everything a record says, for the terminal and for `docs/isa/`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from math import prod

from ptokit.base.dtypes import DType
from ptokit.base.enums import Layout, PadValue
from ptokit.base.policy import DEFAULT
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import TileSpec
from ptokit.isa.asm import text_forms
from ptokit.isa.devices import TARGETS
from ptokit.isa.groups import GroupSpec
from ptokit.isa.meaning import Meaning, kinds_of
from ptokit.isa.samples import Sample, sample, samples
from ptokit.isa.spec import Insn, Operand, Pipe, Rule, Types
from ptokit.isa.targets import TARGETS as PROFILES
from ptokit.isa.verify import code_of

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


def pipe_name(insn: Insn) -> str:
    """The pipe, or how it is chosen."""
    listed = ", ".join(f"{op}: {pipe.name}" for op, pipe in insn.ops.items())
    if insn.pipe is None:
        return f"those of its parts ({listed})" if listed else "none (no work is issued)"
    if isinstance(insn.pipe, Pipe):
        return insn.pipe.name
    return f"by operand location ({listed})" if listed else "by operand location"


def type_rows(group: Types) -> list[tuple[str, str, str]]:
    """(target, element types, assertion id) per target."""
    rows: list[tuple[str, str, str]] = []
    for target in TARGETS:
        combos = group.allowed.get(target)
        if combos is None:
            rows.append((target, "not available", ""))
        else:
            listed = sorted(",".join(t.name for t in combo) for combo in combos)
            rows.append((target, " ".join(listed), group.ids.get(target, "")))
    return rows


def rule_targets(rule: Rule) -> str:
    if rule.targets is None:
        return "all"
    return ", ".join(t for t in TARGETS if t in rule.targets)


def when_broken(insn: Insn, rule: Rule) -> str:
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
        found.setdefault(f"{severity} ({', '.join(filter(None, why))})", []).append(target)
    said = "; ".join(
        verdict if len(found) == 1 else f"{', '.join(where)}: {verdict}"
        for verdict, where in found.items()
    )
    then = rule.otherwise if any(origin.words for origin in origins.values()) else ""
    if not isinstance(then, str):  # a condition with words, or words made of the operands
        then = getattr(then, "words", "it depends on the operands")
    return f"{said}: {then}" if then else said


_INSISTED = {"static": "a static assertion", "runtime": "a limit of the hardware"}


def example_sample(insn: Insn) -> Sample | None:
    """A legal call to show: on the first device that has the instruction, f32 where possible."""
    target = next((t for t in TARGETS if t in insn.targets), None)
    if target is None:
        return None
    every = list(samples(insn, PROFILES[target]))
    preferred = [s for s in every if "f32" in str(s)]
    return (preferred or every or [sample(insn, PROFILES[target], {})])[0]


def markdown(insn: Insn) -> str:
    """The page of one instruction."""
    lines = [f"# {insn.name}", "", prose(insn.doc), ""]
    where = ", ".join(t for t in TARGETS if t in insn.targets) or "no supported device"
    lines += [f"Class: {insn.cost.name}. Pipe: {pipe_name(insn)}. Available on: {where}.", ""]
    lines += ["## Forms", "", "```python", *signature(insn), "```", ""]
    lines += ["```cpp", *cpp_signature(insn), "```", ""]
    forms = text_forms(insn)
    if forms:
        lines += [f"{FORM_TITLES[f]}:\n\n```\n{text}\n```\n" for f, text in forms.items()]
        if insn.asm is not None and not insn.asm.is_stable:
            lines += [
                "The public assembly reference defines no stable spelling yet: prefer C++.",
                "",
            ]
    else:
        lines += ["No text form is defined for this instruction.", ""]
    lines += _operand_table(insn)
    if insn.types:
        lines += ["## Element types", ""]
        for group in insn.types:
            lines += [f"Of {', '.join(group.of)}:", "", "| target | types | id |", "|---|---|---|"]
            lines += [f"| {t} | {types} | {id} |" for t, types, id in type_rows(group)]
            lines.append("")
    if insn.rules:
        lines += ["## Rules", "", "| id | rule | targets | when broken |", "|---|---|---|---|"]
        for rule in insn.rules:
            cells = code_of(insn, rule), rule.text, rule_targets(rule), when_broken(insn, rule)
            lines.append(f"| {' | '.join(map(cell, cells))} |")
        lines.append("")
    if insn.text_rules:
        lines += ["In PTO text, whose verifier looks at types, these are errors:", ""]
        lines += ["| id | rule | targets |", "|---|---|---|"]
        for rule in insn.text_rules:
            cells = code_of(insn, rule), rule.text, rule_targets(rule)
            lines.append(f"| {' | '.join(map(cell, cells))} |")
        lines.append("")
    lines += _meaning(insn)
    if insn.freedom:
        lines += ["## Freedom", "", " ".join(each.text for each in insn.freedom), ""]
    shown = example_sample(insn)
    if shown is not None:
        lines += ["## Example", "", "```python", *example_code(shown), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _meaning(insn: Insn) -> list[str]:
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
    lines = ["## Meaning", ""]
    for attrs, texts in found.items():
        for line, kinds in texts.items():
            words = [", ".join(kinds)] * (len(texts) > 1 or bool(attrs and kinds != [*plain]))
            label = ", ".join(words + [attrs] * bool(attrs))
            lines.append(f"* {label}: `{line}`" if label else f"* `{line}`")
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
            types = f"{read} to {into}" if read and into != read else into
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


_MARKUP = re.compile(r"(?<=[\w)])\*(?=[\w(])|<(?=[A-Za-z/])")


def _operand_table(insn: Insn) -> list[str]:
    lines = ["## Operands", ""]
    if insn.operands:
        lines += ["| operand | kind | role | note |", "|---|---|---|---|"]
        for o in insn.operands:
            takes = "" if o.takes is None else o.takes.note
            note = "; ".join(filter(None, ["optional" if o.optional else "", takes, o.note]))
            lines.append(f"| {o.name} | {kinds(o)} | {o.role} | {cell(note)} |")
        lines.append("")
    if insn.attrs:
        lines += ["| template argument | type | default | note |", "|---|---|---|---|"]
        for a in insn.attrs:
            default = getattr(a.default, "name", a.default)
            kind = f"`{a.type.__name__}`" if issubclass(a.type, IntEnum) else a.type.__name__
            lines.append(f"| {a.name} | {kind} | {default} | {cell(a.note)} |")
        lines.append("")
    return lines


def example_code(shown: Sample) -> list[str]:
    """A complete program that makes the sample's operands and issues the instruction."""
    lines = ["import numpy as np", "", "from ptokit import *", ""]
    lines.append(f'with device("{shown.target.name}", mode="auto"):')
    names: list[str] = []
    for name, spec in shown.operands.items():
        if spec is None:
            continue
        if isinstance(spec, int | float):
            names.append(str(spec))
            continue
        names.append(shown.same.get(name, name))
        if name not in shown.same:
            lines.append(f"    {name} = {_construct(spec)}")
        reads = shown.insn.operand(name).reads
        if reads and isinstance(spec, TileSpec | ConvSpec):
            lines.append(f"    {names[-1]}.fill({shown.contents.get(name, 1)})")
    lines += [f"    {line.strip()}" for line in shown.insn.setup.split(";") if line.strip()]
    chosen = [(a, shown.attrs[a.name]) for a in shown.insn.attrs]
    attrs = [_argument(v) for a, v in chosen if not a.argument and v != a.default]
    names += [_argument(v) for a, v in chosen if a.argument and v is not None]
    brackets = f"[{', '.join(attrs)}]" if attrs else ""
    lines.append(f"    {shown.insn.name}{brackets}({', '.join(names)})")
    return lines


def _argument(value: object) -> str:
    if isinstance(value, IntEnum):
        return f"{type(value).__name__}.{value.name}"
    return value.name if isinstance(value, DType) else repr(value)


def _construct(spec: object) -> str:
    """Python source that makes an operand of this type."""
    if isinstance(spec, str):
        return f"{spec}()" if spec.isidentifier() else spec
    if isinstance(spec, GlobalSpec):
        shape = ", ".join(map(str, spec.shape))
        stride = ", ".join(map(str, spec.stride))
        kind = f"GlobalTensor[{spec.dtype.name}, Shape[{shape}], Stride[{stride}]"
        layout = "" if spec.layout == Layout.ND else f", Layout.{spec.layout.name}"
        size = max(prod(spec.shape), 1)
        return f"{kind}{layout}](np.ones({size}, {_numpy_name(spec.dtype)}))"
    if isinstance(spec, GroupSpec):
        return f"comm.ParallelGroup([{', '.join(map(_construct, spec.views))}], {spec.rootIdx})"
    if isinstance(spec, ConvSpec):
        shape = ", ".join(map(str, spec.shape))
        return (
            f"ConvTile[TileType.{spec.loc.name}, {spec.dtype.name}, {spec.buffer_size}, "
            f"Layout.{spec.layout.name}, ConvTileShape[{shape}]]()"
        )
    assert isinstance(spec, TileSpec)
    words = [f"TileType.{spec.loc.name}", spec.dtype.name, str(spec.rows), str(spec.cols)]
    more, defaults = (
        [
            f"BLayout.{each.blayout.name}",
            str(each.valid_row),
            str(each.valid_col),
            f"SLayout.{each.slayout.name}",
            str(each.fractal),
            f"PadValue.{PadValue(each.pad).name}",
            f"CompactMode.{each.compact.name}",
        ]
        for each in (spec, TileSpec.of(spec.loc, spec.dtype, spec.rows, spec.cols))
    )
    while more and more[-1] == defaults[len(more) - 1]:
        more.pop()
    return f"Tile[{', '.join(words + more)}]()"


def _numpy_name(kind: DType) -> str:
    return f"np.{kind.np.name}" if kind.np.isbuiltin == 1 else f"{kind.name}.np"


def index(insns: list[Insn]) -> str:
    """The table of contents, by class."""
    lines = ["# The instruction set", "", f"{len(insns)} instructions, by class.", ""]
    classes: dict[str, list[Insn]] = {}
    for insn in sorted(insns, key=lambda each: each.name):
        classes.setdefault(insn.cost.name, []).append(insn)
    for name in sorted(classes):
        lines += [f"## {name}", "", "| instruction | what it does | devices |", "|---|---|---|"]
        for insn in classes[name]:
            have = ", ".join(t for t in TARGETS if t in insn.targets) or "none"
            first = insn.doc.splitlines()[0]
            lines.append(f"| [{insn.name}]({insn.name}.md) | {cell(first)} | {have} |")
        lines.append("")
    return "\n".join(lines)
