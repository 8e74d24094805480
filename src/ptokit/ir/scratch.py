"""Temporaries that a text leaves out: which ones an instruction needs, and of what type.

The pages of several instructions hide their scratch tile, and files of other tools leave some out.
Whoever checks, runs or lowers such a line supplies a tile of its own; its type is the first of a
few likely ones that the rules of the instruction accept. Where the target only asks for the operand
and does not touch it, that is a tile of one block, a placeholder.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import product

from ptokit.base.dtypes import f32, u8
from ptokit.base.enums import BLayout, TileType
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.tiles import BLOCK_BYTES, DYNAMIC, TileSpec
from ptokit.ir.core import Op
from ptokit.ir.instructions import literal, run_time_operands, template_arguments
from ptokit.ir.types import ConvTileType, ScalarType, TileBufType, on_target
from ptokit.isa.facts import ConvFacts, Facts, Ops, ScalarFacts, TileFacts, Unknown
from ptokit.isa.spec import Insn, Operand
from ptokit.isa.targets import Target
from ptokit.isa.verify import verify

_LONGER = (0, 1)  # rows that a temporary may have more than a tile of the operation
_WIDER = (1, 2, 4, 8)  # how many times as wide as a tile of the operation a temporary may be


def missing_scratch(op: Op, *, in_text: bool = False) -> list[Operand]:
    """The temporaries that were left out and must be supplied.

    `in_text`: with those that only texts leave out, which may then have to be.
    """
    insn = op.insn
    assert insn is not None
    assert insn.asm is not None
    given = {*op.labels, *op.result_labels}
    left_out = [o for o in insn.operands if o.role == "tmp" and o.name not in given]
    if not left_out or insn.asm.syntax:
        return []
    names = {o.name for o in insn.operands if o.name in given}
    is_overload = any(set(form) == names for form in insn.forms)
    others = {o.name for o in insn.operands if o.role == "tmp" or o.name in insn.asm.literals}
    asked = {
        name
        for form in insn.forms
        if set(form) - others == names - others and not is_overload
        for name in form
    }
    asked |= {*insn.asm.supplied} if in_text else set()
    return [o for o in left_out if not o.optional or o.name in asked]


class Supplied(NamedTuple):
    """A temporary that was left out: a type for it, and whether the target does touch it."""

    type: TileBufType
    is_used: bool


def scratch_types(op: Op, target: Target) -> dict[str, TileBufType]:
    """A type for each temporary that was left out and is needed."""
    return {name: each.type for name, each in supplied(op, target).items()}


def supplied(
    op: Op,
    target: Target,
    named: dict[str, Facts | None] | None = None,
    *,
    in_text: bool = False,
) -> dict[str, Supplied]:
    """The temporaries that were left out and are needed; `named` are the facts of the others."""
    missing = missing_scratch(op, in_text=in_text)
    if not missing:
        return {}
    insn = op.insn
    assert insn is not None
    facts = _facts(op, target) if named is None else named
    attrs = dict(zip((a.name for a in insn.attrs), template_arguments(op), strict=True))
    missing = [o for o in missing if _is_needed(insn, o, Ops(facts, attrs, target, "auto"))]
    if not missing:
        return {}
    is_told = facts is named or all(
        o in missing or facts[o.name] is not None for o in insn.operands if not o.optional
    )
    spec, ops = chosen_scratch(insn, missing, Ops(facts, attrs, target, "auto"), is_told)
    return {o.name: Supplied(TileBufType(spec), _is_used(o, ops)) for o in missing}


def chosen_scratch(
    insn: Insn, missing: list[Operand], ops: Ops, is_told: bool = True
) -> tuple[TileSpec, Ops]:
    """A tile for temporaries that are left out, and the operands with it.

    It breaks the fewest rules among likely ones, if the facts of all other operands are told.
    """
    target, facts = ops.target, dict(ops)
    tiles = [*_tiles(facts)]
    best: tuple[int, TileSpec, Ops] | None = None
    for spec in (*_placeholders(tiles), *_candidates(tiles)):
        mine = TileFacts(on_target(spec, target.left_layout))
        with_it = Ops(facts | {o.name: mine for o in missing}, ops.attrs, target, ops.mode)
        if spec.nbytes == BLOCK_BYTES and any(_is_used(o, with_it) for o in missing):
            continue  # no placeholder
        broken = len(verify(insn, with_it, advise=False)) if is_told else 0
        if best is None or broken < best[0]:
            best = broken, spec, with_it
        if not broken:  # or an operand is of a kind whose facts only the whole program tells
            break
    assert best is not None
    return best[1:]


def _is_needed(insn: Insn, declared: Operand, ops: Ops) -> bool:
    """Whether a temporary is to be supplied; where sizes decide that are not known, it is."""
    assert insn.asm is not None
    needs = insn.asm.supplied.get(declared.name)
    with suppress(Unknown):
        return needs is None or needs(ops)
    return True


def _is_used(temporary: Operand, ops: Ops) -> bool:
    """Whether a call touches it, as far as it is known."""
    with suppress(Unknown):
        leaves = None if temporary.unspecified is None else temporary.unspecified(ops)
        return temporary.is_lost(ops) or leaves is not None
    return True


def _facts(op: Op, target: Target) -> dict[str, Facts | None]:
    """What the types of an operation tell."""
    assert op.insn is not None
    found: dict[str, Facts | None] = {}
    for declared, value in zip(op.insn.operands, run_time_operands(op), strict=True):
        type_ = None if value is None else value.type
        if isinstance(type_, TileBufType):
            found[declared.name] = TileFacts(on_target(type_.spec, target.left_layout))
        elif isinstance(type_, ConvTileType):
            found[declared.name] = ConvFacts(type_.spec)
        elif isinstance(type_, ScalarType):
            found[declared.name] = ScalarFacts(type_.dtype)
        else:
            number = literal(op, declared)
            found[declared.name] = None if number is None else ScalarFacts(None, number)
    return found


def _tiles(facts: dict[str, Facts | None]) -> Iterator[TileSpec]:
    """The tiles among the operands; a convolution tile counts as one of its blocks in rows."""
    for each in facts.values():
        if isinstance(each, TileFacts):
            yield each.spec
        elif isinstance(each, ConvFacts):
            line = BLOCK_BYTES // each.itemsize
            yield TileSpec.of(each.loc, each.dtype, -(-each.spec.buffer_size // line), line)


def _placeholders(tiles: list[TileSpec]) -> Iterator[TileSpec]:
    """Tiles of one block with the element types of others."""
    for element in dict.fromkeys((*(s.dtype for s in tiles), u8)):
        yield TileSpec.of(TileType.Vec, element, 1, BLOCK_BYTES // element.itemsize)


def _candidates(tiles: list[TileSpec]) -> Iterator[TileSpec]:
    """Row-major tiles with the shapes and element types of others, the largest first."""
    tiles = [s for s in tiles if s.loc == TileType.Vec] or tiles
    tiles = sorted(tiles, key=lambda s: -s.nbytes)
    elements = list(dict.fromkeys((*(s.dtype for s in tiles), u8)))
    seen: set[TileSpec] = set()
    for longer, wider, shape in product(_LONGER, _WIDER, tiles):
        for element in (shape.dtype, *elements):
            line = max(1, 32 // element.itemsize)
            cols = -(-shape.cols * wider // line) * line
            valid = (shape.valid_row, shape.valid_col)
            regions = [(None, None)] if DYNAMIC in valid else [(None, None), valid]
            for region in regions:
                spec = TileSpec.of(
                    shape.loc, element, shape.rows + longer, cols, BLayout.RowMajor, *region
                )
                if spec not in seen:
                    seen.add(spec)
                    yield spec
    yield TileSpec.of(TileType.Vec, f32, 1, 512)  # whatever the others are: a sequence of numbers
