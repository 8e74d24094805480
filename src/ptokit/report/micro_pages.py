"""Pages of micro-operations, made of their records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ptokit.isa.micro import Micro
from ptokit.isa.micro.samples import examples, kinds, line, types
from ptokit.isa.micro.spec import KINDS
from ptokit.report.micro_examples import example
from ptokit.report.micro_programs import program_with


def page(record: Micro) -> str:
    """The page of one operation."""
    return "\n".join([f"# {record.name}", "", record.doc, "", *_sections(record)])


def _sections(record: Micro) -> Iterator[str]:
    where = "Inside a scope" if record.is_inside else f"Beside scopes, on PIPE_{record.pipe.name}"
    yield f"{where}, on A5."
    yield ""
    yield "```mlir"
    T, U = next(kinds(record))
    yield line(record, types(record, T, U), written=examples(record, T, U))
    yield "```"
    yield ""
    yield "| operand | role | what it is |"
    yield "|---|---|---|"
    for role, slots in (("in", record.operands), ("out", record.results)):
        for slot in slots:
            may = ", may be left out" if slot.is_optional else ""
            what = KINDS[slot.kind]
            if record.is_logical:
                what = what.replace("vector register", "logical vector")
            yield f"| {slot.name} | {role} | {what}{may} |"
    for word in record.words:
        listed = " ".join(f"`{choice}`" for choice in word.choices if choice) or "a number"
        usual = f"; `{word.default}` unless written" if word.default else ""
        note = f"; {word.note}" if word.note else ""
        yield f"| {word.name} | word | {listed}{usual}{note} |"
    yield ""
    if record.cpp and not record.cpp.startswith("&"):
        yield f"In C++: `{_statement(record)};`."
        yield ""
    if record.types:
        listed = ", ".join(" to ".join(kind.name for kind in one) for one in record.types)
        yield f"Element types: {listed}."
        yield ""
    if any(slot.name == "mask" for slot in record.operands):
        yield f"Mask: {record.masking.value}."
        yield ""
    for title, names in (("Sets", record.sets), ("Reads", record.uses)):
        if names:
            yield f"{title} the hidden register{'s' * (len(names) > 1)} {', '.join(sorted(names))}."
            yield ""
    shown = example(record) or ([] if record.is_logical else program_with(record.name))
    if shown:
        yield from ("```python", *shown, "```", "")
    if record.freedom:
        yield "What is open:"
        yield ""
        for each in record.freedom:
            yield f"* {each.where + ': ' if each.where else ''}{each.text}"
        yield ""


def _statement(record: Micro) -> str:
    """The statement of C++ with the names of operands and words."""
    every = (*record.results, *record.operands)
    given = ", ".join(slot.name for slot in every if not slot.is_optional)
    text = record.cpp.replace("{name}", record.name).replace("{all}", given)
    text = re.sub(r"\{(\w+):\?[^}]*\}", r"[, \1]", text)  # there where the word is written
    return re.sub(r"\{(\w+)(?:\[(\d)\])?[^}]*\}", r"\1\2", text)


def index(records: Iterable[Micro]) -> str:
    """The list of all of them, by family."""
    families: dict[str, list[Micro]] = {}
    for record in records:
        families.setdefault(record.family, []).append(record)
    lines = [
        "# Micro-operations",
        "",
        "The level below tiles on A5, by family: the vector unit, transfers, the cube.",
        "",
    ]
    for family, members in sorted(families.items()):
        lines += [f"## {family}", "", "| operation | what it does |", "|---|---|"]
        for record in members:
            first = record.doc.splitlines()[0]
            lines.append(f"| [{record.name}]({record.name}.md) | {first} |")
        lines.append("")
    return "\n".join(lines)
