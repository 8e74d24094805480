"""Scopes that nobody wrote: vector code that stands by itself is a scope as far as it goes.

Front ends write micro-operations without `pto.vecscope`. A maximal run of them, with the loops,
branches and numbers between them, is one scope; what the scope may not hold - a transfer, a flag, a
tile instruction - ends it. Numbers that do not depend on the run are computed in front of it. What
is made of numbers alone, a mask or a register of one number, is made again in every scope that uses
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptokit.ir.attributes import SymbolAttr
from ptokit.ir.core import Block, Module, Op, Value
from ptokit.ir.dialects import arith, definition_of, memory, micro, scf
from ptokit.ir.dialects.func import CALL
from ptokit.ir.flow import is_terminator
from ptokit.ir.rewrite import Cloner, clone
from ptokit.ir.types import (
    LogicalMaskType,
    LogicalType,
    MaskType,
    OpaqueType,
    RegisterType,
    Type,
)

_LOOPS = (scf.FOR, scf.IF, scf.WHILE)
_NUMBERS = frozenset({*arith.DEFINITIONS, memory.ADDPTR, memory.TILE_ADDR, micro.CAST_POINTER})


def is_vector(op: Op) -> bool:
    """Whether an operation belongs into a scope."""
    definition = definition_of(op)
    return definition is not None and definition.micro is not None and definition.micro.is_inside


def is_element(op: Op) -> bool:
    """Whether it is an access of the scalar unit to one element."""
    return op.insn is not None and op.insn.accesses_element


def is_number(op: Op) -> bool:
    """Whether it computes numbers or pointers, and nothing else."""
    return definition_of(op) in _NUMBERS


def may_stand_inside(op: Op) -> bool:
    """Whether a scope may hold an operation, whatever is in its regions."""
    if is_vector(op) or is_number(op) or is_element(op) or is_terminator(op):
        return True
    return definition_of(op) in (*_LOOPS, CALL)


def lives_inside(type_: Type) -> bool:
    """Whether values of a type live in a scope: registers, masks, the state of streams."""
    is_state = isinstance(type_, OpaqueType) and type_.name == "align"
    is_vector = isinstance(type_, RegisterType | MaskType | LogicalType | LogicalMaskType)
    return is_vector or is_state


def inner_functions(module: Module) -> frozenset[str]:
    """The functions that are parts of scopes: those called there, and those handed registers."""
    found = {
        f.name for f in module.functions if any(map(lives_inside, (*f.input_types, *f.results)))
    }
    scopes = (op for op in module.walk() if definition_of(op) in micro.SCOPES)
    work = [op for scope in scopes for op in scope.regions[0].walk()]
    while work:
        op = work.pop()
        callee = op.attrs.get("callee") if CALL.matches(op) else None
        if isinstance(callee, SymbolAttr) and callee.name not in found:
            found.add(callee.name)
            function = module.function(callee.name)
            work += function.walk() if function is not None else ()
    return frozenset(found)


def _fits(op: Op) -> bool:
    """Whether a scope may hold an operation with all that is in it."""
    every = (op, *(each for region in op.regions for each in region.walk()))
    return all(may_stand_inside(o) and (not CALL.matches(o) or _has_vectors(o)) for o in every)


def _has_vectors(op: Op) -> bool:
    if CALL.matches(op):
        return any(lives_inside(v.type) for v in (*op.operands, *op.results))
    return is_vector(op) or any(is_vector(o) for region in op.regions for o in region.walk())


def runs(block: Block) -> Iterator[tuple[int, int]]:
    """The maximal runs of vector code of a block: the first operation, and behind the last."""
    first = last = -1
    for place, op in enumerate([*block.ops, None]):
        if op is not None and _fits(op) and not is_terminator(op):
            if _has_vectors(op):
                first = place if first < 0 else first
                last = place
            continue
        if first >= 0:
            yield first, last + 1
        first = last = -1


def open_scopes(module: Module) -> Module:
    """The program with a scope around every run of vector code that has none."""
    if not any(map(is_vector, module.walk())):
        return module
    inner = inner_functions(module)
    names = {f.name for f in module.functions if f.body and any(map(is_vector, _outside(f.body)))}
    if names <= inner:
        return module
    module = clone(module)
    for function in module.functions:
        if function.body is not None and function.name in names - inner:
            free = _made_of_numbers(function.body)
            _wrap(function.body)
            for op in function.walk():
                if definition_of(op) in micro.SCOPES:
                    _make_again(op.regions[0], free)
    return module


def _made_of_numbers(body: Block) -> dict[Value, Op]:
    """What vector code makes of numbers, and of what is made of them, with what makes it."""
    found: dict[Value, Op] = {}
    for op in _outside(body):
        definition = definition_of(op)
        record = None if definition is None else definition.micro
        if record is None or not record.is_inside or record.footprint or record.uses | record.sets:
            continue
        made = (v in found for v in op.operands if lives_inside(v.type))
        if "unit" not in record.parameters and all(made):
            found.update((result, op) for result in op.results)
    return found


def _make_again(scope: Block, free: Mapping[Value, Op]) -> None:
    """Put in front of a scope what it uses of others, where that is made of numbers."""
    own = {result for op in scope.walk() for result in op.results}
    asked = [v for op in scope.walk() for v in op.operands]
    wanted: set[Op] = set()
    while asked:
        value = asked.pop()
        if value in free and value not in own and free[value] not in wanted:
            wanted.add(free[value])
            asked += free[value].operands
    cloner = Cloner()
    made = [cloner.op(op) for op in dict.fromkeys(free.values()) if op in wanted]
    if made:
        for op in scope.walk():
            op.operands = [cloner.values.get(v, v) for v in op.operands]
        scope.ops[:0] = made


def _outside(block: Block) -> Iterator[Op]:
    """The operations of a block and its regions that stand in no scope."""
    for op in block.ops:
        yield op
        if definition_of(op) not in micro.SCOPES:
            for region in op.regions:
                yield from _outside(region)


def _wrap(block: Block) -> None:
    found: list[Op] = []
    at = 0
    for start, stop in list(runs(block)):
        found += block.ops[at:start]
        free, inside = divided(block.ops[start:stop])
        body = Block(ops=inside)
        found += [*free, Op(micro.SCOPE.name, regions=[body], location=inside[0].location)]
        at = stop
    block.ops = found + block.ops[at:]
    for op in block.ops:
        if definition_of(op) not in micro.SCOPES:
            for region in op.regions:
                _wrap(region)


def divided(ops: list[Op]) -> tuple[list[Op], list[Op]]:
    """Numbers that can be computed before a run, and the run without them."""
    bound: set[Value] = set()
    free: list[Op] = []
    inside: list[Op] = []
    for op in ops:
        if is_number(op) and bound.isdisjoint(op.operands):
            free.append(op)
        else:
            inside.append(op)
            bound.update(op.results)
    return free, inside
