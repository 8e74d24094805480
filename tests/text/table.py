"""Operations made from the records of the instruction table, for tests over all of it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from ptokit.base.dtypes import dtype
from ptokit.base.enums import TileType
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import TileSpec
from ptokit.ir.attributes import ENUMERATIONS, Attribute, EnumAttr, IntAttr
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Function, Module, Value
from ptokit.ir.dialects import DEFINITIONS
from ptokit.ir.instructions import (
    RETURNED,
    Form,
    attr_keys,
    attribute_for,
    attributes_in,
    declared_types,
    forms_by_mnemonic,
    text_key,
)
from ptokit.ir.types import (
    I32,
    INDEX,
    ConvTileType,
    OpaqueType,
    ScalarType,
    ShapedType,
    TileBufType,
    Type,
    ViewType,
)
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.asm import inputs, mnemonic, outputs
from ptokit.isa.groups import GroupSpec
from ptokit.isa.samples import Spec, sample
from ptokit.isa.spec import Operand
from ptokit.isa.targets import TARGETS, Target


def forms() -> list[Form]:
    """Every form of every instruction, once."""
    found: dict[tuple[str, str, tuple[str, ...]], Form] = {}
    for listed in forms_by_mnemonic().values():
        for form in listed:
            names = tuple(o.name for o in (*form.ins, *form.outs))
            found[form.insn.name, form.mnemonic, names] = form
    return list(found.values())


def documented(text: str) -> list[Form]:
    """The lines the pages document in one form of the text: "sync", "l1" or "l2"."""
    found: dict[tuple[str, str, tuple[str, ...]], Form] = {}
    for insn in INSTRUCTIONS.values():
        if insn.asm is None or insn.asm.syntax or text not in insn.asm.forms:
            continue
        needed = {o.name for o in insn.operands if not o.optional}
        for names in insn.forms:
            if not needed <= set(names):
                continue
            ins = tuple(o for o in inputs(insn, text) if o.name in names)
            outs = tuple(o for o in outputs(insn) if o.name in names and o not in ins)
            suffix = "".join(s for o, s in insn.asm.suffixes.items() if o in names)
            form = Form(insn, mnemonic(insn) + suffix, ins, outs)
            found[insn.name, form.mnemonic, tuple(o.name for o in (*ins, *outs))] = form
    return list(found.values())


def type_of(spec: Spec | None, operand: Operand, is_value: bool) -> Type | None:
    """The type with which the text writes an operand; None when it has none."""
    if isinstance(spec, TileSpec):
        return TileBufType(spec, is_value)
    if isinstance(spec, ConvSpec):
        return ConvTileType(spec, is_value)
    if isinstance(spec, GlobalSpec):
        return ViewType("partition_tensor_view", spec.shape, ScalarType(spec.dtype.mlir))
    if isinstance(spec, float):
        return ScalarType("f32")
    if isinstance(spec, int):
        return I32
    if isinstance(spec, GroupSpec) or operand.name == "parallelGroup":
        return ViewType("partition_tensor_view", (16, 64), ScalarType("f32"))
    if operand.is_object:  # those of other operations are handles, which no line of text makes
        made = {"fifo", "async_session", "prefetch_async_context"}.intersection(operand.kinds)
        return None if made else OpaqueType("pipe")
    if "tile" in operand.kinds:
        where = TileType[operand.space] if operand.space else TileType.Vec
        return TileBufType(TileSpec.of(where, dtype("f32"), 16, 64), is_value)
    if "scalar" in operand.kinds:
        return I32
    if "global" in operand.kinds:
        return ViewType("partition_tensor_view", (16, 64), ScalarType("f32"))
    return None


def overload_of(form: Form) -> tuple[str, ...]:
    """The C++ overload a form of the text writes."""
    names = {o.name for o in (*form.ins, *form.outs)}
    return next((each for each in form.insn.forms if set(each) == names), ())


def asked_by(form: Form) -> dict[str, Attribute]:
    """The attributes without which a form cannot be told from another."""
    insn = form.insn
    absent = insn.asm.absent if insn.asm is not None else {}
    needed = {a.name: a.default for a in insn.attrs if a.choices and a.name in absent}
    needed |= insn.when.get(overload_of(form), {})
    types = declared_types(insn)
    found = {
        key: attribute_for(a, needed[a.name], types.get(key, ""))
        for a in insn.attrs
        for key in [text_key(insn, a)]
        if a.name in needed
    }
    definition = DEFINITIONS.get(f"pto.{form.mnemonic}")
    syntax = definition.format if definition is not None else ""
    shown = {o.name for o in form.ins}
    needed_keys = set(definition.needed_attrs) if definition is not None else set[str]()
    for operand in insn.operands:  # an id is a value or an attribute
        if operand.name in attributes_in(syntax) and operand.name not in shown:
            needed_keys |= set() if operand.optional else {operand.name}
    for key in sorted(needed_keys):
        found.setdefault(key, always(form, key))
    return found


def always(form: Form, key: str) -> Attribute:
    """An attribute that the syntax of an operation cannot do without."""
    insn = form.insn
    declared = declared_types(insn)[key]
    if declared in ENUMERATIONS:
        return EnumAttr(declared, next(iter(ENUMERATIONS[declared].members)))
    attr = attr_keys(insn).get(key)
    if attr is not None:
        return attribute_for(attr, attr.default, declared)
    return IntAttr(1, ScalarType(declared))


def module_of(
    form: Form,
    is_value: bool = False,
    attrs: dict[str, Attribute] | None = None,
    target: Target | None = None,
) -> Module | None:
    """A module with one operation of this form; None when an operand has no type in text."""
    insn = form.insn
    attrs = asked_by(form) | (attrs or {}) or None
    devices = (TARGETS[t] for t in ("a2a3", "a5", "kirin9030") if t in insn.targets)
    target = target or next(devices, None)
    specs = sample(insn, target or TARGETS["cpu"], {}).operands
    body = Block()
    given: dict[str, Value] = {}
    results: dict[str, Type] = {}
    for operand in (*form.ins, *form.outs):
        type_ = type_of(specs.get(operand.name), operand, is_value)
        if type_ is None or isinstance(type_, ShapedType):
            return None
        if is_value and operand in form.outs and not isinstance(type_, ViewType):
            results[operand.name] = type_
        else:
            given[operand.name] = Value(operand.name, type_, body)
    body.args = list(given.values())
    builder = Builder(body)
    write(builder, form, given, results, attrs)
    builder.op("func.return")
    return Module([Function("f", body)])


def write(
    builder: Builder,
    form: Form,
    given: dict[str, Value],
    results: dict[str, Type],
    attrs: dict[str, Attribute] | None,
) -> None:
    """Append the operation of a form."""
    insn = form.insn
    if insn.returns:
        results = results | {RETURNED: ScalarType("i1" if insn.returns == "i1" else "f32")}
    if insn.asm is not None and insn.asm.syntax:
        builder.op(f"pto.{form.mnemonic}", given, list(results.values()), attrs)
    else:
        builder.instruction(insn, given, results, attrs)


def attributes(form: Form) -> Iterator[dict[str, Attribute]]:
    """One dictionary per value of each template argument that the form takes in text."""
    insn = form.insn
    fixed = insn.when.get(overload_of(form), {})
    for attr in insn.attrs:
        values: list[object] = []
        key = text_key(insn, attr)
        declared = declared_types(insn)[key]
        if issubclass(attr.type, IntEnum):
            values = list(attr.type)
        elif attr.type is bool:
            values = [True, False]
        elif attr.type is int:
            values = [*attr.choices] or [
                1 if declared_types(insn)[text_key(insn, attr)] != "i32" else 3
            ]
        key = text_key(insn, attr)
        for value in values:
            if attr.name in fixed and fixed[attr.name] != value:
                continue
            if attr.choices and value not in attr.choices:
                continue  # of another record
            yield {key: attribute_for(attr, value, declared)}


def indexed(module: Module) -> Module:
    """The same module with a place behind every memory operand, as assembly lines write it."""
    body = module.functions[0].body
    assert body is not None
    row, col = Value("row", INDEX, body), Value("col", INDEX, body)
    body.args += [row, col]
    for op in body.ops:
        operands: list[Value] = []
        labels: list[str] = []
        for value, label in zip(op.operands, op.labels, strict=True):
            is_memory = isinstance(value.type, ViewType)
            operands += [value, row, col] if is_memory else [value]
            labels += [label, *[f"{label}.index"] * 2] if is_memory else [label]
        op.operands, op.labels = operands, tuple(labels)
    return module
