"""What is known about convolution tiles before a program runs: sizes, addresses, parameters.

Operations are seen in program order. Of a tile that a loop, a branch or a call may change, which
line changed it last depends on the path taken: its sizes and parameters are left to the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from ptokit.base.convs import initial_parameters
from ptokit.base.dataclass import dataclass
from ptokit.base.tensors import ConvSpec
from ptokit.base.tiles import DYNAMIC
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects import definition_of
from ptokit.ir.dialects.conv import CHANGES, SET_SHAPE, field_of
from ptokit.ir.dialects.func import CALL
from ptokit.ir.flow import allocates
from ptokit.ir.types import ConvTileType
from ptokit.isa.facts import ConvFacts

Numbers = Mapping[Value, Any]


@dataclass
class KnownConvs:
    """The convolution tiles of one function; `see` is called in program order."""

    tiles: dict[Value, ConvFacts] = field(default_factory=dict[Value, ConvFacts])
    _same: dict[Value, Value] = field(default_factory=dict[Value, Value])
    _doubtful: set[Value] = field(default_factory=set[Value])

    def see(self, op: Op, numbers: Numbers) -> None:
        """Take an operation into account."""
        if op.insn is not None:
            for result, label in zip(op.results, op.result_labels, strict=True):
                self._returned(op, result, label)
        elif allocates(op):
            address = op.operand("addr")
            self._made(op.result, None if address is None else numbers.get(address))
        elif not self.tiles:
            return
        elif definition_of(op) in CHANGES:
            self._change(op, numbers)
        elif op.regions:
            self._doubt_changed_inside(op)
        elif CALL.matches(op):
            self._doubt(self._root(value) for value in op.operands)

    def facts(self, value: Value, spec: ConvSpec) -> ConvFacts:
        """The facts of an operand; a handle that may be several tiles has only its type."""
        return self.tiles.get(self._root(value)) or ConvFacts(spec)

    def _root(self, value: Value) -> Value:
        return self._same.get(value, value)

    def _made(self, value: Value, address: int | None) -> None:
        if isinstance(value.type, ConvTileType):
            spec = value.type.spec
            shape = spec.in_force((1,) * spec.dynamic)
            self.tiles[value] = ConvFacts(spec, shape, address, parameters=initial_parameters())

    def _returned(self, op: Op, result: Value, label: str) -> None:
        """A handle that an instruction returns: a new name of an operand, or a new tile."""
        alias = op.operand(label)
        if alias is None:
            self._made(result, None)
        elif isinstance(result.type, ConvTileType):
            root = self._same[result] = self._root(alias)
            if root in self.tiles:  # bound anew, to an address known only at run time
                self.tiles[root] = replace(self.tiles[root], address=None)

    def _change(self, op: Op, numbers: Numbers) -> None:
        tile = self._root(op.operands[0])
        facts = self.tiles.get(tile)
        if facts is None:  # a handle that may be any of the tiles
            self._doubt(list(self.tiles))
        elif tile not in self._doubtful:
            self.tiles[op.result if op.results else tile] = _changed(op, facts, numbers)

    def _doubt_changed_inside(self, op: Op) -> None:
        inside = [inner for region in op.regions for inner in region.walk()]
        made = {result for inner in inside for result in inner.results}
        for inner in inside:
            tile = self._root(inner.operands[0]) if definition_of(inner) in CHANGES else None
            if tile is not None and not inner.results and tile not in made:
                self._doubt([tile] if tile in self.tiles else list(self.tiles))

    def _doubt(self, tiles: Any) -> None:
        for tile in tiles:
            if tile in self.tiles:
                self._doubtful.add(tile)
                self.tiles[tile] = replace(self.tiles[tile], known_shape=(), parameters={})


def _changed(op: Op, facts: ConvFacts, numbers: Numbers) -> ConvFacts:
    """The facts after an operation, without the parameters whose new value is not known."""
    if SET_SHAPE.matches(op):
        sizes = iter([numbers.get(v) for v in op.group("sizes")])
        shape = tuple(next(sizes, None) if n == DYNAMIC else n for n in facts.spec.shape)
        return replace(facts, known_shape=shape)
    known, field = dict(facts.parameters), field_of(op)
    if field is not None:
        value, name = numbers.get(op.operands[1]), field.parameter.name
        if value is None or (field.index is not None and name not in known):
            known.pop(name, None)
        else:
            field.put(value, known)
    return replace(facts, parameters=known)
