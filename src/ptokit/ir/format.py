"""A small language for the syntax of operations: one string reads and prints an operation.

    "%ptr, %offset {} : T(ptr) -> T(result)"

| piece | stands for |
|---|---|
| `%x`, `%x...` | the operand labelled x; a list of operands |
| `%x` or `%y` as one, with a bar between | the operand x or y, whichever takes its type |
| `T(x)`, `T(x...)` | the type of operand or result x; their types |
| `@x` | the value of attribute x |
| `W(x)` | the word that attribute x is, without quotes: one of those that the record lists |
| `{}` | the remaining attributes, left out when there are none |
| `{a, b:c, d?}` | a dictionary with these keys in this order; `b:c` writes attribute c as b |
| `[?...?]` | an optional part; printed when its first operand or attribute is there |
| `[?...?|...?]` | the first part as above, the second where it is not there |
| `'...'` | one token, such as an attribute that never changes |
| `N(a, b)` | those of the operands that are there, `a = %x : T, b = %y : T`, in any order |
| `M(x)` | a list of integers and operands: integers are the attribute static_x |
| `R` | a region |
| `,?` | a comma that may be missing |
| anything else | itself |

Spaces matter for printing only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING

from ptokit.base.dataclass import dataclass
from ptokit.base.patterns import regex
from ptokit.ir.attributes import (
    ArrayAttr,
    Attribute,
    EnumAttr,
    IntAttr,
    StringAttr,
    dict_text,
)
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.reader import Head, Reader
from ptokit.ir.types import I64, ElidedType, Type

if TYPE_CHECKING:
    from ptokit.ir.dialects.definition import Definition
    from ptokit.ir.printer import Printer

_PIECE = regex(
    r"\s*(?:(?P<open>\[\?)|(?P<close>\?\])|(?P<other>\?\|)|(?P<token>'[^']+')"
    r"|(?P<operand>%\w+(?:\|\w+)*(?:\.\.\.)?)"
    r"|(?P<type>T\(\w+(?:\|\w+)*(?:\.\.\.)?\))|(?P<mixed>M\(\w+\))|(?P<named>N\([\w, ]+\))"
    r"|(?P<bare>W\(\w+\))"
    r"|(?P<attr>@\w+)|(?P<dict>\{\})"
    r"|(?P<keys>\{\w[\w:?, ]*\})|(?P<region>\bR\b)|(?P<maybe>,\?)|(?P<word>\w+)"
    r"|(?P<mark>->|[^\s\w]))"
)


@dataclass
class Draft:
    """An operation while it is being read."""

    operands: list[Value] = field(default_factory=list[Value])
    labels: list[str] = field(default_factory=list[str])
    tokens: list[int] = field(default_factory=list[int])  # where each operand was written
    types: dict[str, list[Type]] = field(default_factory=dict[str, list[Type]])
    attrs: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    regions: list[Block] = field(default_factory=list[Block])

    def add(self, label: str, value: Value, token: int) -> None:
        self.operands.append(value)
        self.labels.append(label)
        self.tokens.append(token)


@dataclass(frozen=True)
class Piece:
    """One piece of a format: its kind, its text, and whether a space stands in front."""

    kind: str
    text: str
    spaced: bool
    inner: tuple[Piece, ...] = ()
    other: tuple[Piece, ...] = ()  # in the place of `inner` where that is not there

    @property
    def is_list(self) -> bool:
        return self.text.endswith("...")

    @property
    def labels(self) -> list[str]:
        return self.text.removesuffix("...").split("|")


def compile_format(text: str) -> tuple[Piece, ...]:
    """Turn a format string into pieces."""
    stack: list[list[Piece]] = [[]]
    spaces: list[bool] = []
    first: dict[int, tuple[Piece, ...]] = {}  # parts, by depth, that another may stand for
    at = 0
    while at < len(text.rstrip()):
        match = _PIECE.match(text, at)
        assert match is not None, text[at:]
        assert match.lastgroup is not None
        kind, piece = match.lastgroup, match.group(match.lastgroup)
        spaced = match.group().startswith(" ")
        at = match.end()
        if kind == "open":
            stack.append([])
            spaces.append(spaced)
        elif kind == "other":
            part, stack[-1] = tuple(stack[-1]), []
            first[len(stack)] = part
        elif kind == "close":
            inner = first.pop(len(stack), None)
            last = tuple(stack.pop())
            parts = (last, ()) if inner is None else (inner, last)
            stack[-1].append(Piece("optional", "", spaces.pop(), *parts))
        else:
            stack[-1].append(Piece(kind, _NAME[kind](piece), spaced))
    return tuple(stack[0])


_NAME: dict[str, Callable[[str], str]] = {
    "operand": lambda p: p[1:],
    "type": lambda p: p[2:-1],
    "mixed": lambda p: p[2:-1],
    "named": lambda p: p[2:-1],
    "attr": lambda p: p[1:],
    "bare": lambda p: p[2:-1],
    "keys": lambda p: p[1:-1],
    "dict": lambda p: "",
    "region": lambda p: "",
    "maybe": lambda p: ",",
    "word": lambda p: p,
    "mark": lambda p: p,
    "token": lambda p: p[1:-1],
}


# ---- reading -----------------------------------------------------------------------------------


def read(reader: Reader, head: Head, definition: Definition) -> Op:
    """Read an operation by its format."""
    draft = Draft()
    for piece in definition.pieces:
        _read_piece(reader, piece, draft, definition)
    return finish(reader, head, definition, draft)


def finish(reader: Reader, head: Head, definition: Definition, draft: Draft) -> Op:
    """Check the operands against the definition and make the operation with its results."""
    draft.labels = definition.settled(draft.labels)
    definition.check_operands(reader, head, draft)
    types = definition.result_types(reader, head, draft)
    operands, labels = definition.in_order(draft.operands, draft.labels)
    return Op(
        definition.name,
        operands,
        labels,
        reader.make_results(head, types),
        definition.result_labels(len(types)),
        draft.attrs,
        draft.regions,
        head.location,
        definition.insn,
    )


def _read_piece(reader: Reader, piece: Piece, draft: Draft, definition: Definition) -> None:
    kind = piece.kind
    if kind in ("word", "mark", "token"):
        reader.expect(piece.text)
    elif kind == "operand":
        _read_operands(reader, piece, draft, definition)
    elif kind == "type":
        _read_types(reader, piece, draft)
    elif kind == "attr":
        draft.attrs[piece.text] = reader.attribute(definition.attr_types.get(piece.text, ""))
    elif kind == "bare":
        _read_bare(reader, piece, draft, definition)
    elif kind == "dict":
        if reader.sees("{"):
            draft.attrs.update(reader.attr_dict(definition.attr_types))
    elif kind == "keys":
        _read_keys(reader, piece, draft, definition)
    elif kind == "optional":
        begins = _begin(reader, piece.inner, definition)
        is_there = begins and not _is_type_of_missing(piece, draft, definition)
        for inner in piece.inner if is_there else piece.other:
            _read_piece(reader, inner, draft, definition)
    elif kind == "region":
        draft.regions.append(reader.block())
    elif kind == "maybe":
        reader.accept(piece.text)
    elif kind == "named":
        _read_named(reader, piece, draft, definition)
    else:
        _read_mixed(reader, piece, draft)


def _is_type_of_missing(piece: Piece, draft: Draft, definition: Definition) -> bool:
    """Whether a part shows the types of operands that are not there."""
    shown = {n for inner in piece.inner if inner.kind == "type" for n in inner.labels}
    own = {slot.label for slot in definition.operands}
    has_operand = any(inner.kind == "operand" for inner in piece.inner)
    return bool(shown & own) and not has_operand and not shown & set(draft.labels)


def _begin(reader: Reader, pieces: tuple[Piece, ...], definition: Definition) -> bool:
    """Whether a part is next. Several may begin with a comma: what stands behind it decides."""
    if not _begins(reader, pieces[0], definition):
        return False
    behind = pieces[1] if pieces[0].text == "," and len(pieces) > 1 else None
    if behind is None or behind.kind not in ("word", "bare", "operand"):
        return True
    reader.at += 1
    found = _begins(reader, behind, definition)
    reader.at -= 1
    return found


def _choices(piece: Piece, definition: Definition) -> tuple[str, ...]:
    word = definition.micro.word(piece.text) if definition.micro is not None else None
    assert word is not None, f"{definition.name} has no word {piece.text}"
    return word.choices


def _read_bare(reader: Reader, piece: Piece, draft: Draft, definition: Definition) -> None:
    choices = _choices(piece, definition)
    if reader.text not in choices:
        raise reader.unexpected(f"{piece.text}, which is one of {', '.join(choices)}")
    before = draft.attrs.setdefault(piece.text, StringAttr(reader.text))
    if before != StringAttr(reader.text):  # it is written twice
        raise reader.unexpected(f"{before} as in front")
    reader.at += 1


def _begins(reader: Reader, piece: Piece, definition: Definition) -> bool:
    if piece.kind == "operand":
        return reader.kind == "value" and not reader.starts_statement()
    if piece.kind == "bare":
        return reader.text in _choices(piece, definition)
    if piece.kind == "attr":
        return reader.kind in ("number", "string", "attr") or reader.sees("<")
    if piece.kind == "keys":  # which of two dictionaries it is, its first key says
        keys = [key for key, _, _ in keys_of(piece.text)]
        return reader.sees("{") and reader.texts[reader.at + 1] in keys
    return reader.sees(piece.text)


def _read_operands(reader: Reader, piece: Piece, draft: Draft, definition: Definition) -> None:
    first, *others = piece.labels
    while not piece.is_list or reader.kind == "value":
        value = reader.value()
        takes = (n for n in piece.labels if definition.takes(n, value.type)) if others else ()
        draft.add(next(iter(takes), first), value, reader.at - 1)
        if not piece.is_list:
            return
        if reader.kinds[reader.at + 1] != "value" or not reader.accept(","):
            return


def _read_types(reader: Reader, piece: Piece, draft: Draft) -> None:
    mine = [i for i, label in enumerate(draft.labels) if label in piece.labels]
    if not mine:
        like = draft.operands[0].type if draft.operands else None
        draft.types[piece.labels[0]] = reader.type_list() if piece.is_list else [reader.type(like)]
    for n, index in enumerate(mine):
        if n:
            reader.expect(",")
        reader.typed(draft.operands[index], draft.tokens[index])


def keys_of(text: str) -> list[tuple[str, str, bool]]:
    """(key, attribute, needed) of `a, b:c, d?`."""
    found: list[tuple[str, str, bool]] = []
    for part in text.split(","):
        word = part.strip()
        key, _, attr = word.rstrip("?").partition(":")
        found.append((key, attr or key, not word.endswith("?")))
    return found


def _read_keys(reader: Reader, piece: Piece, draft: Draft, definition: Definition) -> None:
    keys = keys_of(piece.text)
    where = reader.place()
    given = reader.attr_dict({key: definition.attr_types.get(attr, "") for key, attr, _ in keys})
    for key, attr, needed in keys:
        if key in given:
            draft.attrs[attr] = given.pop(key)
        elif needed:
            reader.note("bad-attribute", f"{definition.name} needs {key}", where)
    for key in given:
        listed = ", ".join(k for k, _, _ in keys)
        reader.note("bad-attribute", f"{definition.name} has no {key}; it takes {listed}", where)


def _read_mixed(reader: Reader, piece: Piece, draft: Draft) -> None:
    numbers: list[Attribute] = []
    reader.expect("[")
    while not reader.accept("]"):
        if numbers:
            reader.expect(",")
        if reader.kind == "value":
            draft.add(piece.text, reader.value(), reader.at - 1)
            numbers.append(IntAttr(_DYNAMIC, I64))
        else:
            numbers.append(IntAttr(reader.integer(), I64))
    draft.attrs[f"static_{piece.text}"] = ArrayAttr(tuple(numbers))


def _read_named(reader: Reader, piece: Piece, draft: Draft, definition: Definition) -> None:
    known = [name.strip() for name in piece.text.split(",")]
    while reader.kind == "word":
        where, name = reader.place(), reader.take("word", "an operand")
        if name not in known or name in draft.labels:
            listed = ", ".join(known)
            message = f"{definition.name} takes each of {listed} once, not {name}"
            raise reader.fail(message, "operand-count", where)
        reader.expect("=")
        draft.add(name, reader.value(), reader.at - 1)
        reader.expect(":")
        reader.typed(draft.operands[-1], draft.tokens[-1])
        if not reader.accept(","):
            return


_DYNAMIC = -(1 << 63)  # MLIR's mark for "see the operand"


# ---- printing ----------------------------------------------------------------------------------


def write(printer: Printer, op: Op, definition: Definition) -> str:
    """Print what stands behind the operation's name."""
    spelled = set(definition.spelled_attrs)
    out: list[str] = []
    for piece in definition.pieces:
        _write_piece(printer, op, piece, definition, spelled, out)
    return "".join(out)


def _write_piece(
    printer: Printer,
    op: Op,
    piece: Piece,
    definition: Definition,
    spelled: set[str],
    out: list[str],
) -> None:
    kind = piece.kind
    if kind == "optional":
        shown = piece.inner if _is_there(op, piece.inner) else piece.other
        if shown and piece.spaced:
            out.append(" ")
        for inner in shown:
            _write_piece(printer, op, inner, definition, spelled, out)
        return
    text = _piece_text(printer, op, piece, definition, spelled)
    if text is not None:
        out.append(f" {text}" if piece.spaced else text)


def _piece_text(
    printer: Printer, op: Op, piece: Piece, definition: Definition, spelled: set[str]
) -> str | None:
    kind = piece.kind
    if kind in ("word", "mark", "maybe", "token"):
        return piece.text
    if kind == "operand":
        return ", ".join(printer.name(v) for n in piece.labels for v in op.group(n))
    if kind == "type":
        return ", ".join(str(t) for n in piece.labels for t in _types_of(op, n))
    if kind == "attr":
        return short_text(op.attrs[piece.text], definition.attr_types.get(piece.text, ""))
    if kind == "bare":
        word = op.attrs[piece.text]
        return word.value if isinstance(word, StringAttr) else str(word)
    if kind == "dict":
        rest = {k: v for k, v in op.attrs.items() if k not in spelled}
        return dict_text(rest) if rest else None
    if kind == "keys":
        given = [
            f"{key} = {short_text(op.attrs[attr], definition.attr_types.get(attr, ''), True)}"
            for key, attr, _ in keys_of(piece.text)
            if attr in op.attrs
        ]
        return "{" + ", ".join(given) + "}"
    if kind == "region":
        return printer.block(op.regions[0])
    if kind == "named":
        names = [name.strip() for name in piece.text.split(",")]
        given = [(name, v) for name in names for v in op.group(name)]
        return ", ".join(f"{name} = {printer.name(v)} : {v.type}" for name, v in given)
    return _mixed_text(printer, op, piece.text)


def _is_there(op: Op, pieces: Iterable[Piece]) -> bool:
    for piece in pieces:
        if piece.kind == "operand":
            return any(n in op.labels for n in piece.labels)
        if piece.kind in ("attr", "bare"):
            return piece.text in op.attrs
        if piece.kind == "keys":
            return any(attr in op.attrs for _, attr, _ in keys_of(piece.text))
        if piece.kind == "type":
            return any(n in op.labels or n in op.result_labels for n in piece.labels)
    return False


def _types_of(op: Op, label: str) -> list[Type]:
    return [v.type for v in op.group(label)] or [
        v.type for v, each in zip(op.results, op.result_labels, strict=True) if each == label
    ]


def short_text(attr: Attribute, declared: str, full: bool = False) -> str:
    """An attribute where its place says the type: `<PIPE_V>` and plain numbers."""
    if isinstance(attr, IntAttr):
        return str(attr.value) if str(attr.type) == (declared or "i64") else str(attr)
    if isinstance(attr, EnumAttr) and attr.enum == declared and not full:
        return f"<{attr.value}>" if attr.enum != "predicate" else attr.value
    return str(attr)


def _mixed_text(printer: Printer, op: Op, label: str) -> str:
    values = iter(op.group(label))
    numbers = op.attrs[f"static_{label}"]
    assert isinstance(numbers, ArrayAttr)
    parts = [
        printer.name(next(values)) if n.value == _DYNAMIC else str(n.value)
        for n in numbers.items
        if isinstance(n, IntAttr)
    ]
    return f"[{', '.join(parts)}]"


def is_unknown(type_: Type) -> bool:
    """Whether a type stands for one that could not be read."""
    return isinstance(type_, ElidedType)
