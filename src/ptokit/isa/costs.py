"""What the time of an operation depends on: its class, and the numbers the class is a function of.

The class follows from what a record says - its meaning, its pipe, whether it only orders - and a
definition names another where that is too coarse. A class lists features; `FEATURES` says how each
is read off the operands. What one of them costs in cycles is no business of the table: a timing
model has numbers per class and target (timing/params). The pages are grouped by class.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from math import prod
from types import MappingProxyType
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.enums import Layout, TileType
from ptokit.base.namedtuple import NamedTuple
from ptokit.isa.effects import Pipe
from ptokit.isa.facts import ConvFacts, GlobalFacts, Ops, TileFacts

REPEAT = 256  # bytes that the vector unit takes at once
LANES = 64  # elements of which those functions take one step at a time that are computed in f32
FRACTAL = 16  # rows and columns of a box of the cube
BOX_BYTES = 32  # of a row of such a box: elements of k


@dataclass(frozen=True)
class Cost:
    """A class of operations that take time in the same way, and the numbers it depends on."""

    name: str
    features: tuple[str, ...] = ()
    # Part of the class that the operands decide, given which of them are written: the memories
    # between which a transfer goes.
    variant: Callable[[Ops, Collection[str]], str] | None = field(default=None, repr=False)

    def of(self, ops: Ops, written: Collection[str]) -> str:
        """The class of a call, as files of numbers name it."""
        found = "" if self.variant is None else self.variant(ops, written)
        return f"{self.name}, {found}" if found else self.name

    def measure(self, ops: Ops) -> dict[str, float]:
        """The features of a call."""
        return {name: FEATURES[name](ops) for name in self.features}


# ---- features ------------------------------------------------------------------------------------


class _Run(NamedTuple):
    """A convolution tile as whoever walks over it sees it: one row."""

    vc: int
    dtype: Any
    vr: int = 1

    @property
    def cols(self) -> int:
        return self.vc


def _tiles(ops: Ops) -> list[Any]:
    found: list[Any] = []
    for _, facts in ops:
        if isinstance(facts, TileFacts):
            found.append(facts)
        elif isinstance(facts, ConvFacts):
            found.append(_Run(prod(facts.shape), facts.dtype))
    return found


def _widest(ops: Ops) -> Any:
    """The tile over which an instruction walks: the one with the longest rows, and most of them."""
    return max(_tiles(ops), key=lambda t: (t.vr * t.vc * t.dtype.bits, t.vr))


def _up(value: float, step: float) -> int:
    return int(-(-value // step))


def _row_bytes(tile: Any) -> float:
    return tile.vc * tile.dtype.bits / 8


def _is_flat(tile: Any) -> bool:
    """Whether nothing lies between the rows."""
    return tile.vr == 1 or tile.vc == tile.cols


def _row_repeats(ops: Ops) -> float:
    tile = _widest(ops)
    return tile.vr * _up(_row_bytes(tile), REPEAT)


def _flat_repeats(ops: Ops) -> float:
    tile = _widest(ops)
    if _is_flat(tile):
        return _up(tile.vr * _row_bytes(tile), REPEAT)
    return tile.vr * _up(_row_bytes(tile), REPEAT)


def _chunks(ops: Ops) -> float:
    tile = _widest(ops)
    if _is_flat(tile):
        return _up(tile.vr * tile.vc, LANES)
    return tile.vr * _up(tile.vc, LANES)


def _rows(ops: Ops) -> float:
    return _widest(ops).vr


def _separate_rows(ops: Ops) -> float:
    """Rows that are a loop of their own: one where the tile is a single run."""
    tile = _widest(ops)
    return 1 if _is_flat(tile) else tile.vr


def _narrow_rows(ops: Ops) -> float:
    """Rows that a single step reads: there is nothing to fold before they are reduced."""
    tile = _widest(ops)
    return tile.vr if _row_bytes(tile) <= REPEAT else 0


def _exact_chunks(ops: Ops) -> float:
    """Steps of the algorithm that a template argument asks for instead of the quick one."""
    chosen = ops.attrs.get("PrecisionType")
    return _chunks(ops) if chosen is not None and chosen.name == "HIGH_PRECISION" else 0


def _packed_chunks(ops: Ops) -> float:
    """Steps over elements of less than a byte, of which each is put together from parts."""
    return _chunks(ops) if ops.dst.dtype.bits < 8 else 0


def _elements(ops: Ops) -> float:
    tile = _widest(ops)
    return tile.vr * tile.vc


def _product(ops: Ops) -> float:
    """Boxes that are multiplied, one a cycle."""
    a, b = ops.aMatrix, ops.bMatrix
    return _up(a.vr, FRACTAL) * _up(_row_bytes(a), BOX_BYTES) * _up(b.vc, FRACTAL)


def _globals(ops: Ops) -> list[Any]:
    return [facts for _, facts in ops if isinstance(facts, GlobalFacts)]


def moved_bytes(ops: Ops) -> float:
    """The bytes a transfer carries: of the view in global memory where there is one."""
    views = _globals(ops)
    if views:
        return sum(prod(view.shape) * view.dtype.bits / 8 for view in views)
    tiles = _tiles(ops)
    return min(t.vr * t.vc * t.dtype.bits / 8 for t in tiles) if tiles else 0


def _transfers(ops: Ops) -> float:
    """Transfers an instruction is made of: one moves rows of a matrix, or boxes of any number."""
    return sum(prod(view.shape[: 3 if view.layout in _PLAIN else 1]) for view in _globals(ops)) or 1


_PLAIN = (Layout.ND, Layout.DN)


def _records(ops: Ops) -> float:
    return max((t.vr * t.vc * t.dtype.bits / 64 for t in _tiles(ops)), default=0)


FEATURES: Mapping[str, Callable[[Ops], float]] = MappingProxyType(
    {
        "rows": _rows,
        "separate_rows": _separate_rows,
        "narrow_rows": _narrow_rows,
        "row_repeats": _row_repeats,
        "flat_repeats": _flat_repeats,
        "chunks": _chunks,
        "exact_chunks": _exact_chunks,
        "packed_chunks": _packed_chunks,
        "elements": _elements,
        "boxes": _product,
        "bytes": moved_bytes,
        "transfers": _transfers,
        "records": _records,
    }
)


def _space(loc: TileType) -> str:
    return {
        TileType.Vec: "UB",
        TileType.Mat: "L1",
        TileType.Left: "L0A",
        TileType.Right: "L0B",
        TileType.Acc: "L0C",
    }.get(loc, loc.name)


def _way(ops: Ops, written: Collection[str]) -> str:
    """From which memory to which: of the first source and the first result that are data."""
    ends, small = {True: "", False: ""}, False
    for name, facts in ops:
        if isinstance(facts, TileFacts | ConvFacts | GlobalFacts):
            small = small or facts.dtype.bits < 8
            where = "GM" if isinstance(facts, GlobalFacts) else _space(facts.spec.loc)
            where += " (convolution)" if isinstance(facts, ConvFacts) else ""
            ends[name in written] = ends[name in written] or where
    return f"{ends[False]} to {ends[True]}{', sub-byte' if small else ''}"


def _cube_type(ops: Ops, written: Collection[str]) -> str:
    """Elements of less than a byte go through the cube at a pace of their own."""
    return "sub-byte" if ops.aMatrix.dtype.bits < 8 else ""


# ---- classes -------------------------------------------------------------------------------------

_VECTOR = ("rows", "separate_rows", "row_repeats", "flat_repeats")

UNARY = Cost("elementwise, one source", _VECTOR)
ELEMENTWISE = Cost("elementwise, two sources", _VECTOR)
TILE_SCALAR = Cost("elementwise, tile and number", _VECTOR)
DIVISION = Cost("division", (*_VECTOR, "chunks", "exact_chunks"))
FUNCTION = Cost("functions", (*_VECTOR, "chunks", "exact_chunks"))
SELECTION = Cost("comparison and selection", (*_VECTOR, "chunks"))
CONVERSION = Cost("conversion", (*_VECTOR, "chunks", "packed_chunks"))
BROADCAST = Cost("broadcast", _VECTOR)
REDUCTION = Cost("reduction of rows", ("narrow_rows", "row_repeats"))
COLUMN_REDUCTION = Cost("reduction of columns", ("rows", "row_repeats"))
VECTOR = Cost("other vector work", _VECTOR)
MATRIX = Cost("matrix product", ("boxes",), _cube_type)
TRANSFER = Cost("transfer", ("bytes", "transfers"), _way)
SCALAR = Cost("scalar unit")
ORDER = Cost("order of work")
FIFO = Cost("FIFO between cores", ("bytes", "transfers"), _way)

COMMUNICATION = Cost("between devices", ("bytes",))
NO_WORK = Cost("no work")  # of what is said about memory, and not done
GATHER = Cost("gather and scatter", ("elements", "row_repeats"))
GENERATE = Cost("generated values", ("row_repeats",))
QUANTISE = Cost("quantisation", _VECTOR)
SORT = Cost("sorting", ("records",))

_BY_PIPE = {Pipe.V: VECTOR, Pipe.M: MATRIX, Pipe.S: SCALAR, None: SCALAR}


def by_sources(cost: Cost, sources: Sequence[tuple[str, ...]]) -> Cost:
    """The class of elementwise work by what meets there; `sources` are their kinds."""
    if cost is not ELEMENTWISE:
        return cost
    tiles = sum("tile" in kinds for kinds in sources)
    if tiles > 1:
        return ELEMENTWISE
    return TILE_SCALAR if len(sources) > tiles or not tiles else UNARY


def class_of(pipe: Pipe | Callable[..., Any] | None, orders: bool, acts_on_fifo: bool) -> Cost:
    """The class of an operation whose meaning is a body, from where it runs and what it orders."""
    if acts_on_fifo:
        return FIFO
    if orders:
        return ORDER
    return TRANSFER if callable(pipe) else _BY_PIPE.get(pipe, TRANSFER)
