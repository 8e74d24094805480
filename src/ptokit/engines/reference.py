"""The reference engine: runs a program, operation by operation, on the machine.

It is normative: small, slow and obvious. Control flow and arithmetic are interpreted here,
instructions are issued to the machine, and every error carries the line of the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ptokit.base.diagnostics import NotSupported, fail
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.engines import conv_ops, memory_ops, sync_ops
from ptokit.engines.issue import instruction
from ptokit.engines.steps import Frame, Handler, Step, arithmetic, handled
from ptokit.engines.values import bind_arguments
from ptokit.ir.attributes import ArrayAttr, EnumAttr, IntAttr, SymbolAttr
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.fifos import takes_whole_entries
from ptokit.ir.scratch import scratch_types
from ptokit.ir.types import TileBufType, on_target
from ptokit.isa.targets import Target
from ptokit.machine.arena import Arena
from ptokit.machine.machine import Machine
from ptokit.machine.objects import ConvObject, TileObject

Made = TypeVar("Made", TileObject, ConvObject)


class Code(NamedTuple):
    """A block prepared for running."""

    steps: tuple[Step, ...]
    results: tuple[Value, ...]  # what its last operation hands on


class Prepared:
    """A module prepared for running, block by block as they are first reached."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._code: dict[Block, Code] = {}
        self.idle: list[Arena] = []  # what earlier launches left
        self._scratch: dict[tuple[Op, Target], dict[str, TileBufType]] = {}

    def code(self, block: Block) -> Code:
        found = self._code.get(block)
        if found is None:
            found = self._code[block] = _prepare(block)
        return found

    def scratch(self, op: Op, target: Target) -> dict[str, TileBufType]:
        """The temporaries of an instruction that the text leaves out and the target needs."""
        found = self._scratch.get((op, target))
        if found is None:
            found = self._scratch[op, target] = scratch_types(op, target)
        return found


def _prepare(block: Block) -> Code:
    steps: list[Step] = []
    acts: list[Any] = []  # operations on flags that stand in a row are one step
    for op in block.ops:
        act = sync_ops.flag_act(op)
        if act is not None:
            if not acts:
                steps.append(sync_ops.flags(acts))
            acts.append(act)
            continue
        acts = []
        if op.name in _TERMINATORS:
            return Code(tuple(steps), tuple(op.operands))
        steps.append(_step(op))
    return Code(tuple(steps), ())


def _step(op: Op) -> Step:
    if op.insn is not None:
        return instruction(op)
    prepare = memory_ops.PREPARED.get(op.name)
    if prepare is not None:
        return prepare(op)
    handler = HANDLERS.get(op.name)
    return arithmetic(op) if handler is None else handled(handler, op)


@dataclass
class Interpreter:
    """Runs functions of a prepared module on one core of a machine."""

    prepared: Prepared
    machine: Machine
    blocks: int = 1  # the size of the grid
    subblocks: int = 1  # vector cores per block that take part
    # Storage belongs to the operation that allocates it: a loop gets the same tile every time.
    storage: dict[tuple[Op, int], TileObject | ConvObject] = field(
        default_factory=dict[tuple[Op, int], TileObject | ConvObject]
    )
    pipes: dict[str, Any] = field(default_factory=dict[str, Any])
    function: Function | None = None  # the one that is running
    # Of an instruction: the keys of its operands when it ran last, and the call they led to.
    calls: dict[Op, tuple[list[Any], Any]] = field(default_factory=dict[Op, tuple[list[Any], Any]])

    @property
    def module(self) -> Module:
        return self.prepared.module

    def launch(self, function: Function, args: tuple[Any, ...]) -> None:
        """Run a kernel with the caller's arguments."""
        machine = self.machine
        before, machine.is_quiet = machine.is_quiet, not machine.defers
        try:
            with np.errstate(all="ignore"):  # once, instead of for every instruction
                self.call(function, bind_arguments(function, args))
        finally:
            machine.is_quiet = before

    def call(self, function: Function, args: list[Any]) -> list[Any]:
        """Run a function with run-time values; a function of another kind of core does nothing."""
        if function.body is None:
            raise fail(
                "declaration",
                f"@{function.name} is declared but not defined",
                site=function.location,
                kind=NotSupported,
            )
        if not self.runs_here(_kind(function)) or self._is_spare(function):
            return []
        frame: Frame = dict(zip(function.params, args, strict=True))
        caller, self.function = self.function, function
        try:
            return self.block(function.body, frame)
        finally:
            self.function = caller

    def runs_here(self, kind: str) -> bool:
        """Whether code of a kind of core runs on the core in force."""
        mine = self.machine.core.kind
        return not kind or mine in ("mix", kind)

    def _is_spare(self, function: Function) -> bool:
        """Whether a vector core has no part: on A5 whole entries go to vector core 0 alone."""
        core = self.machine.core
        if core.kind != "vector" or core.subblock == 0 or self.machine.target.name != "a5":
            return False
        return _kind(function) == "vector" and takes_whole_entries(function)

    # ---- blocks and operations ---------------------------------------------------------------

    def block(self, block: Block, frame: Frame) -> list[Any]:
        """Run a block and return what its last operation hands on."""
        code = self.prepared.code(block)
        for step in code.steps:
            step(self, frame)
        return [frame[v] for v in code.results]

    # ---- tiles -------------------------------------------------------------------------------

    def buffer(self, op: Op, value: Value, address: int | None = None) -> TileObject | ConvObject:
        """The tile or convolution tile that an operation makes."""
        if isinstance(value.type, TileBufType):
            return self.tile(op, value, address=address)
        return self._placed(op, conv_ops.new_tile(value), address)

    def spec(self, value: Value) -> TileSpec:
        """The tile type of a value on the target in force."""
        assert isinstance(value.type, TileBufType)
        return on_target(value.type.spec, self.machine.target.left_layout)

    def tile(
        self,
        op: Op,
        value: Value,
        valid: tuple[int | None, int | None] = (None, None),
        address: int | None = None,
    ) -> TileObject:
        """A tile made by an operation: at an address, or over storage the operation keeps."""
        spec = self.spec(value)
        rows, cols = (
            given if given is not None else capacity if static == DYNAMIC else static
            for given, static, capacity in (
                (valid[0], spec.valid_row, spec.rows),
                (valid[1], spec.valid_col, spec.cols),
            )
        )
        return self._placed(op, TileObject(spec, rows, cols), address)

    def _placed(self, op: Op, made: Made, address: int | None) -> Made:
        """A new tile, bound at an address or over storage that its operation keeps."""
        if address is not None:
            made.bind(self.machine.core.memory(made.spec.loc), address)
            return made
        key = (op, id(self.machine.core))
        first = self.storage.get(key)
        if first is None:
            self.give_storage(made)
            self.storage[key] = made
        else:
            made.share(first)
        return made

    def give_storage(self, tile: TileObject | ConvObject) -> None:
        """Private storage for a tile that has no address."""
        space = self.machine.target.spaces.get(tile.spec.loc)
        name = space.memory if space else tile.spec.loc.name
        lease = self.machine.pool.lease(name, tile.spec.nbytes)
        tile.bind(lease.storage, 0, lease)

    def scratch(self, op: Op, name: str) -> TileObject | None:
        """A temporary that the text leaves out; None where nothing needs it."""
        types = self.prepared.scratch(op, self.machine.target)
        if name not in types:
            return None
        spec = types[name].spec
        made = TileObject(spec, spec.valid_row, spec.valid_col)
        self.give_storage(made)
        return made


def _kind(function: Function) -> str:
    given = function.attrs.get("pto.kernel_kind")
    return given.value if isinstance(given, EnumAttr) else ""


# ---- control flow ------------------------------------------------------------------------------

_TERMINATORS = ("func.return", "scf.yield", "scf.condition")


def _for(run: Interpreter, op: Op, frame: Frame) -> None:
    lower, upper, step = (frame[v] for v in op.operands[:3])
    carried = [frame[v] for v in op.operands[3:]]
    body = op.regions[0]
    if step <= 0:
        raise fail("loop-step", "the step of scf.for is positive", site=op.location)
    for index in range(lower, upper, step):
        frame[body.args[0]] = index
        frame.update(zip(body.args[1:], carried, strict=True))
        carried = run.block(body, frame)
    frame.update(zip(op.results, carried, strict=True))


def _if(run: Interpreter, op: Op, frame: Frame) -> None:
    if frame[op.operands[0]]:
        found = run.block(op.regions[0], frame)
    else:
        found = run.block(op.regions[1], frame) if len(op.regions) > 1 else []
    frame.update(zip(op.results, found, strict=True))


def _while(run: Interpreter, op: Op, frame: Frame) -> None:
    before, after = op.regions
    carried = [frame[v] for v in op.operands]
    while True:
        frame.update(zip(before.args, carried, strict=True))
        go_on, *passed = run.block(before, frame)
        if not go_on:
            frame.update(zip(op.results, passed, strict=True))
            return
        frame.update(zip(after.args, passed, strict=True))
        carried = run.block(after, frame)


def _switch(run: Interpreter, op: Op, frame: Frame) -> None:
    cases = op.attrs["cases"]
    assert isinstance(cases, ArrayAttr)
    numbers = [c.value for c in cases.items if isinstance(c, IntAttr)]
    chosen = frame[op.operands[0]]
    region = op.regions[1 + numbers.index(chosen)] if chosen in numbers else op.regions[0]
    frame.update(zip(op.results, run.block(region, frame), strict=True))


def _execute(run: Interpreter, op: Op, frame: Frame) -> None:
    frame.update(zip(op.results, run.block(op.regions[0], frame), strict=True))


def _call(run: Interpreter, op: Op, frame: Frame) -> None:
    callee = op.attrs["callee"]
    assert isinstance(callee, SymbolAttr)
    function = run.module.function(callee.name)
    assert function is not None
    found = run.call(function, [frame[v] for v in op.operands])
    frame.update(zip(op.results, found, strict=True))


def _section(run: Interpreter, op: Op, frame: Frame) -> None:
    kind = op.name.rpartition(".")[2]
    if run.runs_here(kind):
        run.block(op.regions[0], frame)


HANDLERS: dict[str, Handler] = {
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "scf.index_switch": _switch,
    "scf.execute_region": _execute,
    "func.call": _call,
    "pto.section.cube": _section,
    "pto.section.vector": _section,
    **memory_ops.HANDLERS,
    **sync_ops.HANDLERS,
    **conv_ops.HANDLERS,
}
