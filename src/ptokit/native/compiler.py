"""Compiling a kernel for this machine: with what is on the PATH, or with Zig from `ptokit[cpp]`."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path

from ptokit.base.cache import cache_folder
from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import (
    Diagnostic,
    ProgramError,
    ToolWarning,
    fail,
    tell,
    usage_error,
)
from ptokit.base.location import Location
from ptokit.base.patterns import regex
from ptokit.isa.effects import Reach
from ptokit.isa.targets import TARGETS, Target
from ptokit.native import headers, sources, tokens
from ptokit.native.complaints import complaints
from ptokit.native.sources import read as read  # what a file says

CHOICE = "PTOKIT_CXX"
_OLDEST = {"g++": 12, "clang": 16}
_FLAGS = (
    "-std=c++20", "-O1", "-g1", "-gdwarf-4", "-fPIC", "-w", "-fno-omit-frame-pointer",
    "-fno-optimize-sibling-calls", "-fno-inline", "-fno-var-tracking", "-fvisibility=default",
    "-fno-sanitize=undefined",  # Zig checks and stops by default
)  # fmt: skip
# Every load and store of a kernel calls a hook: ours, so nothing is linked for it (watch.hpp).
_WATCHING = {
    "g++": ("-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0"),
    "clang": (
        "-fsanitize=thread", "-mllvm", "-tsan-instrument-func-entry-exit=0",
        "-mllvm", "-tsan-instrument-read-before-write=1",
    ),
}  # fmt: skip
_OF_KERNELS = ("__global__", "AICORE", "aicore", "__aicore__")  # words that code of the host lacks
# Symbolic: what a library has it uses, also where another one has the same for another core.
_LINKING = ("-shared", "-Wl,-Bsymbolic")
_MOST_ERRORS = 8
_OTHERS_INCLUDED = regex(r"#\s*include\s*[<\"](?!c?std\w+(\.h)?[>\"])")  # than those of C


@dataclass(frozen=True)
class Compiler:
    """How to call one, and what it calls itself."""

    command: tuple[str, ...]
    version: str
    watching: tuple[str, ...]  # what makes it report accesses; empty: it cannot


def _watching(command: Sequence[str], kind: str) -> tuple[str, ...]:
    flags = _WATCHING[kind]
    with tempfile.TemporaryDirectory() as folder:  # Zig compiles files only, and only to files
        probe = Path(folder, "probe.cpp")
        probe.touch()
        tried = [*command, *flags, "-c", str(probe), "-o", f"{probe}.o"]
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
        _say_that_zig_is_slow()
        return Compiler(command, "zig", _watching(command, "clang"))
    raise usage_error(
        "compiler",
        f"there is no C++ compiler: {chosen} is not to be found"
        if chosen
        else "there is no C++ compiler that knows C++20",
        got=[("found", each) for each in refused],
        fix=f"install g++ 12 or clang 16, or pip install 'ptokit[cpp]'; {CHOICE} names another",
    )


def _say_that_zig_is_slow() -> None:
    """Zig makes its libraries when it first links: minutes, for a compiler that seems to hang."""
    used = made_folder() / "zig-was-used"
    if not used.exists():
        used.touch()
        message = "there is no C++ compiler on the PATH: Zig is used, whose first use takes minutes"
        tell(Diagnostic("cpp", message, severity="warning"), ToolWarning)


def made_folder() -> Path:
    """Where compiled kernels are kept."""
    folder = cache_folder()
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
    if not tool.watching:
        tell(_unwatched(tool, unit.sources[0]), ToolWarning)

    def library(core: str) -> Path:
        return linked([made(unit, n, target, core) for n in range(len(unit.sources))])

    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(library, core) for core in cores]
        return {core: each.result() for core, each in zip(cores, asked, strict=True)}


def is_watching() -> bool:
    """Whether all that kernels do to global memory is reported."""
    return bool(compiler(os.environ.get(CHOICE, "")).watching)


def _unwatched(tool: Compiler, source: Path) -> Diagnostic:
    return Diagnostic(
        "cpp",
        f"{tool.version} cannot report loads and stores: what the kernel does to global memory "
        "through plain pointers, x[i], is carried out but not checked",
        Location(str(source), 0),
        fix="install g++ 12 or clang 16, or write load_scalar(x, i)",
        severity="warning",
    )


def made(unit: Unit, number: int, target: Target, core: str) -> Path:
    """The object of a source for a kind of core, from the cache or compiled now."""
    tool, folder = compiler(os.environ.get(CHOICE, "")), made_folder()
    path = unit.sources[number]
    folders = (*unit.includes, path.parent)
    texts = sources.gathered((path,), folders, unit.defines)
    entries = "" if number else _entries(unit)
    macros = (f"-D{each}" for each in (*_macros(target, core), *unit.defines))
    has_kernels = any(tokens.mentions(text, _OF_KERNELS) for text in texts.values())
    watching = (*tool.watching, "-fno-threadsafe-statics") if has_kernels else ()
    # The compiler of a device knows words such as __gm__ by itself; here a header says them.
    is_bare = has_kernels and not any(map(_OTHERS_INCLUDED.search, texts.values()))
    flags = [*_FLAGS, *watching, *macros, *(("-include", headers.FIRST) if is_bare else ())]
    key = hashlib.sha256()
    for part in (tool.version, headers.digest(), *flags, entries, *map(str, unit.includes)):
        key.update(f"{part}\0".encode())
    for each, text in texts.items():
        key.update(f"{each}\0{text}\0".encode())
    stem = f"{path.stem}-{core}-{key.hexdigest()[:16]}"
    done = folder / f"{stem}.o"
    if not done.exists():
        paths = [f"-I{each}" for each in dict.fromkeys((headers.written(folder), *folders))]
        with _beside(done) as fresh:
            staged = sources.staged(texts, folders, fresh.parent, {path: entries})[path]
            _call(tool, [*flags, *paths, "-c", str(staged), "-o", str(fresh)])
    return done


def linked(objects: Sequence[Path]) -> Path:
    """A shared library of some objects, from the cache or linked now."""
    tool = compiler(os.environ.get(CHOICE, ""))
    stem = objects[0].stem
    if len(objects) > 1:
        key = hashlib.sha256("\0".join(each.name for each in objects).encode())
        stem = f"{stem.rpartition('-')[0]}-{key.hexdigest()[:16]}"
    done = made_folder() / f"{stem}.so"
    if not done.exists():
        with _beside(done) as fresh:
            _call(tool, [*_LINKING, *map(str, objects), "-o", str(fresh)])
    return done


@contextmanager
def _beside(done: Path) -> Generator[Path, None, None]:
    """Where a file is made before it has its name: others see it whole, or not at all."""
    folder = done.with_name(f"{done.name}.{os.getpid()}.{threading.get_ident()}")
    folder.mkdir(exist_ok=True)
    try:
        yield folder / done.name
        (folder / done.name).rename(done)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _call(tool: Compiler, words: Sequence[str]) -> None:
    done = subprocess.run([*tool.command, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise _refused(done.stderr, tool)


def plain_name(symbol: str) -> str:
    """A name as C++ writes it, where there is a tool that knows."""
    if shutil.which("c++filt") is None:
        return symbol
    shown = subprocess.run(["c++filt", symbol], capture_output=True, text=True, check=False)
    return shown.stdout.strip() or symbol


def _macros(target: Target, core: str) -> list[str]:
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


def _entries(unit: Unit) -> str:
    """What is put behind the first source: the functions that enter its kernels."""
    return "".join(_entry(number, each) for number, each in enumerate(unit.entries))


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
    found = list(islice(complaints(text), _MOST_ERRORS))
    if found:
        return ProgramError(found)
    return fail("cpp", f"{tool.version} does not compile it: {text.strip()[:2000]}")
