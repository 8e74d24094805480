"""Happens-before: what each pipe of each core knows to be complete.

An agent is one pipe of one core. Its clock says, for every other agent, how many instructions are
known to be complete before the next one of its own starts. A signal carries the clock of the pipe
it leaves, with that pipe's own work complete; a wait joins it in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ptokit.isa.spec import Pipe
from ptokit.machine.core import Core
from ptokit.machine.flags import Clock

PIPES = 8  # numbers of the pipes, PIPE_ALL among them
CORES = 1 << 20  # numbers of the cores of one device; the upper half is for the engines beside them


def agent_of(core: Core, pipe: Pipe) -> int:
    """The number of a pipe among all pipes of a launch."""
    return core.number * PIPES + pipe


class Clocks:
    """The clocks of all agents of a launch, or of all launches of a world, which share them."""

    def __init__(self, shared: Clocks | None = None) -> None:
        self.count: defaultdict[int, int] = defaultdict(int)  # instructions started so far
        self.known: defaultdict[int, Clock] = defaultdict(Clock)  # what an agent comes after
        if shared is not None:
            self.count, self.known = shared.count, shared.known

    def of(self, agent: int) -> Clock:
        """What the next instruction of an agent comes after."""
        return self.known[agent]

    def release(self, agent: int) -> Clock:
        """What a signal behind the work of an agent proves."""
        known = self.known[agent]
        clock = Clock(known, known.base)
        clock[agent] = self.count[agent]
        return clock

    def acquire(self, agents: Iterable[int], clock: Clock | None) -> None:
        """Let agents go on after what a signal proves."""
        if clock is None:
            return
        for agent in agents:
            self.known[agent].join(clock)

    def take(self, agent: int, clock: Clock) -> None:
        """Let one agent go on after what a signal proves."""
        self.known[agent].join(clock)

    def hand(self, giver: int, taker: int) -> None:
        """Let one agent go on after the work of another, and all that came before it."""
        known = self.known[taker]
        known.join(self.known[giver])
        known[giver] = self.count[giver]

    def learn(self, core: int, clock: Clock) -> None:
        """Let all agents of a core go on after what a signal proves."""
        before, after = Clock(), None
        for agent in range(core * PIPES, (core + 1) * PIPES):
            known = self.known[agent]
            # Pipes that are not used know the same; to copy is quicker than to learn.
            if after is not None and known == before and known.base is before.base:
                self.known[agent] = Clock(after, after.base)
            else:
                before = Clock(known, known.base)
                known.join(clock)
                after = known

    def barrier(self, agent: int) -> None:
        """Complete the earlier work of an agent before its later work."""
        self.known[agent][agent] = self.count[agent]

    def barrier_all(self, core: int) -> Clock:
        """Complete all work of a core before all its later work; return what is known then."""
        agents = range(core * PIPES, (core + 1) * PIPES)
        everything = last = Clock()
        for agent in agents:
            known = self.known[agent]
            if known != last or known.base is not last.base:
                everything.join(known)
                last = known
        for agent in agents:
            if agent in self.count:
                everything[agent] = self.count[agent]
        for agent in agents:
            self.known[agent] = Clock(everything, everything.base)
        return everything

    @property
    def is_by_pipe(self) -> bool:
        """Whether each pipe of a core has a clock of its own."""
        return True


class CoreClocks(Clocks):
    """The clocks of cores whose pipes the compiler orders: each core does one thing at a time.

    Only what different cores do to global memory can be out of order then.
    """

    @property
    def is_by_pipe(self) -> bool:
        return False

    def release(self, agent: int) -> Clock:
        return super().release(agent - agent % PIPES)

    def acquire(self, agents: Iterable[int], clock: Clock | None) -> None:
        super().acquire({agent - agent % PIPES for agent in agents}, clock)

    def take(self, agent: int, clock: Clock) -> None:
        super().take(agent - agent % PIPES, clock)

    def hand(self, giver: int, taker: int) -> None:
        super().hand(giver - giver % PIPES, taker - taker % PIPES)

    def learn(self, core: int, clock: Clock) -> None:
        super().take(core * PIPES, clock)

    def barrier(self, agent: int) -> None:
        """All that is done is complete."""

    def barrier_all(self, core: int) -> Clock:
        return self.release(core * PIPES)
