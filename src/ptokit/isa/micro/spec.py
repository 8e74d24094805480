"""The vocabulary in which a micro-operation is defined: the level below tiles.

Beside tiles, which are instructions (`isa/spec.py`), stand the registers of which the vector unit
of A5 is made. One block per operation says everything about it:

    @lanewise("a:V b:V mask:M -> dst:V", types=ARITHMETIC)
    def vadd(a: Expr, b: Expr) -> Expr:
        \"\"\"Add two registers.\"\"\"
        return a + b

The signature names operands and results with their kinds, in the order of the text. Letters are
kinds that depend on each other: everything under `V` is a register of the element type T, `M` a
mask with a bit for each lane of T, `S` a number of type T; `W` and `N` are a register and a mask of
another type U. The other kinds stand for themselves.

A body is handed lanes and returns lanes; whoever executes it (machine/vector) takes the mask into
account, once for all operations, as `masking` says. What touches memory names a footprint
(footprints.py): execution, bounds, poison and the checker of order all go by it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType, dtype
from ptokit.base.patterns import regex
from ptokit.base.starting import parameters_of
from ptokit.isa.effects import Pipe
from ptokit.isa.expr import Expr
from ptokit.isa.freedom import Freedom, Freedoms, freedoms
from ptokit.isa.micro.footprints import Footprint
from ptokit.isa.micro.idioms import Fold
from ptokit.isa.table import Table
from ptokit.isa.words import TEXT

REGISTER_BYTES = 256  # of a vector register; a mask has a bit for each of them
BYTE_MAX, HALF_MAX, WORD_MAX = (1 << 8) - 1, (1 << 16) - 1, (1 << 32) - 1  # of fields

KINDS: Mapping[str, str] = MappingProxyType(
    {  # of operands and results -> what messages call them
        "V": "a vector register",
        "W": "a vector register of another type",
        "X": "a register of indices",
        "L": "a vector register, or a number for all its lanes",
        "G": "a vector register with lanes of its own",
        "H": "a vector register of any type and lanes of its own",
        "E": "a vector register, or a mask",
        "P": "a register or mask of the device",
        "M": "a mask with a bit per lane",
        "N": "a mask of lanes of its own width",
        "B": "a mask, every bit of it",
        "S": "a number of the element type",
        "ub": "a pointer into the unified buffer",
        "gm": "a pointer into global memory",
        "l1": "a pointer into L1",
        "l0a": "a pointer to a left operand",
        "l0b": "a pointer to a right operand",
        "l0c": "a pointer to an accumulator",
        "bt": "a pointer into the bias table",
        "fb": "a pointer to parameters of the fix pipe",
        "factor": "a number, or a pointer to parameters of the fix pipe",
        "ptr": "a pointer",
        "align": "the state of a stream",
        "index": "an index",
        "int": "an integer",
        "num": "a number",
    }
)


class Masking(Enum):
    """What an inactive lane means."""

    NONE = "there is no mask"
    ZERO = "an inactive lane of the result is 0"
    WRITE = "what an inactive lane would write keeps its bytes"
    NEUTRAL = "an inactive lane counts as the neutral element"
    SELECT = "the mask chooses, and both sides are live"
    IGNORED = "the mask has no effect"


class Flow(Enum):
    """Which bytes of a result are made of which bytes of the operands."""

    LANES = "a lane is made of the same lanes"  # of the operands that are registers
    BYTES = "bytes change places: what holds for them holds for what is known of them"
    ALL = "every lane may be made of any active one"


@dataclass(frozen=True)
class Slot:
    """An operand or a result."""

    name: str
    kind: str
    is_optional: bool = False
    is_list: bool = False


@dataclass(frozen=True)
class Word:
    """An attribute: one of some words, written as a string or as a key of the dictionary.

    Without choices it is a number, or numbers, or only there; `example` is then one as it is
    written.
    """

    name: str
    choices: tuple[str, ...] = ()
    default: str | None = None  # None: it must be written
    note: str = ""
    example: str = ""

    @property
    def is_number(self) -> bool:
        written = (self.example or self.default or "").partition(" ")[0]
        return not self.choices and written.isdigit()

    @property
    def number(self) -> int | str | None:
        """The default, as a number where it is one."""
        default = self.default
        return int(default) if default is not None and default.isdigit() else default


@dataclass(frozen=True)
class Vector:
    """What a law sees of an operand or result: of a mask the element type is None."""

    lanes: int
    kind: DType | None
    spelled: str  # the element type, or the width of a mask, as it is written
    layout: str = ""
    number: int | None = None  # of a number its value, of a pointer its address, if it is known
    is_pointer: bool = False

    @property
    def bits(self) -> int:
        return 0 if self.kind is None else 8 * self.kind.itemsize

    @property
    def is_packed(self) -> bool:
        """Whether a lane is a byte of two 4-bit floats."""
        return self.kind is not None and self.kind.is_packed

    @property
    def is_pair(self) -> bool:
        """Whether a lane is two wider floats, which nothing computes with."""
        return self.spelled.endswith("x2") and not self.is_packed

    @property
    def is_float(self) -> bool:
        return self.is_pair or (self.kind is not None and self.kind.is_float)

    @property
    def is_integer(self) -> bool:
        return self.kind is not None and self.kind.is_integer and not self.is_pair

    @property
    def has_sign(self) -> bool:
        return self.kind is not None and self.is_integer and self.kind.is_signed


@dataclass(frozen=True)
class Law:
    """What holds of lanes, element types and words beside `types`: a sentence and a predicate.

    The predicate names what it looks at: operands and results (each a `Vector`, lists of them, or
    None where one is left out) and words, as they are written.
    """

    text: str
    holds: Callable[..., bool]
    fix: str = ""
    code: str = "micro-type"  # under which it is reported
    otherwise: str = ""  # what happens where it does not hold: then it may be allowed
    names: tuple[str, ...] = ()  # what it looks at, where the predicate does not name it

    @property
    def parameters(self) -> tuple[str, ...]:
        return self.names or parameters_of(self.holds)


def within(low: int, high: int, *names: str) -> tuple[Law, ...]:
    """Numbers that a field of the instruction holds, as far as they are known."""

    def holds(**given: Vector | None) -> bool:
        (one,) = given.values()
        return one is None or one.number is None or low <= one.number <= high

    what = f"is {low} to {high}" if high < WORD_MAX else f"is at least {low}"
    return tuple(
        Law(f"{name} {what}", holds, f"pass {low}, or more", names=(name,)) for name in names
    )


def aligned(name: str, alignment: int) -> Law:
    """An address that is a multiple of so many bytes, as far as it is known."""

    def holds(**given: Vector) -> bool:
        (one,) = given.values()
        return one.number is None or one.number % alignment == 0

    what = f"the address of {name} is a multiple of {alignment} bytes"
    return Law(what, holds, "move the pointer", "vector-alignment", names=(name,))


# Types of operands and results, and words, as they are written, for element types T and U.
Example = Callable[[DType, DType], Mapping[str, str]]


@dataclass(frozen=True, eq=False)
class Micro:
    """Everything known about one micro-operation."""

    name: str
    family: str
    operands: tuple[Slot, ...]
    results: tuple[Slot, ...]
    words: tuple[Word, ...]
    types: tuple[tuple[DType, ...], ...]  # of T, or of T and U; none: any
    laws: tuple[Law, ...]  # what holds beside
    masking: Masking
    flow: Flow
    # Which lanes of the result are undefined, of those of the source: where they change places.
    lost: Callable[..., Any] | None
    # What a lane is made of, as a symbol, where `lost` says of which one it is made.
    element: Callable[..., Expr] | None
    fold: Fold | None  # what the body amounts to
    footprint: Footprint | None
    is_inside: bool  # of a scope; else beside it, on a pipe of its own
    pipe: Pipe
    syntax: str  # what stands behind the name, in the language of ir/format.py; "": it follows
    aliases: tuple[str, ...]  # names that are read, never printed
    cpp: str  # the statement of C++ (emit/scopes.py); "": there is none
    called: str  # one that C++ is read by and never written as: it changes operands in place
    sets: frozenset[str]  # hidden registers that it leaves a value in
    uses: frozenset[str]  # and those that it reads
    signless: str  # how integers that say nothing of a sign are taken: i or u
    is_logical: bool  # it works on vectors of any number of lanes, not on registers
    example: Example | None  # what a sample of it shows that does not follow from its kinds
    is_generic: bool  # the language has no other text for it than the generic form
    is_lanewise: bool  # the body is a function of single elements (isa/expr.py)
    body: Callable[..., Any]
    parameters: tuple[str, ...]  # of the body
    freedom: tuple[Freedom, ...]
    doc: str

    @property
    def looks_at_data(self) -> bool:
        """Whether what memory holds may decide what is touched: by indices, masks or counts."""
        takes = {slot.kind for slot in self.operands}
        makes_mask = any(slot.kind in "MNB" for slot in self.results)
        is_of_data = self.footprint is not None or not takes.isdisjoint("VW")
        return "X" in takes or (makes_mask and is_of_data) or not self.uses.isdisjoint(_counted())

    def atomic(self, words: Mapping[str, Any], hidden: Mapping[str, Any]) -> str:
        """How it changes global memory in place: by a word of its own, or by the register."""
        return words.get("atomic") or (hidden.get("ATOMIC") or "" if "ATOMIC" in self.uses else "")

    @property
    def accumulator(self) -> int:
        """The place of the operand that is one."""
        return next(place for place, slot in enumerate(self.operands) if slot.kind == "l0c")

    def slot(self, name: str) -> Slot | None:
        """The operand or result of this name."""
        return next((s for s in (*self.operands, *self.results) if s.name == name), None)

    def word(self, name: str) -> Word | None:
        return next((w for w in self.words if w.name == name), None)

    def __repr__(self) -> str:
        return f"<{self.name}>"


@cache
def _counted() -> frozenset[str]:
    """Hidden registers in which an operation on data leaves what it has found: counts."""
    data = {"V", "W", "M", "ub"}
    setters = (r for r in MICRO.values() if not data.isdisjoint({s.kind for s in r.operands}))
    return frozenset(register for record in setters for register in record.sets)


# Statements of C++: `{all}` are the results and then the operands.
CALL = "{name}({all})"
ZEROING_CALL = "{name}({all}, MODE_ZEROING)"
MICRO: Table[Micro] = Table("ptokit.isa.micro", lambda record: {TEXT: record.aliases})
_SLOT = regex(r"(\w+)(\??)(\*?):(\w+)")


def micro(
    signature: str,
    *,
    name: str = "",
    words: Iterable[Word] = (),
    types: str = "",
    laws: Iterable[Law] = (),
    masking: Masking | None = None,
    flow: Flow = Flow.LANES,
    lost: Callable[..., Any] | None = None,
    element: Callable[..., Expr] | None = None,
    fold: Fold | None = None,
    footprint: Footprint | None = None,
    is_inside: bool = True,
    pipe: Pipe = Pipe.V,
    syntax: str = "",
    aliases: str = "",
    sets: str = "",
    uses: str = "",
    freedom: Freedoms = (),
    doc: str = "",
    is_lanewise: bool = False,
    is_logical: bool = False,
    signless: str = "",
    is_generic: bool = False,
    example: Example | None = None,
    cpp: str = "",
    called: str = "",
) -> Callable[[Callable[..., Any]], Micro]:
    """Define a micro-operation; the name of the function is its own unless one is given.

    `types` lists the element types: "i32 f32", or pairs of T and U, "i8>i16 f16>f32".
    """
    first, _, second = signature.partition("->")
    operands, results = _slots(first), _slots(second)
    masks = [slot for slot in operands if slot.name == "mask"]

    def define(body: Callable[..., Any]) -> Micro:
        full = name or body.__name__
        record = Micro(
            name=full,
            family=body.__module__.rpartition(".")[2],
            operands=operands,
            results=results,
            words=tuple(words),
            types=tuple(tuple(dtype(one) for one in each.split(">")) for each in types.split()),
            laws=tuple(laws),
            masking=masking or (Masking.ZERO if masks else Masking.NONE),
            flow=flow,
            lost=lost,
            element=element,
            fold=fold,
            footprint=footprint,
            is_inside=is_inside,
            pipe=pipe,
            syntax=syntax or _syntax(operands, results, words),
            aliases=tuple(aliases.split()),
            cpp=cpp,
            called=called,
            sets=frozenset(sets.split()),
            uses=frozenset(uses.split()),
            is_lanewise=is_lanewise,
            is_logical=is_logical,
            signless=signless or ("u" if is_logical else "i"),
            is_generic=is_generic,
            example=example,
            body=body,
            parameters=parameters_of(body),
            freedom=freedoms(freedom),
            doc=inspect.cleandoc(doc or body.__doc__ or ""),
        )
        _check(record)
        MICRO.define(record)
        return record

    return define


LANE = "lane"  # what a function of single elements calls the number of its lane


def lanewise(signature: str, **more: Any) -> Callable[[Callable[..., Any]], Micro]:
    """Define an operation by a function of single elements, given as symbols.

    A mask is a truth for each; a result that is a number is made of numbers alone.
    """
    return micro(signature, is_lanewise=True, **more)


def _slots(text: str) -> tuple[Slot, ...]:
    found = [Slot(m[1], m[4], bool(m[2]), bool(m[3])) for m in _SLOT.finditer(text)]
    unknown = {slot.kind for slot in found} - set(KINDS)
    assert not unknown, f"{text}: no kind {unknown}"
    return tuple(found)


def _syntax(operands: tuple[Slot, ...], results: tuple[Slot, ...], words: Iterable[Word]) -> str:
    """`%a, %b, %mask, @op {} : T(a), T(b), T(mask) -> T(dst)`."""
    required = [word.name for word in words if word.default is None and word.choices]
    given, made = ([f"{s.name}{'...' * s.is_list}" for s in slots] for slots in (operands, results))
    before = ", ".join([f"%{name}" for name in given] + [f"@{name}" for name in required])
    types = ", ".join(f"T({name})" for name in given)
    made = ", ".join(f"T({name})" for name in made)
    behind = f"{types} -> {made}" if types and made else types or made
    return f"{before} {{}} : {behind}" if behind else f"{before} {{}}"


def _check(record: Micro) -> None:
    """Refuse a block that contradicts itself; this runs once, at import."""
    where = f"{record.body.__module__}: {record.name}"
    assert record.doc, f"{where} has no docstring"
    names = [slot.name for slot in (*record.operands, *record.results)]
    assert len(names) == len({*names}), f"{where} has a name twice"
    known = {*names, *(word.name for word in record.words)}
    for law in record.laws:
        assert set(law.parameters) <= known, f"{where}: {law.text}: what is that?"
    is_masked = any(name == "mask" for name in names[: len(record.operands)])
    assert is_masked == (record.masking is not Masking.NONE), f"{where}: what of the mask?"
