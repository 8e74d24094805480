"""Calls of instructions: name, template arguments and operands, as the record says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptokit.emit.spelling import brackets, name_of
from ptokit.emit.words import template_text
from ptokit.emit.writer import Writer
from ptokit.ir.core import Op, Value
from ptokit.ir.instructions import run_time_operands, template_arguments
from ptokit.ir.types import BufferType, ScalarType
from ptokit.isa.spec import Insn


class Calls(Writer):
    """Writes instructions."""

    def _instruction(self, op: Op) -> None:
        insn = op.insn
        assert insn is not None
        values = dict(zip((o.name for o in insn.operands), run_time_operands(op), strict=True))
        for left_out, same_as in insn.cpp.implied.items():
            values[left_out] = values[left_out] or values[same_as]
        present = {name: value for name, value in values.items() if value is not None}
        attrs = dict(zip((a.name for a in insn.attrs), template_arguments(op), strict=True))
        call = self._call(op, insn, present, attrs)
        if op.results and isinstance(op.result.type, ScalarType):
            self._local(op, call)
            return
        self._line(f"{call};")
        if op.results:
            self.names[op.result] = self._use(next(iter(present.values())))
            if "addr" in present:
                self.slots[op.result] = self._use(present["addr"])

    def _call(self, op: Op, insn: Insn, present: dict[str, Value], attrs: Mapping[str, Any]) -> str:
        """The call of an instruction with these operands and template arguments."""
        passed = self._arguments(insn, {n: self._use(v) for n, v in present.items()})
        chosen = [(a, attrs[a.name]) for a in insn.attrs]
        given = {a.name: v for a, v in chosen if v is not None and v != a.default}
        words = brackets(insn, set(present), given)
        if words is None:
            said = ", ".join([*present, *given])
            raise self._refuse(f"{insn.name} with {said}", op)
        inside = ", ".join(self._bracket(word, present, attrs) for word in words)
        beside = insn.asm.beside if insn.asm else {}
        passed += [
            template_text(v)
            for a, v in chosen
            if a.argument and v is not None and beside.get(a.name, "") in {"", *present}
        ]
        name = name_of(insn, set(present), given)
        if insn.cpp.method:
            name = f"{passed.pop(0)}.{insn.cpp.method}"
        return f"{name}{f'<{inside}>' if inside else ''}({', '.join(passed)})"

    def _arguments(self, insn: Insn, values: dict[str, str]) -> list[str]:
        """The arguments of a call: some go by pointer, some numbers together in an array."""
        for kind, names in insn.cpp.arrays.items():
            array = self._unused(kind.removeprefix("TRandom").lower())
            numbers = [f"static_cast<uint32_t>({values.pop(n)})" for n in names]
            self._line(f"{kind} {array} = {{{', '.join(numbers)}}};")
            values[array] = array
        return [f"&{a}" if n in insn.cpp.pointers else a for n, a in values.items()]

    def _bracket(self, word: str, present: dict[str, Value], attrs: Mapping[str, Any]) -> str:
        """A word in brackets: a value, the type of an operand, or of its elements."""
        if word.startswith("@"):
            return template_text(attrs[word[1:]])
        name, _, part = word.partition(".")
        value = present[name]
        if isinstance(value.type, BufferType):
            spec = value.type.spec
            return spec.dtype.cpp if part else self._tile_type(spec)
        if value in self.pipes:
            return self._pipe_type(self.pipes[value])
        return f"decltype({self._use(value)})"
