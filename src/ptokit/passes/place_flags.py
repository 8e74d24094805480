"""Where the flags and barriers of a function go.

Within a block, an operation that conflicts with an earlier one on another pipe waits for a flag
that is set right behind it. Loops and branches count as one operation whose accesses are those of
their bodies, so a flag is set and waited for equally often on every path.

A loop whose next iteration conflicts with this one gets a flag that goes round: set once before
the loop, waited for and set again in every iteration, drained after the loop. There are two ways
to go about nested loops and branches: such flags go round the innermost loop, or round all of them,
those of branches too.

There are eight event ids per pair of pipes, and an id may be set again only when its last wait is
known to be over; where ids run out, a barrier over all pipes takes the place of the flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from ptokit.base.dataclass import dataclass
from ptokit.base.namedtuple import NamedTuple
from ptokit.ir.core import NOWHERE, Block, Function, Op
from ptokit.ir.flow import core_of, is_loop
from ptokit.ir.ordering import written
from ptokit.isa.effects import Barrier
from ptokit.isa.effects import Flag as EventFlag
from ptokit.isa.spec import Insn, Pipe
from ptokit.isa.sync import pipe_barrier, set_flag, wait_flag
from ptokit.passes.buffer_ids import is_guarded
from ptokit.passes.call_graph import callee
from ptokit.passes.event_ids import Held, Ids, crosses, written_ids
from ptokit.passes.storage import Neighbours
from ptokit.passes.touches import Past, Touch, Touches

_RESERVE = 4  # event ids of a pair of pipes that are kept for flags between loops

Clock = dict[Pipe, dict[Pipe, int]]  # [q][p]: operations of p up to here are over when q goes on


@dataclass
class Flag:
    """An edge: set behind the operation at `after`, waited for before the one at `before`."""

    source: Pipe
    sink: Pipe
    after: int
    before: int

    @property
    def pair(self) -> tuple[Pipe, Pipe]:
        return self.source, self.sink


class Round(NamedTuple):
    """The ends of a flag that goes round a loop; one that is far goes round those around it too."""

    held: Held
    before: Op
    behind: Op
    is_far: bool
    group: list[Op]  # all its operations


@dataclass
class Arms:
    """The regions of a branch: what they touch, and the flags that they have in common."""

    touches: frozenset[Touch] = frozenset()
    rounds: dict[tuple[Pipe, Pipe], Round] = field(default_factory=dict[tuple[Pipe, Pipe], Round])


@dataclass
class Left:
    """What a block leaves: flags to be begun and ended outside, and ids that may not be over."""

    rounds: list[Round]
    spent: list[Held] = field(default_factory=list[Held])


@dataclass
class Edges:
    """The flags of one block, and how far each pipe knows the others once an operation starts."""

    flags: list[Flag]
    clocks: list[Clock]


@dataclass
class Made:
    """What was inserted, in groups that only make sense together."""

    flags: list[tuple[Op, ...]] = field(default_factory=list[tuple[Op, ...]])
    rounds: list[list[Op]] = field(default_factory=list[list[Op]])  # around loops
    barriers: list[tuple[Op, ...]] = field(default_factory=list[tuple[Op, ...]])
    guards: list[tuple[Op, ...]] = field(default_factory=list[tuple[Op, ...]])  # buffer ids

    def barrier(self, op: Op) -> Op:
        self.barriers.append((op,))
        return op

    @property
    def by_cost(self) -> list[Sequence[Op]]:
        """What one would most like to be without comes first: barriers of all pipes, then loops."""
        full = written(pipe_barrier, (Pipe.ALL,), NOWHERE).attrs
        barriers = sorted(self.barriers, key=lambda group: group[0].attrs != full)
        return [*barriers, *self.rounds, *self.flags, *self.guards]


class Inserter:
    """Orders the pipes of one kind of core, whose code stands in sections of that kind.

    Without a kind it is the only core there is.
    """

    def __init__(
        self,
        function: Function,
        touches: Touches,
        busy: set[str],
        event_ids: int,
        *,
        has_guards: bool,
        is_far: bool,
    ) -> None:
        self.touches = touches
        self._has_guards = has_guards  # buffer ids order what shares on-chip memory
        self._inside = not touches.kind  # what is inserted here runs only where it should
        target = touches.target
        count = min(target.event_ids, event_ids)
        self.ids = Ids(count, set(written_ids(function, target, touches)))
        self.ran_out = False
        self._is_far = is_far  # flags go round all loops, and not only round the innermost one
        self._busy = busy  # functions that give work to pipes
        self._unordered = target.unordered
        self._neighbours = Neighbours(())
        self.made = Made()

    def run(self, body: Block) -> None:
        touched = {touch.where: None for op in body.ops for touch in self.touches.of(op)}
        self._neighbours = Neighbours(touched)
        self._block(body, in_loop=False)

    def _guarded(self, ops: list[Op]) -> list[Op]:
        """Operations that must not run on the other kind of core."""
        if self._inside or not ops:
            return ops
        name = f"pto.section.{self.touches.kind}"
        return [Op(name, regions=[Block(ops=ops)], location=ops[0].location)]

    # ---- one block ---------------------------------------------------------------------------

    def _block(self, block: Block, in_loop: bool, arms: Arms | None = None) -> Left:
        """Insert into a block; returns what the blocks around it still have to care for.

        `arms`: it is one of several, of which each round of the loops around takes one.
        """
        ops = list(block.ops)
        lead: list[list[Op]] = [[] for _ in ops]
        trail: list[list[Op]] = [[] for _ in ops]
        edges = self._forward(ops)
        arms = arms or Arms()
        carried, is_tangled = self._carried(ops, arms.touches) if in_loop else ([], False)
        barriers = self._same_pipe(ops, edges, carried, in_loop)
        left = Left(self._round(ops, carried, is_tangled, lead, trail, arms))
        sets: dict[int, list[Flag]] = {}
        for flag in edges.flags:
            sets.setdefault(flag.after, []).append(flag)
        waits: dict[int, list[tuple[Held, Op]]] = {}
        drained: set[int] = set()  # before these all pipes meet, because there is no id left
        for index, op in enumerate(ops):
            if index in drained:
                for held in left.spent:
                    self.ids.release(held)
                left.spent = []
            for held, given in waits.get(index, []):
                lead[index].append(flag_op(wait_flag, held, op))
                self.made.flags.append((given, lead[index][-1]))
                left.spent.append(held)
            for pipe in barriers.get(index, ()):
                lead[index].append(self.made.barrier(barrier_op(pipe, op)))
            # What it touches is its own affair; a function drains all at its end.
            if callee(op) in self._busy or crosses(op):
                lead[index].append(self.made.barrier(barrier_op(Pipe.ALL, op)))
            if crosses(op):
                trail[index].append(self.made.barrier(barrier_op(Pipe.ALL, op)))
            inner_arms = Arms() if is_loop(op) else Arms(self.touches.of(op))
            for region in [] if self.touches.is_elsewhere(op) else op.regions:
                outside = self._inside
                self._inside = outside or core_of(op) == self.touches.kind
                goes_round = is_loop(op) or (in_loop and self._is_far)
                inner = self._block(region, goes_round, inner_arms)
                self._inside = outside
                for round_ in inner.rounds:
                    if in_loop and (round_.is_far or not is_loop(op)):
                        left.rounds.append(round_)  # it goes on in the next round of this block
                        continue
                    lead[index].append(round_.before)
                    trail[index].append(round_.behind)
                    inner.spent.append(round_.held)
                left.spent += (held._replace(before=index) for held in inner.spent)
            left.spent = self._recycle(left.spent, edges.clocks, index)
            for flag in sets.get(index, []):
                number = self._take(flag)
                if number is None:
                    if flag.before not in drained:
                        full = self.made.barrier(barrier_op(Pipe.ALL, ops[flag.before]))
                        lead[flag.before].append(full)
                        drained.add(flag.before)
                else:
                    held = Held(*flag.pair, number, flag.before)
                    trail[index].append(flag_op(set_flag, held, op))
                    waits.setdefault(flag.before, []).append((held, trail[index][-1]))
        block.ops = [
            each
            for first, op, last in zip(lead, ops, trail, strict=True)
            for each in (*self._guarded(first), op, *self._guarded(last))
        ]
        return left

    def _take(self, flag: Flag) -> int | None:
        number = self.ids.take(flag.pair)
        self.ran_out |= number is None
        return number

    def _recycle(self, spent: list[Held], clocks: list[Clock], index: int) -> list[Held]:
        """Give back ids whose wait the setting pipe knows to be over; returns the others."""
        kept: list[Held] = []
        for held in spent:
            if clocks[index].get(held.source, {}).get(held.sink, -1) >= held.before:
                self.ids.release(held)
            else:
                kept.append(held)
        return kept

    def _needs_flag(self, one: Touch, other: Touch) -> bool:
        is_guarded_ = self._has_guards and is_guarded(one, other)
        return one.pipe != other.pipe and not is_guarded_

    def _forward(self, ops: list[Op]) -> Edges:
        """Flags between operations of one block, without those that others imply."""
        edges = Edges([], [])
        known: Clock = {}
        last = Past(self._neighbours)
        for index, op in enumerate(ops):
            mine = self.touches.of(op)
            wanted: dict[Pipe, dict[Pipe, int]] = {touch.pipe: {} for touch in mine}
            for touch in mine:
                needed = wanted[touch.pipe]
                for other, when in last.conflicts(touch):
                    if self._needs_flag(other, touch) and when > needed.get(other.pipe, -1):
                        needed[other.pipe] = when
            for sink, needed in sorted(wanted.items()):
                clock = known.setdefault(sink, {})
                for source, when in sorted(needed.items(), key=lambda item: (-item[1], item[0])):
                    if clock.get(source, -1) >= when:
                        continue
                    edges.flags.append(Flag(source, sink, when, index))
                    clock[source] = when
                    for pipe, upto in edges.clocks[when].get(source, {}).items():
                        clock[pipe] = max(clock.get(pipe, -1), upto)
            edges.clocks.append({pipe: dict(clock) for pipe, clock in known.items()})
            for touch in mine:
                last.add(touch, index)
        return edges

    # ---- loops -------------------------------------------------------------------------------

    def _round(
        self,
        ops: list[Op],
        carried: list[Flag],
        is_tangled: bool,
        lead: list[list[Op]],
        trail: list[list[Op]],
        arms: Arms,
    ) -> list[Round]:
        """Flags that go round a loop; returns what stands before and behind it.

        Where there are ids enough, a flag goes round all loops there are: what was set last in an
        inner one is waited for when it is entered again. The arms of a branch have one flag in
        common, which each of them waits for and sets again.
        """
        made: list[Round] = []
        for flag in carried:
            first, last = ops[flag.before], ops[flag.after]
            round_ = arms.rounds.get(flag.pair)
            if round_ is None:
                number = self._take(flag)
                if number is None:
                    is_tangled = True
                    continue
                held = Held(*flag.pair, number, flag.before)
                ends = flag_op(set_flag, held, first), flag_op(wait_flag, held, last)
                is_far = self._is_far and self.ids.free(flag.pair) >= _RESERVE
                round_ = arms.rounds[flag.pair] = Round(held, *ends, is_far, list(ends))
                made.append(round_)
                self.made.rounds.append(round_.group)
            lead[flag.before].append(flag_op(wait_flag, round_.held, first))
            trail[flag.after].append(flag_op(set_flag, round_.held, last))
            round_.group.extend((lead[flag.before][-1], trail[flag.after][-1]))
        if is_tangled and ops:
            lead[0].append(self.made.barrier(barrier_op(Pipe.ALL, ops[0])))
        return made

    def _carried(self, ops: list[Op], others: frozenset[Touch]) -> tuple[list[Flag], bool]:
        """One flag per pair of pipes that conflict across iterations, also with `others`, which
        may be touched instead.

        A nested loop or branch that conflicts with itself on two pipes is tangled: whether its
        pipes meet inside depends on the path, so a barrier orders two of its rounds, unless it
        turns out that what stands inside does.
        """
        first: dict[Touch, int] = {}
        final: dict[Touch, int] = {}
        for index, op in enumerate(ops):
            for touch in self.touches.of(op):
                first.setdefault(touch, index)
                final[touch] = index
        early, elsewhere = Past(self._neighbours), Past(self._neighbours)
        for touch, index in first.items():
            early.add(touch, index)
        for touch in others:
            if touch not in first:
                elsewhere.add(touch, 0)
        spans: dict[tuple[Pipe, Pipe], tuple[list[int], list[int]]] = {}
        is_tangled = False
        for late, after in final.items():
            for touch, before in early.conflicts(late):
                if not self._needs_flag(late, touch) or after < before:
                    continue  # an order within the iteration carries over to the next
                if before == after:
                    is_tangled = True
                    continue
                befores, afters = spans.setdefault((late.pipe, touch.pipe), ([], []))
                befores.append(before)
                afters.append(after)
            for touch, _ in elsewhere.conflicts(late):
                if self._needs_flag(late, touch):
                    spans.setdefault((late.pipe, touch.pipe), ([], []))[1].append(after)
                    at = first[late]
                    spans.setdefault((touch.pipe, late.pipe), ([], []))[0].append(at)
        return [_span(*pair, *spans[pair]) for pair in sorted(spans)], is_tangled

    def _same_pipe(
        self, ops: list[Op], edges: Edges, carried: list[Flag], in_loop: bool
    ) -> dict[int, list[Pipe]]:
        """Barriers between dependent operations of one pipe, where the target needs them.

        None is needed where the pipe has meanwhile waited for one that waited for it.
        """
        found: dict[int, list[Pipe]] = {}
        for pipe in sorted(self._unordered):
            mine = [[t for t in self.touches.of(op) if t.pipe == pipe] for op in ops]
            final = Past(self._neighbours)
            for index, touches in enumerate(mine):
                for touch in touches:
                    final.add(touch, index)
            over = -1  # a barrier stands behind this operation
            around = in_loop  # nothing orders this round against the last one yet
            last = Past(self._neighbours)
            for index, touches in enumerate(mine):
                steps = self.touches.steps.get(ops[index])
                if steps is not None and _completes(steps.start, pipe):
                    over, around = index - 1, False
                seen = max(over, edges.clocks[index].get(pipe, {}).get(pipe, -1))
                meets = any(
                    when > seen and self.touches.needs_barrier(other, t, True)
                    for t in touches
                    for other, when in last.conflicts_now(t)
                )
                wraps = around and any(
                    self.touches.needs_barrier(other, t, False)
                    and not _went_round(pipe, when, index, carried, edges)
                    for t in touches
                    for other, when in final.conflicts(t)
                )
                if meets or wraps:
                    found.setdefault(index, []).append(pipe)
                    over, around = index - 1, False
                for touch in touches:
                    last.add(touch, index)
                if steps is not None and _completes((*steps.between, *steps.end), pipe):
                    around = False
                    over = index if _completes(steps.end, pipe) else max(over, index - 1)
        return found


def _span(source: Pipe, sink: Pipe, befores: list[int], afters: list[int]) -> Flag:
    """A flag that goes round: waited for before all of one end, and set behind all of the other."""
    before = min(befores or afters)
    return Flag(source, sink, max(before, *(afters or befores)), before)


def _completes(orders: Iterable[Barrier | EventFlag], pipe: Pipe) -> bool:
    """Whether a barrier, or a flag for which the scalar unit stops, lets a pipe finish."""
    return any(
        order.pipe in (pipe, Pipe.ALL)
        if isinstance(order, Barrier)
        else order.src is pipe and order.dst is Pipe.S
        for order in orders
    )


def _went_round(pipe: Pipe, when: int, index: int, carried: list[Flag], edges: Edges) -> bool:
    """Whether a flag from the last iteration tells the pipe that its own work is over."""
    return any(
        flag.sink == pipe
        and flag.before <= index
        and edges.clocks[flag.after].get(flag.source, {}).get(pipe, -1) >= when
        for flag in carried
    )


def flag_op(insn: Insn, held: Held, near: Op) -> Op:
    return written(insn, (held.source, held.sink, held.number), near.location)


def barrier_op(pipe: Pipe, near: Op) -> Op:
    return written(pipe_barrier, (pipe,), near.location)
