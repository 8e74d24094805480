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
from functools import partial
from typing import Any

from ptokit.base.comm_enums import DmaEngine
from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import u8
from ptokit.base.enums import Direction, FIFOType, VecCubeRatio
from ptokit.base.location import foreign_site, user_site
from ptokit.engines.verdicts import may_look
from ptokit.frontend.asynchronous import BuildAsyncSession, check_scratch
from ptokit.frontend.events import event_class
from ptokit.frontend.pipes import mpipe_class, pipe_class
from ptokit.frontend.scopes import misplaced, nested, opened
from ptokit.frontend.session import current
from ptokit.frontend.types import tile_class
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.effects import SIGNAL_BASE
from ptokit.isa.fifos import PipeSpec
from ptokit.isa.sessions import SdmaBaseConfig
from ptokit.machine.asynchronous import AsyncEvent
from ptokit.machine.objects import GlobalObject, TileObject
from ptokit.machine.sync import NO_OPERANDS
from ptokit.native.headers import asks, instructions, operation_classes
from ptokit.native.known import HEAD, WORD, Known, KnownRecords
from ptokit.native.library import CARRY_OUT, Library
from ptokit.native.records import Call, Memory, Reader, bits, is_elsewhere, micro_operands
from ptokit.native.scopes import VectorCode, functions

STOPPED = -(1 << 63)
QUERY, EVENT_NEW, EVENT_RECORD, EVENT_WAIT, FIFO_NEW = -2, -3, -4, -5, -6
OP_BARRIER, ASSERTION, TRAP, PRINTED = -10, -11, -12, -14
MFIFO_NEW, FIFO_END, FIFO_CLOSE = -20, -21, -22
SESSION_SDMA, SESSION_URMA, TRANSFER_FIELD, TRANSFER_WAIT, TRANSFER_TEST = range(-30, -35, -1)
END_ENTRY, END_OFFSET, END_WAITS, END_SIGNALS, END_WAIT, _END_SIGNAL = range(6)
SCOPE_BEGIN, SCOPE_END, MICRO, _MICRO_MOVE = range(-40, -44, -1)
_OF_SCOPES = range(_MICRO_MOVE, SCOPE_BEGIN + 1)
_OF_TRANSFERS = range(TRANSFER_TEST, SESSION_SDMA + 1)
PLACE = 4  # words of a record before its own: the code, and three return addresses


class Runtime:
    """The host of the kernels of a launch."""

    def __init__(
        self, libraries: Mapping[str, Library], memory: Memory, others: Mapping[str, Library] = {}
    ) -> None:
        self._libraries = dict(libraries)
        self._reader = Reader(memory)
        self._known: dict[int, KnownRecords] = {}  # by core
        self._raised: dict[int, BaseException] = {}
        self._scopes: dict[int, VectorCode] = {}  # by core
        self._waits = [asks(each) for each in instructions()]
        self._carry_out = CARRY_OUT(self.carry_out)  # kept: C++ has only its address
        # Libraries with code for cores that the kernel has no part for.
        self._others = tuple(others.values())
        self._refusing = [CARRY_OUT(partial(self._refuse, *each)) for each in others.items()]
        for library, refuse in zip(self._others, self._refusing, strict=True):
            library.connect(refuse)

    def _refuse(self, kind: str, library: Library, words: int, _: int) -> int:
        """An instruction of a library that is not the kernel's own: the kernel ends."""
        core = current().core
        _, _, *pcs = struct.unpack(f"{PLACE + 1}q", ctypes.string_at(words, 8 * (PLACE + 1)))
        error = fail(
            "cpp-core",
            "a kernel calls a function that is compiled for another kind of core",
            got=[("runs on", f"a {core.kind} core"), ("compiled for", f"a {kind} core")],
            fix="compile the source that launches it for that core as well",
            site=library.site(tuple(pcs)).location,
        )
        return self._stop(core.number, error, words)

    def _stop(self, core: int, error: BaseException, words: int) -> int:
        """Have C++ leave the kernel, to raise the error where it was entered."""
        self._raised.setdefault(core, error)
        ctypes.c_int64.from_address(words).value = -1  # no value that looks like it: the end
        return STOPPED

    def body(self, number: int, words: list[int]) -> Callable[[], None]:
        """A kernel with its arguments, as a core runs it."""
        given = (ctypes.c_int64 * max(1, len(words)))(*words)
        return self.entered(lambda: self.library.entry(number)(given))

    def entered(self, enter: Callable[[], Any]) -> Callable[[], None]:
        """Code of a kernel that is entered so, as a core runs it."""

        def run() -> None:
            core = current().core
            faulthandler.disable()  # a crash is told by whoever started this process
            library = self.library
            library.statics.become(core.number)
            self._come_into_force(library)
            enter()
            for each in self._others:
                each.loaded.ptokit_finish()
            library.statics.forget(core.number)
            raised = self._raised.pop(core.number, None)
            if raised is not None:
                raise raised

        return run

    def _come_into_force(self, library: Library) -> None:
        """Records of a library come here: devices that take turns in one process share it."""
        library.host = self
        library.connect(self._carry_out)
        library.watch(self._reader.memory.spans())

    @property
    def library(self) -> Library:
        """The code of the core in force."""
        found = self._libraries.get(current().core.kind)
        return found or next(iter(self._libraries.values()))

    def carry_out(self, words: int, count: int) -> int:
        """Do what the records ask for; the value of the last one."""
        raw, length_at = ctypes.string_at(words, 8 * count), WORD.unpack_from
        machine, library = current(), self.library
        core = machine.core
        here = self._known.setdefault(core.number, KnownRecords())
        exact, moving = here.exact, here.moving
        value, at = 0, 0
        before = foreign_site.set(None)
        try:
            while at < len(raw):
                (length,) = length_at(raw, at)
                record, at = raw[at + 8 : at + 8 * length], at + 8 * length
                near = moving.get(record[:HEAD])
                known, operands = (exact.get(record), ()) if near is None else near.find(record)
                if known is None or machine.follows:
                    value = self._read(record, machine, library, here)
                    continue
                if known.is_done:
                    continue
                foreign_site.set(known.site)
                for handle, pipe, token, site in known.row:
                    handle(pipe, token, site, NO_OPERANDS)
                if not known.row:
                    for event in known.call.events:
                        self._reader.events[event].precede(known.call.insn)
                    machine.enqueue(known.verified, operands or known.operands, known.site)
                value = 0
        except BaseException as error:
            return self._stop(core.number, error, words)
        finally:
            foreign_site.reset(before)
            library.statics.become(core.number)  # others may have gone on meanwhile
            if library.host is not self:
                self._come_into_force(library)
        return value

    def _read(self, record: bytes, machine: Any, library: Library, here: KnownRecords) -> int:
        """Do what a record asks for, and remember it where that can come again."""
        code, *all_words = struct.unpack(f"{len(record) // 8}q", record)
        core, site = machine.core, library.site(tuple(all_words[: PLACE - 1]))
        words = tuple(all_words[PLACE - 1 :])
        foreign_site.set(site)
        if code < 0:
            return self._serve(code, words)
        if core.number in self._scopes:
            raise misplaced(instructions()[code].name, False, user_site())
        waits = self._waits[code]
        call = self._reader.call(code, words, core, waits)
        if is_elsewhere(call, core):
            return 0
        if may_look(call.insn) or (waits and not call.insn.binds):
            machine.has_looked = True
        for event in call.events:
            self._reader.events[event].precede(call.insn)
        got = machine.execute(call.insn, call.operands, call.attrs, site)
        if call.given_back:
            self._give_back(call, core)
        comes_again = (call.is_fixed or call.insn.binds) and not waits and not call.insn.returns
        if comes_again and not machine.follows:
            here.keep(record, Known(call, site, machine))
        if isinstance(got, AsyncEvent):
            self._reader.transfers[number := len(self._reader.transfers) + 1] = got
            return number
        return 0 if got is None else bits(got)

    def _give_back(self, call: Call, core: Any) -> None:
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
            elif bound.is_set:
                counts = (ctypes.c_uint16 * 4)(*bound)
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

    def _serve_scope(self, service: int, words: tuple[int, ...]) -> None:
        """Vector code: a scope is recorded from its begin to its end."""
        site, core = user_site(), current().core.number
        if service == SCOPE_BEGIN:
            if core in self._scopes:
                raise nested(site)
            self._scopes[core] = VectorCode(opened(), site)
            return
        scope = self._scopes.get(core)
        if scope is None:
            if service == MICRO:
                raise misplaced(functions()[words[0]].name, True, site)
        elif service == SCOPE_END:
            self._scopes.pop(core).finish()
        elif service == MICRO:
            scope.call(words[0], micro_operands(words[1:]))
        else:
            scope.move(*words)

    def _serve_transfer(self, service: int, words: tuple[int, ...]) -> int:
        """Sessions with engines beside the core, and the events of what they were given."""
        machine, reader = current(), self._reader
        if service == SESSION_SDMA:
            number, type_, address, rows, cols, at, sync_id, *config, group = words
            scratch = reader.tile(type_, address, rows, cols, machine.core)
            check_scratch(scratch, is_tile=True)
            workspace = reader.memory.pointer(at, u8)
            given = SdmaBaseConfig(*config)
            session = reader.session(number)
            return session.build(machine, scratch, workspace, sync_id, given, group)
        if service == SESSION_URMA:
            number, at, peer = words
            build = BuildAsyncSession[DmaEngine.URMA]
            return build(reader.memory.pointer(at, u8), peer, reader.session(number))
        event = reader.transfers.get(words[0], AsyncEvent())  # of 0: nothing is pending
        if service == TRANSFER_FIELD:
            return int(event.engine) if words[1] else event.handle
        ask = event.Wait if service == TRANSFER_WAIT else event.Test
        return ask(reader.session(words[1]))

    def _serve(self, service: int, words: tuple[int, ...]) -> int:
        machine, reader = current(), self._reader
        if service == QUERY:
            core = machine.core
            signals = int(core.registers.get(SIGNAL_BASE) or 0)
            asked = core.block, machine.blocks, core.subblock, machine.subblocks, signals
            return asked[words[0]]
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
        elif service in _OF_SCOPES:
            self._serve_scope(service, words)
        elif service in _OF_TRANSFERS:
            machine.has_looked = True
            return self._serve_transfer(service, words)
        elif service == OP_BARRIER:
            barrier = INSTRUCTIONS["TSYNC"]
            machine.execute(barrier, (), (operation_classes()[words[0]],), foreign_site.get())
        elif service == ASSERTION:
            condition = ctypes.string_at(words[0]).decode()
            raise fail("PTO_ASSERT", f"an assertion of the kernel does not hold: {condition}")
        elif service == TRAP:
            raise fail("trap", "the kernel has stopped itself with trap()")
        elif service == PRINTED:
            print(ctypes.string_at(words[0]).decode(errors="replace"), end="")
        return 0
