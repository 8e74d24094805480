"""`verify`: every rule of the instruction table over a program, and the rules of its structure.

The same records that check a call of the Python API check a line of text; what a program does not
say before it runs (a dynamic size) is left to the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any, ClassVar

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, ProgramError
from ptokit.base.location import Location
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.policy import DEFAULT, Policy
from ptokit.ir.core import Block, Function, Module, Op
from ptokit.ir.dialects import Definition, definition_of
from ptokit.ir.flow import allocates
from ptokit.ir.instructions import literal, run_time_operands, template_arguments
from ptokit.ir.scratch import supplied
from ptokit.ir.types import BufferType, ElidedType, ScalarType, on_target
from ptokit.isa.facts import Facts, Ops, ScalarFacts, TileFacts
from ptokit.isa.targets import Target
from ptokit.isa.verify import verify, verify_text
from ptokit.passes.aggregate_structure import CHECKS as AGGREGATE_CHECKS
from ptokit.passes.aggregate_structure import check_origins
from ptokit.passes.base import Pass
from ptokit.passes.conv_structure import CONV_CHECKS
from ptokit.passes.facts import Known
from ptokit.passes.functions import check_functions
from ptokit.passes.micro_scopes import check_scopes
from ptokit.passes.micro_types import MICRO_CHECKS, check_operation
from ptokit.passes.overlap import overlaps
from ptokit.passes.structure import (
    CHECKS,
    Check,
    Scene,
    check_bound,
    check_of_instruction,
    complaint,
    tile_type,
)
from ptokit.passes.surroundings import Surroundings, Use
from ptokit.passes.unbound import unbound

_CHECKS: dict[Definition | None, list[Check]] = {}
for _table in (CHECKS, CONV_CHECKS, AGGREGATE_CHECKS, MICRO_CHECKS):
    for _definition, _check in _table.items():
        _CHECKS.setdefault(_definition, []).append(_check)


@cache
def _checks(definition: Definition | None) -> list[Check]:
    """What an operation is checked for by itself."""
    found = [*_CHECKS.get(definition, ())]
    if definition is not None and definition.insn is not None:
        more = check_of_instruction(definition.insn)
        found += () if more is None else (more,)
    if definition is not None and definition.micro is not None:
        found.append(check_operation)
    return found


@dataclass(frozen=True)
class Verify(Pass):
    """Checks a module against a target.

    `level` 3 demands an address for every tile; `is_manual` one for every tile that is used, from
    wherever it comes. `in_text`: it was written as text, whose verifier has rules of its own, and
    leaves temporaries to the tool.
    """

    name: ClassVar[str] = "verify"
    level: int = 0
    is_manual: bool = False
    policy: Policy = DEFAULT
    in_text: bool = False

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
        checker = _Checker(module, target, mode, self)
        found = [*module.remarks, *check_functions(module), *check_origins(module)]
        found += check_scopes(module)
        for function in module.functions:
            if function.body is not None:
                found += checker.function(function)
                found += unbound(function) if self.is_manual else ()
        found.sort(key=lambda d: (d.location.line, d.location.col) if d.location else (0, 0))
        return [replace(d, target=target.name) for d in self.policy.judge(found)]


def refused_texts(module: Module, target: Target) -> list[Diagnostic]:
    """What the verifier of texts says of a module, and nothing that only a device would."""
    checker = _Checker(module, target, "auto", Verify(in_text=True))
    found = [d for f in module.functions if f.body is not None for d in checker.function(f)]
    return [replace(d, target=target.name) for d in found if checker.is_of_texts(d)]


def has_addresses(module: Module) -> bool:
    """Whether every tile of a module has an address of its own (and there is one)."""
    made = [op for op in module.walk() if allocates(op)]
    return bool(made) and all(op.operand("addr") is not None for op in made)


_MOST_ADVISED = 64  # lines of a program: the search for values that would do takes its time


class _Verdict(NamedTuple):
    """What is known of all lines with an instruction on operands of the same types."""

    ops: Ops
    is_broken: bool
    hidden: list[str]  # the temporaries that it leaves to the tool
    said: list[Diagnostic]  # by the verifier of texts


class _Checker:
    def __init__(self, module: Module, target: Target, mode: str, asked: Verify) -> None:
        self._module = module
        self._target = target
        self._level = asked.level
        self._policy = asked.policy
        self._in_text = asked.in_text
        self._mode = mode
        # Most lines of a kernel repeat: the same instruction on operands of the same types.
        self._verdicts: dict[tuple[Any, ...], _Verdict] = {}
        self._uses: list[Use] = []
        self._broken: list[Use] = []
        self._refused: set[tuple[str, Location]] = set()  # by the verifier of texts

    def is_of_texts(self, found: Diagnostic) -> bool:
        """Whether the verifier of texts has said so."""
        return found.location is not None and (found.code, found.location) in self._refused

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
            for check in _checks(definition_of(op)):
                found += check(op, scene)
            for region in op.regions:
                found += self._block(region, scene)
        return found

    def _instruction(self, op: Op, scene: Scene) -> list[Diagnostic]:
        insn = op.insn
        assert insn is not None
        untold = [r for r in op.results if isinstance(r.type, ElidedType)]
        if untold:
            what = f"the type of %{untold[0].name} is left out, and no operand tells it"
            return [complaint(op, "result-type", what, fix="write the type in full")]
        made = [
            d
            for r in op.results
            if isinstance(r.type, BufferType) and not self._is_only_named(op)
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
            stated = Ops(dict(named), chosen, self._target, self._mode)
            tiles = supplied(op, self._target, named, in_text=self._in_text)
            for name, made_of in tiles.items():
                named[name] = TileFacts(on_target(made_of.type.spec, self._target.left_layout))
            ops = Ops(named, chosen, self._target, self._mode)
            is_broken = bool(verify(insn, ops, policy=self._policy, advise=False))
            said = verify_text(insn, stated) if self._in_text else []
            hidden = [name for name, each in tiles.items() if each.is_used]
            verdict = _Verdict(ops, is_broken, hidden, said)
            self._verdicts[key] = verdict
        ops, is_broken, hidden, said = verdict
        made += _unwritten(op) if self._in_text else ()
        made += (replace(each, location=op.location) for each in said)
        self._refused |= {(each.code, op.location) for each in said}
        if scene.level == 3:
            made += (_unplaced(op, name) for name in hidden)
        use = Use(insn, tuple(values), ops, op.location)
        self._uses.append(use)
        if is_broken:
            self._broken.append(use)
        return made

    def _is_only_named(self, op: Op) -> bool:
        """Whether an operation names storage anew where types of tiles are no types of C++, and
        are checked where they are allocated."""
        assert op.insn is not None
        return bool(op.insn.binds and self._target.tile_library)

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
            found += [
                replace(d, location=use.location)
                for d in verdicts[key]
                if (d.code, use.location) not in self._refused
            ]
        return found

    def _scalar(
        self, op: Op, name: str, facts: ScalarFacts, type_: object, found: list[Diagnostic]
    ) -> ScalarFacts:
        if isinstance(type_, ScalarType) and type_.dtype is None and type_.name != "index":
            found.append(
                complaint(op, "scalar-type", f"{name} is no element type", {"type": type_})
            )
        return facts


def _unplaced(op: Op, name: str) -> Diagnostic:
    text = f"Level 3 requires an explicit {name}: nobody places one for the program"
    fix = f"write a tile with an address as {name}"
    return complaint(op, "level3-tmp", text, fix=fix)


def _unwritten(op: Op) -> Iterator[Diagnostic]:
    """Attributes that a text writes out, always or beside others."""
    asm = None if op.insn is None else op.insn.asm
    if asm is None:
        return
    for name, others in asm.mandatory.items():
        key, *rest = (asm.attrs.get(each, each) for each in (name, *others))
        given = [each for each in rest if each in op.attrs]
        if key not in op.attrs and (given or not rest):
            text = f"a text writes {key}" + f" beside {' and '.join(given)}" * bool(given)
            yield complaint(op, "mandatory-attribute", text, fix=f"add {{{key} = ...}}")
    tiles = [op.bound(name) for name in asm.distinct]
    if None not in tiles and len({*tiles}) < len(tiles):
        text = f"{', '.join(asm.distinct)} are distinct tiles"
        yield complaint(op, "distinct-tiles", text, fix="make a tile for each")
    chosen = [name for name in asm.either if name in op.labels or name in op.attrs]
    if asm.either and len(chosen) != 1:
        text = f"a text writes exactly one of {' and '.join(asm.either)}"
        yield complaint(op, "mandatory-attribute", text, {"written": ", ".join(chosen) or "none"})
    for key in (asm.inferred.keys() - asm.attrs.keys()) & op.attrs.keys():
        text = f"a text does not accept '{key}': it follows from the operands"
        yield complaint(op, "mandatory-attribute", text, fix="leave it out")
