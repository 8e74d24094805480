"""C++ files on the command line: which kernel is meant, its arguments, and its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, PtoError, UsageError, usage_error
from ptokit.cli.declared import Argument, Option
from ptokit.cli.sources import ARGUMENTS, is_cpp, load_program
from ptokit.cli.verdicts import Checked, Rules
from ptokit.folders.arrays import array_for
from ptokit.from_cpp import A_WHOLE, AN_ARRAY, CppSource, cpp
from ptokit.from_text import Program
from ptokit.kernels import Kernel
from ptokit.native.headers import elements
from ptokit.native.keeper import TIME_LIMIT
from ptokit.native.library import Parameter


@dataclass(frozen=True)
class CppCall:
    """A call of a kernel, as a command line says it."""

    file: Path
    entry: str = ""  # left out: the only kernel
    words: Sequence[str] = ()  # the arguments
    defines: Sequence[str] = ()
    given_as: str = ""  # the option in front of each argument, where there is one
    time_limit: float = TIME_LIMIT

    def kernel(self, target: str | None) -> Kernel:
        """The kernel that is named, or the only one."""
        program = cpp(
            self.file,
            target=target or "a2a3",
            defines=self.defines,
            time_limit=self.time_limit,
        )
        if self.entry:
            return program[self.entry]
        found = list(program.entries)
        if len(found) != 1:
            raise usage_error(
                "kernel",
                f"{self.file} has {len(found) or 'no'} kernels" + (": say which" if found else ""),
                got=[("kernels", ", ".join(found) or "none")],
                fix=f"--kernel {found[0]}" if found else "a kernel is a function marked __global__",
            )
        return program[found[0]]

    def names(self, kernel: Kernel) -> list[str]:
        """Its parameters, by the names they are written with."""
        return _source(kernel).names

    def values(self, kernel: Kernel) -> list[Any]:
        """The values of its parameters; the same each time."""
        source = _source(kernel)
        if len(self.words) != len(source.signature):
            sample = (f"{self.given_as}{_example(each)}" for each in source.signature)
            raise usage_error(
                "arguments",
                f"{source.name} takes {len(source.signature)} arguments, {len(self.words)} given",
                got=[("parameters", source.entry.parameters)],
                fix="say numbers, and how large the arrays are, by a shape or an .npy file: "
                + " ".join(sample),
            )
        named = zip(source.names, source.signature, self.words, strict=True)
        return [_value(*each) for each in named]


Recording = Annotated[list[str] | None, Argument(help=f"Of C++, which is run: {ARGUMENTS.lower()}")]
OneKernel = Annotated[str, Option("--entry", "--kernel", help="Of C++: the kernel.")]
Blocks = Annotated[int, Option("--grid", min=1, help="Of C++: number of blocks.")]


def program_of(call: CppCall, target: str | None, grid: int) -> Program:
    """What a run of a kernel did, as a program in text; of other files, the text itself."""
    if not is_cpp(call.file):
        return load_program(call.file)
    kernel = call.kernel(target)
    return Program(kernel.lower(*call.values(kernel), grid=grid, rules="release"))


def _source(kernel: Kernel) -> CppSource:
    assert isinstance(kernel.source, CppSource)
    return kernel.source


def _example(parameter: Parameter) -> str:
    """An argument that a parameter could be given."""
    if parameter.category == AN_ARRAY:
        return f"'{elements()[parameter.element - 1] if parameter.element else 'u8'}[16,64]'"
    return "1" if parameter.category == A_WHOLE else "1.0"


def _value(name: str, parameter: Parameter, word: str) -> Any:
    if parameter.category == AN_ARRAY:
        element = elements()[parameter.element - 1] if parameter.element else None
        return array_for(word, name, element)
    try:
        return int(word, 0) if parameter.category == A_WHOLE else float(word)
    except ValueError:
        raise usage_error("arguments", f"{name} is a number, not {word!r}") from None


def check_cpp(
    call: CppCall, targets: Sequence[str], grid: int, rules: Rules, seconds: float
) -> tuple[list[Diagnostic], list[Checked]]:
    """What a run with every checker on finds, on each target."""
    found: list[Diagnostic] = []
    checked: list[Checked] = []
    for name in targets or ("a2a3",):
        kernel = call.kernel(name)
        launch, values = kernel[grid], call.values(kernel)
        try:
            told = launch(*values, max_seconds=seconds or None, **rules).warnings
        except UsageError:
            raise
        except PtoError as error:
            told = launch.witnessed(error.diagnostics, *call.values(kernel), **rules)
        found += told
        checked.append(Checked(kernel.name, name, sum(d.severity == "error" for d in told)))
    return found, checked


def not_rewritten(file: Path, command: str) -> PtoError:
    """The error of a command that would write a file anew, of C++."""
    return usage_error(
        "file",
        f"`ptokit {command}` rewrites Python and PTO text, not C++",
        got=[("file", file)],
        fix=f"`ptokit check {file}` says what to write, and where; `ptokit asm {file} -o k.pto` "
        f"makes a text of it, which `ptokit {command} k.pto` takes",
    )
