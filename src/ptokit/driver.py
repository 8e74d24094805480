"""Composing the parts: load a program, check it, run it.

m = ptokit.load("kernel.pto")
m["add"][4](x, y, z)            # four blocks; arrays are updated in place
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptokit.base.diagnostics import Diagnostic, UsageError, fail
from ptokit.base.entry import public
from ptokit.engines.reference import Interpreter, Prepared
from ptokit.frontend.launch import launch
from ptokit.frontend.session import current
from ptokit.ir.asmform import looks_like, print_asm
from ptokit.ir.attributes import StringAttr
from ptokit.ir.core import Function, Module
from ptokit.ir.lexer import comments_of
from ptokit.ir.parser import parse, parse_file
from ptokit.ir.printer import print_module
from ptokit.ir.typetext import suggestion
from ptokit.isa.targets import Target, target
from ptokit.isa.targets.defines import Defines
from ptokit.machine.machine import Machine
from ptokit.passes.functions import is_entry, kind_of
from ptokit.passes.levels import ConvertLevel, level_of
from ptokit.passes.scales import with_scale_memories
from ptokit.passes.to_level2 import SYNC_OPS
from ptokit.passes.verify import Verify, has_addresses


@public
def load(path: str | Path) -> Program:
    """Read a program from a file, in any of the text forms."""
    return Program(parse_file(path))


@public
def loads(text: str, name: str = "<text>") -> Program:
    """Read a program from a string."""
    return Program(parse(text, name))


@public
def formatted(path: str | Path) -> str:
    """The canonical text of a file, with its comments."""
    module = parse_file(path)
    text = Path(path).read_text("utf-8")
    write = print_asm if looks_like(text) else print_module
    return write(module, comments=comments_of(text))


def module_target(module: Module) -> Target:
    """The target a module asks for; A2/A3 when it does not say."""
    arch = module.attrs.get("pto.target_arch")
    if isinstance(arch, StringAttr):
        return target("a5" if arch.value.lower() == "a5" else "a2a3")
    device = module.attrs.get("pto.device-spec")
    if isinstance(device, StringAttr) and device.value.startswith(("Ascend950", "Ascend910_95")):
        return target("a5")
    return target("a2a3")


@dataclass(frozen=True)
class Run:
    """What a launch leaves behind."""

    kernel: str
    target: Target
    blocks: int
    machine: Machine

    def __repr__(self) -> str:
        return f"<run of @{self.kernel} on {self.target}, {self.blocks} blocks>"


@public
class Program:
    """A module ready to be checked and run; `program["name"]` is one of its kernels."""

    def __init__(self, module: Module) -> None:
        self.module = module

    @property
    def kernels(self) -> list[str]:
        """The names of the functions that can be launched."""
        return [f.name for f in self.module.functions if is_entry(f, self.module)]

    def __getitem__(self, name: str) -> Kernel:
        function = self.module.function(name)
        if function is None:
            names = [f.name for f in self.module.functions]
            raise fail(
                "unknown-function",
                f"there is no function @{name}",
                fix=suggestion(name, names) or "one of " + ", ".join(names),
                site=self.module.location,
                kind=UsageError,
            )
        return Kernel(self, function)

    def entry(self) -> Kernel:
        """The only kernel of the program."""
        names = self.kernels
        if len(names) != 1:
            listed = ", ".join(names or [f.name for f in self.module.functions])
            raise fail(
                "which-kernel",
                "the program has several functions that could be launched",
                got=[("functions", listed)],
                fix="name the one to run",
                site=self.module.location,
                kind=UsageError,
            )
        return self[names[0]]

    def check(
        self, on: str | Target | None = None, level: int = 0, *, defines: Defines | None = None
    ) -> list[Diagnostic]:
        """Every complaint of the verifier."""
        chosen = self.target(on, defines)
        return Verify(level).check(self.executable(chosen), chosen)

    def executable(self, on: Target) -> Module:
        """The module as it is checked and run: assembly lines get views for their arguments, and
        scale tiles the memory their use asks for."""
        module = self.module
        if level_of(module) == "sync":
            module = ConvertLevel("l1").run(module, on)
        return with_scale_memories(module)

    def convert(
        self, to: str, on: str | Target | None = None, *, defines: Defines | None = None
    ) -> Program:
        """The program at another level: sync, l1, l2 or l3."""
        return Program(ConvertLevel(to).run(self.module, self.target(on, defines)))

    def target(self, on: str | Target | None = None, defines: Defines | None = None) -> Target:
        """The target in force: the one given, or the one the module asks for."""
        return target(module_target(self.module) if on is None else on, defines)

    def __str__(self) -> str:
        if level_of(self.module) == "sync":
            return print_asm(self.module)
        return print_module(self.module)

    def __repr__(self) -> str:
        return f"<program with {', '.join('@' + f.name for f in self.module.functions)}>"


@public
class Kernel:
    """A function of a program; brackets choose the number of blocks."""

    def __init__(self, program: Program, function: Function) -> None:
        self.program = program
        self.function = function

    def __getitem__(self, blocks: int) -> Launch:
        if not isinstance(blocks, int) or blocks < 1:
            raise fail("grid", "the number of blocks is a positive integer", kind=UsageError)
        return Launch(self, blocks)

    def __call__(self, *args: Any, **options: Any) -> Run:
        """Run as a single block."""
        return self[1](*args, **options)

    def __repr__(self) -> str:
        params = ", ".join(f"%{p.name}: {p.type}" for p in self.function.params)
        return f"<kernel @{self.function.name}({params})>"


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
        check: bool | str = True,
        seed: int | None = None,
        jobs: int = 1,
    ) -> Run:
        """Check the program for the target, run every block, update the arrays in place.

        `defines` overrides sizes and alignments of the target's memories by macro name.
        `check` looks for races, hangs and leftover flags where the text orders the pipes itself;
        "explore" also compares the bytes of many schedules. `seed` runs cores and pipes in a
        random but repeatable order, `jobs` spreads the blocks over processes.
        """
        program = self.kernel.program
        chosen = program.target(target, defines)
        module = Verify().run(program.executable(chosen), chosen)
        function = module.function(self.kernel.function.name)
        assert function is not None

        prepared = Prepared(module)

        def body() -> None:
            machine = current()
            Interpreter(prepared, machine, self.blocks, machine.subblocks).launch(function, args)

        outcome = launch(
            dict.fromkeys(core_kinds(module), body),
            chosen,
            "manual" if orders_pipes(module) else "auto",
            grid=self.blocks,
            seed=seed,
            hazards=check,
            arrays=args,
            jobs=jobs,
        )
        return Run(function.name, chosen, self.blocks, outcome.machine)


def core_kinds(module: Module) -> tuple[str, ...]:
    """The kinds of core a program needs: a cluster when it has parts for both, else one core."""
    named = {kind_of(f) for f in module.functions} | {
        op.name.removeprefix("pto.section.")
        for op in module.walk()
        if op.name.startswith("pto.section.")
    }
    return ("cube", "vector") if {"cube", "vector"} <= named else ("mix",)


def orders_pipes(module: Module) -> bool:
    """Whether the text itself orders the pipes, or leaves that to the compiler.

    Files with addresses and no flag at all are meant for a compiler that inserts them.
    """
    manual = any(op.name in SYNC_OPS or op.name == "pto.tassign" for op in module.walk())
    return manual and has_addresses(module)
