"""What a program of the bindings is made of: values, blocks, operations, and where new ones go."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from enum import Enum
from types import FrameType
from typing import Any, ClassVar

from ptokit.base.diagnostics import usage_error
from ptokit.base.location import Location as Place
from ptokit.base.location import is_ours
from ptokit.compat.types import Context, Type, attribute, wrapped
from ptokit.ir import core
from ptokit.ir.attributes import Attribute


class Value:
    """A value; `ours` is the one of the program."""

    def __init__(self, ours: core.Value) -> None:
        self.ours = ours

    @property
    def type(self) -> Type:
        return wrapped(self.ours.type)

    @property
    def owner(self) -> Any:
        owner = self.ours.owner
        return Operation(owner) if isinstance(owner, core.Op) else owner

    def get_name(self, *_: object) -> str:
        return f"%{self.ours.name}"

    def set_type(self, type_: Type) -> None:
        self.ours.type = type_.ours

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and self.ours is other.ours

    def __hash__(self) -> int:
        return id(self.ours)

    def __str__(self) -> str:
        return repr(self.ours)


class Attributes(MutableMapping[str, Attribute]):
    """The attributes of an operation, by key."""

    def __init__(self, ours: dict[str, Attribute]) -> None:
        self._ours = ours

    def __getitem__(self, key: str) -> Attribute:
        return self._ours[key]

    def __setitem__(self, key: str, value: object) -> None:
        self._ours[key] = attribute(value)

    def __delitem__(self, key: str) -> None:
        del self._ours[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ours)

    def __len__(self) -> int:
        return len(self._ours)


class Block:
    """The body of a function, a loop or a branch."""

    def __init__(self, ours: core.Block) -> None:
        self.ours = ours

    @property
    def arguments(self) -> list[Value]:
        return [Value(v) for v in self.ours.args]

    @property
    def operations(self) -> list[Operation]:
        return [Operation(op) for op in self.ours.ops]

    @property
    def owner(self) -> Any:
        """The operation or the function whose body it is; None: nobody's yet."""
        return _holder(self.ours)

    def add_argument(self, type_: Type, loc: object = None) -> Value:
        made = core.Value(f"arg{len(self.ours.args)}", type_.ours, self.ours, here())
        self.ours.args.append(made)
        return Value(made)

    def append(self, operation: Operation) -> None:
        self.ours.ops.append(operation.ours)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)


class Region:
    """A region of an operation: here it is its block, which is there once it was appended."""

    def __init__(self, op: core.Op, number: int = 0) -> None:
        self._op = op
        self._number = number

    @property
    def blocks(self) -> Region:
        return self

    def append(self, *types: Type, arg_locs: object = None) -> Block:
        if len(self._op.regions) > self._number:
            raise usage_error(
                "compat.blocks",
                f"{self._op.name}: a region is one block here; branches and loops are operations",
                fix="scf.IfOp, scf.ForOp and scf.WhileOp instead of blocks that jump to each other",
                site=here(),
            )
        block = Block(core.Block())
        for type_ in types:
            block.add_argument(type_)
        self._op.regions.append(block.ours)
        return block

    def __len__(self) -> int:
        return int(len(self._op.regions) > self._number)

    def __getitem__(self, number: int) -> Block:
        return Block(self._op.regions[self._number + number])

    def __iter__(self) -> Iterator[Block]:
        return (self[n] for n in range(len(self)))


class WalkResult(Enum):
    """What a function that is called for every operation answers."""

    ADVANCE = 0
    INTERRUPT = 1
    SKIP = 2


class Operation:
    """An operation that was made; the bindings have two classes for one, which this is both of."""

    def __init__(self, ours: core.Op) -> None:
        self.ours = ours

    @property
    def operation(self) -> Operation:
        return self

    opview = operation

    @property
    def parent(self) -> Any:
        """The operation or the function that it stands in; None: it was taken out."""
        home = _found_home(self.ours)
        return None if home is None else _holder(home)

    def erase(self) -> None:
        """Take it out of its block."""
        self._taken_out()

    def move_before(self, other: Operation) -> None:
        """Put it in front of another operation."""
        self._taken_out()
        InsertionPoint(other).insert(self)

    def move_after(self, other: Operation) -> None:
        """Put it behind another operation."""
        self._taken_out()
        ops = _home(other.ours).ours.ops
        ops.insert(1 + next(n for n, each in enumerate(ops) if each is other.ours), self.ours)

    def _taken_out(self) -> None:
        ops = _home(self.ours).ours.ops
        ops[:] = [each for each in ops if each is not self.ours]

    @property
    def name(self) -> str:
        return self.ours.name

    @property
    def attributes(self) -> Attributes:
        return Attributes(self.ours.attrs)

    @property
    def operands(self) -> list[Value]:
        return [Value(v) for v in self.ours.operands]

    @property
    def results(self) -> list[Value]:
        return [Value(v) for v in self.ours.results]

    results_ = results

    @property
    def result(self) -> Value:
        if len(self.ours.results) != 1:
            raise ValueError(f"{self.name} has {len(self.ours.results)} results, not one")
        return Value(self.ours.result)

    @property
    def type(self) -> Type:
        return self.result.type

    @property
    def regions(self) -> list[Region]:
        return [Region(self.ours, n) for n in range(max(1, len(self.ours.regions)))]

    @property
    def body(self) -> Any:
        return Region(self.ours)

    def __getattr__(self, name: str) -> Value:
        """An operand or a result by its label; the number that an instruction returns is `dst`."""
        found = self.ours.bound(name)
        if found is None and name == "dst" and self.ours.insn and self.ours.results:
            found = self.ours.results[0]
        if found is None:
            raise AttributeError(f"{self.ours.name} has no {name}")
        return Value(found)

    def walk(self, callback: Callable[[Operation], WalkResult], *_: object) -> None:
        """Call a function for all operations inside, then for this one, until it has enough."""
        walk([*self.ours.regions], callback)
        callback(self)

    def verify(self) -> bool:
        """Mistakes of one operation are told when it is made."""
        return True

    def __str__(self) -> str:
        return repr(self.ours)


def walk(blocks: Sequence[core.Block], callback: Callable[[Operation], WalkResult]) -> bool:
    """Call a function for all operations of blocks, inner ones first; whether to go on."""
    for op in [op for block in blocks for op in block.ops]:
        if not walk(op.regions, callback) or callback(Operation(op)) is WalkResult.INTERRUPT:
            return False
    return True


def plain(given: Any) -> Any:
    """An operation that stands for its result as that; anything else as it is."""
    if isinstance(given, Operation) and given.ours.results:
        found = given.results
        return found[0] if len(found) == 1 else found
    return given


# ---- where operations go -------------------------------------------------------------------------


class _Points(type):
    @property
    def current(cls) -> InsertionPoint:
        """The one in force."""
        return current_point()


class InsertionPoint(metaclass=_Points):
    """The end of a block, or the place in front of an operation of it."""

    stack: ClassVar[list[InsertionPoint]] = []

    def __init__(self, at: Block | Region | Operation) -> None:
        self.before: core.Op | None = None
        if isinstance(at, Operation):
            self.block, self.before = _home(at.ours), at.ours
        else:
            self.block = at[0] if isinstance(at, Region) else at

    @staticmethod
    def at_block_begin(block: Block) -> InsertionPoint:
        return _in_front(block, 0)

    @staticmethod
    def at_block_terminator(block: Block) -> InsertionPoint:
        return _in_front(block, -1)

    def insert(self, op: Operation) -> None:
        ops = self.block.ours.ops
        place = next((n for n, each in enumerate(ops) if each is self.before), len(ops))
        ops.insert(place, op.ours)

    def __enter__(self) -> InsertionPoint:
        self.stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.pop()


MODULES: list[Any] = []  # that programs have made, in order


def _home(op: core.Op) -> Block:
    """The block that an operation is in."""
    found = _found_home(op)
    if found is None:
        raise ValueError(f"{op.name} is in no block: an operation that was made nowhere")
    return Block(found)


def _found_home(op: core.Op) -> core.Block | None:
    inside = (block for block, _ in _all_blocks() if any(each is op for each in block.ops))
    return next(inside, None)


def _holder(block: core.Block) -> Any:
    return next((held for each, held in _all_blocks() if each is block), None)


def _all_blocks() -> Iterator[tuple[core.Block, Any]]:
    """The blocks of all that is being built, and whose they are; nobody's: they are open only."""
    for module in reversed(MODULES):
        for function in module.functions:
            if function.ours.body is not None:
                yield from _blocks(function.ours.body, function)
    for point in reversed(InsertionPoint.stack):
        yield from _blocks(point.block.ours, None)


def _blocks(block: core.Block, holder: Any) -> Iterator[tuple[core.Block, Any]]:
    yield block, holder
    for op in block.ops:
        for region in op.regions:
            yield from _blocks(region, Operation(op))


def _in_front(block: Block, number: int) -> InsertionPoint:
    found = InsertionPoint(block)
    found.before = block.ours.ops[number] if block.ours.ops else None
    return found


def current_point() -> InsertionPoint:
    """The insertion point in force."""
    if not InsertionPoint.stack:
        raise ValueError("an operation is made outside every `with InsertionPoint(...)`")
    return InsertionPoint.stack[-1]


def insert(op: core.Op, at: InsertionPoint | None = None) -> Operation:
    """Put an operation where the program is being built."""
    for result in op.results:
        result.owner = op
    made = Operation(op)
    (at or current_point()).insert(made)
    return made


class Location:
    """Where something was written. Operations have the line of Python that made them."""

    @property
    def context(self) -> Context:
        return Context.current

    @staticmethod
    def unknown(context: object = None) -> Location:
        return Location()

    @staticmethod
    def file(name: str, line: int, col: int, context: object = None) -> Location:
        return Location()

    @staticmethod
    def name(name: str, *_: object, **__: object) -> Location:
        return Location()

    def __enter__(self) -> Location:
        return self

    def __exit__(self, *_: object) -> None:
        pass


# The files of programs, innermost last: their lines are told, not a library's.
own_files: list[str] = []


def here() -> Place:
    """The line of the program that is being executed: of its own file, where it is known."""
    frames = list(_frames(sys._getframe(1)))
    own = next((f for f in frames if f.f_code.co_filename in own_files[-1:]), None)
    frame = own or next(filter(_is_script, frames), None) or next(iter(frames), None)
    return core.NOWHERE if frame is None else Place(frame.f_code.co_filename, frame.f_lineno)


def _is_script(frame: FrameType) -> bool:
    """Whether the frame is of a file that Python was started with; a module has a spec."""
    known, is_file = frame.f_globals, not frame.f_code.co_filename.startswith("<")
    return is_file and known.get("__name__") == "__main__" and known.get("__spec__") is None


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        if not is_ours(frame):
            yield frame
        frame = frame.f_back


def types_in(given: Sequence[object]) -> list[Type] | None:
    """A list of types as such; None when it holds anything else."""
    found = [t for t in given if isinstance(t, Type)]
    return found if found and len(found) == len(given) else None
