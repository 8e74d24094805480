"""Pipes that convert accumulators on their way: `acc_push_epilogue` and the scales of a pipe."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit.base.dtypes import bf16
from ptokit.from_text import loads
from tests.text.pipe_programs import errors, product, program_text

BUFFER = "location = #pto.address_space<vec>, auto = true"
SLOT = 16 * 32 * 4
# The mode: what is multiplied, the popped type, and what scales it: nothing, one number or many.
MODES = {
    "no_convert": ("f32", "f32", ""),
    "f32_f16": ("f32", "f16", ""),
    "f32_bf16": ("f32", "bf16", ""),
    "deqf16_scalar": ("i8", "f16", "scalar"),
    "deqf16_vec": ("i8", "f16", "vector"),
    "req8_scalar": ("i8", "ui8", "scalar"),
    "req8_vec": ("i8", "si8", "vector"),
    "qf322b8_pre_scalar": ("f32", "si8", "scalar"),
    "qf322b8_pre_vec": ("f32", "si8", "vector"),
    "qf322f16_pre_scalar": ("f32", "f16", "scalar"),
    "qf322bf16_pre_scalar": ("f32", "bf16", "scalar"),
    "qs322bf16_pre_scalar": ("i8", "bf16", "scalar"),
    "qs322bf16_pre_vec": ("i8", "bf16", "vector"),
    "qf322fp8_pre_scalar": ("f32", "f8E4M3FN", "scalar"),
    "qf322hif8_pre_scalar": ("f32", "hif8", "scalar"),
}
ON_A5 = [mode for mode in MODES if mode.startswith(("qs322bf16", "qf322fp8", "qf322hif8"))]
ARRAYS: dict[str, Any] = {"f32": "f4", "f16": "f2", "bf16": bf16.np, "si8": "i1", "ui8": "u1"}
LAYOUTS = {
    "nz2nd": ("row_major", "none_box"),
    "nz2dn": ("col_major", "none_box"),
    "nz2nz": ("col_major", "row_major"),
}


def text(
    mode: str,
    arch: str,
    relu: str = "no_relu",
    layout: str = "nz2nd",
    pushes: str = "",
    id: int = 0,
) -> str:
    kind, popped, scales = MODES[mode]
    blayout, slayout = LAYOUTS[layout]
    epilogue = f"#pto.acc_push_epilogue<layout = {layout}, quant = {mode}, relu = {relu}>"
    keys = f"dir_mask = 1, slot_size = {SLOT}, nosplit = true, acc_push_epilogue = {epilogue}"
    keys = f"{{id = {id}, slot_num = 2, {keys}}}"
    ring = "" if arch == "a5" else "gm_slot_buffer = %ring : !pto.ptr<f32>, "
    tile = f"!pto.tile_buf<vec, 16x32x{popped}, blayout={blayout}, slayout={slayout}>"
    # Words are moved as such; A5 takes the floats in them, two in each, for scales.
    words = 16 if arch == "a5" else 32
    fp, mat = (f"!pto.tile_buf<{loc}, 1x{words}xui64>" for loc in ("scaling", "mat"))
    scaling = "!pto.tile_buf<scaling, 1x32xf32>" if arch == "a5" else fp
    many = f"""
    %vs = pto.make_tensor_view %s, shape = [%c1, %c{words}], strides = [%c{words}, %c1]
        : !pto.tensor_view<1x{words}xui64>
    %ps = pto.partition_view %vs, offsets = [%c0, %c0], sizes = [%c1, %c{words}]
        : !pto.tensor_view<1x{words}xui64>
    %ms = pto.alloc_tile : {mat}
    %fw = pto.alloc_tile : {fp}
    pto.tload ins(%ps : !pto.partition_tensor_view<1x{words}xui64>) outs(%ms : {mat})
    pto.tmov ins(%ms : {mat}) outs(%fw : {fp})
    %fp = pto.bitcast %fw : {fp} -> {scaling}
    pto.set_quant_vector(%fp : {scaling}) {{id = {id}}}"""
    one = f"""
    %half = arith.constant 0.5 : f32
    pto.set_quant_scalar(%half : f32) {{id = {id}}}"""
    views = {
        "nz2nd": ("16x32", "[%c16, %c32]", "[%c32, %c1]", "nd"),
        "nz2dn": ("16x32", "[%c16, %c32]", "[%c1, %c16]", "dn"),
        "nz2nz": ("1x4x1x16x8", "[%c1, %c4, %c1, %c16, %c8]", "[%n, %m, %m, %c8, %c1]", "nz"),
    }
    shape, sizes, strides, word = views[layout]
    offsets = ", ".join(["%c0"] * (shape.count("x") + 1))
    return program_text(
        arch,
        kind,
        scale="ui64",
        ring="f32",
        out=popped.removeprefix("s"),
        opened=f"""%far = pto.import_reserved_buffer {{name = "q", peer_func = @vector}} -> i32
    pto.aic_initialize_pipe {keys} ({ring}c2v_consumer_buf = %far : i32)""",
        push={"scalar": one, "vector": many}.get(scales, "")
        + f"\n    pto.tpush_to_aiv(%acc : !acc) {{id = {id}, split = 0}}",
        reserved=f"""%near = pto.reserve_buffer {{name = "q", size = {2 * SLOT}, {BUFFER}}} -> i32
    pto.aiv_initialize_pipe {keys} ({ring}c2v_consumer_buf = %near : i32)""",
        pop=f"""%n = arith.constant 512 : index
    %m = arith.constant 128 : index
    %vz = pto.make_tensor_view %z, shape = {sizes}, strides = {strides}
        {{layout = #pto.layout<{word}>}} : !pto.tensor_view<{shape}x{popped.removeprefix("s")}>
    %pz = pto.partition_view %vz, offsets = [{offsets}], sizes = {sizes}
        : !pto.tensor_view<{shape}x{popped.removeprefix("s")}>
    %t = pto.tpop_from_aic {{id = {id}, split = 0}} -> {tile}
    scf.if %is_first {{
      pto.tstore ins(%t : {tile})
          outs(%pz : !pto.partition_tensor_view<{shape}x{popped.removeprefix("s")}>)
    }}
    pto.tfree_from_aic {{id = {id}, split = 0}}""",
    )


def scales_of(arch: str) -> Any:
    """A scale for each column; A3 packs them into words that say whether results have a sign."""
    values = (0.5 + np.arange(32) % 3).astype("f4")
    if arch == "a5":
        return values.view("u8")
    return values.view("u4").astype("u8") | np.uint64(1 << 46)


def expected(mode: str, relu: bool) -> Any:
    kind, popped, scales = MODES[mode]
    values = product(kind)[2].astype("f4")
    if scales:
        columns = np.arange(32) % 3 if scales == "vector" else np.zeros(32)
        values = values * (0.5 + columns).astype("f4")
    values = np.maximum(values, 0) if relu else values
    if popped in ("si8", "ui8"):
        low, high = (-128, 127) if popped == "si8" else (0, 255)
        return np.clip(np.rint(values), low, high).astype(ARRAYS[popped])
    return values.astype(ARRAYS.get(popped, "f4"))


def run(made: Any, arch: str, kind: str, out: Any) -> Any:
    a, b, _ = product(kind)
    done = made["both"][1](a, b, scales_of(arch), np.zeros(4096, "f4"), out)
    assert not done.findings
    return out


@pytest.mark.parametrize("relu", ["no_relu", "normal_relu"])
@pytest.mark.parametrize("arch", ["a3", "a5"])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_of_conversion(mode: str, arch: str, relu: str) -> None:
    kind, popped, scales = MODES[mode]
    made = loads(text(mode, arch, relu), "k.pto")
    assert str(loads(str(made))) == str(made)
    if arch == "a3" and mode in ON_A5:
        assert "pipe-epilogue" in errors(made)
        return
    assert not errors(made)
    code = made.cpp()
    assert "FixpipeParams<" in code
    assert ("SET_QUANT_SCALAR" in code, "SET_QUANT_VECTOR" in code) == (
        scales == "scalar",
        scales == "vector",
    )
    if popped not in ARRAYS:  # no array of NumPy has it
        return
    out = np.zeros((16, 32), ARRAYS[popped])
    assert np.array_equal(run(made, arch, kind, out), expected(mode, relu == "normal_relu"))
    placed = made.convert("l3")
    assert str(loads(str(placed))) == str(placed)
    again = run(placed, arch, kind, np.zeros_like(out))
    assert np.array_equal(again, out)


@pytest.mark.parametrize("arch", ["a3", "a5"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_entries_arrive_in_the_layout_asked_for(layout: str, arch: str) -> None:
    made = loads(text("no_convert", arch, layout=layout), "k.pto")
    if arch == "a3" and layout != "nz2nd":  # a pop takes rows out of global memory
        assert set(errors(made)) == {"pipe-epilogue"}
        return
    assert not errors(made)
    out = run(made, arch, "f32", np.zeros(512, "f4"))
    values = product("f32")[2].astype("f4")
    arranged = {
        "nz2nd": values,
        "nz2dn": values.T,
        "nz2nz": values.reshape(16, 4, 8).transpose(1, 0, 2),
    }
    assert np.array_equal(out, arranged[layout].reshape(-1))


def test_scales_belong_to_the_pipe_they_name() -> None:
    """Two pipes take turns: each push finds the scale of its own pipe."""
    epilogue = "#pto.acc_push_epilogue<layout = nz2nd, quant = qf322f16_pre_scalar, relu = no_relu>"
    keys = f"dir_mask = 1, slot_size = 1024, nosplit = true, acc_push_epilogue = {epilogue}"
    tile = "!pto.tile_buf<vec, 16x32xf16>"
    view = "!pto.partition_tensor_view<16x32xf16>"
    far, near, pops = "", "", ""
    for n in range(2):
        far += f"""
    %far{n} = pto.import_reserved_buffer {{name = "q{n}", peer_func = @vector}} -> i32
    pto.aic_initialize_pipe {{id = {n}, {keys}}} (c2v_consumer_buf = %far{n} : i32)"""
        near += f"""
    %near{n} = pto.reserve_buffer {{name = "q{n}", size = 8192, {BUFFER}}} -> i32
    pto.aiv_initialize_pipe {{id = {n}, {keys}}} (c2v_consumer_buf = %near{n} : i32)"""
    pushes = "".join(
        f"\n    pto.tpush_to_aiv(%acc : !acc) {{id = {n}, split = 0}}" for n in (0, 1, 0)
    )
    for at, n in enumerate((0, 1, 0)):
        pops += f"""
    %row{at} = arith.constant {16 * at} : index
    %p{at} = pto.partition_view %vz, offsets = [%row{at}, %c0], sizes = [%c16, %c32]
        : !pto.tensor_view<48x32xf16>
    %t{at} = pto.tpop_from_aic {{id = {n}, split = 0}} -> {tile}
    pto.tstore ins(%t{at} : {tile}) outs(%p{at} : {view})
    pto.tfree_from_aic {{id = {n}, split = 0}}"""
    given = program_text(
        "a5",
        out="f16",
        opened=far,
        push=f"""%half = arith.constant 0.5 : f32
    %two = arith.constant 2.0 : f32
    pto.set_quant_scalar(%half : f32) {{id = 0}}
    pto.set_quant_scalar(%two : f32) {{id = 1}}{pushes}""",
        reserved=near,
        pop=f"""%c48 = arith.constant 48 : index
    %vz = pto.make_tensor_view %z, shape = [%c48, %c32], strides = [%c32, %c1]
        : !pto.tensor_view<48x32xf16>{pops}""",
    )
    made = loads(given, "k.pto")
    assert not errors(made)
    a, b, values = product("f32")
    out = np.zeros((48, 32), "f2")
    made["both"][1](a, b, np.zeros(32, "f4"), np.zeros(8, "f4"), out)
    assert np.array_equal(out, np.concatenate([values * 0.5, values * 2.0, values * 0.5]))
    assert made.cpp().count("SET_QUANT_SCALAR<half>(") == 5  # two, and one before each push
