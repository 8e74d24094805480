"""From Level 2 to Level 1: buffers become values.

Each write of a buffer makes a new value, and reads use the latest one. Where which value is the
latest depends on the path taken - a buffer written inside a branch or loop and read outside, or
carried from one round of a loop to the next - there is no such value, and the conversion says so.
Neither is there one in a buffer whose bytes were written under another name since.
"""

from __future__ import annotations

from dataclasses import replace

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Note, PtoError, fail
from ptokit.ir.core import Block, Module, Op, Value
from ptokit.ir.dialects import definition_of
from ptokit.ir.dialects.conv import READS, SET_PARAM
from ptokit.ir.flow import allocates, is_loop, rebound
from ptokit.ir.instructions import form_of
from ptokit.ir.types import BufferType, MultiTileType, ShapedType
from ptokit.passes.conv_values import Said, refuse_inside


def to_level1(module: Module) -> Module:
    """Level 2 to Level 1, in place."""
    for function in module.functions:
        if function.body is not None:
            _Values().block(function.body, {})
    return module


@dataclass(frozen=True)
class _Lost:
    """A buffer whose contents are no value: they depend on the path taken, or on an alias."""

    writer: Op
    is_alias: bool = False


class _Values:
    def __init__(self) -> None:
        self._said = Said()
        self._aliases: dict[Value, set[Value]] = {}  # buffers over the same bytes

    def block(self, block: Block, latest: dict[Value, Value | _Lost | None]) -> None:
        """Rewrite a block; `latest` is the value in each buffer, None before the first write."""
        ops: list[Op] = []
        for op in block.ops:
            if allocates(op):
                self._check_alloc(op)
                latest[op.result] = None
                continue
            if SET_PARAM.matches(op) and op.operands[0] in latest:
                ops += self._parameters(op, latest)
                continue
            if op.insn is not None:
                is_alias = self._is_alias(op)
                written = self._instruction(op, latest)
                if not is_alias:
                    self._lose_aliases(op, written, latest)
                ops += [op, *self._said_again(op, written, latest)]
                continue
            self._other(op, latest)
            ops.append(op)
            if op.regions:
                refuse_inside(op)
                self._regions(op, latest)
        block.ops = ops

    def _parameters(self, op: Op, latest: dict[Value, Value | _Lost | None]) -> list[Op]:
        """Parameters of a convolution tile; before its first write they wait for it."""
        buffer = op.operands[0]
        value = None if latest[buffer] is None else self._read(op, buffer, latest)
        made = self._said.set(op, value)
        if made:
            latest[buffer] = made[-1].result
        return made

    def _said_again(
        self, op: Op, written: list[Value], latest: dict[Value, Value | _Lost | None]
    ) -> list[Op]:
        found: list[Op] = []
        for buffer in written:
            value = latest[buffer]
            assert isinstance(value, Value)
            made = self._said.again(buffer, value, op)
            if made:
                latest[buffer] = made[-1].result
                found += made
        return found

    def _check_alloc(self, op: Op) -> None:
        if isinstance(op.result.type, MultiTileType):
            raise _refusal(op, "Level 1 has no run-time choice among tiles")
        if op.operands:
            what = op.labels[0]
            raise _refusal(op, f"Level 1 has no {what}")

    def _instruction(self, op: Op, latest: dict[Value, Value | _Lost | None]) -> list[Value]:
        """Make a value of each destination; returns the buffers they were."""
        insn = op.insn
        assert insn is not None
        operands: list[Value] = []
        labels: list[str] = []
        results: list[Value] = []
        made: list[str] = []
        written: list[Value] = []
        definition = definition_of(op)
        shown = form_of(op).outs if definition is None else ()
        results_of_text = {operand.name for operand in shown}
        for value, label in zip(op.operands, op.labels, strict=True):
            role = _role(op, label)
            if role == "out" and _is_list(value):
                raise _refusal(op, f"it counts into %{value.name}; values are results")
            if value not in latest or role == "in":
                operands.append(self._read(op, value, latest) if value in latest else value)
                labels.append(label)
            elif role == "tmp":  # Level 1 does not show them, where it has lines of its own
                if insn.asm is not None and insn.asm.syntax:
                    raise _refusal(op, f"data pass through %{value.name}; values are no storage")
            elif role == "inout":
                raise _refusal(op, f"it changes a part of %{value.name}; values change as a whole")
            elif label not in results_of_text:
                raise _refusal(op, f"it fills %{value.name}; values are results")
            else:
                type_ = value.type
                assert isinstance(type_, BufferType)
                fresh = Value(value.name, replace(type_, is_value=True), op, op.location)
                results.append(fresh)
                made.append(label)
                written.append(value)
                latest[value] = fresh
        op.operands, op.labels = operands, tuple(labels)
        op.results, op.result_labels = op.results + results, op.result_labels + tuple(made)
        return written

    def _lose_aliases(
        self, op: Op, written: list[Value], latest: dict[Value, Value | _Lost | None]
    ) -> None:
        """What is written under one name of some bytes, their other names lose."""
        for buffer in written:
            for other in self._aliases.get(buffer, set()) - {buffer}:
                latest[other] = _Lost(op, is_alias=True)

    def _is_alias(self, op: Op) -> bool:
        """Whether an instruction gives bytes another name; if so, take note of it."""
        shared = rebound(op)
        if shared is None:
            return False
        names = self._aliases.setdefault(shared.value, {shared.value})
        names.add(shared.name)
        self._aliases[shared.name] = names
        return True

    def _read(self, op: Op, buffer: Value, latest: dict[Value, Value | _Lost | None]) -> Value:
        found = latest[buffer]
        if isinstance(found, Value):
            return found
        if found is None:
            raise _refusal(op, f"%{buffer.name} is read before anything is written to it")
        if found.is_alias:
            why = f"the bytes of %{buffer.name} were written under another name"
            fix = "Level 1 has values, not storage: read the tile under the name it was written by"
        else:
            why = f"which value of %{buffer.name} is read depends on the path taken"
            fix = "Level 1 needs tiles that are written once per region"
        raise fail(
            "convert-level",
            f"{op.name}: {why}",
            fix=fix,
            site=op.location,
            notes=[Note("it is written here as well", found.writer.location)],
        )

    def _other(self, op: Op, latest: dict[Value, Value | _Lost | None]) -> None:
        if definition_of(op) in READS and op.operands[0] in latest:
            op.operands[0] = self._read(op, op.operands[0], latest)
            return
        for value in op.operands:
            if value in latest or (isinstance(value.type, BufferType)):
                raise _refusal(op, "operations on tile buffers have no Level 1 form")

    def _regions(self, op: Op, latest: dict[Value, Value | _Lost | None]) -> None:
        written = self._written(op)
        repeats = is_loop(op)
        for region in op.regions:
            inner = dict(latest)
            if repeats:
                inner |= {b: _Lost(w) for b, w in written.items() if b in latest}
            self.block(region, inner)
        latest.update({b: _Lost(w) for b, w in written.items() if b in latest})

    def _written(self, op: Op) -> dict[Value, Op]:
        """Buffers that operations inside write, under any name, with one that does."""
        found: dict[Value, Op] = {}
        for region in op.regions:
            for inner in region.walk():
                if inner.insn is None or self._is_alias(inner):
                    continue
                for value, label in zip(inner.operands, inner.labels, strict=True):
                    if _role(inner, label) in ("out", "inout"):
                        for name in self._aliases.get(value, {value}):
                            found.setdefault(name, inner)
        return found


def _is_list(value: Value) -> bool:
    """Whether it is a handful of numbers, which an operation fills in place."""
    return isinstance(value.type, ShapedType) and value.type.kind == "vector"


def _role(op: Op, label: str) -> str:
    """What an operation does with an operand; those its instruction does not list are numbers."""
    assert op.insn is not None
    return next((o.role for o in op.insn.operands if o.name == label), "in")


def _refusal(op: Op, why: str) -> PtoError:
    return fail("convert-level", f"{op.name}: {why}", site=op.location)
