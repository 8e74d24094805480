"""Arguments for a kernel that nobody has given any: arrays as long as its views, random numbers.

What a number means - a size, a place, a length - is not written in a program. Sizes of views are
told by their use; of everything else larger values are tried first, and tamer ones where those lead
out of a view or an array. What was drawn can be drawn again from the seed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import prod
from mmap import ACCESS_COPY, mmap
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError, usage_error
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.ir.core import Function, Module, Value
from ptokit.ir.types import PtrType, ScalarType, ShapedType, ViewType
from ptokit.passes.extents import extents

Draw = Callable[[], list[Any]]  # the same arguments each time

# Findings that say: with other numbers the program might have gone on.
_MISLED = frozenset(
    {"arith", "gm-bounds", "index-range", "length", "local-bounds", "offset-range", "slice-range"}
    | {"valid-capacity", "window-bounds", "E1", "E10"}
)
# The same, where whole numbers are drawn at all: loops of no rounds, shifts by too much.
_BY_NUMBERS = "poison-read"

_MEMORY = (PtrType, ViewType, ShapedType)
_PERIOD = 65_521  # elements after which random contents repeat: a prime, so that no two rows agree
_MOST = 1 << 20  # elements of an array that are all random; then pieces of it, for less memory
_PIECE, _APART = 1 << 10, 16_381  # how long the pieces are, and how far apart
_GAPS = 31  # one in so many is taken
_ALL_OF_THEM = 8  # bits of whole numbers that are drawn from all of theirs
_UNKNOWN = 1 << 18  # elements of an array that no view speaks of


@dataclass(frozen=True)
class Range:
    """What is drawn: the extent of views, other numbers, and whole numbers in arrays."""

    extent: int
    number: int
    low: int
    high: int
    has_gaps: bool = False  # most of the whole numbers are -1: slots that nobody has taken
    unknown: int = _UNKNOWN

    def __str__(self) -> str:
        gaps = ", most -1" if self.has_gaps else ""
        contents = f"{self.low}..{self.high - 1}{gaps}"
        return f"sizes {self.extent}, numbers {self.number}, contents {contents}"


# From what exercises a program most to what any program can take.
RANGES = tuple(
    Range(extent, number, low, high, has_gaps, _UNKNOWN << more)
    for extent, more in ((128, 0), (32, 0), (1024, 2), (8192, 6))
    for number, low, high, has_gaps in (
        (1, 0, 128, False),
        (1, 0, 16, False),
        (1, 0, 4, False),
        (0, 0, 128, False),
        (0, 128, 256, False),
        (0, 128, 256, False),
        (0, 0, 128, True),
        (0, 0, 16, False),
        (0, 0, 2, False),
        (0, 0, 1, False),
    )
)


def is_misled(error: PtoError, function: Function | None = None, within: Range = RANGES[0]) -> bool:
    """Whether other arguments might do: a rule of an instruction counts by its last word.

    `function`: who takes them, which tells whether whole numbers are among them; `within`: what
    they were drawn from. Where bytes are undefined the extent of views does not help.
    """
    words = {code.rpartition(".")[2] for code in error.codes}
    params = () if function is None else function.params
    is_first = within.extent == RANGES[0].extent
    is_by_numbers = _BY_NUMBERS in words and is_first and any(map(_is_whole, params))
    return bool(words & _MISLED) or is_by_numbers


def _is_whole(param: Value) -> bool:
    """Whether whole numbers are drawn for a parameter, from a range."""
    kind = param.type if isinstance(param.type, ScalarType) else None
    if isinstance(param.type, _MEMORY):
        kind = param.type.element
    return kind is not None and not kind.is_float and kind.bits > _ALL_OF_THEM


def draw(
    module: Module, function: Function, seed: int, within: Range, given: Mapping[str, Any]
) -> list[Any]:
    """An argument for every parameter: what is given by name, or drawn.

    An array is given as such, or as a table with its `shape` and perhaps what to `fill` it with.
    """
    numbers = [_number(p, given.get(p.name, within.number)) for p in function.params]
    for place in extents(module, function, numbers).sizes:
        if numbers[place] is not None and function.params[place].name not in given:
            numbers[place] = within.extent
    reached = extents(module, function, numbers).elements
    values: list[Any] = []
    for place, (param, number) in enumerate(zip(function.params, numbers, strict=True)):
        asked: Any = given.get(param.name, {}) if number is None else number
        if not isinstance(asked, dict):
            values.append(np.array(asked) if number is None else asked)
            continue
        kind = element_of(param)
        shape = asked.get("shape") or _shape(param) or (reached.get(place, within.unknown),)
        if "fill" in asked:
            values.append(np.full(shape, asked["fill"], kind.np))
            continue
        rng = np.random.default_rng((seed, zlib.crc32(f"{function.name}.{place}".encode())))
        values.append(random_array(kind, tuple(shape), rng, within))
    return values


def attempts(
    module: Module, function: Function, seed: int, given: Mapping[str, Any]
) -> Iterator[tuple[Range, Draw]]:
    """How to draw arguments, from ever tamer ranges; one attempt where everything is given."""
    is_drawn = any(
        p.name not in given or (isinstance(given[p.name], dict) and "fill" not in given[p.name])
        for p in function.params
    )
    for number, within in enumerate(RANGES if is_drawn else RANGES[:1]):
        yield within, partial(draw, module, function, seed + number, within, given)


def random_array(
    kind: DType, shape: tuple[int, ...], rng: np.random.Generator, within: Range
) -> Array:
    """Normally distributed numbers; whole numbers within a range, those of 8 bits all of theirs."""
    size = prod(shape)
    period = min(size, _PERIOD)
    if kind.is_float:
        values = rng.standard_normal(period).astype(np.float32).astype(kind.np)
    elif kind.bits <= _ALL_OF_THEM:
        values = rng.integers(0, 256, period, np.uint8).view(kind.np)
    else:
        # Places lie high only in some of the arrays: others say where that is.
        is_low = within.low > 0 and rng.random() < 0.5
        low, high = (0, 4) if is_low else (within.low, within.high)
        values = rng.integers(low, high, period).astype(kind.np)
        if within.has_gaps:
            values[np.arange(period) % _GAPS != 0] = np.array(-1).astype(kind.np)
    found = _zeros(size, kind)
    filled = min(size, _MOST)
    found[:filled] = np.resize(values, filled)
    count = max(0, size - filled) // _APART
    pieces = found[filled : filled + count * _APART].reshape(count, _APART)
    pieces[:, :_PIECE] = np.resize(values, count * _PIECE).reshape(count, _PIECE)
    return found.reshape(shape)


def _zeros(size: int, kind: DType) -> Array:
    """An array of zeros; of a long one only the pages that something is written to take room.

    NumPy asks for large pages, which a few elements each would bring into being.
    """
    if size <= _MOST:
        return np.zeros(size, kind.np)
    try:
        pages = mmap(-1, size * kind.itemsize, access=ACCESS_COPY)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"there is no room for {size} elements of {kind.name}") from error
    return np.frombuffer(pages, np.uint8).view(kind.np)


def _number(param: Value, value: float) -> int | float | None:
    """The value of a parameter that is a number; None: it is memory."""
    if not isinstance(param.type, ScalarType):
        return None
    return float(value) if param.type.is_float else int(value)


def _shape(param: Value) -> tuple[int, ...]:
    shape = param.type.shape if isinstance(param.type, ViewType | ShapedType) else ()
    return tuple(shape) if shape and all(n > 0 for n in shape) else ()


def is_memory(param: Value) -> bool:
    """Whether a parameter takes an array."""
    return isinstance(param.type, _MEMORY)


def element_of(param: Value) -> DType:
    """The element type of the memory that a parameter is."""
    kind = param.type.element.dtype if isinstance(param.type, _MEMORY) else None
    if kind is None:
        what = f"%{param.name} is a {param.type}, which no array holds"
        raise usage_error("arguments", what, fix="call it from a function that takes memory")
    return kind
