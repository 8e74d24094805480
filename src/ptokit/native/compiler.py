"""Compiling a kernel for this machine: with what is on the PATH, or with Zig from `ptokit[cpp]`."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ptokit.base.diagnostics import Diagnostic, ProgramError, fail, tell, usage_error
from ptokit.base.location import Location
from ptokit.isa.effects import Reach
from ptokit.isa.targets import TARGETS, Target
from ptokit.native import headers, sources, tokens
from ptokit.native.sources import read as read  # what a file says

CHOICE = "PTOKIT_CXX"
CACHE = "PTOKIT_CACHE"
_OLDEST = {"g++": 12, "clang": 16}
_FLAGS = (
    "-std=c++20", "-O1", "-g1", "-gdwarf-4", "-fPIC", "-w", "-fno-omit-frame-pointer",
    "-fno-optimize-sibling-calls", "-fno-inline", "-fvisibility=default",
)  # fmt: skip
# Every load and store of a kernel calls a hook: ours, so nothing is linked for it (watch.hpp).
_WATCHING = {
    "g++": ("-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0"),
    "clang": (
        "-fsanitize=thread", "-mllvm", "-tsan-instrument-func-entry-exit=0",
        "-mllvm", "-tsan-instrument-read-before-write=1",
    ),
}  # fmt: skip
_ERROR = re.compile(
    r"^(?P<file>[^\n:]+):(?P<line>\d+)(?::(?P<col>\d+))?: (?:fatal )?error: (?P<text>.*)$", re.M
)
_MOST_ERRORS = 8


@dataclass(frozen=True)
class Compiler:
    """How to call one, and what it calls itself."""

    command: tuple[str, ...]
    version: str
    watching: tuple[str, ...]  # what makes it report accesses; empty: it cannot


def _watching(command: Sequence[str], kind: str) -> tuple[str, ...]:
    flags = _WATCHING[kind]
    tried = [*command, *flags, "-x", "c++", "-fsyntax-only", os.devnull]
    done = subprocess.run(tried, capture_output=True, check=False)
    return flags if done.returncode == 0 else ()


@cache
def compiler(chosen: str = "") -> Compiler:
    """The compiler in force; raises where there is none that will do."""
    refused: list[str] = []
    for words in ([chosen],) if chosen else (["c++"], ["g++"], ["clang++"]):
        if shutil.which(words[0]) is None:
            continue
        shown = subprocess.run([*words, "--version"], capture_output=True, text=True, check=False)
        first = shown.stdout.partition("\n")[0]
        number = re.search(r"(\d+)\.\d+", first)
        kind = "clang" if "clang" in first else "g++"
        if number is None or int(number[1]) >= _OLDEST[kind]:
            return Compiler(tuple(words), first, _watching(words, kind))
        refused.append(first)
    if not chosen and importlib.util.find_spec("ziglang") is not None:
        command = (sys.executable, "-m", "ziglang", "c++")
        return Compiler(command, "zig", _watching(command, "clang"))
    raise usage_error(
        "compiler",
        f"there is no C++ compiler: {chosen} is not to be found"
        if chosen
        else "there is no C++ compiler that knows C++20",
        got=[("found", each) for each in refused],
        fix=f"install g++ 12 or clang 16, or pip install 'ptokit[cpp]'; {CHOICE} names another",
    )


def cache_folder() -> Path:
    """Where compiled kernels are kept."""
    given = os.environ.get(CACHE)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(given) if given else Path(home) / "ptokit"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True)
class Unit:
    """What is compiled: sources, and the functions that can be entered."""

    sources: tuple[Path, ...]
    entries: tuple[str, ...] = ()  # expressions that name a function
    defines: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()


def compiled(unit: Unit, target: Target, cores: Sequence[str]) -> dict[str, Path]:
    """A shared library per kind of core, from the cache or made now, side by side."""
    tool = compiler(os.environ.get(CHOICE, ""))  # what the call is to blame for is told at its line
    for core in cores:
        _macros(target, core)
    if not tool.watching:
        tell(_unwatched(tool, unit.sources[0]))
    with ThreadPoolExecutor() as pool:
        made = [pool.submit(_library, unit, target, core) for core in cores]
        return {core: each.result() for core, each in zip(cores, made, strict=True)}


def _unwatched(tool: Compiler, source: Path) -> Diagnostic:
    return Diagnostic(
        "cpp",
        f"{tool.version} cannot report loads and stores: what the kernel does to global memory "
        "through plain pointers, x[i], is carried out but not checked",
        Location(str(source), 0),
        fix="install g++ 12 or clang 16, or write load_scalar(x, i)",
        severity="warning",
    )


def _library(unit: Unit, target: Target, core: str) -> Path:
    tool, folder = compiler(os.environ.get(CHOICE, "")), cache_folder()
    folders = (*unit.includes, *(each.parent for each in unit.sources))
    texts = sources.gathered(unit.sources, folders)
    macros = (f"-D{each}" for each in (*_macros(target, core), *unit.defines))
    flags = [*_FLAGS, *tool.watching, *macros]
    key = hashlib.sha256()
    for part in (tool.version, headers.digest(), *flags, *unit.entries, *map(str, unit.includes)):
        key.update(f"{part}\0".encode())
    for path, text in texts.items():
        key.update(f"{path}\0{text}\0".encode())
    stem = f"{unit.sources[0].stem}-{core}-{key.hexdigest()[:16]}"
    library = folder / f"{stem}.so"
    if library.exists():
        return library
    where = folder / f"{stem}.{os.getpid()}"
    where.mkdir(exist_ok=True)
    try:
        tails = dict.fromkeys(unit.sources, "")
        tails[unit.sources[0]] = "".join(_entry(n, each) for n, each in enumerate(unit.entries))
        copies = sources.staged(texts, folders, where, tails)
        staged = [copies[each] for each in unit.sources]
        paths = [f"-I{each}" for each in dict.fromkeys((headers.written(folder), *folders))]
        for source in staged:
            _call(tool, [*flags, *paths, "-c", str(source), "-o", f"{source}.o"])
        _call(tool, ["-shared", *(f"{each}.o" for each in staged), "-o", str(where / "made.so")])
        (where / "made.so").rename(library)
    finally:
        shutil.rmtree(where, ignore_errors=True)
    return library


def _call(tool: Compiler, words: Sequence[str]) -> None:
    done = subprocess.run([*tool.command, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise _refused(done.stderr, tool)


def _macros(target: Target, core: str) -> list[str]:
    if not target.cpp_macros:
        compiled_for = [name for name, each in TARGETS.items() if each.cpp_macros]
        raise usage_error(
            "compiler",
            f"C++ kernels are compiled for {' and '.join(compiled_for)}",
            got=[("target", target.name)],
            fix=f'cpp(..., target="{compiled_for[0]}")',
        )
    found = [*target.cpp_macros, "__CCE_KT_TEST__=0", *target.core_macros.get(core, ())]
    facts = {  # for our own header
        "PTOKIT_LEFT_IS_NZ": target.left_layout == "NZ",
        "PTOKIT_CORE_FLAGS": target.core_signals is Reach.CORE,
    }
    return found + [name for name, holds in facts.items() if holds]


def cores_of(text: str) -> str:
    """The kind of core a source is written for, by the parts it has for each."""
    known = [each.core_macros.items() for each in TARGETS.values()]
    has = {kind for all_ in known for kind, names in all_ if tokens.mentions(text, names)}
    return "mix" if len(has) == 2 else next(iter(has), "single")


def _entry(number: int, expression: str) -> str:
    """The functions by which a kernel is called, and asked what it takes."""
    return (
        f'#line 1 "{headers.ENTRY_FILE}"\n'
        f'extern "C" void ptokit_enter_{number}(const int64_t* words) '
        f"{{ ::ptokit::enter(&{expression}, words); }}\n"
        f'extern "C" int64_t ptokit_signature_{number}(int64_t* kinds) '
        f"{{ return ::ptokit::signature(&{expression}, kinds); }}\n"
    )


def _refused(text: str, tool: Compiler) -> Exception:
    """What the compiler said, as diagnostics at the lines of the source."""
    found = [
        Diagnostic(
            "cpp",
            match["text"],
            Location(match["file"], int(match["line"]), int(match["col"] or 0)),
        )
        for match in list(_ERROR.finditer(text))[:_MOST_ERRORS]
    ]
    if found:
        return ProgramError(found)
    return fail("cpp", f"{tool.version} does not compile it: {text.strip()[:2000]}")
