"""`cf`: blocks that jump to each other.

A region of the program is one block. Where a text has several, they are the regions of one
operation, `cf.blocks`: control begins in the first, and each ends with a jump to others or with
what ends the region around all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptokit.base.namedtuple import NamedTuple
from ptokit.ir.attributes import ArrayAttr, Attribute, IntAttr, StringAttr
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.dialects.definition import Definition, Edge, define, definitions_in
from ptokit.ir.format import Draft, finish
from ptokit.ir.reader import Head, Reader
from ptokit.ir.types import I64, ScalarType, same_type

if TYPE_CHECKING:
    from ptokit.ir.printer import Printer

_TO = "successors"  # names of blocks while a text is read, their numbers afterwards
_CASES = "case_values"
_COUNTS = "case_operand_segments"  # arguments that each case of a switch passes on


class Jump(NamedTuple):
    """One way a block may go on: to which block, with which of the jump's operands."""

    block: int
    args: slice


def _numbers(op: Op, key: str) -> list[int]:
    found = op.attrs[key]
    assert isinstance(found, ArrayAttr)
    return [n.value for n in found.items if isinstance(n, IntAttr)]


def jumps(op: Op) -> list[Jump]:
    """The ways out of a block that ends with a jump; of other ends there is none."""
    if op.name not in _SPLITS:
        return []
    counts = [op.labels.count(label) for label in _SPLITS[op.name]]
    if SWITCH.matches(op):
        counts = [counts[0], *_numbers(op, _COUNTS)]
    at = len(op.operands) - sum(counts)
    found: list[Jump] = []
    for block, count in zip(_numbers(op, _TO), counts, strict=True):
        found.append(Jump(block, slice(at, at + count)))
        at += count
    return found


def taken(op: Op, first: int) -> int:
    """Which of its ways a jump goes, for the value of its first operand."""
    if SWITCH.matches(op):
        values = _numbers(op, _CASES)
        return 1 + values.index(first) if first in values else 0
    return int(not first) if COND_BR.matches(op) else 0


# ---- text ----------------------------------------------------------------------------------------


def _read_target(reader: Reader, draft: Draft, label: str) -> tuple[Attribute, int]:
    """`^bb1(%x, %y : T, T)`: the name of the block, and how many arguments it gets."""
    name = StringAttr(reader.take("label", "a block such as ^bb1"))
    values: list[tuple[Value, int]] = []
    if reader.accept("("):
        while not reader.accept(":"):
            if values:
                reader.expect(",")
            values.append((reader.value(), reader.at))
            draft.add(label, values[-1][0], reader.at - 1)
        for number, (value, at) in enumerate(values):
            if number:
                reader.expect(",")
            reader.typed(value, at - 1)
        reader.expect(")")
    return name, len(values)


def _read_br(reader: Reader, head: Head, definition: Definition) -> Op:
    draft = Draft()
    name, _ = _read_target(reader, draft, "args")
    draft.attrs[_TO] = ArrayAttr((name,))
    return finish(reader, head, definition, draft)


def _read_cond_br(reader: Reader, head: Head, definition: Definition) -> Op:
    draft = Draft()
    draft.add("condition", reader.value(), reader.at - 1)
    names: list[Attribute] = []
    for label in ("true", "false"):
        reader.expect(",")
        names.append(_read_target(reader, draft, label)[0])
    draft.attrs[_TO] = ArrayAttr(tuple(names))
    return finish(reader, head, definition, draft)


def _read_switch(reader: Reader, head: Head, definition: Definition) -> Op:
    draft = Draft()
    draft.add("flag", reader.value(), reader.at - 1)
    reader.expect(":")
    reader.typed(draft.operands[0], draft.tokens[0])
    for mark in (",", "[", "default", ":"):
        reader.expect(mark)
    names = [_read_target(reader, draft, "default")[0]]
    values: list[int] = []
    counts: list[int] = []
    while reader.accept(","):
        values.append(reader.integer())
        reader.expect(":")
        name, count = _read_target(reader, draft, "cases")
        names.append(name)
        counts.append(count)
    reader.expect("]")
    draft.attrs[_TO] = ArrayAttr(tuple(names))
    draft.attrs[_CASES] = ArrayAttr(tuple(IntAttr(n, I64) for n in values), I64)
    i32 = ScalarType("i32")
    draft.attrs[_COUNTS] = ArrayAttr(tuple(IntAttr(n, i32) for n in counts), i32)
    return finish(reader, head, definition, draft)


def _targets(printer: Printer, op: Op) -> list[str]:
    found: list[str] = []
    for jump in jumps(op):
        values = op.operands[jump.args]
        names, types = (", ".join(map(each, values)) for each in (printer.name, _type))
        found.append(f"^bb{jump.block}" + (f"({names} : {types})" if values else ""))
    return found


def _type(value: Value) -> str:
    return str(value.type)


def _write_jump(printer: Printer, op: Op) -> str:
    targets = _targets(printer, op)
    if SWITCH.matches(op):
        words = ["default", *map(str, _numbers(op, _CASES))]
        listed = ", ".join(f"{w}: {t}" for w, t in zip(words, targets, strict=True))
        flag = op.operands[0]
        return f" {printer.name(flag)} : {flag.type}, [{listed}]"
    first = [printer.name(op.operands[0])] if COND_BR.matches(op) else []
    return f" {', '.join([*first, *targets])}"


def read_successors(reader: Reader) -> dict[str, Attribute]:
    """`[^bb1, ^bb2]`, as the generic form lists them."""
    if not reader.accept("["):
        return {}
    names: list[Attribute] = []
    while not reader.accept("]"):
        if names:
            reader.expect(",")
        names.append(StringAttr(reader.take("label", "a block such as ^bb1")))
    return {_TO: ArrayAttr(tuple(names))}


def write_successors(op: Op, attrs: dict[str, Attribute]) -> str:
    """The list of the generic form; `attrs` then lacks it."""
    if attrs.pop(_TO, None) is None:
        return ""
    return f"[{', '.join(f'^bb{jump.block}' for jump in jumps(op))}]"


# ---- blocks --------------------------------------------------------------------------------------


def joined(reader: Reader, names: dict[str, Block]) -> list[Op]:
    """The operations that stand for several blocks: `cf.blocks`, and the end of what they end."""
    blocks = list(names.values())
    places = {name: number for number, name in enumerate(names)}
    ends: list[Op] = []
    for block in blocks:
        last = block.ops[-1] if block.ops else None
        if last is None or last.name not in _SPLITS:
            ends += [last] if last else []
            continue
        to = last.attrs[_TO]
        assert isinstance(to, ArrayAttr)
        listed = [n.value for n in to.items if isinstance(n, StringAttr)]
        for name in listed:
            if name not in places:
                known = ", ".join(names)
                reader.note("unknown-block", f"there is no block {name}", last.location, known)
                return []
        last.attrs[_TO] = ArrayAttr(tuple(IntAttr(places[n], I64) for n in listed), I64)
        _check_arguments(reader, last, blocks)
    if not ends:
        raise reader.fail(
            "some block ends the function", "missing-return", blocks[0].ops[0].location
        )
    first = ends[0]
    made = Op(BLOCKS.name, regions=blocks, location=blocks[0].ops[0].location)
    made.results = [Value(v.name, v.type, made, v.location) for v in first.operands]
    made.result_labels = ("results",) * len(made.results)
    for end in ends[1:]:
        if end.name != first.name or [v.type for v in end.operands] != [
            v.type for v in made.results
        ]:
            what = f"the blocks end alike: {first.name} of the same types"
            reader.note("type-mismatch", what, end.location)
    return [made, Op(first.name, made.results, first.labels, location=first.location)]


def _check_arguments(reader: Reader, op: Op, blocks: list[Block]) -> None:
    for jump in jumps(op):
        wanted = [a.type for a in blocks[jump.block].args]
        got = [v.type for v in op.operands[jump.args]]
        if len(got) != len(wanted) or not all(map(same_type, got, wanted)):
            listed = ", ".join(map(str, wanted))
            what = f"block {jump.block} takes ({listed})"
            reader.note("type-mismatch", what, op.location, f"got ({', '.join(map(str, got))})")


def _flow(op: Op) -> Iterator[Edge]:
    for region in op.regions:
        end = region.ops[-1]
        if end.name not in _SPLITS:
            yield from map(Edge, end.operands, op.results)
        for jump in jumps(end):
            names = op.regions[jump.block].args
            for value, name in zip(end.operands[jump.args], names, strict=True):
                yield Edge(value, name, is_next_round=True)


def _write_blocks(printer: Printer, op: Op) -> str:
    """Never asked for: the printer writes the blocks where the operation stands."""
    raise AssertionError(op)


def _read_blocks(reader: Reader, head: Head, definition: Definition) -> Op:
    raise reader.fail("blocks are written with labels, not as an operation", location=head.location)


BR = define("cf.br", "args*:any", read=_read_br, write=_write_jump, is_terminator=True)
COND_BR = define(
    "cf.cond_br",
    "condition:i1 true*:any false*:any",
    read=_read_cond_br,
    write=_write_jump,
    is_terminator=True,
)
SWITCH = define(
    "cf.switch",
    "flag:int default*:any cases*:any",
    read=_read_switch,
    write=_write_jump,
    is_terminator=True,
)
_SPLITS = {
    BR.name: ("args",),
    COND_BR.name: ("true", "false"),
    SWITCH.name: ("default", "cases"),
}
BLOCKS = define(
    "cf.blocks",
    "-> results*:any",
    read=_read_blocks,
    write=_write_blocks,
    is_loop=True,
    flow=_flow,
)

DEFINITIONS = definitions_in(globals())
