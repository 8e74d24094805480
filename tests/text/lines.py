"""Programs around one line of text: its tiles are declared where `{type}` stands for one.

    program("pto.tadd ins({16x64xf32}, {16x64xf32}) outs({16x64xf32})")

A type is that of a vector tile; words behind it are further parameters, `{16x1xf32 col}` a column,
`{16x64xf16 mat nz}` one of boxes. `{f32}` is a number and `{gm 16x64xf32}` a part of a tensor; both
become parameters. The same name behind `=` is the same value: `{16x64xf32 =a}`.
"""

from __future__ import annotations

import re

_WORDS = {
    "col": "blayout=col_major",
    "nz": "blayout=col_major, slayout=row_major",
    "zz": "blayout=row_major, slayout=row_major",
    "zn": "blayout=row_major, slayout=col_major",
    "acc": "blayout=col_major, slayout=row_major, fractal=1024",
}
_LOCS = ("mat", "left", "right", "acc", "bias", "scaling")
_ROOM = 8192  # bytes between the addresses of tiles


class _Writer:
    def __init__(self, placed: bool) -> None:
        self.placed = placed
        self.head: list[str] = []
        self.params: list[str] = []
        self.names: dict[str, tuple[str, str]] = {}

    def value(self, words: str) -> tuple[str, str]:
        *rest, last = words.split()
        key = last if last.startswith("=") else ""
        if key in self.names:
            return self.names[key]
        made = self._make(rest if key else [*rest, last])
        if key:
            self.names[key] = made
        return made

    def _make(self, words: list[str]) -> tuple[str, str]:
        name = f"%v{len(self.head) + len(self.params)}"
        first, *more = words
        if first == "gm":
            type_ = f"!pto.partition_tensor_view<{more[0]}>"
        elif first == "index" or "x" not in first or first.startswith("vector"):
            type_ = first
        else:
            loc = next((word for word in more if word in _LOCS), "vec")
            parts = [_WORDS.get(word, word) for word in more if word not in _LOCS or word == "acc"]
            type_ = f"!pto.tile_buf<{', '.join([loc, first, *parts])}>"
            return self._tile(name, type_)
        self.params.append(f"{name}: {type_}")
        return name, type_

    def _tile(self, name: str, type_: str) -> tuple[str, str]:
        open_ = "valid=?" in type_ or "x?" in type_
        sizes = "valid_row = %n valid_col = %n " if open_ else ""
        where = ""
        if self.placed:
            self.head.append(f"%at{name[1:]} = arith.constant {len(self.head) * _ROOM} : i64")
            where = f"addr = %at{name[1:]} "
        self.head.append(f"{name} = pto.alloc_tile {where}{sizes}: {type_}")
        return name, type_


def program(*lines: str, placed: bool = False) -> str:
    """A kernel of these lines; `placed` gives every tile an address of its own."""
    writer = _Writer(placed)
    written = [re.sub(r"(\w*)\(((?:[^()]|\{[^}]*\})*)\)", _group(writer), each) for each in lines]
    body = "\n  ".join([*writer.head, *written])
    params = ", ".join(["%n: index", *writer.params])
    return f"func.func @k({params}) attributes {{pto.kernel}} {{\n  {body}\n  return\n}}\n"


def _group(writer: _Writer):
    def replaced(match: re.Match[str]) -> str:
        types: list[str] = []

        def one(found: re.Match[str]) -> str:
            name, type_ = writer.value(found[1])
            types.append(type_)
            return name

        inner = re.sub(r"\{((?:gm |\d)[^{}]*|[a-z]+\d+|index|vector<[^>]*>)\}", one, match[2])
        return f"{match[1]}({inner} : {', '.join(types)})" if types else match[0]

    return replaced
