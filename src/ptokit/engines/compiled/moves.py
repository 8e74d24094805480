"""Bodies that only move bytes: asked once where each byte comes from, then repeated from a table.

Of some instructions the record says that every byte they write is one they read, or the same in
every run (`isa/idioms.py: MOVES`). Which one, their body knows: it is run a few times over operands
whose bytes are numbers of their own places, digit by digit. What it leaves says of each byte from
where it came; one that stays the same although all it could be made of has changed is a constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.layout import Array
from ptokit.base.namedtuple import NamedTuple
from ptokit.engines.compiled.bodies import Differs, Noted, carry_out
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.natives import Native
from ptokit.engines.compiled.text import Function, Value
from ptokit.machine.access import Access
from ptokit.machine.gm import GmBuffer
from ptokit.machine.machine import Machine

_MOST_BYTES = 1 << 24  # of all operands: three digits
_WIDEST = 64  # bytes that are moved at once
_COUNT, _TABLE, _TO, _FROM, _WORDS = 0, 1, 3, 5, 7


@dataclass(frozen=True)
class Moved:
    """A function of the library: pieces of one size, from where to where by a table."""

    size: int

    @property
    def operands(self) -> Sequence[int]:
        return _TO, _FROM

    def text(self, name: str) -> str:
        code = Function(name)
        table, to, source = (code.pointer(at) for at in (_TABLE, _TO, _FROM))
        kind = f"<{self.size} x i8>" if self.size > 8 else f"i{8 * self.size}"

        def place(entry: Value, second: int, of: Value) -> Value:
            at = code.do(f"getelementptr i32, ptr {entry}, i64 {second}")
            offset = code.do(f"load i32, ptr {at}")
            return code.behind(of, code.do(f"zext i32 {offset} to i64"))

        def body(index: Value) -> Sequence[Value]:
            entry = code.do(f"getelementptr i64, ptr {table}, i64 {index}")
            value = code.do(f"load {kind}, ptr {place(entry, 1, source)}, align 1")
            code.act(f"store {kind} {value}, ptr {place(entry, 0, to)}, align 1")
            return ()

        code.loop("0", code.word(_COUNT), "1", body)
        return code.text()


class _Region(NamedTuple):
    """The bytes of a memory between the first and the last that operands may touch."""

    data: Array
    operand: int  # by whose place they are found
    behind: int  # how far behind that place they begin
    first: int  # the number of the first byte


def moves(note: Noted, machine: Machine) -> list[Native]:
    """The moves that a body amounts to; `Unsupported` where it does more."""
    call = note.call
    far: list[tuple[int, Access]] = []
    for (index, pattern), _ in zip(call.global_patterns, note.bound, strict=False):
        if pattern.high - pattern.low > _MOST_BYTES:
            raise Unsupported("operands that are too far apart")
        stand_in = GmBuffer(np.zeros(pattern.high - pattern.low, np.uint8))
        far.append((index, pattern.at(stand_in, -pattern.low)))
    if len(far) > 1:
        raise Unsupported("arrays of the user that may be one")
    regions = [region for region in _regions(note, far) if len(region.data)]
    if not regions:
        return []
    total = sum(len(region.data) for region in regions)
    if total > _MOST_BYTES:
        raise Unsupported("too much to move")
    kept = [region.data.copy() for region in regions]
    try:
        left = [_left(note, machine, far, regions, tags) for tags in _digits(total)]
    except Differs:
        raise Unsupported("what is undefined depends on values") from None
    finally:
        for region, before in zip(regions, kept, strict=True):
            region.data[:] = before
    return _natives(regions, *_sources(left))


def _regions(note: Noted, far: Sequence[tuple[int, Access]]) -> Iterator[_Region]:
    call, first = note.call, 0
    near = [(call.insn.names.index(name), access) for name, access in call.handed.items()]
    near += [(call.insn.names.index(access.operand), access) for access in call.cleared]
    together: dict[int, list[tuple[int, Access]]] = {}
    for index, access in (*near, *far):
        together.setdefault(id(access.memory), []).append((index, access))
    for operands in together.values():
        low = min(access.offset + access.pattern.low for _, access in operands)
        high = max(access.offset + access.pattern.high for _, access in operands)
        index, access = operands[0]
        memory = access.memory.data
        yield _Region(memory[low:high], index, low - access.offset, first)
        first += high - low


def _digits(total: int) -> Iterator[Array]:
    """The numbers of all bytes, digit by digit; the first one also upside down."""
    numbers = np.arange(total)
    yield (numbers & 255).astype(np.uint8)
    yield (255 - (numbers & 255)).astype(np.uint8)
    for shift in (8, 16):
        yield (numbers >> shift & 255).astype(np.uint8)


def _left(
    note: Noted,
    machine: Machine,
    far: Sequence[tuple[int, Access]],
    regions: Sequence[_Region],
    tags: Array,
) -> Array:
    """What a body leaves of operands that hold tags."""
    for data, _, _, first in regions:
        data[:] = tags[first : first + len(data)]
    with np.errstate(all="ignore"):
        carry_out(note, machine, far)
    return np.concatenate([region.data for region in regions])


def _sources(left: Sequence[Array]) -> tuple[Array, Array, Array]:
    """The bytes that are written, whence each comes, and those that come from nowhere.

    The latter count on behind all others.
    """
    low, mirrored, *higher = (each.astype(np.int64) for each in left)
    is_moved = low + mirrored == 255
    source = low.copy()
    for digit, values in enumerate(higher, 1):
        source += values << 8 * digit
    total = len(low)
    is_same = (low == mirrored) & np.logical_and.reduce([low == each for each in higher])
    if not (is_moved | is_same).all() or (source[is_moved] >= total).any():
        raise Unsupported("bytes that are computed")
    written = np.flatnonzero(is_same | (source != np.arange(total)))
    constants = written[is_same[written]]
    source[constants] = total + np.arange(len(constants))
    if np.isin(source[written], written).any():
        raise Unsupported("bytes that are moved and overwritten")
    return written, source[written], low[constants].astype(np.uint8)


def _natives(
    regions: Sequence[_Region], written: Array, source: Array, constants: Array
) -> list[Native]:
    if not len(written):
        return []
    starts = np.array([region.first for region in regions])
    total = regions[-1].first + len(regions[-1].data)
    to = np.searchsorted(starts, written, "right") - 1
    origin = np.searchsorted(np.append(starts, total), source, "right") - 1
    pairs = to * (len(regions) + 1) + origin
    breaks = (np.diff(written) != 1) | (np.diff(source) != 1) | (np.diff(pairs) != 0)
    begins = np.concatenate([[0], np.flatnonzero(breaks) + 1])
    lengths = np.diff(np.append(begins, len(written)))
    shared = gcd(*lengths.tolist())
    size = min(shared & -shared, _WIDEST)
    pieces = slice(None, None, size)
    found: list[Native] = []
    for pair in np.unique(pairs):
        here = pairs[pieces] == pair
        region = regions[pair // (len(regions) + 1)]
        number = pair % (len(regions) + 1)
        is_constant = number == len(regions)
        begin = total if is_constant else regions[number].first
        offsets = [written[pieces][here] - region.first, source[pieces][here] - begin]
        entries = np.stack(offsets, axis=1).astype(np.uint32)
        table = np.frombuffer(entries.tobytes() + constants.tobytes(), np.uint8)
        words = [0] * _WORDS
        words[_COUNT] = len(entries)
        places = [(_TO, region.operand, region.behind)]
        own = [(_TABLE, 0)]
        if is_constant:
            own.append((_FROM, entries.nbytes))
        else:
            places.append((_FROM, regions[number].operand, regions[number].behind))
        found.append(Native(Moved(size), tuple(words), tuple(places), 0, table, tuple(own)))
    return found
