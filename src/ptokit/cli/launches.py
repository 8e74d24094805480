"""The launches that a file asks for: those a Python file makes, or one of a text or of C++."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import field
from pathlib import Path
from types import ModuleType
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import ProgramError, PtoError, usage_error
from ptokit.base.usercode import compiled
from ptokit.cli.check import is_python
from ptokit.cli.cpp_file import CppCall
from ptokit.cli.examining import declared_case, listed_cases, raised
from ptokit.cli.module_constants import replaced
from ptokit.cli.python_file import not_python
from ptokit.cli.run import arguments
from ptokit.cli.sources import GIVEN, is_cpp, read_text, refuse_words, shown_name
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
    constants: Mapping[str, Any] = field(default_factory=dict[str, Any])  # of a Python file

    def calls(self) -> list[Call]:
        """Every launch of a Python file, once for the same arguments; the one of other files."""
        name, text = shown_name(self.file), read_text(self.file)
        if is_python(self.file, text):
            refuse_words(self.file, self.words)
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
        """Run a Python file, and note what it launches; else what it says of its kernels."""
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
        try:
            module = self._run()
        except ProgramError:
            if not (self.past_errors and found):
                raise
            return found
        finally:
            LISTENERS.remove(listen)
        found = found or list(self._described(module))
        if not found:
            raise usage_error(
                "launch",
                f"{self.file} launches no kernel"
                + (f" of the name {self.entry}" if self.entry else ""),
                fix=GIVEN,
            )
        return found

    def _run(self) -> ModuleType:
        """Run a file as Python would; what it raises is told at its line."""
        name, module = str(self.file), ModuleType("__main__")
        module.__file__ = name
        before = sys.argv, sys.path[:], sys.modules["__main__"]
        sys.argv, sys.path[0:0] = [name], [str(self.file.resolve().parent)]
        sys.modules["__main__"] = module  # dataclasses and pickles look their module up
        try:
            code = compiled(replaced(read_text(self.file), self.constants), name)
            with redirect_stdout(sys.stderr), suppress(SystemExit):  # the answer is ours alone
                exec(code, module.__dict__)
        except PtoError:
            raise
        except SyntaxError as error:
            raise ProgramError([not_python(name, error)]) from error
        except Exception as error:
            found = raised(error, name, "launch.file", "running the file")
            raise ProgramError([found]) from error
        finally:
            sys.argv, sys.path[:], sys.modules["__main__"] = before
        return module

    def _described(self, module: ModuleType) -> Iterator[Call]:
        """Kernels that a file does not launch: its CASES, or arguments that signatures declare."""
        cases = list(listed_cases(module))
        for kernel in (each for each in vars(module).values() if isinstance(each, Kernel)):
            if all(case.kernel is not kernel for case in cases):
                with suppress(PtoError):  # one that declares too little cannot be called
                    cases.append(declared_case(kernel))
        for case in cases:
            if self.entry in ("", case.kernel.name):
                target = self.target or next(iter(case.targets), None)
                on = {} if target is None else {"target": target}
                yield Call(case.kernel, case.blocks, case.arguments(), {**on, **case.consts})
