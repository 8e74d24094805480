"""One launch, from its arguments to what it leaves: bound, judged, repeated or executed, told.

A launch that agrees in all that decides what it does with one that was checked is not checked
again, and one that was also noted is repeated (`engines/compiled/replay.py`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import (
    Diagnostic,
    InternalError,
    ProgramError,
    unrepeated,
    usage_error,
)
from ptokit.engines import REPEATING
from ptokit.engines import engine as find_engine
from ptokit.engines.verdicts import blocks_meet, question, reads_no_data, says_nothing
from ptokit.frontend.arguments import leaves_of
from ptokit.frontend.launch import Options, Outcome, Schedule, run
from ptokit.frontend.session import current
from ptokit.ir.core import Module
from ptokit.isa.targets import Target
from ptokit.kernels.shortcuts import Shortcut
from ptokit.kernels.source import Asked
from ptokit.machine.arena import Arena
from ptokit.machine.budget import Budget
from ptokit.machine.cluster import SUBBLOCKS, Cluster
from ptokit.machine.core import Core
from ptokit.machine.gm import as_array, shared_memory
from ptokit.machine.ranks import here
from ptokit.passes.steps import OPEN

if TYPE_CHECKING:
    from ptokit.engines.compiled.driver import Runs
    from ptokit.engines.compiled.replay import Tape
    from ptokit.engines.outline import Walked
    from ptokit.kernels.kernel import Kernel
    from ptokit.kernels.spreading import Part
    from ptokit.machine.executor import Executor
    from ptokit.machine.machine import Machine
    from ptokit.timing.streams import Recorder


@dataclass(frozen=True)
class Wanted:
    """How a launch is to run; `Launch` says what each of these means."""

    path: str
    check: bool | str
    schedule: Schedule
    jobs: int
    engine: str
    events: bool
    budget: Budget | None
    timing: bool | str
    part: Part | None = None  # of the blocks; all, where it is not said

    @property
    def computes(self) -> bool:
        return self.timing != "only"

    def refuse_untimed(self) -> None:
        """A launch is timed as one run in this process."""
        if self.timing not in (True, "only"):
            raise usage_error("timing", f'timing is True or "only", not {self.timing!r}')
        if self.jobs > 1 or self.engine != REPEATING or self.check == "explore":
            raise usage_error(
                "timing",
                "a launch is timed in one run of this process, on the fast engine",
                got=[("jobs", self.jobs), ("engine", self.engine), ("check", self.check)],
                fix="leave jobs and engine out, and explore in a launch of its own",
            )


@dataclass(frozen=True)
class Executed:
    """What came of it."""

    outcome: Outcome
    found: tuple[Diagnostic, ...]  # rules that were broken without stopping it
    seconds: float
    recorder: Recorder | None  # of what takes time on the device


class Execution:
    """A launch under way."""

    def __init__(
        self,
        kernel: Kernel,
        blocks: int,
        asked: Asked,
        wanted: Wanted,
        args: tuple[Any, ...],
        consts: dict[str, Any],
    ) -> None:
        self._started = time.perf_counter()
        self._kernel, self._blocks, self._asked, self._wanted = kernel, blocks, asked, wanted
        self.path = self._chosen_path()
        kernel.source.fits(asked.target)
        self.arguments = arguments = kernel.source.bind(args, consts)
        ready = kernel.programs.ready(asked, arguments) if self.path == "lowered" else None
        self._module: Module | None = None if ready is None else ready.module
        self.programs = kernel.source.programs(self._module, arguments)
        self._ready = ready
        self._named = [each for n, v in arguments.items() for each in leaves_of(n, v)]
        self._shared = shared_memory(self._named)  # with what it holds before the run
        self.is_known = False  # whether the next launch like this one can only be a repetition
        self.found: tuple[Diagnostic, ...] = ()

    def _chosen_path(self) -> str:
        paths, wanted, steps = self._kernel.source.paths, self._wanted, self._asked.steps
        path = wanted.path
        if wanted.jobs < 1:
            raise usage_error("launch", "jobs is a positive number", got=[("jobs", wanted.jobs)])
        if wanted.timing:
            wanted.refuse_untimed()
            path = path or paths[-1]  # the program as a device is given it, with all its order
        path = path or (paths[0] if steps == OPEN else "lowered")
        if path not in paths:
            raise usage_error("path", f"path is one of {paths}, not {path!r}")
        if path != "lowered" and steps != OPEN:
            raise usage_error(
                "path",
                "a function that runs as it stands is not rewritten",
                got=[("place", steps.place), ("sync", steps.sync)],
                fix='path="lowered"',
            )
        return path

    # ---- what is known of launches like this one -------------------------------------------

    @cached_property
    def _is_plain(self) -> bool:
        """Whether it is one run, with nothing but its blocks to look after."""
        wanted = self._wanted
        is_whole = wanted.part is None
        return (
            is_whole and wanted.budget is None and not wanted.timing and wanted.check != "explore"
        )

    @cached_property
    def _program(self) -> Module | None:
        """The program that says all of what it does, also where a function runs as it stands.

        A function may call code that does more than a program says, and who follows it line by
        line wants to see every line each time.
        """
        if self._module is not None or self._ready is None:
            return self._module
        written = self._kernel.programs.written(self._asked.target, self.arguments)
        return None if written.calls_out or is_followed() else self._ready.module

    @cached_property
    def _question(self) -> Any:
        """What its verdict depends on; None where every launch has one of its own.

        Ranks of a world meet at memory that others touch as well: there it matters each time.
        """
        wanted, module = self._wanted, self._program
        program = self.programs.identity if module is None else (self.path, module)
        is_usual = wanted.schedule == Schedule() and wanted.check in (True, False)
        if program is None or not self._is_plain or not is_usual or here() is not None:
            return None
        if module is not None and not reads_no_data(module):
            return None
        return question(program, self._blocks, self.programs.args, self._asked.policy)

    @cached_property
    def _known(self) -> tuple[Diagnostic, ...] | None:
        """The verdict of an earlier launch, where this one need not be checked again."""
        wanted = self._wanted
        if wanted.check is not True or wanted.events:
            return None
        return self._kernel.programs.memory.verdict(self._question)

    @cached_property
    def _is_repeatable(self) -> bool:
        wanted, module = self._wanted, self._program
        is_watched = wanted.events or wanted.timing
        is_fast = wanted.engine == REPEATING and not is_watched
        return is_fast and self._question is not None and (not module or says_nothing(module))

    # ---- running ---------------------------------------------------------------------------

    def run(self) -> Executed:
        """Run all blocks; raises all that is wrong."""
        kernel, asked = self._kernel, self._asked
        if self._ready is None:
            self._ready = kernel.programs.judged(asked, self.arguments)
        recorder = None
        if self._wanted.timing:  # others do not load the model
            from ptokit.timing.streams import Recorder

            recorder = Recorder(asked.target)
        outcome = self._repeated() or self._executed(recorder)
        self.found = self._findings(outcome)
        return Executed(outcome, self.found, time.perf_counter() - self._started, recorder)

    @property
    def _arrays(self) -> list[Any]:
        return [as_array(v) for v in self.programs.args if getattr(v, "shape", ())]

    def _repeated(self) -> Outcome | None:
        """A launch that was noted, on these arrays."""
        memory = self._kernel.programs.memory
        is_judged = self._wanted.check is not True or self._known is not None
        if not self._is_repeatable or not (is_judged or memory.replays.compares(self._question)):
            return None
        outcome = memory.replays.play(self._question, self._arrays, self._threads)
        if outcome is not None and not self._shared:
            self.is_known = True
        return outcome

    @property
    def shortcut(self) -> Shortcut:
        """What the next launch like this one need not find out again."""
        target, found = self._asked.target, self.found
        return Shortcut(self._question, self._threads, target, self.mode, self.path, found)

    @cached_property
    def _threads(self) -> int:
        memory, program = self._kernel.programs.memory, self._program
        # Blocks that a check has not objected to may run side by side; of others than devices,
        # there is none.
        is_proved = memory.verdict(self._question) == () and self._asked.target.is_device
        is_apart = is_proved and program is not None and not blocks_meet(program)
        return self._wanted.jobs if is_apart else 1

    def _executed(self, recorder: Recorder | None) -> Outcome:
        """Run instruction by instruction, and note what may be repeated."""
        wanted, programs, asked = self._wanted, self.programs, self._asked
        memory = self._kernel.programs.memory
        arenas = memory.arenas((asked.target, programs.mode, self._module, asked.policy))
        arena = None
        if self._is_plain:
            arena = arenas.pop() if arenas else Arena(asked.target, programs.mode)
        is_noted = self._is_repeatable
        tape = memory.replays.tape(self._question, self._arrays) if is_noted else None
        runs = self._driven(tape)
        follow = tape.follow if tape is not None else None if runs is None else runs.follow
        part = wanted.part
        options = Options(
            self._blocks,
            wanted.schedule,
            wanted.check if self._known is None and wanted.computes else False,
            [leaf for _, leaf in self._named],
            arena,
            self._executor(),
            wanted.events,
            policy=asked.policy,
            budget=wanted.budget,
            listener=recorder,
            follow=follow if part is None else part.follow,
            blocks=None if part is None else part.blocks,
            again=None if tape is None or programs.keeper is None else tape.again,
        )
        try:
            with nullcontext() if arena is None else arena.lock:
                outcome = self._carried_out(options, recorder, runs)
        except ProgramError as error:
            is_auto = asked.steps == OPEN and self.mode == "auto"
            if self._module is not None and is_auto:
                _blame_ourselves(error)
            error.doubted(self._ready.doubts if self._ready else ())
            raise
        if arena is not None:  # after a run that has gone well
            arenas.append(arena)
            if tape is not None and programs.keeper is not None:
                memory.replays.keep_elsewhere(self._question, outcome)
            elif tape is not None:
                memory.replays.keep(self._question, tape, outcome, arena.lock)
        return outcome

    def _executor(self) -> Callable[[Machine], Executor]:
        if self._wanted.computes:
            return find_engine(self._wanted.engine).executor
        from ptokit.machine.dataless import DatalessExecutor

        return DatalessExecutor

    @property
    def mode(self) -> str:
        return getattr(self._kernel.source, "mode", self.programs.mode)

    def _driven(self, tape: Tape | None) -> Runs | None:
        """The program as one function, where nobody wants to see its steps; None: steps."""
        wanted, module = self._wanted, self._module
        is_asked = wanted.check is not False and self._known is None
        is_seen = is_asked or wanted.events or not self._is_plain or wanted.engine != REPEATING
        is_usual = wanted.schedule == Schedule() and here() is None
        if module is None or is_seen or not is_usual or self.programs.keeper is not None:
            return None
        from ptokit.engines.compiled.replay import unkept

        drivers = self._kernel.programs.memory.drivers(module)
        return None if drivers is None else drivers.of(tape or unkept(self._arrays))

    def _carried_out(
        self, options: Options, recorder: Recorder | None, runs: Runs | None
    ) -> Outcome:
        programs = self.programs
        cores = dict.fromkeys(programs.cores, self._body(runs))
        if recorder is not None and not self._wanted.computes and self._module is not None:
            return self._outlined(self._module, cores, options, recorder)
        return run(cores, self._asked.target, programs.mode, options, programs.keeper)

    def _body(self, runs: Runs | None) -> Callable[[], Any]:
        """What every core runs: a Python function, or the program through an engine."""
        programs = self.programs
        if self._module is None:
            assert programs.body is not None
            return programs.body
        memory = self._kernel.programs.memory
        prepared = runs or memory.prepared(self._wanted.engine, self._module)
        function, args = programs.function, programs.args
        assert function is not None
        return lambda: prepared.run(current(), function, args)

    def _outlined(
        self,
        module: Module,
        cores: Mapping[str, Callable[[], Any]],
        options: Options,
        recorder: Recorder,
    ) -> Outcome:
        """Run one block of each outline, and note the others as repeating it.

        A program without an outline runs whole.
        """
        from ptokit.engines.outline import (  # for times without data
            NoOutline,
            Outline,
            OutlineMachine,
            Walked,
        )

        programs, target = self.programs, self._asked.target
        function = programs.function
        assert function is not None
        outline = Outline(module)
        machine = OutlineMachine(target, programs.mode, policy=options.policy)
        machine.blocks, walked = self._blocks, list[dict[str, Walked]]()
        machine.subblocks = SUBBLOCKS if "cube" in cores else 1
        try:
            for block in range(self._blocks):
                of_cores: dict[str, Walked] = {}
                for core in _cores(target, cores, machine.subblocks, block):
                    machine.core = core
                    of_cores[core.place] = outline.walk(machine, function, programs.args)
                walked.append(of_cores)
        except NoOutline:
            walked = []
        known, outcome = dict[Any, int](), None
        for block, of_cores in enumerate(walked):
            like = known.setdefault(tuple(each.way for each in of_cores.values()), block)
            views = {place: each.views for place, each in of_cores.items()}
            if like == block or not recorder.repeat(block, like, views):
                part = replace(options, blocks=range(block, block + 1))
                outcome = run(cores, target, programs.mode, part)
        return outcome or run(cores, target, programs.mode, options)

    # ---- what is said of it ----------------------------------------------------------------

    def _findings(self, outcome: Outcome) -> tuple[Diagnostic, ...]:
        kernel, asked, found = self._kernel, self._asked, outcome.warnings
        if self._known is not None:
            found = tuple(unrepeated((*found, *self._known)))
        elif self._question is not None and outcome.verdict is not None:
            kernel.programs.memory.remember(self._question, outcome.verdict)
        if self._module is None:
            found = kernel.programs.advised(found, asked, self.arguments)
        if self._ready is not None:  # what lies on other paths, and what no single call can see
            found = tuple(unrepeated((*found, *self._ready.doubts)))
        shared = (each.told() for each in self._shared)
        return (*found, *asked.policy.judge(filter(None, shared)))


def is_followed() -> bool:
    """Whether somebody follows Python line by line, as debuggers do."""
    hooks = getattr(sys, "monitoring", None)
    has_tool = hooks is not None and hooks.get_tool(hooks.DEBUGGER_ID) is not None
    return has_tool or sys.gettrace() is not None


# What a program that auto mode has ordered cannot have: pipes or instructions in no order.
_OURS = ("E2", "E6", "E8")


def _blame_ourselves(error: ProgramError) -> None:
    """Auto mode orders the pipes: where it has failed, no advice to the author is in place."""
    if any(found.code in _OURS for found in error.diagnostics):
        fix = "please report the kernel; meanwhile order its pipes in manual mode"
        raise InternalError(
            replace(found, message=f"auto mode, a bug of ptokit: {found.message}", fix=fix)
            for found in error.diagnostics
        ) from error


def _cores(target: Target, kinds: Collection[str], subblocks: int, block: int) -> list[Core]:
    """The cores that run a block of a launch with programs for these kinds."""
    if "mix" in kinds:
        return [Core(target, "mix", block)]
    found = Cluster.of_all(target, subblocks, block).cores.values()
    return [core for core in found if core.kind in kinds]
