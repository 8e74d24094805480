"""Parameters of convolution tiles between Level 2, where they change a buffer, and Level 1.

A tile that is a value has the parameters it was given: an operation returns it with a new one. Each
write makes a new value, so what has been said of the buffer until then is said of it again.
"""

from __future__ import annotations

from ptokit.base.diagnostics import PtoError, fail
from ptokit.ir.attributes import Attribute
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.dialects import definition_of
from ptokit.ir.dialects.conv import CHANGES, SET_PARAM


class Said:
    """What has been set on each buffer so far, on the way to Level 1."""

    def __init__(self) -> None:
        self._of: dict[Value, dict[Attribute, Value]] = {}  # the value of each field

    def set(self, op: Op, tile: Value | None) -> list[Op]:
        """Note a change; what says it of the latest value, if there is one."""
        field, value = op.attrs["field"], op.operands[1]
        self._of.setdefault(op.operands[0], {})[field] = value
        return [] if tile is None else [_param(tile, field, value, op)]

    def again(self, buffer: Value, tile: Value, writer: Op) -> list[Op]:
        """What gives a new value the parameters of its buffer."""
        made: list[Op] = []
        for field, value in self._of.get(buffer, {}).items():
            made.append(_param(made[-1].result if made else tile, field, value, writer))
        return made


def _param(tile: Value, field: Attribute, value: Value, near: Op) -> Op:
    made = Op(SET_PARAM.name, [tile, value], ("tile", "value"), [], ("result",), {"field": field})
    made.location = near.location
    made.results = [Value(tile.name, tile.type, made, near.location)]
    return made


def refuse_inside(op: Op) -> None:
    """Inside a loop or branch, which parameters a tile has depends on the path taken."""
    made = {r for region in op.regions for inner in region.walk() for r in inner.results}
    for region in op.regions:
        for inner in region.walk():
            if definition_of(inner) in CHANGES and inner.operands[0] not in made:
                raise _refusal(inner, "parameters set inside a loop or branch have no Level 1 form")


def check_unshared(op: Op, block: Block, made: set[Value]) -> None:
    """Into Level 2: the buffer itself changes, so nobody may still ask for the old parameters.

    `made` are the values of the block; a tile from outside may be asked again by the next round.
    """
    before = op.operands[0]
    later = block.ops[block.ops.index(op) + 1 :]
    inside = [each for top in later for region in top.regions for each in region.walk()]
    if before not in made or any(before in each.operands for each in (*later, *inside)):
        raise _refusal(op, f"%{before.name} is used with its old parameters as well")


def _refusal(op: Op, why: str) -> PtoError:
    return fail("convert-level", f"{op.name}: {why}", site=op.location)
