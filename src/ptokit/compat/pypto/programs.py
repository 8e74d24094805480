"""Functions and programs of PyPTO: compiled there, and run here as they are called.

`@pl.jit` makes a kernel in auto mode of a function. A call runs it on one core that plays every
part; what a device would be given is judged first, so that tiles which do not fit are told. What
orchestrates runs as it is written, on the host: each function for the device that it calls is a
launch, in the order of the program.
"""

from __future__ import annotations

import ast
import functools
import inspect
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any

import numpy as np

from ptokit.base.diagnostics import PtoError, usage_error
from ptokit.base.entry import public
from ptokit.base.files import write_text
from ptokit.base.location import Location
from ptokit.compat.pypto.annotations import Annotation, returned_parameters
from ptokit.compat.pypto.dispatch import (
    DEFAULT,
    Settings,
    dispatching,
    in_force,
    launched,
    run_together,
)
from ptokit.compat.torches import torch
from ptokit.from_python import kernel as make_kernel
from ptokit.frontend.comm_types import World
from ptokit.frontend.session import is_active
from ptokit.ir.core import Module
from ptokit.isa.targets import TARGETS
from ptokit.kernels import Kernel
from ptokit.machine.gm import as_array

_ON_HOST = ("Orchestration", "Host")
RAN: list[str] = []  # the functions that were run from the host, by name
MADE: list[str] = []  # the programs that were made


class Compiled:
    """A function for the device. Called on the host it runs; called from another one it is a part.

    `kernel` is what it is here: it can be checked, timed, printed and written as C++.
    """

    def __init__(self, function: Callable[..., Any], func_type: str = "InCore") -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.func_type = func_type

    @property
    def name(self) -> str:
        return self.function.__name__

    @functools.cached_property
    def kernel(self) -> Kernel:
        return make_kernel(mode="auto")(self.function)

    @property
    def place(self) -> Location:
        code = self.function.__code__
        return Location(code.co_filename, code.co_firstlineno)

    @property
    def params(self) -> list[Any]:
        """Its parameters: the name and the annotation of each."""
        found = _signature(self.function).parameters.values()
        return [SimpleNamespace(name=each.name, type=each.annotation) for each in found]

    @property
    def return_types(self) -> list[Any]:
        """What it is annotated to return."""
        found = _signature(self.function).return_annotation
        if found is inspect.Signature.empty or found is None:
            return []
        is_several = isinstance(found, Annotation) and found.name == "Tuple"
        return list(found.items) if is_several else [found]

    def as_python(self) -> str:
        """Its source."""
        return textwrap.dedent(inspect.getsource(self.function))

    @functools.cached_property
    def requires_runtime_binding(self) -> bool:
        """Whether its body is `...`: what it does is said when the program is prepared."""
        tree = ast.parse(textwrap.dedent(inspect.getsource(self.function))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        return all(isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
                   for each in tree.body)  # fmt: skip

    @public
    def __call__(self, *args: Any, config: Any = None, device: Any = None, **named: Any) -> Any:
        if is_active():
            return self.function(*args, **named)
        now = in_force()
        if now is not None and config is None:
            if device is not None and now.world is not None:
                now.waiting.append((int(device), lambda: self._on_device(args, named)))
                return args[-1] if args else None
            return self._dispatched(args, named)
        RAN.append(self.name)
        chosen = config if isinstance(config, Settings) else Settings()
        if self.func_type not in _ON_HOST:
            self._judge(chosen.target, args, named)
        world = None
        if self.func_type == "Host":
            world = World(chosen.devices, chosen.target, "auto")
        with dispatching(target=chosen.target, world=world) as now:
            result = self._dispatched(args, named)
            run_together(now)
            return result

    def _dispatched(self, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """What the host calls: more orchestration, or a launch."""
        now = in_force()
        if self.func_type in _ON_HOST:
            return self.function(*args, **named)
        if now is not None and now.lowered is not None:
            now.lowered.append(self.kernel.lower(*args, target=now.target, **named))
        if now is None or self._returned is None:
            return launched(lambda: self.function(*args, **named), self.place.file)
        # What it returns is known: a launch that comes again is repeated as compiled code.
        self.kernel[now.grid](*args, target=now.target, **named)
        bound = inspect.signature(self.function).bind(*args, **named).arguments
        found = tuple(bound[name] for name in self._returned)
        return found[0] if len(found) == 1 else found

    @functools.cached_property
    def _returned(self) -> tuple[str, ...] | None:
        """The parameters that it returns, whichever way it goes; None: that is not to be seen."""
        return None if self.takes_self else returned_parameters(self.function)

    def _on_device(self, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """The same on a device of a world, whose machine is in force."""
        return self.function(*(at_hand(each) for each in args), **named)

    def _judge(self, target: str, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        programs = self.kernel.programs
        bound = self.kernel.source.bind(tuple(args), dict(named))
        programs.judged(programs.asked(target, None, None, (), None, None), bound)

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return MethodType(self, owner) if owner is not None and self.takes_self else self

    @functools.cached_property
    def takes_self(self) -> bool:
        return next(iter(inspect.signature(self.function).parameters), "") == "self"

    @public
    def compile(self, *sample: Any, config: Any = None, **_: object) -> CompiledProgram:
        """What can be called with arguments like these; nothing is run."""
        return CompiledProgram(self, config, sample)

    @public
    def lower(self, *args: Any, config: Any = None, **named: Any) -> Lowered:
        """The program of the function for these arguments; of one that orchestrates, its parts."""
        RAN.append(self.name)
        asked = config.target if isinstance(config, Settings) else None
        # Nothing is generated: what no device can do is refused when it is to run on one.
        by_reach = sorted(TARGETS, key=lambda name: not TARGETS[name].is_device)
        others = [] if asked else by_reach
        target = asked or DEFAULT
        try:
            return Lowered([self.kernel.lower(*args, target=target, **named)])
        except PtoError as error:
            for other in others:  # which one it is for was not said
                with suppress(PtoError):
                    return Lowered([self.kernel.lower(*args, target=other, **named)])
            if not any(code.startswith("lower.") for code in error.codes):
                raise
            found: list[Module] = []
            copies = [each if np.isscalar(each) else as_array(each).copy() for each in args]
            with dispatching(target=target, lowered=found):
                self.function(*copies, **named)
            if not found:
                raise
            return Lowered(found)

    def __repr__(self) -> str:
        return f"<function {self.name} for the device>"


def at_hand(argument: Any) -> Any:
    """What an argument is on the device that runs: of a window its own part."""
    own = getattr(argument, "own_part", None)
    return argument if own is None else own()


class Lowered:
    """A program: `functions` by name."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = modules
        self.functions = {
            each.name: SimpleNamespace(name=each.name, func_type="InCore")
            for module in modules
            for each in module.functions
        }


class CompiledProgram:
    """A program that can be called; as a path it is the folder with the texts of its functions."""

    def __init__(self, entry: Compiled, config: Any = None, sample: Sequence[Any] = ()) -> None:
        self.entry = entry
        self._config = config
        self._sample = sample

    @functools.cached_property
    def output_dir(self) -> str:
        folder = Path(tempfile.mkdtemp(prefix=f"{self.entry.name}-"))
        write_text(folder / f"{self.entry.name}.py", self.entry.as_python())
        return str(folder)

    def __fspath__(self) -> str:
        return self.output_dir

    __str__ = __fspath__

    @public
    def __call__(self, *tensors: Any, config: Any = None) -> Any:
        """Run it on tensors; outputs that are not given are made, and returned."""
        parameters = [each for each in _signature(self.entry.function).parameters.values()
                      if each.name != "self"]  # fmt: skip
        given = list(tensors)
        outputs: list[Any] = []
        if len(given) < len(parameters):
            for place, each in enumerate(parameters):
                kind = each.annotation
                if isinstance(kind, Annotation) and kind.name == "Out" and kind.items:
                    given.insert(place, _made_like(tensors, kind.items[0]))
                    outputs.append(given[place])
        result = self._entered(*given, config=_merged(self._config, config))
        return outputs[0] if len(outputs) == 1 else tuple(outputs) or result

    def _entered(self, *tensors: Any, config: Any) -> Any:
        return self.entry(*tensors, config=config)

    @public
    def prepare(self, callbacks: Mapping[str, Any] | None = None, **_: object) -> Prepared:
        """Ready to be called many times; callbacks are bound to the functions without a body."""
        return Prepared([self], callbacks)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """With annotations as objects, also where they are written as text, if they can be read."""
    try:
        return inspect.signature(function, eval_str=True)
    except NameError:
        return inspect.signature(function)


def _merged(first: Any, second: Any) -> Settings:
    known = {**vars(first or Settings()), **vars(second or Settings())}
    return Settings(**known)


def _made_like(tensors: Sequence[Any], kind: Any) -> Any:
    """A tensor of an annotated kind: of torch, where the others are."""
    shape, element = kind.items[:2]
    array = np.zeros(tuple(shape), element.np)
    if any(type(each).__module__.partition(".")[0] == "torch" for each in tensors):
        return torch().zeros(tuple(shape), dtype=getattr(torch(), array.dtype.name))
    return array


class Prepared:
    """A worker with programs: a device, or several of them, that keeps tensors between calls."""

    def __init__(
        self,
        programs: Sequence[CompiledProgram] = (),
        callbacks: Mapping[str, Any] | None = None,
        **_: object,
    ) -> None:
        self._programs = list(programs)
        self.aicpu_dlopen_count = 0  # programs that were loaded
        self._known: set[int] = set()
        for each in programs:
            if isinstance(each, WholeProgram):
                each.bind(callbacks or {})

    def __enter__(self) -> Prepared:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is kept beside the tensors."""

    @public
    def register(self, compiled: CompiledProgram) -> CompiledProgram:
        """Load a program, once."""
        if id(compiled.entry) not in self._known:
            self._known.add(id(compiled.entry))
            self.aicpu_dlopen_count += 1
        return compiled

    @public
    def run(self, compiled: CompiledProgram, *tensors: Any, **named: Any) -> Any:
        return compiled(*tensors, **named)

    @public
    def __call__(self, *tensors: Any, **named: Any) -> Any:
        if len(self._programs) != 1:
            raise usage_error(
                "pypto.dispatch",
                f"the worker has {len(self._programs)} programs",
                fix="worker.run(compiled, *tensors) says which",
            )
        return self._programs[0](*tensors, **named)

    @public
    def alloc_tensor(self, shape: Sequence[int], dtype: Any, init: Any = None) -> Any:
        return torch().zeros(tuple(shape), dtype=dtype) if init is None else init.clone()

    def free_tensor(self, tensor: Any) -> None:
        """Tensors go when nobody has them."""


class _Jit:
    """`@pl.jit`, `@pl.jit.incore`, `@pl.jit(...)`: all of them make a function for the device."""

    def __init__(self, func_type: str = "InCore") -> None:
        self._func_type = func_type

    @public
    def __call__(self, function: Any = None, **_: object) -> Any:
        return self if function is None else Compiled(function, self._func_type)

    incore = inline = opaque = property(lambda self: _Jit("InCore"))
    host = property(lambda self: _Jit("Host"))


jit = _Jit()


@public
def function(
    made_of: Any = None, type: Any = None, level: Any = None, role: Any = None, **_: object
) -> Any:
    """`@pl.function(type=...)`; what is of the host's level runs there."""
    kind = "Host" if level == "HOST" and role is not None else str(type or "InCore")
    return functools.partial(Compiled, func_type=kind) if made_of is None else Compiled(made_of)


@public
def program(kind: type | None = None, **_: object) -> Any:
    """`@pl.program` on a class of functions: its entry is that which nobody else calls."""
    return program if kind is None else Program(kind)


class Program:
    """A class of functions, of which one is run."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        MADE.append(kind.__name__)
        self.functions: Mapping[str, Compiled] = {
            name: each for name, each in vars(kind).items() if isinstance(each, Compiled)
        }

    @property
    def name(self) -> str:
        return self.kind.__name__

    def get_function(self, name: str) -> Compiled | None:
        return self.functions.get(name)

    def as_python(self) -> str:
        """Its source."""
        return textwrap.dedent(inspect.getsource(self.kind))

    @property
    def entry(self) -> Compiled:
        """The function that the others are called from: it calls itself `self.name(...)`."""
        called = {name for each in self.functions.values() for name in _names(each.function)}
        entries = [each for name, each in self.functions.items() if name not in called]
        if len(entries) != 1:
            first = next(iter(self.functions.values()), None)
            raise usage_error(
                "pypto.entry",
                f"{self.name} has {len(entries)} functions that no other one calls",
                got=[("functions", ", ".join(each.name for each in entries) or "none")],
                fix="run one of them: pypto.runtime.run takes programs with one entry",
                site=first.place if first else None,
            )
        return entries[0]


def _names(function: Callable[..., Any]) -> frozenset[str]:
    """The attributes that a function reads."""
    code = inspect.unwrap(function)
    return frozenset(code.__code__.co_names) if isinstance(code, FunctionType) else frozenset()


class WholeProgram(CompiledProgram):
    """A program that is made of a class."""

    def __init__(self, program: Program, config: Any = None) -> None:
        super().__init__(program.entry, config)
        self.program = program
        self.owner: Any = program.kind()

    @functools.cached_property
    def output_dir(self) -> str:
        folder = Path(tempfile.mkdtemp(prefix=f"{self.program.name}-"))
        write_text(folder / f"{self.program.name}.py", self.program.as_python())
        return str(folder)

    def bind(self, callbacks: Mapping[str, Any]) -> None:
        """Give the functions without a body what they do."""
        wanted = [n for n, f in self.program.functions.items() if f.requires_runtime_binding]
        missing = [name for name in wanted if name not in callbacks]
        if missing:
            raise ValueError(f"no callback is given for {', '.join(missing)}: prepare(callbacks=)")
        for name in wanted:
            setattr(self.owner, name, lambda *args, _call=callbacks[name]: _call(args))

    def _entered(self, *tensors: Any, config: Any) -> Any:
        RAN.append(self.program.name)
        with dispatching(target=config.target) as now:
            owner = [self.owner] if self.entry.takes_self else []
            if self.entry.func_type in _ON_HOST:
                result = self.entry.function(*owner, *tensors)
            else:
                file = self.entry.place.file
                result = launched(lambda: self.entry.function(*owner, *tensors), file)
            run_together(now)
            return result


@public
def compile_program(program: Any, *_: object, **settings: Any) -> CompiledProgram:
    """`pypto.ir.compile`: a program that can be called."""
    return WholeProgram(program, Settings(**settings))


@public
def run(program: Program, *tensors: Any, config: Any = None, **_: object) -> Any:
    """Run the entry of a program on tensors, in place; without tensors, what can be called."""
    compiled = WholeProgram(program, config)
    return compiled(*tensors) if tensors else compiled
