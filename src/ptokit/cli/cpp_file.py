"""C++ files on the command line: which kernel is meant, and its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ptokit.base.diagnostics import usage_error
from ptokit.folders.arrays import read_array
from ptokit.from_cpp import A_WHOLE, AN_ARRAY, CppSource, cpp
from ptokit.kernels import Kernel
from ptokit.native.headers import elements

SUFFIXES = (".cpp", ".cc", ".cxx", ".cce")


def cpp_kernel(file: Path, entry: str, target: str | None, defines: Sequence[str]) -> Kernel:
    """The kernel that is named, or the only one."""
    program = cpp(file, target=target or "a2a3", defines=defines)
    if entry:
        return program[entry]
    found = list(program.entries)
    if len(found) != 1:
        raise usage_error(
            "kernel",
            f"{file} has {len(found) or 'no'} kernels" + (": say which" if found else ""),
            got=[("kernels", ", ".join(found) or "none")],
            fix=f"--entry {found[0]}" if found else "a kernel is a function marked __global__",
        )
    return program[found[0]]


def _source(kernel: Kernel) -> CppSource:
    assert isinstance(kernel.source, CppSource)
    return kernel.source


def cpp_names(kernel: Kernel) -> list[str]:
    """Its parameters, by the names they are written with."""
    return _source(kernel).names


def cpp_arguments(kernel: Kernel, words: Sequence[str]) -> list[Any]:
    """The values of its parameters, from the words of the command line."""
    source = _source(kernel)
    if len(words) != len(source.signature):
        raise usage_error(
            "arguments",
            f"{source.name} takes {len(source.signature)} arguments, {len(words)} given",
            fix=f"a number or an .npy file for each: {source.entry.parameters}",
        )
    found: list[Any] = []
    for name, parameter, word in zip(source.names, source.signature, words, strict=True):
        if parameter.category == AN_ARRAY:
            element = elements()[parameter.element - 1] if parameter.element else None
            found.append(read_array(word, name, element))
            continue
        try:
            found.append(int(word, 0) if parameter.category == A_WHOLE else float(word))
        except ValueError:
            raise usage_error("arguments", f"{name} is a number, not {word!r}") from None
    return found
