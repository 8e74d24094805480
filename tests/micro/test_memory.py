"""Loads, stores and streams: every pattern beside a loop over its slots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.base.dtypes import dtype
from ptokit.from_text import loads
from ptokit.isa.micro import MICRO
from ptokit.isa.micro.footprints import LOADS, PAIR_LOADS, PAIR_STORES, STORES
from tests.micro.programs import mask, register, run, scope

BYTES = "!pto.vreg<256xui8>"
ALL = '%all = pto.pset_b8 "PAT_ALL" : !pto.mask<b8>\n'


def stored(name: str, at: str = "%c0") -> str:
    return f"pto.vsts %{name}, %out[{at}], %all : {BYTES}, !pto.ptr<ui8, ub>, !pto.mask<b8>\n"


def data(count: int = 1024, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)


def slots(x: Any, width: int) -> list[bytes]:
    return [bytes(x[n : n + width]) for n in range(0, len(x), width)]


def loaded(pattern: str, x: Any) -> bytes:
    """What a register holds after vlds, slot by slot."""
    width = int(pattern.rpartition("_B")[2]) // 8 if "_B" in pattern and "BLK" not in pattern else 1
    one, count = slots(x, width), 256 // width
    match pattern.partition("_")[0]:
        case "NORM":
            return bytes(x[:256])
        case "BRC":
            return bytes(x[:32]) * 8 if pattern == "BRC_BLK" else one[0] * count
        case "US":
            return b"".join(one[i // 2] for i in range(count))
        case "DS":
            return b"".join(one[2 * i] for i in range(count))
        case "UNPK":
            return b"".join(one[i] + bytes(width) for i in range(count // 2))
        case "UNPK4":
            return b"".join(bytes([x[i], 0, 0, 0]) for i in range(64))
        case _:  # E2B: a block of 32 bytes of each slot
            return b"".join(one[k] * (32 // width) for k in range(8))


@pytest.mark.parametrize("pattern", LOADS)
def test_a_load_spreads_memory_as_its_pattern_says(pattern: str) -> None:
    line = f'%v = pto.vlds %x[%c0] {{dist = "{pattern}"}} : !pto.ptr<ui8, ub> -> {BYTES}\n'
    x, out = data(), np.zeros(256, np.uint8)
    run(scope(ALL + line + stored("v"), "x:ui8", "ui8"), x, out=out)
    assert out.tobytes() == loaded(pattern, x)


@pytest.mark.parametrize("pattern", PAIR_LOADS)
def test_a_load_of_two_registers_takes_slots_in_turn(pattern: str) -> None:
    width = 32 if pattern == "BDINTLV" else int(pattern.rpartition("_B")[2]) // 8
    line = (
        f'%v, %w = pto.vldsx2 %x[%c0], "{pattern}" : !pto.ptr<ui8, ub>, index -> {BYTES}, {BYTES}\n'
        "%c256 = arith.constant 256 : index\n"
    )
    x, out = data(), np.zeros(512, np.uint8)
    run(scope(ALL + line + stored("v") + stored("w", "%c256"), "x:ui8", "ui8"), x, out=out)
    one = slots(x[:512], width)
    assert out.tobytes() == b"".join(one[::2] + one[1::2])


@pytest.mark.parametrize("pattern", STORES)
def test_a_store_packs_registers_as_its_pattern_says(pattern: str) -> None:
    """Inactive slots keep what memory holds; one point does not ask."""
    width = int(pattern.rpartition("_B")[2]) // 8
    lane = min(width, 4)
    body = (
        f"%v = pto.vlds %x[%c0] : !pto.ptr<ui8, ub> -> {BYTES}\n"
        f'%m = pto.plds %k[%c0], "NORM" : !pto.ptr<ui8, ub>, index -> !pto.mask<b{8 * lane}>\n'
        f'pto.vsts %v, %out[%c0], %m {{dist = "{pattern}"}} : {BYTES}, !pto.ptr<ui8, ub>, '
        f"!pto.mask<b{8 * lane}>"
    )
    x, k, out = data(), data(32, 5), np.full(256, 9, np.uint8)
    before = out.copy()
    run(scope(body, "x:ui8 k:ui8", "ui8"), x, k, out=out)
    bits = np.unpackbits(k, bitorder="little")
    kept = {"NORM": width, "1PT": width, "PK": width // 2, "PK4": 1}[pattern.partition("_")[0]]
    for place, slot in enumerate(slots(x[:256], width)):
        if pattern.startswith("1PT"):
            if place:
                break
        elif not bits[place * width]:
            continue
        before[place * kept : place * kept + kept] = list(slot[:kept])
    assert (out == before).all()


@pytest.mark.parametrize("pattern", PAIR_STORES)
def test_two_registers_are_stored_in_turn(pattern: str) -> None:
    width = int(pattern.rpartition("_B")[2]) // 8
    body = (
        ALL
        + "%c256 = arith.constant 256 : index\n"
        + f"%v = pto.vlds %x[%c0] : !pto.ptr<ui8, ub> -> {BYTES}\n"
        + f"%w = pto.vlds %x[%c256] : !pto.ptr<ui8, ub> -> {BYTES}\n"
        + f'pto.vstsx2 %v, %w, %out[%c0], "{pattern}", %all : {BYTES}, {BYTES}, '
        + "!pto.ptr<ui8, ub>, index, !pto.mask<b8>"
    )
    x, out = data(512), np.zeros(512, np.uint8)
    run(scope(body, "x:ui8", "ui8"), x, out=out)
    pairs = zip(slots(x[:256], width), slots(x[256:], width), strict=True)
    assert out.tobytes() == b"".join(a + b for a, b in pairs)


@pytest.mark.parametrize("kind", ["f32", "i32", "u16", "f16", "u8"])
def test_gather_and_scatter_go_by_index(kind: str) -> None:
    """Inactive lanes make no access: theirs may lie anywhere. Narrow elements widen."""
    T = dtype(kind)
    index = dtype("u32" if T.itemsize == 4 else "u16")
    lanes, wide = 256 // index.itemsize, T if T.itemsize > 1 else dtype("u16")
    rng = np.random.default_rng(4)
    x = data(4096).view(T.np)
    where = rng.permutation(x.size)[:lanes].astype(index.np)
    bits = rng.integers(0, 2, lanes).astype(bool)
    where[~bits] = np.iinfo(index.np).max
    k = np.zeros(256, np.bool_)
    k[:: index.itemsize] = bits
    body = (
        f"%i = pto.vlds %w[%c0] : !pto.ptr<{index.mlir}, ub> -> {register(index)}\n"
        f'%m = pto.plds %k[%c0], "NORM" : !pto.ptr<ui8, ub>, index -> {mask(index)}\n'
        f'%all = pto.pset_b{8 * index.itemsize} "PAT_ALL" : {mask(index)}\n'
        f"%v = pto.vgather2 %x, %i, %m : !pto.ptr<{T.mlir}, ub>, {register(index)}, {mask(index)} "
        f"-> {register(wide)}\n"
        f"pto.vsts %v, %out[%c0], %all : {register(wide)}, !pto.ptr<{wide.mlir}, ub>, {mask(index)}"
    )
    out = np.zeros(lanes, wide.np)
    program = scope(body, f"x:{T.mlir} w:{index.mlir} k:ui8", wide.mlir)
    run(program, x, where, np.packbits(k, bitorder="little"), out=out)
    wanted = [x[i] if on else 0 for i, on in zip(where, bits, strict=True)]
    assert out.tobytes() == np.array(wanted, wide.np).tobytes()


def test_blocks_lie_a_stride_apart() -> None:
    body = (
        ALL + f"%v = pto.vsldb %x, %two, %three, %all : !pto.ptr<ui8, ub>, i16, i16, !pto.mask<b8> "
        f"-> {BYTES}\n" + stored("v")
    )
    more = "%two = arith.constant 2 : i16\n%three = arith.constant 3 : i16"
    x, out = data(), np.zeros(256, np.uint8)
    run(scope(body, "x:ui8", "ui8", more), x, out=out)
    starts = [3 * 32 + k * 2 * 32 for k in range(8)]
    assert out.tobytes() == b"".join(bytes(x[s : s + 32]) for s in starts)


def test_with_a_second_result_the_access_is_at_the_base_and_the_pointer_moves() -> None:
    body = (
        ALL
        + f"%v, %p = pto.vlds %x[%c64] : !pto.ptr<ui8, ub> -> {BYTES}, !pto.ptr<ui8, ub>\n"
        + f"%w = pto.vlds %p[%c0] : !pto.ptr<ui8, ub> -> {BYTES}\n"
        + f"%q = pto.vsts %v, %out[%c256], %all : {BYTES}, !pto.ptr<ui8, ub>, !pto.mask<b8> -> "
        + "!pto.ptr<ui8, ub>\n"
        + f"pto.vsts %w, %q[%c0], %all : {BYTES}, !pto.ptr<ui8, ub>, !pto.mask<b8>"
    )
    more = "%c64 = arith.constant 64 : index\n%c256 = arith.constant 256 : index"
    x, out = data(), np.zeros(512, np.uint8)
    run(scope(body, "x:ui8", "ui8", more), x, out=out)
    assert (out == np.concatenate([x[:256], x[64:320]])).all()


def test_a_stream_stores_and_loads_anywhere() -> None:
    """Three lanes, then five, behind each other from byte 4 on; the rest keeps its bytes."""
    v = register("f32")
    body = (
        f"%s = pto.init_align : !pto.align\n%a = pto.vldas %p : !pto.ptr<f32, ub> -> !pto.align\n"
        f"%v, %a2 = pto.vldus %p, %a : !pto.ptr<f32, ub>, !pto.align -> {v}, !pto.align\n"
        f"%t, %q = pto.vstus %s, %n3, %v, %o : !pto.align, i32, {v}, !pto.ptr<f32, ub> -> "
        "!pto.align, !pto.ptr<f32, ub>\n"
        f"%u, %r = pto.vstus %t, %n5, %v, %q : !pto.align, i32, {v}, !pto.ptr<f32, ub> -> "
        "!pto.align, !pto.ptr<f32, ub>\n"
        "pto.vstas %u, %r, %n0 : !pto.align, !pto.ptr<f32, ub>, i32"
    )
    more = "%c1 = arith.constant 1 : index\n" + "".join(
        f"%n{n} = arith.constant {n} : i32\n" for n in (0, 3, 5)
    )
    made = str(scope(ALL, "x:f32", "f32", more))
    moved = (
        "%p = pto.addptr %x, %c1 : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>\n"
        "%o = pto.addptr %out, %c1 : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>\n"
    )
    start = made.index("pto.vecscope")
    stop = made.index("}", start)

    program = loads(f"{made[:start]}{moved}pto.vecscope {{\n{body}\n{made[stop:]}")
    x, out = np.arange(80, dtype=np.float32), np.full(80, -1, np.float32)
    run(program, x, out=out)
    assert out[:10].tolist() == [-1, 1, 2, 3, 1, 2, 3, 4, 5, -1]


def test_an_access_behind_the_memory_is_refused() -> None:
    body = ALL + f"%v = pto.vlds %x[%far] : !pto.ptr<ui8, ub> -> {BYTES}\n" + stored("v")
    program = scope(body, "x:ui8", "ui8", "%far = arith.constant 262016 : index")
    with pytest.raises(PtoError, match="lies inside"):
        run(program, data(), out=np.zeros(256, np.uint8))


def test_lanes_with_one_index_and_different_values_collide() -> None:
    v, m = register("f32"), mask("f32")
    body = (
        f'%m = pto.pset_b32 "PAT_ALL" : {m}\n%v = pto.vlds %x[%c0] : !pto.ptr<f32, ub> -> {v}\n'
        f"%i = pto.vlds %w[%c0] : !pto.ptr<ui32, ub> -> {register('u32')}\n"
        f"pto.vscatter %v, %out, %i, %m : {v}, !pto.ptr<f32, ub>, {register('u32')}, {m}"
    )
    program = scope(body, "x:f32 w:ui32", "f32")
    x, where, out = np.arange(64, dtype="f4"), np.arange(64, dtype="u4"), np.zeros(64, "f4")
    run(program, x, where[::-1].copy(), out=out)
    assert (out == x[::-1]).all()
    where[3] = 4
    with pytest.raises(PtoError, match="one index and different values"):
        run(program, x, where, out=out)
    run(program, np.ones(64, "f4"), where, out=out)


def test_every_operation_that_touches_memory_says_where() -> None:
    silent = {r.name for r in MICRO.values() if r.is_inside and r.footprint is None}
    with_pointers = {
        r.name for r in MICRO.values() if any(s.kind == "ub" for s in r.operands) and r.is_inside
    }
    # Streams go where their state says.
    assert with_pointers & silent == {"vldas", "vldus", "vstus", "vstas", "vstur", "vstar", "pstu"}


def test_undefined_bits_of_a_mask_are_told_where_they_are_stored_or_used() -> None:
    """`DS` takes every second bit of 64 bytes, of which only half are written here."""
    store = f'%m = pto.plds %x[%c0], "DS" : !pto.ptr<ui8, ub>, index -> {mask("u8")}\n'
    unused = f'%a = pto.pset_b8 "PAT_ALL" : {mask("u8")}\n'
    kept = f'pto.psts %a, %out[%c0], "NORM" : {mask("u8")}, !pto.ptr<ui8, ub>, index'
    x, out = np.full(32, 255, np.uint8), np.zeros(32, np.uint8)
    run(scope(unused + store + kept, "x:ui8", "ui8"), x, out=out)
    assert (out == 255).all()
    taken = kept.replace("%a", "%m")
    with pytest.raises(PtoError, match="byte 16 of the mask that is stored is undefined"):
        run(scope(store + taken, "x:ui8", "ui8"), x, out=out)
