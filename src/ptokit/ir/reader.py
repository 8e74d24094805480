"""Reading tokens: what every syntax function needs - marks, words, values, types, attributes, and
errors that do not stop at the first.

A mistake in the syntax raises `Abandon` and the parser goes on with the next operation; a mistake
in the meaning (an undefined value, a wrong type) is noted and reading continues.
"""

from __future__ import annotations

import re
from dataclasses import field
from itertools import islice

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, Note, ProgramError
from ptokit.base.location import Location
from ptokit.base.patterns import regex
from ptokit.ir.attributes import (
    ArrayAttr,
    Attribute,
    BoolAttr,
    DenseAttr,
    DictAttr,
    EnumAttr,
    FloatAttr,
    IntAttr,
    OpaqueAttr,
    StringAttr,
    SymbolAttr,
    TypeAttr,
    UnitAttr,
    bits_of_float,
    enum_names,
    enumeration,
    float_of_bits,
)
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.instructions import attr_keys, literal, literal_keys, template_value
from ptokit.ir.lexer import Source, Tokens
from ptokit.ir.types import (
    I64,
    INDEX,
    ElidedType,
    FunctionType,
    ScalarType,
    TileBufType,
    Type,
    same_type,
)
from ptokit.ir.typetext import SpellingError, is_scalar, parse_type, suggestion


class Abandon(Exception):  # noqa: N818 - control flow of the reader, never seen outside
    """The operation at hand cannot be read further; its diagnostic has been noted."""


_UNKNOWN = ElidedType("<unknown>")  # the type of a value whose definition could not be read
_ESCAPES = {"n": "\n", "t": "\t"}
_WIDEST = 1 << 16  # bits: more than any number that a text may hold
_INTEGER = regex(r"-?(?:0x[0-9A-Fa-f]+|[0-9]+)")


@dataclass
class Head:
    """What stands in front of an operation's own syntax: results, name, place."""

    name: str
    location: Location
    results: list[tuple[str, Location]] = field(default_factory=list[tuple[str, Location]])


_NEAR = 256  # names, the latest ones, among which a misspelled one is looked for
_QUOTED = 100  # characters of a text that a message repeats


def _cut(text: str, most: int = 4 * _QUOTED) -> str:
    """A text for a message: the middle of what is long says nothing."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 4 :]}"


class Reader:
    """A cursor over the tokens of one text."""

    def __init__(self, source: Source) -> None:
        tokens = Tokens(source)
        self.source = source
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.starts = tokens.starts
        self.at = 0
        self.limits = source.limits
        self.depth = 0
        self.errors: list[Diagnostic] = []
        self.values: dict[str, Value] = {}
        self.undefined: dict[str, Value] = {}  # of this function; each is an error once
        self._hidden: list[tuple[str, Value | None]] = []  # names, with what they stood for before
        self.implied: list[Op] = []  # constants that the operation at hand spells in place
        self.type_aliases: dict[str, Type] = {}
        self.attr_aliases: dict[str, Attribute] = {}

    # ---- errors ------------------------------------------------------------------------------

    def place(self, at: int | None = None) -> Location:
        """The location of a token, by default the next one."""
        at = self.at if at is None else at
        start = self.starts[at]
        return self.source.location(start, start + max(1, len(self.texts[at])))

    def note(
        self,
        code: str,
        message: str,
        location: Location | None = None,
        fix: str = "",
        notes: tuple[Note, ...] = (),
    ) -> None:
        """Note an error and go on."""
        place = location or self.place()
        self._add(Diagnostic(code, _cut(message), place, fix=_cut(fix), notes=notes))

    def _add(self, found: Diagnostic) -> None:
        if self.errors and self.errors[-1] == found:
            return  # what is missing at the end is missed by every region that is open
        self.errors.append(found)
        number = len(self.errors)
        if number >= self.limits.errors:
            place = found.location or self.place()
            stop = self.limits.exceeded("errors", "mistakes or more", number + 1, place)
            raise ProgramError([*self.errors, stop])

    def fail(
        self, message: str, code: str = "syntax", location: Location | None = None, fix: str = ""
    ) -> Abandon:
        """Note an error after which the operation cannot be read further; raise the result."""
        self.note(code, message, location, fix)
        return Abandon()

    def unexpected(self, wanted: str) -> Abandon:
        """The next token is not what the grammar asks for."""
        found = self.texts[self.at]
        if self.kinds[self.at] == "unclosed":
            return self.fail("the string is not closed on its line", fix="end it with a quote")
        shown = repr(_cut(found, _QUOTED)) if found else "the end"
        return self.fail(f"expected {wanted}, found {shown}")

    def over(self, limit: str, what: str, got: int, at: int | None = None) -> Abandon:
        """Something at a token, by default the next one, is more than a limit allows."""
        self._add(self.limits.exceeded(limit, what, got, self.place(at)))
        return Abandon()

    def enter(self) -> None:
        """One level of nesting more; `self.depth -= 1` leaves it."""
        if self.depth >= self.limits.nesting:
            raise self.over("nesting", "levels of nesting", self.depth + 1)
        self.depth += 1

    # ---- tokens ------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        return self.kinds[self.at]

    @property
    def text(self) -> str:
        return self.texts[self.at]

    def sees(self, text: str) -> bool:
        return self.texts[self.at] == text and self.kinds[self.at] != "string"

    def accept(self, text: str) -> bool:
        """Step over a mark or word if it is next."""
        if self.texts[self.at] == text and self.kinds[self.at] != "string":
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.unexpected(repr(text))

    def take(self, kind: str, wanted: str) -> str:
        """Step over a token of a kind and return its text."""
        if self.kinds[self.at] != kind:
            raise self.unexpected(wanted)
        self.at += 1
        return self.texts[self.at - 1]

    def starts_statement(self) -> bool:
        """Whether the values from here on are results: `%a =`, `%a, %b =` or `%a:2 =`."""
        at = self.at
        while self.kinds[at] == "value":
            behind = self.texts[at + 1]
            if behind == "=" or (behind == ":" and self.kinds[at + 2] == "number"):
                return True
            if behind != ",":
                return False
            at += 2
        return False

    def string(self) -> str:
        text = self.take("string", "a string")
        return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m.group(1), m.group(1)), text[1:-1])

    def symbol(self) -> str:
        text = self.take("symbol", "a symbol such as @name")
        return text[2:-1] if text[1] == '"' else text[1:]

    def integer(self, type_: Type = I64) -> int:
        """An integer that fits its type."""
        text = self.take("number", "an integer")
        if not _INTEGER.fullmatch(text):
            self.at -= 1
            raise self.unexpected("an integer")
        return self._fitting(int(text, 16 if "x" in text else 10), type_, self.at - 1)

    def _fitting(self, value: int, type_: Type, at: int) -> int:
        """A number of token `at`; of n bits it may be the signed or the unsigned one."""
        bits = min(type_.bits, _WIDEST) if isinstance(type_, ScalarType) else 64
        if not -(1 << bits >> 1) <= value < 1 << bits:
            raise self.fail(
                f"{_cut(self.texts[at], _QUOTED)} does not fit {type_}",
                "bad-attribute",
                self.place(at),
                f"its values are {-(1 << bits >> 1)} to {(1 << bits) - 1}" if bits <= 64 else "",
            )
        return value

    def _float(self, text: str, type_: ScalarType, at: int) -> float:
        """The float that token `at` spells: digits, or its bits."""
        if "x" not in text:
            return float(text)
        bits = int(text, 16)
        if not 0 <= bits < 1 << bits_of_float(type_):
            raise self.fail(
                f"{_cut(text, _QUOTED)} is no bit pattern of {type_}",
                "bad-attribute",
                self.place(at),
                f"write at most {bits_of_float(type_) // 4} digits after 0x, without a sign",
            )
        return float_of_bits(bits, type_)

    # ---- values ------------------------------------------------------------------------------

    def address(self) -> Value:
        """`@tile(0x1000)`: an on-chip address in place; a constant of its own behind the scenes."""
        place = self.place()
        self.expect("@tile")
        self.expect("(")
        attr = IntAttr(self.integer(INDEX), INDEX)
        self.expect(")")
        return self._implied("addr", attr, place)

    def immediate(self, beside: list[Type]) -> Value:
        """A number in place of a scalar; hexadecimal digits beside f32 tiles are its bits."""
        place = self.place()
        text = self.take("number", "a number")
        f32 = ScalarType("f32")
        if "x" in text and any(
            isinstance(t, TileBufType) and t.spec.dtype.mlir == "f32" for t in beside
        ):
            return self._implied("imm", FloatAttr(self._float(text, f32, self.at - 1), f32), place)
        if _INTEGER.fullmatch(text):
            self.at -= 1
            i32 = ScalarType("i32")
            return self._implied("imm", IntAttr(self.integer(i32), i32), place)
        return self._implied("imm", FloatAttr(float(text), f32), place)

    def _implied(self, name: str, attr: IntAttr | FloatAttr, place: Location) -> Value:
        """A constant that an operation spells in place."""
        op = Op("arith.constant", attrs={"value": attr}, location=place, result_labels=("result",))
        op.results = [Value(name, attr.type, op, place)]
        self.implied.append(op)
        return op.results[0]

    def suffixes(self, attrs: dict[str, Attribute], keys: dict[str, str]) -> None:
        """Attributes behind an operation, in the forms that have them there."""

    def value(self) -> Value:
        """A use of a value. An undefined one is noted, the first time, and stands for itself."""
        name = self.take("value", "a value such as %x")
        found = self.values.get(name) or self.undefined.get(name)
        if found is None:
            known = islice(reversed(self.values), _NEAR)
            self.note(
                "undefined-value",
                f"{name} is not defined here",
                self.place(self.at - 1),
                suggestion(name, known) or "define it above this line, in this or an outer block",
            )
            found = self.undefined[name] = Value(name[1:].replace("#", "_"), _UNKNOWN)
        return found

    def typed(self, value: Value, at: int) -> None:
        """Read the type written for a value used at token `at`, and compare."""
        start = self.at
        written = self.type(like=value.type)
        if value.type is written:
            return
        if not same_type(value.type, written):
            self.note(
                "type-mismatch",
                f"{self.texts[at]} is used with another type than it was defined with",
                self.place(start),
                f"write {value.type}",
                (Note(f"defined as {value.type}", value.location),),
            )

    def define(self, name: str, value: Value, location: Location) -> None:
        """Make a name known from here to the end of its block."""
        old = self.values.get(name)
        if old is not None:
            self.note(
                "redefined-value",
                f"{name} is defined twice",
                location,
                "give one of them another name",
                (Note("first defined here", old.location),),
            )
        self.rename(name, value)

    def rename(self, name: str, value: Value) -> None:
        """As `define`, for a name that may have stood for something else."""
        self._hidden.append((name, self.values.get(name)))
        self.values[name] = value

    def open_scope(self) -> int:
        """Names from here on are forgotten when `close_scope` is given the result."""
        return len(self._hidden)

    def close_scope(self, opened: int) -> None:
        while len(self._hidden) > opened:
            name, before = self._hidden.pop()
            if before is None:
                del self.values[name]
            else:
                self.values[name] = before

    def make_results(self, head: Head, types: list[Type] | tuple[Type, ...]) -> list[Value]:
        """The result values of an operation, which may all go without a name."""
        if not head.results:
            return [Value("unused", type_, None, head.location) for type_ in types]
        if len(types) != len(head.results):
            self.note(
                "result-count",
                f"{head.name} has {len(types)} result{'s' if len(types) != 1 else ''}, "
                f"{len(head.results)} named",
                head.location,
                "write one name per result in front of '='",
            )
        return [
            Value(name[1:].replace("#", "_"), type_, None, location)
            for (name, location), type_ in zip(head.results, types, strict=False)
        ]

    def check_attributes(self, op: Op) -> None:
        """Note template arguments that are none, and operands that are neither given nor written
        as attributes."""
        if op.insn is None or op.insn.asm is None:
            return
        for key, attr in attr_keys(op.insn).items() if op.attrs else ():
            try:
                template_value(attr, op.attrs.get(key))
            except ValueError as error:
                self.note("bad-attribute", f"{op.name}: {key}: {error}", op.location)
        needed = {o.name: o for o in literal_keys(op.insn).values() if not o.optional}
        for name, operand in needed.items():
            if op.bound(name) is None and literal(op, operand) is None:
                keys = [k for k, each in literal_keys(op.insn).items() if each is operand]
                what = f"{op.name} needs {' or '.join(keys)}"
                self.note("bad-attribute", what, op.location, f"add {keys[0]} = ...")

    # ---- types -------------------------------------------------------------------------------

    def type(self, like: Type | None = None) -> Type:
        """Read a type. Where its name is plain, as in a type `like` this one, it may be left out:
        `<f32>` for `!pto.ptr<f32>`."""
        kind, text = self.kinds[self.at], self.texts[self.at]
        if kind == "mark" and text == "(":
            return self.function_type()
        if kind == "mark" and text == "<" and like is not None:
            return self._unnamed_type(str(like).partition("<")[0])
        if kind not in ("type", "word"):
            raise self.unexpected("a type")
        self.at += 1
        if text in self.type_aliases:
            return self.type_aliases[text]
        try:
            return parse_type(text)
        except SpellingError as error:
            self.spelling(error, self.at - 1, "unknown-type")
            return _UNKNOWN

    def _unnamed_type(self, name: str) -> Type:
        first = self.at
        depth = 0
        while self.kind != "end":
            depth += {"<": 1, ">": -1}.get(self.text, 0)
            self.at += 1
            if depth == 0:
                break
        last = self.starts[self.at - 1] + 1
        try:
            return parse_type(name + self.source.text[self.starts[first] : last])
        except SpellingError as error:
            error.offset = max(0, error.offset - len(name))
            self.spelling(error, first, "unknown-type")
            return _UNKNOWN

    def spelling(self, error: SpellingError, at: int, code: str) -> None:
        """Note an error inside a token."""
        start = self.starts[at] + error.offset
        self.note(
            code,
            error.message,
            self.source.location(start, start + max(1, error.length)),
            error.fix,
        )

    def function_type(self) -> FunctionType:
        inputs = self.type_list_in_parentheses()
        self.expect("->")
        return FunctionType(tuple(inputs), tuple(self.result_types()))

    def result_types(self) -> list[Type]:
        """`T` or `(T, T)`."""
        return self.type_list_in_parentheses() if self.sees("(") else [self.type()]

    def type_list_in_parentheses(self) -> list[Type]:
        self.expect("(")
        types: list[Type] = []
        self.enter()
        try:
            while not self.accept(")"):
                if types:
                    self.expect(",")
                types.append(self.type())
        finally:
            self.depth -= 1
        return types

    def type_list(self) -> list[Type]:
        """One type or several, separated by commas."""
        types = [self.type()]
        while self.accept(","):
            types.append(self.type())
        return types

    # ---- attributes --------------------------------------------------------------------------

    def attribute(self, declared: str = "") -> Attribute:
        """Read an attribute value. `declared` is the type or enumeration its place asks for."""
        kind, text = self.kind, self.text
        if kind == "attr":
            self.at += 1
            return self._dialect_attribute(text)
        if kind == "string":
            return self._quoted(self.string(), declared)
        if kind == "number":
            return self._number(declared)
        if kind == "symbol":
            return SymbolAttr(self.symbol())
        if kind == "type":
            return TypeAttr(self.type())
        if kind == "word":
            return self._word(text, declared)
        if text == "<" and declared in enum_names():
            return self._short_enum(declared)
        if text == "(":
            return TypeAttr(self.type())
        if text == "[":
            return ArrayAttr(tuple(self._items("[", "]")))
        if text == "{":
            return DictAttr(tuple(self.attr_dict().items()))
        raise self.unexpected("an attribute value")

    def _quoted(self, text: str, declared: str) -> Attribute:
        """A string, or a member of the enumeration that the place asks for; of pipes anywhere."""
        for name in (declared, "pipe") if declared in enum_names() else ():
            member = enumeration(name).spelling(text)
            if member is not None:
                return EnumAttr(name, member)
        return StringAttr(text)

    def _word(self, text: str, declared: str) -> Attribute:
        self.at += 1
        if text in ("true", "false"):
            return BoolAttr(text == "true")
        if text == "unit":
            return UnitAttr()
        if declared in enum_names():
            return self.enum(declared, text, self.at - 1)
        if is_scalar(text):
            return TypeAttr(ScalarType(text))
        self.at -= 1
        raise self.unexpected("an attribute value")

    def _number(self, declared: str) -> Attribute:
        text, at = self.text, self.at
        self.at += 1
        if self.accept(":"):
            type_: Type = self.type()
        else:
            type_ = ScalarType(declared) if is_scalar(declared) else I64
            if type_ == I64 and re.search(r"[.eE]", text) and not text.startswith("0x"):
                type_ = ScalarType("f64")
        if isinstance(type_, ScalarType) and type_.is_float:
            return FloatAttr(self._float(text, type_, at), type_)
        if not _INTEGER.fullmatch(text):
            raise self.fail(f"{text} is not an integer", "bad-attribute", self.place(at))
        value = int(text, 16 if "x" in text else 10)
        return IntAttr(self._fitting(value, type_, at), type_)

    def _items(self, opening: str, closing: str) -> list[Attribute]:
        self.expect(opening)
        items: list[Attribute] = []
        self.enter()
        try:
            while not self.accept(closing):
                if items:
                    self.expect(",")
                items.append(self.attribute())
        finally:
            self.depth -= 1
        return items

    def _short_enum(self, name: str) -> EnumAttr:
        self.expect("<")
        at = self.at
        word = self.take("word", f"a member of {name}")
        self.expect(">")
        return self.enum(name, word, at)

    def enum(self, name: str, word: str, at: int) -> EnumAttr:
        """A member of an enumeration, from its spelling in token `at`."""
        found = enumeration(name)
        member = found.spelling(word)
        if member is None:
            listed = ", ".join(found.members)
            self.note(
                "bad-attribute",
                f"{name} has no member {word!r}",
                self.place(at),
                suggestion(word, found.members) or f"one of {listed}",
            )
            member = next(iter(found.members))
        return EnumAttr(found.name, member)

    def _dialect_attribute(self, text: str) -> Attribute:
        at = self.at - 1
        if text in self.attr_aliases:
            return self.attr_aliases[text]
        if text.startswith("dense<"):
            self.expect(":")
            return DenseAttr(text[6:-1], self.type())
        if text.startswith("array<"):
            element, _, items = text[6:-1].partition(":")
            words = [word.strip() for word in items.split(",") if word.strip()]
            if not is_scalar(element.strip()) or not all(map(_INTEGER.fullmatch, words)):
                raise self.fail(
                    "an array holds integers of one type",
                    "bad-attribute",
                    self.place(at),
                    "write array<i32: 1, 0>",
                )
            kind = ScalarType(element.strip())
            values = [int(word, 16 if "x" in word else 10) for word in words]
            return ArrayAttr(tuple(IntAttr(self._fitting(n, kind, at), kind) for n in values), kind)
        if match := re.fullmatch(r"#pto<\s*(\w+)\s+([\w-]+)\s*>|#pto\.(\w+)<\s*(\w+)\s*>", text):
            name, word = match.group(1) or match.group(3), match.group(2) or match.group(4)
            if name in enum_names():
                return self.enum(name, word, at)
            raise self.fail(
                f"there is no attribute {name!r}",
                "bad-attribute",
                self.place(at),
                suggestion(name, enum_names()),
            )
        return OpaqueAttr(" ".join(text.split()))

    def attr_dict(self, declared: dict[str, str] | None = None) -> dict[str, Attribute]:
        """`{a = 1, b}`; `declared` gives the types or enumerations of known keys."""
        self.expect("{")
        found: dict[str, Attribute] = {}
        self.enter()
        try:
            while not self.accept("}"):
                if found:
                    self.expect(",")
                where = self.place()
                key = self.string() if self.kind == "string" else self.dashed_word()
                if key in found:
                    self.note("bad-attribute", f"{key} is given twice", where)
                known = (declared or {}).get(key, "")
                found[key] = self.attribute(known) if self.accept("=") else UnitAttr()
        finally:
            self.depth -= 1
        return found

    def dashed_word(self) -> str:
        """A bare key; hyphens may join several words (`pto.device-spec`)."""
        word = self.take("word", "an attribute name")
        while self.text == "-" and self.starts[self.at] == self.starts[self.at - 1] + len(
            self.texts[self.at - 1]
        ):
            self.at += 1
            word += "-" + self.take("word", "the rest of the attribute name")
        return word

    def skip_location(self) -> None:
        """Step over a trailing `loc(...)`."""
        if self.sees("loc") and self.texts[self.at + 1] == "(":
            self.at += 1
            depth = 0
            while True:
                depth += {"(": 1, ")": -1}.get(self.text, 0)
                self.at += 1
                if depth == 0 or self.kind == "end":
                    return

    # ---- blocks ------------------------------------------------------------------------------

    def block(self, args: list[tuple[str, Value]] | None = None) -> Block:
        """`{ operations }`; the names of `args` are known inside."""
        raise NotImplementedError

    def operation(self, head: Head) -> Op:
        """Read one operation behind its results and name."""
        raise NotImplementedError
