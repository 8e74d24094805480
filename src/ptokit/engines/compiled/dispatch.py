"""The call of an instruction in a driver: done as it was done before with operands like these.

An operation of a program meets few different operands: tiles at the same addresses, views of the
same sizes elsewhere in memory. What was found out of an instruction with such operands is a
*variant*: the functions of the library that do it with all they are handed, what must be defined
before, what is defined or undefined afterwards, and how far behind its pointer a view reaches. Of
an operation that gives a tile another name it is the name.

The dispatcher is one function for all programs: it looks for the variant, makes sure of what the
executor makes sure of (`machine/executor.py`), and calls. Where there is no variant, or something
does not hold, it asks Python, which executes the operation itself and says what is wrong with it.

Words of the calls are written one after the other: they are the stream that can be repeated
(`replay.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum, auto
from functools import cache

from ptokit.engines.compiled.text import Function, Value, module_text

MISSED = -1  # what nobody has asked for
_Stretch = Callable[..., list[Value]]
_Act = Callable[[Value, Value, Value, Value, Value], None]


class _Counted(IntEnum):
    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[int]) -> int:
        return count


class State(_Counted):
    """The words of a running driver."""

    BASES = auto()  # where the memories begin, by number
    EPOCHS = auto()  # of the memories
    SHADOWS = auto()
    BUFFERS = auto()  # arrays that pointers point to: memory, offset there, bytes, whether written
    OUT = auto()  # where the next words of the stream go
    END = auto()
    SLOW = auto()  # whether Python executes all operations: a pipe waits
    SETTINGS = auto()  # changes with the registers of the core
    CALLBACK = auto()
    DISPATCH = auto()
    ORDER = auto()
    OPERANDS = auto()  # the words of the operation in hand
    FLAGS = auto()  # by number: 0, or 1 + the site that has raised it
    CONSTANTS = auto()  # arguments, and what does not change while a core runs


class Variant(_Counted):
    """The words of a variant; the key follows them, then what they count, in their order."""

    NEXT = auto()
    SETTINGS = auto()  # with which it was found; MISSED: they make no difference
    LOW = auto()  # bytes past its pointer between which the view lies
    HIGH = auto()
    VIEW = auto()  # where the pointer of the view is among the operands; MISSED: there is none
    WRITES = auto()  # whether the view is written
    CALLS = auto()  # functions of the library
    WORDS = auto()  # of the stream
    PATCHES = auto()  # places in them that depend on the pointer
    CHECKED = auto()  # accesses that must be defined before
    WRITTEN = auto()  # that are defined afterwards
    LOST = auto()  # that are not
    RESULTS = auto()  # words that take the place of the operands
    KEY = auto()


BUFFER_WORDS = 4
ACCESS_WORDS = 3  # memory, the epoch at which it was last defined, and how many rows follow
ROW_WORDS = 4  # start, width, pitch, number

_LANES = 64
_BYTES = f"<{_LANES} x i8>"
_FOLD = "define internal i8 @{}(ptr %shadow, ptr %rows, i64 %count) nounwind"
_FILL = "define internal void @{}(ptr %shadow, ptr %rows, i64 %count, i8 %value) nounwind"
_ORDER = "define i64 @{}(ptr %state, i64 %number, i64 %flag, i64 %raises) nounwind"
_DISPATCH = "define i64 @{}(ptr %state, ptr %site, i64 %number, i64 %count) nounwind"


@cache
def dispatcher(name: str) -> str:
    """The module of the dispatcher."""
    fold_and, fold_or, fill = (f"{name}_{each}" for each in ("and", "or", "fill"))
    return module_text(
        [
            _folded(fold_and, "and", "-1"),
            _folded(fold_or, "or", "0"),
            _filled(fill),
            _dispatched(name, fold_and, fold_or, fill),
        ]
    )


@cache
def orderer(name: str) -> str:
    """The module of what only orders: flags are words, as long as nobody waits."""
    code = Function(name, _ORDER, "unreachable")
    ask, quick, flag, done = (code.fresh(each) for each in ("ask", "quick", "flag", "done"))
    code.branch(code.compare("ne", code.load("%state", State.SLOW), "0"), ask, quick)
    code.label(quick)
    code.branch(code.compare("eq", "%flag", str(MISSED)), done, flag)
    code.label(flag)
    place = code.entry(code.load("%state", State.FLAGS, "ptr"), "%flag")
    word, raises = code.load(place), code.compare("ne", "%raises", "0")
    is_down, is_up = code.compare("eq", word, "0"), code.compare("sgt", word, "0")
    may = code.do(f"select i1 {raises}, i1 {is_down}, i1 {is_up}")
    by = code.number("add", "%number", "1")
    after, set_ = code.do(f"select i1 {raises}, i64 {by}, i64 0"), code.fresh("set")
    code.branch(may, set_, ask)
    code.label(set_)
    code.store(after, place)
    code.jump(done)
    code.label(done)
    code.act("ret i64 0")
    code.label(ask)
    asked = code.load("%state", State.CALLBACK, "ptr")
    code.act(f"ret i64 {code.do(f'call i64 {asked}(i64 %number)')}")
    code.label(code.fresh("never"))
    return code.text()


def _folded(name: str, operation: str, start: str) -> Function:
    """All shadow bytes of some rows in one, by `and` or `or`."""
    code = Function(name, _FOLD, "unreachable")
    splat = ", ".join([f"i8 {start}"] * _LANES)

    def stretch(begin: Value, width: Value, *held: Value) -> list[Value]:
        whole = code.number("and", width, str(-_LANES))

        def vector(index: Value, found: Value) -> list[Value]:
            here = code.do(f"load {_BYTES}, ptr {code.behind(begin, index)}, align 1")
            return [code.do(f"{operation} {_BYTES} {found}, {here}")]

        def single(index: Value, found: Value) -> list[Value]:
            here = code.do(f"load i8, ptr {code.behind(begin, index)}")
            return [code.do(f"{operation} i8 {found}, {here}")]

        wide = code.loop("0", whole, str(_LANES), vector, [(_BYTES, held[0])])
        return wide + code.loop(whole, width, "1", single, [("i8", held[1])])

    wide, one = _each_stretch(code, stretch, [(_BYTES, f"<{splat}>"), ("i8", start)])
    folded = code.call("i8", f"llvm.vector.reduce.{operation}.v{_LANES}i8", (_BYTES, wide))
    code.act(f"ret i8 {code.do(f'{operation} i8 {folded}, {one}')}")
    return code


def _filled(name: str) -> Function:
    code = Function(name, _FILL)

    def stretch(begin: Value, width: Value) -> list[Value]:
        given = ("ptr", begin), ("i8", "%value"), ("i64", width), ("i1", "false")
        code.call("void", "llvm.memset.p0.i64", *given)
        return []

    _each_stretch(code, stretch, [])
    return code


def _each_stretch(
    code: Function, stretch: _Stretch, carried: Sequence[tuple[str, Value]]
) -> list[Value]:
    """`stretch(begin, width, *carried)` for every stretch of bytes of every row."""
    kinds = [kind for kind, _ in carried]

    def row(index: Value, *held: Value) -> list[Value]:
        at = code.entry("%rows", code.number("mul", index, str(ROW_WORDS)))
        start, width, pitch, number = (code.load(at, place) for place in range(ROW_WORDS))
        first = code.behind("%shadow", start)

        def one(turn: Value, *inner: Value) -> list[Value]:
            begin = code.at(first, turn, pitch)
            return stretch(begin, width, *inner)

        return code.loop("0", number, "1", one, list(zip(kinds, held, strict=True)))

    return code.loop("0", "%count", "1", row, carried)


def _dispatched(name: str, fold_and: str, fold_or: str, fill: str) -> Function:
    code = Function(name, _DISPATCH, "ret i64 0")
    miss, search, compare = (code.fresh(each) for each in ("miss", "search", "compare"))
    differs, found = code.fresh("differs"), code.fresh("found")
    operands = code.load("%state", State.OPERANDS, "ptr")
    at = code.variable("ptr", code.load("%site", 0, "ptr"))
    code.branch(code.compare("ne", code.load("%state", State.SLOW), "0"), miss, search)

    code.label(search)
    variant = code.load(at, 0, "ptr")
    code.branch(code.do(f"icmp eq ptr {variant}, null"), miss, compare)
    code.label(compare)
    settings = code.load(variant, Variant.SETTINGS)
    free = code.compare("eq", settings, str(MISSED))
    same = code.compare("eq", settings, code.load("%state", State.SETTINGS))
    key = code.entry(variant, Variant.KEY)

    def word(index: Value, differences: Value) -> list[Value]:
        pair = (code.load(each, index) for each in (key, operands))
        return [code.number("or", differences, code.number("xor", *pair))]

    (differences,) = code.loop("0", "%count", "1", word, [("i64", "0")])
    equal = code.compare("eq", differences, "0")
    code.branch(code.both([equal, code.do(f"or i1 {free}, {same}")]), found, differs)
    code.label(differs)
    code.act(f"store ptr {code.load(variant, Variant.NEXT, 'ptr')}, ptr {at}")
    code.jump(search)

    code.label(found)
    _run(code, variant, code.entry(key, "%count"), operands, miss, (fold_and, fold_or, fill))
    code.act("ret i64 0")
    code.label(miss)
    asked = code.load("%state", State.CALLBACK, "ptr")
    code.act(f"ret i64 {code.do(f'call i64 {asked}(i64 %number)')}")
    code.label(code.fresh("never"))
    return code


def _run(
    code: Function,
    variant: Value,
    functions: Value,
    operands: Value,
    miss: str,
    helpers: tuple[str, str, str],
) -> None:
    """Make sure of what a variant needs, call its functions, and note what it leaves."""
    fold_and, fold_or, fill = helpers
    calls, words = code.load(variant, Variant.CALLS), code.load(variant, Variant.WORDS)
    template = code.entry(functions, calls)
    patches = code.entry(template, words)
    cursor = code.variable("ptr", code.entry(patches, code.load(variant, Variant.PATCHES)))
    out, end = (code.load("%state", each, "ptr") for each in (State.OUT, State.END))
    after = code.entry(out, words)
    _unless(code, code.do(f"icmp ugt ptr {after}, {end}"), miss)
    accesses = _Accesses(code, cursor)

    def check(shadow: Value, rows: Value, count: Value, clean: Value, epoch: Value) -> None:
        given = f"i8 @{fold_and}(ptr {shadow}, ptr {rows}, i64 {count})"
        is_defined = code.do(f"icmp ne i8 {code.do(f'call {given}')}, 0")
        _unless(code, code.do(f"xor i1 {is_defined}, true"), miss)
        code.store(epoch, clean)

    def mark(shadow: Value, rows: Value, count: Value, clean: Value, epoch: Value) -> None:
        code.act(f"call void @{fill}(ptr {shadow}, ptr {rows}, i64 {count}, i8 1)")
        code.store(epoch, clean)

    def lose(shadow: Value, rows: Value, count: Value, place: Value, epoch: Value) -> None:
        given = f"i8 @{fold_or}(ptr {shadow}, ptr {rows}, i64 {count})"

        def forget() -> None:
            code.act(f"call void @{fill}(ptr {shadow}, ptr {rows}, i64 {count}, i8 0)")
            code.store(code.number("add", epoch, "1"), place)

        code.when(code.do(f"icmp ne i8 {code.do(f'call {given}')}, 0"), forget)

    accesses.each(code.load(variant, Variant.CHECKED), check)
    _view(code, variant, template, operands, patches, (out, words), miss)
    code.act(f"store ptr {after}, ptr {code.entry('%state', State.OUT)}")
    bases, record = code.load("%state", State.BASES, "ptr"), code.variable("ptr", out)

    def call(index: Value) -> list[Value]:
        here = code.load(record, 0, "ptr")
        function = code.load(functions, index, "ptr")
        code.act(f"call void {function}(ptr {code.entry(here, 2)}, ptr {bases})")
        code.act(f"store ptr {code.entry(here, code.load(here, 1))}, ptr {record}")
        return []

    code.loop("0", calls, "1", call)
    accesses.each(code.load(variant, Variant.WRITTEN), mark)
    accesses.each(code.load(variant, Variant.LOST), lose, is_lost=True)
    results = code.load(cursor, 0, "ptr")

    def handed(index: Value) -> list[Value]:
        code.store(code.load(results, index), operands, index)
        return []

    code.loop("0", code.load(variant, Variant.RESULTS), "1", handed)


def _unless(code: Function, test: Value, elsewhere: str) -> None:
    """Go on unless a test holds."""
    here = code.fresh("on")
    code.branch(test, elsewhere, here)
    code.label(here)


class _Accesses:
    """Walks the accesses of a variant, one kind after the other."""

    def __init__(self, code: Function, cursor: Value) -> None:
        self._code, self._cursor = code, cursor
        self._epochs = code.load("%state", State.EPOCHS, "ptr")
        self._shadows = code.load("%state", State.SHADOWS, "ptr")

    def each(self, count: Value, act: _Act, *, is_lost: bool = False) -> None:
        """`act(shadow, rows, count, clean, epoch)` where the epoch is another one than it was."""
        code = self._code

        def one(index: Value) -> list[Value]:
            here = code.load(self._cursor, 0, "ptr")
            memory, clean, rows = (code.load(here, place) for place in range(ACCESS_WORDS))
            first = code.entry(here, ACCESS_WORDS)
            behind = code.entry(first, code.number("mul", rows, str(ROW_WORDS)))
            code.act(f"store ptr {behind}, ptr {self._cursor}")
            place = code.entry(self._epochs, memory)
            epoch, shadow = code.load(place), code.load(self._shadows, memory, "ptr")
            if is_lost:
                act(shadow, first, rows, place, epoch)
            else:
                known = code.entry(here, 1)
                code.when(
                    code.compare("ne", clean, epoch),
                    lambda: act(shadow, first, rows, known, epoch),
                )
            return []

        code.loop("0", count, "1", one)


def _view(
    code: Function,
    variant: Value,
    template: Value,
    operands: Value,
    patches: Value,
    stream: tuple[Value, Value],
    miss: str,
) -> None:
    """Copy the words of the calls, those that depend on the pointer of the view as it is now."""
    out, words = stream
    shift, memory = code.variable("i64", "0"), code.variable("i64", "0")
    place = code.load(variant, Variant.VIEW)

    def bound() -> None:
        at = code.entry(operands, place)
        buffer = code.number("mul", code.load(at), str(BUFFER_WORDS))
        row = code.entry(code.load("%state", State.BUFFERS, "ptr"), buffer)
        number, base, size, writeable = (code.load(row, each) for each in range(BUFFER_WORDS))
        offset = code.load(at, 1)
        low = code.number("add", offset, code.load(variant, Variant.LOW))
        high = code.number("add", offset, code.load(variant, Variant.HIGH))
        wrong = [
            code.compare("slt", low, "0"),
            code.compare("sgt", high, size),
            code.compare("slt", writeable, code.load(variant, Variant.WRITES)),
        ]
        for test in wrong:
            _unless(code, test, miss)
        code.store(number, memory)
        code.store(code.number("add", base, offset), shift)

    code.when(code.compare("ne", place, str(MISSED)), bound)

    def copied(index: Value) -> list[Value]:
        code.store(code.load(template, index), out, index)
        return []

    code.loop("0", words, "1", copied)

    def patched(index: Value) -> list[Value]:
        at = code.load(patches, index)
        code.store(code.load(memory), out, at)
        behind = code.number("add", at, "1")
        code.store(code.number("add", code.load(out, behind), code.load(shift)), out, behind)
        return []

    code.loop("0", code.load(variant, Variant.PATCHES), "1", patched)
