"""`pto.subview`: a part of a tile under a handle of its own, in every layout."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ptokit.from_text import Program, loads
from tests.text.test_doors import TILE, VIEW, program, ran

# Sizes, offsets and valid sizes of windows of a 16 x 64 tile.
WINDOWS = [((8, 16), (4, 32)), ((16, 16), (0, 16)), ((8, 64), (8, 0)), ((1, 8), (15, 56))]


def lines(size: tuple[int, int], at: tuple[int, int], valid: str, result: str) -> str:
    kind = result or f"!pto.tile_buf<vec, {size[0]}x{size[1]}xf32>"
    stated = f" -> {result}" if result else ""
    return f"""  %t = pto.alloc_tile : {TILE}
        %i = arith.constant {at[0]} : index
        %j = arith.constant {at[1]} : index
        pto.tload ins(%px : {VIEW}) outs(%t : {TILE})
        %s = pto.subview %t[%i, %j] sizes [{size[0]}, {size[1]}]{valid} : {TILE}{stated}
        pto.tneg ins(%s : {kind}) outs(%s : {kind})
        pto.tstore ins(%t : {TILE}) outs(%pz : {VIEW})"""


@pytest.mark.parametrize(("size", "at"), WINDOWS)
def test_a_window_is_written_in_place(size: tuple[int, int], at: tuple[int, int]) -> None:
    made = program(lines(size, at, "", ""))
    x, z = ran(made)
    x[at[0] : at[0] + size[0], at[1] : at[1] + size[1]] *= -1
    assert np.array_equal(z, x)
    assert str(loads(str(made))) == str(made)


@pytest.mark.parametrize("is_static", [True, False])
def test_a_window_has_valid_sizes_of_its_own(is_static: bool) -> None:
    shape = "!pto.tile_buf<vec, 8x16xf32, valid=%s>" % ("5x9" if is_static else "?x?")
    sizes = ("%a = arith.constant 5 : index\n        %b = arith.constant 9 : index\n        ", "")
    made = program(
        sizes[not is_static] + lines((8, 16), (4, 32), " valid [%a, %b]", shape),
        "" if is_static else ", %a: index, %b: index",
    )
    x, z = ran(made, *(() if is_static else (5, 9)))
    x[4:9, 32:41] *= -1
    assert np.array_equal(z, x)


def test_a_type_may_state_that_nothing_is_valid() -> None:
    made = program(lines((8, 16), (4, 32), "", "!pto.tile_buf<vec, 8x16xf32, valid=0x16>"))
    x, z = np.ones((16, 64), "f4"), np.zeros((16, 64), "f4")
    made["f"][1](x, z, allow="TNEG.non-empty")
    assert np.array_equal(z, x)


BOXED = {  # how the parts of a 32 x 64 matrix of halves lie that a product is made of
    "NZ": "mat, 32x64xf16, blayout=col_major, slayout=row_major",
    "ZN": "mat, 32x64xf16, blayout=row_major, slayout=col_major",
}


def product(layout: str, size: tuple[int, int], at: tuple[int, int]) -> Program:
    """Multiply a part of %x by the unit matrix."""
    rows, cols = size
    parent = f"!pto.tile_buf<{BOXED[layout]}>"
    part = f"!pto.tile_buf<{BOXED[layout].replace('32x64', f'{rows}x{cols}')}>"
    unit = f"!pto.tile_buf<mat, {cols}x{cols}xf16, blayout=col_major, slayout=row_major>"
    left = f"!pto.tile_buf<left, {rows}x{cols}xf16, blayout=row_major, slayout=row_major>"
    right = f"!pto.tile_buf<right, {cols}x{cols}xf16, blayout=row_major, slayout=col_major>"
    acc = (
        f"!pto.tile_buf<acc, {rows}x{cols}xf32, blayout=col_major, slayout=row_major, fractal=1024>"
    )
    shapes = {"x": (32, 64, "f16"), "u": (cols, cols, "f16"), "z": (rows, cols, "f32")}
    order = "" if layout == "NZ" else " {layout = #pto.layout<dn>}"
    views = ""
    for name, (height, width, kind) in shapes.items():
        strides = "%c1, %hx" if name == "x" and order else f"%w{name}, %c1"
        views += f"""
        %h{name} = arith.constant {height} : index
        %w{name} = arith.constant {width} : index
        %v{name} = pto.make_tensor_view %{name}, shape = [%h{name}, %w{name}],
          strides = [{strides}]{order if name == "x" else ""} : !pto.tensor_view<?x?x{kind}>
        %p{name} = pto.partition_view %v{name}, offsets = [%c0, %c0], sizes = [%h{name}, %w{name}]
          : !pto.tensor_view<?x?x{kind}>"""
    return loads(
        f"""func.func @f(%x: !pto.ptr<f16>, %u: !pto.ptr<f16>, %z: !pto.ptr<f32>) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %i = arith.constant {at[0]} : index
        %j = arith.constant {at[1]} : index{views}
        %t = pto.alloc_tile : {parent}
        %e = pto.alloc_tile : {unit}
        %l = pto.alloc_tile : {left}
        %r = pto.alloc_tile : {right}
        %a = pto.alloc_tile : {acc}
        pto.tload ins(%px : !pto.partition_tensor_view<32x64xf16>) outs(%t : {parent})
        pto.tload ins(%pu : !pto.partition_tensor_view<{cols}x{cols}xf16>) outs(%e : {unit})
        %s = pto.subview %t[%i, %j] sizes [{rows}, {cols}] : {parent}
        pto.textract ins(%s, %c0, %c0 : {part}, index, index) outs(%l : {left})
        pto.textract ins(%e, %c0, %c0 : {unit}, index, index) outs(%r : {right})
        pto.tmatmul ins(%l, %r : {left}, {right}) outs(%a : {acc})
        pto.tstore ins(%a : {acc}) outs(%pz : !pto.partition_tensor_view<{rows}x{cols}xf32>)
        return
        }}""",
        "k.pto",
    )


@pytest.mark.parametrize("layout", BOXED)
@pytest.mark.parametrize(
    ("size", "at"), [((16, 64), (16, 0)), ((32, 16), (0, 48)), ((16, 32), (16, 16))]
)
def test_a_window_of_boxes(layout: str, size: tuple[int, int], at: tuple[int, int]) -> None:
    made = product(layout, size, at)
    assert not made.check()
    rng = np.random.default_rng(0)
    x = rng.integers(-8, 8, (32, 64)).astype("f2")
    z = np.zeros(size, "f4")
    given = x if layout == "NZ" else np.asfortranarray(x).T.copy()
    made["f"][1](given, np.eye(size[1], dtype="f2"), z)
    assert np.array_equal(z, x[at[0] : at[0] + size[0], at[1] : at[1] + size[1]])


WRONG = {
    "window-bounds": ((8, 16), (12, 0), "", ""),
    "window-type": ((8, 16), (0, 0), "", "!pto.tile_buf<vec, 8x32xf32>"),
    "window-valid": ((8, 16), (0, 0), "", "!pto.tile_buf<vec, 8x16xf32, valid=?x16>"),
    "operand-count": ((8, 16), (0, 0), " valid [%i]", ""),
}


@pytest.mark.parametrize("code", WRONG)
def test_wrong_windows(code: str) -> None:
    try:
        found = program(lines(*WRONG[code])).check()
    except Exception as error:
        found = error.diagnostics  # type: ignore[attr-defined]
    assert found[0].code == code
    assert "pto.subview" in found[0].location.text


def test_windows_of_boxes_are_cut_between_them() -> None:
    assert {d.code for d in product("NZ", (8, 64), (8, 0)).check()} >= {"window-box"}


def test_a_window_that_leaves_its_tile_while_it_runs() -> None:
    moving = lines((8, 16), (0, 0), "", "").replace("%t[%i, %j]", "%t[%n, %j]")
    made = program(moving, ", %n: index")
    for n in random.Random(0).sample(range(9), 3):
        x, z = ran(made, n)
        x[n : n + 8, :16] *= -1
        assert np.array_equal(z, x)
    with pytest.raises(Exception, match="window-bounds"):
        ran(made, 9)


OLDER = {  # the instruction that binds a tile to a window had this name once
    "ins": f"pto.subview ins(%t, %i, %i : {TILE}, index, index) outs(%s : {TILE})",
    "generic": f'"pto.subview"(%t, %i, %i, %s) : ({TILE}, index, index, {TILE}) -> ()',
}


@pytest.mark.parametrize("form", OLDER)
def test_the_name_that_an_instruction_had(form: str) -> None:
    made = loads(
        f"""func.func @f() {{
        %i = arith.constant 0 : index
        %t = pto.alloc_tile : {TILE}
        %s = pto.alloc_tile : {TILE}
        {OLDER[form]}
        return
        }}""",
        "k.pto",
    )
    body = made.module.functions[0].body
    assert body is not None
    assert [op.insn.name for op in body.ops if op.insn is not None] == ["TSUBVIEW"]
    assert "pto.tsubview ins(" in str(made)


@pytest.mark.parametrize(("row", "col"), [(0, 0), (8, 16), (2, 24), (12, 40)])
def test_a_subset_covers_what_is_valid_of_its_tile(row: int, col: int) -> None:
    """Where only the run knows its place, its valid sizes are found when it gets there."""
    parent = "!pto.tile_buf<vec, 16x64xf32, valid=10x40>"
    window = "!pto.tile_buf<vec, 4x24xf32, valid=?x?>"
    made = program(
        f"""  %q = pto.alloc_tile : {TILE}
        pto.tload ins(%px : {VIEW}) outs(%q : {TILE})
        %p = pto.treshape %q : {TILE} -> {parent}
        %s = pto.subset %p[%i, %j] sizes [4, 24] : {parent}
        pto.tneg ins(%s : {window}) outs(%s : {window})
        pto.tstore ins(%q : {TILE}) outs(%pz : {VIEW})""",
        ", %i: index, %j: index",
    )
    x, z = np.ones((16, 64), "f4"), np.zeros((16, 64), "f4")
    made["f"][1](x, z, row, col, allow="TNEG.non-empty")
    x[row : min(row + 4, 10), col : min(col + 24, 40)] *= -1
    assert np.array_equal(z, x)


@pytest.mark.parametrize(("second", "waits"), [(8, 0), (7, 1)])
def test_windows_that_do_not_meet_need_no_order(second: int, waits: int) -> None:
    """A load into one window, and vector code in the other, of the same tile."""
    whole, half = (f"!pto.tile_buf<vec, {rows}x64xf32>" for rows in (16, 8))
    view, part = "!pto.tensor_view<?x?xf32>", "!pto.partition_tensor_view<8x64xf32>"
    program = loads(
        f"""func.func @f(%p: !pto.ptr<f32>, %q: !pto.ptr<f32>) attributes {{pto.entry}} {{
          %zero = arith.constant 0 : index
          %one = arith.constant 1 : index
          %rows = arith.constant 8 : index
          %second = arith.constant {second} : index
          %cols = arith.constant 64 : index
          %x = arith.constant 1.0 : f32
          %vp = pto.make_tensor_view %p, shape = [%rows, %cols], strides = [%cols, %one] : {view}
          %vq = pto.make_tensor_view %q, shape = [%rows, %cols], strides = [%cols, %one] : {view}
          %gp = pto.partition_view %vp, offsets = [%zero, %zero], sizes = [%rows, %cols] : {view}
          %gq = pto.partition_view %vq, offsets = [%zero, %zero], sizes = [%rows, %cols] : {view}
          %t = pto.alloc_tile : {whole}
          %a = pto.subview %t[%zero, %zero] sizes [8, 64] : {whole}
          %b = pto.subview %t[%second, %zero] sizes [8, 64] : {whole}
          pto.tload ins(%gp : {part}) outs(%a : {half})
          pto.texpands ins(%x : f32) outs(%b : {half})
          pto.tstore ins(%b : {half}) outs(%gq : {part})
          return
        }}"""
    )
    text = str(program.convert("l3", "a5"))
    assert text.count("pto.wait_flag[<PIPE_MTE2>, <PIPE_V>") == waits
    for target in ("a2a3", "a5"):
        given, made = np.full((8, 64), 3, np.float32), np.zeros((8, 64), np.float32)
        program["f"][1](given, made, target=target, check=True)
        assert (made == 1).all()
