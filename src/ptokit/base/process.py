"""A process that is a copy of this one, and says what it finds.

`multiprocessing` has more of them, and loads thirty modules for it: half as long as a small check.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

_LENGTH = 8  # bytes that say how long a message is


@contextmanager
def undisturbed() -> Generator[None, None, None]:
    """Processes started in here do not hear of Ctrl-C: it is for whoever started them.

    From 3.12 on Python warns of copies of a process that has threads, those of NumPy included.
    Ours take no lock that another thread may hold, and the warning would name a user's line.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with warnings.catch_warnings():
            if sys.version_info >= (3, 12):  # only this one: the copy keeps the filter
                warnings.filterwarnings("ignore", r".*use of fork\(\)", DeprecationWarning)
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_group(process: Any) -> None:
    """End a process that leads a group, with whatever it has started."""
    with suppress(ProcessLookupError, PermissionError):  # it may not lead one yet, or any more
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


class Copied:
    """A copy of this process that does some work, with a line on which it sends what it finds."""

    def __init__(self, work: Callable[[Callable[[Any], None]], None]) -> None:
        self._line, theirs = os.pipe()
        _flush()  # what waits there would be written twice
        with undisturbed():
            self.pid = os.fork()
            if not self.pid:
                os.close(self._line)
                _do(work, theirs)
        os.close(theirs)

    def heard(self, seconds: float) -> bool:
        """Whether something comes, or the end, within this time."""
        line = select.poll()
        line.register(self._line, select.POLLIN)
        return bool(line.poll(max(0.0, seconds) * 1e3))

    def receive(self) -> Any:
        """The next thing it says; `EOFError` if it ended."""
        return pickle.loads(self._read(int.from_bytes(self._read(_LENGTH), "little")))

    def _read(self, count: int) -> bytes:
        read = bytearray()
        while len(read) < count:
            more = os.read(self._line, count - len(read))
            if not more:
                raise EOFError
            read += more
        return bytes(read)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def join(self) -> None:
        os.waitpid(self.pid, 0)
        os.close(self._line)


def _do(work: Callable[[Callable[[Any], None]], None], line: int) -> None:
    """What the copy does, from here to its end, with which the line ends: then all is said."""

    def send(said: Any) -> None:
        data = pickle.dumps(said)
        rest = memoryview(len(data).to_bytes(_LENGTH, "little") + data)
        while rest:
            rest = rest[os.write(line, rest) :]

    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # what comes in is not for it
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        work(send)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            _flush()
        os._exit(code)


def _flush() -> None:
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
