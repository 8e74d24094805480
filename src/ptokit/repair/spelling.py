"""How flags and barriers are written: in Python with the names a file imports, or in text."""

from __future__ import annotations

import ast
import re
from typing import Protocol

from ptokit.base.location import Location
from ptokit.ir.ordering import written
from ptokit.ir.printer import print_op
from ptokit.isa.spec import Insn, Pipe
from ptokit.isa.sync import pipe_barrier, set_flag, wait_flag

_NOWHERE = Location("", 0)


class Spelling(Protocol):
    """The words of one program."""

    def flag(self, insn: Insn, src: Pipe, dst: Pipe, id: int | str) -> str:
        """`set_flag` or `wait_flag`; the id may be an expression of the program."""
        ...

    def barrier(self, pipe: Pipe) -> str: ...

    def heading(self, code: str) -> tuple[int, str] | None:
        """What an inserted line needs beside itself: a line number, and an import behind it."""
        ...


class TextSpelling:
    """Operations as the printer writes them."""

    def flag(self, insn: Insn, src: Pipe, dst: Pipe, id: int | str) -> str:
        assert isinstance(id, int)
        return print_op(written(insn, (src, dst, id), _NOWHERE)).strip()

    def barrier(self, pipe: Pipe) -> str:
        return print_op(written(pipe_barrier, (pipe,), _NOWHERE)).strip()

    def heading(self, code: str) -> tuple[int, str] | None:
        return None


class PythonSpelling:
    """Calls, with the names that the file has for them."""

    def __init__(self, text: str) -> None:
        self._names: dict[str, str] = {}
        self._all, self._module, self._line = False, "", 0
        for node in ast.parse(text).body:
            if isinstance(node, ast.ImportFrom) and node.module == "ptokit":
                self._all |= any(alias.name == "*" for alias in node.names)
                self._names |= {alias.name: alias.asname or alias.name for alias in node.names}
                self._line = node.end_lineno or node.lineno
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name == "ptokit":
                        self._module = alias.asname or alias.name

    def _named(self, name: str) -> str:
        if name in self._names or self._all or not self._module:
            return self._names.get(name, name)
        return f"{self._module}.{name}"

    def flag(self, insn: Insn, src: Pipe, dst: Pipe, id: int | str) -> str:
        number = self._named(f"EVENT_ID{id}") if isinstance(id, int) else id
        pipes = ", ".join(self._named(f"PIPE_{pipe.name}") for pipe in (src, dst))
        return f"{self._named(insn.name)}({pipes}, {number})"

    def barrier(self, pipe: Pipe) -> str:
        return f"{self._named(pipe_barrier.name)}({self._named(f'PIPE_{pipe.name}')})"

    def heading(self, code: str) -> tuple[int, str] | None:
        if self._all or self._module or not self._names:
            return None
        wanted = dict.fromkeys(re.findall(r"\b[A-Za-z_]\w*(?=[(,)])", code))
        missing = [name for name in wanted if name not in self._names and _is_ours(name)]
        return (self._line, f"from ptokit import {', '.join(missing)}") if missing else None


def _is_ours(name: str) -> bool:
    ours = {insn.name for insn in (set_flag, wait_flag, pipe_barrier)}
    return name in ours or re.fullmatch(r"PIPE_\w+|EVENT_ID\d", name) is not None


def other_end(code: str) -> str:
    """The statement at the other end of a flag: the wait of a set, the set of a wait."""
    ends = {set_flag.name: wait_flag.name, wait_flag.name: set_flag.name}
    return re.sub(
        rf"\b({'|'.join(ends)})(?=\b|_dyn\b)", lambda found: ends[found[0]], code, count=1
    )
