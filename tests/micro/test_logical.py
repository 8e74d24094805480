"""Logical vectors: lanes, masks, groups, rows, conversions, against formulas written here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptokit import PtoError
from ptokit.from_text import loads
from ptokit.isa.micro import MICRO
from ptokit.machine.faults import PoisonRead
from tests.micro.programs import run, scope

RNG = np.random.default_rng(5)
F, M = "!pto.vmi.vreg<{}xf32>", "!pto.vmi.mask<{}xpred>"
MORE = """%n = arith.constant 37 : index
%half = arith.constant 5.000000e-01 : f32
%c1 = arith.constant 1 : index
%c24 = arith.constant 24 : index"""


def floats(count: int) -> Any:
    return RNG.uniform(0.5, 3.0, count).astype(np.float32)


def load(name: str, lanes: int, kind: str = "f32") -> str:
    return (
        f"%v_{name} = pto.vmi.vload %{name}[%c0] : !pto.ptr<{kind}, ub> "
        f"-> !pto.vmi.vreg<{lanes}x{kind}>"
    )


def store(value: str, lanes: int, kind: str = "f32", more: str = "", mask: str = "") -> str:
    types = f", {M.format(lanes)}" if mask else ""
    return (
        f"pto.vmi.vstore %{value}, %out[%c0]{mask}{more} : !pto.vmi.vreg<{lanes}x{kind}>, "
        f"!pto.ptr<{kind}, ub>{types}"
    )


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vmul": np.multiply,
    "vdiv": np.divide,
    "vmax": np.maximum,
    "vmin": np.minimum,
}


@pytest.mark.parametrize("lanes", [8, 100, 512])
@pytest.mark.parametrize("mode", ["", "zero", "merge"])
@pytest.mark.parametrize("name", BINARY)
def test_lane_by_lane(name: str, mode: str, lanes: int) -> None:
    f, m = F.format(lanes), M.format(lanes)
    masked = f', %mask {{pmode = "{mode}"}} : {f}, {f}, {m}' if mode else f" : {f}, {f}"
    body = f"""{load("x", lanes)}
{load("y", lanes)}
%mask = pto.vmi.create_mask %n : index -> {m}
%r = pto.vmi.{name} %v_x, %v_y{masked} -> {f}
{store("r", lanes)}"""
    x, y, out = floats(lanes), floats(lanes), np.zeros(lanes, np.float32)
    run(scope(body, "x:f32 y:f32", "f32", MORE), x, y, out=out)
    wanted = BINARY[name](x, y)
    if mode:
        wanted = np.where(np.arange(lanes) < 37, wanted, x if mode == "merge" else np.float32(0))
    assert np.array_equal(out, wanted)


REDUCED = {"vcadd": np.sum, "vcmax": np.max, "vcmin": np.min}


@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize("name", REDUCED)
def test_groups_are_reduced_and_broadcast(name: str, groups: int) -> None:
    lanes = 128
    f, g, m = F.format(lanes), F.format(groups), M.format(lanes)
    order = ", reassoc" if name == "vcadd" else ""
    body = f"""{load("x", lanes)}
%mask = pto.vmi.create_group_mask %c24 {{num_groups = 2, group_size = 64}} : index -> {m}
%s = pto.vmi.{name} %v_x, %mask {{group = {groups}{order}}} : {f}, {m} -> {g}
%r = pto.vmi.vbrc %s {{group = {groups}}} : {g} -> {f}
{store("r", lanes)}"""
    x = np.round(floats(lanes) * 8)
    out = np.zeros(lanes, np.float32)
    run(scope(body, "x:f32", "f32", MORE), x, out=out)
    neutral = {"vcadd": 0.0, "vcmax": -np.inf, "vcmin": np.inf}[name]
    rows = np.where(np.arange(lanes) % 64 < 24, x, neutral).reshape(groups, -1)
    wanted = np.repeat(REDUCED[name](rows, axis=1), lanes // groups)
    assert np.array_equal(out, wanted.astype(np.float32))


def test_rows_a_stride_apart() -> None:
    body = f"""%v = pto.vmi.vload %x[%c1], %c24 {{group = 4}} : !pto.ptr<f32, ub> -> {F.format(32)}
{store("v", 32)}"""
    x, out = floats(128), np.zeros(32, np.float32)
    run(scope(body, "x:f32", "f32", MORE), x, out=out)
    assert np.array_equal(out.reshape(4, 8), [x[1 + 24 * n : 9 + 24 * n] for n in range(4)])
    body = f"{load('x', 32)}\n{store('v_x', 32, more=', %c24 {group = 4}')}"
    x, out = floats(32), np.zeros(96, np.float32)
    run(scope(body, "x:f32", "f32", MORE), x, out=out)
    wanted = np.zeros((4, 24), np.float32)
    wanted[:, :8] = x.reshape(4, 8)
    assert np.array_equal(out, wanted.reshape(-1))


def test_a_masked_store_keeps_the_rest() -> None:
    body = f"""{load("x", 64)}
%mask = pto.vmi.create_mask %n : index -> {M.format(64)}
{store("v_x", 64, mask=", %mask")}"""
    x, out = floats(64), np.full(64, -1, np.float32)
    run(scope(body, "x:f32", "f32", MORE), x, out=out)
    assert np.array_equal(out, np.where(np.arange(64) < 37, x, np.float32(-1)))


@pytest.mark.parametrize(
    ("kind", "np_kind"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("si32", np.int32)]
)
def test_conversions_keep_lanes_in_place(kind: str, np_kind: Any) -> None:
    lanes = 200
    to = f"!pto.vmi.vreg<{lanes}x{kind}>"
    body = f"""{load("x", lanes)}
%r = pto.vmi.vcvt %v_x {{rounding = "R", saturate = "SAT"}} : {F.format(lanes)} -> {to}
{store("r", lanes, kind)}"""
    x = floats(lanes) * 100
    out = np.zeros(lanes, np_kind)
    run(scope(body, "x:f32", kind, MORE), x, out=out)
    wanted = np.rint(x).astype(np.int32) if kind == "si32" else x.astype(np_kind)
    assert out.tobytes() == wanted.tobytes()


def test_gather_select_and_compare() -> None:
    lanes, i, m, f = 96, "!pto.vmi.vreg<96xi32>", M.format(96), F.format(96)
    body = f"""{load("x", lanes)}
{load("k", lanes, "i32")}
%half_v = pto.vmi.vbrc %half : f32 -> {f}
%all = pto.vmi.pset "PAT_ALL" : {m}
%g = pto.vmi.vgather %x, %v_k, %all : !pto.ptr<f32, ub>, {i}, {m} -> {f}
%less = pto.vmi.vcmp %g, %v_x, %all {{cmp = "lt"}} : {f}, {f}, {m} -> {m}
%r = pto.vmi.vsel %less, %g, %half_v : {m}, {f}, {f} -> {f}
{store("r", lanes)}"""
    x, k = floats(lanes), RNG.permutation(lanes).astype(np.int32)
    out = np.zeros(lanes, np.float32)
    run(scope(body, "x:f32 k:i32", "f32", MORE), x, k, out=out)
    assert np.array_equal(out, np.where(x[k] < x, x[k], np.float32(0.5)))


def test_undefined_lanes_are_reported_where_they_matter() -> None:
    body = """%far = arith.constant 4096 : index
%v = pto.vmi.vload %x[%far] : !pto.ptr<f32, ub> -> !pto.vmi.vreg<64xf32>
%r = pto.vmi.vadd %v, %v : !pto.vmi.vreg<64xf32>, !pto.vmi.vreg<64xf32> -> !pto.vmi.vreg<64xf32>
"""
    x, out = floats(64), np.zeros(64, np.float32)
    program = scope(body.replace("%x[%far]", "%out[%far]"), "x:f32", "f32", MORE)
    run(program, x, out=out)  # nobody looks at it
    program = scope(body.replace("%x[%far]", "%out[%far]") + store("r", 64), "x:f32", "f32", MORE)
    with pytest.raises(PoisonRead):
        run(program, x, out=out)


def test_texts_are_printed_as_they_are_read() -> None:
    text = scope(
        f"""{load("x", 64)}
%mask = pto.vmi.create_mask %n : index -> {M.format(64)}
{store("v_x", 64, mask=", %c24, %mask", more=' {pmode = "zero"}')}
{store("v_x", 64, more=", %c1 {group = 2}")}""",
        "x:f32",
        "f32",
        MORE,
    ).text
    assert loads(text).text == text
    assert '%c24, %mask {pmode = "zero"} : ' in text


def test_every_logical_operation_has_a_page_text() -> None:
    found = [record for record in MICRO.values() if record.is_logical]
    assert len(found) > 40
    assert all(record.doc.endswith(".") for record in found)


@pytest.mark.parametrize(
    "text", ["!pto.vmi.vreg<0xf32>", "!pto.vmi.vreg<4x4xf32>", "!pto.vmi.mask<8xf32>"]
)
def test_types_that_do_not_exist(text: str) -> None:
    with pytest.raises(PtoError):
        loads(f"func.func @f(%a: {text}) {{ return }}")
