"""Functions and programs of PyPTO: compiled there, and run here as they are called.

`@pl.jit` makes a kernel in auto mode of a function. A call runs it on one core that plays every
part; what a device would be given is judged first, so that tiles which do not fit are told.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any

from ptokit.base.diagnostics import usage_error
from ptokit.base.entry import public
from ptokit.from_python import kernel as make_kernel
from ptokit.frontend.session import device, is_active
from ptokit.ir.core import Module
from ptokit.kernels import Kernel

_DEFAULT = "a2a3"
RAN: list[str] = []  # the functions that were run from the host, by name


class Settings(SimpleNamespace):
    """How a program is to be run: of all that can be said, the platform counts here."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)

    @property
    def target(self) -> str:
        """The target of a platform: that of its simulator is the same."""
        return str(getattr(self, "platform", _DEFAULT)).removesuffix("sim")


class Compiled:
    """A function for the device. Called on the host it runs; called from another one it is a part.

    `kernel` is what it is here: it can be checked, timed, printed and written as C++.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    @functools.cached_property
    def kernel(self) -> Kernel:
        return make_kernel(mode="auto")(self.function)

    @public
    def __call__(self, *args: Any, config: Any = None, **named: Any) -> Any:
        if is_active():
            return self.function(*args, **named)
        target = config.target if isinstance(config, Settings) else _DEFAULT
        programs = self.kernel.programs
        bound = self.kernel.source.bind(args, named)
        programs.judged(programs.asked(target, None, None, (), None, None), bound)
        RAN.append(self.function.__name__)
        with device(target, mode="auto"):
            return self.function(*args, **named)

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else MethodType(self, owner)

    @public
    def lower(self, *args: Any, config: Any = None, **named: Any) -> Lowered:
        """The program of the function for these arguments."""
        target = config.target if isinstance(config, Settings) else _DEFAULT
        RAN.append(self.function.__name__)
        return Lowered(self.kernel.lower(*args, target=target, **named))

    def __repr__(self) -> str:
        return f"<function {self.function.__name__} for the device>"


class Lowered:
    """A program: `functions` by name."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.functions = {
            each.name: SimpleNamespace(name=each.name, func_type="InCore")
            for each in module.functions
        }


class _Jit:
    """`@pl.jit`, `@pl.jit.incore`, `@pl.jit(...)`: all of them make a function for the device."""

    @public
    def __call__(self, function: Any = None, **_: object) -> Any:
        return self if function is None else Compiled(function)

    incore = inline = opaque = host = property(lambda self: self)


jit = _Jit()


@public
def function(made_of: Any = None, **_: object) -> Any:
    """`@pl.function(type=...)`."""
    return Compiled if made_of is None else Compiled(made_of)


@public
def program(kind: type | None = None, **_: object) -> Any:
    """`@pl.program` on a class of functions: its entry is that which nobody else calls."""
    return program if kind is None else Program(kind)


class Program:
    """A class of functions, of which one is run."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.functions: Mapping[str, Compiled] = {
            name: each for name, each in vars(kind).items() if isinstance(each, Compiled)
        }

    @property
    def name(self) -> str:
        return self.kind.__name__

    @property
    def entry(self) -> Compiled:
        """The function that the others are called from: it calls itself `self.name(...)`."""
        called = {name for each in self.functions.values() for name in _names(each.function)}
        entries = [each for name, each in self.functions.items() if name not in called]
        if len(entries) != 1:
            raise usage_error(
                "pypto.entry",
                f"{self.name} has {len(entries)} functions that no other one calls",
                fix="run one of them: pypto.runtime.run takes programs with one entry",
            )
        return entries[0]


def _names(function: Callable[..., Any]) -> frozenset[str]:
    """The attributes that a function reads."""
    code = inspect.unwrap(function)
    return frozenset(code.__code__.co_names) if isinstance(code, FunctionType) else frozenset()


@public
def run(program: Program, *tensors: Any, config: Any = None, **_: object) -> None:
    """Run the entry of a program on tensors, in place."""
    target = config.target if isinstance(config, Settings) else _DEFAULT
    entry = program.entry.function
    is_method = next(iter(inspect.signature(entry).parameters), "") == "self"
    RAN.append(program.name)
    with device(target, mode="auto"):
        entry(*([program.kind()] if is_method else []), *tensors)
