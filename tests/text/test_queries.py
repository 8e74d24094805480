"""Operations that ask for sizes, strides and addresses, and tiles joined row by row."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.from_text import Program, loads
from tests.text.kernels import assert_fixpoint, kernel, ran, tile

VIEW = "!pto.tensor_view<?x?xf32>"
PART = "!pto.partition_tensor_view<4x8xf32>"
OPEN = "!pto.tile_buf<vec, 16x64xf32, valid=?x?>"


def numbers(lines: str, params: str = "") -> Program:
    """A kernel over an array of 16 x 64 floats that stores numbers to %out."""
    return loads(
        f"""func.func @f(%x: !pto.ptr<f32>, %out: !pto.ptr<i32>{params}) attributes {{pto.entry}} {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %r = arith.constant 16 : index
        %w = arith.constant 64 : index
        %four = arith.constant 4 : index
        %eight = arith.constant 8 : index
        %v = pto.make_tensor_view %x, shape = [%r, %w], strides = [%w, %c1] : {VIEW}
        %p = pto.partition_view %v, offsets = [%c1, %eight], sizes = [%four, %eight]
          : {VIEW} -> {PART}
        {lines}
        return
        }}"""
    )


def answers(made: Program, *more: object) -> list[int]:
    x, out = np.arange(16 * 64, dtype="f4").reshape(16, 64), np.zeros(4, "i4")
    assert not made.check(), made.check()
    assert_fixpoint(made)
    made["f"][1](x, out, *more)
    return out.tolist()


def stored(*values: str) -> str:
    lines: list[str] = []
    for n, value in enumerate(values):
        lines.append(f"%i{n} = arith.index_cast {value} : index to i32")
        lines.append(f"%at{n} = arith.constant {n} : index")
        lines.append(f"pto.store_scalar %i{n}, %out[%at{n}] : !pto.ptr<i32>, i32")
    return "\n        ".join(lines)


def test_a_part_has_the_strides_of_its_view() -> None:
    made = numbers(
        f"""%a = pto.get_tensor_view_stride %p, %c0 : {PART} -> index
        %b = pto.get_tensor_view_stride %v, %c1 : {VIEW} -> index
        %c = pto.get_tensor_view_dim %p, %c1 : {PART} -> index
        {stored("%a", "%b", "%c")}"""
    )
    assert answers(made) == [64, 1, 8, 0]
    assert "= 64;" in made.cpp() or "64" in made.cpp()


def test_valid_sizes_are_those_in_force() -> None:
    made = numbers(
        f"""%t = pto.alloc_tile valid_row = %n valid_col = %w : {OPEN}
        %a = pto.tile_valid_rows %t : {OPEN} -> index
        pto.set_validshape %t, %four, %eight : {OPEN}
        %b = pto.tile_valid_rows %t : {OPEN} -> index
        %c = pto.tile_valid_cols %t : {OPEN} -> index
        %d, %e = pto.get_validshape %t : {OPEN}
        %s = arith.addi %d, %e : index
        {stored("%a", "%b", "%c", "%s")}""",
        ", %n: index",
    )
    assert answers(made, 11) == [11, 4, 8, 12]
    assert "GetValidRow()" in made.cpp()
    assert "GetValidCol()" in made.cpp()


def test_the_address_of_a_view_is_where_it_starts() -> None:
    made = numbers(
        f"""%q = pto.tensor_view_addr %p : {PART} -> !pto.ptr<f32>
        %y = pto.load_scalar %q[%c1] : !pto.ptr<f32> -> f32
        %i = arith.fptosi %y : f32 to i32
        pto.store_scalar %i, %out[%c0] : !pto.ptr<i32>, i32"""
    )
    assert answers(made)[0] == 64 + 8 + 1


def test_the_address_of_a_tile_is_in_its_memory() -> None:
    t = "!pto.tile_buf<vec, 1x16xf32>"
    text = """func.func @f() attributes {pto.entry} {
      %t = pto.alloc_tile : T
      %p = pto.tile_buf_addr %t : T -> !pto.ptr<f32, ub>
      return
    }""".replace("T ", f"{t} ").replace(": T\n", f": {t}\n")
    made = loads(text)
    assert_fixpoint(made)
    assert not made.check()
    made["f"][1]()
    assert ".data();" not in made.cpp()  # nobody takes it
    for wrong in ("!pto.ptr<f32>", "!pto.ptr<f32, l1>", "!pto.ptr<i32, ub>"):
        found = loads(text.replace("!pto.ptr<f32, ub>", wrong)).check()
        assert [each.code for each in found] == ["type-mismatch"], wrong


@pytest.mark.parametrize("name", ["tconcatidx", "tconcat"])
def test_rows_are_joined_by_their_lengths(name: str, engine: str) -> None:
    part, counts, whole = tile("8x32xf32"), tile("8x8xi32", "valid=8x1"), tile("8x64xf32")
    made = kernel(
        f"pto.{name} ins(%a, %b, %na, %nb : {part}, {part}, {counts}, {counts}) outs(%d : {whole})",
        {"a": part, "b": part, "na": counts, "nb": counts, "d": whole},
        {"d": whole},
    )
    assert "pto.tconcatidx" in str(made)
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 8, 32)).astype("f4")
    n = rng.integers(1, 33, (2, 8, 1), dtype="i4")
    d = np.zeros((8, 64), "f4")
    ran(made, [a, b, n[0] * 4, n[1] * 4, d], engine)  # lengths are bytes of their type
    for row, (first, second) in enumerate(zip(*n[:, :, 0].tolist(), strict=True)):
        assert (d[row, :first] == a[row, :first]).all()
        assert (d[row, first : first + second] == b[row, :second]).all()
        assert not d[row, first + second :].any()
    assert "TCONCAT(d, a, b, na, nb)" in made.cpp()


def test_the_plain_name_has_two_sources() -> None:
    part, whole = tile("8x32xf32"), tile("8x64xf32")
    with pytest.raises(PtoError, match="does not take these operands"):
        loads(
            f"func.func @f(%a: {part}, %d: {whole}) {{\n"
            f" pto.tconcatidx ins(%a, %a : {part}, {part}) outs(%d : {whole})\n return\n}}"
        )


@pytest.mark.parametrize(("element", "np_type"), [("f32", "f4"), ("f16", "f2"), ("i16", "i2")])
def test_sums_are_rectified_in_one_operation(element: str, np_type: str, engine: str) -> None:
    t = tile(f"16x64x{element}")
    line = f"pto.taddrelu ins(%a, %b : {t}, {t}) outs(%d : {t})"
    made = kernel(line, {"a": t, "b": t}, {"d": t}, "a3")
    a, b = (np.random.default_rng(7).standard_normal((2, 16, 64)) * 50).astype(np_type)
    d = np.zeros_like(a)
    ran(made, [a, b, d], engine)
    assert (d == np.maximum(a + b, 0)).all()
    assert "TADD(d, a, b);" in made.cpp()
    elsewhere = kernel(line, {"a": t, "b": t}, {"d": t}, "a5")
    assert "TADDRELU" in " ".join(each.message for each in elsewhere.check())


def test_a_module_for_vector_cores_is_launched_on_them_alone() -> None:
    """Each is a block, and the only core of it."""
    made = loads(
        """module attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
        func.func @f(%out: !pto.ptr<i64>) attributes {pto.kernel} {
        %line = arith.constant 32 : index
        %one = arith.constant 1 : index
        %block = pto.get_block_idx
        %i = arith.index_cast %block : i64 to index
        %at = arith.muli %i, %line : index
        %next = arith.addi %at, %one : index
        %sub = pto.get_subblock_idx
        %of = pto.get_subblock_num
        pto.store_scalar %sub, %out[%at] : !pto.ptr<i64>, i64
        pto.store_scalar %of, %out[%next] : !pto.ptr<i64>, i64
        return
        }
        }"""
    )
    out = np.full(64, -1, np.int64)
    made["f"][2](out, target="a5")
    assert out.reshape(2, 32)[:, :3].tolist() == [[0, 1, -1], [0, 1, -1]]
