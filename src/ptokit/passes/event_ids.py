"""Event ids: which are in use where, and which the program or its instructions use themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from itertools import permutations

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic
from ptokit.base.namedtuple import NamedTuple
from ptokit.ir.core import Function, Op
from ptokit.ir.dialects import definition_of
from ptokit.ir.dialects.asynchronous import BUILD, sync_id
from ptokit.ir.ordering import effects_of, orders_pipes
from ptokit.isa.effects import Flag, Signal, Wait
from ptokit.isa.spec import Pipe
from ptokit.isa.targets import Target
from ptokit.passes.function_attributes import Tail, tail_of
from ptokit.passes.touches import Touches

STORES = Pipe.MTE3, Pipe.S, 0  # the flag for which a function waits at its end, if asked to


class Held(NamedTuple):
    """An event id in use; its wait stands before an operation of the block, or in it."""

    source: Pipe
    sink: Pipe
    number: int
    before: int


@dataclass
class Ids:
    """Event ids of each pair of pipes: busy between set and wait, spent until known to be over."""

    count: int  # of each pair
    busy: set[tuple[Pipe, Pipe, int]] = field(default_factory=set[tuple[Pipe, Pipe, int]])

    def take(self, pair: tuple[Pipe, Pipe]) -> int | None:
        for number in range(self.count):
            if (*pair, number) not in self.busy:
                self.busy.add((*pair, number))
                return number
        return None

    def free(self, pair: tuple[Pipe, Pipe]) -> int:
        return sum((*pair, number) not in self.busy for number in range(self.count))

    def release(self, held: Held) -> None:
        self.busy.discard((held.source, held.sink, held.number))


def written_ids(
    function: Function, target: Target, touches: Touches
) -> Iterator[tuple[Pipe, Pipe, int]]:
    """The event ids that the program uses itself; all of a pair where one is a run-time value.

    Those that an instruction raises and takes inside must not be under way around it, nor that of
    the last stores of a function when it ends.
    """
    if tail_of(function) is Tail.STORES:
        yield STORES
    for op in function.walk():
        touches.own(op)
        steps = touches.steps.get(op)
        for order in () if steps is None else (*steps.start, *steps.between, *steps.end):
            if isinstance(order, Flag):
                yield order
        for effect in effects_of(op) if orders_pipes(op) else ():
            if isinstance(effect, Signal | Wait) and isinstance(effect.token, Flag):
                source, sink, number = effect.token
                for each in range(target.event_ids) if op.operands else (number,):
                    yield source, sink, each
        is_session = definition_of(op) is BUILD
        if is_session or crosses(op):
            from ptokit.isa.comm_rules import STAGES  # where devices talk

            numbers = (sync_id(op),) if is_session else range(STAGES)
            for source, sink in permutations((Pipe.V, Pipe.MTE2, Pipe.MTE3), 2):
                yield from ((source, sink, each) for each in numbers)


def crosses(op: Op) -> bool:
    """Whether an instruction moves data to or from other devices, on several pipes of the core."""
    return op.insn is not None and op.insn.pipe is None and "world" in op.insn.services


def scarcity(function: Function, count: int) -> Diagnostic:
    return Diagnostic(
        "sync.canonical",
        "the canonical mode of synchronisation needs more event ids than there are",
        function.location,
        (("function", f"@{function.name}"), ("ids of each pair of pipes", str(count))),
        'allow more ids, or use barriers where they run out: sync="insert"',
    )
