"""Copying and comparing programs."""

from __future__ import annotations

from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.types import Type


class Cloner:
    """Copies operations; `values` maps old values to new ones and may be filled beforehand."""

    def __init__(self) -> None:
        self.values: dict[Value, Value] = {}

    def module(self, module: Module) -> Module:
        functions = [self.function(f) for f in module.functions]
        return Module(functions, dict(module.attrs), module.location, module.remarks, module.names)

    def function(self, function: Function) -> Function:
        body = self.block(function.body) if function.body else None
        return Function(
            function.name,
            body,
            function.results,
            dict(function.attrs),
            function.inputs,
            function.is_private,
            function.location,
            function.unit,
        )

    def block(self, block: Block) -> Block:
        made = Block()
        made.args = [self.value(a, made) for a in block.args]
        made.ops = [self.op(op) for op in block.ops]
        return made

    def op(self, op: Op) -> Op:
        made = Op(
            op.name,
            [self.values.get(v, v) for v in op.operands],
            op.labels,
            [],
            op.result_labels,
            dict(op.attrs),
            [self.block(r) for r in op.regions],
            op.location,
            op.insn,
        )
        made.results = [self.value(r, made) for r in op.results]
        return made

    def value(self, value: Value, owner: Op | Block, type_: Type | None = None) -> Value:
        """A new value in the place of an old one."""
        made = Value(value.name, type_ or value.type, owner, value.location)
        self.values[value] = made
        return made


def clone(module: Module) -> Module:
    """A copy that shares nothing that can change."""
    return Cloner().module(module)


def same_module(a: Module, b: Module) -> bool:
    """Whether two modules are the same program; names and locations do not count."""
    return (
        a.attrs == b.attrs
        and len(a.functions) == len(b.functions)
        and all(map(same_function, a.functions, b.functions))
    )


def same_function(a: Function, b: Function) -> bool:
    """Whether two functions are the same, up to names of values."""
    facts = [
        (f.name, f.results, f.attrs, f.input_types, f.is_private, f.body is None) for f in (a, b)
    ]
    if facts[0] != facts[1]:
        return False
    return a.body is None or b.body is None or _same_block(a.body, b.body, {})


def _same_block(a: Block, b: Block, pairs: dict[Value, Value]) -> bool:
    if len(a.args) != len(b.args) or len(a.ops) != len(b.ops):
        return False
    if not all(_pair(x, y, pairs) for x, y in zip(a.args, b.args, strict=True)):
        return False
    return all(_same_op(x, y, pairs) for x, y in zip(a.ops, b.ops, strict=True))


def _pair(a: Value, b: Value, pairs: dict[Value, Value]) -> bool:
    pairs[a] = b
    return a.type == b.type


def _same_op(a: Op, b: Op, pairs: dict[Value, Value]) -> bool:
    if (a.name, a.labels, a.result_labels, a.attrs, a.insn) != (
        *(b.name, b.labels, b.result_labels, b.attrs, b.insn),
    ):
        return False
    if [pairs.get(v, v) for v in a.operands] != b.operands or len(a.regions) != len(b.regions):
        return False
    if len(a.results) != len(b.results):
        return False
    if not all(_same_block(x, y, pairs) for x, y in zip(a.regions, b.regions, strict=True)):
        return False
    return all(_pair(x, y, pairs) for x, y in zip(a.results, b.results, strict=True))
