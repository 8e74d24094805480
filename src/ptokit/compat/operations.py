"""Making an operation by the name and the arguments of its class in the bindings.

`pto.TMatmulAccOp(None, acc, a, b, dst)`, `pto.tmatmul_acc(...)`: both are `pto.tmatmul.acc`. Which
operations there are, the order of their operands and their attributes are those of the tables. A
class takes the types of results first, then operands, in the order of the generic form, and
attributes; those that may be left out have names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from typing import Any, cast

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import ProgramError
from ptokit.base.tiles import DYNAMIC
from ptokit.compat.parts import InsertionPoint, Operation, Value, here, insert, plain, types_in
from ptokit.compat.types import Type, attribute
from ptokit.ir.attributes import ENUMERATIONS, Attribute, EnumAttr
from ptokit.ir.core import Op
from ptokit.ir.core import Value as OurValue
from ptokit.ir.dialects import DEFINITIONS, Definition
from ptokit.ir.dialects.memory import ALLOC
from ptokit.ir.format import Draft, finish
from ptokit.ir.generic import AXIS, instruction_of, order_of, slots_of, with_variants
from ptokit.ir.instructions import (
    OP_CLASSES,
    Form,
    agrees,
    attr_keys,
    declared_types,
    forms_of,
    literal_keys,
    mnemonics,
    other_keys,
)
from ptokit.ir.lexer import Source
from ptokit.ir.parser import Parser
from ptokit.ir.reader import Abandon, Head
from ptokit.ir.types import OpaqueType, TileBufType
from ptokit.ir.typetext import is_scalar, parse_type, suggestion
from ptokit.isa.spec import Insn


def folded(name: str) -> str:
    """A name without its case and its marks: how MLIR makes names of classes drops these."""
    return name.replace("_", "").replace(".", "").lower()


@cache
def _names(dialect: str) -> Mapping[str, str]:
    """The operations of a dialect, folded; those of a part of it also without that part's name."""
    known = [name for name in (*DEFINITIONS, *mnemonics()) if name.startswith(f"{dialect}.")]
    short = {folded(name.rpartition(".")[2]): name for name in known}
    return short | {folded(name.partition(".")[2]): name for name in reversed(known)}


def operation_named(dialect: str, name: str) -> str | None:
    """The operation that a class or a function of a dialect makes."""
    return _names(dialect).get(folded(name.removesuffix("Op")))


def alike(dialect: str, name: str) -> str:
    """A clause that names the operation which may have been meant."""
    return suggestion(folded(name.removesuffix("Op")), _names(dialect))


# ---- arguments -----------------------------------------------------------------------------------


@dataclass
class Arguments:
    """What a class was called with, sorted by what it is."""

    types: list[Type] = field(default_factory=list[Type])
    values: list[Value] = field(default_factory=list[Value])  # by position
    lists: list[list[Value]] = field(default_factory=list[list[Value]])  # by position among lists
    attrs: list[Any] = field(default_factory=list[Any])  # by position
    named: dict[str, Any] = field(default_factory=dict[str, Any])


def sorted_out(args: Sequence[Any], named: Mapping[str, Any]) -> Arguments:
    """Tell types, operands and attributes apart; what is None was left out."""
    found = Arguments()
    for given in map(plain, args):
        if given is None:
            continue
        if isinstance(given, Type):
            found.types.append(given)
        elif isinstance(given, list | tuple):
            items = [plain(each) for each in cast("Sequence[Any]", given)]
            types = types_in(items)
            if types is not None:
                found.types += types
            elif all(isinstance(each, Value) for each in items):
                found.lists.append(cast("list[Value]", items))
            else:
                found.attrs.append(items)
        elif isinstance(given, Value):
            found.values.append(given)
        else:
            found.attrs.append(given)
    for key, given in named.items():
        value = plain(given)
        if value is None or key in ("loc", "ip", "context"):
            continue
        if key in ("result", "results", "results_") and not isinstance(value, Value):
            found.types += [value] if isinstance(value, Type) else list(value)
        else:
            found.named[key] = value
    return found


def _as_values(given: Any) -> list[Value] | None:
    """Operands, given one by one or as a list; None when it is something else."""
    items = [plain(x) for x in (cast("list[Any]", given) if isinstance(given, list) else [given])]
    return cast("list[Value]", items) if all(isinstance(x, Value) for x in items) else None


class _Unfit(Exception):  # noqa: N818 - control flow among the ways to write one instruction
    """The arguments are not those of this operation; the message says why."""


# Operands that classes call otherwise than the records of whole families do.
_OTHERWISE = {
    "lhs": ("aMatrix", "a"),
    "rhs": ("bMatrix", "b"),
    "accin": ("cInMatrix",),
    "dst": ("cMatrix", "cOutMatrix"),
    "recvping": ("recvTileData",),
    "recvpong": ("pongTileData",),
    "ping": ("stagingTileData",),
    "group": ("parallelGroup",),
    "signal": ("dstSignalData",),
    "entry": ("gmTensor",),
    "aivsubblockid": ("subBlockId",),
    "scalingtile": ("fpTile",),
    "ctx": ("context",),
    "s": ("struct",),
    "addr": ("address", "ptr"),
    "eventiddyn": ("event_id", "id"),
    "src": ("source",),
    "input": ("source", "a"),
    "source": ("src", "base", "a"),
    "destination": ("dst", "base"),
    "value": ("src", "a", "s"),
    "indices": ("index",),
    "offsets": ("index",),
    "nburst": ("n",),
    "lenburst": ("len",),
    "values": ("args",),
    "captures": ("args",),
    "tile": ("entry", "obj"),
    "scale": ("preQuantScalar",),
    "ffts": ("addr",),
    "pipehandle": ("pipe",),
    "validrow": ("valid",),
    "validcol": ("valid",),
}
# What records add to the names that classes have: `bias` is biasData.
_NOUNS = ("matrix", "data", "tiledata", "globaldata", "tile", "val", "idx")


def _labelled(
    named: Mapping[str, Any], labels: Sequence[str], called: Mapping[str, str] | None = None
) -> dict[str, list[Value]]:
    """Operands that were given by name, by their labels: `srcs=[a, b]` are src0 and src1.

    `called`: those of this operation that classes call otherwise.
    """
    own = {folded(name): label for name, label in (called or {}).items() if label in labels}
    found: dict[str, list[Value]] = {}
    for key, given in named.items():
        values = _as_values(given)
        if not values:
            continue
        meant = [own[folded(key)]] if folded(key) in own else _meant(folded(key), labels)
        if not meant or 1 < len(meant) < len(values):
            meant_instead = suggestion(key, labels)
            listed = f"its operands: {', '.join(labels)}"
            raise _Unfit(f"there is no operand {key}; {meant_instead or listed}")
        if len(meant) == 1:
            found.setdefault(meant[0], []).extend(values)
        else:
            found |= {label: [v] for label, v in zip(meant, values, strict=False)}
    return found


def _meant(key: str, labels: Sequence[str]) -> list[str]:
    """The operands that a name stands for: its own, another word for it, or that of several."""
    by_fold = {folded(label): label for label in labels}
    if key in by_fold:
        return [by_fold[key]]
    other = next((label for label in _OTHERWISE.get(key, ()) if label in labels), None)
    if other is not None:
        return [other]
    stem = key.removesuffix("s")
    several = [label for name, label in by_fold.items() if name.rstrip("0123456789") == stem]
    if several:
        return several
    if key.removesuffix("0") in by_fold:
        return [by_fold[key.removesuffix("0")]]
    return [by_fold[key + noun] for noun in _NOUNS if key + noun in by_fold][:1]


def _attributes(
    given: Arguments, keys: Mapping[str, str], used: Sequence[str]
) -> dict[str, Attribute]:
    """The attributes of an operation: `keys` are those it has, with what each is declared as."""
    by_fold = {folded(key): key for key in reversed([*keys])}
    found: dict[str, Attribute] = {}
    for name, value in given.named.items():
        if _as_values(value) is not None and value != []:
            continue
        key = by_fold.get(folded(name))
        if key is None:
            raise _Unfit(f"there is no {name}; it has {', '.join((*used, *keys)) or 'nothing'}")
        found[key] = attribute(value, keys[key])
    for value in given.attrs:
        free = [key for key in keys if key not in found]
        if isinstance(value, int):  # it numbers a member only where nothing else is a number
            free.sort(key=lambda key: not is_scalar(keys[key]))
        key = next((key for key in free if _suits(value, keys[key])), None)
        if key is None:
            raise _Unfit(f"it has no place for {value}")
        found[key] = attribute(value, keys[key])
    return found


def _suits(value: Any, declared: str) -> bool:
    """Whether a value without a name may be meant for an attribute that is declared so."""
    if not isinstance(value, EnumAttr):
        return declared not in ENUMERATIONS or not isinstance(value, bool | float)
    return declared in ("", value.enum) or {declared, value.enum} <= {*OP_CLASSES}


def _insn_keys(insn: Insn) -> dict[str, str]:
    """The attributes of an instruction, with what each is declared as."""
    declared = declared_types(insn)
    keys = (*attr_keys(insn), *literal_keys(insn), *other_keys(insn))
    assert insn.asm is not None
    return {key: declared.get(key, "") for key in (*keys, *([AXIS] if insn.asm.words else []))}


# ---- operations ----------------------------------------------------------------------------------


def build(
    name: str, args: Sequence[Any], named: Mapping[str, Any], at: InsertionPoint | None = None
) -> Operation:
    """Make an operation and put it where the program is being built."""
    given = sorted_out(args, named)
    head = Head(name, here())
    reader = Parser(Source("", head.location.file))
    reasons: list[str] = []
    op: Op | None = None
    for attempt in _ways(name):
        try:
            op = attempt(reader, head, given)
            break
        except _Unfit as why:
            reasons.append(str(why))
        except Abandon:
            break
    if reader.errors:
        raise ProgramError([replace(e, location=head.location) for e in reader.errors])
    if op is None:
        raise TypeError(f"{name}: {reasons[0]} ({head.location})")
    for number, result in enumerate(op.results):
        result.name = str(number)
    for name, like in _formerly_left_out(op):
        op.operands.append(build(ALLOC.name, [Type(like)], {}, at).result.ours)
        op.labels += (name,)
    return insert(op, at)


def _formerly_left_out(op: Op) -> Iterator[tuple[str, TileBufType]]:
    """The temporaries that older programs leave out and texts do not, with a type for each."""
    formerly = op.insn.asm.formerly if op.insn and op.insn.asm else {}
    for name, like in formerly.items():
        kind = None if name in op.labels else getattr(op.operand(like), "type", None)
        if isinstance(kind, TileBufType):
            spec = kind.spec
            full = replace(spec, valid_row=spec.rows, valid_col=spec.cols)
            is_open = DYNAMIC in (spec.valid_row, spec.valid_col)
            yield name, replace(kind, spec=full) if is_open else kind


def _ways(name: str) -> Iterator[Any]:
    """The operations that may be meant: of one with others for the same instruction, these too."""
    dialect, _, rest = name.partition(".")
    forms = forms_of(rest) if dialect == "pto" else None
    definition = DEFINITIONS.get(name)
    if definition is not None and definition.micro is None:
        yield _way(definition)
    if forms and not (definition and definition.insn):
        yield lambda reader, head, given: _instruction(reader, head, forms, given)
    if definition is not None and definition.micro is not None:
        yield _way(definition)
    insn = definition.insn if definition else None
    for other in dict.fromkeys(DEFINITIONS.values()) if insn else ():
        if other.insn is insn and other is not definition:
            yield _way(other)


def _way(definition: Definition) -> Any:
    return lambda reader, head, given: _defined(reader, head, definition, given)


def _defined(reader: Parser, head: Head, definition: Definition, given: Arguments) -> Op:
    """An operation with a syntax of its own."""
    slots = list(dict.fromkeys(slots_of(definition)))
    labels = [slot.label for slot in slots]
    by_name = _labelled(given.named, labels)
    rest = [slot for slot in slots if slot.label not in by_name]
    single, lists = ([s for s in rest if s.is_list is many] for many in (False, True))
    needed = [slot for slot in single if not slot.optional]
    places = needed if len(given.values) == len(needed) else single
    if len(given.values) > len(places) and lists and not given.lists:
        places = [*places, *lists[:1] * len(given.values)]  # `Operation.create` has no lists
    if len(given.values) > len(places) or len(given.lists) > len(lists):
        raise _Unfit(f"takes {', '.join(labels) or 'no operands'}")
    own = (*definition.spelled_attrs, *definition.attr_types, *sorted(definition.own_attrs))
    keys = dict.fromkeys(own, "")
    keys |= definition.attr_types
    keys = {k: v for k, v in keys.items() if k not in labels or definition.insn}
    if definition.insn is not None:
        keys |= {k: v for k, v in _insn_keys(definition.insn).items() if k in keys or v}
    draft = Draft(attrs=_attributes(given, keys, labels))
    missing = definition.needed_attrs - draft.attrs.keys()
    if missing:
        raise _Unfit(f"needs {', '.join(sorted(missing))}")
    found = by_name | dict(zip((s.label for s in lists), given.lists, strict=False))
    for slot, value in zip(places, given.values, strict=False):
        found.setdefault(slot.label, []).append(value)
    for label in labels:
        for value in found.get(label, ()):
            draft.add(label, value.ours, 0)
    absent = [s.label for s in needed if s.label not in found]
    if absent:
        raise _Unfit(f"needs {', '.join(absent)}")
    if given.types:
        slots = definition.results
        if len(slots) == 1:
            draft.types[slots[0].label] = [t.ours for t in given.types]
        else:
            pairs = zip(slots, given.types, strict=False)
            draft.types |= {slot.label: [type_.ours] for slot, type_ in pairs}
    elif definition.infer is None:
        needed_types = (s for s in definition.results if not s.optional)
        draft.types |= {s.label: [o] for s in needed_types if (o := _opaque(s.kind))}
    return finish(reader, replace(head, name=definition.name), definition, draft)


def _opaque(kind: str) -> OpaqueType | None:
    """The type that a result of a kind always has, where it is none of numbers."""
    if kind.isupper() or is_scalar(kind):
        return None
    try:
        found = parse_type(f"!pto.{kind}")
    except ValueError:
        raise _Unfit("needs the type of its result") from None
    return found if isinstance(found, OpaqueType) else None


def _instruction(reader: Parser, head: Head, forms: list[Form], given: Arguments) -> Op:
    """An instruction, in the first of its forms that takes the operands."""
    types = [t.ours for t in given.types]
    values = [*given.values, *(v for each in given.lists for v in each)]
    why = _Unfit("")
    needed = set(order_of(forms[0])).intersection(*map(order_of, forms))
    for form in with_variants(forms):
        outs = [o.name for o in form.outs]
        made = outs[-len(types) :] if types else []
        labels = order_of(form)
        try:
            assert form.insn.asm is not None
            by_name = _labelled(given.named, labels, form.insn.asm.called)
            twice = [label for label, given_for in by_name.items() if len(given_for) > 1]
            if twice:
                raise _Unfit(f"{twice[0]} is given twice")
            attrs = _attributes(given, _insn_keys(form.insn), labels)
        except _Unfit as reason:
            why = why if str(why) else reason
            continue
        rest = [n for n in labels if n not in by_name and n not in made]
        if not needed.issuperset(rest):  # all by position: as they stand in the text
            rest = [o.name for o in (*form.ins, *form.outs) if o.name in rest]
        if len(rest) != len(values) or not agrees(form, attrs):
            continue
        named = {n: v[0].ours for n, v in by_name.items()}
        orders = (named | {n: v.ours for n, v in zip(names, values, strict=True)}
                  for names in (rest, _older(form, rest)))  # fmt: skip
        accepted = [each for each in orders if _accepts(form, each)]
        if accepted:
            found = next((each for each in accepted if _has_types(form, each)), accepted[0])
            return instruction_of(reader, head, form, found, types, attrs)
    if str(why):
        raise why
    listed = " or ".join(dict.fromkeys(", ".join(order_of(f)) for f in forms))
    shown = ", ".join(str(v.type) for v in values)
    raise _Unfit(f"does not take ({shown}); its operands: {listed}")


def _accepts(form: Form, operands: Mapping[str, OurValue]) -> bool:
    return all(form.accepts(form.insn.operand(n), v.type) for n, v in operands.items())


def _older(form: Form, names: Sequence[str]) -> list[str]:
    """The order of classes of before August 2026: results after the first operand."""
    outs = [o.name for o in form.outs if o.name in names]
    rest = [name for name in names if name not in outs]
    return [*rest[:1], *outs, *rest[1:]]


def _has_types(form: Form, operands: Mapping[str, OurValue]) -> bool:
    """Whether some target has the instruction with the element types of these operands."""
    kinds = {name: getattr(getattr(v.type, "spec", None), "dtype", None)
             for name, v in operands.items()}  # fmt: skip
    for types in form.insn.types:
        given = tuple(kinds.get(name) for name in types.of)
        known = [allowed for allowed in types.allowed.values() if allowed]
        if None not in given and known and not any(given in allowed for allowed in known):
            return False
    return True
