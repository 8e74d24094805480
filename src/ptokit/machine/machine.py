"""The machine: it carries instructions out.

`issue` is the whole way of an instruction: look the plan up (or verify the instruction and make
one), fetch the operands, run the body, write back, leave a record. A plan is what can be known
from the operands' keys alone - the rules have been checked, the windows are ready - so an
instruction that runs again costs a dictionary look-up and the array code of its body.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ptokit.base.diagnostics import ProgramError
from ptokit.base.location import Location, Site
from ptokit.isa.facts import Facts, ObjectFacts, Ops, ScalarFacts
from ptokit.isa.spec import Insn
from ptokit.isa.targets import Target
from ptokit.isa.verify import verify
from ptokit.machine.core import Core
from ptokit.machine.memory import StoragePool
from ptokit.machine.objects import Bound, ConvObject, GlobalObject, TileObject
from ptokit.machine.plan import Plan
from ptokit.machine.recipe import NUMBERS, Recipe
from ptokit.machine.records import Record
from ptokit.machine.sync import Sync

_MAX_RECIPES = 5_000
_MAX_PLANS = 50_000  # beyond this, start over: a kernel that needs more never repeats itself


class Machine:
    """Memories, plans and records of one run. Nothing outlives it, nothing is global."""

    def __init__(self, target: Target, mode: str = "manual", *, keep: int | None = 10_000) -> None:
        self.target = target
        self.mode = mode
        self.blocks = 1  # how many blocks of the program run, and vector cores per block
        self.subblocks = 1
        self.core = Core(target)
        self.pool = StoragePool()
        self.records: deque[Record] = deque(maxlen=keep)
        self.watch: Callable[[Record], None] | None = None  # told of every record, when set
        self.is_quiet = False  # whoever runs the program has told NumPy to raise no warnings
        self.sync = Sync(self)
        self.plans: dict[tuple[Any, ...], Plan] = {}

    def issue(
        self,
        insn: Insn,
        operands: Sequence[Any],
        attrs: tuple[Any, ...],
        site: Site | Location,
    ) -> Any:
        """Execute one instruction. `operands` and `attrs` follow the record; None is left out."""
        return self.carry_out(self.plan(insn, operands, attrs, site), operands, site)

    def carry_out(self, plan: Plan, operands: Sequence[Any], site: Site | Location) -> Any:
        """Execute an instruction whose plan is known."""
        return plan.run(operands, site)

    def plan(
        self,
        insn: Insn,
        operands: Sequence[Any],
        attrs: tuple[Any, ...],
        site: Site | Location,
    ) -> Plan:
        """The instruction verified and ready to run on these operands."""
        keys = [o if o is None or o.__class__ in NUMBERS else o.key for o in operands]
        plan = self.plans.get((insn, attrs, *keys))
        if plan is None:
            for operand in operands:
                self.place(operand)
            keys = [o if o is None or o.__class__ in NUMBERS else o.key for o in operands]
            plan = self._make_plan(insn, operands, attrs, site)
            if len(self.plans) >= _MAX_PLANS:
                self.plans.clear()
            self.plans[(insn, attrs, *keys)] = plan
        return plan

    @property
    def defers(self) -> bool:
        """Whether instructions may run after they were issued."""
        return False

    def note(self, record: Record) -> None:
        """Keep a record and tell whoever watches."""
        self.records.append(record)
        if self.watch is not None:
            self.watch(record)

    def place(self, operand: Any) -> None:
        """In auto mode, give a tile that has no address yet storage of its own."""
        if self.mode == "auto" and isinstance(operand, Bound) and operand.storage is None:
            spec: Any = operand.spec  # type: ignore[attr-defined]
            name = self.target.spaces[spec.loc].memory if spec.loc in self.target.spaces else "?"
            lease = self.pool.lease(name, spec.nbytes)
            operand.bind(lease.storage, 0, lease)

    def facts(self, insn: Insn, operands: Sequence[Any], attrs: tuple[Any, ...]) -> Ops:
        """What the rules of an instruction may look at."""
        named = {
            declared.name: facts_of(value)
            for declared, value in zip(insn.operands, operands, strict=True)
        }
        chosen = {a.name: v for a, v in zip(insn.attrs, attrs, strict=True)}
        return Ops(named, chosen, self.target, self.mode)

    def _make_plan(
        self, insn: Insn, operands: Sequence[Any], attrs: tuple[Any, ...], site: Site | Location
    ) -> Plan:
        question = self._question(insn, operands, attrs)
        recipe = _recipes.get(question)
        if recipe is None:
            ops = self.facts(insn, operands, attrs)
            location = site if isinstance(site, Location) else site.location
            found = verify(insn, ops, location)
            if found:
                raise ProgramError(found)
            recipe = Recipe(insn, ops, operands, attrs, site)
            if question is not None:
                if len(_recipes) >= _MAX_RECIPES:
                    _recipes.clear()
                _recipes[question] = recipe
        return Plan(self, recipe, operands, site)

    def _question(
        self, insn: Insn, operands: Sequence[Any], attrs: tuple[Any, ...]
    ) -> tuple[Any, ...] | None:
        """All that the rules of an instruction look at; None where they look into objects."""
        seen: list[Any] = [insn, self.target, self.mode, attrs]
        for operand in operands:
            if operand is None or isinstance(operand, GlobalObject):
                seen.append(operand and operand.key)
            elif isinstance(operand, TileObject):
                address = None if operand.storage is None else operand.address
                seen.append((operand.spec, address, operand.vr, operand.vc))
            elif operand.__class__ in NUMBERS:
                seen.append((operand.__class__, operand))
            else:
                return None
        return tuple(seen)


# What was verified before: a launch repeats the one before it.
_recipes: dict[tuple[Any, ...] | None, Recipe] = {}


def facts_of(value: Any) -> Facts | None:
    """The facts of a run-time operand."""
    if value is None:
        return None
    if isinstance(value, TileObject | ConvObject | GlobalObject):
        return value.facts()
    if isinstance(value, NUMBERS):
        return ScalarFacts(None, value)
    return ObjectFacts(value)
