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
        names: _Names | None = None
        for alloc in [each for region in op.regions for each in region.walk()]:
            if allocates(alloc) and alloc.operand("addr") is None:
                names = names or _Names(op, mentioned)
                rounds = names.rounds_kept(alloc)
                if rounds:
                    _rotate(alloc, op, block, rounds + 1)
                    names = None  # the loop hands on more than before


class _Names:
    """Under which names the tiles of a loop go on, in the same round and in later ones."""

    def __init__(self, loop: Op, mentioned: set[Value]) -> None:
        self._loop = loop
        inside = [op for region in loop.regions for op in region.walk()]
        self._own = set(passes_on(loop))
        others = (edge for op in inside for edge in (*passes_on(op), *renames(op)))
        edges = list(dict.fromkeys((*passes_on(loop), *others)))
        self._of: dict[Value, list[Edge]] = {}
        self._for: dict[Value, list[Value]] = {}  # a name, and what it may stand for
        for edge in edges:
            self._of.setdefault(edge.value, []).append(edge)
            self._for.setdefault(edge.name, []).append(edge.value)
        self._used = self._looked_at(inside, {r for r in loop.results if r in mentioned})

    def rounds_kept(self, alloc: Op) -> int:
        """How many rounds after its own a tile may still be used, there or after the loop."""
        if alloc.result in self._for:
            return 0  # a name for the memory of another tile
        reached = {alloc.result: 0}  # names it may have, and how many rounds later at most
        work = [alloc.result]
        while work:
            value = work.pop()
            for edge in self._of.get(value, ()):
                if edge.name not in self._used:
                    continue
                later = reached[value] + (edge.is_next_round and edge in self._own)
                if later > len(self._own):  # more rounds than there are names: it goes in a circle
                    raise _refusal(alloc, self._loop, "is kept for any number of rounds")
                if later > reached.get(edge.name, -1):
                    reached[edge.name] = later
                    work.append(edge.name)
        return max(reached.values())

    def _looked_at(self, inside: list[Op], behind: set[Value]) -> set[Value]:
        """What an operation looks at, under whatever name, inside a loop or `behind` it."""
        lookers = (op for op in inside if not is_terminator(op) and not any(passes_on(op)))
        used = behind | {value for op in lookers for value in op.operands}
        work = list(used)
        while work:
            more = [value for value in self._for.get(work.pop(), ()) if value not in used]
            used.update(more)
            work += more
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
