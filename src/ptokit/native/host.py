"""The host side of a whole program: device memory, launches, and the cases of its tests.

`main` runs as machine code in this process; what it asks of the device reaches `carry_out` as
records, as what kernels ask for does while one is launched (runtime.py).
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, PtoError, fail
from ptokit.base.location import foreign_site
from ptokit.base.namedtuple import NamedTuple
from ptokit.frontend.launch import Options, Outcome, run
from ptokit.frontend.session import current, running
from ptokit.isa.targets import Target
from ptokit.machine.gm import GmBuffer
from ptokit.machine.scheduler import MOST_BLOCKS
from ptokit.native.library import BODY, CARRY_OUT, CppSite, Library
from ptokit.native.records import Memory
from ptokit.native.repeating import MODE, Repeating, always_does_the_same, given
from ptokit.native.runtime import PLACE, Runtime

LAUNCH, ALLOCATE, RELEASE, CASE = -1, -7, -8, -13
OUTCOMES = ("begun", "passed", "failed", "skipped")  # of a case, by the number it is told with


class Found(NamedTuple):
    """What a launch was found to lack."""

    diagnostics: tuple[Diagnostic, ...]


class Case(NamedTuple):
    """A case of a program of tests has begun, or has ended."""

    name: str
    outcome: str


@dataclass(frozen=True)
class Device:
    """What launches of a program run on."""

    target: Target
    options: Options  # of each launch, but for its grid
    is_absent: bool = False  # kernels are left out: a control of the program's own checks
    # What stands in the place of the machine of a core (recording.InItsPlace): to watch or change.
    in_place_of: Callable[[Any], Any] | None = None


class Host:
    """The device of a program that runs in this process; `tell` is told what happens."""

    def __init__(
        self,
        libraries: Mapping[str, Library],
        device: Device,
        tell: Callable[[Any], None],
        memory: Memory | None = None,  # arrays of whoever calls the program
    ) -> None:
        self._libraries = dict(libraries)  # by the kind of core that they are compiled for
        self._device = device
        self._tell = tell
        self._memory = Memory([]) if memory is None else memory
        self._repeating = Repeating()
        self._carry_out = CARRY_OUT(self.carry_out)  # kept: C++ has only its address
        self._connect()

    def _connect(self) -> None:
        for each in self._libraries.values():
            each.connect(self._carry_out)

    def carry_out(self, words: int, count: int) -> int:
        """Do what the records ask for; the value of the last one, 1 for a launch that fails."""
        all_words = struct.unpack(f"{count}q", ctypes.string_at(words, 8 * count))
        value, at = 0, 0
        while at < count:
            end = at + all_words[at]
            try:
                value = self._serve(all_words[at + 1 : end])
            except PtoError as error:
                self._tell(Found(error.diagnostics))
                value = 1
            except BaseException as error:  # of ours: whoever started this process tells it
                self._tell(error)
                value = 1
            at = end
        return value

    def _serve(self, record: tuple[int, ...]) -> int:
        service, given = record[0], record[PLACE:]
        if service == LAUNCH:
            return self._launch(self._site(record[1:PLACE]), *given)
        if service == ALLOCATE:
            address, size = given
            room = memoryview((ctypes.c_uint8 * size).from_address(address))
            self._memory.add(GmBuffer(np.frombuffer(room, np.uint8)))
            return 0
        if service == RELEASE:
            return int(self._memory.remove(given[0]))
        if service == CASE:
            self._tell(Case(ctypes.string_at(given[0]).decode(), OUTCOMES[given[1]]))
            return 0
        raise fail(
            "cpp-host",
            "an instruction is called by the host",
            fix="a kernel is launched: kernel<<<blocks, nullptr, stream>>>(...)",
            site=self._site(record[1:PLACE]).location,
        )

    def _site(self, pcs: tuple[int, ...]) -> CppSite:
        """A place in whichever library it lies."""
        all_of_them = list(self._libraries.values())
        held = (each for each in all_of_them if each.holds(pcs[0]))
        return next(held, all_of_them[0]).site(pcs)

    def _launch(
        self, site: CppSite, blocks: int, name: int, _: int, closure: int, count: int, *told: int
    ) -> int:
        device = self._device
        if device.is_absent:
            return 0
        if not 0 < blocks <= MOST_BLOCKS:
            raise fail(
                "grid",
                "the number of blocks is positive, and has 32 bits",
                got=[("blocks", blocks)],
                site=site.location,
            )
        wanted = ctypes.string_at(name)
        parts = {k: each for k, each in self._libraries.items() if wanted in each.parts}
        others = {k: each for k, each in self._libraries.items() if k not in parts}

        def run_(options: Options) -> Outcome:
            host = Runtime({_core(k): each for k, each in parts.items()}, self._memory, others)

            def body() -> None:
                machine = current()
                with running(device.in_place_of(machine) if device.in_place_of else machine):
                    host.entered(lambda: BODY(host.library.parts[wanted])(closure))()

            return run(dict.fromkeys(map(_core, parts), body), device.target, MODE, options)

        asked = None
        if device.in_place_of is None and always_does_the_same(parts.values()):
            asked = given(wanted, blocks, count, told, self._memory)
        options = replace(device.options, grid=blocks)
        token = foreign_site.set(site)
        try:
            found = self._repeating.launched(asked, self._memory, options, device.target, run_)
        finally:
            foreign_site.reset(token)
            for each in parts.values():
                each.watch(())
            self._connect()
        if found:
            self._tell(Found(found))
        return 0


def _core(compiled_for: str) -> str:
    """The kind of core that runs what is compiled for one that plays every part."""
    return "mix" if compiled_for == "single" else compiled_for
