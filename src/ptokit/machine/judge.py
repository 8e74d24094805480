"""What ranks in processes of their own have done, judged as if they had taken turns in one.

Each rank has noted its accesses to windows, its signals and its waits (machine/apart.py). Here they
come together: the notes of each rank are a program, and the ranks of one process run these programs
with the turns, words, clocks and log of races that they have for any other. So what is found, and
in which order, does not depend on who was faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, ProgramError, PtoError, fail
from ptokit.base.layout import Array, raw_bytes
from ptokit.isa import signals
from ptokit.isa.targets import Target
from ptokit.machine import apart
from ptokit.machine.clocks import CORES, PIPES, Clocks
from ptokit.machine.core import Core, Engine
from ptokit.machine.events import Event
from ptokit.machine.faults import WouldBlock
from ptokit.machine.findings import Findings
from ptokit.machine.flags import Clock
from ptokit.machine.hazards import HazardLog, Noted
from ptokit.machine.ranks import Ranks
from ptokit.machine.regions import Region, RegionIndex, Use, behind
from ptokit.machine.words import Written, write_word


@dataclass(frozen=True)
class Told:
    """What a rank says when its program is over."""

    items: Sequence[apart.Item]
    value: Any = None
    error: BaseException | None = None
    is_hopeless: bool = False  # it waited, and nobody could go on
    warnings: Sequence[Diagnostic] = ()  # of its own
    changed: Sequence[Any] = ()  # beside windows: it is lost


class _Call:
    """An instruction at its line: what findings want to know of it."""

    accesses = ()

    def __init__(self, made: apart.Made) -> None:
        self.insn: Any = SimpleNamespace(name=made.insn, moves_entries=made.moves_entries)
        self.pipe, self.site = made.pipe, made.site


class _Noted(Event):
    """An access that was noted elsewhere."""

    __slots__ = ("_reached",)

    def __init__(self, item: apart.Touched, made: _Call, uses: tuple[Use, ...]) -> None:
        super().__init__(made.insn, made.pipe, made.site)
        self.call: Any = made
        facts: Any = SimpleNamespace(has_registers=False)
        self.noted = Noted(made, made.site, made.pipe, (), False, {}, (), facts, uses)
        self.agent = item.agent
        self._reached = [_access(used, use) for used, use in zip(item.uses, uses, strict=True)]

    @property
    def reached(self) -> Sequence[Any]:
        return self._reached


def _access(used: apart.Used, use: Use) -> Any:
    pattern, behind_first = used.pattern or (None, 0)
    return SimpleNamespace(
        operand=used.operand,
        writes=used.writes,
        reads=not used.writes,
        pattern=pattern,
        memory=SimpleNamespace(base=0),
        offset=use.region.start + behind_first,
    )


class _Log(HazardLog):
    """The log of a rank, for what it does to windows; inside of the rank it has judged itself."""

    def __init__(self, target: Target, judge: Judge, findings: Findings) -> None:
        super().__init__(target, judge.clocks, findings)
        self._forgiven = judge.forgiven

    def _across(self, use: Use, peer: Region, earlier: Event, event: Event, wrote: bool) -> bool:
        if _rank_of(earlier.agent) == _rank_of(event.agent):
            return False
        found = super()._across(use, peer, earlier, event, wrote)
        if found:
            self._forgiven.append((event.agent, event.time, earlier.agent, earlier.time))
        return found

    def _inside(self, use: Use, peer: Region, earlier: Event, event: Event, wrote: bool) -> None:
        """One rank."""


def _rank_of(agent: int) -> int:
    return agent // (CORES * PIPES)


class Judge:
    """Brings together what all ranks have noted in one run."""

    def __init__(self, target: Target, windows: Sequence[Sequence[Array]]) -> None:
        self._target = target
        self._memory = [[raw_bytes(each).copy() for each in arrays] for arrays in windows]
        self._first = [
            [int(np.lib.array_utils.byte_bounds(each)[0]) for each in arrays] for arrays in windows
        ]
        self.clocks = Clocks()
        # What was reported counts as ordered: who, when, behind whom, when.
        self.forgiven: list[tuple[int, int, int, int]] = []
        self.warnings: list[Diagnostic] = []
        self._ranks = Ranks(0)
        self._index = RegionIndex("GM")
        self._words: dict[int, Written] = {}
        self._cores: dict[int, Core] = {}
        self._learnt: dict[tuple[int, int], Clock] = {}
        self._last: dict[int, Clock] = {}  # that an agent which stands for waits has learnt

    def run(self, told: Sequence[Told], seed: int | None) -> list[Any]:
        """What the programs return; raises what is wrong, as the ranks of one process would."""
        self._ranks = Ranks(len(told))
        return self._ranks.run([partial(self._follow, each) for each in told], seed)

    # ---- one rank -------------------------------------------------------------------------------

    def _follow(self, told: Told) -> Any:
        logs: dict[int, _Log] = {}
        launches: list[int] = []
        made: dict[int, _Call] = {}
        for place, item in enumerate(told.items):
            match item:
                case apart.Made():
                    made[item.number] = _Call(item)
                case apart.Scope():
                    logs[item.number] = self._log(item)
                    if item.is_launch:
                        launches.append(item.number)
                case apart.Known():
                    self._cores[item.number] = self._core(item)
                case apart.Touched():
                    self._touch(item, made[item.made], logs[item.scope])
                case apart.Ended():
                    is_last = place + 1 == len(told.items)
                    self._raise([logs[n] for n in launches], told.error if is_last else None)
                    launches.clear()
                case apart.Paused():
                    self._ranks.pause()
                case apart.Tested():
                    self._ranks.poll()
                case _:
                    self._signal(item)
        if told.is_hopeless:
            self._ranks.wait(lambda: False)
        self._raise(logs.values(), told.error)
        if told.error is not None:
            raise told.error
        return told.value

    def _raise(self, logs: Any, error: BaseException | None) -> None:
        """Raise what was found between ranks, with the error that the rank has met by itself."""
        found = [each for log in logs for each in log.findings.diagnostics]
        wrong = [each for each in found if each.severity == "error"]
        self.warnings += [
            each for each in found if each.severity != "error" and each not in self.warnings
        ]
        if wrong and isinstance(error, PtoError):
            raise type(error)([*wrong, *error.diagnostics])
        if wrong:
            raise ProgramError(wrong)

    def _log(self, scope: apart.Scope) -> _Log:
        findings = Findings(scope.target, scope.policy, scope.event_ids)
        findings.schedule, findings.cores = scope.schedule, self._cores
        return _Log(self._target, self, findings)

    def _core(self, known: apart.Known) -> Core:
        core = Core(self._target, known.kind, known.block, known.subblock)
        core.rank = known.rank
        core.number = known.number if known.owner is None else known.owner
        if known.owner is None:
            return core
        return Engine(core, known.title, known.number, known.is_silent)

    def _touch(self, item: apart.Touched, made: _Call, log: _Log) -> None:
        uses: list[Use] = []
        for each in item.uses:
            place = behind(each.place, self._address(each.at))
            region = self._index.get(place) or self._index.add(place, place)
            assert region is not None
            uses.append(Use(each.operand, each.writes, region, None, each.atomic, each.is_over))
        self.clocks.known[item.agent] = self._all(item.known, item.agent)
        self.clocks.count[item.agent] = item.time - 1
        log.see(_Noted(item, made, tuple(uses)))

    # ---- signals --------------------------------------------------------------------------------

    def _signal(self, item: Any) -> None:
        if isinstance(item, apart.Stored):
            self._bytes(item.at, len(item.data))[...] = np.frombuffer(item.data, np.uint8)
        elif isinstance(item, apart.Told):
            known = None if item.known is None else self._all(item.known, item.agent)
            address, word = self._address(item.at), self._word(item.at)
            write_word(self._words, address, word, item.token, known, item.agent, item.time)
        else:
            self._learn(item)

    def _learn(self, item: apart.Learnt) -> None:
        words = [self._word(at) for at in item.at]

        def holds() -> bool:
            return all(bool(signals.holds(word, item.token).all()) for word in words)

        if not self._ranks.wait(holds):
            rank = _rank_of(item.agent)
            raise fail(
                "would-block",
                f"what rank {rank} has seen depends on which rank was faster: in the order of one "
                f"process a signal {signals.wanted(item.token)} would never come",
                fix="let a signal only grow, or wait for it to be taken before it is set anew",
                kind=WouldBlock,
            )
        agent, time = item.seen
        known, clock = self._all(item.known, item.agent), self._last.get(agent, Clock()).copy()
        for at in item.at:
            written = self._words.get(self._address(at))
            if written is not None:
                clock.join(written.seen_by(known, item.agent, item.token))
        self._last[agent] = self._learnt[agent, time] = clock

    def _all(self, known: Mapping[int, int], agent: int) -> Clock:
        """What an agent knows: of its own rank as it said, of others by what it has seen."""
        clock = Clock({a: t for a, t in known.items() if a >= 0})
        for each in known.items():
            if each[0] < 0 and each in self._learnt:
                clock.join(self._learnt[each])
        for by, since, other, time in self.forgiven:
            if by == agent or clock.knows(by) >= since:
                clock.join(Clock({other: time}))
        return clock

    # ---- memory ---------------------------------------------------------------------------------

    def _address(self, at: apart.Spot) -> int:
        return self._first[at.window][at.rank] + at.offset

    def _bytes(self, at: apart.Spot, count: int) -> Array:
        return self._memory[at.window][at.rank][at.offset : at.offset + count]

    def _word(self, at: apart.Spot) -> Array:
        return self._bytes(at, 4).view(np.int32)
