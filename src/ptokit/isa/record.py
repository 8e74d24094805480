"""The record of an instruction: what is known of it, as data that everybody reads.

Definitions are written in the vocabulary of spec.py, which makes these records of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.isa.costs import Cost
from ptokit.isa.effects import Effects, InAuto, Pipe, Steps
from ptokit.isa.facts import Ops, Unknown, shown
from ptokit.isa.freedom import Freedom
from ptokit.isa.idioms import Find
from ptokit.isa.meaning import Body, Meaning
from ptokit.isa.origins import Origin, origin_of
from ptokit.isa.regions import Extent as Extent  # whoever defines an instruction looks here
from ptokit.isa.regions import Parts, Region, View
from ptokit.isa.scalars import Takes
from ptokit.isa.services import SERVICES

# Kinds of operands: numbers, and data; whatever else there is, is an object of some class.
NUMBERS = frozenset({"scalar", "number", "pipe", "event"})
DATA = frozenset({"tile", "conv", "global", "pointer"})


@dataclass(frozen=True)
class Operand:
    """One operand: what it may be, what is done to it, and which part of it."""

    name: str
    role: str  # in | out | inout | tmp
    # Any of tile, conv, global, pointer, scalar; pipe, event and number are scalars with a meaning
    # of their own; anything else is the `operand_kind` of the class that it is an object of.
    kinds: tuple[str, ...] = ("tile",)
    view: Region = View.VALID
    optional: bool = False
    note: str = ""
    # Handed over where it lies, its boxes as further dimensions: what makes up the rows, then the
    # columns; results have (rows, boxes of columns, columns of a box). A plain matrix where the
    # layout has no such boxes or the region cuts them.
    boxes: bool = False
    is_handle: bool = False  # only fields of the object are read, none of its bytes
    carries: bool = False  # may hold undefined elements: the body passes their state on itself
    steers: bool = False  # indices, addresses or counts: made of undefined bytes they mean nothing
    space: str = ""  # tells apart overloads whose operands differ only in their memory space
    same_as: str = ""  # the result whose storage it has to be
    refused: str = ""  # the assertion id under which an argument of any other kind is reported
    takes: Takes | None = None  # the numbers it may be, where it may be one
    # When the contents do not survive: by default of no source, and of every scratch tile.
    lost: Callable[[Ops], bool] | None = None
    # Where the hardware leaves unspecified data, beside the region the body writes or inside it.
    unspecified: Callable[[Ops], Parts | None] | None = None
    # What is cleared beside the region the body writes.
    zeroed: Callable[[Ops], Parts | None] | None = None
    # Which elements of a GlobalTensor it touches, where values decide: numbers along the axes of
    # the array that the body is handed, from all it is handed, by name. By default all of them.
    touches: Callable[[Ops, Mapping[str, Any]], tuple[Any, ...]] | None = None
    # Devices are given an address and nothing else: the memory it counts in, whatever tile was
    # declared, and the bytes of which it is cut down to a multiple.
    memory: TileType | None = None
    grain: int = 1

    @property
    def is_object(self) -> bool:
        """Whether it is neither data nor a number: a TPipe, a group, a session."""
        return not (NUMBERS | DATA).intersection(self.kinds)

    def is_lost(self, ops: Ops) -> bool:
        """Whether the contents do not survive such a call; of a temporary: whether it is used."""
        return self.role == "tmp" if self.lost is None else self.lost(ops)

    @property
    def reads(self) -> bool:
        return self.role in ("in", "inout")

    @property
    def writes(self) -> bool:
        return self.role in ("out", "inout", "tmp")

    def written(self, value: Any) -> str:
        """A number that is given for it as programs write it: PIPE_V, EVENT_ID3."""
        words = _WORDS.get(self.kinds[0], {}) if isinstance(value, int) else {}
        return words.get(value) or shown(value)


_WORDS = {
    "pipe": {int(pipe): f"PIPE_{pipe.name}" for pipe in Pipe},
    "event": {number: f"EVENT_ID{number}" for number in range(8)},
}


@dataclass(frozen=True)
class Attr:
    """A template argument: an enumeration, an integer or a flag, with its default."""

    name: str
    type: type
    default: Any = None
    note: str = ""
    choices: tuple[Any, ...] = ()  # the values it may take here; empty: all of its type
    argument: bool = False  # in C++ an argument behind the operands, not in the brackets
    also: tuple[type, ...] = ()  # enumerations whose members are taken for those of its own


@dataclass(frozen=True)
class Types:
    """Element types per target: tuples over the named operands. A missing target has none."""

    of: tuple[str, ...]
    allowed: Mapping[str, frozenset[tuple[DType, ...]]]
    ids: Mapping[str, str] = field(default_factory=dict[str, str])
    otherwise: str | Callable[[Any], str] = ""  # what happens with other types, as of a rule

    def breaks(self, ops: Ops) -> bool:
        """Whether the target has a list that the element types of the operands are not in."""
        allowed, operands = self.allowed.get(ops.target.name), [ops[name] for name in self.of]
        if allowed is None or any(operand is None for operand in operands):
            return False  # the permissive profile, or an optional operand left out
        return tuple(operand.dtype for operand in operands) not in allowed


@dataclass(frozen=True)
class Rule:
    """A legality rule: a sentence, a predicate, the id it is reported under, where it holds."""

    id: str
    text: str
    holds: Callable[[Any], bool]
    targets: frozenset[str] | None = None  # None: everywhere, also on the permissive profile
    # The advice, or a function that makes it of what the predicate is given.
    fix: str | Callable[[Any], str] = ""
    origin: Origin | None = None  # None: what origins.py says of the instruction and the id
    # What the machine does where the rule is broken, in words, or a function of the operands that
    # gives them; the body does it. Empty: nobody knows, and it is an error whatever its origin.
    otherwise: str | Callable[[Any], str] = ""
    voids: bool = False  # what the instruction writes is undefined where the rule is broken
    unknown: str = ""  # why nobody can say what happens otherwise; the record leaves it open
    # For an assertion about sizes that C++ knows when it is compiled: what a text must keep, whose
    # assembler makes no difference between such sizes and others.
    in_text: Callable[[Any], bool] | None = None
    # What the verifier of texts asks instead, of the types that are written: there it is an error.
    typed: Callable[[Any], bool] | None = None
    is_of_texts: bool = False  # nobody else states it

    def binds(self, target: str) -> bool:
        """Whether it holds on a target."""
        return self.targets is None or target in self.targets


@dataclass(frozen=True)
class Asm:
    """How the instruction is written in text; what is None follows from operands and name."""

    name: str | None = None
    ins: tuple[str, ...] | None = None  # operands in `ins(...)`, in order
    outs: tuple[str, ...] | None = None
    forms: frozenset[str] = frozenset({"sync", "l1", "l2"})
    tmp: frozenset[str] = frozenset({"l2"})  # forms that spell out the temporaries
    # Template name -> text key; further keys, divided by spaces, are read as well.
    attrs: Mapping[str, str] = field(default_factory=dict[str, str])
    # Template name -> what a text that leaves it out means, where a call would mean something else.
    absent: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # Template name -> how a call that leaves it out is then written.
    spelled: Mapping[str, Callable[[Ops], Any]] = field(
        default_factory=dict[str, Callable[[Ops], Any]]
    )
    refused: Mapping[str, str] = field(default_factory=dict[str, str])  # key -> why it is none
    # The template arguments as the text writes them, where it has fewer than a call.
    rewritten: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    # Template name -> its values as strings, one of which stands behind the types in `ins` where
    # an attribute is placed there after a comma: `ins(%s, {maskPattern = ...} : T, "row")`.
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    # Where Level 2 writes an attribute: behind `outs(...)` unless listed here as "ins" (inside the
    # parentheses, with all others), "own" (inside, alone) or "own," (the same after a comma). Pages
    # show those that are listed; "outs" is only that.
    place: Mapping[str, str] = field(default_factory=dict[str, str])  # template name -> place
    # Template name -> the operand without which the attribute says nothing.
    beside: Mapping[str, str] = field(default_factory=dict[str, str])
    suffixes: Mapping[str, str] = field(default_factory=dict[str, str])  # operand given -> ".acc"
    # Operand -> the word with which Level 2 writes it behind the types of the others:
    # `ins(%a, %b : T, T word %operand : T)`.
    clauses: Mapping[str, str] = field(default_factory=dict[str, str])
    aliases: tuple[str, ...] = ()  # further mnemonics that are read, never printed
    is_paired: bool = False  # `ins(%a : T, %b : T)` instead of `ins(%a, %b : T, T)`
    # Operands of the generic form, when not ins then outs: `a+b` is one place for both, and a name
    # that is no operand of ours a place that stays empty.
    order: tuple[str, ...] | None = None
    is_counted: bool = False  # the generic form says how many operands each place has
    # Keys that only the generic form has, always with the same member of an enumeration.
    constants: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    # Forms whose types are one plain list, operands then results: `%a, %b : T, U`, no arrow.
    plain: frozenset[str] = frozenset()
    indexed: str = ""  # the memory operand that assembly lines write with a place: %src[%row, %col]
    # Operands that may be written as an attribute instead -> its key, or keys. Pipes, events and
    # other numbers that are not data may always be, under their own names.
    literals: Mapping[str, str] = field(default_factory=dict[str, str])
    # Operands that the classes of the bindings call otherwise: their name -> ours.
    called: Mapping[str, str] = field(default_factory=dict[str, str])
    # Temporaries that older classes of the bindings did without -> the tile that each is like.
    formerly: Mapping[str, str] = field(default_factory=dict[str, str])
    # What stands behind the name where it is not `ins(...) outs(...)`, in the language of
    # ir/format.py; an operation may have several names, which differ in what is an attribute.
    syntax: Mapping[str, str] = field(default_factory=dict[str, str])
    types: Mapping[str, str] = field(default_factory=dict[str, str])  # key -> type or enumeration
    # What a text asks of the types of views: "static" sizes; "alike", the same ones known; "flat",
    # one row of them. C++ asks less, and a kernel in Python may have what a text may not.
    extents: str = ""
    is_stable: bool = True  # else the spelling is ours: the public reference has settled on none

    def __post_init__(self) -> None:
        if self.syntax:  # one form for all levels
            object.__setattr__(self, "forms", frozenset({"l2"}))

    numbers: frozenset[str] = frozenset()  # tiles for which one number may stand, the same for all
    missing: str = ""  # the word behind the operands that says that the temporaries are left out
    # Template name -> the others of which one calls for it; none: a text always writes it.
    mandatory: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    distinct: tuple[str, ...] = ()  # tiles that are not one, where all of them are written
    either: tuple[str, ...] = ()  # operands and template names of which a text writes exactly one
    # Template name -> what it follows from, the types of the tiles by operand, where a text leaves
    # it out; one that has no key there is never written.
    inferred: Mapping[str, Callable[[Mapping[str, Any]], Any]] = field(
        default_factory=dict[str, Callable[[Mapping[str, Any]], Any]]
    )
    # Optional temporaries that are supplied where a text leaves them out -> when they are needed.
    supplied: Mapping[str, Callable[[Ops], bool]] = field(
        default_factory=dict[str, Callable[[Ops], bool]]
    )


@dataclass(frozen=True)
class Cpp:
    """How C++ writes the call where it is not simply `NAME<template arguments>(operands)`.

    A pattern is a list of words: `@attr` is the value of a template argument, `operand` the type of
    an operand, `operand.T` its element type; the empty pattern is a call without brackets. The
    first pattern that can be written and shows every argument that differs from its default is
    taken. None: the template arguments in the order of the record, as far as they are needed.
    """

    brackets: tuple[str, ...] | None = None
    pointers: frozenset[str] = frozenset()  # operands taken by pointer
    method: str = ""  # the call is this method of the first operand
    # Numbers taken together as an array: its type -> the operands.
    arrays: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    # Operand -> the template argument that has no default beside it.
    asks_for: Mapping[str, str] = field(default_factory=dict[str, str])
    # Operand that may be left out here but not in C++ -> the operand it then is.
    implied: Mapping[str, str] = field(default_factory=dict[str, str])
    first: str = ""  # the template argument that, where it is given, stands before the pattern
    # The template arguments as C++ takes them, where it has fewer than the text.
    rewritten: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    casts: Mapping[str, str] = field(
        default_factory=dict[str, str]
    )  # operand -> type it is cast to
    # Where there is no such function: operands given -> what is written instead, in order; what
    # the instruction returns is the value of the last.
    calls: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


PLAIN_CALL = Cpp()
DERIVED = Asm()  # everything follows from the name and the operands
PipeOf = Pipe | Callable[[Ops], Pipe] | None


@dataclass(frozen=True, eq=False)
class Insn:
    """Everything known about one instruction."""

    name: str
    operands: tuple[Operand, ...]
    attrs: tuple[Attr, ...]
    pipe: PipeOf
    types: tuple[Types, ...]
    targets: frozenset[str]
    rules: tuple[Rule, ...]
    forms: tuple[tuple[str, ...], ...]
    asm: Asm | None
    cpp: Cpp
    cost: Cost
    sets: frozenset[str]  # configuration registers of the core it loads
    uses: frozenset[str]  # and those its meaning depends on while it runs
    uses_when: Callable[[Ops], bool] | None  # with which operands; None: with all
    ops: Mapping[str, Pipe]
    example: Mapping[str, str]
    setup: str  # statements that the example needs before the call, divided by semicolons
    more_examples: tuple[Mapping[str, str], ...]  # "on" lists the targets of one
    body: Callable[..., Any]
    doc: str
    # Whether the body treats its arrays element by element, whatever shape they share: boxed
    # operands are then handed over as arrays of more dimensions, where they lie.
    pointwise: Callable[[Ops], bool] | None
    idiom: Find | None  # the well-known loop that the body amounts to, for those who compile it
    freedom: tuple[Freedom, ...]  # what the hardware leaves open and the reference engine decides
    means: Meaning | None  # of which the body is made
    # What a call returns: the type of a number or handle, or the operand whose element type the
    # number has; "": the event of its own completion.
    returns: str
    overload_of: str  # the name it is called by, when that is the name of another record
    when: Mapping[tuple[str, ...], Mapping[str, Any]]  # template arguments a form asks for
    body_parameters: frozenset[str]
    helpers: Mapping[str, Callable[..., Any]]  # functions of the API beside the instruction
    effects: Effects | None  # what it signals, waits for and drains; None: nothing
    in_auto: InAuto
    binds: str  # the operand that is given a place, and which it then shares with `renames`
    renames: str
    streams: bool  # walks its operands element by element: two in a row need no barrier
    end: str  # of a FIFO at which it acts: "producer", "consumer" or none
    steps: tuple[Steps, ...]  # how it orders its own steps; the first that applies counts
    text_rules: tuple[Rule, ...]  # what the verifier of texts demands beside the rules

    @property
    def orders(self) -> bool:
        """Whether it only orders work: signals, waits, barriers, caches.

        A body that asks for services does more than its effects say, and is executed itself.
        """
        return self.effects is not None and not self.services

    @property
    def moves_entries(self) -> bool:
        """Whether it acts at an end of a FIFO."""
        return bool(self.end)

    @property
    def accesses_element(self) -> bool:
        """Whether it reads or writes one element behind a pointer, in the scalar unit."""
        return self.returns == "ptr" or {"ptr", "value"} <= set(self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the operands, in order."""
        return tuple(o.name for o in self.operands)

    @cached_property
    def addressed(self) -> tuple[int, ...]:
        """The operands of which a device sees only the address, in a memory of its choice."""
        return tuple(index for index, o in enumerate(self.operands) if o.memory is not None)

    @cached_property
    def numbers(self) -> tuple[tuple[Operand, Takes], ...]:
        """The operands that may be numbers, with those they take (isa/scalars.py)."""
        return tuple((o, o.takes) for o in self.operands if o.takes is not None)

    @cached_property
    def services(self) -> frozenset[str]:
        """What the body asks of the machine beside its operands (isa/services.py)."""
        own = {o.name for o in self.operands} | {a.name for a in self.attrs}
        return (self.body_parameters & SERVICES) - own

    def origin(self, rule: Rule, target: str) -> Origin:
        """Where a rule of this instruction comes from on a target."""
        return rule.origin or origin_of(self.name, rule.id, target)

    def reached(self, ops: Ops, elements: Array, shape: tuple[int, int]) -> Array | None:
        """The elements of a result of this shape that are made of some of a source.

        None: it is not said which, and may be any.
        """
        if self.means is not None:
            return self.means.form.reached(elements, shape)
        maps = self.pointwise is not None and self.pointwise(ops)
        return elements if maps and elements.shape == shape else None

    def body_for(self, ops: Ops) -> Body:
        """The body for these operands."""
        if self.leaves_open(ops):
            return _nothing
        return self.body if self.means is None else self.means.body(ops)

    def leaves_open(self, ops: Ops) -> bool:
        """Whether a broken rule makes everything undefined that these operands would be given."""
        voids = (rule for rule in self.rules if rule.voids and rule.binds(ops.target.name))
        with suppress(Unknown):  # a tile without an address, which is told in other words
            return any(not rule.holds(ops) for rule in voids)
        return False

    def case(self, ops: Ops) -> Steps | None:
        """How it orders its own steps with these operands; None: it does not say."""
        for each in self.steps:
            if ops.target.name in each.on and (each.when is None or each.when(ops)):
                return each
        return None

    def registers(self, ops: Ops) -> frozenset[str]:
        """The configuration registers that its meaning depends on with these operands."""
        return self.uses if self.uses_when is None or self.uses_when(ops) else frozenset()

    def takes(self, form: tuple[str, ...], attrs: Mapping[str, Any]) -> bool:
        """Whether an overload exists with these template arguments."""
        return all(attrs.get(name) == value for name, value in self.when.get(form, {}).items())

    def mnemonic(self, form: Iterable[str]) -> str:
        """What a text calls an overload, where it has no syntax of its own."""
        assert self.asm is not None, f"{self.name} has no text form"
        given = "".join(end for name, end in self.asm.suffixes.items() if name in form)
        return (self.asm.name or self.name.lower()) + given

    def operand(self, name: str) -> Operand:
        return next(o for o in self.operands if o.name == name)

    def __repr__(self) -> str:
        return f"<{self.name}>"


def _nothing(*_: Any, **__: Any) -> None:
    """The body of what leaves its results undefined."""
