"""Arrays in files or in words, and how two of them differ."""

from __future__ import annotations

import zlib

import ml_dtypes
import numpy as np

from ptokit.base.diagnostics import usage_error
from ptokit.base.dtypes import ArrayType, DType, dtype
from ptokit.base.layout import Array
from ptokit.base.patterns import regex
from ptokit.frontend.declared import sample

_SHAPED = regex(r"(\w+)\[\s*(\d+(?:\s*,\s*\d+)*)\s*\]")


def array_for(word: str, name: str, kind: DType | None = None) -> Array:
    """An argument under a name: an .npy file, or `f32[16,64]`, an array that is drawn.

    The same name and type give the same numbers each time.
    """
    found = _SHAPED.fullmatch(word.strip())
    if found is None:
        return read_array(word, name, kind)
    try:
        type_ = ArrayType(dtype(found[1]), tuple(map(int, found[2].split(","))))
        return sample(type_, np.random.default_rng(zlib.crc32(f"{name}: {type_}".encode())))
    except (ValueError, MemoryError) as error:
        raise usage_error("arguments", f"%{name}: {word} is no array: {error}") from None


def read_array(word: str, name: str, kind: DType | None = None) -> Array:
    """The array in an .npy file, which is an argument under a name, of this element type.

    Nothing in it is executed: it may not hold objects of Python.
    """
    try:
        found = np.load(word, mmap_mode="r", allow_pickle=False)  # no more than the file has
        if isinstance(found, np.ndarray):
            return _as_written(np.array(found), kind)
        found.close()
        reason = "it is an archive of several arrays"
    except Exception as error:  # of the file, of whatever kind: headers are read as Python code
        reason = str(getattr(error, "strerror", None) or error)
    raise usage_error(
        "arguments",
        f"%{name}: cannot read {word}: {reason}",
        fix="pass an .npy file, as np.save writes it, or a type and shape, f32[16,64]",
    )


def _as_written(array: Array, kind: DType | None) -> Array:
    """.npy files cannot name bfloat16 and its kin: their elements are bytes without a type."""
    is_bare = kind is not None and array.dtype.kind == "V" and array.itemsize == kind.itemsize
    found = array.view(kind.np) if kind is not None and is_bare else array
    return found if found.flags.c_contiguous else np.ascontiguousarray(found)


def difference(
    got: Array, expected: Array, kind: DType, rtol: float | None = None, atol: float | None = None
) -> str:
    """How two arrays differ, in a sentence; the empty string where they agree.

    Without a tolerance whole numbers must be equal, and others agree to half the digits they have.
    """
    if got.size != expected.size:
        return f"{expected.size} elements are expected, not {got.size}"
    usual = float(ml_dtypes.finfo(kind.np).eps) ** 0.5 if kind.is_float else 0.0
    a, b = (each.reshape(-1).astype(np.float64) for each in (got, expected))
    is_close = np.isclose(
        a, b, usual if rtol is None else rtol, usual if atol is None else atol, equal_nan=True
    )
    if is_close.all():
        return ""
    with np.errstate(invalid="ignore"):
        gap = np.where(is_close, -1, np.nan_to_num(np.abs(a - b), nan=np.inf))
    worst = int(np.argmax(gap))
    place = [int(n) for n in np.unravel_index(worst, got.shape)]
    count = int(np.count_nonzero(~is_close))
    return f"{count} of {a.size} differ, most at {place}: {a[worst]:g}, not {b[worst]:g}"


def is_changed(old: Array, new: Array) -> bool:
    """Whether two arrays of one type and shape differ in a bit; long ones are never copied."""
    a, b = (each.reshape(-1).view(np.uint8) for each in (old, new))
    return any(
        not np.array_equal(a[start : start + _STEP], b[start : start + _STEP])
        for start in range(0, len(a), _STEP)
    )


_STEP = 1 << 24  # bytes that are looked at together
