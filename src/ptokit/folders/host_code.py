"""What the host code beside a published kernel says: which launches it makes, on which files.

Published cases have a main.cpp that reads files into buffers and calls launchers, and a launch.cpp
with those launchers. Both follow one pattern, so a small reader of calls does: it takes no part of
the language seriously but calls, casts and constants.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError, usage_error
from ptokit.base.patterns import regex

_COMMENT = regex(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CASTS = regex(r"\b(?:reinterpret|static|const)_cast<[^>]*>|\([^()]*\*\s*\)|\(\w+_t\)")
_NAME = regex(r"(\w+)\s*$")
_LAST_NAME = regex(r"(\w+)\W*$")
_FILE = regex(r"\"(?:\./)?([\w.]+\.bin)\"")
_READ = regex(  # a file, and where it goes: at once, or behind its size
    r"\b[Rr]ead\w+\(\s*\"(?:\./)?([\w.]+)\"\s*,(?:\s*(&?\w+)\s*,|[^;,]*,)?\s*(&?\w+)"
)
_WRITE = regex(r"\b[Ww]rite\w+\(\s*\"(?:\./)?([\w.]+)\"\s*,\s*(\w+)")
_NUMBERED = regex(r"case\s+(\d+)\s*:\s*\w+\s*=\s*(\w+)\s*;")  # which buffer a number means
_COPY = regex(r"\bmemcpy\(\s*(\w+)\s*,\s*(\w+)")
_TO_DEVICE = regex(r"\baclrtMemcpy\(\s*(\w+)\s*,[^,]+,\s*(\w+)\s*,[^;]*HOST_TO_DEVICE")
_CONSTANT = regex(r"\bconst(?:expr)?\s+\w+\s+(\w+)\s*(?:=\s*([^;]+)|\{([^}]*)\})\s*;")
_VARIABLE = regex(r"\b(?:u?int\d+_t|int|size_t|float)\s+(\w+)\s*(?:=\s*([^;]+)|\{([^}]*)\})\s*;")
_LAUNCH = regex(r"\b(Launch\w+)\s*\(([^;]*)\)\s*;")
_LAUNCHER = (
    r"\bvoid\s+{name}\s*\(([^{{;]*?)\)\s*\{{(.*?)(\w+)\s*<<<\s*([^,]+),.*?>>>\s*\((.*?)\)\s*;"
)
_ELEMENT = regex(r"(\w+)\[(\d+)\]")
_SIZES = {"float": 4, "half": 2, "double": 8, "char": 1, "int": 4, "bfloat16_t": 2}


@dataclass(frozen=True)
class HostLaunch:
    """A launch: the kernel, how many blocks there are, and the expressions of its arguments."""

    kernel: str
    grid: str
    arguments: tuple[str, ...]
    names: Mapping[str, str]  # of the launcher's parameters -> their expressions in main


@dataclass(frozen=True)
class HostCode:
    """The host's side of a case."""

    launches: tuple[HostLaunch, ...]
    files: Mapping[str, str]  # of buffers, by their names
    listed: tuple[str, ...]  # every file that is named, in order
    constants: Mapping[str, str]

    def file_of(self, argument: str, place: int) -> str:
        """The file whose bytes an argument is; `place` is its number among them."""
        found = _ELEMENT.fullmatch(argument)
        if found:
            number = int(found[2])
            return self.listed[number] if number < len(self.listed) else f"v{number + 1}.bin"
        tried = (
            re.sub(r"Device$", "Host", argument),
            argument,
            re.sub(r"^d_", "h_", argument),
        )
        return next((self.files[t] for t in tried if t in self.files), f"v{place + 1}.bin")

    def scalar_file(self, argument: str) -> str | None:
        """The file that the value of a number is read from."""
        return self.files.get(f"&{argument}")

    def number(self, text: str, names: Mapping[str, Any] | None = None) -> Any:
        """The value of an expression over constants, and over these names."""
        return _value(_tree(text), {**self.constants, **(names or {})}, text)


def read_host_code(main: str, launch: str) -> HostCode:
    """Read a main.cpp and its launch.cpp."""
    main, launch = _COMMENT.sub("", main), _COMMENT.sub("", launch)
    files: dict[str, str] = {found[3]: found[1] for found in _READ.finditer(main)}
    for found in _READ.finditer(main):
        if found[2]:
            files.setdefault(found[2], found[1])
    for found in _WRITE.finditer(main):
        files.setdefault(found[2], found[1])
    for pattern in (_COPY, _TO_DEVICE):
        for found in pattern.finditer(main):
            if found[2] in files:
                files.setdefault(found[1], files[found[2]])
    files.update({found[2]: f"v{found[1]}.bin" for found in _NUMBERED.finditer(main)})
    constants = {
        found[1]: (found[2] or found[3] or "0").strip()
        for pattern, text in ((_VARIABLE, main), (_CONSTANT, launch), (_CONSTANT, main))
        for found in pattern.finditer(text)
    }
    begins = main.find("int main")
    return HostCode(
        tuple(_launches(main[max(begins, 0) :], launch)),
        files,
        tuple(_FILE.findall(main)),
        constants,
    )


def _launches(main: str, launch: str) -> Iterator[HostLaunch]:
    for call in _LAUNCH.finditer(main):
        given = [_plain(part) for part in _split(call[2])]
        found = re.search(_LAUNCHER.format(name=call[1]), launch, re.DOTALL)
        if found is None:
            raise usage_error(
                "manifest",
                f"launch.cpp has no {call[1]} with a launch <<<...>>>, which main.cpp calls",
            )
        names = [_last(part) for part in _split(found[1])]
        known = dict(zip(names, given, strict=False))
        grid = found[4].strip()
        local = {c[1]: c[2] for c in _CONSTANT.finditer(found[2]) if c[2]}
        yield HostLaunch(
            kernel=found[3],
            grid=local.get(grid, grid),
            arguments=tuple(known.get(name, name) for name in map(_last, _split(found[5]))),
            names=known,
        )


def _split(text: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "(<[{") - (char in ")>]}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def _plain(text: str) -> str:
    """An argument without its casts and brackets."""
    text = _CASTS.sub("", text).strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    return text


def _last(text: str) -> str:
    found = _LAST_NAME.search(text)
    return found[1] if found else text


# ---- numbers -----------------------------------------------------------------------------------

_OPERATIONS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
}


def _tree(text: str) -> ast.expr:
    plain = re.sub(r"sizeof\((\w+)\)", lambda m: str(_size_of(m[1])), _CASTS.sub("", text))
    plain = re.sub(r"\b(0x[\da-fA-F]+|\d+)[uUlL]+\b", r"\1", plain).replace("/", "//")
    plain = re.sub(r"\b([\d.]+)[fF]\b", r"\1", plain).replace("std::", "")
    try:
        return ast.parse(plain.strip(), mode="eval").body
    except SyntaxError:
        raise _unknown(text) from None


def _size_of(name: str) -> int:
    bits = re.fullmatch(r"u?int(\d+)_t", name)
    return int(bits[1]) // 8 if bits else _SIZES.get(name, 8)


def _value(node: ast.expr, names: Mapping[str, Any], text: str) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name) if name in names:
            found = names[name]
            rest = {key: value for key, value in names.items() if key != name}
            return _value(_tree(found), rest, text) if isinstance(found, str) else found
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            sides = (_value(side, names, text) for side in (left, right))
            return _OPERATIONS[type(op)](*sides)
        case _:
            raise _unknown(text)


def _unknown(text: str) -> PtoError:
    return usage_error(
        "manifest",
        f"the value of {text.strip()!r} in the host code cannot be told",
        fix="write a number, or a constant that is made of numbers",
    )
