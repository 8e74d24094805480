"""The ranks of a world as actors of a Ray cluster.

Each rank is an actor with copies of windows (machine/apart.py), and one more actor is the hub
through which they hear of each other (machine/hub.py). The bytes that ranks write for others go
through the object store; the hub only passes references on.
"""

from __future__ import annotations

import asyncio
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import (
    ProgramError,
    PtoError,
    PtoWarning,
    fail,
    tell,
    usage_error,
)
from ptokit.base.layout import Array
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.policy import Policy
from ptokit.frontend.captured import Captured, Change, lost
from ptokit.frontend.rank_sending import received, sent
from ptokit.isa.targets import Target
from ptokit.machine.apart import Changed, Entry, RanksApart, write_all
from ptokit.machine.hub import Ask, Hub, News
from ptokit.machine.judge import Judge, Told
from ptokit.repair.advice import advised
from ptokit.tasks.cluster import connected
from ptokit.tasks.executor import Executor
from ptokit.tasks.work import sendable

_SMALL = 1024  # bytes that go with a message
_PATIENCE = 120.0  # seconds in which all actors have begun
_LOOKS = 5.0  # seconds between two looks at how large the cluster is
_RUNS, _KEPT = 100, 1 << 30  # runs, and bytes of their windows, that are kept to do them again


@dataclass(frozen=True)
class Kind:
    """What the machines of a world are."""

    size: int
    target: Target
    mode: str
    policy: Policy
    make: Callable[[Kind, RanksApart], Any]  # the world, where one rank of it is


# ---- actors --------------------------------------------------------------------------------------


class HubActor:
    """The hub, which answers each rank when there is an answer."""

    def __init__(self) -> None:
        self._hub = Hub(0)

    async def begin(self, size: int) -> None:
        self._hub = Hub(size)

    async def ask(self, rank: int, what: str, entries: Sequence[Entry]) -> News:
        answer: asyncio.Future[News] = asyncio.get_running_loop().create_future()
        self._hub.ask(rank, Ask(what), entries, answer.set_result)
        return await answer

    async def entries(self) -> Sequence[Entry]:
        return self._hub.entries


class Lost(BaseException):
    """Somebody whom a rank needs is gone: no affair of the program, which must not catch it."""


class RayLine:
    """The way of a rank to the hub."""

    def __init__(self, ray: Any, hub: Any, rank: int) -> None:
        self._ray, self._hub, self._rank = ray, hub, rank

    def ask(self, what: Ask, entries: Sequence[Entry]) -> News:
        with self._heeding():
            stored = [self._stored(each) for each in entries]
            return self._ray.get(self._hub.ask.remote(self._rank, str(what), stored))

    def bytes_of(self, entries: Sequence[Changed]) -> Sequence[Array]:
        with self._heeding():
            return fetched(self._ray, [each.data for each in entries])

    def contents(self, window: Any) -> Array:
        with self._heeding():
            return self._ray.get(window)

    @contextmanager
    def _heeding(self) -> Generator[None, None, None]:
        try:
            yield
        except self._ray.exceptions.RayError as error:
            raise Lost(_first_line(error)) from None

    def _stored(self, entry: Entry) -> Entry:
        if isinstance(entry, Changed) and entry.data.nbytes > _SMALL:
            return entry._replace(data=self._ray.put(entry.data))
        return entry


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def fetched(ray: Any, data: Sequence[Any]) -> list[Any]:
    """Values, of which some lie in the object store."""
    values = iter(ray.get([each for each in data if isinstance(each, ray.ObjectRef)]))
    return [next(values) if isinstance(each, ray.ObjectRef) else each for each in data]


class Before(NamedTuple):
    """A window as it is before a run."""

    dtype: Any
    shape: tuple[int, ...]
    arrays: Sequence[Any]  # one per rank, in the object store


class RankActor:
    """One rank: its machine stays from one run to the next."""

    def __init__(self, path: list[str], kind: Kind, number: int) -> None:
        sys.path += [each for each in path if each not in sys.path]
        self._ranks = RanksApart(kind.size, number)
        self._world = kind.make(kind, self._ranks)

    def ready(self) -> None:
        """It has begun."""

    def run(self, hub: Any, program: bytes, windows: Sequence[Before]) -> Told | str:
        """Run a program on windows that hold this; a reason where somebody else is gone."""
        try:
            return self._run(hub, program, windows)
        except Lost as lost:
            return str(lost)

    def _run(self, hub: Any, program: bytes, windows: Sequence[Before]) -> Told:
        world, ranks = self._world, self._ranks
        for each in windows[len(world.windows) :]:
            empty = (np.empty(each.shape, each.dtype.np) for _ in each.arrays)
            world._add(tuple(empty), each.dtype)
        line = RayLine(import_module("ray"), hub, ranks.number)
        value, error, changed = None, None, list[Change]()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PtoWarning)
            with ranks.on(line, [each.arrays for each in windows]):
                try:
                    do, args = received(world, program)
                    captured = Captured(do, args)
                    value = world._on(ranks.number, do, args)
                    changed = captured.changed()
                except (Exception, SystemExit) as raised:
                    error = sendable(raised)
        told = [each.message.diagnostic for each in caught if isinstance(each.message, PtoWarning)]
        return Told(ranks.items, value, error, ranks.was_hopeless, told, changed)


def share_of(nodes: Sequence[float], size: int) -> float:
    """How much of a processor each rank has, so that all of them find a place at once."""
    if not any(nodes):
        return 0.0  # of those who only lend their memory
    each = next(n for n in count(1) if sum(int(n * processors) for processors in nodes) >= size)
    return int(1000 / each) / 1000


class _Run(NamedTuple):
    """A program, and the windows as they were before it."""

    program: Any
    windows: list[Before]
    size: int  # bytes of the windows


class RankActors:
    """All ranks of a world, and their hub.

    Where one of them is lost, with its node or alone, nobody can go on. All begin anew then:
    earlier runs, which have left their traces in the machines, are done again, and then this one.
    """

    def __init__(self, kind: Kind, executor: Executor) -> None:
        self._kind, self._executor = kind, executor
        self._ray = connected(executor.address)
        self._hub: Any = None
        self._actors: list[Any] = []
        self._earlier: list[_Run] = []
        self._forgotten = 0  # earlier runs that cannot be done again

    def run(self, world: Any, program: Any, args: tuple[Any, ...], seed: int | None) -> list[Any]:
        """Run a program on every rank, and judge what they did."""
        ray, windows = self._ray, [each.arrays for each in world.windows]
        judge = Judge(self._kind.target, windows)
        put = [
            Before(w.dtype, w.arrays[0].shape, [ray.put(array) for array in w.arrays])
            for w in world.windows
        ]
        size = sum(array.nbytes for arrays in windows for array in arrays)
        run = _Run(ray.put(sent(world, program, args)), put, size)
        told, entries = self._tried(run)
        self._remember(run)
        write_all(entries, windows)
        for each in {each: None for rank in told for each in rank.warnings}:
            tell(each)
        try:
            values = judge.run(told, seed)
            if found := lost([each.changed for each in told]):
                raise ProgramError(found)
            return values
        except PtoError as error:
            error.diagnostics = advised(error.diagnostics)
            raise
        finally:
            for each in judge.warnings:
                tell(each)

    # ---- again ----------------------------------------------------------------------------------

    def _tried(self, run: _Run) -> tuple[list[Told], list[Entry]]:
        """What came of a run; of all attempts the first in which nobody is lost."""
        tries, reason = 1 + self._executor.retries, ""
        for _ in range(tries):
            try:
                if not self._actors:
                    self._begin()
                return self._once(run)
            except Lost as lost:
                reason = str(lost)
            except BaseException:
                self.close()
                raise
            self.close()
        times = "once" if tries == 1 else f"{tries} times in a row"
        raise fail(
            "cluster",
            f"a rank was lost with its machine, or ended its process, {times}",
            got=[("reason", reason)],
            fix="the windows hold what they did before; World(n) without jobs runs all ranks in "
            "this process, where one can see what ends it",
        )

    def _remember(self, run: _Run) -> None:
        """Keep a run for machines that have to be made anew, as long as that is not too much."""
        self._earlier.append(run)
        if len(self._earlier) > _RUNS or sum(each.size for each in self._earlier) > _KEPT:
            self._forgotten += len(self._earlier)
            self._earlier.clear()

    def _begin(self) -> None:
        """Start all actors, and let their machines become what earlier runs have made of them."""
        if self._forgotten:
            raise fail(
                "cluster",
                "the ranks had to be ended, and their memories held what "
                f"{self._forgotten} earlier runs have left there: too many to do them again",
                fix="make a new World for what comes next: it begins with empty memories",
            )
        while not self._begun():
            self.close()
        for each in self._earlier:
            self._once(each)

    def _begun(self) -> bool:
        """Whether actors could begin on the processors that there are; nodes come and go."""
        ray, kind = self._ray, self._kind
        nodes = self._nodes
        how = {"max_restarts": 0, "scheduling_strategy": "SPREAD"}
        rank = ray.remote(num_cpus=share_of(nodes, kind.size), **how)(RankActor)
        self._hub = ray.remote(num_cpus=0)(HubActor).remote()
        self._actors = [rank.remote(sys.path, kind, n) for n in range(kind.size)]
        calls = [each.ready.remote() for each in self._actors]
        return self._wait(calls, _PATIENCE, "begin", lambda: self._nodes == nodes) != []

    @property
    def _nodes(self) -> list[float]:
        """The processors of each node that is there."""
        there = (each for each in self._ray.nodes() if each["Alive"])
        return sorted(float(each["Resources"].get("CPU", 0)) for each in there)

    def _once(self, run: _Run) -> tuple[list[Told], list[Entry]]:
        """What ranks say of a run, and what they have told each other."""
        with self._heeding():
            self._ray.get(self._hub.begin.remote(self._kind.size))
        calls = [each.run.remote(self._hub, run.program, run.windows) for each in self._actors]
        told: list[Any] = self._wait(calls, self._executor.seconds, "end")
        for each in told:
            if isinstance(each, str):
                raise Lost(each)
        with self._heeding():
            entries = self._ray.get(self._hub.entries.remote())
            changed = [each for each in entries if isinstance(each, Changed)]
            data = iter(fetched(self._ray, [each.data for each in changed]))
            return told, [
                e._replace(data=next(data)) if isinstance(e, Changed) else e for e in entries
            ]

    def _wait(
        self,
        calls: list[Any],
        seconds: float | None,
        what: str,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> list[Any]:
        """What all of them give back, or nothing where it does not go on."""
        until = None if seconds is None else time.monotonic() + seconds
        left, ray = list(calls), self._ray
        while left:
            rest = _LOOKS if until is None else min(_LOOKS, until - time.monotonic())
            with self._heeding():
                done, left = ray.wait(left, timeout=max(0.0, rest))
                ray.get(done)  # where one is lost the others would wait for it forever
            if not done and not goes_on():
                return []
            if not done and until is not None and time.monotonic() >= until:
                raise fail(
                    "cluster",
                    f"{len(left)} of {len(calls)} ranks did not {what} within {seconds:g} s",
                    fix="ray status says what the cluster has room for",
                )
        with self._heeding():
            return ray.get(calls)

    @contextmanager
    def _heeding(self) -> Generator[None, None, None]:
        """What Ray raises because somebody is gone is a loss."""
        errors = self._ray.exceptions
        try:
            yield
        except errors.RayActorError as error:
            if error.__cause__ is not None:  # raised by the actor before it was ready
                raise usage_error("cluster", f"a rank cannot begin: {error.__cause__}") from error
            raise Lost(_first_line(error)) from None
        except errors.RayTaskError as error:  # no loss
            if not isinstance(error.cause, TypeError | pickle.PicklingError):
                raise
            raise fail(
                "cluster",
                "what a rank returns cannot be sent",
                got=[("reason", _first_line(error.cause))],
                fix="return numbers, arrays and what is made of them",
            ) from None
        except errors.RayError as error:
            raise Lost(_first_line(error)) from None

    def close(self) -> None:
        """End all of them, unless they have ended with the connection: Ray would start anew."""
        actors, self._actors = (*self._actors, self._hub), []
        for each in actors if self._ray.is_initialized() else ():
            with suppress(Exception):
                self._ray.kill(each)
