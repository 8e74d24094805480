"""What the checker must know of a call, worked out once: calls outlive launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptokit.base.enums import Atomic
from ptokit.base.namedtuple import NamedTuple
from ptokit.isa.spec import Pipe
from ptokit.isa.walks import Walk, walk_of
from ptokit.machine.regions import Ranges, RegionIndex, Rows, Use, hull

if TYPE_CHECKING:
    from ptokit.machine.executor import Ready


class Tile(NamedTuple):
    """A tile operand of a call: the bytes it touches, and how."""

    access: Any
    place: Any  # the bytes themselves
    walk: Walk | None
    is_over: bool  # later work of its pipe need not wait for this use to end


class View(NamedTuple):
    """An operand that lies at another address each time."""

    operand: str
    writes: bool
    atomic: str  # how it changes memory in place
    place: Rows | Ranges  # the bytes past the address
    start: int  # of the first of them
    stop: int


class CallFacts:
    """What every execution of a call has in common."""

    __slots__ = (
        "across", "atomic", "gives_value", "handles", "has_registers", "is_composite", "is_over",
        "is_plain", "laid", "pattern", "patterns", "pipe", "reaches", "registers", "tiles", "uses",
        "viewed", "writes",
    )  # fmt: skip

    def __init__(self, call: Any) -> None:
        insn, fixed = call.insn, getattr(call, "global_patterns", ())
        self.across: Any = getattr(call, "across", ())  # what both vector cores may write
        self.atomic = atomic_of(call)  # how it changes global memory in place
        self.handles = frozenset(o.name for o in insn.operands if o.is_handle)
        # Views, whose patterns are those of the call; where values decide of them, none are.
        self.reaches = -1 if getattr(call, "narrows", False) else len(fixed)
        self.pattern = fixed[0][1] if fixed else None
        self.patterns = [pattern for _, pattern in fixed]
        self.writes = any(each.writes for each in self.patterns or insn.operands)
        self.pipe = call.pipe
        self.is_composite = call.steps is not None or bool(insn.sets)
        self.gives_value = call.pipe is Pipe.S and call.steps is None and bool(insn.returns)
        self.is_plain = not (self.is_composite or self.gives_value)
        self.registers = insn.registers(call.ops)  # on which its meaning depends
        self.has_registers = bool(insn.sets or self.registers)
        self.is_over = call.steps is not None and call.steps.scratch_complete
        self.tiles = self._tiles(call)
        # The uses of its tiles, and the regions among which they were laid out, by memory.
        self.uses: tuple[Use, ...] | None = None
        self.laid: tuple[tuple[Any, RegionIndex], ...] = ()
        self.viewed: tuple[View | None, ...] | None = None

    @property
    def views(self) -> tuple[View | None, ...]:
        """What moves; None where no bytes are touched."""
        if self.viewed is None:
            self.viewed = tuple(map(self._view, self.patterns))
        return self.viewed

    def _view(self, pattern: Any) -> View | None:
        place, writes = pattern.extents, pattern.writes
        if not place or pattern.operand in self.handles:
            return None
        return View(pattern.operand, writes, self.atomic if writes else "", place, *hull(place))

    def _tiles(self, call: Any) -> tuple[Tile, ...]:
        insn, accesses = call.insn, call.accesses
        results = {a.shape for a in accesses if a.writes}
        scratch = {o.name for o in insn.operands if o.role == "tmp"} if self.is_over else ()
        found: list[Tile] = []
        for access in accesses:
            place = access.place
            if not place:
                continue
            where = access.memory.uid, access.signature, access.offset
            walk = walk_of(insn, where, access.shape, access.dtype.itemsize, results)
            found.append(Tile(access, place, walk, access.operand in scratch))
        # What is written in the way it is read need not be looked at twice.
        written = {(_bytes(t), t.walk) for t in found if t.access.writes}
        return tuple(t for t in found if t.access.writes or (_bytes(t), t.walk) not in written)


def _bytes(tile: Tile) -> tuple[Any, Any]:
    return tile.access.memory.uid, tile.access.signature


def facts_of(call: Any) -> CallFacts:
    """The facts of a call; it keeps them."""
    found = call.facts
    if found is None:
        found = call.facts = CallFacts(call)
    return found


def atomic_of(call: Ready) -> str:
    """How a call changes global memory in place; empty where it overwrites."""
    ways = (each.combines for each in call.ops.attrs.values() if isinstance(each, Atomic))
    return next(filter(None, ways), "")
