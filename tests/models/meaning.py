"""What operations on tiles compute, in NumPy: `MEANINGS[name](dst, *sources)` writes `dst`.

Sources are tiles or numbers, in the order of the text. Where nothing else is said, the valid part
of the destination decides what is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.models.memory import Tile

MEANINGS: dict[str, Callable[..., None]] = {}


def meaning(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def known(function: Callable[..., None]) -> Callable[..., None]:
        MEANINGS[f"pto.{name}"] = function
        return function

    return known


def wide(values: Any) -> Any:
    """Values in a type that computes exactly enough: f32 for floats, i64 for whole numbers."""
    values = np.asarray(values)
    return values.astype(np.int64 if values.dtype.kind in "iu" else np.float32, copy=False)


def _each(compute: Callable[..., Any]) -> Callable[..., None]:
    """The same for each element; numbers meet all of them."""

    def run(dst: Tile, *sources: Any) -> None:
        values = [
            wide(s.read(dst.rows, dst.cols)) if isinstance(s, Tile) else _number(s, dst)
            for s in sources
        ]
        dst.write(np.broadcast_to(compute(*values), (dst.rows, dst.cols)))

    return run


def _number(value: Any, dst: Tile) -> Any:
    return wide(np.asarray(value).astype(dst.data.dtype))


def divide(a: Any, b: Any) -> Any:
    if np.asarray(a).dtype.kind == "f":
        return a / b
    return np.trunc(a / np.where(b == 0, 1, b))


def root(x: Any) -> Any:
    return np.sqrt(x)


_EACH: dict[str, Callable[..., Any]] = {
    "tadd": np.add,
    "tsub": np.subtract,
    "tmul": np.multiply,
    "tdiv": divide,
    "tmax": np.maximum,
    "tmin": np.minimum,
    "tabs": np.abs,
    "tneg": np.negative,
    "texp": np.exp,
    "tlog": np.log,
    "tsqrt": root,
    "trecip": lambda x: 1 / x,
    "trsqrt": lambda x, scratch=None: 1 / np.sqrt(x),
    "texpands": lambda x: x,
}
for _name, _compute in _EACH.items():
    MEANINGS[f"pto.{_name}"] = _each(_compute)
for _name in ("tadd", "tsub", "tmul", "tdiv", "tmax", "tmin"):
    MEANINGS[f"pto.{_name}s"] = _each(_EACH[_name])


# ---- rows and columns ----------------------------------------------------------------------------


def _of_row(compute: Callable[..., Any]) -> Callable[..., None]:
    """Each element with the one of its row."""

    def run(dst: Tile, full: Tile, column: Tile) -> None:
        other = column.read(dst.rows, 1)
        if column.layout == "rn":  # a block of 32 bytes per row, repeated
            block = 32 // column.data.dtype.itemsize
            other = column.read(dst.rows, block)[:, np.arange(dst.cols) % block]
        dst.write(compute(wide(full.read(dst.rows, dst.cols)), wide(other)))

    return run


def _of_column(compute: Callable[..., Any]) -> Callable[..., None]:
    """Each element with the one of its column."""

    def run(dst: Tile, full: Tile, row: Tile) -> None:
        dst.write(compute(wide(full.read(dst.rows, dst.cols)), wide(row.read(1, dst.cols))))

    return run


for _name in ("add", "sub", "mul", "div", "max", "min"):
    MEANINGS[f"pto.trowexpand{_name}"] = _of_row(_EACH[f"t{_name}"])
    MEANINGS[f"pto.tcolexpand{_name}"] = _of_column(_EACH[f"t{_name}"])
MEANINGS["pto.tcolexpandexpdif"] = _of_column(lambda a, b: np.exp(a - b))
MEANINGS["pto.trowexpandexpdif"] = _of_row(lambda a, b: np.exp(a - b))


@meaning("trowexpand")
def row_expand(dst: Tile, src: Tile) -> None:
    dst.write(np.repeat(src.read(dst.rows, 1), dst.cols, 1))


@meaning("tcolexpand")
def column_expand(dst: Tile, src: Tile) -> None:
    dst.write(np.repeat(src.read(1, dst.cols), dst.rows, 0))


@meaning("trowsum")
def row_sum(dst: Tile, src: Tile, *scratch: Tile) -> None:
    dst.write(wide(src.read()).astype(np.float64).sum(1, keepdims=True))


@meaning("trowmax")
def row_max(dst: Tile, src: Tile, *scratch: Tile) -> None:
    if src.rows and src.cols:
        dst.write(wide(src.read()).max(1, keepdims=True))


@meaning("tcolsum")
def column_sum(dst: Tile, src: Tile, *scratch: Tile) -> None:
    dst.write(wide(src.read()).astype(np.float64).sum(0, keepdims=True))


@meaning("tcolmax")
def column_max(dst: Tile, src: Tile, *scratch: Tile) -> None:
    dst.write(wide(src.read()).max(0, keepdims=True))


# ---- conversion ----------------------------------------------------------------------------------

_FORMATS = {"float32": (23, -126), "bfloat16": (7, -126), "float16": (10, -14)}
_WRAPPING = {("float16", "int8"), ("float16", "uint8"), ("float16", "int16"), ("float32", "int16")}


def _rounded(x: Any, mode: str) -> Any:
    """To whole numbers."""
    if mode == "TRUNC":
        return np.trunc(x)
    if mode == "ROUND":  # halves go away from zero
        return np.copysign(np.floor(np.abs(x) + 0.5), x)
    assert mode in ("RINT", "NONE"), mode
    return np.rint(x)


def convert(values: np.ndarray, kind: np.dtype[Any], mode: str, saturates: bool) -> np.ndarray:
    """Numbers in another type. What is too large becomes the largest, or - of floats - infinite, or
    - of whole numbers - is cut to its low bits."""
    x = values.astype(np.float64)
    if kind.name in _FORMATS:
        digits, least = _FORMATS[kind.name]
        exponent = np.maximum(np.frexp(x)[1] - 1, least)
        step = np.exp2(exponent.astype(np.float64) - digits)
        top = 2.0 ** (1 - least) * (2 - 2.0**-digits)
        y = np.where(np.isfinite(x), _rounded(x / step, mode) * step, x)
        limit = top if saturates else np.inf
        return np.where(np.isfinite(x) & (np.abs(y) > top), np.copysign(limit, y), y).astype(kind)
    y = _rounded(x, mode)
    if not saturates or (values.dtype.name, kind.name) in _WRAPPING:
        whole = np.where(np.isfinite(y), y, np.where(y > 0, -1, 0))
        return np.fmod(whole, 2.0**64).astype(np.int64).astype(kind)
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    return np.clip(np.nan_to_num(y, nan=0, posinf=high, neginf=low), low, high).astype(kind)


# ---- movement ------------------------------------------------------------------------------------


@meaning("tmov")
def move(dst: Tile, src: Tile) -> None:
    if dst.loc in ("left", "right"):
        extract(dst, src, 0, 0)
    else:
        dst.write(src.read(min(src.rows, dst.rows), min(src.cols, dst.cols)))


@meaning("textract")
def extract(dst: Tile, src: Tile, row: int, col: int) -> None:
    whole = dst.loc in ("left", "right")
    rows, cols = dst.shape if whole else (dst.rows, dst.cols)
    dst.write(src.read(rows, cols, (row, col)))


@meaning("ttrans")
def transpose(dst: Tile, src: Tile, *scratch: Tile) -> None:
    dst.write(src.read().T)


@meaning("tconcat")
def concat(dst: Tile, first: Tile, second: Tile) -> None:
    both = [first.read(dst.rows, first.cols), second.read(dst.rows, second.cols)]
    dst.write(np.concatenate(both, 1))


def padding(pad: int, kind: np.dtype[Any]) -> Any:
    """The value that 1 (zero), 2 (max) or 3 (min) stands for."""
    is_float = kind.kind not in "iu"
    low, high = (-np.inf, np.inf) if is_float else (np.iinfo(kind).min, np.iinfo(kind).max)
    return {1: 0, 2: high, 3: low}[pad]


@meaning("tfillpad")
def fill_padding(dst: Tile, src: Tile) -> None:
    filled = np.full(
        (max(src.rows, dst.rows), dst.shape[1]), padding(dst.pad, dst.data.dtype), dst.data.dtype
    )
    filled[: src.rows, : src.cols] = src.read()
    dst.write(filled)


@meaning("tgather")
def gather(dst: Tile, src: Tile, index: Tile, *scratch: Tile) -> None:
    dst.write(src.data[index.read(dst.rows, dst.cols).astype(np.int64)])


@meaning("tci")
def count(dst: Tile, start: int) -> None:
    dst.write(np.int64(start) + np.arange(dst.cols)[None, :])


# ---- products ------------------------------------------------------------------------------------


def product(a: Tile, b: Tile) -> np.ndarray:
    left, right = (wide(t.read()).astype(np.float64) for t in (a, b))
    return left @ right


@meaning("tmatmul")
def matmul(dst: Tile, a: Tile, b: Tile) -> None:
    dst.write(product(a, b))


@meaning("tmatmul.acc")
def matmul_add(dst: Tile, acc: Tile, a: Tile, b: Tile) -> None:
    found = product(a, b)
    dst.write(wide(acc.read(*found.shape)) + found)


# ---- sorting: records of a value and an index, 8 bytes each --------------------------------------


@meaning("tsort32")
def sort_blocks(dst: Tile, src: Tile, index: Tile, *scratch: Tile) -> None:
    values, indices = src.read(), index.read(src.rows if index.rows > 1 else 1, src.cols)
    for row in range(src.rows):
        ids = indices[row if index.rows > 1 else 0]
        for at in range(0, src.cols, 32):
            order = at + np.argsort(-values[row, at : at + 32].astype(np.float64), kind="stable")
            _write_records(dst, row, at, values[row, order], ids[order])


@meaning("tmrgsort")
def merge_blocks(dst: Tile, src: Tile, length: int) -> None:
    """Every four sorted blocks of so many elements become one."""
    records = src.read(1, src.cols).view(np.uint8).reshape(-1, 8)
    per = 4 * int(length) * src.data.dtype.itemsize // 8
    values = records.reshape(-1).view(src.data.dtype).reshape(len(records), -1)[:, 0]
    for at in range(0, len(records) // per * per, per):
        order = at + np.argsort(-values[at : at + per].astype(np.float64), kind="stable")
        records[at : at + per] = records[order]
    dst.write(records.reshape(1, -1).view(src.data.dtype))


def _write_records(dst: Tile, row: int, at: int, values: np.ndarray, ids: np.ndarray) -> None:
    made = np.zeros((len(values), 8), np.uint8)
    made[:, : values.dtype.itemsize] = values.view(np.uint8).reshape(len(values), -1)
    made[:, 4:8] = ids.astype(np.uint32).view(np.uint8).reshape(len(ids), 4)
    elements = made.reshape(-1).view(dst.data.dtype)
    start = at * 8 // dst.data.dtype.itemsize
    dst.data[dst.places[row, start : start + len(elements)]] = elements
