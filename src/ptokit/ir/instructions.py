"""One grammar for every instruction of the table.

The table says which operands an instruction has and how its text form names them; everything here
is a fold over those records and knows no instruction by name. An instruction is written in
destination-passing style (Level 2: `ins(...) outs(...)`) or with results (Level 1); both are the
same operation, whose destinations are operands or results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import IntEnum
from functools import cache
from typing import Any, get_type_hints

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import NotSupported, fail
from ptokit.base.dtypes import DType
from ptokit.ir.attributes import (
    ENUMERATIONS,
    Attribute,
    BoolAttr,
    DictAttr,
    EnumAttr,
    FloatAttr,
    IntAttr,
    StringAttr,
    TypeAttr,
    enumeration_of,
)
from ptokit.ir.core import Op, Value
from ptokit.ir.types import (
    I32,
    BufferType,
    ConvTileType,
    ElidedType,
    PtrType,
    ScalarType,
    ShapedType,
    TileBufType,
    Type,
    ViewType,
)
from ptokit.ir.typetext import is_local, is_scalar
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.opcodes import OpCode, class_pipe
from ptokit.isa.scalars import word
from ptokit.isa.spec import Asm, Attr, Insn, Operand, Pipe
from ptokit.isa.words import TEXT

WORD = word(64)  # bits that mean something by themselves: no index has them
RETURNED = "result"  # the label of a number that an instruction returns
FOREIGN_KEYS = ("layout", "operandSegmentSizes")  # keys lowering leaves behind on any instruction


@dataclass(frozen=True)
class Form:
    """One way to write an instruction: which operands stand in `ins` and which in `outs`."""

    insn: Insn
    mnemonic: str
    ins: tuple[Operand, ...]
    outs: tuple[Operand, ...]

    @property
    def without_scratch(self) -> Form:
        """The same form with its temporaries left out."""
        ins, outs = (tuple(o for o in side if o.role != "tmp") for side in (self.ins, self.outs))
        return Form(self.insn, self.mnemonic, ins, outs)

    @property
    def as_before(self) -> Form:
        """The same form with its operands in the order of the record, as it was without clauses."""
        places = [o.name for o in self.insn.operands]
        order = sorted(self.ins, key=lambda o: places.index(o.name))
        return Form(self.insn, self.mnemonic, tuple(order), self.outs)

    def with_clauses(self, words: Mapping[int, str]) -> Form:
        """The same form where words say what operands are for: rules judge their memory."""
        own = self.insn.asm.clauses if self.insn.asm else {}
        ins = (
            replace(o, space="") if n in words and own.get(o.name) == words[n] else o
            for n, o in enumerate(self.ins)
        )
        return Form(self.insn, self.mnemonic, tuple(ins), self.outs)

    @property
    def with_scratch_as_source(self) -> Form:
        """As it was written before temporaries stood among the results."""
        scratch = tuple(o for o in self.outs if o.role == "tmp")
        results = tuple(o for o in self.outs if o not in scratch)
        return Form(self.insn, self.mnemonic, self.ins + scratch, results)

    @property
    def hides_scratch(self) -> bool:
        """Whether it has temporaries that lines with results leave out."""
        asm = self.insn.asm
        assert asm is not None
        shown = (*self.ins, *self.outs)
        return not asm.syntax and "l1" not in asm.tmp and any(o.role == "tmp" for o in shown)

    @property
    def with_memory_as_operand(self) -> Form:
        """As Level 1 writes it: global memory is no result, so it follows the operands."""
        memory = tuple(o for o in self.outs if "global" in o.kinds)
        results = tuple(o for o in self.outs if o not in memory)
        return Form(self.insn, self.mnemonic, self.ins + memory, results)

    def accepts(self, operand: Operand, type_: Type) -> bool:
        """Whether an operand of this form may have a type."""
        if isinstance(type_, ScalarType) and self.insn.asm is not None:
            if type_.name == "index" and operand.takes == WORD:
                return False
            is_number = "scalar" in operand.kinds or is_plain_number(operand)
            return is_number or operand.name in self.insn.asm.numbers
        return accepts(operand, type_)

    def __str__(self) -> str:
        ins = ", ".join(f"%{o.name}" for o in self.ins)
        outs = ", ".join(f"%{o.name}" for o in self.outs)
        return f"pto.{self.mnemonic} ins({ins}) outs({outs})"


# ---- the index of mnemonics ----------------------------------------------------------------------


@cache
def forms_called(mnemonic: str) -> list[Form]:
    """The forms that a mnemonic may stand for, in the order of the table."""
    return [
        form
        for insn in INSTRUCTIONS.called(TEXT, mnemonic)
        for form in _forms(insn)
        if insn.asm is not None and mnemonic in (form.mnemonic, *insn.asm.aliases)
    ]


def forms_by_mnemonic() -> dict[str, list[Form]]:
    """Every mnemonic with the forms it may stand for."""
    return {name: forms_called(name) for name in INSTRUCTIONS.words(TEXT)}


def forms_of(name: str) -> list[Form] | None:
    """The forms of a mnemonic; dots and underscores are interchangeable, as the pages differ."""
    spellings = (name, name.replace(".", "_"), _dotted().get(name, ""))
    return next(filter(None, map(forms_called, spellings)), None)


@cache
def _dotted() -> dict[str, str]:
    return {name.replace(".", "_"): name for name in INSTRUCTIONS.words(TEXT)}


@cache
def _forms(insn: Insn) -> tuple[Form, ...]:
    return tuple(_derived(insn, insn.asm)) if insn.asm is not None else ()


def _derived(insn: Insn, asm: Asm) -> Iterator[Form]:
    if asm.syntax:
        for name, syntax in asm.syntax.items():
            for names in insn.forms:
                places = asm.order or operands_in(syntax)
                shown = [insn.operand(n) for n in places if n in names]
                yield Form(insn, name, tuple(shown), ())
                as_keys = attributes_in(syntax)
                if any(o.name in as_keys for o in shown):
                    yield Form(insn, name, tuple(o for o in shown if o.name not in as_keys), ())
        return
    for names in insn.forms:
        given = [insn.operand(n) for n in names]
        if asm.ins is None:
            ins = tuple(o for o in given if o.role in ("in", "tmp"))
        else:
            ins = tuple(insn.operand(n) for n in asm.ins if n in names)
            # The pages leave some temporaries out of the text; ours follow the other operands.
            listed = (*asm.ins, *(asm.outs or ()))
            ins += tuple(o for o in given if o.role == "tmp" and o.name not in listed)
        if asm.outs is None:
            outs = tuple(o for o in given if o.role in ("out", "inout") and o not in ins)
        else:
            outs = tuple(insn.operand(n) for n in asm.outs if n in names)
        yield Form(insn, insn.mnemonic(names), ins, outs)
        written = tuple(o for o in ins if o.name not in asm.literals)
        if written != ins:
            yield Form(insn, insn.mnemonic(names), written, outs)


def attributes_in(syntax: str) -> list[str]:
    """The attributes that a syntax shows outside a dictionary."""
    return re.findall(r"@(\w+)", syntax)


def operands_in(syntax: str) -> list[str]:
    """The operands that a syntax shows as values, in order."""
    shown = re.findall(r"%(\w+(?:\|\w+)*)", syntax)
    return list(dict.fromkeys(name for each in shown for name in each.split("|")))


def mnemonics() -> list[str]:
    """All mnemonics, with their prefix."""
    return [f"pto.{name}" for name in INSTRUCTIONS.words(TEXT)]


# ---- which form is meant -------------------------------------------------------------------------


def find_form(
    forms: Sequence[Form],
    ins: Sequence[Type],
    outs: Sequence[Type | None],
    attrs: Mapping[str, Attribute] | None = None,
) -> Form | None:
    """The first form that takes these types; scratch operands may be missing altogether.

    A destination of type None is a result whose type is not known yet. Where two forms differ only
    in what they ask of the template arguments, the attributes decide.
    """
    fitting = [form for form in forms if _takes(form, ins, outs)]
    if fitting:
        return next((f for f in fitting if attrs is None or agrees(f, attrs)), fitting[0])
    for form in forms:
        bare = form.without_scratch
        if bare != form and _takes(bare, ins, outs):
            return bare
    return None


def agrees(form: Form, attrs: Mapping[str, Attribute]) -> bool:
    """Whether an overload with these operands exists for the template arguments."""
    insn = form.insn
    given: dict[str, Any] = {}
    for key, attr in attr_keys(insn).items():
        try:
            given[attr.name] = _first_given(insn, attr, key, attrs)
        except ValueError:
            return False
        if attr.choices and given[attr.name] not in (*attr.choices, None):
            return False  # of another record
    names = {o.name for o in (*form.ins, *form.outs)}
    overload = next((names_ for names_ in insn.forms if set(names_) == names), ())
    return insn.takes(overload, given)


def _first_given(insn: Insn, attr: Attr, key: str, attrs: Mapping[str, Attribute]) -> Any:
    """The value of a template argument under any of its keys."""
    others = [other for other, own in other_keys(insn).items() if own == key]
    given = next((attrs[k] for k in (key, *others) if k in attrs), None)
    return text_default(insn, attr) if given is None else template_value(attr, given)


def _takes(form: Form, ins: Sequence[Type], outs: Sequence[Type | None]) -> bool:
    if len(form.ins) != len(ins) or len(form.outs) != len(outs):
        return False
    pairs = (*zip(form.ins, ins, strict=True), *zip(form.outs, outs, strict=True))
    return all(type_ is None or form.accepts(operand, type_) for operand, type_ in pairs)


def accepts(operand: Operand, type_: Type) -> bool:
    """Whether an operand may have a type, going by its kind."""
    if operand.space and isinstance(type_, BufferType) and type_.spec.loc.name != operand.space:
        return False
    kinds = kinds_of(type_)
    return not kinds or any(kind in operand.kinds for kind in kinds)


def kinds_of(type_: Type) -> tuple[str, ...]:
    """What a type may stand for in the table's terms; empty when it is not known."""
    if isinstance(type_, ElidedType):
        return ()
    if isinstance(type_, ScalarType):
        return ("scalar", *PLAIN_NUMBERS)
    if isinstance(type_, TileBufType):
        return ("tile",)
    if isinstance(type_, ConvTileType):
        return ("conv",)
    if isinstance(type_, PtrType):
        return ("pointer", "global")
    if isinstance(type_, ViewType):
        return ("global",)
    if isinstance(type_, ShapedType) and type_.kind == "memref":
        return ("tile", "conv") if is_local(type_) else ("global", "pointer")
    return _objects()


@cache
def _objects() -> tuple[str, ...]:
    """The kinds of operands that are neither data nor numbers."""
    operands = (o for insn in INSTRUCTIONS.values() for o in insn.operands if o.is_object)
    return tuple(sorted({kind for operand in operands for kind in operand.kinds}))


# ---- attributes ----------------------------------------------------------------------------------


def text_key(insn: Insn, attr: Attr) -> str:
    """The key under which a template argument is written."""
    return _spellings(insn, attr)[0]


def _spellings(insn: Insn, attr: Attr) -> list[str]:
    assert insn.asm is not None
    return (insn.asm.attrs.get(attr.name) or attr.name[0].lower() + attr.name[1:]).split()


@cache
def other_keys(insn: Insn) -> Mapping[str, str]:
    """Further keys under which template arguments are read, with the one that is printed."""
    found = [_spellings(insn, attr) for attr in insn.attrs]
    return {other: key for key, *others in found for other in others}


@cache
def attr_keys(insn: Insn) -> Mapping[str, Attr]:
    """Template arguments by their key in the text."""
    return {text_key(insn, attr): attr for attr in insn.attrs}


# Kinds of operands that are not data: a number, which the text mostly writes as an attribute.
PLAIN_NUMBERS = frozenset({"pipe", "event", "number"})


def is_plain_number(operand: Operand) -> bool:
    """Whether an operand is a pipe, an id or another number that is not data."""
    return not PLAIN_NUMBERS.isdisjoint(operand.kinds)


@cache
def literal_keys(insn: Insn) -> Mapping[str, Operand]:
    """Operands that may be written as attributes, by their key; the first of an operand is ours."""
    assert insn.asm is not None
    found: dict[str, Operand] = {}
    for operand in insn.operands:
        own = operand.name if is_plain_number(operand) else ""
        found |= dict.fromkeys(insn.asm.literals.get(operand.name, own).split(), operand)
    return found


def literal(op: Op, operand: Operand) -> int | float | None:
    """The number an attribute gives for an operand; None when it is not written like that."""
    if not op.attrs or op.insn is None:
        return None
    for key, each in literal_keys(op.insn).items():
        given = op.attrs.get(key) if each is operand else None
        if isinstance(given, EnumAttr):
            return _number_named(given, op)
        if isinstance(given, IntAttr | FloatAttr):
            return given.value
    return None


def pipe_named(given: EnumAttr, op: Op) -> Pipe:
    """The pipe of the machine that a text names."""
    found = Pipe.__members__.get(given.value.removeprefix("PIPE_"))
    if found is None:  # the text has words for pipes that no core here has
        raise fail(
            "pipe",
            f"{op.name}: there is no pipe {given.value}",
            fix="one of " + ", ".join(f"PIPE_{name}" for name in Pipe.__members__),
            site=op.location,
            kind=NotSupported,
        )
    return found


def _number_named(given: EnumAttr, op: Op) -> int:
    """Pipes are numbered by the instruction set; a class of operations stands for its pipe."""
    if given.enum == "pipe":
        return pipe_named(given, op)
    pipe = class_pipe(given.value) if given.enum in OP_CLASSES else None
    return given.number if pipe is None else pipe


def literal_attribute(insn: Insn, operand: Operand, value: int) -> tuple[str, Attribute]:
    """Key and attribute that write an operand which is a plain number."""
    key = next(k for k, o in literal_keys(insn).items() if o is operand)
    declared = declared_types(insn)[key]
    if "pipe" in operand.kinds:
        return key, EnumAttr("pipe", f"PIPE_{Pipe(value).name}")
    if declared in ENUMERATIONS:
        members = {number: name for name, number in ENUMERATIONS[declared].members.items()}
        return key, EnumAttr(declared, members[value])
    return key, IntAttr(value, ScalarType(declared))


OP_CLASSES = ("pipe_event_type", "sync_op_type")  # enumerations of classes of operations


@cache
def declared_types(insn: Insn) -> dict[str, str]:
    """What the reader is told about each key: the enumeration or type of its value."""
    assert insn.asm is not None
    numbers = {k: "pipe" if "pipe" in o.kinds else "i32" for k, o in literal_keys(insn).items()}
    found = {k: _declared(a) for k, a in attr_keys(insn).items()} | numbers | dict(insn.asm.types)
    return found | {other: found[key] for other, key in other_keys(insn).items()}


def _declared(attr: Attr) -> str:
    if issubclass(attr.type, IntEnum):
        return enumeration_of(attr.type).name
    return "" if attr.type is bool else "i32"


def text_default(insn: Insn, attr: Attr) -> Any:
    """What a text that leaves a template argument out means."""
    return attr.default if insn.asm is None else insn.asm.absent.get(attr.name, attr.default)


def template_value(attr: Attr, given: Attribute | None) -> Any:
    """The template argument an attribute stands for; ValueError when it cannot be one."""
    if given is None:
        return attr.default
    found = _argument(attr.type, given)
    if found is None:
        raise ValueError(f"{given} is not a {attr.type.__name__}")
    return found


def _argument(kind: type, given: Attribute) -> Any:
    if issubclass(kind, IntEnum):
        enum = enumeration_of(kind)
        if isinstance(given, EnumAttr) and given.enum == enum.name:
            return enum.member_of(given.value)
        number = int(given.value) if isinstance(given, BoolAttr | IntAttr) else None
        return next((member for member in kind if member == number), None)
    if isinstance(given, TypeAttr) and isinstance(given.type, ScalarType):
        return given.type.dtype
    if isinstance(given, DictAttr) and is_dataclass(kind):
        types = get_type_hints(kind)
        found = {k: _argument(types[k], value) if k in types else None for k, value in given.items}
        return None if None in found.values() else kind(**found)
    if issubclass(kind, OpCode) and isinstance(given, EnumAttr | StringAttr):
        pipe = class_pipe(given.value)
        return None if pipe is None else OpCode(given.value, pipe)
    if kind is bool:
        return given.value if isinstance(given, BoolAttr) else None
    if kind is int and isinstance(given, EnumAttr):
        return given.number
    return given.value if kind is int and isinstance(given, IntAttr) else None


def template_arguments(op: Op) -> tuple[Any, ...]:
    """The template arguments of an instruction, in the order of its record."""
    insn = op.insn
    assert insn is not None
    defaults = _text_defaults(insn) if insn.asm is None or not insn.asm.inferred else _inferred(op)
    if not op.attrs or not insn.attrs:
        return defaults
    return tuple(
        template_value(attr, op.attrs[key]) if key in op.attrs else default
        for (key, attr), default in zip(attr_keys(insn).items(), defaults, strict=True)
    )


def _inferred(op: Op) -> tuple[Any, ...]:
    """What an operation means that leaves out what follows from its tiles."""
    assert op.insn is not None
    assert op.insn.asm is not None
    values = zip((*op.labels, *op.result_labels), (*op.operands, *op.results), strict=True)
    tiles = {label: v.type.spec for label, v in values if isinstance(v.type, TileBufType)}
    found = op.insn.asm.inferred
    return tuple(
        found[attr.name](tiles) if attr.name in found else default
        for attr, default in zip(op.insn.attrs, _text_defaults(op.insn), strict=True)
    )


@cache
def _text_defaults(insn: Insn) -> tuple[Any, ...]:
    return tuple(text_default(insn, attr) for attr in insn.attrs)


def attribute_for(attr: Attr, value: Any, declared: str = "") -> Attribute:
    """The attribute that writes a template argument; `declared` is the type its place asks for."""
    if is_scalar(declared) and (declared != "i32" or isinstance(value, IntEnum)):
        return IntAttr(int(value), ScalarType(declared))
    if attr.type is int and declared in ENUMERATIONS:
        members = {number: name for name, number in ENUMERATIONS[declared].members.items()}
        return EnumAttr(declared, members[value])
    if isinstance(value, OpCode) and value.name in ENUMERATIONS[declared].members:
        return EnumAttr(declared, value.name)
    return _attribute(value)


def _attribute(value: Any) -> Attribute:
    if isinstance(value, IntEnum):
        enum = enumeration_of(type(value))
        return EnumAttr(enum.name, enum.text_of(value))
    if isinstance(value, DType):
        return TypeAttr(ScalarType(value.mlir))
    if isinstance(value, OpCode):
        return StringAttr(value.name)
    if is_dataclass(value):
        changed = [(f.name, getattr(value, f.name)) for f in fields(value)]
        plain = {f.name: f.default for f in fields(value)}
        return DictAttr(tuple((n, _attribute(v)) for n, v in changed if v != plain[n]))
    return BoolAttr(value) if isinstance(value, bool) else IntAttr(int(value), I32)


# ---- operands ------------------------------------------------------------------------------------


def form_of(op: Op) -> Form:
    """The form an operation was written in, from its labels."""
    assert op.insn is not None
    present = set(op.labels) | set(op.result_labels)
    name = op.name.removeprefix("pto.")
    best: Form | None = None
    for form in _forms(op.insn):
        ins = tuple(o for o in form.ins if o.name in op.labels)
        outs = tuple(o for o in form.outs if o.name in present)
        missing = [o for o in (*form.ins, *form.outs) if o not in ins and o not in outs]
        covered = {o.name for o in (*ins, *outs)} | {RETURNED}
        fits = {label.partition(".")[0] for label in present} <= covered
        if fits and all(o.role == "tmp" for o in missing):
            found = Form(op.insn, name, ins, outs)
            if not missing:
                return found
            best = best or found
    assert best is not None, op
    return best


def alias_labels(form: Form, results: Sequence[Value]) -> list[str]:
    """Labels of results no destination stands for: a handle to an operand, or a plain number."""
    if results and isinstance(results[0].type, BufferType):
        changed = [o.name for o in form.ins if o.role == "inout"]
        return (changed + [RETURNED] * len(results))[: len(results)]
    return [RETURNED] * len(results)


def run_time_operands(op: Op) -> tuple[Value | None, ...]:
    """The values of the record's operands, in its order; None for one that was left out."""
    assert op.insn is not None
    return tuple(op.bound(o.name) for o in op.insn.operands)


def group_operands(op: Op) -> tuple[list[Value], ...]:
    """The members of each operand of the record that is a group; none for all others."""
    assert op.insn is not None
    written = op.insn.asm.syntax.get(op.name.removeprefix("pto."), "") if op.insn.asm else ""
    if "..." not in written:
        return ([],) * len(op.insn.operands)
    return tuple(op.group(o.name) if f"%{o.name}..." in written else [] for o in op.insn.operands)


def root_of(op: Op) -> int:
    """The index of the root in the group of an operation."""
    root = op.attrs.get("root")
    return root.value if isinstance(root, IntAttr) else 0


def destinations(op: Op) -> list[Value]:
    """The values an instruction writes."""
    assert op.insn is not None
    writes = {o.name for o in op.insn.operands if o.writes}
    written = [v for v, label in zip(op.operands, op.labels, strict=True) if label in writes]
    return written + [r for r in op.results if isinstance(r.type, BufferType)]
