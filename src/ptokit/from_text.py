"""Programs in text: load one, check it, convert it, launch its kernels.

m = ptokit.load("kernel.pto")
m["add"][4](x, y, z)            # four blocks; arrays are updated in place
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, ProgramError, tell, unrepeated, usage_error
from ptokit.base.entry import public
from ptokit.base.location import Location
from ptokit.base.policy import Policy
from ptokit.frontend.policies import policy_for
from ptokit.ir.asmform import looks_like, print_asm
from ptokit.ir.attributes import StringAttr
from ptokit.ir.core import Function, Module
from ptokit.ir.dialects.system import SUBBLOCK_IDX, SUBBLOCK_NUM
from ptokit.ir.entries import is_entry, kind_of, with_clusters
from ptokit.ir.flow import allocates, core_of
from ptokit.ir.lexer import Source, comments_of
from ptokit.ir.limits import TextLimits, read_source
from ptokit.ir.parser import parse, parse_source
from ptokit.ir.printer import print_module
from ptokit.ir.retired import Dialect, dialect_of
from ptokit.ir.sections import pieces, sections
from ptokit.ir.types import PtrType, ScalarType, ShapedType, ViewType
from ptokit.ir.typetext import suggestion
from ptokit.isa.targets import TILE_LIBRARY, Target, target
from ptokit.isa.targets.defines import Defines
from ptokit.passes.call_graph import connected
from ptokit.passes.finish import finish
from ptokit.passes.from_memrefs import with_tiles
from ptokit.passes.levels import ConvertLevel, level_of
from ptokit.passes.open_scopes import open_scopes
from ptokit.passes.run_time_sizes import with_run_time_sizes
from ptokit.passes.scales import with_scale_layouts, with_scale_memories
from ptokit.passes.spell_out import spelled_out
from ptokit.passes.steps import Steps
from ptokit.passes.unfold import unfolded
from ptokit.passes.verify import Verify

# What runs a program, or writes it as C++, is loaded when that is asked for: a check needs neither.
if TYPE_CHECKING:
    from ptokit.kernels import Asked, Kernel, Programs

_LONG = 1 << 20  # elements of an array that nobody gave


@public
def load(path: str | Path | Any, *, part: str = "", limits: TextLimits | None = None) -> Program:
    """Read a program from a file, in any of the text forms. Nothing in it is executed.

    `part` is the name of one where lines such as `//--- name` cut the file into several.
    """
    if not isinstance(path, str | Path):
        raise usage_error(
            "argument-type",
            "load reads a program from a file, whose name it is given",
            got=[("path", type(path).__name__)],
            fix="load of ptokit.values makes a value of a part of an array: "
            "from ptokit.values import *, after the names of ptokit",
        )
    limits = TextLimits.in_force(limits)
    text = read_source(path, limits)
    return loads(text, str(path), part=part, limits=limits)


@public
def loads(
    text: str, name: str = "<text>", *, part: str = "", limits: TextLimits | None = None
) -> Program:
    """Read a program from a string."""
    where = os.fspath(name)  # what is no name is told here, not where the program is asked for it
    chosen = one_part(text, where, part)
    return Program(parse(chosen, where, limits), chosen)


def one_part(text: str, name: str, part: str = "") -> str:
    """The program in a text that has this name, or the only one."""
    found = sections(text)
    if part not in found:
        raise usage_error(
            "which-part",
            f"there is no part {part!r}" if part else "the file holds several programs",
            got=[("parts", ", ".join(found) if "" not in found else "none")],
            fix=suggestion(part, found)
            or "name the one to read: load(path, part=...), or FILE#PART of a command",
            site=Location(name, 1, source=""),
        )
    return found[part]


@public
def load_parts(path: str | Path, *, limits: TextLimits | None = None) -> dict[str, Program]:
    """The programs of a file by the names of its parts; the only one of a file has none."""
    limits = TextLimits.in_force(limits)
    text = read_source(path, limits)
    return {n: Program(parse(t, str(path), limits), t) for n, t in sections(text).items()}


@public
def formatted(text: str, name: str = "<text>", *, limits: TextLimits | None = None) -> str:
    """The canonical form of a text, with its comments."""
    if "" not in sections(text):
        return "".join(
            f"{cut.rstrip()}{chr(10) if cut else ''}"
            + (formatted(body, name, limits=limits) if part else body.lstrip("\n"))
            for part, cut, body in pieces(text)
        )
    source = Source(text, name, TextLimits.in_force(limits))
    module = parse_source(source)
    write = print_asm if looks_like(source.text) else print_module
    return write(module, comments=comments_of(source))


@public
class Program:
    """A module ready to be checked and run; `program["name"]` is one of its kernels."""

    def __init__(self, module: Module, text: str = "") -> None:
        self.module = module
        # The module with all that can be launched, and what the text leaves to be inferred.
        self.launchable = with_clusters(with_scale_layouts(module))
        self._text = text
        self._finished: dict[tuple[Any, ...], tuple[Module, list[Diagnostic]]] = {}
        self._kernels: dict[str, Kernel] = {}

    @property
    def text(self) -> str:
        """The program as it was written, or as it is printed where nobody has written it."""
        file = Path(self.module.location.file)
        return self._text or (file.read_text("utf-8") if file.is_file() else str(self))

    @property
    def dialect(self) -> Dialect:
        """The state of the language that the program is written in."""
        return dialect_of(self.text, self.module.location.file)

    @property
    def level(self) -> str:
        """The level that the program is written for, and why."""
        made = [op for op in self.module.walk() if allocates(op)]
        placed = sum(op.operand("addr") is not None for op in made)
        if placed and placed < len(made):
            return f"2 and 3 ({placed} of {len(made)} tiles have an address)"
        return "3 (all tiles have an address)" if placed else "2 (no tile has an address)"

    @property
    def kernels(self) -> list[str]:
        """The names of the functions that can be launched."""
        return [f.name for f in self.launchable.functions if is_entry(f, self.launchable)]

    def __getitem__(self, name: str) -> Kernel:
        from ptokit.kernels import Kernel

        function = self.launchable.function(name)
        if function is None:
            names = [f.name for f in self.launchable.functions]
            raise usage_error(
                "unknown-function",
                f"there is no function @{name}",
                fix=suggestion(name, names) or "one of " + ", ".join(names),
                site=self.module.location,
            )
        if name not in self._kernels:
            self._kernels[name] = Kernel(TextSource(self, function))
        return self._kernels[name]

    def entry(self) -> Kernel:
        """The only kernel of the program."""
        names = self.kernels
        if len(names) != 1:
            listed = ", ".join(names or [f.name for f in self.module.functions])
            raise usage_error(
                "which-kernel",
                "the program has several functions that could be launched",
                got=[("functions", listed)],
                fix="name the one to run",
                site=self.module.location,
            )
        return self[names[0]]

    def check(
        self,
        on: str | Target | None = None,
        level: int = 0,
        *,
        defines: Defines | None = None,
        rules: str | None = None,
        allow: Iterable[str] = (),
        sync: str | None = None,
        dialect: str = "",
    ) -> list[Diagnostic]:
        """Every complaint of the verifier, and what stands in the way of placing the tiles.

        `level` 1 and 2 forbid addresses, 3 demands them; 0 takes both. `sync="insert"`: what stands
        in the way of ordering the pipes as well. `dialect`: the language that it must be written
        in (`ir/retired.py`).
        """
        chosen = self.target(on, defines)
        policy = policy_for(self.module.location.file, rules, allow)
        found = [*self.dialect.missing(dialect)] if dialect else []
        found += Verify(level, policy=policy, in_text=True).check(self.executable(chosen), chosen)
        if not any(each.severity == "error" for each in found):
            placed: list[Diagnostic] = []
            try:
                steps = Steps(None if level < 3 else False, sync, True)
                self.finished(chosen, steps, policy, placed)
            except ProgramError as error:
                placed += error.diagnostics
            found = unrepeated((*found, *placed))
        return found

    def executable(self, on: Target) -> Module:
        """The module as it is checked and run: assembly lines get views for their arguments, scale
        tiles the memory their use asks for, tiles the sizes that C++ must not know."""
        module = self.launchable
        if level_of(module) == "sync":
            module = ConvertLevel("l1").run(module, on)
        module = open_scopes(with_scale_memories(with_tiles(module)))
        return with_run_time_sizes(unfolded(module, on), on)

    def finished(
        self,
        on: Target,
        steps: Steps,
        policy: Policy,
        told: list[Diagnostic] | None = None,
        only: str = "",
        *,
        idle: bool = True,
    ) -> Module:
        """The module as it runs: checked, with all its operands, placed and ordered.

        `told` takes the warnings. `only`: what has to do with this function; what is wrong with
        others does not matter then. `idle`: also the temporaries that the target does not touch.
        """
        key = on, steps, policy, only, idle
        if key not in self._finished:
            module = self.executable(on)
            module = connected(module, only) if only else module
            module = Verify(policy=policy, in_text=True).run(module, on)
            if level_of(module) == "l1":
                module = ConvertLevel("l2").run(module, on)
            found: list[Diagnostic] = []
            module = finish(spelled_out(module, on, idle=idle), on, steps, policy, told=found)
            self._finished[key] = module, found
        module, found = self._finished[key]
        if told is not None:
            told += found
        return module

    def _shown(self, on: Target, steps: Steps, policy: Policy, *, idle: bool = True) -> Module:
        """The module as it runs, after its warnings were shown."""
        told: list[Diagnostic] = []
        module = self.finished(on, steps, policy, told, idle=idle)
        for each in told:
            tell(each)
        return module

    def convert(
        self,
        to: str,
        on: str | Target | None = None,
        *,
        defines: Defines | None = None,
        rules: str | None = None,
        allow: Iterable[str] = (),
        place: bool | None = None,
        sync: str | None = None,
    ) -> Program:
        """The program at another level: sync, l1, l2 or l3; the last is placed and ordered."""
        chosen = self.target(on, defines)
        if to != "l3":
            return Program(ConvertLevel(to).run(self.module, chosen))
        policy = policy_for(self.module.location.file, rules, allow)
        return Program(self._shown(chosen, Steps(place, sync), policy, idle=False))

    def cpp(
        self,
        on: str | Target | None = None,
        *,
        defines: Defines | None = None,
        rules: str | None = None,
        allow: Iterable[str] = (),
        place: bool | None = None,
        sync: str | None = None,
        guard_sync: bool = False,
    ) -> str:
        """The program as PTO C++, placed and ordered, with functions that launch its kernels.

        `guard_sync` puts what orders the pipes under `#ifndef __PTO_AUTO__`.
        """
        from ptokit.emit.cpp import emit_cpp

        chosen = self.target(on, defines)
        policy = policy_for(self.module.location.file, rules, allow)
        module = self._shown(chosen, Steps(place, sync), policy)
        return emit_cpp(module, chosen, guard_sync=guard_sync)

    def target(self, on: str | Target | None = None, defines: Defines | None = None) -> Target:
        """The target in force: the one given, or the one the module asks for."""
        return target(_asked_for(self.module) if on is None else on, defines)

    def __str__(self) -> str:
        if level_of(self.module) == "sync":
            return print_asm(self.module)
        return print_module(self.module)

    def __repr__(self) -> str:
        return f"<program with {', '.join('@' + f.name for f in self.module.functions)}>"


@dataclass(frozen=True, eq=False)
class TextSource:
    """A function of a program in text."""

    paths: ClassVar[tuple[str, ...]] = ("lowered",)
    program: Program
    function: Function

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def file(self) -> str:
        return self.program.module.location.file

    @property
    def target(self) -> Target:
        return self.program.target()

    def bind(self, args: tuple[Any, ...], consts: dict[str, Any]) -> Mapping[str, Any]:
        if consts:
            raise usage_error(
                "arguments",
                f"@{self.name} has no option {', '.join(consts)}",
                fix=f"arguments are given in order: {self}",
            )
        names = [f"%{param.name}" for param in self.function.params]
        names += [f"argument {index}" for index in range(len(names), len(args))]
        return dict(zip(names, args, strict=False))

    def cache_key(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        return ()  # a text is not specialised by its arguments

    def state(self) -> tuple[()]:
        """Nothing: a text is all there is."""
        return ()

    def fits(self, target: Target) -> None:
        """Rules of the target are asked about the program."""

    def written(self, target: Target, arguments: Mapping[str, Any], blocks: int) -> Module:
        return self.program.module

    def finished(
        self, written: Module, asked: Asked, told: list[Diagnostic] | None = None
    ) -> Module:
        steps, policy = asked.steps, asked.policy
        return self.program.finished(asked.target, steps, policy, told, self.name)

    def programs(self, module: Module | None, arguments: Mapping[str, Any]) -> Programs:
        from ptokit.engines.values import bind_arguments
        from ptokit.kernels import Programs

        assert module is not None
        function = module.function(self.name)
        assert function is not None
        bind_arguments(function, tuple(arguments.values()))  # what is wrong with them comes first
        return Programs(_core_kinds(module), "manual", None, function, tuple(arguments.values()))

    @property
    def text(self) -> str:
        return self.program.text

    def sampled(self) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """Arrays as long as any view of a pointer will be; numbers must be given."""
        numbers = [p for p in self.function.params if isinstance(p.type, ScalarType)]
        if numbers:
            listed = ", ".join(f"%{p.name}: {p.type}" for p in numbers)
            raise usage_error("arguments", f"@{self.name} takes numbers", got=[("numbers", listed)],
                              fix=f"give all its arguments: {self}")  # fmt: skip
        made: list[Any] = []
        for each in self.function.params:
            assert isinstance(each.type, PtrType | ViewType | ShapedType)
            shape = () if isinstance(each.type, PtrType) else each.type.shape
            kind = each.type.element.dtype
            known = shape if shape and all(n > 0 for n in shape) else (_LONG,)
            made.append(np.ones(known, np.int8 if kind is None else kind.np))
        return tuple(made), {}

    def recorded(self, module: Module) -> TextSource:
        return self  # anybody can hear what it issues

    def sent(self, finished: Callable[[], Module], arguments: Mapping[str, Any]) -> None:
        """It can be sent as it stands."""

    def __reduce__(self) -> tuple[Any, ...]:
        """A text is sent as such."""
        return _read, (self.text, self.file, self.name)

    def rewritten(self, text: str) -> TextSource:
        kernel = loads(text, self.file)[self.name]
        assert isinstance(kernel.source, TextSource)
        return kernel.source

    def __str__(self) -> str:
        params = ", ".join(f"%{p.name}: {p.type}" for p in self.function.params)
        return f"@{self.function.name}({params})"


def _read(text: str, file: str, name: str) -> TextSource:
    """A function of a text that was sent here."""
    source = loads(text, file)[name].source
    assert isinstance(source, TextSource)
    return source


def written_source(module: Module) -> TextSource:
    """The entry of a module that was made, as a text that says where its lines come from."""
    text = print_module(module, origins=True)
    return _read(text, module.location.file, Program(module).entry().name)


def _asked_for(module: Module) -> Target:
    """The target a module asks for, with the library of the back end it names."""
    found = _device_of(module)
    backend = module.attrs.get("pto.backend")
    is_own = isinstance(backend, StringAttr) and backend.value == "vpto"
    return found.override({TILE_LIBRARY: 1}) if is_own and found.tile_library is False else found


def _device_of(module: Module) -> Target:
    """The device a module asks for; A2/A3 when it does not say."""
    arch = module.attrs.get("pto.target_arch")
    if isinstance(arch, StringAttr):
        return target("a5" if arch.value.lower() == "a5" else "a2a3")
    device = module.attrs.get("pto.device-spec")
    if isinstance(device, StringAttr) and device.value.startswith(("Ascend950", "Ascend910_95")):
        return target("a5")
    return target("a2a3")


def _core_kinds(module: Module) -> tuple[str, ...]:
    """The kinds of core a program needs: a cluster when it has parts for both, else one core.

    A vector program that asks which of the two vector cores it runs on is written for clusters too,
    unless all of its module is for one kind of core: then it is launched on such cores alone.
    """
    named = {kind_of(f) for f in module.functions} | {
        core_of(op) for op in module.walk() if op.regions
    }
    asks = any(SUBBLOCK_IDX.matches(op) or SUBBLOCK_NUM.matches(op) for op in module.walk())
    if asks and "vector" in named and "pto.kernel_kind" not in module.attrs:
        return ("cube", "vector")
    return ("cube", "vector") if {"cube", "vector"} <= named else ("mix",)
