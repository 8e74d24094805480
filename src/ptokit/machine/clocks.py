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


def agents_of(core: int) -> range:
    """The numbers of all pipes of a core."""
    return range(core * PIPES, (core + 1) * PIPES)


class Known(dict[int, Clock]):
    """What each agent comes after: a clock above that of its core."""

    def __init__(self) -> None:
        super().__init__()
        self.cores: dict[int, Clock] = {}
        self.all = Clock()  # what everybody comes after

    def __missing__(self, agent: int) -> Clock:
        found = self[agent] = Clock()
        found.core = self.of_core(agent // PIPES)
        return found

    def begun(self, core: int) -> list[Clock]:
        """What those agents of a core come after that have done something."""
        return [self[agent] for agent in agents_of(core) if agent in self]

    def of_core(self, core: int) -> Clock:
        """What all agents of a core come after, which have learnt it together."""
        found = self.cores.get(core)
        if found is None:
            found = self.cores[core] = self.all.copy()
        return found

    def begin_again(self, behind: Clock) -> None:
        """All that is to come comes behind something."""
        self.clear()
        self.cores.clear()
        self.all = behind


class Clocks:
    """The clocks of all agents of a launch, or of all launches of a world, which share them."""

    def __init__(self, shared: Clocks | None = None) -> None:
        self.count: defaultdict[int, int] = defaultdict(int)  # instructions started so far
        self.known = Known()
        if shared is not None:
            self.count, self.known = shared.count, shared.known

    def of(self, agent: int) -> Clock:
        """What the next instruction of an agent comes after."""
        return self.known[agent]

    def release(self, agent: int) -> Clock:
        """What a signal behind the work of an agent proves."""
        clock = self.known[agent].copy()
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
        known, other = self.known[taker], self.known[giver]
        if other.core is not known.core or other.base is not known.base:
            known.join(other)
        else:  # two pipes of a core, nearly always: this is the most frequent of all
            get = known.get
            for agent, time in other.items():
                if time > get(agent, 0):
                    known[agent] = time
        known[giver] = self.count[giver]

    def learn(self, core: int, clock: Clock) -> None:
        """Let all agents of a core go on after what a signal proves."""
        self.known.of_core(core).join(clock)

    def of_core(self, core: int) -> list[Clock]:
        """What all agents of a core come after, in parts: what each has learnt, what all have."""
        return [*self.known.begun(core), self.known.of_core(core)]

    def barrier(self, agent: int) -> None:
        """Complete the earlier work of an agent before its later work."""
        self.known[agent][agent] = self.count[agent]

    def barrier_all(self, core: int) -> None:
        """Complete all work of a core before all its later work."""
        for known in self.known.begun(core):
            known.hand_up()
        all_know, count = self.known.of_core(core), self.count
        for agent in agents_of(core):
            if agent in count:
                all_know[agent] = count[agent]

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

    def barrier(self, agent: int) -> None:
        """All that is done is complete."""

    def barrier_all(self, core: int) -> None:
        """All that is done is complete."""
