"""Tiles that are made in a loop and still in use in later rounds.

Every round makes a new tile; one address for all of them would let a round overwrite what the last
one handed on. A tile that is needed n rounds later gets n + 1 buffers before the loop, which the
rounds take in turn. One that may be kept for ever has no such number: it is refused.
"""

from __future__ import annotations

from ptokit.base.diagnostics import Note, PtoError, fail
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.dialects.definition import Edge
from ptokit.ir.flow import allocates, is_loop, is_terminator, passes_on, renames
from ptokit.ir.types import TileBufType


def rotate_carried(body: Block) -> None:
    """Give every such tile of a function its buffers."""
    _rotate_in(body, {value for op in body.walk() for value in op.operands})


def _rotate_in(block: Block, mentioned: set[Value]) -> None:
    """The tiles of a block, those of inner loops first; `mentioned` are all operands."""
    for op in list(block.ops):
        for region in op.regions:
            _rotate_in(region, mentioned)
        if not is_loop(op) or not any(passes_on(op)):
            continue
        for alloc in [each for region in op.regions for each in region.walk()]:
            if allocates(alloc) and alloc.operand("addr") is None:
                rounds = _rounds_kept(alloc, op, mentioned)
                if rounds:
                    _rotate(alloc, op, block, rounds + 1)


def _rounds_kept(alloc: Op, loop: Op, mentioned: set[Value]) -> int:
    """How many rounds after its own a tile may still be used, there or behind the loop."""
    inside = [op for region in loop.regions for op in region.walk()]
    own = list(passes_on(loop))
    edges = own + [edge for op in inside for edge in (*passes_on(op), *renames(op))]
    if any(edge.name is alloc.result for edge in edges):
        return 0  # a name for the memory of another tile
    reached = {alloc.result: 0}  # names it may have, and how many rounds later at most
    used = _used(inside, edges, {result for result in loop.results if result in mentioned})
    work = [alloc.result]
    while work:
        value = work.pop()
        for edge in edges:
            if edge.value is value and edge.name in used:
                later = reached[value] + (edge.is_next_round and edge in own)
                if later > len(own):  # more rounds than there are names: it went in a circle
                    raise _refusal(alloc, loop, "is kept for any number of rounds")
                if later > reached.get(edge.name, -1):
                    reached[edge.name] = later
                    work.append(edge.name)
    return max(reached.values())


def _used(inside: list[Op], edges: list[Edge], behind: set[Value]) -> set[Value]:
    """Values that an operation looks at, under whatever name, inside a loop or `behind` it."""
    lookers = (op for op in inside if not is_terminator(op) and not any(passes_on(op)))
    used = behind | {value for op in lookers for value in op.operands}
    while more := {edge.value for edge in edges if edge.name in used} - used:
        used |= more
    return used


def _rotate(alloc: Op, loop: Op, outside: Block, count: int) -> None:
    """Make `count` buffers before a loop; each round has the first, and moves it to the end."""
    type_ = alloc.result.type
    if not isinstance(type_, TileBufType) or alloc.operands:
        raise _refusal(alloc, loop, "has sizes or parameters of its own in every round")
    here, name = alloc.location, alloc.result.name
    made = [Op(alloc.name, attrs=dict(alloc.attrs), location=here) for _ in range(count)]
    for op in made:
        op.results, op.result_labels = [Value(name, type_, op, here)], alloc.result_labels
    index = outside.ops.index(loop)
    outside.ops[index:index] = made
    loop.operands += [op.result for op in made]
    loop.labels += ("inits",) * count
    loop.results += [Value(name, type_, loop, here) for _ in made]
    loop.result_labels += ("results",) * count
    for region in loop.regions:
        args = [Value(name, type_, region, here) for _ in made]
        region.args += args
        for op in region.walk():
            op.operands = [args[0] if v is alloc.result else v for v in op.operands]
        is_last = region is loop.regions[-1]
        end = region.ops[-1]
        end.operands += [*args[1:], args[0]] if is_last else args
        end.labels += ("args",) * count
    for region in loop.regions:
        for block in (region, *(r for op in region.walk() for r in op.regions)):
            block.ops = [op for op in block.ops if op is not alloc]


def _refusal(alloc: Op, loop: Op, why: str) -> PtoError:
    return fail(
        "place.carried",
        f"a tile that is made in a loop {why}",
        got=[("tile", alloc.result.type)],
        fix="make the tiles before the loop, and move what has to be kept: TMOV(kept, tile)",
        site=alloc.location,
        notes=[Note("the loop", loop.location)],
    )
