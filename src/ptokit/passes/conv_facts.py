"""What is known about convolution tiles before a program runs: sizes, addresses, parameters.

Operations are seen in program order. A parameter that a loop or branch sets has no certain value
inside it or behind it, because which line set it last depends on the path taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ptokit.base.tensors import CONV_PARAMETERS, ConvSpec
from ptokit.base.tiles import DYNAMIC
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects.conv import FIELDS, SET_PARAMS, SET_SHAPE, given_fields, updated, value_of
from ptokit.ir.types import ConvTileType
from ptokit.isa.facts import ConvFacts

Number = Callable[[Value | None], int | None]
_SHAPE = "shape"


@dataclass
class KnownConvs:
    """The convolution tiles of one function; `see` is called in program order."""

    tiles: dict[Value, ConvFacts] = field(default_factory=dict[Value, ConvFacts])
    _same: dict[Value, Value] = field(default_factory=dict[Value, Value])
    # What depends on the path taken: a parameter, or the shape, of a tile.
    _open: set[tuple[Value, str]] = field(default_factory=set[tuple[Value, str]])

    def see(self, op: Op, number: Number) -> None:
        """Take an operation into account."""
        if op.insn is not None:
            for result, label in zip(op.results, op.result_labels, strict=True):
                self._returned(op, result, label)
        elif op.name == "pto.alloc_tile":
            if isinstance(op.result.type, ConvTileType):
                self._made(op.result, op.result.type.spec, number(op.operand("addr")))
        elif not self.tiles:
            return
        elif op.name in (SET_PARAMS, SET_SHAPE):
            self._change(op, number)
        elif op.regions or op.name == "func.call":
            self._doubt(op)

    def facts(self, value: Value, spec: ConvSpec) -> ConvFacts:
        """The facts of an operand; a handle that may be several tiles has only its type."""
        return self.tiles.get(self._same.get(value, value)) or ConvFacts(spec)

    def _made(self, value: Value, spec: ConvSpec, address: int | None) -> None:
        shape = tuple(1 if n == DYNAMIC else n for n in spec.shape)
        first = {name: initial for name, (initial, _) in CONV_PARAMETERS.items()}
        self.tiles[value] = ConvFacts(spec, shape, address, parameters=first)

    def _returned(self, op: Op, result: Value, label: str) -> None:
        """A handle that an instruction returns: a new name of an operand, or a new tile."""
        if not isinstance(result.type, ConvTileType):
            return
        alias = op.operand(label)
        if alias is None:
            self._made(result, result.type.spec, None)
            return
        root = self._same[result] = self._same.get(alias, alias)
        if root in self.tiles:  # bound anew, to an address known only at run time
            self.tiles[root] = replace(self.tiles[root], address=None)

    def _change(self, op: Op, number: Number) -> None:
        tile = self._same.get(op.operands[0], op.operands[0])
        facts = self.tiles.get(tile)
        if facts is None:  # a handle that may be any of the tiles
            for each in self.tiles:
                self._forget(each, _touched(op))
            return
        if op.name == SET_SHAPE:
            sizes = [number(v) for v in op.group("sizes")]
            if len(sizes) == facts.spec.dynamic:
                given = iter(sizes)
                shape = tuple(next(given) if n == DYNAMIC else n for n in facts.spec.shape)
                facts = replace(facts, known_shape=shape)
        else:
            facts = replace(facts, parameters=_changed(op, facts, number))
        if op.results:
            self.tiles[op.result] = facts
            return
        self.tiles[tile] = facts
        self._forget(tile, [what for t, what in self._open if t is tile])

    def _doubt(self, op: Op) -> None:
        """A region or a call changes tiles made before it on some paths only."""
        for region in op.regions:
            for inner in region.walk():
                if inner.name in (SET_PARAMS, SET_SHAPE) and not inner.results:
                    tile = self._same.get(inner.operands[0], inner.operands[0])
                    each = [tile] if tile in self.tiles else list(self.tiles)
                    if _is_made_inside(tile, op):
                        continue
                    for one in each:
                        self._forget(one, _touched(inner))
        if op.name == "func.call":
            for value in op.operands:
                tile = self._same.get(value, value)
                if tile in self.tiles:
                    self._forget(tile, [_SHAPE, *CONV_PARAMETERS])

    def _forget(self, tile: Value, whats: list[str]) -> None:
        facts = self.tiles[tile]
        self._open |= {(tile, what) for what in whats}
        if _SHAPE in whats:
            facts = replace(facts, known_shape=())
        left = {k: v for k, v in facts.parameters.items() if k not in whats}
        self.tiles[tile] = replace(facts, parameters=left)


def _touched(op: Op) -> list[str]:
    if op.name == SET_SHAPE:
        return [_SHAPE]
    return list({FIELDS[name].parameter: None for name in given_fields(op)})


def _is_made_inside(value: Value, op: Op) -> bool:
    return any(value in inner.results for region in op.regions for inner in region.walk())


def _changed(op: Op, facts: ConvFacts, number: Number) -> dict[str, Any]:
    """The parameters after an operation, without those whose new value is not known."""
    known = dict(facts.parameters)
    lost: set[str] = set()
    for name, given in given_fields(op).items():
        field_ = FIELDS[name]
        value = number(given) if isinstance(given, Value) else value_of(given)
        if value is None or field_.parameter not in known:
            lost.add(field_.parameter)
            if value is not None and field_.index is None:  # not known before, known now
                known[field_.parameter] = value
                lost.discard(field_.parameter)
            continue
        known = updated(known, {name: value})
    return {k: v for k, v in known.items() if k not in lost}
