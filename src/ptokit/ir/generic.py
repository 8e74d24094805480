"""The generic form of MLIR: `"pto.tmov"(%a, %b) <{...}> ({region}) {attrs} : (T, T) -> ()`.

Every operation has one, and other MLIR tools read it without knowing the dialect.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ptokit.base.dataclass import dataclass
from ptokit.ir.attributes import (
    ArrayAttr,
    Attribute,
    EnumAttr,
    IntAttr,
    StringAttr,
    TypeAttr,
    dict_text,
)
from ptokit.ir.core import Block, Function, Module, Op, Unit, Value
from ptokit.ir.dialects import DEFINITIONS, Definition, cf
from ptokit.ir.dialects.definition import Slot
from ptokit.ir.dialects.scf import IF
from ptokit.ir.format import Draft
from ptokit.ir.insntext import under_own_keys
from ptokit.ir.instructions import (
    Form,
    agrees,
    alias_labels,
    attr_keys,
    attribute_for,
    form_of,
    forms_of,
    literal_keys,
    template_value,
)
from ptokit.ir.reader import Abandon, Head, Reader
from ptokit.ir.types import FunctionType, ScalarType, Type, same_type
from ptokit.isa.spec import Insn

if TYPE_CHECKING:
    from ptokit.ir.parser import Parser
    from ptokit.ir.printer import Printer

_SEGMENTS = "operandSegmentSizes"
AXIS = "axis"  # the key of the word that Level 2 has behind the types


@dataclass
class Raw:
    """An operation in generic form, before anyone knows what it means."""

    operands: list[Value]
    attrs: dict[str, Attribute]
    regions: list[Block]
    signature: FunctionType


# ---- reading -----------------------------------------------------------------------------------


def _read_raw(reader: Reader, head: Head) -> Raw:
    operands: list[Value] = []
    reader.expect("(")
    while not reader.accept(")"):
        if operands:
            reader.expect(",")
        operands.append(reader.value())
    attrs: dict[str, Attribute] = cf.read_successors(reader)
    if reader.accept("<"):
        attrs.update(reader.attr_dict())
        reader.expect(">")
    regions: list[Block] = []
    if reader.accept("("):
        while not reader.accept(")"):
            if regions:
                reader.expect(",")
            block = reader.block()
            if block.ops or block.args or not regions:
                regions.append(block)  # an empty one is a branch that is not there
    if reader.sees("{"):
        attrs.update(reader.attr_dict())
    reader.expect(":")
    place = reader.place()
    signature = reader.function_type()
    given = [v.type for v in operands]
    if len(given) != len(signature.inputs) or not all(map(same_type, given, signature.inputs)):
        reader.note(
            "type-mismatch",
            f"{head.name}: the signature lists the types of the operands",
            place,
            f"write ({', '.join(map(str, given))})",
        )
    return Raw(operands, attrs, regions, signature)


def read_op(parser: Parser, head: Head) -> Op:
    """Read an operation behind its quoted name."""
    definition = DEFINITIONS.get(head.name)
    forms = forms_of(head.name[4:]) if head.name.startswith("pto.") else None
    if definition is None and forms is None:
        raise parser.unknown_operation(head)
    raw = _read_raw(parser, head)
    sizes = _segments(raw.attrs)
    raw.attrs.pop(_SEGMENTS, None)
    if definition is None or (forms and not definition.needed_attrs <= raw.attrs.keys()):
        assert forms is not None  # perhaps under an older name, which now is another's
        return _instruction(parser, head, forms, raw, sizes)
    if missing := sorted(definition.needed_attrs - raw.attrs.keys()):
        what = f"{head.name} needs {missing[0]}"
        raise parser.fail(what, "bad-attribute", head.location, f"add {missing[0]} = ...")
    start = parser.at
    labels = _labels(parser, head, definition, raw, sizes)
    draft = Draft(raw.operands, list(labels), [start] * len(labels))
    definition.check_operands(parser, head, draft)
    definition.check_results(parser, head, raw.signature.results)
    results = parser.make_results(head, raw.signature.results)
    made = definition.result_labels(len(results))
    return Op(
        definition.name,
        *definition.in_order(raw.operands, list(labels)),
        results,
        made,
        raw.attrs if definition.insn is None else _without_axis(definition.insn, raw.attrs),
        raw.regions,
        head.location,
        definition.insn,
    )


def _segments(attrs: dict[str, Attribute]) -> list[int] | None:
    sizes = attrs.get(_SEGMENTS)
    if not isinstance(sizes, ArrayAttr):
        return None
    return [n.value for n in sizes.items if isinstance(n, IntAttr)]


def _labels(
    reader: Reader, head: Head, definition: Definition, raw: Raw, sizes: list[int] | None
) -> tuple[str, ...]:
    slots = slots_of(definition)
    if sizes is not None and len(sizes) < len(slots):
        slots = [slot for slot in slots if slot.label not in definition.ours]
    if sizes is None:
        single = sum(not (s.optional or s.is_list) for s in slots)
        rest = len(raw.operands) - single
        sizes = [rest if s.optional or s.is_list else 1 for s in slots]
    if len(sizes) != len(slots) or sum(sizes) != len(raw.operands) or min(sizes, default=0) < 0:
        raise reader.fail(
            f"{head.name} has operands {', '.join(s.label for s in slots) or 'none'}",
            "operand-count",
            head.location,
            f"give one size per operand in {_SEGMENTS}" if len(slots) > 1 else "",
        )
    labels = [s.label for s, n in zip(slots, sizes, strict=True) for _ in range(n)]
    pairs = zip(labels, raw.operands, strict=True)
    return tuple(definition.settled([_fitting(definition, *pair) for pair in pairs]))


def _fitting(definition: Definition, label: str, value: Value) -> str:
    """Of the operands that one place stands for, the one that takes a value."""
    others = [other for other, first in definition.instead.items() if first == label]
    return next((n for n in (label, *others) if definition.takes(n, value.type)), label)


def slots_of(definition: Definition) -> list[Slot]:
    """The places of an operation: one, always taken, for operands that exclude each other, and
    two for a pair."""
    found: list[Slot] = []
    for slot in definition.operands:
        if slot.label in definition.instead.values():
            slot = replace(slot, optional=False)
        if slot.label not in definition.instead:
            found += [slot] * slot.places
    return found


def order_of(form: Form) -> list[str]:
    """The operands of a form in generic order."""
    names = {o.name for o in (*form.ins, *form.outs)}
    return [n for n in _whole_order(form.insn) if n in names]


def _instruction(
    reader: Reader, head: Head, forms: list[Form], raw: Raw, sizes: list[int] | None
) -> Op:
    results = list(raw.signature.results)
    # Records that share a name are told apart by what the attributes ask for.
    for form in sorted(with_variants(forms), key=lambda f: not agrees(f, raw.attrs)):
        outs = [o.name for o in form.outs]
        made = outs[-len(results) :] if results else []
        if outs and len(made) != len(results):
            continue
        operands = [n for n in order_of(form) if n not in made]
        if sizes is not None and sizes != (_counts(form.insn, operands) or sizes):
            continue
        if len(operands) != len(raw.operands):
            continue
        pairs = zip(operands, raw.operands, strict=True)
        if all(form.accepts(form.insn.operand(n), v.type) for n, v in pairs):
            given = dict(zip(operands, raw.operands, strict=True))
            return instruction_of(reader, head, form, given, results, raw.attrs)
    raise _no_form(reader, head, forms, raw)


def instruction_of(
    reader: Reader,
    head: Head,
    form: Form,
    given: Mapping[str, Value],
    results: list[Type],
    attrs: dict[str, Attribute],
) -> Op:
    """An instruction in a form, of operands by label and the types of its results."""
    values = reader.make_results(head, results)
    places = [o.name for o in (*form.ins, *form.outs)]
    labels = [n for n in places if n in given]
    made = [o.name for o in form.outs][-len(results) :] if results else []
    return Op(
        f"pto.{form.mnemonic}",
        [given[n] for n in labels],
        tuple(labels),
        values,
        tuple(made or alias_labels(form, values)),
        under_own_keys(reader, head, form.insn, _without_axis(form.insn, attrs)),
        [],
        head.location,
        form.insn,
    )


def with_variants(forms: list[Form]) -> list[Form]:
    """The forms, and behind them those without temporaries."""
    bare = [form.without_scratch for form in forms]
    return [*forms, *(b for b, f in zip(bare, forms, strict=True) if b != f)]


def _places(insn: Insn) -> list[tuple[str, ...]]:
    """The places for operands in the generic form, in order, with the operands they take."""
    asm = insn.asm
    assert asm is not None
    if asm.order is not None:
        return [tuple(place.split("+")) for place in asm.order]
    ins = asm.ins or [o.name for o in insn.operands if o.role in ("in", "tmp")]
    outs = [o.name for o in insn.operands if o.role in ("out", "inout") and o.name not in ins]
    return [(name,) for name in (*ins, *(outs if asm.outs is None else asm.outs))]


def _whole_order(insn: Insn) -> list[str]:
    """All operands the instruction's text forms have, in generic order."""
    return [name for place in _places(insn) for name in place] + _unlisted(insn)


def _unlisted(insn: Insn) -> list[str]:
    """Operands that only our text has: they come last, so that the other places stay."""
    if insn.asm is None:
        return []
    if insn.asm.order is not None:
        listed = [name for place in _places(insn) for name in place]
        return [o.name for o in insn.operands if o.name not in listed]
    own = insn.asm.ins
    return [o.name for o in insn.operands if o.role == "tmp" and o.name not in (own or [o.name])]


def _counts(insn: Insn, present: Container[str]) -> list[int] | None:
    """How many operands each place has, where the generic form says so.

    Of a name with a suffix, the operand that the suffix stands for is always there.
    """
    assert insn.asm is not None
    places = [p for p in _places(insn) if p[0] not in insn.asm.suffixes or p[0] in present]
    extra = _unlisted(insn)
    has_extra = any(name in present for name in extra)
    places += [(name,) for name in extra] if has_extra else []
    named = {name for place in places for name in place} - insn.asm.suffixes.keys()
    optional = [o for o in insn.operands if o.optional and o.name in named]
    if not insn.asm.is_counted and not has_extra and len(optional) < 2:
        return None
    return [sum(name in present for name in place) for place in places]


def _no_form(reader: Reader, head: Head, forms: list[Form], raw: Raw) -> Abandon:
    listed = " or ".join(dict.fromkeys(", ".join(order_of(f)) for f in forms))
    return reader.fail(
        f"{head.name} does not take {raw.signature}",
        "operand-count",
        head.location,
        f"its operands: {listed}",
    )


def read_module(parser: Parser, module: Module, own: Unit) -> None:
    """`"builtin.module"() ({...}) {attrs} : () -> ()`."""
    parser.string()
    parser.expect("(")
    parser.expect(")")
    _properties(parser, own.attrs)
    parser.expect("(")
    parser.expect("{")
    if parser.kind == "label":
        parser.at += 1
        parser.expect(":")
    while not parser.accept("}"):
        parser.symbol_or_module(module)
    parser.expect(")")
    if parser.sees("{"):
        own.attrs.update(parser.attr_dict())
    parser.expect(":")
    parser.function_type()


def _properties(parser: Parser, attrs: dict[str, Attribute]) -> None:
    if parser.accept("<"):
        attrs.update(parser.attr_dict())
        parser.expect(">")


def read_function(parser: Parser) -> Function:
    """`"func.func"() <{function_type, sym_name}> ({...}) {attrs} : () -> ()`."""
    place = parser.place()
    if parser.string() != "func.func":
        raise parser.fail("expected a function", location=place)
    parser.values = {}
    raw = _read_raw(parser, Head("func.func", place))
    name, kind = raw.attrs.pop("sym_name", None), raw.attrs.pop("function_type", None)
    hidden = raw.attrs.pop("sym_visibility", None)
    if not isinstance(name, StringAttr) or not isinstance(kind, TypeAttr):
        raise parser.fail("a function has sym_name and function_type", location=place)
    signature = kind.type
    if not isinstance(signature, FunctionType):
        raise parser.fail("function_type is a function type", location=place)
    body = raw.regions[0] if raw.regions and _has_body(raw.regions[0]) else None
    function = Function(
        name.value,
        body,
        signature.results,
        raw.attrs,
        signature.inputs,
        hidden == StringAttr("private"),
        place,
    )
    parser.check_return(function)
    return function


def _has_body(block: Block) -> bool:
    return bool(block.ops or block.args)


# ---- printing ----------------------------------------------------------------------------------


def write_op(printer: Printer, op: Op) -> str:
    """Print an operation behind its results."""
    attrs = dict(op.attrs)
    properties: dict[str, Attribute] = {}
    sizes = _sizes(op)
    if sizes is not None:
        element = ScalarType("i32")
        properties[_SEGMENTS] = ArrayAttr(tuple(IntAttr(n, element) for n in sizes), element)
    operands, types = _generic_operands(op)
    if op.insn is not None:
        attrs = _with_axis(op.insn, attrs)
        properties |= _constants(op.insn)
    declared = _declared(op)
    properties |= {key: attrs.pop(key) for key in [*attrs] if key in declared}
    names = ", ".join(printer.name(v) for v in operands)
    text = f'"{op.name}"({names}){cf.write_successors(op, attrs)}'
    if properties:
        text += f" <{dict_text(properties)}>"
    regions = list(op.regions)
    if IF.matches(op) and len(regions) == 1:
        text += f" ({printer.block(regions[0])}, {{{printer.newline()}}})"
    elif regions:
        text += f" ({', '.join(printer.block(r) for r in regions)})"
    if attrs:
        text += f" {dict_text(attrs)}"
    return f"{text} : {FunctionType(tuple(types), tuple(r.type for r in op.results))}"


def _declared(op: Op) -> Container[str]:
    """The attributes that belong to an operation, which MLIR keeps apart from all others."""
    definition = DEFINITIONS.get(op.name)
    if definition is not None:
        return definition.own_attrs
    insn = op.insn
    assert insn is not None
    assert insn.asm is not None
    axis = [AXIS] if insn.asm.words else []
    return {*attr_keys(insn), *literal_keys(insn), *axis}


def _constants(insn: Insn) -> dict[str, Attribute]:
    """What the generic form of an instruction always says."""
    constants = insn.asm.constants if insn.asm else {}
    return {key: EnumAttr(*member) for key, member in constants.items()}


def _with_axis(insn: Insn, attrs: dict[str, Attribute]) -> dict[str, Attribute]:
    """Attributes with the word that Level 2 has behind the types, under a key of its own."""
    asm, found = insn.asm, dict(attrs)
    for name, words in asm.words.items() if asm else ():
        assert asm is not None
        key, attr = next((k, a) for k, a in attr_keys(insn).items() if a.name == name)
        given = found.pop(key, None)
        if any(each in attrs for each, place in asm.place.items() if place == "own,"):
            value = attr.default if given is None else template_value(attr, given)
            found[AXIS] = StringAttr(words[value])
    return found


def _without_axis(insn: Insn, attrs: dict[str, Attribute]) -> dict[str, Attribute]:
    """The attributes under our keys, without those that are always the same."""
    always = _constants(insn)
    found = {key: value for key, value in attrs.items() if always.get(key) != value}
    for name, words in insn.asm.words.items() if insn.asm else ():
        key, attr = next((k, a) for k, a in attr_keys(insn).items() if a.name == name)
        word = found.get(AXIS)
        if isinstance(word, StringAttr) and word.value in words:
            del found[AXIS]
            value = attr.type(words.index(word.value))
            if value != attr.default:
                found[key] = attribute_for(attr, value)
    return found


def _sizes(op: Op) -> list[int] | None:
    """How many operands each place has, for operations where that is not plain to see."""
    definition = DEFINITIONS.get(op.name)
    if definition is None:
        assert op.insn is not None
        return _counts(op.insn, op.labels)
    slots = [s for s in slots_of(definition) if s.label not in {*definition.ours} - {*op.labels}]
    if sum(s.optional or s.is_list for s in slots) < 2:
        return None
    counts = {s.label: op.labels.count(s.label) // s.places for s in slots}
    for other, label in definition.instead.items():
        counts[label] += op.labels.count(other)
    return [counts[s.label] for s in slots]


def _generic_operands(op: Op) -> tuple[list[Value], list[Type]]:
    definition = DEFINITIONS.get(op.name)
    order = order_of(form_of(op)) if definition is None else [s.label for s in definition.operands]
    values = [v for label in order for v in op.group(label)]
    return values, [v.type for v in values]


def write_function(printer: Printer, function: Function) -> str:
    """Print a function."""
    inputs = function.input_types
    properties: dict[str, Attribute] = {
        "function_type": TypeAttr(FunctionType(inputs, function.results)),
        "sym_name": StringAttr(function.name),
    }
    if function.is_private:
        properties["sym_visibility"] = StringAttr("private")
    body = (
        printer.block(function.body, labelled=True) if function.body else f"{{{printer.newline()}}}"
    )
    attrs = f" {dict_text(function.attrs)}" if function.attrs else ""
    return f'"func.func"() <{dict_text(properties)}> ({body}){attrs} : () -> ()'


def write_module(attrs: dict[str, Attribute], bodies: str, start: str = "\n") -> str:
    """Print a module around what stands in it."""
    shown = f" {dict_text(attrs)}" if attrs else ""
    return f'"builtin.module"() ({{{bodies}{start}}}){shown} : () -> ()'
