"""Tiles as values, before they get buffers: whose buffer a result may have, and which are kept.

What a round of a loop hands to the next stays in the buffer it was made in, and placement gives the
loop as many buffers as its rounds need (`passes/carried.py`). No number of them is enough for a
value that may be handed on for ever: such a value has to be copied.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from ptokit.base.diagnostics import fail
from ptokit.ir.core import Block, Function, Op, Value
from ptokit.ir.dialects.definition import Edge
from ptokit.ir.flow import is_loop, passes_on, renames
from ptokit.ir.types import BufferType


def is_tile(value: Value) -> bool:
    """Whether a value is a tile, or a handle of one."""
    return isinstance(value.type, BufferType)


# ---- results in the buffer of an operand ---------------------------------------------------------


def continued(function: Function) -> dict[Value, Value]:
    """The results that have to lie where an operand does, with the operand: a product adds to its
    accumulator. Nobody else may need that any more."""
    uses = _Uses(function)
    found: dict[Value, Value] = {}
    for op in function.walk():
        for declared in op.insn.operands if op.insn is not None else ():
            old = op.operand(declared.name)
            if old is None or declared.same_as not in op.result_labels:
                continue
            if not uses.is_last(old, op):
                raise fail(
                    "convert-level",
                    f"{op.name}: it changes %{old.name}, whose old contents are still needed",
                    fix="compute it anew where it is needed: accumulators are not copied",
                    site=op.location,
                )
            found[op.results[op.result_labels.index(declared.same_as)]] = old
    return found


class _Uses:
    """Where the values of a function are made and used."""

    def __init__(self, function: Function) -> None:
        self._users: dict[Value, list[Op]] = defaultdict(list)
        self._made_in: dict[Value, Block] = {}
        self._loops: dict[Block, Op] = {}
        assert function.body is not None
        self._look(function.body)

    def _look(self, block: Block) -> None:
        self._made_in |= dict.fromkeys(block.args, block)
        for op in block.ops:
            self._made_in |= dict.fromkeys(op.results, block)
            for value in op.operands:
                self._users[value].append(op)
            for region in op.regions:
                self._loops |= {region: op} if is_loop(op) else {}
                self._look(region)

    def is_last(self, value: Value, op: Op) -> bool:
        """Whether nobody asks for a value, under any name, once an operation has taken it."""
        block = self._made_in[value]
        if op not in block.ops or self._users[value].count(op) > 1:
            return False
        before = block.ops[: block.ops.index(op)]
        earlier = {id(each) for top in before for each in (top, *_inside(top))}
        others = [user for user in self._users[value] if user is not op]
        if any(id(user) not in earlier or _hands_on(user, value) for user in others):
            return False
        return value not in block.args or self._is_handed_over(value, block)

    def _is_handed_over(self, value: Value, block: Block) -> bool:
        """Whether only the rounds of a loop have what it hands to them: nobody else has what it
        starts with, nor what a round leaves to the next."""
        loop = self._loops.get(block)
        if loop is None or len(loop.regions) > 1:
            return False
        n = block.args.index(value) - 1
        left = block.ops[-1].group("args")[n]
        return self._users[left] == block.ops[-1:] and self.is_last(loop.group("inits")[n], loop)


def _hands_on(op: Op, value: Value) -> bool:
    """Whether an operation gives a value another name."""
    return any(edge.value is value for edge in (*passes_on(op), *renames(op)))


def _inside(op: Op) -> Iterator[Op]:
    return (inner for region in op.regions for inner in region.walk())


# ---- values that are kept ------------------------------------------------------------------------


def kept(loop: Op) -> list[int]:
    """The positions of the values that a loop may hand on for ever once a round has made them, and
    of those that they are handed on to."""
    entry, end = loop.regions[0], loop.regions[-1].ops[-1]
    args, left = entry.args[-len(end.group("args")) :], end.group("args")
    edges = [edge for edge in passes_on(loop) if not edge.is_next_round]
    edges += [edge for op in _inside(loop) for edge in (*passes_on(op), *renames(op))]
    named = {edge.name for edge in edges}
    made = [r for op in _inside(loop) for r in op.results if is_tile(r) and r not in named]
    tiles = [n for n, arg in enumerate(args) if is_tile(arg)]
    steps = {n: {m for m in tiles if left[m] in _reached([args[n]], edges)} for n in tiles}
    new = {m for m in tiles if left[m] in _reached(made, edges)}
    for _ in tiles:
        new |= {m for n in new for m in steps[n]}
    circles = {n for n in new if n in _closed(steps[n], steps)}
    return sorted(circles | _closed(circles, steps))


def _reached(values: Iterable[Value], edges: list[Edge]) -> set[Value]:
    """The names that values go on under, and their own."""
    found, work = set(values), list(values)
    while work:
        value = work.pop()
        more = {edge.name for edge in edges if edge.value is value} - found
        found |= more
        work += more
    return found


def _closed(positions: set[int], steps: dict[int, set[int]]) -> set[int]:
    found = set(positions)
    while more := {m for n in found for m in steps[n]} - found:
        found |= more
    return found
