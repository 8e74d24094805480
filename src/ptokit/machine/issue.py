"""What cores issue, in the order of their programs, told as it is issued.

An `Event` says what an operation did once it is done; a model of time wants to know what each pipe
is given, and between which of it signals and waits stand. `IssueSync`, and the machine that a
launch with a listener has, tell of every part on its way to the queues, and then do what they
always do. A launch that nobody listens to has neither.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from ptokit.isa import effects as fx
from ptokit.isa.effects import Pipe
from ptokit.machine.core import Core, Engine
from ptokit.machine.flags import Clock, Latch, Semaphore
from ptokit.machine.launch_sync import LaunchSync, Meeting
from ptokit.machine.queues import Why
from ptokit.machine.sync import Given, Place, Row, flag_wait


class Listener(Protocol):
    """Told of what the scalar unit of each core hands to its pipes."""

    def work(self, core: Core, call: Any, operands: Sequence[Any], site: Place) -> None:
        """An instruction goes to its pipe."""
        ...

    def give(self, core: Core, pipe: Pipe, semaphores: Sequence[Semaphore], site: Place) -> None:
        """Signals, given when the pipe has done what stands before."""
        ...

    def take(
        self,
        core: Core,
        pipe: Pipe,
        semaphores: Sequence[Semaphore],
        why: Callable[[], Why],
        site: Place,
    ) -> None:
        """A wait of the pipe for all of these signals; of the scalar unit on `Pipe.S`."""
        ...

    def barrier(self, core: Core, pipe: Pipe, site: Place) -> None:
        """What the pipe was given is complete before what comes; `Pipe.ALL`: the scalar waits."""
        ...

    def drain(self, core: Core, pipes: frozenset[Pipe], site: Place) -> None:
        """The scalar unit waits until pipes have done their work."""
        ...

    def arrive(self, core: Core, meeting: Meeting, site: Place) -> None:
        """The scalar unit enters a meeting of cores; its latch is taken when all have come."""
        ...

    def end_block(self, block: int) -> None:
        """All cores of a block have ended."""
        ...


class Word(Latch):
    """A notification through global memory: whoever looks behind it has seen it."""

    __slots__ = ()


class IssueSync(LaunchSync):
    """Signals and waits that a listener is told of."""

    def __init__(self, scheduler: Any, listener: Listener) -> None:
        super().__init__(scheduler)
        self.listener = listener
        self._words: dict[int, Word] = {}  # the last notification, by address

    def signal(
        self, pipe: Pipe, semaphores: Sequence[Semaphore], site: Place, token: Any = None
    ) -> None:
        if type(token) is not fx.Flag:
            self.listener.give(self.core, pipe, semaphores, site)
        super().signal(pipe, semaphores, site, token)

    def wait(
        self,
        pipe: Pipe,
        semaphores: Sequence[Semaphore],
        why: Callable[[], Why],
        site: Place,
        *,
        early: bool = False,
        token: Any = None,
    ) -> None:
        if type(token) is not fx.Flag:
            self.listener.take(self.core, pipe, semaphores, why, site)
        super().wait(pipe, semaphores, why, site, early=early, token=token)

    @contextmanager
    def handed_over(
        self, call: Any, pipe: Pipe, site: Place, operands: Sequence[Any]
    ) -> Generator[None, None, None]:
        with super().handed_over(call, pipe, site, operands):
            if call.phase:  # told of between its wait and its signal
                self.listener.work(self.core, call, operands, site)
            yield

    # Flags are two thirds of a program: they are told of here, and keep their short way.

    def _raise_flag(self, pipe: Pipe, token: fx.Flag, site: Place, given: Given) -> None:
        self.listener.give(self.core, pipe, (self._flag(token, site),), site)
        super()._raise_flag(pipe, token, site, given)

    def _take_flag(self, pipe: Pipe, token: fx.Flag, site: Place, given: Given) -> None:
        flag = self._flag(token, site)
        self.listener.take(self.core, pipe, (flag,), lambda: flag_wait(token), site)
        super()._take_flag(pipe, token, site, given)

    def _pass_flag(self, pipe: Pipe, steps: Row, site: Place, given: Given) -> None:
        self._in_turn(steps, given)

    def barrier(self, pipe: Pipe, site: Place) -> None:
        self.listener.barrier(self.core, pipe, site)
        super().barrier(pipe, site)

    def perform(self, pipe: Pipe, call: Any, operands: Sequence[Any], site: Place) -> None:
        self.listener.work(self.core, call, operands, site)
        super().perform(pipe, call, operands, site)

    def post(
        self,
        engine: Engine,
        call: Any,
        operands: Sequence[Any],
        site: Place,
        behind: Sequence[Clock] = (),
    ) -> Latch:
        over = super().post(engine, call, operands, site, behind)
        self.listener.work(engine, call, operands, site)
        self.listener.give(engine, Pipe.ALL, (over,), site)
        return over

    def _notify(self, pipe: Pipe, token: fx.Word, site: Place, given: Given) -> None:
        at = given[token.operand].data()
        word = self._words[at.buffer.base + at.offset] = Word("a word of global memory", 1)
        self.listener.give(self.core, Pipe.S, (word,), site)
        super()._notify(pipe, token, site, given)

    def _look(self, pipe: Pipe, token: fx.Word, site: Place, given: Given) -> None:
        super()._look(pipe, token, site, given)
        tensor = given[token.operand]
        at = tensor.data()
        first = at.buffer.base + at.offset
        last = (
            first
            + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride, strict=True))
            * at.dtype.itemsize
        )
        seen = [word for place, word in self._words.items() if first <= place <= last]
        insn = given.call.insn
        self.listener.take(self.core, Pipe.S, seen, lambda: Why(insn.name), site)

    def _arrive(self, pipe: Pipe, token: fx.Meeting, site: Place, given: Given) -> None:
        super()._arrive(pipe, token, site, given)
        meeting = self._inside.get(self.core.number)
        if meeting is not None:
            self.listener.arrive(self.core, meeting, site)
