"""What may still be under way: a proof that flags and barriers order the pipes of a function.

Every instruction with accesses is a *site*. For each pipe the proof keeps the sites that may not be
complete when the next instruction of the pipe begins, as bits of a number; a flag that was set and
not yet waited for, and a released buffer, keep such a set as well. An instruction that meets a site
in the set of its pipe is not ordered behind it.

* A flag takes along what its source knows to be complete, and the work of the source itself; a wait
  leaves those sites that neither knows of. A barrier completes the work of its pipe.
* Where paths meet, a site is open that is open on one of them. A loop is gone through until nothing
  changes; one that may run no round proves nothing for what follows.
* A site has a second bit for its executions in earlier rounds of the loops around it, so that
  accesses which only meet across rounds are told apart from those that meet in one.
* A flag may be set again only when its last wait is known to be over: waits are sites too.

The clocks of `machine/clocks.py` say the same of one execution; here it is said of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from ptokit.base.dataclass import dataclass
from ptokit.ir.core import Block, Function, Op
from ptokit.ir.fifos import is_transfer
from ptokit.ir.flow import core_of, is_loop
from ptokit.ir.ordering import effects_of, orders_pipes
from ptokit.isa.effects import Barrier, Buffer, Effect, Flag, Signal, Wait
from ptokit.isa.spec import Pipe
from ptokit.passes.call_graph import callee
from ptokit.passes.event_ids import crosses
from ptokit.passes.storage import Neighbours
from ptokit.passes.touches import Past, Touch, Touches

_ALL = -1  # every site: nothing is known
_PIPES = range(8)


@dataclass
class State:
    """The sites that may be open, as each pipe, each flag on its way and each buffer knows."""

    open: list[int] = field(default_factory=lambda: [0 for _ in _PIPES])
    flags: dict[Flag, int] = field(default_factory=dict[Flag, int])
    released: dict[tuple[int, Pipe], int] = field(default_factory=dict[tuple[int, Pipe], int])
    issued: int = 0

    def copy(self) -> State:
        return State(list(self.open), dict(self.flags), dict(self.released), self.issued)

    def issue(self, bit: int) -> None:
        """Work that begins is open to everybody."""
        self.issued |= bit
        self.open = [known | bit for known in self.open]
        self.flags = {flag: known | bit for flag, known in self.flags.items()}
        if self.released:
            self.released = {key: known | bit for key, known in self.released.items()}

    def older(self, sites: int, width: int) -> None:
        """A round of a loop is over: what its sites did belongs to an earlier one."""

        def moved(known: int) -> int:
            return known if known < 0 else known & ~sites | (known & sites) << width

        self._change(moved)

    def _change(self, change: Callable[[int], int]) -> None:
        self.issued = change(self.issued)
        self.open = [change(known) for known in self.open]
        self.flags = {flag: change(known) for flag, known in self.flags.items()}
        self.released = {key: change(known) for key, known in self.released.items()}

    def clear(self) -> None:
        """All work so far is complete."""
        self._change(lambda _: 0)

    def join(self, other: State) -> State:
        """Either of two states."""
        flags = {
            key: self.flags.get(key, _ALL) | other.flags.get(key, _ALL)
            for key in self.flags | other.flags
        }
        released = {
            key: self.released.get(key, self.issued) | other.released.get(key, other.issued)
            for key in self.released | other.released
        }
        both = [a | b for a, b in zip(self.open, other.open, strict=True)]
        return State(both, flags, released, self.issued | other.issued)


Act = Callable[[State], None]


class _WeakerError(Exception):
    """Something is out of order that was not before."""


@dataclass
class Proof:
    """The function as a tree of acts; operations in `without` count as not there."""

    touches: Touches
    busy: set[str]
    without: set[Op] = field(default_factory=set[Op])
    found: dict[Op, int] = field(default_factory=dict[Op, int])
    _allowed: dict[Op, int] | None = None
    steps: int = 0  # of the last run: the measure of its time
    _ops: list[Op] = field(default_factory=list[Op])
    _of_pipe: list[int] = field(default_factory=lambda: [0 for _ in _PIPES])
    _waits: dict[Flag, int] = field(default_factory=dict[Flag, int])
    _against: dict[Op, int] = field(default_factory=dict[Op, int])
    _bits: dict[Op, int] = field(default_factory=dict[Op, int])
    _acts: list[Act] = field(default_factory=list[Act])
    _width: int = 0
    _meetings: int = 0  # sites that want all work to be complete, before them and behind them
    _work_sites: int = 0
    # Of a loop, when it was come to last: the state then, the one that holds before every round,
    # and the one behind it.
    _entered: dict[Op, tuple[State, State, State]] = field(
        default_factory=dict[Op, tuple[State, State, State]]
    )

    @classmethod
    def of(cls, function: Function, touches: Touches, busy: set[str]) -> Proof:
        """Lay a function out; `busy` are the functions that give work to pipes, and end it."""
        made = cls(touches, busy)
        assert function.body is not None
        made._number(function.body)
        made._compare()
        made._acts = made._block(function.body)
        return made

    def run(self) -> None:
        """Find what is not in order: for an operation, the sites it should come behind."""
        self.found, self.steps = {}, 0
        self._entered.clear()
        self._go(self._acts, State())

    def holds_without(self, gone: set[Op]) -> bool:
        """Whether nothing more is out of order where some operations are not there."""
        self.without, allowed = gone, self.found
        self._allowed = allowed
        try:
            self.run()
            return True
        except _WeakerError:
            return False
        finally:
            self.without, self.found, self._allowed = set(), allowed, None

    # ---- sites -------------------------------------------------------------------------------

    def _number(self, block: Block) -> None:
        for op in self._here(block):
            taken = _waits(op) if orders_pipes(op) else []
            pipes = {t.pipe for t in self.touches.own(op)} | {wait.pipe for wait in taken}
            if crosses(op):
                pipes = set()
                self._meetings |= 1 << len(self._ops)
            if pipes or crosses(op):
                bit = self._bits[op] = 1 << len(self._ops)
                self._ops.append(op)
                for pipe in pipes:
                    self._of_pipe[pipe] |= bit
                for wait in taken:
                    if isinstance(wait.token, Flag):
                        self._waits[wait.token] = self._waits.get(wait.token, 0) | bit
            for region in op.regions:
                self._number(region)
        self._width = len(self._ops)

    def _here(self, block: Block) -> Iterator[Op]:
        return (op for op in block.ops if not self.touches.is_elsewhere(op))

    def _compare(self) -> None:
        """For each site those that it may not overtake: of the same round, and of earlier ones."""
        sites = [(op, self.touches.own(op)) for op in self._ops]
        neighbours = Neighbours({t.where: None for _, touches in sites for t in touches})
        users: dict[Touch, int] = {}
        every = Past(neighbours)
        for op, touches in sites:
            for touch in touches:
                users[touch] = users.get(touch, 0) | self._bits[op]
                every.add(touch, 0)
        for op, touches in sites:
            now = earlier = 0
            for touch in touches:
                for other, _ in every.conflicts(touch):
                    is_other = other.pipe != touch.pipe
                    if is_other or self.touches.needs_barrier(other, touch, False):
                        earlier |= users[other]
                    if touch.meets_in_one_round(other) and (
                        is_other or self.touches.needs_barrier(other, touch, True)
                    ):
                        now |= users[other]
            now, earlier = now | self._meetings, earlier | self._meetings
            self._against[op] = now | earlier << self._width
            if touches:
                self._work_sites |= self._bits[op] * (1 | 1 << self._width)
        self._of_pipe = [bits | bits << self._width for bits in self._of_pipe]
        self._waits = {flag: bits | bits << self._width for flag, bits in self._waits.items()}

    # ---- acts --------------------------------------------------------------------------------

    def _block(self, block: Block) -> list[Act]:
        return [act for op in self._here(block) for act in self._op(op)]

    def _op(self, op: Op) -> Iterator[Act]:
        if orders_pipes(op):
            if not op.operands:  # else its number is not known: it proves nothing
                yield self._order(op)
        elif crosses(op) or callee(op) in self.busy:
            yield self._meeting(op)
        elif self.touches.own(op):
            yield self._work(op)
        elif op.insn is not None and op.insn.orders and not is_transfer(op):
            yield self._order(op)
        if op.regions:
            yield self._regions(op)

    def _meeting(self, op: Op) -> Act:
        """Work on several pipes, which begins when all other work is over, and so does that behind
        it; a function that is called ends with a barrier of its own."""
        bit = self._bits.get(op, 0)

        def act(state: State) -> None:
            clash = 0
            for known in state.open:
                clash |= known & self._work_sites
            if clash:
                self._note(op, clash)
            if bit:
                state.issue(bit)
            else:
                state.clear()

        return act

    def _work(self, op: Op) -> Act:
        pipe = next(iter(self.touches.own(op))).pipe
        bit, against = self._bits[op], self._against[op]
        steps = self.touches.steps.get(op)

        def act(state: State) -> None:
            if steps is not None:
                self._inside(steps.start, op, state)
            clash = state.open[pipe] & against
            if clash:
                self._note(op, clash)
            if steps is not None:
                self._inside(steps.between, op, state)
            state.issue(bit)
            if steps is not None:
                self._inside(steps.end, op, state)

        return act

    def _inside(self, orders: Sequence[Barrier | Flag], op: Op, state: State) -> None:
        """Barriers and flags that an instruction has inside, raised and taken at once."""
        for order in orders:
            if isinstance(order, Barrier):
                self._barrier(order.pipe, state)
            else:
                self._set(order, op, state)
                self._wait(order, 0, state)

    def _order(self, op: Op) -> Act:
        effects = (self._effect(effect, op) for effect in effects_of(op))
        acts = [each for each in effects if each is not None]

        def act(state: State) -> None:
            if op not in self.without:
                self._go(acts, state)

        return act

    def _effect(self, effect: Effect, op: Op) -> Act | None:
        bit = self._bits.get(op, 0)
        match effect:
            case Barrier(pipe):
                return lambda state: self._barrier(pipe, state)
            case Signal(_, Flag() as flag):
                return lambda state: self._set(flag, op, state)
            case Wait(_, Flag() as flag):
                return lambda state: self._wait(flag, bit, state)
            case Signal(pipe, Buffer(number)):
                return lambda state: self._release(number, pipe, state)
            case Wait(pipe, Buffer(number)):
                return lambda state: self._acquire(number, pipe, bit, state)
            case _:
                return None

    def _behind(self, pipe: Pipe, state: State) -> int:
        """What is open behind the work of a pipe."""
        return state.open[pipe] & ~self._of_pipe[pipe]

    def _set(self, flag: Flag, op: Op, state: State) -> None:
        again = state.open[flag.src] & self._waits.get(flag, 0)
        if again or flag in state.flags:
            self._note(op, again or 1 << 2 * self._width)
        state.flags[flag] = self._behind(flag.src, state)

    def _wait(self, flag: Flag, bit: int, state: State) -> None:
        state.open[flag.dst] &= state.flags.pop(flag, _ALL)
        self._learn(flag.dst, state)
        if bit:
            state.issue(bit)

    def _release(self, number: int, pipe: Pipe, state: State) -> None:
        state.released[number, pipe] = self._behind(pipe, state)

    def _acquire(self, number: int, pipe: Pipe, bit: int, state: State) -> None:
        """A buffer comes from the pipes that had it before; at first nobody has had it."""
        for (each, other), known in state.released.items():
            if each == number and other != pipe:
                state.open[pipe] &= known
        self._learn(pipe, state)
        state.issue(bit)

    def _learn(self, pipe: Pipe, state: State) -> None:
        if pipe is Pipe.S:  # nothing is issued meanwhile, on any pipe
            state.open = [known & state.open[pipe] for known in state.open]

    def _barrier(self, pipe: Pipe, state: State) -> None:
        if pipe is not Pipe.ALL:
            state.open[pipe] = self._behind(pipe, state)
            return
        state.clear()

    def _note(self, op: Op, clash: int) -> None:
        self.found[op] = self.found.get(op, 0) | clash
        if self._allowed is not None and clash & ~self._allowed.get(op, 0):
            raise _WeakerError

    # ---- regions -----------------------------------------------------------------------------

    def _regions(self, op: Op) -> Act:
        parts = [self._block(region) for region in op.regions]
        if core_of(op):
            return lambda state: self._go(parts[0], state)
        if not is_loop(op):
            return lambda state: self._branch(parts, state)
        walked = (each for region in op.regions for each in region.walk())
        sites = sum(self._bits.get(each, 0) for each in walked)
        runs = self._surely_runs(op)
        return lambda state: self._loop(op, parts, sites, runs, state)

    def _go(self, acts: list[Act], state: State) -> None:
        self.steps += len(acts)
        for act in acts:
            act(state)

    def _branch(self, parts: list[list[Act]], state: State) -> None:
        ends = [state.copy() for _ in parts]
        for acts, end in zip(parts, ends, strict=True):
            self._go(acts, end)
        if len(parts) == 1:  # it may be passed by
            ends.append(state.copy())
        self._become(ends, state)

    def _become(self, ends: list[State], state: State) -> None:
        last = ends[0]
        for end in ends[1:]:
            last = last.join(end)
        state.open, state.flags = last.open, last.flags
        state.released, state.issued = last.released, last.issued

    def _loop(self, op: Op, parts: list[list[Act]], sites: int, runs: bool, state: State) -> None:
        """All rounds; the first part of two is gone through once more in the end.

        A loop in a loop is come to again and again, each time with more that may be open: what held
        before its rounds then does so now. To begin with that saves going through loops twelve deep
        two to the twelfth times.
        """
        entry, head = state.copy(), state.copy()
        before = self._entered.get(op)
        if before is not None:
            last, known, result = before
            if last == entry:
                self._become([result.copy()], state)
                return
            if last.join(entry) == entry:
                head = entry.join(known)
        while True:
            end = head.copy()
            for acts in parts:
                self._go(acts, end)
            behind = end.copy()
            end.older(sites, self._width)
            following = head.join(end)
            if following == head:
                break
            head = following
        known = head.copy()
        if len(parts) > 1:
            self._go(parts[0], head)
        self._become([behind] if runs and len(parts) == 1 else [head], state)
        self._entered[op] = entry, known, state.copy()

    def _surely_runs(self, op: Op) -> bool:
        known = self.touches.accesses.known
        lower, upper = known.number(op.operand("lower")), known.number(op.operand("upper"))
        return lower is not None and upper is not None and lower < upper


def _waits(op: Op) -> list[Wait]:
    return [effect for effect in effects_of(op) if isinstance(effect, Wait)]
