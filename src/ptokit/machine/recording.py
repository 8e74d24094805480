"""Recordings: the events of a launch as plain data, in program order per core, however many.

Events are kept per block. When a block ends they are put into the order of its cores' programs;
beyond a limit they go to a file, and nothing is ever left out. Recordings of processes that ran
shares of the blocks are joined block by block.
"""

from __future__ import annotations

import os
import pickle
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from ptokit.base.diagnostics import where
from ptokit.base.layout import Array
from ptokit.base.location import Location
from ptokit.base.namedtuple import NamedTuple
from ptokit.isa.effects import Pipe, Token
from ptokit.machine.events import Event, Name, Touch

_IN_MEMORY = 200_000  # events; further blocks go to a file


class Recorded(NamedTuple):
    """An executed operation as plain data.

    `waits` pairs each token that was taken with the operation that gave it. Accesses to global
    memory are counted from the start of their array; `GM0` is the first array of the launch.
    """

    name: Name
    operation: str
    pipe: Pipe
    accesses: tuple[Touch, ...]
    signals: tuple[Token, ...]
    waits: tuple[tuple[Token, Name | None], ...]
    location: Location

    @property
    def block(self) -> int:
        return self.name.block

    @property
    def core(self) -> str:
        return self.name.core

    @property
    def line(self) -> int:
        return self.location.line


class _Written(NamedTuple):
    """The events of a block that lie in a file."""

    path: str
    offset: int
    size: int  # in events


class Recording:
    """All events of a launch, by block, then core, then in program order."""

    def __init__(self, arrays: Sequence[Array] = (), in_memory: int = _IN_MEMORY) -> None:
        self._arrays = [(a.__array_interface__["data"][0], a.nbytes) for a in arrays]
        self._in_memory = in_memory
        self._open: dict[int, list[Recorded]] = {}  # blocks that still run
        self._blocks: dict[int, list[Recorded] | _Written] = {}
        self._held = 0
        self._path: str | None = None
        self._files: dict[str, Any] = {}

    # ---- recording ------------------------------------------------------------------------------

    def see(self, event: Event) -> None:
        """Keep an event; the subscriber."""
        waits = tuple((token, by.name if by is not None else None) for token, by in event.waits)
        accesses = tuple(self._placed(touch) for touch in event.accesses)
        self._open.setdefault(event.name.block, []).append(
            Recorded(
                event.name,
                event.insn.name,
                event.pipe,
                accesses,
                tuple(event.signals),
                waits,
                where(event.site),
            )
        )

    def _placed(self, touch: Touch) -> Touch:
        if touch.memory != "GM" or not touch.ranges:
            return touch
        for number, (base, size) in enumerate(self._arrays):
            if base <= touch.ranges[0][0] < base + size:
                moved = tuple((start - base, stop - base) for start, stop in touch.ranges)
                return touch._replace(memory=f"GM{number}", ranges=moved)
        return touch

    def end_block(self, block: int) -> None:
        """A block has ended: put its events in order, and away when there are many."""
        events = sorted(self._open.pop(block, ()), key=lambda each: each.name)
        if self._held + len(events) <= self._in_memory:
            self._held += len(events)
            self._blocks[block] = events
            return
        if self._path is None:
            from tempfile import mkstemp  # for long recordings

            handle, self._path = mkstemp(prefix="ptokit-events-")
            os.close(handle)
            self._answer_for(self._path)
        with open(self._path, "ab") as file:
            self._blocks[block] = _Written(self._path, file.tell(), len(events))
            pickle.dump(events, file, pickle.HIGHEST_PROTOCOL)

    def finish(self) -> Recording:
        """The launch is over, with all its blocks or without some."""
        for block in list(self._open):
            self.end_block(block)
        return self

    def _answer_for(self, path: str) -> None:
        """Delete a file when the recording is gone."""
        if path not in self._files:
            self._files[path] = weakref.finalize(self, _remove, path)

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to another process, which then answers for the files."""
        for end in self._files.values():
            end.detach()
        return {**self.__dict__, "_files": {}}

    # ---- reading --------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Recorded]:
        for block in sorted(self._blocks):
            yield from self.of_block(block)

    def __len__(self) -> int:
        kept = self._blocks.values()
        return sum(each.size if isinstance(each, _Written) else len(each) for each in kept)

    def of_block(self, block: int) -> list[Recorded]:
        """The events of one block."""
        kept = self._blocks.get(block, [])
        if not isinstance(kept, _Written):
            return kept
        with open(kept.path, "rb") as file:
            file.seek(kept.offset)
            return pickle.load(file)

    def __repr__(self) -> str:
        return f"<{len(self)} events of {len(self._blocks)} blocks>"


def taken_over(sent: Recording) -> Recording:
    """The recording that another process has sent, which answers no more for its files."""
    whole = Recording()
    for block, events in sent._blocks.items():
        whole._blocks[block] = events
        if isinstance(events, _Written):
            whole._answer_for(events.path)
    return whole


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.remove(path)
