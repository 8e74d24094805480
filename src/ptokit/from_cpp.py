"""Kernels in C++: `cpp("k.cpp").add[4](x, y)` compiles the file, and runs it on the simulator.

A file is compiled as it is, with whatever compiler is at hand, against a header whose instructions
call back (native/). The code runs in a process of its own: a crash there is an error here.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, NotSupported, PtoError, fail, usage_error
from ptokit.base.dtypes import i8, u8
from ptokit.base.entry import public
from ptokit.base.layout import Array, raw_bytes
from ptokit.base.location import Location
from ptokit.from_python import CORES
from ptokit.from_text import Program, TextSource, written_source
from ptokit.frontend.arguments import admitted
from ptokit.frontend.launch import Options, run
from ptokit.frontend.policies import policy_for
from ptokit.frontend.session import current, running
from ptokit.ir.core import Module
from ptokit.isa.targets import Target
from ptokit.isa.targets import target as find_target
from ptokit.kernels import Asked, Kernel, Programs
from ptokit.machine.foreign import carries_array
from ptokit.machine.gm import GmBuffer, as_array, element_type
from ptokit.machine.jobs import apart
from ptokit.machine.ranks import here
from ptokit.native import compiler, tokens
from ptokit.native.compiler import Unit
from ptokit.native.headers import elements
from ptokit.native.imports import is_pure
from ptokit.native.keeper import TIME_LIMIT, Keeper
from ptokit.native.library import Library, Parameter, Trace
from ptokit.native.lowering import Parameter as TextParameter
from ptokit.native.lowering import lowered
from ptokit.native.recording import Recorded, Recorder
from ptokit.native.records import Memory
from ptokit.native.runtime import Runtime
from ptokit.passes.finish import finish
from ptokit.passes.steps import AS_WRITTEN

AN_ARRAY, A_WHOLE = 1, 2  # categories of parameters


@public
@dataclass(frozen=True)
class CppProgram:
    """A C++ source. Its kernels are attributes; an instance of a template is taken by its name:

    program.add[4](x, y)
    program["add<float, 64>"][4](x, y)
    """

    path: Path
    target: Target
    core: str = ""  # "single", "cube", "vector" or "mix"; empty: what each kernel is written for
    defines: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()
    time_limit: float = TIME_LIMIT  # seconds that a kernel may run without an instruction

    @cached_property
    def text(self) -> str:
        return compiler.read(self.path)

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
    time_limit: float = TIME_LIMIT,
) -> CppProgram:
    """The kernels of a C++ file.

    `core` says what runs them: "vector", "cube", a whole cluster, "mix", or one core that plays
    every part, "single"; left out, it follows from the parts that the source has for each kind.
    `defines` are macros for the compiler, `includes` folders it looks into. Code that runs for
    more than `time_limit` seconds without an instruction is stopped, and told.
    """
    source = Path(path).resolve()
    compiler.read(source)  # a file that cannot be read is told now
    if core is not None and core not in CORES:
        raise usage_error("kernel", f"core is one of {', '.join(CORES)}, not {core!r}")
    macros = [f"{n}={v}" for n, v in defines.items()] if isinstance(defines, Mapping) else defines
    folders = tuple(Path(each).resolve() for each in includes)
    return CppProgram(source, find_target(target), core or "", tuple(macros), folders, time_limit)


@dataclass(frozen=True, eq=False)
class CppSource:
    """A kernel of a C++ file."""

    paths: ClassVar[tuple[str, ...]] = ("eager",)
    program: CppProgram
    expression: str
    entry: tokens.Entry
    mode: str = "manual"
    _known: dict[str, list[Parameter]] = field(default_factory=dict[str, list[Parameter]])

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

    @cached_property
    def _core(self) -> str:
        return compiler.cores_of(tokens.apart(self.program.text, self.entry))

    @property
    def _kinds(self) -> dict[str, str]:
        """The kinds of core that run it, and what each of them is compiled for."""
        cores = CORES[self.program.core or self._core]
        return {"mix": "single"} if cores == ("mix",) else {kind: kind for kind in cores}

    @property
    def _libraries(self) -> dict[str, Path]:
        program = self.program
        unit = Unit((program.path,), self._entered, program.defines, program.includes)
        made = compiler.compiled(unit, self.target, tuple(self._kinds.values()))
        return {kind: made[compiled] for kind, compiled in self._kinds.items()}

    @cached_property
    def _entered(self) -> tuple[str, ...]:
        """What is compiled with it: kernels that are no templates share a library."""
        plain = tuple(e.name for e in self.program.entries.values() if not e.is_template)
        return plain if self.expression in plain else (self.expression,)

    @property
    def names(self) -> list[str]:
        """Its parameters, by the names they are written with."""
        return tokens.parameter_names(self.entry.parameters)

    @property
    def signature(self) -> list[Parameter]:
        """What it takes, as the compiler sees it."""
        # No cached_property: errors are told at the line of the user, not of that.
        if "signature" not in self._known:
            path = next(iter(self._libraries.values()))
            number = self._entered.index(self.expression)
            self._known["signature"] = apart(lambda: Library(path, self.file).signature(number), [])
        return self._known["signature"]

    def bind(self, args: tuple[Any, ...], consts: dict[str, Any]) -> Mapping[str, Any]:
        if consts or len(args) != len(self.signature):
            raise usage_error(
                "arguments",
                f"{self.name} takes {len(self.signature)} arguments, in order",
                got=[("given", len(args)), *(("name", name) for name in consts)],
                fix=f"{self.name}({self.entry.parameters})",
            )
        found: dict[str, Any] = {}
        for number, (parameter, value) in enumerate(zip(self.signature, args, strict=True), 1):
            name = f"argument {number}"
            if value is not None or parameter.category != AN_ARRAY:
                value = admitted(name, value)
                _check(name, parameter, value)
            found[name] = value
        return found

    def cache_key(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """All that a run depends on: data may decide what it does."""
        return (self.expression, *map(_contents, arguments.values()))

    def state(self) -> None:
        """Files that it includes may have changed."""
        return None

    def fits(self, target: Target) -> None:
        if target.name != self.target.name:
            raise usage_error(
                "kernel",
                f"{self.name} is compiled for {self.target.name}",
                got=[("target", target.name)],
                fix=f'cpp("{self.program.path.name}", target="{target.name}")',
            )

    def written(self, target: Target, arguments: Mapping[str, Any], blocks: int) -> Module:
        """What a run does, as a program: the calls of every core, merged and with their loops."""
        programs = self.programs(None, arguments)
        assert programs.body is not None
        enter = programs.body
        given = {n: as_array(v) for n, v in enumerate(arguments.values()) if carries_array(v)}
        numbers = {GmBuffer(array).base: number for number, array in given.items()}
        arrays = list(given.values())

        def record() -> Recorded:
            recorded = Recorded()

            def body() -> None:
                with running(Recorder(current(), recorded, numbers)):
                    enter()

            policy = policy_for(self.file, "release", ())
            options = Options(blocks, hazards=False, arrays=arrays, policy=policy)
            run(dict.fromkeys(programs.cores, body), target, self.mode, options)
            return recorded

        recorded: Recorded = apart(record, [], programs.keeper)
        parameters = [
            _parameter(name, value)
            for name, value in zip(self.names, arguments.values(), strict=True)
        ]
        at = Location(self.file, self.entry.line)
        return lowered(self.name, parameters, recorded, target, tuple(self._kinds), at)

    def finished(
        self, written: Module, asked: Asked, told: list[Diagnostic] | None = None
    ) -> Module:
        steps, is_one_core = asked.steps.over(AS_WRITTEN), len(self._kinds) == 1
        return finish(written, asked.target, steps, asked.policy, is_one_core, told)

    def programs(self, module: Module | None, arguments: Mapping[str, Any]) -> Programs:
        kinds, paths = self._kinds, self._libraries
        values = tuple(arguments.values())
        words = [_word(*each) for each in zip(self.signature, values, strict=True)]
        number = self._entered.index(self.expression)
        loaded: dict[str, Library] = {}
        hosts: dict[Any, Runtime] = {}  # one per run: what a host knows is of one machine
        trace = Trace(tuple(kinds))

        def body() -> None:
            if not loaded:  # in the process of the launch
                loaded.update({kind: _loaded(path, self.file) for kind, path in paths.items()})
                for kind, library in loaded.items() if keeper else ():
                    trace.connect(kind, library)
            run_of = current().sync
            if run_of not in hosts:
                hosts.clear()
                hosts[run_of] = Runtime(loaded, Memory(_reachable(values)))
            hosts[run_of].body(number, words)()

        start = Location(self.file, self.entry.line)
        keeper = None
        if here() is None:  # devices of a world take turns in one process, which is this one
            keeper = Keeper(self.name, trace, paths, start, self.program.time_limit)
        # Code that sees no data, and nothing of the system, does the same each time.
        is_told = compiler.is_watching() and all(map(is_pure, paths.values()))
        identity = (tuple(paths.items()), number) if is_told else None
        return Programs(
            tuple(kinds), self.mode, body=body, args=values, keeper=keeper, identity=identity
        )

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

    def recorded(self, module: Module) -> TextSource:
        kernel = Program(module).entry()
        assert isinstance(kernel.source, TextSource)
        return kernel.source

    def sent(
        self, finished: Callable[[], Module], arguments: Mapping[str, Any]
    ) -> tuple[TextSource, tuple[Any, ...]]:
        return written_source(finished()), tuple(arguments.values())

    def rewritten(self, text: str) -> CppSource:
        raise fail(
            "lower.cpp",
            "C++ is not repaired yet",
            fix="the findings of a launch say what to write, and where",
            site=Location(self.file, self.entry.line),
            kind=NotSupported,
        )

    def __str__(self) -> str:
        return f"{self.expression}({self.entry.parameters}), C++"


@cache
def _loaded(path: Path, file: str) -> Library:
    return Library(path, file)


def _reachable(values: Iterable[Any]) -> list[Array]:
    """The arrays that a kernel may touch: its own, and the windows of the other devices."""
    own, rank = [as_array(value) for value in values if carries_array(value)], here()
    if rank is None:
        return own
    windows = [array for window in rank.ranks.windows for array in window]
    ends = [np.lib.array_utils.byte_bounds(each) for each in windows]

    def is_part(array: Array) -> bool:
        first, last = np.lib.array_utils.byte_bounds(array)
        return any(low <= first and last <= high for low, high in ends)

    return [*windows, *(each for each in own if not is_part(each))]


def _contents(value: Any) -> Any:
    """What equal arguments have in common."""
    if not carries_array(value) or isinstance(value, np.generic):
        return value
    array = as_array(value)
    return array.dtype, array.shape, hashlib.sha256(raw_bytes(array).tobytes()).digest()


def _parameter(name: str, value: Any) -> TextParameter:
    """A parameter of the text that a kernel becomes."""
    if carries_array(value) and not isinstance(value, np.generic):
        return TextParameter(name, element_type(as_array(value)))
    return TextParameter(
        name, u8 if value is None else None, isinstance(value, float | np.floating)
    )


def _check(name: str, parameter: Parameter, value: Any) -> None:
    """Refuse an argument that a parameter does not take."""
    carries = carries_array(value) and not isinstance(value, np.generic)
    if parameter.category == AN_ARRAY:
        if not carries:
            raise usage_error(
                "arguments", f"{name} is an array", got=[("given", type(value).__name__)]
            )
        wanted = elements()[parameter.element - 1] if parameter.element else u8
        given = element_type(as_array(value))
        if given is not wanted and wanted not in _BYTES:
            raise usage_error(
                "arguments",
                f"{name} points to {wanted.name}",
                got=[("given", given.name)],
                fix=f"pass an array of {wanted.name}, or a view of it as such",
            )
    elif carries or isinstance(value, str | tuple):
        raise usage_error("arguments", f"{name} is a number", got=[("given", type(value).__name__)])
    elif parameter.category == A_WHOLE and int(value) != value:
        raise usage_error("arguments", f"{name} is a whole number", got=[("given", value)])


_BYTES = (u8, i8)  # what kernels call memory of any type


def _word(parameter: Parameter, value: Any) -> int:
    """An argument as a kernel takes it."""
    if parameter.category == AN_ARRAY:
        return 0 if value is None else as_array(value).__array_interface__["data"][0]
    if parameter.category == A_WHOLE:
        wrapped = int(value) & (1 << 64) - 1
        return wrapped - (wrapped >> 63 << 64)
    element = elements()[parameter.element - 1] if parameter.element else None
    if element is None:  # a double
        return struct.unpack("q", struct.pack("d", value))[0]
    raw = np.asarray(value).astype(element.np).tobytes()
    return int.from_bytes(raw.ljust(8, b"\0"), "little", signed=True)
