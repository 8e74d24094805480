"""Vector code of C++: from the intrinsics of a scope to micro-operations.

What an operation is called in C++, and in which order it takes its operands, is the statement that
its record is emitted as (emit/scopes.py), read backwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from string import Formatter
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import DType
from ptokit.base.enums import TileType
from ptokit.base.location import Site
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.patterns import regex
from ptokit.emit.scopes import spelled_word
from ptokit.frontend.micro_operations import MicroOperation
from ptokit.frontend.scopes import Held, Recording, castptr
from ptokit.frontend.session import running
from ptokit.ir.micro_calls import SPACES
from ptokit.ir.types import MaskType
from ptokit.isa.micro import MICRO, Micro

_MERGING, _MOVES_ON = "MODE_MERGING", -1
_SAY_NOTHING = ("MODE_ZEROING", "MODE_STORED")  # what an operation does without them
_WIDTHS = ("8", "16", "32")
_COPIES = regex(r"vmov\(\{dst\}, \{(\w+)\}\)")


class Function(NamedTuple):
    """A function of C++ by which an operation is called."""

    name: str
    record: Micro
    order: tuple[str, ...]  # of its operands and results
    implied: Mapping[str, str]  # words that the name says
    words: Mapping[str, tuple[str, str]]  # of C++: the word of the record, and what it says
    kept: str  # the operand that the result holds before
    returns: bool  # whether its result is what the function gives back
    counts: bool  # whether its number is lowered by the lanes it has taken


@cache
def functions() -> tuple[Function, ...]:
    """Those that the header has; a record names one by its place here."""
    return tuple(each for record in MICRO.values() for each in _functions(record))


@cache
def words() -> tuple[str, ...]:
    """All words of C++ that they take; a record names one by its place here."""
    found = {word for each in functions() for word in each.words}
    return tuple(sorted({*found, _MERGING, *_SAY_NOTHING}))


def _functions(record: Micro) -> Iterator[Function]:
    statement = record.called or record.cpp
    if record.is_logical or not record.is_inside or not statement or statement[0] == "&":
        return
    *before, last = statement.split("; ")
    given, _, call = last.rpartition(" = ")
    name, _, inside = call.removesuffix(")").partition("(")
    kept = next((m[1] for m in map(_COPIES.fullmatch, before) if m), "")
    counts = bool(before) and not kept
    order, spelled = list[str](), dict[str, tuple[str, str]]()
    every = [s.name for s in (*record.results, *record.operands) if not s.is_optional]
    for _, key, spec, _ in Formatter().parse(inside):
        word = record.word(key or "")
        if key == "all":
            order += every
        elif word is None:
            order += [key] if key and not counts else []
        else:
            for said in word.choices:
                for bits in _WIDTHS:
                    spelled[spelled_word(spec or "", said, bits).strip(", ")] = word.name, said
    if given or counts:
        order = every[:1] + ["n"] * counts
    chosen = next((w for w in record.words if f"{{{w.name}}}" in name), None)
    shared = record, tuple(order)
    rest = spelled, kept, bool(given), counts
    if chosen is None:
        yield Function(record.name, *shared, {}, *rest)
        return
    for said in chosen.choices:
        yield Function(f"{record.name}_{said}", *shared, {chosen.name: said}, *rest)


def header() -> str:
    """The functions, and the words they take."""
    lines = [f"constexpr ptokit::Word {word}{{{n}}};" for n, word in enumerate(words()) if word]
    lines.append("constexpr ptokit::PostUpdate POST_UPDATE{};")
    for number, each in enumerate(functions()):
        if each.counts:
            bits = each.name.rpartition("_b")[2]
            lines.append(f"PTOKIT_MICRO_FIRST({each.name}, {number}, {bits})")
        elif each.returns:
            lines.append(f"PTOKIT_MICRO_MASK({each.name}, {number})")
        else:
            plain = "" if each.order else "_PLAIN"
            lines.append(f"PTOKIT_MICRO{plain}({each.name}, {number})")
    numbers = {each.record: number for number, each in enumerate(functions())}
    lines.append(f"PTOKIT_MICRO_MOVES({numbers[MICRO['vsel']]})")
    return "\n".join(lines)


class Register(NamedTuple):
    """A register of C++, as an operand: its number, and the element type it is taken for."""

    number: int
    element: DType | None


class OnChip(NamedTuple):
    """A pointer into the memory of a core."""

    memory: TileType
    address: int
    element: DType


class Named(NamedTuple):
    """A word of C++."""

    number: int


@dataclass
class VectorCode:
    """A scope of C++ that is being recorded."""

    scope: Recording
    site: Site
    _held: dict[int, Held] = field(default_factory=dict[int, Held])

    def move(self, to: int, source: int) -> None:
        """One register becomes what another is."""
        if source in self._held:
            self._held[to] = self._held[source]

    def finish(self) -> None:
        """The scope has ended."""
        self.scope.finish(self.site)

    def call(self, number: int, given: Sequence[Any]) -> None:
        """Note an operation."""
        function = functions()[number]
        said = [each.number for each in given if isinstance(each, Named)]
        spelled = [words()[n] for n in said if n != _MOVES_ON]
        values = [each for each in given if not isinstance(each, Named)]
        by_name = dict(zip(function.order, values, strict=False))
        if len(values) > len(function.order):
            raise fail(
                f"{function.record.name}.operands",
                f"{function.name} takes {len(function.order)} operands",
                got=[("given", len(values))],
                fix=f"{function.name}({', '.join(function.order)})",
            )
        if _MOVES_ON in said:  # C++ moves its pointer; what is touched begins at it
            by_name.update(offset=0) if "offset" in by_name else by_name.pop("step", None)
        with running(self.scope):
            self._write(function, by_name, spelled)

    def _write(self, function: Function, by_name: dict[str, Any], spelled: Sequence[str]) -> None:
        record = function.record
        made = [slot for slot in record.results if not slot.is_optional]
        targets = [self._target(slot.name, by_name) for slot in made]
        if function.kept:
            by_name[function.kept] = targets[0]
        inputs = {s.name: by_name[s.name] for s in record.operands if s.name in by_name}
        T = next((t.element for t in targets if t is not None and t.element), None)
        registers = [v.element for v in inputs.values() if isinstance(v, Register) and v.element]
        lanes = registers[0] if registers else T
        chosen = dict(function.words[each] for each in spelled if each in function.words)
        width = self._width(record, inputs, lanes, chosen.get("dist", ""))
        taken = {n: self._value(record, n, v, lanes, width) for n, v in inputs.items()}
        # C++ has one kind of mask: what one is for is found out where it is used.
        result = T or (width if any(slot.kind == "B" for slot in made) else None)
        operation = MicroOperation(record) if result is None else MicroOperation(record)[result]
        found = operation(**taken, **{**chosen, **function.implied})
        results = found if isinstance(found, tuple) else (found,)
        for target, value in zip(targets, results, strict=False):
            if target is None or value is None:
                continue
            before = self._held.get(target.number)
            if _MERGING in spelled and before is not None and "mask" in taken:
                before = self._as(before, target.element)
                value = MicroOperation(MICRO["vsel"])(value, before, taken["mask"])
            self._held[target.number] = value

    @staticmethod
    def _target(name: str, by_name: Mapping[str, Any]) -> Register | None:
        """Where a result goes: its own register, or that of the state it continues."""
        found = by_name.get(name) or by_name.get(name.removesuffix("2"))
        return found if isinstance(found, Register) else None

    def _width(
        self, record: Micro, inputs: Mapping[str, Any], lanes: DType | None, dist: str
    ) -> int:
        """The bits of a lane that the masks of an operation are for."""
        said = re.search(r"_B(\d+)$", dist)
        if said and any(slot.kind == "N" for slot in record.operands):
            return int(said[1])
        if lanes is not None:
            return 8 * min(lanes.itemsize, 4)
        held = [self._held.get(v.number) for v in inputs.values() if isinstance(v, Register)]
        types = [each.value.type for each in held if each is not None]
        return next((t.bits for t in types if isinstance(t, MaskType)), 8)

    def _value(self, record: Micro, name: str, given: Any, lanes: DType | None, width: int) -> Any:
        if isinstance(given, OnChip):
            space = next(space for space, memory in SPACES.items() if memory is given.memory)
            return castptr(given.address, given.element, space)
        slot = record.slot(name)
        assert slot is not None
        if not isinstance(given, Register):
            is_real = slot.kind in ("S", "L") and lanes is not None and lanes.is_float
            return float(given) if is_real else given
        held = self._held.get(given.number)
        if held is None and slot.kind == "align":  # a stream that begins
            return MicroOperation(MICRO["init_align"])()
        if held is None:
            raise fail(
                "scope-value",
                f"{name} of {record.name} is a register that nothing was written to",
                fix="write to it in the scope first",
            )
        if given.element is not None:
            return self._as(held, given.element)
        type_ = held.value.type
        if isinstance(type_, MaskType) and type_.bits != width:
            return MicroOperation(MICRO["pbitcast"])[width](held)
        return held

    @staticmethod
    def _as(held: Held, element: DType | None) -> Held:
        """A register taken for one of another element type."""
        if element is None or held.dtype is element:
            return held
        return MicroOperation(MICRO["vbitcast"])[element](held)
