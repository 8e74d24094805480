"""The fix pipe: what happens to an accumulator value on its way out, and which results exist.

TSTORE, TMOV, TEXTRACT and TINSERT drain the accumulator through the same hardware, with or without
a quantisation word. The conversion and the table of legal (accumulator, result) types are said
here once; the instructions say where the values go.

A quantisation word is 64 bits: a float32 scale in bits 31..0, of which the hardware keeps the
upper 19; the shift amount minus one in bits 35..32 (int32 to int16 only); an offset of 9 signed
bits in bits 45..37 and, in bit 46, whether the 8-bit result is signed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.convert import convert, from_float
from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import RoundMode, SaturationMode, TileType
from ptokit.base.layout import Array
from ptokit.isa.devices import KIRIN
from ptokit.isa.expr import Arg
from ptokit.isa.facts import Ops
from ptokit.isa.idioms import Elementwise, Idiom, copy
from ptokit.isa.rules import must
from ptokit.isa.spec import Rule
from ptokit.isa.targets import A2A3, PerTarget, Target

_WORD = (1 << 64) - 1  # a number is taken by its bits
SCALE_BITS = 0xFFFF_E000  # sign, exponent and 10 mantissa bits of a float32
WORDS_STEP = 128  # bytes: the register that names quantisation words counts in these
_SHIFTS = PerTarget(True, kirin=False)  # an int32 word to int16 is shifted, not scaled


def convert_out(
    values: Array,
    src: DType,
    dst: DType,
    *,
    word: int | Array | None = None,
    relu: bool = False,
    target: Target = A2A3,
) -> Array:
    """Return accumulator values of type `src` as results of type `dst`.

    `word` is None for a plain conversion, one quantisation word, or an array of words that
    broadcasts against `values` (one per column). ReLU is applied to the result. Targets differ in
    two things: some shift to int16 where others scale, and the permissive profile computes as the
    public simulator does (see `_to_b8`).
    """
    if word is None and src is dst and not relu:
        return values
    with np.errstate(all="ignore"):
        if word is None:
            result = _cast(values, src, dst, target)
        else:
            scalar = np.ndim(word) == 0
            words = (
                np.uint64(word & _WORD) if isinstance(word, int) else np.asarray(word, np.uint64)
            )
            result = _quantised(values, src, dst, np.asarray(words), scalar, target)
        return _relu(result, dst) if relu else result


def _cast(values: Array, src: DType, dst: DType, target: Target) -> Array:
    """Convert without a word. Devices know f32 to f16, bf16 and f32, and the identity."""
    if dst.is_integer:  # only the permissive profile comes here with another type: a C cast
        wrap = SaturationMode.OFF if src.is_integer else SaturationMode.ON
        return convert(values, src, dst, RoundMode.CAST_TRUNC, wrap)
    if dst is dt.bf16 or not target.is_device:
        return convert(values, src, dst, saturation=SaturationMode.OFF)
    return convert(values, src, dst)


def drain_loop(to: str, o: Ops, relu: bool) -> Idiom | None:
    """What an accumulator becomes on its way out when nothing quantises it."""
    source, result = o.src.dtype, o[to].dtype
    if relu or result.is_integer != source.is_integer:
        return None
    if source is result:
        return copy(to, result)
    wraps = result is dt.bf16 or not o.target.is_device
    saturation = SaturationMode.OFF if wraps else SaturationMode.ON
    return Elementwise(to, Arg(source, "src").to(result, saturation=saturation))


def _quantised(
    values: Array, src: DType, dst: DType, word: Array, scalar: bool, target: Target
) -> Array:
    if src is dst and src is not dt.f32:
        return values.copy()  # no mode is programmed for half to half and int32 to int32
    if dst is dt.i16 and src is dt.i32 and _SHIFTS[target]:
        shift = (word >> np.uint64(32) & np.uint64(0xF)).astype(np.int64) + 1
        return convert(values >> shift, dt.i64, dt.i16)
    # The simulator keeps the whole float32 of a scalar word.
    kept = word if scalar and not target.is_device else word & np.uint64(SCALE_BITS)
    scale = (kept & np.uint64(0xFFFF_FFFF)).astype(np.uint32).view(np.float32)
    product = convert(values, src, dt.f32) * scale
    if dst.is_integer and dst.bits == 8:
        return _to_b8(product, dst, word, target)
    if dst is dt.hif8:
        return from_float(product, dst, RoundMode.CAST_ROUND)
    if dst is dt.bf16:
        return from_float(product, dst, saturation=SaturationMode.OFF)
    if dst is dt.f16 and src is dt.f32 and not target.is_device:
        saturated = from_float(product, dst)
        return np.where(np.isinf(product), product.astype(np.float16), saturated)
    return from_float(product, dst)


def _to_b8(product: Array, dst: DType, word: Array, target: Target) -> Array:
    """Round, clamp to 9 bits, add the offset, clamp to the 8-bit type.

    The simulator adds the offset, unsigned, before rounding and does not clamp in between; so does
    the `cpu` profile. NaN counts as 0.
    """
    offset = (word >> np.uint64(37) & np.uint64(0x1FF)).astype(np.int64)
    signed = word >> np.uint64(46) & np.uint64(1) != 0
    low, high = np.where(signed, -128, 0), np.where(signed, 127, 255)
    if not target.is_device:
        integers = from_float(product + offset.astype(np.float32), dt.i32).astype(np.int64)
    else:
        offset = np.where(offset > 255, offset - 512, offset)
        integers = np.clip(from_float(product, dt.i32).astype(np.int64), -256, 255) + offset
    return np.clip(integers, low, high).astype(dst.np)


def _relu(values: Array, dst: DType) -> Array:
    """Replace what is negative by zero; minus zero becomes zero, a NaN stays one."""
    if dst is dt.hif8:  # codes: the sign is the top bit, 0x80 is the NaN
        return np.where((values & 0x80 != 0) & (values != 0x80), np.uint8(0), values)
    return np.where(values <= 0, dst.np.type(0), values)


# ---- legal pairs -------------------------------------------------------------------------------


def is_accumulator(o: Any) -> bool:
    """Whether the source of a transfer is an accumulator tile."""
    return o.src.loc == TileType.Acc


def _has_word(o: Any, words: str) -> bool:
    return any(o[name] is not None for name in words.split())


def converts(id: str, on: str, quantised: bool, pairs: str, *, words: str) -> Rule:
    """Accumulators of these types become only these results ("f32,f16 f32,bf16").

    The rule speaks about transfers with a quantisation word or those without, and about the source
    types it lists. `words` names the operands that bring a word ("preQuantScalar fp").
    """
    listed = [tuple(dtype(one) for one in pair.split(",")) for pair in pairs.split()]
    results: dict[DType, list[DType]] = {}
    for source, result in listed:
        results.setdefault(source, []).append(result)
    how = "with" if quantised else "without"
    told = "; ".join(f"{s} to {', '.join(r.name for r in to)}" for s, to in results.items())

    def holds(o: Any) -> bool:
        if not is_accumulator(o) or o.src.dtype not in results:
            return True
        return _has_word(o, words) != quantised or o.dst.dtype in results[o.src.dtype]

    return must(id, on)(
        f"an accumulator converts {how} a quantisation word from {told}",
        holds,
        "choose one of these result types"
        + ("" if quantised else ", or pass a quantisation word where the target has that mode"),
    )


def accumulator_type(id: str, kinds: str, on: str) -> Rule:
    """The accumulator holds one of these types."""
    allowed = tuple(dtype(kind) for kind in kinds.split())
    return must(id, on)(
        f"an accumulator that is drained holds {' or '.join(kinds.split())}",
        lambda o: not is_accumulator(o) or o.src.dtype in allowed,
    )


# (id, targets, whether a quantisation word is there, pairs)
Conversions = tuple[tuple[str, str, bool, str], ...]

_A5_F32 = "f32,i8 f32,u8 f32,f16 f32,bf16 f32,hif8 f32,f8e4m3 f32,f32"
_KIRIN_WORDS = "f16,f16 f16,i16 f16,i8 f16,u8 i32,f16 i32,i16 i32,i8 i32,u8"

# Which result types are asserted says less than which conversions there are.
_PLAIN = "f32,f32 f32,f16 f32,bf16 i32,i32"
TO_GM: Conversions = (
    ("SA-0196", "a2a3", False, _PLAIN + " f32,i32 i32,f32 i32,f16 i32,bf16"),
    ("plain-result", "a2a3", False, _PLAIN),
    ("SA-0196", "a5", False, _PLAIN),
    ("plain-result", KIRIN, False, "f16,f16 i32,i32"),
    ("quantised-result", "a2a3", True, "f32,i8 f32,u8 i32,i8 i32,u8 i32,f16"),
    ("quantised-result", "a5", True, _A5_F32 + " i32,i8 i32,u8 i32,f16 i32,bf16"),
    ("quantised-result", KIRIN, True, _KIRIN_WORDS + " i32,i32"),
)
TO_TILES: Conversions = (
    ("SA-0193", "a2a3", False, "f32,f16 f32,bf16"),
    ("SA-0197", "a2a3", True, "f32,i8"),
    ("SA-0199", "a2a3", True, "i32,i8 i32,u8 i32,f16 i32,i16"),
    ("SA-0194", "a5", False, "f32,f16 f32,bf16 f32,f32"),
    ("SA-0195", "a5", False, "i32,i32"),
    ("SA-0200", "a5", True, "f32,i8 f32,u8 f32,hif8 f32,f16 f32,bf16 f32,f8e4m3 f32,f32"),
    ("SA-0198", "a5", True, "i32,i8 i32,u8 i32,f16 i32,bf16"),
    ("plain-result", KIRIN, False, "f16,f16 i32,i32"),
    (
        "quantised-result",
        KIRIN,
        True,
        "f16,f16 f16,i8 f16,u8 f16,i16 i32,f16 i32,i8 i32,u8 i32,i16",
    ),
)


def _conversions(rows: Conversions, accumulators: str, words: str) -> list[Rule]:
    """The rules of a table; the _FP forms, whose only word is "fp", never go without one."""
    return [
        accumulator_type(accumulators, "f32 i32", "a2a3 a5"),
        accumulator_type("accumulator-dtype", "f16 i32", KIRIN),
        *(converts(*row, words=words) for row in rows if row[2] or words != "fp"),
    ]


_NOT_PROGRAMMED = "no conversion is programmed: so many elements are stored, of any value"


def store_conversions(words: str = "preQuantScalar") -> list[Rule]:
    """The pairs of TSTORE, and of TSTORE_FP with "fp" alone.

    A2/A3 asserts more pairs than there are conversions, and programs none for the others.
    """
    return [
        replace(each, otherwise=_NOT_PROGRAMMED, voids=True)
        if each.id == "plain-result" and each.targets == frozenset({"a2a3"})
        else each
        for each in _conversions(TO_GM, "SA-0191", words)
    ]


def tile_conversions(words: str = "preQuantScalar fp") -> list[Rule]:
    """The pairs of the moves from an accumulator to a tile; the _FP forms with "fp" alone."""
    plainly = must("SA-0204", "a2a3")(
        "without a quantisation word only an f32 accumulator can be drained to a tile",
        lambda o: not is_accumulator(o) or o.src.dtype is dt.f32 or _has_word(o, words),
        "pass a quantisation word (preQuantScalar, or fp with the _FP form)",
    )
    return _conversions(TO_TILES, "SA-0106", words) + ([] if words == "fp" else [plainly])
