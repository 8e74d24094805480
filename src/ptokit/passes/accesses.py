"""What each operation touches: tiles and global memory, read or written, on which pipe.

Everything comes from the operand roles of the instruction table. A tile handle may reach an
operation under several names - carried by a loop, yielded by a branch, reshaped - so handles are
traced back to the allocations they may stand for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ptokit.ir.core import Block, Function, Op, Value
from ptokit.ir.fifos import OPENINGS, TRANSFERS
from ptokit.ir.instructions import run_time_operands, template_arguments
from ptokit.ir.types import BufferType
from ptokit.isa.facts import Ops, Unknown
from ptokit.isa.spec import Pipe
from ptokit.isa.targets import Target
from ptokit.passes.facts import Known
from ptokit.passes.fifo_accesses import Fifos


@dataclass(frozen=True)
class Access:
    """One operand of one operation."""

    root: Value  # the allocation, or the pointer parameter
    writes: bool
    reads: bool
    is_memory: bool  # global memory


@dataclass
class Accesses:
    """The accesses of one function, and what the tile handles in it stand for."""

    target: Target
    known: Known
    pipes: dict[Op, Pipe] = field(default_factory=dict[Op, Pipe])
    of: dict[Op, list[Access]] = field(default_factory=dict[Op, list[Access]])
    roots: dict[Value, frozenset[Value]] = field(default_factory=dict[Value, frozenset[Value]])
    fifos: Fifos = field(init=False)
    # Handles that only rename storage: destination of a reshape or subview -> (source, operation).
    renamed: dict[Value, tuple[Value, Op]] = field(default_factory=dict[Value, tuple[Value, Op]])

    def stands_for(self, value: Value) -> frozenset[Value]:
        """The allocations or pointers a handle may stand for."""
        found = self.roots.get(value)
        return found if found is not None else frozenset([value])


def accesses_of(function: Function, target: Target) -> Accesses:
    """Collect the accesses of every instruction."""
    result = Accesses(target, Known(target))
    result.fifos = Fifos(function, target, result.known)
    assert function.body is not None
    for _ in range(3):  # handles carried by loops reach a fixed point quickly
        before = dict(result.roots)
        _trace(function.body, result)
        if before == result.roots:
            break
    for op in function.walk():
        result.known.see(op)
        if op.insn is not None and not is_binding(op):
            result.pipes[op] = pipe_of(op, result.known)
            result.of[op] = list(_touched(op, result))
        elif op.name in OPENINGS:
            result.fifos.open(op)
        elif op.name in TRANSFERS:
            _transfer(op, result)
    return result


def _transfer(op: Op, result: Accesses) -> None:
    found = result.fifos.transfer(op)
    if found is None:
        return
    pipe, value, writes = found
    roots = result.stands_for(value)
    result.pipes[op] = pipe
    result.of[op] = [Access(root, writes, not writes, False) for root in roots]
    if writes:
        for root in roots:
            result.fifos.popped.setdefault(root, set()).add(op.operand("pipe_handle"))


def is_binding(op: Op) -> bool:
    """Whether the operation only gives a name or an address to storage."""
    return op.insn is not None and op.insn.family == "binding"


def pipe_of(op: Op, known: Known) -> Pipe:
    """The pipe an instruction runs on."""
    assert op.insn is not None
    if not callable(op.insn.pipe):
        return op.insn.pipe if op.insn.pipe is not None else Pipe.S
    values = run_time_operands(op)
    named = {o.name: known.facts(v) for o, v in zip(op.insn.operands, values, strict=True)}
    template = zip((a.name for a in op.insn.attrs), template_arguments(op), strict=True)
    attrs: dict[str, Any] = dict(template)
    try:
        return op.insn.pipe(Ops(named, attrs, known.target, "manual"))
    except Unknown:
        return Pipe.S


def _trace(block: Block, result: Accesses) -> None:
    for op in block.ops:
        _trace_op(op, result)
        for region in op.regions:
            _trace(region, result)
        _trace_results(op, result)


def _trace_op(op: Op, result: Accesses) -> None:
    if op.name in ("pto.make_tensor_view", "pto.partition_view", "pto.addptr") or op.name in (
        "pto.subset",
        "pto.bitcast",
    ):
        _join(result, op.result, op.operands[0])
    elif op.insn is not None and is_binding(op):
        for each in op.results:
            if isinstance(each.type, BufferType):
                _join(result, each, op.operands[0])
        destination = next((o for o in op.insn.operands if o.role == "out"), None)
        source = next((o for o in op.insn.operands if o.role == "in" and "tile" in o.kinds), None)
        if destination and source:
            dst, src = op.bound(destination.name), op.bound(source.name)
            if dst is not None and src is not None and _same_memory(dst, src):
                _join(result, dst, src)  # a handle may be bound again: it stands for all of them
                result.renamed[dst] = (src, op)
    elif op.name == "scf.for":
        body = op.regions[0]
        for init, arg in zip(op.group("inits"), body.args[1:], strict=True):
            _join(result, arg, init)
    elif op.name == "scf.while":
        for init, arg in zip(op.group("inits"), op.regions[0].args, strict=True):
            _join(result, arg, init)


def _same_memory(a: Value, b: Value) -> bool:
    """Whether one handle can rename the other: scales live apart from the tile they belong to."""
    if isinstance(a.type, BufferType) and isinstance(b.type, BufferType):
        return a.type.spec.loc == b.type.spec.loc
    return True


def _trace_results(op: Op, result: Accesses) -> None:
    """What a region yields is what the operation returns, and what the next iteration gets."""
    if not op.name.startswith("scf."):
        return
    for region in op.regions:
        last = region.ops[-1] if region.ops else None
        if last is None or last.name not in ("scf.yield", "scf.condition"):
            continue
        yielded = last.group("args")
        for value, each in zip(yielded, op.results, strict=False):
            _join(result, each, value)
        if op.name == "scf.for":
            for value, arg in zip(yielded, region.args[1:], strict=False):
                _join(result, arg, value)
    if op.name == "scf.while":
        before, after = op.regions
        for value, arg in zip(before.ops[-1].group("args"), after.args, strict=False):
            _join(result, arg, value)
        for value, arg in zip(after.ops[-1].group("args"), before.args, strict=False):
            _join(result, arg, value)


def _join(result: Accesses, name: Value, stands_for: Value) -> None:
    have = result.roots.get(name, frozenset())
    result.roots[name] = have | result.stands_for(stands_for)


def _touched(op: Op, result: Accesses) -> Iterator[Access]:
    assert op.insn is not None
    for declared, value in zip(op.insn.operands, run_time_operands(op), strict=True):
        if value is None or not set(declared.kinds) & {"tile", "conv", "global"}:
            continue
        if declared.is_handle:
            continue
        is_memory = not isinstance(value.type, BufferType)
        for root in result.stands_for(value):
            yield Access(root, declared.writes, declared.reads or declared.role == "tmp", is_memory)
