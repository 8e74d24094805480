"""Mutated texts: only diagnostics with a place come out of the doors of a text."""

from __future__ import annotations

import pytest

import ptokit
from ptokit.base.diagnostics import PtoError
from tests.fuzz.texts import corpus, judged, outcome

CHUNK = 40


def look(seeds: range) -> None:
    bugs = [bug for seed in seeds for bug in outcome(seed).bugs]
    assert not bugs


@pytest.mark.parametrize("first", range(0, 200, CHUNK))
def test_mutated_texts(first: int) -> None:
    look(range(first, first + CHUNK))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 5000, CHUNK))
def test_mutated_texts_for_long(first: int) -> None:
    look(range(first, first + CHUNK))


def test_the_texts_themselves_go_through() -> None:
    """As far as they are written: those of each kind of file, and some lines of the table."""
    found = [judged(text, number, name) for number, (name, text) in enumerate(corpus()[:40])]
    assert not [bug for each in found for bug in each.bugs]
    assert sum(each.is_loaded for each in found) > 20


TILE = "!pto.tile_buf<vec, 16x16xf32>"
LARGE = "!pto.tile_buf<loc=vec, dtype=f32, rows=255, cols=7168>"
ODD = {
    "a push of a front end has no form in the table": """
        func.func @f() attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {
          %t = pto.alloc_tile : !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major,
            fractal=1024>
          pto.tpush_to_aiv(%t : !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major,
            fractal=1024>) {split = 0}
          return
        }""",
    "a split of a front end that is none": """
        func.func @f() attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
          pto.tfree_from_aic {split = 5}
          return
        }""",
    "the rules look at a group, not at its first member": """
        func.func @f(%p: !pto.ptr<f32>, %r: !pto.ptr<f32>, %n: index) {
          %v = pto.make_tensor_view %p, shape = [%n, %n], strides = [%n, %n]
            : !pto.tensor_view<?x?xf32>
          %a = pto.partition_view %v, offsets = [%n, %n], sizes = [%n, %n]
            : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x16xf32>
          %t = pto.alloc_tile : !pto.tile_buf<vec, 16x16xf32>
          pto.comm.tbroadcast(%a, recv(%t), group(%a, %a) : !pto.partition_tensor_view<16x16xf32>,
            !pto.tile_buf<vec, 16x16xf32>, !pto.partition_tensor_view<16x16xf32>,
            !pto.partition_tensor_view<16x16xf32>) {root = 1 : i32}
          return
        }""",
    "a scale tile of a parameter": """
        func.func @f(%src: !pto.tile_buf<loc=left, dtype=f8E4M3FN, rows=16, cols=128,
                     blayout=col_major, slayout=row_major>) {
          %dst = pto.alloc_tile : !pto.tile_buf<loc=scale_left, dtype=f8E8M0FNU, rows=16, cols=4,
                     slayout=row_major, fractal=32>
          pto.tget_scale_addr ins(%src : !pto.tile_buf<loc=left, dtype=f8E4M3FN, rows=16, cols=128,
                     blayout=col_major, slayout=row_major>)
            outs(%dst : !pto.tile_buf<loc=scale_left, dtype=f8E8M0FNU, rows=16, cols=4,
                     slayout=row_major, fractal=32>)
          return
        }""",
    "tiles far too large that overlap": f"""
        func.func @f() {{
          %a0 = arith.constant 57376 : i64
          %a1 = arith.constant 28704 : i64
          %a = pto.alloc_tile addr = %a0 : {LARGE}
          %b = pto.alloc_tile addr = %a1 : {LARGE}
          pto.tmul ins(%a, %b : {LARGE}, {LARGE}) outs(%a : {LARGE})
          pto.tadd ins(%b, %a : {LARGE}, {LARGE}) outs(%b : {LARGE})
          return
        }}""",
    "a window of a tile that no memory holds": """
        func.func @f() {
          %c0 = arith.constant 0 : index
          %a = arith.constant 0 : i64
          %t = pto.alloc_tile addr = %a : !pto.tile_buf<vec, 2147483647x2147483647xf32>
          %s = pto.subview %t[%c0, %c0] sizes [8, 64]
            : !pto.tile_buf<vec, 2147483647x2147483647xf32>
          return
        }""",
    "a result whose type nobody tells": """
        func.func @f(%start: i32) {
          %0 = "pto.tci"(%start) : (i32) -> !pto.tile<...>
          return
        }""",
}  # fmt: skip


def test_a_loop_that_passes_on_too_little_is_refused() -> None:
    found = judged(b"""func.func @f(%n: i32, %b: i1) {
      %r = scf.while (%a = %n) : (i32) -> i32 {
        scf.condition(%b)
      } do {
      ^bb0(%c: i32):
        scf.yield %c : i32
      }
      return
    }""")
    assert not found.is_loaded
    assert not found.bugs


def test_a_mode_that_is_none_is_refused() -> None:
    tile = "!pto.tile_buf<vec, 16x64xf32, compact=65536>"
    found = judged(f"func.func @f() {{ %t = pto.alloc_tile : {tile} return }}".encode())
    assert not found.is_loaded
    assert not found.bugs


@pytest.mark.parametrize("name", ODD)
def test_what_once_was_a_bug(name: str) -> None:
    found = judged(ODD[name].encode(), seed=2 if "scale" in name else 1)
    assert found.is_loaded
    assert not found.bugs


@pytest.mark.parametrize("key", ["dtype=f32", "rows=16", "cols=16"])
def test_a_tile_type_says_what_it_must(key: str) -> None:
    whole = "func.func @f(%t: !pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=16>) {\n  return\n}"
    assert judged(whole.encode()).is_loaded
    found = judged(whole.replace(f", {key}", "").encode())
    assert not found.is_loaded
    assert not found.bugs


REFUSED = {
    "pto.tfree(%p : !pto.pipe) {split = 5}": "tfree: split: 5 : i8 is not a TileSplitAxis",
    '"pto.wait_event"() {event_id = #pto.event<EVENT_ID0>} : () -> ()': "needs dst_pipe or dst_op",
    '"pto.barrier"() {pipe = "PIPE_V"} : () -> ()': "needs pipe",
}


@pytest.mark.parametrize("line", REFUSED)
def test_attributes_are_read_like_those_of_any_instruction(line: str) -> None:
    with pytest.raises(ptokit.ProgramError, match=REFUSED[line]):
        ptokit.loads(f"func.func @f(%p: !pto.pipe) {{\n  {line}\n  return\n}}")


NOT_IN_CPP = {
    "func.func @f(%p: !pto.ptr<index>) { return }": "elements of type index",
    'func.func @"f g"() { return }': "a function with the name 'f g'",
    """func.func @f(%n: i32) attributes {pto.entry} {
      %m, %k = func.call @g(%n) : (i32) -> (i32, i32)
      return
    }
    func.func @g(%n: i32) -> (i32, i32) { return %n, %n : i32, i32 }""": "returns several values",
}


@pytest.mark.parametrize("text", NOT_IN_CPP)
def test_what_cpp_cannot_say_is_refused(text: str) -> None:
    with pytest.raises(ptokit.NotSupported, match=NOT_IN_CPP[text]):
        ptokit.loads(text).cpp()


def test_a_reshaped_tile_is_declared_in_cpp() -> None:
    loose = "!pto.tile_buf<vec, 16x16xf32, valid=?x?, blayout=col_major>"
    text = f"""func.func @f() {{
      %a = arith.constant 0 : i64
      %b = arith.constant 1024 : i64
      %src = pto.alloc_tile addr = %a : {TILE}
      %dst = pto.treshape %src : {TILE} -> {loose}
      %n = arith.constant 8 : index
      %out = pto.alloc_tile addr = %b valid_row = %n valid_col = %n : {loose}
      pto.tmov ins(%dst : {loose}) outs(%out : {loose})
      return
    }}"""
    lines = [line.strip() for line in ptokit.loads(text).cpp("a5").splitlines()]
    at = lines.index("TRESHAPE(dst, src);")
    assert lines[at - 1] == "Vec16x16_DN dst(16, 16);"


def test_types_of_any_width_are_read_or_told() -> None:
    text = "func.func @f() {\n  %a = arith.constant 7 : i99999999999999\n  return\n}"
    with pytest.raises(PtoError, match="unknown-type"):
        ptokit.loads(text)
    wide = f'"builtin.module"() <{{a = array<f4E2M1x{2**63 - 1}: 1, 0>}}> ({{}}) : () -> ()'
    assert ptokit.loads(wide).module.functions == []


def test_a_loop_that_does_not_end_is_told() -> None:
    text = """module {
      func.func @f() {
        %a = arith.constant 0 : index
        "scf.for"(%a, %a, %a) ({
        ^bb0(%i: index):
        }) : (index, index, index) -> ()
        return
      }
    }"""
    try:
        found = [each.code for each in ptokit.loads(text).check("a5")]
    except PtoError as error:
        found = list(error.codes)
    assert found
