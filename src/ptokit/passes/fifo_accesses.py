"""FIFOs as the passes see them: what transfers do to tiles, and the memory of local slots.

A push reads its tile on the pipe that carries the data out. A pop binds its tile to a local slot:
through global memory it fills the slot on PIPE_MTE2; where the producer has put the entry there
already, the pipe of the consumer waits for it, which counts as a write there, and so does giving
the slot back. The order between cores is the FIFO's own business.
"""

from __future__ import annotations

from dataclasses import field

from ptokit.base.dataclass import dataclass
from ptokit.base.enums import TileType
from ptokit.base.namedtuple import NamedTuple
from ptokit.ir.core import Function, Op, Value
from ptokit.ir.fifos import entry_of, fifo_of, pipe_spec
from ptokit.ir.types import BufferType
from ptokit.isa.fifos import PipeSpec
from ptokit.isa.spec import Pipe
from ptokit.isa.targets import Target
from ptokit.passes.facts import Known


class Ring(NamedTuple):
    """Local slots: bytes of a memory that belong to a FIFO."""

    loc: TileType
    start: int
    stop: int


@dataclass
class Fifos:
    """The FIFOs of one function."""

    function: Function
    target: Target
    known: Known
    specs: dict[Value, PipeSpec] = field(default_factory=dict[Value, PipeSpec])
    rings: dict[Value, list[Ring]] = field(default_factory=dict[Value, list[Ring]])
    popped: dict[Value, set[Value]] = field(default_factory=dict[Value, set[Value]])
    # Of a FIFO: the last pop, by its pipe and tile.
    _pops: dict[Value, tuple[Pipe, Value]] = field(default_factory=dict[Value, tuple[Pipe, Value]])

    def open(self, op: Op) -> None:
        """Note a FIFO where it is made."""
        handle = fifo_of(op)
        spec = self.specs[handle] = pipe_spec(op, self.function, self.target)
        first = op.operand("local_addr")
        second = op.operand("peer_local_addr") or first
        size = spec.local_bytes(self.target)
        rings = self.rings[handle] = []
        for is_used, loc, value in (
            (spec.carries_c2v, TileType.Vec, first),
            (spec.carries_v2c, TileType.Mat, second),
        ):
            start = self.known.number(value)
            if is_used and start is not None:
                rings.append(Ring(loc, start, start + size))

    def transfer(self, op: Op) -> tuple[Pipe, Value, bool] | None:
        """The pipe of a transfer, the tile it touches and whether it writes; None: no tile.

        Giving a slot back touches the tile that was popped last: all of a FIFO share its ring.
        """
        handle, entry = fifo_of(op), entry_of(op)
        spec, rules = self.specs.get(handle), self.target.fifos
        is_direct = spec is not None and spec.is_direct(self.target)
        if entry is None:
            pop = self._pops.get(handle)
            return (*pop, True) if pop is not None and is_direct else None
        if not isinstance(entry.type, BufferType) or rules is None:
            return None  # a slot in hand: loads and stores of it follow the signals of their pipe
        assert op.insn is not None
        is_cube, is_producer = entry.type.spec.loc != TileType.Vec, op.insn.end == "producer"
        pipe = rules.end(is_cube, is_producer, is_direct).data
        if not is_producer:
            self._pops[handle] = pipe, entry
        return pipe, entry, not is_producer

    def reserved(self, loc: TileType) -> list[tuple[int, int]]:
        """The bytes of a memory that belong to FIFOs."""
        return [(r.start, r.stop) for rings in self.rings.values() for r in rings if r.loc == loc]

    def place_of(self, popped: Value) -> Ring | None:
        """The ring in which a popped tile lies; None where it is not known."""
        assert isinstance(popped.type, BufferType)
        loc = popped.type.spec.loc
        rings = [r for handle in self.popped[popped] for r in self.rings.get(handle, [])]
        rings = [ring for ring in rings if ring.loc == loc]
        return rings[0] if len(rings) == 1 else None
