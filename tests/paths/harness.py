"""The example of an instruction's page on every path a program can take.

The example is cut in two: what makes operands happens outside, the same for every path, and what
remains is the body of a kernel. Each path runs that body on a fresh machine whose memories were
filled alike; afterwards the memories, the arrays and the registers must be the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

import ptokit
from ptokit.base.diagnostics import PtoError
from ptokit.emit.cpp import emit_cpp
from ptokit.emit.reading import read_call
from ptokit.engines.fast import FastInterpreter, Prepared
from ptokit.frontend.lowering.lower import lower
from ptokit.frontend.session import device
from ptokit.ir.asmform import print_asm
from ptokit.ir.core import Module, Op, Value
from ptokit.ir.instructions import form_of, literal
from ptokit.ir.parser import parse
from ptokit.ir.printer import print_module
from ptokit.ir.rewrite import clone, same_module
from ptokit.ir.types import BufferType
from ptokit.isa.spec import Insn, Operand
from ptokit.machine.faults import WouldBlock
from ptokit.machine.machine import Machine
from ptokit.machine.objects import pointer
from ptokit.passes.levels import ConvertLevel
from ptokit.passes.spell_out import spelled_out
from ptokit.report.examples import example_code, example_sample

_ARRAY = re.compile(r"np\.(?:zeros|ones)\([^()]*\)")
_TILE = re.compile(r"(\w+) = ((?:Conv)?Tile\w*\[.*\])\(\)")
_FILL = re.compile(r"(\w+)\.fill\((\w+)\)")


@dataclass
class State:
    """What a run left behind."""

    memories: dict[str, tuple[bytes, bytes]]
    arrays: list[bytes]
    registers: dict[str, Any]


@dataclass
class Example:
    """The example of a page, ready for each path."""

    insn: Insn
    folder: Path
    tiles: dict[str, str] = field(default_factory=dict[str, str])  # name -> type
    fills: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    arrays: dict[str, str] = field(default_factory=dict[str, str])  # name -> expression
    body: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        shown = example_sample(self.insn)
        assert shown is not None
        self.target = shown.target
        for line in example_code(shown)[5:]:
            text = line.strip()
            tile, fill = _TILE.fullmatch(text), _FILL.fullmatch(text)
            if tile:
                self.tiles[tile[1]] = tile[2]
            elif fill:
                self.fills.append((fill[1], fill[2]))
            else:
                self.body.append(_ARRAY.sub(self._array, text))

        self.mode, self.is_shared, self.runs = "manual", False, True
        self._choose_mode()

    def _array(self, match: re.Match[str]) -> str:
        name = f"array{len(self.arrays)}"
        self.arrays[name] = match[0]
        return name

    # ---- the kernel --------------------------------------------------------------------------

    def function(self, name: str, params: list[str], body: list[str]) -> FunctionType:
        """A Python function with a source file: lowering reads it."""
        source = "\n    ".join([f"def {name}({', '.join(params)}):", *body]) + "\n"
        path = self.folder / f"{self.insn.name}_{name}.py"
        path.write_text(source, "utf-8")
        names = {**vars(ptokit), "np": np}
        exec(compile(source, str(path), "exec"), names)
        return names[name]

    @cached_property
    def kernel(self) -> FunctionType:
        """The body, with tiles and arrays as parameters."""
        return self.function("kernel", [*self.tiles, *self.arrays], self.body)

    @cached_property
    def placed_kernel(self) -> FunctionType:
        """The body with the tiles it works on, each bound to its address."""
        with device(self.target) as machine:
            made = self.operands(machine)
        lines: list[str] = []
        for name, kind in self.tiles.items():
            lines += [f"{name} = {kind}()", f"TASSIGN[{made[name].address}]({name})"]
        return self.function("placed", [*self.arrays], lines + self.body)

    def operands(self, machine: Machine) -> dict[str, Any]:
        """Tiles, bound one after the other and filled, and arrays."""
        made: dict[str, Any] = {}
        free: dict[str, int] = {}
        for name, kind in self.tiles.items():
            tile = eval(kind, {**vars(ptokit)})()
            space = machine.target.spaces[tile.spec.loc]
            address = 0 if self.is_shared else free.get(space.memory, 0)
            tile.bind(machine.core.memory(tile.spec.loc), address)
            free[space.memory] = -(-(address + tile.spec.nbytes) // 512) * 512
            made[name] = tile
        for name, value in self.fills:
            made[name].fill(int(value))
        for name, expression in self.arrays.items():
            made[name] = eval(expression, {**vars(ptokit), "np": np})
        return made

    # ---- running -----------------------------------------------------------------------------

    def _choose_mode(self) -> None:
        """Tiles apart in manual mode, unless a rule asks for shared bytes or for auto mode."""
        for self.mode, self.is_shared in (("manual", False), ("manual", True), ("auto", False)):
            try:
                self.eagerly()
            except WouldBlock:  # it waits for somebody else: there is nothing to compare
                self.runs = False
                return
            except PtoError:
                continue
            return

    def eagerly(self) -> State:
        with device(self.target, self.mode) as machine:
            given = self.operands(machine)
            self.kernel(*given.values())
        return _state(machine, given, self.arrays)

    @cached_property
    def expected(self) -> State:
        """What the body does when Python runs it."""
        return self.eagerly() if self.runs else State({}, [], {})

    def run(self, module: Module, with_tiles: bool) -> State:
        """What a module does on the engine; tiles are arguments, or lie where the text says."""
        if not self.runs:
            return self.expected
        with device(self.target, self.mode) as machine:
            given = self.operands(machine)
            names = [*self.tiles, *self.arrays] if with_tiles else [*self.arrays]
            self.call(machine, module, [given[n] for n in names])
        return _state(machine, given, self.arrays)

    def call(self, machine: Machine, module: Module, args: list[Any]) -> list[Any]:
        values = [pointer(a) if isinstance(a, np.ndarray) else a for a in args]
        return FastInterpreter(Prepared(module), machine).call(module.functions[0], values)

    # ---- the paths ---------------------------------------------------------------------------

    def lowered(self, function: FunctionType | None = None) -> Module:
        function = function or self.kernel
        with device(self.target) as machine:
            given = self.operands(machine)
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        return lower(function, {n: given[n] for n in names}, self.target, self.mode)

    def check_eager(self) -> None:
        assert self.eagerly() if self.runs else self.mode == "manual"

    def check_lowered(self) -> None:
        assert self.run(self.lowered(), True) == self.expected

    def check_l2(self) -> None:
        again = _printed_and_read(self.lowered())
        assert self.run(again, True) == self.expected

    def check_l3(self) -> None:
        again = _printed_and_read(self.lowered(self.placed_kernel))
        assert self.run(again, False) == self.expected

    def check_l1(self) -> None:
        self.compare_values(_printed_and_read(self.as_values()))

    def check_sync(self) -> None:
        module = ConvertLevel("sync").run(self.as_values(), self.target)
        (function,) = module.functions
        module.attrs, function.attrs = {}, {}  # lines have no frame
        text = print_asm(module)
        again = parse(text, f"{function.name}.pto")
        assert same_module(module, again), text
        self.compare_values(ConvertLevel("l1").run(again, self.target))

    def check_cpp(self) -> None:
        module = spelled_out(self.lowered(self.placed_kernel), self.target)
        text = emit_cpp(module, self.target)
        (op,) = [o for o in module.walk() if o.insn is self.insn]
        given = {o.name for o in self.insn.operands if is_given(op, o)}
        if self.insn.cpp.calls:  # something else is written in its place
            names = [n for n in self.insn.names if n in given]
            for written in self.insn.cpp.calls[" ".join(names)]:
                parts = map(re.escape, re.split(r"\{\w+\}", written))
                assert re.search(".+".join(parts), text), text
            return
        readings = [
            reading
            for line in text.splitlines()
            for reading in read_call(line)
            if reading.insn is self.insn
        ]
        arrays = {n: kind for kind, names in self.insn.cpp.arrays.items() for n in names}
        wanted = {arrays.get(n, n) for n in given} | set(self.insn.cpp.implied)
        assert wanted in [set(r.operands) for r in readings], text

    # ---- level 1 -----------------------------------------------------------------------------

    def as_values(self) -> Module:
        """The body as Level 1 writes it: what it reads are values, what it writes results."""
        module = clone(self.lowered())
        (function,) = module.functions
        body = function.body
        assert body is not None
        self.written_as: dict[str, str] = {}  # operand -> tile
        for op in body.ops:
            if op.insn is not None:
                self.written_as |= _results(op)
        used = {v for op in body.ops for v in op.operands}
        body.args = [a for a in body.args if a in used]
        for param in body.args:
            if isinstance(param.type, BufferType):
                param.type = type(param.type)(param.type.spec, True)  # type: ignore[call-arg]
        return module

    def compare_values(self, module: Module) -> None:
        """Run a Level 1 module: every tile it returns holds what the eager run wrote."""
        if not self.runs:
            return
        (function,) = module.functions
        assert function.body is not None
        made = {
            self.written_as[label]: result
            for op in function.body.ops
            if op.insn is not None
            for result, label in zip(op.results, op.result_labels, strict=True)
            if label in self.written_as
        }
        last = function.body.ops[-1]
        last.operands, last.labels = list(made.values()), ("operands",) * len(made)
        with device(self.target, "auto") as machine:  # as Level 1 is run
            given = self.operands(machine)
            found = self.call(machine, module, [given[p.name] for p in function.params])
            arrays = _state(machine, given, self.arrays).arrays
        with device(self.target, self.mode) as other:
            wanted = self.operands(other)
            self.kernel(*wanted.values())
        assert arrays == [wanted[n].tobytes() for n in self.arrays]
        for name, tile in zip(made, found, strict=True):
            size = tile.spec.nbytes
            for what in ("shadow", "data"):
                mine, its = _part(what, tile, size), _part(what, wanted[name], size)
                kept = _part("shadow", wanted[name], size) != 0
                assert np.array_equal(mine[kept], its[kept]), f"{what} of {name}"


def is_given(op: Op, operand: Operand) -> bool:
    """Whether an operation has an operand, as a value or as a number in an attribute."""
    return op.bound(operand.name) is not None or literal(op, operand) is not None


def _part(what: str, tile: Any, size: int) -> Any:
    return getattr(tile.storage, what)[tile.address : tile.address + size]


def _results(op: Op) -> dict[str, str]:
    """Destinations become results, temporaries are left out; says which tile each was."""
    form = form_of(op)
    outs = {o.name for o in form.outs}
    hidden = {o.name for o in form.ins if o.role == "tmp"} if form.hides_scratch else set[str]()
    pairs = list(zip(op.operands, op.labels, strict=True))
    kept = [(v, n) for v, n in pairs if n not in outs | hidden or not _is_buffer(v)]
    for value, name in pairs:
        if name in outs and _is_buffer(value):
            type_ = type(value.type)(value.type.spec, True)  # type: ignore
            result = Value(value.name, type_, op, op.location)
            op.results.append(result)
            op.result_labels += (name,)
    op.operands, op.labels = [v for v, _ in kept], tuple(n for _, n in kept)
    return {n: v.name for v, n in pairs if _is_buffer(v)}


def _is_buffer(value: Value) -> bool:
    return isinstance(value.type, BufferType)


def _printed_and_read(module: Module) -> Module:
    for generic in (True, False):
        text = print_module(module, generic=generic)
        again = parse(text)
        assert same_module(module, again), text
    return again


def _state(machine: Machine, given: dict[str, Any], arrays: dict[str, str]) -> State:
    memories = {
        name: (memory.data.tobytes(), memory.shadow.tobytes())
        for name, memory in machine.core.memories.items()
    }
    registers = {k: v for k, v in machine.core.registers.items() if isinstance(v, int | float)}
    return State(memories, [given[n].tobytes() for n in arrays], registers)


CHECKS = {
    "eager": Example.check_eager,
    "lowered": Example.check_lowered,
    "l1": Example.check_l1,
    "l2": Example.check_l2,
    "l3": Example.check_l3,
    "sync": Example.check_sync,
    "cpp": Example.check_cpp,
}

__all__ = ["CHECKS", "Example"]
