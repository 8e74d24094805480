"""The machine: memories, cores and time, on which instructions are executed.

`execute` is the whole way of an instruction: find its verified call (machine/calls.py), and give
it to the executor (machine/executor.py) - at once here, in the queue of its pipe in a launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ptokit.base.diagnostics import Diagnostic, ProgramError, PtoError, Warnings
from ptokit.base.location import Location, Site, user_site
from ptokit.base.policy import DEFAULT, Origin, Policy
from ptokit.isa.effects import Pipe
from ptokit.isa.facts import Facts, ObjectFacts, Ops, ScalarFacts, Unknown
from ptokit.isa.regions import View
from ptokit.isa.spec import Insn
from ptokit.isa.targets import Target
from ptokit.isa.verify import verify, weighed
from ptokit.machine.arena import Arena
from ptokit.machine.budget import Budget
from ptokit.machine.calls import NOTHING, NUMBERS, Broken
from ptokit.machine.core import Core
from ptokit.machine.events import Event
from ptokit.machine.executor import Executor, FastExecutor
from ptokit.machine.faults import misaligned, too_large, unbound_tile
from ptokit.machine.objects import Bound, ConvObject, GlobalObject, TileObject
from ptokit.machine.ranks import here
from ptokit.machine.sync import Sync

if TYPE_CHECKING:
    from ptokit.machine.journal import Journal

Subscriber = Callable[[Event], None]


class Machine:
    """One run of a program. Nothing outlives it but its arena, and nothing is global."""

    executor_type: Callable[[Any], Executor] = FastExecutor  # unless another is given

    def __init__(
        self,
        target: Target,
        mode: str = "manual",
        *,
        executor: Callable[[Any], Executor] | None = None,
        arena: Arena | None = None,
        policy: Policy = DEFAULT,
        warnings: Warnings | None = None,
    ) -> None:
        self.target = target
        self.mode = mode
        self.policy = policy
        self.budget: Budget | None = None  # of the run, where it has one
        self.warnings = warnings if warnings is not None else Warnings()
        self._judged: set[tuple[Any, Any]] = set()  # places, with what may be broken there
        self.blocks = 1  # how many blocks of the program run, and vector cores per block
        self.subblocks = 1
        self.core = Core(target)
        arena = arena or Arena(target, mode)
        self.pool = arena.pool
        self.calls = arena.calls
        self.follows = False  # whether somebody wants every event, those that only order too
        self.operation: Event | None = None  # what is issued or executed now, where it is followed
        # Asked before an instruction writes to global memory, where somebody wants to look.
        self.peek: Callable[[Any, Sequence[Any]], None] | None = None
        # Told of every executed call with its arguments, where a run is to be repeated.
        self.tape: Callable[..., None] | None = None
        self.untaped: Callable[[str], None] | None = None  # told of effects that no call has
        # Whether the program was told what memory holds: then it may decide by it what it does.
        self.has_looked = False
        self.journal: Journal | None = None  # who notes what is done, where it is checked
        self._followers: list[Subscriber] = []
        self.is_quiet = False  # whoever runs the program has told NumPy to raise no warnings
        self.sync = Sync(self)
        made, rank = (executor or type(self).executor_type)(self), here()
        self.executor: Executor = made if rank is None else rank.ranks.executing(made)

    def execute(
        self,
        insn: Insn,
        operands: Sequence[Any],
        attrs: tuple[Any, ...],
        site: Site | Location,
    ) -> Any:
        """Execute one instruction. `operands` and `attrs` follow the record; None is left out."""
        try:
            call = self.executor.call(insn, operands, attrs, site)
        except Unknown:  # of what runs only an address can be
            raise _unplaced(insn, operands, site) from None
        return self.enqueue(call, operands, site)

    def enqueue(self, call: Any, operands: Sequence[Any], site: Site | Location) -> Any:
        """Give a verified call to its pipe, which here is done with all that came before."""
        insn = call.insn
        self.core.calls += 1
        if self.core.values:
            self.sync.take_values(operands)
        if call.phase:
            self.sync.hand_over(call.pipe, site)
        if not self.follows or insn.orders or insn.binds:  # names are no work
            value = self.executor.execute(call, operands, site)
        else:
            self.begin(insn, call.pipe, site)
            value = self.executor.execute(call, operands, site)
            self.end()
        if value is not None:
            self.sync.give_value(value)
        return value

    def perform(
        self,
        part: Insn,
        operands: Sequence[Any],
        attrs: tuple[Any, ...],
        site: Site | Location,
    ) -> None:
        """Execute the part of an instruction that runs on a pipe by itself (`calls.part_of`)."""
        call = self.executor.call(part, operands, attrs, site)
        self.sync.perform(call.pipe, call, operands, site)

    @property
    def defers(self) -> bool:
        """Whether instructions may run after they were enqueued."""
        return False

    def carries_poison(self, call: Any, access: Any, site: Site | Location) -> bool:
        """Whether an operand may be read undefined: poison then travels (machine/poison.py)."""
        insn = call.insn
        if insn.returns or insn.operand(access.operand).steers:
            return False
        if self.policy.carries_poison:
            return True
        at = site if isinstance(site, Location) else site.location
        return self.policy.allows("poison-read", at)

    # ---- events ---------------------------------------------------------------------------------

    def subscribe(self, subscriber: Subscriber) -> None:
        """Tell somebody of every event from now on."""
        self._followers.append(subscriber)
        self.follows = True

    def begin(self, insn: Insn, pipe: Pipe, site: Site | Location) -> None:
        """An operation is issued whose event somebody wants."""
        event = Event.begin(insn, pipe, site, self.core)
        event.outer, self.operation = self.operation, event

    def end(self) -> None:
        """All of the operation is issued; parts of it may wait in queues."""
        event = self.operation
        assert event is not None
        self.operation = event.outer
        self.finish_part(event)

    def finish_part(self, event: Event) -> None:
        """A pipe has executed a part of an operation; with the last one the event is told."""
        event.left -= 1
        if not event.left and not event.is_told:
            event.is_told = True
            for tell in self._followers:
                tell(event)

    @property
    def is_watched(self) -> bool:
        """Whether anybody wants to know what instructions touch."""
        return self.journal is not None or self.operation is not None

    def publish(self, call: Any, site: Site | Location, bound: Sequence[Any]) -> None:
        """A call was executed."""
        if self.journal is not None:
            self.journal.see(call, site, bound)
        event = self.operation
        if event is not None:
            event.call, event.bound, event.pipe = call, bound, call.pipe

    def place(self, operand: Any) -> None:
        """In auto mode, give a tile that has no address yet storage of its own."""
        if self.mode == "auto" and isinstance(operand, Bound) and operand.storage is None:
            spec: Any = operand.spec  # type: ignore[attr-defined]
            space = self.target.spaces.get(spec.loc)
            if space is not None and 0 < space.capacity < spec.nbytes:
                raise too_large(operand, spec.nbytes, space, self.target.name)
            lease = self.pool.lease("?" if space is None else space.memory, spec.nbytes)
            operand.bind(lease.storage, 0, lease)

    def verified(
        self, insn: Insn, operands: Sequence[Any], attrs: tuple[Any, ...], site: Site | Location
    ) -> tuple[Ops, Broken]:
        """What the rules of an instruction look at, and those that do not hold.

        Raises unless they are warnings, or silent, at this line.
        """
        named = {
            declared.name: facts_of(value)
            for declared, value in zip(insn.operands, operands, strict=True)
        }
        chosen = {a.name: v for a, v in zip(insn.attrs, attrs, strict=True)}
        ops = Ops(named, chosen, self.target, self.mode)
        found = verify(insn, ops, policy=self.policy, advise=False)
        broken = Broken(found) if found else NOTHING
        if broken:
            self.judge(insn, ops, broken, site)
        self._check_addresses(insn, operands, site)
        return ops, broken

    def _check_addresses(self, insn: Insn, operands: Sequence[Any], site: Site | Location) -> None:
        """The rule that `TASSIGN[address]` checks beforehand, for tiles whose bytes are touched.

        `TASSIGN(tile, address)` may give any address; slots lie where their FIFO has put them.
        """
        for declared, tile in zip(insn.operands, operands, strict=True):
            if not isinstance(tile, Bound) or declared.view is View.OBJECT or tile.in_ring:
                continue
            spec: Any = tile.spec  # type: ignore[attr-defined]
            space = self.target.spaces.get(spec.loc)
            if space is not None and tile.assigned % space.alignment:
                raise misaligned(tile, space.alignment, insn, declared.name, site)

    def judge(self, insn: Insn, ops: Ops, broken: Broken, site: Site | Location) -> None:
        """Raise, or keep as warnings, what the rules that an instruction breaks come to here."""
        at = site if isinstance(site, Location) else _point(site)
        if (at, broken.kinds) in self._judged:
            return
        location = site if isinstance(site, Location) else site.location
        found = self.policy.judge(replace(d, location=location) for d in broken.found)
        if found and not broken.has_advice:
            broken.found, broken.has_advice = verify(insn, ops, policy=self.policy), True
            found = self.policy.judge(replace(d, location=location) for d in broken.found)
        if errors := [d for d in found if d.severity == "error"]:
            raise ProgramError(errors)
        for each in found:
            self.warnings.add(each)
        self._judged.add((at, broken.kinds))

    def remark(self, code: str, message: str, fix: str) -> None:
        """Keep a warning about the line in hand."""
        found = Diagnostic(code, message, user_site().location, fix=fix, severity="warning")
        for each in self.policy.judge([found]):
            self.warnings.add(each)

    def tell(self, found: Diagnostic) -> None:
        """Raise, or keep as a warning, what only the running program shows of a rule of ours."""
        outcome = "what they held is lost"
        for each in self.policy.judge([weighed(found, Origin("own"), outcome, self.policy)]):
            if each.severity == "error":
                raise ProgramError([each])
            self.warnings.add(each)


def _point(site: Site) -> tuple[Any, ...]:
    """A point in Python code; code objects of two files may be equal."""
    return site.code.co_filename, site.code, site.lasti


def _unplaced(insn: Insn, operands: Sequence[Any], site: Site | Location) -> PtoError:
    """The error of a tile whose address matters and is not known."""
    named = zip(insn.names, operands, strict=True)
    name, tile = next((n, o) for n, o in named if isinstance(o, Bound) and o.storage is None)
    return unbound_tile(tile, insn, name, site)


def facts_of(value: Any) -> Facts | None:
    """The facts of a run-time operand."""
    if value is None:
        return None
    if isinstance(value, TileObject | ConvObject | GlobalObject):
        return value.facts()
    if isinstance(value, NUMBERS):
        return ScalarFacts(None, value)
    return ObjectFacts(value)
