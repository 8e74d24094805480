"""What other tools write and the checker accepts also runs, and means what they mean."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
from ptokit.from_text import Program, loads
from ptokit.ir.core import Op
from ptokit.ir.printer import print_module

VIEW = "!pto.partition_tensor_view<16x64xf32>"
TILE = "!pto.tile_buf<vec, 16x64xf32>"
MEMREF = "memref<16x64xf32, #pto.address_space<vec>>"


def program(lines: str, params: str = "") -> Program:
    """A kernel over two arrays of 16 x 64 floats, %px and %pz."""
    views = "".join(
        f"""  %v{n} = pto.make_tensor_view %{n}, shape = [%r, %w], strides = [%w, %c1]
          : !pto.tensor_view<?x?xf32>
        %p{n} = pto.partition_view %v{n}, offsets = [%c0, %c0], sizes = [%r, %w]
          : !pto.tensor_view<?x?xf32> -> {VIEW}
        """
        for n in "xz"
    )
    return loads(
        f"""func.func @f(%x: !pto.ptr<f32>, %z: !pto.ptr<f32>{params}) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %r = arith.constant 16 : index
        %w = arith.constant 64 : index
        {views}{lines}
        return
        }}""",
        "k.pto",
    )


def ran(made: Program, *more: object) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((16, 64)).astype("f4")
    z = np.zeros_like(x)
    assert not made.check()
    made["f"][1](x, z, *more)
    return x, z


@pytest.mark.parametrize("word", ["pto.sync.set <PIPE_FIX>", "pto.sync.wait <PIPE_V>"])
@pytest.mark.parametrize("id", ["3", "%c", "3 {ffts_mode = 1 : i32}"])
@pytest.mark.parametrize("follows", ["%i = arith.constant 1 : i64", "%b = pto.get_block_idx"])
def test_a_line_ends_where_it_ends(word: str, id: str, follows: str) -> None:
    text = f"func.func @f(%c: index) {{\n  {word}, {id}\n  {follows}\n  return\n}}\n"
    first, second, _ = loads(text).module.functions[0].body.ops
    assert (len(first.operands), len(second.results)) == (int(id == "%c"), 1)
    assert str(loads(str(loads(text)))) == str(loads(text))


# ---- the generic form ----------------------------------------------------------------------------

ORDERS = {  # as the public dialect declares its operands, where that is not sources, then results
    "trsqrt": ("src", "dst", "tmp"),
    "tcvt": ("src", "tmp", "dst"),
    "tgather": ("src0", "dst", "src1", "tmp"),
    "tmov": ("src", "dst", "fp"),
    "tstore": ("src", "dst", "preQuantScalar"),
    "tsetval": ("dst", "offset", "val"),
    "tmrgsort": ("src0", "src1", "dst", "tmp", "executedNumList"),
    "tsels": ("mask", "src", "tmp", "scalar", "dst"),
    "trems": ("src", "scalar", "tmp", "dst"),
}


def generic(op: str, operands: tuple[str, ...]) -> Op:
    kinds = {"scalar": "f32", "val": "f32", "offset": "index", "preQuantScalar": "i64"}
    kinds |= {"fp": "!pto.tile_buf<scaling, 1x64xui64>"}
    kinds |= {"executedNumList": "vector<4xi16>", "mask": "!pto.tile_buf<vec, 16x32xui8>"}
    kinds |= {"src1": "!pto.tile_buf<vec, 16x64xi32>"} if op == "tgather" else {}
    if op == "tstore":
        kinds |= {"src": "!pto.tile_buf<acc, 16x64xf32>", "dst": VIEW}
    types = [kinds.get(name, TILE) for name in operands]
    params = ", ".join(f"%{name}: {kind}" for name, kind in zip(operands, types, strict=True))
    names = ", ".join(f"%{name}" for name in operands)
    text = f"""func.func @f({params}) {{
      "pto.{op}"({names}) : ({", ".join(types)}) -> ()
      return
    }}"""
    return loads(text).module.functions[0].body.ops[0]


@pytest.mark.parametrize("op", ORDERS)
def test_operands_of_the_generic_form_have_the_order_of_the_dialect(op: str) -> None:
    found = generic(op, ORDERS[op])
    named = {label: value.name for label, value in zip(found.labels, found.operands, strict=True)}
    assert named == {name: name for name in ORDERS[op]}


def test_the_generic_form_is_printed_in_that_order_too() -> None:
    made = program(
        f"""  %t = pto.alloc_tile : {TILE}
        %u = pto.alloc_tile : {TILE}
        %s = pto.alloc_tile : {TILE}
        pto.tload ins(%px : {VIEW}) outs(%t : {TILE})
        pto.tabs ins(%t : {TILE}) outs(%t : {TILE})
        pto.trsqrt ins(%t, %s : {TILE}, {TILE}) outs(%u : {TILE})
        pto.tstore ins(%u : {TILE}) outs(%pz : {VIEW})"""
    )
    text = print_module(made.module, generic=True)
    assert '"pto.trsqrt"(%t, %u, %s)' in text
    x, z = ran(loads(text))
    assert np.array_equal(z, np.float32(1) / np.sqrt(abs(x)))  # each step is rounded once


# ---- windows and lowered tiles -------------------------------------------------------------------

WINDOWS = {"rows": (4, 0, 8, 64), "columns": (0, 32, 16, 32), "inside": (3, 8, 9, 40)}


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_need_not_be_contiguous(name: str) -> None:
    row, col, rows, cols = WINDOWS[name]
    window = f"!pto.tile_buf<vec, {rows}x{cols}xf32>"
    made = program(
        f"""  %t = pto.alloc_tile : {TILE}
        %i = arith.constant {row} : index
        %j = arith.constant {col} : index
        pto.tload ins(%px : {VIEW}) outs(%t : {TILE})
        %s = pto.subset %t[%i, %j] sizes [{rows}, {cols}] : {TILE}
        pto.tneg ins(%s : {window}) outs(%s : {window})
        pto.tstore ins(%t : {TILE}) outs(%pz : {VIEW})"""
    )
    x, z = ran(made)
    x[row : row + rows, col : col + cols] *= -1
    assert np.array_equal(z, x)


def test_a_window_of_a_window() -> None:
    first, second = "!pto.tile_buf<vec, 12x48xf32>", "!pto.tile_buf<vec, 4x16xf32>"
    made = program(
        f"""  %t = pto.alloc_tile : {TILE}
        %i = arith.constant 2 : index
        %j = arith.constant 16 : index
        pto.tload ins(%px : {VIEW}) outs(%t : {TILE})
        %s = pto.subset %t[%i, %j] sizes [12, 48] : {TILE}
        %u = pto.subset %s[%i, %j] sizes [4, 16] : {first}
        pto.tneg ins(%u : {second}) outs(%u : {second})
        pto.tstore ins(%t : {TILE}) outs(%pz : {VIEW})"""
    )
    x, z = ran(made)
    x[4:8, 32:48] *= -1
    assert np.array_equal(z, x)


LOWERED = {
    "alloc": f"%t = memref.alloc() : {MEMREF}",
    "bound": f"""%m = memref.alloc() : {MEMREF}
        %t = pto.bind_tile %m {{config = #pto.tile_buf_config<blayout=row_major,
          slayout=none_box, s_fractal_size=512, pad=null>}} : {MEMREF} -> {MEMREF}""",
    "placed": f"""%at = arith.constant 4096 : i64
        %t = pto.pointer_cast(%at) : {MEMREF}""",
}


@pytest.mark.parametrize("name", LOWERED)
def test_tiles_that_were_lowered_to_memrefs_run_and_are_written_as_cpp(name: str) -> None:
    made = program(
        f"""  {LOWERED[name]}
        pto.tload ins(%px : {VIEW}) outs(%t : {MEMREF})
        pto.tabs ins(%t : {MEMREF}) outs(%t : {MEMREF})
        pto.tstore ins(%t : {MEMREF}) outs(%pz : {VIEW})"""
    )
    x, z = ran(made)
    assert np.array_equal(z, abs(x))
    text = made.cpp()
    assert f"TASSIGN(t, {'0x1000' if name == 'placed' else '0x0'})" in text
    assert "set_flag(PIPE_MTE2, PIPE_V" in text


def test_the_valid_sizes_of_a_bound_memref_are_run_time_values() -> None:
    made = program(
        f"""  %m = memref.alloc() : {MEMREF}
        %t = pto.bind_tile %m, %n, %k : {MEMREF} -> {MEMREF}
        %q = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%n, %k]
          : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<?x?xf32>
        %s = pto.partition_view %vz, offsets = [%c0, %c0], sizes = [%n, %k]
          : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<?x?xf32>
        pto.tload ins(%q : !pto.partition_tensor_view<?x?xf32>) outs(%t : {MEMREF})
        pto.tstore ins(%t : {MEMREF}) outs(%s : !pto.partition_tensor_view<?x?xf32>)""",
        ", %n: index, %k: index",
    )
    x, z = ran(made, 5, 40)
    assert np.array_equal(z[:5, :40], x[:5, :40])
    assert not z[5:].any()
    assert not z[:, 40:].any()


def test_a_tile_of_smaller_elements_is_the_first_bytes_of_the_other() -> None:
    small = "!pto.tile_buf<vec, 16x64xi16>"
    made = program(
        f"""  %t = pto.alloc_tile : {TILE}
        %u = pto.bitcast %t : {TILE} -> {small}
        %zero = arith.constant 0 : i16
        pto.tload ins(%px : {VIEW}) outs(%t : {TILE})
        pto.texpands ins(%zero : i16) outs(%u : {small})
        pto.tstore ins(%t : {TILE}) outs(%pz : {VIEW})"""
    )
    x, z = ran(made)
    assert not z[:8].any()
    assert np.array_equal(z[8:], x[8:])


@pytest.mark.parametrize("is_known", [True, False])
def test_the_type_of_a_part_with_other_dimensions_than_its_view_decides_nothing(
    is_known: bool,
) -> None:
    row = "!pto.tile_buf<vec, 1x64xf32, valid=1x?>"
    size = "%n = arith.constant 40 : index\n" if is_known else ""
    parts = "".join(
        f"""%f{n} = pto.make_tensor_view %{n}, shape = [%w], strides = [%c1]
          : !pto.tensor_view<?xf32>
        %q{n} = pto.partition_view %f{n}, offsets = [%c0], sizes = [%n]
          : !pto.tensor_view<?xf32> -> !pto.partition_tensor_view<1x64xf32>
        """
        for n in "xz"
    )
    made = program(
        f"""  {size}{parts}%t = pto.alloc_tile valid_col = %n : {row}
        pto.tload ins(%qx : !pto.partition_tensor_view<1x64xf32>) outs(%t : {row})
        pto.tstore ins(%t : {row}) outs(%qz : !pto.partition_tensor_view<1x64xf32>)""",
        "" if is_known else ", %n: index",
    )
    x, z = ran(made, *(() if is_known else (40,)))
    assert np.array_equal(z[0, :40], x[0, :40])
    assert not z[0, 40:].any()
    assert not z[1:].any()


# ---- sub-blocks ----------------------------------------------------------------------------------

STORE_PLACE = """
        %b = pto.get_block_idx
        %bi = arith.index_cast %b : i64 to index
        %s = pto.get_subblock_idx
        %si = arith.index_cast %s : i64 to index
        %n = pto.get_subblock_num
        %v = arith.trunci %n : i64 to i32
        %two = arith.constant 2 : index
        %twice = arith.muli %bi, %two : index
        %at = arith.addi %twice, %si : index
        %line = arith.constant 16 : index
        %far = arith.muli %at, %line : index
        pto.store_scalar %v, %out[%far] : !pto.ptr<i32>, i32
"""


@pytest.mark.parametrize("written", ["section", "kind"])
def test_a_vector_program_that_asks_for_its_sub_block_runs_on_both(written: str) -> None:
    if written == "section":
        body, attrs = f"pto.section.vector {{{STORE_PLACE}}}", ""
    else:
        body, attrs = STORE_PLACE, " attributes {pto.kernel_kind = #pto.kernel_kind<vector>}"
    made = loads(f"func.func @f(%out: !pto.ptr<i32>){attrs} {{\n{body}\nreturn\n}}")
    out = np.zeros((3, 2, 16), np.int32)
    made["f"][3](out)
    assert (out[..., 0] == 2).all()


@kernel(core="vector", mode="auto")
def places(out):
    """A row of the number of vector cores, at the place of the one that runs."""
    row = Tile[TileType.Vec, int32, 1, 16]()
    at = get_block_idx() * 2 + get_subblockid()
    TEXPANDS(row, get_subblockdim())
    TSTORE(GlobalTensor(out)[at : at + 1, :], row)


def test_python_kernels_on_vector_cores_alone_mean_the_same_as_their_text() -> None:
    found = []
    for run in (
        lambda out: places[3](out),
        lambda out: places[3](out, path="lowered"),
        lambda out: loads(places.text(out)).entry()[3](out),
    ):
        out = np.zeros((6, 16), np.int32)
        run(out)
        found.append(out)
    assert found[0][:, 0].tolist() == [1, 0, 1, 0, 1, 0]
    assert all(np.array_equal(found[0], other) for other in found)
