"""Reading records: from the words that a kernel leaves to the operands of an instruction."""

from __future__ import annotations

import ctypes
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import numpy as np

from ptokit.base.comm_enums import CcuInputSource
from ptokit.base.convs import CONV_PARAMETERS
from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import DType, u8
from ptokit.base.enums import BLayout, CompactMode, Layout, SLayout, TileType
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import TileSpec
from ptokit.frontend.comm_types import CcuTriggerContext, ParallelGroup
from ptokit.frontend.instruction import resolved
from ptokit.isa.fifos import FixpipeParams
from ptokit.isa.sort_records import MrgSortExecutedNumList
from ptokit.isa.spec import Insn
from ptokit.machine.asynchronous import AsyncEvent, AsyncSession, PrefetchAsyncContext
from ptokit.machine.core import Core
from ptokit.machine.gm import GmBuffer
from ptokit.machine.objects import ConvObject, GlobalObject, Pointer, TileObject
from ptokit.native.headers import elements, enumeration_types, instructions
from ptokit.native.scopes import Named, OnChip, Register

TILE, TENSOR, CONV, INTEGER, REAL, FLAG, ENUM, POINTER, EVENT, FIFO, OBJECT = range(1, 12)
GROUP, SESSION, TRIGGER, CONTEXT = range(12, 16)
_UNBOUND = -1
_NOTHING = np.zeros(64, np.uint8)


def real(word: int) -> float:
    """The number whose bits a word holds."""
    return struct.unpack("d", struct.pack("q", word))[0]


def bits(value: Any) -> int:
    """A value as a word that is given back."""
    if isinstance(value, float | np.floating):
        return struct.unpack("q", struct.pack("d", float(value)))[0]
    return int(value)


class Memory:
    """The arrays that pointers of a kernel may point into."""

    def __init__(self, arrays: Iterable[Any]) -> None:
        self._buffers: list[GmBuffer] = []
        self._starts: list[int] = []
        self.reached: set[int] = set()  # where arrays begin that pointers were made into
        for each in arrays:
            self.add(GmBuffer(each))

    def add(self, buffer: GmBuffer) -> None:
        at = bisect_right(self._starts, buffer.base)
        self._starts.insert(at, buffer.base)
        self._buffers.insert(at, buffer)

    def remove(self, address: int) -> bool:
        """Forget the array that begins there; whether there was one."""
        at = bisect_right(self._starts, address) - 1
        if at < 0 or self._starts[at] != address:
            return False
        del self._starts[at], self._buffers[at]
        return True

    def spans(self) -> list[int]:
        """The first byte of each array, and the one behind its last."""
        ends = (each.base + each.nbytes for each in self._buffers)
        return [at for span in zip(self._starts, ends, strict=True) for at in span]

    def holding(self, address: int) -> GmBuffer | None:
        """The array that an address leads into, or right behind."""
        at = bisect_right(self._starts, address) - 1
        found = self._buffers[at] if at >= 0 else None
        return found if found is not None and address <= found.base + found.nbytes else None

    def pointer(self, address: int, element: DType) -> Pointer | None:
        if not address:
            return None
        found = self.holding(address)
        if found is None:
            raise fail(
                "gm-pointer",
                "a pointer leads to no array that the kernel was given",
                got=[("address", hex(address))],
                fix="pass the array as an argument, or allocate it with aclrtMalloc",
            )
        self.reached.add(found.base)
        return Pointer(found, element, address - found.base)


class Call(NamedTuple):
    """An instruction with all that it is called with."""

    insn: Insn
    operands: tuple[Any, ...]
    attrs: tuple[Any, ...]
    events: tuple[int, ...]  # that it waits for
    given_back: tuple[tuple[Any, int], ...]  # objects of C++ that it may bind, and where they are
    is_fixed: bool  # whether the same words mean the same again
    views: tuple[tuple[int, GlobalObject], ...] = ()  # and the words that say where they begin


def is_elsewhere(call: Call, core: Core) -> bool:
    """Whether a core meets a transfer of the other kind of core: for it that is no instruction.

    Both kinds run the same source; what moves between global memory and a memory that only the
    other kind has is done there, and so is what fills L1.
    """
    insn, is_vector = call.insn, core.kind == "vector"
    tiles = [each.spec.loc for each in call.operands if isinstance(each, TileObject | ConvObject)]
    if core.kind == "mix" or not tiles:
        return False
    if any(isinstance(each, GlobalObject) for each in call.operands):
        return all((loc == TileType.Vec) != is_vector for loc in tiles)
    fills = not (insn.binds or insn.returns or insn.orders or insn.moves_entries)
    return is_vector and fills and set(tiles) == {TileType.Mat}


class Reader:
    """Reads the records of one launch."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.events: dict[int, Any] = {}
        self.fifos: dict[int, Any] = {}
        self.transfers: dict[int, AsyncEvent] = {}
        self._sessions: dict[int, AsyncSession] = {}
        self._contexts: dict[int, PrefetchAsyncContext] = {}
        self._types: dict[int, Any] = {}
        self._tiles: dict[tuple[int, ...], TileObject] = {}

    def call(self, number: int, words: tuple[int, ...], core: Core, waits: bool) -> Call:
        """The call that a record asks for; `words` follow the place.

        A kernel that `waits` has its objects still, and is told what was bound.
        """
        insn = instructions()[number]
        found = _Operands(self, core, fresh=waits or bool(insn.binds))
        template, at = [], 2
        for _ in range(words[0]):
            size, argument = _ARGUMENTS[words[at]]
            template.append(argument(*words[at + 1 : at + 1 + size]))
            at += 1 + size
        for _ in range(words[1]):
            size, operand = _OPERANDS[words[at]]
            operand(found, at + 1, *words[at + 1 : at + 1 + size])
            at += 1 + size
        record, operands, attrs = resolved(insn, tuple(template), tuple(found.args))
        back = tuple(found.back) if waits else ()
        events, views = tuple(found.events), tuple(found.views)
        return Call(record, operands, attrs, events, back, found.is_fixed, views)

    # ---- operands ---------------------------------------------------------------------------

    def tile(
        self, type_: int, address: int, rows: int, cols: int, core: Core, *, fresh: bool = False
    ) -> TileObject:
        key = (core.number, type_, address, rows, cols)
        found = None if fresh else self._tiles.get(key)
        if found is None:
            spec = self.tile_type(type_)
            known = self._tiles.get(key)
            found = TileObject(spec, rows, cols)
            if known is not None and known.storage is not None:
                found.share(known)
            elif address != _UNBOUND:
                found.bind(core.memory(spec.loc), address)
            if not fresh:
                self._tiles[key] = found
        return found

    def remember(self, tile: TileObject, type_: int, core: Core) -> None:
        """A tile that the machine has placed is meant where its address turns up again."""
        self._tiles[core.number, type_, tile.address, tile.vr, tile.vc] = tile

    def tile_type(self, at: int) -> TileSpec:
        spec = self._types.get(at)
        if spec is None:
            loc, element, rows, cols, b, vr, vc, s, fractal, pad, compact = _numbers(at, 11)
            spec = self._types[at] = TileSpec.of(
                TileType(loc), elements()[element - 1], rows, cols, BLayout(b), vr, vc,
                SLayout(s), fractal, pad, CompactMode(compact),
            )  # fmt: skip
            for broken in spec.violations():
                raise fail(broken.code, broken.rule, got=broken.got)
        return spec

    def tensor(
        self, type_: int, address: int, sizes: tuple[int, ...], strides: tuple[int, ...]
    ) -> GlobalObject:
        spec = self._types.get(type_)
        if spec is None:
            element, layout, *dims = _numbers(type_, 12)
            spec = self._types[type_] = GlobalSpec.of(
                elements()[element - 1], tuple(dims[:5]), tuple(dims[5:]), Layout(layout)
            )
        return GlobalObject(spec, self.memory.pointer(address, spec.dtype), sizes, strides)

    def session(self, number: int) -> AsyncSession:
        """A session of C++, by the number that it has there."""
        return self._sessions.setdefault(number, AsyncSession())

    def context(self, own: int, workspace: int, external: int) -> PrefetchAsyncContext:
        """What a prefetch is called with; its own session has the first number."""
        found = self._contexts.get(own)
        if found is None:
            at = self.memory.pointer(workspace, u8)
            given = self.session(external) if external else None
            found = self._contexts[own] = PrefetchAsyncContext(at, given)
            self._sessions[own] = found.session
        return found

    def group(self, tensors: int, size: int, count: int, root: int) -> ParallelGroup:
        """A group of views, which lie in an array of C++."""
        views: list[GlobalObject] = []
        for number in range(count):
            type_, address, *rest = _numbers(tensors + number * size, 12)
            views.append(self.tensor(type_, address, tuple(rest[:5]), tuple(rest[5:])))
        return ParallelGroup(views, root)

    def conv(self, words: tuple[int, ...], core: Core) -> ConvObject:
        type_, address, *rest = words
        spec = self._types.get(type_)
        if spec is None:
            loc, element, size, layout, rank, *dims = _numbers(type_, 11)
            spec = self._types[type_] = ConvSpec.of(
                TileType(loc), elements()[element - 1], size, Layout(layout), tuple(dims[:rank])
            )
        found = ConvObject(spec, tuple(rest[: len(spec.shape)]))
        if address != _UNBOUND:
            found.bind(core.memory(spec.loc), address)
        at = 6
        for each in CONV_PARAMETERS.values():
            count = len(each.entries) or 1
            values = rest[at : at + count]
            given = (
                tuple(values)
                if each.entries
                else real(values[0])
                if each.kind == "num"
                else values[0]
            )
            found.configure(each, given)
            at += count
        return found


class _Operands:
    """The operands of one record: each kind is read by the method that the table names."""

    def __init__(self, reader: Reader, core: Core, *, fresh: bool) -> None:
        self.reader, self.core, self.fresh = reader, core, fresh
        self.args: list[Any] = []
        self.events: list[int] = []
        self.back: list[tuple[Any, int]] = []
        self.views: list[tuple[int, GlobalObject]] = []
        self.is_fixed = not fresh

    def tile(self, at: int, type_: int, address: int, rows: int, cols: int, where: int) -> None:
        tile = self.reader.tile(type_, address, rows, cols, self.core, fresh=self.fresh)
        self.args.append(tile)
        self.back.append((tile, where))

    def tensor(self, at: int, type_: int, address: int, *rest: int) -> None:
        view = self.reader.tensor(type_, address, rest[:5], rest[5:10])
        self.args.append(view)
        self.views.append((at + 1, view))
        self.back.append((view, rest[10]))

    def conv(self, at: int, *words: int) -> None:
        self.args.append(self.reader.conv(words, self.core))

    def integer(self, at: int, value: int) -> None:
        self.args.append(value)

    def flag(self, at: int, value: int) -> None:
        self.args.append(bool(value))

    def real(self, at: int, value: int) -> None:
        self.args.append(real(value))

    def choice(self, at: int, kind: int, value: int) -> None:
        self.args.append(_choice(kind, value))

    def pointer(self, at: int, address: int, element: int) -> None:
        kind = elements()[element - 1] if element else u8
        found = self.reader.memory.pointer(address, kind)
        self.args.append(Pointer(GmBuffer(_NOTHING), kind) if found is None else found)

    def event(self, at: int, handle: int) -> None:
        self.events.append(handle)

    def fifo(self, at: int, handle: int) -> None:
        self.args.append(self.reader.fifos[handle])
        self.is_fixed = False

    def group(self, at: int, *words: int) -> None:
        self.args.append(self.reader.group(*words))
        self.is_fixed = False

    def session(self, at: int, number: int) -> None:
        self.args.append(self.reader.session(number))
        self.is_fixed = False

    def trigger(self, at: int, slot: int, mask: int, member: int, source: int) -> None:
        self.args.append(CcuTriggerContext(slot, mask, member, CcuInputSource(source)))
        self.is_fixed = False

    def context(self, at: int, *words: int) -> None:
        self.args.append(self.reader.context(*words))
        self.is_fixed = False

    def counts(self, at: int, where: int, size: int) -> None:
        counts = MrgSortExecutedNumList()
        self.args.append(counts)
        self.back.append((counts, where))
        self.is_fixed = False


def _choice(kind: int, value: int) -> Any:
    return enumeration_types()[kind - 1](value)


def _parameters(*values: int) -> FixpipeParams:
    """The values of a parameter set, each as its field is declared."""
    kinds: list[Any] = [type(each.default) for each in fields(FixpipeParams)]
    return FixpipeParams(*(kind(value) for kind, value in zip(kinds, values, strict=True)))


_CONV_WORDS = sum(len(each.entries) or 1 for each in CONV_PARAMETERS.values())
# How many words of each kind follow it, and who reads them.
_OPERANDS: dict[int, tuple[int, Callable[..., None]]] = {
    TILE: (5, _Operands.tile),
    TENSOR: (13, _Operands.tensor),
    CONV: (8 + _CONV_WORDS, _Operands.conv),
    INTEGER: (1, _Operands.integer),
    REAL: (1, _Operands.real),
    FLAG: (1, _Operands.flag),
    ENUM: (2, _Operands.choice),
    POINTER: (2, _Operands.pointer),
    EVENT: (1, _Operands.event),
    FIFO: (1, _Operands.fifo),
    OBJECT: (2, _Operands.counts),
    GROUP: (4, _Operands.group),
    SESSION: (1, _Operands.session),
    TRIGGER: (4, _Operands.trigger),
    CONTEXT: (3, _Operands.context),
}
_ARGUMENTS: dict[int, tuple[int, Callable[..., Any]]] = {
    INTEGER: (1, int),
    FLAG: (1, bool),
    ENUM: (2, _choice),
    OBJECT: (len(fields(FixpipeParams)), _parameters),
}


def micro_operands(words: tuple[int, ...]) -> list[Any]:
    """The operands of a micro-operation: their number, and each with its kind."""
    found, at = list[Any](), 1
    for _ in range(words[0]):
        size, read = _OF_MICRO[words[at]]
        found.append(read(*words[at + 1 : at + 1 + size]))
        at += 1 + size
    return found


def _element(number: int) -> DType | None:
    return elements()[number - 1] if number else None


REGISTER, LOCAL, WORD = range(30, 33)
_OF_MICRO: dict[int, tuple[int, Callable[..., Any]]] = {
    REGISTER: (2, lambda number, kind: Register(number, _element(kind))),
    LOCAL: (3, lambda loc, at, kind: OnChip(TileType(loc), at, _element(kind) or u8)),
    WORD: (1, Named),
    INTEGER: (1, int),
    FLAG: (1, bool),
    REAL: (1, real),
    ENUM: (2, _choice),
}


def _numbers(at: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"{count}q", ctypes.string_at(at, 8 * count))
