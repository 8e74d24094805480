"""Synchronisation for auto mode: flags between pipes, barriers inside a pipe.

Within a block, an operation that conflicts with an earlier one on another pipe waits for a flag
that is set right behind it. Loops and branches count as one operation whose accesses are those of
their bodies, so a flag is set and waited for equally often on every path.

A loop whose next iteration conflicts with this one gets a flag that goes round: set once before
the loop, waited for and set again in every iteration, drained behind the loop. A wait that earlier
waits already imply is left out. There are eight event ids per pair of pipes, and an id may be set
again only when its last wait is known to be over; where ids run out, a barrier over all pipes
takes the place of the flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import ClassVar

from ptokit.ir.core import Block, Function, Module, Op
from ptokit.ir.dialects import definition_of
from ptokit.ir.dialects.asynchronous import BUILD, sync_id
from ptokit.ir.flow import core_of, is_loop
from ptokit.ir.ordering import effects_of, orders_pipes, written
from ptokit.ir.rewrite import clone
from ptokit.isa.comm_rules import STAGES
from ptokit.isa.effects import Barrier, Signal, Steps, Wait
from ptokit.isa.effects import Flag as EventFlag
from ptokit.isa.spec import Insn, Pipe
from ptokit.isa.sync import pipe_barrier, set_flag, wait_flag
from ptokit.isa.targets import Target
from ptokit.passes.accesses import accesses_of, registers_of, steps_in
from ptokit.passes.base import Pass
from ptokit.passes.call_graph import callee, working
from ptokit.passes.storage import Bytes, Neighbours, bytes_of


@dataclass(frozen=True)
class InsertSync(Pass):
    """Order the pipes of a placed program, beside whatever order is written in it.

    Sections of cube and vector code run on cores of their own, unless `is_one_core`: then one core
    plays both parts, and its pipes are ordered across sections.
    """

    name: ClassVar[str] = "insert-sync"
    is_one_core: bool = False
    only: frozenset[str] | None = None  # the functions meant; None: all

    def run(self, module: Module, target: Target) -> Module:
        module = clone(module)
        busy = working(module)
        for function in module.functions:
            body = function.body
            is_meant = self.only is None or function.name in self.only
            if body is None or not is_meant or function.name not in busy:
                continue
            # Each kind of core has pipes and flags of its own.
            kinds = {core_of(op) for op in function.walk() if op.regions} - {""}
            for kind in [""] if self.is_one_core else sorted(kinds) or [""]:
                _Inserter(function, target, kind, busy).run(body)
            end = body.ops.pop()
            # Nothing may still be under way when the kernel ends.
            body.ops += [_barrier(Pipe.ALL, end), end]
        return module


@dataclass(frozen=True)
class Touch:
    """An access: on which pipe, to which bytes, and whether it writes."""

    pipe: Pipe
    where: Bytes
    writes: bool


_NOTHING: dict[Touch, int] = {}


class Past:
    """The last accesses to every range, told apart by pipe and by whether they write."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._at: dict[Bytes, dict[Touch, int]] = {}

    def add(self, touch: Touch, index: int) -> None:
        self._at.setdefault(touch.where, {})[touch] = index

    def conflicts(self, touch: Touch) -> Iterator[tuple[Touch, int]]:
        """The accesses that conflict with one, with the index of each."""
        for where in self._neighbours.of(touch.where):
            for other, index in self._at.get(where, _NOTHING).items():
                if touch.writes or other.writes:
                    yield other, index


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

    def release(self, pair: tuple[Pipe, Pipe], number: int) -> None:
        self.busy.discard((*pair, number))


@dataclass
class Edges:
    """The flags of one block, and how far each pipe knows the others once an operation starts."""

    flags: list[Flag]
    clocks: list[Clock]


class _Inserter:
    """Orders the pipes of one kind of core, whose code stands in sections of that kind.

    Without a kind it is the only core there is.
    """

    def __init__(self, function: Function, target: Target, kind: str, busy: set[str]) -> None:
        self.target = target
        self.kind = kind
        self._inside = not kind  # what is inserted here runs only where it should
        self.accesses = accesses_of(function, target)
        self.bytes = bytes_of(function, self.accesses)
        self.ids = Ids(target.event_ids, set(_written_ids(function, target)))
        self._busy = busy  # functions that give work to pipes
        self._touches: dict[Op, frozenset[Touch]] = {}
        self._steps: dict[Op, Steps] = {}  # of operations whose accesses are known
        self._unordered = target.unordered
        self._neighbours = Neighbours(())

    def run(self, body: Block) -> None:
        touched = {touch.where: None for op in body.ops for touch in self.touches(op)}
        self._neighbours = Neighbours(touched)
        self._block(body, in_loop=False)

    def _is_elsewhere(self, op: Op) -> bool:
        """Whether an operation runs on the other kind of core."""
        return bool(self.kind) and core_of(op) not in ("", self.kind)

    def _guarded(self, ops: list[Op]) -> list[Op]:
        """Operations that must not run on the other kind of core."""
        if self._inside or not ops:
            return ops
        name = f"pto.section.{self.kind}"
        return [Op(name, regions=[Block(ops=ops)], location=ops[0].location)]

    def touches(self, op: Op) -> frozenset[Touch]:
        """All accesses of an operation, those of its regions included."""
        found = self._touches.get(op)
        if found is None:
            pipe = self.accesses.pipes.get(op, Pipe.S)
            own = {Touch(pipe, self.bytes.of(a), a.writes) for a in self.accesses.of.get(op, [])}
            if op.insn is not None:  # a register is memory to whoever must keep its order
                own |= {Touch(pipe, Bytes(name), True) for name in op.insn.sets}
                used = registers_of(op, self.accesses.known)
                own |= {Touch(pipe, Bytes(name), False) for name in used}
            steps = steps_in(op, self.accesses.known)
            if steps is not None:
                self._steps[op] = steps
            if steps is not None and steps.scratch is not None:
                own.add(Touch(pipe, Bytes("hidden scratch"), True))
            regions = [] if self._is_elsewhere(op) else op.regions
            inner = [self.touches(each) for region in regions for each in region.ops]
            found = self._touches[op] = frozenset(own.union(*inner))
        return found

    # ---- one block ---------------------------------------------------------------------------

    def _block(self, block: Block, in_loop: bool) -> tuple[list[Op], list[Op]]:
        """Insert into a block; returns what belongs before and behind the loop around it."""
        ops = list(block.ops)
        lead: list[list[Op]] = [[] for _ in ops]
        trail: list[list[Op]] = [[] for _ in ops]
        edges = self._forward(ops)
        carried, is_tangled = self._carried(ops) if in_loop else ([], False)
        # A tangled round begins with a barrier over all pipes: nothing of the last one is left.
        barriers = self._same_pipe(ops, edges, carried, in_loop and not is_tangled)
        before, behind, held = self._round(ops, carried, is_tangled, lead, trail)
        sets: dict[int, list[Flag]] = {}
        for flag in edges.flags:
            sets.setdefault(flag.after, []).append(flag)
        waits: dict[int, list[tuple[Flag, int]]] = {}
        spent: list[tuple[Flag, int]] = []  # waited for, but the source may not know it yet
        for index, op in enumerate(ops):
            for flag, number in waits.get(index, []):
                lead[index].append(_flag(wait_flag, flag, number, op))
                spent.append((flag, number))
            lead[index] += [_barrier(pipe, op) for pipe in barriers.get(index, ())]
            # What it touches is its own affair; a function drains all at its end.
            if callee(op) in self._busy or _crosses(op):
                lead[index].append(_barrier(Pipe.ALL, op))
            if _crosses(op):
                trail[index].append(_barrier(Pipe.ALL, op))
            for region in [] if self._is_elsewhere(op) else op.regions:
                outside = self._inside
                self._inside = outside or core_of(op) == self.kind
                first, last = self._block(region, is_loop(op))
                self._inside = outside
                lead[index] += first
                trail[index] += last
            spent = self._recycle(spent, edges.clocks, index)
            for flag in sets.get(index, []):
                number = self.ids.take(flag.pair)
                if number is None:
                    lead[flag.before].append(_barrier(Pipe.ALL, ops[flag.before]))
                else:
                    trail[index].append(_flag(set_flag, flag, number, op))
                    waits.setdefault(flag.before, []).append((flag, number))
        for flag, number in (*spent, *held):
            self.ids.release(flag.pair, number)
        block.ops = [
            each
            for first, op, last in zip(lead, ops, trail, strict=True)
            for each in (*self._guarded(first), op, *self._guarded(last))
        ]
        return before, behind

    def _recycle(
        self, spent: list[tuple[Flag, int]], clocks: list[Clock], index: int
    ) -> list[tuple[Flag, int]]:
        """Give back ids whose wait the setting pipe knows to be over; returns the others."""
        kept: list[tuple[Flag, int]] = []
        for flag, number in spent:
            seen = clocks[index].get(flag.source, {}).get(flag.sink, -1)
            if seen >= flag.before:
                self.ids.release(flag.pair, number)
            else:
                kept.append((flag, number))
        return kept

    def _forward(self, ops: list[Op]) -> Edges:
        """Flags between operations of one block, without those that others imply."""
        edges = Edges([], [])
        known: Clock = {}
        last = Past(self._neighbours)
        for index, op in enumerate(ops):
            mine = self.touches(op)
            wanted: dict[Pipe, dict[Pipe, int]] = {touch.pipe: {} for touch in mine}
            for touch in mine:
                needed = wanted[touch.pipe]
                for other, when in last.conflicts(touch):
                    if other.pipe != touch.pipe and when > needed.get(other.pipe, -1):
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
    ) -> tuple[list[Op], list[Op], list[tuple[Flag, int]]]:
        """Flags that go round a loop; returns what stands before and behind it, and ids held."""
        before: list[Op] = []
        behind: list[Op] = []
        held: list[tuple[Flag, int]] = []
        for flag in carried:
            number = self.ids.take(flag.pair)
            if number is None:
                is_tangled = True
                continue
            held.append((flag, number))
            lead[flag.before].append(_flag(wait_flag, flag, number, ops[flag.before]))
            trail[flag.after].append(_flag(set_flag, flag, number, ops[flag.after]))
            before.append(_flag(set_flag, flag, number, ops[flag.before]))
            behind.append(_flag(wait_flag, flag, number, ops[flag.after]))
        if is_tangled and ops:
            lead[0].append(_barrier(Pipe.ALL, ops[0]))
        return before, behind, held

    def _carried(self, ops: list[Op]) -> tuple[list[Flag], bool]:
        """One flag per pair of pipes that conflict across iterations.

        A nested loop or branch that conflicts with itself on two pipes is tangled: whether its
        pipes meet inside depends on the path, so only a barrier orders two of its rounds.
        """
        first: dict[Touch, int] = {}
        final: dict[Touch, int] = {}
        for index, op in enumerate(ops):
            for touch in self.touches(op):
                first.setdefault(touch, index)
                final[touch] = index
        early = Past(self._neighbours)
        for touch, index in first.items():
            early.add(touch, index)
        pairs: dict[tuple[Pipe, Pipe], Flag] = {}
        for late, after in final.items():
            for touch, before in early.conflicts(late):
                if touch.pipe == late.pipe or after < before:
                    continue  # an order within the iteration carries over to the next
                if before == after:
                    return [], True
                flag = Flag(late.pipe, touch.pipe, after, before)
                known = pairs.setdefault(flag.pair, flag)
                known.after = max(known.after, after)
                known.before = min(known.before, before)
        return [pairs[pair] for pair in sorted(pairs)], False

    def _same_pipe(
        self, ops: list[Op], edges: Edges, carried: list[Flag], in_loop: bool
    ) -> dict[int, list[Pipe]]:
        """Barriers between dependent operations of one pipe, where the target needs them.

        None is needed where the pipe has meanwhile waited for one that waited for it.
        """
        found: dict[int, list[Pipe]] = {}
        for pipe in sorted(self._unordered):
            mine = [[t for t in self.touches(op) if t.pipe == pipe] for op in ops]
            final = Past(self._neighbours)
            for index, touches in enumerate(mine):
                for touch in touches:
                    final.add(touch, index)
            over = -1  # a barrier stands behind this operation
            around = in_loop  # nothing orders this round against the last one yet
            last = Past(self._neighbours)
            for index, touches in enumerate(mine):
                steps = self._steps.get(ops[index])
                if steps is not None and _completes(steps.start, pipe):
                    over, around = index - 1, False
                seen = max(over, edges.clocks[index].get(pipe, {}).get(pipe, -1))
                meets = any(when > seen for t in touches for _, when in last.conflicts(t))
                wraps = around and any(
                    not _went_round(pipe, when, index, carried, edges)
                    for t in touches
                    for _, when in final.conflicts(t)
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


def _written_ids(function: Function, target: Target) -> Iterator[tuple[Pipe, Pipe, int]]:
    """The event ids that the program uses itself; all of a pair where one is a run-time value."""
    for op in function.walk():
        for effect in effects_of(op) if orders_pipes(op) else ():
            if isinstance(effect, Signal | Wait) and isinstance(effect.token, EventFlag):
                source, sink, number = effect.token
                for each in range(target.event_ids) if op.operands else (number,):
                    yield source, sink, each
        is_session = definition_of(op) is BUILD
        if is_session or _crosses(op):
            numbers = (sync_id(op),) if is_session else range(STAGES)
            for source, sink in permutations((Pipe.V, Pipe.MTE2, Pipe.MTE3), 2):
                yield from ((source, sink, each) for each in numbers)


def _crosses(op: Op) -> bool:
    """Whether an instruction moves data to or from other devices, on several pipes of the core."""
    return op.insn is not None and op.insn.pipe is None and "world" in op.insn.services


def _flag(insn: Insn, flag: Flag, number: int, near: Op) -> Op:
    return written(insn, (flag.source, flag.sink, number), near.location)


def _barrier(pipe: Pipe, near: Op) -> Op:
    return written(pipe_barrier, (pipe,), near.location)
