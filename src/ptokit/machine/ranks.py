"""Ranks: simulated devices that live in one process and take turns.

Each rank has a machine of its own; what they share are symmetric windows, arrays of one shape per
rank. `run` gives every rank a coroutine: a wait for a signal lets the others go on, and when none
can, each of them says what it waits for. Without `run` one thread drives the ranks in turn, and a
wait whose signal has not come is an error at once.
"""

from __future__ import annotations

import contextvars
import random
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ptokit.base.diagnostics import PtoError, usage_error
from ptokit.base.layout import Array
from ptokit.base.namedtuple import NamedTuple
from ptokit.isa.effects import Word
from ptokit.machine.faults import WouldBlock
from ptokit.machine.flags import Clock
from ptokit.machine.history import History
from ptokit.machine.objects import GlobalObject

Condition = Callable[[], bool]
_POLLS = 2_000  # fruitless tests of every rank that can run at all, which count as a hang


class Rank(NamedTuple):
    """One device among others."""

    number: int
    ranks: Ranks


_here: ContextVar[Rank | None] = ContextVar("ptokit_rank", default=None)


def here() -> Rank | None:
    """The rank whose program is running; None outside any world."""
    return _here.get()


@contextmanager
def being(rank: Rank) -> Generator[None, None, None]:
    """Put a rank in force."""
    token = _here.set(rank)
    try:
        yield
    finally:
        _here.reset(token)


def wait_for_others(ready: Condition) -> bool:
    """Let other ranks run until the condition holds; False when none of them can bring it about."""
    rank = here()
    return rank is not None and rank.ranks.wait(ready)


def others_run() -> bool:
    """Whether there are ranks that take turns with this one."""
    rank = here()
    return rank is not None and rank.ranks.is_running


def poll() -> bool:
    """Let other ranks go on after a test that failed; False when testing again is hopeless."""
    rank = here()
    return rank is None or rank.ranks.poll()


def pause() -> None:
    """A moment at which a random schedule may turn to another rank."""
    rank = here()
    if rank is not None:
        rank.ranks.pause()


def coroutine(program: Callable[[], Any], failed: Callable[[BaseException], None]) -> Any:
    """A program that runs when it is switched to; `failed` is told what it raises.

    It sees the context in which it was made.
    """
    import greenlet  # only launches and worlds need it

    def body() -> None:
        try:
            program()
        except greenlet.GreenletExit:
            pass  # another one has failed; this one is taken down
        except BaseException as error:
            failed(error)

    made: Any = greenlet.greenlet(body)
    made.gr_context = contextvars.copy_context()
    return made


class _Stream:
    """A rank with its running program."""

    def __init__(self, program: Callable[[], Any]) -> None:
        self.coroutine = coroutine(lambda: self._run(program), self._fail)
        self.until: Condition | None = None
        self.stuck = False  # told that what it waits for will never come
        self.polls = 0
        self.value: Any = None
        self.error: BaseException | None = None

    def _run(self, program: Callable[[], Any]) -> None:
        self.value = program()

    def _fail(self, error: BaseException) -> None:
        self.error = error

    @property
    def ready(self) -> bool:
        return self.until is None or self.until()


class Ranks:
    """All ranks of a world: their windows, and whose turn it is."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.members = tuple(Rank(number, self) for number in range(size))
        self.windows: list[tuple[Array, ...]] = []  # per allocation, one array per rank
        self.history = History()
        self._gates: dict[Any, Any] = {}
        self._streams: list[_Stream] = []
        self._turn: _Stream | None = None
        self._hub: Any = None
        self._random: random.Random | None = None

    @property
    def gates(self) -> dict[Any, Any]:
        """Members that rang the collective unit."""
        return self._gates

    # ---- addresses -------------------------------------------------------------------------------

    def add_window(self, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        """One array per rank, which the others reach; gives them back as programs have them."""
        self.windows.append(arrays)
        self.history.add_window(arrays)
        return arrays

    def locate(self, tensor: GlobalObject) -> tuple[tuple[Array, ...], int, int] | None:
        """The window a view lies in, the rank it belongs to, and its byte offset there."""
        at = tensor.data()
        address = at.buffer.base + at.offset
        for window in self.windows:
            for number, array in enumerate(window):
                low, high = np.lib.array_utils.byte_bounds(array)
                if low <= address < high:
                    return window, number, address - low
        return None

    # ---- what ranks in processes of their own do otherwise (machine/apart.py) --------------------

    is_apart = False  # whether each rank has a process, and windows that are copies

    def executing(self, executor: Any) -> Any:
        """The executor of one of its machines."""
        return executor

    def refresh(self) -> None:
        """Before somebody looks at a signal: get to know what others have written."""

    def notified(
        self, word: GlobalObject, token: Word, clock: Clock | None, agent: int, time: int
    ) -> bool:
        """Whether a write of a word was carried to all ranks; else it is to be done here."""
        return False

    def seen(self, addresses: Sequence[int], token: Word, known: Clock, agent: int) -> Clock:
        """Words were seen to satisfy a comparison: what that proves beside what is known here."""
        return Clock()

    # ---- turns -----------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether the ranks have their turns; else one thread drives them one after another."""
        return bool(self._streams)

    def run(self, programs: Sequence[Callable[[], Any]], seed: int | None = None) -> list[Any]:
        """Run one program per rank to the end and return what they return.

        Without a seed a rank runs until it must wait, then the next one goes on; with a seed the
        choice is random, and the same for the same seed.
        """
        import greenlet

        if self._streams:
            raise usage_error("world-running", "the ranks of this world are running")
        self._hub = greenlet.getcurrent()
        self._random = None if seed is None else random.Random(seed)

        self._streams = streams = [_Stream(program) for program in programs]
        try:
            self._loop()
        finally:
            for stream in streams:
                if not stream.coroutine.dead:
                    stream.coroutine.throw()
            self._streams, self._turn = [], None
            self.history.settle()
        return [stream.value for stream in streams]

    def _loop(self) -> None:
        last = -1
        while live := [s for s in self._streams if not s.coroutine.dead]:
            ready = [s for s in live if s.ready]
            if not ready:
                self._give_up(live)
                return
            if self._random is not None:
                chosen = self._random.choice(ready)
            else:  # the next one in the circle
                behind = [s for s in ready if self._streams.index(s) > last]
                chosen = (behind or ready)[0]
            last = self._streams.index(chosen)
            chosen.stuck = all(s.polls > _POLLS for s in ready)
            self._resume(chosen)
            if chosen.error is not None:
                chosen.error.add_note(f"on rank {last}")
                raise chosen.error

    def _resume(self, stream: _Stream) -> None:
        self._turn = stream
        stream.coroutine.switch()
        self._turn = None

    def _give_up(self, live: list[_Stream]) -> None:
        """Nobody can go on: let each rank say what it waits for."""
        errors: list[PtoError] = []
        for stream in live:
            stream.stuck = True
            self._resume(stream)
            if isinstance(stream.error, PtoError):
                errors.append(stream.error)
            elif stream.error is not None:
                raise stream.error
        raise WouldBlock([d for error in errors for d in error.diagnostics])

    def wait(self, ready: Condition) -> bool:
        """Give the turn away until the condition holds; False: it never will."""
        stream = self._turn
        if stream is not None:
            stream.polls = 0
        while not ready():
            if stream is None or stream.stuck:
                return False
            stream.until = ready
            self._hub.switch()
            stream.until = None
        return True

    def poll(self) -> bool:
        """Give the turn away once."""
        stream = self._turn
        if stream is None:
            return True
        stream.polls += 1
        self._hub.switch()
        return not stream.stuck

    def pause(self) -> None:
        """In a random schedule, give the turn away now and then."""
        stream = self._turn
        if stream is None:
            return
        stream.polls = 0
        if self._random is not None and self._random.random() < 0.5:
            self._hub.switch()
