"""The arithmetic of microscaling formats: groups of 32 elements share a power of two.

A result is an element code (E4M3 or E2M1) and, per group, an exponent byte e that stands for the
scale 2^(e - 127). Three steps make them: the largest magnitude of the group, the exponent from it,
and the codes of the elements times 2^(127 - e).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ptokit.base.convert import convert, to_float32
from ptokit.base.dtypes import DType, bf16, f4e2m1x2, f8e4m3, f16, f32
from ptokit.base.enums import MxQuantAlg, QuantScaleAlg, QuantType, RoundMode, SaturationMode
from ptokit.base.layout import Array
from ptokit.base.namedtuple import NamedTuple
from ptokit.isa.facts import Ops

GROUP = 32
_OFF = SaturationMode.OFF
_NAN = 0xFF  # the exponent byte of a group that holds a NaN


class Format(NamedTuple):
    """Element format and scale algorithm, however the template arguments name them."""

    fp4: bool
    nv: bool


def format_of(attrs: Any) -> Format:
    """The format that the template arguments of TQUANT name."""
    alg, quant = attrs["mx_alg"], attrs.get("quant_type")
    if alg is not None:
        fp4 = alg in (MxQuantAlg.OcpMxFp4E2M1, MxQuantAlg.NvMxFp4E2M1)
        return Format(fp4, alg in (MxQuantAlg.NvMxFp8E4M3, MxQuantAlg.NvMxFp4E2M1))
    return Format(quant == QuantType.MXFP4_E2M1, attrs.get("scale_alg") == QuantScaleAlg.NV)


_ALGORITHMS = {
    Format(False, False): MxQuantAlg.OcpMxFp8E4M3,
    Format(False, True): MxQuantAlg.NvMxFp8E4M3,
    Format(True, False): MxQuantAlg.OcpMxFp4E2M1,
    Format(True, True): MxQuantAlg.NvMxFp4E2M1,
}


def in_two_words(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Template arguments that name the format and the scale algorithm, each by itself."""
    if attrs["mx_alg"] not in _ALGORITHMS.values():
        return attrs
    form = format_of(attrs)
    quant = QuantType.MXFP4_E2M1 if form.fp4 else QuantType.MXFP8
    alg = QuantScaleAlg.NV if form.nv else QuantScaleAlg.OCP
    return {**attrs, "quant_type": quant, "scale_alg": alg, "mx_alg": None}


def in_one_word(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Template arguments that name both at once."""
    if attrs.get("quant_type") is None:
        return attrs
    unsaid = {"quant_type": None, "scale_alg": None}
    return {**attrs, **unsaid, "mx_alg": _ALGORITHMS[format_of(attrs)]}


# ---- the three steps ---------------------------------------------------------------------------


def _maximum(groups: Array, kind: DType, form: Format, simulated: bool) -> tuple[Array, Array]:
    """The largest magnitude along the last axis, as f32 and as the words the device stores.

    16-bit magnitudes are compared as integers, so that a NaN wins; f16 is cut to bf16 first, except
    for the NV scale. The public simulator drops NaN for E4M3 and compares bf16 for E2M1 with OCP.
    """
    if simulated and not form.fp4:
        found = np.fmax.reduce(np.abs(to_float32(groups, kind)), axis=-1, initial=0)
        return found, found
    if simulated and not form.nv:
        cut = convert(to_float32(groups, kind), f32, bf16, RoundMode.CAST_TRUNC, _OFF)
        found = to_float32((cut.view(np.uint16) & 0x7FFF).max(axis=-1).view(bf16.np), bf16)
        return found, found
    if simulated or kind is f32:
        found = np.abs(to_float32(groups, kind)).max(axis=-1)
        return found, found
    if kind is f16 and not form.nv:
        groups, kind = convert(groups, f16, bf16, RoundMode.CAST_TRUNC, _OFF), bf16
    words = (groups.view(np.uint16) & 0x7FFF).max(axis=-1)
    return to_float32(words.view(kind.np), kind), words


def _fields(values: Array) -> tuple[Array, Array]:
    bits = values.view(np.uint32)
    return (bits >> 23 & 0xFF).astype(np.int32), bits & 0x7FFFFF


def shared_exponent(maximum: Array, form: Format) -> Array:
    """The exponent byte of each group.

    OCP: the exponent of the maximum less that of the largest code (8 for 448, 2 for 6). NV: the
    exponent of maximum / 448 or maximum / 6, rounded up, so that no element saturates.
    """
    if not form.nv:
        exponent, mantissa = _fields(maximum)
        shared = np.maximum(exponent - (2 if form.fp4 else 8), 0)
        return np.where((exponent == 0xFF) & (mantissa != 0), _NAN, shared).astype(np.uint8)
    largest = np.float32(6 if form.fp4 else 448)
    exponent, mantissa = _fields(maximum * (np.float32(1) / largest))
    tiny = (exponent == 0) & (mantissa <= 0x400000)
    shared = exponent + ((mantissa != 0) & (exponent < 0xFE) & ~tiny)
    special = np.where(mantissa == 0, 0xFE, _NAN)
    return np.where(exponent == 0xFF, special, shared).astype(np.uint8)


def scale_bits(exponent: Array) -> Array:
    """The bits of the f32 number 2^(127 - exponent), NaN for a NaN group."""
    bits = (0xFE - exponent.astype(np.int64)) << 23
    bits = np.where(exponent == 0xFE, 0x0040_0000, bits)  # 2^-127 is subnormal
    return np.where(exponent == _NAN, 0x7FC0_0000, bits).astype(np.uint32)


def encode(values: Array, factor: Array, kind: DType, form: Format, *, simulated: bool) -> Array:
    """The codes of elements times their factor, rounded to nearest even and saturated.

    Some targets round the products of bf16 elements to bf16 first. That changes nothing: the factor
    is a power of two, and a product too small for bf16 is 0 in either code.
    """
    product = to_float32(values, kind) * factor
    if form.fp4:
        return convert(np.where(np.isnan(product), np.float32(np.inf), product), f32, f4e2m1x2)
    codes = convert(product, f32, f8e4m3).view(np.uint8)
    if simulated:  # it knows one NaN and, with the OCP scale, one zero
        codes = np.where(np.isnan(product), np.uint8(0x7F), codes)
        codes = np.where((codes == 0x80) & (not form.nv), np.uint8(0), codes)
    return codes


class Result(NamedTuple):
    """Codes shaped as the groups, and what is stored per group."""

    codes: Array
    exponent: Array
    maximum: Array
    scaling: Array


def quantise(groups: Array, form: Format, ops: Ops) -> Result:
    """Quantise groups that lie along the last axis; maximum and scaling as their tiles hold them.

    Devices store 16-bit scales as the bits of a bf16, whatever the element type of the tile says.
    The permissive profile stores numbers.
    """
    kind: DType = ops.src.dtype
    simulated = not ops.target.is_device
    maximum, words = _maximum(groups, kind, form, simulated)
    exponent = shared_exponent(maximum, form)
    bits = scale_bits(exponent)
    factor = bits.view(np.float32)
    codes = encode(groups, factor[..., None], kind, form, simulated=simulated)
    if simulated:
        factor = np.where(exponent == _NAN, maximum, factor)
        into = (ops.max.dtype, ops.scaling.dtype)
        pairs = zip((maximum, factor), into, strict=True)
        return Result(codes, exponent, *(convert(v, f32, t, saturation=_OFF) for v, t in pairs))
    if kind is f32:
        return Result(codes, exponent, maximum, factor)
    halves = (bits >> 16).astype(np.uint16)
    if not form.fp4:
        halves[exponent == _NAN] = 0x7F81
    return Result(codes, exponent, words.view(kind.np), halves.view(kind.np))
