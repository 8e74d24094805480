"""Products of matrices, on the operands that staging.py brings."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.convert import convert, to_float64, unpack4
from ptokit.base.dtypes import DType
from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.isa import cube
from ptokit.isa.effects import Pipe
from ptokit.isa.freedom import unspecified
from ptokit.isa.micro.spec import Law, Word, micro
from ptokit.isa.micro.staging import ROWS, boxed, refused, scale_places, up

_WORDS = (
    Word(
        "unit_flag",
        ("check_only", "check_and_set"),
        "",
        "the hand-shake with the fix pipe: it waits until the flag is clear, and may set it",
    ),
    Word("gemv", ("disable_gemv",), "", "a single row of the left operand is boxed as well"),
    Word("sat", ("sat", "nosat"), "", "whether infinities become the largest numbers, and NaN 0"),
    Word("tf32", ("round_even", "round_away"), "", "f32 operands lose mantissa bits first"),
    Word("direction", ("n_dir",), "", "the order of the work"),
)
_LAWS = (
    Law(
        "infinities are of floats",
        lambda a, b, dst, sat: not sat or (a.is_float and b.is_float and dst.is_float),
        "leave sat and nosat out",
    ),
    Law(
        "tf32 is made of f32",
        lambda a, b, dst, tf32: not tf32 or {a.spelled, b.spelled, dst.spelled} == {"f32"},
        "leave tf32_mode out",
    ),
    Law(
        "both operands are hif8, or neither is",
        lambda a, b: ("hif8" in a.spelled) == ("hif8" in b.spelled),
        "convert one of them first",
    ),
)
_CLAUSES = (
    "[? unit_flag(W(unit_flag))?][? W(gemv)?][? W(sat)?][? tf32_mode(W(tf32))?][? W(direction)?]"
)
_TF32 = {"round_even": cube.TF32_ON, "round_away": cube.TF32_ON | cube.TF32_ROUND}
_TF32_BITS = 10
_PLACES = 16  # columns of a box of an accumulator


def accumulator(rows: int, cols: int, height: int) -> Array:
    """Where each element of an accumulator lies, in bytes."""
    row, col = np.arange(rows)[:, None], np.arange(cols)[None, :]
    return ((col // _PLACES * height + row) * _PLACES + col % _PLACES) * 4


def _read(at: Any, places: Array, what: str, unit: Any) -> tuple[Array, Array | None]:
    """Elements of an operand, all of which take part."""
    values, lost = unit.read_elements(at, places, at.dtype)
    if lost is not None:
        unit.require(np.repeat(lost, at.dtype.itemsize), what)
    return values, lost


def _number(values: Array, kind: DType, words: dict[str, str], unit: Any) -> Array:
    """The operand as float32."""
    registers = {"CTRL": _TF32[words["tf32"]]} if words["tf32"] else unit.control
    found = cube.float_operand(values, kind, registers, _TF32_BITS)
    if words["sat"] == "sat":
        most = float(kind.max_value)
        found = np.clip(np.where(np.isnan(found), np.float32(0), found), -most, most)
    return found.astype(np.float32, copy=False)


def _scaled(at: Any, values: Array, rows: int, space: TileType, unit: Any) -> Array:
    """Elements of rows x k, times the scales of their blocks."""
    k = values.shape[1]
    codes, _ = _read(unit.scales(at, space), scale_places(rows, k), "the scales", unit)
    scales = to_float64(codes.view(dt.f8e8m0.np), dt.f8e8m0)
    return values.astype(np.float64) * np.repeat(scales, 32, axis=1)[:, :k]


def _lost(rows: Array | None, cols: Array | None, m: int, n: int) -> Array | None:
    """Which elements of a product are made of undefined ones."""
    if rows is None and cols is None:
        return None
    found = np.zeros((m, n), np.bool_)
    if rows is not None:
        found[np.asarray(rows.any(axis=1))] = True
    if cols is not None:
        found[:, np.asarray(cols.any(axis=1))] = True
    return found


def _operand(
    at: Any, rows: int, k: int, is_row: bool, what: str, unit: Any
) -> tuple[Array, Array | None]:
    """An operand as rows of k elements; a single one may lie without boxes."""
    size, kind = at.dtype.itemsize, at.dtype
    wide = k // 2 if kind.is_packed else k
    places = np.arange(wide)[None, :] * size if is_row else boxed(rows, wide, size, up(rows, ROWS))
    values, lost = _read(at, places, what, unit)
    if not kind.is_packed:
        return values, lost
    return unpack4(values), None if lost is None else np.repeat(lost, 2, axis=1)


def _product(
    a: Any, b: Any, dst: Any, m: int, n: int, k: int, words: dict[str, str], unit: Any, **how: Any
) -> None:
    kinds = a.dtype, b.dtype
    if dst.dtype not in (dt.f32, dt.i32) or dst.dtype.is_integer != kinds[0].is_integer:
        refused(unit, "there is no such product", "use f32 or i32", types=(*kinds, dst.dtype))
    is_row = m == 1 and not words["gemv"]
    rows, lost_rows = _operand(a, m, k, is_row, "the left operand", unit)
    cols, lost_cols = _operand(b, n, k, False, "the right operand", unit)
    places = accumulator(m, n, up(m, ROWS))
    lost = _lost(lost_rows, lost_cols, m, n)
    with np.errstate(all="ignore"):
        if dst.dtype.is_integer:
            total = rows.astype(np.int64) @ cols.astype(np.int64).T
        else:
            x, y = (_number(v, t, words, unit) for v, t in ((rows, kinds[0]), (cols, kinds[1])))
            if how.get("is_scaled"):
                x = _scaled(a, x, m, TileType.ScaleLeft, unit)
                y = _scaled(b, y, n, TileType.ScaleRight, unit)
            total = cube.multiply(x, y.T, (m, n))
        if how.get("adds"):
            old, missing = _read(dst, places, "the accumulator", unit)
            total = total + old
            lost = missing if lost is None else lost if missing is None else lost | missing
        if how.get("bias") is not None:
            bias = how["bias"]
            start, _ = _read(bias, np.arange(n) * bias.dtype.itemsize, "the bias", unit)
            total = total + convert(start, bias.dtype, dst.dtype)
        if words["sat"] == "sat" and not dst.dtype.is_integer:
            most = float(dt.f32.max_value)
            total = np.clip(total, -most, most)
        unit.write_elements(dst, places, cube.settled(total, dst.dtype), lost)


_MEANING = {
    "": "Multiply the left operand, m x k, by the right one, k x n, into the accumulator.",
    "_acc": "Multiply, and add to what the accumulator holds.",
    "_bias": "Multiply, and add a row of the bias table to every row.",
}
_ORDER = unspecified("the order of a sum", "Floats are summed in an order that is not told.")


def _define(name: str, doc: str, is_scaled: bool, adds: bool, has_bias: bool) -> None:
    table = " bias:bt" if has_bias else ""
    listed = "%a, %b, %dst, %bias, " if has_bias else "%a, %b, %dst, "
    types = "T(a), T(b), T(dst), T(bias), " if has_bias else "T(a), T(b), T(dst), "

    def body(
        a: Any,
        b: Any,
        dst: Any,
        m: int,
        n: int,
        k: int,
        bias: Any = None,
        *,
        gemv: str,
        sat: str,
        tf32: str,
        unit: Any,
    ) -> None:
        words = {"gemv": gemv, "sat": sat, "tf32": tf32}
        _product(a, b, dst, m, n, k, words, unit, is_scaled=is_scaled, adds=adds, bias=bias)

    micro(
        f"a:l0a b:l0b dst:l0c{table} m:int n:int k:int",
        name=name,
        words=_WORDS,
        laws=_LAWS,
        is_inside=False,
        pipe=Pipe.M,
        syntax=f"{listed}%m, %n, %k{_CLAUSES} {{}} : {types}T(m), T(n), T(k)",
        freedom=_ORDER,
        doc=doc,
    )(body)


for _end, _doc in _MEANING.items():
    _define(f"mad{_end}", _doc, False, _end == "_acc", _end == "_bias")
    _define(
        f"mad_mx{_end}",
        _doc + "\n\nEach 32 elements along k have a scale, a power of two, that pto.mte_l1_l0a_mx "
        "and pto.mte_l1_l0b_mx have brought.",
        True,
        _end == "_acc",
        _end == "_bias",
    )
