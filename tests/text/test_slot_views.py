"""Pipes whose entries are views of slots in global memory, and entries that are divided oddly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit.from_text import Program, loads
from tests.text.pipe_programs import errors, product, program_text

VIEW = "!pto.tensor_view<16x32xf32>"
PART = "!pto.partition_tensor_view<16x32xf32>"
TILE = "!pto.tile_buf<vec, 16x32xf32>"
SLOTS = f"""
    %slots = pto.make_tensor_view %ring, shape = [%c16, %c32], strides = [%c32, %c1] : {VIEW}"""
OUT = f"""
    %vz = pto.make_tensor_view %z, shape = [%c16, %c32], strides = [%c32, %c1] : {VIEW}"""


def whole(value: str, name: str) -> str:
    return f"""
    %{name} = pto.partition_view %{value}, offsets = [%c0, %c0], sizes = [%c16, %c32] : {VIEW}"""


PUSH = f"""{SLOTS}
    pto.aic_initialize_pipe {{id = 3, dir_mask = 1, slot_size = 2048, slot_num = 2}}
        (gm_slot_tensor = %slots : {VIEW})
    scf.for %i = %c0 to %c5 step %c1 {{
      %e = pto.talloc_to_aiv {{id = 3, split = 0}} -> {VIEW}{whole("e", "pe")}
      pto.tstore ins(%acc : !acc) outs(%pe : {PART})
      pto.tpush_to_aiv(%e : {VIEW}) {{id = 3, split = 0}}
    }}"""
POP = f"""{SLOTS}{OUT}{whole("vz", "pz")}
    pto.aiv_initialize_pipe {{id = 3, dir_mask = 1, slot_size = 2048, slot_num = 2}}
        (gm_slot_tensor = %slots : {VIEW})
    %sum = pto.alloc_tile : {TILE}
    %t = pto.alloc_tile : {TILE}
    %none = arith.constant 0.0 : f32
    pto.texpands ins(%none : f32) outs(%sum : {TILE})
    scf.for %i = %c0 to %c5 step %c1 {{
      %e = pto.tpop_from_aic {{id = 3, split = 0}} -> {VIEW}{whole("e", "pe")}
      pto.tload ins(%pe : {PART}) outs(%t : {TILE})
      pto.tfree_from_aic(%e : {VIEW}) {{id = 3, split = 0}}
      pto.tadd ins(%sum, %t : {TILE}, {TILE}) outs(%sum : {TILE})
    }}
    scf.if %is_first {{
      pto.tstore ins(%sum : {TILE}) outs(%pz : {PART})
    }}"""
# The same with handles.
KEYS = "dir_mask = 1, slot_size = 2048, slot_num = 2, flag_base = 4"
OPEN = f"%p = pto.initialize_l2g2l_pipe {{{KEYS}}} (%slots : {VIEW}) -> !pto.pipe"
LOW_PUSH = f"""{SLOTS}
    {OPEN}
    scf.for %i = %c0 to %c5 step %c1 {{
      %e = pto.declare_global -> {VIEW}
      pto.talloc(%e, %p : {VIEW}, !pto.pipe) {{split = 0}}{whole("e", "pe")}
      pto.tstore ins(%acc : !acc) outs(%pe : {PART})
      pto.tpush(%e, %p : {VIEW}, !pto.pipe) {{split = 0}}
    }}"""
LOW_POP = POP.replace(POP[POP.index("    pto.aiv_") : POP.index("    %sum =")], f"    {OPEN}\n")
LOW_POP = LOW_POP.replace(
    f"%e = pto.tpop_from_aic {{id = 3, split = 0}} -> {VIEW}",
    f"""%e = pto.declare_global -> {VIEW}
      pto.tpop(%e, %p : {VIEW}, !pto.pipe) {{split = 0}}""",
).replace(
    f"pto.tfree_from_aic(%e : {VIEW}) {{id = 3, split = 0}}",
    f"pto.tfree(%e, %p : {VIEW}, !pto.pipe) {{split = 0}}",
)


def run(made: Program) -> Any:
    a, b, _ = product("f32")
    out = np.zeros((16, 32), "f4")
    done = made["both"][1](a, b, np.zeros(8, "f4"), np.zeros(4096, "f4"), out)
    assert not done.findings
    return out


@pytest.mark.parametrize("arch", ["a3", "a5"])
@pytest.mark.parametrize("ends", [(PUSH, POP), (LOW_PUSH, LOW_POP)], ids=["ids", "handles"])
def test_entries_are_filled_and_read_in_their_slots(ends: tuple[str, str], arch: str) -> None:
    made = loads(program_text(arch, push=ends[0], pop=ends[1]), "k.pto")
    assert not errors(made)
    assert np.array_equal(run(made), 5 * product("f32")[2])
    assert str(loads(str(made))) == str(made)
    placed = made.convert("l3")
    assert str(loads(str(placed))) == str(placed)
    assert np.array_equal(run(placed), 5 * product("f32")[2])
    code, way = made.cpp(), "DIR_C2V_GM" if arch == "a5" else "DIR_C2V"
    assert f"Direction::{way}, 2048, 2" in code
    assert all(f"{name}<" in code for name in ("TALLOC", "TPUSH", "TPOP", "TFREE"))
    assert ".data()" in code


def back(arch: str) -> Program:
    """A vector core fills a slot, the cube core multiplies what it finds there."""
    view, part = "!pto.tensor_view<32x32xf32>", "!pto.partition_tensor_view<32x32xf32>"
    tile = "!pto.tile_buf<vec, 32x32xf32>"
    slots = SLOTS.replace("%c16, %c32]", "%c32, %c32]").replace(VIEW, view)
    pipe = f"{{id = 1, dir_mask = 2, slot_size = 4096}}\n        (gm_slot_tensor = %slots : {view})"
    mat = "!pto.tile_buf<mat, 32x32xf32, blayout=col_major, slayout=row_major>"
    right = "!pto.tile_buf<right, 32x32xf32, slayout=col_major>"
    outer = "col_major" if arch == "a5" else "row_major"
    left = f"!pto.tile_buf<left, 16x32xf32, blayout={outer}, slayout=row_major>"
    part_of = whole("X", "Y").replace("%c16, %c32]", "%c32, %c32]").replace(VIEW, view)
    entry = part_of.replace("%X", "%e").replace("%Y", "%pe")
    text = program_text(
        arch,
        push=f"""{slots}
    pto.aic_initialize_pipe {pipe}{OUT}{whole("vz", "pz")}
    %e = pto.tpop_from_aiv {{id = 1, split = 0}} -> {view}{entry}
    %m2 = pto.alloc_tile : {mat}
    %r2 = pto.alloc_tile : {right}
    pto.tload ins(%pe : {part}) outs(%m2 : {mat})
    pto.tfree_from_aiv(%e : {view}) {{id = 1, split = 0}}
    pto.tmov ins(%m2 : {mat}) outs(%r2 : {right})
    pto.tmatmul ins(%l, %r2 : {left}, {right}) outs(%acc : !acc)
    pto.tstore ins(%acc : !acc) outs(%pz : {PART})""",
        pop=f"""{slots}
    pto.aiv_initialize_pipe {pipe}
    %vb = pto.make_tensor_view %b, shape = [%c32, %c32], strides = [%c32, %c1] : {view}
    {part_of.replace("%X", "%vb").replace("%Y", "%pb").strip()}
    %t = pto.alloc_tile : {tile}
    %e = pto.talloc_to_aic {{id = 1, split = 0}} -> {view}{entry}
    pto.tload ins(%pb : {part}) outs(%t : {tile})
    pto.tadd ins(%t, %t : {tile}, {tile}) outs(%t : {tile})
    scf.if %is_first {{
      pto.tstore ins(%t : {tile}) outs(%pe : {part})
    }}
    pto.tpush_to_aic(%e : {view}) {{id = 1, split = 0}}""",
    )
    return loads(text, "k.pto")


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_entries_go_back_to_the_cube(arch: str) -> None:
    made = back(arch)
    assert not errors(made)
    a, b, _ = product("f32")
    out = np.zeros((16, 32), "f4")
    made["both"][1](a, b, np.zeros(8, "f4"), np.zeros(8192, "f4"), out)
    assert np.array_equal(out, a @ (2 * b))


# ---- odd entries ---------------------------------------------------------------------------------


def odd(arch: str, split: int, lane: str = "") -> str:
    """15 of 16 rows, or 31 of 32 columns, of which vector core 0 takes one more than the other."""
    rows, cols = (15, 32) if split == 3 else (16, 31)
    half = ("%most", "%c32") if split == 3 else ("%c16", "%most")
    first, second = (8, 7) if split == 3 else (16, 15)
    tile = f"!pto.tile_buf<vec, {8 if split == 3 else 16}x32xf32, valid=?x?>"
    backing = f"gm_slot_tensor = %slots : {VIEW}" if arch == "a5" else ""
    backing = backing or "gm_slot_buffer = %ring : !pto.ptr<f32>"
    keys = "{id = 2, dir_mask = 1, slot_size = 2048}"
    acc = "!pto.tile_buf<acc, 16x32xf32, valid=?x?, blayout=col_major, slayout=row_major, "
    acc += "fractal=1024>"
    place = ("%at", "%c0") if split == 3 else ("%c0", "%at")
    return program_text(
        arch,
        opened=f"""{SLOTS}
    %far = pto.import_reserved_buffer {{name = "q", peer_func = @vector}} -> i32
    pto.aic_initialize_pipe {keys} ({backing}, c2v_consumer_buf = %far : i32)""",
        push=f"""%r1 = arith.constant {rows} : index
    %r2 = arith.constant {cols} : index
    %part = pto.alloc_tile valid_row = %r1 valid_col = %r2 : {acc}
    pto.tmatmul ins(%l, %r : <left>, <right>) outs(%part : {acc})
    pto.tpush_to_aiv(%part : {acc}) {{id = 2, split = {split}}}""".replace(
            "<left>",
            f"!pto.tile_buf<left, 16x32xf32, "
            f"blayout={'col_major' if arch == 'a5' else 'row_major'}, slayout=row_major>",
        ).replace("<right>", "!pto.tile_buf<right, 32x32xf32, slayout=col_major>"),
        reserved=f"""%near = pto.reserve_buffer {{name = "q", size = 16384,
        location = #pto.address_space<vec>, auto = true}} -> i32{SLOTS}
    pto.aiv_initialize_pipe {keys} ({backing}, c2v_consumer_buf = %near : i32)""",
        pop=f"""%more = arith.constant {first} : index
    %less = arith.constant {second} : index
    %most = arith.select %is_first, %more, %less : index
    %at = arith.muli %sub, %more : index{OUT}
    %pz = pto.partition_view %vz, offsets = [{place[0]}, {place[1]}], sizes = [{half[0]}, {half[1]}]
        : {VIEW} -> !pto.partition_tensor_view<?x?xf32>
    %t = pto.tpop_from_aic({half[0]}, {half[1]}) {{id = 2, split = {split}}}{lane} -> {tile}
    pto.tstore ins(%t : {tile}) outs(%pz : !pto.partition_tensor_view<?x?xf32>)
    pto.tfree_from_aic {{id = 2, split = {split}}}""",
    )


@pytest.mark.parametrize("lane", ["", " aiv_subblockid(%core)"])
@pytest.mark.parametrize("split", [3, 4])
@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_odd_entries_give_the_first_core_more(arch: str, split: int, lane: str) -> None:
    made = loads(odd(arch, split, lane), "k.pto")
    assert not errors(made)
    assert str(loads(str(made))) == str(made)
    found, values = run(made), product("f32")[2]
    rows, cols = (15, 32) if split == 3 else (16, 31)
    assert np.array_equal(found[:rows, :cols], values[:rows, :cols])
    assert not found[rows:].any()
    assert not found[:, cols:].any()
    assert ("TILE_UP_DOWN_ODD" if split == 3 else "TILE_LEFT_RIGHT_ODD") in made.cpp()
