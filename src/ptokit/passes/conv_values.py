"""Parameters of convolution tiles between Level 2, where they change a buffer, and Level 1.

A tile that is a value has the parameters it was given: an operation returns it with new ones. Each
write makes a new value, so what has been said of the buffer until then is said of it again.
"""

from __future__ import annotations

from ptokit.base.convs import ConvField
from ptokit.base.diagnostics import PtoError, fail
from ptokit.ir.attributes import Attribute
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.dialects import definition_of
from ptokit.ir.dialects.conv import CHANGES, SET_PARAMS, given_fields


class Said:
    """What has been set on each buffer so far, on the way to Level 1."""

    def __init__(self) -> None:
        self._of: dict[Value, dict[ConvField, Attribute | Value]] = {}

    def set(self, op: Op, value: Value | None) -> Op | None:
        """Note a change; the operation that says it of the latest value, if there is one."""
        new = given_fields(op)
        self._of.setdefault(op.operands[0], {}).update(new)
        return None if value is None else _params(value, new, op)

    def again(self, buffer: Value, value: Value, writer: Op) -> Op | None:
        """The operation that gives a new value the parameters of its buffer."""
        said = self._of.get(buffer)
        return _params(value, said, writer) if said else None


def _params(value: Value, said: dict[ConvField, Attribute | Value], near: Op) -> Op:
    operands = {f.name: given for f, given in said.items() if isinstance(given, Value)}
    attrs = {f.name: given for f, given in said.items() if not isinstance(given, Value)}
    labels = ("tile", *operands)
    made = Op(SET_PARAMS.name, [value, *operands.values()], labels, [], ("result",), attrs)
    made.location = near.location
    made.results = [Value(value.name, value.type, made, near.location)]
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
    used = any(before in each.operands for top in later for each in (top, *_inside(top)))
    if used or before not in made:
        raise _refusal(op, f"%{before.name} is used with its old parameters as well")


def _inside(op: Op) -> list[Op]:
    return [inner for region in op.regions for inner in region.walk()]


def _refusal(op: Op, why: str) -> PtoError:
    return fail("convert-level", f"{op.name}: {why}", site=op.location)
