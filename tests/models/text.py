"""Reading: one operation per line, regions in braces. Types never hold a `%`, values always do."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_FUNCTION = re.compile(
    r"func\.func (?:private )?@(\w+)\((.*?)\)(?: ->.*?)?(?: attributes (.*))? \{$"
)
_OPERATION = re.compile(r"(?:((?:%\w+(?:, )?)+) = )?([\w.]+)(.*)$")


@dataclass
class Op:
    """An operation: its text says the rest."""

    name: str
    results: list[str]
    operands: list[str]  # every value it names, in the order of the text
    text: str
    regions: list[list[Op]] = field(default_factory=list)

    def number(self, key: str, default: int = 0) -> int:
        """An attribute that is a number."""
        found = re.search(rf"\b{key} = (-?\d+)", self.text)
        return int(found[1]) if found else default


@dataclass
class Function:
    name: str
    params: list[tuple[str, str]]  # name and type
    kind: str  # cube, vector or nothing
    body: list[Op]


def read(text: str) -> tuple[dict[str, Function], str]:
    """The functions of a module, and the target it asks for."""
    joined = re.sub(r"\n\s*\(", " (", text)  # the operands of a pipe stand on a line of their own
    lines = [line.strip() for line in joined.split("\n")]
    lines = [line for line in lines if line and not line.startswith("//")]
    target = re.search(r'pto\.target_arch = "(\w+)"', lines[0])
    functions: dict[str, Function] = {}
    rest = iter(lines[1:])
    for line in rest:
        found = _FUNCTION.match(line)
        if found:
            params = [p.split(": ", 1) for p in re.split(r", (?=%)", found[2]) if p]
            kind = re.search(r"kernel_kind<(\w+)>", found[3] or "")
            body, _ = _block(rest)
            functions[found[1]] = Function(
                found[1], [(n, t) for n, t in params], kind[1] if kind else "", body
            )
    assert len(functions) == sum("func.func" in line for line in lines), "a function on many lines"
    return functions, target[1] if target else "a2a3"


def _block(lines: object) -> tuple[list[Op], str]:
    """The operations up to a closing brace, and the line with that brace."""
    ops: list[Op] = []
    for line in lines:  # type: ignore[attr-defined]
        if line.startswith("}"):
            return ops, line
        found = _OPERATION.match(line)
        assert found, line
        results = re.findall(r"%\w+", found[1] or "")
        op = Op(found[2], results, re.findall(r"%\w+", found[3]), found[3])
        ops.append(op)
        end = "{" if line.endswith("{") else ""
        while end.endswith("{"):
            region, end = _block(lines)
            op.regions.append(region)
    return ops, ""


def tile_keys(text: str) -> dict[str, str]:
    """The parameters of the last tile type in a text."""
    return dict(
        pair.split("=") for pair in text.rpartition("tile_buf<")[2].partition(">")[0].split(", ")
    )
