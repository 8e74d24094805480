"""Blocks of a grid spread over processes.

Each process runs a share of the blocks on its own copy of global memory and reports the bytes it
changed; they are put together in the order of the blocks. Blocks that write the same bytes cannot
run apart - the order would decide - and are told so.
"""

from __future__ import annotations

import itertools
import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from mmap import mmap
from typing import Any, Protocol

import numpy as np

from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.entry import hide_frames
from ptokit.base.layout import Array, raw_bytes

Change = tuple[Array, Array]  # byte positions, and what they hold now
LOOKS = 0.2  # seconds between two looks at processes that are looked after


class Keeper(Protocol):
    """Looks after processes that run code of others, which may crash or never end."""

    def ended(self, status: int) -> PtoError:
        """The error of a process that gave nothing back, from its exit code."""
        ...

    def stuck(self) -> PtoError | None:
        """Asked now and then: the error of a process that gets nowhere, and is to be ended."""
        ...


def shares(blocks: int, jobs: int) -> list[range]:
    """Divide the blocks into runs of nearly equal length, one per process."""
    edges = [blocks * n // jobs for n in range(jobs + 1)]
    return [range(a, b) for a, b in itertools.pairwise(edges) if a < b]


def spread(
    run: Callable[[range], Any],
    arrays: Sequence[Array],
    blocks: int,
    jobs: int,
    keeper: Keeper | None = None,
) -> list[Any]:
    """Run all blocks in `jobs` processes; `run` executes a share of them.

    Returns what `run` gave back in each process, which must be data that can be sent.
    """
    context = multiprocessing.get_context("fork")  # programs are closures, which cannot be sent
    memory = [a for a in {id(a): a for a in arrays}.values() if a.flags.writeable]
    workers: list[tuple[Any, Any]] = []
    answers: list[Any] = []
    try:
        with undisturbed():
            for share in shares(blocks, jobs):
                ours, theirs = context.Pipe(duplex=False)
                worker = context.Process(target=_work, args=(run, share, memory, theirs))
                worker.start()
                theirs.close()
                workers.append((worker, ours))
        for worker, ours in workers:
            while keeper is not None and not ours.poll(LOOKS):
                if stuck := keeper.stuck():
                    raise stuck
            try:
                answers.append(ours.recv())
            except EOFError:
                worker.join()
                answers.append((keeper.ended if keeper else _silent)(worker.exitcode))
    finally:  # whoever stops the launch stops its processes
        for worker, _ in workers:
            if len(answers) < len(workers):
                worker.kill()
            worker.join()
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    _put_together(memory, [changes for changes, _ in answers])
    return [value for _, value in answers]


def apart(run: Callable[[], Any], arrays: Sequence[Array], keeper: Keeper | None = None) -> Any:
    """What a function gives back in a process of its own, where it may crash: see `spread`.

    The arrays come back through memory that both have, and only when all went well.
    """
    memory = [a for a in {id(a): a for a in arrays}.values() if a.flags.writeable and a.size]
    shared = [np.frombuffer(mmap(-1, a.nbytes), np.uint8) for a in memory]

    def work(_: range) -> Any:
        value = run()
        for there, array in zip(shared, memory, strict=True):
            there[...] = raw_bytes(array)
        return value

    (value,) = spread(work, [], 1, 1, keeper)
    for there, array in zip(shared, memory, strict=True):
        array[...] = there.view(array.dtype).reshape(array.shape)
    return value


@contextmanager
def undisturbed() -> Generator[None, None, None]:
    """Processes started in here do not hear of Ctrl-C: it is for whoever started them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _silent(status: int) -> PtoError:
    """A process was ended: by the kernel, by whoever runs short of memory, by hand."""
    return fail(
        "jobs",
        "a process of the launch ended before its blocks were done",
        got=[("exit code", status)],
        fix="leave jobs out to see what ends it; fewer processes need less memory",
    )


def _work(run: Callable[[range], Any], share: range, memory: list[Array], answer: Any) -> None:
    before = [a.copy() for a in memory]
    try:
        value = run(share)
        answer.send(([_changed(a, b) for a, b in zip(memory, before, strict=True)], value))
    except (Exception, SystemExit) as error:
        if not isinstance(error, PtoError):  # of the kernel itself, whose frames stay behind
            hide_frames(error)
            error.add_note("".join(traceback.format_tb(error.__traceback__)).rstrip())
        answer.send(_sendable(error))
    finally:
        answer.close()


def _sendable(error: BaseException) -> BaseException:
    """An exception as another process can be told of it."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # a class of the kernel's own, which cannot be made there
        told = RuntimeError(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", ()):
            told.add_note(note)
        return told
    return error


def _changed(array: Array, before: Array) -> Change:
    now = raw_bytes(array)
    where = np.flatnonzero(now != raw_bytes(before))
    return where, now[where]


def _put_together(memory: list[Array], answers: list[list[Change]]) -> None:
    for index, array in enumerate(memory):
        flat = raw_bytes(array).copy()
        owner = np.zeros(flat.size, np.uint8)
        for changes in answers:
            where, values = changes[index]
            if (owner[where] & (flat[where] != values)).any():
                raise fail(
                    "jobs-conflict",
                    "blocks of different processes wrote different values to the same bytes",
                    got=[("array", f"{array.dtype} {array.shape}")],
                    fix="run these blocks in one process: leave jobs out",
                )
            flat[where] = values
            owner[where] = 1
        array[...] = flat.view(array.dtype).reshape(array.shape)
