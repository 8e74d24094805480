"""The ranks of a world as actors of a Ray cluster.

Each rank is an actor with copies of all windows (machine/apart.py), and one more actor is the hub
through which they hear of each other (machine/hub.py). The bytes that ranks write for others go
through the object store; the hub only passes references on. The program goes there as a function
with what it refers to: worlds and windows in it become those of the actor, other arrays come as
copies that cannot be written, since nobody would see it.
"""

from __future__ import annotations

import asyncio
import io
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError, PtoWarning, fail, tell
from ptokit.base.layout import Array, raw_bytes
from ptokit.base.policy import Policy
from ptokit.isa.targets import Target
from ptokit.machine.apart import Changed, Entry, RanksApart, Spot, write_all
from ptokit.machine.hub import Ask, Hub, News
from ptokit.machine.judge import Judge, Told
from ptokit.repair.advice import advised
from ptokit.tasks.cluster import connected
from ptokit.tasks.executor import Executor
from ptokit.tasks.work import sendable

_SMALL = 1024  # bytes that go with a message
_PATIENCE = 120.0  # seconds in which all actors have begun
_PUBLIC = ("ptokit", "ptokit.comm", "ptokit.micro", "ptokit.vmi")


@dataclass(frozen=True)
class Kind:
    """What the machines of a world are."""

    size: int
    target: Target
    mode: str
    policy: Policy
    make: Callable[[Kind, RanksApart], Any]  # the world, where one rank of it is


# ---- what is sent --------------------------------------------------------------------------------

_here: list[Any] = []  # the world of the actor


def _world() -> Any:
    return _here[0]


def _window(number: int) -> Any:
    return _here[0].windows[number]


def _part(at: Spot, shape: Sequence[int], strides: Sequence[int], kind: Any) -> Array:
    raw = raw_bytes(_here[0].windows[at.window].arrays[at.rank])[at.offset :]
    return np.ndarray(tuple(shape), kind, raw.data, 0, tuple(strides))


def _frozen(data: bytes) -> Array:
    array: Array = pickle.loads(data)
    array.flags.writeable = False
    return array


def _named(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def sent(world: Any, program: Any, args: tuple[Any, ...]) -> bytes:
    """A program with its arguments, as an actor can take them over."""
    base: Any = import_module("ray.cloudpickle").Pickler
    names: dict[int, tuple[str, str]] = {}
    for module in _PUBLIC:
        loaded: Any = sys.modules.get(module)
        for name in getattr(loaded, "__all__", ()):
            with suppress(AttributeError):
                names.setdefault(id(getattr(loaded, name)), (module, name))

    class Sender(base):
        def reducer_override(self, obj: Any) -> Any:
            found = _by_name(obj, names) or _by_place(obj, world)
            return found if found is not None else super().reducer_override(obj)

    into = io.BytesIO()
    Sender(into).dump((program, args))
    return into.getvalue()


def _by_name(obj: Any, names: Mapping[int, tuple[str, str]]) -> Any:
    """What is ours is there as well: types by what they are made of, the rest by its name."""
    if id(obj) in names:
        return _named, names[id(obj)]
    return vars(obj).get("made_by") if isinstance(obj, type) else None


def _by_place(obj: Any, world: Any) -> Any:
    """Worlds, windows and parts of windows are those of the actor."""
    if obj is world:
        return _world, ()
    if type(obj).__name__ == "SymmetricWindow" and getattr(obj, "world", None) is world:
        return _window, (world.windows.index(obj),)
    if not isinstance(obj, np.ndarray) or obj.dtype.hasobject:
        return None
    low = int(np.lib.array_utils.byte_bounds(obj)[0])
    for number, each in enumerate(world.windows):
        for rank, array in enumerate(each.arrays):
            first, last = np.lib.array_utils.byte_bounds(array)
            if first <= low < last:
                at = Spot(number, rank, low - int(first))
                return _part, (at, obj.shape, obj.strides, obj.dtype.str)
    return _frozen, (pickle.dumps(obj, protocol=5),)


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


class RayLine:
    """The way of a rank to the hub."""

    def __init__(self, ray: Any, hub: Any, rank: int) -> None:
        self._ray, self._hub, self._rank = ray, hub, rank

    def ask(self, what: Ask, entries: Sequence[Entry]) -> News:
        stored = [self._stored(each) for each in entries]
        news: News = self._ray.get(self._hub.ask.remote(self._rank, str(what), stored))
        return News(fetched(self._ray, news.entries, self._rank), news.is_hopeless)

    def _stored(self, entry: Entry) -> Entry:
        if isinstance(entry, Changed) and entry.data.nbytes > _SMALL:
            return entry._replace(data=self._ray.put(entry.data))
        return entry


def fetched(ray: Any, entries: Sequence[Entry], but: int | None = None) -> list[Entry]:
    """Entries with their bytes, except those of one rank, which has them."""
    changed = [e for e in entries if isinstance(e, Changed) and e.owner != but]
    references = [e.data for e in changed if isinstance(e.data, ray.ObjectRef)]
    values = iter(ray.get(references))
    return [
        e._replace(data=next(values))
        if isinstance(e, Changed) and e.owner != but and isinstance(e.data, ray.ObjectRef)
        else e
        for e in entries
    ]


class RankActor:
    """One rank: its machine stays from one run to the next."""

    def __init__(self, path: list[str], kind: Kind, number: int) -> None:
        sys.path += [each for each in path if each not in sys.path]
        self._ranks = RanksApart(kind.size, number)
        _here[:] = [kind.make(kind, self._ranks)]

    def ready(self) -> None:
        """It has begun."""

    def run(self, hub: Any, program: bytes, windows: Sequence[tuple[Any, Sequence[Any]]]) -> Told:
        """Run a program on windows that hold this."""
        ray, world, ranks = import_module("ray"), _here[0], self._ranks
        contents = [ray.get(list(each)) for _, each in windows]
        for (kind, _), arrays in list(zip(windows, contents, strict=True))[len(world.windows) :]:
            world._add(tuple(np.array(each) for each in arrays), kind)
        do, args = pickle.loads(program)
        value, error = None, None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PtoWarning)
            with ranks.on(RayLine(ray, hub, ranks.number), contents):
                try:
                    value = world._on(ranks.number, do, args)
                except (Exception, SystemExit) as raised:
                    error = sendable(raised)
        told = [each.message.diagnostic for each in caught if isinstance(each.message, PtoWarning)]
        return Told(ranks.items, value, error, ranks.was_hopeless, told)


class RankActors:
    """All ranks of a world, and their hub."""

    def __init__(self, kind: Kind, executor: Executor) -> None:
        self._kind, self._executor = kind, executor
        self._ray = ray = connected(executor.address)
        processors = float(ray.cluster_resources().get("CPU", 1))
        share = min(1.0, int(1000 * processors / kind.size) / 1000)
        how = {"max_restarts": 0, "scheduling_strategy": "SPREAD"}
        rank = ray.remote(num_cpus=share, **how)(RankActor)
        self._hub = ray.remote(num_cpus=0)(HubActor).remote()
        self._actors = [rank.remote(sys.path, kind, n) for n in range(kind.size)]
        self._wait([each.ready.remote() for each in self._actors], _PATIENCE, "begin")

    def run(self, world: Any, program: Any, args: tuple[Any, ...], seed: int | None) -> list[Any]:
        """Run a program on every rank, and judge what they did."""
        ray, windows = self._ray, [each.arrays for each in world.windows]
        judge = Judge(self._kind.target, windows)
        put = [(w.dtype, [ray.put(array) for array in w.arrays]) for w in world.windows]
        ray.get(self._hub.begin.remote(self._kind.size))
        blob = ray.put(sent(world, program, args))
        calls = [each.run.remote(self._hub, blob, put) for each in self._actors]
        told: list[Told] = self._wait(calls, self._executor.seconds, "end")
        write_all(fetched(ray, ray.get(self._hub.entries.remote())), windows)
        for each in {each: None for rank in told for each in rank.warnings}:
            tell(each)
        try:
            return judge.run(told, seed)
        except PtoError as error:
            error.diagnostics = advised(error.diagnostics)
            raise
        finally:
            for each in judge.warnings:
                tell(each)

    def _wait(self, calls: list[Any], seconds: float | None, what: str) -> list[Any]:
        """What all of them give back; where one is lost the others would wait for it forever."""
        until = None if seconds is None else time.monotonic() + seconds
        left, ray = list(calls), self._ray
        try:
            while left:
                rest = None if until is None else max(0.0, until - time.monotonic())
                done, left = ray.wait(left, timeout=rest)
                if not done:
                    raise fail(
                        "cluster",
                        f"{len(left)} of {len(calls)} ranks did not {what} within {seconds:g} s",
                        fix="ray status says what the cluster has room for",
                    )
                ray.get(done)
        except ray.exceptions.RayActorError as error:
            self.close()
            raise fail(
                "cluster",
                "a rank was lost with its machine, or ended its process",
                got=[("reason", str(error).partition("\n")[0])],
                fix="run it again: the windows hold what they did before",
            ) from None
        except BaseException:
            self.close()
            raise
        return ray.get(calls)

    @property
    def are_there(self) -> bool:
        """Whether they were not ended."""
        return bool(self._actors)

    def close(self) -> None:
        """End all of them, unless they have ended with the connection: Ray would start anew."""
        actors, self._actors = (*self._actors, self._hub), []
        for each in actors if self._ray.is_initialized() else ():
            with suppress(Exception):
                self._ray.kill(each)
