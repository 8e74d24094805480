"""`verify`: every rule of the instruction table over a program, and the rules of its structure.

The same records that check a call of the Python API check a line of text; what a program does not
say before it runs (a dynamic size) is left to the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from ptokit.base.diagnostics import Diagnostic, ProgramError
from ptokit.base.policy import DEFAULT, Policy
from ptokit.ir.core import Block, Function, Module, Op
from ptokit.ir.dialects import Definition, definition_of
from ptokit.ir.flow import allocates
from ptokit.ir.instructions import literal, run_time_operands, template_arguments
from ptokit.ir.scratch import scratch_types
from ptokit.ir.types import BufferType, ScalarType, on_target
from ptokit.isa.facts import Facts, Ops, ScalarFacts, TileFacts
from ptokit.isa.targets import Target
from ptokit.isa.verify import verify
from ptokit.passes.aggregate_structure import CHECKS as AGGREGATE_CHECKS
from ptokit.passes.base import Pass
from ptokit.passes.conv_structure import CONV_CHECKS
from ptokit.passes.facts import Known
from ptokit.passes.functions import check_functions
from ptokit.passes.overlap import overlaps
from ptokit.passes.structure import CHECKS, Check, Scene, check_bound, complaint, tile_type
from ptokit.passes.surroundings import Surroundings, Use
from ptokit.passes.unbound import unbound

_CHECKS: dict[Definition | None, list[Check]] = {}
for _table in (CHECKS, CONV_CHECKS, AGGREGATE_CHECKS):
    for _definition, _check in _table.items():
        _CHECKS.setdefault(_definition, []).append(_check)


@dataclass(frozen=True)
class Verify(Pass):
    """Checks a module against a target.

    `level` 3 demands an address for every tile; `is_manual` one for every tile that is used, from
    wherever it comes.
    """

    name: ClassVar[str] = "verify"
    level: int = 0
    is_manual: bool = False
    policy: Policy = DEFAULT

    def run(self, module: Module, target: Target) -> Module:
        """Return the module, or raise with everything that is wrong."""
        self.warnings(module, target)
        return module

    def warnings(self, module: Module, target: Target) -> list[Diagnostic]:
        """What is no error; raises with everything that is one."""
        found = self.check(module, target)
        errors = [d for d in found if d.severity == "error"]
        if errors:
            raise ProgramError(errors)
        return found

    def check(self, module: Module, target: Target) -> list[Diagnostic]:
        """Every complaint that is not silenced, in program order."""
        mode = "manual" if self.is_manual or has_addresses(module) else "auto"
        checker = _Checker(module, target, self.level, mode, self.policy)
        found = [*module.remarks, *check_functions(module)]
        for function in module.functions:
            if function.body is not None:
                found += checker.function(function)
                found += unbound(function) if self.is_manual else ()
        found.sort(key=lambda d: (d.location.line, d.location.col) if d.location else (0, 0))
        return [replace(d, target=target.name) for d in self.policy.judge(found)]


def has_addresses(module: Module) -> bool:
    """Whether every tile of a module has an address of its own (and there is one)."""
    made = [op for op in module.walk() if allocates(op)]
    return bool(made) and all(op.operand("addr") is not None for op in made)


_MOST_ADVISED = 64  # lines of a program: the search for values that would do takes its time


class _Checker:
    def __init__(
        self, module: Module, target: Target, level: int, mode: str, policy: Policy
    ) -> None:
        self._module = module
        self._target = target
        self._level = level
        self._policy = policy
        self._mode = mode
        # Most lines of a kernel repeat: the same instruction on operands of the same types.
        self._verdicts: dict[tuple[Any, ...], tuple[Ops, bool]] = {}
        self._uses: list[Use] = []
        self._broken: list[Use] = []

    def function(self, function: Function) -> list[Diagnostic]:
        assert function.body is not None
        known = Known(self._target)
        scene = Scene(self._module, function, known, self._target, self._level)
        self._uses, self._broken = [], []
        found = self._block(function.body, scene)
        found += self._advised()
        return found + overlaps(function, known)

    def _block(self, block: Block, scene: Scene) -> list[Diagnostic]:
        found: list[Diagnostic] = []
        for op in block.ops:
            scene.known.see(op)
            if op.insn is not None:
                found += self._instruction(op, scene)
            for check in _CHECKS.get(definition_of(op), ()):
                found += check(op, scene)
            for region in op.regions:
                found += self._block(region, scene)
        return found

    def _instruction(self, op: Op, scene: Scene) -> list[Diagnostic]:
        insn = op.insn
        assert insn is not None
        made = [
            d
            for r in op.results
            if isinstance(r.type, BufferType)
            for d in tile_type(op, r.type.spec, scene)
        ]
        made += check_bound(op, scene) if insn.binds else ()
        named: dict[str, Facts | None] = {}
        values = run_time_operands(op)
        known = scene.known.operands(op)
        for declared, value, facts in zip(insn.operands, values, known, strict=True):
            if value is not None and isinstance(facts, ScalarFacts):
                facts = self._scalar(op, declared.name, facts, value.type, made)
            if value is None and (number := literal(op, declared)) is not None:
                facts = ScalarFacts(None, number)
            named[declared.name] = facts
        arguments = template_arguments(op)
        key = (insn, *named.values(), *arguments)
        verdict = self._verdicts.get(key)
        if verdict is None:
            chosen = {a.name: v for a, v in zip(insn.attrs, arguments, strict=True)}
            for name, type_ in scratch_types(op, self._target, named).items():
                named[name] = TileFacts(on_target(type_.spec, self._target.left_layout))
            ops = Ops(named, chosen, self._target, self._mode)
            verdict = ops, bool(verify(insn, ops, policy=self._policy, advise=False))
            self._verdicts[key] = verdict
        ops, is_broken = verdict
        use = Use(insn, tuple(values), ops, op.location)
        self._uses.append(use)
        if is_broken:
            self._broken.append(use)
        return made

    def _advised(self) -> list[Diagnostic]:
        """The broken rules, with advice that has been tried on the whole function."""
        around = Surroundings(self._uses)
        verdicts: dict[tuple[Any, ...], list[Diagnostic]] = {}
        found: list[Diagnostic] = []
        for use in self._broken:
            key = (id(use.ops), *use.values)
            if key not in verdicts:
                verdicts[key] = verify(
                    use.insn,
                    use.ops,
                    policy=self._policy,
                    advise=len(verdicts) < _MOST_ADVISED,
                    elsewhere=partial(around.take, use),
                )
            found += [replace(d, location=use.location) for d in verdicts[key]]
        return found

    def _scalar(
        self, op: Op, name: str, facts: ScalarFacts, type_: object, found: list[Diagnostic]
    ) -> ScalarFacts:
        if isinstance(type_, ScalarType) and type_.dtype is None and type_.name != "index":
            found.append(
                complaint(op, "scalar-type", f"{name} is no element type", {"type": type_})
            )
        return facts
