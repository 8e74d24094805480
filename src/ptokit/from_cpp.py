"""Kernels in C++: `cpp("k.cpp").add[4](x, y)` compiles the file, and runs it on the simulator.

A file is compiled as it is, with whatever compiler is at hand, against a header whose instructions
call back (native/). The code runs in a process of its own: a crash there is an error here.
"""

from __future__ import annotations

import signal
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ptokit.base.diagnostics import Diagnostic, NotSupported, PtoError, fail, usage_error
from ptokit.base.entry import public
from ptokit.base.location import Location
from ptokit.from_python import CORES
from ptokit.frontend.arguments import check_argument, is_array
from ptokit.ir.core import Module
from ptokit.isa.targets import Target
from ptokit.isa.targets import target as find_target
from ptokit.kernels import Asked, Kernel, Programs
from ptokit.machine.gm import as_array
from ptokit.native import compiler, tokens
from ptokit.native.compiler import Unit
from ptokit.native.library import Library, Ring
from ptokit.native.records import Memory
from ptokit.native.runtime import Runtime

AN_ARRAY, A_WHOLE, A_REAL = 1, 2, 3


@public
@dataclass(frozen=True)
class CppProgram:
    """A C++ source. Its kernels are attributes; an instance of a template is taken by its name:

        program.add[4](x, y)
        program["add<float, 64>"][4](x, y)
    """

    path: Path
    target: Target
    core: str  # "single", "cube", "vector" or "mix"
    defines: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()

    @cached_property
    def text(self) -> str:
        return compiler._read(self.path)

    @cached_property
    def entries(self) -> dict[str, tokens.Entry]:
        """Its kernels by name."""
        return {each.name: each for each in tokens.entries(self.text)}

    def __getitem__(self, expression: str) -> Kernel:
        name = expression.partition("<")[0].rpartition("::")[2].strip()
        entry = self.entries.get(name)
        if entry is None:
            listed = ", ".join(self.entries) or "none"
            raise usage_error(
                "kernel",
                f"{self.path} has no kernel {name}",
                got=[("kernels", listed)],
                fix="a kernel is a function marked __global__, with a body, in this file",
            )
        if entry.is_template and "<" not in expression:
            raise usage_error(
                "kernel",
                f"{name} is a template: its arguments say what is to be compiled",
                got=[("line", entry.line)],
                fix=f'program["{name}<float, 64>"], with the arguments that it takes',
            )
        return Kernel(CppSource(self, expression, entry))

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self.entries]


@public
def cpp(
    path: str | Path,
    *,
    target: str | Target = "a2a3",
    core: str | None = None,
    defines: Mapping[str, Any] | Iterable[str] = (),
    includes: Iterable[str | Path] = (),
) -> CppProgram:
    """The kernels of a C++ file.

    `core` says what runs them: "vector", "cube", a whole cluster, "mix", or one core that plays
    every part, "single"; left out, it follows from the parts that the source has for each kind.
    `defines` are macros for the compiler, `includes` folders it looks into.
    """
    source = Path(path).resolve()
    text = compiler._read(source)
    kind = core or compiler.cores_of(text)
    if kind not in CORES:
        raise usage_error("kernel", f"core is one of {', '.join(CORES)}, not {core!r}")
    macros = [f"{n}={v}" for n, v in defines.items()] if isinstance(defines, Mapping) else defines
    folders = tuple(Path(each).resolve() for each in includes)
    return CppProgram(source, find_target(target), kind, tuple(macros), folders)


@dataclass(frozen=True, eq=False)
class CppSource:
    """A kernel of a C++ file."""

    paths: ClassVar[tuple[str, ...]] = ("eager",)
    is_foreign: ClassVar[bool] = True  # its code may crash, and runs in a process of its own
    program: CppProgram
    expression: str
    entry: tokens.Entry
    mode: str = "manual"
    _made: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def function(self) -> Any:
        return self.expression

    @property
    def file(self) -> str:
        return str(self.program.path)

    @property
    def target(self) -> Target:
        return self.program.target

    def bind(self, args: tuple[Any, ...], consts: dict[str, Any]) -> Mapping[str, Any]:
        if consts:
            raise usage_error(
                "arguments",
                f"{self.name} takes its arguments in order",
                got=[("names", ", ".join(consts))],
                fix=f"{self.name}({self.entry.parameters})",
            )
        names = [f"argument {n}" for n in range(1, len(args) + 1)]
        for name, value in zip(names, args, strict=True):
            check_argument(name, value)
        return dict(zip(names, args, strict=True))

    def cache_key(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        return (self.expression,)

    def written(self, target: Target, arguments: Mapping[str, Any]) -> Module:
        raise fail(
            "lower.cpp",
            "a C++ kernel is compiled, not lowered",
            site=Location(self.file, self.entry.line),
            kind=NotSupported,
        )

    def finished(
        self, written: Module, asked: Asked, told: list[Diagnostic] | None = None
    ) -> Module:
        return written

    def programs(self, module: Module | None, arguments: Mapping[str, Any]) -> Programs:
        cores = CORES[self.program.core]
        kinds = {"mix": "single"} if cores == ("mix",) else {kind: kind for kind in cores}
        unit = Unit((self.program.path,), (self.expression,), self.program.defines, self.program.includes)
        paths = compiler.compiled(unit, self.target, tuple(kinds.values()))
        values = tuple(arguments.values())
        hosts: list[Runtime] = []
        ring = Ring(tuple(kinds))

        def body() -> None:
            if not hosts:  # in the process of the launch
                loaded = {kind: Library(paths[of], self.file) for kind, of in kinds.items()}
                for kind, library in loaded.items():
                    ring.connect(kind, library)
                arrays = [as_array(value) for value in values if is_array(value)]
                hosts.append(Runtime(loaded, Memory(arrays)))
            words = self._words(hosts[0].library, values)
            hosts[0].body(0, words)()

        def crashed(code: int) -> PtoError:
            files = {kind: (paths[of], self.file) for kind, of in kinds.items()}
            return _crash(self.name, code, ring.last(files), Location(self.file, self.entry.line))

        return Programs(cores, self.mode, body=body, crashed=crashed)

    def _words(self, library: Library, values: tuple[Any, ...]) -> list[int]:
        """The arguments as the kernel takes them."""
        wanted = library.signature(0)
        if len(wanted) != len(values):
            raise usage_error(
                "arguments",
                f"{self.name} takes {len(wanted)} arguments",
                got=[("given", len(values))],
                fix=f"{self.name}({self.entry.parameters})",
            )
        return [
            _word(number, parameter, value)
            for number, (parameter, value) in enumerate(zip(wanted, values, strict=True), 1)
        ]

    @property
    def text(self) -> str:
        return self.program.text

    def sampled(self) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        raise fail(
            "check.arguments",
            f"{self.name} does not say what it is called with",
            got=[("parameters", self.entry.parameters)],
            fix="give its arguments",
            site=Location(self.file, self.entry.line),
            kind=PtoError,
        )

    def rewritten(self, text: str) -> CppSource:
        return replace(self, program=replace(self.program))

    def __str__(self) -> str:
        return f"{self.expression}({self.entry.parameters}), C++"


def _crash(name: str, code: int, last: Location | None, start: Location) -> PtoError:
    """Compiled code has ended its process."""
    reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return fail(
        "cpp-crash",
        f"{name} has crashed: {reason}"
        + (", behind this call" if last else ", before its first instruction"),
        fix="code of the kernel itself has failed: an index, a pointer, an endless recursion",
        site=last or start,
    )


def _word(number: int, parameter: Any, value: Any) -> int:
    if parameter.category == AN_ARRAY:
        if value is None:
            return 0
        if is_array(value) and not isinstance(value, np.generic):
            return as_array(value).__array_interface__["data"][0]
        raise usage_error("arguments", f"argument {number} is an array", got=[("given", value)])
    if is_array(value) and not isinstance(value, np.generic):
        raise usage_error("arguments", f"argument {number} is a number, not an array")
    if parameter.category == A_WHOLE:
        return int(value)
    size = 8
    return int.from_bytes(struct.pack("f", value) + bytes(size - 4), "little", signed=True)
