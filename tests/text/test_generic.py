"""The generic form: operands in the order of the dialect, counted where it counts them."""

from __future__ import annotations

import re

import pytest

from ptokit.from_text import loads
from ptokit.ir.printer import print_module

V = "!pto.tile_buf<vec, 16x64xf32>"
H = "!pto.tile_buf<vec, 16x32xf32>"
I = "!pto.tile_buf<vec, 16x64xi32>"  # noqa: E741
Q = "!pto.tile_buf<vec, 16x64xi8>"
C = "!pto.tile_buf<vec, 16x1xf32, blayout=col_major>"
ACC = "!pto.tile_buf<acc, 16x64xf32, blayout=col_major, slayout=row_major, fractal=1024>"
MAT = "!pto.tile_buf<mat, 16x64xf16, blayout=col_major, slayout=row_major>"
PV = "!pto.partition_tensor_view<16x64xf32>"
ROW = "!pto.tile_buf<vec, 1x256xf32>"
PARAMS = {
    "v": V,
    "w": V,
    "d": V,
    "h": H,
    "i": I,
    "q": Q,
    "c": C,
    "acc": ACC,
    "m": MAT,
    "g": PV,
    "g2": PV,
    "s0": ROW,
    "s1": ROW,
    "out": ROW,
    "list": "vector<4xi16>",
    "n": "index",
    "fifo": "!pto.pipe",
    "k": "i32",
    "pre": "i64",
    "x": "f32",
}

# An operation, what its operands are called in generic order, and how many each place has.
ORDERS = {
    f"pto.tadd ins(%v, %w : {V}, {V}) outs(%d : {V})": "v w d",
    f"pto.tload ins(%g : {PV}) outs(%d : {V})": "g d | 1 1 0 0 0 0",
    f"pto.tstore ins(%v : {V}) outs(%g : {PV})": "v g | 1 1 0 0",
    f"pto.tmov ins(%v : {V}) outs(%d : {V})": "v d | 1 1 0 0",
    f"pto.textract ins(%acc, %n, %n : {ACC}, index, index) outs(%m : {MAT})": (
        "acc n n m | 1 1 1 1 0 0"
    ),
    f"pto.tinsert ins(%acc, %n, %n : {ACC}, index, index) outs(%m : {MAT})": (
        "acc n n m | 1 1 1 1 0 0"
    ),
    f"pto.tcvt ins(%v, %w {{rmode = #pto<round_mode RINT>}} : {V}, {V}) outs(%i : {I})": "v w i",
    f"pto.trsqrt ins(%v, %w : {V}, {V}) outs(%d : {V})": "v d w",
    f"pto.tpow ins(%v, %w, %h : {V}, {V}, {H}) outs(%d : {V})": "v w d h",
    f"pto.trowexpandmul ins(%v, %c : {V}, {C}) outs(%d : {V})": "v c d",
    f"pto.tsels ins(%i, %v, %w, %x : {I}, {V}, {V}, f32) outs(%d : {V})": "i v w x d",
    f"%s = pto.subview %v[%n, %n] sizes [8, 64] : {V}": "v n n | 1 2 0 0",
    f"%s = pto.subview %v[%n, %n] sizes [8, 64] valid [%n, %n] : {V}": "v n n n n | 1 2 1 1",
    f"pto.comm.treduce(%g, %v, recv(%w), group(%g2) : {PV}, {V}, {V}, {PV}) "
    "{reduceOp = #pto<reduce_op sum>, root = 0 : i32}": "g v w g2 | 1 1 1 0 1",
    f"pto.comm.treduce(%g, %v, recv(%w, %d), group(%g2) : {PV}, {V}, {V}, {V}, {PV}) "
    "{reduceOp = #pto<reduce_op sum>, root = 0 : i32}": "g v w d g2 | 1 1 1 1 1",
    f"pto.comm.tput(%g, %g2, buf(%v) : {PV}, {PV}, {V})": "g g2 v",
    f"pto.tpush(%v, %fifo : {V}, !pto.pipe) {{split = 0}}": "v fifo",
    "pto.set_intra_block <PIPE_MTE1>, 3": "",
    "pto.set_intra_block <PIPE_MTE1>, %n": "n",
    "%p = pto.inttoptr %pre : i64 -> !pto.ptr<f32>": "pre",
    f"%t = pto.alloc_tile valid_row = %n valid_col = %n : {V[:-1]}, valid=?x?>": "n n | 0 1 1",
}


@pytest.mark.parametrize("line", ORDERS)
def test_operands_stand_where_the_dialect_has_them(line: str) -> None:
    params = ", ".join(f"%{name}: {type_}" for name, type_ in PARAMS.items() if f"%{name}" in line)
    made = loads(f"func.func @f({params}) {{\n  {line}\n  return\n}}")
    text = print_module(made.module, generic=True)
    (found,) = (each for each in text.splitlines() if '"pto.' in each)
    names, _, counts = ORDERS[line].partition(" | ")
    shown = re.search(r'"pto\.[\w.]+"\((.*?)\)', found)
    assert shown is not None
    assert shown[1].replace("%", "").replace(",", "") == names
    listed = re.search(r"operandSegmentSizes = array<i32: (.*?)>", found)
    assert (listed[1].replace(",", "") if listed else "") == counts
    assert str(loads(text)) == str(made)


def test_products_of_a_name_with_a_suffix_count_nothing() -> None:
    left = "!pto.tile_buf<left, 16x64xf16, blayout=col_major, slayout=row_major>"
    right = "!pto.tile_buf<right, 64x64xf16, blayout=row_major, slayout=col_major>"
    made = loads(
        f"""func.func @f(%a: {left}, %b: {right}, %c: {ACC}) {{
          pto.tmatmul.acc ins(%c, %a, %b : {ACC}, {left}, {right}) outs(%c : {ACC})
          return
        }}"""
    )
    text = print_module(made.module, generic=True)
    assert '"pto.tmatmul.acc"(%c, %a, %b, %c) :' in text
    assert str(loads(text)) == str(made)


VIEW = "!pto.tensor_view<16x64xf32>"
MASK = "maskPattern = #pto.mask_pattern"
# An operation, the attributes that belong to it, and those that anybody may add.
OWN = {
    f'pto.tgather ins(%v, {{{MASK}<P0101>}} : {V}, "row") outs(%h : {H})': (
        f'{MASK}<P0101>, axis = "row"',
        "",
    ),
    f'pto.tgather ins(%v, {{{MASK}<P1111>}} : {V}, "col") outs(%d : {V})': (
        f'{MASK}<P1111>, axis = "col"',
        "",
    ),
    f"pto.tload ins(%g : {PV}) outs(%d : {V}) {{layout = #pto.layout<nd>}}": (
        "",
        "layout = #pto.layout<nd>",
    ),
    f"pto.tadd ins(%v, %w : {V}, {V}) outs(%d : {V}) {{my.note = true}}": ("", "my.note = true"),
    "pto.cmo.cacheinvalid %p single_cache_line : !pto.ptr<f32>": (
        "space = #pto.address_space<gm>",
        "",
    ),
    "pto.cmo.cacheinvalid all #pto.address_space<gm>": ("space = #pto.address_space<gm>", ""),
    f"pto.tpush(%view, %fifo : {VIEW}, !pto.pipe) {{split = 0}}": ("split = 0 : i8", ""),
    "pto.barrier <PIPE_V>": ("pipe = #pto.pipe<PIPE_V>", ""),
}


@pytest.mark.parametrize("line", OWN)
def test_attributes_of_an_operation_are_kept_apart(line: str) -> None:
    """Between `<{` and `}>`, as MLIR prints them: of some it asks for no others there."""
    given = PARAMS | {"p": "!pto.ptr<f32>", "view": VIEW}
    params = ", ".join(f"%{name}: {kind}" for name, kind in given.items())
    program = loads(f"func.func @f({params}) {{\n  {line}\n  return\n}}")
    text = print_module(program.module, generic=True)
    name = re.match(r"pto\.[\w.]+", line)
    assert name is not None
    (printed,) = (each for each in text.splitlines() if f'"{name[0]}"' in each)
    own, others = OWN[line]
    found = re.search(r"\)(?: <\{(.*?)\}>)?(?: \{(.*?)\})? : \(", printed)
    assert found is not None
    counted = re.sub(r"operandSegmentSizes = array<[^>]*>(?:, )?", "", found[1] or "")
    assert (counted, found[2] or "") == (own, others)
    again = loads(text)
    assert str(again) == str(program)
    assert print_module(again.module, generic=True) == text


@pytest.mark.parametrize(("peer", "places"), [("aiv", 2), ("aic", 3)])
def test_only_a_vector_core_says_which_one_it_is(peer: str, places: int) -> None:
    kind = "cube" if peer == "aiv" else "vector"
    program = loads(
        f"func.func @f() attributes {{pto.kernel_kind = #pto.kernel_kind<{kind}>}} {{\n"
        f"  %e = pto.tpop_from_{peer} {{split = 0}} -> {V}\n  return\n}}"
    )
    text = print_module(program.module, generic=True)
    assert f"operandSegmentSizes = array<i32: {', '.join('0' * places)}>" in text
    assert str(loads(text)) == str(program)
