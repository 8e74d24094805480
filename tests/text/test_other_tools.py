"""Programs as other tools write them: what they leave out or spell otherwise still runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import ProgramError, PtoError
from ptokit.base.enums import TileType
from ptokit.from_text import load, loads
from ptokit.ir.types import TileBufType

HERE = Path(__file__).parent
VIEWS = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
"""


def tile(dtype: str, cols: int, rows: int = 1) -> str:
    return f"!pto.tile_buf<vec, {rows}x{cols}x{dtype}>"


def flat(name: str, dtype: str, count: int) -> str:
    """A view of a whole array of one dimension, as a partition of one row: %p<name>."""
    view, part = f"!pto.tensor_view<?x{dtype}>", f"!pto.partition_tensor_view<1x{count}x{dtype}>"
    return f"""
  %n{name} = arith.constant {count} : index
  %v{name} = pto.make_tensor_view %{name}, shape = [%n{name}], strides = [%c1] : {view}
  %p{name} = pto.partition_view %v{name}, offsets = [%c0], sizes = [%n{name}] : {view} -> {part}
  %t{name} = pto.alloc_tile : {tile(dtype, count)}
"""


def load_of(name: str, dtype: str, count: int) -> str:
    part = f"!pto.partition_tensor_view<1x{count}x{dtype}>"
    return f"  pto.tload ins(%p{name} : {part}) outs(%t{name} : {tile(dtype, count)})\n"


def store_of(name: str, dtype: str, count: int) -> str:
    part = f"!pto.partition_tensor_view<1x{count}x{dtype}>"
    return f"  pto.tstore ins(%t{name} : {tile(dtype, count)}) outs(%p{name} : {part})\n"


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize(("mode", "compare"), [("gt", np.greater), ("eq", np.equal)])
def test_a_gather_by_one_threshold_with_its_offset_as_an_attribute(
    target: str, mode: str, compare: np.ufunc
) -> None:
    text = (
        "func.func @k(%x: !pto.ptr<f32>, %d: !pto.ptr<i32>, %c: !pto.ptr<i32>) {"
        + VIEWS
        + flat("x", "f32", 64)
        + flat("d", "i32", 64)
        + flat("c", "i32", 8)
        + f"  %k = arith.constant 2.0 : f32\n  %tmp = pto.alloc_tile : {tile('ui32', 256)}\n"
        + load_of("x", "f32", 64)
        + load_of("c", "i32", 8)
        + f"  pto.tgather ins(%tx, %k, %tmp : {tile('f32', 64)}, f32, {tile('ui32', 256)}) "
        + f"outs(%td, %tc : {tile('i32', 64)}, {tile('i32', 8)}) "
        + f"{{cmpMode = #pto<cmp {mode}>, offset = 7 : i32}}\n"
        + store_of("c", "i32", 8)
        + "  return\n}"
    )
    program = loads(text)
    assert not program.check(target)
    x = np.random.default_rng(0).integers(0, 5, 64).astype("f4")
    count = np.zeros(8, "i4")
    program["k"][1](x, np.zeros(64, "i4"), count, target=target)
    assert count[0] == compare(x, 2).sum()


def merge(parameter: str = "", constant: str = "") -> str:
    lists = f"{tile('f32', 128)}, {tile('f32', 128)}, {tile('f32', 256)}"
    return (
        f"func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %z: !pto.ptr<f32>{parameter}) {{"
        + VIEWS
        + flat("x", "f32", 128)
        + flat("y", "f32", 128)
        + flat("z", "f32", 256)
        + f"  %room = pto.alloc_tile : {tile('f32', 256)}\n"
        + constant
        + load_of("x", "f32", 128)
        + load_of("y", "f32", 128)
        + f"  pto.tmrgsort ins(%tx, %ty, %room {{exhausted = false}} : {lists}) "
        + f"outs(%tz, %counts : {tile('f32', 256)}, vector<4xi16>)\n"
        + store_of("z", "f32", 256)
        + "  return\n}"
    )


CONSTANT = "  %counts = arith.constant dense<[64, 64, 0, 0]> : vector<4xi16>\n"
PARAMETER = ", %counts: vector<4xi16>"


@pytest.mark.parametrize("on", ["reference", "stepwise", "fast"])
@pytest.mark.parametrize("is_given", [False, True])
def test_a_merge_counts_in_a_constant_or_a_parameter(is_given: bool, on: str) -> None:
    kernel = loads(merge(PARAMETER) if is_given else merge(constant=CONSTANT))["k"]
    for seed in range(3):  # the last ones are repeated, where the engine does that
        rng = np.random.default_rng(seed)
        records = np.zeros((2, 64, 2), "f4")
        records[:, :, 0] = -np.sort(-rng.standard_normal((2, 64)).astype("f4"), axis=1)
        merged, counts = np.zeros((128, 2), "f4"), np.array([64, 64, 0, 0], "i2")
        given = [records[0].reshape(-1), records[1].reshape(-1), merged.reshape(-1)]
        kernel[1](*given, *[counts] * is_given, engine=on)
        assert np.array_equal(merged[:, 0], -np.sort(-records[:, :, 0].reshape(-1)))
        assert counts.tolist() == [64, 64, 0, 0]  # a copy is passed


def test_tiles_that_share_bytes_with_the_scratch_of_a_merge_wait_for_it() -> None:
    """The scratch of the first merge becomes the result of the second one."""
    lists = f"{tile('f32', 128)}, {tile('f32', 128)}, {tile('f32', 256)}"
    merging = (
        "  pto.tmrgsort ins(%tx, %tx, {0} {{exhausted = false}} : {1}) "
        "outs({2}, %counts : {3}, vector<4xi16>)\n"
    )
    text = (
        "func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %z: !pto.ptr<f32>) {"
        + VIEWS
        + flat("x", "f32", 128)
        + flat("y", "f32", 256)
        + flat("z", "f32", 256)
        + "".join(f"  %{n} = pto.alloc_tile : {tile('f32', 256)}\n" for n in ("one", "two"))
        + CONSTANT
        + load_of("x", "f32", 128)
        + merging.format("%one", lists, "%ty", tile("f32", 256))
        + merging.format("%two", lists, "%tz", tile("f32", 256))
        + store_of("y", "f32", 256)
        + store_of("z", "f32", 256)
        + "  return\n}"
    )
    kernel = loads(text)["k"]
    x, y, z = (np.zeros(n, "f4") for n in (128, 256, 256))
    assert kernel[1](x, y, z, target="a2a3").warnings == ()


@pytest.mark.parametrize(
    "counts", [np.zeros(3, "i2"), np.zeros(4, "f4"), [[1, 2], [3, 4]], 7], ids=repr
)
def test_a_parameter_of_counts_takes_four_whole_numbers(counts: Any) -> None:
    x, y, z = (np.zeros(n, "f4") for n in (128, 128, 256))
    with pytest.raises(PtoError, match=r"%counts is a list of four counts, vector<4xi16>"):
        loads(merge(PARAMETER))["k"][1](x, y, z, counts)


def test_scale_tiles_lie_in_the_memory_their_use_asks_for() -> None:
    program = load(HERE / "run" / "scales.pto")
    assert not program.check()
    checked = program.executable(program.target())
    made = {o.result.name: o.result.type for o in checked.walk() if o.name == "pto.alloc_tile"}
    memories = {name: t.spec.loc for name, t in made.items() if isinstance(t, TileBufType)}
    assert memories["sa"] == TileType.ScaleLeft
    assert memories["sb"] == TileType.ScaleRight
    assert "scale_left" not in str(program)  # printed as it was written
    with pytest.raises(ProgramError) as caught:  # it runs, up to data that nobody loaded
        program["f"][1]()
    assert [d.code for d in caught.value.diagnostics] == ["poison-read"]


def test_the_parameters_of_the_fix_pipe_stay_where_they_are() -> None:
    scaling = "!pto.tile_buf<loc=scaling, dtype=ui64, rows=1, cols=32>"
    acc = "!pto.tile_buf<loc=acc, dtype=f32, rows=32, cols=32, blayout=col_major, "
    acc += "slayout=row_major, fractal=1024>"
    mat = "!pto.tile_buf<loc=mat, dtype=i8, rows=32, cols=32, blayout=col_major, slayout=row_major>"
    program = loads(
        f"func.func @f(%a: {acc}, %fp: {scaling}, %m: {mat}) {{\n"
        f"  pto.tmov.fp ins(%a, %fp : {acc}, {scaling}) outs(%m : {mat})\n  return\n}}"
    )
    assert program.executable(program.target()) is program.module


def test_assembly_lines_with_the_destination_first_run() -> None:
    x = np.random.default_rng(0).standard_normal((16, 64)).astype("f4")
    z = np.ones_like(x)
    load(HERE / "programs" / "assembly_newer.pto").entry()[1](x, z)
    b = (x + 1) * np.float32(2.5) + (x + 1)
    assert np.array_equal(z, 1 + np.maximum(np.trunc(b), -3))
