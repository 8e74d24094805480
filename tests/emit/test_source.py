"""Emitted C++ as source that one keeps: names, types, numbers, comments, folded values."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.from_text import load, loads

ROWS, COLS, LOWEST = 16, 64, -1.5
Block = Tile[TileType.Vec, float32, ROWS, COLS]
X = np.zeros((64, COLS), np.float32)


@kernel(mode="auto")
def names(x, y, n, *, scale):
    Row = Tile[TileType.Vec, float32, 1, COLS]
    parts = [Block(), Block()]
    row, _spare = Row(), Row()  # nobody takes the second

    # Two blocks of rows.
    for first in range(0, n, ROWS):
        TLOAD(parts[0], GlobalTensor(x)[first : first + ROWS, :])
        TMULS(parts[1], parts[0], scale)
        TADDS(parts[1], parts[1], LOWEST)
        last = first + 3
        TSTORE(GlobalTensor(y)[last : last + ROWS, :], parts[1])
        TLOAD(row, GlobalTensor(x)[last : last + 1, :])
    TSTORE(GlobalTensor(y)[0:1, :], row)


@kernel(mode="auto", core="cube")
def cube(a, c):
    a_l1 = Tile[TileType.Mat, half, 32, 32, BLayout.ColMajor, 32, 32, SLayout.RowMajor]()
    left, right = TileLeft[half, 32, 32](), TileRight[half, 32, 32]()
    acc = TileAcc[float32, 32, 32]()
    TLOAD(a_l1, GlobalTensor(a))
    TMOV(left, a_l1)
    TMOV(right, a_l1)
    TMATMUL(acc, left, right)
    TSTORE(GlobalTensor(c), acc)


@kernel
def leaves(y, n):
    i, total = 0, 0
    while i < n:
        i += 2
        if i * i > 50:
            break
        total += i
    store_scalar(ptr(y), 0, float(total))


@kernel
def searches(y, n):
    for i in range(0, n, 2):
        e = load_scalar(ptr(y), i)
        if e > 1.0:
            break


@pytest.fixture(scope="module")
def source() -> str:
    return names.cpp(X, X, 32, scale=0.5)


def code(text: str) -> list[str]:
    """The lines without their indentation, and without comments."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("//")]


def test_types_numbers_and_tiles_have_the_names_of_the_author(source: str) -> None:
    lines = code(source)
    for expected in (
        "constexpr int64_t ROWS = 16, COLS = 64;",
        "constexpr float scale = 0.5f, LOWEST = -1.5f;",
        "using Block = Tile<TileType::Vec, float, ROWS, COLS>;",
        "using Row = Tile<TileType::Vec, float, 1, COLS>;",
        "using GlobalX = GlobalTensor<float, Shape<1, 1, 1, ROWS, 64>, Stride<1, 1, 1, 64, 1>>;",
        "Block parts_0, parts_1;",
        "for (int64_t first = 0; first < n; first += ROWS) {",
        "TMULS(parts_1, parts_0, scale);",
        "TADDS(parts_1, parts_1, LOWEST);",
    ):
        assert expected in lines


def test_a_value_stands_where_it_is_taken_unless_the_author_names_it(source: str) -> None:
    lines = code(source)
    assert "GlobalX x_part(x + first * 64);" in lines
    assert "const int64_t last = first + 3;" in lines
    assert "GlobalY y_part(y + last * 64);" in lines
    assert not [line for line in lines if re.search(r"\bv_?\d*\b", line)]


def test_what_nobody_takes_is_left_out(source: str) -> None:
    assert "_spare" not in "".join(code(source))


def test_lines_that_cpp_says_in_other_words_are_quoted_once(source: str) -> None:
    quoted = re.findall(r"// (\d+): (.*)", source)
    numbers = [int(n) for n, _ in quoted]
    assert numbers == sorted(set(numbers))
    texts = [text for _, text in quoted]
    assert "for first in range(0, n, ROWS):" in texts
    assert "TADDS(parts[1], parts[1], LOWEST)" in texts
    assert "// Two blocks of rows." in [line.strip() for line in source.splitlines()]


def test_layouts_of_the_target_have_their_names() -> None:
    half, single = np.zeros((32, 32), np.float16), np.zeros((32, 32), np.float32)
    for target in ("a2a3", "a5"):
        lines = code(cube.cpp(half, single, target=target))
        for name in ("Left", "Right"):
            assert f"using {name}32x32 = Tile{name}<half, 32, 32>;" in lines
        assert "using Acc32x32 = TileAcc<float, 32, 32>;" in lines


def test_loops_have_their_conditions_and_breaks() -> None:
    lines = code(leaves.cpp(X, 5))
    start = lines.index("while (i < n) {")
    end = lines.index("}", start)
    assert lines[end - 1] == "if (v) break;"
    assert not [line for line in lines if "stop" in line]
    counted = code(searches.cpp(X, 5))
    start = counted.index("for (int64_t i = 0; i < n; i += 2) {")
    assert counted[start + 1 :][: counted[start + 1 :].index("}")] == [
        "const float e = y[i];",
        "if (e > 1.0f) break;",
    ]


@pytest.mark.parametrize("guard", [False, True])
def test_what_auto_mode_does_itself_is_guarded_on_request(guard: bool) -> None:
    text = names.cpp(X, X, 32, scale=0.5, guard_sync=guard)
    assert text.count("#ifndef __PTO_AUTO__") == text.count("#endif")
    assert ("#ifndef __PTO_AUTO__" in text) is guard
    depth = 0
    for line in text.splitlines():
        depth += line.startswith("#ifndef") - line.startswith("#endif")
        is_sync = line.strip().startswith(("set_flag(", "wait_flag(", "pipe_barrier("))
        assert line.startswith("#") or not guard or is_sync == bool(depth)
    plain = "\n".join(line for line in text.splitlines() if line[:4] not in ("#ifn", "#end"))
    assert plain == names.cpp(X, X, 32, scale=0.5).rstrip("\n")


def test_the_host_has_a_function_that_launches(source: str) -> None:
    tail = " ".join(source[source.index('extern "C" void launch_names') :].split())
    assert tail == (
        'extern "C" void launch_names(uint32_t blocks, void *stream, void *x, void *y, int64_t n) '
        "{ names<<<blocks, nullptr, stream>>>((__gm__ float *)x, (__gm__ float *)y, n); }"
    )


VIEWS = """!row = !pto.tile_buf<vec, 1x64xf32>
func.func @f(%x: !pto.ptr<f32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %WIDTH = arith.constant 64 : index
  // all of it
  %view = pto.make_tensor_view %x, shape = [%c1, %WIDTH], strides = [%WIDTH, %c1]
    : !pto.tensor_view<1x64xf32>
  %t = pto.alloc_tile : !row
  pto.tload ins(%view : !pto.tensor_view<1x64xf32>) outs(%t : !row)
  %7 = arith.addi %n, %n : index
  %8 = arith.muli %7, %WIDTH : index
  %9 = arith.muli %8, %c0 : index
  %q = pto.addptr %x, %8 : !pto.ptr<f32> -> !pto.ptr<f32>
  %e = pto.load_scalar %q[%9] : !pto.ptr<f32> -> f32
  pto.tadds ins(%t, %e : !row, f32) outs(%t : !row)
  return
}
"""


def test_texts_keep_their_names_and_comments(tmp_path: Any) -> None:
    path = tmp_path / "f.pto"
    path.write_text(VIEWS)
    text = load(path).cpp()
    lines = code(text)
    for expected in (
        "constexpr int64_t WIDTH = 64;",
        "using Row = Tile<TileType::Vec, float, 1, 64>;",
        "GlobalX x_view(x);",  # a view can be loaded as a whole
        "TLOAD(t, x_view);",
        "__gm__ float *q = x + (n + n) * WIDTH;",
        "const float e = q[0];",
    ):
        assert expected in lines
    assert "    // all of it\n" in text


EXPRESSIONS = {  # what is computed of %a and %b as %r: how C++ writes it
    "%r = arith.shli %one, %a : index": "static_cast<int64_t>(1) << a",
    "%s = arith.addi %a, %b : index\n%r = arith.muli %s, %s : index": "s * s",
    "%1 = arith.addi %a, %b : index\n%r = arith.muli %1, %a : index": "(a + b) * a",
    "%1 = arith.subi %a, %b : index\n%r = arith.subi %a, %1 : index": "a - (a - b)",
    "%r = arith.divui %a, %b : index": "static_cast<uint64_t>(a) / static_cast<uint64_t>(b)",
    "%1 = arith.cmpi ult, %a, %b : index\n%r = arith.select %1, %a, %b : index": (
        "static_cast<uint64_t>(a) < static_cast<uint64_t>(b) ? a : b"
    ),
    "%r = arith.maxui %a, %b : index": (
        "static_cast<uint64_t>(a) > static_cast<uint64_t>(b) ? a : b"
    ),
    "%1 = arith.addi %a, %b : index\n%r = arith.subi %1, %a : index": "b",
    "%c8 = arith.constant 8 : index\n%r = arith.floordivsi %a, %c8 : index": (
        "a / 8 - (a % 8 != 0 && a < 0)"
    ),
}


@pytest.mark.parametrize("lines", EXPRESSIONS, ids=range(len(EXPRESSIONS)))
def test_expressions_have_the_brackets_they_need(lines: str) -> None:
    text = f"""func.func @f(%out: !pto.ptr<i64>, %a: index, %b: index) {{
      %one = arith.constant 1 : index
      %c0 = arith.constant 0 : index
      {lines}
      %99 = arith.index_cast %r : index to i64
      pto.store_scalar %99, %out[%c0] : !pto.ptr<i64>, i64
      return
    }}"""
    wanted = EXPRESSIONS[lines]
    found = "\n".join(code(loads(text).cpp()))
    assert f"out[0] = {wanted};" in found or f"const int64_t r = {wanted};" in found


def test_what_is_not_known_is_refused_at_its_line() -> None:
    text = """func.func @f(%v: !pto.partition_tensor_view<1x64xf32>) {
      %t = pto.alloc_tile : !pto.tile_buf<vec, 1x64xf32>
      pto.tload ins(%v : !pto.partition_tensor_view<1x64xf32>)
        outs(%t : !pto.tile_buf<vec, 1x64xf32>)
      return
    }"""
    with pytest.raises(PtoError, match="a parameter of type") as caught:
        loads(text, "k.pto").cpp()
    assert caught.value.diagnostics[0].location.line == 1  # type: ignore[union-attr]
