"""The memories a stream of calls works on: which there are, and where they lie in a thread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptokit.base.layout import Array
from ptokit.machine.access import Access
from ptokit.machine.gm import GmBuffer
from ptokit.machine.memory import Storage, zeros


class Memories:
    """The memories of a run by number: 0 is scratch of the library, then come the arrays of the
    user, which are others in every launch, then those of cores and FIFOs, and tables."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        buffers = [GmBuffer(array) for array in arrays]
        self._arrays = [(buffer.base, max(buffer.nbytes, 1)) for buffer in buffers]
        self._others: list[Array] = []
        self._numbers: dict[int, int] = {}  # of the others, by identity
        self._tables: set[int] = set()  # those that nobody writes
        self.scratch = 1  # bytes of memory 0
        self._apart: dict[tuple[int, int], bool] = {}

    def share(self, other: Memories) -> bool:
        """Give memories that are not the user's the numbers they have elsewhere, where possible."""
        if other is self:
            return True
        if self._others or len(other._arrays) != len(self._arrays):
            return False
        self._others, self._numbers, self._tables = other._others, other._numbers, other._tables
        self.scratch = max(self.scratch, other.scratch)
        return True

    def beyond(self, known: int) -> list[int]:
        """Where memories begin that are no arrays of the user, from one of them on."""
        return [memory.ctypes.data for memory in self._others[known:]]

    def place(self, access: Access, behind: int) -> tuple[int, int]:
        """The number of the memory an access goes to, and a place behind its own there."""
        offset = access.offset + behind
        array = self.array(access)
        if array is not None:
            return 1 + array[0], array[1] + behind
        return self._number(access.memory.data), offset

    def is_users(self, number: int) -> bool:
        """Whether a memory is an array of the user."""
        return 0 < number <= len(self._arrays)

    def begin(self, number: int) -> int:
        """Where a memory begins in the run that was noted: what lay apart there always does."""
        if self.is_users(number):
            return self._arrays[number - 1][0]
        return self._others[number - 1 - len(self._arrays)].ctypes.data

    def span(self, number: int) -> tuple[int, int]:
        """Where a memory begins and ends in the run that was noted."""
        begin = self.begin(number)
        if self.is_users(number):
            return begin, begin + self._arrays[number - 1][1]
        return begin, begin + self._others[number - 1 - len(self._arrays)].nbytes

    def are_apart(self, one: int, other: int) -> bool:
        """Whether two memories have no byte in common."""
        found = self._apart.get((one, other))
        if found is None:
            (low, high), (begin, end) = self.span(one), self.span(other)
            found = self._apart[one, other] = high <= begin or end <= low
        return found

    def table(self, table: Array) -> int:
        """The number of a memory that is only read."""
        self._tables.add(id(table))
        return self._number(table)

    def _number(self, memory: Array) -> int:
        known = self._numbers.get(id(memory))
        if known is None:
            self._others.append(memory)
            known = self._numbers[id(memory)] = len(self._arrays) + len(self._others)
        return known

    def array(self, access: Access) -> tuple[int, int] | None:
        """The array of the user that an access goes to, and where; None: another memory."""
        return self.array_at(access.memory, access.offset)

    def array_at(self, memory: Storage, offset: int) -> tuple[int, int] | None:
        """The array of the user in which a place lies, and where; None: in another memory."""
        if isinstance(memory, GmBuffer):
            base = memory.base
            for number, (start, size) in enumerate(self._arrays):
                if start <= base < start + size:
                    return number, offset + base - start
        return None

    def contents(self) -> list[bytes]:
        """What those of cores and FIFOs hold."""
        return [each.tobytes() for each in self._others if id(each) not in self._tables]

    @property
    def arrays(self) -> int:
        """How many arrays of the user there are."""
        return len(self._arrays)

    def of_buffer(self, buffer: GmBuffer) -> tuple[int, int]:
        """The number of the memory a buffer lies in, and where."""
        for number, (start, size) in enumerate(self._arrays, 1):
            if start <= buffer.base < start + size:
                return number, buffer.base - start
        return self._number(buffer.data), 0

    def addresses(self) -> Addresses:
        """Where each of them begins."""
        return Addresses(self.scratch, len(self._arrays), self._others)

    def more_addresses(self) -> Addresses:
        """The same for another thread, which has memories of its own."""
        others = [
            memory if id(memory) in self._tables else zeros(memory.nbytes)
            for memory in self._others
        ]
        return Addresses(self.scratch, len(self._arrays), others)


class Addresses:
    """Where the memories of one thread begin; the arrays of the user are told at each launch."""

    def __init__(self, scratch: int, arrays: int, others: Sequence[Array]) -> None:
        self._arrays = arrays
        room = zeros(scratch)
        self._kept = (room, *others)
        places = (memory.ctypes.data for memory in others)
        self._places = np.array([room.ctypes.data, *[0] * arrays, *places], np.int64)
        self.pointer = self._places.ctypes.data

    def tell(self, places: Sequence[int]) -> None:
        """Where the arrays of the user lie."""
        self._places[1 : 1 + self._arrays] = places
