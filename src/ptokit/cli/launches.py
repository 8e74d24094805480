"""The launches that a file asks for: those a Python file makes, or one of a text or of C++."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptokit.base.diagnostics import ProgramError, usage_error
from ptokit.cli.check import is_python
from ptokit.cli.cpp_file import CppCall, is_cpp
from ptokit.cli.run import arguments
from ptokit.cli.sources import read_text, shown_name
from ptokit.from_text import loads
from ptokit.kernels import LISTENERS, Kernel, Launch


@dataclass(frozen=True)
class Call:
    """A kernel with a grid and arguments, and the options that go with them."""

    kernel: Kernel
    blocks: int
    args: Sequence[Any]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """What a command line says of the launch."""

    file: Path
    words: Sequence[str] = ()
    entry: str = ""
    grid: int = 1
    target: str | None = None
    defines: Sequence[str] = ()
    past_errors: bool = False  # launches that fail are asked for, too: a page shows why

    def calls(self) -> list[Call]:
        """Every launch of a Python file, once for the same arguments; the one of other files."""
        name, text = shown_name(self.file), read_text(self.file)
        if is_python(self.file, text):
            return self._made()
        on = {} if self.target is None else {"target": self.target}
        if is_cpp(self.file):
            call = CppCall(self.file, self.entry, self.words, self.defines)
            kernel = call.kernel(self.target)
            return [Call(kernel, self.grid, call.values(kernel), on)]
        program = loads(text, name)
        kernel = program[self.entry] if self.entry else program.entry()
        values = arguments(kernel, list(self.words))
        return [Call(kernel, self.grid, values, on | {"defines": self.defines})]

    def _made(self) -> list[Call]:
        """Run a Python file, and note what it launches."""
        found: list[Call] = []
        seen: set[Any] = set()
        on = {} if self.target is None else {"target": self.target}

        def listen(launch: Launch, args: tuple[Any, ...], consts: Mapping[str, Any]) -> None:
            kernel = launch.kernel
            sizes = tuple((getattr(a, "shape", a), str(getattr(a, "dtype", ""))) for a in args)
            key = (kernel.name, launch.blocks, repr(sizes), repr(sorted(consts.items(), key=str)))
            if key not in seen and self.entry in ("", kernel.name):
                seen.add(key)
                given = [a.copy() if hasattr(a, "copy") else a for a in args]
                found.append(Call(kernel, launch.blocks, given, {**on, **consts}))

        LISTENERS.append(listen)
        before = sys.argv, sys.path[:]
        sys.argv, sys.path[0:0] = [str(self.file)], [str(self.file.resolve().parent)]
        try:
            with redirect_stdout(sys.stderr), suppress(SystemExit):  # the answer is ours alone
                runpy.run_path(str(self.file), run_name="__main__")
        except ProgramError:
            if not (self.past_errors and found):
                raise
        finally:
            LISTENERS.remove(listen)
            sys.argv, sys.path[:] = before
        if not found:
            raise usage_error(
                "launch",
                f"{self.file} launches no kernel"
                + (f" of the name {self.entry}" if self.entry else ""),
                fix="launch it on arrays of the size that is to be timed: k[24](x, y)",
            )
        return found
