"""Operations on logical vectors, ready to run.

As with registers (vector_calls.py) all that types and words say is worked out once, and masks,
undefined bytes and accesses are seen to here. A vector is a `Register` of as many lanes as it has,
its mask a `Mask` with a bit for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ptokit.base.convert import element
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.isa.arrays import function_of
from ptokit.isa.expr import Arg
from ptokit.isa.micro.footprints import Footprint, Image, by_index
from ptokit.isa.micro.spec import Flow, Masking, Micro
from ptokit.machine.registers import Mask, Register
from ptokit.machine.vector_unit import VectorUnit

Call = Callable[..., Any]
_VECTORS = frozenset("VWXL")


def prepared_logical(
    record: Micro, kinds: Mapping[str, DType], lanes: Mapping[str, int], words: Mapping[str, Any]
) -> Call:
    """The operation on vectors of these element types and numbers of lanes."""
    said = {word.name: words.get(word.name, word.default) for word in record.words}
    at = {slot.name: place for place, slot in enumerate(record.operands)}
    if record.footprint is not None:
        return _memory(record, record.footprint, at, kinds, lanes, said)
    return _compute(record, at, kinds, lanes, said)


def _compute(
    record: Micro,
    at: Mapping[str, int],
    kinds: Mapping[str, DType],
    lanes: Mapping[str, int],
    said: Mapping[str, Any],
) -> Call:
    results = record.results
    made_of = [slot for slot in record.operands if slot.kind in _VECTORS and slot.name in kinds]
    first = kinds[made_of[0].name] if made_of else kinds.get(results[0].name)
    body, names = record.body, list(record.parameters)
    constants: dict[str, Any] = {
        "T": first,
        "U": kinds.get(results[0].name),
        "lanes": lanes[results[0].name],
    } | dict(said)
    if record.is_lanewise:
        body, names = _lanewise(record, kinds, first, said)
        constants = {}
    fixed = {name: constants[name] for name in names if name in constants}
    fetch = [_fetch(record, name, at, kinds, first) for name in names if name not in fixed]
    mask_at = at.get("mask")
    is_zeroing = record.masking is Masking.ZERO
    merges = said.get("pmode") == "merge" and bool(made_of)
    finish = [_finish(kinds.get(slot.name)) for slot in results]
    carriers = [n for n, slot in enumerate(record.operands) if slot.kind in "VWXLMN"]
    spread = _spread(record, at, kinds, lanes, body, fetch, fixed)

    def call(unit: VectorUnit, *args: Any) -> Any:
        made = body(*[get(args) for get in fetch], **fixed)
        found = made if made.__class__ is tuple else (made,)
        active = None
        if is_zeroing and mask_at is not None and args[mask_at] is not None:
            active = args[mask_at].bits
        carried = [args[n] for n in carriers if isinstance(args[n], Register | Mask)]
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


def _lanewise(
    record: Micro, kinds: Mapping[str, DType], first: DType | None, said: Mapping[str, Any]
) -> tuple[Call, list[str]]:
    asked, names = list[Any](), list[str]()
    for name in record.parameters:
        if name in said:
            asked.append(said[name])
            continue
        kind = kinds.get(name) or first
        assert kind is not None
        asked.append(Arg(kind, name))
        names.append(name)
    found = record.body(*asked)
    outputs = found if isinstance(found, tuple) else (found,)
    return function_of(record.name.replace(".", "_"), names, *outputs), names


def _fetch(
    record: Micro, name: str, at: Mapping[str, int], kinds: Mapping[str, DType], first: DType | None
) -> Callable[[tuple[Any, ...]], Any]:
    slot, place = record.slot(name), at[name]
    assert slot is not None
    if slot.kind in _VECTORS and name in kinds:
        kind = kinds[name].np
        return lambda args: args[place].of(kind)
    if slot.kind == "M":
        return lambda args: None if args[place] is None else args[place].bits
    if slot.kind == "S" or (record.is_lanewise and slot.kind == "int"):
        assert first is not None
        return lambda args: element(args[place], first)
    return lambda args: args[place]


def _finish(kind: DType | None) -> Call:
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
) -> Call:
    """Which bytes of the results are undefined, where some of the operands are."""
    vectors = [at[s.name] for s in record.operands if s.kind in _VECTORS and s.name in kinds]
    masks = [at[s.name] for s in record.operands if s.kind == "M"]
    mask_at = at.get("mask")

    def of_results(lost: Array) -> list[Any]:
        if not lost.any():
            return [None] * len(record.results)
        found: list[Any] = []
        for slot in record.results:
            kind = kinds.get(slot.name)
            found.append(lost if kind is None else np.repeat(lost, kind.itemsize).view(np.uint8))
        return found

    def by_lanes(unit: VectorUnit, args: tuple[Any, ...]) -> list[Any]:
        lost = np.zeros(lanes[record.results[0].name], np.bool_)
        for place in vectors:
            if args[place].poison is not None:
                lost |= args[place].poison.reshape(lost.size, -1).any(axis=1)
        if mask_at is not None and args[mask_at] is not None:
            lost &= args[mask_at].bits
        for place in masks:
            if args[place] is not None and args[place].poison is not None:
                lost |= args[place].poison
        return of_results(lost)

    def by_bytes(unit: VectorUnit, args: tuple[Any, ...]) -> list[Any]:
        for place in masks:
            if args[place] is not None:
                unit.demand(args[place], 1, None, f"a mask of {record.name}")
        swapped = list(args)
        for place in vectors:
            given = args[place]
            blank = np.zeros(given.data.size, np.uint8)
            swapped[place] = Register(blank if given.poison is None else given.poison)
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
        return [None] * len(record.results)

    return {Flow.LANES: by_lanes, Flow.BYTES: by_bytes, Flow.ALL: demand}[record.flow]


# ---- memory ------------------------------------------------------------------------------------


def _memory(
    record: Micro,
    footprint: Footprint,
    at: Mapping[str, int],
    kinds: Mapping[str, DType],
    lanes: Mapping[str, int],
    said: Mapping[str, Any],
) -> Call:
    vector = "src" if footprint.writes else "dst"
    size, memory_size, count = kinds[vector].itemsize, kinds["base"].itemsize, lanes[vector]
    mask_at, index_at = at.get("mask"), at.get("index")
    base_at, offset_at, stride_at = at["base"], at.get("offset"), at.get("stride")
    source_at = at.get("src")
    group, mode = int(said.get("group") or 0), said.get("dist_mode") or "norm"
    owners = np.arange(count * size) // size  # the lane of each byte
    whole = Image(count * size, (None,), owners, alignment=memory_size)
    every = np.ones(count * size, np.bool_)
    index_kind = kinds.get("index")

    def call(unit: VectorUnit, *args: Any) -> Any:
        pointer = args[base_at]
        start = pointer.offset + (0 if offset_at is None else args[offset_at] * memory_size)
        mask = None if mask_at is None else args[mask_at]
        after = 0 if mask is None else unit.after(mask)
        if index_at is not None and index_kind is not None:
            index: Register = args[index_at]
            active = None if mask is None else mask.bits
            unit.demand(index, index_kind.itemsize, active, f"the indices of {record.name}")
            after |= unit.after(index)
            table = by_index(index.of(index_kind.uint), size, memory_size)
        else:
            assert footprint.places is not None
            strides = [] if stride_at is None else args[stride_at] or []
            table = footprint.places(count, size, memory_size, strides, group, mode)
        if table is None and source_at is not None:
            unit.store(pointer, start, whole, mask, args[source_at])
            return None
        if table is None:
            return unit.load(pointer, start, whole)[0]
        touched = every
        if mask is not None:
            unit.demand(mask, 1, None, f"the mask of {record.name}")
            touched = mask.bits[owners]
        here = pointer.at(start)
        if source_at is None:
            return unit.gather(here, table, touched, after)
        unit.scatter(here, table, touched, args[source_at], after)
        return None

    return call
