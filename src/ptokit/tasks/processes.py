"""Workers that are processes of this machine, which have all that this one has."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.reduction import ForkingPickler
from typing import Any, cast

from ptokit.base.process import end_group, undisturbed
from ptokit.tasks.pool import Gone, Ready, Word
from ptokit.tasks.work import Answer, Work, done, sendable

_LOOKS = 1.0  # seconds between two looks at processes that say nothing
_HELD = 1 << 16  # bytes that a line holds for a process that does not listen


class ProcessWorker:
    """A process, and the line to it.

    Nobody waits for the other to listen: a process that has nothing to do does, and what lies on
    the line of a busy one is less than the line holds.
    """

    def __init__(self, process: Any, line: Any) -> None:
        self.process, self.line = process, line
        self.is_new = True
        self._kept: deque[Any] = deque()  # tasks that are not sent yet
        self._sent: deque[int] = deque()  # sizes of those that are, and not answered

    def give(self, data: Any) -> None:
        self._kept.append(ForkingPickler.dumps(data))
        self._send()

    def answered(self) -> None:
        self._sent.popleft()
        self._send()

    def end(self) -> None:
        end_group(self.process)
        self.line.close()

    def _send(self) -> None:
        while self._kept and (not self._sent or sum(self._sent) + len(self._kept[0]) <= _HELD):
            task = self._kept.popleft()
            self._sent.append(len(task))
            with suppress(OSError):  # it is gone, which is heard in its turn
                self.line.send_bytes(task)


class Processes:
    """So many processes, each made when it is wanted, of this one as it is then."""

    def __init__(self, work: Work, jobs: int, life: int) -> None:
        self._work, self.size, self.life = work, jobs, life
        self._workers: dict[Any, ProcessWorker] = {}
        self._context = multiprocessing.get_context("fork")

    def hire(self) -> ProcessWorker:
        self._forget_those_gone()
        ours, theirs = cast("tuple[Any, Any]", self._context.Pipe())
        others = [ours, *self._workers]  # which it must not keep open: a line ends when we close it
        process = self._context.Process(target=_serve, args=(self._work, theirs, others))
        with undisturbed():
            process.start()
        theirs.close()
        worker = ProcessWorker(process, ours)
        self._workers[ours] = worker
        return worker

    def heard(self, seconds: float | None) -> Iterable[Word]:
        self._forget_those_gone()
        for worker in self._workers.values():
            if worker.is_new:
                worker.is_new = False
                yield worker, Ready()
                seconds = 0.0
        seconds = _LOOKS if seconds is None else min(seconds, _LOOKS)
        lines = cast("list[Any]", wait(list(self._workers), seconds))
        if not lines and seconds:  # what a process has started may keep its line open
            lines = [line for line, each in self._workers.items() if not each.process.is_alive()]
        for line in lines:
            worker = self._workers[line]
            try:
                word = line.recv() if line.poll() else None
            except (EOFError, OSError):
                word = None
            if word is None:
                worker.process.join()
                reason = f"its process ended with code {worker.process.exitcode}"
                worker.end()
                word = Gone(reason)
            else:
                worker.answered()
            yield worker, word

    def close(self) -> None:
        self._forget_those_gone()
        for worker in self._workers.values():
            worker.end()
        self._workers.clear()

    def _forget_those_gone(self) -> None:
        for line in [line for line in self._workers if line.closed]:
            del self._workers[line]


def _serve(work: Work, line: Any, others: Sequence[Any]) -> None:
    os.setsid()
    for other in others:
        other.close()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what tasks print is no part of any answer
    while True:
        try:
            data = line.recv()
        except EOFError:
            return
        answer = done(work.do, data, work.shared)
        try:
            line.send(answer)
        except OSError:  # nobody listens any more
            return
        except Exception as error:  # a value that cannot be sent
            line.send(Answer(error=sendable(error)))
