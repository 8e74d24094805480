"""`docs/guide/operations.md`: the operations of texts, from the definitions that read them."""

from __future__ import annotations

import re

from ptokit.ir.dialects import DEFINITIONS
from ptokit.ir.dialects import Definition as Operation
from ptokit.ir.dialects.definition import kind_in_words

HEAD = """# Operations of texts

What a `.pto` file may contain beside instructions, whose forms stand on [their
pages](../isa/README.md), and [micro-operations](../isa/micro/README.md). The page is made of the
definitions by which ptokit reads and prints them (`src/ptokit/ir/dialects`). [Programs in
text](text.md) shows whole programs.

In the syntax `%name` is an operand, `%name...` a list, `@name` an attribute that is written in
place, `type(name)` the type of an operand or result, `(...)?` what may be left out; behind most
operations attributes may stand in braces. Every operation can also be written in MLIR's generic
form.
"""
# Those whose syntax is more than operands, words and types.
WRITTEN = {
    "func.call": "func.call @function(%operands...) : (types) -> types",
    "arith.constant": "arith.constant value : type(result)",
    "arith.cmpi": "arith.cmpi predicate, %lhs, %rhs : type(lhs)",
    "arith.cmpf": "arith.cmpf predicate, %lhs, %rhs : type(lhs)",
    "scf.for": "scf.for %i = %lower to %upper step %step (iter_args(%x = %init, ...) -> (types))?"
    " (: type)? { ... }",
    "scf.if": "scf.if %condition (-> (types))? { ... } (else { ... })?",
    "scf.while": "scf.while (%x = %init, ...) : (types) -> types { ... } do { ... }",
    "scf.index_switch": "scf.index_switch %arg (-> types)? case 0 { ... } ... default { ... }",
    "scf.execute_region": "scf.execute_region (-> types)? { ... }",
    "pto.fusion_region": "pto.fusion_region (-> types)? { ... }",
    "pto.yield": "pto.yield (%values... : types)?",
    "cf.br": "cf.br ^block(%values... : types)",
    "cf.cond_br": "cf.cond_br %condition, ^then(%values... : types), ^else(%values... : types)",
    "cf.switch": "cf.switch %flag : type(flag), [default: ^block, 0: ^block, ...]",
    "cf.blocks": "^block(%arguments... : types):",
    "pto.strict_vecscope": "pto.strict_vecscope(%operands...) { ^bb0(%arguments... : types): ... }"
    " : types",
}
TITLES = {
    "arith": "Arithmetic (`arith`)",
    "scf": "Loops and branches (`scf`)",
    "cf": "Jumps (`cf`)",
    "func": "Functions (`func`)",
    "memref": "Memrefs of lowered files (`memref`)",
    "math": "Functions of numbers (`math`)",
    "pto": "Pointers, views, tiles, pipes, handles (`pto`)",
}


def operations() -> list[Operation]:
    """The definitions that are neither instructions nor micro-operations, one name each."""
    found = {each.name: each for each in DEFINITIONS.values()}
    return [each for each in found.values() if each.insn is None and each.micro is None]


def syntax(each: Operation) -> str:
    """How an operation is written."""
    if each.name in WRITTEN:
        return WRITTEN[each.name]
    text = each.format.replace("{}", "").replace("[?", "(").replace("?]", ")?")
    text = re.sub(r"T\(", "type(", text)
    text = re.sub(r"\{(\w+)\}", r"{\1 = ...}", text)
    return re.sub(r"\s+", " ", f"{each.name} {text}").strip()


def page() -> str:
    """The text of the page."""
    lines = [HEAD]
    by_dialect: dict[str, list[Operation]] = {}
    for each in operations():
        by_dialect.setdefault(each.name.partition(".")[0], []).append(each)
    for dialect in sorted(by_dialect, key=lambda name: [*TITLES, name].index(name)):
        lines += [f"## {TITLES.get(dialect, dialect)}", ""]
        lines += ["| syntax | operands, -> results | |", "|---|---|---|"]
        lines += [
            f"| {' | '.join((_code(syntax(each)), _operands(each), _traits(each)))} |"
            for each in by_dialect[dialect]
        ]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _operands(each: Operation) -> str:
    """What the operands are, those that are alike together; behind an arrow the results."""
    sides: list[str] = []
    for slots in (each.operands, each.results):
        alike: dict[str, list[str]] = {}
        for slot in slots:
            alike.setdefault(f"{kind_in_words(slot.kind)}{_how_many(slot)}", []).append(slot.label)
        sides.append("; ".join(f"{', '.join(names)}: {what}" for what, names in alike.items()))
    given, made = sides
    return f"{given} -> {made}" if given and made else f"-> {made}" if made else given


def _traits(each: Operation) -> str:
    return " ".join(
        words
        for holds, words in (
            (each.pure, "No effect beyond its results."),
            (each.is_loop, "Its regions run any number of times."),
            (each.is_terminator, "Ends a region and hands its operands on."),
            (each.allocates, "Makes a tile that needs a place."),
            (bool(each.renames), f"The result is another view of the memory of `{each.renames}`."),
            (bool(each.core), f"What is inside runs on the {each.core} core."),
            (bool(each.aliases), f"Also read: {', '.join(f'`{a}`' for a in each.aliases)}."),
            (each.is_generic, "Printed in the generic form."),
        )
        if holds
    )


def _how_many(slot: object) -> str:
    if getattr(slot, "is_list", False):
        return ", any number"
    return ", may be left out" if getattr(slot, "optional", False) else ""


__all__ = ["WRITTEN", "operations", "page", "syntax"]
