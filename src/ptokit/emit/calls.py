"""Calls of instructions: name, template arguments and operands, as the record says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptokit.emit.expressions import ATOM, value_type
from ptokit.emit.spelling import brackets, name_of, number_text
from ptokit.emit.words import template_text
from ptokit.emit.writer import Writer
from ptokit.ir.attributes import IntAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.instructions import (
    declared_types,
    group_operands,
    literal,
    run_time_operands,
    template_arguments,
)
from ptokit.ir.types import BufferType
from ptokit.isa.effects import InAuto
from ptokit.isa.spec import Insn, Operand


class Calls(Writer):
    """Writes instructions."""

    def _share(self, insn: Insn, tile: Value | None, other: Value | None) -> None:
        """A tile that is laid over another one lies where that one does: in a loop that changes
        tiles by turns, elsewhere in every round."""
        if tile is None or other is None or other not in self.slots:
            return
        if not insn.numbers:
            self.slots[tile] = self.slots[other]
        elif not self.slots[other].text.startswith("0x"):
            self.slots.pop(tile, None)  # a part of it: only the device knows where

    def _instruction(self, op: Op) -> None:
        insn = op.insn
        assert insn is not None
        values = dict(zip((o.name for o in insn.operands), run_time_operands(op), strict=True))
        for left_out, same_as in insn.cpp.implied.items():
            values[left_out] = values[left_out] or values[same_as]
        given: dict[str, Value | str] = {}
        for declared, members in zip(insn.operands, group_operands(op), strict=True):
            value, number = values[declared.name], literal(op, declared)
            if members:
                given[declared.name] = self._group(op, declared, members)
            elif value is not None:
                given[declared.name] = value
            elif number is not None:
                declared_type = declared_types(insn).get(declared.name, "")
                given[declared.name] = number_text(declared, number, declared_type)
        attrs = dict(zip((a.name for a in insn.attrs), template_arguments(op), strict=True))
        if insn.cpp.calls:
            shown = {n: self._argument(insn, n, v) for n, v in given.items()}
            shown |= {n: template_text(v) for n, v in attrs.items() if v is not None}
            *statements, last = insn.cpp.calls[" ".join(given)]
            for statement in statements:
                self._line(f"{statement.format(**shown)};", orders=_is_manual(insn))
            if op.results:
                self._local(op, last.format(**shown))
            else:
                self._line(f"{last.format(**shown)};", orders=_is_manual(insn))
            return
        made = [v for v in op.results if v in given.values() and isinstance(v.type, BufferType)]
        for tile in made:  # another name for storage that there is
            self._make(tile)
        call = self._call(op, insn, given, attrs)
        if op.results and value_type(op.result.type):
            self._local(op, call)
            return
        self._line(f"{call};", orders=_is_manual(insn))
        if insn.renames:
            self._share(insn, values[insn.binds], values[insn.renames])
        if op.results and not made:
            first = next(v for v in given.values() if isinstance(v, Value))
            self.names[op.result] = self._use(first)
            if isinstance(address := given.get("addr"), Value):
                self.slots[op.result] = self._expr(address)

    def _call(
        self, op: Op, insn: Insn, given: Mapping[str, Value | str], attrs: Mapping[str, Any]
    ) -> str:
        """The call of an instruction with these operands and template arguments."""
        passed = self._arguments(insn, {n: self._argument(insn, n, v) for n, v in given.items()})
        if insn.cpp.rewritten is not None:
            attrs = insn.cpp.rewritten(attrs)
        chosen = [(a, attrs[a.name]) for a in insn.attrs]
        changed = {a.name: v for a, v in chosen if v is not None and v != a.default}
        words = brackets(insn, set(given), changed)
        if words is None:
            said = ", ".join([*given, *changed])
            raise self._refuse(f"{insn.name} with {said}", op)
        inside = ", ".join(self._bracket(word, given, attrs) for word in words)
        beside = insn.asm.beside if insn.asm else {}
        passed += [
            template_text(v)
            for a, v in chosen
            if a.argument and v is not None and beside.get(a.name, "") in {"", *given}
        ]
        name = name_of(insn, set(given), changed)
        if insn.cpp.method:
            name = f"{passed.pop(0)}.{insn.cpp.method}"
        return f"{name}{f'<{inside}>' if inside else ''}({', '.join(passed)})"

    def _argument(self, insn: Insn, name: str, value: Value | str) -> str:
        if isinstance(value, str):
            text = atom = value
        else:
            text, atom = self._use(value), self._expr(value).within(ATOM)
        if name in insn.cpp.casts:
            return f"({insn.cpp.casts[name]}){atom}"
        if insn.cpp.calls and "pointer" in insn.operand(name).kinds:
            return atom
        is_event = insn.asm is not None and declared_types(insn).get(name) == "event"
        is_known = isinstance(value, str)
        return f"static_cast<event_t>({text})" if is_event and not is_known else text

    def _arguments(self, insn: Insn, values: dict[str, str]) -> list[str]:
        """The arguments of a call: some go by pointer, some numbers together in an array."""
        for kind, names in insn.cpp.arrays.items():
            array = self._unused(kind.removeprefix("TRandom").lower())
            numbers = [f"static_cast<uint32_t>({values.pop(n)})" for n in names]
            self._line(f"{kind} {array} = {{{', '.join(numbers)}}};")
            values[array] = array
        return [f"&{a}" if n in insn.cpp.pointers else a for n, a in values.items()]

    def _group(self, op: Op, declared: Operand, members: list[Value]) -> str:
        """A group of views is an object over an array of them."""
        root = op.attrs.get("root")
        kind = self._kinds.get(members[0]) or f"decltype({self._use(members[0])})"
        name = self._unused(declared.name)
        array = self._unused(f"{declared.name}_views")
        listed = ", ".join(self._use(m) for m in members)
        size = len(members)
        self._line(f"{kind} {array}[{size}] = {{{listed}}};")
        at = root.value if isinstance(root, IntAttr) else 0
        self._line(f"comm::ParallelGroup<{kind}> {name}({array}, {size}, {at});")
        return name

    def _bracket(
        self, word: str, given: Mapping[str, Value | str], attrs: Mapping[str, Any]
    ) -> str:
        """A word in brackets: a value, the type of an operand, or of its elements."""
        if word.startswith("@"):
            return template_text(attrs[word[1:]])
        name, _, part = word.partition(".")
        value = given[name]
        if isinstance(value, str):
            return f"decltype({value})"
        if isinstance(value.type, BufferType):
            return self._spec(value).dtype.cpp if part else self._type_of(value)
        if value in self.pipes:
            return self._pipe_type(value)
        return self._kinds.get(value) or f"decltype({self._use(value)})"


def _is_manual(insn: Insn) -> bool:
    """Whether auto mode does without it: the compiler orders the pipes itself."""
    return insn.in_auto is InAuto.UNWANTED
