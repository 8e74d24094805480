"""Scopes of the vector unit as functions of the library: loops stay loops, registers are bytes.

A scope is read from its operations (`ir/core.py`). Its numbers are of two kinds: those that follow
from what it is handed are worked out for each run of it and come as words, those that change from
round to round are computed (numbers.py). Registers and masks are rooms of the function, and each
operation on them is a loop over as many lanes as the processor takes at once (registers/).

The words: the memory it works on, and then the numbers in the order in which they were asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.loops import as_element
from ptokit.engines.compiled.natives import bits_of
from ptokit.engines.compiled.numbers import computed, is_whole
from ptokit.engines.compiled.registers.operations import RegisterOperations
from ptokit.engines.compiled.registers.rooms import Room, bytes_of
from ptokit.engines.compiled.text import Function
from ptokit.engines.compiled.text import Value as Text
from ptokit.ir.arithmetic import Undefined
from ptokit.ir.attributes import SymbolAttr
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.dialects import definition_of
from ptokit.ir.dialects.arith import CONSTANT
from ptokit.ir.dialects.func import CALL
from ptokit.ir.dialects.memory import ADDPTR, TILE_ADDR
from ptokit.ir.dialects.micro import CAST_POINTER
from ptokit.ir.dialects.scf import FOR, IF
from ptokit.ir.evaluate import meaning
from ptokit.ir.flow import is_terminator
from ptokit.ir.logical import element_of
from ptokit.ir.types import PtrType
from ptokit.machine.memory import Storage
from ptokit.machine.objects import TileObject
from ptokit.machine.registers import LocalPointer
from ptokit.machine.vector_unit import Code

Name = tuple[int, Value]  # of a value: in which call of a function, and which
Frame = dict[Name, Any]  # numbers that are worked out beforehand
_FIRST = 2  # words in front of the numbers
_MOST_OPERATIONS = 1000  # in one function


@dataclass(frozen=True)
class Scope:
    """A function of the library."""

    written: str
    operands = (0,)

    def text(self, name: str) -> str:
        return self.written.replace("{name}", name)


@dataclass(frozen=True)
class _Step:
    """A number that follows from others."""

    op: Op | None  # None: it is handed on
    args: tuple[Name, ...]
    results: tuple[Name, ...]

    def take(self, frame: Frame) -> None:
        given = [frame[name] for name in self.args]
        found = tuple(given) if self.op is None else _worked_out(self.op, given)
        frame.update(zip(self.results, found, strict=True))


@dataclass(frozen=True)
class _Made:
    """A function, and what it has to be handed."""

    kernel: Scope
    steps: tuple[_Step, ...]
    words: tuple[tuple[Name, DType | None], ...]  # numbers, or elements of a type
    fixed: Mapping[Name, Any]  # numbers that are part of it

    def fits(self, frame: Frame) -> bool:
        """Whether it is the function for these numbers, which are completed."""
        for step in self.steps:
            step.take(frame)
        return all(frame[name] == number for name, number in self.fixed.items())

    def handed(self, frame: Frame) -> list[int]:
        return [
            int(frame[name]) if kind is None else bits_of(frame[name], kind)
            for name, kind in self.words
        ]


Known = dict[int, list[_Made]]  # functions by what is written in their scope


def compiled(
    code: Code, values: Sequence[Any], memory: Storage, number: int, known: Known
) -> tuple[Scope, list[int]]:
    """The function for a scope with these values, and its words; `memory` has this number."""
    frame: Frame = {
        (0, name): _plain(value, memory) for name, value in zip(code.given, values, strict=True)
    }
    made_before = known.setdefault(id(code.block), [])
    for made in made_before:
        completed = dict(frame)
        if made.fits(completed):
            return made.kernel, [number, 0, *made.handed(completed)]
    made = _Writer(code, frame).made()
    made_before.append(made)
    return made.kernel, [number, 0, *made.handed(frame)]


def lacks(block: Block) -> str:
    """Why there is no code for what is written in a block, whatever it is handed; "": there is."""
    vectors = [value for value in block.args if bytes_of(value.type)]
    frame: Frame = {(0, value): 1 for value in block.args if value not in vectors}
    writer = _Writer(Code(block, tuple(block.args), None), frame)
    try:
        for value in vectors:
            writer.keep(value, writer.registers.rooms.new(bytes_of(value.type)))
        writer.made()
    except Unsupported as error:
        return str(error)
    return ""


def _plain(value: Any, memory: Storage) -> Any:
    """A value from outside: numbers, and the bytes that pointers point to."""
    if isinstance(value, LocalPointer) and value.buffer is memory:
        return value.offset
    if isinstance(value, TileObject) and value.storage is memory:
        return value.address
    return value if isinstance(value, int | float) else None


def _worked_out(op: Op, args: Sequence[Any]) -> tuple[Any, ...]:
    if ADDPTR.matches(op):
        return (args[0] + args[1] * _size(op.operands[0]),)
    if CAST_POINTER.matches(op) or TILE_ADDR.matches(op):
        return (args[0],)
    compute = meaning(op)
    assert compute is not None
    try:
        return compute(args)
    except Undefined:  # on a way that is not gone
        return (0,) * len(op.results)


def _size(pointer: Value) -> int:
    assert isinstance(pointer.type, PtrType)
    return element_of(pointer.type.element).itemsize


class _Writer:
    """Writes the function of one scope."""

    def __init__(self, code: Code, frame: Frame) -> None:
        self._written = code
        self._frame = frame
        self._steps: list[_Step] = []
        self._words: dict[tuple[Name, DType | None], None] = {}
        self._fixed: dict[Name, Any] = {}
        self._call = self._calls = 0  # of the functions of the scope: the one in hand, how many
        self._count = 0  # operations
        self._numbers: dict[Name, Text] = {}  # those that change
        self._rooms: dict[Name, Room] = {}  # of registers and masks
        self.code = Function("{name}")
        self.registers = RegisterOperations(self, self.code, self.code.pointer(0))

    def made(self) -> _Made:
        self._block(self._written.block)
        words = tuple(self._words)
        return _Made(Scope(self.code.text()), tuple(self._steps), words, self._fixed)

    # ---- values ------------------------------------------------------------------------------

    def _name(self, value: Value) -> Name:
        return self._call, value

    def number(self, value: Value) -> Text:
        """An integer, or a pointer."""
        name = self._name(value)
        if name in self._numbers:
            return self._numbers[name]
        return self._word(name, None)

    def element(self, value: Value, kind: DType) -> Text:
        """A number as an element of this type."""
        name = self._name(value)
        if name in self._numbers:
            if not kind.is_integer or not is_whole(value.type):
                raise Unsupported("numbers that change, as elements of another kind")
            return as_element(self.code, kind, self._numbers[name])
        return as_element(self.code, kind, self._word(name, kind))

    def _word(self, name: Name, kind: DType | None) -> Text:
        number = self._frame.get(name)
        if number is None or (kind is None and not isinstance(number, int)):
            raise Unsupported("values of another kind, or of another memory")
        self._words.setdefault((name, kind))
        return self.code.word(_FIRST + [*self._words].index((name, kind)))

    def fixed(self, value: Value) -> Any:
        """A number that becomes part of the function; None: it changes, or should not."""
        name = self._name(value)
        owner = value.owner
        is_constant = isinstance(owner, Op) and CONSTANT.matches(owner)
        if name not in self._frame or not (is_constant or self._written.module is None):
            return None
        if not is_constant:
            self._fixed[name] = self._frame[name]
        return self._frame[name]

    def stride(self, value: Value) -> Any:
        """A number on which the shape of an access depends; None: it changes."""
        name = self._name(value)
        if name in self._frame:
            self._fixed[name] = self._frame[name]
        return self._frame.get(name)

    def room(self, value: Value) -> Room | None:
        """Where a register or mask lies."""
        return self._rooms.get(self._name(value))

    def keep(self, value: Value, made: Room | Text) -> None:
        """Note a result."""
        if isinstance(made, Room):
            self._rooms[self._name(value)] = made
        else:
            self._numbers[self._name(value)] = made

    # ---- operations --------------------------------------------------------------------------

    def _block(self, block: Block) -> tuple[Value, ...]:
        """Write a block; returns what it hands on."""
        for op in block.ops:
            if is_terminator(op):
                return tuple(op.operands)
            self._count += 1
            if self._count > _MOST_OPERATIONS:
                raise Unsupported("too long a scope")
            self._operation(op)
        return ()

    def _operation(self, op: Op) -> None:
        definition = definition_of(op)
        if definition is not None and definition.micro is not None:
            self.registers.operation(op)
        elif definition is FOR:
            self._loop(op)
        elif definition is IF:
            self._branch(op)
        elif definition is CALL:
            self._inlined(op)
        else:
            self._computed(op)

    def _computed(self, op: Op) -> None:
        """A number: worked out beforehand where it can be."""
        names = [self._name(value) for value in op.operands]
        results = tuple(self._name(value) for value in op.results)
        is_pointer = any(each.matches(op) for each in (ADDPTR, CAST_POINTER, TILE_ADDR))
        if not is_pointer and meaning(op) is None:
            raise Unsupported(op.name)
        if all(self._frame.get(name) is not None for name in names):
            step = _Step(op, tuple(names), results)
            step.take(self._frame)
            self._steps.append(step)
            return
        args = [self.number(value) for value in op.operands]
        if ADDPTR.matches(op):
            moved = self.code.number("mul", args[1], str(_size(op.operands[0])))
            self.keep(op.result, self.code.number("add", args[0], moved))
        elif is_pointer:
            self.keep(op.result, args[0])
        else:
            self.keep(op.result, computed(self.code, op, args))

    def _loop(self, op: Op) -> None:
        lower, upper, width = op.operands[:3]
        (body,) = op.regions
        index, carried = body.args[0], body.args[1:]
        first = [self._taken(value) for value in op.operands[3:]]
        rooms = [self.registers.rooms.copied(each) for each in first if isinstance(each, Room)]
        numbers = [each for each in first if not isinstance(each, Room)]
        places = [isinstance(each, Room) for each in first]

        def all_of(held: Sequence[Text]) -> list[Room | Text]:
            of_rooms, of_numbers = iter(rooms), iter(held)
            return [next(of_rooms) if is_room else next(of_numbers) for is_room in places]

        def round_(number: Text, *held: Text) -> Sequence[Text]:
            self.keep(index, number)
            for value, each in zip(carried, all_of(held), strict=True):
                self.keep(value, each)
            given = [self._taken(value) for value in self._block(body)]
            self.registers.rooms.move([each for each in given if isinstance(each, Room)], rooms)
            return [each for each in given if not isinstance(each, Room)]

        start, stop, step = (self.number(value) for value in (lower, upper, width))
        ended = self.code.loop(start, stop, step, round_, [("i64", each) for each in numbers])
        for value, each in zip(op.results, all_of(ended), strict=True):
            self.keep(value, each)

    def _taken(self, value: Value) -> Room | Text:
        """A value that is handed on: its room, or the number."""
        room = self.room(value)
        return self.number(value) if room is None else room

    def _branch(self, op: Op) -> None:
        test = self.code.do(f"icmp ne i64 {self.number(op.operands[0])}, 0")
        ends: list[Room | Text | None] = [None] * len(op.results)

        def way(region: Block) -> None:
            for place, value in enumerate(self._block(region)):
                given, end = self._taken(value), ends[place]
                if isinstance(given, Room):
                    if end is None:
                        end = ends[place] = self.registers.rooms.new(given.nbytes)
                    assert isinstance(end, Room)
                    self.registers.rooms.move([given], [end])
                    continue
                if end is None:
                    end = ends[place] = self.code.room(8)
                self.code.act(f"store i64 {given}, ptr {end}")

        first, *others = op.regions
        other = others[0] if others else None
        self.code.when(test, lambda: way(first), None if other is None else lambda: way(other))
        for value, end in zip(op.results, ends, strict=True):
            assert end is not None
            is_room = isinstance(end, Room)
            self.keep(value, end if is_room else self.code.do(f"load i64, ptr {end}"))

    def _inlined(self, op: Op) -> None:
        """A function that is a part of the scope."""
        callee, module = op.attrs["callee"], self._written.module
        assert isinstance(callee, SymbolAttr)
        function = None if module is None else module.function(callee.name)
        if function is None or function.body is None:
            raise Unsupported("a function without a body")
        outer = self._call
        self._calls += 1
        inner = self._calls
        for param, value in zip(function.params, op.operands, strict=True):
            name = outer, value
            if name in self._frame:
                step = _Step(None, (name,), ((inner, param),))
                step.take(self._frame)
                self._steps.append(step)
            elif name in self._rooms:
                self._rooms[inner, param] = self._rooms[name]
            else:
                self._numbers[inner, param] = self.number(value)
        self._call = inner
        found = self._block(function.body)
        ended = [(inner, value) for value in found]
        self._call = outer
        for value, name in zip(op.results, ended, strict=True):
            if name in self._frame:
                step = _Step(None, (name,), (self._name(value),))
                step.take(self._frame)
                self._steps.append(step)
            elif name in self._rooms:
                self.keep(value, self._rooms[name])
            else:
                self.keep(value, self._numbers[name])
