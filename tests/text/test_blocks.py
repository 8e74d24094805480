"""Blocks that jump to each other, and regions that only group."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.from_text import Program, loads
from ptokit.ir.printer import print_module


def unchanged(made: Program) -> Program:
    """The program, if both spellings of it read back to the same."""
    generic = print_module(made.module, generic=True)
    assert str(loads(str(made))) == str(made)
    assert print_module(loads(generic).module, generic=True) == generic
    assert str(loads(generic)) == str(made)
    return made


JUMPING = """
  func.func private @sum(%n: i32) -> i32 {
    %z = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    cf.br ^head(%z, %z : i32, i32)
  ^head(%i: i32, %acc: i32):
    %more = arith.cmpi slt, %i, %n : i32
    cf.cond_br %more, ^body, ^done(%acc : i32)
  ^body:
    %a = arith.addi %acc, %i : i32
    %j = arith.addi %i, %one : i32
    cf.br ^head(%j, %a : i32, i32)
  ^done(%r: i32):
    cf.switch %r : i32, [default: ^out(%r : i32), 10: ^ten, 0: ^out(%one : i32)]
  ^ten:
    %m = arith.constant -10 : i32
    cf.br ^out(%m : i32)
  ^out(%o: i32):
    return %o : i32
  }
"""
CALLING = """
  func.func @f(%p: !pto.ptr<i32>, %n: i32) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %s = func.call @sum(%n) : (i32) -> i32
    pto.store_scalar %s, %p[%c0] : !pto.ptr<i32>, i32
    return
  }
"""


@pytest.mark.parametrize(("n", "expected"), [(0, 1), (3, 3), (4, 6), (5, -10), (6, 15)])
def test_loops_and_branches_of_jumps(n: int, expected: int, engine: str) -> None:
    made = unchanged(loads(CALLING + JUMPING))
    assert made.check() == []
    out = np.zeros(1, "i4")
    made["f"][1](out, n, engine=engine)
    assert out[0] == expected


def test_a_loop_goes_on_with_what_its_condition_hands_on(engine: str) -> None:
    """Not with what it was given: 5 becomes 3, 2, 0, -1, and -3 is handed out."""
    made = unchanged(
        loads(
            """func.func @f(%p: !pto.ptr<i32>, %n: i32) attributes {pto.entry} {
            %c0 = arith.constant 0 : index
            %zero = arith.constant 0 : i32
            %one = arith.constant 1 : i32
            %two = arith.constant 2 : i32
            %r = scf.while (%k = %n) : (i32) -> i32 {
              %go = arith.cmpi sgt, %k, %zero : i32
              %less = arith.subi %k, %two : i32
              scf.condition(%go) %less : i32
            } do {
            ^bb0(%l: i32):
              %next = arith.subi %l, %one : i32
              scf.yield %next : i32
            }
            pto.store_scalar %r, %p[%c0] : !pto.ptr<i32>, i32
            return
          }"""
        )
    )
    out = np.zeros(1, "i4")
    made["f"][1](out, 5, engine=engine)
    assert out[0] == -3


def test_jumps_inside_a_region() -> None:
    made = unchanged(
        loads(
            """func.func @f(%p: !pto.ptr<i32>, %n: i32) attributes {pto.entry} {
            %c0 = arith.constant 0 : index
            %five = arith.constant 5 : i32
            %s = scf.execute_region -> i32 {
              %small = arith.cmpi slt, %n, %five : i32
              cf.cond_br %small, ^a, ^b
            ^a:
              scf.yield %five : i32
            ^b:
              scf.yield %n : i32
            }
            pto.store_scalar %s, %p[%c0] : !pto.ptr<i32>, i32
            return
            }"""
        )
    )
    for n in (3, 8):
        out = np.zeros(1, "i4")
        made["f"][1](out, n)
        assert out[0] == max(n, 5)


def test_a_loop_of_jumps_has_a_budget() -> None:
    made = loads(
        "func.func @f() attributes {pto.entry} {\n  cf.br ^a\n^a:\n  cf.cond_br %t, ^a, ^b\n"
        "^b:\n  return\n}".replace("cf.br", "%t = arith.constant true\n  cf.br")
    )
    with pytest.raises(PtoError, match="steps"):
        made["f"][1](max_steps=100)


TILE = "!pto.tile_buf<vec, 8x16xf32>"
TILES = f"""func.func @f(%p: !pto.ptr<f32>, %up: i1) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2.0 : f32
    %at = arith.constant 0 : i64
    %v = pto.make_tensor_view %p, shape = [%c8, %c16], strides = [%c16, %c1]
      : !pto.tensor_view<8x16xf32>
    %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c8, %c16]
      : !pto.tensor_view<8x16xf32> -> !pto.partition_tensor_view<8x16xf32>
    %t = pto.alloc_tile addr = %at : {TILE}
    cf.cond_br %up, ^a, ^b
  ^a:
    pto.texpands ins(%one : f32) outs(%t : {TILE})
    cf.br ^c
  ^b:
    pto.texpands ins(%two : f32) outs(%t : {TILE})
    cf.br ^c
  ^c:
    pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.tstore ins(%t : {TILE}) outs(%w : !pto.partition_tensor_view<8x16xf32>)
    return
}}"""


@pytest.mark.parametrize("up", [True, False])
def test_tiles_that_the_author_places_and_orders(up: bool, engine: str) -> None:
    made = unchanged(loads(TILES))
    out = np.zeros((8, 16), "f4")
    made["f"][1](out, up, engine=engine)
    assert (out == (1 if up else 2)).all()


REFUSED = {
    "placing tiles": TILES.replace(" addr = %at", ""),
    "ordering pipes": re.sub(r"    pto.(set|wait)_flag.*\n", "", TILES),
}


@pytest.mark.parametrize("what", REFUSED)
def test_passes_say_that_they_need_structure(what: str) -> None:
    with pytest.raises(PtoError, match=f"{what} does not support cf") as error:
        loads(REFUSED[what])["f"][1](np.zeros((8, 16), "f4"), True)
    assert error.value.codes == ("cf-blocks",)
    with pytest.raises(PtoError, match=r"cf\.blocks"):
        loads(TILES).cpp()


WRONG = {
    "unknown-block": JUMPING.replace("cf.br ^out", "cf.br ^nowhere"),
    "redefined-block": JUMPING.replace("^ten:", "^done:"),
    "type-mismatch": JUMPING.replace("cf.br ^out(%m : i32)", "cf.br ^out"),
    "missing-return": "func.func @g() {\n  cf.br ^a\n^a:\n  cf.br ^a\n}",
}


@pytest.mark.parametrize("code", WRONG)
def test_jumps_that_lead_nowhere(code: str) -> None:
    with pytest.raises(PtoError) as error:
        loads(WRONG[code])
    assert code in error.value.codes


UNENDED = {
    "an empty block": "cf.cond_br %c, ^a, ^b\n^a:\n^b:\n  return",
    "an empty first block": "^a:\n^b:\n  return",
    "a block without an end": "cf.br ^a\n^a:\n  %n = arith.constant 0 : i32\n^b:\n  return",
    "a jump in the middle": "cf.br ^a\n^a:\n  cf.br ^a\n  return",
    "a jump without blocks": "cf.br ^a\n  return",
    "a jump out of a branch": "scf.if %c {\n    cf.br ^a\n  }\n  return",
    "a return from a branch": "scf.if %c {\n    return\n  }\n  return",
    "two ends": "scf.if %c {\n    scf.yield\n    scf.yield\n  }\n  return",
}


@pytest.mark.parametrize("case", UNENDED)
def test_a_block_has_one_end(case: str) -> None:
    with pytest.raises(PtoError) as error:
        loads(f"func.func @f(%c: i1) {{\n  {UNENDED[case]}\n}}")
    assert error.value.codes == ("block-end",)


# ---- regions that group --------------------------------------------------------------------------

GROUPED = f"""func.func @f(%p: !pto.ptr<f32>) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %v = pto.make_tensor_view %p, shape = [%c8, %c16], strides = [%c16, %c1]
      : !pto.tensor_view<8x16xf32>
    %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c8, %c16]
      : !pto.tensor_view<8x16xf32> -> !pto.partition_tensor_view<8x16xf32>
    %r, %n = pto.fusion_region {{
      %t = pto.alloc_tile : {TILE}
      %u = pto.alloc_tile : {TILE}
      pto.tload ins(%w : !pto.partition_tensor_view<8x16xf32>) outs(%t : {TILE})
      pto.tadd ins(%t, %t : {TILE}, {TILE}) outs(%u : {TILE})
      pto.yield(%u, %c1) : ({TILE}, index) -> ()
    }} {{pto.fusion.group_id = 0 : i64}} : {TILE}, index
    %other = pto.alloc_tile : {TILE}
    pto.tadd ins(%r, %r : {TILE}, {TILE}) outs(%other : {TILE})
    pto.tstore ins(%other : {TILE}) outs(%w : !pto.partition_tensor_view<8x16xf32>)
    return
}}"""


def test_a_fusion_region_means_what_is_in_it(engine: str) -> None:
    made = unchanged(loads(GROUPED))
    assert made.check() == []
    out = np.full((8, 16), 3, "f4")
    made["f"][1](out, engine=engine)
    assert (out == 12).all()
    placed = made.convert("l3")
    again = np.full((8, 16), 3, "f4")
    placed["f"][1](again, engine=engine)
    assert (again == 12).all()
    assert made.cpp().index("TLOAD") < made.cpp().index("TSTORE")
    with pytest.raises(PtoError, match=r"pto\.yield: operations on tile buffers have no Level 1"):
        made.convert("l1")


YIELD = f"      pto.yield(%u, %c1) : ({TILE}, index) -> ()\n"
UNLIKE = {
    "arguments": (
        GROUPED.replace("pto.fusion_region {", "pto.fusion_region {\n    ^bb0(%a: index):"),
        "no arguments",
    ),
    "no yield": (GROUPED.replace(YIELD, ""), "terminates with pto.yield"),
    "count": (GROUPED.replace(YIELD, "      pto.yield() : () -> ()\n"), "yields the types"),
    "type": (
        GROUPED.replace(YIELD, f"      pto.yield(%c1, %u) : (index, {TILE}) -> ()\n"),
        "yields the types",
    ),
}


@pytest.mark.parametrize("case", UNLIKE)
def test_a_fusion_region_hands_on_its_results(case: str) -> None:
    text, message = UNLIKE[case]
    with pytest.raises(PtoError, match=message):
        loads(text)
