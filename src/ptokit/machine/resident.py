"""Work that may crash, in a process that stays: it does the same again on other contents.

Starting a process takes milliseconds, and what the work has found out is there and nowhere else.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from mmap import mmap
from typing import Any

import numpy as np

from ptokit.base.layout import Array
from ptokit.base.process import undisturbed
from ptokit.machine.gm import Roomy
from ptokit.machine.jobs import Keeper, answer_of, work

# Does the work again on these arrays, in so many threads; False: it would have been another one.
Again = Callable[[Sequence[Array], int], bool]
_MOST = 8  # processes that stay: each has the memories of a launch
_staying: list[weakref.ref[Resident]] = []


class Resident:
    """A process that has done its work, seen from the one that started it."""

    def __init__(self, worker: Any, line: Any, shared: Sequence[Array]) -> None:
        self._line, self._shared = line, shared
        self._lock, self._owner = threading.Lock(), os.getpid()
        self._worker = worker
        self._end = weakref.finalize(self, line.close)  # whoever listens there goes home
        _staying[:] = [each for each in _staying if each() is not None]
        _staying.append(weakref.ref(self))
        for each in _staying[:-_MOST]:
            if (oldest := each()) is not None:
                oldest.end()

    @property
    def has_ended(self) -> bool:
        return not self._end.alive or os.getpid() != self._owner

    def end(self) -> None:
        """Let the process go."""
        self._end()

    def again(self, arrays: Sequence[Array], threads: int = 1) -> bool:
        """Do the work on what these arrays hold, of the kinds and sizes of those before.

        False: somebody else is at it, or it has to be done from the beginning.
        """
        if self.has_ended or not self._lock.acquire(blocking=False):
            return False
        done: Any = None
        try:
            for there, array in zip(self._shared, arrays, strict=True):
                there[...] = array
            self._line.send(threads)
            done = self._line.recv()
            if done is True:
                for there, array in zip(self._shared, arrays, strict=True):
                    if array.flags.writeable:
                        array[...] = there
        except (EOFError, OSError):  # it was ended by somebody else
            return False
        finally:
            if done is None:
                self.end()
            self._lock.release()
        if isinstance(done, BaseException):
            raise done
        return bool(done)


def resident(
    run: Callable[[], tuple[Any, Again | None]], arrays: Sequence[Array], keeper: Keeper
) -> tuple[Any, Resident | None]:
    """What a function gives back in a process of its own, where it may crash, and the process.

    It stays where the function gives back what does the work again. Arrays come back when all went
    well, as those of `apart` do.
    """
    shared = [_shared(array) for array in arrays]
    import multiprocessing  # few programs stay

    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def first() -> tuple[Any, bool]:
        value, again = run()
        for there, array in zip(shared, arrays, strict=True):
            there[...] = array
        kept.append(again)
        return value, again is not None

    def serve() -> None:
        ours.close()
        for each in _staying:  # of others, who are to hear when their line is closed
            if (other := each()) is not None:
                other.end()
        work(first, theirs)
        while kept and kept[0] is not None:
            try:
                threads = theirs.recv()
            except EOFError:
                break
            work(partial(kept[0], shared, threads), theirs)
            sys.stdout.flush()

    kept: list[Any] = []
    with undisturbed():
        worker = context.Process(target=serve, daemon=True)
        worker.start()
    theirs.close()
    stays = False
    try:
        answer = answer_of(worker, ours, keeper)
        if isinstance(answer, BaseException):
            raise answer
        value, stays = answer
    finally:
        if not stays:
            worker.kill()
            worker.join()
            ours.close()
    for there, array in zip(shared, arrays, strict=True):
        if array.flags.writeable:
            array[...] = there
    return value, Resident(worker, ours, shared) if stays else None


def may_stay(arrays: Sequence[Array]) -> bool:
    """Whether copies can stand for these arrays: each has its bytes to itself, and no others."""
    if any(not each.flags.c_contiguous or isinstance(each, Roomy) for each in arrays):
        return False
    return not any(np.may_share_memory(*both) for both in combinations(arrays, 2))


def _shared(array: Array) -> Array:
    """An array of the same kind that both processes have."""
    memory = np.frombuffer(mmap(-1, max(array.nbytes, 1)), np.uint8)
    return memory[: array.nbytes].view(array.dtype).reshape(array.shape)
