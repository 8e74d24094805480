"""A core: the memories its instructions work on, its registers, and its place in the cluster."""

from __future__ import annotations

from typing import Any

from ptokit.base.enums import TileType
from ptokit.isa.targets import Target
from ptokit.machine.memory import Storage


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
        self.registers: dict[str, Any] = {}  # quantisation words, image-to-column set-up ...
        self._memories: dict[TileType, Storage] = {}

    def memory(self, loc: TileType) -> Storage:
        """The memory in which tiles of this type live."""
        found = self._memories.get(loc)
        if found is None:
            space = self.target.spaces[loc]
            found = self._memories[loc] = Storage(space.memory, space.capacity)
        return found

    @property
    def memories(self) -> dict[TileType, Storage]:
        """The memories touched so far."""
        return dict(self._memories)

    def __repr__(self) -> str:
        return f"{self.kind} core {self.block}.{self.subblock}"
