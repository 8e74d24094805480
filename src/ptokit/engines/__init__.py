"""Engines: what runs programs. All of them leave the same bytes in all memories.

An engine has two sides. Its `executor` executes single instructions: a machine that is given it
runs everything called from Python on it. `prepare` makes a module of IR ready; the result runs a
function of it on the core in force. `reference` is the definition, `fast` what is used: it runs a
program step by step, and repeats launches that can only do the same again (`compiled/`), which
`stepwise` does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ptokit.base.diagnostics import UsageError, fail
from ptokit.engines.fast import FastEngine
from ptokit.engines.reference import ReferenceEngine
from ptokit.ir.core import Function, Module
from ptokit.machine.executor import Executor
from ptokit.machine.machine import Machine


class Runnable(Protocol):
    """A module that an engine has made ready."""

    @property
    def module(self) -> Module: ...

    def run(self, machine: Machine, function: Function, args: tuple[Any, ...]) -> None:
        """Run a function of the module on the core in force."""
        ...


class Engine(Protocol):
    """A way to run programs."""

    @property
    def executor(self) -> Callable[[Machine], Executor]:
        """Makes what executes the instructions of a machine."""
        ...

    def prepare(self, module: Module) -> Runnable:
        """A module ready to run."""
        ...


ENGINES: dict[str, Engine] = {"fast": FastEngine(), "reference": ReferenceEngine()}
REPEATING = "fast"  # the name under which launches are repeated
_OTHER_NAMES = {"stepwise": "fast"}


def engine(name: str) -> Engine:
    """The engine of this name."""
    found = ENGINES.get(_OTHER_NAMES.get(name, name))
    if found is None:
        names = ", ".join((*ENGINES, *_OTHER_NAMES))
        raise fail("engine", f"engine is one of {names}, not {name!r}", kind=UsageError)
    return found
