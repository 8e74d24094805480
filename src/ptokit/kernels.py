"""Kernels in Python: `@kernel`, launching, and everything that can be asked of one.

    @kernel(mode="auto")
    def add(x, y, z): ...

    add[1](x, y, z, target="a2a3")     # runs the body as it stands: print and breakpoint() work
    add[1](x, y, z, path="lowered")    # the same through IR, placed and synchronised in auto mode
    add.text(x, y, z)                  # PTO text of this specialisation
    add.check("all", x, y, z)          # the rules of every target, as one table

Parameters behind `*` are constants: they specialise the kernel. Arrays are specialised by element
type, shape and strides.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType
from typing import Any, cast, overload

import numpy as np

from ptokit.base.diagnostics import Diagnostic, ProgramError, UsageError, fail
from ptokit.base.entry import public
from ptokit.emit.cpp import emit_cpp
from ptokit.engines.reference import Interpreter, Prepared
from ptokit.frontend.launch import Schedule, launch
from ptokit.frontend.lowering.lower import lower as lower_function
from ptokit.frontend.sections import guarded
from ptokit.frontend.session import MODES, current
from ptokit.ir.core import Module
from ptokit.ir.printer import print_module
from ptokit.ir.types import BufferType
from ptokit.isa.spec import TARGETS as DEVICES
from ptokit.isa.targets import Target
from ptokit.isa.targets import target as find_target
from ptokit.isa.targets.defines import Defines, parse_defines
from ptokit.machine.machine import Machine
from ptokit.machine.objects import as_array
from ptokit.machine.workshop import Workshop
from ptokit.passes.accesses import accesses_of
from ptokit.passes.insert_sync import InsertSync
from ptokit.passes.levels import ConvertLevel
from ptokit.passes.liveness import live_ranges
from ptokit.passes.place import Place
from ptokit.passes.verify import Verify
from ptokit.report.memory_map import Placed, memory_map
from ptokit.report.memory_svg import memory_svg

# What runs the body: one stream that plays every part, one kind of core, or a whole cluster.
CORES = {"single": ("mix",), "cube": ("cube",), "vector": ("vector",), "mix": ("cube", "vector")}
PATHS = ("eager", "lowered")


@dataclass(frozen=True)
class Run:
    """What a launch leaves behind."""

    kernel: str
    target: Target
    mode: str
    path: str
    blocks: int
    seconds: float
    machine: Machine  # of the last block

    def __repr__(self) -> str:
        return (
            f"<{self.kernel} on {self.target.name}, {self.mode} mode, {self.path}: "
            f"{self.blocks} block{'s' if self.blocks > 1 else ''} in {self.seconds * 1e3:.1f} ms>"
        )


@public
@dataclass(eq=False)
class Kernel:
    """A kernel: a Python function with the mode and target it is meant for."""

    function: Callable[..., Any]
    mode: str = "manual"
    target: Target | None = None
    core: str = "single"
    defines: Mapping[str, int] = field(default_factory=dict[str, int])
    _lowered: dict[tuple[Any, ...], Module] = field(default_factory=dict[tuple[Any, ...], Module])
    _prepared: dict[Module, Prepared] = field(default_factory=dict[Module, Prepared])

    @property
    def name(self) -> str:
        return self.function.__name__

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    @cached_property
    def _consts(self) -> frozenset[str]:
        """The parameters that specialise: the keyword-only ones."""
        keyword = inspect.Parameter.KEYWORD_ONLY
        return frozenset(n for n, p in self._signature.parameters.items() if p.kind is keyword)

    @cached_property
    def on_cluster(self) -> Callable[..., Any]:
        """The function as each core of a cluster runs it: without the sections of the others."""
        return guarded(cast(FunctionType, self.function))

    def __getitem__(self, blocks: int) -> Launch:
        if not isinstance(blocks, int) or blocks < 1:
            raise fail("grid", "the grid is a positive number of blocks", kind=UsageError)
        return Launch(self, blocks)

    def __call__(self, *args: Any, **options: Any) -> Any:
        raise fail(
            "launch",
            f"{self.name} is a kernel: launch it with a number of blocks",
            fix=f"{self.name}[1](...)",
            kind=UsageError,
        )

    # ---- what comes out --------------------------------------------------------------------

    def lower(
        self,
        *args: Any,
        target: str | Target | None = None,
        defines: Defines | None = None,
        **consts: Any,
    ) -> Module:
        """The IR of the kernel for these arguments; placed and synchronised in auto mode."""
        chosen = self._target(target, defines)
        arguments = self._bind(args, consts)
        key = (
            chosen,  # one object per set of defines
            *(v if n in self._consts else _specialised(v) for n, v in arguments.items()),
        )
        found = self._lowered.get(key)
        if found is None:
            traced = self._traced(chosen, arguments)
            found = Verify(is_manual=self.mode == "manual").run(traced, chosen)
            if self.mode == "auto":
                sync = InsertSync(is_one_core=self.core != "mix")
                found = sync.run(Place().run(found, chosen), chosen)
            self._lowered[key] = found
        return found

    def _prepare(self, chosen: Target, args: tuple[Any, ...], consts: dict[str, Any]) -> Prepared:
        """The lowered kernel ready to run; only the last one keeps what its launches leave."""
        module = self.lower(*args, target=chosen, **consts)
        found = self._prepared.get(module)
        if found is None:
            found = self._prepared[module] = Prepared(module)
        for other in self._prepared.values():
            if other is not found:
                other.idle.clear()
        return found

    def text(
        self,
        *args: Any,
        form: str = "",
        target: str | Target | None = None,
        defines: Defines | None = None,
        **consts: Any,
    ) -> str:
        """PTO text of the kernel for these arguments.

        `form` is "sync", "l1", "l2" or "l3"; left out, it is Level 3 with every address and flag.
        """
        chosen = self._target(target, defines)
        if not form or (form == "l3" and self.mode == "auto"):
            return print_module(self.lower(*args, target=chosen, **consts))
        plain = self._traced(chosen, self._bind(args, consts))
        return print_module(ConvertLevel(form).run(plain, chosen))

    def cpp(
        self,
        *args: Any,
        target: str | Target | None = None,
        defines: Defines | None = None,
        **consts: Any,
    ) -> str:
        """A PTO C++ kernel for these arguments."""
        chosen = self._target(target, defines)
        return emit_cpp(self.lower(*args, target=chosen, **consts), chosen)

    def check(
        self, targets: str, *args: Any, defines: Defines | None = None, **consts: Any
    ) -> Report:
        """Verify the kernel for several targets at once: "all", or names with commas."""
        names = list(DEVICES) if targets == "all" else [t for t in targets.split(",") if t]
        found: dict[str, tuple[Diagnostic, ...]] = {}
        for name in names:
            chosen = self._target(name, defines)
            try:
                module = self.lower(*args, target=chosen, **consts)
            except ProgramError as error:
                found[name] = error.diagnostics
            else:  # what remains are warnings, such as tiles that overlap while both are live
                found[name] = tuple(Verify().check(module, chosen))
        return Report(self.name, found)

    def memory_map(
        self,
        *args: Any,
        target: str | Target | None = None,
        defines: Defines | None = None,
        **consts: Any,
    ) -> Map:
        """Where the tiles of the kernel lie, and when they are live."""
        chosen = self._target(target, defines)
        module = self.lower(*args, target=chosen, **consts)
        placed: list[Placed] = []
        for function in module.functions:
            accesses = accesses_of(function, chosen)
            for live in live_ranges(function, accesses):
                handle = live.alloc.result
                assert isinstance(handle.type, BufferType)
                spec = handle.type.spec
                address = accesses.known.number(live.alloc.operand("addr"))
                if address is not None:
                    space = chosen.spaces[spec.loc]
                    where = (space.memory, space.capacity, address, spec.nbytes)
                    life = (live.start, live.stop)
                    placed.append(Placed(handle.name, *where, str(spec), life))
        return Map(self.name, tuple(placed))

    def _traced(self, chosen: Target, arguments: dict[str, Any]) -> Module:
        """The kernel as it is written, before any pass."""
        function = cast(FunctionType, self.function)
        return lower_function(function, arguments, chosen, self.mode, self.core)

    # ---- arguments -------------------------------------------------------------------------

    def _target(self, given: str | Target | None, defines: Defines | None = None) -> Target:
        """The target in force. Defines of a call come first, then those of its target."""
        chosen = find_target(given) if given is not None else self.target or find_target("a2a3")
        return chosen.override({**self.defines, **chosen.overrides, **parse_defines(defines)})

    def _bind(self, args: tuple[Any, ...], consts: dict[str, Any]) -> dict[str, Any]:
        try:
            bound = self._signature.bind(*args, **consts)
        except TypeError as error:
            raise fail(
                "arguments",
                f"{self.name}: {error}",
                fix=f"{self.name}{self._signature}",
                kind=UsageError,
            ) from None
        bound.apply_defaults()
        return bound.arguments

    def __repr__(self) -> str:
        return f"<kernel {self.name}{self._signature}, {self.mode} mode>"


def _specialised(value: Any) -> Any:
    """What of an argument the lowered kernel depends on."""
    if isinstance(value, bool | int | float | np.generic):
        return type(value)
    if hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__"):
        array = as_array(value)
        return array.dtype, array.shape, array.strides
    return value


@public
@dataclass(frozen=True)
class Launch:
    """A kernel with its grid."""

    kernel: Kernel
    blocks: int

    def __call__(
        self,
        *args: Any,
        target: str | Target | None = None,
        defines: Defines | None = None,
        path: str = "eager",
        check: bool | str = True,
        seed: int | None = None,
        schedule: Schedule | None = None,
        jobs: int = 1,
        **consts: Any,
    ) -> Run:
        """Run every block; arrays are updated in place.

        `defines` overrides sizes and alignments of the target's memories by macro name.
        `check` looks for races, hangs and leftover flags where the author orders the pipes;
        "explore" also runs the kernel under many schedules, which must all give the same bytes.
        `seed` runs the cores and pipes in a random but repeatable order, `schedule` in a
        particular one. `jobs` spreads the blocks over processes.
        """
        kernel = self.kernel
        if path not in PATHS:
            raise fail("path", f"path is one of {PATHS}, not {path!r}", kind=UsageError)
        chosen = kernel._target(target, defines)
        started = time.perf_counter()
        prepared = workshop = None
        if path == "eager":
            body = self._eager(chosen, args, consts)
        else:
            prepared = kernel._prepare(chosen, args, consts)
            body = self._lowered(prepared, args, consts)
            if jobs == 1 and check != "explore":  # one run in this process
                workshop = prepared.idle.pop() if prepared.idle else Workshop()
        outcome = launch(
            dict.fromkeys(CORES[kernel.core], body),
            chosen,
            kernel.mode if path == "eager" else "manual",
            grid=self.blocks,
            seed=seed,
            schedule=schedule,
            hazards=check,
            arrays=args,
            jobs=jobs,
            workshop=workshop,
        )
        if prepared is not None and workshop is not None:  # after a run that has gone well
            workshop.close()
            prepared.idle.append(workshop)
        seconds = time.perf_counter() - started
        return Run(kernel.name, chosen, kernel.mode, path, self.blocks, seconds, outcome.machine)

    def _eager(
        self, chosen: Target, args: tuple[Any, ...], consts: dict[str, Any]
    ) -> Callable[[], Any]:
        kernel = self.kernel
        arguments = kernel._bind(args, consts)
        function = kernel.on_cluster if kernel.core == "mix" else kernel.function
        positional = [v for n, v in arguments.items() if n not in kernel._consts]
        named = {n: v for n, v in arguments.items() if n in kernel._consts}
        return lambda: function(*positional, **named)

    def _lowered(
        self, prepared: Prepared, args: tuple[Any, ...], consts: dict[str, Any]
    ) -> Callable[[], Any]:
        kernel = self.kernel
        arguments = kernel._bind(args, consts)
        passed = tuple(v for n, v in arguments.items() if n not in kernel._consts)

        def body() -> None:
            machine = current()
            run = Interpreter(prepared, machine, self.blocks, machine.subblocks)
            run.launch(prepared.module.functions[0], passed)

        return body


@dataclass(frozen=True)
class Report:
    """The verdict of every target on one kernel."""

    kernel: str
    found: dict[str, tuple[Diagnostic, ...]]

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """All complaints of all targets."""
        return [d for found in self.found.values() for d in found]

    def __bool__(self) -> bool:
        return not any(d.severity == "error" for d in self.diagnostics)

    def __str__(self) -> str:
        lines = [f"{self.kernel}:"]
        for name, diagnostics in self.found.items():
            errors = sum(d.severity == "error" for d in diagnostics)
            warnings = len(diagnostics) - errors
            verdict = f"{errors} errors" if errors else "ok"
            verdict += f", {warnings} warnings" if warnings else ""
            codes = ", ".join(dict.fromkeys(d.code for d in diagnostics))
            lines.append(f"  {name:<10} {verdict:<18} {codes}".rstrip())
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(frozen=True)
class Map:
    """The memory map of a kernel; prints as text, shows as a picture in notebooks."""

    kernel: str
    tiles: tuple[Placed, ...]

    def svg(self) -> str:
        """The map as a picture: address against lifetime, per memory."""
        return memory_svg(self.tiles, self.kernel)

    _repr_svg_ = svg

    def __str__(self) -> str:
        return memory_map(self.tiles)

    __repr__ = __str__


@overload
def kernel(function: FunctionType, /) -> Kernel: ...
@overload
def kernel(
    *,
    mode: str = "manual",
    target: str | Target | None = None,
    core: str = "single",
    defines: Defines | None = None,
) -> Callable[[FunctionType], Kernel]: ...
@public
def kernel(
    function: FunctionType | None = None,
    /,
    *,
    mode: str = "manual",
    target: str | Target | None = None,
    core: str = "single",
    defines: Defines | None = None,
) -> Any:
    """Make a kernel of a Python function: `@kernel`, or `@kernel(mode="auto", target="a5")`.

    `defines` overrides sizes and alignments of the target's memories under their macro names, as
    `-D` does for a compiler: `@kernel(defines={"PTO_UBUF_SIZE_BYTES": 262144})`.
    """
    if mode not in MODES or core not in CORES:
        cores = ", ".join(CORES)
        raise fail("kernel", f"mode is one of {MODES}, core one of {cores}", kind=UsageError)
    overrides = parse_defines(defines)
    chosen = None if target is None else find_target(target)
    (chosen or find_target("a2a3")).override(overrides)  # a wrong one is an error right here

    def decorate(body: FunctionType) -> Kernel:
        return Kernel(body, mode, chosen, core, overrides)

    return decorate if function is None else decorate(function)
