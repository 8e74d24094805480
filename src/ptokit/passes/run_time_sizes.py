"""Valid sizes of a text that C++ must not know when it is compiled.

The C++ library asserts about some sizes where it knows them at compile time, and does what the
tiles say where it does not. The assembler of the texts makes no such difference: a number in a type
is a size like any other. A tile that meets such an assertion gets its valid sizes when it runs.
"""

from __future__ import annotations

from dataclasses import replace

from ptokit.base.tiles import DYNAMIC
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.dialects import memory
from ptokit.ir.instructions import template_arguments
from ptokit.ir.rewrite import clone
from ptokit.ir.types import TileBufType
from ptokit.isa.facts import Ops, Recorder, Unknown
from ptokit.isa.spec import Rule
from ptokit.isa.targets import Target
from ptokit.passes.facts import Known


def with_run_time_sizes(module: Module, target: Target) -> Module:
    """The module with run-time sizes where texts need them; the same one when nothing changes."""
    if not any(op.insn and any(r.in_text for r in op.insn.rules) for op in module.walk()):
        return module
    if not any(_asserted(function, target) for function in module.functions):
        return module
    module = clone(module)
    for function in module.functions:
        if function.body is not None:
            _sized(function.body, _asserted(function, target))
    return module


def _asserted(function: Function, target: Target) -> set[Value]:
    """The tiles of which only C++ would say that their static sizes are wrong."""
    found: set[Value] = set()
    wrong: set[Value] = set()  # in a text too; and what a loop or a window passes on keeps its type
    known = Known(target)
    for op in function.walk():
        known.see(op)
        if op.insn is None:
            wrong.update(op.operands)
            continue
        rules = [r for r in op.insn.rules if r.in_text and r.binds(target.name)]
        for rule in rules:
            keeps, asked = _instead(op, rule, known)
            (found if keeps else wrong).update(filter(_is_static, asked))
    return found - wrong


def _instead(op: Op, rule: Rule, known: Known) -> tuple[bool, list[Value]]:
    """Whether a line that breaks a rule keeps what texts have instead, and the operands whose valid
    sizes the rule is about; none where the line does not break it."""
    assert op.insn is not None
    assert rule.in_text is not None
    facts = zip(op.insn.operands, known.operands(op), strict=True)
    chosen = zip(op.insn.attrs, template_arguments(op), strict=True)
    ops = Ops({o.name: f for o, f in facts}, {a.name: v for a, v in chosen}, known.target, "auto")
    seen: dict[str, str] = {}
    try:
        if rule.holds(Recorder(ops, seen)):
            return True, []
        keeps = rule.in_text(ops)
    except Unknown:
        return True, []
    asked = {path.partition(".")[0] for path in seen if ".valid_" in path}
    return keeps, [v for v, label in zip(op.operands, op.labels, strict=True) if label in asked]


def _is_static(value: Value) -> bool:
    made = value.owner
    return (
        isinstance(made, Op)
        and memory.ALLOC.matches(made)
        and isinstance(value.type, TileBufType)
        and DYNAMIC not in (value.type.spec.valid_row, value.type.spec.valid_col)
    )


def _sized(block: Block, tiles: set[Value]) -> None:
    ops: list[Op] = []
    for op in block.ops:
        if op.results and op.result in tiles:
            ops += _with_operands(op)
        ops.append(op)
        for region in op.regions:
            _sized(region, tiles)
    block.ops = ops


def _with_operands(op: Op) -> list[Op]:
    """Give an allocation its valid sizes as operands; the constants they are."""
    type_ = op.result.type
    assert isinstance(type_, TileBufType)
    builder = Builder(location=op.location)
    for label, size in (("valid_row", type_.spec.valid_row), ("valid_col", type_.spec.valid_col)):
        op.operands.append(builder.constant(size))
        op.labels += (label,)
    spec = type_.spec.but(valid_row=DYNAMIC, valid_col=DYNAMIC)
    op.result.type = replace(type_, spec=spec)
    return builder.block.ops
