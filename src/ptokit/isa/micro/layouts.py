"""How a compiler spreads a logical vector over registers: `#pto.vmi.layout<deinterleaved = 2>`.

    contiguous                  lanes in order, register by register
    deinterleaved = 2           even lanes in the first half of the registers, odd ones in the other
    block_deinterleaved = 2     the same of blocks of 32 bytes
    num_groups = 8, slots = 8   a lane for each group, so many at the front of each register
    lane_stride = 2             between two lanes one place is left free

What a vector holds does not depend on its layout; only where registers meet it, it matters.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.layout import Array
from ptokit.base.patterns import regex

_KIND = regex(r"#pto\.vmi\.layout<\s*(\w+)(?:\s*=\s*(-?\d+))?\s*((?:,[^,]*)*)>")
_FIELD = regex(r",\s*(slots|lane_stride)\s*=\s*(-?\d+)\s*")
_REGISTER = 256  # bytes
_BLOCKS = 8  # of a register
_FACTORS = (2, 4)
_MOST = 1 << 16  # no register has as many lanes, and no vector as many groups


@dataclass(frozen=True)
class Layout:
    """A layout as it is written, with its defaults."""

    kind: str
    factor: int = 1
    slots: int = 0
    lane_stride: int = 1

    @classmethod
    def parse(cls, text: str) -> Layout:
        """The layout that a text stands for; ValueError says what is wrong with it."""
        found = _KIND.fullmatch(text.strip())
        fields = {} if found is None else dict(_FIELD.findall(found[3]))
        if found is None or _FIELD.sub("", found[3]).strip():
            raise ValueError("it is written #pto.vmi.layout<deinterleaved = 2, lane_stride = 2>")
        made = cls(found[1], int(found[2] or 1), *(int(fields.get(n, d)) for n, d in _DEFAULTS))
        if problem := made.problem(has_factor=found[2] is not None, given=set(fields)):
            raise ValueError(problem)
        return made

    def problem(self, has_factor: bool, given: set[str]) -> str:
        """What is wrong with it, or nothing."""
        kinds = {"contiguous": False, "deinterleaved": True, "block_deinterleaved": True,
                 "num_groups": True}  # fmt: skip
        if self.kind not in kinds:
            return f"a layout is one of {', '.join(kinds)}"
        if kinds[self.kind] != has_factor:
            return f"{self.kind} has {'a' if kinds[self.kind] else 'no'} number after it"
        if self.kind.endswith("deinterleaved") and self.factor not in _FACTORS:
            return f"{self.kind} is 2 or 4"
        if "slots" in given and (self.kind != "num_groups" or self.slots < 0):
            return "slots is a positive number, of num_groups only"
        if not all(1 <= n <= _MOST for n in (self.factor, self.lane_stride, self.slots or 1)):
            return f"the numbers of a layout are positive, and at most {_MOST}"
        if self.kind == "block_deinterleaved" and "lane_stride" in given:
            return "blocks have no lane_stride"
        return ""

    def places(self, lanes: int, size: int) -> tuple[Array, Array]:
        """The register of each lane of so many bytes, and its number there."""
        per_register, number = _REGISTER // size, np.arange(lanes)
        if self.slots:
            return number // self.slots, number % self.slots
        block = per_register // _BLOCKS if self.kind == "block_deinterleaved" else 1
        factor = self.factor if self.kind.endswith("deinterleaved") else 1
        channel = number // block % factor
        stride = 1 if self.kind == "num_groups" else self.lane_stride
        within = (number // (block * factor) * block + number % block) * stride
        # Each channel has registers of its own, as many as its lanes take.
        taken = [int(within[channel == n].max(initial=-1)) // per_register + 1
                 for n in range(factor)]  # fmt: skip
        first = np.concatenate(([0], np.cumsum(taken)))[:-1]
        return first[channel] + within // per_register, within % per_register

    def registers(self, lanes: int, size: int) -> int:
        """How many registers it takes."""
        return int(self.places(lanes, size)[0].max(initial=-1)) + 1

    @cached_property
    def of_masks(self) -> Layout:
        """That of a mask, whose bits are those of wider lanes where lanes have a stride."""
        return Layout(self.kind, self.factor, self.slots)


_DEFAULTS = (("slots", 0), ("lane_stride", 1))
