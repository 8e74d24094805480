"""Work spread over processes, and work that may crash in a process of its own."""

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

LOOKS = 0.2  # seconds between two looks at processes that are looked after


class Keeper(Protocol):
    """Looks after processes that run code of others, which may crash or never end."""

    def ended(self, status: int) -> PtoError:
        """The error of a process that gave nothing back, from its exit code."""
        ...

    def stuck(self) -> PtoError | None:
        """Asked now and then: the error of a process that gets nowhere, and is to be ended."""
        ...


def shares(count: int, jobs: int) -> list[range]:
    """Divide pieces of work into runs of nearly equal length, one per process."""
    edges = [count * n // jobs for n in range(jobs + 1)]
    return [range(a, b) for a, b in itertools.pairwise(edges) if a < b]


def spread(
    run: Callable[[range], Any], count: int, jobs: int, keeper: Keeper | None = None
) -> list[Any]:
    """Do so many pieces of work in `jobs` processes; `run` does a share of them.

    Returns what `run` gave back in each process, which must be data that can be sent. What it does
    to memory is not seen here.
    """
    context = multiprocessing.get_context("fork")  # programs are closures, which cannot be sent
    workers: list[tuple[Any, Any]] = []
    answers: list[Any] = []
    try:
        with undisturbed():
            for share in shares(count, jobs):
                ours, theirs = context.Pipe(duplex=False)
                worker = context.Process(target=work, args=(run, share, theirs))
                worker.start()
                theirs.close()
                workers.append((worker, ours))
        for worker, ours in workers:
            answers.append(answer_of(worker, ours, keeper))
    finally:  # whoever stops the launch stops its processes
        for worker, _ in workers:
            if len(answers) < len(workers):
                worker.kill()
            worker.join()
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return answers


def answer_of(worker: Any, line: Any, keeper: Keeper | None) -> Any:
    """What a process has to say: a value, or an error; a keeper looks after it until then."""
    while keeper is not None and not line.poll(LOOKS):
        if stuck := keeper.stuck():
            raise stuck
    try:
        return line.recv()
    except EOFError:
        worker.join()
        return (keeper.ended if keeper else _silent)(worker.exitcode)


def apart(run: Callable[[], Any], arrays: Sequence[Array], keeper: Keeper | None = None) -> Any:
    """What a function gives back in a process of its own, where it may crash: see `spread`.

    The arrays come back through memory that both have, and only when all went well.
    """
    memory = [a for a in {id(a): a for a in arrays}.values() if a.flags.writeable and a.size]
    shared = [np.frombuffer(mmap(-1, a.nbytes), np.uint8) for a in memory]

    def done(_: range) -> Any:
        value = run()
        for there, array in zip(shared, memory, strict=True):
            there[...] = raw_bytes(array)
        return value

    (value,) = spread(done, 1, 1, keeper)
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
        "a process ended before its work was done",
        got=[("exit code", status)],
        fix="leave jobs out to see what ends it; fewer processes need less memory",
    )


def work(run: Callable[[range], Any], share: range, answer: Any) -> None:
    """Do a share of the work, and say what came of it."""
    try:
        answer.send(run(share))
    except (Exception, SystemExit) as error:
        if not isinstance(error, PtoError):  # of the kernel itself, whose frames stay behind
            hide_frames(error)
            error.add_note("".join(traceback.format_tb(error.__traceback__)).rstrip())
        answer.send(_sendable(error))


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
