"""Reading records: from the words that a kernel leaves to the operands of an instruction."""

from __future__ import annotations

import ctypes
import struct
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from ptokit.base.convs import CONV_PARAMETERS
from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import DType, u8
from ptokit.base.enums import BLayout, CompactMode, Layout, SLayout, TileType
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import TileSpec
from ptokit.frontend.instruction import resolved
from ptokit.isa.fifos import FixpipeParams
from ptokit.isa.sort_records import MrgSortExecutedNumList
from ptokit.isa.spec import Insn
from ptokit.machine.core import Core
from ptokit.machine.gm import GmBuffer
from ptokit.machine.objects import ConvObject, GlobalObject, Pointer, TileObject
from ptokit.native.headers import elements, enumeration_types, instructions

TILE, TENSOR, CONV, INTEGER, REAL, FLAG, ENUM, POINTER, EVENT, FIFO, OBJECT = range(1, 12)
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

    def pointer(self, address: int, element: DType) -> Pointer | None:
        if not address:
            return None
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address > self._starts[at] + self._buffers[at].nbytes:
            raise fail(
                "gm-pointer",
                "a pointer leads to no array that the kernel was given",
                got=[("address", hex(address))],
                fix="pass the array as an argument, or allocate it with aclrtMalloc",
            )
        return Pointer(self._buffers[at], element, address - self._starts[at])


class Call(NamedTuple):
    """An instruction with all that it is called with."""

    insn: Insn
    operands: tuple[Any, ...]
    attrs: tuple[Any, ...]
    events: tuple[int, ...]  # that it waits for
    given_back: tuple[tuple[Any, int], ...]  # objects of C++ that it may bind, and where they are
    is_fixed: bool  # whether the same words mean the same again
    views: tuple[tuple[int, GlobalObject], ...] = ()  # and the words that say where they begin


class Reader:
    """Reads the records of one launch."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.events: dict[int, Any] = {}
        self.fifos: dict[int, Any] = {}
        self._types: dict[int, Any] = {}
        self._tiles: dict[tuple[int, ...], TileObject] = {}

    def call(self, number: int, words: tuple[int, ...], core: Core, waits: bool) -> Call:
        """The call that a record asks for; `words` follow the place.

        A kernel that `waits` has its objects still, and is told what was bound.
        """
        insn = instructions()[number]
        binds = waits or bool(insn.binds)
        template, at = [], 2
        for _ in range(words[0]):
            kind, value = words[at], words[at + 1]
            if kind == OBJECT:
                template.append(_parameters(words[at + 1 : at + 9]))
                at += 9
                continue
            if kind == ENUM:
                template.append(enumeration_types()[value - 1](words[at + 2]))
                at += 3
                continue
            template.append(bool(value) if kind == FLAG else value)
            at += 2
        args: list[Any] = []
        events: list[int] = []
        back: list[tuple[Any, int]] = []
        views: list[tuple[int, GlobalObject]] = []
        is_fixed = not binds
        for _ in range(words[1]):
            kind = words[at]
            if kind == TILE:
                _, type_, address, rows, cols, where = words[at : at + 6]
                tile = self.tile(type_, address, rows, cols, core, fresh=binds)
                args.append(tile)
                back.append((tile, where))
                at += 6
            elif kind == TENSOR:
                view = self.tensor(
                    words[at + 1], words[at + 2], words[at + 3 : at + 8], words[at + 8 : at + 13]
                )
                args.append(view)
                views.append((at + 2, view))
                back.append((view, words[at + 13]))
                at += 14
            elif kind == CONV:
                size = 9 + _CONV_WORDS
                args.append(self.conv(words[at + 1 : at + size], core))
                at += size
            elif kind in (INTEGER, FLAG):
                args.append(bool(words[at + 1]) if kind == FLAG else words[at + 1])
                at += 2
            elif kind == REAL:
                args.append(real(words[at + 1]))
                at += 2
            elif kind == ENUM:
                args.append(enumeration_types()[words[at + 1] - 1](words[at + 2]))
                at += 3
            elif kind == POINTER:
                element = elements()[words[at + 2] - 1] if words[at + 2] else u8
                found = self.memory.pointer(words[at + 1], element)
                args.append(Pointer(GmBuffer(_NOTHING), element) if found is None else found)
                at += 3
            elif kind == EVENT:
                events.append(words[at + 1])
                at += 2
            elif kind == FIFO:
                args.append(self.fifos[words[at + 1]])
                is_fixed = False
                at += 2
            else:
                counts = MrgSortExecutedNumList()
                args.append(counts)
                back.append((counts, words[at + 1]))
                is_fixed = False
                at += 3
        record, operands, attrs = resolved(insn, tuple(template), tuple(args))
        given_back = tuple(back) if waits else ()
        return Call(record, operands, attrs, tuple(events), given_back, is_fixed, tuple(views))

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


def _parameters(values: tuple[int, ...]) -> FixpipeParams:
    """The values of a parameter set, each as its field is declared."""
    kinds: list[Any] = [type(each.default) for each in fields(FixpipeParams)]
    return FixpipeParams(*(kind(value) for kind, value in zip(kinds, values, strict=True)))


_CONV_WORDS = sum(len(each.entries) or 1 for each in CONV_PARAMETERS.values())


def _numbers(at: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"{count}q", ctypes.string_at(at, 8 * count))
