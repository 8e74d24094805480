"""Byte memories. Every byte knows whether anything has written it; reading one that nothing wrote
is an error of the program, never a zero. Global memory is a memory like the others (gm.py)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from ptokit.base.layout import Array

_uids = count()
_LINE = 64  # bytes of a cache line of the computer that simulates, and of its widest vectors


def zeros(nbytes: int) -> Array:
    """Bytes that begin with a cache line: vectors of a tile never lie across two of them."""
    room = np.zeros(nbytes + _LINE, np.uint8)
    first = -room.ctypes.data % _LINE
    return room[first : first + nbytes]


class Storage:
    """Bytes and their shadow: `shadow[i]` is 1 once byte i holds a defined value, 0 while poisoned.

    `epoch` grows whenever a defined byte becomes poison again. An access that was found fully
    defined stays so as long as the epoch stands, which makes the check free in steady state.
    """

    __slots__ = ("base", "data", "epoch", "name", "regions", "shadow", "uid", "writeable")

    never_checked = -1  # the epoch at which an access that is new was last found defined

    def __init__(self, name: str, nbytes: int) -> None:
        self.name = name
        self.data: Array = zeros(nbytes)
        self.shadow: Array = np.zeros(nbytes, np.uint8)
        self.uid = next(_uids)
        self.epoch = 0
        self.base = 0  # the address of the first byte in the address space of the memory
        self.writeable = True
        self.regions: Any = None  # which parts of it calls touch (machine/hazards.py)

    @property
    def nbytes(self) -> int:
        return self.data.nbytes

    def poison(self) -> None:
        """Forget all contents."""
        self.shadow[:] = 0
        self.epoch += 1


class Lease:
    """A tile's private storage in auto mode; returned to its pool when the last user is gone."""

    __slots__ = ("_pool", "storage")

    def __init__(self, pool: StoragePool, storage: Storage) -> None:
        self._pool = pool
        self.storage = storage

    def __del__(self) -> None:
        self._pool.give_back(self.storage)


class StoragePool:
    """Recycles private storages by size, so that loops over fresh tiles find their calls again."""

    def __init__(self) -> None:
        self._free: dict[tuple[str, int], list[Storage]] = {}
        self.account: Callable[[int], None] | None = None  # told of the bytes of new storages

    def lease(self, name: str, nbytes: int) -> Lease:
        """Return poisoned storage of this size."""
        free = self._free.get((name, nbytes))
        if not free and self.account is not None:
            self.account(nbytes)
        return Lease(self, free.pop() if free else Storage(name, nbytes))

    def give_back(self, storage: Storage) -> None:
        storage.poison()
        self._free.setdefault((storage.name, storage.nbytes), []).append(storage)
