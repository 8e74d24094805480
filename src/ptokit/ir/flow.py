"""Names that stand for one thing: how handles travel through regions and views.

Loops carry values from round to round, branches yield them, views give memory a new name. Which
operation does what is said by its record; everybody who follows a handle asks here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptokit.ir.core import Op, Value
from ptokit.ir.dialects import definition_of
from ptokit.ir.dialects.definition import Edge
from ptokit.ir.types import BufferType


def is_loop(op: Op) -> bool:
    """Whether the regions of an operation run any number of times."""
    definition = definition_of(op)
    return definition is not None and definition.is_loop


def allocates(op: Op) -> bool:
    """Whether an operation makes a tile that needs a place."""
    definition = definition_of(op)
    return definition is not None and definition.allocates


def core_of(op: Op) -> str:
    """The kind of core to which an operation, with all its regions, belongs; empty: to any."""
    definition = definition_of(op)
    return definition.core if definition is not None else ""


def is_terminator(op: Op) -> bool:
    """Whether an operation ends its region, handing values on."""
    definition = definition_of(op)
    return definition is not None and definition.is_terminator


def passes_on(op: Op) -> Iterator[Edge]:
    """How an operation hands values into its regions, from round to round, and out of them."""
    definition = definition_of(op)
    if definition is not None and definition.flow is not None:
        yield from definition.flow(op)


def renames(op: Op) -> Iterator[Edge]:
    """The handles to which an operation gives the memory of another one."""
    definition = definition_of(op)
    if definition is not None and definition.renames:
        source = op.operand(definition.renames)
        assert source is not None
        yield Edge(source, op.result)
    elif op.insn is not None and op.insn.binds:
        for result in op.results:
            if isinstance(result.type, BufferType):
                yield Edge(op.operands[0], result)
        bound = rebound(op)
        if bound is not None:
            yield bound


def rebound(op: Op) -> Edge | None:
    """The tile that an instruction lays over the memory of another one."""
    assert op.insn is not None
    if not op.insn.renames:
        return None
    dst, src = op.bound(op.insn.binds), op.bound(op.insn.renames)
    return None if dst is None or src is None else Edge(src, dst)


def origins(edges: Iterable[Edge]) -> dict[Value, tuple[Value, ...]]:
    """For every name, the values without another name that it may stand for."""
    names: dict[Value, list[Value]] = {}
    renamed: set[Value] = set()
    for edge in edges:
        names.setdefault(edge.value, []).append(edge.name)
        renamed.add(edge.name)
    found: dict[Value, tuple[Value, ...]] = {}
    for root in names:
        if root in renamed:
            continue
        reached: set[Value] = set()
        work = list(names[root])
        while work:
            name = work.pop()
            if name not in reached:
                reached.add(name)
                found[name] = (*found.get(name, ()), root)
                work += names.get(name, [])
    return found
