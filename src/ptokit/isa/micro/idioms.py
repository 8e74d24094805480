"""What bodies amount to that are no functions of single elements, for whoever compiles them."""

from __future__ import annotations

from ptokit.base.dataclass import dataclass

ADD, MAX, MIN = "add", "max", "min"


@dataclass(frozen=True)
class Fold:
    """Groups of lanes become one each: added, neighbours first, or the first that is the greatest
    or the least, of which NaN is either. The results lie in the first lanes; the others are 0.

    Inactive lanes count as the neutral element. Integers are folded in 64 bits; floats of registers
    in f32, those of logical vectors in f64.
    """

    how: str
    bytes_of_group: int = 0  # 0: all lanes, or as many groups as the result has lanes
    lanes_of_group: int = 0
    has_place: bool = False  # lane 1 is the number of the lane that was found

    def group(self, lanes: int, size: int) -> int:
        """How many of these lanes, of so many bytes, are folded to one."""
        return self.lanes_of_group or self.bytes_of_group // size or lanes
