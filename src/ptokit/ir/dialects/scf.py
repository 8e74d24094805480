"""`scf`: loops and branches. Every body ends with a terminator; one without operands is implied
in the text and always present in the program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptokit.base.location import Location
from ptokit.ir.attributes import ArrayAttr, IntAttr
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.dialects.definition import Definition, Edge, define, definitions_in
from ptokit.ir.format import Draft, finish
from ptokit.ir.reader import Head, Reader
from ptokit.ir.types import I64, INDEX, ScalarType, Type, same_type

if TYPE_CHECKING:
    from ptokit.ir.printer import Printer


def _end(block: Block, location: Location) -> Block:
    """Add the implied terminator."""
    if not any(each.matches(op) for op in block.ops[-1:] for each in (YIELD, CONDITION)):
        block.ops.append(Op(YIELD.name, location=location))
    return block


def _check_yield(reader: Reader, block: Block, types: list[Type], what: str) -> None:
    """What a body yields must be what the operation returns."""
    last = block.ops[-1]
    values = [v for v, label in zip(last.operands, last.labels, strict=True) if label == "args"]
    got = [v.type for v in values]
    if len(got) != len(types) or not all(map(same_type, got, types)):
        reader.note(
            "type-mismatch",
            f"{what} yields the types of its results",
            last.location,
            f"yield ({', '.join(map(str, types))}), not ({', '.join(map(str, got))})",
        )


# ---- for ---------------------------------------------------------------------------------------


def _read_for(reader: Reader, head: Head, definition: Definition) -> Op:
    draft = Draft()
    reader.accept("unsigned")
    place = reader.place()
    name = reader.take("value", "the loop variable")
    reader.expect("=")
    draft.add("lower", reader.value(), reader.at - 1)
    reader.expect("to")
    draft.add("upper", reader.value(), reader.at - 1)
    reader.expect("step")
    draft.add("step", reader.value(), reader.at - 1)
    carried: list[tuple[str, Value]] = []
    types: list[Type] = []
    if reader.accept("iter_args"):
        carried = _read_bindings(reader, draft)
        reader.expect("->")
        types = reader.result_types()
        for (_, value), type_ in zip(carried, types, strict=False):
            value.type = type_
    kind: Type = reader.type() if reader.accept(":") else INDEX
    draft.types["results"] = types
    variable = Value(name[1:], kind, None, place)
    block = _end(reader.block([(name, variable), *carried]), head.location)
    _check_yield(reader, block, types, "the body of scf.for")
    draft.regions.append(block)
    if reader.sees("{"):
        draft.attrs.update(reader.attr_dict())
    return finish(reader, head, definition, draft)


def _read_bindings(reader: Reader, draft: Draft) -> list[tuple[str, Value]]:
    """`(%a = %init, ...)`: initial values become operands, names arguments of the body."""
    found: list[tuple[str, Value]] = []
    reader.expect("(")
    while not reader.accept(")"):
        if found:
            reader.expect(",")
        place = reader.place()
        name = reader.take("value", "a loop-carried value")
        reader.expect("=")
        draft.add("inits", reader.value(), reader.at - 1)
        found.append((name, Value(name[1:], draft.operands[-1].type, None, place)))
    return found


def _write_for(printer: Printer, op: Op) -> str:
    lower, upper, step, *inits = (printer.name(v) for v in op.operands)
    body = op.regions[0]
    with printer.scope():
        variable, *carried = (printer.declare(v) for v in body.args)
        text = f" {variable} = {lower} to {upper} step {step}"
        if carried:
            pairs = ", ".join(f"{a} = {b}" for a, b in zip(carried, inits, strict=True))
            text += f" iter_args({pairs}) -> ({_types(op.results)})"
        if body.args[0].type != INDEX:
            text += f" : {body.args[0].type}"
        return f"{text} {printer.block(body)}{printer.attr_dict(op)}"


def _types(values: list[Value]) -> str:
    return ", ".join(str(v.type) for v in values)


# ---- if ----------------------------------------------------------------------------------------


def _read_if(reader: Reader, head: Head, definition: Definition) -> Op:
    draft = Draft()
    draft.add("condition", reader.value(), reader.at - 1)
    types: list[Type] = reader.result_types() if reader.accept("->") else []
    draft.types["results"] = types
    draft.regions.append(_end(reader.block(), head.location))
    _check_yield(reader, draft.regions[0], types, "each branch of scf.if")
    if reader.accept("else"):
        other = _end(reader.block(), head.location)
        _check_yield(reader, other, types, "each branch of scf.if")
        if types or len(other.ops) > 1:
            draft.regions.append(other)
    elif types:
        reader.note("syntax", "scf.if with results needs an else branch", head.location)
    if reader.sees("{"):
        draft.attrs.update(reader.attr_dict())
    return finish(reader, head, definition, draft)


def _write_if(printer: Printer, op: Op) -> str:
    text = f" {printer.name(op.operands[0])}"
    if op.results:
        text += f" -> ({_types(op.results)})"
    text += f" {printer.block(op.regions[0])}"
    if len(op.regions) > 1:
        text += f" else {printer.block(op.regions[1])}"
    return text + printer.attr_dict(op)


# ---- while -------------------------------------------------------------------------------------


def _read_while(reader: Reader, head: Head, definition: Definition) -> Op:
    draft = Draft()
    before = _read_bindings(reader, draft) if reader.sees("(") else []
    reader.expect(":")
    signature = reader.function_type()
    for (_, value), type_ in zip(before, signature.inputs, strict=False):
        value.type = type_
    draft.types["results"] = list(signature.results)
    draft.regions.append(reader.block(before))
    reader.expect("do")
    draft.regions.append(_end(reader.block(), head.location))
    if reader.accept("attributes"):
        draft.attrs.update(reader.attr_dict())
    first, body = draft.regions
    _check_yield(reader, body, list(signature.inputs), "the body of scf.while")
    taken = [value.type for value in body.args]
    if first.ops:
        _check_yield(reader, first, list(signature.results), "scf.while")
    if len(taken) != len(signature.results) or not all(map(same_type, taken, signature.results)):
        what = "the body of scf.while takes what its condition passes on"
        passed = ", ".join(map(str, signature.results))
        reader.note("type-mismatch", what, head.location, f"declare arguments of ({passed})")
    return finish(reader, head, definition, draft)


def _write_while(printer: Printer, op: Op) -> str:
    before, after = op.regions
    inits = [printer.name(v) for v in op.operands]
    with printer.scope():
        names = [printer.declare(v) for v in before.args]
        pairs = ", ".join(f"{a} = {b}" for a, b in zip(names, inits, strict=True))
        text = f" ({pairs}) : ({_types(op.operands)}) -> "
        text += f"({_types(op.results)}) {printer.block(before)} do "
    with printer.scope():
        return text + printer.block(after, labelled=True) + printer.attr_dict(op, "attributes ")


def _read_condition(reader: Reader, head: Head, definition: Definition) -> Op:
    draft = Draft()
    reader.expect("(")
    draft.add("condition", reader.value(), reader.at - 1)
    reader.expect(")")
    if reader.kind == "value":
        first = len(draft.operands)
        draft.add("args", reader.value(), reader.at - 1)
        while reader.accept(","):
            draft.add("args", reader.value(), reader.at - 1)
        reader.expect(":")
        for n in range(first, len(draft.operands)):
            if n > first:
                reader.expect(",")
            reader.typed(draft.operands[n], draft.tokens[n])
    return finish(reader, head, definition, draft)


# ---- switch ------------------------------------------------------------------------------------


def _read_switch(reader: Reader, head: Head, definition: Definition) -> Op:
    draft = Draft()
    draft.add("arg", reader.value(), reader.at - 1)
    if reader.sees("{"):
        draft.attrs.update(reader.attr_dict())
    types: list[Type] = reader.result_types() if reader.accept("->") else []
    if types and reader.sees(","):
        while reader.accept(","):
            types.append(reader.type())
    draft.types["results"] = types
    cases: list[int] = []
    while reader.accept("case"):
        cases.append(reader.integer())
        draft.regions.append(_end(reader.block(), head.location))
    reader.expect("default")
    draft.regions.insert(0, _end(reader.block(), head.location))
    draft.attrs["cases"] = ArrayAttr(tuple(IntAttr(n, I64) for n in cases), ScalarType("i64"))
    for region in draft.regions:
        _check_yield(reader, region, types, "each case of scf.index_switch")
    return finish(reader, head, definition, draft)


def _write_switch(printer: Printer, op: Op) -> str:
    cases = op.attrs["cases"]
    assert isinstance(cases, ArrayAttr)
    text = f" {printer.name(op.operands[0])}{printer.attr_dict(op, without=('cases',))}"
    if op.results:
        text += f" -> {_types(op.results)}"
    default, *rest = op.regions
    for number, region in zip(cases.items, rest, strict=True):
        assert isinstance(number, IntAttr)
        text += f"{printer.newline()}case {number.value} {printer.block(region)}"
    return f"{text}{printer.newline()}default {printer.block(default)}"


def _read_execute(reader: Reader, head: Head, definition: Definition) -> Op:
    draft = Draft()
    types: list[Type] = reader.result_types() if reader.accept("->") else []
    reader.accept("no_inline")
    draft.types["results"] = types
    draft.regions.append(_end(reader.block(), head.location))
    _check_yield(reader, draft.regions[0], types, "scf.execute_region")
    return finish(reader, head, definition, draft)


def _write_execute(printer: Printer, op: Op) -> str:
    results = f" -> ({_types(op.results)})" if op.results else ""
    return f"{results} {printer.block(op.regions[0])}"


def _read_fusion(reader: Reader, head: Head, definition: Definition) -> Op:
    draft = Draft()
    block = reader.block()
    draft.regions.append(block)
    if reader.sees("{"):
        draft.attrs.update(reader.attr_dict())
    types: list[Type] = reader.type_list() if reader.accept(":") else []
    draft.types["results"] = types
    if block.args:
        what = "the body of a fusion region has no arguments"
        raise reader.fail(what, "fusion-region", head.location, "use the values around it")
    if not block.ops or not FUSION_YIELD.matches(block.ops[-1]):
        what = "the body of a fusion region terminates with pto.yield"
        fix = "end it with pto.yield(%results...) : (T...) -> ()"
        raise reader.fail(what, "fusion-region", head.location, fix)
    _check_yield(reader, block, types, head.name)
    return finish(reader, head, definition, draft)


def _write_fusion(printer: Printer, op: Op) -> str:
    types = f" : {_types(op.results)}" if op.results else ""
    return f" {printer.block(op.regions[0])}{printer.attr_dict(op)}{types}"


def _read_fusion_yield(reader: Reader, head: Head, definition: Definition) -> Op:
    draft = Draft()
    reader.expect("(")
    while not reader.accept(")"):
        if draft.operands:
            reader.expect(",")
        draft.add("args", reader.value(), reader.at - 1)
    if reader.sees("{"):
        draft.attrs.update(reader.attr_dict())
    reader.expect(":")
    reader.expect("(")
    for number, value in enumerate(draft.operands):
        if number:
            reader.expect(",")
        reader.typed(value, draft.tokens[number])
    for mark in (")", "->", "(", ")"):
        reader.expect(mark)
    return finish(reader, head, definition, draft)


def _write_fusion_yield(printer: Printer, op: Op) -> str:
    names = ", ".join(printer.name(v) for v in op.operands)
    return f"({names}){printer.attr_dict(op)} : ({_types(op.operands)}) -> ()"


# ---- how values travel ---------------------------------------------------------------------------


def _edges(values: list[Value], names: list[Value], is_next_round: bool = False) -> Iterator[Edge]:
    # Not strict: who asks may be about to say that something is missing.
    for value, name in zip(values, names, strict=False):
        yield Edge(value, name, is_next_round)


def _passed_on(region: Block) -> list[Value]:
    """What the end of a region hands over."""
    return region.ops[-1].group("args") if region.ops else []


def _flow_of_for(op: Op) -> Iterator[Edge]:
    (body,) = op.regions
    inits, carried, yielded = op.group("inits"), body.args[1:], _passed_on(body)
    yield from _edges(inits, carried)
    yield from _edges(inits, op.results)  # of a loop that makes no round
    yield from _edges(yielded, carried, is_next_round=True)
    yield from _edges(yielded, op.results)


def _flow_of_while(op: Op) -> Iterator[Edge]:
    before, after = op.regions
    yield from _edges(op.group("inits"), before.args)
    yield from _edges(_passed_on(before), after.args)
    yield from _edges(_passed_on(before), op.results)
    yield from _edges(_passed_on(after), before.args, is_next_round=True)


def _flow_of_branches(op: Op) -> Iterator[Edge]:
    for region in op.regions:
        yield from _edges(_passed_on(region), op.results)


FOR = define(
    "scf.for",
    "lower:T upper:T step:T inits*:any -> results*:any",
    read=_read_for,
    write=_write_for,
    is_loop=True,
    flow=_flow_of_for,
)
IF = define(
    "scf.if",
    "condition:i1 -> results*:any",
    read=_read_if,
    write=_write_if,
    flow=_flow_of_branches,
)
WHILE = define(
    "scf.while",
    "inits*:any -> results*:any",
    read=_read_while,
    write=_write_while,
    is_loop=True,
    flow=_flow_of_while,
)
SWITCH = define(
    "scf.index_switch",
    "arg:index -> results*:any",
    read=_read_switch,
    write=_write_switch,
    flow=_flow_of_branches,
    properties="cases",
)
EXECUTE = define(
    "scf.execute_region",
    "-> results*:any",
    read=_read_execute,
    write=_write_execute,
    flow=_flow_of_branches,
)
# A group of tile operations that a compiler may fuse; it means what its operations mean.
FUSION = define(
    "pto.fusion_region",
    "-> results*:any",
    read=_read_fusion,
    write=_write_fusion,
    flow=_flow_of_branches,
)
FUSION_YIELD = define(
    "pto.yield",
    "args*:any",
    read=_read_fusion_yield,
    write=_write_fusion_yield,
    is_terminator=True,
)
YIELD = define("scf.yield", "args*:any", "[?%args... : T(args...)?] {}", is_terminator=True)
CONDITION = define(
    "scf.condition",
    "condition:i1 args*:any",
    "(%condition)[? %args... : T(args...)?] {}",
    read=_read_condition,
    is_terminator=True,
)


DEFINITIONS = definitions_in(globals())
