"""The cube core below tiles: transfers, products, the fix pipe, beside plain NumPy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ptokit import PtoError
from ptokit.base.dtypes import DType, dtype
from ptokit.from_text import Program, loads

L1 = {"a": 0, "b": 65536, "bias": 131072, "out": 196608, "fp": 262144}


def flag(first: str, second: str) -> str:
    return (
        f"pto.set_flag[<PIPE_{first}>, <PIPE_{second}>, <EVENT_ID0>]\n"
        f"pto.wait_flag[<PIPE_{first}>, <PIPE_{second}>, <EVENT_ID0>]"
    )


def constants(body: str) -> str:
    """The constants that a body names: %k16 is 16."""
    numbers = sorted({int(n) for n in re.findall(r"%k(\d+)\b", body)})
    return "\n".join(f"%k{n} = arith.constant {n} : i64" for n in numbers)


def kernel(params: str, body: str, kind: str = "cube") -> Program:
    """A kernel for cores of one kind; %name is the pointer of "name:type" in global memory."""
    given = [one.split(":") for one in params.split()]
    listed = ", ".join(f"%{name}: !pto.ptr<{type_}>" for name, type_ in given)
    attrs = (
        f"{{pto.kernel, pto.kernel_kind = #pto.kernel_kind<{kind}>}}" if kind else "{pto.kernel}"
    )
    text = f"func.func @f({listed}) attributes {attrs} {{\n{constants(body)}\n{body}\nreturn\n}}"
    program = loads(text)
    assert str(loads(str(program))) == str(program)
    return program


def pointers(T: str, U: str, to: str = "f32") -> str:
    return "\n".join(
        f"%{name} = pto.castptr %k{at} : i64 -> !pto.ptr<{kind}, {space}>"
        for name, at, kind, space in [
            ("l1a", L1["a"], T, "l1"),
            ("l1b", L1["b"], T, "l1"),
            ("l0a", 0, T, "l0a"),
            ("l0b", 0, T, "l0b"),
            ("l0c", 0, U, "l0c"),
            ("l1o", L1["out"], to, "l1"),
        ]
    )


def burst(name: str, src: str, dst: str, length: int, source: str, target: str) -> str:
    """A transfer of one burst."""
    return (
        f"pto.{name} %{src}, %{dst}, %k{length} nburst(%k1, %k0, %k0) : "
        f"!pto.ptr<{source}>, !pto.ptr<{target}>, i64, i64, i64, i64"
    )


def frac(src: str, dst: str, T: str, n: int, d: int, order: str = "nd2nz") -> str:
    size = dtype(_np(T)).itemsize
    inner = (d if order == "nd2nz" else n) * size
    height = -(-n // 16) * 16
    return (
        f"pto.mte_gm_l1_frac %{src}, %{dst}, {order}, shape(%k{n}, %k{d}), src_layout(%k{inner}), "
        f"dst_group(%k1, %k1, %k{height}, %k0), ctrl(%k0, %k0) : !pto.ptr<{T}>, "
        f"!pto.ptr<{T}, l1>, {order}, shape i64, i64, src_layout(i64), dst_group i64, i64, i64, "
        "i64, ctrl i64, i64"
    )


def _np(T: str) -> DType:
    return dtype({"si8": "i8"}.get(T, T))


def product(
    T: str,
    U: str,
    m: int,
    n: int,
    k: int,
    mad: str = "mad",
    words: str = "",
    *,
    a_order: str = "nd2nz",
    b_is_turned: bool = False,
    wait: bool = True,
) -> str:
    """Both operands from global memory, in any order of their elements, and their product."""
    l1 = f"!pto.ptr<{T}, l1>"
    b = frac("b", "l1b", T, n, k) if b_is_turned else frac("b", "l1b", T, k, n)
    turned = "" if b_is_turned else " {transpose = true}"
    lines = [
        frac("a", "l1a", T, m, k, a_order),
        b,
        flag("MTE2", "MTE1") if wait else "",
        f"pto.mte_l1_l0a %l1a, %l0a, %k{m}, %k{k} : {l1}, !pto.ptr<{T}, l0a>, i64, i64",
        f"pto.mte_l1_l0b %l1b, %l0b, %k{k}, %k{n}, %k0, %k0{turned} : {l1}, !pto.ptr<{T}, l0b>, "
        "i64, i64, i64, i64",
        flag("MTE1", "M"),
        f"pto.{mad} %l0a, %l0b, %l0c, %k{m}, %k{n}, %k{k} {words}: !pto.ptr<{T}, l0a>, "
        f"!pto.ptr<{T}, l0b>, !pto.ptr<{U}, l0c>, i64, i64, i64",
        flag("M", "FIX"),
    ]
    return "\n".join(lines)


def to_gm(m: int, n: int, U: str, to: str, clauses: str = "nz2nd", types: str = "") -> str:
    height = -(-m // 16) * 16
    return (
        f"pto.mte_l0c_gm %l0c, %out, %k{m}, %k{n}, %k{height}, %k{n}, %k0, %k0, {clauses} : "
        f"!pto.ptr<{U}, l0c>, !pto.ptr<{to}>, i64, i64, i64, i64, i64, i64{types}"
    )


def matrices(T: str, m: int, n: int, k: int, seed: int = 0) -> tuple[Any, Any]:
    rng, kind = np.random.default_rng(seed), _np(T)
    made = [rng.integers(-8, 9, shape) / 4 for shape in ((m, k), (k, n))]
    if kind.is_integer:
        made = [rng.integers(-128, 128, shape) for shape in ((m, k), (k, n))]
    return tuple(np.ascontiguousarray(each.astype(kind.np)) for each in made)  # type: ignore[return-value]


def run(program: Program, *arrays: Any, **options: Any) -> None:
    program["f"][1](*arrays, target="a5", **options)


@pytest.mark.parametrize("b_is_turned", [False, True])
@pytest.mark.parametrize("order", ["nd2nz", "dn2nz"])
@pytest.mark.parametrize(
    ("T", "U"), [("f16", "f32"), ("bf16", "f32"), ("f32", "f32"), ("i8", "i32")]
)
@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (40, 24, 50), (3, 31, 65)])
def test_a_product(T: str, U: str, m: int, n: int, k: int, order: str, b_is_turned: bool) -> None:
    a, b = matrices(T, m, n, k)
    body = pointers(T, U, U) + "\n"
    body += product(T, U, m, n, k, a_order=order, b_is_turned=b_is_turned)
    program = kernel(f"a:{T} b:{T} out:{U}", body + "\n" + to_gm(m, n, U, U))
    out = np.zeros((m, n), _np(U).np)
    first = a if order == "nd2nz" else np.ascontiguousarray(a.T)
    second = np.ascontiguousarray(b.T) if b_is_turned else b
    run(program, first, second, out)
    wide = np.int64 if T == "i8" else np.float64
    assert np.array_equal(out, (a.astype(wide) @ b.astype(wide)).astype(out.dtype))


@pytest.mark.parametrize(
    ("set_by", "cleared_by", "is_ordered"),
    [
        ("check_and_set", "check_and_clear", True),
        ("", "", False),
        ("check_and_set", "check_only", False),  # the second product waits for ever
        ("check_only", "check_and_clear", False),  # and here the first store
    ],
)
def test_products_and_stores_shake_hands(set_by: str, cleared_by: str, is_ordered: bool) -> None:
    """Two products into one accumulator, each stored, without a flag between the two pipes."""
    a, b = matrices("f16", 16, 16, 16)
    words = f"unit_flag({set_by}) " * bool(set_by)
    clauses = f"unit_flag({cleared_by}), nz2nd" if cleared_by else "nz2nd"
    both = product("f16", "f32", 16, 16, 16, "mad", words).replace(flag("M", "FIX"), "")
    store = to_gm(16, 16, "f32", "f32", clauses)
    mad = next(line for line in both.splitlines() if line.startswith("pto.mad"))
    body = "\n".join([pointers("f16", "f32"), both, store, mad, store.replace("%out", "%more")])
    program = kernel("a:f16 b:f16 out:f32 more:f32", body)
    out, more = (np.zeros((16, 16), np.float32) for _ in range(2))
    if not is_ordered:
        with pytest.raises(PtoError) as told:
            run(program, a, b, out, more)
        assert told.value.codes[0] == ("E9" if set_by else "E6")
        assert not set_by or "check_and_clear" in str(told.value)
        return
    run(program, a, b, out, more)
    wanted = a.astype(np.float32) @ b.astype(np.float32)
    assert np.array_equal(out, wanted)
    assert np.array_equal(more, wanted)
    found = program["f"][1].explore(a, b, out, more, target="a5", schedules=20)
    assert not found.found, str(found)


def on_both(cube: str, vector: str, params: str) -> Program:
    """A kernel whose cube core does something before vector core 0 does something else."""
    body = f"""%ub = pto.castptr %k0 : i64 -> !pto.ptr<f16, ub>
%l1a = pto.castptr %k0 : i64 -> !pto.ptr<f16, l1>
pto.section.cube {{
{cube}
pto.set_intra_block <PIPE_MTE1>, 1
pto.set_intra_block <PIPE_MTE1>, 17
}}
pto.section.vector {{
%number = pto.get_subblock_idx
%is0 = arith.cmpi eq, %number, %k0 : i64
pto.wait_intra_block <PIPE_MTE3>, 1
scf.if %is0 {{
{vector}
}}
}}"""
    return kernel(params, body, "")


STORE = (
    "pto.mte_ub_gm %ub, %out, %k{0} nburst(%k1, %k0, %k0) : !pto.ptr<f16, ub>, !pto.ptr<f16>, "
    "i64, i64, i64, i64"
)
TO_UB = {
    "mte_l1_ub": "pto.mte_l1_ub %l1a, %ub, %k7 nburst(%k2, %k1, %k0) : !pto.ptr<f16, l1>, "
    "!pto.ptr<f16, ub>, i64, i64, i64, i64",
    "copy_cbuf_to_ubuf": "pto.copy_cbuf_to_ubuf %l1a, %ub, %k0, %k2, %k7, %k1, %k0 : "
    "!pto.ptr<f16, l1>, !pto.ptr<f16, ub>, i64, i64, i64, i64, i64",
}


@pytest.mark.parametrize("copy", TO_UB)
def test_groups_of_a_boxed_load(copy: str) -> None:
    """Two matrices of 3 x 20, 160 bytes apart, with columns of boxes of 4 rows, 8 blocks apart."""
    load = """pto.mte_gm_l1_frac %a, %l1a, nd2nz, shape(%k3, %k20), src_layout(%k40, %k160),
  dst_group(%k2, %k1, %k4, %k8), ctrl(%k0, %k0) : !pto.ptr<f16>, !pto.ptr<f16, l1>, nd2nz,
  shape i64, i64, src_layout(i64, i64), dst_group i64, i64, i64, i64, ctrl i64, i64
"""
    fill = """pto.mte_gm_l1 %zero, %l1a, %k512 nburst(%k1, %k0, %k0) : !pto.ptr<f16>,
  !pto.ptr<f16, l1>, i64, i64, i64, i64
pto.barrier <PIPE_MTE2>
"""
    program = on_both(
        fill + load + flag("MTE2", "MTE1") + "\n" + TO_UB[copy],
        STORE.format(448),
        "a:f16 zero:f16 out:f16",
    )
    a, out = np.arange(160, dtype=np.float16), np.zeros((2, 7, 16), np.float16)
    run(program, a, np.zeros(256, np.float16), out)
    wanted = np.zeros_like(out)
    for group in range(2):
        matrix = a[80 * group :][:60].reshape(3, 20)
        wanted[group, :3] = matrix[:, :16]
        wanted[group, 4:7, :4] = matrix[:, 16:]
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize("name", ["mte_ub_l1", "copy_ubuf_to_cbuf"])
def test_a_vector_core_writes_to_l1(name: str) -> None:
    sizes = "%k2 nburst(%k3, %k0, %k1)" if name == "mte_ub_l1" else "%k0, %k3, %k2, %k0, %k1"
    numbers = 4 if name == "mte_ub_l1" else 5
    back = TO_UB["copy_cbuf_to_ubuf"].replace("%k0, %k2, %k7, %k1, %k0", "%k0, %k3, %k2, %k1, %k0")
    body = f"""%ub0 = pto.castptr %k0 : i64 -> !pto.ptr<f16, ub>
%ub = pto.castptr %k4096 : i64 -> !pto.ptr<f16, ub>
%l1a = pto.castptr %k0 : i64 -> !pto.ptr<f16, l1>
pto.section.vector {{
%number = pto.get_subblock_idx
%is0 = arith.cmpi eq, %number, %k0 : i64
scf.if %is0 {{
pto.mte_gm_ub %a, %ub0, %k0, %k192 nburst(%k1, %k0, %k0) : !pto.ptr<f16>, !pto.ptr<f16, ub>, i64,
  i64, i64, i64, i64
{flag("MTE2", "MTE3")}
pto.{name} %ub0, %l1a, {sizes} : !pto.ptr<f16, ub>, !pto.ptr<f16, l1>{", i64" * numbers}
pto.set_intra_block <PIPE_MTE3>, 0
pto.wait_intra_block <PIPE_MTE3>, 1
{STORE.format(192)}
}}
}}
pto.section.cube {{
pto.wait_intra_block <PIPE_MTE1>, 0
{back}
pto.set_intra_block <PIPE_MTE1>, 1
}}"""
    a, out = np.arange(96, dtype=np.float16), np.zeros(96, np.float16)
    run(kernel("a:f16 out:f16", body, ""), a, out)
    assert np.array_equal(out, a)


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 32), (5, 20, 18)])
def test_sums_and_bias(m: int, n: int, k: int) -> None:
    a, b = matrices("f16", m, n, k)
    bias = (np.arange(up(n, 16)) / 8).astype(np.float16)
    body = pointers("f16", "f32") + "\n"
    body += f"""%l1t = pto.castptr %k{L1["bias"]} : i64 -> !pto.ptr<f16, l1>
%bt = pto.castptr %k0 : i64 -> !pto.ptr<f32, bt>
{burst("mte_gm_l1", "t", "l1t", bias.nbytes, "f16", "f16, l1")}
{flag("MTE2", "MTE1")}
{burst("mte_l1_bt", "l1t", "bt", bias.nbytes // 32, "f16, l1", "f32, bt")}
"""
    with_bias = product("f16", "f32", m, n, k).replace(
        "pto.mad %l0a, %l0b, %l0c, ", "pto.mad_bias %l0a, %l0b, %l0c, %bt, "
    )
    with_bias = with_bias.replace(
        "!pto.ptr<f32, l0c>, i64", "!pto.ptr<f32, l0c>, !pto.ptr<f32, bt>, i64"
    )
    sizes = "!pto.ptr<f16, l0a>, !pto.ptr<f16, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64"
    more = f"pto.mad_acc %l0a, %l0b, %l0c, %k{m}, %k{n}, %k{k} "
    more += f"unit_flag(check_only) disable_gemv n_dir : {sizes}"
    before, _, after = with_bias.rpartition("pto.set_flag[<PIPE_M>")
    body += f"{before}{more}\npto.set_flag[<PIPE_M>{after}\n{to_gm(m, n, 'f32', 'f32')}"
    out = np.zeros((m, n), np.float32)
    run(kernel("a:f16 b:f16 t:f16 out:f32", body), a, b, bias, out)
    once = a.astype(np.float64) @ b.astype(np.float64)
    assert np.array_equal(out, (2 * once + bias[:n].astype(np.float64)).astype(np.float32))


def up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


@pytest.mark.parametrize("mode", ["round_even", "round_away"])
def test_tf32_keeps_ten_bits(mode: str) -> None:
    steps = np.array([1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-11 + 2**-20, -1 - 2**-11], np.float32)
    a = np.tile(steps, 4)[:, None] * np.eye(16, dtype=np.float32)
    b = np.eye(16, dtype=np.float32)
    body = pointers("f32", "f32") + "\n"
    body += product("f32", "f32", 16, 16, 16, "mad", f"tf32_mode({mode}) ") + "\n"
    out = np.zeros((16, 16), np.float32)
    run(kernel("a:f32 b:f32 out:f32", body + to_gm(16, 16, "f32", "f32")), a, b, out)
    even = [1.0, 1 + 2**-9, 1 + 2**-10, -1.0]
    away = [1 + 2**-10, 1 + 2**-9, 1 + 2**-10, -1 - 2**-10]
    assert np.diag(out)[:4].tolist() == (even if mode == "round_even" else away)


@pytest.mark.parametrize("end", ["", "_acc"])
def test_blocks_of_32_have_scales(end: str) -> None:
    """Rows of 128 elements are four blocks; two times two of them are pairs in memory."""
    m, n, k = 16, 32, 128
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-8, 9, shape) / 4 for shape in ((m, k), (n, k)))
    kind = dtype("f8e4m3").np
    powers = [rng.integers(125, 130, (rows, k // 32)).astype(np.uint8) for rows in (m, n)]

    def in_pairs(codes: Any) -> Any:
        found = np.zeros(codes.size, np.uint8)
        for row, group in np.ndindex(*codes.shape):
            found[(group // 2 * codes.shape[0] + row) * 2 + group % 2] = codes[row, group]
        return found

    T = "f8E4M3FN"
    load = [
        burst("mte_gm_l1", f"s{x}", f"l1s{x}", powers[i].size, T, f"{T}, l1")
        for i, x in enumerate("ab")
    ]
    body = f"""{pointers(T, "f32")}
%l1sa = pto.castptr %k{L1["bias"]} : i64 -> !pto.ptr<{T}, l1>
%l1sb = pto.castptr %k{L1["fp"]} : i64 -> !pto.ptr<{T}, l1>
{load[0]}
{load[1]}
{flag("MTE2", "MTE1")}
pto.mte_l1_l0a_mx %l1sa, %l0a, %k{m}, %k{k}, %k0, %k0 : !pto.ptr<{T}, l1>, !pto.ptr<{T}, l0a>, i64,
  i64, i64, i64
pto.mte_l1_l0b_mx %l1sb, %l0b, %k{k}, %k{n}, %k0, %k0 : !pto.ptr<{T}, l1>, !pto.ptr<{T}, l0b>, i64,
  i64, i64, i64
"""
    once = product(T, "f32", m, n, k, "mad_mx", "sat ", b_is_turned=True)
    line = next(each for each in once.splitlines() if each.startswith("pto.mad_mx"))
    if end:
        once = once.replace(line, f"{line}\n{line.replace('mad_mx', 'mad_mx_acc')}")
    body += once + "\n" + to_gm(m, n, "f32", "f32")
    out = np.zeros((m, n), np.float32)
    program = kernel(f"a:{T} b:{T} sa:{T} sb:{T} out:f32", body)
    given = [a.astype(kind), b.astype(kind), *(in_pairs(each).view(kind) for each in powers)]
    run(program, *given, out)
    scaled = [
        x * np.repeat(2.0 ** (each.astype(int) - 127), 32, axis=1)
        for x, each in zip((a, b), powers, strict=True)
    ]
    assert np.array_equal(out, (scaled[0] @ scaled[1].T * (2 if end else 1)).astype(np.float32))


@pytest.mark.parametrize("with_tiles", [False, True])
def test_pairs_of_4_bit_floats(with_tiles: bool) -> None:
    """A line of a box holds 64 of them. The cube puts results where it does for all types, whatever
    boxes the tile of the accumulator says."""
    m, n, k = 32, 64, 128
    T, rng = "!pto.f4E2M1x2", np.random.default_rng(8)
    codes = [rng.integers(0, 16, shape).astype(np.uint8) for shape in ((m, k), (k, n))]
    steps = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    numbers = [np.where(each > 7, -1, 1) * steps[each % 8] for each in codes]
    in_boxes = [
        (each[:, ::2] | each[:, 1::2] << 4).reshape(len(each), -1, 32).transpose(1, 0, 2).ravel()
        for each in codes
    ]
    scales = [np.full(rows * k // 32, 128, np.uint8) for rows in (m, n)]  # twice as much, each
    l1 = f"!pto.ptr<{T}, l1>"
    loads_ = [
        burst("mte_gm_l1", name, f"l1{name}", each.size, T, f"{T}, l1")
        for name, each in zip(("a", "b", "sa", "sb"), (*in_boxes, *scales), strict=True)
    ]
    moves = [
        f"pto.mte_l1_l0{to} %l1{name}, %l0{to[0]}, %k{rows}, %k{cols}, %k0, %k0{turned} : {l1}, "
        f"!pto.ptr<{T}, l0{to[0]}>, i64, i64, i64, i64"
        for to, name, rows, cols, turned in [
            ("a", "a", m, k, ""),
            ("b", "b", k, n, " {transpose = true}"),
            ("a_mx", "sa", m, k, ""),
            ("b_mx", "sb", k, n, ""),
        ]
    ]
    boxes, columns = "blayout=col_major, slayout=row_major", "blayout=row_major, slayout=col_major"
    tiles = {
        "ta": f"left, {m}x{k}x{T}, {boxes}",
        "tsa": f"scaling, {m}x{k // 32}xf16, blayout=row_major, slayout=row_major, fractal=32",
        "tb": f"right, {k}x{n}x{T}, {columns}",
        "tsb": f"scaling, {k // 32}x{n}xf16, blayout=col_major, slayout=col_major, fractal=32",
        "tc": f"acc, {m}x{n}xf32, {boxes}, fractal=512",
    }
    types = [f"!pto.tile_buf<{each}>" for each in tiles.values()]
    made = [
        f"%{name} = pto.alloc_tile addr = %k0 : {type_}"
        for name, type_ in zip(tiles, types, strict=True)
    ]
    multiply = (
        f"pto.tmatmul.mx ins(%ta, %tsa, %tb, %tsb : {', '.join(types[:4])}) outs(%tc : {types[4]})"
        if with_tiles
        else f"pto.mad_mx %l0a, %l0b, %l0c, %k{m}, %k{n}, %k{k} : !pto.ptr<{T}, l0a>, "
        f"!pto.ptr<{T}, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64"
    )
    places = (
        f"%l1s{x} = pto.castptr %k{L1[at]} : i64 -> {l1}" for x, at in (("a", "bias"), ("b", "fp"))
    )
    body = [pointers(T, "f32"), *places, *(made if with_tiles else ()), *loads_,
            flag("MTE2", "MTE1"), *moves, flag("MTE1", "M"), multiply, flag("M", "FIX"),
            to_gm(m, n, "f32", "f32")]  # fmt: skip
    out = np.zeros((m, n), np.float32)
    program = kernel(f"a:{T} b:{T} sa:{T} sb:{T} out:f32", "\n".join(body))
    run(program, *in_boxes, *scales, out, rules="release")
    assert np.array_equal(out, (4 * numbers[0] @ numbers[1]).astype(np.float32))


@pytest.mark.parametrize("m", [1, 16])
def test_a_product_of_tiles_lies_in_boxes_of_16_rows(m: int) -> None:
    """Of an accumulator with one row as well: whoever reads it below tiles finds it there."""
    n, k = 64, 256
    a, b = matrices("f16", m, n, k)
    name, out = "tgemv" if m == 1 else "tmatmul", np.zeros((m, n), np.float32)
    boxes = "blayout=col_major, slayout=row_major"
    types = [
        f"!pto.tile_buf<left, {m}x{k}xf16, {boxes}>",
        f"!pto.tile_buf<right, {k}x{n}xf16, blayout=row_major, slayout=col_major>",
        f"!pto.tile_buf<acc, {m}x{n}xf32, {boxes}, fractal=1024>",
    ]
    text = product("f16", "f32", m, n, k)
    if m == 1:
        row = burst("mte_gm_l1", "a", "l1a", 2 * k, "f16", "f16, l1")
        text = text.replace(frac("a", "l1a", "f16", 1, k), row)
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("pto.mad "))
    lines[at] = f"pto.{name} ins(%ta, %tb : {types[0]}, {types[1]}) outs(%tc : {types[2]})"
    made = [
        f"%{tile} = pto.alloc_tile addr = %k0 : {each}"
        for tile, each in zip(("ta", "tb", "tc"), types, strict=True)
    ]
    body = "\n".join([pointers("f16", "f32"), *made, *lines, to_gm(m, n, "f32", "f32")])
    run(kernel("a:f16 b:f16 out:f32", body), a, b, out, rules="release")
    assert np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("name", ["load_cbuf_to_ca", "load_cbuf_to_ca_s4", "mte_l1_l0a"])
def test_an_operand_in_boxes(name: str) -> None:
    """Of a 32 x 48 matrix the lower half, columns 16 to 47: one box of each of two columns."""
    rng = np.random.default_rng(6)
    a = (rng.integers(-8, 9, (32, 48)) / 4).astype(np.float16)
    b = (rng.integers(-8, 9, (32, 16)) / 4).astype(np.float16)
    text = product("f16", "f32", 16, 16, 32)
    whole = frac("a", "l1a", "f16", 32, 48)
    text = text.replace(frac("a", "l1a", "f16", 16, 32), whole)
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("pto.mte_l1_l0a"))
    lines[at] = (
        f"pto.{name} %l1a, %l0a, %k1, %k1, %k1, %k2, %k2, %k1 : "
        "!pto.ptr<f16, l1>, !pto.ptr<f16, l0a>, i64, i64, i64, i64, i64, i64"
    )
    if name.endswith("s4"):  # the same bytes, as pairs
        l1, l0a = "!pto.ptr<!pto.f4E2M1x2, l1>", "!pto.ptr<!pto.f4E2M1x2, l0a>"
        lines[at] = (
            f"%p = pto.castptr %l1a : !pto.ptr<f16, l1> -> {l1}\n"
            f"%q = pto.castptr %l0a : !pto.ptr<f16, l0a> -> {l0a}\n"
            f"pto.{name} %p, %q, %k1, %k1, %k1, %k2, %k2, %k1, %k0 : "
            f"{l1}, {l0a}, i64, i64, i64, i64, i64, i64, i64"
        )
    body = pointers("f16", "f32") + "\n" + "\n".join(lines) + "\n" + to_gm(16, 16, "f32", "f32")
    out = np.zeros((16, 16), np.float32)
    run(kernel("a:f16 b:f16 out:f32", body), a, b, out)
    assert np.array_equal(out, a[16:, 16:].astype(np.float32) @ b.astype(np.float32))


def test_a_single_row_lies_as_it_is() -> None:
    """Without boxes: k elements side by side."""
    rng = np.random.default_rng(7)
    a = (rng.integers(-8, 9, 64) / 4).astype(np.float16)
    b = (rng.integers(-8, 9, (64, 16)) / 4).astype(np.float16)
    text = product("f16", "f32", 1, 16, 64)
    row = burst("mte_gm_l1", "a", "l1a", 128, "f16", "f16, l1")
    text = text.replace(frac("a", "l1a", "f16", 1, 64), row)
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("pto.mte_l1_l0a"))
    lines[at] = (
        "pto.load_cbuf_to_ca %l1a, %l0a, %k0, %k0, %k1, %k1, %k1, %k1 : !pto.ptr<f16, l1>, "
        "!pto.ptr<f16, l0a>, i64, i64, i64, i64, i64, i64"
    )
    body = pointers("f16", "f32") + "\n" + "\n".join(lines) + "\n" + to_gm(1, 16, "f32", "f32")
    out = np.zeros((1, 16), np.float32)
    run(kernel("a:f16 b:f16 out:f32", body), a, b, out)
    assert np.array_equal(out[0], a.astype(np.float32) @ b.astype(np.float32))


# ---- the fix pipe --------------------------------------------------------------------------------

M, N, K = 20, 32, 16
TOP = "pre_quant(%scale, mode = qf322f16_pre_scalar)"


def drained(clauses: str, types: str, to: str = "f16", more: str = "", seed: int = 1) -> Any:
    a, b = matrices("f16", M, N, K, seed)
    body = pointers("f16", "f32") + "\n" + more + "\n" + product("f16", "f32", M, N, K) + "\n"
    out = np.zeros((M, N) if "nz2nd" in clauses else (N, M), _np(to).np)
    end = to_gm(M, N, "f32", to, clauses, types)
    if "nz2dn" in clauses:
        end = end.replace(f"%k32, %k{N}, %k0", f"%k32, %k{M}, %k0")
    run(kernel(f"a:f16 b:f16 out:{to}", body + end), a, b, out)
    return out, a.astype(np.float32) @ b.astype(np.float32)


SCALE = """%scale = arith.constant 0.5 : f32
%low = arith.constant 0.25 : f32
%top = arith.constant 3.0 : f32"""


@pytest.mark.parametrize(
    ("relu", "types", "formula"),
    [
        ("", "", lambda x: x),
        ("pre_relu(mode = normal_relu), ", "", lambda x: np.maximum(x, 0)),
        ("pre_relu(%low, mode = scalar_relu), ", ", f32", lambda x: np.where(x < 0, x / 4, x)),
        ("pre_relu(mode = no_relu, clip = %top), ", ", f32", lambda x: np.minimum(x, 3)),
        (
            "pre_relu(%low, mode = scalar_relu, clip = %top), ",
            ", f32, f32",
            lambda x: np.minimum(np.where(x < 0, x / 4, x), 3),
        ),
    ],
)
@pytest.mark.parametrize("layout", ["nz2nd", "nz2dn(%k1)"])
def test_scales_and_activations(relu: str, types: str, formula: Any, layout: str) -> None:
    walk = ", i64" if "(" in layout else ""
    out, x = drained(f"{TOP}, {relu}{layout}", f", f32{types}{walk}", more=SCALE)
    wanted = formula(x * np.float32(0.5)).astype(np.float16)
    assert np.array_equal(out, wanted if layout == "nz2nd" else wanted.T)


FACTORS = 65536 + 128  # in the second table of the fix pipe


@pytest.mark.parametrize(
    ("place", "said"), [(1024, "the factors, which lie in the second table"), (2 << 16, "FBuffer")]
)
def test_factors_lie_in_a_table_of_their_own(place: int, said: str) -> None:
    with pytest.raises(PtoError, match=said):
        scaled_by_columns(False, place)


@pytest.mark.parametrize("is_raw", [False, True])
def test_a_scale_and_a_factor_for_each_column(is_raw: bool) -> None:
    scaled_by_columns(is_raw, FACTORS)


def scaled_by_columns(is_raw: bool, place: int) -> None:
    scales = (np.arange(1, N + 1) / 8).astype(np.float32)
    factors = (np.arange(N) / 16).astype(np.float32)
    a, b = matrices("f16", M, N, K, 2)
    words = np.zeros(N, np.uint64)
    words[:] = scales.view(np.uint32)
    load = "nburst(%k1, %k0, %k0) : !pto.ptr<{0}>, !pto.ptr<{0}, l1>, i64, i64, i64, i64"
    more = f"""%l1w = pto.castptr %k{L1["fp"]} : i64 -> !pto.ptr<ui64, l1>
%l1f = pto.castptr %k{L1["bias"]} : i64 -> !pto.ptr<f32, l1>
%fbw = pto.castptr %k0 : i64 -> !pto.ptr<f32, fb>
%fbf = pto.castptr %k{place} : i64 -> !pto.ptr<f32, fb>
pto.mte_gm_l1 %w, %l1w, %k{words.nbytes} {load.format("ui64")}
pto.mte_gm_l1 %t, %l1f, %k{factors.nbytes} {load.format("f32")}
{flag("MTE2", "FIX")}
{burst("mte_l1_fb", "l1w", "fbw", words.nbytes // 64, "ui64, l1", "f32, fb")}
{burst("mte_l1_fb", "l1f", "fbf", factors.nbytes // 64, "f32, l1", "f32, fb")}
"""
    if is_raw:
        size = f"%k{words.nbytes // 64}"
        old = burst("mte_l1_fb", "l1w", "fbw", words.nbytes // 64, "ui64, l1", "f32, fb")
        new = f"pto.copy_cbuf_to_fbuf %l1w, %fbw, %k1, {size}, %k0, %k0 : !pto.ptr<ui64, l1>, "
        assert old in more
        more = more.replace(old, new + "!pto.ptr<f32, fb>, i64, i64, i64, i64")
    clauses = "pre_quant(%fbw, mode = qf322f16_pre_vec), pre_relu(%fbf, mode = vector_relu), nz2nd"
    types = ", !pto.ptr<f32, fb>, !pto.ptr<f32, fb>"
    body = pointers("f16", "f32") + "\n" + more + product("f16", "f32", M, N, K) + "\n"
    out = np.zeros((M, N), np.float16)
    program = kernel(
        "a:f16 b:f16 w:ui64 t:f32 out:f16", body + to_gm(M, N, "f32", "f16", clauses, types)
    )
    run(program, a, b, words, factors, out)
    x = (a.astype(np.float32) @ b.astype(np.float32)) * scales
    assert np.array_equal(out, np.where(x < 0, x * factors, x).astype(np.float16))


@pytest.mark.parametrize(("word", "wanted"), [("sat", 65504.0), ("nosat", np.inf)])
def test_what_is_out_of_range(word: str, wanted: float) -> None:
    scale = SCALE.replace("0.5", "1000000.0")
    out, x = drained(f"{TOP}, nz2nd, {word}", ", f32", more=scale)
    is_big = np.abs(x) > 0.1
    assert np.array_equal(out[is_big], np.sign(x[is_big]).astype(np.float16) * np.float16(wanted))


@pytest.mark.parametrize(("word", "is_kept"), [("sat", False), ("sat(preserve_nan)", True)])
def test_what_becomes_of_nan(word: str, is_kept: bool) -> None:
    scale = SCALE.replace("0.5", "0x7FC00000")
    out, _ = drained(f"{TOP}, nz2nd, {word}", ", f32", more=scale)
    assert np.isnan(out).all() if is_kept else not out.any()


def test_the_control_register_keeps_infinities() -> None:
    more = (
        SCALE.replace("0.5", "1000000.0")
        + """
%before = pto.get_ctrl : i64
%after = pto.sbitset1 %before, %k48 : i64, i64 -> i64
pto.set_ctrl %after : i64"""
    )
    out, x = drained(f"{TOP}, nz2nd", ", f32", more=more)
    assert np.isinf(out[np.abs(x) > 0.1]).all()


@pytest.mark.parametrize(
    ("op", "formula"), [("add", np.add), ("max", np.maximum), ("min", np.minimum)]
)
def test_atomic_stores(op: str, formula: Any) -> None:
    a, b = matrices("f16", M, N, K, 3)
    body = pointers("f16", "f32") + "\n" + product("f16", "f32", M, N, K) + "\n"
    body += to_gm(M, N, "f32", "f32", f"nz2nd, atomic(type = f32, op = {op})")
    old = np.linspace(-4, 4, M * N, dtype=np.float32).reshape(M, N)
    out = old.copy()
    run(kernel("a:f16 b:f16 out:f32", body), a, b, out)
    assert np.array_equal(out, formula(old, a.astype(np.float32) @ b.astype(np.float32)))


@pytest.mark.parametrize(("op", "formula"), [("add", np.add), ("max", np.maximum), ("none", None)])
def test_the_register_makes_stores_atomic(op: str, formula: Any) -> None:
    body = f"""%ub = pto.castptr %k0 : i64 -> !pto.ptr<i32, ub>
pto.mte_gm_ub %x, %ub, %k0, %k256 nburst(%k1, %k0, %k0) : !pto.ptr<i32>,
  !pto.ptr<i32, ub>, i64, i64, i64, i64, i64
{flag("MTE2", "MTE3")}
pto.set_atomic_s32
pto.set_atomic_{op}
{burst("mte_ub_gm", "ub", "out", 256, "i32, ub", "i32")}"""
    x, old = np.arange(-32, 32, dtype=np.int32), np.full(64, 5, np.int32)
    out = old.copy()
    run(kernel("x:i32 out:i32", body, "vector"), x, out)
    assert np.array_equal(out, x if formula is None else formula(old, x))


@pytest.mark.parametrize(("first", "second"), [("max", "max"), ("add", "max"), ("min", "none")])
def test_atomic_stores_of_blocks_race_unless_they_are_alike(first: str, second: str) -> None:
    body = f"""%ub = pto.castptr %k0 : i64 -> !pto.ptr<i32, ub>
pto.mte_gm_ub %x, %ub, %k0, %k256 nburst(%k1, %k0, %k0) : !pto.ptr<i32>,
  !pto.ptr<i32, ub>, i64, i64, i64, i64, i64
{flag("MTE2", "MTE3")}
pto.set_atomic_s32
%block = pto.get_block_idx
%is_first = arith.cmpi eq, %block, %k0 : i64
scf.if %is_first {{
pto.set_atomic_{first}
}} else {{
pto.set_atomic_{second}
}}
{burst("mte_ub_gm", "ub", "out", 256, "i32, ub", "i32")}"""
    program = kernel("x:i32 out:i32", body, "vector")
    arrays = np.ones(64, np.int32), np.zeros(64, np.int32)
    if first == second:
        assert program["f"][2](*arrays, target="a5").findings == ()
        return
    with pytest.raises(PtoError) as error:
        program["f"][2](*arrays, target="a5")
    assert error.value.codes == ("E7",)


# ---- both kinds of cores -------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["split_m", "split_n", "%k0", "%k1"])
def test_an_accumulator_goes_to_vector_cores(way: str) -> None:
    a, b = matrices("f16", M, N, K, 4)
    core = "" if way.startswith("split") else ", i64"
    height = up(M, 16)
    rows, cols = (M // 2 if way == "split_m" else M), (N // 2 if way == "split_n" else N)
    cube = (
        product("f16", "f32", M, N, K)
        + f"""
pto.mte_l0c_ub %l0c, %ub, %k{M}, %k{N}, %k{height}, %k{cols}, dst_mode({way}), nz2nd
  : !pto.ptr<f32, l0c>, !pto.ptr<f32, ub>, i64, i64, i64, i64{core}
pto.set_intra_block <PIPE_FIX>, 1
pto.set_intra_block <PIPE_FIX>, 17"""
    )
    nbytes = rows * cols * 4
    stores = [burst("mte_ub_gm", "ub", to, nbytes, "f32, ub", "f32") for to in ("o0", "o1")]
    first = "" if way == "%k1" else stores[0]
    second = "" if way == "%k0" else stores[1]
    body = (
        pointers("f16", "f32")
        + f"""
%ub = pto.castptr %k0 : i64 -> !pto.ptr<f32, ub>
pto.section.cube {{
{cube}
}}
pto.section.vector {{
%number = pto.get_subblock_idx
%is0 = arith.cmpi eq, %number, %k0 : i64
pto.wait_intra_block <PIPE_MTE3>, 1
scf.if %is0 {{
{first}
}} else {{
{second}
}}
}}"""
    )
    o0, o1 = np.zeros((rows, cols), np.float32), np.zeros((rows, cols), np.float32)
    run(kernel("a:f16 b:f16 o0:f32 o1:f32", body, ""), a, b, o0, o1)
    x = a.astype(np.float32) @ b.astype(np.float32)
    zero = np.zeros_like(x)
    wanted = {
        "split_m": (x[: M // 2], x[M // 2 :]),
        "split_n": (x[:, : N // 2], x[:, N // 2 :]),
        "%k0": (x, zero),
        "%k1": (zero, x),
    }[way]
    assert np.array_equal(o0, wanted[0])
    assert np.array_equal(o1, wanted[1])


# ---- what is wrong -------------------------------------------------------------------------------


def codes(program: Program, *arrays: Any) -> Sequence[str]:
    with pytest.raises(PtoError) as caught:
        run(program, *arrays)
    return caught.value.codes


def test_a_missing_flag_is_a_race() -> None:
    a, b = matrices("f16", 16, 16, 16)
    body = pointers("f16", "f32") + "\n" + product("f16", "f32", 16, 16, 16, wait=False) + "\n"
    program = kernel("a:f16 b:f16 out:f32", body + to_gm(16, 16, "f32", "f32"))
    assert "E6" in codes(program, a, b, np.zeros((16, 16), np.float32))


def test_undefined_elements_are_not_multiplied() -> None:
    a, b = matrices("f16", 16, 16, 16)
    text = product("f16", "f32", 16, 16, 16).replace("%k16, %k16, %k16 :", "%k16, %k16, %k32 :")
    body = pointers("f16", "f32") + "\n" + text + "\n" + to_gm(16, 16, "f32", "f32")
    program = kernel("a:f16 b:f16 out:f32", body)
    assert "poison-read" in codes(program, a, b, np.zeros((16, 16), np.float32))


def test_accesses_stay_in_their_memories() -> None:
    body = f"""%far = pto.castptr %k524256 : i64 -> !pto.ptr<f16, l1>
{burst("mte_gm_l1", "a", "far", 64, "f16", "f16, l1")}"""
    assert "memory-bounds" in codes(kernel("a:f16", body), np.zeros(64, np.float16))


def test_a_mode_that_makes_another_type_is_refused() -> None:
    with pytest.raises(PtoError, match="has the type that the mode names"):
        drained(f"{TOP}, nz2nd", ", f32", to="bf16", more=SCALE)


def test_a_word_that_does_not_exist() -> None:
    with pytest.raises(PtoError, match="nd2nz, dn2nz"):
        kernel("a:f16", pointers("f16", "f32") + "\n" + frac("a", "l1a", "f16", 16, 16, "nz2nd"))


# ---- past the data cache -------------------------------------------------------------------------


def test_elements_of_global_memory_past_the_cache() -> None:
    body = """%one = arith.constant 1 : index
%two = arith.constant 2 : index
%value = pto.ld_dev %x[%two] : !pto.ptr<i32> -> i32
%sum = arith.addi %value, %value : i32
pto.st_dev %sum, %out[%one] : !pto.ptr<i32>, i32"""
    x, out = np.arange(5, 9, dtype=np.int32), np.zeros(4, np.int32)
    run(kernel("x:i32 out:i32", body, "vector"), x, out)
    assert out.tolist() == [0, 14, 0, 0]
    far = kernel("x:i32 out:i32", body.replace("constant 1 :", "constant 4 :"), "vector")
    assert "memory-bounds" in codes(far, x, out)
