"""Making operations from code instead of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptokit.base.location import Location
from ptokit.ir.attributes import Attribute, BoolAttr, FloatAttr, IntAttr
from ptokit.ir.core import NOWHERE, Block, Op, Value
from ptokit.ir.dialects import DEFINITIONS
from ptokit.ir.instructions import forms_called, operands_in
from ptokit.ir.types import I1, INDEX, ScalarType, Type
from ptokit.isa.spec import Insn

Operands = Mapping[str, Value | Sequence[Value] | None]


class Builder:
    """Appends operations to a block; every one gets the location in force."""

    def __init__(self, block: Block | None = None, location: Location = NOWHERE) -> None:
        self.block = block if block is not None else Block()
        self.location = location

    def op(
        self,
        name: str,
        operands: Operands | None = None,
        results: Sequence[Type] = (),
        attrs: Mapping[str, Attribute] | None = None,
        *,
        names: Sequence[str] = (),
        regions: Sequence[Block] = (),
    ) -> Op:
        """Append an operation; operands are given by label."""
        definition = DEFINITIONS[name]
        values, labels = _flatten(operands or {})
        made = self._results(results, names)
        op = Op(
            name,
            values,
            labels,
            made,
            definition.result_labels(len(made)),
            dict(attrs or {}),
            list(regions),
            self.location,
            definition.insn,
        )
        return self._append(op)

    def instruction(
        self,
        insn: Insn,
        operands: Operands,
        results: Mapping[str, Type] | None = None,
        attrs: Mapping[str, Attribute] | None = None,
        *,
        names: Sequence[str] = (),
    ) -> Op:
        """Append an instruction; destinations are operands, or results with these types."""
        values, labels = _flatten(operands)
        made = self._results(list((results or {}).values()), names)
        op = Op(
            f"pto.{mnemonic(insn, {*labels, *(results or {})})}",
            values,
            labels,
            made,
            tuple(results or {}),
            dict(attrs or {}),
            [],
            self.location,
            insn,
        )
        return self._append(op)

    def constant(self, value: float, type_: Type = INDEX, name: str = "") -> Value:
        """Append a constant."""
        attr: Attribute
        if type_ == I1:
            attr = BoolAttr(bool(value))
        elif isinstance(type_, ScalarType) and type_.is_float:
            attr = FloatAttr(float(value), type_)
        else:
            attr = IntAttr(int(value), type_)
        wish = name or (f"c{value}" if isinstance(value, int) and value >= 0 else "cst")
        return self.op("arith.constant", {}, [type_], {"value": attr}, names=[wish]).result

    def _results(self, types: Sequence[Type], names: Sequence[str]) -> list[Value]:
        wishes = [*names, *(str(n) for n in range(len(types)))]
        return [Value(w, t, None, self.location) for w, t in zip(wishes, types, strict=False)]

    def _append(self, op: Op) -> Op:
        for result in op.results:
            result.owner = op
        self.block.ops.append(op)
        return op


def _flatten(operands: Operands) -> tuple[list[Value], tuple[str, ...]]:
    values: list[Value] = []
    labels: list[str] = []
    for label, given in operands.items():
        listed = [] if given is None else [given] if isinstance(given, Value) else list(given)
        values += listed
        labels += [label] * len(listed)
    return values, tuple(labels)


def mnemonic(insn: Insn, present: set[str]) -> str:
    """The mnemonic of an instruction with these operands."""
    syntax = insn.asm.syntax if insn.asm is not None else {}
    if syntax:
        return next(name for name, line in syntax.items() if present <= {*operands_in(line)})
    name = insn.mnemonic(present)
    assert forms_called(name), name
    return name
