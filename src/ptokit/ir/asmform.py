"""The assembly ("sync") form: one instruction per line, results on the left.

    .arg %x : !pto.memref<16x64xf32>;
    .const %o = 0 : index;
    %a = tload %x[%o, %o] : (!pto.memref<16x64xf32>, index, index) -> !pto.tile<16x64xf32>;

The lines become one function; arguments are its parameters. The newer spelling that puts the
destination first and attributes last, `tcmps %dst, %src, 0 : !pto.tile<16x64xf32> #cmp=gt`, is read
where a line has no `=` behind its first names; writing to the same name again makes a new tile.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from ptokit.base.diagnostics import Diagnostic, fail
from ptokit.base.patterns import regex
from ptokit.ir.attributes import (
    Attribute,
    BoolAttr,
    EnumAttr,
    FloatAttr,
    IntAttr,
    enumeration,
    float_text,
)
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.dialects.arith import CONSTANT
from ptokit.ir.dialects.func import RETURN
from ptokit.ir.insntext import read_ssa, write_signature
from ptokit.ir.instructions import FOREIGN_KEYS, Form, forms_of, mnemonics
from ptokit.ir.lexer import Comment, Source
from ptokit.ir.reader import Abandon, Head, Reader
from ptokit.ir.types import Type
from ptokit.ir.typetext import suggestion

_LINE = regex(r"\s*(?:%[\w.]+(?:\s*,\s*%[\w.]+)*\s*=\s*)?([A-Za-z_.][\w.]*)")
_STRUCTURED = ("module", "func.func", "func", "return")
# Names of attributes and values in the newer spelling that differ from ours.
_KEYS = {"cmp": "cmpMode", "rnd": "rmode", "atomic": "atomicType"}
_VALUES = {
    ("rnd", "rne"): "RINT",
    ("rnd", "rz"): "TRUNC",
    ("rnd", "rp"): "CEIL",
    ("rnd", "rm"): "FLOOR",
    ("atomic", "none"): "atomic_none",
    ("atomic", "add"): "atomic_add",
}


def looks_like(text: str) -> bool:
    """Whether a text is in assembly form: its first line is a directive or a bare mnemonic."""
    for line in text.splitlines():
        code = line.partition("//")[0].strip()
        if not code or code.split()[0] == "#":
            continue
        if code.startswith((".arg", ".const")):
            return True
        match = _LINE.match(code)
        word = match.group(1) if match else ""
        return word not in _STRUCTURED and forms_of(word.removeprefix("pto.")) is not None
    return False


# ---- reading -----------------------------------------------------------------------------------


def read(source: Source) -> tuple[Module, list[Diagnostic]]:
    """Read a whole text."""
    reader = _AsmReader(source)
    return reader.module(), reader.errors


class _AsmReader(Reader):
    def module(self) -> Module:
        name = re.sub(r"\W", "_", Path(self.source.file).stem) or "main"
        block = Block()
        function = Function(name if name.strip("_") else "main", block, location=self.place(0))
        while self.kind != "end":
            start = self.at
            try:
                self._line(block)
            except Abandon:
                self.implied.clear()
                self._next_line(start)
        block.ops.append(Op(RETURN.name, location=self.place()))
        return Module([function], location=self.place(0))

    def _next_line(self, start: int) -> None:
        line = self.source.line(self.starts[start])
        self.at = max(self.at, start + 1)
        while self.kind != "end" and self.source.line(self.starts[self.at]) <= line:
            self.at += 1

    def _line(self, block: Block) -> None:
        if self.accept(".arg"):
            place = self.place()
            name = self.take("value", "an argument")
            self.expect(":")
            value = Value(name[1:], self.type(), block, place)
            self.define(name, value, place)
            block.args.append(value)
        elif self.accept(".const"):
            self._constant(block)
        else:
            self._instruction(block)
        self.accept(";")

    def _constant(self, block: Block) -> None:
        place = self.place()
        name = self.take("value", "a constant's name")
        self.expect("=")
        attr = self.attribute()
        if not isinstance(attr, IntAttr | FloatAttr):
            raise self.fail("a constant is a number", location=place)
        op = Op("arith.constant", attrs={"value": attr}, location=place, result_labels=("result",))
        op.results = [Value(name[1:], attr.type, op, place)]
        block.ops.append(op)
        self.define(name, op.results[0], place)

    def _instruction(self, block: Block) -> None:
        if self.kind == "word" and self.texts[self.at + 1] == ":" and forms_of(self.text) is None:
            self.at += 2  # a label; nothing jumps
        head = Head("", self.place())
        while self.kind == "value":
            head.results.append((self.text, self.place()))
            self.at += 1
            if not self.accept(","):
                self.expect("=")
                break
        head.location = self.place()
        word = self.take("word", "an instruction")
        head.name = word
        forms = forms_of(word.removeprefix("pto."))
        if forms is None:
            known = [m.removeprefix("pto.") for m in mnemonics()]
            raise self.fail(
                f"there is no instruction {word}",
                "unknown-op",
                head.location,
                suggestion(word, known),
            )
        is_newer = not head.results and self._destinations(head, forms)
        op = read_ssa(self, head, forms)
        self.check_attributes(op)
        block.ops += [*self.implied, op]
        self.implied.clear()
        for value, (name, place) in zip(op.results, head.results, strict=False):
            value.owner = op
            if is_newer:
                self.rename(name, value)  # the name stands for the new tile from here on
            else:
                self.define(name, value, place)

    def _destinations(self, head: Head, forms: list[Form]) -> bool:
        """Take the destinations if they stand in front of the sources."""
        at, names, given = self.at, [self.at], 0
        while self.kinds[at] in ("value", "number"):
            given += 1
            at += 1
            if self.texts[at] == "[":
                while self.texts[at] not in ("]", ""):
                    at += 1
                at += self.texts[at] == "]"
            if self.texts[at] == "!loc":
                at += 3
            if self.texts[at] != ",":
                break
            at += 1
            names.append(at)
        for form in forms:
            results = [o for o in form.outs if "global" not in o.kinds]
            others = len(form.outs) - len(results)
            counts = {len(f.ins) + others for f in (form, form.without_scratch)}
            if not results or given - len(results) not in counts:
                continue
            for start in names[: len(results)]:
                head.results.append((self.texts[start], self.place(start)))
            self.at = names[len(results)] if len(results) < len(names) else at
            return True
        return False

    def suffixes(self, attrs: dict[str, Attribute], keys: dict[str, str]) -> None:
        """`#key=value` behind the operands or the types; the page's short names are understood."""
        while self.kind == "attr" and self.texts[self.at + 1] == "=":
            place = self.place()
            given = self.text[1:]
            self.at += 2
            key = _KEYS.get(given, given)
            if key not in keys:
                raise self.fail(
                    f"there is no attribute {given} here",
                    "bad-attribute",
                    place,
                    suggestion(given, keys) or f"its attributes: {_listed(keys)}",
                )
            word = _VALUES.get((given, self.text))
            if word is None:
                attrs[key] = self.attribute(keys[key])
            else:
                self.at += 1
                attrs[key] = self.enum(keys[key], word, self.at - 1)

    def block(self, args: list[tuple[str, Value]] | None = None) -> Block:
        raise self.fail("assembly lines have no blocks")


def _listed(keys: dict[str, str]) -> str:
    return ", ".join(key for key in keys if key not in FOREIGN_KEYS) or "none"


# ---- printing ----------------------------------------------------------------------------------


def print_asm(module: Module, comments: Sequence[Comment] = ()) -> str:
    """The assembly form of a module that consists of plain Level 1 lines.

    Comments of its source stay in front of, or behind, the line they belong to.
    """
    if len(module.functions) != 1 or module.functions[0].body is None:
        raise fail(
            "asm-form",
            "assembly text holds the lines of one function",
            got=[("functions", len(module.functions))],
            site=module.location,
        )
    body = module.functions[0].body
    names = _names(body)
    lines = [(a.location.line, f".arg {names[a]} : {a.type};") for a in body.args]
    ops = [op for op in body.ops if not RETURN.matches(op)]
    lines += [(op.location.line, _line(op, names)) for op in ops]
    left = deque(comments)
    found: list[str] = []
    for number, text in lines:
        while left and (left[0].line < number or (left[0].line == number and left[0].is_own_line)):
            found.append(left.popleft().text)
        behind = f"  {left.popleft().text}" if left and left[0].line == number else ""
        found.append(text + behind)
    return "\n".join([*found, *(c.text for c in left)]) + "\n"


def _names(body: Block) -> dict[Value, str]:
    """Names this form can spell: letters, digits, underscores and dots."""
    names: dict[Value, str] = {}
    taken: set[str] = set()
    free: dict[str, int] = {}  # of a wish: all numbers before this one are taken
    for value in [*body.args, *(r for op in body.ops for r in op.results)]:
        wish = re.sub(r"[^\w.]", "_", value.name)
        wish = wish if re.match(r"[A-Za-z_]", wish) else f"v{wish}"
        number = free.get(wish, 0)
        while (name := f"{wish}_{number}" if number else wish) in taken:
            number += 1
        free[wish] = number + 1
        taken.add(name)
        names[value] = f"%{name}"
    return names


def _line(op: Op, names: dict[Value, str]) -> str:
    if CONSTANT.matches(op):
        value = op.attrs["value"]
        return f".const {names[op.result]} = {_number(value, op.result.type)} : {op.result.type};"
    if op.insn is None:
        raise fail(
            "asm-form",
            f"{op.name} cannot be written in assembly form",
            fix="this form has arguments, constants and instructions only",
            site=op.location,
        )
    operands: list[str] = []
    for value, label in zip(op.operands, op.labels, strict=True):
        if label.endswith(".index"):
            operands[-1] = operands[-1].removesuffix("]")
            operands[-1] += (", " if "[" in operands[-1] else "[") + names[value] + "]"
        else:
            operands.append(names[value])
    results = ", ".join(names[r] for r in op.results)
    attrs = ", ".join(f"{key} = {_attribute(value)}" for key, value in op.attrs.items())
    return (
        (f"{results} = " if results else "")
        + f"{op.name.removeprefix('pto.')} {', '.join(operands)}".rstrip()
        + (f" {{{attrs}}}" if attrs else "")
        + f" : {write_signature(op, 'sync')};"
    )


def _number(attr: Attribute, type_: Type) -> str:
    if isinstance(attr, FloatAttr):
        text = float_text(attr.value, type_)
        # The grammar has no exponent: write the digits out.
        return f"{attr.value:.60f}".rstrip("0") + "0" if "e" in text else text
    if isinstance(attr, IntAttr | BoolAttr):
        return str(int(attr.value))
    return str(attr)


def _attribute(attr: Attribute) -> str:
    """Enumerations take their C++ names and the dotted spelling."""
    if isinstance(attr, EnumAttr):
        enum = enumeration(attr.enum)
        word = enum.member_of(attr.value).name if enum.stands_for else attr.value
        word = word if enum.spelling(word) == attr.value else attr.value
        return f"#pto.{attr.enum}<{word}>"
    return str(attr)
