"""Signals between devices: what a core does to words in global memory, and what it learns there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import i32
from ptokit.base.layout import Array
from ptokit.base.location import Location, Site
from ptokit.base.tensors import GlobalSpec
from ptokit.isa import signals
from ptokit.isa.effects import Word
from ptokit.isa.services import Refused
from ptokit.isa.spec import Insn, View
from ptokit.machine.access import Access
from ptokit.machine.calls import bind_global, global_pattern
from ptokit.machine.faults import WouldBlock, refusal
from ptokit.machine.flags import Clock, Token
from ptokit.machine.objects import GlobalObject
from ptokit.machine.ranks import here, pause

if TYPE_CHECKING:
    from ptokit.machine.sync import Sync

Place = Site | Location


class Words:
    """The signals that the cores of one machine write and look at."""

    def __init__(self, sync: Sync) -> None:
        self._sync = sync
        # By address: the last write, with all that whoever sees the word knows to be complete.
        self._written: dict[int, Token] = {}

    def write(self, token: Word, site: Place, tensor: GlobalObject, call: Any) -> None:
        """Notify: the scalar unit writes at once, whatever its pipes still have to do."""
        at, spec = tensor.data(), GlobalSpec.of(i32, (1,) * 5, (1,) * 5)
        access = self._open(token, GlobalObject(spec, at, spec.shape, spec.stride), call, site)
        address = at.buffer.base + at.offset
        try:
            signals.notify(access.array().reshape(-1), address, token)
        except Refused as error:
            raise refusal(call.insn, error, site, call.ops.target.name) from None
        event, before = self._sync.machine.operation, self._written.get(address)
        if event is not None:
            event.signals.append(token)
        clock = self._sync.release()
        if clock is not None and before is not None and before.clock is not None:
            clock.join(before.clock)
        self._written[address] = Token(site, self._sync.core.name, clock, event)
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
            self._learn(token, tensor, words)
            return True
        what = f"a loop around {_short(call.insn)}{_on_rank()}"
        if not self._sync.look_again(what, site):
            raise fail(
                "would-block",
                f"{what} would go on forever: nothing else runs that could signal it",
                fix="notify the signal, or end the loop",
                site=site,
                kind=WouldBlock,
            )
        return False

    def _look(self, token: Word, tensor: GlobalObject, call: Any, site: Place) -> Array:
        """The words themselves, which must lie on this device."""
        words, rank = self._open(token, tensor, call, site).array(), here()
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
        found = [self._written[a] for a in addresses if a in self._written]
        clock = Clock()
        for each in found:
            if each.clock is not None:
                clock.join(each.clock)
        self._sync.learn(clock)
        event = self._sync.machine.operation
        if event is not None:  # of words written on other devices nobody here knows by whom
            givers = dict.fromkeys(each.event for each in found) or {None: None}
            event.waits += [(token, giver) for giver in givers]


def _short(insn: Insn) -> str:
    return insn.name.rpartition(".")[2]


def _on_rank() -> str:
    rank = here()
    return "" if rank is None else f" on rank {rank.number}"
