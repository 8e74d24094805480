"""Work that may crash, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from mmap import mmap
from typing import Any, Protocol

import numpy as np

from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.layout import Array, raw_bytes
from ptokit.base.process import undisturbed
from ptokit.tasks.work import sendable

LOOKS = 0.2  # seconds between two looks at processes that are looked after


class Keeper(Protocol):
    """Looks after processes that run code of others, which may crash or never end."""

    def ended(self, status: int) -> PtoError:
        """The error of a process that gave nothing back, from its exit code."""
        ...

    def stuck(self) -> PtoError | None:
        """Asked now and then: the error of a process that gets nowhere, and is to be ended."""
        ...


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
    """What a function gives back in a process of its own, where it may crash: data.

    The arrays come back through memory that both have, and only when all went well.
    """
    memory = [a for a in {id(a): a for a in arrays}.values() if a.flags.writeable and a.size]
    shared = [np.frombuffer(mmap(-1, a.nbytes), np.uint8) for a in memory]

    def done() -> Any:
        value = run()
        for there, array in zip(shared, memory, strict=True):
            there[...] = raw_bytes(array)
        return value

    import multiprocessing  # most kernels run in the process that asks for it

    context = multiprocessing.get_context("fork")  # programs are closures, which cannot be sent
    ours, theirs = context.Pipe(duplex=False)
    worker = context.Process(target=work, args=(done, theirs))
    with undisturbed():
        worker.start()
    theirs.close()
    value: Any = None
    has_answered = False
    try:
        value = answer_of(worker, ours, keeper)
        has_answered = True
    finally:  # whoever stops the launch stops its process
        if not has_answered:
            worker.kill()
        worker.join()
    if isinstance(value, BaseException):
        raise value
    for there, array in zip(shared, memory, strict=True):
        array[...] = there.view(array.dtype).reshape(array.shape)
    return value


def _silent(status: int) -> PtoError:
    """A process was ended: by the kernel, by whoever runs short of memory, by hand."""
    return fail(
        "jobs",
        "a process ended before its work was done",
        got=[("exit code", status)],
        fix="leave jobs out to see what ends it; fewer processes need less memory",
    )


def work(run: Callable[[], Any], answer: Any) -> None:
    """Do the work, and say what came of it."""
    try:
        answer.send(run())
    except (Exception, SystemExit) as error:
        answer.send(sendable(error))
