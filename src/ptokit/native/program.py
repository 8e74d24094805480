"""Whole C++ programs: `main`, what it launches, and the host API between them.

A program is compiled once per kind of core that its kernels are for, and runs in a process of its
own; what happens there is told piece by piece, so that a crash loses nothing of what came before.
"""

from __future__ import annotations

import ctypes
import faulthandler
import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from pathlib import Path
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, fail, usage_error
from ptokit.base.location import Location
from ptokit.base.process import undisturbed
from ptokit.frontend.launch import Options
from ptokit.isa.targets import Target
from ptokit.machine.jobs import LOOKS
from ptokit.native import compiler
from ptokit.native.compiler import Unit
from ptokit.native.host import Case, Device, Found, Host
from ptokit.native.keeper import TIME_LIMIT, Keeper
from ptokit.native.library import Library, Trace

_PARTS = {"mix": ("cube", "vector")}  # what a source for a cluster is compiled for


@dataclass(frozen=True)
class Source:
    """A file of a program."""

    path: Path
    core: str = ""  # "single", "cube", "vector" or "mix"; empty: what it is written for
    defines: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """What it is compiled for."""
        core = self.core or compiler.cores_of(compiler.read(self.path))
        return _PARTS.get(core, (core,))


@dataclass(frozen=True)
class Program:
    """Sources, one of which has a `main`, or is made of tests."""

    sources: tuple[Source, ...]
    target: Target
    defines: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()

    def built(self) -> dict[str, Path]:
        """A library per kind of core; raises what the compiler says."""
        units: list[tuple[str, Unit]] = []
        for each in self.sources:
            unit = Unit((each.path,), (), (*self.defines, *each.defines), self.includes)
            units += [(kind, unit) for kind in each.kinds]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            asked = [pool.submit(compiler.made, u, 0, self.target, kind) for kind, u in units]
            objects: dict[str, list[Path]] = {}
            for (kind, _), made in zip(units, asked, strict=True):
                objects.setdefault(kind, []).append(made.result())
            # The host's last: it finds the functions of the others.
            order = sorted(objects, key=lambda kind: kind == "single")
            libraries = [pool.submit(compiler.linked, objects[kind]) for kind in order]
            return {kind: each.result() for kind, each in zip(order, libraries, strict=True)}


@dataclass
class Ran:
    """What a program has left behind."""

    code: int = 0  # its exit code
    found: list[tuple[str, Diagnostic]] = field(default_factory=list[tuple[str, Diagnostic]])
    cases: dict[str, str] = field(default_factory=dict[str, str])  # "begun" where it never ended

    @property
    def errors(self) -> list[Diagnostic]:
        return [each for _, each in self.found if each.severity == "error"]


def execute(
    program: Program,
    args: Sequence[str] = (),
    *,
    options: Options | None = None,
    without_kernels: bool = False,
    time_limit: float = TIME_LIMIT,
    folder: Path | None = None,
    output: Path | int | None = None,
    told: Callable[[Diagnostic], None] | None = None,
    in_place_of: Callable[[Any], Any] | None = None,
) -> Ran:
    """Compile a program and run it, in `folder`; its output goes to a file, or a stream by number.

    What its launches lack, and a crash, is in the answer, with the case of a test that was running;
    `told` hears of it at once. `in_place_of` makes what cores call in the place of their machine.
    """
    libraries = program.built()
    trace = Trace(tuple(libraries))
    file = program.sources[0].path
    keeper = Keeper(file.name, trace, libraries, Location(str(file), 0), time_limit)
    device = Device(program.target, options or Options(), without_kernels, in_place_of)
    ran, case = Ran(), ""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def work() -> None:
        ours.close()
        if folder is not None:
            os.chdir(folder)
        if isinstance(output, int):
            os.dup2(output, 1)
        elif output is not None:
            into = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(into, 1)
            os.dup2(into, 2)
        _run(libraries, trace, str(file), [str(file), *args], device, theirs.send)

    with undisturbed():
        worker = context.Process(target=work)
        worker.start()
    theirs.close()

    def note(found: Iterable[Diagnostic]) -> None:
        for each in found:
            ran.found.append((case, each))
            if told is not None:
                told(each)

    try:
        while True:
            while not ours.poll(LOOKS):
                if stuck := keeper.stuck():
                    note(stuck.diagnostics)
                    return ran
            try:
                message = ours.recv()
            except EOFError:
                worker.join()
                ran.code = worker.exitcode or 0
                if ran.code < 0:
                    note(keeper.ended(ran.code).diagnostics)
                return ran
            match message:
                case Found(found):
                    note(found)
                case Case(name, outcome):
                    ran.cases[name] = outcome
                    case = name if outcome == "begun" else ""
                case BaseException():
                    raise message
                case _:
                    pass
    finally:
        worker.kill()
        worker.join()
        ours.close()


def _run(
    paths: Mapping[str, Path],
    trace: Trace,
    file: str,
    words: Sequence[str],
    on: Device,
    tell: Callable[[Any], None],
) -> None:
    """In the process of the program: load it, and enter `main`."""
    faulthandler.disable()  # a crash is told by whoever started this process
    try:
        *_, host = paths  # the last one, which must find whatever it calls
        loaded = {kind: _loaded(path, file, kind == host) for kind, path in paths.items()}
        for kind, library in loaded.items():
            trace.connect(kind, library)
        device = Host(loaded, on, tell)  # named: it lives as long as the program
        start = _main(loaded.values(), file)
    except BaseException as error:
        tell(error)
        os._exit(1)
    argv = (ctypes.c_char_p * (len(words) + 1))(*(os.fsencode(word) for word in words))
    code = start(len(words), argv)
    for each in loaded.values():
        each.loaded.ptokit_finish()
    ctypes.CDLL(None).fflush(None)  # what C++ has written
    del device
    os._exit(code & 0xFF)


def _loaded(path: Path, file: str, is_last: bool) -> Library:
    try:
        mode = os.RTLD_GLOBAL | (os.RTLD_NOW if is_last else os.RTLD_LAZY)
        return Library(path, file, mode)
    except OSError as error:
        _, _, missing = str(error).partition("undefined symbol: ")
        if not missing:
            raise
        raise fail(
            "cpp-link",
            f"no source of the program has the function {compiler.plain_name(missing.strip())}",
            fix="name the file that has it as well, or make the instance of the template there",
            site=Location(file, 0),
        ) from None


def _main(libraries: Iterable[Library], file: str) -> Any:
    for name in ("main", "ptokit_main_of_tests"):
        for each in libraries:
            if hasattr(each.loaded, name):
                start = getattr(each.loaded, name)
                start.restype = ctypes.c_int
                return start
    raise usage_error(
        "program",
        f"{file} has no main",
        fix="name the file with main as well, or run a kernel alone: ptokit run k.cpp",
    )
