"""Programs for the MLIR bindings of the public assembler, and for PyPTO, run as they are.

    import ptokit.compat            # `import mlir` is answered from here, unless it is installed
    from add_builder import build   # a program for the bindings, or for PTODSL, which uses them

    program = ptokit.compat.program(build())
    program["vec_add"][1](x, y, z)

`mlir` and `ptoas.mlir` are stand-ins that build the programs of this package: every operation and
every instruction of its tables has its class there. Whatever a program asks for and the tables do
not have is refused by name. `pypto.language` stands for the tile level of PyPTO: its functions run
when they are called.
"""

from __future__ import annotations

import importlib.abc
import runpy
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from traceback import walk_tb
from types import ModuleType

from ptokit.base.diagnostics import PtoError, usage_error
from ptokit.base.entry import public
from ptokit.base.location import Location
from ptokit.compat import modules, parts
from ptokit.compat.device import libraries, shell, tensors
from ptokit.compat.pypto.language import MODULES as PYPTO
from ptokit.compat.pypto.programs import MADE, RAN
from ptokit.compat.structure import Module
from ptokit.from_text import Program

_ROOTS = ("mlir", "ptoas", "pypto", "torch_npu")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers imports of the bindings. At the end of the path of finders, installed ones win."""

    is_first = False

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        parts_ = fullname.split(".")
        if parts_[0] not in _ROOTS:
            return None
        if parts_[0] == "torch_npu":
            known = fullname in ("torch_npu", "torch_npu.npu")
            is_package = fullname == "torch_npu"
            return ModuleSpec(fullname, self, is_package=is_package) if known else None
        if parts_[0] == "pypto":
            inner = fullname.partition(".")[2]
            is_package = not inner or any(name.startswith(f"{inner}.") for name in PYPTO)
            if inner and inner not in PYPTO:
                return None
            return ModuleSpec(fullname, self, is_package=is_package)
        inner = parts_[1:] if parts_[0] == "mlir" else parts_[2:]
        is_package = not inner or inner == ["dialects"]
        is_known = is_package or inner == ["ir"] or _is_dialect(inner)
        if not is_known or (parts_[0] == "ptoas" and parts_[1:2] not in ([], ["mlir"])):
            return None
        return ModuleSpec(fullname, self, is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        root, _, inner = spec.name.partition(".")
        if not inner and root != "pypto":  # who builds a program may start the tools of a device
            shell.put_on_path(replace=self.is_first)
        if root == "torch_npu":
            made = tensors.module()
            return made.npu if inner else made
        if root == "pypto":
            return PYPTO[inner]()
        last = spec.name.rpartition(".")[2]
        if spec.submodule_search_locations is not None:
            return None
        return modules.ir() if last == "ir" else modules.dialect(last)

    def exec_module(self, module: ModuleType) -> None:
        pass


def _is_dialect(inner: Sequence[str]) -> bool:
    return len(inner) == 2 and inner[0] == "dialects" and inner[1] in modules.DIALECTS


_finder = _Finder()


@public
def install(*, replace: bool = False) -> None:
    """Answer `import mlir`. Bindings that are installed win, unless they are to be replaced."""
    uninstall()
    _finder.is_first = replace
    sys.meta_path.insert(0 if replace else len(sys.meta_path), _finder)
    libraries.install()


@public
def uninstall() -> None:
    """Answer it no more."""
    libraries.uninstall()
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name in [n for n, m in sys.modules.items() if _is_ours(m)]:
        del sys.modules[name]


def _is_ours(module: object) -> bool:
    spec = getattr(module, "__spec__", None)
    return isinstance(spec, ModuleSpec) and spec.loader is _finder


@public
def program(module: Module) -> Program:
    """The program that a module of the stand-in is; its findings tell the lines of Python."""
    return module.program()


@public
def programs_of(path: str | Path, arguments: Sequence[str] = ()) -> list[Program]:
    """Execute a Python file as a script and return the programs that it builds.

    It runs as any script does: with its folder first on the path, and what it prints is printed.
    What it raises is told with its line. One for PyPTO runs its functions itself; it builds none.
    """
    if _finder not in sys.meta_path:
        install()
    file = str(path)
    made, done = len(parts.MODULES), (RAN, MADE, libraries.LAUNCHED)
    before = sum(map(len, done))
    with _as_script(file, arguments):
        try:
            runpy.run_path(file, run_name="__main__")
        except PtoError:
            raise
        except SystemExit as stop:
            if stop.code:
                raise _raised_by(stop, file) from stop
        except Exception as error:
            raise _raised_by(error, file) from error
    found = [program(each) for each in parts.MODULES[made:] if each.ours.functions]
    if not found and sum(map(len, done)) == before:
        raise usage_error(
            "script.nothing-built",
            f"{Path(file).name} was executed and has built no module with functions",
            fix="end it with what builds one: if __name__ == '__main__': build()",
            site=Location(file, 0),
        )
    return found


def _raised_by(error: BaseException, file: str) -> PtoError:
    """What a script has raised, at the line of its own that led there."""
    lines = [n for f, n in walk_tb(error.__traceback__) if f.f_code.co_filename == file]
    what = f"raised {type(error).__name__}: {error}"
    fix = "it is executed as it is: run it with python after `import ptokit.compat`"
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        what = f"ended with exit code {error.code}"
        fix = "arguments of its own go after --: ptokit run --compat FILE -- ARGUMENTS"
    return usage_error(
        "script.raised",
        f"{Path(file).name} {what}",
        fix=fix,
        site=Location(file, lines[-1] if lines else 0),
    )


@contextmanager
def _as_script(file: str, arguments: Sequence[str]) -> Generator[None]:
    argv, path = sys.argv, sys.path
    sys.argv = [file, *arguments]
    sys.path = [str(Path(file).resolve().parent), *path]
    parts.own_files.append(file)
    try:
        yield
    finally:
        sys.argv, sys.path = argv, path
        parts.own_files.pop()


install()

__all__ = ["install", "program", "programs_of", "uninstall"]
