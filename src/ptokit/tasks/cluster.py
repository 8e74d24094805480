"""Workers that are actors of a Ray cluster.

Each has one processor. What all tasks share is put into the object store once; a task goes to its
worker with the call, and what came of it returns with the answer. Nothing is asked of Ray but to
start actors and to say when one is gone: who gets which task is `pool.py`'s.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from typing import Any

from ptokit.base.diagnostics import usage_error
from ptokit.tasks.pool import Gone, Ready, Word
from ptokit.tasks.work import Answer, Work, done, sendable

_PATIENCE = 10.0  # seconds until a machine that does not answer is not there
_LOOKS = 5.0  # seconds between two looks at how large the cluster is


def is_installed() -> bool:
    """Whether there is Ray; it is not loaded for that."""
    return find_spec("ray") is not None


def connected(address: str) -> Any:
    """Ray, connected to a cluster; without an address to that of RAY_ADDRESS, or to one of here."""
    if not is_installed():
        raise usage_error(
            "cluster",
            "a cluster takes Ray, which is not installed",
            fix="pip install 'ptokit[ray]'",
        )
    ray = import_module("ray")
    if not ray.is_initialized():
        wanted = address or os.environ.get("RAY_ADDRESS", "")
        quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        try:
            if wanted:
                _knock(wanted)
                ray.init(wanted, **quiet)
            else:
                ray.init("local", include_dashboard=False, **quiet)
        except (ConnectionError, ValueError, RuntimeError, OSError) as error:
            raise usage_error(
                "cluster",
                f"there is no cluster at {wanted or 'this machine'}: {error}",
                fix="ray start --head starts one here, whose address is auto; RAY_AUTH_MODE and "
                "the token are those of its nodes",
            ) from None
    return ray


def _knock(address: str) -> None:
    """Raise where nobody is at an address; Ray would go on asking for minutes."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host, int(port)), _PATIENCE).close()


class Actor:
    """What runs on a machine of the cluster."""

    def __init__(self, name: str, path: list[str], *shared: Any) -> None:
        sys.path += [each for each in path if each not in sys.path]
        module, _, function = name.partition(":")
        found: Any = import_module(module)
        for part in function.split("."):
            found = getattr(found, part)
        self._do, self._shared = found, shared

    def ready(self) -> Ready:
        return Ready()

    def do(self, data: Any) -> Answer:
        return done(self._do, data, self._shared)


class RemoteWorker:
    """An actor, seen from here."""

    def __init__(self, crew: Cluster, actor: Any) -> None:
        self._crew, self._actor = crew, actor
        self._asked = self._told = 0  # calls: Ray may tell of them in another order
        self._early: dict[int, Any] = {}
        self._follow(actor.ready.remote())

    def give(self, data: Any) -> None:
        self._follow(self._actor.do.remote(data))

    def end(self) -> None:
        self._crew.drop(self)
        self._crew.ray.kill(self._actor, no_restart=True)

    def told(self, number: int, said: Any) -> Iterator[Any]:
        """What was said of its calls, in their order, now that this was said of one."""
        self._early[number] = said
        while self._told in self._early:
            yield self._early.pop(self._told)
            self._told += 1

    def _follow(self, call: Any) -> None:
        call.future().add_done_callback(partial(self._crew.hear, self, self._asked))
        self._asked += 1


class Cluster:
    """Actors, as many as the cluster has processors, or fewer."""

    life = sys.maxsize

    def __init__(self, work: Work, address: str, most: int | None) -> None:
        name = work.name
        self.ray = connected(address)
        self._kind = self.ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(Actor)
        self._shared = [self.ray.put(each) for each in work.shared]
        self._name, self._most = name, most
        self._said: SimpleQueue[tuple[RemoteWorker, int, Any]] = SimpleQueue()
        self._workers: set[RemoteWorker] = set()
        self._looked, self._size = 0.0, 1

    @property
    def size(self) -> int:
        now = time.monotonic()
        if now - self._looked > _LOOKS:  # nodes come and go
            self._looked = now
            processors = int(self.ray.cluster_resources().get("CPU", 0))
            self._size = max(1, min(processors, self._most or processors))
        return self._size

    def hire(self) -> RemoteWorker:
        worker = RemoteWorker(self, self._kind.remote(self._name, sys.path, *self._shared))
        self._workers.add(worker)
        return worker

    def hear(self, worker: RemoteWorker, number: int, call: Any) -> None:
        """An answer has come, in a thread of Ray's."""
        error = call.exception()
        self._said.put((worker, number, call.result() if error is None else error))

    def heard(self, seconds: float | None) -> Iterable[Word]:
        waits = _LOOKS if seconds is None else min(seconds, _LOOKS)
        with suppress(Empty):
            worker, *word = self._said.get(timeout=waits) if waits else self._said.get_nowait()
            while True:
                for said in worker.told(*word):
                    if worker in self._workers:
                        yield worker, self._judged(worker, said)
                worker, *word = self._said.get_nowait()

    def _judged(self, worker: RemoteWorker, said: Any) -> Answer | Ready | Gone:
        errors = self.ray.exceptions
        if isinstance(said, errors.RayActorError):
            self.drop(worker)
            if said.__cause__ is not None:  # raised by the actor before it was ready
                raise usage_error("cluster", f"a worker cannot begin: {said.__cause__}") from said
            return Gone("its worker was ended")
        if isinstance(said, errors.RayTaskError):  # not of the work: `done` catches that
            return Answer(error=sendable(said.cause or said))
        if isinstance(said, BaseException):  # lost with its machine, or there was no room for it
            worker.end()
            return Gone(f"what it gave back was lost: {type(said).__name__}")
        return said

    def drop(self, worker: RemoteWorker) -> None:
        self._workers.discard(worker)

    def close(self) -> None:
        for worker in list(self._workers):
            worker.end()
        self._shared.clear()
