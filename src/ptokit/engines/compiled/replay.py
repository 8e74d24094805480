"""Runs that are repeated: what a launch did, as a stream of calls into the library.

Which instructions run, in which order and on which bytes follows from a program whose decisions do
not depend on data (`engines/verdicts.py`). Its first launch is executed instruction by instruction,
with all checks, and noted here; the next one with the same sizes repeats what was noted. The stream
is one array of words: a function of the library, its sizes and strides, and of each operand the
number of a memory and an offset. Memories are those of the cores and the arrays of the user, which
are others at each launch; so nothing in the stream depends on where they lie.

What the library has no function for runs as its body does, on the same memory.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ptokit.base.layout import Array
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.library import Library, library
from ptokit.engines.compiled.natives import Native, access_of, natives
from ptokit.isa.services import Refused
from ptokit.machine.access import Access
from ptokit.machine.calls import Call
from ptokit.machine.core import Core
from ptokit.machine.faults import refusal
from ptokit.machine.gm import GmBuffer
from ptokit.machine.machine import Machine
from ptokit.machine.providers import BeyondProvider, PoisonProvider, Services
from ptokit.machine.scheduler import Outcome

_MOST = 1 << 20  # calls that are noted
_MOST_LAUNCHES = 16  # of one kernel that are remembered: a stream is long
_UNREPEATABLE = frozenset({"world", "unit"})  # services whose answers are not noted


class Noted(NamedTuple):
    """One executed call."""

    call: Call
    args: Sequence[Any]
    operands: Sequence[Any]
    bound: Sequence[Access]  # of the operands in global memory, in their order
    site: Any
    core: Core
    registers: dict[str, Any] | None  # where it looks at them


class Tape:
    """Notes the calls of a run in the order in which they were executed."""

    def __init__(self) -> None:
        self.notes: list[Noted] = []
        self.reason = ""  # why the run cannot be repeated

    def follow(self, machine: Machine) -> None:
        """Note all that a machine executes from now on."""

        def note(
            call: Call,
            args: Sequence[Any],
            operands: Sequence[Any],
            bound: Sequence[Access],
            site: Any,
        ) -> None:
            if not self.reason and not call.insn.binds:
                self._note(Noted(call, args, operands, bound, site, machine.core, None))

        machine.tape = note

    def _note(self, note: Noted) -> None:
        insn = note.call.insn
        if len(self.notes) >= _MOST:
            self._give_up(f"more than {_MOST} instructions")
        elif not _UNREPEATABLE.isdisjoint(insn.services):
            asked = ", ".join(insn.services & _UNREPEATABLE)
            self._give_up(f"{insn.name} asks for {asked}")
        elif "registers" in insn.services or insn.uses:
            self.notes.append(note._replace(registers=dict(note.core.registers)))
        else:
            self.notes.append(note)

    def _give_up(self, reason: str) -> None:
        self.reason = reason
        self.notes.clear()


class Replay:
    """A run that can be repeated on other arrays of the same types and sizes."""

    def __init__(
        self, tape: Tape, outcome: Outcome, lock: threading.Lock, arrays: Sequence[Array]
    ) -> None:
        found = library()
        assert found is not None
        self._library: Library = found
        self.outcome = outcome
        self._machine = outcome.machine
        self._lock = lock  # of the memories it works on
        # Memory 0 is scratch of the library; then come the arrays of the user, then all others.
        self.starts = [GmBuffer(array).base for array in arrays]
        self._sizes = [GmBuffer(array).nbytes for array in arrays]
        self._memories: list[Array] = []
        self._numbers: dict[int, int] = {}  # of memories, by identity
        self._natives: dict[Any, list[Native] | None] = {}
        self._scratch = 1
        self.bodies: dict[str, int] = {}  # instructions that run as their bodies do, how often
        self._parts: list[tuple[int, int] | _Body] = []  # stretches of the stream, and bodies
        words: list[int] = []
        begin = 0
        for note in tape.notes:
            record = self._record(note)
            if record is not None:
                words += record
                continue
            if begin < len(words):
                self._parts.append((begin, len(words)))
                begin = len(words)
            self._parts.append(_Body(note, self))
            name = note.call.insn.name
            self.bodies[name] = self.bodies.get(name, 0) + 1
        if begin < len(words):
            self._parts.append((begin, len(words)))
        self._natives.clear()
        self._stream = np.array(words, np.int64)
        self._room = np.zeros(self._scratch + 64, np.uint8)
        self._bases = np.zeros(1 + len(arrays) + len(self._memories), np.int64)
        self._bases[0] = -(-self._room.ctypes.data // 64) * 64
        for number, memory in enumerate(self._memories, 1 + len(arrays)):
            self._bases[number] = memory.ctypes.data

    def play(self, arrays: Sequence[Array]) -> bool:
        """Repeat the run; False when somebody else is at it, or it would have been another one."""
        if not self._lock.acquire(blocking=False):
            return False
        # Bodies may find that values make a difference: then it never happened.
        kept = [(a, a.copy()) for a in arrays if a.flags.writeable] if self.bodies else []
        try:
            for number, array in enumerate(arrays, 1):
                self._bases[number] = np.lib.array_utils.byte_bounds(array)[0]
            bases, stream = self._bases.ctypes.data, self._stream.ctypes.data
            for part in self._parts:
                if isinstance(part, _Body):
                    with np.errstate(all="ignore"):
                        part.run(self._machine, arrays)
                else:
                    self._library.run(stream + 8 * part[0], stream + 8 * part[1], bases)
        except _Differs:
            for array, before in kept:
                array[...] = before
            return False
        finally:
            self._lock.release()
        return True

    # ---- from notes to words -----------------------------------------------------------------

    def _record(self, note: Noted) -> list[int] | None:
        """The words of a call in the stream; None where the library has nothing for it."""
        call = note.call
        key = (call, *(access.pattern for access in note.bound))
        if call.values:
            key = (*key, *(note.operands[index] for index in call.values))
        if key not in self._natives:
            self._natives[key] = self._found(note)
        found = self._natives[key]
        if found is None or (note.registers and call.insn.uses):
            return None
        record: list[int] = []
        for each in found:
            words = [self._library.address(each.kernel), len(each.words) + 2, *each.words]
            for at, operand, behind in each.places:
                words[at + 2 : at + 4] = self._place(note, operand, behind)
            self._scratch = max(self._scratch, each.scratch)
            record += words
        return record

    def _found(self, note: Noted) -> list[Native] | None:
        try:
            found = natives(note.call, note.args, note.bound)
            for each in found:
                self._library.address(each.kernel)
        except Unsupported:
            return None
        return found

    def _place(self, note: Noted, operand: int, behind: int) -> tuple[int, int]:
        """The number of the memory that an operand lies in, and where it begins there."""
        access = access_of(note.call, note.bound, operand)
        assert access is not None
        number = self.array_number(access)
        offset = access.offset + behind
        if number is not None:
            return 1 + number, offset + access.memory.base - self.starts[number]
        memory = access.memory.data
        known = self._numbers.get(id(memory))
        if known is None:
            self._memories.append(memory)
            known = self._numbers[id(memory)] = len(self.starts) + len(self._memories)
        return known, offset

    def array_number(self, access: Access) -> int | None:
        """The array of the user that an access goes to; None: memory of a core, or of a FIFO."""
        if not isinstance(access.memory, GmBuffer):
            return None
        at = access.memory.base
        for number, (start, size) in enumerate(zip(self.starts, self._sizes, strict=True)):
            if start <= at < start + max(size, 1):
                return number
        return None


class Replays:
    """The launches of a kernel that can be repeated, by all that decides what they do."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Replay | None] = {}  # None: they cannot

    def play(self, asked: Hashable, arrays: Sequence[Array]) -> Outcome | None:
        """Repeat a launch and return what it came to; None when it has to be run."""
        found = self._known.get(asked)
        return found.outcome if found is not None and found.play(arrays) else None

    def tape(self, asked: Hashable) -> Tape | None:
        """What notes a launch that is run for the first time, where it may be repeated."""
        return Tape() if asked not in self._known and library() is not None else None

    def keep(
        self,
        asked: Hashable,
        tape: Tape,
        outcome: Outcome,
        lock: threading.Lock,
        arrays: Sequence[Array],
    ) -> None:
        """Remember a launch that has gone well; who asks ever anew is not helped."""
        if len(self._known) >= _MOST_LAUNCHES:
            self._known.clear()
        self._known[asked] = None if tape.reason else Replay(tape, outcome, lock, arrays)

    def __iter__(self) -> Iterator[Replay | None]:
        return iter(self._known.values())

    def clear(self) -> None:
        """Forget all of them."""
        self._known.clear()


class _Body:
    """A call that runs as its body does."""

    def __init__(self, note: Noted, replay: Replay) -> None:
        self._note = note
        self._far: list[tuple[int, Access, int | None]] = []  # operands, and numbers of arrays
        for (index, _), access in zip(note.call.global_patterns, note.bound, strict=False):
            self._far.append((index, access, replay.array_number(access)))
        self._args = list(note.args)
        for index, _, number in self._far:
            if number is not None:
                self._args[index] = None  # the arrays of that launch are not kept alive
        self._low = replay.starts

    def run(self, machine: Machine, arrays: Sequence[Array]) -> None:
        """Fetch, run, write back; what is defined was found out when it was noted."""
        note = self._note
        call, args = note.call, list(self._args)
        for index, access in call.copies:
            pattern = access.pattern
            empty = np.empty(pattern.shape, pattern.dtype.np)
            args[index] = access.array() if pattern.reads else empty
        far: list[tuple[int, Access]] = []
        for index, access, number in self._far:
            if number is not None:
                buffer = GmBuffer(arrays[number])
                shift = access.memory.base - self._low[number]
                access = access.pattern.at(buffer, access.offset + shift)
            far.append((index, access))
            args[index] = access.array()
        more = call.keywords
        if call.services:
            services = _Unchecked(machine, call, note.operands, note.site)
            services.registers = {} if note.registers is None else dict(note.registers)
            more = {**more, **{name: services.of(name) for name in call.services}}
        before, machine.core = machine.core, note.core
        try:
            call.body(*args, **more)
        except Refused as error:
            raise refusal(call.insn, error, note.site, call.ops.target.name) from None
        finally:
            machine.core = before
        for index, access in (*call.copies, *far):
            if access.pattern.steps is None and access.writes:
                access.store(args[index])
        for access in call.cleared:
            access.write(np.zeros(access.shape, access.dtype.np))


class _Differs(Exception):  # noqa: N818 - named after what happened
    """Values lead to undefined elements: whether these are ever read, only the steps can tell."""


class _Defined(PoisonProvider):
    """All is defined: that was found out when the run was noted."""

    __slots__ = ()

    def poison(self, name: str, rows: slice, cols: slice) -> None:
        return

    def poison_where(self, name: str, where: Array) -> None:
        if where.any():
            raise _Differs

    def undefined(self, name: str) -> Array | None:
        return None

    def demand(self, name: str, part: tuple[slice, slice]) -> None:
        return

    def demand_where(self, name: str, where: Array) -> None:
        return

    def leave(self, name: str, array: Array) -> None:
        array[...] = self._handed(name).read()

    def peek(self, name: str) -> tuple[Array, Array]:
        values, defined = super().peek(name)
        return values, np.ones_like(defined)


class _Beyond(BeyondProvider):
    """Nothing is known of elements outside the operands."""

    __slots__ = ()

    def read(self, name: str, places: Array) -> Array:
        raise _Differs


class _Unchecked(Services):
    """What a body may ask for in a run that is repeated."""

    __slots__ = ("registers",)

    def of(self, name: str) -> Any:
        if name == "registers":
            return self.registers
        provider = {"poison": _Defined, "beyond": _Beyond}.get(name)
        return super().of(name) if provider is None else provider(self)
