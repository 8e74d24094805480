"""What a kernel has called, core by core: noted as plain data while it runs.

A call is split in two: its shape - the instruction, the types of its operands, its template
arguments, the line - and the numbers in it: addresses, offsets, sizes, whole numbers. Rounds of a
loop and blocks of a grid make calls of the same shape with other numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.location import Location, Site
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import TileSpec
from ptokit.isa.fifos import PipeSpec
from ptokit.isa.spec import Insn
from ptokit.machine.fifo import PipeObject
from ptokit.machine.objects import ConvObject, GlobalObject, Pointer, TileObject
from ptokit.machine.vector_unit import Work
from ptokit.native.vector_text import noted

NOT_NUMBERED = -1  # no array of the kernel's


class ATile(NamedTuple):
    """Its numbers: address, valid rows and columns."""

    spec: TileSpec
    is_bound: bool


class AView(NamedTuple):
    """Its numbers: the first element, five sizes, five strides."""

    spec: GlobalSpec
    array: int  # the parameter


class APointer(NamedTuple):
    """Its number: the element."""

    element: DType
    array: int


class AConv(NamedTuple):
    """Its number: the address."""

    spec: ConvSpec
    shape: tuple[int, ...]
    parameters: tuple[tuple[str, Any], ...]


class AFifo(NamedTuple):
    """Its number: where the slots begin in their array."""

    spec: PipeSpec
    slots: APointer | None
    c2v: int
    v2c: int
    at: Location  # where it was opened


class ANumber(NamedTuple):
    """A whole number."""


class AConstant(NamedTuple):
    """What is written as it is: a real number, a choice, nothing."""

    value: Any


class CallShape(NamedTuple):
    """All of a call but its numbers."""

    insn: str
    attrs: tuple[Any, ...]
    operands: tuple[Any, ...]
    at: Location


class Noted(NamedTuple):
    """A call."""

    shape: CallShape
    numbers: tuple[int, ...]


class CoreName(NamedTuple):
    """Which core of a launch has called."""

    kind: str
    block: int
    subblock: int


@dataclass
class Recorded:
    """The calls of a launch."""

    calls: dict[CoreName, list[Noted]] = field(default_factory=dict[CoreName, list[Noted]])
    reads: list[Location] = field(default_factory=list[Location])  # of data, into the program
    shapes: dict[CallShape, CallShape] = field(default_factory=dict[CallShape, CallShape])

    def of(self, core: Any) -> list[Noted]:
        return self.calls.setdefault(CoreName(core.kind, core.block, core.subblock), [])


class InItsPlace:
    """Stands where the machine stands, and is given every call; all else is the machine's."""

    follows = True  # every call comes here, also one that is known

    def __init__(self, machine: Any) -> None:
        self.machine = machine

    def __getattr__(self, name: str) -> Any:
        return getattr(self.machine, name)


class Recorder(InItsPlace):
    """Passes every call on, and notes it.

    What only names memory - an address of a tile, a part of another one - is not noted: every
    operand has its address.
    """

    def __init__(self, machine: Any, recorded: Recorded, arrays: Mapping[int, int]) -> None:
        super().__init__(machine)
        self._recorded = recorded
        self._arrays = arrays  # parameters by the address of their first byte
        self._calls = recorded.of(machine.core)

    def execute(
        self, insn: Insn, operands: Sequence[Any], attrs: tuple[Any, ...], site: Site | Location
    ) -> Any:
        value = self.machine.execute(insn, operands, attrs, site)
        if insn.binds:
            return value
        at = site if isinstance(site, Location) else site.location
        if value is not None:
            self._recorded.reads.append(at)
        kinds: list[Any] = []
        numbers: list[int] = []
        for operand in operands:
            kind, found = self._noted(operand)
            kinds.append(kind)
            numbers += found
        shape = CallShape(insn.name, attrs, tuple(kinds), at)
        shape = self._recorded.shapes.setdefault(shape, shape)  # equal ones are one
        self._calls.append(Noted(shape, tuple(numbers)))
        return value

    def _noted(self, operand: Any) -> tuple[Any, Sequence[int]]:
        """The kind of an operand, and its numbers."""
        match operand:
            case TileObject():
                numbers = (operand.address, operand.vr, operand.vc)
                return ATile(operand.spec, operand.storage is not None), numbers
            case GlobalObject():
                at = operand.pointer
                array, first = (NOT_NUMBERED, 0) if at is None else self._place(at)
                return AView(operand.spec, array), (first, *operand.shape, *operand.stride)
            case ConvObject():
                parameters = tuple(operand.parameters.items())
                return AConv(operand.spec, operand.shape, parameters), (operand.address,)
            case Pointer():
                array, first = self._place(operand)
                return APointer(operand.dtype, array), (first,)
            case PipeObject():
                return self._fifo(operand)
            case Work():
                return noted(operand)
            case bool() | float() | None:
                return AConstant(operand), ()
            case int():
                return ANumber(), (int(operand),)
            case _:
                return AConstant(operand), ()

    def _place(self, pointer: Pointer) -> tuple[int, int]:
        """The array that a pointer leads into, and the element."""
        array = self._arrays.get(pointer.buffer.base, NOT_NUMBERED)
        return array, pointer.offset // pointer.dtype.itemsize

    def _fifo(self, fifo: PipeObject) -> tuple[AFifo, tuple[int]]:
        slots, first = None, 0
        if fifo.gm is not None:
            array, first = self._place(fifo.gm)
            slots = APointer(fifo.gm.dtype, array)
        ends = fifo.c2v_consumer_buf, fifo.v2c_consumer_buf
        return AFifo(fifo.spec, slots, *ends, fifo.site), (first,)
