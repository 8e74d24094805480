"""Cores that write the same bytes to one place, as both vector cores do to an undivided entry.

No signal orders them, and none has to as long as they write the same: a launch in which they did is
right, and the next one is only if they do so again. So a repetition compares what each of them
finds there with what it leaves, as the check has done (`machine/journal.py`). Where it is another,
the launch runs step by step, and is told what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptokit.base.layout import Array, raw_bytes
from ptokit.engines.compiled.bodies import Differs, Noted, moved
from ptokit.engines.compiled.memories import Memories
from ptokit.machine.access import Access
from ptokit.machine.call_facts import facts_of
from ptokit.machine.gm import GmBuffer
from ptokit.machine.machine import Machine


class Before:
    """What lies where a core will write, and another one has written."""

    def __init__(self, access: Access, memories: Memories) -> None:
        self._access, self._place = access, memories.array(access)
        self.found = np.zeros(0, np.uint8)

    def now(self, arrays: Sequence[Array]) -> Array:
        """The bytes that lie there."""
        access, place = self._access, self._place
        if place is not None:
            access = moved(access, arrays[place[0]], place[1])
        return raw_bytes(np.array(access.read()))

    def run(self, machine: Machine, arrays: Sequence[Array]) -> None:
        """Keep it."""
        self.found = self.now(arrays)


class After:
    """The same when it has written."""

    def __init__(self, before: Before) -> None:
        self._before = before

    def run(self, machine: Machine, arrays: Sequence[Array]) -> None:
        """Raise `Differs` where it is no longer what it was."""
        if not np.array_equal(self._before.found, self._before.now(arrays)):
            raise Differs


class Twins:
    """Finds the calls of a run that write what another core was the last to write there.

    Those that write something else are ordered by signals, or the check has told.
    """

    def __init__(self, memories: Memories) -> None:
        self._memories = memories
        # By place: the core, which bytes, and their contents.
        self._writers: dict[tuple[int, int], tuple[int, object, int]] = {}
        self.is_all = (
            True  # whether values have a say nowhere else: no index leads to global memory
        )

    def met(self, note: Noted) -> list[Before]:
        """The places that a call shares with another core in this way."""
        call, core = note.call, note.core.number
        self.is_all = self.is_all and not call.narrows
        far = [each for each in note.bound if each.writes and isinstance(each.memory, GmBuffer)]
        found: list[Before] = []
        for access in (*far, *(each for each in call.across if each.writes)):
            at = access.memory.uid, access.memory.base + access.offset
            here = access.signature, hash(raw_bytes(np.array(access.read())).tobytes())
            last = self._writers.get(at)
            if last is not None and last[0] != core and last[1:] == here:
                found.append(Before(access, self._memories))
            if not facts_of(call).atomic:
                self._writers[at] = core, *here
        return found
