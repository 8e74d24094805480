"""From recorded calls to IR: blocks merged, loops found again, instructions written by the tracer.

Cores of one kind that make calls of the same shapes are one program, whose numbers go up evenly
with the number of the block and of the vector core; others are told apart by a condition. The
instructions are written by the tracer that also writes those of Python kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from ptokit.base.convs import CONV_PARAMETERS, initial_parameters
from ptokit.base.diagnostics import Diagnostic, PtoError
from ptokit.base.dtypes import DType
from ptokit.base.location import Location
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.tensors import GlobalSpec
from ptokit.base.tiles import DYNAMIC
from ptokit.frontend.lowering.calls import query
from ptokit.frontend.lowering.convs import ConvSymbol, make_conv_tile
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.fifos import declare_slot, make_pipe
from ptokit.frontend.lowering.numbers import NeedsConstant, Number, as_value, compare
from ptokit.frontend.lowering.symbols import PointerSymbol, TileSymbol
from ptokit.frontend.lowering.tidy import tidy
from ptokit.frontend.lowering.tracer import Tracer
from ptokit.frontend.lowering.views import make_view
from ptokit.frontend.session import running
from ptokit.ir.attributes import Attribute, EnumAttr, StringAttr, UnitAttr
from ptokit.ir.core import Block, Function, Module, Value
from ptokit.ir.dialects import Definition, system
from ptokit.ir.types import F32, I64, INDEX, PtrType, ScalarType, TileBufType
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.targets import Target
from ptokit.native.recording import (
    NOT_NUMBERED,
    AConstant,
    AConv,
    AFifo,
    ANumber,
    APointer,
    ATile,
    AView,
    CallShape,
    CoreName,
    Noted,
    Recorded,
)
from ptokit.native.rolling import Item, Loop, rolled
from ptokit.native.vector_text import AScope, ScopeWriter


class Parameter(NamedTuple):
    """What the kernel takes: an array of elements, or a number, which the text does not read."""

    name: str
    element: DType | None  # of an array
    is_real: bool = False


class Spread(NamedTuple):
    """A call of many cores: by how much each number grows per block, and per vector core."""

    shape: CallShape
    per_block: tuple[int, ...]
    per_subblock: tuple[int, ...]


def lowered(
    name: str,
    parameters: Sequence[Parameter],
    recorded: Recorded,
    target: Target,
    kinds: Sequence[str],
    at: Location,
) -> Module:
    """The module of a recorded launch."""
    attrs: dict[str, Attribute] = {"pto.entry": UnitAttr()}
    if kinds[0] in ("cube", "vector") and len(kinds) == 1:
        attrs["pto.kernel_kind"] = EnumAttr("kernel_kind", kinds[0])
    body = Block()
    function = Function(name, body, (), attrs, location=at)
    emitter = Emitter(function)
    emitter.location = at
    uses = _uses(recorded)
    values = [_declared(body, each, uses.get(n), at) for n, each in enumerate(parameters)]
    writer = _Writer(emitter, target, values)
    with running(writer.tracer):
        writer.open_fifos(recorded)
        for kind in kinds:
            cores = {core: calls for core, calls in recorded.calls.items() if core.kind == kind}
            if len(kinds) == 1:
                writer.cores(cores)
            elif any(cores.values()):
                section = Block()
                with emitter.region(section):
                    writer.cores(cores)
                emitter.location = at
                emitter.emit(f"pto.section.{kind}", [], [], {}, [section])
    emitter.location = at
    emitter.emit("func.return")
    tidy(body)
    attributes: dict[str, Attribute] = {"pto.target_arch": StringAttr(target.name)}
    return Module([function], attributes, at, tuple(_doubts(recorded)))


def _doubts(recorded: Recorded) -> Iterator[Diagnostic]:
    for where in recorded.reads[:1]:
        yield Diagnostic(
            "lower.data",
            "the kernel reads data here: what it decides by them is written as it went in this run",
            where,
            fix="the text is right for these arrays; record it again for others",
            severity="warning",
        )


def _declared(body: Block, parameter: Parameter, used: DType | None, at: Location) -> Value:
    """A parameter of the text; bytes, which are anything in C++, have the type they are used as."""
    if parameter.element is not None:
        type_ = PtrType(ScalarType((used or parameter.element).mlir))
    else:
        type_ = F32 if parameter.is_real else INDEX
    body.args.append(Value(parameter.name, type_, body, at))
    return body.args[-1]


def _uses(recorded: Recorded) -> dict[int, DType]:
    """The elements that views, or else pointers, find in each array.

    Slots of a FIFO are bytes: what lies in them has a name of its own.
    """
    kinds = [kind for shape in recorded.shapes for kind in shape.operands]
    rings = {kind.slots.array for kind in kinds if isinstance(kind, AFifo) and kind.slots}
    found: dict[int, DType] = {}
    for kind in kinds:
        if isinstance(kind, AView) and kind.array not in rings:
            found.setdefault(kind.array, kind.spec.dtype)
    for kind in kinds:
        if isinstance(kind, APointer):
            found.setdefault(kind.array, kind.element)
    return found


# ---- cores ---------------------------------------------------------------------------------------


def merged(cores: dict[CoreName, list[Noted]]) -> list[Item] | None:
    """The calls of some cores as those of one; None where they are not alike."""
    names = sorted(cores, key=lambda core: (core.subblock, core.block))
    lists = [cores[name] for name in names]
    if len({len(each) for each in lists}) > 1:
        return None
    first = names[0]
    other_block = next((n for n in names if n.block != first.block), None)
    other_half = next((n for n in names if n.subblock != first.subblock), None)
    found: list[Item] = []
    for calls in zip(*lists, strict=True):
        by_name = dict(zip(names, calls, strict=True))
        start = by_name[first]
        if any(each.shape is not start.shape and each.shape != start.shape for each in calls):
            return None
        numbers = start.numbers
        per_block = _slopes(numbers, by_name, first, other_block, "block")
        per_half = _slopes(numbers, by_name, first, other_half, "subblock")
        if per_block is None or per_half is None:
            return None
        origin = [
            n - b * first.block - s * first.subblock
            for n, b, s in zip(numbers, per_block, per_half, strict=True)
        ]
        for name, call in by_name.items():
            for n, o, b, s in zip(call.numbers, origin, per_block, per_half, strict=True):
                if n != o + b * name.block + s * name.subblock:
                    return None
        found.append(Item(Spread(start.shape, per_block, per_half), tuple(origin)))
    return found


def _slopes(
    numbers: tuple[int, ...],
    calls: dict[CoreName, Noted],
    first: CoreName,
    other: CoreName | None,
    axis: str,
) -> tuple[int, ...] | None:
    """By how much each number grows along an axis of the grid."""
    if other is None:
        return (0,) * len(numbers)
    apart = getattr(other, axis) - getattr(first, axis)
    found: list[int] = []
    for here, there in zip(numbers, calls[other].numbers, strict=True):
        step, rest = divmod(there - here, apart)
        if rest:
            return None
        found.append(step)
    return tuple(found)


class _Writer:
    """Writes items into the block in hand."""

    def __init__(self, emitter: Emitter, target: Target, parameters: Sequence[Value]) -> None:
        self.emitter = emitter
        self.target = target
        self.tracer = Tracer(emitter, target, "manual")
        self._parameters = parameters
        self._block: Any = 0  # numbers of the core, where the calls depend on them
        self._subblock: Any = 0
        self._handles: list[dict[Any, Any]] = [{}]  # of tiles and slots, per region that is open
        self._fifos: dict[AFifo, Any] = {}

    def open_fifos(self, recorded: Recorded) -> None:
        """Open every FIFO before the parts of the cores, which share it."""
        found: dict[AFifo, dict[int, int]] = {}
        for core, calls in recorded.calls.items():
            for kind, first in _fifos(calls):
                found.setdefault(kind, {})[core.block] = first
        for kind, firsts in found.items():
            self.emitter.location = kind.at
            blocks = sorted(firsts)
            step = 0
            if len(blocks) > 1:
                step = (firsts[blocks[-1]] - firsts[blocks[0]]) // (blocks[-1] - blocks[0])
            start = firsts[blocks[0]] - step * blocks[0]
            if any(first != start + step * block for block, first in firsts.items()):
                raise self.emitter.fail("pipe", "the slots of the blocks are not evenly apart")
            slots = None if kind.slots is None else self._slots(kind.slots, start, step)
            args = [slots, kind.c2v, kind.v2c]
            self._fifos[kind] = make_pipe(self.emitter, self.target, kind.spec, args)

    def _slots(self, kind: APointer, start: int, step: int) -> PointerSymbol:
        """The memory of a FIFO, which is counted in bytes, as a pointer to what its array holds."""
        found = self._parameters[kind.array].type
        element = found.element.dtype if isinstance(found, PtrType) else None
        assert element is not None
        if start % element.itemsize or step % element.itemsize:
            raise self.emitter.fail("pipe", f"the slots begin inside an element, {element.name}")
        start, step = start // element.itemsize, step // element.itemsize
        place = start + self._asked(system.BLOCK_IDX) * step if step else start
        return self._pointer(APointer(element, kind.array), place)

    def _asked(self, record: Definition) -> Number:
        return query(record)(SimpleNamespace(emitter=self.emitter))

    def cores(self, cores: dict[CoreName, list[Noted]]) -> None:
        """Write what all cores of a kind do."""
        groups = list(_alike(cores))
        uses_block = len({name.block for name in cores}) > 1
        uses_half = len({name.subblock for name in cores}) > 1
        self._block = self._asked(system.BLOCK_IDX) if uses_block else 0
        self._subblock = self._asked(system.SUBBLOCK_IDX) if uses_half else 0
        for is_alone, (names, items) in zip([len(groups) == 1] * len(groups), groups, strict=True):
            if is_alone:
                self.items(rolled(items))
            elif items:
                self._where(names, lambda items=items: self.items(rolled(items)))

    def _where(self, names: Sequence[CoreName], body: Callable[[], None]) -> None:
        """Write something for some of the cores."""
        blocks, halves = {n.block for n in names}, {n.subblock for n in names}
        tests = [
            compare(self.emitter, symbol, number, bound)
            for number, found in ((self._block, blocks), (self._subblock, halves))
            if isinstance(number, Number)
            for symbol, bound in ((">=", min(found)), ("<=", max(found)))
        ]
        if not tests:
            body()
            return
        condition = tests[0]
        for each in tests[1:]:
            condition = condition & each
        region = Block()
        with self._inside(region):
            body()
            self.emitter.emit("scf.yield")
        self.emitter.emit("scf.if", [("condition", condition.value)], [], {}, [region])

    # ---- items -------------------------------------------------------------------------------

    def items(self, items: Sequence[Item]) -> None:
        for item in items:
            self.item(item.shape, item.numbers)

    def item(self, shape: Any, numbers: Sequence[Any]) -> None:
        if isinstance(shape, Loop):
            self._loop(shape, numbers)
        else:
            self._call(shape, numbers)

    def _loop(self, loop: Loop, numbers: Sequence[Any]) -> None:
        region, here = Block(), self.emitter.location
        counter = Value("i", INDEX, region, here)
        region.args.append(counter)
        bounds = [self.emitter.constant(n) for n in (0, loop.rounds, 1)]
        try:
            with self._inside(region):
                self._round(loop, numbers, Number(self.emitter, counter, nonnegative=True))
                self.emitter.emit("scf.yield")
        except (NeedsConstant, PtoError) as error:
            if isinstance(error, PtoError) and error.codes != ("lower.operand",):
                raise
            for each in range(loop.rounds):  # a number that only texts know beforehand
                self._round(loop, numbers, each)
            return
        operands = list(zip(("lower", "upper", "step"), bounds, strict=True))
        self.emitter.emit("scf.for", operands, [], {}, [region])

    def _round(self, loop: Loop, numbers: Sequence[Any], number: Any) -> None:
        given = [
            first + (number % way.turns if way.turns else number) * way.step if way.step else first
            for first, way in zip(numbers, loop.ways, strict=True)
        ]
        at = 0
        for shape, count in zip(loop.body, loop.counts, strict=True):
            self.item(shape, given[at : at + count])
            at += count

    def _inside(self, region: Block) -> _Region:
        return _Region(self, region)

    # ---- calls -------------------------------------------------------------------------------

    def _call(self, spread: Spread, numbers: Sequence[Any]) -> None:
        shape, per_block, per_half = spread
        self.emitter.location = shape.at
        given = iter(
            [
                n + self._block * b + self._subblock * s if b and s
                else n + self._block * b if b
                else n + self._subblock * s if s
                else n
                for n, b, s in zip(numbers, per_block, per_half, strict=True)
            ]
        )  # fmt: skip
        scope = next((each for each in shape.operands if isinstance(each, AScope)), None)
        if scope is not None:
            ScopeWriter(self.tracer).write(scope, list(given), shape.at)
            return
        insn = INSTRUCTIONS[shape.insn]
        has_fifo = any(isinstance(kind, AFifo) for kind in shape.operands)
        operands: list[Any] = []
        taken: list[tuple[Any, Any]] = []  # what a FIFO places, known by its place from here on
        for declared, kind in zip(insn.operands, shape.operands, strict=True):
            mine = [next(given) for _ in range(_count(kind))]
            if has_fifo and declared.writes and isinstance(kind, ATile | AView):
                operands.append(self._unplaced(kind, mine))
                taken.append((_key(kind, mine), operands[-1]))
            else:
                operands.append(self._operand(kind, mine))
        self.tracer.execute(insn, operands, shape.attrs, shape.at)
        self._handles[-1].update(taken)

    def _unplaced(self, kind: ATile | AView, numbers: Sequence[Any]) -> Any:
        """A tile or a view that a FIFO points at a slot."""
        if isinstance(kind, ATile):
            return self._tile(kind, numbers, is_placed=False)
        spec = kind.spec
        return declare_slot(self.emitter, GlobalSpec.of(spec.dtype, *_halves(numbers), spec.layout))

    def _operand(self, kind: Any, numbers: Sequence[Any]) -> Any:
        match kind:
            case ATile() | AView() | AConv():
                key = _key(kind, numbers)
                found = next(
                    (known[key] for known in reversed(self._handles) if key in known), None
                )
                if found is None:
                    found = self._handles[-1][key] = self._made(kind, numbers)
                return found
            case APointer():
                return self._pointer(kind, *numbers)
            case AFifo():
                return self._fifos[kind]
            case ANumber():
                return numbers[0]
            case _:
                assert isinstance(kind, AConstant)
                return kind.value

    def _made(self, kind: ATile | AView | AConv, numbers: Sequence[Any]) -> Any:
        if isinstance(kind, AView):
            at = self._pointer(APointer(kind.spec.dtype, kind.array), numbers[0])
            sizes = [SimpleNamespace(values=each) for each in _halves(numbers)]
            return make_view(self.emitter, SimpleNamespace(TYPE=kind.spec), [at, *sizes])
        return self._tile(kind, numbers) if isinstance(kind, ATile) else self._conv(kind, *numbers)

    def _tile(self, kind: ATile, numbers: Sequence[Any], *, is_placed: bool = True) -> TileSymbol:
        spec = kind.spec
        address, *valid = numbers
        pairs: list[tuple[str, Value]] = []
        if kind.is_bound and is_placed:
            pairs.append(("addr", as_value(self.emitter, address, I64)))
        declared = {"valid_row": spec.valid_row, "valid_col": spec.valid_col}
        for (label, static), size in zip(declared.items(), valid, strict=True):
            if static == DYNAMIC:
                pairs.append((label, as_value(self.emitter, size, INDEX)))
        result = [("result", TileBufType(spec))]
        op = self.emitter.emit("pto.alloc_tile", pairs, result, hint="t")
        return TileSymbol(self.emitter, spec, op.result, op, (valid[0], valid[1]))

    def _conv(self, kind: AConv, address: Any) -> ConvSymbol:
        place = as_value(self.emitter, address, I64)
        sizes = [
            n for n, fixed in zip(kind.shape, kind.spec.shape, strict=True) if fixed == DYNAMIC
        ]
        tile = make_conv_tile(self.emitter, kind.spec, sizes)
        assert tile.alloc is not None
        tile.alloc.operands.insert(0, place)
        tile.alloc.labels = ("addr", *tile.alloc.labels)
        initial = initial_parameters()
        for name, value in kind.parameters:
            if value != initial[name]:
                getattr(tile, f"Set{CONV_PARAMETERS[name].accessor}")(value)
        return tile

    def _pointer(self, kind: APointer, first: Any) -> PointerSymbol:
        if kind.array == NOT_NUMBERED:
            raise self.emitter.fail(
                "pointer", "this memory is no array that the kernel was given: it has no name"
            )
        value = self._parameters[kind.array]
        found = value.type
        assert isinstance(found, PtrType)
        if kind.element.mlir != found.element.name:
            raise self.emitter.fail(
                "pointer",
                f"the array is used as {found.element} and as {kind.element.mlir}: a text has one "
                "type of elements for each",
                f"pass {value.name} twice, as a parameter for each type",
            )
        start = PointerSymbol(self.emitter, value, kind.element, (1,), (1,))
        return start if isinstance(first, int) and first == 0 else start + first


class _Region:
    """A region that is open: handles made in it end with it."""

    def __init__(self, writer: _Writer, block: Block) -> None:
        self._writer = writer
        self._context = writer.emitter.region(block)

    def __enter__(self) -> None:
        self._context.__enter__()
        self._writer._handles.append({})

    def __exit__(self, *error: Any) -> None:
        self._writer._handles.pop()
        self._context.__exit__(*error)


def _key(kind: Any, numbers: Sequence[Any]) -> Any:
    """What is equal where two operands are one: of numbers that run time knows, the value."""
    named = (id(n.value) if isinstance(n, Number) else n for n in numbers)
    return (kind._replace(is_bound=True) if isinstance(kind, ATile) else kind, *named)


def _count(kind: Any) -> int:
    """How many numbers an operand has."""
    if isinstance(kind, AScope):
        return kind.size
    return _COUNTS.get(type(kind), 0)


_COUNTS = {ATile: 3, AView: 11, APointer: 1, AConv: 1, AFifo: 1, ANumber: 1}


def _halves(numbers: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The sizes and the strides of a view."""
    return tuple(numbers[1:6]), tuple(numbers[6:11])


def _fifos(calls: Sequence[Noted]) -> Iterator[tuple[AFifo, int]]:
    """The FIFOs of some calls, and where their slots begin."""
    for shape, numbers in calls:
        at = 0
        for kind in shape.operands:
            if isinstance(kind, AFifo):
                yield kind, numbers[at]
            at += _count(kind)


def _alike(
    cores: dict[CoreName, list[Noted]],
) -> Iterator[tuple[list[CoreName], list[Item]]]:
    """The cores in groups that do the same: all of them, or neighbours."""
    names = sorted(cores, key=lambda core: (core.subblock, core.block))
    whole = merged(cores) if names else []
    if whole is not None:
        yield names, whole
        return
    while names:
        size = _most(names, cores)
        group, names = names[:size], names[size:]
        found = merged({name: cores[name] for name in group})
        assert found is not None
        yield group, found


def _most(names: list[CoreName], cores: dict[CoreName, list[Noted]]) -> int:
    """How many cores from the first on, of its half, are alike."""
    size = 1
    while size < len(names) and names[size].subblock == names[0].subblock:
        if merged({name: cores[name] for name in names[: size + 1]}) is None:
            break
        size += 1
    return size
