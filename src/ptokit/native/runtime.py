"""Carrying out what a compiled kernel asks for, on the machine in force.

A kernel runs as machine code; each of its instructions reaches `carry_out` as a record. Whatever is
raised there stops the kernel: the seam says so, C++ unwinds its own frames, and the error is raised
again where the kernel was entered. No exception crosses a frame of the other language.
"""

from __future__ import annotations

import ctypes
import faulthandler
import struct
from collections.abc import Callable, Mapping
from typing import Any

from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import u8
from ptokit.base.enums import Direction, FIFOType, VecCubeRatio
from ptokit.base.location import foreign_site
from ptokit.frontend.events import event_class
from ptokit.frontend.pipes import mpipe_class, pipe_class
from ptokit.frontend.session import current
from ptokit.frontend.types import tile_class
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.fifos import PipeSpec
from ptokit.machine.objects import GlobalObject, TileObject
from ptokit.native.headers import asks, instructions, operation_classes
from ptokit.native.library import CARRY_OUT, Library
from ptokit.native.records import Call, Memory, Reader, bits

STOPPED = -(1 << 63)
QUERY, EVENT_NEW, EVENT_RECORD, EVENT_WAIT, FIFO_NEW = -2, -3, -4, -5, -6
OP_BARRIER, ASSERTION, TRAP = -10, -11, -12
MFIFO_NEW, FIFO_END, FIFO_CLOSE = -20, -21, -22
END_ENTRY, END_OFFSET, END_WAITS, END_SIGNALS, END_WAIT, _END_SIGNAL = range(6)
PLACE = 4  # words of a record before its own: the code, and three return addresses


class Runtime:
    """The host of the kernels of a launch."""

    def __init__(self, libraries: Mapping[str, Library], memory: Memory) -> None:
        self._libraries = dict(libraries)
        self._reader = Reader(memory)
        self._calls: dict[Any, tuple[Call, Any]] = {}
        self._raised: dict[int, BaseException] = {}
        self._waits = [asks(each) for each in instructions()]
        self._carry_out = CARRY_OUT(self.carry_out)  # kept: C++ has only its address
        for each in self._libraries.values():
            each.connect(self._carry_out)

    def body(self, number: int, words: list[int]) -> Callable[[], None]:
        """A kernel with its arguments, as a core runs it."""
        given = (ctypes.c_int64 * max(1, len(words)))(*words)
        return self.entered(lambda: self.library.entry(number)(given))

    def entered(self, enter: Callable[[], Any]) -> Callable[[], None]:
        """Code of a kernel that is entered so, as a core runs it."""

        def run() -> None:
            core = current().core
            faulthandler.disable()  # a crash is told by whoever started this process
            self.library.watch(self._reader.memory.spans())
            enter()
            raised = self._raised.pop(core.number, None)
            if raised is not None:
                raise raised

        return run

    @property
    def library(self) -> Library:
        """The code of the core in force."""
        found = self._libraries.get(current().core.kind)
        return found or next(iter(self._libraries.values()))

    def carry_out(self, words: int, count: int) -> int:
        """Do what the records ask for; the value of the last one."""
        all_words = struct.unpack(f"{count}q", ctypes.string_at(words, 8 * count))
        machine, library = current(), self.library
        core = machine.core
        value, at = 0, 0
        token = foreign_site.set(None)
        try:
            while at < count:
                end = at + all_words[at]
                record = all_words[at + 1 : end]
                at = end
                if record[0] < 0:
                    foreign_site.set(library.site(record[1:PLACE]))
                    value = self._serve(record[0], record[PLACE:])
                    continue
                known = self._calls.get((core.number, record))
                call, site = known or self._read(record, core, library)
                foreign_site.set(site)
                for event in call.events:
                    self._reader.events[event].precede(call.insn)
                got = machine.execute(call.insn, call.operands, call.attrs, site)
                value = 0 if got is None else bits(got)
                if call.given_back:
                    self._give_back(call, record, core)
        except BaseException as error:
            self._raised.setdefault(core.number, error)
            return STOPPED
        finally:
            foreign_site.reset(token)
        return value

    def _read(self, record: tuple[int, ...], core: Any, library: Library) -> tuple[Call, Any]:
        site = library.site(record[1:PLACE])
        foreign_site.set(site)
        call = self._reader.call(record[0], record[PLACE:], core, self._waits[record[0]])
        if call.is_fixed:
            self._calls[core.number, record] = call, site
        return call, site

    def _give_back(self, call: Call, record: tuple[int, ...], core: Any) -> None:
        """Tell objects of C++ what was bound."""
        for bound, where in call.given_back:
            if isinstance(bound, TileObject):
                if where and bound.storage is not None:
                    ctypes.c_uint64.from_address(where).value = bound.address
                    ctypes.c_bool.from_address(where + 8).value = True
                    type_ = ctypes.c_int64.from_address(where + 32).value
                    self._reader.remember(bound, type_, core)
            elif isinstance(bound, GlobalObject):
                if where and bound.pointer is not None:
                    at = bound.pointer.buffer.base + bound.pointer.offset
                    ctypes.c_uint64.from_address(where).value = at
            else:
                counts = (ctypes.c_uint16 * 4)(*(bound[n] for n in range(4)))
                ctypes.memmove(where, counts, 8)

    def _at_end(self, handle: int, consumes: int, what: int, value: int, more: int) -> None:
        """Change the state of an end of a FIFO, or let it wait or signal by itself."""
        pipe = self._reader.fifos[handle]
        state = pipe.cons if consumes else pipe.prod
        waits, signals = ("isWait", "isFree") if consumes else ("isAllocate", "isRecord")
        if what == END_ENTRY:
            state.setTileId(value, more)
        elif what == END_OFFSET:
            state.setEntryOffset(value)
        elif what in (END_WAITS, END_SIGNALS):
            setattr(state, waits if what == END_WAITS else signals, bool(value))
        else:
            waits = what == END_WAIT
            pipe.order(is_producer=not consumes, waits=waits, site=foreign_site.get())

    def _serve(self, service: int, words: tuple[int, ...]) -> int:
        machine, reader = current(), self._reader
        if service == QUERY:
            core = machine.core
            return (core.block, machine.blocks, core.subblock, machine.subblocks)[words[0]]
        if service == EVENT_NEW:
            handle, src, dst, automatic, number = words
            classes = operation_classes()
            made = event_class(classes[src], classes[dst], bool(automatic), number)
            reader.events[handle] = made()
        elif service == EVENT_RECORD:
            reader.events[words[0]].record(flag=words[1])
        elif service == EVENT_WAIT:
            reader.events[words[0]].wait(words[1])
        elif service == FIFO_NEW:
            handle, flag, way, size, slots, local, alone, unit, slots_at, c2v, v2c = words
            spec = PipeSpec(flag, Direction(way), size, slots, local, bool(alone), bool(unit))
            at = reader.memory.pointer(slots_at, u8)
            reader.fifos[handle] = pipe_class(spec)(at, c2v, v2c)
        elif service == MFIFO_NEW:
            handle, flag, kind, depth, made, taken, unit, local, ratio, slots_at, base = words
            tiles = tile_class(reader.tile_type(made)), tile_class(reader.tile_type(taken))
            ring = flag, FIFOType(kind), depth, *tiles, bool(unit), local, VecCubeRatio(ratio)
            is_global = ring[1] == FIFOType.GM_FIFO
            at = reader.memory.pointer(slots_at, u8) if is_global else slots_at
            reader.fifos[handle] = mpipe_class(ring)(at, base)
        elif service == FIFO_END:
            self._at_end(*words)
        elif service == FIFO_CLOSE:
            pipe = reader.fifos.pop(words[0])
            pipe.close(machine.core)
            machine.core.pipes.remove(pipe)
        elif service == OP_BARRIER:
            barrier = INSTRUCTIONS["TSYNC"]
            machine.execute(barrier, (), (operation_classes()[words[0]],), foreign_site.get())
        elif service == ASSERTION:
            condition = ctypes.string_at(words[0]).decode()
            raise fail("PTO_ASSERT", f"an assertion of the kernel does not hold: {condition}")
        elif service == TRAP:
            raise fail("trap", "the kernel has stopped itself with trap()")
        return 0
