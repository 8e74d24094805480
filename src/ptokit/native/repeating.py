"""Launches of a host that come again: known by what they are given, and repeated as noted.

A launch tells its arguments. Where they are numbers and places in arrays, and the code of the
kernel sees nothing else, what it does follows from them (`engines/verdicts.py`): it is checked and
noted once, and the next one plays the notes on its own arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace

from ptokit.base.diagnostics import Diagnostic, unrepeated
from ptokit.base.layout import Array
from ptokit.base.namedtuple import NamedTuple
from ptokit.engines.remembered import Remembered
from ptokit.frontend.launch import Options, Outcome
from ptokit.isa.targets import Target
from ptokit.machine.arena import Arena
from ptokit.machine.ranks import here
from ptokit.native import compiler
from ptokit.native.imports import is_pure
from ptokit.native.library import Library
from ptokit.native.records import Memory

_NUMBER, _ADDRESS = 1, 2  # kinds of arguments whose words say all of them
MODE = "manual"  # of kernels in C++


class Given(NamedTuple):
    """All that decides what a launch does."""

    kernel: Hashable
    asked: Hashable
    arrays: Sequence[Array]


def given(
    kernel: bytes, blocks: int, count: int, words: Sequence[int], memory: Memory
) -> Given | None:
    """What a launch is told of its arguments; None: that does not say what it does."""
    if count < 0:
        return None
    arrays: dict[int, Array] = {}  # by where they begin
    numbers: list[Hashable] = []
    for kind, word in zip(words[::2], words[1::2], strict=True):
        if kind == _ADDRESS and word:
            buffer = memory.holding(word)
            if buffer is None:  # of the host, which may write there
                return None
            arrays.setdefault(buffer.base, buffer.owner)
            numbers.append((list(arrays).index(buffer.base), word - buffer.base))
        elif kind in (_NUMBER, _ADDRESS):
            numbers.append(word)
        else:
            return None
    sizes = tuple(each.nbytes for each in arrays.values())
    return Given(kernel, (kernel, blocks, tuple(numbers), sizes), tuple(arrays.values()))


def always_does_the_same(libraries: Iterable[Library]) -> bool:
    """Whether code sees nothing but what it is given: no clock, no output, no variables.

    Accesses of the code itself to global memory must be noted: they may decide what it does.
    """
    return compiler.is_watching() and all(
        is_pure(each.path) and not each.statics.is_there for each in libraries
    )


class Repeating(Remembered):
    """What launches of a host leave for the next ones."""

    def launched(
        self,
        asked: Given | None,
        memory: Memory,
        options: Options,
        target: Target,
        run: Callable[[Options], Outcome],
    ) -> tuple[Diagnostic, ...]:
        """Run a launch, or repeat one like it; what it was found to lack."""
        is_plain = options == Options(options.grid, policy=options.policy) and here() is None
        if asked is None or not is_plain:
            return run(options).warnings
        question = asked.asked
        known = self.verdict(question)
        if known is not None or self.replays.compares(question):
            again = self.replays.play(question, asked.arrays)
            if again is not None:
                return tuple(unrepeated((*again.warnings, *(known or ()))))
        arenas = self.arenas(asked.kernel)
        arena = arenas.pop() if arenas else Arena(target, MODE)
        tape = self.replays.tape(question, asked.arrays)
        memory.reached.clear()
        with arena.lock:
            follow = None if tape is None else tape.follow
            outcome = run(replace(options, hazards=known is None, arena=arena, follow=follow))
        arenas.append(arena)
        if tape is not None:
            own = {each.ctypes.data for each in asked.arrays}
            if not memory.reached <= own:
                tape.give_up("it leaves the arrays that it was given")
            elif outcome.verdict is not None:  # there is none where data had a say
                self.remember(question, outcome.verdict)
            self.replays.keep(question, tape, outcome, arena.lock)
        return tuple(unrepeated((*outcome.warnings, *(known or ()))))
