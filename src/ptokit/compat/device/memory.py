"""What launches may touch: the arrays whose addresses the program has asked for."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from ptokit.machine.gm import GmBuffer
from ptokit.native.records import Memory

MEMORY = Memory([])
_spans: dict[int, tuple[int, Callable[[], bool]]] = {}  # by address: the end, and is it gone?


def note(address: int, size: int, is_gone: Callable[[], bool]) -> None:
    """A stretch of memory that somebody may hand to a kernel, until it is gone."""
    known = _spans.get(address)
    if known is not None and known[0] == address + size:
        _spans[address] = (known[0], is_gone)
        return
    for start, (end, _) in list(_spans.items()):  # one that was there before, and is no more
        if start < address + size and address < end:
            _forget(start)
    if size:
        room = (ctypes.c_uint8 * size).from_address(address)
        MEMORY.add(GmBuffer(np.frombuffer(memoryview(room), np.uint8)))
        _spans[address] = (address + size, is_gone)


def tidy() -> None:
    """Forget what is gone: a kernel that still has its address is told so."""
    for start, (_, is_gone) in list(_spans.items()):
        if is_gone():
            _forget(start)


def _forget(start: int) -> None:
    MEMORY.remove(start)
    del _spans[start]
