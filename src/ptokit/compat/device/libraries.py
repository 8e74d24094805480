"""Libraries of kernels: what `bisheng` makes here, and `ctypes.CDLL` that knows them.

A library is a file that says where its parts lie, one for each kind of core, and for which target
they were compiled. Its functions are machine code of this computer; what they launch is simulated,
with every check, and what is found is raised by the call.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, ProgramError, usage_error
from ptokit.base.entry import public
from ptokit.base.files import write_text
from ptokit.compat.device import options
from ptokit.compat.device.memory import MEMORY, tidy
from ptokit.frontend.launch import Options
from ptokit.frontend.policies import policy_for
from ptokit.isa.targets import TARGETS, Target
from ptokit.isa.targets import target as find_target
from ptokit.native import compiler, sources
from ptokit.native.host import Device, Found, Host
from ptokit.native.library import Library, Trace
from ptokit.native.program import Program, Source

_MARK = "library of ptokit"
_OBJECT = "object of ptokit"
_CDLL = ctypes.CDLL
LAUNCHED: list[str] = []  # the libraries that were loaded, by name


# ---- making one ----------------------------------------------------------------------------------

_WITH_VALUE = ("-mllvm", "-x", "-include", "-isystem", "-L", "-l", "-Xlinker")
_SOURCES = (".cpp", ".cc", ".cxx", ".cce")
_AN_OBJECT = ".o"
_ARCHITECTURES = ("--npu-arch=", "--cce-aicore-arch=")


@dataclass
class Asked:
    """The arguments of the compiler."""

    sources: list[Path] = field(default_factory=list[Path])
    defines: list[str] = field(default_factory=list[str])
    includes: list[Path] = field(default_factory=list[Path])
    output: Path = Path("a.out")
    arch: str = ""
    core_type: str = ""
    is_for_later: bool = False  # an object is made of a source, and linked by another command

    def cores(self, text: str) -> str:
        """What runs a source: the kind of core that is asked for, or a whole cluster.

        Who names an architecture and no kind of core gets a cube core with its vector cores, also
        for a source that leaves one of them idle.
        """
        asked_for = f"{self.arch} {self.core_type}".lower()
        for kind, words in {
            "vector": ("-vec", "vectorcore"),
            "cube": ("-cube", "cubecore"),
        }.items():
            if any(word in asked_for for word in words):
                return kind
        found = compiler.cores_of(text)
        return found if found == "single" else "mix"

    @property
    def target(self) -> Target:
        """That of the architecture, or that whose macros are defined."""
        numbers = re.findall(r"\d+", self.arch)
        names = {f"{name}={n}" for n in numbers for name in ("__NPU_ARCH__", "__CCE_AICORE__")}
        named = [t for t in TARGETS.values() if names & {*t.cpp_macros}]
        defined = [t for t in TARGETS.values() if {*t.cpp_macros} & {*self.defines}]
        if not (named or defined):
            raise usage_error(
                "arguments",
                f"no target is known by --npu-arch={self.arch}" if self.arch else "which target?",
                fix="--npu-arch=dav-2201, or -DMEMORY_BASE (a2a3), -DREGISTER_BASE (a5)",
            )
        return (named or defined)[0]


def asked(words: Sequence[str]) -> Asked:
    """Read the arguments; of optimisation, warnings and code generation nothing is kept."""
    found, waiting = Asked(), list(words)
    while waiting:
        word = waiting.pop(0)
        if word in ("-o", "-D", "-I"):
            if not waiting:
                raise usage_error("arguments", f"{word} is given without its value")
            word += waiting.pop(0)
        if word.startswith("-o"):
            found.output = Path(word[2:])
        elif word.startswith("-D"):
            found.defines.append(word[2:])
        elif word.startswith("-I"):
            found.includes.append(Path(word[2:]).resolve())
        elif word == "-c":
            found.is_for_later = True
        elif word.startswith(_ARCHITECTURES):
            found.arch = word.partition("=")[2]
        elif word.startswith("--cce-soc-core-type="):
            found.core_type = word.partition("=")[2]
        elif word in _WITH_VALUE:
            del waiting[:1]
        elif Path(word).suffix == _AN_OBJECT and not word.startswith("-"):
            _add_object(found, Path(word))
        elif not word.startswith("-"):
            if Path(word).suffix not in _SOURCES:
                what = f"{word} is no C++ source: only sources are compiled here"
                raise usage_error("arguments", what)
            found.sources.append(Path(word).resolve())
    if not found.sources:
        raise usage_error("arguments", "no source is given", fix="bisheng ... k.cpp -o k.so")
    return found


def write_object(given: Asked) -> None:
    """An object: it says what is to be compiled, which is done when it is linked with others.

    Cores of every kind compile all sources, and which kinds there are only the link knows.
    """
    kept = ("sources", "defines", "includes")
    told: dict[str, Any] = {each: list(map(str, getattr(given, each))) for each in kept}
    told |= {"arch": given.arch, "core_type": given.core_type}
    write_text(given.output, json.dumps({_OBJECT: told}, indent=1) + "\n")


def _add_object(found: Asked, file: Path) -> None:
    told = described(file, _OBJECT)
    if told is None:
        raise usage_error(
            "arguments",
            f"{file} is no object that was made here",
            fix=f"bisheng -c k.cpp -o {file}, or ptoas k.pto -o {file}",
        )
    held = told[_OBJECT]
    found.sources += map(Path, held["sources"])
    found.defines += held["defines"]
    found.includes += map(Path, held["includes"])
    found.arch, found.core_type = found.arch or held["arch"], found.core_type or held["core_type"]


def make(words: Sequence[str]) -> None:
    """Compile sources, as the arguments of the device's compiler say, to a library."""
    given = asked(words)
    if given.is_for_later:
        write_object(given)
        return
    parts: list[Source] = []
    for path in given.sources:
        texts = sources.gathered((path,), (*given.includes, path.parent), given.defines)
        parts.append(Source(path, given.cores("\n".join(texts.values()))))
    program = Program(tuple(parts), given.target, tuple(given.defines), tuple(given.includes))
    made = {kind: str(path) for kind, path in program.built().items()}
    told = {_MARK: made, "target": given.target.name, "source": str(given.sources[0])}
    write_text(given.output, json.dumps(told, indent=1) + "\n")


# ---- loading it ----------------------------------------------------------------------------------


def described(name: object, mark: str = _MARK) -> dict[str, Any] | None:
    """What a file says of a library, or of an object, where it is one of ours."""
    if not isinstance(name, str | os.PathLike):
        return None
    try:
        with open(name, encoding="utf-8") as file:  # pyright: ignore[reportUnknownArgumentType]
            if not file.read(2).startswith("{"):
                return None
            file.seek(0)
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if mark in found else None


class Loaded:
    """A library in this process, and the simulator that its launches run on."""

    def __init__(self, told: dict[str, Any]) -> None:
        paths = {kind: Path(each) for kind, each in told[_MARK].items()}
        for each in paths.values():
            if not each.exists():
                raise usage_error(
                    "file",
                    f"a part of the library is gone: {each}",
                    fix="compile it again: what was compiled is kept in the cache",
                )
        file = told["source"]
        self._trace = Trace(tuple(paths))  # kept: C++ has only its address
        libraries = {kind: Library(path, file) for kind, path in paths.items()}
        for kind, library in libraries.items():
            self._trace.connect(kind, library)
        *_, self.host = paths.values()
        self._found: list[Diagnostic] = []
        self._bugs: list[BaseException] = []
        policy = policy_for(file, None, options.allowed())
        device = Device(find_target(told["target"]), Options(policy=policy))
        self._simulator = Host(libraries, device, self._note, MEMORY)

    def _note(self, message: Any) -> None:
        if isinstance(message, Found):
            self._found += message.diagnostics
        elif isinstance(message, BaseException):
            self._bugs.append(message)

    @public
    def ended(self, result: Any, function: Any, arguments: Any) -> Any:
        """Behind each call of a function: raise what its launches were found to lack."""
        bugs, self._bugs = self._bugs, []
        found, self._found = self._found, []
        if bugs:
            raise bugs[0]
        if any(each.severity == "error" for each in found):
            raise ProgramError(found)
        return result


class DynamicLibrary(_CDLL):
    """`ctypes.CDLL`, of libraries of ours too."""

    def __init__(self, name: Any, *args: Any, **named: Any) -> None:
        told = described(name)
        self._ours = None if told is None else Loaded(told)
        if self._ours is not None:
            LAUNCHED.append(str(name))
        super().__init__(str(self._ours.host) if self._ours else name, *args, **named)

    def __getitem__(self, name_or_ordinal: Any) -> Any:
        found = super().__getitem__(name_or_ordinal)
        if self._ours is not None:
            tidy()
            found.errcheck = self._ours.ended
        return found


def install() -> None:
    """Have `ctypes.CDLL` load libraries of ours."""
    ctypes.CDLL = DynamicLibrary


def uninstall() -> None:
    """As it was."""
    ctypes.CDLL = _CDLL
