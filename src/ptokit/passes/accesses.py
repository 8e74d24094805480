"""What each operation touches: tiles and global memory, read or written, on which pipe.

Everything comes from the operand roles of the instruction table. A tile handle may reach an
operation under several names - carried by a loop, yielded by a branch, reshaped - so handles are
traced back to the allocations they may stand for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from ptokit.base.dataclass import dataclass
from ptokit.ir.core import Function, Op, Value
from ptokit.ir.dialects.memory import GET_TILE, SUBSET, SUBVIEW
from ptokit.ir.fifos import fifo_of, is_transfer, opens_pipe
from ptokit.ir.flow import allocates, origins, passes_on, rebound, renames
from ptokit.ir.instructions import run_time_operands, template_arguments
from ptokit.ir.ordering import orders_pipes
from ptokit.ir.types import BufferType, MultiTileType, ScalarType, TileBufType
from ptokit.isa.effects import Scratch, Steps
from ptokit.isa.facts import Ops, TileFacts, Unknown
from ptokit.isa.regions import View
from ptokit.isa.spec import Operand, Pipe
from ptokit.isa.targets import Target
from ptokit.passes.facts import Known
from ptokit.passes.fifo_accesses import Fifos
from ptokit.passes.turns import Turn, turn_of, varying

# Kinds of operands with memory behind them; a session stands for its scratch tile.
_HAS_MEMORY = {"tile", "conv", "global", "async_session"}


@dataclass(frozen=True)
class Access:
    """One operand of one operation."""

    root: Value  # the allocation, or the pointer parameter
    writes: bool
    reads: bool
    is_memory: bool  # global memory
    declared: Operand | None = None  # which may be an address in another memory
    slot: int | Turn | None = None  # of several tiles that were allocated together
    stretch: int = 0  # bytes from the beginning, if it is exactly these, and one piece
    is_idle: bool = False  # scratch that the target asks for and does not touch
    part: tuple[int, int] | None = None  # the bytes of a window, from and to, where they are known


@dataclass
class Accesses:
    """The accesses of one function, and what the tile handles in it stand for."""

    target: Target
    known: Known
    pipes: dict[Op, Pipe] = field(default_factory=dict[Op, Pipe])
    of: dict[Op, list[Access]] = field(default_factory=dict[Op, list[Access]])
    roots: dict[Value, tuple[Value, ...]] = field(default_factory=dict[Value, tuple[Value, ...]])
    arrays: tuple[Value, ...] = ()  # the pointers and views that the function is given
    fifos: Fifos = field(init=False)
    hidden: set[Scratch] = field(default_factory=set[Scratch])  # bytes used beside the operands
    # Handles that only rename storage: destination of a reshape or subview -> (source, operation).
    renamed: dict[Value, tuple[Value, Op]] = field(default_factory=dict[Value, tuple[Value, Op]])

    varying: set[Value] = field(default_factory=set[Value])  # from round to round of a loop

    def memory_behind(self, value: Value) -> tuple[Value, ...]:
        """As `stands_for`; a number of unknown origin may be an address in any array."""
        roots = self.stands_for(value)
        return (
            (*roots, *self.arrays) if any(isinstance(r.type, ScalarType) for r in roots) else roots
        )

    def stands_for(self, value: Value) -> tuple[Value, ...]:
        """The allocations or pointers a handle may stand for."""
        return self.roots.get(value, (value,))


def accesses_of(function: Function, target: Target) -> Accesses:
    """Collect the accesses of every instruction."""
    result = Accesses(target, Known(target))
    result.arrays = tuple(p for p in function.params if not isinstance(p.type, ScalarType))
    result.fifos = Fifos(function, target, result.known)
    for op in function.walk():
        if is_binding(op) and (bound := rebound(op)) is not None:
            result.renamed[bound.name] = (bound.value, op)
    handles = (edge for op in function.walk() for edge in (*passes_on(op), *renames(op)))
    result.roots = origins(handles)
    result.varying = varying(function)
    for op in function.walk():
        result.known.see(op)
        if opens_pipe(op):
            result.fifos.open(op)
        elif is_transfer(op):
            _transfer(op, result)
        elif op.insn is not None and not is_binding(op) and not orders_pipes(op):
            result.pipes[op] = pipe_of(op, result.known)
            result.hidden |= set(hidden_scratch(op, result.known))
            result.of[op] = list(_touched(op, result))
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
            result.fifos.popped.setdefault(root, set()).add(fifo_of(op))


def is_binding(op: Op) -> bool:
    """Whether the operation only gives a name or an address to storage."""
    return op.insn is not None and bool(op.insn.binds)


def facts_of(op: Op, known: Known) -> Ops:
    """What is known about the operands of an instruction."""
    assert op.insn is not None
    names = (operand.name for operand in op.insn.operands)
    named = dict(zip(names, known.operands(op), strict=True))
    template = zip((a.name for a in op.insn.attrs), template_arguments(op), strict=True)
    return Ops(named, dict(template), known.target, "manual")


def hidden_scratch(op: Op, known: Known) -> Iterator[Scratch]:
    """What an instruction may overwrite beside its operands."""
    insn = op.insn
    if insn is None or not any(case.scratch for case in insn.steps):
        return
    try:
        cases = [insn.case(facts_of(op, known))]
    except Unknown:
        cases = [case for case in insn.steps if known.target.name in case.on]
    yield from (case.scratch for case in cases if case is not None and case.scratch is not None)


def pipe_of(op: Op, known: Known) -> Pipe:
    """The pipe an instruction runs on."""
    assert op.insn is not None
    if not callable(op.insn.pipe):
        return op.insn.pipe if op.insn.pipe is not None else Pipe.S
    try:
        return op.insn.pipe(facts_of(op, known))
    except Unknown:
        return Pipe.S


def steps_in(op: Op, known: Known) -> Steps | None:
    """How an instruction orders its own steps, as far as that is known."""
    if op.insn is None or not op.insn.steps:
        return None
    try:
        return op.insn.case(facts_of(op, known))
    except Unknown:
        return None


def registers_of(op: Op, known: Known) -> frozenset[str]:
    """The configuration registers an instruction depends on, as far as that is known."""
    assert op.insn is not None
    if op.insn.uses_when is None:
        return op.insn.uses
    try:
        return op.insn.registers(facts_of(op, known))
    except Unknown:
        return op.insn.uses


def _touched(op: Op, result: Accesses) -> Iterator[Access]:
    assert op.insn is not None
    pairs = list(zip(op.insn.operands, run_time_operands(op), strict=True))
    has_scratch = any(declared.role == "tmp" and value is not None for declared, value in pairs)
    for declared, value in pairs:
        if value is None or not set(declared.kinds) & _HAS_MEMORY:
            continue
        if declared.is_handle:
            continue
        is_idle = _is_idle(declared, op, result.known)
        reads = declared.reads or declared.role == "tmp"
        writes = declared.writes or _is_destroyed(declared, op, result.known)
        slot, part = _slot(value, result), _part(value, result.known)
        for root in result.memory_behind(value):
            is_memory = not isinstance(root.type, BufferType)
            stretch = 0 if has_scratch else _stretch(op, value, declared, result.known)
            yield Access(root, writes, reads, is_memory, declared, slot, stretch, is_idle, part)


def _stretch(op: Op, value: Value, declared: Operand, known: Known) -> int:
    """The bytes of a region that begins where its allocation does, and has no gaps."""
    facts, made = known.facts(value), value.owner
    if not isinstance(facts, TileFacts) or not isinstance(made, Op) or not allocates(made):
        return 0
    try:
        view = declared.view(facts_of(op, known)) if callable(declared.view) else declared.view
        match (facts.vr, facts.vc) if view is View.VALID else view:
            case (int(rows), int(cols)) if rows == 1 or cols == facts.spec.cols:
                return rows * cols * facts.spec.itemsize if facts.spec.layout == "ND" else 0
            case _:
                return 0
    except Unknown:
        return 0


def _is_idle(declared: Operand, op: Op, known: Known) -> bool:
    """Whether an operand is scratch that this target only asks for."""
    is_asked_for = declared.role == "tmp" and declared.lost is not None
    return is_asked_for and not _is_destroyed(declared, op, known)


def _is_destroyed(declared: Operand, op: Op, known: Known) -> bool:
    """Whether an instruction overwrites what it may only read, or a part, as far as is known."""
    asked = [a for a in (declared.lost, declared.unspecified, declared.zeroed) if a is not None]
    try:
        return any(each(facts_of(op, known)) for each in asked)
    except Unknown:
        return True


def _part(value: Value, known: Known) -> tuple[int, int] | None:
    """The bytes of a window of a placed tile, if it is a tile of its own shape: without gaps."""
    made, kind = value.owner, value.type
    if not isinstance(made, Op) or not (SUBVIEW.matches(made) or SUBSET.matches(made)):
        return None
    facts = known.facts(value)
    if not isinstance(facts, TileFacts) or not isinstance(kind, TileBufType):
        return None
    is_own = (facts.spec.rows, facts.spec.cols) == (kind.spec.rows, kind.spec.cols)
    if facts.address is None or not is_own:
        return None
    return facts.address, facts.address + facts.spec.nbytes


def _slot(value: Value, result: Accesses) -> int | Turn | None:
    """Which of several tiles a handle is: a number, or what it is computed from."""
    made = value.owner
    if not isinstance(made, Op) or not GET_TILE.matches(made):
        return None
    tiles, slot = made.operands
    assert isinstance(tiles.type, MultiTileType)
    number = result.known.number(slot)
    return (
        turn_of(slot, tiles.type.count, result.known, result.varying) if number is None else number
    )
