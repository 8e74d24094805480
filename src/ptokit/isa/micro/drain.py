"""The fix pipe: accumulators to memory, scaled, activated and converted on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.convert import element, from_float
from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import SaturationMode
from ptokit.base.layout import Array
from ptokit.isa.effects import Pipe
from ptokit.isa.fixpipe import SCALE_BITS, convert_out
from ptokit.isa.freedom import unspecified
from ptokit.isa.micro.control import (
    ATOMIC_OPS,
    ATOMIC_TYPES,
    KEEPS_INFINITY,
    atomic_mode,
    combining,
)
from ptokit.isa.micro.footprints import FACTORS, SCALES
from ptokit.isa.micro.matrix import accumulator
from ptokit.isa.micro.spec import Law, Vector, Word, micro
from ptokit.isa.micro.staging import refused

_RESULTS = {  # of the modes that scale -> the results they are for
    "qf322f32_pre": ("f32",),
    "qf322f16_pre": ("f16",),
    "qf322bf16_pre": ("bf16",),
    "qf322hif8_pre": ("hif8",),
    "qf322fp8_pre": ("f8e4m3",),
    "qf322b8_pre": ("i8", "u8"),
    "req8": ("i8", "u8"),
    "deqf16": ("f16",),
    "qs322bf16_pre": ("bf16",),
}
_PLAIN = {"f32_f16": ("f16",), "f32_bf16": ("bf16",)}
_QUANT = (*_PLAIN, *(f"{mode}_{how}" for mode in _RESULTS for how in ("scalar", "vec")))


def _makes(mode: str, dst: Vector) -> bool:
    """Whether a mode makes elements of this type."""
    kinds = _PLAIN.get(mode) or _RESULTS.get(mode.rpartition("_")[0])
    return kinds is None or (dst.kind is not None and dst.kind.name in kinds)


_WORDS = (
    Word(
        "unit_flag",
        ("check_only", "check_and_clear", "check_and_set"),
        "",
        "the hand-shake with products: it waits for one that sets the flag, and may clear it",
    ),
    Word("quant_mode", _QUANT, "", "what is scaled and converted to what"),
    Word(
        "relu_mode",
        ("no_relu", "normal_relu", "scalar_relu", "vector_relu"),
        "",
        "what becomes of numbers below 0: nothing, 0, or they are multiplied",
    ),
    Word("layout", ("nz2nd", "nz2dn", "nz2nz"), None, "rows, or columns, one after the other"),
    Word("sat", ("sat", "nosat"), "", "whether what is out of range becomes the largest number"),
    Word("nan", ("preserve_nan",), "", "and NaN stays what it is: else it becomes 0"),
)
_LAWS = (
    Law(
        "columns one after the other say how far apart their elements are",
        lambda layout, walk: layout != "nz2dn" or walk is not None,
        "write nz2dn(%stride)",
    ),
    Law(
        "boxes that stay boxes are f32",
        lambda layout, dst: layout != "nz2nz" or dst.spelled == "f32",
        "store it as nz2nd",
    ),
    Law(
        "what is converted has the type that the mode names",
        lambda quant_mode, dst: _makes(quant_mode, dst),
        "change the mode, or the type of the pointer",
    ),
    Law(
        "a mode for each column takes a table, every other one a number",
        lambda quant_mode, quant: quant is None or quant.is_pointer == quant_mode.endswith("_vec"),
        "pass what the mode takes",
    ),
    Law(
        "vector_relu takes a table, scalar_relu a number",
        lambda relu_mode, relu: relu is None or relu.is_pointer == (relu_mode == "vector_relu"),
        "pass what the mode takes",
    ),
    Law(
        "with unit_flag elements of an accumulator are read one after the other",
        lambda unit_flag, layout, walk: (
            not unit_flag or layout != "nz2dn" or walk is None or walk.number in (None, 1)
        ),
        "leave unit_flag out, or walk by 1",
    ),
)
_SPLIT = Word("split", ("split_m", "split_n"), "", "half of the rows, or columns, to each core")
_ATOMIC = (
    Word("atomic_type", tuple(ATOMIC_TYPES), "", "of what memory holds"),
    Word("atomic", ATOMIC_OPS, "", "change what is there in place"),
)
_OPERANDS = "m:int n:int src_stride:int dst_stride:int"
_MORE = "quant?:factor relu?:factor clip?:num walk?:int loop3?*:int"
_CLAUSES = (
    "[?, unit_flag(W(unit_flag))?][?, pre_quant(%quant, mode = W(quant_mode))?]"
    "[?, pre_relu([?%relu, ?]mode = W(relu_mode)[?, clip = %clip?])?]"
    ", W(layout)[?(%walk)?][?, loop3(%loop3...)?][?, W(sat)[?(W(nan))?]?]"
)
_SIZES = "%src, %dst, %m, %n, %src_stride, %dst_stride"
_TYPES = "T(src), T(dst), T(m), T(n), T(src_stride), T(dst_stride)"
_MORE_TYPES = "[?, T(quant)?][?, T(relu)?][?, T(clip)?][?, T(walk)?][?, T(loop3...)?]"
_OPEN = (
    unspecified("loop3 of more than one turn", "Its units are told nowhere: it is refused."),
    unspecified("scales", "Multiplied in f32 and rounded once; recorded runs decide no more bits."),
    unspecified("the factor of scalar_relu at 0", "No recorded run tells +0 from -0."),
)
_DOC = """
Element (i, j) lies in column j // 16 of boxes, which have `src_stride` rows. With `pre_quant` it
is multiplied by a scale, of which the upper 19 bits count: a number, or one for each column, in
words of 8 bytes. `pre_relu` follows: numbers below 0 become 0, or are multiplied by a number, or by
one for each column, from the second table of the fix pipe; then numbers above `clip` become `clip`.
At last it is converted. It goes to row i, column j of a matrix with `dst_stride` elements from one
row to the next; `nz2dn` swaps both.
"""


Given = dict[str, Any]  # operands and words, by their names


# ---- values ------------------------------------------------------------------------------------


def _words(quant: Any, n: int, is_vector: bool, unit: Any) -> int | Array:
    """The quantisation words, one or one for each column."""
    if is_vector:
        at = unit.parameters(quant, SCALES)
        found, lost = unit.read_elements(at, np.arange(n) * 8, dt.u64)
        if lost is not None:
            unit.require(np.repeat(lost, 8), "the scales")
        return found
    return int(element(quant, dt.f32).view(np.uint32))


def _activated(x: Array, mode: str, relu: Any, clip: Any, unit: Any) -> Array:
    if mode == "normal_relu":
        x = np.maximum(x, np.float32(0))
    elif mode in ("scalar_relu", "vector_relu"):
        factor: Any = element(relu, dt.f32) if mode == "scalar_relu" else None
        if factor is None:
            at = unit.parameters(relu, FACTORS)
            factor, lost = unit.read_elements(at, np.arange(x.shape[1]) * 4, dt.f32)
            if lost is not None:
                unit.require(np.repeat(lost, 4), "the factors, which lie in the second table")
        x = np.where(x >= 0, x, x * factor)
    return x if clip is None else np.minimum(x, element(clip, dt.f32))


def _converted(values: Array, kind: DType, given: Given, unit: Any) -> Array:
    """What an accumulator becomes."""
    mode, relu_mode, made = given["quant_mode"], given["relu_mode"], given["dst"].dtype
    how, _, which = mode.rpartition("_")
    allowed = _PLAIN.get(mode) or _RESULTS.get(how) or (kind.name,)
    if made.name not in allowed:
        what = f"pre_quant makes {' or '.join(allowed)}" if mode else "this store converts nothing"
        fix = "name the mode that makes the element type of the destination"
        refused(unit, what, fix, mode=mode or "none", dst=made.name)
    is_scaled = how in _RESULTS
    word = _words(given["quant"], values.shape[1], which == "vec", unit) if is_scaled else None
    is_plain = relu_mode in ("", "no_relu", "normal_relu") and given["clip"] is None
    if made.itemsize == 1 or kind.is_integer:
        if not is_plain:
            refused(unit, "integers and 8-bit results have no such pre_relu", "use normal_relu")
        is_relu = relu_mode == "normal_relu"
        return convert_out(values, kind, made, word=word, relu=is_relu, target=unit.target)
    x = values
    if word is not None:
        bits = np.asarray(word, np.uint64) & np.uint64(SCALE_BITS)
        x = x * bits.astype(np.uint32).view(np.float32)
    x = _activated(x, relu_mode, given["relu"], given["clip"], unit)
    if made is dt.f32:
        return x
    keeps = made is dt.bf16 or bool(unit.control.get("CTRL", 0) & KEEPS_INFINITY)
    on = given["sat"] == "sat" or (not given["sat"] and not keeps)
    if on and not given["nan"]:
        x = np.where(np.isnan(x), np.float32(0), x)
    return from_float(x, made, saturation=SaturationMode.ON if on else SaturationMode.OFF)


def _drain(given: Given, unit: Any) -> tuple[Array, Array | None]:
    """The converted elements, and which of them are undefined."""
    src, turns = given["src"], given["loop3"]
    if turns and turns[0] != 1:
        refused(unit, "loop3 of more than one turn is not supported", "write the loop", turns=turns)
    if given["layout"] == "nz2nz":
        refused(unit, "nz2nz is not supported", "use nz2nd or nz2dn")
    places = accumulator(given["m"], given["n"], given["src_stride"])
    values, lost = unit.read_elements(src, places, src.dtype)
    with np.errstate(all="ignore"):
        return _converted(values, src.dtype, given, unit), lost


def _places(values: Array, given: Given) -> Array:
    """Where elements go, in bytes past the destination."""
    row, col = np.ogrid[: values.shape[0], : values.shape[1]]
    stride, size = given["dst_stride"], given["dst"].dtype.itemsize
    return (row * stride + col if given["layout"] == "nz2nd" else col * stride + row) * size


# ---- the three ways ----------------------------------------------------------------------------


@micro(
    f"src:l0c dst:gm {_OPERANDS} sid:int l2:int {_MORE}",
    words=(*_WORDS, *_ATOMIC),
    laws=_LAWS,
    is_inside=False,
    pipe=Pipe.FIX,
    uses="ATOMIC ATOMIC_TYPE",
    syntax=f"{_SIZES}, %sid, %l2{_CLAUSES}[?, atomic(type = W(atomic_type), op = W(atomic))?] {{}} "
    f": {_TYPES}, T(sid), T(l2){_MORE_TYPES}",
    freedom=_OPEN,
    doc=f"Bring an accumulator to global memory.\n{_DOC}\n"
    "`atomic` adds to what is there, or keeps the greater or smaller value.",
)
def mte_l0c_gm(given: Given, unit: Any) -> None:
    values, lost = _drain(given, unit)
    op, kind = given["atomic"], given["atomic_type"]
    mode = combining(dtype(ATOMIC_TYPES[kind]), op) if op else atomic_mode(unit)
    unit.write_elements(given["dst"], _places(values, given), values, lost, mode)


@micro(
    f"src:l0c dst:l1 {_OPERANDS} {_MORE}",
    words=_WORDS,
    laws=_LAWS,
    is_inside=False,
    pipe=Pipe.FIX,
    syntax=f"{_SIZES}{_CLAUSES} {{}} : {_TYPES}{_MORE_TYPES}",
    freedom=_OPEN,
    doc=f"Bring an accumulator to L1.\n{_DOC}",
)
def mte_l0c_l1(given: Given, unit: Any) -> None:
    values, lost = _drain(given, unit)
    unit.write_elements(given["dst"], _places(values, given), values, lost)


@micro(
    f"src:l0c dst:ub {_OPERANDS} core?:int {_MORE}",
    words=(*_WORDS, _SPLIT),
    laws=_LAWS,
    is_inside=False,
    pipe=Pipe.FIX,
    syntax=f"{_SIZES}, dst_mode([?%core?|W(split)?]){_CLAUSES} {{}} : "
    f"{_TYPES}[?, T(core)?]{_MORE_TYPES}",
    freedom=_OPEN,
    doc=f"Bring an accumulator to the unified buffer of a vector core, or a half to each.\n{_DOC}",
)
def mte_l0c_ub(given: Given, unit: Any) -> None:
    values, lost = _drain(given, unit)
    m, n, every = given["m"], given["n"], slice(None)
    halves = {
        "split_m": {0: (slice(m // 2), every), 1: (slice(m // 2, None), every)},
        "split_n": {0: (every, slice(n // 2)), 1: (every, slice(n // 2, None))},
    }
    parts = halves.get(given["split"]) or {given["core"] or 0: (every, every)}
    for number, part in parts.items():
        chosen = values[part]
        missing = None if lost is None or not lost[part].any() else lost[part]
        there = unit.on_vector_core(given["dst"], number)
        unit.write_elements(there, _places(chosen, given), chosen, missing)
