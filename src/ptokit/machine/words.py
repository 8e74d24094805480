"""Signals between devices: what a core does to words in global memory, and what it learns there."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.dtypes import i32
from ptokit.base.layout import Array
from ptokit.base.location import Location, Site
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.tensors import GlobalSpec
from ptokit.isa import signals
from ptokit.isa.effects import Word
from ptokit.isa.services import Refused
from ptokit.isa.spec import Insn, Pipe, View
from ptokit.machine.access import Access
from ptokit.machine.calls import bind_global, global_pattern
from ptokit.machine.clocks import agent_of
from ptokit.machine.faults import hopeless, refusal
from ptokit.machine.flags import Clock
from ptokit.machine.objects import GlobalObject
from ptokit.machine.ranks import here, pause

if TYPE_CHECKING:
    from ptokit.machine.sync import Sync

Place = Site | Location


_KEPT = 64  # writes of one word; whoever waits for older ones has seen later ones since


class Write(NamedTuple):
    """One write of a word: what it held behind it, and what that proves to whoever sees it."""

    value: int
    clock: Clock
    agent: int
    time: int  # among the operations of the agent


class Written:
    """Who wrote a word: the writes in their order, and the last one as an operation."""

    def __init__(self, value: int) -> None:
        self.writes = deque([Write(value, Clock(), -1, 0)], _KEPT)  # what was there at first
        self.event: Any = None
        self.by: Words | None = None

    def seen_by(self, known: Clock, agent: int, token: Word) -> Clock:
        """What somebody knows who has seen that the word satisfies a comparison.

        That is what the first write proves with which it did so, behind those it knew already: a
        schedule may exist in which nothing further has happened.
        """
        writes = list(self.writes)
        first = 0
        for index, each in enumerate(writes):
            if each.agent == agent or known.knows(each.agent) >= each.time:
                first = index
        values = np.array([each.value for each in writes[first:]], np.int32)
        found = np.flatnonzero(signals.holds(values, token))
        return writes[first + int(found[0])].clock if found.size else writes[-1].clock


def write_word(
    table: dict[int, Written],
    address: int,
    word: Array,
    token: Word,
    clock: Clock | None,
    agent: int,
    time: int,
) -> None:
    """Write a word; where somebody looks for races, with what that proves to whoever sees it."""
    before = int(word[0])
    signals.notify(word, token)
    written = table.setdefault(address, Written(before))
    last = written.writes[-1]
    if last.value != before:  # somebody else has set it back, which everybody has seen
        written.writes.append(Write(before, last.clock, -1, 0))
    if clock is not None:
        clock.join(written.writes[-1].clock)
        written.writes.append(Write(int(word[0]), clock, agent, time))


class Words:
    """The signals that the cores of one machine write and look at."""

    def __init__(self, sync: Sync) -> None:
        self._sync = sync
        self._own: dict[int, Written] = {}

    @property
    def _written(self) -> dict[int, Written]:
        """Who wrote which word, by address; all ranks of a world look at one table."""
        rank = here()
        return self._own if rank is None else rank.ranks.history.words

    def write(self, token: Word, site: Place, tensor: GlobalObject, call: Any) -> None:
        """Notify: the scalar unit writes at once, whatever its pipes still have to do."""
        at, spec = tensor.data(), GlobalSpec.of(i32, (1,) * 5, (1,) * 5)
        word = GlobalObject(spec, at, spec.shape, spec.stride)
        memory = self._open(token, word, call, site).array().reshape(-1)
        event, clocks = self._sync.machine.operation, self._sync.clocks
        if event is not None:
            event.signals.append(token)
        clock, agent, time = None, agent_of(self._sync.core, Pipe.S), 0
        if clocks is not None:
            time = clocks.count[agent] = clocks.count[agent] + 1
            clock = clocks.release(agent)
        table, address, rank = self._written, at.buffer.base + at.offset, here()
        if rank is None or not rank.ranks.notified(word, token, clock, agent, time):
            write_word(table, address, memory, token, clock, agent, time)
        written = table.setdefault(address, Written(int(memory[0])))
        written.event, written.by = event, self
        pause()

    def wait(self, token: Word, site: Place, tensor: GlobalObject, call: Any) -> None:
        """Hold the scalar unit until every word satisfies the comparison."""
        words = self._look(token, tensor, call, site)
        what = f"{_short(call.insn)}{_on_rank()} for a signal {signals.wanted(token)}"

        def ready() -> bool:
            return bool(signals.holds(words, token).all())

        self._sync.until(ready, what, site, lambda: signals.unsatisfied(words, token))
        self._learn(token, tensor, words)

    def test(self, token: Word, site: Place, tensor: GlobalObject, call: Any) -> bool:
        """Whether every word satisfies the comparison now; if not, let other devices go on."""
        words = self._look(token, tensor, call, site)
        if signals.holds(words, token).all():
            self._sync.in_vain = 0
            self._learn(token, tensor, words)
            return True
        what = f"a loop around {_short(call.insn)}{_on_rank()}"
        if not self._sync.look_again(what, site):
            raise hopeless(what, "signal it", "notify the signal, or end the loop", site)
        return False

    def _look(self, token: Word, tensor: GlobalObject, call: Any, site: Place) -> Array:
        """The words themselves, which must lie on this device."""
        words, rank = self._open(token, tensor, call, site).array(), here()
        if rank is not None:
            rank.ranks.refresh()
        found = rank.ranks.locate(tensor) if rank is not None and words.size else None
        try:
            signals.check_owner(found[1] if found else None, rank.number if rank else None)
        except Refused as error:
            raise refusal(call.insn, error, site, call.ops.target.name) from None
        return words

    def _open(self, token: Word, tensor: GlobalObject, call: Any, site: Place) -> Access:
        """The words as an access, which the stream of events shows.

        No race is looked for: it is their purpose that devices meet at them.
        """
        insn: Insn = call.insn
        pattern = global_pattern(tensor, View.WHOLE, insn.operand(token.operand))
        access = bind_global(pattern, tensor, insn, site)
        event = self._sync.machine.operation
        if event is not None:
            event.bound = (access,)
        return access

    def _learn(self, token: Word, tensor: GlobalObject, words: Array) -> None:
        """Words were seen: whoever looks knows what those who wrote them last knew."""
        at = tensor.data()
        offsets = np.indices(words.shape).reshape(words.ndim, -1).T @ np.array(words.strides)
        addresses = (offsets + at.buffer.base + at.offset).tolist()
        written = self._written
        found = [written[a] for a in addresses if a in written]
        clocks, clock, journal = self._sync.clocks, Clock(), self._sync.journal
        if clocks is not None and journal is not None:
            agent = agent_of(self._sync.core, Pipe.S)
            for each in found:
                clock.join(each.seen_by(clocks.of(agent), agent, token))
            rank = here()
            if rank is not None:
                clock.join(rank.ranks.seen(addresses, token, clocks.of(agent), agent))
            self._sync.learn(journal.tell(clock, self._sync.core.name))
        event = self._sync.machine.operation
        if event is not None:  # of words written on other devices nobody here knows by whom
            mine = (each.event for each in found if each.by is self)
            givers = dict.fromkeys(mine) or {None: None}
            event.waits += [(token, giver) for giver in givers]


def _short(insn: Insn) -> str:
    return insn.name.rpartition(".")[2]


def _on_rank() -> str:
    rank = here()
    return "" if rank is None else f" on rank {rank.number}"
