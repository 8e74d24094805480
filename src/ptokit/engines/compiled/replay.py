"""Runs that are repeated: what a launch did, as a stream of calls into the library.

Which instructions run, in which order and on which bytes follows from a program whose decisions do
not depend on data (`engines/verdicts.py`). Its first launch is executed instruction by instruction,
with all checks, and noted here; the next one with the same sizes repeats what was noted. The stream
is one array of words: a function of the library, its sizes and strides, and of each operand the
number of a memory and an offset. Memories are those of the cores and the arrays of the user, which
are others at each launch; so nothing in the stream depends on where they lie.

What the library has no function for runs as its body does, on the same memory.

Blocks that meet nowhere, by the verdict on the launch, can be repeated by several threads: each has
memories of its own for the cores, and which of them a block falls to makes no difference.
"""

from __future__ import annotations

import threading
from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from ptokit.base.addresses import address_of, first_byte
from ptokit.base.layout import Array
from ptokit.base.namedtuple import NamedTuple
from ptokit.engines.compiled.bodies import Body, Differs, Noted, region
from ptokit.engines.compiled.forwarding import forwarded
from ptokit.engines.compiled.fusion import Record, shortened
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.library import Library, library
from ptokit.engines.compiled.memories import Addresses, Memories
from ptokit.engines.compiled.moves import moves
from ptokit.engines.compiled.natives import Native, Streamed, access_of, idiom_of, natives
from ptokit.engines.compiled.scopes import Known
from ptokit.engines.compiled.twins import After, Before, Twins
from ptokit.engines.compiled.works import Again, all_defined
from ptokit.isa.idioms import Elementwise, Moves
from ptokit.machine.access import Access
from ptokit.machine.calls import Call
from ptokit.machine.machine import Machine
from ptokit.machine.providers import Services
from ptokit.machine.resident import Again as Repeat
from ptokit.machine.resident import Resident
from ptokit.machine.scheduler import Outcome

_MOST_WORDS = 1 << 24  # of one launch
_MOST_RECORDS = 1 << 17  # among which chains are looked for
_MOST_LAUNCHES = 16  # of one kernel that are remembered: a stream is long
_MOST_IN_VAIN = 2  # attempts at a launch whose values make a difference
_UNREPEATABLE = frozenset({"world"})  # services whose answers are not noted


class Stretch(NamedTuple):
    """A part of the stream: calls of one block."""

    begin: int
    end: int
    block: int


Part = Stretch | Body | Again | Before | After


class Tape:
    """Takes down a run as it is executed: a stream of words, and bodies in between."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        found = library()
        assert found is not None
        self._library: Library = found
        self.memories = Memories(arrays)
        self.doubt = np.zeros(1, np.int64)  # set by calls whose values were not as usual
        self.is_doubtful = False  # whether there are such calls
        self.is_in_turn = False  # whether blocks may write to one place of global memory
        self.words = array("q")
        # Records begin with the number of their function: most launches are not repeated, and
        # what is compiled for them would be in vain.
        self.records = array("q")  # where each begins
        self.kernels: dict[Streamed, int] = {}
        self.parts: list[Part] = []
        self.bodies: Counter[str] = Counter()  # instructions that run as their bodies do
        self.lacks: dict[str, str] = {}  # and why
        self.reason = ""  # why the run cannot be repeated
        self.is_driven = False  # whether somebody asks for the last call, whatever comes of the run
        self.last: tuple[Noted, list[Native] | None] | None = None
        self.twins = Twins(self.memories)
        self._begin = self._block = 0
        self._natives: dict[Any, list[Native] | None] = {}
        self._machine: Machine | None = None

    def follow(self, machine: Machine) -> None:
        """Note all that a machine executes from now on."""

        def note(
            call: Call,
            args: Sequence[Any],
            operands: Sequence[Any],
            bound: Sequence[Access],
            site: Any,
            services: Services | None,
        ) -> None:
            insn = call.insn
            if insn.binds or (self.reason and not self.is_driven):
                return
            looks = "registers" in insn.services or insn.uses
            registers = dict(machine.core.registers) if looks else None
            lost = () if services is None else tuple(region(a) for a, _ in services.undefined)
            self._machine = machine
            if services is not None and services.chosen:
                # With other values it may read what nobody has written: only the steps tell.
                chosen = f"what {insn.name} reads of {services.chosen}, not all of which is defined"
                self.give_up(f"values decide {chosen}")
            self._note(Noted(call, args, operands, bound, site, machine.core, registers, lost))

        machine.tape, machine.untaped = note, self.give_up

    def again(self, outcome: Outcome) -> Repeat | None:
        """What repeats the run in its own process; None: it cannot be repeated."""
        if self.reason or outcome.machine.has_looked:
            return None
        return Replay(self, outcome, threading.Lock()).play

    def finish(self) -> None:
        """The run is over."""
        self._end_stretch()
        self._natives.clear()

    def take(self, words: Array, block: int) -> None:
        """Note calls that somebody has done and written down himself."""
        if len(self.words) > _MOST_WORDS:
            self.give_up("it is too long")
        if self.reason:
            return
        self._begin_block(block)
        at, sizes = 0, words.tolist()
        while at < len(sizes):
            self.records.append(len(self.words) + at)
            at += sizes[at + 1]
        self.words.frombytes(words.tobytes())

    def _begin_block(self, block: int) -> None:
        if block != self._block:
            self._end_stretch()
            self._block = block

    def _note(self, note: Noted) -> None:
        insn = note.call.insn
        self._begin_block(note.core.block)
        if not _UNREPEATABLE.isdisjoint(insn.services):
            self.give_up(f"{insn.name} asks for {', '.join(insn.services & _UNREPEATABLE)}")
            return
        if len(self.words) > _MOST_WORDS:
            self.give_up("it is too long")
        if "unit" in insn.services:
            if not self.reason:
                self._end_stretch()
                self.parts.append(Again(note, self.memories))
            return
        if _only_loads_registers(note) or (self.reason and not self.is_driven):
            return
        found = self._natives_of(note)
        self.last = note, found
        if self.reason:
            return
        assert self._machine is not None
        # Only where cores meet, and somebody compares what they write.
        shared = [] if self._machine.peek is None else self.twins.met(note)
        if shared or found is None:
            self._end_stretch()
        self.parts += shared
        if found is not None:
            self._record(note, found)
        else:
            self.parts.append(Body(note, self.memories))
            self.bodies[insn.name] += 1
        if shared:
            self._end_stretch()
            self.parts += map(After, shared)

    def give_up(self, reason: str) -> None:
        """The run cannot be repeated."""
        self.reason, self.words = reason, array("q")
        self.parts.clear()

    def _end_stretch(self) -> None:
        if self._begin < len(self.words):
            self.parts.append(Stretch(self._begin, len(self.words), self._block))
            self._begin = len(self.words)

    def _natives_of(self, note: Noted) -> list[Native] | None:
        """What the library has for a call; None: nothing."""
        call = note.call
        # Zeros of both signs are equal, and are other numbers.
        numbers = [repr(note.operands[index]) for index in call.values]
        registers = sorted((note.registers or {}).items())
        key = (call, *(access.pattern for access in note.bound), *numbers, repr(registers))
        if key not in self._natives:
            self._natives[key] = self._found(note)
        return self._natives[key]

    def _record(self, note: Noted, found: Sequence[Native]) -> None:
        """Add a call to the stream."""
        for each in found:
            self.records.append(len(self.words))
            self.words.extend(self.words_of(note, each))

    def words_of(self, note: Noted, native: Native) -> list[int]:
        """A record of the stream: the number of a function, its size, and what it is handed."""
        number = self.kernels.setdefault(native.kernel, len(self.kernels))
        words = [number, len(native.words) + 2, *native.words]
        for at, operand, behind in native.places:
            access = access_of(note.call, note.bound, operand)
            assert access is not None
            words[at + 2 : at + 4] = self.memories.place(access, behind)
        for at, behind in native.own:
            assert native.table is not None
            words[at + 2 : at + 4] = self.memories.table(native.table), behind
        if native.doubt is not None:
            words[native.doubt + 2 : native.doubt + 4] = self.memories.table(self.doubt), 0
            self.is_doubtful = True
        self.is_in_turn = self.is_in_turn or native.in_turn
        self.memories.scratch = max(self.memories.scratch, native.scratch)
        return words

    def _found(self, note: Noted) -> list[Native] | None:
        try:
            found = self._looked_up(note)
            for each in found:
                self._library.write(each.kernel)
        except Unsupported as error:
            self.lacks[note.call.insn.name] = str(error)
            return None
        return found

    def _looked_up(self, note: Noted) -> list[Native]:
        call, idiom, machine = note.call, idiom_of(note.call), self._machine
        assert machine is not None
        if isinstance(idiom, Moves):
            return moves(note, machine)
        if _heeds(note):
            raise Unsupported("registers make a difference")
        try:
            return natives(call, note.args, note.bound)
        except Unsupported:
            if isinstance(idiom, Elementwise) and idiom.is_copy:
                return moves(note, machine)
            raise


def unkept(arrays: Sequence[Array]) -> Tape:
    """A tape of a run that nobody repeats."""
    found = Tape(arrays)
    found.give_up("nobody repeats it")
    return found


def _only_loads_registers(note: Noted) -> bool:
    """Whether a call leaves nothing in memory: what it loads is noted with whoever looks at it."""
    touched = (*note.call.handed.values(), *note.bound)
    return bool(note.call.insn.sets) and not any(access.writes for access in touched)


def _heeds(note: Noted) -> bool:
    """Whether a register that makes a difference to a call has been set: the library knows none."""
    insn = note.call.insn
    if not note.registers or (insn.uses_when is not None and not insn.uses_when(note.call.ops)):
        return False
    return any(note.registers.get(name) for name in insn.uses)


class Replay:
    """A run that can be repeated on other arrays of the same types and sizes."""

    def __init__(self, tape: Tape, outcome: Outcome, lock: threading.Lock) -> None:
        tape.finish()
        found = library()
        assert found is not None
        self._library: Library = found
        self.outcome = outcome
        self._machine = outcome.machine
        self._lock = lock  # of the memories it works on
        self.bodies = tape.bodies
        self.in_vain = 0  # how often values made a difference
        self._doubt = tape.doubt
        # Whether it finds out itself what the verdict depends on.
        self.compares = outcome.has_compared and tape.twins.is_all
        self._may_differ = bool(tape.bodies) or tape.is_doubtful or self.compares
        self._parts = tape.parts if self.compares else _without_twins(tape.parts)
        self._stream = np.frombuffer(tape.words or array("q", [0]), np.int64)
        self._records = np.frombuffer(tape.records or array("q", [0]), np.int64)
        self._kernels = tape.kernels
        self.kernels: tuple[Streamed, ...] = ()  # functions of the library that it calls
        self._memories = tape.memories
        self._addresses = [tape.memories.addresses()]  # of each thread
        self.works = [part for part in self._parts if isinstance(part, Again)]
        # Bodies run on the machine, of which there is one.
        self._is_divisible = not (tape.bodies or self.works or tape.is_in_turn or self.compares)

    def play(self, arrays: Sequence[Array], threads: int = 1) -> bool:
        """Repeat the run; False when somebody else is at it, or it would have been another one.

        Several `threads` are for blocks that touch no common bytes and do not wait for each other.
        """
        if not self._lock.acquire(blocking=False):
            return False
        # Values may turn out to make a difference: then it never happened.
        kept = [(a, a.copy()) for a in arrays if a.flags.writeable] if self._may_differ else []
        places = [first_byte(each) for each in arrays]
        try:
            if self._kernels:
                self._link()
            if threads > 1 and self._is_divisible:
                self._divided(places, threads)
                self._settle()
            elif self._is_divisible:
                self._addresses[0].tell(places)
                for part in self._parts:
                    assert isinstance(part, Stretch)
                    self._run(part, self._addresses[0])
                    self._settle()
            else:
                self._compile()
                self._addresses[0].tell(places)
                with all_defined(self.works), np.errstate(all="ignore"):
                    for part in self._parts:
                        if isinstance(part, Stretch):
                            self._run(part, self._addresses[0])
                            self._settle()
                        elif isinstance(part, Again):
                            part.run(self._machine, arrays, places)
                        else:
                            part.run(self._machine, arrays)
        except Differs:
            for each, before in kept:
                each[...] = before
            self.in_vain += 1
            return False
        finally:
            self._lock.release()
        return True

    def _settle(self) -> None:
        """Give up where a call has found values that it does not treat."""
        if self._doubt[0]:
            self._doubt[0] = 0
            raise Differs

    def contents(self) -> list[bytes]:
        """What lies in the memories of the cores."""
        return self._memories.contents()

    def _run(self, part: Stretch, on: Addresses) -> None:
        stream = address_of(self._stream)
        self._library.run(stream + 8 * part.begin, stream + 8 * part.end, on.pointer)

    def _divided(self, places: Sequence[int], threads: int) -> None:
        """Run the blocks in threads, each on memories of its own."""
        blocks: dict[int, list[Stretch]] = {}
        for part in self._parts:
            assert isinstance(part, Stretch)
            blocks.setdefault(part.block, []).append(part)
        waiting = iter(blocks.values())
        while len(self._addresses) < min(threads, len(blocks)):
            self._addresses.append(self._memories.more_addresses())

        def work(on: Addresses) -> None:
            on.tell(places)
            for block in waiting:  # each takes the next that nobody has taken
                for part in block:
                    self._run(part, on)

        here, *elsewhere = self._addresses[:threads]
        workers = [threading.Thread(target=work, args=(each,)) for each in elsewhere]
        for worker in workers:
            worker.start()
        work(here)
        for worker in workers:
            worker.join()

    def _fuse(self) -> None:
        """Leave out copies on the way to products, and let chains of loops take the place of those
        that they are made of."""
        if len(self._records) > _MOST_RECORDS:
            return
        kernels, words = list(self._kernels), self._stream.tolist()
        stretches = [part for part in self._parts if isinstance(part, Stretch)]
        calls: list[list[Record]] = []
        for part in stretches:
            at, found = part.begin, list[Record]()
            while at < part.end:
                size = words[at + 1]
                found.append(Record(kernels[words[at]], words[at + 2 : at + size]))
                at += size
            calls.append(found)
        stream, records, numbers = array("q"), array("q"), dict[Streamed, int]()
        moved: list[Stretch] = []
        calls = shortened(forwarded(calls, self._memories), self._memories)
        for part, shorter in zip(stretches, calls, strict=True):
            begin = len(stream)
            for kernel, given in shorter:
                self._library.write(kernel)
                records.append(len(stream))
                number = numbers.setdefault(kernel, len(numbers))
                stream.extend([number, len(given) + 2, *given])
            moved.append(Stretch(begin, len(stream), part.block))
        rest = iter(moved)
        self._parts = [next(rest) if isinstance(each, Stretch) else each for each in self._parts]
        self._stream, self._records = (np.frombuffer(each, np.int64) for each in (stream, records))
        self._kernels = numbers
        self._addresses = [self._memories.addresses()]  # with more scratch, maybe

    def _compile(self) -> None:
        """Look for the code of works, once."""
        known: Known = {}
        for work in self.works:
            work.settle(self._library, known)

    def _link(self) -> None:
        """Compile what is called, and put the addresses in place of the numbers."""
        self._fuse()
        places = np.array(self._library.addresses(self._kernels), np.int64)
        self._stream[self._records] = places[self._stream[self._records]]
        self.kernels, self._kernels = tuple(self._kernels), {}


def _without_twins(parts: Sequence[Part]) -> list[Part]:
    """The parts of a run whose values nobody compares; stretches that become neighbours are one."""
    found: list[Part] = []
    for part in parts:
        last = found[-1] if found else None
        if isinstance(part, Before | After):
            continue
        if isinstance(part, Stretch) and isinstance(last, Stretch) and last.block == part.block:
            found[-1] = Stretch(last.begin, part.end, part.block)
        else:
            found.append(part)
    return found


class ReplayElsewhere:
    """A run that the process which has done it can repeat."""

    def __init__(self, process: Resident, outcome: Outcome) -> None:
        self._process = process
        self.outcome = outcome
        self.in_vain = 0

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.has_ended

    def play(self, arrays: Sequence[Array], threads: int = 1) -> bool:
        """As a replay does."""
        is_done = self._process.again(arrays, threads)
        self.in_vain += not is_done
        return is_done


class Replays:
    """The launches of a kernel that can be repeated, by all that decides what they do."""

    def __init__(self) -> None:
        # None: they cannot
        self._known: dict[Hashable, Replay | ReplayElsewhere | None] = {}

    def play(self, asked: Hashable, arrays: Sequence[Array], threads: int = 1) -> Outcome | None:
        """Repeat a launch and return what it came to; None when it has to be run."""
        found = self._known.get(asked)
        if isinstance(found, ReplayElsewhere) and found.has_ended:
            del self._known[asked]
            return None
        if found is None or found.in_vain > _MOST_IN_VAIN:
            return None
        try:
            return found.outcome if found.play(arrays, threads) else None
        except Unsupported:  # by this processor
            self._known[asked] = None
            return None

    def compares(self, asked: Hashable) -> bool:
        """Whether a launch that is repeated finds out itself what its verdict depends on."""
        found = self._known.get(asked)
        return isinstance(found, Replay) and found.compares

    def tape(self, asked: Hashable, arrays: Sequence[Array]) -> Tape | None:
        """What takes down a launch that is run for the first time, where it may be repeated."""
        return Tape(arrays) if asked not in self._known and library() is not None else None

    def keep(self, asked: Hashable, tape: Tape, outcome: Outcome, lock: threading.Lock) -> None:
        """Remember a launch that has gone well; who asks ever anew is not helped."""
        self._keep(asked, None if tape.reason else Replay(tape, outcome, lock))

    def keep_elsewhere(self, asked: Hashable, outcome: Outcome) -> None:
        """Remember a launch that has gone well in a process of its own, which may have stayed."""
        stays = outcome.resident
        self._keep(asked, None if stays is None else ReplayElsewhere(stays, outcome))

    def _keep(self, asked: Hashable, replay: Replay | ReplayElsewhere | None) -> None:
        if len(self._known) >= _MOST_LAUNCHES:
            self._known.clear()
        self._known[asked] = replay

    def __iter__(self) -> Iterator[Replay | ReplayElsewhere | None]:
        return iter(self._known.values())

    def clear(self) -> None:
        """Forget all of them."""
        self._known.clear()
