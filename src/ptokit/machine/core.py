"""A core: the memories its instructions work on, its registers, and its place in the cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptokit.base.enums import TileType
from ptokit.isa.spec import Pipe
from ptokit.isa.targets import Target
from ptokit.machine.flags import Semaphore, Token
from ptokit.machine.memory import Storage

if TYPE_CHECKING:
    from ptokit.machine.cluster import Cluster

_VALUES = 64  # numbers that may still be on their way


class Core:
    """One instruction stream with its memories.

    `kind` is "cube", "vector" or "mix"; a mix core owns every memory and can play both sides of a
    pipe, which is what interactive use wants. Memories are made when first touched.
    """

    def __init__(
        self, target: Target, kind: str = "mix", block: int = 0, subblock: int = 0
    ) -> None:
        self.target = target
        self.kind = kind
        self.block = block
        self.subblock = subblock
        self.playing: str | None = None  # the part a mix core plays: "cube" or "vector"
        self.registers: dict[str, Any] = {}  # quantisation words, image-to-column set-up ...
        self.hidden: dict[str, Any] = {}  # those that micro-operations leave values in
        self.flags: dict[tuple[Any, ...], Semaphore] = {}  # (source pipe, waiting pipe, id)
        self.buffers: dict[tuple[int, Pipe], Semaphore] = {}  # (buffer id, pipe): last acquisition
        self.pipes: list[Any] = []  # the FIFOs this core opened
        # Calls whose tiles lie apart from the local slots of these, but for so many operands that
        # one of them has placed there.
        self.clear: dict[Any, tuple[int, ...]] = {}
        self.events: dict[tuple[int, int], int] = {}  # next event id per pair of pipes
        self.cluster: Cluster | None = None
        self.number = 0  # among all cores of a launch, and of the other ranks of a world
        self.rank: int | None = None  # the device it belongs to, among others
        self.issuer = self  # the core whose program it runs: another one for a second face
        self.issued = 0  # operations of its program so far, where events are followed
        self.calls = 0  # instructions handed to its pipes
        self.engines: dict[Any, Engine] = {}  # that copy for it, by session and peer
        # Numbers that its scalar unit has read from memory, each with what holds once it has come.
        self.values: deque[tuple[Any, Token]] = deque(maxlen=_VALUES)
        self.account: Callable[[int], None] | None = None  # told of the bytes of new memories
        self._memories: dict[tuple[TileType, int], Storage] = {}  # with the number of the table
        self._elsewhere: tuple[Core, TileType] | None = None

    def memory(self, loc: TileType, table: int = 0) -> Storage:
        """The memory in which tiles of this type live, or a further table beside it."""
        found = self._memories.get((loc, table))
        if found is None:
            owner = self._owner(loc)
            if owner is not self:
                return owner.memory(loc, table)
            if self._elsewhere is not None and loc != self._elsewhere[1]:
                return self._elsewhere[0].memory(loc, table)
            space = self.target.spaces[loc]
            if self.account is not None:
                self.account(space.capacity)
            name = f"table {table} of {space.memory}" if table else space.memory
            found = self._memories[loc, table] = Storage(name, space.capacity)
        return found

    def _owner(self, loc: TileType) -> Core:
        """The core whose memory it is: one side of a cluster names tiles of the other by address.

        The cube core reaches the working memory of vector core 0 this way, a vector core L1.
        """
        side = {"cube": 0, "vector": "cube"}.get(self.kind)
        if self.cluster is None or side is None or (loc == TileType.Vec) != (self.kind == "cube"):
            return self
        return self.cluster.cores.get(side, self)

    def share_memories(self, other: Core, apart: TileType) -> None:
        """Use the memories of another core, except for one."""
        self._elsewhere = (other, apart)

    def begin_again(self) -> None:
        """Forget what a finished program left, except for the memories themselves."""
        for table in (self.registers, self.flags, self.buffers, self.events, self.engines):
            table.clear()
        self.hidden.clear()
        self.pipes.clear()
        self.clear.clear()
        self.issued = self.calls = 0
        self.values.clear()

    def twin(self) -> Core:
        """The core as it is called now, for messages that outlive its block."""
        copy = Core(self.target, self.kind, self.block, self.subblock)
        copy.number, copy.rank = self.number, self.rank
        return copy

    @property
    def memories(self) -> dict[tuple[TileType, int], Storage]:
        """The memories touched so far."""
        return dict(self._memories)

    @property
    def role(self) -> str:
        """The part the core plays towards the rest of its cluster."""
        return (self.playing or "cube") if self.kind == "mix" else self.kind

    @property
    def place(self) -> str:
        """Which core of its block it is: "cube", "vector 1"."""
        return f"vector {self.subblock}" if self.kind == "vector" else self.kind

    @property
    def name(self) -> str:
        """How messages call the core."""
        on = "" if self.rank is None else f" on rank {self.rank}"
        which = f" {self.subblock}" if self.kind == "vector" else ""
        return f"{self.kind} core{which} of block {self.block}{on}"

    def pipe_name(self, pipe: Pipe) -> str:
        """How messages call one of its pipes."""
        return f"PIPE_{pipe.name} of the {self.name}"

    def __repr__(self) -> str:
        return f"{self.kind} core {self.block}.{self.subblock}"


class Engine(Core):
    """A DMA engine outside the cores, which copies for one of them, at its own pace.

    It has no program and no pipe: what it is given is work of PIPE_ALL to whoever keeps order.
    """

    def __init__(self, owner: Core, title: str, number: int, is_silent: bool = False) -> None:
        super().__init__(owner.target, "engine", owner.block, owner.subblock)
        self.number, self.rank, self.owner = number, owner.rank, owner.number
        self.issuer = owner  # where events are followed
        self.is_silent = is_silent  # tells no kernel when its work is complete
        self.title = title
        self._name = f"{title} engine of the {owner.name}"

    @property
    def name(self) -> str:
        return self._name

    def pipe_name(self, pipe: Pipe) -> str:
        return f"the {self._name}"
