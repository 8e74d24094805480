"""Every diagnostic code that the sources can give, read from the calls that make diagnostics.

A maker is a function with a parameter `code`, or a class with such a field, that ends up in a
`Diagnostic`. The code of a call is a constant; an f-string with a part that only the running
program knows (`{insn.name}.operands` becomes `*.operands`); or handed on, when the call stands in a
maker itself. Anything else must be named in HANDED_ON with the place its codes come from.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import ptokit
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.spec import Insn, Types
from ptokit.isa.verify import code_of, is_assertion_id, type_code
from ptokit.machine.codes import CODES

SOURCES = Path(ptokit.__file__).parent
_WRITES_PROGRAMS = ("repair", "engines/compiled")  # where code is lines of a program
# Functions and classes that have a `code` of another kind.
_OTHERS = {
    "Allowed", "Site", "_hif8_magnitude", "_once", "_resolve", "_text", "add", "allows", "answer",
    "failed", "has", "matches", "number", "set", "__init__",
}  # fmt: skip
# Expressions whose codes are collected where they are made.
HANDED_ON = {
    "broken.id": "the rules of the table",
    "broken.code": "violations of types (`Violation`)",
    "law.code": "the laws of micro-operations (`Law`)",
    "violation.code": "violations of types (`Violation`)",
    "v.code": "violations of types (`Violation`)",
    "first.code": "violations of types (`Violation`)",
    "codes[0]": "what the run of a page's mistake raises",
    "problem.code": "another diagnostic",
    "waiting.code": "another diagnostic",
    "found.code": "another diagnostic",
    "code_of(insn, rule)": "the rules of the table",
    "type_code(insn, group, target)": "the element types of the table",
    "error.code": "what bodies refuse (`Refused`)",
    "refused[0]": "the operands of the table",
    "declared.refused": "the operands of the table",
    "code": "the name is bound to constants close by: _BOUND",
    "id": "the name is bound to constants close by: _BOUND",
}
# Codes that are chosen among constants before they are handed on.
_BOUND = {
    "SA-0116": "frontend/events.py",
    "SA-0037": "frontend/events.py",
    "*.TB-R": "isa/comm_rules.py",
    "*.TGA-R": "isa/comm_rules.py",
    "*.TSC-R": "isa/comm_rules.py",
    "*.TR-R": "isa/comm_rules.py",
}
# Codes that no program is known to raise, and why they are there nevertheless.
WITHOUT_PROGRAM = {
    "launch.file": "a file whose launches are timed raises an exception of its own, which is told",
    "missing-extra": "a command needs a package of an extra: pip install ptokit[lsp]",
    "internal": "a bug of ptokit: please report it with the kernel",
    "timing.class": "a parameter file lacks numbers for a class of instructions: a bug of ptokit",
    "timing.provenance": "a parameter file has a number without saying where it comes from",
    "timing.hang": "the model waits where the run did not: a bug of ptokit",
}
# Patterns that only put another code together.
_FRAMES = {"lower.*", "*.*"}


def rule_codes() -> set[str]:
    """The codes of the instruction table: its rules and its element types."""
    found = {
        code_of(insn, rule)
        for insn in INSTRUCTIONS.values()
        for rule in (*insn.rules, *insn.text_rules)
    }
    for insn in INSTRUCTIONS.values():
        found |= {id for group in insn.types for id in type_codes(insn, group)}
        found |= {operand.refused for operand in insn.operands if operand.refused}
    return found


def type_codes(insn: Insn, group: Types) -> set[str]:
    """The codes that element types are refused with, by target."""
    listed = [target for target in group.allowed if group.ids.get(target) != ""]
    return {type_code(insn, group, target) for target in listed}


@cache
def source_codes() -> dict[str, str]:
    """Every other code -> the first place that gives it."""
    trees = {
        path: ast.parse(path.read_text("utf-8"))
        for path in sorted(SOURCES.rglob("*.py"))
        if not path.relative_to(SOURCES).as_posix().startswith(_WRITES_PROGRAMS)
    }
    makers = {name: at for tree in trees.values() for name, at in _makers(tree)}
    makers["fail"] = makers["usage_error"] = 0
    found: dict[str, str] = {**dict.fromkeys(CODES, "machine/codes.py"), **_BOUND}
    for path, tree in trees.items():
        for call, inside in _calls(tree, None):
            folder = path.relative_to(SOURCES).parts[0]
            for code in _codes(call, inside, folder, makers):
                found.setdefault(code, f"{path.relative_to(SOURCES)}:{call.lineno}")
    return {code: place for code, place in found.items() if code not in _FRAMES}


def _makers(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Functions and classes that take a code, with its position."""
    for node in ast.walk(tree):
        taken: list[tuple[str, ast.expr | None]] = []
        if isinstance(node, ast.FunctionDef):
            taken = [(a.arg, a.annotation) for a in (*node.args.posonlyargs, *node.args.args)]
        elif isinstance(node, ast.ClassDef):
            fields = [s for s in node.body if isinstance(s, ast.AnnAssign)]
            taken = [(f.target.id, f.annotation) for f in fields if isinstance(f.target, ast.Name)]
            for made in node.body:
                if isinstance(made, ast.FunctionDef) and made.name == "__init__":
                    taken = [(a.arg, a.annotation) for a in made.args.args]
        names = [name for name, _ in taken]
        kind = dict(taken).get("code")
        is_word = isinstance(kind, ast.Name) and kind.id == "str"  # not the code of a function
        if is_word and node.name not in _OTHERS:
            yield node.name, names.index("code") - (names[0] in ("self", "cls"))


def _calls(tree: ast.AST, inside: str | None) -> Iterator[tuple[ast.Call, str | None]]:
    """Every call, with the name of the function or class around it."""
    for node in ast.iter_child_nodes(tree):
        around = node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else inside
        if isinstance(node, ast.Call):
            yield node, inside
        yield from _calls(node, around)


def _codes(
    call: ast.Call, inside: str | None, folder: str, makers: dict[str, int]
) -> Iterator[str]:
    function = call.func
    name = getattr(function, "id", None) or getattr(function, "attr", "")
    receiver = ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""
    of_findings = name == "add" and receiver.endswith("findings")
    if (name not in makers and not of_findings) or (name == "note" and folder != "ir"):
        return
    position, prefix, otherwise = 0 if of_findings else makers[name], "", ""
    if name == "Refused":
        prefix = "*."
    elif name == "fail" and receiver and folder == "ir":  # of the text: the message comes first
        position, otherwise = 1, "syntax"
    elif name == "fail" and receiver:
        position, prefix = 0, "lower."
    elif name == "fail":
        position = 0
    given = [k.value for k in call.keywords if k.arg == "code"] + call.args[position:]
    if given and (len(call.args) > position or any(k.arg == "code" for k in call.keywords)):
        yield from _written(given[0], prefix, inside in makers)
    elif otherwise:
        yield otherwise


def _written(code: ast.expr, prefix: str, in_maker: bool) -> Iterator[str]:
    match code:
        case ast.Constant(value=str(text)):
            yield text if is_assertion_id(text) else prefix + text
        case ast.JoinedStr(values=parts):
            yield prefix + "".join(p.value if isinstance(p, ast.Constant) else "*" for p in parts)
        case ast.IfExp(body=first, orelse=second) | ast.BoolOp(values=[first, second]):
            yield from _written(first, prefix, in_maker)
            yield from _written(second, prefix, in_maker)
        case _ if in_maker or ast.unparse(code) in HANDED_ON:
            return
        case _:
            raise ValueError(f"line {code.lineno}: whence the code {ast.unparse(code)}?")


if __name__ == "__main__":
    for code, place in sorted(source_codes().items()):
        print(f"{code:<40} {place}")
