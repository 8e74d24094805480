"""Operations on logical vectors, ready to run.

As with registers (vector_calls.py) all that types and words say is worked out once, and masks,
undefined bytes and accesses are seen to here. A vector is a `Register` of as many lanes as it has,
its mask a `Mask` with a bit for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import numpy as np

from ptokit.base.convert import element
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.isa.arrays import function_of
from ptokit.isa.expr import BOOL, Arg
from ptokit.isa.micro.footprints import Footprint, Image
from ptokit.isa.micro.spec import Flow, Masking, Micro, Slot, Vector
from ptokit.machine.registers import Mask, Register
from ptokit.machine.vector_unit import VectorUnit

Call = Callable[..., Any]
Vectors = Mapping[str, Vector]  # of operands and results that have an element type, or are masks
_VECTORS = frozenset("VWXLGHE")
_CARRIERS = frozenset("VWXLGHEMN")


def prepared_logical(
    record: Micro, vectors: Vectors, words: Mapping[str, Any], results: int
) -> Call:
    """The operation on vectors of these types and numbers of lanes, with so many results."""
    said = {word.name: words.get(word.name, word.number) for word in record.words}
    at = {slot.name: place for place, slot in enumerate(record.operands)}
    if record.footprint is not None:
        return _memory(record, record.footprint, at, vectors, said)
    if "unit" in record.parameters:
        return _between(record, vectors, results)
    kinds = {name: v.kind for name, v in vectors.items() if v.lanes and v.kind is not None}
    lanes = {name: vector.lanes for name, vector in vectors.items()}
    return _compute(record, at, kinds, lanes, said, results)


def _between(record: Micro, vectors: Vectors, results: int) -> Call:
    """What goes between vectors and registers, and sees to everything by itself."""
    body, vector = record.body, vectors["a"]
    if record.results[0].is_list and results == 1:
        return lambda unit, given: body(unit, given, vector)[0]
    return lambda unit, given: body(unit, given, vector)


def _made(record: Micro, count: int) -> tuple[Slot, ...]:
    """The results; a list of them has as many as there are."""
    return record.results * count if record.results[0].is_list else record.results[:count]


def _compute(
    record: Micro,
    at: Mapping[str, int],
    kinds: Mapping[str, DType],
    lanes: Mapping[str, int],
    said: Mapping[str, Any],
    count: int,
) -> Call:
    results = _made(record, count)
    made_of = [slot for slot in record.operands if slot.kind in _VECTORS and slot.name in kinds]
    first = kinds[made_of[0].name] if made_of else kinds.get(results[0].name)
    body, names = record.body, list(record.parameters)
    constants: dict[str, Any] = {
        "T": first,
        "U": kinds.get(results[0].name),
        "lanes": lanes[results[0].name],
        "made": count,
    } | dict(said)
    if record.is_lanewise:
        body, names = _lanewise(record, kinds, first, said)
        constants = {}
    fixed = {name: constants[name] for name in names if name in constants}
    fetch = [_fetch(record, name, at, kinds, first) for name in names if name not in fixed]
    mask_at = at.get("mask")
    is_zeroing = record.masking is Masking.ZERO
    merges = said.get("pmode") == "merge" and bool(made_of)
    finish = [_finish(slot, kinds.get(slot.name)) for slot in results]
    carriers = [n for n, slot in enumerate(record.operands) if slot.kind in _CARRIERS]
    spread = _spread(record, at, kinds, lanes, body, fetch, fixed, results)

    def call(unit: VectorUnit, *args: Any) -> Any:
        made = body(*[get(args) for get in fetch], **fixed)
        found = made if made.__class__ is tuple else (made,)
        active = None
        if is_zeroing and mask_at is not None and args[mask_at] is not None:
            active = args[mask_at].bits
        carried = [value for n in carriers for value in _values(args[n])]
        poison: Any = [None] * len(results)
        if any(value.poison is not None for value in carried):
            poison = spread(unit, args)
        after, turn = unit.after(*carried), unit.turn
        kept = args[at[made_of[0].name]] if merges else None
        ended = [
            end(value, active, kept, lost, after, turn)
            for end, value, lost in zip(finish, found, poison, strict=True)
        ]
        return ended[0] if len(ended) == 1 else tuple(ended)

    return call


def _values(given: Any) -> list[Register | Mask]:
    """What an operand is made of: one value, several, or none."""
    every = given if isinstance(given, list) else [given]
    return [value for value in every if isinstance(value, Register | Mask)]


def _lanewise(
    record: Micro, kinds: Mapping[str, DType], first: DType | None, said: Mapping[str, Any]
) -> tuple[Call, list[str]]:
    names, *outputs = expressions(record, kinds, first, said)
    return function_of(record.name.replace(".", "_"), names, *outputs), names


def expressions(
    record: Micro, kinds: Mapping[str, DType], first: DType | None, said: Mapping[str, Any]
) -> tuple[Any, ...]:
    """What a function of single elements computes: the names of its elements, the results."""
    asked, names = list[Any](), list[str]()
    for name in record.parameters:
        if name in said:
            asked.append(said[name])
            continue
        slot = record.slot(name)
        is_mask = slot is not None and (
            slot.kind == "M" or (slot.kind == "E" and name not in kinds)
        )
        kind = BOOL if is_mask else kinds.get(name) or first
        assert kind is not None
        asked.append(Arg(kind, name))
        names.append(name)
    found = record.body(*asked)
    return names, *(found if isinstance(found, tuple) else (found,))


def _fetch(
    record: Micro, name: str, at: Mapping[str, int], kinds: Mapping[str, DType], first: DType | None
) -> Callable[[tuple[Any, ...]], Any]:
    slot, place = record.slot(name), at[name]
    assert slot is not None
    if slot.kind in _VECTORS and name in kinds:
        kind = kinds[name].np
        if slot.is_list:
            return lambda args: [each.of(kind) for each in args[place]]
        return lambda args: args[place].of(kind)
    if slot.kind in "MNE":
        return lambda args: None if args[place] is None else args[place].bits
    if slot.kind == "S" or (record.is_lanewise and slot.kind == "int"):
        assert first is not None
        return lambda args: element(args[place], first)
    return lambda args: args[place]


def _finish(slot: Slot, kind: DType | None) -> Call:
    if slot.kind not in _CARRIERS:  # a number
        return lambda value, *_: value
    if kind is None:

        def mask(lanes: Array, active: Any, kept: Any, poison: Any, after: int, turn: int) -> Mask:
            bits = lanes if active is None else lanes & active
            return Mask(np.ascontiguousarray(bits), poison, after, turn)

        return mask
    np_kind, zero = kind.np, np.zeros((), kind.np)

    def register(
        lanes: Array, active: Any, kept: Any, poison: Any, after: int, turn: int
    ) -> Register:
        if lanes.dtype != np_kind:
            lanes = lanes.astype(np_kind)
        if active is not None and lanes.size == active.size:
            lanes = np.where(active, lanes, zero if kept is None else kept.of(np_kind))
        return Register(np.ascontiguousarray(lanes), poison, after, turn)

    return register


def _spread(
    record: Micro,
    at: Mapping[str, int],
    kinds: Mapping[str, DType],
    lanes: Mapping[str, int],
    body: Call,
    fetch: list[Any],
    fixed: Mapping[str, Any],
    results: tuple[Slot, ...],
) -> Call:
    """Which bytes of the results are undefined, where some of the operands are."""
    vectors = [at[s.name] for s in record.operands if s.kind in _VECTORS and s.name in kinds]
    masks = [at[s.name] for s in record.operands if s.kind in _CARRIERS and s.name not in kinds]
    mask_at = at.get("mask")

    def of_results(lost: Array) -> list[Any]:
        if not lost.any():
            return [None] * len(results)
        found: list[Any] = []
        for slot in results:
            kind = kinds.get(slot.name)
            found.append(lost if kind is None else np.repeat(lost, kind.itemsize).view(np.uint8))
        return found

    def by_lanes(unit: VectorUnit, args: tuple[Any, ...]) -> list[Any]:
        lost = np.zeros(lanes[results[0].name], np.bool_)
        for place in vectors:
            if args[place].poison is not None:
                lost |= args[place].poison.reshape(lost.size, -1).any(axis=1)
        if mask_at is not None and args[mask_at] is not None:
            lost &= args[mask_at].bits
        for place in masks:
            for mask in _values(args[place]):
                lost |= False if mask.poison is None else mask.poison
        return of_results(lost)

    def by_bytes(unit: VectorUnit, args: tuple[Any, ...]) -> list[Any]:
        for place in masks:
            for mask in _values(args[place]):
                unit.demand(mask, 1, None, f"a mask of {record.name}")
        swapped = list(args)
        for place in vectors:
            given = args[place]
            swapped[place] = (
                [_shadow(g) for g in given] if isinstance(given, list) else _shadow(given)
            )
        made = body(*[get(tuple(swapped)) for get in fetch], **fixed)
        found = [
            np.ascontiguousarray(each).view(np.uint8)
            for each in (made if isinstance(made, tuple) else (made,))
        ]
        return [each if each.any() else None for each in found]

    def demand(unit: VectorUnit, args: tuple[Any, ...]) -> list[Any]:
        mask = None if mask_at is None else args[mask_at]
        for place in vectors:
            given = args[place]
            size = given.lanes.itemsize if given.lanes.dtype != np.uint8 else 1
            count = given.data.size // size
            active = mask.bits if mask is not None and mask.bits.size == count else None
            unit.demand(given, size, active, f"what {record.name} goes over")
        return [None] * len(results)

    return {Flow.LANES: by_lanes, Flow.BYTES: by_bytes, Flow.ALL: demand}[record.flow]


def _shadow(given: Register) -> Register:
    """Its undefined bytes, in the place of its bytes."""
    return Register(np.zeros(given.data.size, np.uint8) if given.poison is None else given.poison)


# ---- memory ------------------------------------------------------------------------------------


def _memory(
    record: Micro,
    footprint: Footprint,
    at: Mapping[str, int],
    vectors: Vectors,
    said: Mapping[str, Any],
) -> Call:
    vector, base = vectors["src" if footprint.writes else "dst"], vectors["base"]
    assert vector.kind is not None
    assert base.kind is not None
    size, memory_size = vector.kind.itemsize, base.kind.itemsize
    is_pair = "high" in vectors  # the lanes of one vector behind those of the other
    count = 2 * vector.lanes if is_pair else vector.lanes
    mask_at, index_at, fill_at = at.get("mask"), at.get("index"), at.get("passthru")
    base_at, offset_at, source_at = at["base"], at.get("offset"), at.get("src")
    owners = np.arange(count * size) // size % vector.lanes  # the lane of each byte
    whole = Image(count * size, (None,), owners, alignment=memory_size)
    every = np.ones(count * size, np.bool_)
    index = vectors.get("index")
    index_kind = None if index is None or index.kind is None else index.kind.uint
    places = places_of(footprint, at, index_kind, said, lanes=count, size=size,
                       memory_size=memory_size)  # fmt: skip

    def call(unit: VectorUnit, *args: Any) -> Any:
        pointer = args[base_at]
        start = pointer.offset + (0 if offset_at is None else args[offset_at] * memory_size)
        mask = None if mask_at is None else args[mask_at]
        active = None if mask is None else mask.bits
        after = 0 if mask is None else unit.after(mask)
        if index_at is not None:
            assert index_kind is not None
            given: Register = args[index_at]
            unit.demand(given, index_kind.itemsize, active, f"the indices of {record.name}")
            after |= unit.after(given)
        table = places(args)
        sources = [args[at[n]] for n in ("src", "high") if n in at and args[at[n]] is not None]
        if table is None and source_at is not None:
            unit.store(pointer, start, whole, mask, *sources)
            return None
        if table is None and mask is None:
            return unit.load(pointer, start, whole)[0]
        table = _in_order(count * size) if table is None else table
        touched = every
        if mask is not None:
            unit.demand(mask, 1, None, f"the mask of {record.name}")
            touched = mask.bits[owners]
        here = pointer.at(start)
        if source_at is not None:
            unit.scatter(here, table, touched, joined(unit, sources), after)
            return None
        found = unit.gather(here, table, touched, after)
        if fill_at is not None:
            return _filled(unit, found, touched, args[fill_at])
        return halves(found) if is_pair else found

    return call


def places_of(
    footprint: Footprint, at: Mapping[str, int], index_kind: Any, said: Mapping[str, Any],
    **sizes: int,
) -> Call:  # fmt: skip
    """Where the bytes of vectors lie, by the operands: the function of the footprint, with them."""
    where = footprint.places
    assert where is not None
    fixed: dict[str, Any] = {}
    fetched: list[tuple[str, Call]] = []
    for name in signature(where).parameters:
        if name in sizes or name in said:
            fixed[name] = sizes.get(name, said.get(name))
        else:
            fetched.append((name, _number(name, at[name], index_kind)))
    if not fetched:
        table = where(**fixed)
        return lambda args: table
    return lambda args: where(**fixed, **{name: get(args) for name, get in fetched})


def _number(name: str, place: int, index_kind: Any) -> Call:
    if name == "mask":
        return lambda args: args[place].bits
    if name == "index":
        return lambda args: args[place].of(index_kind)
    return lambda args: args[place] or 0 if not isinstance(args[place], list) else args[place]


def _in_order(count: int) -> Array:
    return np.arange(count)


def _filled(unit: VectorUnit, found: Register, touched: Array, other: Register) -> Register:
    """A loaded vector, with bytes of another where nothing was loaded."""
    lanes = np.where(touched, found.data, other.data)
    poison = np.where(touched, _poison(found), _poison(other))
    after = found.after | unit.after(other)
    return Register(lanes, poison if poison.any() else None, after, unit.turn)


def _poison(given: Register) -> Array:
    return np.zeros(given.data.size, np.uint8) if given.poison is None else given.poison


def joined(unit: VectorUnit, given: list[Register]) -> Register:
    """Vectors one after the other."""
    if len(given) == 1:
        return given[0]
    poison = np.concatenate([_poison(each) for each in given])
    data = np.concatenate([each.data for each in given])
    return Register(data, poison if poison.any() else None, unit.after(*given), unit.turn)


def halves(given: Register) -> tuple[Register, ...]:
    """The two vectors of which one is made."""
    parts = given.data.reshape(2, -1)
    poisons = [None, None] if given.poison is None else list(given.poison.reshape(2, -1))
    return tuple(
        Register(part.copy(), poison, given.after, given.turn)
        for part, poison in zip(parts, poisons, strict=True)
    )
