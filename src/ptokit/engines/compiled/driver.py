"""Running drivers: programs as one function each, with Python for what they ask.

The function of a program (`program.py`) runs on the memories of the machine itself. An instruction
that meets operands for the first time is executed as in any other run, by the executor and with all
its checks, and taken down; when the same operands come again and again it becomes a variant
(`dispatch.py`), and Python is not asked any more. So first launches run as fast as loops do, and
every error is the one that the executor raises.

Poison is exact: variants check and mark the shadow bytes as the executor does, unless nothing has
become undefined since they last looked. Views are compared with their arrays at every call.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ptokit.base.layout import Array
from ptokit.engines.compiled.bodies import Noted
from ptokit.engines.compiled.dispatch import (
    BUFFER_WORDS,
    MISSED,
    State,
    Variant,
    dispatcher,
    orderer,
)
from ptokit.engines.compiled.held import Home, Window, chopped
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.library import NAME, Library, library
from ptokit.engines.compiled.memories import Memories
from ptokit.engines.compiled.natives import Native, Streamed
from ptokit.engines.compiled.program import Driver, Site, driver_of, is_worth
from ptokit.engines.compiled.replay import Tape
from ptokit.engines.fast import FastInterpreter, Prepared, fast_step
from ptokit.engines.steps import Step
from ptokit.engines.sync_ops import in_a_row, is_static
from ptokit.engines.values import Frame
from ptokit.ir.core import Block, Function, Module, Op
from ptokit.ir.ordering import effects_of
from ptokit.isa.effects import Signal, Wait
from ptokit.machine.access import Access
from ptokit.machine.gm import GmBuffer
from ptokit.machine.machine import Machine
from ptokit.machine.memory import Storage
from ptokit.machine.objects import TileObject
from ptokit.machine.regions import Rows
from ptokit.machine.scheduler import LaunchMachine
from ptokit.machine.sync import NO_OPERANDS

_OFTEN = 3  # times that operands must come to be worth a variant whose functions are not loaded
_MOST_VARIANTS = 64  # of one operation
_MOST_KNOWN = 1 << 11  # memories that are remembered from launch to launch
_MEMORIES, _BUFFERS = 1 << 10, 1 << 8  # of a core, beyond those for which there must be room
_STREAM = 1 << 16  # words that are written before somebody takes them
_PLACES = State.BASES, State.EPOCHS, State.SHADOWS
_ALIGNMENT = 64
_PYTHONS = -1  # a flag that Python looks after
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
_DRIVER = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


class Drivers(Prepared):
    """A module whose functions run as drivers, where they can."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.lacks: dict[str, str] = {}  # what Python executes each time, and why
        self.asked: Counter[str] = Counter()  # operations that it has executed
        self.known = Known()
        self.lock = threading.Lock()  # held while a core runs
        self._made: dict[Function, Compiled | None] = {}

    def driver(self, function: Function, blocks: int) -> Compiled | None:
        """The driver of a function; None: it is interpreted."""
        if function not in self._made and is_worth(function, blocks):
            self._made[function] = self._compiled(function)
        return self._made.get(function)

    def _compiled(self, function: Function) -> Compiled | None:
        found = library()
        if found is None:
            return None
        try:
            return Compiled(found, driver_of(self.module, function, NAME))
        except Unsupported as error:
            self.lacks[f"@{function.name}"] = str(error)
            return None

    def of(self, tape: Tape) -> Runs:
        """What runs the cores of one launch, which the tape takes down."""
        if not self.known.fits(tape):
            self.known = Known()
            self.known.fits(tape)
            for each in filter(None, self._made.values()):
                each.forget()
        tape.is_driven = True
        return Runs(self, tape)


class Runs:
    """The cores of one launch."""

    def __init__(self, drivers: Drivers, tape: Tape) -> None:
        self.module = drivers.module
        self._drivers, self._tape = drivers, tape
        self.follow = tape.follow

    def run(self, machine: Machine, function: Function, args: tuple[Any, ...]) -> None:
        """Run a function of the module on the core in force."""
        _Interpreter(self._drivers, self._tape, machine).launch(function, args)


class _Interpreter(FastInterpreter):
    """Runs the body of a function as its driver, and all else block by block."""

    def __init__(self, drivers: Drivers, tape: Tape, machine: Machine) -> None:
        super().__init__(drivers, machine)
        self._drivers, self._tape = drivers, tape
        self._is_driven = False

    def block(self, block: Block, frame: Frame) -> list[Any]:
        function, drivers = self.function, self._drivers
        if self._is_driven or function is None or block is not function.body:
            return super().block(block, frame)
        self._is_driven = True
        compiled = drivers.driver(function, self.machine.blocks)
        if compiled is None or not drivers.lock.acquire(blocking=False):
            return super().block(block, frame)
        try:
            Run(self, drivers, compiled, self._tape).drive(frame)
        finally:
            drivers.lock.release()
        return []


class Known:
    """What is remembered from launch to launch: memories and functions by their numbers."""

    def __init__(self) -> None:
        self._memories: Memories | None = None
        self._kernels: dict[Streamed, int] = {}
        self.storages: dict[int, Storage] = {}  # by the number of their memory
        self.homes: list[Home] = []
        self._home_numbers: dict[tuple[Any, ...], int] = {}
        self._settings: dict[str, int] = {}

    def fits(self, tape: Tape) -> bool:
        """Give a launch the numbers that are known; False where it has others."""
        memories = self._memories
        if memories is None:
            self._memories, self._kernels = tape.memories, tape.kernels
            return True
        is_full = len(self.storages) > _MOST_KNOWN
        if is_full or tape.kernels or not tape.memories.share(memories):
            return False
        tape.kernels = self._kernels
        return True

    def settings(self, registers: Mapping[str, Any]) -> int:
        """The number of what registers hold."""
        return self._settings.setdefault(repr(sorted(registers.items())), len(self._settings))

    def home(self, home: Home) -> int:
        """The number of a home."""
        uid = MISSED if home.storage is None else home.storage.uid
        key = (home.spec, uid, home.ahead, home.in_ring, id(home.lease))
        if key not in self._home_numbers:
            self._home_numbers[key] = len(self.homes)
            self.homes.append(home)
        return self._home_numbers[key]


class Compiled:
    """A driver that can be called, with the variants of its operations."""

    def __init__(self, library: Library, driver: Driver) -> None:
        self.library, self.driver = library, driver
        self.function = _DRIVER(library.function(driver.text, is_hasty=True))
        self.dispatch = library.function(dispatcher(NAME))
        self.order = library.function(orderer(NAME))
        self._steps: dict[int, tuple[Step, bool]] = {}
        self.heads = np.zeros(max(1, len(driver.sites)), np.int64)
        self.forget()

    def step(self, number: int) -> tuple[Step, bool]:
        """What executes the operation of a site, and whether it gives or takes tokens."""
        found = self._steps.get(number)
        if found is None:
            op = self.driver.sites[number].op
            step = in_a_row([op]) if is_static(op) else fast_step(op)
            found = self._steps[number] = step, _orders(op)
        return found

    def forget(self) -> None:
        """Begin with no variants: they speak of memories by numbers that are others now."""
        self.heads[:] = 0
        self.variants: list[dict[bytes, Array | None]] = [{} for _ in self.driver.sites]
        self.seen: list[dict[bytes, int]] = [{} for _ in self.driver.sites]
        self.kept: list[Any] = []  # operands that must not go as long as variants speak of them


def _orders(op: Op) -> bool:
    """Whether an operation, or one inside it, gives or takes tokens."""
    ops = [op, *(inner for region in op.regions for inner in region.walk())]
    return any(isinstance(effect, Signal | Wait) for each in ops for effect in effects_of(each))


class Run:
    """A core whose program runs as a driver, and the objects behind its words."""

    def __init__(
        self, interpreter: _Interpreter, drivers: Drivers, compiled: Compiled, tape: Tape
    ) -> None:
        self._interpreter, self._machine = interpreter, interpreter.machine
        self._drivers, self._compiled, self._tape = drivers, compiled, tape
        self._known, self._memories = drivers.known, tape.memories
        self._buffers: list[GmBuffer] = []
        self._buffer_numbers: dict[int, int] = {}
        self._others: list[Any] = []
        self._error: BaseException | None = None
        driver = compiled.driver
        self._state = np.zeros(len(State), np.int64)
        self._places = np.zeros((3, 0), np.int64)
        self._rows = np.zeros((0, BUFFER_WORDS), np.int64)
        self._stream = np.zeros(_STREAM, np.int64)
        self._operands = np.zeros(driver.words, np.int64)
        self._flags = np.zeros(max(1, len(driver.flags)), np.int64)
        self._make_room(1 + self._memories.arrays)
        for number in range(1, 1 + self._memories.arrays):
            self._bases[number] = self._memories.begin(number)
        self._told = 0  # other memories whose places are known to the driver
        self._room = np.zeros(0, np.uint8)

    def drive(self, frame: Frame) -> None:
        """Run the body of a function with the values of its parameters."""
        compiled, state = self._compiled, self._state
        callback = _CALLBACK(self._called)
        constants = np.array(self._constants(frame), np.int64)
        pointers = {
            State.OUT: self._stream,
            State.OPERANDS: self._operands,
            State.FLAGS: self._flags,
            State.CONSTANTS: constants,
        }
        for word, array in pointers.items():
            state[word] = array.ctypes.data
        state[State.END] = self._stream.ctypes.data + self._stream.nbytes
        state[State.CALLBACK] = ctypes.cast(callback, ctypes.c_void_p).value or 0
        state[State.DISPATCH], state[State.ORDER] = compiled.dispatch, compiled.order
        pipes = self._machine.target.pipes[self._machine.core.kind]
        for number, (_, flag) in enumerate(compiled.driver.flags):
            if flag.src not in pipes or flag.dst not in pipes:
                self._flags[number] = _PYTHONS  # which says so
        self._resume()
        failed = compiled.function(state.ctypes.data, compiled.heads.ctypes.data)
        self._pause()
        if failed:
            error, self._error = self._error, None
            assert error is not None
            raise error
        self._settle()

    def _constants(self, frame: Frame) -> list[int]:
        """The words that do not change while the core runs."""
        interpreter, driver = self._interpreter, self._compiled.driver
        words = [int(interpreter.runs_here(kind)) for kind in ("cube", "vector")]
        assert interpreter.function is not None
        for param, held in zip(interpreter.function.params, driver.params, strict=True):
            words += held.given(self, frame[param])
        for asked in driver.asked:
            if asked.is_home:
                spec = interpreter.spec(asked.op.result)
                storage = self._machine.core.memory(spec.loc)
                words.append(self._known.home(Home(spec, storage, None, 0, False)))
            else:
                answer: Frame = {}
                fast_step(asked.op)(interpreter, answer)
                words.append(answer[asked.op.result])
        return words

    # ---- what words stand for --------------------------------------------------------------------

    def buffer(self, number: int) -> GmBuffer:
        return self._buffers[number]

    def number_of(self, buffer: GmBuffer) -> int:
        found = self._buffer_numbers.get(id(buffer))
        if found is None:
            found = self._buffer_numbers[id(buffer)] = len(self._buffers)
            self._buffers.append(buffer)
            if found == len(self._rows):
                self._rows = np.pad(self._rows, ((0, 1 + _BUFFERS), (0, 0)))
                self._state[State.BUFFERS] = self._rows.ctypes.data
            # Of an array with gaps Python knows which bytes are in it.
            size = buffer.data.nbytes if buffer.is_dense else -1
            place = self._memories.of_buffer(buffer)
            self._rows[found] = (*place, size, int(buffer.writeable))
        return found

    def home(self, number: int) -> Home:
        return self._known.homes[number]

    def home_of(self, tile: TileObject) -> int:
        lease = tile._lease if tile.lease else None
        ahead = tile.address - tile.assigned
        return self._known.home(Home(tile.spec, tile.storage, lease, ahead, tile.in_ring))

    def other(self, number: int) -> Any:
        return self._others[number]

    def keep(self, value: Any) -> int:
        self._others.append(value)
        return len(self._others) - 1

    # ---- what the driver asks --------------------------------------------------------------------

    def _called(self, number: int) -> int:
        try:
            self._pause()
            self._execute(number)
            self._resume()
        except BaseException as error:  # goes on where the driver was called
            self._error = error
            return 1
        return 0

    def _execute(self, number: int) -> None:
        """Execute an operation of the program."""
        compiled = self._compiled
        site = compiled.driver.sites[number]
        self._drivers.asked[site.op.name] += 1
        held = [each for _, each in site.given]
        words = self._operands[: sum(len(each.words) for each in held)].tolist()
        frame: Frame = {}
        for (value, each), own in zip(site.given, chopped(words, held), strict=True):
            frame[value] = each.taken(self, own)
        step, orders = compiled.step(number)
        if orders:
            self._settle()
        self._tape.last = None
        step(self._interpreter, frame)
        made = [word for value, each in site.made for word in each.given(self, frame[value])]
        for index in site.changed:
            value, each = site.given[index]
            made += each.given(self, frame[value])
        self._operands[: len(made)] = made
        if site.is_name:
            sizes = dict.fromkeys(Variant, 0)
            sizes |= {Variant.SETTINGS: MISSED, Variant.VIEW: MISSED, Variant.RESULTS: len(made)}
            head = [sizes[word] for word in Variant if word < Variant.KEY]
            self._add(number, np.array(words, np.int64).tobytes(), np.array([*head, *words, *made]))
        elif site.is_dispatched:
            self._learn(number, site, words[: site.key])

    def _pause(self) -> None:
        """The driver stands still: what it did is known to the machine."""
        state, stream = self._state, self._stream
        used = (int(state[State.OUT]) - stream.ctypes.data) // stream.itemsize
        if used:
            self._tape.take(stream[:used], self._machine.core.block)
            state[State.OUT] = stream.ctypes.data
        for number, storage in self._known.storages.items():
            storage.epoch = int(self._epochs[number])

    def _resume(self) -> None:
        """The driver goes on: what the machine did is known to it."""
        state, memories, machine = self._state, self._memories, self._machine
        more = memories.beyond(self._told)
        first = 1 + memories.arrays + self._told
        self._make_room(first + len(more))
        for number, storage in self._known.storages.items():
            self._epochs[number] = storage.epoch
            self._shadows[number] = storage.shadow.ctypes.data
        self._bases[first : first + len(more)] = more
        self._told += len(more)
        if self._room.nbytes < memories.scratch + _ALIGNMENT:
            self._room = np.zeros(memories.scratch + _ALIGNMENT, np.uint8)
            self._bases[0] = -(-self._room.ctypes.data // _ALIGNMENT) * _ALIGNMENT
        state[State.SLOW] = isinstance(machine, LaunchMachine) and bool(
            machine.scheduler.queues.held
        )
        state[State.SETTINGS] = self._known.settings(machine.core.registers)

    def _make_room(self, memories: int) -> None:
        """Let there be room for so many memories; the driver looks up where at every operation."""
        more = memories - self._places.shape[1]
        if more <= 0:
            return
        self._places = np.pad(self._places, ((0, 0), (0, more + _MEMORIES)))
        self._bases, self._epochs, self._shadows = self._places
        for word, row in zip(_PLACES, self._places, strict=True):
            self._state[word] = row.ctypes.data

    def _settle(self) -> None:
        """Let Python look after the flags from now on."""
        sites = self._compiled.driver.sites
        flags, sync = self._flags, self._machine.sync
        for number, (pipe, flag) in enumerate(self._compiled.driver.flags):
            raised, flags[number] = int(flags[number]), _PYTHONS
            if raised > 0:
                sync.apply([Signal(pipe, flag)], sites[raised - 1].op.location, NO_OPERANDS)

    # ---- variants --------------------------------------------------------------------------------

    def _learn(self, number: int, site: Site, words: Sequence[int]) -> None:
        """Make a variant of operands that come often."""
        compiled, key = self._compiled, np.array(words, np.int64).tobytes()
        variants, seen = compiled.variants[number], compiled.seen[number]
        if key in variants or len(variants) >= _MOST_VARIANTS or self._tape.last is None:
            return
        note, natives = self._tape.last
        seen[key] = seen.get(key, 0) + 1
        is_loaded = natives is not None and all(compiled.library.has(n.kernel) for n in natives)
        if seen[key] < (1 if is_loaded else _OFTEN):
            return
        if note.call.insn is not site.op.insn:  # work that had to wait for this one
            return
        try:
            made = self._variant(site, words, note, natives)
        except Unsupported as error:
            self._drivers.lacks[note.call.insn.name] = str(error)
            variants[key] = None
            return
        self._add(number, key, made)
        compiled.kept.append(note.operands)

    def _add(self, number: int, key: bytes, made: Array) -> None:
        """Let the driver know a variant of an operation."""
        compiled = self._compiled
        variants = compiled.variants[number]
        if key not in variants and len(variants) < _MOST_VARIANTS:
            made[Variant.NEXT] = compiled.heads[number]
            compiled.heads[number] = made.ctypes.data
            variants[key] = made

    def _variant(
        self, site: Site, key: Sequence[int], note: Noted, natives: Sequence[Native] | None
    ) -> Array:
        """The words of a variant; `Unsupported` where Python has to execute the call."""
        call, tape = note.call, self._tape
        if natives is None:
            raise Unsupported(tape.lacks[call.insn.name])
        if reason := self._why_not(site, note, natives):
            raise Unsupported(reason)
        words: list[int] = []
        patches: list[int] = []
        for native in natives:
            begin = len(words) + 2
            words += tape.words_of(note, native)
            for at, operand, behind in native.places:
                if any(operand == index for index, _ in call.global_patterns):
                    words[begin + at + 1] = behind
                    patches.append(begin + at)
        functions = self._compiled.library.addresses(native.kernel for native in natives)
        # Who treats undefined elements in a way of its own does so only where there are some.
        read = [each for each in call.handed.values() if each.reads]
        hidden = note.bound[len(call.global_patterns) :]
        counted = [
            read if "poison" in call.services else call.checked,
            [*call.written, *call.cleared],
            [*call.scratch, *hidden],
        ]
        accesses = [word for kind in counted for each in kind for word in self._access(each)]
        looks = call.insn.uses or "registers" in call.services
        settings = self._known.settings(self._machine.core.registers) if looks else MISSED
        reach = (0, 0, MISSED, 0)
        for _, pattern in call.global_patterns:
            reach = pattern.low, pattern.high, site.key, int(pattern.writes)
        sizes = len(functions), len(words), len(patches), *map(len, counted)
        head = (0, settings, *reach, *sizes, 0)
        return np.array([*head, *key, *functions, *words, *patches, *accesses], np.int64)

    def _why_not(self, site: Site, note: Noted, natives: Sequence[Native]) -> str:
        """Why a call that the library has functions for is executed by Python all the same."""
        call, sync = note.call, self._machine.sync
        views = sum(isinstance(held, Window) for _, held in site.given)
        if views > 1 or views != len(call.global_patterns):
            return "several views"
        if len(note.bound) != views + len(call.hidden):
            return "global memory beside its operands"
        if call.before or (call.phase and getattr(sync, "holds_pipes", False)):
            return "it takes part in the order of work"
        if call.spills:
            return "scratch that ends past its tile"
        if note.undefined:
            return "what it leaves undefined is known as it runs"
        if any(native.doubt is not None for native in natives):
            return "values make a difference"
        if any(native.in_turn for native in natives):
            return "blocks add to one place in turn"
        return ""

    def _access(self, access: Access) -> list[int]:
        """An access as the dispatcher checks, marks and forgets it."""
        number, _ = self._memories.place(access, 0)
        self._known.storages[number] = access.memory
        place = access.pattern.extents
        rows = [place] if isinstance(place, Rows) else [Rows(a, b - a, 0, 1) for a, b in place]
        found = [number, Storage.never_checked, len(rows)]
        for row in rows:
            found += [access.offset + row.start, row.width, row.pitch, row.number]
        return found
