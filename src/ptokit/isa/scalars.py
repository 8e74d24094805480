"""The numbers that a scalar operand takes: declared with the operand, checked before all else.

An index is an integer of so many bits, as the parameter of the C++ function is; data is converted
to the elements it meets, as C++ converts an argument. What no such parameter can hold - a fraction
as an index, a NaN as an integer, a number of more than 64 bits - is refused on every path before a
rule or a body looks at it (`refusals`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, trunc
from typing import TYPE_CHECKING

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType, f32
from ptokit.isa.facts import Ops, ScalarFacts, Unknown

if TYPE_CHECKING:
    from ptokit.isa.spec import Insn, Operand


_WITHIN = "choose one in this range"


@dataclass(frozen=True)
class Takes:
    """The numbers that an operand takes, in words and by their bounds."""

    words: str
    low: float
    high: float
    is_integer: bool = True
    of: str = ""  # data: converted to the element type of this operand

    @property
    def note(self) -> str:
        """What its page says of the operand."""
        plain = self.words.partition(",")[0]  # without the bounds
        return f"converted to the element type of {self.of}" if self.of else plain

    def refusal(self, facts: ScalarFacts, element: DType | None) -> tuple[str, str]:
        """What the number has to be, and how to mend it; empty where it will do or is not known.

        `element` is the type that data is converted to.
        """
        value, kind = facts.known, facts.dtype
        is_float = isinstance(value, float) if kind is None else kind.is_float
        if self.is_integer and is_float:
            return self.words, "int(x) cuts off a fraction, x // 2 leaves none"
        if value is None:
            return "", ""
        if isinstance(value, float) and element is not None:
            fits = not element.is_integer or (isfinite(value) and _holds(element, trunc(value)))
            low, high = element.min_value, element.max_value
            words = f"a number that an element of type {element.name} can hold, {low} to {high}"
            return ("", "") if fits else (words, _WITHIN)
        is_open = is_float and (bool(self.of) or not isfinite(value))
        if is_open or self.low <= value <= self.high:
            return "", ""
        return self.words, "write it as a float, 1e20" if self.of else _WITHIN


def _holds(kind: DType, value: int) -> bool:
    return kind.min_value <= value <= kind.max_value


def signed(bits: int) -> Takes:
    """An integer that may be negative."""
    high = (1 << bits - 1) - 1
    return Takes(f"an integer of {bits} bits, {-high - 1} to {high}", -high - 1, high)


def unsigned(bits: int) -> Takes:
    """A count, an index or an address."""
    high = (1 << bits) - 1
    return Takes(f"an integer of {bits} bits without sign, 0 to {high}", 0, high)


def below(count: int) -> Takes:
    """One of so many things, by its number."""
    return Takes(f"an integer from 0 to {count - 1}", 0, count - 1)


def word(bits: int) -> Takes:
    """So many bits, written with a sign or without."""
    return Takes(f"a word of {bits} bits", -(1 << bits - 1), (1 << bits) - 1)


def element_of(operand: str) -> Takes:
    """Data, converted to the element type of an operand."""
    return Takes("a number of at most 64 bits", -(1 << 63), (1 << 64) - 1, False, operand)


_LARGEST = f32.max_value
FLOAT = Takes(f"a float of 32 bits, at most {_LARGEST:.7g}", -_LARGEST, _LARGEST, False)
# Where a tile lies; that it is an integer is a rule of its own, which auto mode does not have.
ADDRESS = Takes("an address of 64 bits", -(1 << 63), (1 << 64) - 1, False)
PIPE = EVENT = signed(32)  # which of them exist, rules say


def _element(ops: Ops, name: str) -> DType | None:
    """The element type of an operand, where it has one and it is known."""
    try:
        return getattr(ops[name], "dtype", None) if name else None
    except Unknown:
        return None


def refusals(insn: Insn, ops: Ops) -> Iterator[tuple[Operand, str, str, str]]:
    """The operands whose numbers will not do, with the number, what it has to be and the fix."""
    for declared, takes in insn.numbers:
        facts = ops[declared.name]
        if isinstance(facts, ScalarFacts):
            words, fix = takes.refusal(facts, _element(ops, takes.of))
            if words:
                yield declared, str(facts.dtype if facts.known is None else facts), words, fix
