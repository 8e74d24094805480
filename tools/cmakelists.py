"""What a CMakeLists.txt says of the programs it builds: their sources, cores and macros.

As much of CMake is understood as build files of test programs have: functions, variables, targets
and objects made by a command. What is not understood is passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

_TOKEN = re.compile(r'#[^\n]*|"((?:\\.|[^"\\])*)"|([()])|((?:\\.|[^\s()"#\\])+)', re.DOTALL)
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_ARCH = "--cce-aicore-arch="

Command = tuple[str, list[str]]


@dataclass
class Target:
    """A library or an executable."""

    sources: list[str]
    options: list[str] = field(default_factory=list[str])
    includes: list[str] = field(default_factory=list[str])
    links: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Compiled:
    """A source as a program has it."""

    path: Path
    core: str  # "single" for code of the host
    defines: tuple[str, ...]


@dataclass(frozen=True)
class Built:
    """A program."""

    name: str
    sources: tuple[Compiled, ...]
    includes: tuple[Path, ...]


class Lists:
    """Build files, read one after the other: functions of the first serve the others."""

    def __init__(self, **variables: str) -> None:
        self.variables = dict(variables)
        self.targets: dict[str, Target] = {}
        self.executables: list[str] = []
        self._functions: dict[str, tuple[list[str], list[Command]]] = {}
        self._outputs: dict[str, list[str]] = {}  # files that commands make, and the commands

    def read(self, path: Path, *, functions_only: bool = False) -> None:
        self.variables["CMAKE_CURRENT_SOURCE_DIR"] = str(path.parent)
        commands = _commands(path.read_text("utf-8"))
        self._run(_functions_of(commands) if functions_only else commands)

    def programs(self) -> list[Built]:
        found: list[Built] = []
        for name in self.executables:
            target = self.targets[name]
            sources = [self._compiled(each, []) for each in target.sources]
            for link in target.links:
                if library := self.targets.get(link):
                    sources += [self._compiled(s, library.options) for s in library.sources]
            includes = dict.fromkeys(Path(each).resolve() for each in target.includes)
            found.append(Built(name, tuple(sources), tuple(includes)))
        return found

    def _compiled(self, source: str, options: list[str]) -> Compiled:
        made_by = self._outputs.get(source)
        if made_by is not None:  # an object, made by a command
            source, options = made_by[made_by.index("-c") + 1], made_by
        archs = [each.removeprefix(_ARCH) for each in options if each.startswith(_ARCH)]
        kinds = {"vec": "vector", "cube": "cube"}
        core = kinds.get(archs[-1].rpartition("-")[2], "mix") if archs else "single"
        defines = dict.fromkeys(each[2:] for each in options if each.startswith("-D"))
        folder = Path(self.variables["CMAKE_CURRENT_SOURCE_DIR"])
        return Compiled((folder / source).resolve(), core, tuple(defines))

    def _run(self, commands: list[Command]) -> None:
        at = 0
        while at < len(commands):
            name, words = commands[at]
            at += 1
            if name in ("function", "macro"):
                end = next(n for n in range(at, len(commands)) if commands[n][0] == f"end{name}")
                self._functions[words[0]] = words[1:], commands[at:end]
                at = end + 1
            elif name in self._functions:
                parameters, body = self._functions[name]
                before = dict(self.variables)
                self.variables.update(zip(parameters, self._words(words), strict=False))
                self._run(body)
                self.variables = before
            else:
                self._command(name, self._words(words))

    def _command(self, name: str, words: list[str]) -> None:
        match name, words:
            case "set", [variable, *values]:
                self.variables[variable] = ";".join(values)
            case (("add_library" | "add_executable"), [target, *sources]):
                kept = [s for s in sources if s not in ("SHARED", "STATIC", "OBJECT")]
                self.targets[target] = Target(kept)
                self.executables += [target] * (name == "add_executable")
            case "target_compile_options", [target, _, *options]:
                self.targets[target].options += options
            case "target_compile_definitions", [target, _, *macros]:
                self.targets[target].options += [f"-D{each.removeprefix('-D')}" for each in macros]
            case "target_include_directories", [target, _, *folders]:
                self.targets[target].includes += folders
            case "target_link_libraries", [target, _, *links]:
                self.targets[target].links += links
            case "add_custom_command", ["OUTPUT", output, *rest]:
                for command in " ".join(rest).split(" COMMAND "):
                    parts = command.split()
                    if "-o" in parts and parts[parts.index("-o") + 1] == output and "-c" in parts:
                        self._outputs[output] = parts
            case _:
                pass

    def _words(self, words: list[str]) -> list[str]:
        found: list[str] = []
        for word in words:
            while match := _VARIABLE.search(word):
                value = self.variables.get(match[1], "")
                word = word[: match.start()] + value + word[match.end() :]
            found += [part for part in word.split(";") if part]
        return found


def _commands(text: str) -> list[Command]:
    """Names with the words in their brackets."""
    found: list[Command] = []
    name, words, depth = "", [], 0
    for match in _TOKEN.finditer(text):
        quoted, bracket, plain = match.groups()
        if bracket == "(":
            depth += 1
            words = [] if depth == 1 else words
        elif bracket == ")":
            depth -= 1
            if depth == 0:
                found.append((name.lower(), words))
        elif depth and (quoted is not None or plain):
            words.append((plain if quoted is None else quoted).replace('\\"', '"'))
        elif plain:
            name = plain
    return found


def _functions_of(commands: list[Command]) -> list[Command]:
    """Only what defines functions and variables."""
    found: list[Command] = []
    inside = False
    for command in commands:
        inside = inside or command[0] == "function"
        found += [command] * (inside or command[0] == "set")
        inside = inside and command[0] != "endfunction"
    return found
