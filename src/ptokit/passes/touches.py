"""What every operation touches, and on which pipe: the accesses that have to be in order.

The inserter of flags, the proof that they suffice and the inserter of buffer ids share it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.dataclass import dataclass
from ptokit.ir.core import Function, Op
from ptokit.ir.flow import core_of
from ptokit.isa.effects import Steps
from ptokit.isa.spec import Pipe
from ptokit.isa.targets import Target
from ptokit.passes.accesses import accesses_of, registers_of, steps_in
from ptokit.passes.function_attributes import promised
from ptokit.passes.storage import Bytes, Neighbours, bytes_of


@dataclass(frozen=True)
class Touch:
    """An access: on which pipe, to which bytes, and whether it writes."""

    pipe: Pipe
    where: Bytes
    writes: bool
    is_over: bool = False  # the work of its own pipe that follows need not wait for it
    stretch: int = 0  # bytes from the beginning of the range, if it is exactly these

    def meets_in_one_round(self, other: Touch) -> bool:
        """Of two accesses that meet: whether they also do in one round of every loop around."""
        return not self.where.is_apart(other.where)


_NOTHING: dict[Touch, int] = {}


class Past:
    """The last accesses to every range, told apart by pipe and by whether they write."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._at: dict[Bytes, dict[Touch, int]] = {}

    def add(self, touch: Touch, index: int) -> None:
        self._at.setdefault(touch.where, {})[touch] = index

    def conflicts(self, touch: Touch) -> Iterator[tuple[Touch, int]]:
        """The accesses that conflict with one in some round, with the index of each."""
        for where in self._neighbours.of(touch.where):
            for other, index in self._at.get(where, _NOTHING).items():
                if touch.writes or other.writes:
                    yield other, index

    def conflicts_now(self, touch: Touch) -> Iterator[tuple[Touch, int]]:
        """Those that conflict with one in its own round of the loops around."""
        return (each for each in self.conflicts(touch) if touch.meets_in_one_round(each[0]))


class Touches:
    """The accesses of one function, as one kind of core sees them; no kind: the only core.

    Arrays that are passed as different arguments are apart, unless they `may_alias`.
    """

    def __init__(
        self, function: Function, target: Target, kind: str = "", may_alias: bool = False
    ) -> None:
        self.target = target
        self.kind = kind
        self.accesses = accesses_of(function, target)
        promises = promised(function) if may_alias else None
        self._bytes = bytes_of(function, self.accesses, promises)
        self._own: dict[Op, frozenset[Touch]] = {}
        self._all: dict[Op, frozenset[Touch]] = {}
        self.steps: dict[Op, Steps] = {}  # of operations whose accesses are known

    def is_elsewhere(self, op: Op) -> bool:
        """Whether an operation runs on the other kind of core."""
        return bool(self.kind) and core_of(op) not in ("", self.kind)

    def own(self, op: Op) -> frozenset[Touch]:
        """The accesses of an operation itself."""
        found = self._own.get(op)
        if found is None:
            found = self._own[op] = frozenset(self._touched(op))
        return found

    def of(self, op: Op) -> frozenset[Touch]:
        """All accesses of an operation, those of its regions included."""
        found = self._all.get(op)
        if found is None:
            regions = [] if self.is_elsewhere(op) else op.regions
            inner = [self.of(each) for region in regions for each in region.ops]
            found = self._all[op] = self.own(op).union(*inner)
        return found

    def needs_barrier(self, earlier: Touch, later: Touch, in_one_round: bool) -> bool:
        """Whether two accesses of one pipe that meet need a barrier between them."""
        target, pipe = self.target, later.pipe
        if pipe not in target.unordered or earlier.is_over:
            return False
        if earlier.writes and later.writes:
            return pipe not in target.lands_in_order or not later.where.is_on_chip
        if later.writes or not in_one_round or target.long_stretch is None:
            return True
        starts = earlier.where.start == later.where.start
        is_same = starts and earlier.stretch == later.stretch >= target.long_stretch
        return pipe not in target.overlapped or not is_same

    def _touched(self, op: Op) -> Iterator[Touch]:
        accesses = self.accesses
        pipe = accesses.pipes.get(op, Pipe.S)
        steps = steps_in(op, accesses.known)
        if steps is not None:
            self.steps[op] = steps
            if steps.scratch is not None:
                yield Touch(pipe, Bytes("hidden scratch"), True, steps.scratch_complete)
        is_over = steps is not None and steps.scratch_complete
        for access in accesses.of.get(op, []):
            if access.is_idle:
                continue
            is_tmp = access.declared is not None and access.declared.role == "tmp"
            where = self._bytes.of(access)
            yield Touch(pipe, where, access.writes, is_over and is_tmp, access.stretch)
        if op.insn is not None:  # a register is memory to whoever must keep its order
            yield from (Touch(pipe, Bytes(name), True) for name in op.insn.sets)
            used = registers_of(op, accesses.known)
            yield from (Touch(pipe, Bytes(name), False) for name in used)
