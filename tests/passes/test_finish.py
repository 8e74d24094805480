"""Placing and ordering: two steps, the same at every door, and never over the author's own."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
from ptokit.base.diagnostics import ProgramError, UsageError
from ptokit.from_text import Program, loads
from ptokit.frontend.launch import Schedule
from ptokit.ir.ordering import orders_pipes
from ptokit.ir.rewrite import same_module
from ptokit.isa.targets import target
from ptokit.passes.finish import finish
from ptokit.passes.insert_sync import InsertSync
from ptokit.passes.steps import OPEN
from ptokit.passes.verify import has_addresses
from tests.passes.programs import random_program
from tests.passes.test_auto_mode import run as execute
from tests.passes.test_auto_mode import synchronised

VIEW = "!pto.partition_tensor_view<16x64xf32>"
TILE = "!pto.tile_buf<vec, 16x64xf32>"
HEAD = """func.func @f(%x: !pto.ptr<f32>, %z: !pto.ptr<f32>) {
  %at = arith.constant 0 : i64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = arith.constant 16 : index
  %w = arith.constant 64 : index
  %vx = pto.make_tensor_view %x, shape = [%r, %w], strides = [%w, %c1] : !pto.tensor_view<?x?xf32>
  %vz = pto.make_tensor_view %z, shape = [%r, %w], strides = [%w, %c1] : !pto.tensor_view<?x?xf32>
"""
PARTS = "".join(
    f"  %p{n} = pto.partition_view %v{n}, offsets = [%c0, %c0], sizes = [%r, %w] "
    f": !pto.tensor_view<?x?xf32> -> {VIEW}\n"
    for n in "xz"
)


def flags(source: str, sink: str, id: int = 0) -> str:
    pair = f"[<PIPE_{source}>, <PIPE_{sink}>, <EVENT_ID{id}>]"
    return f"  pto.set_flag{pair}\n  pto.wait_flag{pair}\n"


def program(*, placed: bool, ordered: bool, leave_out: str = "") -> Program:
    """One tile: loaded, made positive, stored."""
    first, second = flags("MTE2", "V"), flags("V", "MTE3")
    lines = [
        f"  %t = pto.alloc_tile{' addr = %at' if placed else ''} : {TILE}\n",
        f"  pto.tload ins(%px : {VIEW}) outs(%t : {TILE})\n",
        first if ordered and leave_out != "first" else "",
        f"  pto.tabs ins(%t : {TILE}) outs(%t : {TILE})\n",
        second if ordered and leave_out != "second" else "",
        f"  pto.tstore ins(%t : {TILE}) outs(%pz : {VIEW})\n",
        "  return\n}\n",
    ]
    return loads(HEAD + PARTS + "".join(lines), "k.pto")


def ran(kernel, **options) -> np.ndarray:
    x = -np.ones((16, 64), "f4")
    z = np.zeros_like(x)
    kernel[1](x, z, **options)
    return z


@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
def test_what_a_program_leaves_open_is_done_at_every_door(placed: bool, ordered: bool) -> None:
    made = program(placed=placed, ordered=ordered)
    assert (ran(made["f"]) == 1).all()
    converted = made.convert("l3")
    assert has_addresses(converted.module)
    assert (ran(loads(str(converted))["f"], place=False, sync="keep") == 1).all()
    text = made.cpp()
    assert text == made["f"].cpp(*[np.zeros((16, 64), "f4")] * 2)
    assert text.count("TASSIGN(") == 1
    assert text.count("set_flag(PIPE_MTE2, PIPE_V") == 1
    assert text.count("wait_flag(PIPE_V, PIPE_MTE3") == 1


@pytest.mark.parametrize("placed", [False, True])
def test_nothing_is_inserted_over_what_the_author_wrote(placed: bool) -> None:
    made = program(placed=placed, ordered=True)
    kept = [op.name for op in made.convert("l3").module.walk() if orders_pipes(op)]
    assert kept == ["pto.set_flag", "pto.wait_flag"] * 2


@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("gone", ["first", "second"])
def test_hand_written_flags_are_checked_at_every_level(placed: bool, gone: str) -> None:
    made = program(placed=placed, ordered=True, leave_out=gone)
    with pytest.raises(ProgramError) as caught:
        ran(made["f"])
    assert set(caught.value.codes) == {"E6"}
    (found,) = caught.value.diagnostics
    lines = {"first": {12, 13}, "second": {15, 16}}[gone]  # the load or the sum, and what follows
    assert {found.location.line, found.notes[0].location.line} == lines


def test_one_step_alone() -> None:
    loose = program(placed=False, ordered=False)
    placed = loose.convert("l3", sync="keep")
    assert has_addresses(placed.module)
    assert not any(orders_pipes(op) for op in placed.module.walk())
    with pytest.raises(ProgramError) as caught:
        ran(placed["f"], sync="keep")
    assert set(caught.value.codes) == {"E6"}
    ordered = placed.convert("l3", place=False)
    assert (ran(ordered["f"], sync="keep") == 1).all()


DOORS = {
    "run": lambda made: ran(made["f"], place=False),
    "convert": lambda made: made.convert("l3", place=False),
    "cpp": lambda made: made.cpp(place=False),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_tile_that_is_not_to_be_placed_is_refused_by_all(door: str) -> None:
    made = program(placed=False, ordered=True)
    with pytest.raises(ProgramError) as caught:
        DOORS[door](made)
    assert caught.value.codes == ("unbound-tile",)
    assert caught.value.diagnostics[0].location.line == 12


def test_check_says_what_does_not_fit() -> None:
    large = "!pto.tile_buf<vec, 256x256xf32>"
    text = f"""func.func @f(%s: f32) {{
      %t = pto.alloc_tile : {large}
      pto.texpands ins(%s : f32) outs(%t : {large})
      return
    }}"""
    (found,) = loads(text).check("a2a3")
    assert (found.code, found.location.line) == ("place.overflow", 2)
    assert not loads(text).check("a2a3", defines={"PTO_UBUF_SIZE_BYTES": 262144})


def test_the_authors_order_knows_nothing_of_tiles_that_share_bytes() -> None:
    """Two tiles one after the other: with sync=keep they lie apart, so no flag is missing."""
    lines = [
        f"  %a = pto.alloc_tile : {TILE}\n  %b = pto.alloc_tile : {TILE}\n",
        f"  pto.tload ins(%px : {VIEW}) outs(%a : {TILE})\n",
        flags("MTE2", "MTE3"),
        f"  pto.tstore ins(%a : {TILE}) outs(%pz : {VIEW})\n",
        f"  pto.tload ins(%px : {VIEW}) outs(%b : {TILE})\n",
        "  return\n}\n",
    ]
    made = loads(HEAD + PARTS + "".join(lines), "k.pto")
    assert (ran(made["f"]) == -1).all()
    (a, b) = {
        op.operand("addr").owner.attrs["value"].value
        for op in made.convert("l3").module.walk()
        if op.name == "pto.alloc_tile"
    }
    assert abs(a - b) >= 16 * 64 * 4


def test_addresses_bound_at_run_time_leave_order_to_the_author() -> None:
    lines = [
        f"  %d = pto.declare_tile -> {TILE}\n",
        f"  %t = pto.tassign %d, %at : {TILE} -> {TILE}\n",
        f"  pto.tload ins(%px : {VIEW}) outs(%t : {TILE})\n",
        f"  pto.tstore ins(%t : {TILE}) outs(%pz : {VIEW})\n",
        "  return\n}\n",
    ]
    made = loads(HEAD + PARTS + "".join(lines), "k.pto")
    with pytest.raises(ProgramError) as caught:
        ran(made["f"])
    assert caught.value.codes == ("E6",)
    with pytest.raises(ProgramError) as caught:
        made.cpp(sync="insert")
    assert caught.value.codes == ("sync.bound",)


def test_functions_that_call_each_other_share_no_bytes_and_meet_in_order() -> None:
    text = f"""module {{
      func.func private @add(%p: {VIEW}, %t: {TILE}) {{
        %u = pto.alloc_tile : {TILE}
        pto.tload ins(%p : {VIEW}) outs(%u : {TILE})
        pto.tadd ins(%t, %u : {TILE}, {TILE}) outs(%t : {TILE})
        return
      }}
      {HEAD.replace(") {", ") attributes {pto.entry} {", 1)}{PARTS}
      %t = pto.alloc_tile : {TILE}
      pto.tload ins(%px : {VIEW}) outs(%t : {TILE})
      func.call @add(%px, %t) : ({VIEW}, {TILE}) -> ()
      func.call @add(%px, %t) : ({VIEW}, {TILE}) -> ()
      pto.tstore ins(%t : {TILE}) outs(%pz : {VIEW})
      return
      }}
    }}"""
    made = loads(text, "k.pto")
    for seed in (None, 1, 2, 3):
        assert (ran(made["f"], seed=seed) == -3).all()


def test_each_function_is_the_authors_or_ours() -> None:
    """One function with flags and one without: only the second is ordered for its author."""

    def function(name: str, attrs: str, lines: str) -> str:
        head = HEAD.replace("@f", f"@{name}").replace(") {", f"){attrs} {{", 1)
        return f"{head}{PARTS}{lines}  return\n}}\n"

    load = f"  %t = pto.alloc_tile : {TILE}\n  pto.tload ins(%px : {VIEW}) outs(%t : {TILE})\n"
    store = f"  pto.tstore ins(%t : {TILE}) outs(%pz : {VIEW})\n"
    call = "  func.call @helper(%x, %z) : (!pto.ptr<f32>, !pto.ptr<f32>) -> ()\n"
    made = loads(
        function("by_hand", " attributes {pto.entry}", load + flags("MTE2", "MTE3") + store + call)
        + function("helper", "", load + flags("MTE2", "MTE3") + store)
        + function("open", " attributes {pto.entry}", load + store)
    )
    orders = {
        f.name: sum(orders_pipes(op) for op in f.walk())
        for f in made.convert("l3").module.functions
    }
    assert (orders["by_hand"], orders["helper"]) == (2, 2)
    assert orders["open"] > 2
    assert (ran(made["open"]) == -1).all()


# ---- kernels in Python ---------------------------------------------------------------------------


@kernel
def loose(x, z):
    t = Tile[TileType.Vec, float32, 16, 64]()
    TLOAD(t, GlobalTensor(x))
    TABS(t, t)
    TSTORE(GlobalTensor(z), t)


@kernel
def bound(x, z):
    t = Tile[TileType.Vec, float32, 16, 64]()
    TASSIGN[0x100](t)
    TLOAD(t, GlobalTensor(x))
    TABS(t, t)
    TSTORE(GlobalTensor(z), t)


def test_manual_kernels_can_be_finished_too() -> None:
    for options in ({}, {"sync": "insert"}):
        with pytest.raises(ProgramError) as caught:
            ran(loose, **options)
        assert caught.value.codes == ("unbound-tile",)
    with pytest.raises(ProgramError) as caught:
        ran(loose, place=True)
    assert set(caught.value.codes) == {"E6"}
    assert (ran(loose, place=True, sync="insert") == 1).all()
    assert (ran(bound, sync="insert") == 1).all()
    arrays = [np.zeros((16, 64), "f4")] * 2
    assert "set_flag(PIPE_MTE2, PIPE_V" in bound.cpp(*arrays, sync="insert")
    assert "set_flag" not in bound.cpp(*arrays)


def test_steps_need_a_program_that_is_rewritten() -> None:
    with pytest.raises(UsageError, match='path="lowered"'):
        ran(bound, sync="insert", path="eager")
    with pytest.raises(UsageError, match="no such way to order"):
        ran(bound, sync="yes")


# ---- random programs -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40, 64))
def test_what_is_inserted_beside_written_flags_does_not_meet_them(seed: int) -> None:
    """A program that is ordered completely, and ordered once more on request."""
    on = ("a2a3", "a5")[seed % 2]
    once = synchronised(random_program(seed, on), on)
    if once is None:
        return  # it keeps a tile of a loop for ever
    assert same_module(finish(once, target(on), OPEN), once)
    twice = InsertSync().run(once, target(on))
    assert sum(map(orders_pipes, twice.walk())) > sum(map(orders_pipes, once.walk()))
    wanted = execute(once, on, "manual")
    for schedule in (None, Schedule(seed)):
        got = execute(twice, on, "manual", schedule)
        assert all(map(np.array_equal, got, wanted))


def test_an_address_is_ordered_in_the_memory_it_is_used_in() -> None:
    """The scratch of a sum is declared elsewhere: what is loaded over it must wait for the sum."""
    column = "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=1, blayout=col_major>"
    scratch = "!pto.tile_buf<mat, 16x64xf32>"
    lines = [
        "  %far = arith.constant 8192 : i64\n  %end = arith.constant 16384 : i64\n",
        f"  %t = pto.alloc_tile addr = %far : {TILE}\n",
        f"  %u = pto.alloc_tile addr = %at : {TILE}\n",
        f"  %m = pto.alloc_tile addr = %at : {scratch}\n",
        f"  %d = pto.alloc_tile addr = %end : {column}\n",
        f"  pto.tload ins(%px : {VIEW}) outs(%t : {TILE})\n",
        f"  pto.trowsum ins(%t, %m : {TILE}, {scratch}) outs(%d : {column})\n",
        f"  pto.tload ins(%px : {VIEW}) outs(%u : {TILE})\n",
        f"  pto.tstore ins(%u : {TILE}) outs(%pz : {VIEW})\n",
        "  return\n}\n",
    ]
    text = HEAD + PARTS + "".join(lines)
    x = np.arange(16 * 64, dtype="i4").reshape(16, 64)
    z = np.zeros_like(x)
    loads(text.replace("f32", "i32"))["f"][1](x, z)  # the scratch of integers is always in use
    assert (z == x).all()
