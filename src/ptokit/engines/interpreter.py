"""What interpreting a program on one core needs to remember, whichever engine does it.

Engines differ in how they walk the operations and execute instructions. What values are made of -
tiles and their storage, FIFOs, the function that runs - is the same for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ptokit.base.diagnostics import NotSupported, fail
from ptokit.base.location import Location
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.engines.values import Frame, bind_arguments
from ptokit.ir.attributes import EnumAttr
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.dialects.cf import jumps, taken
from ptokit.ir.fifos import leaves_core_idle, pipe_spec
from ptokit.ir.instructions import root_of
from ptokit.ir.scratch import scratch_types
from ptokit.ir.types import ConvTileType, TileBufType, on_target
from ptokit.isa.fifos import PipeSpec
from ptokit.isa.groups import ViewGroup
from ptokit.machine.gm import GmBuffer
from ptokit.machine.machine import Machine
from ptokit.machine.objects import ConvObject, Pointer, TileObject

if TYPE_CHECKING:
    from ptokit.machine.vector_unit import VectorUnit

Made = TypeVar("Made", TileObject, ConvObject)


class Interpreter(ABC):
    """Runs functions of a module on one core of a machine."""

    def __init__(self, module: Module, machine: Machine) -> None:
        self.module = module
        self.machine = machine
        self.function: Function | None = None  # the one that is running
        self.scopes: dict[Block | Op, Any] = {}  # of the vector unit, prepared (micro_ops.py)
        self.unit: VectorUnit | None = None  # the vector unit, while a scope runs
        self.arrays: list[GmBuffer] = []  # behind the pointers that the kernel was given, in order

    @abstractmethod
    def block(self, block: Block, frame: Frame) -> list[Any]:
        """Run a block and return what its last operation hands on."""

    def launch(self, function: Function, args: tuple[Any, ...]) -> None:
        """Run a kernel with the caller's arguments."""
        machine = self.machine
        before, machine.is_quiet = machine.is_quiet, not machine.defers
        try:
            with np.errstate(all="ignore"):  # once, instead of for every instruction
                values = bind_arguments(function, args)
                self.arrays = [v.buffer for v in values if isinstance(v, Pointer)]
                self.call(function, values)
        finally:
            machine.is_quiet = before

    def call(self, function: Function, args: list[Any]) -> list[Any]:
        """Run a function with run-time values; a function of another kind of core does nothing."""
        self.count(function.location)
        if function.body is None:
            raise fail(
                "declaration",
                f"@{function.name} is declared but not defined",
                site=function.location,
                kind=NotSupported,
            )
        is_here = self.runs_here(_kind(function)) and not self._is_spare(function)
        if not is_here and not function.results:  # numbers are computed wherever they are used
            return []
        frame: Frame = dict(zip(function.params, args, strict=True))
        caller, self.function = self.function, function
        try:
            return self.block(function.body, frame)
        finally:
            self.function = caller

    def blocks(self, op: Op, frame: Frame) -> list[Any]:
        """Run blocks that jump to each other, and return what the last of them hands on."""
        at, args = 0, list[Any]()
        while True:
            self.count(op.location)
            block = op.regions[at]
            frame.update(zip(block.args, args, strict=True))
            handed = self.block(block, frame)
            end = block.ops[-1]
            ways = jumps(end)
            if not ways:
                return handed
            at, which = ways[taken(end, handed[0] if handed else 0)]
            args = handed[which]

    def count(self, site: Location) -> None:
        """Take a step of the run's budget, where it has one."""
        if self.machine.budget is not None:
            self.machine.budget.step(self.machine.core, site)

    def runs_here(self, kind: str) -> bool:
        """Whether code of a kind of core runs on the core in force."""
        mine = self.machine.core.kind
        return not kind or mine in ("mix", kind)

    def _is_spare(self, function: Function) -> bool:
        """Whether a vector core has no part: on A5 whole entries go to vector core 0 alone."""
        core = self.machine.core
        if core.kind != "vector" or core.subblock == 0 or _kind(function) != "vector":
            return False
        return leaves_core_idle(function, self.machine.target)

    # ---- tiles -------------------------------------------------------------------------------

    def buffer(self, value: Value, address: int | None = None) -> TileObject | ConvObject:
        """The tile or convolution tile that an operation makes."""
        if isinstance(value.type, TileBufType):
            return self.tile(value, address=address)
        assert isinstance(value.type, ConvTileType)
        spec = value.type.spec
        sizes = tuple(1 if n == DYNAMIC else n for n in spec.shape)  # run-time sizes start at 1
        return self._placed(ConvObject(spec, sizes), address)

    def spec(self, value: Value) -> TileSpec:
        """The tile type of a value on the target in force."""
        assert isinstance(value.type, TileBufType)
        return on_target(value.type.spec, self.machine.target.left_layout)

    def tile(
        self,
        value: Value,
        valid: tuple[int | None, int | None] = (None, None),
        address: int | None = None,
    ) -> TileObject:
        """A tile made by an operation: at an address, or over storage of its own."""
        spec = self.spec(value)
        rows, cols = (
            given if given is not None else capacity if static == DYNAMIC else static
            for given, static, capacity in (
                (valid[0], spec.valid_row, spec.rows),
                (valid[1], spec.valid_col, spec.cols),
            )
        )
        return self._placed(TileObject(spec, rows, cols), address)

    def _placed(self, made: Made, address: int | None) -> Made:
        """A new tile, bound at an address or over storage of its own: a loop that hands its tile
        on to the next round makes another one there."""
        if address is None:
            self.give_storage(made)
        else:
            made.bind(self.machine.core.memory(made.spec.loc), address)
        return made

    def group(self, op: Op, members: list[Value], frame: Frame) -> ViewGroup:
        """The group of views that an operation lists."""
        return ViewGroup(tuple(frame[member].tensor() for member in members), root_of(op))

    def give_storage(self, tile: TileObject | ConvObject) -> None:
        """Private storage for a tile that has no address."""
        space = self.machine.target.spaces.get(tile.spec.loc)
        name = space.memory if space else tile.spec.loc.name
        lease = self.machine.pool.lease(name, tile.spec.nbytes)
        tile.bind(lease.storage, 0, lease)

    def scratch_types(self, op: Op) -> dict[str, TileBufType]:
        """The temporaries of an instruction that the text leaves out and the target needs."""
        return scratch_types(op, self.machine.target)

    def pipe_spec(self, op: Op, function: Function) -> PipeSpec:
        """The type of the pipe that an operation opens."""
        return pipe_spec(op, function, self.machine.target)

    def scratch(self, op: Op, name: str) -> TileObject | None:
        """A temporary that the text leaves out; None where nothing needs it."""
        types = self.scratch_types(op)
        if name not in types:
            return None
        spec = types[name].spec
        made = TileObject(spec, spec.valid_row, spec.valid_col)
        self.give_storage(made)
        return made


def _kind(function: Function) -> str:
    given = function.attrs.get("pto.kernel_kind")
    return given.value if isinstance(given, EnumAttr) else ""
