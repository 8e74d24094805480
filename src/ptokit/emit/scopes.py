"""Vector code: a scope is a `__VEC_SCOPE__`, an operation the statement that its record has.

A statement names operands, results and words in braces. `{word:A=X;B=Y}` writes X for A, `$` in it
is the width of a lane; `{word:?, PRE_}` writes nothing unless the word is there, and else `PRE_`
before it. A statement that begins with & is another name for the register behind it.
"""

from __future__ import annotations

from string import Formatter
from typing import Any

from ptokit.emit.expressions import Expr
from ptokit.emit.writer import Writer
from ptokit.ir.attributes import StringAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects.micro import scope_arguments
from ptokit.ir.micro_calls import element_of, record_of
from ptokit.ir.types import MaskType, PtrType, RegisterType, ScalarType, Type
from ptokit.isa.micro import Micro

SPACES = {  # how C++ calls the memory of a pointer
    "": "__gm__",
    "ub": "__ubuf__",
    "l1": "__cbuf__",
    "l0a": "__ca__",
    "l0b": "__cb__",
    "l0c": "__cc__",
    "fb": "__fbuf__",
}


class Scopes(Writer):
    """Writes scopes and what is in them."""

    def vector_scope(self, op: Op) -> None:
        (body,) = op.regions
        for inside, given in scope_arguments(op):
            self.folded[inside] = self._expr(given)
        self._line("__VEC_SCOPE__ {")
        with self._scope():
            self._block(body)
        self._line("}")

    def micro_operation(self, op: Op) -> None:
        record = record_of(op)
        if not record.cpp:
            raise self._refuse(op.name, op)
        if record.cpp.startswith("&"):
            kind = self._register(op.result, op)
            source = self._use(op.operands[0])
            if kind == register_type(op.operands[0].type):  # one type of C++: one mask
                self.folded[op.result] = Expr(source)
                return
            self._line(f"{kind} &{self._declare(op.result)} = ({kind} &){source};")
            return
        unsaid = [n for n in (*op.labels, *op.result_labels) if not _says(record, n)]
        if unsaid:
            raise self._refuse(f"{op.name} with {unsaid[0]}", op)
        kinds = {self._declare(result): self._register(result, op) for result in op.results}
        statement = _Statement(self, op, record).vformat(record.cpp, (), {})
        given, *rest = statement.partition(" = ")
        if given in kinds and len(kinds) == 1:  # it is declared where it is given its value
            self._line(f"{kinds[given]} {given}{''.join(rest)};")
            return
        for name, kind in kinds.items():
            self._line(f"{kind} {name};")
        self._line(f"{statement};")

    def _register(self, value: Value, op: Op) -> str:
        kind = value.type
        if found := register_type(kind):
            return found
        if isinstance(kind, ScalarType) and not kind.is_float:
            return f"uint{kind.bits}_t"
        raise self._refuse(f"a value of type {kind}", op)

    def cast_local(self, op: Op) -> None:
        """An address, or a pointer, as a pointer to another type."""
        kind = op.result.type
        if not isinstance(kind, PtrType) or kind.space not in SPACES or kind.element.dtype is None:
            raise self._refuse(f"{op.name} to {kind}", op)
        written = f"{SPACES[kind.space]} {kind.element.dtype.cpp} *"
        source = self._hex(op.operands[0])
        self._line(f"{written}{self._declare(op.result)} = ({written}){source.text};")


def register_type(kind: Type) -> str:
    """The C++ type of a register or a mask; else nothing."""
    if isinstance(kind, RegisterType) and kind.element.dtype is not None:
        return f"RegTensor<{kind.element.dtype.cpp}>"
    return "MaskReg" if isinstance(kind, MaskType) else ""


def _says(record: Micro, name: str) -> bool:
    """Whether the statement of an operation has a place for an operand or result."""
    slot = record.slot(name)
    is_always = slot is not None and not slot.is_optional and "{all}" in record.cpp
    return is_always or f"{{{name}}}" in record.cpp or f"{{{name}[" in record.cpp


class _Statement(Formatter):
    """Fills the statement of a record with the operands of an operation."""

    def __init__(self, writer: Scopes, op: Op, record: Micro) -> None:
        self._op, self._record = op, record
        results = dict(zip(op.result_labels, op.results, strict=True))
        self._names: dict[str, str | list[str]] = {
            label: writer._use(value) for label, value in results.items()
        }
        for slot in record.operands:
            given = [writer._use(value) for value in op.group(slot.name)]
            if given:
                self._names[slot.name] = given if slot.is_list else given[0]
        registers = [v.type for v in (*op.operands, *op.results)]
        kinds = [element_of(t.element) for t in registers if isinstance(t, RegisterType)]
        self._bits = str(8 * kinds[0].itemsize) if kinds else ""
        lanes = [op.operand(slot.name) for slot in record.operands if slot.kind == "L"]
        # What may be a number or a register: of a register every word is said.
        self._says_all = any(v is not None and isinstance(v.type, RegisterType) for v in lanes)

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        if key == "name":
            return self._record.name
        if key == "all":
            return ", ".join(str(name) for name in self._names.values())
        return self._names[str(key)] if key in self._names else str(key)

    def format_field(self, value: Any, format_spec: str) -> str:
        word = self._record.word(value) if isinstance(value, str) else None
        if word is None:
            return str(value)
        written = self._op.attrs.get(word.name)
        said = written.value if isinstance(written, StringAttr) else word.default or ""
        if format_spec.startswith("?") and written is None and not self._says_all:
            return ""
        return spelled_word(format_spec, said, self._bits)


def spelled_word(format_spec: str, said: str, bits: str) -> str:
    """What stands for a word in a statement, with lanes of so many bits."""
    spec = format_spec.removeprefix("?")
    if "=" in spec:
        pairs = dict(each.split("=", 1) for each in spec.split(";"))
        return pairs.get(said, said).replace("$", bits)
    return f"{spec}{said}"
