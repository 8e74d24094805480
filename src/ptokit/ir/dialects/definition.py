"""The record of an operation that is not an instruction: operands, results, attributes, syntax.

    define("pto.addptr", "ptr:ptr offset:index -> result:ptr", "%ptr, %offset {} : T(ptr) -> ...")

The signature lists operands in the order of the generic form: `x:kind`, `x?:kind` when it may be
left out, `x*:kind` for a list, `x*2:kind` for one of two or none. A kind in capitals is a type
variable: everything under the same letter has one type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, cast

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Note
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.patterns import regex
from ptokit.ir.arithmetic import Arithmetic
from ptokit.ir.core import Op, Value
from ptokit.ir.format import Draft, Piece, compile_format, is_unknown, keys_of, read, write
from ptokit.ir.reader import Head, Reader
from ptokit.ir.types import (
    BufferType,
    ConvTileType,
    LocalArrayType,
    LogicalMaskType,
    LogicalType,
    MaskType,
    MultiTileType,
    OpaqueType,
    PtrType,
    RegisterType,
    ScalarType,
    ShapedType,
    StructType,
    TileBufType,
    Type,
    ViewType,
    same_type,
)
from ptokit.isa.micro import Micro
from ptokit.isa.spec import Insn

if TYPE_CHECKING:
    from ptokit.ir.printer import Printer

Read = Callable[[Reader, Head, "Definition"], Op]
Write = Callable[["Printer", Op], str]
Infer = Callable[[Reader, Head, Draft], Type]


class Edge(NamedTuple):
    """A value that goes on under another name: as argument of a region, or as a result."""

    value: Value
    name: Value
    is_next_round: bool = False  # from one round of a loop into the next


Flow = Callable[[Op], Iterator[Edge]]


@dataclass(frozen=True)
class Slot:
    """A place for operands or results in a signature."""

    label: str
    kind: str
    optional: bool = False
    is_list: bool = False
    places: int = 1  # of the generic form: a list that is empty or has so many may have as many


@dataclass(frozen=True, eq=False)
class Definition:
    """One operation. `read` and `write` replace the format where that cannot tell the syntax.

    Whoever treats some operations in a way of their own has a table of these objects.
    """

    name: str
    operands: tuple[Slot, ...]
    results: tuple[Slot, ...]
    format: str = ""
    attr_types: dict[str, str] = field(default_factory=dict[str, str])
    read: Read = read
    write: Write | None = None
    infer: Infer | None = None  # the result type, where it is not written
    pure: bool = False  # no effect beyond its results
    renames: str = ""  # the operand whose memory the result is another view of
    is_loop: bool = False  # its regions run any number of times
    is_terminator: bool = False  # ends a region, handing its operands on
    allocates: bool = False  # makes a tile that needs a place
    core: str = ""  # the kind of core, cube or vector, that runs it and what is in its regions
    flow: Flow | None = None  # how values enter its regions and leave them
    insn: Insn | None = None  # the instruction that the operation writes
    micro: Micro | None = None  # or the micro-operation
    arithmetic: Arithmetic | None = None  # what it computes of numbers
    is_generic: bool = False  # printed in the generic form: the language has no other
    aliases: tuple[str, ...] = ()  # names it had before: they are read, never printed
    properties: tuple[str, ...] = ()  # attributes that the generic form keeps apart from others
    ours: tuple[str, ...] = ()  # operands that are read, and for which the dialect has no place
    # Operands for which the generic form has no place of their own -> whose they take.
    instead: Mapping[str, str] = field(default_factory=dict[str, str])
    # Operands that are read and left out, unless they are of this kind.
    taken: Mapping[str, str] = field(default_factory=dict[str, str])

    def __str__(self) -> str:
        return self.name

    def matches(self, op: Op) -> bool:
        """Whether an operation is this one."""
        return op.name == self.name

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        return compile_format(self.format)

    @cached_property
    def spelled_attrs(self) -> tuple[str, ...]:
        """Attributes that the format writes outside the dictionary."""
        return tuple(_spelled(self.pieces))

    def text(self, printer: Printer, op: Op) -> str:
        """What stands behind the operation's name."""
        return self.write(printer, op) if self.write else write(printer, op, self)

    def result_labels(self, count: int) -> tuple[str, ...]:
        if len(self.results) == 1:
            return (self.results[0].label,) * count
        return tuple(slot.label for slot in self.results)[:count]

    def in_order(
        self, operands: list[Value], labels: list[str]
    ) -> tuple[list[Value], tuple[str, ...]]:
        """Operands in the order of the signature, however the text puts them; those it takes."""
        places = [slot.label for slot in self.operands]
        kinds = [self.taken.get(label) for label in labels]
        kept = (n for n, kind in enumerate(kinds) if not kind or fits(operands[n].type, kind))
        order = sorted(kept, key=lambda n: places.index(labels[n]))
        return [operands[n] for n in order], tuple(labels[n] for n in order)

    def takes(self, label: str, type_: Type) -> bool:
        """Whether an operand may have a type, as far as its kind tells."""
        kind = next(slot.kind for slot in self.operands if slot.label == label)
        return kind.isupper() or fits(type_, kind)

    def settled(self, labels: list[str]) -> list[str]:
        """Of operands that one place stands for, those that make an overload of the instruction."""
        choices = [p.labels for p in self.pieces if p.kind == "operand" and len(p.labels) > 1]
        if self.insn is None or any(set(labels) <= set(form) for form in self.insn.forms):
            return labels
        for chosen in product(*choices):
            names = {
                other: one for one, same in zip(chosen, choices, strict=True) for other in same
            }
            found = [names.get(label, label) for label in labels]
            if any(set(found) <= set(form) for form in self.insn.forms):
                return found
        return labels

    @cached_property
    def needed_attrs(self) -> frozenset[str]:
        """Attributes that the text always shows."""
        return frozenset(_spelled(self.pieces, needed=True))

    @cached_property
    def own_attrs(self) -> frozenset[str]:
        """Attributes that belong to the operation; any other one may stand there as well."""
        return frozenset({*_spelled(self.pieces), *self.attr_types, *self.properties})

    def check_operands(self, reader: Reader, head: Head, draft: Draft) -> None:
        """Note every operand whose type the signature does not allow."""
        variables: dict[str, int] = {}
        slots = {slot.label: slot for slot in self.operands}
        for n, (value, label) in enumerate(zip(draft.operands, draft.labels, strict=True)):
            kind = slots[label].kind
            if is_unknown(value.type):
                continue
            if kind.isupper():
                first = variables.setdefault(kind, n)
                other = draft.operands[first]
                if not same_type(other.type, value.type):
                    reader.note(
                        "type-mismatch",
                        f"{head.name}: {draft.labels[first]} and {label} have one type",
                        reader.place(draft.tokens[n]),
                        f"got {other.type} and {value.type}",
                    )
            elif not fits(value.type, kind):
                reader.note(
                    "type-mismatch",
                    f"{head.name}: {label} is {_ARTICLE.get(kind, kind)}, not {value.type}",
                    reader.place(draft.tokens[n]),
                    notes=(Note(f"defined as {value.type}", value.location),),
                )

    def result_types(self, reader: Reader, head: Head, draft: Draft) -> list[Type]:
        """The types of the results: written, fixed by the signature, or inferred."""
        found: list[Type] = []
        for slot in self.results:
            written = draft.types.get(slot.label)
            if written is not None:
                found += written
            elif slot.optional:
                continue
            elif slot.kind.isupper():
                found.append(self._bound(slot.kind, draft))
            elif self.infer is not None:
                found.append(self.infer(reader, head, draft))
            else:
                found.append(ScalarType(slot.kind))
        self.check_results(reader, head, found)
        self._same_variable(reader, head, draft, found)
        return found

    def check_results(self, reader: Reader, head: Head, found: Sequence[Type]) -> None:
        """Note every result whose type the signature does not allow."""
        slots = self.results * len(found) if len(self.results) == 1 else self.results
        for slot, type_ in zip(slots, found, strict=False):
            known = is_unknown(type_) or slot.kind.isupper() or fits(type_, slot.kind)
            if not known:
                wanted = _ARTICLE.get(slot.kind, slot.kind)
                reader.note(
                    "type-mismatch",
                    f"{head.name}: {slot.label} is {wanted}, not {type_}",
                    head.location,
                )

    def _bound(self, kind: str, draft: Draft) -> Type:
        labels = [slot.label for slot in self.operands if slot.kind == kind]
        return next(
            v.type for v, label in zip(draft.operands, draft.labels, strict=True) if label in labels
        )

    def _same_variable(self, reader: Reader, head: Head, draft: Draft, found: list[Type]) -> None:
        for slot, type_ in zip(self.results, found, strict=False):
            if not slot.kind.isupper() or slot.label not in draft.types:
                continue
            bound = self._bound(slot.kind, draft) if draft.operands else type_
            if not same_type(bound, type_):
                reader.note(
                    "type-mismatch",
                    f"{head.name}: operands and {slot.label} have one type",
                    head.location,
                    f"got {bound} and {type_}",
                )


def _spelled(pieces: tuple[Piece, ...], needed: bool = False) -> list[str]:
    """The attributes that pieces show; of optional pieces and keys only when all are asked for."""
    found: list[str] = []
    for piece in pieces:
        if piece.kind in ("attr", "bare"):
            found.append(piece.text)
        elif piece.kind == "mixed":
            found.append(f"static_{piece.text}")
        elif piece.kind == "keys":
            found += [attr for _, attr, must in keys_of(piece.text) if must or not needed]
        if piece.inner and not needed:
            found += _spelled(piece.inner) + _spelled(piece.other)
        elif piece.other:  # shown, whichever of the two it is
            found += set(_spelled(piece.inner, True)) & set(_spelled(piece.other, True))
    return found


# ---- kinds -------------------------------------------------------------------------------------


def _is_global(type_: Type) -> bool:
    if isinstance(type_, PtrType):
        return not type_.space
    return isinstance(type_, ShapedType | ViewType)


_KINDS: dict[str, Callable[[Type], bool]] = {
    "any": lambda t: True,
    "num": lambda t: isinstance(t, ScalarType),
    "int": lambda t: isinstance(t, ScalarType) and not t.is_float,
    "float": lambda t: isinstance(t, ScalarType) and t.is_float,
    "ptr": lambda t: isinstance(t, PtrType),
    "gm": lambda t: _is_global(t) and not isinstance(t, ViewType),
    "memory": lambda t: _is_global(t),
    "element": lambda t: _is_global(t) or isinstance(t, PtrType),
    "view": lambda t: isinstance(t, ViewType | ShapedType),
    "part": lambda t: isinstance(t, ViewType | ShapedType),
    "tile": lambda t: isinstance(t, TileBufType | ShapedType),
    "conv": lambda t: isinstance(t, ConvTileType),
    "buffer": lambda t: isinstance(t, BufferType | ShapedType),
    "tiles": lambda t: isinstance(t, MultiTileType),
    "memref": lambda t: isinstance(t, ShapedType),
    "local_array": lambda t: isinstance(t, LocalArrayType),
    "struct": lambda t: isinstance(t, StructType),
    "vreg": lambda t: isinstance(t, RegisterType),
    "mask": lambda t: isinstance(t, MaskType),
    **{
        space: lambda t, space=space: isinstance(t, PtrType) and t.space == space
        for space in ("ub", "l1", "l0a", "l0b", "l0c", "bt", "fb")
    },
    "factor": lambda t: isinstance(t, PtrType | ScalarType),
    "lane": lambda t: isinstance(t, RegisterType | ScalarType),
    "lvreg": lambda t: isinstance(t, LogicalType),
    "lmask": lambda t: isinstance(t, LogicalMaskType),
    "llane": lambda t: isinstance(t, LogicalType | ScalarType),
    "either": lambda t: isinstance(t, LogicalType | LogicalMaskType),
    "single": lambda t: isinstance(t, RegisterType | MaskType),
    "data": lambda t: isinstance(t, TileBufType | ShapedType | ViewType),
}
_ARTICLE = {
    "num": "a number",
    "int": "an integer",
    "float": "a float",
    "ptr": "a pointer",
    "gm": "a pointer or memref in global memory",
    "memory": "a pointer or view of global memory",
    "element": "a pointer, or a view of global memory",
    "view": "a view of global memory",
    "part": "a partition view",
    "tile": "a tile",
    "conv": "a convolution tile",
    "buffer": "a tile or convolution tile",
    "tiles": "a multi_tile_buf",
    "memref": "a memref",
    "local_array": "a !pto.local_array",
    "struct": "a !pto.struct",
    "vreg": "a vector register",
    "mask": "a mask",
    "align": "the state of a stream",
    "ub": "a pointer into the unified buffer",
    **{space: f"a pointer into {space}" for space in ("l1", "l0a", "l0b", "l0c", "bt", "fb")},
    "factor": "a number, or a pointer to parameters",
    "lane": "a vector register or a number",
    "lvreg": "a logical vector",
    "lmask": "a mask of a logical vector",
    "llane": "a logical vector or a number",
    "either": "a logical vector or its mask",
    "single": "a vector register or a mask",
    "data": "a tile or view",
    "pipe": "a !pto.pipe",
    "async_session": "a !pto.async_session",
    "async_event": "a !pto.async_event",
    "prefetch_async_context": "a !pto.prefetch_async_context",
    "index": "an index",
}


def kind_in_words(kind: str) -> str:
    """What an operand of a kind is; a capital stands for a type, the same wherever it stands."""
    return f"of a type {kind}" if kind.isupper() else _ARTICLE.get(kind, kind)


def fits(type_: Type, kind: str) -> bool:
    """Whether a type is of a kind: a test above, a scalar type, or the name of an opaque type."""
    test = _KINDS.get(kind)
    if test is not None:
        return test(type_)
    if isinstance(type_, ScalarType):
        return type_.name == kind
    return isinstance(type_, OpaqueType) and type_.name == kind


# ---- making records ----------------------------------------------------------------------------

_SLOT = regex(r"(\w+)([?*]?)(\d?):(\w+)")


def define(
    name: str,
    signature: str = "",
    format: str = "",
    attrs: str = "",
    *,
    read: Read = read,
    write: Write | None = None,
    infer: Infer | None = None,
    pure: bool = False,
    renames: str = "",
    is_loop: bool = False,
    is_terminator: bool = False,
    allocates: bool = False,
    core: str = "",
    flow: Flow | None = None,
    insn: Insn | None = None,
    micro: Micro | None = None,
    arithmetic: Arithmetic | None = None,
    is_generic: bool = False,
    aliases: str = "",
    properties: str = "",
    ours: str = "",
) -> Definition:
    """Make a record; `attrs` lists "key:type" of attributes whose spelling depends on it."""
    operands, _, results = signature.partition("->")
    pairs = [a.partition(":") for a in attrs.split()]
    return Definition(
        name,
        _slots(operands),
        _slots(results),
        format,
        {key: kind for key, _, kind in pairs},
        read,
        write,
        infer,
        pure,
        renames,
        is_loop,
        is_terminator,
        allocates,
        core,
        flow,
        insn,
        micro,
        arithmetic,
        is_generic,
        tuple(aliases.split()),
        tuple(properties.split()),
        tuple(ours.split()),
    )


def definitions_in(names: Mapping[str, object]) -> list[Definition]:
    """The records that a module has given names to, single or as a tuple, in order."""
    found: dict[Definition, None] = {}
    for value in names.values():
        for each in cast("tuple[object, ...]", value if isinstance(value, tuple) else (value,)):
            if isinstance(each, Definition):
                found[each] = None
    return list(found)


def _slots(text: str) -> tuple[Slot, ...]:
    return tuple(
        Slot(label, kind, mark == "?", mark == "*", int(places or 1))
        for label, mark, places, kind in _SLOT.findall(text)
    )
