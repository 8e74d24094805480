"""From a program to its driver: one function in which loops stay loops.

Control flow, arithmetic, views and handles of tiles become code of the processor; an instruction is
a call of the dispatcher (`dispatch.py`) with its operands as words. All else Python executes, one
operation at a time: the code writes down the words of its operands, and asks. An operation whose
operands are wrong is one of these: what is wrong with it Python says, with the line of the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ptokit.base.dtypes import DType
from ptokit.base.enums import Layout
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.tiles import DYNAMIC
from ptokit.engines import sync_ops
from ptokit.engines.compiled.dispatch import MISSED, State
from ptokit.engines.compiled.held import (
    TILE_WORDS,
    Address,
    Held,
    Number,
    Other,
    TileHeld,
    Window,
)
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.scalars import scalar_of
from ptokit.engines.compiled.text import Function
from ptokit.engines.compiled.text import Value as Text
from ptokit.ir.attributes import ArrayAttr, EnumAttr, IntAttr, SymbolAttr
from ptokit.ir.core import Block, Module, Op, Value
from ptokit.ir.core import Function as Program
from ptokit.ir.dialects import Definition, definition_of, func, memory, scf, sync, system
from ptokit.ir.dialects.arith import arithmetic_of
from ptokit.ir.fifos import is_transfer
from ptokit.ir.flow import allocates, core_of, is_loop, is_terminator
from ptokit.ir.ordering import effects_of
from ptokit.ir.types import PtrType, ScalarType, ShapedType, TileBufType, ViewType
from ptokit.isa.effects import Barrier, CoreFlag, Flag, Meeting, Pipe, Signal, Wait, Word

_HEAD = "define i64 @{}(ptr %state, ptr %sites) nounwind"
_MOST_OPS = 4000  # of a program: longer ones are hardly loops
_HERE = ("cube", "vector")


class Site(NamedTuple):
    """An operation that calls out: the dispatcher, or Python."""

    op: Op
    is_dispatched: bool
    given: list[tuple[Value, Held]]  # what it uses, in the order of their words
    made: list[tuple[Value, Held]]  # and what it makes
    changed: list[int]  # of what it uses, tiles that it may change, which then follow the results

    @property
    def is_name(self) -> bool:
        """Whether all it does is in the words that it leaves."""
        return self.is_dispatched and bool(self.made or self.changed)

    @property
    def key(self) -> int:
        """How many of its words decide what it does."""
        return sum(len(held.key) for _, held in self.given)


class Asked(NamedTuple):
    """What is found out once for a core: the home of a tile, or the answer of a query."""

    op: Op
    is_home: bool


class Driver(NamedTuple):
    """The driver of a function."""

    text: str
    params: list[Held]
    asked: list[Asked]
    sites: list[Site]
    flags: list[tuple[Pipe, Flag]]  # with the pipe that raises it
    words: int  # of the longest operation


def driver_of(module: Module, function: Program, name: str) -> Driver:
    """The driver of a function; `Unsupported` where it is better interpreted."""
    ops = list(module.walk())
    if len(ops) > _MOST_OPS:
        raise Unsupported("a program of too many operations")
    for op in ops:
        if is_transfer(op) or any(map(_meets, effects_of(op))):
            raise Unsupported(f"{op.name}: cores that wait for each other")
        if allocates(op) and op.operand("addr") is None:
            raise Unsupported(f"{op.name}: tiles without addresses")
    return _Writer(module, function, name).written()


def is_worth(function: Program, blocks: int) -> bool:
    """Whether operations of a function run more than once."""
    return blocks > 1 or any(is_loop(op) for op in function.walk())


def _meets(effect: object) -> bool:
    return isinstance(effect, Signal | Wait) and isinstance(effect.token, CoreFlag | Meeting | Word)


class _Writer:
    def __init__(self, module: Module, function: Program, name: str) -> None:
        self._module, self._function = module, function
        self._code = Function(name, _HEAD, "ret i64 0")
        self._held: dict[Value, Held] = {}
        self._slots: dict[Value, Text] = {}  # of tiles that change: where their words are
        self._changing = {value for op in module.walk() for value in _changes(op)}
        self._params: list[Held] = []
        self._asked: list[Asked] = []
        self._sites: list[Site] = []
        self._flags: dict[Flag, int] = {}
        self._pipes: list[tuple[Pipe, Flag]] = []
        self._calls: list[str] = []  # functions that are being written
        self._constants = 0

    def written(self) -> Driver:
        code = self._code
        self._operands = code.load("%state", State.OPERANDS, "ptr")
        self._orders = code.load("%state", State.ORDER, "ptr")
        self._known = code.load("%state", State.CONSTANTS, "ptr")
        self._callback = code.load("%state", State.CALLBACK, "ptr")
        self._dispatch = code.load("%state", State.DISPATCH, "ptr")
        self._failed = code.fresh("failed")
        self._here = [self._constant() for _ in _HERE]
        for param in self._function.params:
            held = self._param(param)
            self._params.append(held)
            self._set(param, held)
        assert self._function.body is not None
        self._block(self._function.body)
        code.act("ret i64 0")
        code.label(self._failed)
        code.act("ret i64 1")
        code.label(code.fresh("never"))
        words = [TILE_WORDS]
        for site in self._sites:
            words.append(sum(len(held.words) for _, held in site.given))
            made = sum(len(held.words) for _, held in site.made)
            words.append(made + TILE_WORDS * len(site.changed))
        return Driver(code.text(), self._params, self._asked, self._sites, self._pipes, max(words))

    def _param(self, param: Value) -> Held:
        kind = param.type
        if isinstance(kind, ScalarType):
            held: Held = Number(("",), kind.is_float)
        elif isinstance(kind, PtrType):
            held = Address(("",) * 2, kind.element.dtype)
        elif isinstance(kind, ViewType | ShapedType):
            held = Window(("",) * (2 * len(kind.shape) + 2), kind.element.dtype, Layout.ND)
        else:
            raise Unsupported(f"an argument of type {kind}")
        return held.over([self._constant() for _ in held.words])

    def _constant(self) -> Text:
        """The next word that Python fills in before a core runs."""
        self._constants += 1
        return self._code.load(self._known, self._constants - 1)

    # ---- values ------------------------------------------------------------------------------

    def _set(self, value: Value, held: Held) -> None:
        if value in self._changing:
            made = value.owner
            is_own = isinstance(made, Op) and not made.regions and not func.CALL.matches(made)
            if not is_own or not isinstance(held, TileHeld):
                raise Unsupported("a tile that changes and is handed on")
            code = self._code
            slot = self._slots[value] = code.variable(f"[{TILE_WORDS} x i64]")
            for place, word in enumerate(held.words):
                code.store(word, slot, place)
        self._held[value] = held

    def _get(self, value: Value) -> Held:
        held, slot = self._held[value], self._slots.get(value)
        if slot is None:
            return held
        return held.over([self._code.load(slot, place) for place in range(TILE_WORDS)])

    def _number(self, value: Value) -> Text:
        (word,) = self._get(value).words
        return word

    # ---- operations that call out --------------------------------------------------------------

    def _site(self, op: Op, is_dispatched: bool = False) -> tuple[int, Site]:
        used = dict.fromkeys([*op.operands, *_captured(op)])
        given = [(value, self._get(value)) for value in used]
        made = [(value, _result(value)) for value in op.results]
        tiles = set(_changes(op))
        changed = [n for n, (value, _) in enumerate(given) if value in tiles]
        self._sites.append(Site(op, is_dispatched, given, made, changed))
        return len(self._sites) - 1, self._sites[-1]

    def _put(self, site: Site) -> None:
        words = [word for _, held in site.given for word in held.key]
        words += [word for _, held in site.given for word in held.place]
        for place, word in enumerate(words):
            self._code.store(word, self._operands, place)

    def _checked(self, code: Text) -> None:
        """Go on where a call has gone well."""
        on = self._code.fresh("on")
        self._code.branch(self._code.compare("eq", code, "0"), on, self._failed)
        self._code.label(on)

    def _dispatched(self, number: int, site: Site) -> None:
        code = self._code
        heads = code.entry("%sites", number)
        given = f"ptr %state, ptr {heads}, i64 {number}, i64 {site.key}"
        self._checked(code.do(f"call i64 {self._dispatch}({given})"))

    def _ask(self, number: int, site: Site) -> list[Held]:
        """Let Python execute an operation, or what it has done before; what it makes."""
        code = self._code
        self._put(site)
        if site.is_dispatched:
            self._dispatched(number, site)
        else:
            self._checked(code.do(f"call i64 {self._callback}(i64 {number})"))
        at, made = 0, list[Held]()
        for _, held in site.made:
            made.append(
                held.over([code.load(self._operands, at + n) for n in range(len(held.words))])
            )
            at += len(held.words)
        for index in site.changed:
            slot = self._slots[site.given[index][0]]
            for place in range(TILE_WORDS):
                code.store(code.load(self._operands, at + place), slot, place)
            at += TILE_WORDS
        return made

    def _by_python(self, op: Op) -> None:
        number, site = self._site(op)
        if _renames(op) and all(isinstance(held, Number | TileHeld) for _, held in site.given):
            site = self._sites[-1] = site._replace(is_dispatched=True)
        self._bind(op.results, self._ask(number, site))

    def _refused(self, op: Op, tests: Sequence[Text]) -> None:
        """Let Python say what is wrong with an operation, where a test does not hold."""
        code, test = self._code, self._code.both(tests)
        if test == "true":
            return
        on, wrong = code.fresh("on"), code.fresh("wrong")
        code.branch(test, on, wrong)
        code.label(wrong)
        self._ask(*self._site(op))
        code.jump(self._failed)
        code.label(on)

    # ---- flow ----------------------------------------------------------------------------------

    def _block(self, block: Block) -> list[Held]:
        """Write a block; what its last operation hands on."""
        for op in block.ops:
            if is_terminator(op):
                return [self._get(value) for value in self._handed(op)]
            self._op(op)
        return []

    def _handed(self, op: Op) -> list[Value]:
        if any(value in self._changing for value in op.operands):
            raise Unsupported("a tile that changes and is handed on")
        return op.operands

    def _op(self, op: Op) -> None:
        definition = definition_of(op)
        write = None if definition is None else _WRITERS.get(definition)
        if write is not None:
            write(self, op)
        elif sync_ops.is_static(op):
            self._order(op)
        elif op.insn is not None:
            self._instruction(op)
        elif arithmetic_of(op) is not None:
            self._arithmetic(op)
        else:
            self._by_python(op)

    def _variables(self, held: Sequence[Held]) -> list[list[Text]]:
        return [[self._code.variable("i64", word) for word in each.words] for each in held]

    def _assign(
        self, slots: Sequence[Sequence[Text]], kinds: Sequence[Held], held: Sequence[Held]
    ) -> None:
        """Give variables new values, all at once."""
        for kind, each in zip(kinds, held, strict=True):
            if kind.kind != each.kind:
                raise Unsupported("values of several kinds in one place")
        for places, each in zip(slots, held, strict=True):
            for place, word in zip(places, each.words, strict=True):
                self._code.store(word, place)

    def _read(self, slots: Sequence[Sequence[Text]], kinds: Sequence[Held]) -> list[Held]:
        return [
            kind.over([self._code.load(place) for place in places])
            for places, kind in zip(slots, kinds, strict=True)
        ]

    def _bind(self, values: Iterable[Value], held: Iterable[Held]) -> None:
        for value, each in zip(values, held, strict=True):
            self._set(value, each)

    def _for(self, op: Op) -> None:
        code, body = self._code, op.regions[0]
        lower, upper, step = (self._number(value) for value in op.operands[:3])
        self._refused(op, [code.compare("sgt", step, "0")])
        kinds = [self._get(value) for value in self._handed(op)[3:]]
        carried = self._variables(kinds)
        index = code.variable("i64", lower)
        head, inside, done = (code.fresh(each) for each in ("head", "body", "done"))
        code.jump(head)
        code.label(head)
        now = code.load(index)
        code.branch(code.compare("slt", now, upper), inside, done)
        code.label(inside)
        self._bind(body.args, [Number((now,)), *self._read(carried, kinds)])
        self._assign(carried, kinds, self._block(body))
        code.store(code.number("add", now, step), index)
        code.jump(head)
        code.label(done)
        self._bind(op.results, self._read(carried, kinds))

    def _while(self, op: Op) -> None:
        code, (before, after) = self._code, op.regions
        kinds = [self._get(value) for value in self._handed(op)]
        carried = self._variables(kinds)
        head, inside, done = (code.fresh(each) for each in ("head", "body", "done"))
        code.jump(head)
        code.label(head)
        self._bind(before.args, self._read(carried, kinds))
        go_on, *passed = self._block(before)
        code.branch(code.compare("ne", go_on.words[0], "0"), inside, done)
        code.label(inside)
        self._bind(after.args, passed)
        self._assign(carried, kinds, self._block(after))
        code.jump(head)
        code.label(done)
        self._bind(op.results, passed)

    def _if(self, op: Op) -> None:
        code = self._code
        then, other, done = (code.fresh(each) for each in ("then", "else", "done"))
        code.branch(code.compare("ne", self._number(op.operands[0]), "0"), then, other)
        code.label(then)
        kinds = self._block(op.regions[0])
        slots = self._variables(kinds)
        code.jump(done)
        code.label(other)
        if len(op.regions) > 1:
            self._assign(slots, kinds, self._block(op.regions[1]))
        code.jump(done)
        code.label(done)
        self._bind(op.results, self._read(slots, kinds))

    def _switch(self, op: Op) -> None:
        code, cases = self._code, op.attrs["cases"]
        assert isinstance(cases, ArrayAttr)
        numbers = [str(case.value) for case in cases.items if isinstance(case, IntAttr)]
        labels = [code.fresh("case") for _ in op.regions]
        done, chosen = code.fresh("done"), self._number(op.operands[0])
        for number, label in zip(numbers, labels[1:], strict=True):
            other = code.fresh("other")
            code.branch(code.compare("eq", chosen, number), label, other)
            code.label(other)
        code.jump(labels[0])
        kinds: list[Held] = []
        slots: list[list[Text]] = []
        for region, label in zip(op.regions, labels, strict=True):
            code.label(label)
            found = self._block(region)
            if label is labels[0]:
                kinds, slots = found, self._variables(found)
            else:
                self._assign(slots, kinds, found)
            code.jump(done)
        code.label(done)
        self._bind(op.results, self._read(slots, kinds))

    def _inside(self, op: Op) -> None:
        self._bind(op.results, self._block(op.regions[0]))

    def _section(self, op: Op) -> None:
        code = self._code
        here = self._here[_HERE.index(core_of(op))]
        code.when(code.compare("ne", here, "0"), lambda: self._inside(op))

    def _call(self, op: Op) -> None:
        callee = op.attrs["callee"]
        assert isinstance(callee, SymbolAttr)
        function = self._module.function(callee.name)
        if function is None or function.body is None or callee.name in self._calls:
            raise Unsupported(f"{op.name} of a function without an end, or none")
        if "pto.kernel_kind" in function.attrs:
            raise Unsupported(f"{op.name} of a function that not every core runs")
        self._calls.append(callee.name)
        self._bind(function.params, [self._get(value) for value in self._handed(op)])
        self._bind(op.results, self._block(function.body))
        self._calls.pop()

    # ---- numbers, views, handles ---------------------------------------------------------------

    def _arithmetic(self, op: Op) -> None:
        given = [self._get(value) for value in op.operands]
        if not all(isinstance(each, Number) for each in given):
            self._by_python(op)
            return
        scalar = scalar_of(op) if len(op.results) == 1 else None
        if scalar is None:
            self._by_python(op)
            return
        code, numbers = self._code, [each.words[0] for each in given]
        kind = op.result.type
        made = Number(("",), isinstance(kind, ScalarType) and kind.is_float)
        if scalar.tests is None:
            self._set(op.result, made.over([scalar.word(code, numbers)]))
            return
        slot = code.variable("i64")
        fast, slow, done = (code.fresh(each) for each in ("fast", "slow", "done"))
        code.branch(code.both(scalar.tests(code, numbers)), fast, slow)
        code.label(fast)
        code.store(scalar.word(code, numbers), slot)
        code.jump(done)
        code.label(slow)
        (held,) = self._ask(*self._site(op))
        code.store(held.words[0], slot)
        code.jump(done)
        code.label(done)
        self._set(op.result, made.over([code.load(slot)]))

    def _query(self, op: Op) -> None:
        self._asked.append(Asked(op, is_home=False))
        self._set(op.result, Number((self._constant(),)))

    def _view(self, op: Op) -> None:
        code, source = self._code, self._get(op.operands[0])
        if not isinstance(source, Address | Window):
            self._by_python(op)
            return
        sizes = [self._number(value) for value in (*op.group("shape"), *op.group("strides"))]
        self._refused(op, [code.compare("sge", size, "0") for size in sizes])
        given = op.attrs.get("layout")
        layout = Layout[given.value.upper()] if isinstance(given, EnumAttr) else None
        assert isinstance(op.result.type, PtrType | ViewType | ShapedType)
        element = op.result.type.element.dtype
        self._set(op.result, Window((*sizes, *source.words[-2:]), element, layout))

    def _partition(self, op: Op) -> None:
        code, source = self._code, self._get(op.operands[0])
        offsets = [self._number(value) for value in op.group("offsets")]
        sizes = [self._number(value) for value in op.group("sizes")]
        if (
            not isinstance(source, Window)
            or source.element is None
            or not source.rank == len(offsets) == len(sizes)
        ):
            self._by_python(op)
            return
        tests: list[Text] = []
        skipped = "0"
        for start, size, extent, stride in zip(
            offsets, sizes, source.sizes, source.strides, strict=True
        ):
            tests += [code.compare("sge", each, "0") for each in (start, size)]
            tests.append(code.compare("sle", code.number("add", start, size), extent))
            skipped = code.number("add", skipped, code.number("mul", start, stride))
        self._refused(op, tests)
        buffer, offset = source.place
        place = buffer, code.number("add", offset, self._bytes(skipped, source.element))
        self._set(op.result, source.over((*sizes, *source.strides, *place)))

    def _bytes(self, elements: Text, kind: DType) -> Text:
        """So many elements in bytes, of which those of 4 bits share one."""
        if kind.is_packed:
            elements = self._code.number("ashr", elements, "1")
        return self._code.number("mul", elements, str(kind.itemsize))

    def _moved(self, op: Op) -> None:
        code, source = self._code, self._get(op.operands[0])
        if not isinstance(source, Address) or source.element is None:
            self._by_python(op)
            return
        size = str(source.element.itemsize)
        skipped = code.number("mul", self._number(op.operands[1]), size)
        buffer, offset = source.words
        self._set(op.result, source.over((buffer, code.number("add", offset, skipped))))

    def _alloc(self, op: Op) -> None:
        made, address = op.result, op.operand("addr")
        if not isinstance(made.type, TileBufType) or address is None:
            self._by_python(op)
            return
        code, spec = self._code, made.type.spec
        sizes: list[Text] = []
        tests: list[Text] = []
        for label, static, most in (
            ("valid_row", spec.valid_row, spec.rows),
            ("valid_col", spec.valid_col, spec.cols),
        ):
            given = op.operand(label)
            if given is None:
                sizes.append(str(most if static == DYNAMIC else static))
                continue
            sizes.append(self._number(given))
            tests.append(code.compare("ule", sizes[-1], str(most)))
        if tests:
            self._refused(op, tests)
        self._asked.append(Asked(op, is_home=True))
        self._set(made, TileHeld((self._constant(), self._number(address), *sizes)))

    def _resize(self, op: Op) -> None:
        tile, rows, cols = op.operands
        kind = tile.type
        if not isinstance(kind, TileBufType):
            self._by_python(op)
            return
        code, sizes = self._code, [self._number(value) for value in (rows, cols)]
        limits = zip(sizes, (kind.spec.rows, kind.spec.cols), strict=True)
        self._refused(op, [code.compare("ule", size, str(most)) for size, most in limits])
        for place, size in zip((2, 3), sizes, strict=True):
            code.store(size, self._slots[tile], place)

    def _sizes(self, op: Op) -> None:
        held = self._get(op.operands[0])
        if not isinstance(held, TileHeld):
            self._by_python(op)
            return
        rows, cols = held.words[2:]
        found = {memory.VALID_ROWS: [rows], memory.VALID_COLS: [cols]}
        definition = definition_of(op)
        words = found.get(definition, [rows, cols]) if definition else []
        self._bind(op.results, [Number((word,)) for word in words])

    # ---- instructions --------------------------------------------------------------------------

    def _instruction(self, op: Op) -> None:
        number, site = self._site(op, is_dispatched=True)
        if (
            op.results
            or site.changed
            or not all(isinstance(held, Number | Window | TileHeld) for _, held in site.given)
        ):
            self._sites.pop()
            self._by_python(op)
            return
        self._put(site)
        self._dispatched(number, site)

    def _order(self, op: Op) -> None:
        """What only orders."""
        effects, code = effects_of(op), self._code
        flags = [e for e in effects if isinstance(e, Signal | Wait) and isinstance(e.token, Flag)]
        if len(flags) > 1 or any(not isinstance(e, Barrier) and e not in flags for e in effects):
            self._by_python(op)
            return
        number, _ = self._site(op)
        flag = self._flag(flags[0]) if flags else MISSED
        raises = int(bool(flags) and isinstance(flags[0], Signal))
        given = f"ptr %state, i64 {number}, i64 {flag}, i64 {raises}"
        self._checked(code.do(f"call i64 {self._orders}({given})"))

    def _flag(self, effect: Signal | Wait) -> int:
        token = effect.token
        assert isinstance(token, Flag)
        if token not in self._flags:
            self._flags[token] = len(self._flags)
            self._pipes.append((token.src, token))
        return self._flags[token]


def _result(value: Value) -> Held:
    """What Python hands back for a result."""
    if isinstance(value.type, ScalarType):
        return Number(("",), value.type.is_float)
    return TileHeld(("",) * TILE_WORDS) if isinstance(value.type, TileBufType) else Other(("",))


def _renames(op: Op) -> bool:
    """Whether an operation only gives a tile another name: the same one for the same operands."""
    definition = definition_of(op)
    binds = op.insn is not None and bool(op.insn.binds) and not op.insn.moves_entries
    return binds or (definition is not None and bool(definition.renames))


def _captured(op: Op) -> Iterator[Value]:
    """Values from outside that the regions of an operation use."""
    inside = {value for region in op.regions for value in region.args}
    for region in op.regions:
        for each in region.walk():
            inside.update(each.results)
            inside.update(value for inner in each.regions for value in inner.args)
            yield from (value for value in each.operands if value not in inside)


def _changes(op: Op) -> list[Value]:
    """The tiles to which an operation may give other sizes, or another place."""
    if op.regions:
        return [
            value for region in op.regions for each in region.walk() for value in _changes(each)
        ]
    used, definition = op.operands, definition_of(op)
    if op.insn is not None and not op.insn.moves_entries:
        used = [value for value in (op.operand(op.insn.binds),) if value is not None]
    elif op.insn is None and definition is not None and definition is not memory.SET_VALID:
        is_known = definition in _WRITERS or definition.renames or definition.pure
        used = [] if is_known or definition.is_terminator else used
    return [value for value in used if isinstance(value.type, TileBufType)]


_WRITERS: dict[Definition, Callable[[_Writer, Op], None]] = {
    scf.FOR: _Writer._for,
    scf.WHILE: _Writer._while,
    scf.IF: _Writer._if,
    scf.SWITCH: _Writer._switch,
    scf.EXECUTE: _Writer._inside,
    scf.FUSION: _Writer._inside,
    sync.CUBE_SECTION: _Writer._section,
    sync.VECTOR_SECTION: _Writer._section,
    func.CALL: _Writer._call,
    memory.MAKE_VIEW: _Writer._view,
    memory.PARTITION: _Writer._partition,
    memory.ADDPTR: _Writer._moved,
    memory.ALLOC: _Writer._alloc,
    memory.SET_VALID: _Writer._resize,
    memory.GET_VALID: _Writer._sizes,
    memory.VALID_ROWS: _Writer._sizes,
    memory.VALID_COLS: _Writer._sizes,
    **dict.fromkeys(system.QUERIES, _Writer._query),
}
